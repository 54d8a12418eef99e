"""Field cases that are about what a session meets on the wire, on every transport: B02, B12, B14, B22, trust, proxies.

A real engine and real sockets; the service is the simulator, or says its bytes from a list.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from loadbench import prepared
from loadbench.engine.run import Engine
from loadbench.plan import Plan
from loadbench.results.record import SessionRecord
from loadbench.session.load import load_profile, load_text
from loadbench.session.profile import Profile
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running
from tests.media.making import tone, wav
from tests.transports.conftest import Certificates, Far, certificates

__all__ = ["certificates"]
pytestmark = pytest.mark.realtime
WAYS = {"websocket": "vosk", "http": "http-stream", "upload": "openai-http", "plain": "openai-http-plain"}
WAYS |= {"requests": "simuleval"}
MEDIA_S = 0.3


def prepare(folder: Path, url: str, profile: str, sessions: int = 1, **more: Any) -> prepared.Prepared:
    """A run of so many sessions, one after the other, each with a short tone."""
    if not (folder / "manifest.jsonl").exists():
        wav(folder / "clip.wav", tone(MEDIA_S).astype("<i2").tobytes())
        row = {"id": "clip", "direction": "speech2text", "audio_filepath": "clip.wav", "source_lang": "en"}
        row |= {"target_lang": "en", "transcript": "the red boat", "text": "the red boat"}
        (folder / "manifest.jsonl").write_text(json.dumps(row) + "\n")
    target = {"url": url, "profile": profile} | more.pop("target", {})
    plan = {"target": target, "corpus": {"path": str(folder / "manifest.jsonl")}, **more}
    work = {"users": 1, "sessions": sessions, "failure_pause_s": 0}
    return prepared.prepare(Plan.model_validate({"workload": work} | plan))


async def carried(ready: prepared.Prepared) -> list[SessionRecord]:
    """The records of a run, in the order of their sessions' starts."""
    records: list[SessionRecord] = []

    def take(event: object) -> None:
        if isinstance(event, SessionRecord):
            records.append(event)

    try:
        await asyncio.wait_for(Engine(ready.start, take).run(), 60)
    finally:
        ready.close()
    return sorted(records, key=lambda record: record.begun_ns)


async def run(folder: Path, url: str, profile: str, sessions: int = 1, **more: Any) -> list[SessionRecord]:
    return await carried(prepare(folder, url, profile, sessions, **more))


def told(profile: str, **options: Any) -> Any:
    quick: dict[str, Any] = {"first_s": 0.02, "final_s": 0.05}
    return running(Options(profile=profile, **(quick | options)))


def text_of(record: SessionRecord) -> str:
    (utterance,) = record.utterances
    (channel,) = utterance.channels.values()
    return channel.text


# B02: whose limit it was.


@pytest.mark.parametrize("way", WAYS)
async def test_b02_a_session_limit_of_ours_is_our_doing_and_without_one_the_same_service_is_good(
    way: str, tmp_path: Path
) -> None:
    async with told(WAYS[way], first_s=0.02, partial_every_s=0.05, final_s=1.2) as url:
        (cut,) = await run(tmp_path, url, WAYS[way], limits={"session_s": 0.8})
        (good,) = await run(tmp_path, url, WAYS[way], limits={"silence_s": 10})
    assert (cut.outcome, cut.side) == ("our_limit", "policy")
    assert "our session limit of 0.8 s" in cut.cause
    assert (good.outcome, good.cause) == ("ok", "")


# B12: several finals.


@pytest.mark.parametrize("way", [way for way in WAYS if way != "plain"])  # one object has one text
@pytest.mark.parametrize("text", ["the train leaves at nine from platform two", "今天下午三点开会"])
async def test_b12_several_finals_are_one_text(way: str, text: str, tmp_path: Path) -> None:
    async with told(WAYS[way], finals_s=(0.02, 0.06, 0.1), text=text) as url:
        (record,) = await run(tmp_path, url, WAYS[way])
    assert (record.outcome, text_of(record)) == ("ok", text)
    assert record.messages["final"] >= (3 if " " in text else 1)


