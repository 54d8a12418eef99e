"""What figures are drawn from."""

from loadbench.report import gather
from loadbench.results.bundle import Bundle
from tests.report.conftest import ZERO, S, Write, session


def test_each_measured_utterance_is_a_point_and_one_that_never_began_as_well(write: Write) -> None:
    records = [session(0), session(1, "rejected", utterances=[]), session(2, window="warmup")]
    found = gather.points(Bundle(write(records)))
    assert [(point.session, point.finished, point.final.kind) for point in found] == [
        ("w1-0", True, "exact"),
        ("w1-1", False, "never"),
    ]


def test_timelines_are_those_that_failed_and_the_slowest_in_the_order_of_their_start(write: Write) -> None:
    records = [session(number, "no_final" if number == 70 else "ok", final_ms=100 + number) for number in range(80)]
    found = gather.timelines(Bundle(write(records)))
    assert len(found) == gather.MOST_TIMELINES
    assert [record.id for record in found] == [f"w1-{number}" for number in range(30, 80)]


def test_seconds_begin_where_the_first_session_does(write: Write) -> None:
    bundle = Bundle(write([session(0)]))
    zero = gather.zero_ns(bundle)
    found = gather.seconds(bundle, zero)
    assert zero == ZERO
    assert [second.at_s for second in found] == [float(number) for number in range(1, 9)]
    assert [second.active for second in found] == [4, 4, 4, 4, 4, 3, 2, 1]
    assert all(second.gap_ms == 1.0 for second in found)
    assert all(second.lateness_ms is not None and 0.1 < second.lateness_ms < 1 for second in found)


def test_a_long_run_is_gathered_into_few_stretches(write: Write) -> None:
    bundle = Bundle(write([session(0)]))
    found = gather.seconds(bundle, ZERO - 900 * S)
    assert len(found) <= 4
    assert max(second.gap_ms for second in found) == 1.0


def test_chunk_times_are_found_for_the_sessions_that_are_shown(write: Write) -> None:
    found = gather.chunk_times(Bundle(write([session(0), session(1)])), {"w1-1"})
    assert list(found) == [("w1-1", 0)]
    assert list(gather.sent_s(found["w1-1", 0]))[:2] == [0.201, 0.401]
