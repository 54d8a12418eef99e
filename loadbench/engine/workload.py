"""When sessions start, and with which clips: pure plans, told the time and told when a session has ended.

A plan never waits: a start that comes late keeps its planned moment, and everything is measured from that. So does one
for which no endpoint of the service is free yet (`engine/pool.py`): it waits its turn, and is never skipped.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final, Literal, NamedTuple

from loadbench.engine.pipe import Workload
from loadbench.engine.timeline import Timeline

Window = Literal["warmup", "measure", "drain"]


class Slot(NamedTuple):
    """One start: who, when by the plan, in which window and stage. `name` is set where the door chose the session's id.

    `party` is whose turn it is in a dialogue, 0 or 1; None elsewhere.
    """

    planned_ns: int
    user: int
    window: Window
    stage: str
    party: int | None = None
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
PEOPLE: Final = {"closed", "dialogue"}  # models whose level is users, who come again


class Schedule:
    """The starts of one run, asked with `next_ns` and `pop`, told with `ended`, `answered`, `begin` and `close`.

    Closed: a user comes when the level has risen to them, again `think_s` after the end of each session, and no more
    once the level has fallen below. Dialogue: the same, but the next turn, the other party's, is due `think_s` after
    the answer to the last. Open: by arrivals. External: by `begin`. Nothing starts after `sessions` in total, nor at or
    after the end of the last stage.
    """

    def __init__(self, work: Workload, begin_ns: int, seed: int) -> None:
        self._work, self._begin_ns = work, begin_ns
        self._line = Timeline(work.stages, work.warmup_s)
        self._measure_ns = begin_ns + round(work.warmup_s * 1e9)
        self.end_ns = None if self._line.end_s is None else begin_ns + round(self._line.end_s * 1e9)
        self._left: float = math.inf if work.sessions is None else work.sessions
        self._heap: list[tuple[int, int, str | None]] = []
        self._arrivals: Iterator[tuple[int, int]] = iter(())
        self._running = 0
        self._turns: Counter[int] = Counter()
        self._answered: set[int] = set()
        if work.model in PEOPLE:
            for user in range(math.ceil(self._line.top)):
                self._come(user, begin_ns)
        elif work.model in ARRIVALS:
            moments = self._line.arrivals(ARRIVALS[work.model](Random(f"{seed}:arrivals")))
            self._arrivals = enumerate(round(at_s * 1e9) for at_s in moments)
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
        return not self._heap and (self._work.model in ARRIVALS or (self._work.model in PEOPLE and not self._running))

    @property
    def ramped_ns(self) -> int:
        """When the first stage has come to its level."""
        return self._begin_ns + round(self._line.ramped_s * 1e9)

    def pop(self) -> Slot:
        """The next start, which counts as made."""
        planned_ns, user, name = heappop(self._heap)
        self._left -= 1
        self._running += 1
        self._refill()
        party = None
        if self._work.model == "dialogue":
            party = self._turns[user] % 2
            self._turns[user] += 1
        return Slot(planned_ns, user, self.window(planned_ns), self.stage(planned_ns), party, name)

    def answered(self, user: int, at_ns: int) -> None:
        """The session of `user` has all it waited for: in a dialogue it is the other's turn, once they have thought."""
        if self._work.model == "dialogue":
            self._answered.add(user)
            self._come(user, at_ns + round(self._work.think_s * 1e9))

    def ended(self, user: int, at_ns: int, *, failed: bool = False) -> None:
        """A session of `user` is over; in a closed workload the next one is due when the user has thought."""
        self._running -= 1
        if user in self._answered:
            self._answered.remove(user)
        elif self._work.model in PEOPLE:
            pause_s = max(self._work.think_s, self._work.failure_pause_s if failed else 0.0)
            self._come(user, at_ns + round(pause_s * 1e9))

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

    def stage(self, at_ns: int) -> str:
        """The stage that a moment falls into."""
        return self._line.stage((at_ns - self._begin_ns) / 1e9)

    def users_target(self, now_ns: int) -> int:
        """How many users are meant to be there; 0 where the workload has none, or its time is over."""
        if self._work.model not in PEOPLE or self.window(now_ns) == "drain":
            return 0
        return self._running if self._left <= 0 else self._line.users(max(0, now_ns - self._begin_ns) / 1e9)

    def _come(self, user: int, from_ns: int) -> None:
        """The first moment, from then on, at which the level has room for this user."""
        from_s = (from_ns - self._begin_ns) / 1e9
        for came_s, left_s in self._line.stays(user):
            if left_s > from_s:
                self._push(max(from_ns, self._begin_ns + round(came_s * 1e9)), user)
                return

    def _push(self, planned_ns: int, user: int, name: str | None = None) -> None:
        if self.end_ns is None or planned_ns < self.end_ns:
            heappush(self._heap, (planned_ns, user, name))

    def _refill(self) -> None:
        if not self._heap:
            for number, at_ns in self._arrivals:
                self._push(self._begin_ns + at_ns, number)
                break


def clips(deck: Sequence[int], order: Literal["sequential", "shuffle"], seed: int) -> Iterator[tuple[int, int]]:
    """Which clip comes next, and for which time (from 0): round after round, shuffled anew each time if asked."""
    for attempt in count():
        cards = list(deck)
        if order == "shuffle":
            Random(f"{seed}:clips:{attempt}").shuffle(cards)
        for clip in cards:
            yield clip, attempt


def decks(
    speakers: Sequence[str], order: Literal["sequential", "shuffle"], seed: int, *, dialogue: bool
) -> list[Iterator[tuple[int, int]]]:
    """The clips of each party of a dialogue where the corpus knows just two speakers; else one deck for all.

    `speakers` names each clip's, "" where nobody knows.
    """
    names = list(dict.fromkeys(speakers))
    if not dialogue or len(names) != 2 or "" in names:
        return [clips(range(len(speakers)), order, seed)]
    return [clips([at for at, speaker in enumerate(speakers) if speaker == name], order, seed) for name in names]


def phase_ms(kind: Literal["spread", "random", "aligned"], session: int, interval_ms: int, seed: int) -> int:
    """A session's place on the chunk clock, in whole slots; `spread` lays any number of sessions out evenly."""
    if kind == "aligned":
        return 0
    if kind == "random":
        return Random(f"{seed}:phase:{session}").randrange(interval_ms)
    return int(session * _GOLDEN % 1.0 * interval_ms)
