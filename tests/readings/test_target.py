import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from loadbench.readings.target import Target, exists
from loadbench.readings.watching import Watching

BUSY = "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'while True: pass']); child.wait()"


@pytest.fixture
def program() -> Iterator[Callable[[str], int]]:
    made: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> int:
        made.append(subprocess.Popen([sys.executable, "-c", code], start_new_session=True))
        return made[-1].pid

    yield start
    for process in made:
        os.killpg(process.pid, 9)
        process.wait()


def until(holds: Callable[[], bool]) -> None:
    patience = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.02)


def test_a_process_is_read_with_all_that_it_has_started(program: Callable[[str], int]) -> None:
    pid = program(BUSY)
    target = Target(pid)
    until(lambda: target.take().get("target_processes") == 2)
    until(lambda: target.take()["target_cpu_share"] > 0)
    taken = target.take()
    assert taken["target_rss_bytes"] > 2 * 1024 * 1024
    assert taken["target_threads"] == 2
    assert taken["target_files"] >= 6  # three streams each


def test_without_itself_only_what_it_has_started_counts(program: Callable[[str], int]) -> None:
    pid = program(BUSY)
    target = Target(pid, itself=False)
    until(lambda: target.take().get("target_processes") == 1)
    assert target.take()["target_threads"] == 1


def test_one_that_has_ended_gives_no_reading_rather_than_zeros() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    target = Target(process.pid)
    assert exists(process.pid)
    assert target.take()["target_processes"] == 1
    process.communicate(b"\n")
    assert target.take() == {}
    assert not exists(process.pid)
    assert Target(process.pid).take() == {}


class Sensor:
    def take(self) -> dict[str, float]:
        return {"temperature_board_c": 40.0}


def test_the_thread_reads_once_a_second_and_tells_each_reading_once(
    program: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadbench.readings.watching.EVERY_S", 0.05)
    with Watching(Target(program("import time; time.sleep(60)")), Sensor()) as watching:  # type: ignore[arg-type]
        until(lambda: bool(watching._latest))
        taken = watching.latest()
    assert taken["temperature_board_c"] == 40.0
    assert taken["target_processes"] == 1
    watching.latest()
    assert watching.latest() == {}
