"""The judge: totals, the verdict on the tester, and the SLO, while a run goes on and afterwards.

It is fed events in any order between sessions, and says the same of a bundle as it said of the run. Outcome totals
count sessions, response times count utterances; only sessions of the window `measure` are in response times and SLO.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from loadbench.analysis.health import Health
from loadbench.analysis.population import Responses
from loadbench.analysis.response import first_metric, medium_of
from loadbench.analysis.stability import Draft, draft, erasure
from loadbench.results.outcome import OUTCOMES, ending
from loadbench.results.record import SessionRecord, Started
from loadbench.results.run import RunHeader
from loadbench.results.slo import SCORES, Quantile, Slo, SloResult, Verdict
from loadbench.results.tick import Tick

Quality = Mapping[str, Mapping[str, float]]  # metric (of SCORES) -> channel -> value
NO_DATA: Final = "not met: no data"


class Tally:
    """Where sessions have gone. Started = finished + failed + cut + in flight, always."""

    def __init__(self) -> None:
        self.started = self.reached = 0
        self._open: set[str] = set()
        self._ended: Counter[str] = Counter()
        self._at_risk = 0

    def add(self, event: Started | SessionRecord) -> None:
        """Count a start or an end. An end whose start was lost counts as a start as well."""
        if isinstance(event, Started):
            self.started += 1
            self._open.add(event.id)
            return
        if event.id not in self._open:
            self.started += 1
        self._open.discard(event.id)
        self._ended[event.outcome] += 1
        self._at_risk += _at_risk(event)
        self.reached += any(link.opened_ns is not None or link.status is not None for link in event.connections)

    @property
    def completed_share(self) -> float | None:
        """Of the sessions that could have finished, how many did; None while there is none.

        One that was cut before the end of its media had no chance, and one in flight still has it: neither counts.
        """
        return self._of("finished") / self._at_risk if self._at_risk else None

    def count(self, kind: str) -> int:
        """How many sessions ended as `finished`, `failed` or `cut`."""
        return self._of(kind)

    def totals(self) -> dict[str, Any]:
        """Every outcome is there, also at 0."""
        return {
            "started": self.started,
            "finished": self._of("finished"),
            "failed": self._of("failed"),
            "cut": self._of("cut"),
            "in_flight": self.started - self._ended.total(),
            "ended": {outcome: self._ended[outcome] for outcome in OUTCOMES},
            "reached": self.reached,
            "completed_share": self.completed_share,
        }

    @property
    def sentence(self) -> str:
        """The counts in words."""
        found = self.totals()
        return ", ".join(
            f"{found[name]} {name.replace('_', ' ')}" for name in ("finished", "failed", "cut", "in_flight")
        )

    def _of(self, kind: str) -> int:
        return sum(count for outcome, count in self._ended.items() if ending(outcome) == kind)


class Judge:
    """Judges a run, event by event."""

    def __init__(self, header: RunHeader) -> None:
        self._header = header
        self._channels = list(dict.fromkeys([header.headline_channel, *header.channel_stages]))
        self._all = Tally()
        self._health = Health(header.thresholds)
        self._tallies: dict[str | None, Tally] = {None: Tally()}  # measured; None: all stages together
        self._responses: dict[str | None, Responses] = {None: self._none_yet()}
        self._drafts: dict[str | None, dict[str, list[Draft]]] = {}
        self.windows: dict[str, Tally] = {}

    def add(self, event: Started | SessionRecord | Tick) -> None:
        """Take an event into account."""
        if isinstance(event, Tick):
            self._health.add(event)
            return
        self._all.add(event)
        self.windows.setdefault(event.window, Tally()).add(event)
        if isinstance(event, SessionRecord):
            self._health.add(event)
        if event.window == "measure":
            for stage in (None, event.stage):
                self._measure(stage, event)
            if isinstance(event, SessionRecord):
                self._read(event)

    def totals(self) -> dict[str, Any]:
        """Sessions of all windows, by class and outcome; `reached` are those whose target answered at all."""
        return self._all.totals()

    def verdict(self) -> Verdict:
        """On the tester."""
        return self._health.verdict()

    def slo(self, quality: Quality | None = None) -> list[SloResult]:
        """Each objective of the run. `quality` has what scoring found: {"wer": {channel: value}}; without it no data.

        Percentiles are those of all started utterances: one that failed counts as infinite.
        """
        return [self._judge(slo, quality or {}) for slo in self._header.slo]

    def responses(self, stage: str | None = None) -> Responses:
        """Response times of the measured sessions, of one stage or of all."""
        return self._responses.get(stage) or self._none_yet()

    def tally(self, stage: str | None = None) -> Tally:
        """Where the measured sessions went, of one stage or of all."""
        return self._tallies.get(stage) or Tally()

    def drafts(self, channel: str, stage: str | None = None) -> list[Draft]:
        """How the texts of the measured sessions came to stand, on a channel, of one stage or of all."""
        return self._drafts.get(stage, {}).get(channel, [])

    @property
    def stages(self) -> list[str]:
        """The stages that had measured sessions, in order of appearance."""
        return [stage for stage in self._responses if stage is not None]

    def figures(self) -> dict[str, Any]:
        """What a live view shows: the totals, the verdict, and the headline so far.

        `sessions` as `totals`; `state`, `reasons` and `tester` (its figures) of the verdict; `channel` and `metric` of
        the headline, and `first_metric` of its first output; `first` and `headline`, the times of the two, as {"p50":
        Quantile, "p95": Quantile} over the started utterances; `premature`, a count; `slo`, a list of results.
        """
        channel, metric, verdict = self._header.headline_channel, self._header.headline_metric, self.verdict()
        measured, stats = self.responses(), ("p50", "p95")
        first = first_metric(medium_of(self._header.channel_media, channel))
        return {
            "sessions": self.totals(),
            "state": verdict.state,
            "reasons": verdict.reasons,
            "tester": verdict.figures,
            "channel": channel,
            "metric": metric,
            "first_metric": first,
            "first": measured.of(channel, first).started(stats),
            "headline": measured.of(channel, metric).started(stats),
            "premature": measured.premature.get(channel, 0),
            "slo": self.slo(),
        }

    def _none_yet(self) -> Responses:
        return Responses(self._channels, media=self._header.channel_media)

    def _measure(self, stage: str | None, event: Started | SessionRecord) -> None:
        self._tallies.setdefault(stage, Tally()).add(event)
        if stage not in self._responses:
            self._responses[stage] = self._none_yet()
        if isinstance(event, SessionRecord):
            self._responses[stage].add(event)

    def _read(self, record: SessionRecord) -> None:
        """What was drafted on each channel of the utterances that finished; read once, for its stage and for all."""
        for utterance in record.utterances:
            if ending(utterance.outcome or record.outcome) == "finished":
                for name, channel in utterance.channels.items():
                    if channel.media is not None:
                        continue
                    found = draft(utterance.clip, channel)
                    for stage in (None, record.stage):
                        self._drafts.setdefault(stage, {}).setdefault(name, []).append(found)

    def _judge(self, slo: Slo, quality: Quality) -> SloResult:
        channel = slo.channel or self._header.headline_channel
        if slo.metric == "completed":
            return self._share(slo)
        if slo.metric == "erasure":
            found_share = erasure(self.drafts(channel, slo.stage))
            return _compared(
                slo, found_share, "" if found_share is not None else f"{NO_DATA}: no text stood in the end"
            )
        if slo.metric in SCORES:
            value = quality.get(slo.metric, {}).get(channel)
            return _compared(slo, value, "" if value is not None else f"{NO_DATA}: channel {channel} has no score")
        found = self.responses(slo.stage).of(channel, slo.metric).started((slo.stat,))[slo.stat]
        return self._time(slo, found)

    def _share(self, slo: Slo) -> SloResult:
        tally = self.tally(slo.stage)
        share = tally.completed_share
        missing = self._unmeasured(slo.stage) or f"{NO_DATA}: no session has come to an end ({tally.sentence})"
        return _compared(slo, share, missing if share is None else tally.sentence)

    def _unmeasured(self, stage: str | None) -> str:
        """Why there is no data where sessions were started, but none that is measured; else ""."""
        started = self.totals()["started"]
        if self.tally(stage).started or not started:
            return ""
        if stage is not None and self.tally().started:
            return f"{NO_DATA}: no measured session began in stage {stage}"
        others = ", ".join(f"{other.started} in {name}" for name, other in self.windows.items())
        return f"{NO_DATA}: none of the {started} sessions was measured ({others})"

    def _time(self, slo: Slo, found: Quantile) -> SloResult:
        if found.n == 0:
            return _compared(slo, None, self._unmeasured(slo.stage) or NO_DATA)
        result = _compared(slo, found.value_s, "")
        result.bound = found.bound
        tally = self.tally(slo.stage)
        if found.bound == "never":
            result.why = f"the {slo.stat} falls on one that never answered ({tally.sentence})"
        elif found.bound == "at_least":
            result.met = False
            result.why = f"the {slo.stat} falls on one that was cut: it is at least {found.value_s:.3f} s"
        elif not found.reliable:
            result.why = f"n = {found.n} is too small for a sure {slo.stat}"
        return result


def _compared(slo: Slo, value: float | None, why: str) -> SloResult:
    floor = slo.stat in ("min_share", "min")
    met = value is not None and (value >= slo.limit if floor else value <= slo.limit)
    return SloResult(name=slo.name, met=met, limit=slo.limit, value=value, why=why)


def _at_risk(record: SessionRecord) -> bool:
    """Whether this session could have finished: it did, or failed, or was cut after the end of its media."""
    ends = [utterance.source_end_ns for utterance in record.utterances if utterance.outcome != "ok"]
    return ending(record.outcome) != "cut" or any(end is not None and record.ended_ns > end for end in ends)
