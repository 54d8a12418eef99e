import asyncio
import json
import time

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.transports import load

encoder = load("http").encoder(bytes)
realtime = pytest.mark.realtime

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD_OF_A_REQUEST = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


END = b"0\r\n\r\n"


def as_a_server_reads(wire):
    """The body in `wire` and whether it has ended, by h11's own parser."""
    core = h11.Connection(h11.SERVER)
    core.receive_data(HEAD_OF_A_REQUEST + wire)
    core.next_event()
    body = b""
    while isinstance(event := core.next_event(), h11.Data):
        body += event.data
    return body, isinstance(event, h11.EndOfMessage)


def saying(far, *pieces, then=None):
    """A service that reads the head, says all this at once, and waits (or does `then`)."""

    async def handler(reader, writer):
        await far.head(reader)
        for piece in pieces:
            writer.write(piece)
        await writer.drain()
        if then is not None:
            then(writer)
            return
        while await reader.read(65_536):
            pass

    return far.server(handler)


# Encoding.


@given(parts=st.lists(st.binary(max_size=300), max_size=8))
def test_messages_are_chunks_that_a_server_reads_back(parts):
    wire = b"".join(encoder.whole("binary", part) for part in parts)
    assert as_a_server_reads(wire) == (b"".join(parts), False)
    assert as_a_server_reads(wire + encoder.whole("end", b"")) == (b"".join(parts), True)


@given(before=st.binary(max_size=50), middle=st.binary(max_size=70_000), after=st.binary(max_size=50))
def test_a_shared_part_is_framed_with_what_is_around_it(before, middle, after):
    wire = encoder.joined("text", before, encoder.shared(memoryview(middle)), after)
    assert as_a_server_reads(wire) == (before + middle + after, False)


def test_an_empty_message_does_not_end_the_body():
    assert encoder.whole("binary", b"") == b""


def test_the_end_may_carry_a_last_message():
    assert as_a_server_reads(encoder.whole("end", b"last")) == (b"last", True)


# The conversation.


@realtime
async def test_a_stream_goes_up_and_its_answer_comes_down_at_the_same_time(dial, far):
    got = []

    async def handler(reader, writer):
        got.append(await far.head(reader))
        writer.write(STREAM)
        for _ in range(3):
            got.append(await reader.readuntil(b"\r\n") + await reader.readuntil(b"\r\n"))
            writer.write(chunk(b'{"partial": "%d"}\n' % len(got)))
        got.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(chunk(b'{"final": "done"}\n') + END)

    async with far.server(handler) as port:
        one = await dial("http", f"http://127.0.0.1:{port}/stream?lang=en", content_type="audio/L16;rate=16000")
        await one.until(lambda r: r.facts)
        for count in range(1, 4):
            one.link.write(encoder.whole("binary", b"media"))
            await one.until(lambda r, count=count: len(r.messages) == count)
        one.link.write(encoder.whole("end", b""))
        cause = await one.end()
    assert (cause.kind, cause.by, cause.code) == ("closed", "target", None)
    assert [json.loads(line) for line in one.data] == [
        {"partial": "2"},
        {"partial": "3"},
        {"partial": "4"},
        {"final": "done"},
    ]
    assert got[1:] == [b"5\r\nmedia\r\n"] * 3 + [b"0\r\n\r\n"]
    lines = got[0].split("\r\n")
    assert lines[0] == "POST /stream?lang=en HTTP/1.1"
    assert {"Content-Type: audio/L16;rate=16000", "Transfer-Encoding: chunked", "Accept-Encoding: identity"} < set(
        lines
    )
    assert "expect" not in got[0].lower()


@realtime
async def test_the_answer_brings_its_status_content_type_and_stamp(dial, far):
    async with saying(far, b"HTTP/1.1 103 Early Hints\r\n\r\n", STREAM) as port:
        one = await dial("http", f"http://127.0.0.1:{port}", method="PUT")
        ((status, at_ns, content_type),) = (await one.until(lambda r: r.answers)).answers
    assert (status, content_type) == (200, "application/x-ndjson")
    assert one.facts[0].at_ns <= at_ns <= time.monotonic_ns()
    assert one.facts[0].status is None


@realtime
@pytest.mark.parametrize(
    ("answer", "closes"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nred boat", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"red ") + chunk(b"boat") + END, False),
        (b"HTTP/1.0 200 OK\r\n\r\nred boat", True),  # ended by hanging up, which is regular here
    ],
)
async def test_a_response_may_end_in_three_ways(dial, far, answer, closes):
    async with saying(far, answer, then=(lambda writer: writer.close()) if closes else None) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.by, cause.code) == ("closed", "target", None)
    assert b"".join(one.data) == b"red boat"


