import asyncio
import base64
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loadbench.engine.pipe import ClipEntry
from loadbench.engine.prepare import wire_plans
from loadbench.media.plan import ChunkPlan
from loadbench.results.media import MediaPiece
from loadbench.results.record import Message, SessionRecord
from loadbench.results.tick import Tick
from loadbench.session import load
from loadbench.session.wire import Cause
from loadbench.transports import memory
from tests.engine import stage
from tests.engine.stage import EOF, MS, Heard, S, answering, engine, media_of, now_ns, plan, play, workload

pytestmark = pytest.mark.looptime
ONE = workload(model="closed", users=1, sessions=1)

SIGNS = """
schema_version: 1
name: signs
transport:
  kind: websocket
  headers: {Authorization: "Bearer {secret.token}", x-model: "{param.model}"}
  query: [[model, "{param.model}"], [key, "{secret.token}"]]
  subprotocols: ["v1.{clip.source_lang}"]
params: {model: small one}
channels: {gloss: {stage: recognition, unit: gloss}}
open:
  - send_json: {start: "{session.uuid}", host: "{host}:{port}"}
  - wait: {has: ticket, capture: {ticket: ticket}}
media:
  kind: frames
  frame: text
  message: {image: "{media.base64}", at: "{media.ms}", ticket: "{captured.ticket}", of: "{session.uuid}"}
end:
  - send_json: {stop: "{session.uuid}", sent: "{count.chunks_sent}"}
  - done: {on: [message], match: "stopped"}
receive:
  rules:
    - {has: ticket, event: ready}
    - {has: error, outcome: fatal, detail: error}
    - {has: sign, channel: gloss, text: {model: unkeyed, text: sign, final: true}}
"""


SPEECH_AND_PICTURES = """
name: both
transport: {kind: websocket}
media:
  kind: audio
  chunk_ms: 40
  frame: text
  message: {sound: "{media.base64}", n: "{media.index}", of: "{session.uuid}"}
  also: {kind: frames, frame: text, message: {picture: "{media.base64}", n: "{media.index}"}}
end: [{send_json: {stop: "{count.chunks_sent}"}}, {done: {on: [close], closes: target}}]
receive: {rules: [{has: text, text: {model: unkeyed, text: text, final: true}}]}
"""


def signing(seen: list[list[dict[str, Any]]]) -> Callable[[memory.Peer], Any]:
    """A service that gives each session a ticket, after 0.1 s, and wants to see it on each frame."""

    async def script(peer: memory.Peer) -> None:
        mine: list[dict[str, Any]] = []
        seen.append(mine)
        async for message in peer:
            said = json.loads(str(message))
            mine.append(said)
            if "start" in said:
                await asyncio.sleep(0.1)
                peer.send(json.dumps({"ticket": f"t{len(seen)}"}))
            elif "stop" in said:
                peer.send('{"sign": "BOAT"}')
                peer.send('{"stopped": true}')

    return script


async def test_messages_with_something_of_the_sessions_own_are_made_around_the_shared_parts(tmp_path: Path) -> None:
    seen: list[list[dict[str, Any]]] = []
    profile = load.load_text(SIGNS, "signs.yaml")
    more = {"secrets": {"token": "tok-secret"}, "url": "memory://asr/{param.model}?a=1"}
    work = workload(model="closed", users=2, sessions=2, ramp_s=1.0)
    heard, served = await play(tmp_path, signing(seen), work, profile=profile, chunk_ms=40, media_ms=120, **more)
    assert heard.outcomes == {"ok": 2}
    for number, (mine, record) in enumerate(zip(seen, heard.records.values(), strict=True), 1):
        start, *frames, stop = mine
        uuid = start["start"]
        assert start["host"] == "asr:"
        own = {"ticket": f"t{number}", "of": uuid}
        images = [base64.b64encode(b"%05d" % index).decode() for index in range(3)]
        assert frames == [{"image": image, "at": 40 * (index + 1)} | own for index, image in enumerate(images)]
        assert stop == {"stop": uuid, "sent": 3}
        assert uuid[14] == "4"
        zero = record.utterances[0].media_zero_ns or 0
        assert (record.ready_ns or 0) >= record.begun_ns + 0.1 * S
        assert zero - (record.ready_ns or 0) >= MS
        assert zero % MS == 0
    assert seen[0][0]["start"] != seen[1][0]["start"]
    address = served.peers[0].address
    assert address.url == "memory://asr/small one?a=1&model=small%20one&key=tok-secret"
    assert dict(address.headers) == {
        "Authorization": "Bearer tok-secret", "x-model": "small one", "x-loadbench-session": "w-s0",
    }  # fmt: skip
    assert address.subprotocols == ("v1.en",)


