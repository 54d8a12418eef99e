import gc

import pytest

from loadbench.engine import health
from loadbench.engine.alarm import MS
from loadbench.engine.health import BEAT_NS, Collections, Heart, Usage
from tests.engine.test_pacer import Hand


def beating() -> tuple[Hand, Heart]:
    hand = Hand()
    heart = Heart(hand.clock, hand.make)
    heart.start(hand.now_ns)
    return hand, heart


def beat(hand: Hand, times: int, late_ns: int = 0) -> None:
    for _ in range(times):
        assert hand.asked_ns is not None
        hand.now_ns = max(hand.now_ns, hand.asked_ns) + late_ns
        hand.ring()


def test_before_it_is_started_a_heart_misses_no_beat() -> None:
    hand = Hand()
    heart = Heart(hand.clock, hand.make)
    hand.now_ns += 1_000 * MS
    assert heart.longest_between(0, hand.now_ns) == 0


def test_a_heart_that_is_started_late_has_missed_what_lies_between() -> None:
    hand = Hand()
    heart = Heart(hand.clock, hand.make)
    due_ns = hand.now_ns
    hand.now_ns += 2_000 * MS
    heart.start(due_ns)
    beat(hand, 1)
    assert heart.take(50 * MS) == (1_995 * MS, [(due_ns + BEAT_NS, due_ns + 2_000 * MS)])


def test_a_loop_that_turns_freely_has_no_gap() -> None:
    hand, heart = beating()
    beat(hand, 400)
    assert heart.take(50 * MS) == (0, [])
    assert heart.longest_between(0, hand.now_ns) == 0


@pytest.mark.parametrize("blocked_ms", [55, 300, 1000])
def test_a_frozen_process_shows_as_a_gap_with_its_begin_and_end(blocked_ms: int) -> None:
    hand, heart = beating()
    beat(hand, 10)
    before = hand.now_ns
    beat(hand, 1, blocked_ms * MS)
    beat(hand, 50)
    longest, gaps = heart.take(50 * MS)
    assert longest == blocked_ms * MS
    assert gaps == [(before + BEAT_NS, before + BEAT_NS + blocked_ms * MS)]
    assert heart.take(50 * MS) == (0, []), "each gap is told once"


def test_a_gap_taints_only_sessions_that_were_active_in_it() -> None:
    hand, heart = beating()
    beat(hand, 10)
    beat(hand, 1, 80 * MS)
    (start, end) = heart.gaps[0]
    beat(hand, 100)
    assert heart.longest_between(start - 10 * MS, start + MS) == 80 * MS
    assert heart.longest_between(end - MS, end + 10 * MS) == 80 * MS
    assert heart.longest_between(end + MS, hand.now_ns) == 0
    assert heart.longest_between(start - 50 * MS, start - MS) == 0


def test_a_session_that_ends_right_behind_a_gap_is_judged_by_it_before_the_heart_has_beaten() -> None:
    hand, heart = beating()
    beat(hand, 10)
    hand.now_ns += 200 * MS
    assert heart.longest_between(hand.now_ns - 500 * MS, hand.now_ns) == pytest.approx(195 * MS, abs=BEAT_NS)
    beat(hand, 1)
    assert len(heart.gaps) == 1


def test_time_of_the_garbage_collector_is_counted_while_watched() -> None:
    collections = Collections()
    rings = [[] for _ in range(200_000)]
    for ring in rings:
        ring.append(ring)
    with collections.watched():
        gc.collect()
    taken_ns, longest_ns = collections.take()
    assert taken_ns >= longest_ns > 100_000
    gc.collect()
    assert collections.take() == (0, 0)


def test_usage_is_what_was_taken_since_the_last_time() -> None:
    usage = Usage()
    sum(range(3_000_000))
    busy = usage.take()
    idle = usage.take()
    assert busy["cpu_ns"] > 10 * MS > idle["cpu_ns"] >= 0
    assert busy["rss_bytes"] > 10_000_000
    assert busy["fds"] > 2
    assert busy["run_delay_ns"] is None or busy["run_delay_ns"] >= 0


def test_file_handles_are_raised_to_what_the_system_allows() -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        assert health.raise_file_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_realtime_that_is_refused_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.sched_setscheduler", no)
    assert health.ask_realtime() == "refused: Operation not permitted (needs CAP_SYS_NICE)"
    monkeypatch.setattr("os.sched_setscheduler", lambda *_: None)
    assert health.ask_realtime() == "SCHED_FIFO"
