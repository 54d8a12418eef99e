"""The summary: the published keys, the same bytes each time, and warnings where numbers would mislead."""

import json
from pathlib import Path

import pytest

from loadbench.analysis.summary import encode, summarise
from loadbench.results.bundle import Bundle, BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.record import CanaryRecord, Lateness, Message, Prelude, SessionRecord
from loadbench.results.run import Done
from loadbench.results.slo import Slo
from tests.analysis.records import (
    answered,
    at,
    channel,
    header,
    ns,
    record,
    started,
    tick,
    unanswered,
    updates,
    utterance,
)

SLO = (Slo(metric="completed", stat="min_share", limit=0.99), Slo(metric="wer", stat="max", limit=0.4))

STEMS = {Message: "messages", SessionRecord: "sessions", CanaryRecord: "canary"}


def bundle(
    folder: Path, *events, done: bool = True, in_flight: tuple[str, ...] = (), reason: str = "finished", **changes
) -> Bundle:
    writer = BundleWriter(folder / "bundle", header(*SLO, **changes), Masks([]))
    for name in in_flight:
        writer.append("sessions", started(name))
    for event in events:
        if isinstance(event, SessionRecord):
            writer.append(
                "sessions", started(event.id, window=event.window, stage=event.stage, begun_ns=event.begun_ns)
            )
        writer.append(STEMS.get(type(event), "ticks"), event)
    writer.flush()
    if done:
        writer.finish(Done(ended_ns=at(20), reason=reason))
    return Bundle(folder / "bundle")


def ten(folder: Path) -> Bundle:
    return bundle(
        folder,
        *(answered(f"s{k}", k / 10, stage="low" if k < 5 else "high") for k in range(9)),
        unanswered("bad", "lost", ended=0.7),
        *(tick(k, active=k, users_target=10) for k in range(3)),
    )


def test_the_published_keys_are_there(tmp_path: Path) -> None:
    found = summarise(ten(tmp_path))
    assert found["complete"] is True
    assert found["verdict"]["state"] == "VALID"
    assert found["sessions"]["started"] == 10
    assert found["sessions"]["ended"]["lost"] == 1
    assert found["sessions"]["completed_share"] == 0.9
    metric = found["response"]["transcript"]["final_from_source_end"]
    assert metric["n"] == 9
    assert metric["finished"].keys() == metric["started"].keys() == {"p50", "p90", "p95", "p99", "max"}
    assert metric["finished"]["p50"]["value_s"] == 0.4
    assert metric["started"]["max"]["bound"] == "never"
    assert metric["finished"]["p50"].keys() == {"value_s", "bound", "n", "low_s", "high_s", "reliable"}
    assert found["connection"]["connect"]["n"] == 10
    assert found["connection"]["connect"]["p50"]["value_s"] == pytest.approx(0.2)
    assert found["connection"]["tcp"]["p50"]["value_s"] == pytest.approx(0.1)
    assert found["connection"]["ready"]["p50"]["value_s"] == pytest.approx(0.3)
    assert found["lateness"]["tester"]["lateness_p99_ms"] < 1
    assert found["lateness"]["blocked"]["sessions"] == 0
    assert [item["name"] for item in found["slo"]] == ["completed.min_share", "wer.max"]
    assert [item["met"] for item in found["slo"]] == [False, False]
    assert found["users"] == {"target_max": 10, "active_max": 2}
    assert (
        found["stages"]["low"]["response"]["transcript"]["final_from_source_end"]["finished"]["p95"]["value_s"] == 0.4
    )
    assert found["clips"]["a"]["n"] == 10
    assert found["clips"]["a"]["response"]["transcript"]["final_from_source_end"]["finished"]["p50"]["value_s"] == 0.4
    assert found["causes"]["lost"]["side"] == "target"
    assert found["run"]["begun_at"] == "2023-11-14T22:14:59.500+00:00"
    assert found["run"]["duration_s"] == 20.5


