"""Sessions over several endpoints, some of which take only so many at a time."""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loadbench.engine.pipe import Finished, Stop
from loadbench.engine.pool import Pool
from loadbench.engine.run import Engine
from loadbench.results.record import Started
from loadbench.session.load import load_profile
from loadbench.session.wire import Cause
from loadbench.transports import memory
from tests.engine import stage
from tests.engine.stage import Heard, S, answering, workload

URLS = ["memory://a", "memory://b"]


@pytest.mark.parametrize(("size", "seed"), [(1, 7), (3, 7), (5, 8)])
def test_each_round_goes_to_every_endpoint_once_in_the_order_of_the_seed(size: int, seed: int) -> None:
    pool = Pool(size, None, seed)
    taken = [pool.take() for _ in range(3 * size)]
    assert sorted(taken[:size], key=str) == list(range(size))
    assert taken == taken[:size] * 3
    assert [Pool(size, None, seed).take() for _ in range(2)] == [taken[0]] * 2


def test_orders_differ_by_the_seed() -> None:
    assert len({Pool(20, None, seed).take() for seed in range(50)}) > 5


def test_an_endpoint_takes_only_so_many_at_a_time_and_the_next_that_has_room_is_taken() -> None:
    pool = Pool(2, 2, 7)
    first = [pool.take() for _ in range(5)]
    assert first[:4] in ([0, 1, 0, 1], [1, 0, 1, 0])
    assert first[4] is None
    pool.free(1)
    assert [pool.take(), pool.take()] == [1, None]


async def over(
    tmp_path: Path, work: Any, *, final_s: float = 0.5, during: Callable[[Engine], None] | None = None, **more: Any
) -> tuple[Heard, list[memory.Served]]:
    """A run over both endpoints; a session takes a second of media and so long for its final."""
    heard, how = Heard(), load_profile("vosk")
    entry = stage.clip(tmp_path, how, media_ms=1000, chunk_ms=200)
    start = stage.plan([entry], how, work, url=URLS[0], urls=URLS, **more)
    with ExitStack() as stack:
        served = [stack.enter_context(memory.serve(url.rpartition("/")[2], answering(final_s))) for url in URLS]
        engine = stage.engine(start, heard)
        if during is not None:
            during(engine)
        await engine.run()
    return heard, served


def alone(heard: Heard) -> bool:
    """No two sessions were at one endpoint at the same time."""
    records = sorted(heard.records.values(), key=lambda record: record.begun_ns)
    rows = [[record for record in records if record.endpoint == url] for url in URLS]
    return all(before.ended_ns <= after.begun_ns for row in rows for before, after in pairwise(row))


@pytest.mark.looptime
async def test_users_take_turns_at_endpoints_and_no_endpoint_has_two_of_them(tmp_path: Path) -> None:
    work = workload(model="closed", users=2, sessions=6)
    heard, served = await over(tmp_path, work, per_endpoint=1)
    assert heard.outcomes == {"ok": 6}
    assert [len(each.peers) for each in served] == [3, 3]
    assert {record.endpoint for record in heard.records.values()} == set(URLS)
    assert alone(heard)
    assert {record.endpoint_wait_ns for record in heard.records.values()} == {None}


@pytest.mark.looptime
async def test_an_arrival_that_finds_no_endpoint_free_waits_for_one_and_the_tester_is_not_late(tmp_path: Path) -> None:
    """Two places, 1.5 s a session or a bit more, and an arrival each half second: they wait half a second, or one."""
    work = workload(model="constant", rate=2, duration_s=3)
    heard, served = await over(tmp_path, work, per_endpoint=1, media_start="on_ready")
    records = sorted(heard.records.values(), key=lambda record: record.planned_ns)
    assert heard.outcomes == {"ok": 6}
    assert sum(len(each.peers) for each in served) == 6
    assert alone(heard)
    waits = [record.endpoint_wait_ns or 0 for record in records]
    assert waits[:2] == [0, 0]
    assert all(0.5 * S <= wait_ns < 0.8 * S for wait_ns in waits[2:4])  # and up to a place on the chunk clock
    assert all(1.0 * S <= wait_ns < 1.4 * S for wait_ns in waits[4:])
    for record, wait_ns in zip(records, waits, strict=True):
        assert record.begun_ns - record.planned_ns - wait_ns == record.lateness.start_ns < 5_000_000
    assert [round((each.planned_ns - records[0].planned_ns) / S, 3) for each in records] == [0, 0.5, 1, 1.5, 2, 2.5]


@pytest.mark.looptime
@pytest.mark.parametrize("stopped", [False, True])
async def test_those_that_still_wait_when_the_run_is_cut_are_counted_and_connect_to_nobody(
    tmp_path: Path, stopped: bool
) -> None:
    work = workload(model="constant", rate=2, duration_s=3, drain_s=None if stopped else 0.1)

    def stop(engine: Engine) -> None:
        stage.asyncio.get_running_loop().call_later(2.8, engine.take, Stop(drain_s=0.1))

    heard, served = await over(tmp_path, work, final_s=9, during=stop if stopped else None, per_endpoint=1)
    outcome = "interrupted" if stopped else "time_up"
    assert heard.outcomes == {outcome: 6}
    assert sum(len(each.peers) for each in served) == 2
    assert len(heard.of(Started)) == heard.of(Finished)[0].started == 6
    lost = [record for record in heard.records.values() if not record.endpoint]
    assert len(lost) == 4
    assert all(not record.connections and (record.endpoint_wait_ns or 0) > 0 for record in lost)


@pytest.mark.looptime
async def test_an_endpoint_that_refuses_is_free_for_the_next(tmp_path: Path) -> None:
    heard, how = Heard(), load_profile("vosk")
    entry = stage.clip(tmp_path, how, media_ms=200, chunk_ms=200)
    work = workload(model="constant", rate=10, duration_s=1)
    start = stage.plan([entry], how, work, url="memory://a", per_endpoint=1)
    refuse = lambda: Cause("refused", stage.now_ns(), by="network")  # noqa: E731 - as short as it gets
    with memory.serve("a", answering(0.0), refuse=refuse):
        await stage.engine(start, heard).run()
    assert heard.outcomes == {"connect_failed": 10}
    assert {record.endpoint for record in heard.records.values()} == {""}  # there is only one
