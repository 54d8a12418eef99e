"""Writes events into the bundle, on a thread of its own, so that a slow disk never holds up a loop."""

import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from loadbench.results.bundle import BundleError, BundleWriter
from loadbench.results.media import MediaPiece
from loadbench.results.record import Aside, CanaryRecord, ChunkTimes, ClipFacts, Message, SessionRecord, Started
from loadbench.results.run import Done
from loadbench.results.tick import Tick

FLUSH_S: Final = 0.4  # a run that is killed loses at most half a second
STEMS: Final[dict[type[msgspec.Struct], str]] = {
    Started: "sessions",
    SessionRecord: "sessions",
    Tick: "ticks",
    ChunkTimes: "chunks",
    Message: "messages",
    CanaryRecord: "canary",
    Aside: "stderr",
}


class Writer:
    """Appends each event to its file and flushes at least every half second.

    `error` becomes the disk's first refusal; from then on nothing more is kept. Ends with `close`.
    """

    def __init__(self, bundle: BundleWriter, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.error: BundleError | None = None
        self._bundle = bundle
        self._clock = clock
        self._clips: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_flushing, name="bundle", daemon=True)
        self._thread.start()

    def take(self, event: object) -> None:
        """Keep an event that has a file; others (ready, finished) are told elsewhere."""
        if isinstance(event, MediaPiece):
            if self.error is None:
                self._bundle.keep(event.file, event.head + event.data)
            return
        stem = STEMS.get(type(event))  # type: ignore[arg-type]
        if stem is not None and self.error is None:
            self._bundle.append(stem, event)  # type: ignore[arg-type]

    def clip(self, facts: ClipFacts) -> None:
        """Keep what is known of a clip, once."""
        if facts.id not in self._clips:
            self._clips.add(facts.id)
            self._bundle.append("clips", facts)

    def snapshot(self, text: str) -> None:
        """Put the last exposition beside the records, as `metrics.prom`."""
        self._noting(lambda: self._bundle.snapshot("metrics.prom", text))

    def flush(self) -> None:
        """Write all that was taken so far, now."""
        self._noting(lambda: self._bundle.flush(self._clock()))

    def close(self, done: Done) -> None:
        """Write the rest and `done.json`. Raises BundleError where anything could not be written."""
        self._stop.set()
        self._thread.join()
        self._noting(lambda: self._bundle.finish(done))
        if self.error is not None:
            raise self.error

    def _keep_flushing(self) -> None:
        while self.error is None and not self._stop.wait(FLUSH_S):
            self.flush()

    def _noting(self, write: Callable[[], None]) -> None:
        try:
            write()
        except BundleError as error:
            self.error = error
