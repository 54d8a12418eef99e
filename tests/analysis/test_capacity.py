"""The search against services whose knee is known, in virtual time, and its words where there is none to be found."""

from collections.abc import Iterable
from functools import partial

import pytest

from loadbench.analysis import evidence
from loadbench.analysis.capacity import Capacity, Run, Search, Span, Step, at_most
from loadbench.analysis.evidence import Counts, Observed
from loadbench.results.slo import Slo
from tests.analysis.queueing import COMPLETE, QUICK, RIGHT, Breaks, drive
from tests.examples import examples

ASKED: dict[Breaks, Slo] = {"waits": QUICK, "refuses": COMPLETE, "errs": RIGHT}
P95 = Slo(metric="final_from_source_end", stat="p95", limit=1.0)


def searching(span: Span, objectives: Iterable[Slo], repeats: int = 1) -> tuple[Search, int]:
    slos = list(objectives)
    least = max(59, *(evidence.least_utterances(slo) for slo in slos))
    weigh = partial(evidence.weigh, objectives=slos, channel="text")
    return Search(span, weigh, lambda _: 4 * least, repeats=repeats, least_utterances=least), least


@pytest.mark.parametrize("breaks", ["waits", "refuses", "errs"])
@pytest.mark.parametrize("slots", [5, 17, 60])
def test_a_planted_knee_is_found_within_one_step_in_at_least_19_of_20_seeds(slots: int, breaks: Breaks) -> None:
    found = []
    seeds = examples(40)
    for seed in range(seeds):
        search, least = searching(Span(1, 128), [ASKED[breaks]])
        drive(search, slots, least, breaks, seed)
        found.append(search.result.value)
    near = sum(value is not None and abs(value - slots) <= 1 for value in found)
    assert near >= 0.95 * seeds, sorted(found, key=lambda value: value or 0)


def test_of_three_objectives_the_one_that_broke_first_is_named_with_its_level() -> None:
    search, least = searching(Span(1, 64), [COMPLETE, QUICK, RIGHT])
    drive(search, 17, least, "errs", seed=3)
    result = search.result
    assert result.value == 17
    assert result.broke is not None
    assert (result.broke.slo, result.broke.level) == ("wer.max", 18)
    assert result.high == 18
    assert (result.at_least, result.limited_by, result.least_utterances) == (False, "service", 299)
    assert result.sentence.startswith("17 users: 18 users did not hold: wer.max: 0.")


# ---- told by hand: a level passes with 0, fails with 30, and is undecided with 3 misses of 60

MISSES = {"pass": 0, "fail": 30, "open": 3}


def told(search: Search, say: dict[float, str] | None = None, *, default: str = "fail") -> Capacity:
    """Each level says its words one after another, the last for ever: "pass pass fail"; "late" is the tester's."""
    times: dict[float, int] = {}
    while (step := search.ask()) is not None:
        words = (say or {}).get(step.level, default).split()
        word = words[min(times.get(step.level, 0), len(words) - 1)]
        times[step.level] = times.get(step.level, 0) + 1
        saw = Observed(60, {P95: Counts(MISSES.get(word, 0), 60)})
        search.tell(Run(step, saw, word != "late", ["chunks left late"] if word == "late" else []))
    return search.result


def made(result: Capacity) -> list[tuple[float, int, int]]:
    return [(point.step.level, point.step.trial, point.step.part) for point in result.curve]


def test_coarse_steps_then_bisection_then_the_last_level_and_the_one_above_once_more() -> None:
    search, _ = searching(Span(1, 64), [P95])
    result = told(search, dict.fromkeys(range(1, 12), "pass"))
    assert [level for level, trial, _ in made(result) if trial == 0] == [1, 2, 4, 8, 16, 12, 10, 11]
    assert made(result)[-2:] == [(11, 1, 1), (12, 1, 1)]
    assert (result.value, result.low, result.high, result.at_least) == (11, 11, 12, False)
    assert [step.number for step in (point.step for point in result.curve)] == list(range(10))
    assert [level.level for level in result.levels] == [1, 2, 4, 8, 10, 11, 12, 16]