async def test_two_media_go_out_in_the_order_of_their_times_each_in_its_own_message(tmp_path: Path) -> None:
    said: list[tuple[int, Any]] = []

    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            said.append((now_ns(), json.loads(str(message))))
            if "stop" in said[-1][1]:
                peer.send('{"text": "red boat"}')
                peer.close(1000)

    profile = load.load_text(SPEECH_AND_PICTURES, "both.yaml")
    chunks = [(40, 0, b"aa"), (40, 1, b"p0"), (60, 1, b"p1"), (80, 0, b"bb"), (120, 0, b"cc")]
    ChunkPlan.write(tmp_path / "raw", [(due * MS, track, data) for due, track, data in chunks], 120 * MS, tracks=2)
    wired = wire_plans(profile, {"a": tmp_path / "raw"}, memory.transport, tmp_path / "wire", bytes)
    entry = ClipEntry(id="a", wire=str(wired["a"][0]), joined=wired["a"][1], fields={"id": "a"})
    heard = Heard()
    with memory.serve("asr", script):
        await engine(plan([entry], profile, ONE), heard).run()
    (record,) = heard.records.values()
    assert record.outcome == "ok"
    zero_ns = record.utterances[0].media_zero_ns or 0
    uuid = said[0][1]["of"]
    assert [(round((at - zero_ns) / MS), message) for at, message in said] == [
        (40, {"sound": base64.b64encode(b"aa").decode(), "n": 0, "of": uuid}),
        (40, {"picture": base64.b64encode(b"p0").decode(), "n": 0}),
        (60, {"picture": base64.b64encode(b"p1").decode(), "n": 1}),
        (80, {"sound": base64.b64encode(b"bb").decode(), "n": 1, "of": uuid}),
        (120, {"sound": base64.b64encode(b"cc").decode(), "n": 2, "of": uuid}),
        (120, {"stop": 5}),
    ]
    assert (record.utterances[0].chunks_sent, record.utterances[0].media_bytes) == (5, 10)
    ticked = [tick.chunks for tick in heard.of(Tick) if tick.chunks]
    assert ticked == [{"audio": 3, "frames": 2}]


async def test_a_field_that_nobody_has_is_the_profiles_fault_and_named(tmp_path: Path) -> None:
    profile = load.load_text(SIGNS.replace('"{media.ms}"', '"{clip.speaker}"'), "signs.yaml")
    heard, _ = await play(tmp_path, signing([]), ONE, profile=profile, secrets={"token": "tok-secret"})
    record = heard.records["w-s0"]
    assert (record.outcome, record.side) == ("profile_error", "policy")
    assert "{clip.speaker}" in record.cause


async def test_secrets_are_masked_where_the_service_says_them_back(tmp_path: Path) -> None:
    async def script(peer: memory.Peer) -> None:
        peer.send('{"error": "no such token: tok-secret"}')
        await asyncio.sleep(1)

    profile = load.load_text(SIGNS, "signs.yaml")
    heard, _ = await play(tmp_path, script, ONE, profile=profile, secrets={"token": "tok-secret"})
    record = heard.records["w-s0"]
    assert record.outcome == "target_error"
    assert "no such token: ***" in record.cause
    assert "tok-secret" not in repr(heard.events)
    assert heard.of(Message)[0].data == '{"error": "no such token: ***"}'


@pytest.mark.parametrize("before", [0, 60, 70, 250, 280, 290, 440, 455, 470])
async def test_a_secret_is_hidden_also_where_a_cause_or_a_raw_message_is_cut_within_it(
    tmp_path: Path, before: int
) -> None:
    secret, said = "hunter2-Zq9xxyS-and-longer-still", []

    async def script(peer: memory.Peer) -> None:
        peer.send(said[-1])
        await asyncio.sleep(1)

    profile = load.load_text(SIGNS, "signs.yaml")
    for text in (f"{'x' * before}{secret}{'y' * 900}", '{"error": "' + "x" * before + secret + "y" * 900 + '"}'):
        said.append(text)
        heard, _ = await play(tmp_path, script, ONE, profile=profile, secrets={"token": secret})
        record = heard.records["w-s0"]
        assert record.outcome in ("target_error", "parse_error")
        for size in range(4, len(secret)):
            assert secret[:size] not in repr(heard.events), record.cause
        assert len(record.cause) <= 500


async def test_half_a_secret_in_a_logged_message_is_hidden(tmp_path: Path) -> None:
    async def script(peer: memory.Peer) -> None:
        peer.send('{"text": "tok-FAKE"}')
        peer.send('{"text": "-secret-71"}')
        await asyncio.sleep(1)

    heard, _ = await play(tmp_path, script, ONE, secrets={"token": "tok-FAKE-secret-71"})
    assert [message.data for message in heard.of(Message)] == ['{"text": "***"}', '{"text": "***"}']


