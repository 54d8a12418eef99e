"""What a level of load has shown: for each objective, and for all together, passed, failed or undecided.

A percentile is a statement about a share: p95 <= L says that at most 5 % take longer than L. So misses are counted, and
the objective passed where the exact one-sided 95 % bound of their share is within what is allowed, and failed where the
bound from below is beyond it. Between the two there is nothing to say yet, and more utterances are asked for. Each look
at a growing sample spends a little of the 95 %, which is why the level that is reported is measured again from scratch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from loadbench.analysis import binomial
from loadbench.analysis.judge import Judge
from loadbench.analysis.quantile import STATS
from loadbench.results.slo import SCORES, Slo

State = Literal["passed", "failed", "undecided"]
QUALITY: Final = (*SCORES, "erasure")  # over all words: their sample is clips
BOUNDED: Final = ("wer", "score", "erasure")  # those of which an interval is known
RESAMPLES: Final = 2000
LEAST_CLIPS: Final = 2  # one clip says nothing of any other
ENOUGH: Final = 3  # outputs of each clip; beyond them the doubt that is left lies between the clips
ENDS: Final = (2.5, 97.5)  # percentiles of the resampled rates: a 95 % interval


class Counts(NamedTuple):
    """So many misses of so many that were at risk."""

    misses: int = 0
    at_risk: int = 0


class Spoken(NamedTuple):
    """One output: its clip, its errors (S + D + I) and the length of its reference, in units.

    For its erasure: the words that were taken back, and those that stood in the end.
    """

    clip: str
    errors: int
    length: int


Words = Mapping[str, Mapping[str, Sequence[Spoken]]]  # channel -> kind of clips, scored apart -> outputs
Points = Callable[[str, float], float]  # kind of clips, rate -> points, which never rise with the rate


class Observed(NamedTuple):
    """What runs at one level have shown. Adds up; `utterances` are the measured ones, `drafts` are as `words`."""

    utterances: int
    counts: Mapping[Slo, Counts]
    words: Mapping[str, Mapping[str, Sequence[Spoken]]] = {}
    drafts: Mapping[str, Mapping[str, Sequence[Spoken]]] = {}

    def __add__(self, other: object) -> "Observed":
        """Both together: a level that was run twice is one level with more utterances."""
        if not isinstance(other, Observed):
            return NotImplemented
        counts = {
            slo: Counts(*map(sum, zip(self.counts.get(slo, Counts()), other.counts.get(slo, Counts()), strict=True)))
            for slo in {**self.counts, **other.counts}
        }
        words, drafts = _together(self.words, other.words), _together(self.drafts, other.drafts)
        return Observed(self.utterances + other.utterances, counts, words, drafts)


def _together(one: Words, other: Words) -> Words:
    return {
        channel: {
            kind: [*one.get(channel, {}).get(kind, ()), *other.get(channel, {}).get(kind, ())]
            for kind in {**one.get(channel, {}), **other.get(channel, {})}
        }
        for channel in {**one, **other}
    }


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """One objective at one level. `value` is the share of misses, the rate, or the points, between `low` and `high`.

    `allowed` is what `value` is held against. `n` counts what was at risk; of words, outputs. `more` utterances could
    decide it: not where each clip has been heard often enough, and the doubt lies between the clips.
    """

    slo: str
    state: State
    value: float | None
    low: float | None
    high: float | None
    allowed: float
    n: int
    why: str
    more: bool = True


class Evidence(msgspec.Struct, kw_only=True, frozen=True):
    """A level: `state` is failed where any objective failed, passed where all passed.

    `more`: it is undecided, and more utterances could decide it.
    """

    state: State
    more: bool
    utterances: int
    findings: list[Finding]


def allowed(slo: Slo) -> float:
    """The share of misses that an objective allows; 0 for `max` and for a share of 1, which allow none."""
    if slo.metric == "completed":
        return max(0.0, float(1 - Fraction(str(slo.limit))))
    return float(1 - STATS[slo.stat])


def least_utterances(slo: Slo) -> int:
    """The fewest utterances with which an objective can pass, none missed: 59 for a p95, 299 for a p99.

    `max` needs one: it means no miss in the sample, and estimates nothing. So do wer and score, whose sample is clips.
    """
    return 1 if slo.metric in QUALITY else binomial.least(allowed(slo))


def counted(judge: Judge, slo: Slo, channel: str) -> Counts:
    """Misses of one objective, which is none of `QUALITY`, among the measured sessions; `channel` where it names none.

    Of `completed` those that failed, of those that failed or finished: one that was cut was not let to.
    """
    if slo.metric == "completed":
        tally = judge.tally(slo.stage)
        return Counts(tally.count("failed"), tally.count("failed") + tally.count("finished"))
    return Counts(*judge.responses(slo.stage).of(slo.channel or channel, slo.metric).over(slo.limit * 1e9))


def observe(judge: Judge, objectives: Sequence[Slo], channel: str, words: Words | None = None) -> Observed:
    """All that a run says about the objectives; `channel` is the headline."""
    counts = {slo: counted(judge, slo, channel) for slo in objectives if slo.metric not in QUALITY}
    steady = [slo for slo in objectives if slo.metric == "erasure"]
    drafts = {
        name: {"text": [Spoken(*item) for item in judge.drafts(name)]}
        for name in {slo.channel or channel for slo in steady}
        if judge.drafts(name)
    }
    return Observed(judge.responses().utterances, counts, words or {}, drafts)


def weigh(
    seen: Observed, objectives: Iterable[Slo], channel: str, *, points: Points | None = None, seed: int = 0
) -> Evidence:
    """The evidence for and against each objective. The same for the same observations and seed."""
    findings = [
        _spoken(
            slo, (seen.drafts if slo.metric == "erasure" else seen.words).get(slo.channel or channel, {}), points, seed
        )
        if slo.metric in QUALITY
        else _share(slo, seen.counts.get(slo, Counts()))
        for slo in objectives
    ]
    state = _jointly(found.state for found in findings)
    more = state == "undecided" and all(found.more for found in findings if found.state == "undecided")
    return Evidence(state=state, more=more, utterances=seen.utterances, findings=findings)


def resampled(outputs: Sequence[Spoken], seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of the pooled rate, by drawing clips again and again: outputs of one clip err together.

    With few clips it is too narrow (of ten, it holds the truth about nine times in ten). Needs a reference of length.
    """
    clips: dict[str, list[int]] = {}
    for spoken in outputs:
        sums = clips.setdefault(spoken.clip, [0, 0])
        sums[0], sums[1] = sums[0] + spoken.errors, sums[1] + spoken.length
    totals = np.array([clips[clip] for clip in sorted(clips)], dtype=np.float64)
    count = len(totals)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES) @ totals
    drawn = drawn[drawn[:, 1] > 0]
    low, high = np.percentile(drawn[:, 0] / drawn[:, 1], ENDS)
    return float(low), float(high)


