"""Whether everybody is served alike: response times by language pair and by worker, and the spread across sessions.

A session's own time is the median of its utterances in the headline metric, as an observed value: one that failed
counts as infinite, one that was cut as at least its age.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from loadbench.analysis.population import Population
from loadbench.analysis.quantile import SHARES, rank
from loadbench.analysis.response import Observation, first_metric, medium_of, observations
from loadbench.results.outcome import ending
from loadbench.results.record import ClipFacts, SessionRecord, Utterance
from loadbench.results.run import RunHeader

SPREAD: Final = ("p10", "p50", "p90")
ENDLESS: Final = 1 << 62  # more than any span: one that never answered
NO_LANGUAGE: Final = "unknown"  # of an utterance whose clip is not in the bundle, or a session that had none yet


class Fairness:
    """The measured sessions that were added, by who they were."""

    def __init__(self, header: RunHeader, clips: Mapping[str, ClipFacts]) -> None:
        self._header, self._clips = header, clips
        self._medium = medium_of(header.channel_media, header.headline_channel)
        self._metrics = tuple(dict.fromkeys((first_metric(self._medium), header.headline_metric)))
        self.languages: dict[str, Group] = {}
        self.workers: dict[str, Group] = {}
        self._sessions = Population()
        self._worst: tuple[tuple[int, str], SessionRecord, Observation] | None = None

    def add(self, record: SessionRecord) -> None:
        """Count a session; one that ended before its first utterance as well."""
        header, spans = self._header, []
        for utterance in record.utterances or [_unborn()]:
            channel = utterance.channels.get(header.headline_channel)
            seen = observations(utterance, record, channel, self._medium)
            spans.append(seen[header.headline_metric])
            finished = ending(utterance.outcome or record.outcome) == "finished"
            self._group(self.workers, record.worker).add(seen, finished=finished)
            self._group(self.languages, self._pair(utterance.clip)).add(seen, finished=finished)
        median = middle(spans)
        self._sessions.add(median, finished=ending(record.outcome) == "finished")
        if median.kind != "left_out":
            weight = (ENDLESS if median.span_ns is None else median.span_ns, record.id)
            if self._worst is None or weight > self._worst[0]:
                self._worst = weight, record, median

    @property
    def worst(self) -> SessionRecord | None:
        """The session that waited longest, one that never got its answer before all others."""
        return self._worst and self._worst[1]

    def summary(self) -> dict[str, Any]:
        """As published: p10, p50 and p90 of the sessions' medians, over all that were started.

        `ratio` is p90 to p10, `difference_s` their distance. Both are None where p90 never came or is only a bound, and
        `ratio` as well where p10 is not above zero. `worst` is one session, None without any at risk.
        """
        found = self._sessions.started(SPREAD)
        low_s, high_s = (found[stat].value_s if found[stat].bound == "exact" else None for stat in ("p10", "p90"))
        return {
            "channel": self._header.headline_channel,
            "metric": self._header.headline_metric,
            "measure": "p90 to p10 of the sessions' medians, over all started",
            "sessions": found,
            "ratio": high_s / low_s if high_s is not None and low_s and low_s > 0 else None,
            "difference_s": high_s - low_s if low_s is not None and high_s is not None else None,
            "worst": self._told(),
        }

    def _told(self) -> dict[str, Any] | None:
        if self._worst is None:
            return None
        _, record, median = self._worst
        return {
            "id": record.id,
            "worker": record.worker,
            "stage": record.stage,
            "clips": list(dict.fromkeys(utterance.clip for utterance in record.utterances)),
            "outcome": record.outcome,
            "side": record.side,
            "cause": record.cause,
            "tainted": record.tainted,
            "value_s": None if median.span_ns is None else median.span_ns / 1e9,
            "bound": median.kind,
        }

    def _pair(self, clip: str) -> str:
        facts = self._clips.get(clip)
        return NO_LANGUAGE if facts is None else f"{facts.source_lang} -> {facts.target_lang}"

    def _group(self, groups: dict[str, "Group"], name: str) -> "Group":
        if name not in groups:
            groups[name] = Group(self._metrics)
        return groups[name]


class Group:
    """Utterances that have something in common: `n` of them, and their times on the headline channel."""

    def __init__(self, metrics: Iterable[str]) -> None:
        self.n = 0
        self.populations = {metric: Population() for metric in metrics}

    def add(self, seen: Mapping[str, Observation], *, finished: bool) -> None:
        """Count what one utterance says about each metric."""
        self.n += 1
        for metric, population in self.populations.items():
            population.add(seen[metric], finished=finished)


def middle(seen: Iterable[Observation]) -> Observation:
    """The median of what a session's utterances say: an observed one, by nearest rank. Left out ones do not count."""
    at_risk = [one for one in seen if one.kind != "left_out"]
    if not at_risk:
        return Observation("left_out")
    ordered = sorted(at_risk, key=lambda one: ENDLESS if one.span_ns is None else one.span_ns)
    number = rank(len(ordered), SHARES["p50"])
    found = ordered[number - 1]
    bounded = found.kind == "exact" and any(one.kind == "at_least" for one in ordered[:number])
    return Observation("at_least", found.span_ns) if bounded else found


def _unborn() -> Utterance:
    """What a session is counted as that ended before its first utterance."""
    return Utterance(index=0, clip="", attempt=0, media_ns=0, onset_ns=0, activity_end_ns=0)
