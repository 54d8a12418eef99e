"""When chunks leave: one schedule for all sessions, a wheel of slots one millisecond wide.

Every chunk has an absolute due time. It leaves in the first slot that begins at or after it, so never early, and a late
one changes nothing about those that follow. There is no object, task or sleep per chunk; a stream waits in the slot of
its next chunk. A turn hands over for two milliseconds, the longest overdue first, and then lets the loop read.

Chunks that are due together are made ready together, then handed over without anything between them, then written
down: behind each system call the processor has forgotten our code and its data, and a far side on this machine that is
kept busy need not be woken for each. Streams that are in step, most of them for most of their length, go from slot to
slot together as a cohort: what is read and written for each chunk is what then bounds the sessions of a core.
"""

from array import array
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from operator import length_hint
from typing import Any, Final, NamedTuple

import numpy as np

from loadbench.engine.alarm import BUDGET_NS, MS, Alarm, MakeAlarm
from loadbench.engine.ledger import Ledger
from loadbench.transports.contract import Buffer, Clock, Link

SLOT_NS: Final = MS
TOGETHER: Final = 64  # chunks made ready at once: the first waits for the others, some hundredths of a millisecond


class ChunkLog:
    """Of each chunk of an utterance: how late it was, and with it when it left; and what it found unsent.

    Complete when the stream has left its ledger.
    """

    __slots__ = ("late_ns", "unsent")

    def __init__(self) -> None:
        self.late_ns: array[int] = array("q")
        self.unsent: dict[int, int] = {}  # by number among those that were sent, from 0

    def times(self, stream: "Stream") -> tuple["array[int]", "array[int]", "array[int]"]:
        """Of each chunk sent: when it was due and left, from media zero, and the bytes of earlier ones still unsent."""
        planned = stream.due_ns[: stream.sent + len(stream.dropped)]
        kept = [at for index, at in enumerate(planned) if index not in stream.dropped] if stream.dropped else planned
        due = np.array(kept, dtype=np.int64)
        sent = np.maximum(due, stream.begun_ns - stream.zero_ns) + np.frombuffer(self.late_ns, dtype=np.int64)
        held = np.zeros(len(due), dtype=np.int64)
        held[list(self.unsent)] = list(self.unsent.values())
        return array("q", due.tobytes()), array("q", sent.tobytes()), array("q", held.tobytes())


class Even(NamedTuple):
    """How many chunks at the start of a clip are due at even times, and how many slots lie between two of them."""

    chunks: int
    interval: int


UNEVEN: Final = Even(0, 1)