def test_a_level_at_which_the_tester_was_late_twice_gives_at_least_the_highest_below() -> None:
    search, _ = searching(Span(5, 40), [P95])
    result = told(search, {5: "pass", 10: "pass", 20: "late", 15: "pass", 17: "pass", 18: "late", 19: "late"})
    assert result.value == 17
    assert result.at_least
    assert result.limited_by == "tester"
    assert result.high is None
    assert result.broke is None
    assert result.sentence.startswith("at least 17 users: limited by the tester at 18 users")
    assert made(result).count((20, 0, 1)) == made(result).count((20, 0, 2)) == 1
    assert (20, 0, 3) not in made(result)
    assert [point.evidence for point in result.curve if point.step.level == 20] == [None, None]


def test_a_tester_that_was_late_once_is_asked_again_and_then_believed() -> None:
    search, _ = searching(Span(1, 4), [P95])
    result = told(search, {1: "pass", 2: "late pass", 4: "late fail", 3: "fail"})
    assert (result.value, result.at_least, result.limited_by) == (2, False, "service")


def test_with_a_late_tester_from_the_first_level_nothing_is_known() -> None:
    search, _ = searching(Span(5, 40), [P95])
    result = told(search, default="late")
    assert (result.value, result.limited_by, result.at_least) == (None, "tester", False)
    assert made(result) == [(5, 0, 1), (5, 0, 2)]
    assert "= " not in result.sentence
    assert result.sentence.startswith("none found: limited by the tester at 5 users")


def test_a_repeat_that_the_tester_spoiled_is_no_repeat() -> None:
    search, _ = searching(Span(1, 4), [P95])
    result = told(search, {1: "pass", 2: "pass", 3: "pass late", 4: "fail"})
    assert (result.value, result.at_least, result.limited_by) == (2, True, "tester")


def test_a_repeat_that_does_not_hold_leads_down_and_widens_the_interval() -> None:
    search, _ = searching(Span(1, 16), [P95])
    says = dict.fromkeys((1, 2, 4, 8), "pass") | {9: "pass", 10: "pass fail", 11: "fail", 12: "fail", 16: "fail"}
    result = told(search, says)
    assert (result.value, result.high) == (9, 11)
    assert result.undecided == [10]
    at_10 = next(level for level in result.levels if level.level == 10)
    assert (at_10.held, at_10.why) == ("undecided", "passed in 1 of 2 trials")
    assert result.sentence == "9 users: 10 users stayed undecided: passed in 1 of 2 trials"


def test_an_undecided_level_gets_more_utterances_up_to_the_most_and_then_does_not_hold() -> None:
    search, _ = searching(Span(1, 4), [P95])
    result = told(search, {1: "pass", 2: "pass", 3: "open", 4: "fail"})
    parts = [part for level, trial, part in made(result) if (level, trial) == (3, 0)]
    assert parts == [1, 2, 3, 4]
    at_3 = next(level for level in result.levels if level.level == 3)
    assert at_3.trials[0].evidence is not None
    assert at_3.trials[0].evidence.utterances == 240
    assert (result.value, result.high, result.undecided) == (2, 4, [3])
    assert result.limited_by == "service"


def test_an_undecided_level_below_one_that_holds_was_bad_luck_and_is_named() -> None:
    search, _ = searching(Span(1, 16), [P95])
    says = {1: "pass", 2: "open", 4: "pass", 8: "pass", 12: "open", 14: "pass", 15: "fail", 16: "fail"}
    result = told(search, says)
    assert (result.value, result.high, result.undecided) == (14, 15, [2, 12])
    assert result.sentence.startswith("14 users: 15 users did not hold")


def test_two_undecided_levels_end_the_way_up() -> None:
    search, _ = searching(Span(1, 16), [P95])
    result = told(search, {1: "pass", 2: "open", 3: "open", 4: "open", 8: "pass"})
    assert 8 not in [level.level for level in result.levels]
    assert (result.value, result.high, result.undecided) == (1, None, [2, 4])
    assert result.limited_by == "service"


