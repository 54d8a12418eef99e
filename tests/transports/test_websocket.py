import asyncio
import base64
import json
import random
import time
from contextlib import suppress

import pytest
from websockets.asyncio.server import serve
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed

from loadbench.transports import load

pytestmark = pytest.mark.realtime

TEXT, BINARY, CONTINUATION, PING = 1, 2, 0, 9
encoder = load("websocket").encoder(random.Random(1).randbytes)


def saying(far, *frames, then=None):
    """A service that accepts, says all this at once, and waits (or does `then`)."""

    async def handler(reader, writer):
        await far.shake_hands(reader, writer)
        for data in frames:
            writer.write(data)
        await writer.drain()
        if then is not None:
            then(writer)
            return
        while await reader.read(65_536):
            pass

    return far.server(handler)


async def echo(ws):
    with suppress(ConnectionClosed):
        async for message in ws:
            await ws.send(message)


async def library_server(handler=echo, **options):
    server = await serve(handler, "127.0.0.1", 0, **options)
    return server, f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/path?a=b"


# Messages.


async def test_text_and_bytes_go_both_ways_and_our_close_is_ours(dial):
    server, url = await library_server()
    async with server:
        one = await dial("websocket", url)
        await one.until(lambda r: r.facts)
        shared = encoder.shared("红船".encode())
        one.link.write(encoder.whole("text", b"red boat"))
        one.link.write(encoder.whole("binary", b"\x00\xff" * 40_000))
        one.link.write(encoder.joined("text", b"<", shared, b">"))
        await one.until(lambda r: len(r.messages) == 3)
        assert one.data == ["red boat", b"\x00\xff" * 40_000, "<红船>"]
        one.link.shut(1000)
        cause = await one.end()
        assert (cause.kind, cause.by, cause.code) == ("closed", "us", 1000)


async def test_the_facts_of_an_opening_have_stamps_in_order_and_both_ends_addresses(dial):
    server, url = await library_server(subprotocols=["asr.v2"])
    async with server:
        begun_ns = time.monotonic_ns()
        one = await dial("websocket", url, subprotocols=("asr.v1", "asr.v2"))
        (facts,) = (await one.until(lambda r: r.facts)).facts
        assert begun_ns <= facts.tcp_ns <= facts.at_ns <= time.monotonic_ns()
        assert facts.tls_ns is None
        assert facts.remote == url.split("/")[2]
        assert facts.local.startswith("127.0.0.1:")
        assert (facts.status, facts.subprotocol) == (101, "asr.v2")


async def test_what_several_packets_bring_is_one_message_stamped_with_its_last_fragment(dial, far):
    """The text is cut inside three-byte characters, and the last fragment is 200 ms after the one before it."""
    message = json.dumps({"final": "今天下午三点开会"}, ensure_ascii=False).encode()
    cuts = [message[:12], message[12:17], message[17:25], message[25:]]
    said: list[int] = []

    async def handler(reader, writer):
        await far.shake_hands(reader, writer)
        for index, (part, pause_s) in enumerate(zip(cuts, (0.0, 0.05, 0.05, 0.2), strict=True)):
            await asyncio.sleep(pause_s)
            said.append(time.monotonic_ns())
            writer.write(far.frame(CONTINUATION if index else TEXT, part, fin=index == 3))
        await reader.read()

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        ((text, arrival_ns),) = (await one.until(lambda r: r.messages)).messages
    assert json.loads(text) == {"final": "今天下午三点开会"}
    assert arrival_ns >= said[3]


async def test_messages_of_one_packet_bear_one_stamp_in_their_order(dial, far):
    async with saying(far, b"".join(far.text(str(n)) for n in range(10))) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.until(lambda r: len(r.messages) == 10)
    assert one.data == [str(n) for n in range(10)]
    assert len({arrival_ns for _, arrival_ns in one.messages}) == 1


