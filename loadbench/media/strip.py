"""A file decoded once for many segments of it, as a talk of an hour that is cut into 500 sentences needs.

Decoding cannot begin anywhere: where a codec builds on what came before, a jump gives other samples, or other times. So
segments of a file stand in the order of their starts and read one after the other; what was decoded stays where it was.
"""

import math
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from av.audio.frame import AudioFrame

from loadbench.corpus.clip import Track
from loadbench.media.decode import MediaError, Shown, audio_frames, video_frames

OVERLAP_S: Final = 1  # of decoded media held for the next segment, at most; beyond it the file is decoded once more
T = TypeVar("T")


class Heard(NamedTuple):
    """Decoded sound: the place of its first sample in the file, and how many of its samples were recorded."""

    at: int
    frame: AudioFrame
    kept: int


@dataclass(frozen=True, slots=True)
class _Piece(Generic[T]):
    item: T
    end_ns: int  # not before its end
    said: int  # so many notes had been made when it came


class Strip(Generic[T]):
    """One decoding of a file, read by one segment after the other."""

    def __init__(self, pieces: Iterator[tuple[T, int]], said: list[str]) -> None:
        """`pieces` come in order, each with when it ends, in ns; `said` takes the notes of whoever decodes."""
        self._hold_ns: int | None = None
        self._pieces, self._said = pieces, said
        self._kept: deque[_Piece[T]] = deque()
        self._latest: _Piece[T] | None = None
        self._trouble: MediaError | None = None

    def hold_from(self, start_s: Fraction | None) -> None:
        """Keep what lasts beyond here: here begins the reader after the next. None: there is none."""
        self._hold_ns = None if start_s is None else _ns(start_s)

    def read(self, start_s: Fraction, notes: list[str]) -> Iterator[T]:
        """Everything that ends after `start_s`, in order; where nothing does, only the last of the file.

        To be asked in the order of the starts, each reader when the one before it is through. Raises MediaError, every
        time again. `notes` gets what a decoding for this reader alone would have said.
        """
        told = 0
        for piece in self._from(_ns(start_s)):
            notes += self._said[told : piece.said]
            told = max(told, piece.said)
            yield piece.item
        notes += self._said[told:]

    def _from(self, start_ns: int) -> Iterator[_Piece[T]]:
        while self._kept and self._kept[0].end_ns <= start_ns:
            self._kept.popleft()
        yield from tuple(self._kept)
        empty = not self._kept
        while (piece := self._next()) is not None:
            if piece.end_ns > start_ns:
                empty = False
                yield piece
        if empty and self._latest is not None:
            yield self._latest

    def _next(self) -> _Piece[T] | None:
        if self._trouble is not None:
            raise MediaError(self._trouble.problems)
        try:
            found = next(self._pieces, None)
        except MediaError as error:
            self._trouble = error
            raise
        if found is None:
            return None
        self._latest = _Piece(*found, len(self._said))
        if self._hold_ns is not None and self._latest.end_ns > self._hold_ns:
            self._kept.append(self._latest)
        return self._latest


def _ns(seconds: Fraction) -> int:
    return math.floor(seconds * 1_000_000_000)


def sound(track: Track) -> Strip[Heard]:
    """The sound of a track's file."""
    said: list[str] = []
    return Strip(_heard(track.path, said), said)


def pictures(track: Track) -> Strip[Shown]:
    """The pictures of a track's file."""
    said: list[str] = []
    shown = video_frames(track.path, track.fps, said)
    return Strip(((each, math.ceil(each.until_s * 1_000_000_000)) for each in shown), said)


def _heard(path: Path, said: list[str]) -> Iterator[tuple[Heard, int]]:
    at, rate = 0, 0
    for frame, kept in audio_frames(path, said):
        rate = rate or frame.sample_rate
        if frame.sample_rate != rate:
            raise MediaError([f"{path}: its rate changes from {rate} to {frame.sample_rate} Hz on the way"])
        heard = Heard(at, frame, kept)
        at += kept
        yield heard, at * 1_000_000_000 // rate + 1


class Job(Protocol):
    """What reads segments."""

    @property
    def files(self) -> Hashable:
        """What one decoding can serve: the files, and how they are read."""

    @property
    def tracks(self) -> tuple[Track, ...]:
        """A segment of each file."""


J = TypeVar("J", bound=Job)


def passes(jobs: Iterable[J]) -> list[list[J]]:
    """Jobs in groups that may read one decoding of their files one after the other, as few as will do."""
    found: dict[Hashable, list[list[J]]] = {}
    for job in sorted(jobs, key=lambda job: [track.offset_s for track in job.tracks]):
        groups = found.setdefault(job.files, [])
        fitting = next((group for group in groups if _follows(group[-1], job)), None)
        if fitting is None:
            groups.append([job])
        else:
            fitting.append(job)
    return [group for groups in found.values() for group in groups]


def _follows(before: Job, job: Job) -> bool:
    for earlier, later in zip(before.tracks, job.tracks, strict=True):
        if earlier.duration_s is None or later.offset_s < earlier.offset_s:
            return False
        if earlier.offset_s + earlier.duration_s > later.offset_s + OVERLAP_S:
            return False
    return True
