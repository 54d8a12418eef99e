"""What is written as a plan is read as one, also by many threads."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loadbench.media.plan import ChunkPlan

CHUNKS = [(20, 0, b"one"), (20, 1, b"two!"), (40, 0, b"three")]


def read(folder: Path) -> tuple[list[int], list[int], list[bytes], int, int, int]:
    plan = ChunkPlan.load(folder)
    wires = [bytes(plan.wire(number)) for number in range(len(plan))]
    return plan.due_ns.tolist(), plan.track.tolist(), wires, plan.duration_ns, plan.tracks, plan.size


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    ChunkPlan.write(tmp_path, iter(CHUNKS), lambda: 60, tracks=2)
    assert read(tmp_path) == ([20, 20, 40], [0, 1, 0], [b"one", b"two!", b"three"], 60, 2, 12)
    assert (tmp_path / "index.i64").stat().st_size == 4 * 4 * 8


def test_many_threads_may_read_plans_at_once(tmp_path: Path) -> None:
    ChunkPlan.write(tmp_path, iter(CHUNKS), 60, tracks=2)
    with ThreadPoolExecutor(8) as pool:
        assert len({str(found) for found in pool.map(read, [tmp_path] * 2000)}) == 1


def test_a_plan_that_is_not_finished_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ChunkPlan.load(tmp_path)