async def test_the_stamp_is_taken_before_the_message_is_parsed(dial, far, monkeypatch):
    parsed: list[int] = []
    real = ClientProtocol.receive_data

    def receive_data(core, data):
        parsed.append(time.monotonic_ns())
        real(core, data)

    monkeypatch.setattr(ClientProtocol, "receive_data", receive_data)
    async with saying(far, far.text("red boat")) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        ((_, arrival_ns),) = (await one.until(lambda r: r.messages)).messages
    assert arrival_ns <= parsed[-1]


async def test_a_message_of_600_000_bytes_is_no_trouble(dial, far):
    line = '{"partial": "' + "x" * 600_000 + '"}'
    async with saying(far, far.text("{}"), far.text(line), far.text('{"final": "end"}')) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.until(lambda r: len(r.messages) == 3)
    assert one.data == ["{}", line, '{"final": "end"}']


async def test_a_message_over_our_limit_is_our_limit_and_what_came_before_is_kept(dial, far):
    async with saying(far, far.text("short") + far.frame(TEXT, b"x" * 1001)) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}", message_bytes=1000)
        cause = await one.end()
    assert (cause.kind, cause.by, cause.code) == ("too_big", "us", 1009)
    assert one.data == ["short"]


async def test_fragments_count_together_against_the_limit(dial, far):
    parts = far.frame(TEXT, b"x" * 600, fin=False) + far.frame(CONTINUATION, b"x" * 600)
    async with saying(far, parts) as port:
        cause = await (await dial("websocket", f"ws://127.0.0.1:{port}", message_bytes=1000)).end()
    assert cause.kind == "too_big"


@pytest.mark.parametrize(
    "bad",
    [
        (0x83, b"??"),  # an opcode that does not exist
        (0x81, b"\xff\xfe"),  # text that is not UTF-8
        (0x80, b"x"),  # a continuation of nothing
        (0xC1, b"x"),  # a compressed frame, and no compression was agreed
    ],
)
async def test_bytes_that_break_the_protocol_are_the_services_fault(dial, far, bad):
    first, payload = bad
    broken = bytes([first, len(payload)]) + payload
    async with saying(far, far.text("before") + broken + far.text("after")) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.by) == ("protocol", "target")
    assert cause.reason
    assert one.data == ["before"]


async def test_nothing_is_delivered_after_an_abort_within_a_message(dial, far):
    async with saying(far, far.text("one") + far.text("two")) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}", react=lambda r: r.link.abort())
        cause = await one.end()
    assert one.data == ["one"]
    assert (cause.kind, cause.by) == ("aborted", "us")


async def test_compression_is_not_offered(dial, far):
    heads = []

    async def handler(reader, writer):
        heads.append(await far.shake_hands(reader, writer))

    async with far.server(handler) as port:
        await (await dial("websocket", f"ws://127.0.0.1:{port}")).end()
    assert "extensions" not in heads[0].lower()


async def test_compression_that_is_asked_for_is_undone_and_our_frames_still_arrive(dial):
    server, url = await library_server()
    async with server:
        one = await dial("websocket", url, compression=True)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"red boat " * 100))
        await one.until(lambda r: r.messages)
        assert one.data == ["red boat " * 100]
        (connection,) = server.connections
        assert connection.protocol.extensions, "the test is about a compressed answer"


# The handshake.


async def test_the_request_carries_what_the_user_asked_for_and_no_more(dial, far):
    heads = []

    async def handler(reader, writer):
        heads.append(await far.shake_hands(reader, writer))

    async with far.server(handler) as port:
        one = await dial(
            "websocket",
            f"ws://user:p%40ss@127.0.0.1:{port}/v1/语?model=小&k=a%20b",
            headers=(("x-b", "2"), ("X-A", "1"), ("x-b", "3"), ("user-agent", "device/7")),
            subprotocols=("p1", "p2"),
        )
        await one.end()
    lines = heads[0].split("\r\n")
    assert lines[0] == "GET /v1/%E8%AF%AD?model=%E5%B0%8F&k=a%20b HTTP/1.1"
    assert [line for line in lines if line.startswith("Host")] == [f"Host: 127.0.0.1:{port}"]
    assert "Authorization: Basic " + base64.b64encode(b"user:p@ss").decode() in lines
    assert "Sec-WebSocket-Protocol: p1, p2" in lines
    assert [line for line in lines if line.lower().startswith(("x-", "user-agent"))] == [
        "x-b: 2",
        "X-A: 1",
        "x-b: 3",
        "user-agent: device/7",
    ]


BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "retry_after_s", "body"),
    [
        (BUSY + b"Content-Length: 4\r\n\r\nfull", 503, 1.0, b"full"),
        (BUSY + b"Transfer-Encoding: chunked\r\n\r\n4\r\nfull\r\n0\r\n\r\n", 503, 1.0, b"full"),
        (BUSY + b"\r\nno length, and never closed", 503, 1.0, b"no length, and never closed"),
        (BUSY + b"Content-Length: 5000000\r\n\r\n" + b"x" * 9000, 503, 1.0, b"x" * 4096),
        (b"HTTP/1.0 503 Busy\r\n\r\n", 503, None, b""),  # an old proxy
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 401, None, b""),
        (b"HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 302, None, b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, None, b"hi"),
    ],
)
async def test_a_refusal_tells_its_status_when_to_come_again_and_why(dial, far, answer, status, retry_after_s, body):
    async def handler(reader, writer):
        await far.head(reader)
        writer.write(answer)
        await reader.read()

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.status, cause.retry_after_s, cause.body) == ("rejected", status, retry_after_s, body)
    assert not one.facts


async def test_a_refusal_is_stamped_when_its_head_came_not_when_its_body_ended(dial, far):
    async def handler(reader, writer):
        await far.head(reader)
        writer.write(BUSY + b"Content-Length: 4\r\n\r\nfu")
        await asyncio.sleep(0.2)
        said.append(time.monotonic_ns())
        writer.write(b"ll")
        await reader.read()

    said: list[int] = []
    async with far.server(handler) as port:
        cause = await (await dial("websocket", f"ws://127.0.0.1:{port}")).end()
    assert cause.body == b"full"
    assert cause.at_ns < said[0]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", "eof"),
        (b"HTTP/1.1 10", "eof"),
        (b"HTTP/1.1 503 Service Unav", "eof"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n", "eof"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "protocol"),
        (b"hello", "protocol"),
        (b'{"partial": "where"}\n', "protocol"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "protocol"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "protocol"),
    ],
)
async def test_half_a_handshake_and_no_handshake_are_told_apart(dial, far, answer, kind):
    async def handler(reader, writer):
        await far.head(reader)
        writer.write(answer)

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        cause = await one.end()
    assert cause.kind == kind
    assert cause.reason
    assert not one.facts


async def test_fifty_handshakes_with_twenty_refusals_are_fifty_attempts_and_none_is_repeated(dial, far):
    attempts = []

    async def handler(reader, writer):
        attempts.append(1)
        if len(attempts) <= 20:
            await far.head(reader)
            writer.write(BUSY + b"Content-Length: 0\r\n\r\n")
        else:
            await far.shake_hands(reader, writer)
        await reader.read()

    async with far.server(handler) as port:
        many = await asyncio.gather(*(dial("websocket", f"ws://127.0.0.1:{port}") for _ in range(50)))
        await asyncio.gather(*(one.until(lambda r: r.facts or r.causes) for one in many))
        refused = [one for one in many if one.causes]
        assert len(refused) == 20
        assert {(one.causes[0].status, one.causes[0].retry_after_s) for one in refused} == {(503, 1.0)}
        assert len(attempts) == 50


async def test_120_connections_stand_at_the_same_time(dial, far):
    standing = peak = 0

    async def handler(reader, writer):
        nonlocal standing, peak
        await far.shake_hands(reader, writer)
        standing += 1
        peak = max(peak, standing)
        await reader.read()
        standing -= 1

    async with far.server(handler, backlog=256) as port:
        many = await asyncio.gather(*(dial("websocket", f"ws://127.0.0.1:{port}") for _ in range(120)))
        await asyncio.gather(*(one.until(lambda r: r.facts) for one in many))
        assert peak == 120


# The end.


