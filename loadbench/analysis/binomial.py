"""The exact binomial: how surely a share of misses lies below or above a limit, from so many misses of so many.

Bounds are those of Clopper and Pearson (1934), each one-sided. They suppose that the trials know nothing of each other;
sessions that queue together do, so whoever uses them repeats what they say.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

CONFIDENCE: Final = 0.95
HALVINGS: Final = 50  # of [0, 1]: the bound is exact to 1e-15


def at_most(misses: int, n: int, share: float) -> float:
    """The probability of `misses` or fewer of `n`, where each misses with probability `share`."""
    return 1.0 if misses >= n else _sum(0, misses, n, share)


def at_least(misses: int, n: int, share: float) -> float:
    """The probability of `misses` or more of `n`."""
    return 1.0 if misses <= 0 else _sum(misses, n, n, share)


@lru_cache(maxsize=4096)
def upper(misses: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The share that is not exceeded with this confidence; 1 where nothing was seen. Of 0 in 59 it is 0.0495."""
    if misses >= n:
        return 1.0
    return _crossing(lambda share: at_most(misses, n, share) <= 1 - confidence)


@lru_cache(maxsize=4096)
def lower(misses: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The share that is reached at least, with this confidence; 0 where nothing was missed."""
    if misses <= 0:
        return 0.0
    return _crossing(lambda share: at_least(misses, n, share) > 1 - confidence)


def least(share: float, confidence: float = CONFIDENCE) -> int:
    """The fewest trials which, with none missed, show a share of at most `share`: 59 for 0.05, 299 for 0.01.

    A share of 0 cannot be shown by any number, and asks for one.
    """
    if not 0 < share < 1:
        return 1
    return math.ceil(math.log(1 - confidence) / math.log1p(-share) - 1e-9)


def _crossing(beyond: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high


def _sum(first: int, last: int, n: int, share: float) -> float:
    if share <= 0:
        return float(first == 0)
    if share >= 1:
        return float(last == n)
    k = np.arange(first, last + 1)
    logs = _log_choose(n)[first : last + 1] + k * math.log(share) + (n - k) * math.log1p(-share)
    return min(1.0, float(np.exp(logs).sum()))


@lru_cache(maxsize=256)
def _log_choose(n: int) -> NDArray[np.float64]:
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    chosen: NDArray[np.float64] = factorials[n] - factorials - factorials[::-1]
    return chosen