def evenly(due_ns: Sequence[int]) -> Even:
    """The even start of due times, behind which the media's length stands; none of it where it fits no whole slots."""
    due = np.array(due_ns[:-1], dtype=np.int64)
    if len(due) < 2 or due[1] <= due[0] or (due[1] - due[0]) % SLOT_NS:
        return UNEVEN
    steps = np.diff(due)
    uneven = np.flatnonzero(steps != steps[0])
    return Even(int(uneven[0]) + 1 if len(uneven) else len(due), int(steps[0]) // SLOT_NS)


class Stream:
    """The media of one utterance on its way.

    `due_ns` holds the chunks' due times from media zero and, behind them, the media's length: `ended` is called then,
    once every chunk has been handed over. `wire(i)` gives chunk `i`. A chunk that was overdue before the media could
    begin (`begun_ns`) counts as due then: that wait was not the tester's. With `drop_late` a chunk that is late by more
    than the mean interval is dropped, but never the first or the last, which may carry more than a frame. `even` is
    what `evenly` finds in the due times.

    `next_ns` is when the next chunk, or the end behind the last one, is due; never before the media could begin. It is
    not kept while the stream is in a cohort. `unsent_max` is the most bytes that a chunk found unsent. How late the
    chunks were is in the ledger that the wheel was given, in `row`, and there `log` is told of each.
    """

    __slots__ = (
        *("_drop_ns", "_even", "_last", "_next", "_steps", "_wire", "begun_ns", "broke", "cohort", "dropped"),
        *("due_ns", "ended", "ledger", "link", "log", "next_ns", "row", "stopped", "unsent_max", "zero_ns"),
    )

    ledger: Ledger  # from when the wheel takes the stream on
    row: int

    def __init__(
        self,
        link: Link,
        wire: Callable[[int], Buffer],
        due_ns: Sequence[int],
        zero_ns: int,
        *,
        begun_ns: int,
        ended: Callable[[int], None],
        broke: Callable[[Exception], None],
        drop_late: bool = False,
        log: ChunkLog | None = None,
        even: Even = UNEVEN,
    ) -> None:
        self.link, self._wire, self.due_ns = link, wire, due_ns
        self._next, self._last = 0, len(due_ns) - 2
        self._drop_ns = due_ns[-1] // max(1, self._last + 1) if drop_late else None
        self.zero_ns, self.begun_ns, self.ended, self.broke = zero_ns, begun_ns, ended, broke
        self.log = log
        self._even = UNEVEN if drop_late else even
        self._steps: Any = None  # the iterator of the chunks' numbers while the stream is in a cohort
        self.cohort: Cohort | None = None
        self.next_ns = max(zero_ns + due_ns[0], begun_ns)
        self.dropped: set[int] = set()
        self.unsent_max = 0
        self.stopped = False

    @property
    def sent(self) -> int:
        """Chunks handed over."""
        return self._at - len(self.dropped)

    @property
    def _at(self) -> int:
        """The number of the next chunk."""
        return self._next if self._steps is None else self._even.chunks - length_hint(self._steps)

    def volume(self, sums: Sequence[int]) -> int:
        """What has been sent of something whose running sums by chunk these are, from 0."""
        return sums[self._at] - sum(sums[index + 1] - sums[index] for index in self.dropped)

    @property
    def interval(self) -> int:
        """Slots from each chunk to the next, from the one that is due next on; 0 where it has no even time to go."""
        left = self._even.chunks - self._next
        if left < 2 or self.next_ns % SLOT_NS or self.next_ns != self.zero_ns + self.due_ns[self._next]:
            return 0
        return self._even.interval

    def join(self, cohort: "Cohort") -> tuple["Member", int]:
        """Go in step with others from now on; and for how many chunks."""
        self.cohort = cohort
        self._steps = iter(range(self._next, self._even.chunks))
        chunks = map(self._wire, self._steps)
        left = self._even.chunks - self._next
        return Member(self.link.mouth, chunks.__next__, self.row, self), left

    def leave(self, *, failed: bool = False) -> None:
        """Go alone again, with the chunk that is due next; `failed`: with the one that could not be made."""
        at = self._next = self._at - failed
        self._steps.__setstate__(self._even.chunks)  # a cohort in the middle of its round finds nothing more
        self._steps = self.cohort = None
        self.next_ns = max(self.zero_ns + self.due_ns[at], self.begun_ns)

    @property
    def over(self) -> bool:
        """Whether every chunk has left, so that what is due next is the end."""
        return self._next > self._last

    def take(self, clock: Clock) -> Buffer | None:
        """The chunk that is due, and from now on the next one is; None where it was dropped, or there is none left."""
        index = self._next
        if index > self._last:
            return None
        wire = None if self._drop_ns is not None and self._drops(index, clock()) else self._wire(index)
        self._next = index = index + 1
        due_ns = self.zero_ns + self.due_ns[index]
        self.next_ns = due_ns if due_ns > self.begun_ns else self.begun_ns
        return wire

    def rest(self, wire: Buffer, taken: int) -> None:
        """Go on with the chunk that was taken last, of which the system took only a part."""
        unsent = self.link.rest(wire, taken)
        if unsent:
            self.unsent_max = max(self.unsent_max, unsent)
            if self.log is not None:
                self.log.unsent[self.sent - 1] = unsent

    def end(self, at_ns: int) -> None:
        """The media is over."""
        self.stopped = True
        self.ended(at_ns)

    def _drops(self, index: int, now_ns: int) -> bool:
        late = self._drop_ns is not None and now_ns - self.zero_ns - self.due_ns[index] > self._drop_ns
        if late and 0 < index < self._last:
            self.dropped.add(index)
            return True
        return False

    def stop(self) -> None:
        """Hand over nothing more, and tell of no end."""
        self.stopped = True
        if self.cohort is not None:
            self.cohort.lose(self)


class Piece:
    """Chunks that leave together, all of them in one ledger, and what is to be written down of them."""

    __slots__ = ("_chunks", "_due_ns", "_rows", "_streams", "ledger")

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._streams: list[Stream] = []
        self._chunks: list[tuple[Callable[[Buffer], int], Buffer]] = []
        self._due_ns: list[int] = []
        self._rows: list[int] = []

    def add(self, send: Callable[[Buffer], int], wire: Buffer, due_ns: int, row: int, stream: Stream) -> None:
        """One more; `send` is what the mouth of the stream's link holds."""
        self._streams.append(stream)
        self._chunks.append((send, wire))
        self._due_ns.append(due_ns)
        self._rows.append(row)

    def hand_over(self, clock: Clock) -> None:
        """All of them, and write down how late each was."""
        late_ns = [at_ns - due_ns for at_ns, due_ns in zip(self._send(clock), self._due_ns, strict=True)]
        self.ledger.note(self._rows, late_ns)

    def _send(self, clock: Clock) -> list[int]:
        """When each left."""
        sent_ns, short = list[int](), dict[int, int]()
        for send, wire in self._chunks:  # nothing here but what the system does
            try:
                taken = send(wire)
            except OSError:  # full, or broken: the link meets the same again, and says so where it belongs
                taken = 0
            if taken != len(wire):
                short[len(sent_ns)] = taken
            sent_ns.append(clock())
        for index, taken in short.items():
            self._streams[index].rest(self._chunks[index][1], taken)
            sent_ns[index] = clock()
        return sent_ns


class Member(NamedTuple):
    """What a cohort needs of a stream for each chunk, and no more."""

    mouth: list[Callable[[Buffer], int]]
    chunk: Callable[[], Buffer]
    row: int
    stream: Stream


class Cohort:
    """Streams whose chunks are due at the beginnings of the same slots, `interval` of them apart; `slot` is the next.

    `troubles` are the streams that could not make their chunk.
    """

    __slots__ = ("_done", "_leaving", "_members", "_stale", "interval", "ledger", "slot", "troubles")

    def __init__(self, ledger: Ledger, slot: int, interval: int) -> None:
        self.ledger, self.slot, self.interval = ledger, slot, interval
        self.troubles: list[tuple[Stream, Exception]] = []
        self._members: list[Member] = []
        self._done = 0  # of this round
        self._stale = False
        self._leaving: dict[int, list[Stream]] = {}

    def __bool__(self) -> bool:
        return bool(self._members)

    def admits(self, slot: int) -> bool:
        """Whether a stream whose next chunk is due in this slot can come along."""
        return slot == self.slot

    def add(self, stream: Stream) -> None:
        """Take a stream along for as long as its due times are even."""
        member, left = stream.join(self)
        self._members.append(member)
        self._leaving.setdefault(self.slot + (left - 1) * self.interval, []).append(stream)

    def lose(self, stream: Stream, *, failed: bool = False) -> None:
        """A stream was stopped, or could not make its chunk."""
        stream.leave(failed=failed)
        self._stale = True
        for leaving in self._leaving.values():
            if stream in leaving:
                leaving.remove(stream)
                break

    def hand_over(self, clock: Clock, limit_ns: int) -> bool:
        """The chunks of this slot. False where the time was over before all had left; the rest goes on from there."""
        due_ns, now = self.slot * SLOT_NS, 0
        while self._done < len(self._members) and now < limit_ns:
            piece = Piece(self.ledger)
            for mouth, chunk, row, stream in self._members[self._done : self._done + TOGETHER]:
                try:
                    piece.add(mouth[0], chunk(), due_ns, row, stream)
                except StopIteration:  # it was stopped
                    continue
                except Exception as error:
                    self.lose(stream, failed=True)
                    self.troubles.append((stream, error))
            self._done += TOGETHER
            piece.hand_over(clock)
            now = clock()
        return self._done >= len(self._members)

    def go_on(self) -> list[Stream]:
        """To the next slot. Those that leave here."""
        leaving = self._leaving.pop(self.slot, [])
        for stream in leaving:
            stream.leave()
        if leaving or self._stale:
            self._members = [member for member in self._members if member.stream.cohort is self]
        self._done, self._stale = 0, False
        self.slot += self.interval
        return leaving


Bucket = tuple[list[Cohort], list[Stream]]


class Wheel:
    """The shared schedule. `ledger` is that of the run: of all streams that bring none of their own."""

    def __init__(self, clock: Clock, make_alarm: MakeAlarm) -> None:
        self.clock = clock
        self._alarm: Alarm = make_alarm(self._turn)
        self._slots: dict[int, Bucket] = {}
        self._heap: list[int] = []
        self._cohorts: dict[tuple[Ledger, int, int], Cohort] = {}  # by ledger, interval and phase
        self._turning = False
        self.ledger = Ledger()

    def add(self, stream: Stream, ledger: Ledger | None = None) -> None:
        """Take a stream on; its first chunk leaves when it is due. Without a ledger of its own it is in the run's."""
        stream.ledger = ledger or self.ledger
        stream.row = stream.ledger.enrol(None if stream.log is None else stream.log.late_ns)
        self._place(stream)
        if not self._turning:
            self._arm()

    def close(self) -> None:
        """Hand over nothing more."""
        self._slots.clear()
        self._cohorts.clear()
        self._heap.clear()
        self._alarm.close()

    def _place(self, stream: Stream) -> None:
        slot = -(-stream.next_ns // SLOT_NS)
        interval = stream.interval
        if not interval:
            self._bucket(slot)[1].append(stream)
            return
        key = (stream.ledger, interval, slot % interval)
        cohort = self._cohorts.get(key)
        if cohort is None:
            cohort = self._cohorts[key] = Cohort(stream.ledger, slot, interval)
            self._bucket(slot)[0].append(cohort)
        if cohort.admits(slot):
            cohort.add(stream)
        else:  # with its next chunk it may
            self._bucket(slot)[1].append(stream)

    def _bucket(self, slot: int) -> Bucket:
        bucket = self._slots.get(slot)
        if bucket is None:
            bucket = self._slots[slot] = ([], [])
            heappush(self._heap, slot)
        return bucket

    def _turn(self) -> None:
        heap, slots, now = self._heap, self._slots, self.clock()
        limit = now + BUDGET_NS
        self._turning = True
        try:
            while heap and heap[0] * SLOT_NS <= now < limit:
                slot = heappop(heap)
                cohorts, streams = self._serve(slots.pop(slot), limit)
                if cohorts or streams:
                    self._put_back(slot, cohorts, streams)
                now = self.clock()
        finally:
            self._turning = False
            self._arm()

    def _serve(self, bucket: Bucket, limit_ns: int) -> Bucket:
        """Hand over what is due in a slot. What is left when the time is over; something is always done."""
        cohorts, streams = bucket
        for done, cohort in enumerate(cohorts):
            if not cohort.hand_over(self.clock, limit_ns):
                return cohorts[done:], streams
            self._go_on(cohort)
        done, now = 0, 0 if not cohorts else self.clock()
        while done < len(streams) and now < limit_ns:
            self._hand_over(streams[done : done + TOGETHER])
            done += TOGETHER
            now = self.clock()
        return [], streams[done:]

    def _go_on(self, cohort: Cohort) -> None:
        troubles, cohort.troubles = cohort.troubles, []
        for stream, error in troubles:
            self._other(stream, error)
        leaving = cohort.go_on()
        if cohort:
            self._bucket(cohort.slot)[0].append(cohort)
        else:
            del self._cohorts[cohort.ledger, cohort.interval, cohort.slot % cohort.interval]
        for stream in leaving:
            self._place(stream)

    def _hand_over(self, streams: list[Stream]) -> None:
        """One chunk of each, or the end behind the last."""
        clock, place, piece = self.clock, self._place, Piece(self.ledger)
        others = list[tuple[Stream, Exception | None]]()
        for stream in streams:
            if stream.stopped:
                continue
            due_ns = stream.next_ns
            try:
                wire = stream.take(clock)
            except Exception as error:
                others.append((stream, error))
                continue
            if wire is None:
                others.append((stream, None))
                continue
            if stream.ledger is not piece.ledger:
                piece.hand_over(clock)
                piece = Piece(stream.ledger)
            piece.add(stream.link.mouth[0], wire, due_ns, stream.row, stream)
            place(stream)
        piece.hand_over(clock)
        for stream, trouble in others:
            self._other(stream, trouble)

    def _other(self, stream: Stream, trouble: Exception | None) -> None:
        """A stream that had no chunk to hand over; one session's trouble is told, and the wheel turns on."""
        if stream.stopped:
            return
        try:
            if trouble is not None:
                raise trouble
            if stream.over:
                stream.end(self.clock())
            else:
                self._place(stream)
        except Exception as error:
            stream.stop()
            stream.broke(error)

    def _put_back(self, slot: int, cohorts: list[Cohort], streams: list[Stream]) -> None:
        """What had no time goes before what has come meanwhile."""
        later = self._bucket(slot)
        later[0][:0] = cohorts
        later[1][:0] = streams

    def _arm(self) -> None:
        if self._heap:
            self._alarm.at(self._heap[0] * SLOT_NS)


def media_zero(ready_ns: int, origin_ns: int, interval_ms: int, phase_ms: int) -> int:
    """The first moment, at least a millisecond after `ready_ns`, that lies on a session's chunk clock.

    Clocks tick every `interval_ms` from `origin_ns`, each session's shifted by its phase, all on whole slots, so that
    sessions share neither the moment of a chunk nor lose time to the width of a slot.
    """
    first = -(-(ready_ns + SLOT_NS) // SLOT_NS)
    phase = -(-origin_ns // SLOT_NS) + phase_ms
    return (first + (phase - first) % interval_ms) * SLOT_NS
