"""What a machine offers against what a run needs, as rows."""

from typing import Any

import pytest

from loadbench.doctor import checks
from loadbench.doctor.checks import Need
from loadbench.doctor.row import Row
from loadbench.results.slo import Thresholds

LIMITS = Thresholds()


def need(users: int = 50, starts_per_s: float = 10.0, mapped_mb: int = 0) -> Need:
    return Need(users=users, starts_per_s=starts_per_s, mapped_bytes=mapped_mb * 1_000_000)


def idle(**changes: Any) -> dict[str, Any]:
    known = {"timer_p50_ms": 0.05, "timer_p99_ms": 0.4, "timer_max_ms": 0.9, "loop_gap_max_ms": 1.0}
    return known | {"loop": "uvloop", "alarm": "TimerFd"} | changes


@pytest.mark.parametrize(
    ("row", "state"),
    [
        (checks.file_handles(need(1000), 1024, 4096), "ok"),  # the engine raises its soft limit
        (checks.file_handles(need(3968), 1024, 4096), "ok"),  # 128 are for the tester itself
        (checks.file_handles(need(3969), 1024, 4096), "problem"),
        (checks.file_handles(need(99_999), 1024, None), "ok"),
        (checks.ports(need(28_232, 0.0), 28_232), "ok"),
        (checks.ports(need(20_000, 200.0), 28_232), "warning"),  # 12,000 more wait for a minute
        (checks.ports(need(28_233, 0.0), 28_232), "problem"),
        (checks.ports(need(), None), "unknown"),
        (checks.memory(need(1000), 2_000_000_000), "ok"),
        (checks.memory(need(1000, mapped_mb=800), 2_000_000_000), "warning"),
        (checks.memory(need(1000, mapped_mb=1800), 2_000_000_000), "problem"),
        (checks.processors(2, 8, None), "ok"),
        (checks.processors(8, 8, 1.5), "warning"),
        (checks.processors(1, 8, None), "warning"),
        (checks.processors(8, 8, 0.5), "problem"),
        (checks.processors(None, None, None), "unknown"),
        (checks.governor("performance"), "ok"),
        (checks.governor("powersave"), "warning"),
        (checks.governor(None), "unknown"),
        (checks.clock("tsc", 1e-9), "ok"),
        (checks.clock("hpet", 1e-9), "warning"),
        (checks.clock("tsc", 0.0156), "problem"),
        (checks.clock(None, 1e-9), "unknown"),
        (checks.timers(idle(), LIMITS), "ok"),
        (checks.timers(idle(timer_p99_ms=5.1), LIMITS), "warning"),  # DEGRADED begins at 5 ms
        (checks.timers(idle(timer_p99_ms=25.1), LIMITS), "problem"),  # INVALID begins at 25 ms
        (checks.timers(idle(timer_p50_ms=None, timer_p99_ms=None), LIMITS), "problem"),
        (checks.loop(idle(), LIMITS), "ok"),
        (checks.loop(idle(loop_gap_max_ms=12.0), LIMITS), "warning"),
        (checks.loop(idle(loop_gap_max_ms=50.1), LIMITS), "problem"),
        (checks.realtime("SCHED_FIFO"), "ok"),
        (checks.realtime("refused: Operation not permitted (needs CAP_SYS_NICE)"), "ok"),
    ],
)
def test_each_state_has_its_threshold_and_what_is_wrong_has_an_advice(row: Row, state: str) -> None:
    assert row.state == state, row
    assert row.found
    assert bool(row.advice) == (state in ("warning", "problem"))


def test_timers_of_15_6_ms_are_called_coarse() -> None:
    row = checks.timers(idle(timer_p50_ms=7.8, timer_p99_ms=15.4), LIMITS)
    assert row.state == "problem"
    assert "coarse timers" in row.advice


def test_ports_say_how_many_sessions_and_how_many_in_time_wait() -> None:
    row = checks.ports(need(500, 12.5), 28_232)
    assert row.found == "28,232"
    assert row.needed == "500 open, and at most 750 in TIME_WAIT (60 s)"


def test_whether_real_time_priority_is_permitted_is_said_either_way() -> None:
    assert checks.realtime("SCHED_FIFO").found == "SCHED_FIFO is permitted"
    assert "CAP_SYS_NICE" in checks.realtime("refused: Operation not permitted (needs CAP_SYS_NICE)").found
