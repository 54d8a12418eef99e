import asyncio
import hashlib
import itertools
import json
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import websockets
from websockets.asyncio.client import connect

from loadbench.session.load import ProfileError
from loadbench.simulator.log import Entry, read
from loadbench.simulator.options import Options, OptionsError
from loadbench.simulator.serve import running, serve

pytestmark = pytest.mark.realtime
NEAR_S = 0.03
CONFIG = '{"config":{"sample_rate":16000,"words":1}}'


@dataclass
class Heard:
    """What a foreign client heard, by its own clock, in seconds after its first chunk and after its end mark."""

    messages: list[tuple[float, float, Any]] = field(default_factory=list)
    code: int | None = None
    lost: bool = False
    media: bytes = b""

    def first(self, key: str) -> tuple[float, float, str]:
        return next((first, final, item[key]) for first, final, item in self.messages if item.get(key))


async def vosk(url: str, *, chunks: int = 4, session: str = "", wait_s: float = 5, **headers: str) -> Heard:
    heard, marks = Heard(), [time.monotonic()] * 2
    given = headers | ({"x-loadbench-session": session} if session else {})
    async with connect(url, additional_headers=given, ping_interval=None) as link:

        async def listen() -> None:
            try:
                while True:
                    text = await link.recv()
                    now = time.monotonic()
                    heard.messages.append((now - marks[0], now - marks[1], json.loads(text)))
            except websockets.ConnectionClosed as end:
                heard.code = end.rcvd.code if end.rcvd else None
                heard.lost = end.rcvd is None

        listening = asyncio.create_task(listen())
        try:
            await link.send(CONFIG)
            marks[0] = begun = time.monotonic()
            for at in range(chunks):
                chunk = bytes([at + 1]) * 1600
                await link.send(chunk)
                heard.media += chunk
                await asyncio.sleep(max(0, begun + 0.05 * (at + 1) - time.monotonic()))
            marks[1] = time.monotonic()
            await link.send('{"eof" : 1}')
        except websockets.ConnectionClosed:
            pass  # the listener has noted how
        await asyncio.wait([listening], timeout=wait_s)
        listening.cancel()
    return heard


def soon(seconds: float, expected: float) -> bool:
    """One sample on a noisy machine: never early, and not much late."""
    return expected - 0.005 <= seconds <= expected + 0.1


def entries(log: Path) -> dict[str, Entry]:
    return {entry.session: entry for entry in read(log)}


async def test_first_and_final_are_as_set_by_a_foreign_clock_and_the_log_has_every_byte(tmp_path: Path) -> None:
    log, before = tmp_path / "log.jsonl", time.monotonic_ns()
    async with running(Options(first_s=0.3, final_s=0.5, acks=False, log=log)) as url:
        several = await asyncio.gather(*(vosk(url, chunks=8, session=f"s{at}") for at in range(5)))
    firsts = sorted(heard.first("partial")[0] for heard in several)
    finals = sorted(heard.first("text")[1] for heard in several)
    assert firsts[2] == pytest.approx(0.3, abs=NEAR_S)
    assert finals[2] == pytest.approx(0.5, abs=NEAR_S)
    assert min(firsts) >= 0.3 - 0.002
    assert all(heard.code == 1000 for heard in several)
    for at, heard in enumerate(several):
        entry = entries(log)[f"s{at}"]
        assert entry.chunk_bytes == [1600] * 8
        assert entry.media_bytes == len(heard.media)
        assert entry.media_sha256 == hashlib.sha256(heard.media).hexdigest()
        stamps = [entry.opened_ns, *entry.chunks_ns, entry.end_ns, entry.final_sent_ns, entry.closed_ns]
        assert before < stamps[0]
        assert all(one <= other for one, other in itertools.pairwise(stamps))
        assert (entry.outcome, entry.close_by, entry.violations) == ("ok", "service", [])


