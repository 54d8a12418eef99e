"""Whether the tester itself can be believed, from the engine's seconds and the sessions it tainted.

A late tester and a slow service look the same in a response time. They differ here: chunks that left late, an event
loop that stood still, a kernel that did not run the process. A service that is frozen leaves all of these untouched.
"""

import math
from collections import Counter
from typing import Final

from loadbench.results.record import SessionRecord
from loadbench.results.slo import State, Thresholds, Verdict
from loadbench.results.tick import LATENESS_EDGES_NS, Tick

LEAST_NS: Final = 500_000_000  # of time watched; the start of a process says nothing about a run
MS: Final = 1e6
BUSY: Final = 0.9  # of a second of one core: the loop's thread had no time left


class Health:
    """Judges the tester, second by second. Seconds and sessions of the warm-up do not count."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._limits = thresholds
        self._ticks = self._ended = self._tainted = 0
        self._lateness: Counter[int] = Counter()
        self._starts: Counter[int] = Counter()
        self._lateness_ns = self._blocked_ns = self._gc_max_ns = 0
        self._cpu_ns = self._span_ns = self._run_delay_ns = self._watched_ns = 0
        self._gaps_ns: Counter[int] = Counter()
        self._own: Counter[str] = Counter()
        self._worst: Tick | None = None

    def add(self, event: SessionRecord | Tick) -> None:
        """Take a second or an ended session into account."""
        if isinstance(event, SessionRecord):
            if event.window == "measure":
                self._add_session(event)
        elif event.window != "warmup":
            self._add_tick(event)

    def verdict(self) -> Verdict:
        """As things stand: the state, a sentence for each reason (worst first), and the figures behind them."""
        invalid, degraded = self._invalid(), self._degraded()
        state: State = "INVALID" if invalid else "DEGRADED" if degraded else "VALID"
        late = set(invalid) - set(self._own_failures())
        head = ["generator late, latency not usable"] if late else []
        return Verdict(state=state, reasons=head + invalid + degraded, figures=self.figures())

    def figures(self) -> dict[str, float | None]:
        """Spans in milliseconds, shares of 1; None is unknown. Percentiles of lateness are at most 5 % too high."""
        chunks = self._lateness.total()
        return {
            "loop_gap_max_ms": _ms(max(self._gaps_ns, default=None)),
            "loop_gap_p99_ms": _ms(_percentile(self._gaps_ns, 99)),
            "lateness_mean_ms": self._lateness_ns / chunks / MS if chunks else None,
            "lateness_p50_ms": _ms(_bucket_percentile(self._lateness, 50)),
            "lateness_p95_ms": _ms(_bucket_percentile(self._lateness, 95)),
            "lateness_p99_ms": _ms(_bucket_percentile(self._lateness, 99)),
            "start_lateness_p99_ms": _ms(_bucket_percentile(self._starts, 99)),
            "tainted_share": self._tainted / self._ended if self._ended else None,
            "run_delay_share": self._run_delay_ns / self._watched_ns if self._watched_ns >= LEAST_NS else None,
            "cpu_share": self._cpu_ns / self._span_ns if self._span_ns >= LEAST_NS else None,
            "gc_max_ms": self._gc_max_ns / MS if self._ticks else None,
            "blocked_s": self._blocked_ns / 1e9 if self._ticks else None,
        }

    def _add_session(self, record: SessionRecord) -> None:
        gap = record.lateness.gap_max_ns > self._limits.taint_gap_ms * MS
        self._ended += 1
        self._tainted += record.tainted or gap
        if record.side == "tester":
            self._own[record.outcome] += 1

    def _add_tick(self, tick: Tick) -> None:
        self._ticks += 1
        self._lateness.update(tick.lateness)
        self._starts.update(tick.start_lateness)
        self._lateness_ns += tick.lateness_sum_ns
        self._blocked_ns += tick.blocked_ns
        self._gc_max_ns = max(self._gc_max_ns, tick.gc_max_ns)
        self._cpu_ns += tick.cpu_ns
        self._span_ns += tick.span_ns
        if tick.run_delay_ns is not None:
            self._run_delay_ns += tick.run_delay_ns
            self._watched_ns += tick.span_ns
        self._gaps_ns[tick.loop_gap_ns] += 1
        if self._worst is None or tick.loop_gap_ns > self._worst.loop_gap_ns:
            self._worst = tick

    def _invalid(self) -> list[str]:
        limits, found = self._limits, self.figures()
        gap, share = found["loop_gap_max_ms"], found["tainted_share"]
        reasons = []
        if gap is not None and gap >= limits.invalid_gap_ms:
            reasons.append(
                f"the event loop stood still for {gap:.0f} ms (limit {limits.invalid_gap_ms:g} ms){self._cause()}"
            )
        if share is not None and share > limits.invalid_tainted_share:
            reasons.append(
                f"{self._tainted} of {self._ended} sessions ({share:.1%}) were active while the event loop stood still"
                f" for more than {limits.taint_gap_ms:g} ms (limit {limits.invalid_tainted_share:.1%}){self._cause()}"
            )
        reasons += self._late(limits.invalid_lateness_p99_ms, math.inf)
        return reasons + (self._own_failures() if self._own_share > limits.invalid_tainted_share else [])

    def _degraded(self) -> list[str]:
        limits, delay = self._limits, self.figures()["run_delay_share"]
        reasons = self._late(limits.degraded_lateness_p99_ms, limits.invalid_lateness_p99_ms)
        if delay is not None and delay > limits.degraded_run_delay_share:
            reasons.append(
                f"the tester waited for a processor during {delay:.1%} of the time"
                f" (limit {limits.degraded_run_delay_share:.1%}); cause: processor"
            )
        if self._own_share <= limits.invalid_tainted_share:
            reasons += self._own_failures()
        if self._ended and not self._ticks:
            reasons.append("no second of the engine was recorded, so nothing is known of its lateness")
        return reasons

    def _late(self, limit_ms: float, below_ms: float) -> list[str]:
        """Sentences on lateness above `limit_ms`, as long as it is not above `below_ms`, which has its own."""
        found, gap_ms = self.figures(), self._worst.loop_gap_ns / MS if self._worst else 0.0
        crowd = "; cause: more starts at once than one engine can make (workload.ramp_s spreads them)"
        late = {
            "chunks left": (found["lateness_p99_ms"], self._cause()),
            "sessions started": (found["start_lateness_p99_ms"], crowd if gap_ms < limit_ms else self._cause()),
        }
        return [
            f"{words} late: p99 {value:.1f} ms (limit {limit_ms:g} ms){cause}"
            for words, (value, cause) in late.items()
            if value is not None and limit_ms < value <= below_ms
        ]

    @property
    def _own_share(self) -> float:
        return self._own.total() / self._ended if self._ended else 0.0

    def _own_failures(self) -> list[str]:
        if not self._own:
            return []
        listed = ", ".join(f"{outcome} {count}" for outcome, count in sorted(self._own.items()))
        cause = "; cause: file handles or ports" if "no_resource" in self._own else ""
        return [f"{self._own.total()} of {self._ended} sessions failed by the tester's own doing ({listed}){cause}"]

    def _cause(self) -> str:
        """What the worst second says: of what stands in it, that which explains most."""
        worst = self._worst
        if worst is None:
            return ""
        half = worst.loop_gap_ns / 2
        if worst.gc_max_ns >= half > 0:
            return "; cause: garbage collection"
        if worst.run_delay_ns is not None and worst.run_delay_ns >= half > 0:
            return "; cause: processor (the kernel ran something else)"
        if worst.cpu_ns >= BUSY * worst.span_ns > 0:
            return "; cause: processor (the tester used up its core)"
        return "; cause: blocked loop (a call that did not return, or the process was stopped)"


def _percentile(counts: Counter[int], percent: int) -> int | None:
    """Nearest rank over values with their counts."""
    left = -(-counts.total() * percent // 100)
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    return None


def _bucket_percentile(buckets: Counter[int], percent: int) -> int | None:
    """The upper edge of the bucket in which the rank lies, nanoseconds; of the last one, which has none, its lower."""
    bucket = _percentile(buckets, percent)
    return None if bucket is None else LATENESS_EDGES_NS[min(bucket, len(LATENESS_EDGES_NS) - 1)]


def _ms(span_ns: int | None) -> float | None:
    return None if span_ns is None else span_ns / MS