async def test_time_in_which_the_service_reads_nothing_is_blocked_time_and_not_lateness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            if isinstance(message, bytes) and len(media_of(peer)) == 2:
                peer.stop_reading()
                await asyncio.sleep(1.5)
                peer.read_again()
            elif message == EOF:
                peer.send('{"text": "red boat"}')
                peer.close(1000)

    monkeypatch.setattr(memory, "HIGH_WATER", 10)
    heard, _ = await play(tmp_path, script, ONE, media_ms=4000)
    record = heard.records["w-s0"]
    assert record.outcome == "ok"
    assert record.lateness.max_ns < MS
    assert record.lateness.blocked_ns == pytest.approx(1.1 * S, abs=0.01 * S), "from the second unread chunk on"
    assert record.lateness.unsent_max_bytes >= 30
    assert heard.ticked("blocked_ns") == record.lateness.blocked_ns
    assert sum(tick.blocked_ns > 0 for tick in heard.of(Tick)) >= 2, "told while it lasts"


async def test_a_service_that_never_lets_us_in_is_given_up_at_the_limit(tmp_path: Path) -> None:
    heard, served = await play(tmp_path, answering(0.1), ONE, connect_s=60.0, limits={"connect_s": 2.0})
    record = heard.records["w-s0"]
    assert record.outcome == "connect_failed"
    assert record.ended_ns - record.begun_ns == pytest.approx(2 * S, abs=MS)
    assert served.peers == []


async def test_a_refusal_reaches_the_record_with_its_status_and_when_to_come_again(tmp_path: Path) -> None:
    heard, _ = await refused(tmp_path, Cause("rejected", 0, status=503, retry_after_s=1.0, body=b"full"))
    record = heard.records["w-s0"]
    assert (record.outcome, record.side) == ("rejected", "target")
    assert (record.connections[0].status, record.connections[0].retry_after_s) == (503, 1.0)
    assert record.utterances[0].media_zero_ns is None


async def refused(folder: Path, cause: Cause) -> Any:
    heard, profile = stage.Heard(), load.load_profile("vosk")
    start = stage.plan([stage.clip(folder, profile, media_ms=400, chunk_ms=200)], profile, ONE)
    with memory.serve("asr", answering(0.1), refuse=lambda: cause) as served:
        await stage.engine(start, heard).run()
    return heard, served


async def test_the_final_limit_ends_a_session_whose_service_goes_quiet(tmp_path: Path) -> None:
    heard, _ = await play(tmp_path, answering(1e9), ONE, limits={"final_s": 5.0, "close_s": 1.0})
    record = heard.records["w-s0"]
    assert record.outcome == "no_final"
    assert record.ended_ns - (record.utterances[0].source_end_ns or 0) == pytest.approx(5 * S, abs=20 * MS)


async def test_a_connection_that_breaks_in_mid_media_stops_the_media(tmp_path: Path) -> None:
    async def script(peer: memory.Peer) -> None:
        async for _ in peer:
            if len(media_of(peer)) == 2:
                peer.drop("reset")

    heard, served = await play(tmp_path, script, ONE)
    record = heard.records["w-s0"]
    assert (record.outcome, record.side) == ("lost", "target")
    assert len(media_of(served.peers[0])) == 2
    assert (record.utterances[0].chunks_planned, record.utterances[0].chunks_sent) == (5, 2)
    assert record.lateness.chunks == 2


async def test_one_session_may_carry_several_clips_each_on_its_own_media_clock(tmp_path: Path) -> None:
    seen: list[list[dict[str, Any]]] = []
    profile = load.load_text(SIGNS, "signs.yaml")
    work = workload(model="closed", users=1, sessions=1, utterances=3)
    heard, _ = await play(tmp_path, signing(seen), work, profile=profile, secrets={"token": "tok-secret"})
    record: SessionRecord = heard.records["w-s0"]
    assert [utterance.outcome for utterance in record.utterances] == ["ok"] * 3
    assert [utterance.attempt for utterance in record.utterances] == [0, 1, 2]
    assert [utterance.chunks_sent for utterance in record.utterances] == [5, 5, 5]
    zeros = [utterance.media_zero_ns or 0 for utterance in record.utterances]
    assert all(S < after - before < 1.5 * S for before, after in pairwise(zeros))


