"""Field cases of what messages and their absence mean, on a WebSocket and on an HTTP stream, in virtual time.

The service is a script and knows its delays; the engine, the conversation and the judge are the real ones.
"""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from loadbench.analysis.judge import Judge
from loadbench.engine.pipe import Start
from loadbench.engine.run import Engine
from loadbench.results.record import SessionRecord, Started
from loadbench.results.slo import Slo
from loadbench.results.tick import Tick
from loadbench.session.load import load_profile, load_text
from loadbench.session.profile import Profile
from loadbench.transports import memory
from tests.analysis.records import header
from tests.engine import stage
from tests.engine.stage import Heard, S, play
from tests.foreign_service import Call, Service
from tests.test_field_cases_load import _wire_for_sockets

FINAL = "final_from_source_end"
WAYS = ("websocket", "http")
RULES = """
  rules:
    - {has: ready, event: ready}
    - {has: usage, event: ignore}
    - {has: partial, text: {model: unkeyed, text: partial}}
    - {has: final, text: {model: unkeyed, text: final, final: true}}
    - {has: last, event: done}
"""
PROFILES = {
    "websocket": "transport: {kind: websocket}\nend: [{send_text: eos}, {done: {on: [%s]}}]\nreceive:" + RULES,
    "http": "transport: {kind: http}\nend: [{end_body: true}, {done: {on: [%s]}}]\nreceive:\n  framing: lines" + RULES,
}
CLOSES = {"websocket": "close, message", "http": "end_of_response, message"}


def profile(way: str, done: str = "") -> Profile:
    head = "schema_version: 1\nname: mine\nmedia: {kind: audio, chunk_ms: 20}\n"
    return load_text(head + PROFILES[way] % (done or CLOSES[way]), "mine.yaml")


class Talk:
    """What a script says to one session; times are seconds from its first chunk, and from its end mark."""

    def __init__(self, peer: memory.Peer, way: str) -> None:
        self.peer, self.way = peer, way
        self._zero = 0.0

    async def first_chunk(self) -> None:
        if self.way == "http":
            self.peer.answer(200, "application/x-ndjson")
        async for message in self.peer:
            if isinstance(message, bytes):
                self._zero = self._now() - 0.02  # a chunk leaves when it has been heard
                return

    async def end_mark(self) -> None:
        async for message in self.peer:
            if message in ("eos", memory.END):
                self._zero = self._now()
                return

    async def at(self, seconds: float, text: str) -> None:
        """Say this line at its time."""
        await asyncio.sleep(max(0.0, self._zero + seconds - self._now()))
        self.peer.send(text if self.way == "websocket" else f"{text}\n".encode())

    def close(self) -> None:
        self.peer.close(1000 if self.way == "websocket" else None)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


Telling = Callable[[Talk], Coroutine[Any, Any, None]]


async def tell(folder: Path, way: str, telling: Telling, sessions: int = 1, done: str = "", **more: Any) -> Heard:
    """M3: 3 s of media in chunks of 20 ms, to a service that tells each session this."""

    async def script(peer: memory.Peer) -> None:
        await telling(Talk(peer, way))

    work = stage.workload(users=sessions, sessions=sessions, model="closed")
    heard, _ = await play(folder, script, work, profile=profile(way, done), media_ms=3000, chunk_ms=20, **more)
    return heard


def judged(heard: Heard, *slo: Slo) -> Judge:
    judge = Judge(header(*slo))
    for event in heard.events:
        if isinstance(event, Started | SessionRecord | Tick):
            judge.add(event)
    return judge


def since_s(at_ns: int | None, zero_ns: int | None) -> float:
    assert at_ns is not None
    assert zero_ns is not None
    return (at_ns - zero_ns) / S


# ---- B04: one long line in a line-based stream


@pytest.mark.looptime
@pytest.mark.parametrize("way", WAYS)
async def test_b04_a_line_of_600_000_bytes_is_a_message_like_others(tmp_path: Path, way: str) -> None:
    long = '{"partial": "red boat", "words": "%s"}'
    long %= "x" * (600_000 - len(long) + 2)

    async def telling(talk: Talk) -> None:
        await talk.first_chunk()
        await talk.at(0.3, '{"partial": "red"}')
        await talk.at(0.6, long)
        await talk.end_mark()
        await talk.at(0.2, '{"final": "red boat"}')
        talk.close()

    heard = await tell(tmp_path, way, telling)
    record = heard.records["w-s0"]
    assert (record.outcome, record.messages) == ("ok", {"partial": 2, "final": 1})
    assert record.utterances[0].channels["transcript"].settled_text == "red boat"
    assert record.bytes_received == 18 + 600_000 + 21 + (3 if way == "http" else 0), "a line has an end"
    heard = await tell(tmp_path / "bounded", way, telling, limits={"message_bytes": 64 * 1024})
    record = heard.records["w-s0"]
    assert (record.outcome, record.side) == ("our_limit", "policy")
    assert "over our limit of 65536 bytes" in record.cause