@pytest.mark.parametrize(("sse", "kind"), [(False, "application/x-ndjson"), (True, "text/event-stream")])
async def test_an_http_stream_answers_while_it_is_being_sent(tmp_path: Path, sse: bool, kind: str) -> None:
    log = tmp_path / "log.jsonl"
    lines, sent = [], []

    async def body() -> AsyncIterator[bytes]:
        for at in range(10):
            sent.append(time.monotonic())
            yield bytes([at]) * 3200
            await asyncio.sleep(0.05)
        sent.append(time.monotonic())

    async with (
        running(Options(profile="http-stream", first_s=0.2, final_s=0.2, sse=sse, log=log)) as url,
        aiohttp.ClientSession() as client,
        client.post(url, data=body()) as answer,
    ):
        assert answer.status == 200
        assert answer.content_type == kind
        async for line in answer.content:
            if line.strip():
                lines.append((time.monotonic(), json.loads(line.removeprefix(b"data: "))))
    assert soon(lines[0][0] - sent[0], 0.2)
    assert lines[0][0] < sent[-1]  # before the end of the body
    assert soon(lines[-1][0] - sent[-1], 0.2)
    assert lines[-1][1] == {"final": "the red boat leaves at nine"}
    (entry,) = entries(log).values()
    assert entry.chunk_bytes == [3200] * 10
    assert entry.media_sha256 == hashlib.sha256(b"".join(bytes([at]) * 3200 for at in range(10))).hexdigest()


async def test_sign_frames_in_json_are_decoded_acknowledged_and_answered_label_by_label(tmp_path: Path) -> None:
    log, messages = tmp_path / "log.jsonl", []
    async with (
        running(
            Options(
                profile="sign-frames", first_s=0.05, final_s=0.1, partial_every_s=0.01, text="RED BOAT BLUE", log=log
            )
        ) as url,
        aiohttp.ClientSession() as client,
        client.ws_connect(url) as link,
    ):
        await link.send_json({"type": "command", "payload": {"action": "start", "session_id": "a"}})
        assert await link.receive_json() == {"type": "command", "payload": {"status": "started"}}
        for at in range(3):
            frame = {"image": "/9g=", "timestamp": 40 * (at + 1), "session_id": "a"}
            await link.send_json({"type": "frame", "payload": frame})
            await asyncio.sleep(0.04)
        await link.send_json({"type": "command", "payload": {"action": "stop", "session_id": "a"}})
        while not messages or messages[-1]["type"] != "command":
            messages.append(await link.receive_json())
    signs = [message["payload"]["sign"] for message in messages if "sign" in message["payload"]]
    acks = [message["payload"]["timestamp"] for message in messages[:-1] if "sign" not in message["payload"]]
    assert signs == ["RED", "BOAT", "BLUE"]
    assert messages[-2]["payload"]["sign"] == "BLUE"  # kept for the final, which nothing else would mark
    assert acks == [40, 80, 120]
    (entry,) = entries(log).values()
    assert (entry.chunk_bytes, entry.close_by, entry.outcome) == ([2, 2, 2], "client", "ok")


async def test_binary_frames_are_answered_on_both_channels_and_busy_is_said_in_the_profiles_words() -> None:
    options = Options(profile="sign-frames-binary", first_s=0.02, final_s=0.05, reject_first=1, partial_every_s=0)
    async with running(options) as url, aiohttp.ClientSession() as client:
        async with client.ws_connect(url) as link:
            assert (await link.receive_json())["type"] == "busy"
            assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE
        async with client.ws_connect(url) as link:
            await link.send_bytes(b"\xff\xd8")
            kinds = [(await link.receive_json())["type"] for _ in range(2)]
            await link.send_json({"type": "end"})
            kinds += [(await link.receive_json())["type"] for _ in range(3)]
    assert kinds == ["gloss", "text", "gloss", "text", "done"]


async def test_the_first_sessions_are_refused_with_503_and_a_time_to_come_back() -> None:
    async with running(Options(reject_first=2, retry_after_s=1, final_s=0.05)) as url:
        for _ in range(2):
            with pytest.raises(websockets.InvalidStatus) as caught:
                await connect(url)
            assert caught.value.response.status_code == 503
            assert caught.value.response.headers["Retry-After"] == "1"
        assert (await vosk(url, chunks=1)).code == 1000


