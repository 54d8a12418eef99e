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
    """Per-chunk times of one utterance: `due` and `sent` from media zero, and the bytes still unsent at that moment."""

    __slots__ = ("due", "sent", "unsent")

    def __init__(self) -> None:
        self.due, self.sent, self.unsent = array("q"), array("q"), array("q")

    def note(self, due_ns: int, sent_ns: int, unsent: int) -> None:
        """One chunk more."""
        self.due.append(due_ns)
        self.sent.append(sent_ns)
        self.unsent.append(unsent)


class Ledger:
    """What was handed over: `late_ns` gathers how late each chunk was, until `take`; `media_bytes` only grows."""

    __slots__ = ("late_ns", "media_bytes")

    def __init__(self) -> None:
        self.late_ns: array[int] = array("q")
        self.media_bytes = 0

    def take(self) -> "array[int]":
        """How late each chunk was that has been handed over since this was asked last."""
        taken, self.late_ns = self.late_ns, array("q")
        return taken


class Stream:
    """The media of one utterance on its way.

    `due_ns` holds the chunks' due times from media zero and, behind them, the media's length: `ended` is called then,
    once every chunk has been handed over. `wire(i)` gives chunk `i`, which carries `media[i]` bytes of media. A chunk
    that was overdue before the media could begin (`begun_ns`) counts as due then: that wait was not the tester's. With
    `drop_late` a chunk that is late by more than the mean interval is dropped, but never the first or the last, which
    may carry more than a frame. It is written down in `ledger`, or else in the wheel's.
    """

    __slots__ = (
        "_begun_ns",
        "_drop_ns",
        "_due_ns",
        "_last",
        "_ledger",
        "_media",
        "_next",
        "_unsent",
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
        "sent",
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
        ledger: Ledger | None = None,
    ) -> None:
        self._write, self._unsent, self._wire, self._due_ns = link.write, link.unsent, wire, due_ns
        self._begun_ns, self._next, self._last = begun_ns, 0, len(due_ns) - 2
        self._drop_ns = due_ns[-1] // max(1, self._last + 1) if drop_late else None
        self.zero_ns, self.ended, self.broke, self.log = zero_ns, ended, broke, log
        self._media, self._ledger = media, ledger
        self.sent = self.dropped = self.bytes = self.media_bytes = 0
        self.late_sum_ns = self.late_max_ns = self.unsent_max = 0
        self.stopped = False

    @property
    def next_ns(self) -> int:
        """When the next chunk, or the end behind the last one, is due; never before the media could begin."""
        return max(self.zero_ns + self._due_ns[self._next], self._begun_ns)

    def turn(self, wheel: "Wheel") -> int:
        """Hand over the chunk that is due, or tell of the end, and stop; when that was."""
        index = self._next
        due_ns = self.zero_ns + self._due_ns[index]
        if index > self._last:
            self.stopped = True
            at_ns = wheel.clock()
            self.ended(at_ns)
            return at_ns
        self._next = index + 1
        if self._drop_ns is not None and 0 < index < self._last and (at_ns := wheel.clock()) - due_ns > self._drop_ns:
            self.dropped += 1
            return at_ns
        wire = self._wire(index)
        unsent, size = self._unsent(), len(wire)
        self._write(wire)
        at_ns = wheel.clock()
        late_ns = at_ns - (due_ns if due_ns > self._begun_ns else self._begun_ns)
        ledger = self._ledger or wheel.ledger
        ledger.late_ns.append(late_ns)
        media = self._media[index]
        ledger.media_bytes += media
        self.sent += 1
        self.bytes += size
        self.media_bytes += media
        self.late_sum_ns += late_ns
        if late_ns > self.late_max_ns:
            self.late_max_ns = late_ns
        if unsent > self.unsent_max:
            self.unsent_max = unsent
        if self.log is not None:
            self.log.note(due_ns - self.zero_ns, at_ns - self.zero_ns, unsent)
        return at_ns

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

    def add(self, stream: Stream) -> None:
        """Take a stream on; its first chunk leaves when it is due."""
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
        heap, slots, now = self._heap, self._slots, self.clock()
        limit = now + BUDGET_NS
        self._turning = True
        try:
            while heap and heap[0] * SLOT_NS <= now < limit:
                slot = heappop(heap)
                bucket = slots.pop(slot)
                for done, stream in enumerate(bucket, 1):
                    now = self._step(stream, now)
                    if now >= limit and done < len(bucket):
                        self._put_back(slot, bucket[done:])
                        break
        finally:
            self._turning = False
            self._arm()

    def _step(self, stream: Stream, now_ns: int) -> int:
        """Let a stream hand over, and place it again; what time it is then."""
        if stream.stopped:
            return now_ns
        try:
            now_ns = stream.turn(self)
            if not stream.stopped:
                self._place(stream)
        except Exception as error:  # one session's trouble: it is told, and the wheel turns on
            stream.stop()
            stream.broke(error)
        return now_ns

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
