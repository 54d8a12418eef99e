"""How well an engine's process keeps its appointments here while it has nothing else to do.

`python -m loadbench.engine.selftest` prints one JSON object; with an engine's own loop, alarm and settings.
"""

import asyncio
import json
import sys
import time
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from loadbench.engine import health
from loadbench.engine.alarm import MS, Alarm, kernel_alarm
from loadbench.engine.child import loop_name, new_loop

SPAN_S: Final = 1.0
EVERY_NS: Final = 3_700_000  # no whole milliseconds, so that a coarse timer shows


class Appointments:
    """Made one after the other; `late_ns` says how late each was kept."""

    def __init__(self, make_alarm: Callable[[Callable[[], None]], Alarm] = kernel_alarm) -> None:
        self.late_ns: array[int] = array("q")
        self.alarm = make_alarm(self._rung)
        self._due_ns = time.monotonic_ns() + EVERY_NS
        self.alarm.at(self._due_ns)

    def _rung(self) -> None:
        now = time.monotonic_ns()
        if now >= self._due_ns:
            self.late_ns.append(now - self._due_ns)
            self._due_ns = now + EVERY_NS
        self.alarm.at(self._due_ns)


async def measure(span_s: float = SPAN_S) -> dict[str, Any]:
    """Lateness of the alarm and the longest gap of the loop in so many seconds; milliseconds, shares of one core."""
    health.quiet_collector()
    health.settle()
    heart = health.Heart(time.monotonic_ns, kernel_alarm)
    appointments = Appointments()
    begun_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()
    heart.start(begun_ns)
    await asyncio.sleep(span_s)
    cpu_share = (time.process_time_ns() - cpu_ns) / (time.monotonic_ns() - begun_ns)
    gap_ns, _ = heart.take(0)
    heart.close()
    appointments.alarm.close()
    late = sorted(appointments.late_ns)
    at = partial(_at, late)
    return {
        "loop": loop_name(),
        "alarm": type(appointments.alarm).__name__,
        "n": len(late),
        "timer_p50_ms": at(0.5),
        "timer_p99_ms": at(0.99),
        "timer_max_ms": at(1.0),
        "loop_gap_max_ms": round(gap_ns / MS, 3),
        "cpu_share": round(cpu_share, 4),
        "realtime": health.ask_realtime(),  # last, for it changes how the process runs
    }


def _at(values_ns: list[int], share: float) -> float | None:
    if not values_ns:
        return None
    return round(values_ns[min(len(values_ns) - 1, int(share * len(values_ns)))] / MS, 3)


def main() -> None:
    """See the module."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        print(json.dumps(runner.run(measure(float(sys.argv[1]) if len(sys.argv) > 1 else SPAN_S))))


if __name__ == "__main__":
    main()