async def test_a_token_is_good_for_its_time_and_then_refused_with_401() -> None:
    async with running(Options(token_valid_s=0.2, final_s=0.01)) as url:
        assert (await vosk(url, chunks=1, Authorization="Bearer a")).code == 1000
        await asyncio.sleep(0.3)
        with pytest.raises(websockets.InvalidStatus, match="401"):
            await vosk(url, chunks=1, Authorization="Bearer a")
        assert (await vosk(url, chunks=1, Authorization="Bearer b")).code == 1000


@pytest.mark.parametrize(("how", "code"), [("fin", None), ("rst", None), (1011, 1011), (1000, 1000)])
async def test_a_connection_is_cut_as_asked_and_logged_as_dropped(
    tmp_path: Path, how: str | int, code: int | None
) -> None:
    log = tmp_path / "log.jsonl"
    async with running(Options(drop=how, drop_s=0.12, first_s=0.05, log=log)) as url:
        heard = await vosk(url, chunks=6, session="a")
    assert (heard.code, heard.lost) == (code, code is None)
    assert heard.messages[-1][2] == {"partial": "the"}
    assert (entries(log)["a"].outcome, entries(log)["a"].close_by) == ("dropped", "service")


async def test_a_reset_is_a_reset_and_a_fin_is_an_end_of_stream() -> None:
    for how, ends in (("rst", ConnectionResetError), ("fin", asyncio.IncompleteReadError)):
        async with running(Options(profile="http-stream", drop=how, drop_s=0.05, first_s=5)) as url:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
            with pytest.raises(ends):
                await asyncio.wait_for(reader.readexactly(1), 3)
            writer.close()


async def test_a_client_that_leaves_is_logged_with_what_it_had_sent(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with running(Options(log=log)) as url, aiohttp.ClientSession() as client:
        async with client.ws_connect(url, headers={"x-loadbench-session": "a"}) as link:
            await link.send_str(CONFIG)
            await link.send_bytes(bytes(640))
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.05)
        entry = entries(log)["a"]  # written at the session's end, not at the service's
    assert (entry.outcome, entry.close_by, entry.media_bytes, entry.end_ns) == ("abandoned", "client", 640, None)