@pytest.mark.parametrize(
    ("code", "reason"),
    [(1000, ""), (1001, "bye"), (1008, "token expired"), (1011, "worker died"), (4005, "配额")],
)
async def test_a_close_of_the_services_bears_its_code_and_reason(dial, far, code, reason):
    async with saying(far, far.text("red boat leaves") + far.close(code, reason)) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.by, cause.code, cause.reason) == ("closed", "target", code, reason)
    assert one.data == ["red boat leaves"]


async def test_a_close_without_a_code_reads_1005(dial, far):
    async with saying(far, far.frame(8, b"")) as port:
        cause = await (await dial("websocket", f"ws://127.0.0.1:{port}")).end()
    assert (cause.kind, cause.by, cause.code) == ("closed", "target", 1005)


async def test_a_service_that_closes_and_keeps_the_socket_is_closed_at_once_and_let_go_of_soon(dial, far):
    gone = asyncio.Event()

    async def handler(reader, writer):
        await far.shake_hands(reader, writer)
        writer.write(far.close(1000))
        while await reader.read(1000):
            pass
        gone.set()

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.end()
        assert not gone.is_set()  # the service may close first, and keep the port's waiting time on its side
        async with asyncio.timeout(5):
            await gone.wait()


@pytest.mark.parametrize(("how", "kind"), [("fin", "eof"), ("rst", "reset")])
async def test_a_connection_cut_without_a_close_is_no_close(dial, far, how, kind):
    partials = [far.text(text) for text in ("red", "red boat", "red boat leaves")]
    then = far.reset if how == "rst" else lambda writer: writer.close()
    async with saying(far, *partials, then=then) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.by, cause.code) == (kind, "target", None)
    assert one.data[-1] == "red boat leaves"


async def test_the_last_words_of_a_service_that_resets_are_heard_even_when_we_were_writing(dial, far):
    """The reset meets a write of ours before the close code has been read, as it does on a busy tester."""
    go = asyncio.Event()

    async def handler(reader, writer):
        await far.shake_hands(reader, writer)
        await go.wait()
        writer.write(far.text("red boat leaves") + far.close(1011, "worker died"))
        far.reset(writer)

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.until(lambda r: r.facts)
        loop = asyncio.get_running_loop()

        def write_until_it_breaks(left):
            # Runs in each turn before the loop looks at sockets, so that a write is the first to see the reset.
            if left and not one.causes:
                one.link.write(encoder.whole("binary", b"media"))
                loop.call_soon(write_until_it_breaks, left - 1)

        go.set()
        write_until_it_breaks(200)
        cause = await one.end()
    assert (cause.kind, cause.code) == ("closed", 1011)
    assert one.data == ["red boat leaves"]


async def test_messages_between_our_close_and_the_services_are_still_heard(dial, far):
    async def handler(reader, writer):
        await far.shake_hands(reader, writer)
        got.append(await reader.read(100))  # our close
        writer.write(far.text("the tail"))
        await asyncio.sleep(0.05)
        writer.write(far.close(1000))
        got.append(await reader.read())

    got: list[bytes] = []

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.until(lambda r: r.facts)
        one.link.shut(1000)
        one.link.write(encoder.whole("text", b"never sent"))
        one.link.shut(1001)
        cause = await one.end()
        await one.wait_for(lambda _: len(got) == 2)
    assert one.data == ["the tail"]
    assert (cause.kind, cause.by, cause.code) == ("closed", "us", 1000)
    assert (got[0][0], len(got[0]), got[1]) == (0x88, 8, b""), "one close frame, and nothing after it"


async def test_a_code_that_may_not_be_sent_becomes_1000(dial):
    server, url = await library_server()
    async with server:
        one = await dial("websocket", url)
        await one.until(lambda r: r.facts)
        one.link.shut(1006)
        assert (await one.end()).code == 1000


async def test_after_the_end_every_call_is_harmless(dial, far):
    async with saying(far, far.close(1000)) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.end()
        for _ in range(10):
            one.link.write(encoder.whole("binary", b"media"))
            await asyncio.sleep(0)
        one.link.shut(1000)
        one.link.abort()
        assert one.link.unsent() >= 0
        await asyncio.sleep(0.05)
    assert len(one.causes) == 1