@realtime
async def test_an_answer_without_a_body_has_ended_with_its_head(dial, far):
    async with saying(far, b"HTTP/1.1 204 No Content\r\n\r\n") as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        assert (await one.end()).kind == "closed"
    assert [status for status, _, _ in one.answers] == [204]


@realtime
async def test_a_line_of_600_000_bytes_comes_through_unharmed(dial, far):
    lines = b'{"partial": "red"}\n{"partial": "' + b"x" * 599_986 + b'"}\n{"final": "red boat"}\n'
    async with saying(far, STREAM, chunk(lines), END) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        assert (await one.end()).kind == "closed"
    assert b"".join(one.data) == lines


@realtime
async def test_a_run_of_bytes_may_be_cut_inside_a_character(dial, far):
    """Messages are not packets: what is cut is put together by whoever reads lines, not here."""
    text = "今天下午三点开会".encode()

    async def handler(reader, writer):
        await far.head(reader)
        writer.write(STREAM)
        for piece in (text[:7], text[7:]):
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.write(END)

    async with far.server(handler) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        await one.end()
    assert one.data == [text[:7], text[7:]]


@realtime
async def test_long_streams_with_traffic_are_never_cut(dial, far):
    """No total time limit exists here: those of a session are counted by the session."""

    async def handler(reader, writer):
        await far.head(reader)
        writer.write(STREAM)
        for count in range(30):
            writer.write(chunk(b"%d\n" % count))
            await asyncio.sleep(0.02)
        writer.write(END)

    async with far.server(handler) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        assert (await one.end()).kind == "closed"
    assert b"".join(one.data).split() == [b"%d" % count for count in range(30)]


@realtime
async def test_the_stamp_is_taken_before_the_response_is_parsed(dial, far, monkeypatch):
    parsed: list[int] = []
    real = h11.Connection.receive_data

    def receive_data(core, data):
        parsed.append(time.monotonic_ns())
        real(core, data)

    monkeypatch.setattr(h11.Connection, "receive_data", receive_data)
    async with saying(far, STREAM + chunk(b"red boat")) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        ((_, arrival_ns),) = (await one.until(lambda r: r.messages)).messages
    assert arrival_ns <= parsed[-1]


@realtime
@pytest.mark.parametrize("said", [STREAM + chunk(b"red boat") + END, b"HTTP/1.0 200 OK\r\n\r\nred boat"])
async def test_an_answer_that_is_there_before_the_loop_could_say_opened_is_heard_after_it(dial, far, said):
    async with saying(far) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        assert not one.facts, "the loop has not come to it yet"
        one.link.data_received(said)
        one.link.eof_received()
        cause = await one.end()
    assert (len(one.facts), one.data, cause.by) == (1, [b"red boat"], "target")


# Refusals and faults.

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\n"


@realtime
@pytest.mark.parametrize(
    ("answer", "status", "retry_after_s", "body"),
    [
        (BUSY + b"Content-Length: 4\r\n\r\nfull", 503, 2.0, b"full"),
        (BUSY + b"Content-Length: 900000\r\n\r\n" + b"x" * 9000, 503, 2.0, b"x" * 4096),
        (BUSY + b"Content-Length: 9\r\n\r\nfull", 503, 2.0, b"full"),  # the rest never comes
        (b"HTTP/1.1 429 Slow Down\r\nContent-Length: 0\r\n\r\n", 429, None, b""),
        (b"HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 307, None, b""),
    ],
)
async def test_a_refusal_is_no_answer_but_a_cause(dial, far, answer, status, retry_after_s, body):
    async with saying(far, answer) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.status, cause.retry_after_s, cause.body) == ("rejected", status, retry_after_s, body)
    assert not one.answers
    assert not one.messages


@realtime
async def test_a_refusal_while_we_upload_is_heard_although_our_writes_break(dial, far):
    """The service says no and hangs up with our media unread, which resets the connection under our next write."""

    async def handler(reader, writer):
        await far.head(reader)
        await reader.read(10)
        writer.write(BUSY + b"Content-Length: 4\r\nConnection: close\r\n\r\nfull")
        await writer.drain()
        far.reset(writer)

    async with far.server(handler) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        await one.until(lambda r: r.facts)
        loop = asyncio.get_running_loop()

        def write_until_it_breaks(left):
            if left and not one.causes:
                one.link.write(encoder.whole("binary", b"media" * 100))
                loop.call_soon(write_until_it_breaks, left - 1)

        write_until_it_breaks(200)
        cause = await one.end()
    assert (cause.kind, cause.status, cause.body) == ("rejected", 503, b"full")