def test_the_headline_names_its_two_events_and_the_rules_that_ended_it(tmp_path: Path) -> None:
    one = answered("s", 0.2)
    one.utterances[0].done_rule = "first_final"
    found = summarise(bundle(tmp_path, one, tick()))["headline"]
    assert (found["channel"], found["metric"]) == ("transcript", "final_from_source_end")
    assert (found["from"], found["to"]) == ("source end", "last final")
    assert found["done_rules"] == {"first_final": 1}
    assert found["finality"] == {"explicit": 1}
    assert found["finished"]["p50"]["value_s"] == 0.2


def test_the_same_bundle_gives_the_same_bytes(tmp_path: Path) -> None:
    read = ten(tmp_path)
    first, second = summarise(read), summarise(Bundle(read.folder))
    assert first == second
    assert encode(first) == encode(summarise(read)) == encode(second)
    assert json.loads(encode(first)) == first


def test_error_rates_from_outside_meet_their_objective(tmp_path: Path) -> None:
    found = summarise(bundle(tmp_path, answered("s", 0.2), tick()), {"wer": {"transcript": 0.1}})
    assert [item["met"] for item in found["slo"]] == [True, True]


def test_a_bundle_of_a_killed_run_is_incomplete_and_adds_up(tmp_path: Path) -> None:
    read = bundle(tmp_path, answered("s", 0.2), tick(), done=False, in_flight=("x", "y"))
    with (read.folder / "sessions.jsonl").open("a") as file:
        file.write('{"type":"sess')
    found = summarise(read)
    assert found["complete"] is False
    assert (found["sessions"]["started"], found["sessions"]["in_flight"]) == (3, 2)
    assert not any(item["met"] for item in found["slo"])
    assert "2 sessions in flight" in found["slo"][0]["why"]
    assert any("torn" in problem for problem in found["problems"])
    assert found["run"]["reason"] is None
    assert found["run"]["duration_s"] == pytest.approx(1.8)


def test_a_run_that_was_killed_between_two_sessions_meets_nothing_either(tmp_path: Path) -> None:
    found = summarise(bundle(tmp_path, answered("s", 0.2), tick(), done=False), {"wer": {"transcript": 0.1}})
    assert (found["sessions"]["finished"], found["sessions"]["in_flight"]) == (1, 0)
    assert {(item["met"], item["why"]) for item in found["slo"]} == {(False, "not judged: the run is incomplete")}


@pytest.mark.parametrize("reason", ["engine lost", "failed"])
def test_an_engine_that_went_between_two_sessions_leaves_an_invalid_run_that_meets_nothing(
    tmp_path: Path, reason: str
) -> None:
    found = summarise(bundle(tmp_path, answered("s", 0.2), tick(), reason=reason), {"wer": {"transcript": 0.1}})
    assert found["complete"] is True
    assert found["verdict"]["state"] == "INVALID"
    assert found["verdict"]["reasons"][0] == f"the tester did not do its work to the end: {reason}"
    assert [item["met"] for item in found["slo"]] == [False, False]


def test_survivors_are_counted_among_the_measured_sessions_as_their_percentile_is(tmp_path: Path) -> None:
    warm = (answered(f"w{k}", 0.2, window="warmup") for k in range(5))
    found = summarise(bundle(tmp_path, *warm, answered("s", 0.2), unanswered("bad", "lost", ended=0.7), tick()))
    assert found["survivor_warning"].startswith("survivors: 1 of 2 sessions finished")


def test_an_empty_run_has_no_numbers_and_no_division_by_zero(tmp_path: Path) -> None:
    found = summarise(bundle(tmp_path))
    assert found["sessions"]["started"] == 0
    assert found["headline"]["finished"]["p95"]["value_s"] is None
    assert found["survivor_warning"] is None
    assert [item["met"] for item in found["slo"]] == [False, False]