# ---- B06: keep-alive murders a busy but working session


@pytest.mark.realtime
@pytest.mark.parametrize("close", [False, True])
async def test_b06_pongs_that_never_come_kill_nobody_who_works_unless_the_profile_wants_it(
    tmp_path: Path, close: bool
) -> None:
    pings = {"every_s": 0.1, "timeout_s": 0.1, "close": close}
    how = load_profile("vosk").model_copy(deep=True)
    how = Profile.model_validate(
        how.model_dump(exclude_unset=True) | {"transport": {"kind": "websocket", "ping": pings}}
    )
    entry = stage.clip(tmp_path, how, media_ms=800, chunk_ms=200)
    _wire_for_sockets(tmp_path, entry, how)

    async def script(call: Call) -> None:
        await call.first_chunk.wait()
        for word in ("red", "red boat", "red boat leaves"):
            call.say({"partial": word})
            await asyncio.sleep(0.1)
        await call.answer_after(0.1)

    said = Heard()
    async with Service(script).serving() as url:
        work = stage.workload(model="closed", users=5, sessions=5)
        start: Start = stage.plan([entry], how, work, url=url)
        await asyncio.wait_for(Engine(start, said.events.append, clock=time.monotonic_ns).run(), 20)
    records = said.of(SessionRecord)
    assert {record.outcome for record in records} == ({"lost"} if close else {"ok"})
    assert {record.side for record in records} == ({"target"} if close else {"none"})
    assert all(record.connections[0].pongs_missed >= 1 for record in records)
    if close:
        assert all("no answer in time" in record.cause for record in records)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("way", "outcome", "cause"),
    [
        ("websocket", "target_error", "closed by target 1011: keepalive ping timeout"),
        ("http", "lost", "lost without close: the connection was cut 2.5"),  # HTTP has no close codes
    ],
)
async def test_b06_sixteen_of_twenty_that_were_closed_stand_beside_the_percentile_of_four(
    tmp_path: Path, way: str, outcome: str, cause: str
) -> None:
    count = 0

    async def telling(talk: Talk) -> None:
        nonlocal count
        count += 1
        number = count
        await talk.first_chunk()
        await talk.at(0.5, '{"partial": "red"}')
        if number > 4:
            await talk.at(2.5, '{"partial": "red boat"}')
            if way == "websocket":
                talk.peer.close(1011, "keepalive ping timeout")
            else:
                talk.peer.drop("eof")
            return
        await talk.end_mark()
        await talk.at(0.2, '{"final": "red boat"}')
        talk.close()

    heard = await tell(tmp_path, way, telling, sessions=20)
    assert heard.outcomes == {"ok": 4, outcome: 16}
    assert all(cause in record.cause for record in heard.records.values() if record.outcome != "ok")
    judge = judged(heard, Slo(metric="completed", stat="min_share", limit=0.99), Slo(metric=FINAL, stat="p95", limit=2))
    measured = judge.responses().of("transcript", FINAL)
    assert measured.finished()["p95"].value_s == pytest.approx(0.2, abs=0.01)
    assert measured.started()["p95"].bound == "never"
    assert judge.totals()["completed_share"] == 0.2
    assert [result.met for result in judge.slo({})] == [False, False]


@pytest.mark.looptime
@pytest.mark.parametrize("way", WAYS)
async def test_b06_total_silence_is_given_up_with_the_age_of_the_last_message(tmp_path: Path, way: str) -> None:
    async def telling(talk: Talk) -> None:
        await talk.first_chunk()
        for tenth in range(5, 20, 5):
            await talk.at(tenth / 10, '{"partial": "red"}')

    heard = await tell(tmp_path, way, telling, sessions=20, limits={"silence_s": 0.8, "final_s": 30.0})
    assert heard.outcomes == {"silent": 20}
    assert all("the last message is 0.80 s old" in record.cause for record in heard.records.values())


# ---- B07: connection cut without a close frame looks like a normal end


