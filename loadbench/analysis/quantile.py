"""Percentiles: observed values by inverted CDF (nearest rank) from raw values, never interpolated, never averaged.

Values are merged raw, so the percentile of two workers is that of all their values together. What failed counts as
infinite, what was cut as at least its age.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from loadbench.results.slo import Quantile

STATS: Final = {
    "p50": Fraction(1, 2),
    "p90": Fraction(9, 10),
    "p95": Fraction(19, 20),
    "p99": Fraction(99, 100),
    "max": Fraction(1),
}
SHARES: Final = {"min": Fraction(0), "p10": Fraction(1, 10)} | STATS  # also where the low end is the bad one
CONFIDENCE: Final = 0.95
Values = NDArray[np.int64]


def rank(n: int, share: Fraction) -> int:
    """The nearest rank, from 1: the smallest k for which k values of n are at least `share` of them."""
    return max(1, math.ceil(share * n))


@lru_cache(maxsize=4096)
def interval(n: int, share: Fraction) -> tuple[int | None, int | None]:
    """Ranks between which the population's quantile lies with 95 % confidence; None where n is too small for one.

    From the binomial distribution: how many of n values lie below the quantile. None at both ends for the minimum and
    the maximum, which speak of the sample and estimate nothing.
    """
    if share in (0, 1):
        return None, None
    p, k = float(share), np.arange(n + 1)
    factorials = np.concatenate(([0.0], np.cumsum(np.log(k[1:]))))  # logarithms
    logs = factorials[n] - factorials - factorials[::-1]
    below = np.cumsum(np.exp(logs + k * math.log(p) + (n - k) * math.log1p(-p)))  # P(at most k of n lie below)
    tail = (1 - CONFIDENCE) / 2
    low = int(np.searchsorted(below, tail, side="right"))  # P(fewer than `low` lie below) <= tail
    high = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    return low if low >= 1 else None, high if high <= n else None


def quantiles(
    exact: Iterable[int], failed: int = 0, cut: Iterable[int] = (), stats: Sequence[str] = tuple(STATS)
) -> dict[str, Quantile]:
    """Quantiles by name of `exact` spans, `failed` ones that count as infinite, and `cut` ones that are lower bounds.

    Spans are nanoseconds, results seconds. `n` is the number of all; an empty population has no value and is `exact`.
    """
    kept, bounds = _sorted(exact), _sorted(cut)
    values = np.sort(np.concatenate((kept, bounds)))
    first_cut = int(np.searchsorted(kept, bounds[0], side="right")) if len(bounds) else None
    return {name: _quantile(values, failed, first_cut, SHARES[name]) for name in stats}


def _sorted(spans: Iterable[int]) -> Values:
    return np.sort(np.array(spans if isinstance(spans, array) else list(spans), dtype=np.int64))


def _quantile(values: Values, failed: int, first_cut: int | None, share: Fraction) -> Quantile:
    """`values` sorted, exact ones and lower bounds together; `first_cut` is how many exact ones are no greater than
    the smallest lower bound. Below that rank nothing can move; above it the true value may be greater.
    """
    n = len(values) + failed
    if n == 0:
        return Quantile(value_s=None, bound="exact", n=0, low_s=None, high_s=None, reliable=False)
    k = rank(n, share)
    low, high = interval(n, share)
    never = k > len(values)
    return Quantile(
        value_s=None if never else _at(values, k),
        bound="never" if never else "exact" if first_cut is None or k <= first_cut else "at_least",
        n=n,
        low_s=_at(values, low),
        high_s=_at(values, high),
        reliable=share in (0, 1) or (low is not None and high is not None),
    )


def _at(values: Values, k: int | None) -> float | None:
    return None if k is None or k > len(values) else int(values[k - 1]) / 1e9


class Durations:
    """Spans that cannot be negative: connecting, readying, lateness. Seconds; every value is kept as it is.

    What is no duration (negative, NaN, infinite) is rejected and counted in `invalid`. `overflow` counts values above
    the nominal top `top_s`: a number to show, the values themselves are in every percentile.
    """

    def __init__(self, top_s: float | None = None) -> None:
        self.invalid = 0
        self.overflow = 0
        self._top_s = math.inf if top_s is None else top_s
        self._values = array("d")

    def add(self, span_s: float) -> None:
        """Keep one span, or count it as invalid."""
        if not (math.isfinite(span_s) and span_s >= 0):
            self.invalid += 1
            return
        self.overflow += span_s > self._top_s
        self._values.append(span_s)

    def add_ns(self, span_ns: int | None) -> None:
        """As `add`, for nanoseconds; None is unknown and not counted."""
        if span_ns is not None:
            self.add(span_ns / 1e9)

    @property
    def n(self) -> int:
        """How many were kept."""
        return len(self._values)

    @property
    def sum_s(self) -> float:
        """Their exact sum, rounded once."""
        return math.fsum(self._values)

    def quantiles(self, stats: Sequence[str] = tuple(STATS)) -> dict[str, Quantile]:
        """Quantiles by name."""
        return quantiles((round(span * 1e9) for span in self._values), stats=stats)

    def summary(self) -> dict[str, Any]:
        """Everything, for a report."""
        counts = {"n": self.n, "invalid": self.invalid, "overflow": self.overflow, "sum_s": self.sum_s}
        return counts | self.quantiles()