async def test_an_http_client_that_leaves_gives_its_slot_back(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with running(Options(profile="http-stream", capacity=1, first_s=0.05, final_s=0.05, log=log)) as url:
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
        await asyncio.sleep(0.1)
        writer.close()
        await asyncio.sleep(0.1)
        async with aiohttp.ClientSession() as client, client.post(url, data=b"ab") as answer:
            assert b'"final"' in await asyncio.wait_for(answer.read(), 3)
    assert [entry.outcome for entry in read(log)] == ["abandoned", "ok"]


async def test_overflow_in_http_is_the_status_that_the_profile_knows() -> None:
    options = Options(profile="http-stream", capacity=1, overflow="reject", first_s=0.05, final_s=0.3)
    async with running(options) as url, aiohttp.ClientSession() as client:
        first = asyncio.create_task(client.post(url, data=b"ab"))
        await asyncio.sleep(0.1)
        async with client.post(url, data=b"ab") as second:
            assert second.status == 503
        assert (await first).status == 200
        (await first).close()


async def test_pings_are_answered_unless_the_service_is_told_not_to() -> None:
    for pong, answered in ((True, True), (False, False)):
        async with running(Options(pong=pong)) as url, connect(url, ping_interval=None) as link:
            waiter = await link.ping()
            done, _ = await asyncio.wait([asyncio.ensure_future(waiter)], timeout=0.3)
            assert bool(done) is answered
            await link.send(CONFIG)


async def test_a_garbled_message_is_no_json_and_a_padded_one_has_its_size() -> None:
    async with running(Options(garble_rate=1.0, first_s=0.01, acks=False)) as url, connect(url) as link:
        await link.send(CONFIG)
        await link.send(bytes(640))
        with pytest.raises(json.JSONDecodeError):
            json.loads(await link.recv())
    async with running(Options(pad_bytes=600_000, first_s=0.01, acks=False)) as url, connect(url) as link:
        await link.send(CONFIG)
        await link.send(bytes(640))
        text = await link.recv()
    assert len(text) == 600_000
    assert json.loads(text) == {"partial": "the"}


async def test_a_body_may_be_cut_inside_a_character() -> None:
    options = Options(profile="http-stream", first_s=0.01, final_s=0.01, cut_bytes=1, text="今天", partial_every_s=0)
    async with running(options) as url, aiohttp.ClientSession() as client, client.post(url, data=b"ab") as answer:
        pieces = [piece async for piece, _ in answer.content.iter_chunks()]
    assert any(piece in "今天".encode() and len(piece) < 3 for piece in pieces)
    assert json.loads(b"".join(pieces).splitlines()[-1]) == {"final": "今天"}


async def test_what_a_client_does_wrong_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with (
        running(Options(log=log)) as url,
        connect(f"{url}/?sample_rate=16000", additional_headers={"x-loadbench-session": "a"}) as link,
    ):
        await link.send(CONFIG)
        await link.send(bytes(640))
        await link.send(b'{"eof" : 1}')
        await link.send("hello")
        await asyncio.sleep(0.05)
    violations = entries(log)["a"].violations
    assert violations[0] == "unknown query key sample_rate"
    assert violations[1] == "the end mark came as binary and must be text"
    assert "unknown text message" in violations[2]


async def test_a_slow_reader_makes_the_sender_feel_it() -> None:
    async with running(Options(read_pause_s=0.2)) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=1 << 16)
        writer.write(
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        await reader.readuntil(b"\r\n\r\n")
        frame = b"\x82\xff" + (1 << 20).to_bytes(8, "big") + bytes(4) + bytes(1 << 20)
        for _ in range(20):
            writer.write(frame)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.drain(), 0.5)
        writer.transport.abort()


async def test_it_listens_on_this_machine_only_and_a_taken_port_is_the_users_trouble() -> None:
    async with running(Options()) as url:
        port = int(url.rpartition(":")[2])
        assert url == f"ws://127.0.0.1:{port}"
        with pytest.raises(OptionsError, match=f"cannot listen on 127.0.0.1:{port}"):
            await serve(Options(port=port))


async def test_serve_tells_its_address_once_it_listens_and_ends_when_cancelled() -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    service = asyncio.create_task(serve(Options(final_s=0.01), ready=told.set_result))
    url = await asyncio.wait_for(told, 5)
    assert (await vosk(url, chunks=1)).code == 1000
    service.cancel()
    await asyncio.wait([service])
    with (
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=1),
    ):
        pass


async def test_a_profile_that_does_not_exist_is_the_users_trouble() -> None:
    with pytest.raises(ProfileError, match="vosc"):
        async with running(Options(profile="vosc")):
            pass


