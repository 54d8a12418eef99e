"""Who is counted: two populations stand side by side, for each channel and metric.

*Finished*: the utterances that came to their end. *Started*: all of them; one that failed counts as infinite, one that
was cut as at least its age. Where the two tell different stories, the finished ones are survivors.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from loadbench.analysis.quantile import STATS, quantiles
from loadbench.analysis.response import METRICS, Observation, applicable, medium_of, observations, premature
from loadbench.results.outcome import ending
from loadbench.results.record import SessionRecord, Utterance
from loadbench.results.slo import Quantile


class Population:
    """The spans of one metric, raw. `left_out` were not at risk, or the metric does not apply to them."""

    def __init__(self) -> None:
        self.failed = 0
        self.left_out = 0
        self._finished, self._open, self._cut = array("q"), array("q"), array("q")
        self._cache: dict[tuple[str, tuple[str, ...]], dict[str, Quantile]] = {}

    def add(self, seen: Observation, *, finished: bool) -> None:
        """Count one observation; `finished`: its utterance came to its end."""
        self._cache.clear()
        if seen.kind == "never":
            self.failed += 1
        elif seen.span_ns is None:
            self.left_out += 1
        elif seen.kind == "at_least":
            self._cut.append(seen.span_ns)
        else:
            (self._finished if finished else self._open).append(seen.span_ns)

    @property
    def n(self) -> int:
        """How many finished utterances have a value."""
        return len(self._finished)

    @property
    def cut(self) -> int:
        """How many were cut unanswered and count as at least their age."""
        return len(self._cut)

    @property
    def applies(self) -> bool:
        """Whether any utterance had the events of this metric; else all there is to say is how many failed."""
        return bool(self._finished or self._open or self._cut)

    @property
    def negative(self) -> int:
        """How many values of finished utterances are below zero: what they wait for came early."""
        return sum(1 for span in self._finished if span < 0)

    @property
    def mean_s(self) -> float | None:
        """The mean of the finished ones, seconds; None where there are none."""
        return sum(self._finished) / len(self._finished) / 1e9 if self._finished else None

    def over(self, limit_ns: float) -> tuple[int, int]:
        """How many took longer than this, of how many at risk of it: (misses, at risk).

        One that failed never answered: a miss. One that was cut is a miss once its age is above the limit; before that
        nobody knows, and it is not counted.
        """
        spans = np.array(self._finished + self._open, dtype=np.int64)
        cut = int((np.array(self._cut, dtype=np.int64) > limit_ns).sum())
        return self.failed + cut + int((spans > limit_ns).sum()), self.failed + cut + len(spans)

    def finished(self, stats: Sequence[str] = tuple(STATS)) -> dict[str, Quantile]:
        """Quantiles over the finished utterances."""
        return self._kept("finished", tuple(stats))

    def started(self, stats: Sequence[str] = tuple(STATS)) -> dict[str, Quantile]:
        """Quantiles over all that were started and at risk."""
        return self._kept("started", tuple(stats))

    def _kept(self, which: str, stats: tuple[str, ...]) -> dict[str, Quantile]:
        if (which, stats) not in self._cache:
            finished = which == "finished"
            exact = self._finished if finished else self._finished + self._open
            cut = array("q") if finished else self._cut
            self._cache[which, stats] = quantiles(exact, 0 if finished else self.failed, cut, stats)
        return self._cache[which, stats]


class Responses:
    """Every response time of the utterances that were added, by channel and metric.

    `channels` are those that the profile names: an utterance that said nothing on one of them counts there as well.
    `media` holds the medium of those that are no texts.
    """

    def __init__(
        self, channels: Iterable[str], metrics: Iterable[str] = METRICS, media: Mapping[str, str] | None = None
    ) -> None:
        self.utterances = 0
        self._metrics = tuple(metrics)
        self._media = media or {}
        self.premature = dict.fromkeys(channels, 0)
        self._populations = {name: self._empty(name) for name in self.premature}

    def add(self, record: SessionRecord) -> None:
        """Count all utterances of a session; one that ended before its first utterance counts as one."""
        for utterance in record.utterances:
            self.add_utterance(utterance, record)
        if not record.utterances:
            unborn = Utterance(index=0, clip="", attempt=0, media_ns=0, onset_ns=0, activity_end_ns=0)
            self.add_utterance(unborn, record)

    def add_utterance(self, utterance: Utterance, record: SessionRecord) -> None:
        """Count one utterance of a session."""
        self.utterances += 1
        finished = ending(utterance.outcome or record.outcome) == "finished"
        for name in self._populations.keys() | utterance.channels.keys():
            channel = utterance.channels.get(name)
            populations = self._of(name)
            seen = observations(utterance, record, channel, medium_of(self._media, name))
            for metric in populations:
                populations[metric].add(seen[metric], finished=finished)
            if channel is not None:
                self.premature[name] += premature(utterance, channel)

    @property
    def channels(self) -> list[str]:
        """All channels, sorted."""
        return sorted(self._populations)

    def metrics(self, channel: str) -> list[str]:
        """The metrics that there are for a channel."""
        return list(self._populations.get(channel, {}))

    def of(self, channel: str, metric: str) -> Population:
        """The spans of one metric on one channel; empty where there are none."""
        return self._populations.get(channel, {}).get(metric) or Population()

    def _of(self, name: str) -> dict[str, Population]:
        if name not in self._populations:
            self.premature[name] = 0
            self._populations[name] = self._empty(name)
        return self._populations[name]

    def _empty(self, channel: str) -> dict[str, Population]:
        kinds = applicable(medium_of(self._media, channel))
        return {metric: Population() for metric in self._metrics if metric in kinds}
