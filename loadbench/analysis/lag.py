"""The lag of simultaneous output: how far behind its source a text is, unit by unit, by the field's definitions.

A *unit* is a word, a character or a gloss. `elapsed` says for each when it came, from media zero; `delays` how much of
the source had been sent by then, which is never more than there is. A figure of the delays is blind to what comes after
the source end ("CU"); one of the elapsed times counts all waiting ("CA", computation-aware). Milliseconds throughout.

Every function takes a batch, a row for each output, and gives an array, NaN where the metric is not defined.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PIECE_MS: Final = 300.0  # ATD cuts the source into pieces of this length (SimulEval 1.1.4)
DEGENERATE: Final = 20.0  # percent points: beyond them the policy is suspicious (OmniSTEval 0.1.10)


class Output(NamedTuple):
    """One output: its times, the length of its source (ms), and of its reference in units (None: there is none).

    `cut_ms` is where YAAL stops looking, None: at the source end.
    """

    delays: Sequence[float]
    elapsed: Sequence[float]
    source_ms: float
    reference: int | None = None
    cut_ms: float | None = None


class Batch(NamedTuple):
    """Outputs as arrays: times are rows padded with NaN, `units` their lengths."""

    delays: Floats
    elapsed: Floats
    units: NDArray[np.int64]
    source: Floats
    reference: Floats
    cut: Floats

    @classmethod
    def of(cls, outputs: Iterable[Output]) -> "Batch":
        """A batch of these outputs. One without a reference is held against its own length."""
        rows = list(outputs)
        count = np.array([len(row.delays) for row in rows], dtype=np.int64)
        width = int(count.max(initial=0))
        delays, elapsed = np.full((2, len(rows), width), np.nan)
        for at, row in enumerate(rows):
            delays[at, : len(row.delays)], elapsed[at, : len(row.elapsed)] = row.delays, row.elapsed
        source = np.array([row.source_ms for row in rows], dtype=np.float64)
        reference = np.array([len(row.delays) if row.reference is None else row.reference for row in rows], np.float64)
        cut = np.array([row.source_ms if row.cut_ms is None else row.cut_ms for row in rows], dtype=np.float64)
        return cls(delays, elapsed, count, source, reference, cut)


def average_lagging(batch: Batch, times: Floats) -> Floats:
    """AL (arXiv 1810.08398): behind a system that is done with its reference when the source ends.

    Over the units up to the first that comes at the source end or later. The first time itself where all come later.
    """
    return _lagging(batch, times, batch.reference)


def length_adaptive(batch: Batch, times: Floats) -> Floats:
    """LAAL (arXiv 2204.06028, 2206.05807): as AL, held against the longer of output and reference."""
    return _lagging(batch, times, np.maximum(batch.reference, batch.units))


def average_proportion(batch: Batch, times: Floats) -> Floats:
    """AP (arXiv 1606.02012): the mean share of the source that had gone by; above 1 for what came late or is long."""
    return _over(np.nansum(times, axis=1), np.where(batch.units > 0, batch.source * batch.reference, 0.0))


def differentiable(batch: Batch, times: Floats) -> Floats:
    """DAL (arXiv 1906.05218): behind a system that is done with this output when the source ends, where no unit may
    make up for an earlier one: each lags at least as much as those before it.
    """
    lags = times - _ideal(batch, times, batch.units)
    return _mean(np.maximum.accumulate(lags, axis=1), batch.units)


def token_delay(batch: Batch, times: Floats) -> Floats:
    """ATD (arXiv 2211.13173): from the end of the piece of source that a unit stands for to the unit.

    The n-th unit stands for the n-th piece, but for none that was not yet sent, and none before those that came after
    the units so far. Text has no length; what the elapsed times have beyond the delays is time to compute.
    """
    delays, width = np.where(np.isnan(batch.delays), np.inf, batch.delays), batch.delays.shape[1]
    if not width:
        return np.full(len(delays), np.nan)
    before = np.concatenate((np.zeros((len(delays), 1)), delays[:, :-1]), axis=1)
    first = delays != before
    first[:, 0] = True
    known = np.arange(width) < batch.units[:, None]
    begun = np.maximum.accumulate(np.where(first & known, before, -np.inf), axis=1)  # of the chunk's source
    whole, rest = np.divmod(np.where(known, delays - np.where(known, begun, 0.0), 0.0), PIECE_MS)
    pieces = np.where(known, whole + (rest != 0), 0.0)
    heard = np.cumsum(np.where(first, pieces, 0.0), axis=1)  # pieces sent with this chunk, and before it
    earlier = heard - pieces
    number = np.arange(1, width + 1)
    told = np.maximum.accumulate(np.where(first, number - 1, 0), axis=1)  # units of the chunks before
    stands = np.minimum(number - np.maximum(0.0, told - earlier), heard)
    row = np.arange(len(delays))[:, None] * (heard.max(initial=0.0) + 1)  # rows one behind the other, to search in one
    at = np.searchsorted((heard + row).ravel(), (stands + row).ravel()).reshape(stands.shape)
    start, done = begun.ravel()[at], delays.ravel()[at]
    ends = np.minimum(start + (stands - earlier.ravel()[at]) * PIECE_MS, done)
    waited = np.where(known, times - batch.delays, 0.0)
    spent = np.concatenate((np.zeros((len(delays), 1)), waited[:, :-1]), axis=1)
    shown = waited + np.maximum(0.0, np.maximum.accumulate(np.where(known, delays, 0.0) - spent, axis=1))
    return _mean(shown - np.where(stands > 0, ends, 0.0), batch.units)


def yet_another(batch: Batch, times: Floats) -> Floats:
    """YAAL (arXiv 2509.17349): as LAAL, over the units that come before the source end (LongYAAL: that of the
    recording), up to the first that does not. Not defined where there are none.
    """
    lags = times - _ideal(batch, times, np.maximum(batch.reference, batch.units))
    return _mean(lags, _before(batch, times, batch.cut))


def start_offset(_: Batch, times: Floats) -> Floats:
    """When the first unit came."""
    return times[:, 0] if times.shape[1] else np.full(len(times), np.nan)


def end_offset(batch: Batch, times: Floats) -> Floats:
    """When the last unit came, from the source end."""
    last = np.take_along_axis(times, np.maximum(batch.units - 1, 0)[:, None], axis=1)[:, 0] if times.size else np.nan
    return last - batch.source


def real_time_factor(batch: Batch, times: Floats) -> Floats:
    """RTF as SimulEval has it: when the last unit came, over the length of the source. Of media that is sent in real
    time it is about 1 whatever the service, and says nothing about capacity.
    """
    return _over(end_offset(batch, times) + batch.source, batch.source)


Metric = Callable[[Batch, Floats], Floats]
METRICS: Final[Mapping[str, Metric]] = {
    "al": average_lagging,
    "laal": length_adaptive,
    "yaal": yet_another,
    "dal": differentiable,
    "atd": token_delay,
    "ap": average_proportion,
    "start_offset": start_offset,
    "end_offset": end_offset,
    "rtf": real_time_factor,
}
SHARES: Final = frozenset({"ap", "rtf"})  # of the source; the others are times
LONG: Final = ("yaal", "al", "laal", "ap", "dal")  # those that are told of resegmented recordings


class Degeneracy(NamedTuple):
    """Whether outputs come while the source goes on as evenly as their lag would have it; percent, None: no output.

    `simultaneous` (SWF): units before the source end. `expected` (EFSW): the part of the source that is left behind the
    mean lag. `difference` (DSPTV): expected less simultaneous; beyond 20 on either side something else is going on.
    """

    simultaneous: float | None
    expected: float | None
    difference: float | None
    suspicious: bool


class Sums(NamedTuple):
    """What `degeneracy` needs of outputs; adds up."""

    early: int = 0
    units: int = 0
    left_ms: float = 0.0
    source_ms: float = 0.0

    def __add__(self, other: object) -> "Sums":
        """Both together."""
        if not isinstance(other, Sums):
            return NotImplemented
        return Sums(
            self.early + other.early,
            self.units + other.units,
            self.left_ms + other.left_ms,
            self.source_ms + other.source_ms,
        )


def sums(batch: Batch) -> Sums:
    """The sums of a batch; the source of an output counts where its YAAL is defined."""
    lag = yet_another(batch, batch.delays)
    known = ~np.isnan(lag)
    early = int((batch.delays < batch.source[:, None]).sum())
    left = np.maximum(0.0, batch.source[known] - lag[known])
    return Sums(early, int(batch.units.sum()), float(left.sum()), float(batch.source[known].sum()))


def degeneracy(found: Sums) -> Degeneracy:
    """The check of OmniSTEval, for outputs of single clips."""
    simultaneous = 100 * found.early / found.units if found.units else None
    expected = 100 * found.left_ms / found.source_ms if found.source_ms else None
    if simultaneous is None or expected is None:
        return Degeneracy(simultaneous, expected, None, False)
    return Degeneracy(simultaneous, expected, expected - simultaneous, abs(expected - simultaneous) > DEGENERATE)


def _lagging(batch: Batch, times: Floats, length: Floats) -> Floats:
    upto = np.minimum(_before(batch, times, batch.source) + 1, batch.units)
    found = _mean(times - _ideal(batch, times, length), upto)
    first = start_offset(batch, times)
    return np.where(first > batch.source, first, found)


def _ideal(batch: Batch, times: Floats, length: Floats | NDArray[np.int64]) -> Floats:
    """When each unit would come that waits for nothing, of so many spread evenly over the source."""
    return np.arange(times.shape[1]) * _over(batch.source, length)[:, None]


def _before(batch: Batch, times: Floats, limit: Floats) -> NDArray[np.int64]:
    """How many units come before the first at `limit` or later."""
    late = times >= limit[:, None]
    if not times.shape[1]:
        return batch.units
    return np.where(late.any(axis=1), late.argmax(axis=1).astype(np.int64), batch.units)


def _mean(values: Floats, count: NDArray[np.int64]) -> Floats:
    """Of the first `count` values of each row; NaN for none."""
    kept = np.where(np.arange(values.shape[1]) < count[:, None], values, 0.0)
    return _over(kept.sum(axis=1), count)


def _over(values: Floats, by: Floats | NDArray[np.int64]) -> Floats:
    """A quotient; NaN where there is nothing to divide by."""
    found: Floats = np.divide(values, by, out=np.full(len(values), np.nan), where=by > 0)
    return found