async def test_when_the_service_ends_every_session_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with aiohttp.ClientSession() as client:
        async with running(Options(log=log)) as url:
            links = [await client.ws_connect(url) for _ in range(3)]
        assert [entry.close_by for entry in read(log)] == ["service"] * 3
        for link in links:
            assert (await link.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
            await link.close()


async def test_a_second_utterance_on_the_same_connection_is_heard_and_logged_by_itself(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    options = Options(profile="sign-frames-binary", first_s=0.02, final_s=0.05, partial_every_s=0, log=log)
    async with running(options) as url, aiohttp.ClientSession() as client, client.ws_connect(url) as link:
        for size in (10, 20):
            await link.send_bytes(bytes(size))
            await link.send_json({"type": "end"})
            while (await link.receive_json())["type"] != "done":
                pass
    first, second = read(log)
    assert first.session == second.session
    assert [(entry.utterance, entry.media_bytes, entry.outcome) for entry in (first, second)] == [
        (0, 10, "ok"),
        (1, 20, "ok"),
    ]


async def test_where_a_profile_has_no_end_mark_media_that_pauses_is_over(tmp_path: Path) -> None:
    profile = tmp_path / "plain.yaml"
    profile.write_text(
        "name: plain\ntransport: {kind: websocket}\nmedia: {kind: audio, chunk_ms: 100}\n"
        "end: [{quiet: {for_s: 1, max_s: 5}}, {done: {on: [close], closes: target}}]\n"
        "receive: {rules: [{has: text, text: {model: unkeyed, text: text, final: fin}}]}\n"
    )
    options = Options(profile=str(profile), first_s=0.02, final_s=0.7, partial_every_s=0, log=tmp_path / "log.jsonl")
    async with running(options) as url, aiohttp.ClientSession() as client, client.ws_connect(url) as link:
        for _ in range(3):
            last = time.monotonic()
            await link.send_bytes(bytes(3200))
            await asyncio.sleep(0.1)
        messages = [(time.monotonic() - last, message.json()) async for message in link]
    assert soon(messages[-1][0], 0.7)
    assert messages[-1][1] == {"text": "the red boat leaves at nine", "fin": True}


async def test_slices_of_half_a_second_are_not_over_between_two_of_them(tmp_path: Path) -> None:
    profile, log = tmp_path / "sliced.yaml", tmp_path / "log.jsonl"
    profile.write_text(
        "name: sliced\ntransport: {kind: websocket}\nmedia: {kind: video, container: webm, slice_ms: 500}\n"
        "end: [{quiet: {for_s: 2, max_s: 5}}, {done: {on: [close], closes: target}}]\n"
        "receive: {rules: [{has: text, text: {model: unkeyed, text: text, final: fin}}]}\n"
    )
    options = Options(profile=str(profile), first_s=0.02, final_s=1.1, partial_every_s=0, log=log)
    async with running(options) as url, aiohttp.ClientSession() as client, client.ws_connect(url) as link:
        for _ in range(3):
            await link.send_bytes(b"slice")
            await asyncio.sleep(0.6)
        assert [message.json()["fin"] async for message in link] == [False, True]
    (entry,) = read(log)
    assert (entry.chunk_bytes, entry.media_sha256) == ([5] * 3, hashlib.sha256(b"slice" * 3).hexdigest())
    assert entry.final_sent_ns is not None
    assert entry.final_sent_ns - entry.chunks_ns[-1] >= 1_000_000_000, "twice the time from slice to slice"


async def test_where_a_client_waits_for_quiet_before_it_marks_the_end_finals_come_before_the_mark(
    tmp_path: Path,
) -> None:
    profile, log = tmp_path / "patient.yaml", tmp_path / "log.jsonl"
    profile.write_text(
        "name: patient\ntransport: {kind: websocket}\nmedia: {kind: audio, chunk_ms: 100}\n"
        "end: [{quiet: {for_s: 1, max_s: 5}}, {send_text: bye}, {done: {on: [close], closes: target}}]\n"
        "receive: {rules: [{has: text, text: {model: unkeyed, text: text, final: fin}}]}\n"
    )
    options = Options(profile=str(profile), first_s=0.02, final_s=1.2, partial_every_s=0, log=log)
    async with running(options) as url, aiohttp.ClientSession() as client, client.ws_connect(url) as link:
        for _ in range(3):
            last = time.monotonic()
            await link.send_bytes(bytes(3200))
            await asyncio.sleep(0.1)
        said = [(await link.receive_json(timeout=5))["fin"], (await link.receive_json(timeout=5))["fin"]]
        assert (said, soon(time.monotonic() - last, 1.2)) == ([False, True], True)
        with pytest.raises(TimeoutError):  # it waits for the mark
            await link.receive(timeout=0.3)
        await link.send_str("bye")
        assert (await link.receive(timeout=5)).type is aiohttp.WSMsgType.CLOSE
    assert [(entry.outcome, entry.violations) for entry in read(log)] == [("ok", [])]


async def test_a_session_whose_client_leaves_as_the_service_ends_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with running(Options(profile="http-stream", first_s=0.05, log=log)) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n")
        await reader.readuntil(b"partial")
        writer.close()
        await asyncio.sleep(0)
    assert [entry.media_bytes for entry in read(log)] == [4]
