"""The most sessions that a sender holds: doubling, then halving the gap."""

from collections.abc import Callable
from functools import cache, partial

from benchmarks.arrivals import Pace

LEAST = 10  # sessions: who does not hold these holds none


def most(trial: Callable[[int], Pace], limits_ms: list[float], *, start: int, top: int, steps: int) -> list[int]:
    """For each limit the largest number of sessions that was held, 0 for none, at most `top`; trials are shared.

    A trial that fails is made once more before it counts, unless it fails by far: another program may have been busy.
    """
    tried = cache(trial)
    again = cache(trial)  # a cache of its own

    def held(sessions: int, limit_ms: float) -> bool:
        first = tried(sessions)
        if first.held(limit_ms) or first.rate < 0.98 or first.p99_ms > 4 * limit_ms:
            return first.held(limit_ms)
        return again(sessions).held(limit_ms)

    return [_most(partial(held, limit_ms=limit), start, top, steps) for limit in limits_ms]


def _most(held: Callable[[int], bool], start: int, top: int, steps: int) -> int:
    good, bad = 0, start
    if held(start):
        good = start
        while good < top and held(min(2 * good, top)):
            good = min(2 * good, top)
        bad = min(2 * good, top)
    else:
        while bad > LEAST and not good:
            if held(max(LEAST, bad // 4)):
                good = max(LEAST, bad // 4)
            else:
                bad = max(LEAST, bad // 4)
    if not good or good >= top:
        return good
    for _ in range(steps):
        middle = _round(good, bad)
        if middle in (good, bad):
            break
        good, bad = (middle, bad) if held(middle) else (good, middle)
    return good


def _round(good: int, bad: int) -> int:
    middle = (good + bad) // 2
    return middle if middle < 100 else middle // 50 * 50
