"""The lag of a run: of every measured utterance that finished, by channel, over all and by stage.

An output is held against the reference of its channel (`results.reference`), in its unit. A unit has come when it was
stable (`words`): from the plan's media zero to the receive time of the message that made it so. Who is not in a number
is counted beside it, with the reason.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadbench.analysis import lag, words
from loadbench.analysis.alignment import segments_by_error, segments_by_likeness
from loadbench.analysis.quantile import STATS, quantiles
from loadbench.analysis.slope import Slope, Trend, heard
from loadbench.results.outcome import ending
from loadbench.results.record import ClipFacts, SessionRecord, Utterance
from loadbench.results.reference import REFERENCES, Kind, Unit, references, sentences, tokens, unit_in
from loadbench.results.run import RunHeader

BURST_MS: Final = 500.0  # what comes so shortly before the source end, or after it, came when all was said
SHORT: Final = ("p50", "p95")
CELLS: Final = 500_000  # units that are worked on at once
NEVER: Final = -(1 << 62)  # in place of the time of a unit that was never final: no lag is so small

Floats = NDArray[np.float64]
Values = Mapping[tuple[str, str], Floats]  # (metric, "cu" or "ca") -> a value for each output


class Emitted(NamedTuple):
    """What one utterance showed on one channel, and what it is held against. Points on the run clock."""

    kind: Kind
    unit: Unit
    units: words.Units
    zero_ns: int
    source_ns: int
    reference: tuple[str, ...] | None

    def output(self) -> lag.Output:
        """As the metrics of lag take it: elapsed from media zero, delays no more than the source is long."""
        source_ms = self.source_ns / 1e6
        elapsed = [(at_ns - self.zero_ns) / 1e6 for at_ns in self.units.stable_ns]
        length = None if self.reference is None else len(self.reference)
        return lag.Output([min(at, source_ms) for at in elapsed], elapsed, source_ms, length)


class Sentences(NamedTuple):
    """The sentences of one recording that something was said in, each with what is its own, and how many had none."""

    outputs: list[lag.Output]
    empty: int


def text_channels(header: RunHeader) -> dict[str, str]:
    """The channels of texts, with the stage of each in the service: recognition or translation."""
    return {name: stage for name, stage in header.channel_stages.items() if stage != "media"}


def emitted(
    record: SessionRecord, utterance: Utterance, channel: str, stage: str, clips: Mapping[str, ClipFacts]
) -> Emitted | str:
    """What an utterance showed on a channel, or in a word why it has no lag: `failed` or `cut` before its end,
    `no_clip` (nobody knows its unit), `no_media` was sent, or `no_output` came.
    """
    kind_of_end = ending(utterance.outcome or record.outcome)
    facts = clips.get(utterance.clip)
    kind = REFERENCES.get((stage, facts.direction)) if facts else None
    if kind_of_end != "finished":
        return kind_of_end
    if facts is None or kind is None:
        return "no_clip"
    if utterance.media_zero_ns is None or utterance.media_ns <= 0:
        return "no_media"
    unit, shown = unit_in(facts, kind), utterance.channels.get(channel)
    found = None if shown is None else words.units(shown, unit)
    if found is None or not found.texts:
        return "no_output"
    right = references(facts, kind)
    reference = tuple(tokens(right[0], unit)) if right else None
    return Emitted(kind, unit, found, utterance.media_zero_ns, utterance.media_ns, reference)


def by_sentence(found: Emitted, facts: ClipFacts) -> tuple[Sentences, Sentences] | None:
    """A long recording cut into its sentences, by mWERSegmenter and by SoftSegmenter; None where it has none.

    Times count from the start of the sentence. The recording ends with its last sentence (OmniSTEval 0.1.10).
    """
    parts = sentences(facts, found.kind)
    if len(parts) < 2:
        return None
    right = [tokens(text, found.unit) for _, text in parts]
    whole = found.output()
    # To the nanosecond, as the source length is: what comes at the very end must not seem to come before it.
    end_ms = max(round((part.offset + part.duration) * 1e9) for part, _ in parts) / 1e6

    def cut(owners: Sequence[int]) -> Sentences:
        """The outputs of the sentences that own these units."""
        own: list[list[int]] = [[] for _ in parts]
        for at, owner in enumerate(owners):
            own[owner].append(at)
        outputs = []
        for number, (mine, (part, _)) in enumerate(zip(own, parts, strict=True)):
            zero = part.offset * 1000
            delays, elapsed = ([times[at] - zero for at in mine] for times in (whole.delays, whole.elapsed))
            outputs.append(lag.Output(delays, elapsed, part.duration * 1000, len(right[number]), end_ms - zero))
        kept = [output for output in outputs if output.delays]
        return Sentences(kept, len(outputs) - len(kept))

    texts = found.units.texts
    return cut(segments_by_error(right, texts)), cut(segments_by_likeness(right, texts))


class Ragged:
    """Outputs of any length, kept flat, each with the number of its stage."""

    def __init__(self) -> None:
        self._times = array("d"), array("d")
        self._facts = array("d"), array("d"), array("d"), array("d")
        self._stages = array("i")

    def add(self, output: lag.Output, stage: int) -> None:
        """Keep one that has units."""
        count, cut = len(output.delays), output.source_ms if output.cut_ms is None else output.cut_ms
        self._times[0].extend(output.delays)
        self._times[1].extend(output.elapsed)
        reference = count if output.reference is None else output.reference
        for facts, value in zip(self._facts, (count, output.source_ms, reference, cut), strict=True):
            facts.append(value)
        self._stages.append(stage)

    @property
    def stages(self) -> NDArray[np.int32]:
        """The number of each output's stage."""
        return np.array(self._stages, dtype=np.int32)

    def batches(self) -> Iterator[tuple[NDArray[np.int64], lag.Batch]]:
        """All outputs, those of about the same length together, with the numbers of their rows."""
        count, source, reference, cut = map(np.array, self._facts)
        flat, count = [np.array(times) for times in self._times], count.astype(np.int64)
        starts = np.cumsum(count) - count
        rows, begin = np.argsort(-count, kind="stable"), 0
        while begin < len(rows):
            columns = np.arange(int(count[rows[begin]]))
            chosen = rows[begin : begin + max(1, CELLS // len(columns))]
            begin += len(chosen)
            known = columns < count[chosen][:, None]
            places = np.where(known, starts[chosen][:, None] + columns, 0)
            delays, elapsed = (np.where(known, times[places], np.nan) for times in flat)
            yield chosen, lag.Batch(delays, elapsed, count[chosen], source[chosen], reference[chosen], cut[chosen])

    def values(self, metrics: Sequence[str]) -> Values:
        """The value of each output in each of these metrics."""
        found = {(name, which): np.full(len(self._stages), np.nan) for name in metrics for which in ("cu", "ca")}
        for rows, batch in self.batches():
            for name in metrics:
                found[name, "cu"][rows] = lag.METRICS[name](batch, batch.delays)
                found[name, "ca"][rows] = lag.METRICS[name](batch, batch.elapsed)
        return found


class Heard:
    """All that there is of one channel."""

    def __init__(self) -> None:
        self.short, self.by_error, self.by_likeness = Ragged(), Ragged(), Ragged()
        self.excluded: Counter[str] = Counter()
        self.units: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.words = {state: array("q") for state in words.STATES}
        self.word_stages = array("i")
        self.trend = Trend()
        self._sources: dict[tuple[str, Kind, Unit], list[words.Spoken]] = {}  # of each clip, made once

    def add(self, found: Emitted, facts: ClipFacts, utterance: Utterance, stage: int) -> None:
        """Count one utterance that showed something."""
        self.units[found.unit] += 1
        self.counts["without_reference"] += found.reference is None
        self.short.add(found.output(), stage)
        if (parts := by_sentence(found, facts)) is not None:
            self.counts["recordings"] += 1
            for kept, part, name in zip((self.by_error, self.by_likeness), parts, ("error", "likeness"), strict=True):
                self.counts[f"empty_{name}"] += part.empty
                for output in part.outputs:
                    kept.add(output, stage)
        self._follow(self._spoken(found, facts, stage), utterance, stage)

    def _spoken(self, found: Emitted, facts: ClipFacts, stage: int) -> words.Lags | None:
        """The lag of its words, where the corpus has their times."""
        key = facts.id, found.kind, found.unit
        if key not in self._sources:
            self._sources[key] = words.spoken(facts, found.kind, found.unit)
        source = self._sources[key]
        if not source:
            self.counts["without_times"] += 1
            return None
        lags = words.lags(found.units, source, found.zero_ns)
        self.counts.update(matched=len(lags.ends_ns), spare=lags.spare, missed=lags.missed)
        self.words["shown"].extend(lags.shown_ns)
        self.words["stable"].extend(lags.stable_ns)
        self.words["final"].extend(NEVER if span is None else span for span in lags.final_ns)
        self.word_stages.extend([stage] * len(lags.ends_ns))
        return lags

    def _follow(self, lags: words.Lags | None, utterance: Utterance, stage: int) -> None:
        places, spans = heard(utterance)
        name = "clock" if places else "words" if lags is not None else "nothing"
        self.counts[f"by_{name}"] += 1
        if not places and lags is not None:
            places, spans = lags.ends_ns, lags.stable_ns
        if name != "nothing":
            self.trend.add(places, spans, stage)


class Lagging:
    """Takes sessions in any order. `clips` are the bundle's."""

    def __init__(self, header: RunHeader, clips: Mapping[str, ClipFacts]) -> None:
        self._clips = clips
        self._numbers: dict[str, int] = {}
        self._channels = text_channels(header)
        self._heard = {name: Heard() for name in sorted(self._channels)}

    def add(self, record: SessionRecord) -> None:
        """Count a session; not one of the warm-up. One that ended before its first utterance counts as one."""
        if record.window != "measure":
            return
        number = self._numbers.setdefault(record.stage, len(self._numbers))
        for name, part in self._heard.items():
            if not record.utterances:
                part.excluded[ending(record.outcome)] += 1
            for utterance in record.utterances:
                found = emitted(record, utterance, name, self._channels[name], self._clips)
                if isinstance(found, str):
                    part.excluded[found] += 1
                else:
                    part.add(found, self._clips[utterance.clip], utterance, number)

    def summary(self) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """As published: of all, by channel; and in short, by stage and channel."""
        whole: dict[str, Any] = {}
        stages: dict[str, dict[str, Any]] = {stage: {} for stage in self._numbers}
        for name, part in self._heard.items():
            values = part.short.values(list(lag.METRICS))
            whole[name] = _whole(part, values)
            for stage, number in self._numbers.items():
                stages[stage][name] = _short(part, values, number)
        return whole, stages


def _whole(part: Heard, values: Values) -> dict[str, Any]:
    """`n` utterances are in the metrics, `excluded` ones are not; each metric may leave out more."""
    counts, long = part.counts, {}
    if counts["recordings"]:
        stream = part.by_error.values(["laal"])
        soft = part.by_likeness.values(lag.LONG)
        long = {"stream_laal": _both("laal", stream)} | {f"long_{name}": _both(name, soft) for name in lag.LONG}
    sums, late = lag.Sums(), Counter[str]()
    for _, batch in part.short.batches():
        sums += lag.sums(batch)
        burst = batch.elapsed >= batch.source[:, None] - BURST_MS
        every = burst.sum(axis=1) == batch.units
        late.update(units=int(batch.units.sum()), late=int(burst.sum()), utterances=int(every.sum()))
    return {
        "n": len(part.short.stages),
        "excluded": dict(part.excluded),
        "units": dict(part.units),
        "without_reference": counts["without_reference"],
        "metrics": {name: _both(name, values) for name in lag.METRICS},
        "degeneracy": lag.degeneracy(sums)._asdict(),
        "burst": {
            "within_s": BURST_MS / 1000,
            "units": late["units"],
            "late": late["late"],
            "share": late["late"] / late["units"] if late["units"] else None,
            "utterances": late["utterances"],
        },
        "words": {name: counts[name] for name in ("matched", "spare", "missed", "without_times")}
        | {state: _spans(_lags_of(part, state), tuple(STATS)) for state in words.STATES},
        "slope": _trend(part.trend.slope())
        | {f"by_{name}": counts[f"by_{name}"] for name in ("clock", "words", "nothing")},
        "long": {
            "recordings": counts["recordings"],
            "empty": {name: counts[f"empty_{name}"] for name in ("error", "likeness")},
            "metrics": long,
        },
    }


def _short(part: Heard, values: Values, stage: int) -> dict[str, Any]:
    mine = part.short.stages == stage
    return {
        "n": int(mine.sum()),
        "metrics": {
            name: _both(name, {key: found[mine] for key, found in values.items() if key[0] == name}, SHORT)
            for name in lag.METRICS
        },
        "words": {state: _spans(_lags_of(part, state, stage), SHORT) for state in words.STATES},
        "slope": _trend(part.trend.slope(stage)),
    }


def _lags_of(part: Heard, state: str, stage: int | None = None) -> Floats:
    """The lags of all words, or of one stage's, in milliseconds; NaN for one that never came to this state."""
    spans = np.array(part.words[state], dtype=np.int64)
    chosen = spans if stage is None else spans[np.array(part.word_stages, dtype=np.int32) == stage]
    return np.where(chosen == NEVER, np.nan, chosen / 1e6)


def _trend(found: Slope) -> dict[str, Any]:
    return found._asdict() | {"falling_behind": found.falling_behind}


def _both(name: str, values: Values, stats: Sequence[str] = tuple(STATS)) -> dict[str, Any]:
    """Of the delays ("cu") and of the elapsed times ("ca")."""
    tell = _ratios if name in lag.SHARES else _spans
    return {which: tell(values[name, which], stats) for which in ("cu", "ca")}


def _spans(found: Floats, stats: Sequence[str]) -> dict[str, Any]:
    """Milliseconds as seconds. `undefined` ones have no such value: all of it came after the end."""
    known = found[~np.isnan(found)]
    mean_s = float(known.mean()) / 1000 if len(known) else None
    spans = array("q", np.rint(known * 1e6).astype(np.int64).tobytes())
    return {"n": len(known), "undefined": len(found) - len(known), "mean_s": mean_s, **quantiles(spans, stats=stats)}


def _ratios(found: Floats, stats: Sequence[str]) -> dict[str, Any]:
    """As `_spans`, of numbers without a unit: `mean`, `value`, `low`, `high`."""
    told = _spans(found * 1000, stats)
    plain = {"n": told["n"], "undefined": told["undefined"], "mean": told["mean_s"]}
    for stat in stats:
        each = told[stat]
        plain[stat] = {"value": each.value_s, "bound": each.bound, "n": each.n, "reliable": each.reliable}
        plain[stat] |= {"low": each.low_s, "high": each.high_s}
    return plain