# B14: message boundaries are not packet boundaries.

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def pieces(whole: bytes, size: int) -> list[bytes]:
    return [whole[at : at + size] for at in range(0, len(whole), size)]


@contextlib.asynccontextmanager
async def saying(parts: Sequence[bytes], *, after: bytes = b"") -> AsyncIterator[str]:
    """A service that has heard what ends with `after`, and then says these parts, each in a packet of its own."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(after)
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0.002)
            await reader.read()
        writer.close()

    async with Far.server(handler) as port:
        yield f"http://127.0.0.1:{port}"


NDJSON = '{"partial": "今天"}\n{"final": "今天下午三点开会"}\n'.encode()
SSE = 'data: {"partial":\r\ndata: "a\u2028b"}\r\n\r\ndata: {"final": "a\u2028b 今天\x85"}\r\n\r\n'.encode()
EVENTS = 'data: {"type": "transcript.text.done", "text": "a\u2028b 今天"}\n\ndata: [DONE]\n\n'.encode()
OBJECT = '{\n "text": "a\u2028b 今天"\n}\n'.encode()
BODY_END, FORM_END = b"\r\n0\r\n\r\n", b"--\r\n"


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("profile", "kind", "body", "after", "text", "count"),
    [
        ("http-stream", b"application/x-ndjson", NDJSON, BODY_END, "今天下午三点开会", 2),
        ("http-stream", b"text/event-stream", SSE, BODY_END, "a\u2028b 今天\x85", 2),
        ("openai-http", b"text/event-stream", EVENTS, FORM_END, "a\u2028b 今天", 1),
        ("openai-http", b"application/json", OBJECT, FORM_END, "a\u2028b 今天", 1),
        ("openai-http-plain", b"application/json", OBJECT, FORM_END, "a\u2028b 今天", 1),
    ],
)
async def test_b14_where_packets_and_chunks_end_means_nothing(
    tmp_path: Path, profile: str, kind: bytes, body: bytes, after: bytes, text: str, count: int, size: int
) -> None:
    wire = CHUNKED % kind + b"".join(chunk(part) for part in pieces(body, size)) + b"0\r\n\r\n"
    async with saying(pieces(wire, 64 if size == 1 else 11), after=after) as url:
        (record,) = await run(tmp_path, url, profile)
    assert (record.outcome, record.cause) == ("ok", "")
    assert text_of(record) == text
    assert sum(record.messages.values()) == count
    assert "error" not in record.messages


async def test_b14_four_fragments_of_a_websocket_message_are_one_with_the_time_of_the_last(tmp_path: Path) -> None:
    whole, sent = '{"text": "今天下午三点开会"}'.encode(), []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Far.shake_hands(reader, writer)
        await reader.readexactly(4000)
        await asyncio.sleep(MEDIA_S)
        for number, part in enumerate((whole[:10], whole[10:11], whole[11:18], whole[18:])):
            sent.append(asyncio.get_running_loop().time())
            writer.write(Far.frame(1 if number == 0 else 0, part, fin=number == 3))
            await asyncio.sleep(0.05)
        writer.write(Far.close(1000))
        await reader.read()

    async with Far.server(handler) as port:
        (record,) = await run(tmp_path, f"ws://127.0.0.1:{port}", "vosk")
    assert (record.outcome, text_of(record), record.messages["final"]) == ("ok", "今天下午三点开会", 1)
    final_ns = record.utterances[0].channels["transcript"].last_final_ns
    assert final_ns is not None
    assert final_ns >= sent[3] * 1e9


# B22: refusals are counted, never hidden, and never in the latency.


@pytest.mark.parametrize("way", WAYS)
async def test_b22_refusals_are_outcomes_with_their_status_and_nothing_is_tried_again(way: str, tmp_path: Path) -> None:
    options = {"reject_first": 3, "reject_status": 503, "retry_after_s": 1.0}
    async with told(WAYS[way], **options) as url:
        records = await run(tmp_path, url, WAYS[way], sessions=7)
    assert [record.outcome for record in records] == ["rejected"] * 3 + ["ok"] * 4
    for refused in records[:3]:
        assert "HTTP status 503, retry after 1 s" in refused.cause
        assert refused.side == "target"
        assert len(refused.connections) == 1
        assert not any(channel.first_ns for channel in refused.utterances[0].channels.values())


def expiring(folder: Path, name: str) -> str:
    """A shipped profile that takes 401 for an expired token."""
    whole: Profile = load_profile(name)
    data = whole.model_dump(mode="json", exclude_unset=True)
    others = [rule for rule in data["receive"].get("statuses", []) if 401 not in rule.get("status", [])]
    data["receive"]["statuses"] = [{"status": [401], "outcome": "auth_expired"}, *others]
    path = folder / "expiring.yaml"
    path.write_text(json.dumps(data))
    load_text(path.read_text(), path.name)
    return str(path)


@pytest.mark.parametrize("way", WAYS)
async def test_b22_an_expired_token_is_an_outcome_of_its_own(way: str, tmp_path: Path) -> None:
    profile = expiring(tmp_path, WAYS[way])
    async with told(profile, token_valid_s=0.0) as url:
        records = await run(tmp_path, url, profile, sessions=3, target={"headers": {"Authorization": "Bearer once"}})
    assert [record.outcome for record in records] == ["ok", "auth_expired", "auth_expired"]


# Trust and proxies, as a session's outcome.


@pytest.mark.parametrize("way", WAYS)
async def test_a_service_that_cannot_be_trusted_is_a_tls_outcome_of_the_network(
    way: str, tmp_path: Path, certificates: Certificates
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.localhost_pem, certificates.localhost_key)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with Far.server(handler, ssl=context) as port:
        url = f"{'wss' if way == 'websocket' else 'https'}://localhost:{port}"
        (record,) = await run(tmp_path, url, WAYS[way])
    assert (record.outcome, record.side) == ("tls", "network")
    assert "the certificate was not accepted" in record.cause


@pytest.mark.parametrize("way", WAYS)
async def test_a_proxy_s_refusal_is_an_outcome_of_the_network_and_its_credentials_are_nowhere(
    way: str, tmp_path: Path
) -> None:
    refusal = b"HTTP/1.1 407 Who are you, user:pw-FAKE-77?\r\nContent-Length: 0\r\n\r\n"
    async with saying([refusal], after=b"\r\n\r\n") as proxy:
        target = {"proxy": proxy.replace("://", "://user:pw-FAKE-77@")}
        url = f"{'ws' if way == 'websocket' else 'http'}://service.invalid"
        ready = prepare(tmp_path, url, WAYS[way], target=target)
        header = json.dumps([ready.header.plan, ready.header.effective])
        (record,) = await carried(ready)
    assert (record.outcome, record.side) == ("connect_failed", "network")
    assert "the proxy did not let us through: it answered 407 Who are you, ***?" in record.cause
    assert ready.header.effective["proxy"] == proxy
    assert "FAKE" not in header
    assert "FAKE" not in str(record)


async def test_what_goes_through_a_proxy_is_measured_and_says_so(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        host, _, port = heads[-1].split(b" ")[1].decode().rpartition(":")
        there = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(carry(reader, there[1]), carry(there[0], writer))

    async with told("vosk") as url, Far.server(handler) as proxy:
        (record,) = await run(tmp_path, url, "vosk", target={"proxy": f"http://127.0.0.1:{proxy}"})
    assert (record.outcome, len(heads)) == ("ok", 1)
    assert record.connections[0].remote == f"127.0.0.1:{proxy}"