SURVIVORS = [
    # those that did not finish -> the warning
    ([unanswered(f"x{k}", "target_error", ended=4) for k in range(16)], "the p95 is never"),
    ([unanswered(f"x{k}", "time_up", ended=5) for k in range(3)], "it is at least 4.000 s"),
    ([unanswered(f"x{k}", "time_up", ended=1.1) for k in range(3)], None),  # as old as the finished ones
    ([unanswered(f"x{k}", "interrupted", ended=0.5) for k in range(3)], None),  # not at risk
    ([], None),
]


@pytest.mark.parametrize(("others", "warning"), SURVIVORS)
def test_survivors_are_told_from_the_whole(tmp_path: Path, others: list[SessionRecord], warning: str | None) -> None:
    found = summarise(bundle(tmp_path, *(answered(f"s{k}", 0.2) for k in range(4)), *others, tick()))
    if warning is None:
        assert found["survivor_warning"] is None
    else:
        assert warning in found["survivor_warning"]
        assert f"4 of {4 + len(others)} sessions finished, with a p95 of 0.200 s" in found["survivor_warning"]


def test_messages_that_came_in_one_piece_are_noticed(tmp_path: Path) -> None:
    clumped = [Message(session="a", at_ns=1_000_000_000 + k * 100_000, data="x") for k in range(10)]
    apart = [Message(session="b", at_ns=1_000_000_000 + k * 50_000_000, data="x") for k in range(10)]
    mixed = [message for pair in zip(clumped, apart, strict=True) for message in pair]
    found = summarise(bundle(tmp_path, *mixed, answered("a", 0.2), tick()))["clumping"]
    assert found == {"sessions": 2, "messages": 20, "within_2_ms": 9, "longest": 10}


def test_metrics_without_annotations_are_left_out_and_with_them_they_are_there(tmp_path: Path) -> None:
    plain = summarise(bundle(tmp_path / "a", answered("s", 0.2), record("x", "connect_failed"), tick()))
    assert "first_output_from_onset" not in plain["response"]["transcript"]
    known = answered("s", 0.2)
    known.utterances[0].onset_ns = ns(0.3)
    known.utterances[0].activity_end_ns = ns(0.9)
    noted = summarise(bundle(tmp_path / "b", known, record("x", "connect_failed"), tick()))["response"]["transcript"]
    assert noted["first_output_from_onset"]["finished"]["p50"]["value_s"] == 0.2
    assert noted["final_from_activity_end"]["failed"] == 1


def test_what_counts_from_a_detectors_onset_or_end_says_so(tmp_path: Path) -> None:
    for folder, count in (("told", 0), ("guessed", 2)):
        known = answered("s", 0.5)
        known.utterances[0].onset_ns, known.utterances[0].activity_end_ns = ns(0.3), ns(1.0)
        made = bundle(tmp_path / folder, known, corpus={"activity_estimated": count})
        found = summarise(made)["response"]["transcript"]
        assert found["first_output_from_onset"]["estimated"] is bool(count)
        assert found["final_from_activity_end"]["estimated"] is bool(count)
        assert "estimated" not in found["final_from_source_end"]


def test_the_warm_up_is_counted_among_the_sessions_and_nowhere_else(tmp_path: Path) -> None:
    warm = answered("w", 9.0, window="warmup", messages={"ack": 5, "final": 1})
    found = summarise(bundle(tmp_path, warm, answered("s", 0.2, messages={"ack": 3}), tick()))
    assert found["sessions"]["started"] == 2
    assert found["windows"]["warmup"]["started"] == 1
    assert found["response"]["transcript"]["final_from_source_end"]["finished"]["max"]["value_s"] == 0.2
    assert found["acks"] == 3
    assert found["messages"] == {"ack": 3}
    assert found["connection"]["ready"]["n"] == 1


