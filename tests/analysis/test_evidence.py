"""Evidence by hand: misses against what is allowed, words by clips, and what does not count."""

import numpy as np
import pytest

from loadbench.analysis.evidence import (
    Counts,
    Evidence,
    Observed,
    Spoken,
    allowed,
    counted,
    least_utterances,
    observe,
    resampled,
    weigh,
)
from loadbench.analysis.judge import Judge
from loadbench.results.record import Channel, SessionRecord, Update
from loadbench.results.slo import Slo
from tests.analysis import records

P95 = Slo(metric="final_from_source_end", stat="p95", limit=2.0)
P99 = Slo(metric="final_from_source_end", stat="p99", limit=2.0)
MAX = Slo(metric="final_from_source_end", stat="max", limit=2.0)
DONE = Slo(metric="completed", stat="min_share", limit=0.99)
ALL = Slo(metric="completed", stat="min_share", limit=1.0)
WER = Slo(metric="wer", stat="max", limit=0.2)
SCORE = Slo(metric="score", stat="min", limit=60.0)
ERASURE = Slo(metric="erasure", stat="max", limit=0.2)


def judged(*found: SessionRecord, slo: Slo = P95) -> Judge:
    judge = Judge(records.header(slo))
    for item in found:
        judge.add(item)
    return judge


def found(slo: Slo, misses: int, n: int) -> Evidence:
    return weigh(Observed(n, {slo: Counts(misses, n)}), [slo], "transcript")


@pytest.mark.parametrize(
    ("slo", "least"), [(P95, 59), (P99, 299), (DONE, 299), (MAX, 1), (ALL, 1), (WER, 1), (SCORE, 1), (ERASURE, 1)]
)
def test_least_utterances(slo: Slo, least: int) -> None:
    assert least_utterances(slo) == least


def test_what_is_allowed_is_exact() -> None:
    assert allowed(DONE) == 0.01
    assert allowed(P95) == 0.05
    assert allowed(MAX) == allowed(ALL) == 0


@pytest.mark.parametrize(
    ("slo", "misses", "n", "state"),
    [
        (P95, 0, 58, "undecided"),  # one too few
        (P95, 0, 59, "passed"),
        (P95, 1, 92, "undecided"),
        (P95, 1, 93, "passed"),
        (P95, 6, 59, "undecided"),  # at least 0.045
        (P95, 7, 59, "failed"),
        (P99, 0, 298, "undecided"),
        (P99, 0, 299, "passed"),
        (DONE, 0, 299, "passed"),
        (DONE, 10, 300, "failed"),
        (DONE, 3, 300, "undecided"),
        (MAX, 0, 1, "passed"),
        (MAX, 1, 1000, "failed"),
        (ALL, 0, 20, "passed"),
        (ALL, 1, 20, "failed"),
        (P95, 0, 0, "undecided"),
        (MAX, 0, 0, "undecided"),
    ],
)
def test_an_objective_is_passed_failed_or_undecided_by_its_misses(slo: Slo, misses: int, n: int, state: str) -> None:
    assert found(slo, misses, n).state == state


def test_the_sentence_has_the_numbers() -> None:
    finding = found(P95, 7, 59).findings[0]
    assert (
        finding.why
        == "7 of 59 took longer than 2 s or failed, so at least 0.057 of all with 95 % confidence; allowed 0.05"
    )
    assert finding.value == pytest.approx(7 / 59)
    assert (finding.n, finding.allowed) == (59, 0.05)
    assert "none may, which speaks of the sample alone" in found(MAX, 1, 9).findings[0].why


def test_jointly_one_failure_fails_and_one_doubt_is_a_doubt() -> None:
    def jointly(late: int, failed: int) -> str:
        return weigh(Observed(300, {P95: Counts(late, 300), DONE: Counts(failed, 300)}), [DONE, P95], "t").state

    assert jointly(0, 0) == "passed"
    assert jointly(0, 3) == "undecided"
    assert jointly(100, 3) == "failed"
    assert jointly(14, 30) == "failed"


def test_who_failed_is_a_miss_and_who_was_cut_is_one_only_above_the_limit() -> None:
    judge = judged(
        records.answered("quick", 0.5),
        records.answered("at the limit", 2.0),
        records.answered("slow", 2.1),
        records.unanswered("never", "no_final", ended=9.0),
        records.record("refused", "rejected"),
        records.unanswered("cut before its end", "time_up", ended=0.5),
        records.unanswered("cut early", "time_up", ended=2.5),
        records.unanswered("cut late", "time_up", ended=3.5),
        records.answered("warm-up", 9.0, window="warmup"),
    )
    assert counted(judge, P95, "transcript") == Counts(misses=4, at_risk=6)
    assert counted(judge, DONE, "transcript") == Counts(misses=2, at_risk=5)
    seen = observe(judge, [P95, DONE, WER], "transcript")
    assert seen.counts == {P95: Counts(4, 6), DONE: Counts(2, 5)}
    assert seen.utterances == 8


def test_two_runs_of_a_level_are_one_level_with_more_utterances() -> None:
    one = Observed(59, {P95: Counts(1, 59)}, {"t": {"speech": [Spoken("a", 1, 6)]}})
    both = one + Observed(50, {P95: Counts(0, 50)}, {"t": {"speech": [Spoken("b", 0, 6)]}})
    assert both.utterances == 109
    assert both.counts == {P95: Counts(1, 109)}
    assert both.words == {"t": {"speech": [Spoken("a", 1, 6), Spoken("b", 0, 6)]}}
    assert weigh(one, [P95], "t").state == "undecided"
    assert weigh(both, [P95], "t").state == "passed"


