"""Response times taken apart: one planted cause at a time, and parts that add up to the nanosecond."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.analysis.attribution import PARTS, Attribution, Chunks, Split, split
from loadbench.results.record import (
    Acks,
    Channel,
    ChunkTimes,
    Connection,
    Lateness,
    MediaClock,
    Segment,
    SessionRecord,
    Utterance,
)  # fmt: skip
from tests.analysis.records import at, header, ns, record, tick, utterance

FINAL, FIRST = "final_from_source_end", "first_output_from_media"
MEDIA_S, BYTES_S, HALF_S = 3.0, 32_000, 0.001


def simulated(
    name: str, *, chunk_s: float = 0.2, late_s: float = 0.002, link: float = 100.0, compute_s: float = 0.003,
    endpoint_s: float = 0.004, clocked: bool = True, stage: str = "main",
) -> tuple[SessionRecord, ChunkTimes]:  # fmt: skip
    """A session on virtual time: chunks leave late, go through a link of `link` times the media's rate, wait in the
    service's queue and take `compute_s` each; the text is whole with the last of them, and final `endpoint_s` later.
    """
    count, size = round(MEDIA_S / chunk_s), chunk_s * BYTES_S
    due = [chunk_s * (number + 1) for number in range(count)]
    sent, unsent, taken_s, done_s, rows = [], [], 0.0, 0.0, []
    for due_s in due:
        sent_s = due_s + late_s
        sent.append(ns(sent_s))
        unsent.append(round(max(0.0, taken_s - sent_s) * link * BYTES_S))
        taken_s = max(taken_s, sent_s) + size / (link * BYTES_S)
        done_s = max(done_s, taken_s + HALF_S) + compute_s
        rows.append(MediaClock(at(done_s + HALF_S) or 0, round(due_s * 1000), None))
    first_s, whole_s = (rows[0].at_ns - (at(0) or 0)) / 1e9, done_s + HALF_S
    final_s = whole_s + endpoint_s
    text = Segment(key="0", text="red", first_ns=at(first_s) or 0, changed_ns=at(whole_s) or 0, final_ns=at(final_s))
    channel = Channel(first_ns=at(first_s), first_final_ns=at(final_s), last_final_ns=at(final_s), segments=[text])
    one = utterance(
        media_s=MEDIA_S, channels={"transcript": channel}, outcome="ok", clock=rows if clocked else [],
        chunks_sent=count, media_bytes=round(MEDIA_S * BYTES_S),
    )  # fmt: skip
    opened = [Connection(dialled_ns=at(-0.5), tcp_ns=at(-0.5 + 2 * HALF_S), opened_ns=at(-0.4))]
    columns = (np.array([ns(each) for each in due]), np.array(sent), np.array(unsent))
    times = ChunkTimes(
        session=name, utterance=0, media_zero_ns=at(0) or 0, begun_ns=at(0),
        **dict(zip(("due", "sent", "unsent"), (part.astype("<i8").tobytes() for part in columns), strict=True)),
    )  # fmt: skip
    late = Lateness(chunks=count, sum_ns=count * (ns(late_s) or 0))
    return record(name, "ok", one, ended=final_s + 0.1, connections=opened, lateness=late, stage=stage), times


def attributed(*pairs: tuple[SessionRecord, ChunkTimes], gaps: tuple[tuple[int, int], ...] = ()) -> dict[str, Any]:
    found = Attribution(header(), [times for _, times in pairs], [tick(gaps=list(gaps))])
    for one, _ in pairs:
        found.add(one)
    part: dict[str, Any] = found.summary()["transcript"]
    return part


@pytest.mark.parametrize(
    ("cause", "metric", "planted"),
    [
        ("uplink", FINAL, {"link": 0.7}),  # 3.0 s of media take 4.3 s: 1.29 s behind
        ("service", FINAL, {"compute_s": 0.3}),  # 0.1 s more than a chunk lasts: 1.5 s behind after 15 of them
        ("tester", FINAL, {"late_s": 0.4}),
        ("endpointing", FINAL, {"endpoint_s": 0.8}),
        ("chunk", FIRST, {"chunk_s": 1.5}),
    ],
)
def test_at_least_nine_tenths_are_put_down_to_the_planted_cause(
    cause: str, metric: str, planted: dict[str, float]
) -> None:
    pairs = [simulated(f"s{number}", **planted) for number in range(5)]
    parts = attributed(*pairs)[metric]["parts"]
    assert parts[cause]["share"] >= 0.9, {name: part["share"] for name, part in parts.items()}
    assert sum(part["share"] for part in parts.values() if part["share"] is not None) == pytest.approx(1.0)
    assert parts[cause]["evidence"]


def test_a_gap_of_our_own_loop_that_the_answer_met_is_the_tester_s() -> None:
    # Our loop stood from 3.01 to 3.61; the final that came within it was read at 3.61.
    one, times = simulated("s0", endpoint_s=0.604)
    stop_ns = one.utterances[0].channels["transcript"].last_final_ns or 0
    one.tainted = True
    found = attributed((one, times), gaps=((stop_ns - 600_000_000, stop_ns),))[FINAL]["parts"]
    assert found["tester"]["share"] >= 0.9
    assert found["tester"]["evidence"] == {"gap of the loop that the answer met, at most; lateness of that chunk": 1}


def test_each_part_is_exact_and_names_its_evidence() -> None:
    # Due at 3.000, left at 3.002; half a trip of 1 ms to 3.003; the service's clock says at 3.009 that all was heard;
    # the text stood unchanged until the final at 3.013, of which the last 1 ms is half a trip.
    one, times = simulated("s0")
    found = split(one.utterances[0], one, one.utterances[0].channels["transcript"], FINAL, Chunks.of(times))
    assert found is not None
    ms = {name: None if span is None else round(span / 1e6, 3) for name, span in found.parts.items()}
    assert found.whole_ns == sum(span or 0 for span in found.parts.values())
    assert ms == {
        "opening": None, "source": None, "chunk": 0.0, "tester": 2.0, "uplink": 1.0, "service": 6.0,
        "endpointing": 3.0, "downlink": 1.0, "rest": 0.0,
    }  # fmt: skip
    assert found.evidence["uplink"] == "nothing was unsent; half of the TCP opening"
    assert found.evidence["endpointing"] == "the text stood unchanged, and all was heard"
    assert "rest" not in found.evidence


def test_what_nobody_says_is_unknown_and_in_the_rest() -> None:
    one, _ = simulated("s0", compute_s=0.3, clocked=False)
    one.connections = []
    channel = one.utterances[0].channels["transcript"]
    channel.segments = []
    found = split(one.utterances[0], one, channel, FINAL)
    assert found is not None
    assert {part for part, span in found.parts.items() if span is not None} == {"rest"}
    assert found.parts["rest"] == found.whole_ns


def test_acknowledgements_tell_of_the_service_where_it_has_no_clock() -> None:
    # 15 trips of 0.5 s, of them 2 ms of lateness and 2 ms on the way: 0.496 s of service.
    one, times = simulated("s0", compute_s=0.3, clocked=False)
    one.utterances[0].acks = Acks(count=15, echoed=15, trip_sum_ns=15 * 500_000_000)
    found = split(one.utterances[0], one, one.utterances[0].channels["transcript"], FINAL, Chunks.of(times))
    assert found is not None
    assert found.parts["service"] == 496_000_000
    assert found.evidence["service"] == "mean trip of acknowledged chunks"


def test_a_segment_s_own_end_says_which_chunk_it_rests_on() -> None:
    # The first text rests on 0.9 s of media, so on the chunk due at 1.0; it was there at 1.4.
    one, times = simulated("s0", clocked=False)
    text = Segment(key="0", text="red", first_ns=at(1.4) or 0, changed_ns=at(1.4) or 0, end_s=0.9)
    channel = Channel(first_ns=at(1.4), segments=[text])
    found = split(one.utterances[0], one, channel, FIRST, Chunks.of(times))
    assert found is not None
    parts = {name: None if span is None else round(span / 1e6, 3) for name, span in found.parts.items()}
    assert (parts["source"], parts["chunk"], parts["service"], parts["rest"]) == (900.0, 100.0, 396.0, 0.0)


def test_an_open_workload_s_wait_for_the_service_is_its_opening_and_a_late_start_is_ours() -> None:
    # Planned at -0.5, begun at -0.3, media zero at 0: 0.2 s of ours, 0.3 s of opening.
    one, times = simulated("s0")
    one.begun_ns = at(-0.3) or 0
    channel = one.utterances[0].channels["transcript"]
    found = split(one.utterances[0], one, channel, "final_from_planned_end", Chunks.of(times))
    assert found is not None
    assert (found.parts["opening"], found.parts["tester"]) == (300_000_000, 202_000_000)


def test_what_came_early_is_in_no_share_and_what_failed_is_counted() -> None:
    early, times = simulated("s0")
    early.utterances[0].source_end_ns = at(9.0)
    lost, _ = simulated("s1")
    lost.outcome = lost.utterances[0].outcome = "lost"
    part = attributed((early, times), (lost, times))[FINAL]
    assert (part["n"], part["early"], part["unanswered"], part["p50_s"]) == (0, 1, 1, None)
    assert part["parts"]["service"]["share"] is None
    found = split(early.utterances[0], early, early.utterances[0].channels["transcript"], FINAL)
    assert isinstance(found, Split)
    assert found.parts["rest"] == found.whole_ns < 0


def test_stages_are_taken_apart_by_themselves() -> None:
    pairs = (simulated("s0", stage="low"), simulated("s1", compute_s=0.3, stage="high"))
    part = attributed(*pairs)[FINAL]
    low, high = part["stages"]["low"], part["stages"]["high"]
    assert (part["n"], low["n"], high["n"]) == (2, 1, 1)
    assert high["parts"]["service"]["p50_s"] > 1.0 > low["parts"]["service"]["p50_s"]


def test_columns_of_chunk_times_that_do_not_fit_say_nothing() -> None:
    _, times = simulated("s0")
    times.unsent = b""
    assert Chunks.of(times) is None


span = st.one_of(st.none(), st.floats(-1.0, 6.0))


@given(span, span, span, st.floats(0.0, 6.0), st.floats(0.0, 0.5), st.floats(0.3, 3.0), st.booleans())
def test_whatever_is_recorded_the_parts_add_up_and_none_but_the_rest_is_negative(
    changed: float | None,
    end_s: float | None,
    onset: float | None,
    final: float,
    late_s: float,
    link: float,
    clocked: bool,
) -> None:
    one, times = simulated("s0", late_s=late_s, link=link, clocked=clocked)
    text = Segment(key="0", text="red", first_ns=at(final) or 0, changed_ns=at(changed or final) or 0, end_s=end_s)
    text.final_ns = at(final)
    channel = Channel(first_ns=at(final), first_final_ns=at(final), last_final_ns=at(final), segments=[text])
    part: Utterance = one.utterances[0]
    part.onset_ns = ns(onset)
    for metric in (FINAL, FIRST, "first_output_from_onset", "first_final_from_media", "final_from_planned_end"):
        found = split(part, one, channel, metric, Chunks.of(times), [(at(2.9) or 0, at(3.1) or 0)])
        if found is None:
            continue
        assert set(found.parts) == set(PARTS)
        assert sum(each or 0 for each in found.parts.values()) == found.whole_ns
        if found.whole_ns >= 0:
            assert min(each for each in found.parts.values() if each is not None) >= 0
