"""An idle engine's own lateness, measured."""

import asyncio
import json
import subprocess
import sys
import time

import pytest

from loadbench.engine import health, selftest

pytestmark = pytest.mark.realtime


def test_it_uses_an_engine_s_own_loop_and_alarm_and_says_whether_real_time_is_permitted() -> None:
    words = [sys.executable, "-m", "loadbench.engine.selftest", "0.5"]
    found = json.loads(subprocess.run(words, capture_output=True, check=True, timeout=30).stdout)
    assert (found["loop"], found["alarm"]) == ("uvloop", "TimerFd")
    assert 20 <= found["n"] <= 0.5e9 / selftest.EVERY_NS
    assert 0 <= found["timer_p50_ms"] <= found["timer_p99_ms"] <= found["timer_max_ms"]
    assert 0 < found["cpu_share"] < 1
    assert found["realtime"].startswith(("SCHED_FIFO", "refused"))


async def test_a_loop_that_was_blocked_for_300_ms_has_a_gap_and_a_late_timer_of_that_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("quiet_collector", "settle"):  # which would outlive the test
        monkeypatch.setattr(health, name, lambda: None)
    monkeypatch.setattr(health, "ask_realtime", lambda: "refused: not asked")
    asyncio.get_running_loop().call_later(0.2, time.sleep, 0.3)
    found = await selftest.measure(0.7)
    assert found["loop_gap_max_ms"] >= 290
    assert found["timer_max_ms"] >= 290
    assert found["realtime"] == "refused: not asked"
