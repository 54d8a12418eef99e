"""Whether a service falls behind while it listens: how its lag grows with media time.

A point is a place in the media and how long after its moment the service was through with it: of the service's own
media clock where it has one, else the end of a spoken word and when its unit stood. The slope is that of least squares
within utterances, each with a lag of its own to begin with: 0.25 is a second more for every four of media, which is
what a service has that hears at four fifths of real time. After the source end the lag counts on as before.
"""

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadbench.results.record import Utterance

Z: Final = 1.959963984540054  # 95 % of a normal distribution lie within so many deviations
LEAST_UTTERANCES: Final = 10  # from here on the interval is of how utterances differ, not of their points
LEAST_POINTS: Final = 3
STEADY: Final = 0.005  # 18 s in an hour; of a hundred thousand outputs any slope at all is beyond doubt


class Slope(NamedTuple):
    """Seconds of lag for each second of media, with its 95 % interval; None where nobody can tell.

    Of `utterances` with `points` in all; `few` more had fewer than three points, or all at one place.
    """

    value: float | None
    low: float | None
    high: float | None
    utterances: int
    points: int
    few: int

    @property
    def falling_behind(self) -> bool:
        """Whether the lag grows, beyond doubt and by enough to matter."""
        return self.low is not None and self.low > STEADY


class Trend:
    """The points of many utterances, flat, each utterance with the number of its stage."""

    def __init__(self) -> None:
        self._places, self._lags = array("q"), array("q")
        self._counts, self._stages = array("q"), array("i")

    def add(self, places_ns: Sequence[int], lags_ns: Sequence[int], stage: int) -> None:
        """Count one utterance: places in the media, and the lag at each."""
        self._places.extend(places_ns)
        self._lags.extend(lags_ns)
        self._counts.append(len(places_ns))
        self._stages.append(stage)

    def slope(self, stage: int | None = None) -> Slope:
        """Over the utterances of one stage, or of all.

        Points that came in one message err together, so of fewer than ten utterances the interval is rather narrow.
        """
        count, stages = np.array(self._counts, dtype=np.int64), np.array(self._stages, dtype=np.int32)
        chosen = np.ones(len(count), dtype=bool) if stage is None else stages == stage
        owner = np.repeat(np.arange(len(count)), count)
        x, y = (_apart(np.array(part, dtype=np.int64) / 1e9, owner, count) for part in (self._places, self._lags))
        xx, xy, yy = (_totals(part, owner, count) for part in (x * x, x * y, y * y))
        known = chosen & (count >= LEAST_POINTS) & (xx > 0)
        few = int((chosen & ~known).sum())
        return _slope(count[known], xx[known], xy[known], float(yy[known].sum()), few)


def _apart(values: NDArray[np.float64], owner: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each value less the mean of its utterance's."""
    return np.subtract(values, (_totals(values, owner, count) / np.maximum(count, 1))[owner])


def _totals(values: NDArray[np.float64], owner: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.bincount(owner, values, len(count)).astype(np.float64)


def _slope(count: NDArray[np.int64], xx: NDArray[np.float64], xy: NDArray[np.float64], yy: float, few: int) -> Slope:
    """From the sums of squares and products of each utterance."""
    points, utterances = int(count.sum()), len(count)
    if not utterances:
        return Slope(None, None, None, 0, 0, few)
    whole = float(xx.sum())
    value = float(xy.sum()) / whole
    if utterances >= LEAST_UTTERANCES:
        free = utterances - 1
        error = float(((xy - value * xx) ** 2).sum() * utterances / free) ** 0.5 / whole
    else:
        free = points - utterances - 1
        error = (max(0.0, yy - value * float(xy.sum())) / free / whole) ** 0.5
    margin = student(free) * error
    return Slope(value, value - margin, value + margin, utterances, points, few)


def heard(utterance: Utterance) -> tuple[list[int], list[int]]:
    """Places and lags by the service's own media clock: how far it said to have heard, else how far it is final."""
    zero = utterance.media_zero_ns
    if zero is None:
        return [], []
    said = [
        (row.at_ns - zero, 1_000_000 * ms)
        for row in utterance.clock
        if (ms := row.final_ms if row.processed_ms is None else row.processed_ms) is not None
    ]
    return [place for _, place in said], [at_ns - place for at_ns, place in said]


def student(free: int) -> float:
    """How many deviations hold 95 % of Student's distribution with so many degrees of freedom.

    By the expansion of Cornish and Fisher: within 1 % from three on; exact values for one and two.
    """
    if free <= 2:
        return (12.706204736, 4.302652730)[max(free, 1) - 1]
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return Z + sum(term / float(free) ** power for power, term in enumerate(terms, 1))
