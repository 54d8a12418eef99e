"""Whether the tester itself can be believed: gaps of its loop, garbage collection, the processor it was not given."""

import contextlib
import gc
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from loadbench.engine.alarm import MS, MakeAlarm
from loadbench.readings.machine import OwnProcess
from loadbench.transports.contract import Clock

BEAT_NS: Final = 5 * MS
NOTED_NS: Final = 10 * MS  # shorter gaps are no news, and longer ones are few


class Heart:
    """Beats on the loop, and so knows when the loop stood still.

    A gap reaches from when a beat was due to when it could be made: the loop was surely blocked for that long, by
    other work on it, by the garbage collector, or because the process did not run. `gaps` holds all of 10 ms or more.
    """

    def __init__(self, clock: Clock, make_alarm: MakeAlarm) -> None:
        self._clock = clock
        self._alarm = make_alarm(self._beat)  # its own: on the agenda it would stand in line behind other work
        self._due_ns = sys.maxsize  # no beat is due before `start`
        self._longest_ns = self._taken = 0
        self.gaps: list[tuple[int, int]] = []

    def start(self, from_ns: int) -> None:
        """Beat from that moment on, which is now or was to be now: what kept us from it is a gap like any other."""
        self._due_ns = from_ns + BEAT_NS
        self._alarm.at(self._due_ns)

    def close(self) -> None:
        """Beat no more."""
        self._alarm.close()

    def look(self) -> None:
        """Note a gap that the overdue beat has not noted yet, so that whoever is judged now is judged by it."""
        now = self._clock()
        late = now - self._due_ns
        if late < 0:
            return
        self._longest_ns = max(self._longest_ns, late)
        if late >= NOTED_NS:
            self.gaps.append((self._due_ns, now))
        self._due_ns += (late // BEAT_NS + 1) * BEAT_NS

    def longest_between(self, from_ns: int, to_ns: int) -> int:
        """The longest noted gap of which some part lies in that time; 0 without one."""
        self.look()
        longest = 0
        for start, end in reversed(self.gaps):
            if end < from_ns:
                break
            if start <= to_ns:
                longest = max(longest, end - start)
        return longest

    def _beat(self) -> None:
        self.look()
        self._alarm.at(self._due_ns)

    def take(self, over_ns: float) -> tuple[int, list[tuple[int, int]]]:
        """Since this was asked last: the longest gap, of any length, and the noted ones longer than `over_ns`."""
        self.look()
        longest, self._longest_ns = self._longest_ns, 0
        fresh, self._taken = self.gaps[self._taken :], len(self.gaps)
        return longest, [(start, end) for start, end in fresh if end - start > over_ns]


class Collections:
    """Time that the garbage collector took."""

    def __init__(self) -> None:
        self._began_ns = self._sum_ns = self._max_ns = 0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Count from here to the end of the block."""
        gc.callbacks.append(self._told)
        try:
            yield
        finally:
            gc.callbacks.remove(self._told)

    def take(self) -> tuple[int, int]:
        """Sum and longest, nanoseconds, since this was asked last."""
        taken = self._sum_ns, self._max_ns
        self._sum_ns = self._max_ns = 0
        return taken

    def _told(self, phase: str, _info: dict[str, int]) -> None:
        now = time.perf_counter_ns()
        if phase == "start":
            self._began_ns = now
        else:
            self._sum_ns += now - self._began_ns
            self._max_ns = max(self._max_ns, now - self._began_ns)


class Usage:
    """What the process took of the machine since it was asked last."""

    def __init__(self) -> None:
        self._process = OwnProcess()
        self._cpu_ns, self._delay_ns = self._process.cpu_ns(), self._process.run_delay_ns()

    def take(self) -> dict[str, Any]:
        """The fields `cpu_ns`, `run_delay_ns`, `rss_bytes` and `fds` of a tick."""
        cpu_ns, delay_ns = self._process.cpu_ns(), self._process.run_delay_ns()
        taken = {
            "cpu_ns": cpu_ns - self._cpu_ns,
            "run_delay_ns": None if delay_ns is None or self._delay_ns is None else delay_ns - self._delay_ns,
            "rss_bytes": self._process.rss_bytes(),
            "fds": self._process.fds(),
        }
        self._cpu_ns, self._delay_ns = cpu_ns, delay_ns
        return taken


def settle() -> None:
    """Keep the collector off all that is there and will stay. A collection first would take 15 ms."""
    gc.freeze()


def quiet_collector() -> None:
    """Collect young objects as always, and all of them rarely."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, 1000)


def raise_file_limit() -> int | None:
    """Allow as many file handles as the system lets us; how many, or None where there is no such limit."""
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # where the hard limit lies above the kernel's own, the soft stays
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft


def ask_realtime() -> str:
    """Ask the kernel to run this process before all ordinary ones; the policy in force, in words."""
    if not hasattr(os, "sched_setscheduler"):
        return "refused: this system has no SCHED_FIFO"
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError as error:
        return f"refused: {error.strerror} (needs CAP_SYS_NICE)"
    return "SCHED_FIFO"
