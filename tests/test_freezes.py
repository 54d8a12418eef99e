"""Who stood still: a frozen service is seen in full by a tester that stays valid, a frozen tester is found out."""

import asyncio
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from loadbench.analysis.judge import Judge
from loadbench.engine import health
from loadbench.engine.pipe import Workload
from loadbench.results.record import SessionRecord, Started
from loadbench.results.tick import Tick
from loadbench.simulator import log
from tests.analysis.records import answered, bucket, header, started, tick
from tests.engine import stage
from tests.engine.stage import MS, Heard, S, answering, now_ns
from tests.foreign_service import Service
from tests.test_main_job import sessions, tone

LATE = "generator late, latency not usable"
HINDERED = str(Path(__file__).with_name("hindered.py"))
CHUNKS_OF_20_MS = """
schema_version: 1
name: fine
transport: {kind: websocket}
channels: {transcript: {stage: recognition}}
media: {kind: audio, format: s16le, rate_hz: 16000, chunk_ms: 20, frame: binary}
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


def rank(values: Sequence[float], percent: int) -> float:
    """Nearest rank, written anew: the smallest value with that share at or below it."""
    return sorted(values)[max(1, math.ceil(percent * len(values) / 100)) - 1]


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "summary.json").read_text()))


async def until(holds: Callable[[], Any], patience_s: float = 30.0) -> Any:
    deadline = time.monotonic() + patience_s
    while not (found := holds()):
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)
    return found


@contextlib.asynccontextmanager
async def running(*words: str, cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command of ours, that is over when the block is."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


def first_planned_ns(folder: Path) -> int | None:
    """When the first session was to start, as soon as that is in the bundle."""
    path = folder / "sessions.jsonl"
    line = path.read_text().partition("\n")[0] if path.exists() else ""
    return int(json.loads(line)["planned_ns"]) if line.endswith("}") else None


# ---- the service stands still


FINAL_S, MEDIA_S, RATE, SESSIONS, STOP_S = 0.05, 0.2, 10, 110, 5.0
CATCH_UP_S = 1.0  # the service's own work on 50 handshakes and finals, all due at once


def answer_s(planned_s: float, stopped_s: float, resumed_s: float) -> float:
    """How long after its planned end a session has its final, when the service is stopped in between.

    What was due to be said in the stop is said at its end; an end mark that came in it is heard at its end.
    """
    end_s = planned_s + MEDIA_S
    if end_s + FINAL_S <= stopped_s or end_s >= resumed_s:
        return FINAL_S
    heard_s = end_s if end_s <= stopped_s else resumed_s
    return max(heard_s + FINAL_S, resumed_s) - end_s


@pytest.mark.alone
@pytest.mark.realtime
@pytest.mark.slow
async def test_a_service_that_is_stopped_for_5_s_is_seen_in_full_and_the_tester_stays_valid(tmp_path: Path) -> None:
    tone(tmp_path, MEDIA_S)
    for attempt in ("one", "two"):
        found, stopped_ns, resumed_ns, code = await stop_the_service(tmp_path, tmp_path / attempt)
        if found["verdict"]["state"] == "VALID":
            break
    records = sessions(tmp_path / attempt)
    assert [record["outcome"] for record in records] == ["ok"] * SESSIONS
    starts = [record["planned_ns"] for record in records]
    expected = [answer_s(at / S, stopped_ns / S, resumed_ns / S) for at in starts]
    assert sum(value > 0.1 for value in expected) == pytest.approx(STOP_S * RATE, abs=2)
    assert max(expected) == pytest.approx(STOP_S, abs=0.15)
    said = {entry.session: entry.final_sent_ns for entry in log.read(tmp_path / f"{attempt}.jsonl")}
    logged = [(said[record["id"]] - record["planned_ns"]) / S - MEDIA_S for record in records]
    measured = found["response"]["transcript"]["final_from_planned_end"]
    for name, percent in {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}.items():
        for population in ("finished", "started"):
            value_s = measured[population][name]["value_s"]
            assert -0.02 < value_s - rank(expected, percent) < CATCH_UP_S, name
            assert -0.005 < value_s - rank(logged, percent) < 0.3, "beside the service's log, stamped before it is sent"
    assert measured["finished"]["p50"]["value_s"] < 0.1
    assert measured["finished"]["p95"]["value_s"] > 4
    assert max(record["begun_ns"] - record["planned_ns"] for record in records) < 500 * MS, "started on plan"
    assert found["verdict"]["figures"]["loop_gap_max_ms"] < 1000, "nothing of those 5 s is the tester's"
    if found["verdict"]["state"] == "INVALID":
        pytest.skip(f"this machine was too busy to measure: {found['verdict']['reasons']}")
    assert all("cause: processor" in reason for reason in found["verdict"]["reasons"]), "VALID, but for a busy machine"
    assert code == 0


async def stop_the_service(folder: Path, bundle: Path) -> tuple[dict[str, Any], int, int, int | None]:
    """A run with the service stopped from 1.05 s to 6.05 s after the first start: its summary, and when that was."""
    words = (
        "simulate",
        "--log",
        f"{bundle.name}.jsonl",
        "--profile",
        "vosk",
        "--first",
        "0.05",
        "--final",
        str(FINAL_S),
    )
    async with running("-m", "loadbench", *words, cwd=folder) as service:
        assert service.stdout is not None
        url = (await asyncio.wait_for(service.stdout.readline(), 30)).decode().split()[-1]
        words = ("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--out", str(bundle), "-q")
        words += ("--set", 'workload.model="constant"', "--rate", str(RATE), "--sessions", str(SESSIONS))
        async with running("-m", "loadbench", *words, cwd=folder) as tester:
            begin_ns = await until(lambda: first_planned_ns(bundle))
            await asyncio.sleep((begin_ns + 1_050 * MS - time.monotonic_ns()) / S)
            service.send_signal(signal.SIGSTOP)
            stopped_ns = time.monotonic_ns()
            await asyncio.sleep(STOP_S)
            service.send_signal(signal.SIGCONT)
            resumed_ns = time.monotonic_ns()
            await asyncio.wait_for(tester.communicate(), 60)
    return summary_of(bundle), stopped_ns, resumed_ns, tester.returncode


# ---- the tester stands still


def tells_everywhere_that_the_tester_was_late(folder: Path, out: str) -> None:
    """There is no file of a bundle, and no screen, in which its latency could be taken for fact."""
    verdict = summary_of(folder)["verdict"]
    assert verdict["state"] == "INVALID"
    assert verdict["reasons"][0] == LATE
    assert "tester   INVALID" in out
    assert LATE in out
    prom = (folder / "metrics.prom").read_text()
    assert 'loadbench_verdict{state="INVALID"} 1.0' in prom
    assert 'loadbench_verdict{state="VALID"} 0.0' in prom
    suite = ElementTree.fromstring((folder / "junit.xml").read_bytes())
    case = suite.find("testcase[@name='verdict INVALID']")
    assert case is not None
    error = case.find("error")
    assert error is not None
    assert error.get("message") == "the tester itself was late or failed"
    page = (folder / "report.html").read_text()
    assert '<section class="card state-INVALID">' in page
    assert LATE in page
    assert 'class="unusable"' in page


@pytest.mark.alone
@pytest.mark.realtime
async def test_a_tester_that_is_stopped_for_2_s_ends_with_3_and_says_so_in_every_file(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    bundle = tmp_path / "bundle"
    async with Service(lambda call: call.answer_after(0.1)).serving() as url:
        words = ("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "5", "--sessions", "10")
        async with running("-m", "loadbench", *words, "--out", "bundle", "-q", cwd=tmp_path) as tester:
            begin_ns = await until(lambda: first_planned_ns(bundle))
            await asyncio.sleep((begin_ns + 1_500 * MS - time.monotonic_ns()) / S)
            children = psutil.Process(tester.pid).children()
            assert any("loadbench.engine.child" in child.cmdline() for child in children)
            everybody = [tester.pid, *(child.pid for child in children)]
            for pid in everybody:
                os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(2.0)
            for pid in everybody:
                os.kill(pid, signal.SIGCONT)
            out, err = await asyncio.wait_for(tester.communicate(), 30)
    assert tester.returncode == 3, out + err
    tells_everywhere_that_the_tester_was_late(bundle, out.decode())
    found = summary_of(bundle)
    assert found["verdict"]["figures"]["loop_gap_max_ms"] == pytest.approx(2000, abs=150)
    assert "the event loop stood still" in " ".join(found["verdict"]["reasons"])
    assert found["sessions"]["finished"] == 10, "the service did nothing wrong, and is not blamed"


@pytest.mark.alone
@pytest.mark.realtime
@pytest.mark.parametrize(("how", "cause"), [("sleep", "; cause: "), ("burn", "; cause: processor")])
async def test_a_tester_that_stands_still_for_50_of_every_100_ms_is_late_and_prints_by_how_much(
    tmp_path: Path, how: str, cause: str
) -> None:
    tone(tmp_path, 3.0)
    (tmp_path / "fine.yaml").write_text(CHUNKS_OF_20_MS)
    block_ms = "50" if how == "sleep" else "95"
    async with Service(lambda call: call.answer_after(0.1)).serving() as url:
        words = ("run", "--url", url, "--profile", "fine.yaml", "--corpus", ".", "--users", "20", "--sessions", "20")
        words = (HINDERED, how, block_ms, "100", *words, "--out", "bundle", "-q")
        async with running(*words, cwd=tmp_path) as tester:
            printed, err = await asyncio.wait_for(tester.communicate(), 60)
    out = printed.decode()
    assert tester.returncode == 3, out + err.decode()
    tells_everywhere_that_the_tester_was_late(tmp_path / "bundle", out)
    verdict = summary_of(tmp_path / "bundle")["verdict"]
    assert verdict["figures"]["loop_gap_p99_ms"] >= 45
    assert verdict["figures"]["lateness_p95_ms"] >= 40
    assert f"lateness p95 {verdict['figures']['lateness_p95_ms']:.1f} ms" in out
    assert f"loop gap p99 {verdict['figures']['loop_gap_p99_ms']:.1f} ms" in out
    page = (tmp_path / "bundle" / "report.html").read_text()
    assert f"{verdict['figures']['loop_gap_p99_ms']:.2f} ms" in page
    assert f"{verdict['figures']['lateness_p95_ms']:.2f} ms" in page
    assert cause in " ".join(verdict["reasons"])
    assert summary_of(tmp_path / "bundle")["sessions"]["finished"] == 20


# ---- ten minutes, condensed


def test_one_gap_of_2_s_in_ten_minutes_and_1200_good_sessions_is_invalid() -> None:
    judge = Judge(header())
    for second in range(600):
        gap_ns = 2 * S if second == 300 else 1 * MS
        judge.add(tick(second, loop_gap_ns=gap_ns, lateness={bucket(0.1): 200}, started=2))
    for number in range(1200):
        judge.add(started(f"s{number}"))
        judge.add(answered(f"s{number}", 0.2, tainted=number in (600, 601)))
    verdict = judge.verdict()
    assert verdict.state == "INVALID"
    assert verdict.reasons[0] == LATE
    assert "stood still for 2000 ms" in verdict.reasons[1]
    assert len(verdict.reasons) == 2, "2 of 1200 sessions would be forgiven, and 1 chunk in 1000; the gap is not"


@pytest.fixture
def slow_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten minutes of beats every 5 ms take a minute even in virtual time."""
    monkeypatch.setattr(health, "BEAT_NS", 100 * MS)