@pytest.mark.parametrize("call", ["abort", "shut"])
async def test_a_handshake_that_hangs_can_be_given_up(dial, far, call):
    async def handler(reader, writer):
        await reader.read()

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await asyncio.sleep(0.02)
        one.link.abort() if call == "abort" else one.link.shut(1000)
        assert not one.causes  # told in a later turn of the loop, never from within the call
        cause = await one.end()
    assert (cause.kind, cause.by) == ("aborted", "us")


# Back pressure and pings.


async def test_a_service_that_does_not_read_is_seen_as_pause_and_unsent_bytes(dial, far):
    read_on = asyncio.Event()

    async def handler(reader, writer):
        await far.shake_hands(reader, writer)
        writer.transport.pause_reading()
        await read_on.wait()
        writer.transport.resume_reading()
        while await reader.read(1_000_000):
            pass

    async with far.server(handler) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.until(lambda r: r.facts)
        wire = encoder.whole("binary", bytes(1_000_000))
        for _ in range(30):
            one.link.write(wire)
        await one.until(lambda r: r.pauses == ["paused"])
        assert one.link.unsent() > 64 * 1024
        read_on.set()
        await one.until(lambda r: r.pauses == ["paused", "resumed"])
        await one.wait_for(lambda r: r.link.unsent() == 0)


async def test_the_services_pings_are_answered(dial):
    pongs = []

    async def handler(ws):
        waiter = await ws.ping(b"are you there")
        await waiter
        pongs.append(1)
        await ws.close(1000)

    server, url = await library_server(handler, ping_interval=None)
    async with server:
        await (await dial("websocket", url)).end()
    assert pongs == [1]


async def test_a_ping_inside_a_fragmented_message_breaks_nothing(dial, far):
    parts = far.frame(TEXT, b"red ", fin=False) + far.frame(PING, b"?") + far.frame(CONTINUATION, b"boat")
    async with saying(far, parts) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.until(lambda r: r.messages)
    assert one.data == ["red boat"]


async def test_pongs_that_never_come_are_counted_and_close_nothing(dial, far):
    async with saying(far, far.text("working")) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}", ping_every_s=0.02, ping_timeout_s=0.02)
        await one.wait_for(lambda r: r.link.pongs_missed == 3)
        assert one.link.pings_sent >= 3
        assert not one.causes


async def test_a_pong_that_never_comes_ends_the_connection_where_it_was_asked_for(dial, far):
    async with saying(far, far.text("working")) as port:
        pings = {"ping_every_s": 0.02, "ping_timeout_s": 0.02, "ping_close": True}
        one = await dial("websocket", f"ws://127.0.0.1:{port}", **pings)
        cause = await one.end()
    assert (cause.kind, cause.by, cause.code, cause.pongs_missed) == ("no_pong", "us", 1011, 1)
    assert cause.reason == "none within 0.02 s"


async def test_pongs_that_come_are_not_missed(dial):
    server, url = await library_server()
    async with server:
        one = await dial("websocket", url, ping_every_s=0.02, ping_timeout_s=2.0, ping_close=True)
        await one.wait_for(lambda r: r.link.pings_sent == 3)
        assert one.link.pongs_missed == 0


async def test_small_messages_do_not_wait_for_an_acknowledgement(dial, far):
    """With Nagle's algorithm two small writes in a row take 40 ms; twenty round trips would take 800 ms."""
    server, url = await library_server()
    async with server:
        one = await dial("websocket", url)
        await one.until(lambda r: r.facts)
        begun_ns = time.monotonic_ns()
        for count in range(1, 21):
            one.link.write(encoder.whole("text", b"a"))
            await asyncio.sleep(0)
            one.link.write(encoder.whole("text", b"b"))
            await one.until(lambda r, count=count: len(r.messages) == 2 * count)
        assert time.monotonic_ns() - begun_ns < 600_000_000
