"""When chunks leave: one schedule for all sessions, a wheel of slots one millisecond wide.

Every chunk has an absolute due time. It leaves in the first slot that begins at or after it, so never early, and a late
one changes nothing about those that follow. There is no object, task or sleep per chunk; a stream waits in the slot of
its next chunk. A turn hands over for two milliseconds at most, the longest overdue first, and then lets the loop read.
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


class Tally:
    """What is kept of the chunks of one utterance: how late they were, and the most bytes that one found unsent."""

    __slots__ = ("late_max_ns", "late_sum_ns", "unsent_max")

    def __init__(self) -> None:
        self.late_sum_ns = self.late_max_ns = self.unsent_max = 0

    def held(self, _sent: int, unsent: int) -> None:
        """A chunk found so many bytes of earlier ones unsent."""
        self.unsent_max = max(self.unsent_max, unsent)

    def note(self, late_ns: int) -> None:
        """One chunk more."""
        self.late_sum_ns += late_ns
        if late_ns > self.late_max_ns:
            self.late_max_ns = late_ns


class ChunkLog:
    """The same, and of each chunk: how late it was, and with it when it left.

    One append a chunk, and what follows from it is worked out when it is asked for.
    """

    __slots__ = ("_late_ns", "_unsent", "note")

    def __init__(self) -> None:
        self._late_ns: array[int] = array("q")
        self._unsent: dict[int, int] = {}
        self.note = self._late_ns.append

    def held(self, sent: int, unsent: int) -> None:
        """See `Tally`; it was number `sent` of those that were sent, from 0."""
        self._unsent[sent] = unsent

    @property
    def unsent_max(self) -> int:
        """The most bytes that one found unsent."""
        return max(self._unsent.values(), default=0)

    @property
    def late_sum_ns(self) -> int:
        """All lateness together."""
        return sum(self._late_ns)

    @property
    def late_max_ns(self) -> int:
        """The worst."""
        return max(self._late_ns, default=0)

    def times(self, stream: "Stream") -> tuple["array[int]", "array[int]", "array[int]"]:
        """Of each chunk sent: when it was due and left, from media zero, and the bytes of earlier ones still unsent."""
        planned = stream.due_ns[: stream.sent + len(stream.dropped)]
        kept = [at for index, at in enumerate(planned) if index not in stream.dropped] if stream.dropped else planned
        due = np.array(kept, dtype=np.int64)
        sent = np.maximum(due, stream.begun_ns - stream.zero_ns) + np.frombuffer(self._late_ns, dtype=np.int64)
        held = np.zeros(len(due), dtype=np.int64)
        held[list(self._unsent)] = list(self._unsent.values())
        return array("q", due.tobytes()), array("q", sent.tobytes()), array("q", held.tobytes())


class Stream:
    """The media of one utterance on its way.

    `due_ns` holds the chunks' due times from media zero and, behind them, the media's length: `ended` is called then,
    once every chunk has been handed over. `wire(i)` gives chunk `i`. A chunk that was overdue before the media could
    begin (`begun_ns`) counts as due then: that wait was not the tester's. With `drop_late` a chunk that is late by more
    than the mean interval is dropped, but never the first or the last, which may carry more than a frame. `log` is told
    how late each was, and so is the ledger, the run's unless `add` was given another.

    `next_ns` is when the next chunk, or the end behind the last one, is due; never before the media could begin.
    """

    __slots__ = (
        *("_drop_ns", "_last", "_log", "_next", "_note", "_wire", "_write"),
        *("begun_ns", "broke", "dropped", "due_ns", "ended", "log", "next_ns", "stopped", "zero_ns"),
    )

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
        log: ChunkLog | Tally | None = None,
    ) -> None:
        self._write, self._wire, self.due_ns = link.write, wire, due_ns
        self._next, self._last = 0, len(due_ns) - 2
        self._drop_ns = due_ns[-1] // max(1, self._last + 1) if drop_late else None
        self.zero_ns, self.begun_ns, self.ended, self.broke = zero_ns, begun_ns, ended, broke
        self.log = log or Tally()
        self._log = self.log.note
        self.next_ns = max(zero_ns + due_ns[0], begun_ns)
        self.dropped: set[int] = set()
        self.stopped = False

    def keep_in(self, ledger: Ledger) -> None:
        """Where lateness is written down; the wheel says so when it takes the stream on."""
        self._note = ledger.note

    @property
    def sent(self) -> int:
        """Chunks handed over."""
        return self._next - len(self.dropped)

    def volume(self, sums: Sequence[int]) -> int:
        """What has been sent of something whose running sums by chunk these are, from 0."""
        return sums[self._next] - sum(sums[index + 1] - sums[index] for index in self.dropped)

    def turn(self, clock: Clock) -> int:
        """Hand over the chunk that is due, or tell of the end, and stop; when that was. Little is done a chunk: behind
        each system call the processor has forgotten this code and its data.
        """
        index = self._next
        if index > self._last:
            return self._end(clock())
        if self._drop_ns is not None and self._drops(index, clock()):
            return clock()
        unsent = self._write(self._wire(index))
        at_ns = clock()
        late_ns = at_ns - self.next_ns
        self._note(late_ns)
        self._log(late_ns)
        self._next = index + 1
        due_ns = self.zero_ns + self.due_ns[index + 1]
        self.next_ns = due_ns if due_ns > self.begun_ns else self.begun_ns
        if unsent:
            self.log.held(self.sent - 1, unsent)
        return at_ns

    def _end(self, at_ns: int) -> int:
        self.stopped = True
        self.ended(at_ns)
        return at_ns

    def _drops(self, index: int, now_ns: int) -> bool:
        late = self._drop_ns is not None and now_ns - self.zero_ns - self.due_ns[index] > self._drop_ns
        if not late or not 0 < index < self._last:
            return False
        self.dropped.add(index)
        self._next = index + 1
        self.next_ns = max(self.zero_ns + self.due_ns[index + 1], self.begun_ns)
        return True

    def stop(self) -> None:
        """Hand over nothing more, and tell of no end."""
        self.stopped = True


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
        stream.keep_in(ledger or self.ledger)
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
        """The hot path: some dozen microseconds a chunk decide how many sessions a core can carry."""
        heap, slots, clock, place, now = self._heap, self._slots, self.clock, self._place, self.clock()
        limit = now + BUDGET_NS
        self._turning = True
        try:
            while heap and heap[0] * SLOT_NS <= now < limit:
                slot = heappop(heap)
                bucket = slots.pop(slot)
                for done, stream in enumerate(bucket, 1):
                    if stream.stopped:
                        continue
                    try:
                        now = stream.turn(clock)
                    except Exception as error:  # one session's trouble: it is told, and the wheel turns on
                        stream.stop()
                        stream.broke(error)
                        continue
                    if not stream.stopped:
                        place(stream)
                    if now >= limit and done < len(bucket):
                        self._put_back(slot, bucket[done:])
                        break
        finally:
            self._turning = False
            self._arm()

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
