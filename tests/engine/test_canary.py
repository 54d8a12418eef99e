import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadbench.engine.pipe import Canary, Finished, Ready, Workload
from loadbench.results.record import CanaryRecord, ChunkTimes, Message, SessionRecord, Started
from loadbench.results.tick import Tick
from loadbench.session.load import load_text
from loadbench.session.wire import Cause
from loadbench.simulator.responder import responding
from loadbench.transports import memory
from tests.engine.stage import EOF, MS, Heard, S, answering, now_ns, play, workload
from tests.engine.test_host import Run, asked
from tests.independent_stub import Stub

LATEST_SPAN_NS = 50 * S  # and points in time lie beyond
WORK = workload(model="closed", users=3, sessions=6)
COUNTS = ("started", "ended", "chunks", "media_bytes", "messages", "lateness", "lateness_sum_ns", "blocked_ns")
COUNTS += ("start_lateness", "span_ns")


def at_once() -> Any:
    """A responder: a partial at the first chunk, the final at the end mark."""

    async def script(peer: memory.Peer) -> None:
        told = False
        async for message in peer:
            if isinstance(message, bytes) and not told:
                told = True
                peer.send(json.dumps({"partial": "red"}))
            if message == EOF:
                peer.send(json.dumps({"text": "red boat"}))
                peer.close(1000)

    return script


@pytest.fixture
def responder() -> Iterator[memory.Served]:
    with memory.serve("responder", at_once()) as served:
        yield served


def canary(users: int, **more: Any) -> Canary | None:
    return Canary(url="memory://responder", users=users, **more) if users else None


def told(heard: Heard) -> list[str]:
    """What a run said of its sessions, with points in time from its beginning, in any order."""
    zero_ns = heard.of(Ready)[0].begin_ns
    kinds = Started | SessionRecord | ChunkTimes | Message
    plain = [msgspec.to_builtins(event) for event in heard.events if isinstance(event, kinds)]
    return sorted(json.dumps(_shifted(item, zero_ns), sort_keys=True) for item in plain)


def totals(heard: Heard) -> dict[str, Any]:
    """The sums over all ticks, and the most that were active."""
    ticks, sums = heard.of(Tick), {}
    for name in COUNTS:
        values = [getattr(tick, name) for tick in ticks]
        sums[name] = sum(map(Counter, values), Counter()) if isinstance(values[0], dict) else sum(values)
    return sums


@pytest.mark.looptime
@pytest.mark.parametrize("work", [WORK, workload(model="poisson", rate=2.0, duration_s=5.0)])
async def test_two_canary_users_change_no_total_of_a_run_of_the_same_seed(
    tmp_path: Path, responder: memory.Served, work: Workload
) -> None:
    await asyncio.sleep(100)
    without, served = await play(tmp_path / "0", answering(0.3), work)
    await asyncio.sleep(200 - asyncio.get_running_loop().time())
    beside, others = await play(tmp_path / "2", answering(0.3), work, canary=canary(2))
    assert told(beside) == told(without)
    assert totals(beside) == totals(without)
    assert len(others.peers) == len(served.peers) == len(beside.of(Started)) == beside.of(Finished)[0].started
    assert len(beside.of(CanaryRecord)) >= 2
    assert len(responder.peers) >= len(beside.of(CanaryRecord))


def _shifted(value: Any, zero_ns: int) -> Any:
    """Points in time from the run's beginning."""
    if isinstance(value, dict):
        return {name: _shifted(item, zero_ns) for name, item in value.items()}
    if isinstance(value, list):
        return [_shifted(item, zero_ns) for item in value]
    return value - zero_ns if isinstance(value, int) and value > LATEST_SPAN_NS else value


@pytest.mark.looptime
async def test_a_tester_that_is_never_late_has_no_share_and_a_session_follows_another(
    tmp_path: Path, responder: memory.Served
) -> None:
    heard, _ = await play(tmp_path, answering(5.0), workload(model="closed", users=1, sessions=1), canary=canary(1))
    found = heard.of(CanaryRecord)
    assert [record.id for record in found] == ["canary-0", "canary-1", "canary-2"]
    for record in found:
        assert (record.outcome, record.side, record.window, record.tainted) == ("ok", "none", "measure", False)
        assert (record.first_span_ns, record.final_span_ns, record.lateness_max_ns) == (0, 0, 0)
    zero = heard.of(Ready)[0].begin_ns
    assert found[0].begun_ns - zero == 100 * MS
    assert found[1].begun_ns - found[0].begun_ns >= 2000 * MS  # its second of media, and a second's pause


