"""When chunks leave: one schedule for all sessions, a wheel of slots one millisecond wide.

Every chunk has an absolute due time. It leaves in the first slot that begins at or after it, so never early, and a late
one changes nothing about those that follow. There is no object, task or sleep per chunk; a stream waits in the slot of
its next chunk. A turn hands over for two milliseconds at most, the longest overdue first, and then lets the loop read.
"""

from array import array
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Final

from loadbench.engine.alarm import BUDGET_NS, MS, Alarm, MakeAlarm
from loadbench.transports.contract import Buffer, Clock, Link

SLOT_NS: Final = MS


class ChunkLog:
    """Per-chunk times of one utterance: `sent` from media zero; which were dropped, and where bytes were still unsent.

    One append a chunk: what can be known otherwise is worked out when it is asked for.
    """

    __slots__ = ("dropped", "sent", "unsent")

    def __init__(self) -> None:
        self.sent: array[int] = array("q")
        self.unsent: dict[int, int] = {}
        self.dropped: set[int] = set()

    def due(self, due_ns: Sequence[int]) -> "array[int]":
        """When each that was sent was due, from media zero; `due_ns` of all."""
        planned = due_ns[: len(self.sent) + len(self.dropped)]
        return array("q", [at for index, at in enumerate(planned) if index not in self.dropped])

    def held(self) -> "array[int]":
        """How many bytes of earlier ones were unsent when each was."""
        return array("q", [self.unsent.get(index, 0) for index in range(len(self.sent))])


class Ledger:
    """What was handed over: `late_ns` gathers how late each chunk was, until `take`; `media_bytes` only grows."""

    __slots__ = ("late_ns", "media_bytes")

    def __init__(self) -> None:
        self.late_ns: array[int] = array("q")
        self.media_bytes = 0

    def take(self) -> "array[int]":
        """How late each chunk was that has been handed over since this was asked last."""
        taken = self.late_ns[:]
        del self.late_ns[:]  # the same object stays: streams hold on to its `append`
        return taken


class Stream:
    """The media of one utterance on its way.

    `due_ns` holds the chunks' due times from media zero and, behind them, the media's length: `ended` is called then,
    once every chunk has been handed over. `wire(i)` gives chunk `i`, which carries `media[i]` bytes of media. A chunk
    that was overdue before the media could begin (`begun_ns`) counts as due then: that wait was not the tester's. With
    `drop_late` a chunk that is late by more than the mean interval is dropped, but never the first or the last, which
    may carry more than a frame.

    `next_ns` is when the next chunk, or the end behind the last one, is due; never before the media could begin.
    """

    __slots__ = (
        "_begun_ns",
        "_drop_ns",
        "_due_ns",
        "_last",
        "_ledger",
        "_media",
        "_next",
        "_note",
        "_wire",
        "_write",
        "broke",
        "bytes",
        "dropped",
        "ended",
        "late_max_ns",
        "late_sum_ns",
        "log",
        "media_bytes",
        "next_ns",
        "stopped",
        "unsent_max",
        "zero_ns",
    )

    def __init__(
        self,
        link: Link,
        wire: Callable[[int], Buffer],
        due_ns: Sequence[int],
        media: Sequence[int],
        zero_ns: int,
        *,
        begun_ns: int,
        ended: Callable[[int], None],
        broke: Callable[[Exception], None],
        drop_late: bool = False,
        log: ChunkLog | None = None,
    ) -> None:
        self._write, self._wire, self._due_ns = link.write, wire, due_ns
        self._begun_ns, self._next, self._last = begun_ns, 0, len(due_ns) - 2
        self._drop_ns = due_ns[-1] // max(1, self._last + 1) if drop_late else None
        self.zero_ns, self.ended, self.broke, self.log, self._media = zero_ns, ended, broke, log, media
        self.next_ns = max(zero_ns + due_ns[0], begun_ns)
        self.dropped = self.bytes = self.media_bytes = 0
        self.late_sum_ns = self.late_max_ns = self.unsent_max = 0
        self.stopped = False

    def keep_in(self, ledger: Ledger) -> None:
        """Where what is handed over is written down; the wheel says so when it takes the stream on."""
        self._ledger, self._note = ledger, ledger.late_ns.append

    @property
    def sent(self) -> int:
        """Chunks handed over."""
        return self._next - self.dropped

    def turn(self, clock: Clock) -> int:
        """Hand over the chunk that is due, or tell of the end, and stop; when that was."""
        index = self._next
        if index > self._last:
            return self._end(clock())
        if self._drop_ns is not None and self._drops(index, clock()):
            return clock()
        wire = self._wire(index)
        unsent = self._write(wire)
        at_ns = clock()
        late_ns = at_ns - self.next_ns
        self._note(late_ns)
        self._next = index + 1
        due_ns = self.zero_ns + self._due_ns[index + 1]
        self.next_ns = due_ns if due_ns > self._begun_ns else self._begun_ns
        media = self._media[index]
        self._ledger.media_bytes += media
        self.media_bytes += media
        self.bytes += len(wire)
        self.late_sum_ns += late_ns
        if late_ns > self.late_max_ns:
            self.late_max_ns = late_ns
        if self.log is not None:
            self.log.sent.append(at_ns - self.zero_ns)
        if unsent:
            self._held_back(unsent)
        return at_ns

    def _end(self, at_ns: int) -> int:
        self.stopped = True
        self.ended(at_ns)
        return at_ns

    def _drops(self, index: int, now_ns: int) -> bool:
        late = self._drop_ns is not None and now_ns - self.zero_ns - self._due_ns[index] > self._drop_ns
        if not late or not 0 < index < self._last:
            return False
        self.dropped += 1
        if self.log is not None:
            self.log.dropped.add(index)
        self._next = index + 1
        self.next_ns = max(self.zero_ns + self._due_ns[index + 1], self._begun_ns)
        return True

    def _held_back(self, unsent: int) -> None:
        self.unsent_max = max(self.unsent_max, unsent)
        if self.log is not None:
            self.log.unsent[len(self.log.sent) - 1] = unsent

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

    @property
    def late_ns(self) -> "array[int]":
        """Of the run's ledger."""
        return self.ledger.late_ns

    @property
    def media_bytes(self) -> int:
        """Of the run's ledger."""
        return self.ledger.media_bytes

    def add(self, stream: Stream, ledger: Ledger | None = None) -> None:
        """Take a stream on; its first chunk leaves when it is due. Without a ledger of its own it is in the run's."""
        stream.keep_in(ledger or self.ledger)
        self._place(stream)
        if not self._turning:
            self._arm()

    def take_late(self) -> "array[int]":
        """See `Ledger.take`, of the run's."""
        return self.ledger.take()

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
        heap, slots, clock, now = self._heap, self._slots, self.clock, self.clock()
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
                        self._place(stream)
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
