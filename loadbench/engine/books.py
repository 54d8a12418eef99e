"""What is counted in a run, and its ticks: each holds the difference to the last, so that their sum is the whole."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from loadbench.engine.drive import Driver
from loadbench.engine.health import Collections, Heart, Usage
from loadbench.engine.ledger import fold
from loadbench.engine.pacer import Wheel
from loadbench.engine.pipe import Start
from loadbench.engine.workload import Schedule
from loadbench.readings.machine import Readings
from loadbench.results.tick import Tick
from loadbench.transports.contract import Clock


class Books:
    """Holds the active sessions by id. `started` counts all that ever were. `kinds` names each track's medium."""

    def __init__(self, start: Start, kinds: Sequence[str], wheel: Wheel, heart: Heart, clock: Clock) -> None:
        self.active: dict[str, Driver] = {}
        self.started = 0
        self.collections = Collections()
        self._start, self._kinds, self._wheel, self._heart, self._clock = start, kinds, wheel, heart, clock
        self._usage, self._readings = Usage(), Readings()
        self._since_ns = clock()
        self._ticks = self._told_started = self._told_also = self._media_bytes = 0
        self._round: Iterator[Driver] = iter(())
        self._start_late_ns: array[int] = array("q")
        self._outcomes: Counter[str] = Counter()
        self._past_also = 0  # of the sessions that are over

    def begin(self, at_ns: int) -> None:
        """The first tick counts from here."""
        self._since_ns = at_ns

    def began(self, driver: Driver, late_ns: int) -> None:
        """A session is about to begin, that much later than planned."""
        self.active[driver.role.id] = driver
        self.started += 1
        self._start_late_ns.append(late_ns)

    def ended(self, driver: Driver, outcome: str) -> None:
        """It is over."""
        del self.active[driver.role.id]
        self._outcomes[outcome] += 1
        self._media_bytes += driver.fresh_bytes()
        self._past_also += driver.also_chunks

    def look_round(self, share: float) -> None:
        """Ask that share of the active sessions what they have sent, in turn: all at once would keep chunks waiting.

        A tick's bytes are what has been asked since the last, so they may be a round behind; their sum is exact.
        """
        most = 1 + int(len(self.active) * share)
        asked = list(islice(self._round, most))
        if len(asked) < most:
            self._round = iter(list(self.active.values()))
        self._media_bytes += sum(driver.fresh_bytes() for driver in asked if driver.role.id in self.active)

    def tick(self, now: int, schedule: Schedule, more: dict[str, float]) -> Tick:
        """All since the last one. `schedule` knows what is meant to be; `more` goes beside the machine's readings."""
        span_ns, self._since_ns = max(0, now - self._since_ns), now
        started, self._told_started = self.started - self._told_started, self.started
        outcomes, self._outcomes = dict(self._outcomes), Counter()
        start_late_ns, self._start_late_ns = self._start_late_ns, array("q")
        done = self._wheel.ledger.take(now)
        gap_ns, gaps = self._heart.take(self._start.thresholds.taint_gap_ms * 1e6)
        gc_ns, gc_max_ns = self.collections.take()
        media_bytes, self._media_bytes = self._media_bytes, 0
        self._ticks += 1
        return Tick(
            worker=self._start.worker,
            seq=self._ticks - 1,
            at_ns=now,
            span_ns=span_ns,
            active=len(self.active),
            users_target=schedule.users_target(now),
            stage=schedule.stage(now),
            window=schedule.window(now),
            started=started,
            ended=outcomes,
            chunks=self._chunks(done.chunks),
            media_bytes=media_bytes,
            messages=done.messages,
            lateness=done.lateness,
            lateness_sum_ns=done.lateness_sum_ns,
            blocked_ns=done.blocked_ns,
            start_lateness=fold(start_late_ns),
            loop_gap_ns=gap_ns,
            gaps=gaps,
            gc_ns=gc_ns,
            gc_max_ns=gc_max_ns,
            readings=self._readings.take() | more,
            **self._usage.take(),
        )

    def _chunks(self, sent: int) -> dict[str, int]:
        """How many of those were of which kind."""
        if len(self._kinds) == 1:
            return {self._kinds[0]: sent} if sent else {}
        now = self._past_also + sum(driver.also_chunks for driver in self.active.values())
        also, self._told_also = now - self._told_also, now
        counts = zip(self._kinds, (sent - also, also), strict=True)
        return {kind: count for kind, count in counts if count}