# ---- words


def spoken(rates: list[float], length: int = 20, times: int = 5) -> list[Spoken]:
    """Each clip with its rate, so many times."""
    return [Spoken(f"c{i}", round(rate * length), length) for i, rate in enumerate(rates) for _ in range(times)]


def heard(slo: Slo, *kinds: list[Spoken], points: bool = False) -> Evidence:
    words = {"transcript": {f"kind {number}": items for number, items in enumerate(kinds)}}
    steps = (lambda _, rate: 100 * (1 - rate)) if points else None
    return weigh(Observed(9, {}, words), [slo], "transcript", points=steps)


def test_a_word_error_rate_is_bounded_over_clips_and_not_over_utterances() -> None:
    assert heard(WER, spoken([0.1] * 10)).state == "passed"
    assert heard(WER, spoken([0.3] * 10)).state == "failed"
    uneven = [0.0] * 8 + [0.9, 0.9]  # 0.18 in all, by two clips of ten
    assert heard(WER, spoken(uneven)).state == "undecided"
    assert heard(WER, spoken(uneven, times=500)).state == "undecided"  # the same ten clips say no more


def test_more_utterances_are_asked_for_only_where_they_could_decide() -> None:
    uneven = [0.0] * 8 + [0.9, 0.9]
    assert heard(WER, spoken(uneven, times=1)).more
    assert not heard(WER, spoken(uneven, times=5)).more  # each clip was heard often enough: the doubt is between them
    assert not heard(WER, spoken([0.1] * 10, times=1)).more  # passed
    assert found(P95, 3, 60).more


def test_errors_are_pooled_over_the_length_of_the_references() -> None:
    mixed = [Spoken("long", 5, 100), Spoken("short", 1, 1)] * 9
    finding = heard(WER, mixed).findings[0]
    assert finding.value == pytest.approx(6 / 101)
    assert finding.low == pytest.approx(0.05)
    assert finding.high == pytest.approx(1.0)


def test_one_clip_says_nothing_of_others() -> None:
    assert heard(WER, spoken([0.0])).state == "undecided"
    assert "2 are needed" in heard(WER, spoken([0.0])).findings[0].why
    assert heard(WER).findings[0].why == "no output has a reference"
    assert heard(WER, [Spoken("a", 1, 0), Spoken("b", 0, 0)]).state == "undecided"


def test_of_clips_that_are_scored_apart_the_worst_decides() -> None:
    assert heard(WER, spoken([0.05] * 9), spoken([0.4] * 9)).state == "failed"
    assert heard(WER, spoken([0.05] * 9), spoken([0.1] * 9)).state == "passed"


def test_points_fall_with_the_rate_so_their_lower_end_is_that_of_the_rate_s_upper() -> None:
    assert heard(SCORE, spoken([0.1] * 9), points=True).state == "passed"
    assert heard(SCORE, spoken([0.5] * 9), points=True).state == "failed"
    finding = heard(SCORE, spoken([0.1, 0.7] * 5), points=True).findings[0]
    assert finding.state == "undecided"
    assert finding.low is not None
    assert finding.high is not None
    assert finding.value == pytest.approx(60)
    assert finding.low < 60 < finding.high
    assert heard(SCORE, spoken([0.1] * 9)).state == "undecided"


def test_the_interval_over_clips_holds_the_truth_about_19_times_in_20() -> None:
    random, inside, times = np.random.default_rng(7), 0, 300
    for number in range(times):
        rates = random.beta(2, 8, size=40)  # the clips' own difficulty; 0.2 in the mean
        outputs = [
            Spoken(f"c{clip}", int(random.binomial(20, rate)), 20) for clip, rate in enumerate(rates) for _ in range(3)
        ]
        low, high = resampled(outputs, seed=number)
        inside += low <= 0.2 <= high
    assert 0.91 <= inside / times <= 0.985


def test_the_same_words_and_seed_give_the_same_interval() -> None:
    outputs = spoken([0.05 * number for number in range(17)])
    assert resampled(outputs, seed=3) == resampled(list(reversed(outputs)), seed=3)
    assert resampled(outputs, seed=3) != resampled(outputs, seed=4)


@pytest.mark.parametrize(
    ("erased", "state"),
    [
        ([0, 0, 0, 0], "passed"),
        ([9, 9, 8, 9], "failed"),
        ([0, 0, 0, 8], "undecided"),  # one clip in four makes the service take back, and there may be more of its kind
    ],
)
def test_how_much_is_taken_back_is_bounded_over_clips(erased: list[int], state: str) -> None:
    drafts = {"transcript": {"text": [Spoken(f"c{at}", count, 10) for at, count in enumerate(erased)]}}
    seen = Observed(4, {}, {}, drafts)
    assert weigh(seen, [ERASURE], "transcript").state == state
    assert weigh(seen + seen, [ERASURE], "transcript").utterances == 8
    assert len((seen + seen).drafts["transcript"]["text"]) == 8


def test_the_drafts_of_a_run_are_observed_where_an_objective_asks_for_them() -> None:
    text = {"transcript": Channel(updates=[Update(1, 0, "red bot", 0), Update(2, 5, "oat", 8)])}
    judge = judged(records.record("s", "ok", records.utterance(channels=text, outcome="ok")), slo=ERASURE)
    assert observe(judge, [ERASURE], "transcript").drafts == {"transcript": {"text": [Spoken("a", 1, 2)]}}
    assert observe(judge, [P95], "transcript").drafts == {}
