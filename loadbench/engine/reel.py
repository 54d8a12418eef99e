"""A clip on the reel: its wire messages mapped, its due times at hand, ready for any number of sessions."""

from array import array
from itertools import accumulate
from pathlib import Path
from typing import Final

from loadbench.engine.pacer import evenly
from loadbench.engine.pipe import ClipEntry
from loadbench.media.plan import ChunkPlan
from loadbench.session.wire import ClipTask

VIEWS_MOST: Final = 20_000  # chunks of a clip of which a view each is kept: 4 MB, and a third of a microsecond a chunk
CLOCK_MS_MOST: Final = 1000  # nobody waits longer than this for a place on the chunk clock


class Reel:
    """`due_ns` holds the chunks' due times and, behind them, the media's length. `media_sums` and `wire_sums` are
    running sums, from 0, of the bytes of media and of the wire that the chunks carry, `also_sums` of the chunks that
    are a second medium's (empty: there is none). `place` is the plan's. Raises OSError without its files.
    """

    def __init__(self, entry: ClipEntry) -> None:
        plan = ChunkPlan.load(Path(entry.wire))
        self.id, self.fields, self.joined = entry.id, entry.fields, entry.joined
        self.wire = (
            plan.wire if len(plan) > VIEWS_MOST else [plan.wire(index) for index in range(len(plan))].__getitem__
        )
        self.place = plan.place
        self.due_ns: array[int] = array("q", plan.due_ns.tolist())
        self.due_ns.append(plan.duration_ns)
        self.even = evenly(self.due_ns)
        self.media_sums: array[int] = array("q", accumulate(plan.media.tolist(), initial=0))
        also = plan.track != 0
        self.also_sums: array[int] = array("q", accumulate(also.tolist(), initial=0) if also.any() else ())
        self.wire_sums: array[int] = array("q", plan.offset.tolist())
        self._entry = entry
        self._paces = len(plan) - int(also.sum())  # chunks of the first medium, which gives the pace

    @property
    def chunks(self) -> int:
        """How many there are."""
        return len(self.due_ns) - 1

    @property
    def media_ns(self) -> int:
        """The media's length."""
        return self.due_ns[-1]

    @property
    def interval_ms(self) -> int:
        """The mean time from chunk to chunk of the first medium, in whole milliseconds from 1 to a second."""
        return min(CLOCK_MS_MOST, max(1, round(self.media_ns / max(1, self._paces) / 1e6)))

    def task(self, attempt: int) -> ClipTask:
        """What a conversation is told of it."""
        entry = self._entry
        return ClipTask(
            id=self.id,
            media_ns=self.media_ns,
            chunks=self.chunks,
            attempt=attempt,
            onset_ns=entry.onset_ns,
            activity_end_ns=entry.activity_end_ns,
            fields=entry.fields,
        )