def _jointly(states: Iterable[State]) -> State:
    found = set(states)
    return "failed" if "failed" in found else "undecided" if "undecided" in found else "passed"


def _share(slo: Slo, counts: Counts) -> Finding:
    limit, (misses, n) = allowed(slo), counts
    what = "failed" if slo.metric == "completed" else f"took longer than {slo.limit:g} s or failed"
    low, high = binomial.lower(misses, n), binomial.upper(misses, n)
    state: State
    if n == 0:
        state, why = "undecided", "nothing was measured"
    elif limit <= 0:
        state = "failed" if misses else "passed"
        why = f"{misses} of {n} {what}; none may, which speaks of the sample alone"
    else:
        state = "passed" if high <= limit else "failed" if low > limit else "undecided"
        why = f"{misses} of {n} {what}, so {_bound(state, low, high)} of all with 95 % confidence; allowed {limit:.3g}"
    value = misses / n if n else None
    return _finding(slo, state, (value, low if n else None, high if n else None), limit, n, why)


def _bound(state: str, low: float, high: float) -> str:
    known = {"passed": f"at most {high:.3g}", "failed": f"at least {low:.3g}"}
    return known.get(state, f"between {low:.3g} and {high:.3g}")


def _spoken(slo: Slo, kinds: Mapping[str, Sequence[Spoken]], points: Points | None, seed: int) -> Finding:
    """Of clips that are scored apart, the worst: the first that failed, else that is undecided."""
    found = [_kind(slo, kind, kinds[kind], points, seed) for kind in sorted(kinds)]
    if not found:
        return _finding(slo, "undecided", (None, None, None), slo.limit, 0, "no output has a reference")
    order = ("failed", "undecided", "passed")
    return min(found, key=lambda item: order.index(item.state))


def _kind(slo: Slo, kind: str, outputs: Sequence[Spoken], points: Points | None, seed: int) -> Finding:
    n, clips, length = len(outputs), len({spoken.clip for spoken in outputs}), sum(item.length for item in outputs)
    if clips < LEAST_CLIPS or not length or (slo.metric == "score" and points is None):
        why = f"{clips} clips with references say nothing of others; {LEAST_CLIPS} are needed"
        return _finding(slo, "undecided", (None, None, None), slo.limit, n, why)
    low, high = resampled(outputs, seed)
    value = sum(item.errors for item in outputs) / length
    if slo.metric == "score" and points is not None:
        low, value, high = points(kind, high), points(kind, value), points(kind, low)
        state: State = "passed" if low >= slo.limit else "failed" if high < slo.limit else "undecided"
    else:
        state = "passed" if high <= slo.limit else "failed" if low > slo.limit else "undecided"
    why = f"{value:.3g} over {n} outputs of {clips} clips, between {low:.3g} and {high:.3g} with 95 % confidence"
    found = _finding(slo, state, (value, low, high), slo.limit, n, f"{why}; limit {slo.limit:g}")
    return msgspec.structs.replace(found, more=n < ENOUGH * clips)


def _finding(
    slo: Slo, state: State, value: tuple[float | None, float | None, float | None], limit: float, n: int, why: str
) -> Finding:
    return Finding(slo=slo.name, state=state, value=value[0], low=value[1], high=value[2], allowed=limit, n=n, why=why)
