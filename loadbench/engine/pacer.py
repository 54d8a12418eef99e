"""When chunks leave: one schedule for all sessions, a wheel of slots one millisecond wide.

Every chunk has an absolute due time. It leaves in the first slot that begins at or after it, so never early, and a late
one changes nothing about those that follow. There is no object, task or sleep per chunk; a stream waits in the slot of
its next chunk. A turn hands over for two milliseconds, the longest overdue first, and then lets the loop read.

Chunks that are due together are made ready together, then handed over without anything between them, then written
down: behind each system call the processor has forgotten our code and its data, and a far side on this machine that is
kept busy need not be woken for each.
"""

from array import array
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Final

import numpy as np

from loadbench.engine.alarm import BUDGET_NS, MS, Alarm, MakeAlarm
from loadbench.engine.ledger import Ledger
from loadbench.transports.contract import Buffer, Clock, Link

SLOT_NS: Final = MS
TOGETHER: Final = 32  # chunks made ready at once: the first waits for the others, some hundredths of a millisecond


class ChunkLog:
    """Of each chunk of an utterance: how late it was, and with it when it left; and what it found unsent."""

    __slots__ = ("_late_ns", "note", "unsent")

    def __init__(self) -> None:
        self._late_ns: array[int] = array("q")
        self.unsent: dict[int, int] = {}  # by number among those that were sent, from 0
        self.note = self._late_ns.append

    def times(self, stream: "Stream") -> tuple["array[int]", "array[int]", "array[int]"]:
        """Of each chunk sent: when it was due and left, from media zero, and the bytes of earlier ones still unsent."""
        planned = stream.due_ns[: stream.sent + len(stream.dropped)]
        kept = [at for index, at in enumerate(planned) if index not in stream.dropped] if stream.dropped else planned
        due = np.array(kept, dtype=np.int64)
        sent = np.maximum(due, stream.begun_ns - stream.zero_ns) + np.frombuffer(self._late_ns, dtype=np.int64)
        held = np.zeros(len(due), dtype=np.int64)
        held[list(self.unsent)] = list(self.unsent.values())
        return array("q", due.tobytes()), array("q", sent.tobytes()), array("q", held.tobytes())


class Stream:
    """The media of one utterance on its way.

    `due_ns` holds the chunks' due times from media zero and, behind them, the media's length: `ended` is called then,
    once every chunk has been handed over. `wire(i)` gives chunk `i`. A chunk that was overdue before the media could
    begin (`begun_ns`) counts as due then: that wait was not the tester's. With `drop_late` a chunk that is late by more
    than the mean interval is dropped, but never the first or the last, which may carry more than a frame.

    `next_ns` is when the next chunk, or the end behind the last one, is due; never before the media could begin.
    `unsent_max` is the most bytes that a chunk found unsent. How late the chunks were is in the ledger that the wheel
    was given, in `row`; `log` is told of each.
    """

    __slots__ = (
        *("_drop_ns", "_last", "_next", "_wire", "begun_ns", "broke", "dropped", "due_ns", "ended", "ledger", "link"),
        *("log", "next_ns", "row", "stopped", "unsent_max", "zero_ns"),
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
    ) -> None:
        self.link, self._wire, self.due_ns = link, wire, due_ns
        self._next, self._last = 0, len(due_ns) - 2
        self._drop_ns = due_ns[-1] // max(1, self._last + 1) if drop_late else None
        self.zero_ns, self.begun_ns, self.ended, self.broke = zero_ns, begun_ns, ended, broke
        self.log = log
        self.next_ns = max(zero_ns + due_ns[0], begun_ns)
        self.dropped: set[int] = set()
        self.unsent_max = 0
        self.stopped = False

    @property
    def sent(self) -> int:
        """Chunks handed over."""
        return self._next - len(self.dropped)

    def volume(self, sums: Sequence[int]) -> int:
        """What has been sent of something whose running sums by chunk these are, from 0."""
        return sums[self._next] - sum(sums[index + 1] - sums[index] for index in self.dropped)

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


class Piece:
    """Chunks that leave together, all of them in one ledger, and what is to be written down of them."""

    __slots__ = ("_chunks", "_due_ns", "_logs", "_rows", "_streams", "ledger")

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._streams: list[Stream] = []
        self._chunks: list[tuple[Callable[[Buffer], int], Buffer]] = []
        self._due_ns: list[int] = []
        self._rows: list[int] = []
        self._logs: list[tuple[int, ChunkLog]] = []

    def add(self, stream: Stream, wire: Buffer, due_ns: int) -> None:
        """One more."""
        if stream.log is not None:
            self._logs.append((len(self._streams), stream.log))
        self._streams.append(stream)
        self._chunks.append((stream.link.straight, wire))
        self._due_ns.append(due_ns)
        self._rows.append(stream.row)

    def hand_over(self, clock: Clock) -> None:
        """All of them, and write down how late each was."""
        late_ns = [at_ns - due_ns for at_ns, due_ns in zip(self._send(clock), self._due_ns, strict=True)]
        self.ledger.note(self._rows, late_ns)
        for index, log in self._logs:
            log.note(late_ns[index])

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


class Wheel:
    """The shared schedule. `ledger` is that of the run: of all streams that bring none of their own."""

    def __init__(self, clock: Clock, make_alarm: MakeAlarm) -> None:
        self.clock = clock
        self._alarm: Alarm = make_alarm(self._turn)
        self._slots: dict[int, list[Stream]] = {}
        self._heap: list[int] = []
        self._turning = False
        self.ledger = Ledger()

    def add(self, stream: Stream, ledger: Ledger | None = None) -> None:
        """Take a stream on; its first chunk leaves when it is due. Without a ledger of its own it is in the run's."""
        stream.ledger = ledger or self.ledger
        stream.row = stream.ledger.enrol()
        self._place(stream)
        if not self._turning:
            self._arm()

    def close(self) -> None:
        """Hand over nothing more."""
        self._slots.clear()
        self._heap.clear()
        self._alarm.close()

    def _place(self, stream: Stream) -> None:
        slot = -(-stream.next_ns // SLOT_NS)
        bucket = self._slots.get(slot)
        if bucket is None:
            self._slots[slot] = [stream]
            heappush(self._heap, slot)
        else:
            bucket.append(stream)

    def _turn(self) -> None:
        heap, slots, now = self._heap, self._slots, self.clock()
        limit = now + BUDGET_NS
        self._turning = True
        try:
            while heap and heap[0] * SLOT_NS <= now < limit:
                slot = heappop(heap)
                bucket = slots.pop(slot)
                for done in range(TOGETHER, len(bucket) + TOGETHER, TOGETHER):
                    self._hand_over(bucket[done - TOGETHER : done])
                    now = self.clock()
                    if now >= limit and done < len(bucket):
                        self._put_back(slot, bucket[done:])
                        break
        finally:
            self._turning = False
            self._arm()

    def _hand_over(self, streams: list[Stream]) -> None:
        """The hot path: what it costs a chunk decides how many sessions a core can carry."""
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
            piece.add(stream, wire, due_ns)
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

    def _put_back(self, slot: int, rest: list[Stream]) -> None:
        later = self._slots.get(slot)
        if later is None:
            heappush(self._heap, slot)
        self._slots[slot] = rest + (later or [])

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