def test_more_utterances_can_decide() -> None:
    search, _ = searching(Span(1, 2), [P95])
    result = told(search, {1: "pass", 2: "open pass"})
    assert result.value == 2
    at_2 = next(level for level in result.levels if level.level == 2)
    assert [(trial.held, trial.runs) for trial in at_2.trials] == [("passed", 3), ("passed", 1)]  # 3 misses of 180


def test_a_service_that_holds_everywhere_has_at_least_the_highest_level_asked_for() -> None:
    search, _ = searching(Span(1, 6), [P95])
    result = told(search, default="pass")
    assert made(result) == [(1, 0, 1), (2, 0, 1), (4, 0, 1), (6, 0, 1), (6, 1, 1)]
    assert (result.value, result.at_least, result.limited_by) == (6, True, "range")
    assert result.sentence == "at least 6 users: limited by the range: its highest level held"


def test_a_service_that_does_not_even_hold_one_has_no_capacity_and_a_reason() -> None:
    search, _ = searching(Span(1, 64), [P95])
    result = told(search)
    assert (result.value, result.high, result.at_least) == (None, 1, False)
    assert result.broke is not None
    assert result.sentence.startswith("none found: even 1 user did not hold: final_from_source_end.p95_s: 30 of")


def test_a_lowest_level_that_fails_in_its_repeat_leaves_nothing() -> None:
    search, _ = searching(Span(1, 2), [P95])
    result = told(search, {1: "pass fail", 2: "fail"})
    assert (result.value, result.undecided) == (None, [1])


def test_a_run_that_shows_nothing_is_not_asked_for_for_ever() -> None:
    search, _ = searching(Span(1, 2), [P95])
    while (step := search.ask()) is not None:
        search.tell(Run(step, Observed(0, {})))
    result = search.result
    assert made(result) == [(1, 0, 1), (2, 0, 1)]
    assert (result.value, result.undecided) == (None, [1, 2])
    assert "even 1 user stayed undecided: final_from_source_end.p95_s: nothing was measured" in result.sentence


def test_the_result_so_far_is_at_least_and_unfinished() -> None:
    search, _ = searching(Span(1, 64), [P95])
    for _ in range(3):
        step = search.ask()
        assert step is not None
        search.tell(Run(step, Observed(60, {P95: Counts(0, 60)})))
    assert (search.result.value, search.result.at_least, search.result.limited_by) == (4, True, "unfinished")


def test_a_step_that_nobody_asked_for_is_refused() -> None:
    search, _ = searching(Span(1, 64), [P95])
    with pytest.raises(ValueError, match="nobody asked"):
        search.tell(Run(Step(32, 0, 1, 0, "coarse"), Observed(60, {})))


@pytest.mark.parametrize("knee", [0.7, 1.9, 3.3])
def test_a_rate_is_found_to_its_relative_width(knee: float) -> None:
    span = Span(0.5, 8.0, unit="sessions/s", resolution=0.05)
    search, _ = searching(span, [P95])
    while (step := search.ask()) is not None:
        search.tell(Run(step, Observed(60, {P95: Counts(30 * (step.level > knee), 60)})))
    result = search.result
    assert result.value is not None
    assert result.high is not None
    assert result.value <= knee < result.high <= result.value * 1.06
    assert all(f"{level.level:.3g}" == f"{level.level:g}" for level in result.levels)


@pytest.mark.parametrize("knee", range(65))
def test_every_search_ends_within_the_steps_that_were_announced(knee: int) -> None:
    span = Span(1, 64)
    search, _ = searching(span, [P95], repeats=2)
    result = told(search, dict.fromkeys(range(1, knee + 1), "pass"))
    assert (result.value or 0) == knee
    levels, trials = at_most(span, repeats=2)
    assert len(result.levels) <= levels
    assert len(result.curve) <= trials


def test_a_span_that_cannot_be_searched_says_all_that_is_wrong() -> None:
    problems = Span(4, 2, step=1.0, resolution=0.5).problems
    assert len(problems) == 3
    assert any("--to must be at least --from" in text for text in problems)
    assert any("--step" in text for text in problems)
    assert any("whole users" in text for text in problems)
    assert Span(0.5, 8, unit="sessions/s", resolution=0.1).problems == []
    assert Span(0, 8, unit="sessions/s").problems == ["--from must be above 0, not 0"]