@pytest.mark.looptime
async def test_the_run_does_not_wait_for_a_canary_that_still_sings(tmp_path: Path) -> None:
    async def mute(peer: memory.Peer) -> None:
        async for _ in peer:
            pass

    with memory.serve("responder", mute):
        heard, _ = await play(tmp_path, answering(0.1), workload(model="closed", users=1, sessions=1), canary=canary(2))
    last = heard.of(SessionRecord)[0].ended_ns
    assert heard.of(Finished)[0].ended_ns == last
    assert heard.of(CanaryRecord) == []


@pytest.mark.looptime
async def test_a_responder_that_is_gone_fails_canaries_and_nobody_else(tmp_path: Path) -> None:
    with memory.serve("responder", at_once(), refuse=lambda: Cause("refused", now_ns(), by="network")):
        heard, _ = await play(tmp_path, answering(1.0), WORK, canary=canary(1))
    assert heard.outcomes == {"ok": 6}
    found = heard.of(CanaryRecord)
    assert 2 <= len(found) <= 5, "one a second at most"
    assert {(record.outcome, record.final_span_ns) for record in found} == {("connect_failed", None)}


GUARDED = """
schema_version: 1
name: guarded
about: "asks for a secret"
checked: "nowhere"
params: {region: "eu"}
transport: {kind: websocket, headers: {authorization: "Bearer {secret.token}"}}
channels: {transcript: {stage: recognition}}
open:
  - send_json: {token: "{secret.token}", region: "{param.region}"}
media: {kind: audio, format: s16le, rate_hz: 16000, chunk_ms: 200, frame: binary}
end:
  - send_text: '{"eof" : 1}'
  - done: {on: [close], closes: target}
receive:
  decode: json
  rules:
    - {has: partial, channel: transcript, text: {model: unkeyed, text: partial, final: false}}
    - {has: text, channel: transcript, text: {model: unkeyed, text: text, final: true}}
close: {expect: [1000]}
"""


@pytest.mark.looptime
async def test_no_header_and_no_secret_of_the_run_goes_to_the_responder(
    tmp_path: Path, responder: memory.Served
) -> None:
    heard, served = await play(
        tmp_path,
        answering(0.5),
        workload(model="closed", users=1, sessions=1),
        profile=load_text(GUARDED, "guarded.yaml"),
        secrets={"token": "tok-FAKE-71"},
        headers=[("x-key", "{secret.token}")],
        params={"region": "us"},
        canary=canary(1, params={"region": "us"}),
    )
    assert [record.outcome for record in heard.of(CanaryRecord)] == ["ok"]
    real, ours = served.peers[0], responder.peers[0]
    assert ("x-key", "tok-FAKE-71") in real.address.headers
    assert [name for name, _ in ours.address.headers] == ["authorization"]
    assert "FAKE" not in str(ours.address) + str(ours.arrivals)
    assert real.arrivals[0][1] == '{"token":"tok-FAKE-71","region":"us"}'
    assert ours.arrivals[0][1] == '{"token":"canary","region":"us"}'


@pytest.mark.realtime
async def test_a_tester_that_stood_still_shows_in_what_its_canary_measured(tmp_path: Path) -> None:
    running = Run()
    try:
        async with Stub(final_s=2.5).serving() as url, responding("vosk") as responder:
            start = asked(tmp_path, url, media_ms=1000, users=1, sessions=1)
            await running.begin(msgspec.structs.replace(start, canary=Canary(url=responder.url, users=1)))
            await running.until(Started)
            assert running.process.pid is not None
            await asyncio.sleep(0.6)
            os.kill(running.process.pid, signal.SIGSTOP)
            await asyncio.sleep(1.2)  # over the end of the canary's second of media
            os.kill(running.process.pid, signal.SIGCONT)
            await running.end()
    finally:
        running.process.kill()
        await running.process.close()
    found = running.heard.of(CanaryRecord)[0]
    assert found.outcome == "ok"
    assert found.tainted
    assert found.lateness_max_ns >= 200 * MS
    assert (found.final_span_ns or 0) >= 200 * MS
