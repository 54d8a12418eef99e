import asyncio
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadbench.engine.alarm import BUDGET_NS, MS, LoopAlarm
from loadbench.engine.ledger import Ledger
from loadbench.engine.pacer import TOGETHER, ChunkLog, Stream, Wheel, evenly, media_zero
from tests.examples import examples


class Hand:
    """A clock and an alarm moved by hand: deterministic, and it can stand still for as long as a test likes."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MS
        self.asked_ns: int | None = None
        self.ring: Callable[[], None] = lambda: None

    def clock(self) -> int:
        return self.now_ns

    def make(self, ring: Callable[[], None]) -> "Hand":
        self.ring = ring
        return self

    def at(self, at_ns: int) -> None:
        self.asked_ns = at_ns

    def close(self) -> None:
        self.asked_ns = None

    def run(self, stalls: Callable[[], int] = lambda: 0) -> None:
        """Ring whenever asked to, late by what `stalls` says, until nobody asks any more."""
        while self.asked_ns is not None:
            self.now_ns = max(self.now_ns, self.asked_ns) + stalls()
            self.asked_ns = None
            self.ring()


@dataclass
class Socket:
    """A link that notes what it was given and when; each write takes `cost_ns`."""

    hand: Hand
    cost_ns: int = 0
    held: int = 0
    got: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def mouth(self) -> list[Callable[[bytes], int]]:
        return [self.straight]

    def straight(self, wire: bytes) -> int:
        if self.held:
            return 0
        self.rest(wire, 0)
        return len(wire)

    def rest(self, wire: bytes, taken: int) -> int:
        assert taken == 0
        self.got.append((self.hand.now_ns, bytes(wire)))
        self.hand.now_ns += self.cost_ns
        return self.held

    def unsent(self) -> int:
        return self.held

    def shut(self, code: int) -> None:
        raise AssertionError

    def abort(self) -> None:
        raise AssertionError


def stream(socket: Socket, due_ms: list[float], zero_ns: int, ended: list[int], **more: object) -> Stream:
    def broke(error: Exception) -> None:
        raise error

    due_ns = [round(at * MS) for at in due_ms]
    options = {"begun_ns": 0, "ended": ended.append, "broke": broke, "even": evenly(due_ns)} | more
    return Stream(socket, lambda i: b"%d" % i, due_ns, zero_ns, **options)  # type: ignore[arg-type]


def test_each_chunk_leaves_when_it_is_due_and_the_end_is_told_after_the_last() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    zero = 1_100 * MS
    wheel.add(stream(socket, [20, 40, 60, 60.0], zero, ended))
    hand.run()
    assert socket.got == [(zero + 20 * MS, b"0"), (zero + 40 * MS, b"1"), (zero + 60 * MS, b"2")]
    assert ended == [zero + 60 * MS]
    assert wheel.ledger.late_ns.tolist() == [0, 0, 0]


def test_a_tail_shorter_than_a_chunk_ends_where_the_media_ends() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    due = [20.0 * (i + 1) for i in range(500)] + [10_010.0, 10_010.0]
    wheel.add(stream(socket, due, 2_000 * MS, ended))
    hand.run()
    assert len(socket.got) == 501
    assert socket.got[250][0] == 2_000 * MS + 251 * 20 * MS
    assert ended == [2_000 * MS + 10_010 * MS]


def test_media_that_goes_on_behind_its_last_chunk_ends_only_then() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    wheel.add(stream(socket, [0, 33.3, 66.7, 100], 2_000 * MS, ended))
    hand.run()
    assert socket.got[-1][0] == 2_067 * MS
    assert ended == [2_100 * MS]


def test_a_due_time_between_two_slots_waits_for_the_later_one() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    wheel.add(stream(socket, [33.333_333, 66.666_667, 100], 2_000 * MS, ended))
    hand.run()
    assert [at for at, _ in socket.got] == [2_034 * MS, 2_067 * MS]
    assert wheel.ledger.late_ns.tolist() == [666_667, 333_333]


def test_a_stall_delays_only_what_was_due_in_it_and_all_of_that_leaves_at_once() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    wheel.add(stream(socket, [20.0 * (i + 1) for i in range(11)], 1_000 * MS, ended))
    stalls = iter([0, 0, 105 * MS])
    hand.run(lambda: next(stalls, 0))
    offsets = [(at - 1_000 * MS) / MS for at, _ in socket.got]
    assert offsets == [20, 40, 165, 165, 165, 165, 165, 165, 180, 200]
    assert [late / MS for late in wheel.ledger.late_ns] == [0, 0, 105, 85, 65, 45, 25, 5, 0, 0]


def test_a_turn_ends_after_its_budget_and_the_longest_overdue_chunks_go_first() -> None:
    hand = Hand()
    wheel = Wheel(hand.clock, hand.make)
    sockets = [Socket(hand, cost_ns=MS) for _ in range(5)]
    for number, socket in enumerate(sockets):
        wheel.add(stream(socket, [10.0 - number, 20.0, 100.0], 1_000 * MS, []))
    hand.now_ns = 1_050 * MS
    hand.ring()
    assert [len(socket.got) for socket in sockets] == [0, 0, 0, 1, 1], "two milliseconds' worth, of the oldest"
    assert hand.asked_ns is not None
    assert hand.asked_ns <= hand.now_ns, "and it asks to go on at once"
    for _ in range(4):
        hand.ring()
    sent = sorted((at, number, wire) for number, socket in enumerate(sockets) for at, wire in socket.got)
    assert [wire for _, _, wire in sent] == [b"0"] * 5 + [b"1"] * 5
    assert [number for _, number, _ in sent[:5]] == [4, 3, 2, 1, 0]
    assert BUDGET_NS == 2 * MS


def test_the_budget_also_ends_a_turn_in_the_middle_of_a_slot_and_who_waited_goes_before_who_comes_back() -> None:
    hand = Hand()
    wheel = Wheel(hand.clock, hand.make)
    order: list[int] = []

    class Noting(Socket):
        def straight(self, wire: bytes) -> int:
            order.append(sockets.index(self))
            return super().straight(wire)

    sockets = [Noting(hand, cost_ns=MS // 10) for _ in range(70)]
    for socket in sockets:
        wheel.add(stream(socket, [9.8, 10.0, 100.0], 1_000 * MS, []))
    hand.now_ns = 1_050 * MS
    hand.ring()
    assert order == list(range(TOGETHER)), "what was made ready together leaves together"
    hand.run()
    assert order == [*range(70), *range(70)]


def test_of_chunks_that_leave_together_each_counts_what_those_before_it_took() -> None:
    hand = Hand()
    wheel = Wheel(hand.clock, hand.make)
    sockets = [Socket(hand, cost_ns=MS // 10) for _ in range(3)]
    streams = [stream(socket, [10.0, 100.0], 1_000 * MS, []) for socket in sockets]
    for one in streams:
        wheel.add(one)
    hand.run()
    assert wheel.ledger.late_ns.tolist() == [MS // 10, 2 * MS // 10, 3 * MS // 10]
    assert [wheel.ledger.leave(one.row) for one in streams] == [(at * MS // 10,) * 2 for at in (1, 2, 3)]


def test_a_chunk_in_another_ledger_is_written_down_there() -> None:
    hand, other = Hand(), Ledger()
    wheel = Wheel(hand.clock, hand.make)
    sockets = [Socket(hand, cost_ns=MS // 10) for _ in range(3)]
    for number, socket in enumerate(sockets):
        wheel.add(stream(socket, [10.0, 100.0], 1_000 * MS, []), other if number == 1 else None)
    hand.run()
    assert wheel.ledger.late_ns.tolist() == [MS // 10, 3 * MS // 10]
    assert other.late_ns.tolist() == [2 * MS // 10]


def in_step(hand: Hand, count: int, chunks: int, **more: object) -> tuple[Wheel, list[Socket], list[Stream]]:
    """So many streams of 20 ms chunks that are due at the same moments, and a tail of half a chunk."""
    wheel, sockets = Wheel(hand.clock, hand.make), [Socket(hand) for _ in range(count)]
    due = [20.0 * (i + 1) for i in range(chunks)] + [20.0 * chunks + 10, 20.0 * chunks + 10]
    streams = [stream(socket, due, 1_000 * MS, [], **more) for socket in sockets]
    for one in streams:
        wheel.add(one)
    return wheel, sockets, streams


def test_streams_in_step_go_together_and_each_leaves_where_its_times_are_no_longer_even() -> None:
    hand = Hand()
    _, sockets, streams = in_step(hand, 70, 10)
    hand.now_ns = hand.asked_ns or 0
    hand.ring()
    assert len({id(one.cohort) for one in streams}) == 1
    assert [one.sent for one in streams] == [1] * 70
    hand.run()
    assert [at - 1_000 * MS for at, _ in sockets[69].got] == [20 * MS * (i + 1) for i in range(10)] + [210 * MS]
    assert [wire for _, wire in sockets[69].got] == [b"%d" % i for i in range(11)]
    assert all(one.cohort is None and one.stopped and one.sent == 11 for one in streams)


def test_a_cohort_that_a_turn_has_no_time_for_goes_on_where_it_stopped() -> None:
    hand, waits = Hand(), 3 * TOGETHER - 1
    _, sockets, streams = in_step(hand, 3 * TOGETHER, 10)
    for socket in sockets:
        socket.cost_ns = MS // 10
    hand.now_ns = hand.asked_ns or 0
    hand.ring()
    assert [one.sent for one in streams] == [1] * TOGETHER + [0] * 2 * TOGETHER
    streams[waits].stop()
    streams[3].stop()  # of those that have been served
    hand.ring()
    hand.ring()
    assert [one.sent for one in streams] == [1] * waits + [0]
    hand.run()
    assert {number: len(socket.got) for number, socket in enumerate(sockets) if len(socket.got) != 11} == {
        3: 1,
        waits: 0,
    }


def test_a_stream_joins_those_it_is_in_step_with_and_is_never_a_round_ahead() -> None:
    hand = Hand()
    wheel, _, streams = in_step(hand, 3, 10)
    late, held = Socket(hand), Socket(hand)
    due = [20.0 * (i + 1) for i in range(5)] + [100.0]
    wheel.add(stream(late, due, 1_040 * MS, []))
    wheel.add(stream(held, due, 1_000 * MS, [], begun_ns=1_051 * MS))  # two chunks were overdue before it could begin
    hand.run()
    assert [at - 1_000 * MS for at, _ in late.got] == [at * MS for at in (60, 80, 100, 120, 140)]
    assert [at - 1_000 * MS for at, _ in held.got] == [at * MS for at in (51, 51, 60, 80, 100)]
    assert all(one.sent == 11 for one in streams)


def test_one_of_those_in_step_that_cannot_make_its_chunk_breaks_alone_and_has_not_sent_it() -> None:
    hand, errors = Hand(), []
    wheel, _, streams = in_step(hand, 3, 10)
    other = Socket(hand)
    due = [20 * MS * (i + 1) for i in range(10)] + [200 * MS]
    wires = {0: b"0", 1: b"1", 2: b"2"}.__getitem__
    broken = Stream(
        other, wires, due, 1_000 * MS, begun_ns=0, ended=errors.append, broke=errors.append, even=evenly(due)
    )
    wheel.add(broken)
    hand.run()
    assert [type(error) for error in errors] == [KeyError]
    assert (broken.sent, len(other.got), broken.stopped) == (3, 3, True)
    assert [one.sent for one in streams] == [11, 11, 11]


@pytest.mark.parametrize(
    ("due_ms", "chunks", "interval"),
    [
        ([20, 40, 60, 60], 3, 20),
        ([20, 40, 60, 70, 70], 3, 20),
        ([0, 40, 80, 120], 3, 40),
        ([33.3, 66.7, 100, 100], 0, 1),
        ([20, 20, 40, 40], 0, 1),
        ([20, 20], 0, 1),
        ([0.5, 20.5, 40.5, 60], 3, 20),
    ],
)
def test_even_is_what_goes_by_whole_slots_from_the_first_chunk_on(
    due_ms: list[float], chunks: int, interval: int
) -> None:
    assert evenly([round(at * MS) for at in due_ms]) == (chunks, interval)


def test_what_was_overdue_before_the_media_could_begin_is_not_the_testers_lateness() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    hand.now_ns = 3_000 * MS
    late = stream(socket, [20.0 * (i + 1) for i in range(101)], 1_000 * MS, ended, begun_ns=hand.now_ns)
    wheel.add(late)
    hand.run()
    assert [at for at, _ in socket.got] == [3_000 * MS] * 100
    assert set(wheel.ledger.late_ns) == {0}
    assert ended == [1_000 * MS + 2_020 * MS]


def test_a_live_camera_drops_frames_that_are_late_by_more_than_one_interval_but_never_the_first_or_last() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    camera = stream(socket, [40.0 * i for i in range(11)], 1_000 * MS, ended, drop_late=True)
    wheel.add(camera)
    stalls = iter([0, 0, 0, 125 * MS])
    hand.run(lambda: next(stalls, 0))
    assert [wire for _, wire in socket.got] == [b"0", b"1", b"2", b"6", b"7", b"8", b"9"]
    assert (camera.sent, camera.dropped) == (7, {3, 4, 5}), "those 125, 85 and 45 ms late; not the one 5 ms late"
    assert len(wheel.ledger.late_ns) == 7
    hand.now_ns, overdue = 9_000 * MS, Socket(hand)
    wheel.add(stream(overdue, [40.0 * i for i in range(11)], 1_000 * MS, ended, drop_late=True))
    hand.run()
    assert [wire for _, wire in overdue.got] == [b"0", b"9"]


def test_a_stopped_stream_sends_nothing_more_and_tells_of_no_end() -> None:
    hand, ended = Hand(), []
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    one = stream(socket, [20, 40, 60, 60], 1_000 * MS, ended)
    wheel.add(one)
    hand.now_ns = 1_020 * MS
    hand.ring()
    one.stop()
    hand.run()
    assert len(socket.got) == 1
    assert ended == []


def test_a_message_that_cannot_be_made_breaks_its_own_stream_and_no_other() -> None:
    hand, ended, errors = Hand(), [], []
    wheel, socket, other = Wheel(hand.clock, hand.make), Socket(hand), Socket(hand)
    due = array("q", [20 * MS, 40 * MS, 40 * MS])
    no = Stream(socket, {}.__getitem__, due, 1_000 * MS, begun_ns=0, ended=ended.append, broke=errors.append)
    wheel.add(no)
    wheel.add(stream(other, [20, 40, 40], 1_000 * MS, ended))
    hand.run()
    assert [type(error) for error in errors] == [KeyError]
    assert len(other.got) == 2
    assert len(ended) == 1


def test_the_log_holds_due_and_sent_from_media_zero_and_what_was_still_unsent() -> None:
    hand, log = Hand(), ChunkLog()
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand, held=700)
    logged = stream(socket, [20, 40, 40], 1_000 * MS, [], log=log)
    wheel.add(logged)
    hand.run(lambda: 3 * MS)
    lateness = wheel.ledger.leave(logged.row)
    due, sent, unsent = log.times(logged)
    assert due.tolist() == [20 * MS, 40 * MS]
    assert sent.tolist() == [23 * MS, 43 * MS]
    assert unsent.tolist() == [700, 700]
    assert (lateness, logged.unsent_max) == ((6 * MS, 3 * MS), 700)


def test_without_a_log_of_each_chunk_the_sums_are_the_same() -> None:
    hand = Hand()
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand, held=700)
    plain = stream(socket, [20, 40, 40], 1_000 * MS, [])
    wheel.add(plain)
    stalls = iter([3 * MS, 9 * MS])
    hand.run(lambda: next(stalls, 0))
    assert (wheel.ledger.leave(plain.row), plain.unsent_max) == ((12 * MS, 9 * MS), 700)


def test_what_was_sent_of_a_running_sum_leaves_out_what_was_dropped() -> None:
    hand = Hand()
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    camera = stream(socket, [40, 80, 120, 160, 160], 1_000 * MS, [], drop_late=True)
    wheel.add(camera)
    stalls = iter([0, 95 * MS])
    hand.run(lambda: next(stalls, 0))
    assert camera.dropped == {1, 2}
    assert camera.volume([0, 1, 11, 111, 1111]) == 1001


def test_the_log_of_a_camera_leaves_out_what_was_dropped() -> None:
    hand, log = Hand(), ChunkLog()
    wheel, socket = Wheel(hand.clock, hand.make), Socket(hand)
    due_ms = [40.0 * number for number in range(1, 7)] + [240.0]
    camera = stream(socket, due_ms, 1_000 * MS, [], log=log, drop_late=True)
    wheel.add(camera)
    stalls = iter([0, 130 * MS])
    hand.run(lambda: next(stalls, 0))
    assert (camera.sent, camera.dropped) == (3, {1, 2, 3})
    wheel.ledger.leave(camera.row)
    assert [[at // MS for at in times] for times in log.times(camera)] == [[40, 200, 240], [40, 210, 240], [0, 0, 0]]


CHUNKS = st.lists(st.integers(0, 90 * MS), min_size=1, max_size=30)


@settings(max_examples=examples(100), deadline=None)
@given(
    plans=st.lists(st.tuples(CHUNKS, st.integers(0, 50 * MS), st.integers(0, 40 * MS)), min_size=1, max_size=8),
    stalls=st.lists(st.integers(0, 300 * MS), max_size=60),
    cost_ns=st.integers(0, 3 * MS),
)
def test_every_chunk_is_handed_over_once_in_order_and_never_before_it_is_due(
    plans: list[tuple[list[int], int, int]], stalls: list[int], cost_ns: int
) -> None:
    hand, pauses = Hand(), iter(stalls)
    wheel = Wheel(hand.clock, hand.make)
    watched = []
    for gaps, phase_ns, tail_ns in plans:
        due = [sum(gaps[: i + 1]) for i in range(len(gaps))]
        socket, ended, zero = Socket(hand, cost_ns), [], 1_000 * MS + phase_ns
        wheel.add(stream(socket, [at / MS for at in [*due, due[-1] + tail_ns]], zero, ended))
        watched.append((socket, ended, zero, due, due[-1] + tail_ns))
    hand.run(lambda: next(pauses, 0))
    for socket, ended, zero, due, length in watched:
        assert [wire for _, wire in socket.got] == [b"%d" % i for i in range(len(due))]
        assert all(at >= zero + at_due for (at, _), at_due in zip(socket.got, due, strict=True))
        assert len(ended) == 1
        assert ended[0] >= zero + length
        assert ended[0] >= socket.got[-1][0]
    late_ns = wheel.ledger.late_ns
    assert len(late_ns) == sum(len(due) for _, _, _, due, _ in watched)
    assert min(late_ns) >= 0


@pytest.mark.looptime
async def test_on_the_loop_the_times_of_the_chunks_are_exact() -> None:
    loop = asyncio.get_running_loop()

    def clock() -> int:
        return round(loop.time() * 1e9)

    class Wire:
        def __init__(self) -> None:
            self.at: list[int] = []

            self.mouth = [self.straight]

        def straight(self, wire: bytes) -> int:
            self.at.append(clock())
            return len(wire)

    done: asyncio.Future[int] = loop.create_future()
    wheel = Wheel(clock, lambda ring: LoopAlarm(ring, clock))
    wire = Wire()
    start = media_zero(clock(), clock(), 20, 7)
    due = [20 * MS * (i + 1) for i in range(500)]
    wheel.add(
        Stream(
            wire,
            lambda i: b"x",
            [*due, due[-1]],
            start,
            begun_ns=0,
            ended=done.set_result,
            broke=done.set_exception,
        )
    )
    assert await done == start + 10_000 * MS
    assert wire.at == [start + at for at in due]


@pytest.mark.parametrize(
    ("ready_ms", "origin_ms", "interval_ms", "phase_ms", "zero_ms"),
    [
        (1000, 1000, 20, 0, 1020),  # at least a millisecond after ready: the tick of this very moment is gone
        (999, 1000, 20, 0, 1000),
        (1003.2, 1000, 20, 7, 1007),
        (1006.5, 1000, 20, 7, 1027),  # half a millisecond is too short
        (5000, 1000, 40, 39, 5039),
        (5000, 999.5, 40, 0, 5040),  # an origin between slots counts from the next one
        (500, 1000, 20, 3, 503),  # ready before the origin
    ],
)
def test_media_begins_on_the_sessions_own_chunk_clock(
    ready_ms: float, origin_ms: float, interval_ms: int, phase_ms: int, zero_ms: int
) -> None:
    assert media_zero(round(ready_ms * MS), round(origin_ms * MS), interval_ms, phase_ms) == zero_ms * MS
