"""Waking at points in time: one alarm for many appointments, and never a relative sleep.

uvloop's own timers have a resolution of 1 ms and round, so they fire up to half a millisecond early or spin. Where the
kernel offers a timerfd on the run clock's own clock, the loop watches that instead.
"""

import asyncio
import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final, Protocol

from loadbench.transports.contract import Clock

MS: Final = 1_000_000
BUDGET_NS: Final = 2 * MS  # of one turn; then the loop reads, or arrivals would be stamped late
_TFD_TIMER_ABSTIME: Final = 1


class Alarm(Protocol):
    """Rings once, at the moment asked for last or soon after; in the past means at once. May ring early."""

    def at(self, at_ns: int) -> None:
        """Forget what was asked before and ring at this point on the run clock."""

    def close(self) -> None:
        """Ring no more."""


MakeAlarm = Callable[[Callable[[], None]], Alarm]  # from what is to be called when it rings


class LoopAlarm:
    """An alarm on the loop's own timers, for virtual time and for systems without a timerfd.

    Delays are rounded up to `quantum_ns`, because a loop that counts whole milliseconds would spin through the rest.
    """

    def __init__(self, ring: Callable[[], None], clock: Clock, quantum_ns: int = MS) -> None:
        self._ring, self._clock, self._quantum_ns = ring, clock, quantum_ns
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None

    def at(self, at_ns: int) -> None:
        """See `Alarm.at`."""
        self.close()
        quanta = max(0, -(-(at_ns - self._clock()) // self._quantum_ns))
        self._handle = self._loop.call_later(quanta * self._quantum_ns / 1e9, self._ring)

    def close(self) -> None:
        """See `Alarm.close`."""
        if self._handle is not None:
            self._handle.cancel()


class _Timespec(ctypes.Structure):
    _fields_ = (("s", ctypes.c_long), ("ns", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class TimerFd:
    """An alarm of the kernel's, exact to some hundredths of a millisecond. Raises OSError where there is none.

    Behind what it was asked for it goes on by itself, each millisecond: a wheel that is busy asks for just that, and to
    set it anew would cost more than to hear it.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "timerfd_create"):
            raise OSError("this system has no timerfd")
        self._settime = libc.timerfd_settime
        self._fd: int = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._timer = _Timer(_Timespec(0, MS), _Timespec(0, 0))
        self._reference = ctypes.byref(self._timer)
        self._next_ns: int | None = None  # when it rings next, without being asked
        self._asked = False
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._rung)

    def at(self, at_ns: int) -> None:
        """See `Alarm.at`."""
        self._asked = True
        if at_ns != self._next_ns:
            self._set(max(1, at_ns))  # 0 would switch it off
            self._next_ns = at_ns

    def close(self) -> None:
        """See `Alarm.close`."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _set(self, at_ns: int) -> None:
        value = self._timer.value
        value.s, value.ns = divmod(at_ns, 1_000_000_000)
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._reference, None)

    def _rung(self) -> None:
        try:
            times = int.from_bytes(os.read(self._fd, 8), sys.byteorder)
        except BlockingIOError:  # set anew between the kernel's word and this call
            times = 0
        if self._next_ns is not None:
            self._next_ns += times * MS
        self._asked = False
        self._ring()
        if not self._asked and self._fd >= 0:
            self._set(0)
            self._next_ns = None


def kernel_alarm(ring: Callable[[], None]) -> Alarm:
    """The best alarm for `time.monotonic_ns`: a timerfd on Linux, the loop's timers elsewhere."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return TimerFd(ring)
    return LoopAlarm(ring, time.monotonic_ns)


class Agenda:
    """Calls at points in time, the oldest first; what cannot be done within the budget waits for the next turn.

    An appointment is never kept early and cannot be cancelled: who is called looks whether it still matters.
    """

    def __init__(self, clock: Clock, make_alarm: MakeAlarm) -> None:
        self._clock = clock
        self._alarm = make_alarm(self._turn)
        self.alarm_name = type(self._alarm).__name__
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._turning = False

    def at(self, at_ns: int, call: Callable[[], None]) -> None:
        """Call at this point on the run clock, or as soon after as the loop allows. `call` must not raise."""
        entry = (at_ns, next(self._order), call)
        heappush(self._heap, entry)
        if self._heap[0] is entry and not self._turning:
            self._alarm.at(at_ns)

    def close(self) -> None:
        """Keep no further appointment."""
        self._heap.clear()
        self._alarm.close()

    def _turn(self) -> None:
        heap, now = self._heap, self._clock()
        limit = now + BUDGET_NS
        self._turning = True
        try:
            while heap and heap[0][0] <= now < limit:
                heappop(heap)[2]()
                now = self._clock()
        finally:
            self._turning = False
            if heap:
                self._alarm.at(heap[0][0])


class Reminder:
    """An appointment that moves: `call` comes at the time asked for or earlier, and then asks again if it must.

    Most deadlines move on before they come, so one that is kept early is cheaper than one cancelled each time.
    """

    def __init__(self, agenda: Agenda, call: Callable[[], None]) -> None:
        self._agenda = agenda
        self._call: Callable[[], None] | None = call
        self._at_ns: int | None = None

    def by(self, at_ns: int | None) -> None:
        """Call no later than this; None asks for nothing."""
        if at_ns is not None and (self._at_ns is None or at_ns < self._at_ns):
            self._at_ns = at_ns
            self._agenda.at(at_ns, partial(self._ring, at_ns))

    def close(self) -> None:
        """Call no more, and let go of whom to call."""
        self._call = None

    def _ring(self, at_ns: int) -> None:
        if at_ns == self._at_ns and self._call is not None:  # else an earlier one has taken its place
            self._at_ns = None
            self._call()