@pytest.mark.looptime
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("how", "outcome", "said"),
    [
        ("eof", "lost", "lost without close"),
        ("reset", "lost", "lost without close"),
        ("close", "closed_early", "without final"),
        (1011, "target_error", "closed by target 1011"),
    ],
)
async def test_b07_a_cut_is_told_from_an_end_and_keeps_its_partial(
    tmp_path: Path, way: str, how: Any, outcome: str, said: str
) -> None:
    if how == 1011 and way == "http":
        pytest.skip("HTTP has no close codes")

    async def telling(talk: Talk) -> None:
        await talk.first_chunk()
        for at_s, text in ((0.3, "red"), (0.7, "red boat"), (1.1, "red boat leaves")):
            await talk.at(at_s, json.dumps({"partial": text}))
        await asyncio.sleep(0.4)
        if how == "close":
            talk.close()
        elif how == 1011:
            talk.peer.close(1011)
        else:
            talk.peer.drop(how)

    heard = await tell(tmp_path, way, telling, sessions=3)
    assert heard.outcomes == {outcome: 3}
    for record in heard.records.values():
        utterance = record.utterances[0]
        channel = utterance.channels["transcript"]
        assert said in record.cause
        assert (channel.text, channel.settled_text, channel.last_final_ns) == ("red boat leaves", "", None)
        assert utterance.chunks_sent * 20 <= 1500 + 100
    measured = judged(heard).responses().of("transcript", FINAL)
    assert (measured.finished()["p50"].n, measured.started()["p50"].bound) == (0, "never")


# ---- B08: final that never comes


@pytest.mark.looptime
@pytest.mark.parametrize("way", WAYS)
async def test_b08_a_final_that_never_comes_is_a_censored_value_and_the_run_ends(tmp_path: Path, way: str) -> None:
    async def telling(talk: Talk) -> None:
        await talk.first_chunk()
        await talk.at(0.5, '{"partial": "red"}')
        await talk.at(1.0, '{"partial": "red boat"}')
        await talk.end_mark()

    heard = await tell(tmp_path, way, telling, sessions=5, limits={"final_s": 4.0})
    assert heard.outcomes == {"no_final": 5}
    for record in heard.records.values():
        assert "no end of output within 4 s of the end of the media" in record.cause
        assert since_s(record.ended_ns, record.utterances[0].source_end_ns) == pytest.approx(4.0, abs=0.01)
        assert since_s(record.ended_ns, record.begun_ns) < 8.0
    judge = judged(heard, Slo(metric=FINAL, stat="p95", limit=5.0))
    measured = judge.responses().of("transcript", FINAL)
    assert (measured.finished()["p95"].n, measured.finished()["p95"].value_s) == (0, None)
    assert [result.met for result in judge.slo({})] == [False]


# ---- B10: client hangs up before the tail has come


@pytest.mark.looptime
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("done", "latency_s", "text", "rule"),
    [("message", 2.5, "one two three four five", "message"), ("first_final", 0.0, "one two", "first_final")],
)
async def test_b10_the_tail_is_waited_for_unless_the_profile_says_otherwise_and_then_its_name_is_told(
    tmp_path: Path, way: str, done: str, latency_s: float, text: str, rule: str
) -> None:
    async def telling(talk: Talk) -> None:
        await talk.first_chunk()
        await talk.end_mark()
        await talk.at(0.0, '{"final": "one two"}')
        await talk.at(1.0, '{"final": "three four"}')
        await talk.at(2.5, '{"final": "five", "last": true}')
        await talk.at(2.5, '{"last": true}')
        talk.close()

    heard = await tell(tmp_path, way, telling, done=done)
    record = heard.records["w-s0"]
    utterance = record.utterances[0]
    channel = utterance.channels["transcript"]
    assert (record.outcome, channel.settled_text, utterance.done_rule) == ("ok", text, rule)
    assert since_s(channel.last_final_ns, utterance.source_end_ns) == pytest.approx(latency_s, abs=0.05)
    assert since_s(utterance.done_ns, utterance.source_end_ns) == pytest.approx(latency_s, abs=0.05)


# ---- B11: greeting, ack or empty partial counted as first output


@pytest.mark.looptime
@pytest.mark.parametrize("way", WAYS)
async def test_b11_a_greeting_and_empty_partials_are_no_output_and_a_trailer_moves_nothing(
    tmp_path: Path, way: str
) -> None:
    async def telling(talk: Talk) -> None:
        await talk.first_chunk()
        for at_s, line in (
            (0.05, '{"ready": 1}'),
            (0.10, '{"partial": ""}'),
            (0.20, '{"partial": "  "}'),
            (0.80, '{"partial": "red"}'),
        ):
            await talk.at(at_s, line)
        await talk.end_mark()
        await talk.at(0.3, '{"final": "red boat"}')
        await talk.at(0.5, '{"usage": 8}')
        talk.close()

    heard = await tell(tmp_path, way, telling)
    record = heard.records["w-s0"]
    utterance = record.utterances[0]
    channel = utterance.channels["transcript"]
    assert record.outcome == "ok"
    assert since_s(utterance.first_message_ns, utterance.media_zero_ns) == pytest.approx(0.05, abs=0.005)
    assert since_s(channel.first_ns, utterance.media_zero_ns) == pytest.approx(0.8, abs=0.03)
    assert since_s(channel.last_final_ns, utterance.source_end_ns) == pytest.approx(0.3, abs=0.03)
    assert record.messages == {"ready": 1, "empty": 2, "partial": 1, "final": 1, "ignored": 1}