def test_the_time_of_preludes_stands_beside_the_connection_and_in_no_response_time(tmp_path: Path) -> None:
    asked = Prelude(name="POST https://h/", began_ns=at(-2.5), ended_ns=at(-2.0), status=200)
    again = Prelude(name="GET https://h/", began_ns=at(-2.0), ended_ns=at(-1.0), status=200)
    vain = unanswered("b", "rejected", ended=0.1)
    vain.prelude, vain.connections = [asked], []
    found = summarise(bundle(tmp_path, answered("a", 0.2, prelude=[asked, again]), vain, answered("c", 0.2), tick()))
    assert (found["connection"]["prelude"]["n"], found["connection"]["prelude"]["max"]["value_s"]) == (1, 1.5)
    assert found["response"]["transcript"]["final_from_source_end"]["finished"]["max"]["value_s"] == 0.2
    assert found["connection"]["ready"]["max"]["value_s"] == pytest.approx(0.3)


def test_pushing_back_is_kept_apart_from_lateness(tmp_path: Path) -> None:
    late = Lateness(chunks=10, max_ns=3_000_000, blocked_ns=1_500_000_000, unsent_max_bytes=70_000)
    found = summarise(bundle(tmp_path, answered("s", 0.2, lateness=late), tick()))["lateness"]
    assert found["tester"]["chunk_max_ms"] == 3.0
    assert found["blocked"] == {"sessions": 1, "sum_s": 1.5, "unsent_max_bytes": 70_000}


def test_a_stage_reaches_from_its_first_start_to_its_last_end_and_has_its_own_books(tmp_path: Path) -> None:
    plan = {"low": {"level": 2.0, "seconds": 5.0, "ramp_s": 0.0}}
    found = summarise(
        bundle(
            tmp_path,
            answered("w", 0.2, stage="low", window="warmup", begun_ns=at(-4.5)),  # stretches the run, not the stage
            answered("a", 0.2, stage="low"),
            answered("b", 6.9, stage="low", begun_ns=at(2.5)),  # ends at 8 s, long after the five of its plan
            answered("c", 4.9, stage="high", begun_ns=at(5.5)),
            effective={"stages": plan},
        )
    )["stages"]
    assert {name: (part["from_s"], part["to_s"]) for name, part in found.items()} == {
        "low": (4.0, 12.5),
        "high": (10.0, 10.5),
    }
    assert [found[name]["plan"] for name in ("low", "high")] == [plan["low"], None]
    assert [found[name]["sessions"]["started"] for name in ("low", "high")] == [2, 1]


def canary(number: int, final_ms: float | None = 1.0, window: str = "measure", outcome: str = "ok") -> CanaryRecord:
    return CanaryRecord(
        id=f"canary-{number}",
        worker="w1",
        clip="a",
        window=window,  # type: ignore[arg-type]
        begun_ns=at(0) or 0,
        outcome=outcome,
        side="none",
        cause="" if outcome == "ok" else "nobody listens",
        connect_span_ns=2_000_000,
        first_span_ns=None if final_ms is None else 500_000,
        final_span_ns=None if final_ms is None else round(final_ms * 1e6),
    )


ASKED = {"effective": {"canary": {"users": 1}}}


def test_a_canary_is_told_beside_the_totals_and_moves_none_of_them(tmp_path: Path) -> None:
    sessions = [answered(f"s{k}", 0.5) for k in range(4)]
    without = summarise(bundle(tmp_path / "0", *sessions, tick(0)))
    birds = [canary(k, k - 2.0) for k in range(10)]
    beside = summarise(bundle(tmp_path / "1", *sessions, *birds, tick(0), **ASKED))
    found = beside.pop("canary")
    assert without.pop("canary") is None
    for summary in (without, beside):
        del summary["run"]["effective"]
    assert beside == without
    assert (found["n"], found["failed"], found["causes"]) == (10, 0, [])
    assert found["final"].keys() == found["first"].keys() == {"p50", "p95", "p99", "max"}
    assert found["final"]["p50"]["value_s"] == pytest.approx(0.002)
    assert found["final"]["max"]["value_s"] == pytest.approx(0.007)
    assert found["first"]["p95"]["value_s"] == pytest.approx(0.0005)
    assert found["connect"]["p50"]["n"] == 10