async def test_an_upload_over_http_ends_its_body_and_hears_the_answer_as_it_comes(tmp_path: Path) -> None:
    async def script(peer: memory.Peer) -> None:
        peer.answer(200, "application/x-ndjson")
        async for message in peer:
            if len(media_of(peer)) == 1 and message is not memory.END:
                peer.send(b'{"partial": "r\xc3')
                peer.send(b'\xa9d"}\n')
            elif message is memory.END:
                peer.send(b'{"final": "r\xc3\xa9d boat"}\n')
                peer.close(None)

    profile = load.load_profile("http-stream")
    heard, served = await play(tmp_path, script, ONE, profile=profile, chunk_ms=100)
    record = heard.records["w-s0"]
    assert record.outcome == "ok"
    assert record.connections[0].status == 200
    assert record.utterances[0].channels["transcript"].text == "réd boat"
    assert record.bytes_received == len('{"partial": "réd"}{"final": "réd boat"}\n\n'.encode())
    assert served.peers[0].arrivals[-1][1] is memory.END
    assert served.peers[0].address.content_type == "audio/L16;rate=16000;channels=1"
    assert [message.binary for message in heard.of(Message)] == [True] * 3


async def test_a_session_that_is_over_leaves_nothing_that_wakes_or_sends(tmp_path: Path) -> None:
    heard, _ = await play(tmp_path, answering(0.1), ONE, limits={"final_s": 30.0})
    ended = heard.records["w-s0"].ended_ns
    assert now_ns() - ended < S, "and nobody waited for its limits to pass"


async def test_even_a_conversation_that_cannot_say_how_it_ended_is_in_the_books_and_its_connection_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("no record")

    async def hangs(peer: memory.Peer) -> None:
        await asyncio.sleep(1e6)

    monkeypatch.setattr("loadbench.session.machine.Conversation.record", broken)
    monkeypatch.setattr("loadbench.session.machine.Conversation.opened", broken)
    monkeypatch.setattr("loadbench.session.machine.Conversation.fail", broken)
    heard, served = await play(tmp_path, hangs, ONE)
    record = heard.records["w-s0"]
    assert (record.outcome, record.side) == ("internal", "tester")
    assert "no record" in record.cause
    assert [utterance.outcome for utterance in record.utterances] == ["internal"]
    cause = served.peers[0].cause
    assert cause is not None
    assert cause.kind == "aborted"


SIGNED: bytes = b"\xff\xd8\xff\xe0 no whole picture"
AVATAR = """
name: avatar
transport: {kind: websocket}
channels: {sign: {stage: media, medium: video}, said: {stage: media, medium: audio}}
media: {kind: audio, chunk_ms: 200}
end: [{send_text: eos}, {done: {on: [close], closes: target}}]
receive:
  binary: {channel: sign, format: jpeg, fps: 25}
  rules:
    - {has: speech, channel: said, media: {base64: speech, format: s16le, rate_hz: 8000}}
"""


async def test_the_output_media_of_the_first_sessions_is_handed_on_up_to_their_share(tmp_path: Path) -> None:
    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            if message == "eos":
                for _ in range(2):
                    peer.send(SIGNED)
                    peer.send(json.dumps({"speech": base64.b64encode(b"\1\2").decode()}))
                peer.close(1000)

    profile = load.load_text(AVATAR, "avatar.yaml")
    work = workload(model="closed", users=1, sessions=3)
    share = {"sample_media": 2, "media_bytes": 2 * len(SIGNED) + 2, "sample_messages": 1}
    heard, _ = await play(tmp_path, script, work, profile=profile, **share)
    kept = heard.of(MediaPiece)
    files = [(piece.session, piece.file, piece.data, bool(piece.head)) for piece in kept]
    assert files == [
        (session, *rest)
        for session in ("w-s0", "w-s1")
        for rest in (
            (f"{session}.sign.mjpeg", SIGNED, False),
            (f"{session}.said.wav", b"\1\2", True),  # the head of a WAV file once
            (f"{session}.sign.mjpeg", SIGNED, False),
        )
    ]
    media = [record.utterances[0].channels["sign"].media for record in heard.records.values()]
    assert [each and each.bytes for each in media] == [2 * len(SIGNED)] * 3, "measured whether kept or not"
    raw = [message for message in heard.of(Message) if message.binary]
    assert [(base64.b64decode(message.data), message.cut) for message in raw] == [(SIGNED, False)] * 2


async def test_of_binary_media_only_the_beginning_is_among_the_raw_messages(tmp_path: Path) -> None:
    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            if message == "eos":
                peer.send(bytes(100))
                peer.close(1000)

    profile = load.load_text(AVATAR, "avatar.yaml")
    heard, _ = await play(tmp_path, script, ONE, profile=profile)
    (message,) = heard.of(Message)
    assert (base64.b64decode(message.data), message.cut) == (bytes(32), True)
    assert heard.of(MediaPiece) == []