async def played(folder: Path, work: Workload, clock: Callable[[], int]) -> tuple[Heard, Judge]:
    """A run in virtual time on a clock of the test's own; clips of a second in two chunks."""
    heard, profile = Heard(), stage.load_profile("vosk")
    start = stage.plan([stage.clip(folder, profile, media_ms=1000, chunk_ms=500)], profile, work)
    with stage.memory.serve("asr", answering(0.1)):
        await stage.Engine(
            start,
            heard.events.append,
            clock=clock,
            make_alarm=lambda ring: stage.LoopAlarm(ring, clock, quantum_ns=1000),
            transport=stage.memory.transport,
        ).run()
    judge = Judge(header())
    for event in heard.events:
        if isinstance(event, Tick | Started | SessionRecord):
            judge.add(event)
    return heard, judge


@pytest.mark.looptime
@pytest.mark.usefixtures("slow_heart")
async def test_a_clock_that_jumps_by_2_s_in_ten_minutes_is_found_out_by_the_run_itself(tmp_path: Path) -> None:
    def clock() -> int:
        now = now_ns()
        return now + 2 * S if now >= 300 * S else now

    heard, judge = await played(tmp_path, stage.workload(model="constant", rate=1.0, sessions=600), clock)
    assert heard.outcomes == {"ok": 600}
    assert sum(record.tainted for record in heard.records.values()) <= 6, "no more than one in a hundred"
    verdict = judge.verdict()
    assert (verdict.state, verdict.reasons[0]) == ("INVALID", LATE)
    assert verdict.figures["loop_gap_max_ms"] == pytest.approx(2000, abs=101)


@pytest.mark.looptime
@pytest.mark.usefixtures("slow_heart")
async def test_a_tester_that_stands_still_between_ready_and_its_first_session_cannot_hide_it(tmp_path: Path) -> None:
    """Of 101 sessions one starts late, which no percentile of starts shows."""

    def clock() -> int:
        now = now_ns()
        return now + 2 * S if now >= 20 * MS else now

    heard, judge = await played(tmp_path, stage.workload(model="closed", users=1, sessions=101), clock)
    assert sum(record.lateness.start_ns > S for record in heard.records.values()) == 1
    verdict = judge.verdict()
    assert (verdict.state, verdict.reasons[0]) == ("INVALID", LATE)
    assert verdict.figures["loop_gap_max_ms"] == pytest.approx(1970, abs=101)