def test_a_canary_that_failed_leaves_no_bound_where_the_percentile_falls_on_it(tmp_path: Path) -> None:
    birds = [canary(0), canary(1), canary(2), canary(3, None, outcome="connect_failed"), canary(4, 900.0, "warmup")]
    found = summarise(bundle(tmp_path, *birds, tick(0), **ASKED))["canary"]
    assert (found["n"], found["failed"], found["causes"]) == (4, 1, ["nobody listens"])
    assert found["final"]["p50"]["value_s"] == pytest.approx(0.001)
    assert (found["final"]["p95"]["value_s"], found["final"]["p95"]["bound"]) == (None, "never")


def test_a_run_too_short_for_a_canary_says_that_it_has_none_and_one_without_says_nothing(tmp_path: Path) -> None:
    assert summarise(bundle(tmp_path / "a", tick(0), **ASKED))["canary"]["n"] == 0
    off = {"effective": {"canary": {"users": 0, "why": "it cannot speak this profile"}}}
    assert summarise(bundle(tmp_path / "b", tick(0), **off))["canary"] is None


def test_the_worked_sentence_comes_through_the_records_to_the_nanosecond(tmp_path: Path) -> None:
    # 4.000 s, speech from 0.500 to 3.200, the end mark at 4.002; partials at 1.140, 1.820, 3.010 and 3.400, finals at
    # 2.350 and 4.310; of the six words two were taken back ("sit", "a").
    said = channel(1.14, 2.35, 4.31)
    texts = ((1.14, "the"), (1.82, "the cat sit"), (2.35, "the cat sat"), (3.01, "the cat sat on"))
    texts += ((3.4, "the cat sat on a"), (4.31, "the cat sat on the mat"))
    said.updates = updates((at(at_s), text) for at_s, text in texts)
    facts = {"media_s": 4.0, "eos": 4.002, "onset": 0.5, "activity_end": 3.2, "outcome": "ok"}
    one = record("s", "ok", utterance(channels={"transcript": said}, **facts))
    found = summarise(bundle(tmp_path, one))
    response = {name: part["finished"]["p50"]["value_s"] for name, part in found["response"]["transcript"].items()}
    assert response == {
        "first_output_from_media": 1.14, "first_output_from_onset": 0.64, "first_final_from_media": 2.35,
        "final_from_source_end": 0.31, "final_from_activity_end": 1.11, "final_from_eos_msg": 0.308,
        "final_from_planned_end": 0.81, "done_from_source_end": None,
    }  # fmt: skip
    assert found["erasure"]["transcript"] == pytest.approx(2 / 6)
    # The viewer: empty until 1.14 of 4.0; the longest gap is that from 3.4 to 4.31; "sit" and "a" were changed.
    seen = found["viewing"]["texts"]["transcript"]
    assert seen["blank"]["share"] == pytest.approx(1.14 / 4)
    assert seen["gaps"]["longest"]["max"]["value_s"] == 0.91
    assert seen["changes"] == {"n": 2, "per_media_min": 30.0}


def test_promoted_finals_are_named_and_fairness_and_parts_stand_beside_the_headline(tmp_path: Path) -> None:
    slow = answered("slow", 0.9, worker="w2")
    slow.utterances[0].channels["transcript"].finality = "promote_on_done"
    found = summarise(bundle(tmp_path, answered("fast", 0.3), slow))
    assert found["headline"]["finality"] == {"explicit": 1, "promote_on_done": 1}
    assert found["fairness"]["ratio"] == pytest.approx(3.0)
    assert (found["fairness"]["worst"]["id"], found["fairness"]["worst"]["largest_part"]) == ("slow", "rest")
    assert (found["workers"].keys(), found["languages"].keys()) == ({"w1", "w2"}, {"unknown"})
    parts = found["attribution"]["transcript"]["final_from_source_end"]["parts"]
    assert parts["service"] == {"n": 0, "p50_s": None, "share": None, "evidence": {}}
    assert parts["downlink"]["p50_s"] == 0.05  # half of the 0.1 s that TCP took to open
