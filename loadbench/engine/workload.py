"""When sessions start, and with which clips: pure plans, told the time and told when a session has ended.

A plan never waits: a start that comes late keeps its planned moment, and everything is measured from that.
"""

import math
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final, Literal, NamedTuple

from loadbench.engine.pipe import Workload

Window = Literal["warmup", "measure", "drain"]


class Slot(NamedTuple):
    """One start: who, when by the plan, in which window. `name` is set where the door chose the session's id."""

    planned_ns: int
    user: int
    window: Window
    name: str | None = None


def constant(_random: Random) -> Iterator[float]:
    """Evenly spaced arrivals, in units of the mean interval."""
    return map(float, count())


def poisson(random: Random) -> Iterator[float]:
    """Arrivals that know nothing of each other: exponential intervals, in units of the mean one."""
    at = 0.0
    while True:
        at += random.expovariate(1.0)
        yield at


_GOLDEN: Final = (math.sqrt(5) - 1) / 2  # its multiples fill the circle, and no two come close together
ARRIVALS: Final[dict[str, Callable[[Random], Iterator[float]]]] = {"constant": constant, "poisson": poisson}


def arrivals_ns(work: Workload, seed: int) -> Iterator[int]:
    """Starts of an open workload, nanoseconds from its beginning; the rate grows evenly from 0 during the ramp."""
    ramp = work.rate * work.ramp_s / 2  # sessions that start within the ramp
    for number in ARRIVALS[work.model](Random(f"{seed}:arrivals")):
        at_s = math.sqrt(2 * number * work.ramp_s / work.rate) if number < ramp else (number + ramp) / work.rate
        yield round(at_s * 1e9)


class Schedule:
    """The starts of one run, asked with `next_ns` and `pop`, told with `ended`, `begin` and `close`.

    Closed: user k comes at k * ramp / users, and again `think_s` after the end of each session. Open: by arrivals.
    External: by `begin`. Nothing starts after `sessions` in total, nor at or after warm-up plus `duration_s`.
    """

    def __init__(self, work: Workload, begin_ns: int, seed: int) -> None:
        self._work, self._begin_ns = work, begin_ns
        self._measure_ns = begin_ns + round(work.warmup_s * 1e9)
        self.end_ns = None if work.duration_s is None else self._measure_ns + round(work.duration_s * 1e9)
        self._left: float = math.inf if work.sessions is None else work.sessions
        self._heap: list[tuple[int, int, str | None]] = []
        self._arrivals: Iterator[tuple[int, int]] = iter(())
        self._running = 0
        if work.model == "closed":
            for user in range(work.users):
                self._push(begin_ns + round(user * work.ramp_s * 1e9 / work.users), user)
        elif work.model in ARRIVALS:
            self._arrivals = enumerate(arrivals_ns(work, seed))
            self._refill()

    @property
    def next_ns(self) -> int | None:
        """When the next session is to start; None while none is planned."""
        return self._heap[0][0] if self._heap and self._left > 0 else None

    @property
    def exhausted(self) -> bool:
        """Whether nothing can start any more, whatever happens."""
        if self._left <= 0:
            return True
        return not self._heap and (self._work.model in ARRIVALS or (self._work.model == "closed" and not self._running))

    def pop(self) -> Slot:
        """The next start, which counts as made."""
        planned_ns, user, name = heappop(self._heap)
        self._left -= 1
        self._running += 1
        self._refill()
        return Slot(planned_ns, user, self.window(planned_ns), name)

    def ended(self, user: int, at_ns: int, *, failed: bool = False) -> None:
        """A session of `user` is over; in a closed workload the next one is due when the user has thought."""
        self._running -= 1
        if self._work.model == "closed":
            pause_s = max(self._work.think_s, self._work.failure_pause_s if failed else 0.0)
            self._push(at_ns + round(pause_s * 1e9), user)

    def begin(self, name: str, planned_ns: int) -> None:
        """The door asks for a session."""
        self._push(planned_ns, 0, name)

    def close(self) -> None:
        """Start nothing more."""
        self._left = 0

    def window(self, at_ns: int) -> Window:
        """The window that a moment falls into."""
        if at_ns < self._measure_ns:
            return "warmup"
        return "measure" if self.end_ns is None or at_ns < self.end_ns else "drain"

    def users_target(self, now_ns: int) -> int:
        """How many users are meant to be there; 0 where the workload has none, or its time is over."""
        if self._work.model != "closed" or self.window(now_ns) == "drain":
            return 0
        if self._left <= 0:
            return self._running
        if not self._work.ramp_s:
            return self._work.users
        here = 1 + int((now_ns - self._begin_ns) / (self._work.ramp_s * 1e9) * self._work.users)
        return max(0, min(self._work.users, here))

    def _push(self, planned_ns: int, user: int, name: str | None = None) -> None:
        if self.end_ns is None or planned_ns < self.end_ns:
            heappush(self._heap, (planned_ns, user, name))

    def _refill(self) -> None:
        if not self._heap:
            for number, at_ns in self._arrivals:
                self._push(self._begin_ns + at_ns, number)
                break


def clips(size: int, order: Literal["sequential", "shuffle"], seed: int) -> Iterator[tuple[int, int]]:
    """Which clip comes next, and for which time (from 0): round after round, shuffled anew each time if asked."""
    for attempt in count():
        deck = list(range(size))
        if order == "shuffle":
            Random(f"{seed}:clips:{attempt}").shuffle(deck)
        for clip in deck:
            yield clip, attempt


def phase_ms(kind: Literal["spread", "random", "aligned"], session: int, interval_ms: int, seed: int) -> int:
    """A session's place on the chunk clock, in whole slots; `spread` lays any number of sessions out evenly."""
    if kind == "aligned":
        return 0
    if kind == "random":
        return Random(f"{seed}:phase:{session}").randrange(interval_ms)
    return int(session * _GOLDEN % 1.0 * interval_ms)