@realtime
@pytest.mark.parametrize("how", ["chunked", "length"])
@pytest.mark.parametrize(("cut", "kind"), [("fin", "eof"), ("rst", "reset")])
async def test_a_response_that_is_cut_is_not_complete(dial, far, how, cut, kind):
    head = STREAM if how == "chunked" else b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    said = chunk(b"red boat\n") if how == "chunked" else b"red boat\n"
    then = far.reset if cut == "rst" else lambda writer: writer.close()
    async with saying(far, head, said, then=then) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.by) == (kind, "target")
    assert one.data == [b"red boat\n"]


@realtime
@pytest.mark.parametrize("said", [b"hello", b'{"final": "red boat"}\n', b"SSH-2.0"])
async def test_an_answer_that_is_no_http_breaks_the_protocol_also_where_it_is_cut(dial, far, said):
    async with saying(far, said, then=lambda writer: writer.close()) as port:
        cause = await (await dial("http", f"http://127.0.0.1:{port}")).end()
    assert (cause.kind, cause.by) == ("protocol", "target")
    assert cause.reason


@realtime
@pytest.mark.parametrize("name", ["http", "websocket"])
@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x01\x00\x02\x02\x28", b"HTTQ"])
async def test_another_protocol_is_known_by_its_first_bytes_although_the_service_holds_the_connection(
    dial, far, name, said
):
    async with saying(far, said) as port:
        one = await dial(name, f"{'ws' if name == 'websocket' else name}://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.by) == ("protocol", "target")
    assert cause.reason


@realtime
@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 20"])
async def test_hanging_up_before_the_answer_is_a_loss(dial, far, said):
    async with saying(far, said, then=lambda writer: writer.close()) as port:
        assert (await (await dial("http", f"http://127.0.0.1:{port}")).end()).kind == "eof"


@realtime
@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        STREAM + b"no chunk size\r\n",
        STREAM.replace(b"Content-Type", b"Content-Encoding: gzip\r\nContent-Type"),
    ],
)
async def test_bytes_that_break_the_protocol_are_the_services_fault(dial, far, said):
    async with saying(far, said) as port:
        cause = await (await dial("http", f"http://127.0.0.1:{port}")).end()
    assert (cause.kind, cause.by) == ("protocol", "target")
    assert cause.reason


# The end.


@realtime
async def test_shut_sends_what_was_written_and_closes_by_us(dial, far):
    got = []

    async def handler(reader, writer):
        await far.head(reader)
        got.append(await reader.read())

    async with far.server(handler) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("binary", b"x" * 300_000))
        one.link.shut(1000)
        one.link.write(encoder.whole("binary", b"too late"))
        cause = await one.end()
        await asyncio.sleep(0.05)
    assert (cause.kind, cause.by, cause.code) == ("closed", "us", None)
    assert as_a_server_reads(got[0]) == (b"x" * 300_000, False)


@realtime
async def test_an_abort_in_the_middle_is_ours_and_final(dial, far):
    async with saying(far, STREAM, chunk(b"one") + chunk(b"two")) as port:
        one = await dial("http", f"http://127.0.0.1:{port}", react=lambda r: r.link.abort())
        cause = await one.end()
        for _ in range(3):
            one.link.write(encoder.whole("binary", b"media"))
        one.link.shut(1000)
    assert (cause.kind, cause.by) == ("aborted", "us")
    assert one.data == [b"one"]


@realtime
async def test_an_abort_before_opened_is_never_followed_by_opened(dial, far):
    async with saying(far) as port:
        one = await dial("http", f"http://127.0.0.1:{port}")
        one.link.abort()
        await one.end()
        await asyncio.sleep(0.02)
    assert not one.facts


@realtime
async def test_120_streams_stand_at_the_same_time(dial, far):
    standing = peak = 0

    async def handler(reader, writer):
        nonlocal standing, peak
        await far.head(reader)
        writer.write(STREAM)
        standing += 1
        peak = max(peak, standing)
        await reader.read()
        standing -= 1

    async with far.server(handler, backlog=256) as port:
        many = await asyncio.gather(*(dial("http", f"http://127.0.0.1:{port}") for _ in range(120)))
        await asyncio.gather(*(one.until(lambda r: r.answers) for one in many))
        assert peak == 120
