"""What the times at which messages arrived say about their sender: monotonic nanoseconds, one array a session."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Arrivals = Sequence[NDArray[np.int64]]
SETTLE_NS = 500_000_000  # after the last session's first message, before anything counts
LEAST_NS = 1_000_000_000  # a shorter window says nothing


@dataclass(frozen=True)
class Pace:
    """How well a schedule was kept in a window; `rate` is messages by what should have come, 1.0 for real time.

    The error of a message is how late it came against an even schedule through the earliest message of its session, so
    it is never negative. With no window in which all sessions stream, `rate` is 0 and the errors are infinite.
    """

    rate: float
    p50_ms: float
    p99_ms: float
    from_ns: int
    to_ns: int

    def held(self, limit_ms: float) -> bool:
        """Real time to 1 %, and the 99th percentile of errors below the limit."""
        return self.rate >= 0.99 and self.p99_ms < limit_ms


def steady(arrivals: Arrivals) -> tuple[int, int]:
    """From when to when all sessions stream: a little after the last one began, until the first one ends."""
    if not arrivals:
        return 0, 0
    return max(int(at[0]) for at in arrivals) + SETTLE_NS, min(int(at[-1]) for at in arrivals)


def errors_ns(at: NDArray[np.int64], interval_ns: int) -> NDArray[np.int64]:
    """The error of each message of one session."""
    behind: NDArray[np.int64] = at - interval_ns * np.arange(len(at))
    least: np.int64 = behind.min()
    return behind - least


def pace(arrivals: Arrivals, interval_ns: int, sessions: int) -> Pace:
    """The pace in the steady window, where `sessions` were asked for; those that never came count in the rate."""
    from_ns, to_ns = steady(arrivals)
    if to_ns - from_ns < LEAST_NS:
        return Pace(0.0, float("inf"), float("inf"), from_ns, to_ns)
    within = [errors_ns(at, interval_ns)[(at >= from_ns) & (at < to_ns)] for at in arrivals]
    every = np.concatenate(within) / 1e6
    rate = len(every) * interval_ns / (sessions * (to_ns - from_ns))
    return Pace(rate, float(np.median(every)), float(np.percentile(every, 99)), from_ns, to_ns)


def drift_ms(arrivals: Arrivals, interval_ns: int) -> float:
    """How far behind real time the last message of a session is, by its first one: the median of the sessions."""
    return float(np.median([at[-1] - at[0] - interval_ns * (len(at) - 1) for at in arrivals])) / 1e6


def real_time(arrivals: Arrivals, interval_ns: int) -> float:
    """Media time by wall time from a session's first message to its last: the median of the sessions."""
    return float(np.median([interval_ns * (len(at) - 1) / (at[-1] - at[0]) for at in arrivals if len(at) > 1]))
