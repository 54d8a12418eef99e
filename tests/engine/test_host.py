"""The engine's own process against a service that shares no code with the package; real sockets on the loopback."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from loadbench.engine.host import EngineProcess
from loadbench.engine.pipe import ClipEntry, Finished, Outbound, Ready, Start, Stop
from loadbench.engine.prepare import wire_plans
from loadbench.media.plan import ChunkPlan
from loadbench.results.record import ChunkTimes, SessionRecord, Started
from loadbench.results.tick import Tick
from loadbench.session.load import load_profile
from loadbench.transports import load
from tests.engine import stage
from tests.engine.stage import MS, Heard
from tests.independent_stub import Stub

pytestmark = pytest.mark.realtime


def asked(folder: Path, url: str, media_ms: int = 2000, **workload: Any) -> Start:
    profile = load_profile("vosk")
    chunks = [(200 * MS * (index + 1), 0, bytes([index % 256]) * 6400) for index in range(media_ms // 200)]
    ChunkPlan.write(folder / "raw", chunks, media_ms * MS)
    place, joined = wire_plans(profile, {"a": folder / "raw"}, load("websocket"), folder / "out", os.urandom)["a"]
    return Start(
        run_id="r",
        worker="w",
        seed=7,
        profile=profile.model_dump(mode="json", exclude_unset=True),
        url=url,
        clips=[ClipEntry(id="a", wire=str(place), joined=joined)],
        workload=stage.workload(model="closed", **workload),
    )


class Run:
    """An engine process and what it says, read in the background."""

    def __init__(self) -> None:
        self.heard = Heard()
        self.process = EngineProcess()

    async def until(self, kind: type[Outbound], count: int = 1) -> None:
        await _until(lambda: len(self.heard.of(kind)) >= count)

    async def begin(self, start: Start) -> None:
        await self.process.start(start)
        self._reading = asyncio.create_task(self._read())

    async def end(self) -> None:
        await asyncio.wait_for(self._reading, 30)

    async def _read(self) -> None:
        async for event in self.process.events():
            self.heard.events.append(event)


@pytest.fixture
async def run() -> AsyncIterator[Run]:
    running = Run()
    yield running
    running.process.kill()
    await running.process.close()


async def test_a_run_in_its_own_process_paces_as_the_service_sees_it(tmp_path: Path, run: Run) -> None:
    stub = Stub(first_s=0.1, final_s=0.2)
    async with stub.serving() as url:
        await run.begin(asked(tmp_path, url, users=5, sessions=5))
        await run.end()
    heard = run.heard
    assert heard.outcomes == {"ok": 5}
    facts = heard.of(Ready)[0].facts
    assert heard.of(Ready)[0].pid != os.getpid()
    assert (facts["loop"], facts["alarm"]) == ("uvloop", "TimerFd")
    assert heard.of(Finished)[0] == Finished(
        ended_ns=heard.of(Finished)[0].ended_ns, started=5, reason="completed", error=""
    )
    for record in heard.records.values():
        seen, utterance = stub.seen[record.id], record.utterances[0]
        zero = utterance.media_zero_ns or 0
        assert bytes(seen.media) == b"".join(bytes([index]) * 6400 for index in range(10))
        assert all(at >= zero + 200 * MS * (index + 1) for index, at in enumerate(seen.arrivals))
        assert seen.eof_ns >= zero + 2000 * MS
        assert utterance.chunks_sent == 10
        assert utterance.media_bytes == 10 * 6400
    assert len(heard.of(ChunkTimes)) == 5
    assert sum(tick.chunks.get("audio", 0) for tick in heard.of(Tick)) == 50
    assert await run.process._status() == 0


async def test_a_tester_that_is_stopped_for_300_ms_knows_it_and_its_sessions_are_tainted(
    tmp_path: Path, run: Run
) -> None:
    async with Stub(first_s=0.1, final_s=0.2).serving() as url:
        await run.begin(asked(tmp_path, url, users=3, sessions=3))
        await run.until(Started, 3)
        await asyncio.sleep(1.0)
        assert run.process.pid is not None
        os.kill(run.process.pid, signal.SIGSTOP)
        await asyncio.sleep(0.3)
        os.kill(run.process.pid, signal.SIGCONT)
        await run.end()
    assert run.heard.outcomes == {"ok": 3}
    gaps = [end - start for tick in run.heard.of(Tick) for start, end in tick.gaps]
    assert max(gaps) >= 250 * MS
    for record in run.heard.records.values():
        assert record.tainted
        assert record.lateness.gap_max_ns >= 250 * MS
        assert record.lateness.max_ns >= 50 * MS, "at least one chunk was due in it"


async def test_stop_ends_the_process_in_bounded_time_with_every_session_in_the_books(tmp_path: Path, run: Run) -> None:
    async with Stub().serving() as url:
        await run.begin(asked(tmp_path, url, media_ms=60_000, users=3, duration_s=600.0))
        await run.until(Started, 3)
        await run.process.send(Stop(drain_s=0.2))
        begun = time.monotonic()
        await run.end()
        assert time.monotonic() - begun < 5
    assert run.heard.outcomes == {"interrupted": 3}
    assert run.heard.of(Finished)[0].reason == "interrupted"


async def test_an_interrupt_from_the_terminal_is_the_parents_to_decide(tmp_path: Path, run: Run) -> None:
    async with Stub(final_s=0.1).serving() as url:
        await run.begin(asked(tmp_path, url, media_ms=600, users=1, sessions=1))
        assert run.process.pid is not None
        os.kill(run.process.pid, signal.SIGINT)
        await run.until(Started)
        os.kill(run.process.pid, signal.SIGINT)
        await run.end()
    assert run.heard.outcomes == {"ok": 1}


async def test_an_engine_that_dies_leaves_a_word_and_its_sessions_in_the_books(tmp_path: Path, run: Run) -> None:
    async with Stub().serving() as url:
        await run.begin(asked(tmp_path, url, media_ms=60_000, users=2, sessions=2))
        await run.until(Started, 2)
        run.process.kill()
        await run.end()
    finished = run.heard.of(Finished)[0]
    assert finished.reason == "engine lost"
    assert finished.started == 2
    assert "signal 9" in finished.error
    assert run.heard.outcomes == {"worker_lost": 2}
    assert {record.side for record in run.heard.of(SessionRecord)} == {"tester"}


async def test_what_the_engine_cannot_carry_out_comes_back_as_one_word(tmp_path: Path, run: Run) -> None:
    await run.begin(asked(tmp_path, "http://127.0.0.1:9", users=1, sessions=1))
    await run.end()
    assert [type(event) for event in run.heard.events] == [Finished]
    assert run.heard.of(Finished)[0].reason == "failed"
    assert "ws://" in run.heard.of(Finished)[0].error


PARENT = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from loadbench.engine.host import EngineProcess
from tests.engine.test_host import asked

async def main():
    engine = EngineProcess()
    await engine.start(asked(Path({folder!r}), {url!r}, media_ms=60_000, users=2, sessions=2))
    print(engine.pid, flush=True)
    async for event in engine.events():
        print(type(event).__name__, flush=True)

asyncio.run(main())
"""


async def test_when_the_parent_dies_the_engine_ends_and_lets_go_of_the_service(tmp_path: Path) -> None:
    stub = Stub()
    async with stub.serving() as url:
        code = textwrap.dedent(PARENT.format(root=str(Path(__file__).parents[2]), folder=str(tmp_path), url=url))
        parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
        assert parent.stdout is not None
        pid = int(await asyncio.wait_for(parent.stdout.readline(), 20))
        while await asyncio.wait_for(parent.stdout.readline(), 20) != b"Started\n":
            pass
        await _until(lambda: stub.open_now == 2)
        parent.kill()
        await parent.wait()
        await _until(lambda: not _alive(pid) and stub.open_now == 0)


async def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def _alive(pid: int) -> bool:
    """A zombie, whom nobody has buried here, is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
