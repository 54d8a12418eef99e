"""The judge: totals that always add up, and objectives that are not met by silence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.analysis.judge import Judge
from loadbench.results.outcome import OUTCOMES
from loadbench.results.record import Connection, SessionRecord, Started
from loadbench.results.slo import Slo, SloResult
from loadbench.results.tick import Tick
from tests.analysis.records import answered, header, record, started, tick, unanswered, utterance

P95 = Slo(metric="final_from_source_end", stat="p95", limit=2.0)
COMPLETED = Slo(metric="completed", stat="min_share", limit=0.99)


def judged(*events: Started | SessionRecord | Tick, slo: tuple[Slo, ...] = (COMPLETED, P95), **changes) -> Judge:
    judge = Judge(header(*slo, **changes))
    for event in events:
        if isinstance(event, SessionRecord):
            judge.add(started(event.id, window=event.window, stage=event.stage))
        judge.add(event)
    return judge


def results(judge: Judge, **quality) -> dict[str, SloResult]:
    return {result.name: result for result in judge.slo(quality)}


def adds_up(totals: dict) -> bool:
    classes = totals["finished"] + totals["failed"] + totals["cut"]
    return totals["started"] == classes + totals["in_flight"] and classes == sum(totals["ended"].values())


def test_sessions_still_running_when_time_is_up_are_counted_and_bound_the_percentile() -> None:
    judge = judged(
        *(answered(f"ok{k}", 0.2) for k in range(7)),
        *(unanswered(f"cut{k}", "time_up", ended=5.0) for k in range(3)),
    )
    totals = judge.totals()
    assert (totals["started"], totals["finished"], totals["failed"], totals["cut"]) == (10, 7, 0, 3)
    assert adds_up(totals)
    p95 = results(judge)["final_from_source_end.p95_s"]
    assert (p95.bound, p95.value, p95.met) == ("at_least", 4.0, False)
    assert totals["completed_share"] == 0.7


def test_with_time_to_finish_they_are_all_ok() -> None:
    judge = judged(*(answered(f"ok{k}", 0.2) for k in range(7)), *(answered(f"slow{k}", 8.0) for k in range(3)))
    assert judge.totals()["finished"] == 10
    assert judge.responses().of("transcript", P95.metric).finished()["max"].value_s == 8.0
    assert not results(judge)["final_from_source_end.p95_s"].met


def test_four_fast_survivors_of_twenty_do_not_meet_an_objective() -> None:
    judge = judged(
        *(answered(f"ok{k}", 0.2) for k in range(4)),
        *(unanswered(f"bad{k}", "target_error", ended=4) for k in range(16)),
    )
    found = results(judge)
    assert judge.totals()["completed_share"] == 0.2
    assert not found["completed.min_share"].met
    assert "4 finished, 16 failed" in found["completed.min_share"].why
    p95 = found["final_from_source_end.p95_s"]
    assert (p95.met, p95.value, p95.bound) == (False, None, "never")
    assert judge.totals()["ended"]["target_error"] == 16


def test_finals_that_never_came_fail_the_objective_without_a_value() -> None:
    found = results(judged(*(unanswered(f"s{k}", "no_final", ended=5.0) for k in range(5))))
    assert [result.met for result in found.values()] == [False, False]
    assert found["final_from_source_end.p95_s"].value is None


def test_no_data_is_not_met() -> None:
    wer = Slo(metric="wer", stat="max", limit=0.4)
    found = results(judged(tick(), slo=(COMPLETED, P95, wer)))
    assert [result.met for result in found.values()] == [False, False, False]
    assert all(result.value is None and result.why.startswith("not met: no data") for result in found.values())
    only_cut = results(judged(unanswered("s", "interrupted", ended=0.5)))
    assert all(result.why.startswith("not met: no data") for result in only_cut.values())


def test_where_all_sessions_were_of_the_warm_up_that_is_why_there_is_no_data() -> None:
    found = results(judged(*(answered(f"s{k}", 0.2, window="warmup") for k in range(3))))
    assert {result.why for result in found.values()} == {
        "not met: no data: none of the 3 sessions was measured (3 in warmup)"
    }
    staged = Slo(metric="completed", stat="min_share", limit=0.5, stage="spike")
    found = results(judged(answered("s", 0.2), slo=(staged,)))
    assert found["completed.min_share@spike"].why == "not met: no data: no measured session began in stage spike"


LIMITS = [(0.40, True), (0.39, True), (0.41, False)]


@pytest.mark.parametrize(("value", "met"), LIMITS)
def test_an_error_rate_comes_from_outside(value: float, met: bool) -> None:
    judge = judged(answered("s", 0.2), slo=(Slo(metric="wer", stat="max", limit=0.4),))
    assert results(judge, wer={"transcript": value})["wer.max"].met is met
    assert not results(judge, wer={"another": 0.1})["wer.max"].met


def test_a_score_has_a_floor_and_a_channel() -> None:
    judge = judged(answered("s", 0.2), slo=(Slo(metric="score", stat="min", limit=60, channel="gloss"),))
    assert results(judge, score={"gloss": 60.0, "transcript": 0.0})["score.min"].met
    assert not results(judge, score={"gloss": 59.9})["score.min"].met


def test_objectives_look_at_the_measured_window_only() -> None:
    judge = judged(
        record("w1", "no_final", window="warmup"),
        answered("w2", 7.0, window="warmup"),
        answered("m1", 0.2),
    )
    assert all(result.met for result in judge.slo())
    assert judge.totals()["started"] == 3
    assert judge.windows["warmup"].totals()["failed"] == 1
    assert judge.windows["measure"].totals()["started"] == 1


def test_a_session_cut_before_the_end_of_its_media_had_no_chance_and_does_not_count_against_the_service() -> None:
    judge = judged(*(answered(f"ok{k}", 0.2) for k in range(3)), unanswered("cut", "interrupted", ended=0.5))
    assert judge.totals()["completed_share"] == 1.0
    assert judge.totals()["cut"] == 1
    assert results(judge)["completed.min_share"].met


def test_an_objective_may_be_for_one_stage() -> None:
    by_stage = tuple(Slo(metric=P95.metric, stat="p95", limit=2.0, stage=stage) for stage in ("low", "high", "none"))
    judge = judged(answered("a", 0.2, stage="low"), answered("b", 9.0, stage="high"), slo=by_stage)
    assert [result.met for result in judge.slo()] == [True, False, False]
    assert judge.stages == ["low", "high"]


@pytest.mark.parametrize(("stat", "value"), [("p50", 0.5), ("p90", 0.9), ("p95", 1.0), ("p99", 1.0), ("max", 1.0)])
def test_every_stat_is_an_observed_value(stat: str, value: float) -> None:
    slo = (Slo(metric=P95.metric, stat=stat, limit=value),)
    (found,) = judged(*(answered(f"s{k}", k / 10) for k in range(1, 11)), slo=slo).slo()
    assert (found.value, found.met) == (value, True)


def test_a_session_without_its_start_is_counted_all_the_same() -> None:
    judge = Judge(header(COMPLETED))
    judge.add(answered("s", 0.2))
    assert judge.totals()["started"] == 1
    assert adds_up(judge.totals())


def test_sessions_that_no_one_answered_did_not_reach_the_target() -> None:
    refused = record("a", "connect_failed", connections=[Connection(dialled_ns=1)])
    rejected = record("b", "rejected", connections=[Connection(dialled_ns=1, tcp_ns=2, status=503)])
    assert judged(refused).totals()["reached"] == 0
    assert judged(refused, rejected).totals()["reached"] == 1
    assert judged(answered("s", 0.2)).totals()["reached"] == 1


def test_every_outcome_is_listed_also_at_0() -> None:
    assert judged().totals()["ended"] == dict.fromkeys(OUTCOMES, 0)


@given(
    st.lists(st.tuples(st.sampled_from(list(OUTCOMES)), st.booleans(), st.sampled_from(["warmup", "measure", "drain"])))
)
def test_started_is_finished_failed_cut_and_in_flight_at_every_moment(sessions) -> None:
    judge = Judge(header(COMPLETED))
    for number, (outcome, ends, window) in enumerate(sessions):
        judge.add(started(f"s{number}", window=window))
        assert adds_up(judge.totals())
        if ends:
            judge.add(record(f"s{number}", outcome, utterance(outcome=outcome), window=window))
            assert adds_up(judge.totals())
    assert judge.totals()["started"] == len(sessions)
    assert judge.totals()["in_flight"] == sum(not ends for _, ends, _ in sessions)


def test_figures_for_a_live_view_are_there_before_anything_has_come() -> None:
    empty = Judge(header(COMPLETED, P95)).figures()
    assert empty["sessions"]["started"] == 0
    assert empty["headline"]["p95"].value_s is None
    busy = judged(tick(), answered("s", 0.2)).figures()
    assert (busy["state"], busy["channel"], busy["metric"]) == ("VALID", "transcript", "final_from_source_end")
    assert (busy["first"]["p50"].value_s, busy["headline"]["p95"].value_s) == (0.5, 0.2)
    assert [result.met for result in busy["slo"]] == [True, True]


def test_the_same_events_give_the_same_judgement_whatever_the_order_of_sessions() -> None:
    events = [answered(f"s{k}", k / 10) for k in range(20)] + [unanswered("x", "lost", ended=0.7)]
    one, other = judged(tick(), *events), judged(*reversed(events), tick())
    assert one.totals() == other.totals()
    assert one.slo() == other.slo()
    assert one.verdict() == other.verdict()
