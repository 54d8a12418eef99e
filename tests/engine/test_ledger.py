from array import array

import pytest

from loadbench.engine.ledger import Ledger, fold
from loadbench.results.tick import LATENESS_EDGES_NS

MS = 1_000_000


@pytest.mark.parametrize(
    ("late_ns", "bucket"),
    [
        (0, 0),
        (1_000, 0),
        (1_001, 1),
        (1_050, 1),
        (1_051, 2),
        (LATENESS_EDGES_NS[-1], 378),
        (LATENESS_EDGES_NS[-1] + 1, 379),
    ],
)
def test_lateness_falls_into_the_bucket_whose_upper_edge_holds_it(late_ns: int, bucket: int) -> None:
    assert fold(array("q", [late_ns, late_ns])) == {bucket: 2}


def test_nothing_folds_to_nothing() -> None:
    assert fold(array("q")) == {}


def test_what_is_taken_is_all_since_it_was_asked_last_whenever_it_was_gathered() -> None:
    ledger = Ledger()
    row = ledger.enrol()
    ledger.note([row] * 3, [500, 900, 40_000])
    ledger.gather()
    ledger.note([row], [2_000])
    first = ledger.take(0)
    assert (first.chunks, first.lateness_sum_ns) == (4, 43_400)
    assert first.lateness == fold(array("q", [500, 900, 40_000, 2_000]))
    assert ledger.take(0)[:3] == (0, {}, 0)
    ledger.note([row], [7])
    assert ledger.take(0)[:3] == (1, {0: 1}, 7)


def test_a_row_holds_what_is_of_its_stream_and_begins_anew_with_the_next() -> None:
    ledger = Ledger()
    rows = [ledger.enrol() for _ in range(100)]
    assert len(set(rows)) == 100
    ledger.note([rows[3], rows[70], rows[3]], [500, 2_000, 900])
    ledger.gather()
    ledger.note([rows[3]], [600])
    assert ledger.leave(rows[3]) == (2_000, 900)
    assert ledger.leave(rows[70]) == (2_000, 2_000)
    assert ledger.enrol() == rows[70]
    assert ledger.leave(rows[70]) == (0, 0)


def test_a_log_gets_its_streams_chunks_in_their_order() -> None:
    ledger, log = Ledger(), array("q")
    plain, logged = ledger.enrol(), ledger.enrol(log)
    ledger.note([logged, plain, logged], [3, 1, 2])
    ledger.gather()
    ledger.note([plain, logged], [9, 5])
    assert ledger.leave(logged) == (10, 5)
    assert log.tolist() == [3, 2, 5]
    assert ledger.leave(plain) == (10, 9)


def test_messages_are_told_as_differences_of_what_was_ever_heard() -> None:
    ledger = Ledger()
    ledger.messages["partial"] += 3
    assert ledger.take(0).messages == {"partial": 3}
    ledger.messages["partial"] += 1
    ledger.messages["final"] += 1
    assert ledger.take(0).messages == {"partial": 1, "final": 1}
    assert ledger.take(0).messages == {}


def test_pauses_are_counted_up_to_the_moment_that_asks_and_go_on_behind_it() -> None:
    ledger = Ledger()
    ledger.paused("a", 100 * MS)
    ledger.paused("a", 150 * MS)  # still the same pause
    ledger.paused("b", 200 * MS)
    ledger.resumed("b", 250 * MS)
    assert ledger.take(400 * MS).blocked_ns == 300 * MS + 50 * MS
    ledger.resumed("a", 460 * MS)
    ledger.resumed("a", 900 * MS)  # no pause at all
    assert ledger.take(1_000 * MS).blocked_ns == 60 * MS
