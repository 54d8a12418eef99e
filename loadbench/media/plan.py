"""`ChunkPlan`: byte strings in one mapped file, each with the moment at which it may leave.

The same shape serves twice: first the payloads that `media` encodes, then the wire messages that the profile and the
transport make of them. An hour of video never sits in memory, and all sessions and processes of a machine map one
file. On disk: `payload.bin` and `index.i64`, little-endian int64 in rows of due, track, offset, media; the last
row holds the duration, the number of tracks and the file's length. `index.i64` is written last: a folder without it is
unfinished and is made again.
"""

import mmap
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

INDEX: Final = "index.i64"


class ChunkPlan:
    """Chunks of one clip. `due_ns` counts from media zero and never falls; `duration_ns` is L, the media's length.

    `media` is how many bytes of media each chunk carries, whatever a wire message puts around them.
    """

    def __init__(self, index: NDArray[np.int64], payload: memoryview) -> None:
        self.due_ns: NDArray[np.int64] = index[:-1, 0]
        self.track: NDArray[np.int64] = index[:-1, 1]
        self.offset: NDArray[np.int64] = index[:, 2]
        self.media: NDArray[np.int64] = index[:-1, 3]
        self.duration_ns = int(index[-1, 0])
        self.tracks = int(index[-1, 1])
        self._cuts = array("q", self.offset.tolist())  # asked for once a chunk: indexing numpy costs five times as much
        self._payload = payload

    def __len__(self) -> int:
        return len(self.due_ns)

    def place(self, i: int) -> tuple[int, int, int]:
        """Track of chunk `i`, its number in that track from 0, and how many chunks the track has."""
        if self.tracks == 1:
            return 0, i, len(self)
        track = int(self.track[i])
        return track, self._numbers[i], self._counts[track]

    @cached_property
    def _numbers(self) -> "array[int]":
        numbers = np.zeros(len(self), dtype=np.int64)
        for track, count in enumerate(self._counts):
            numbers[self.track == track] = np.arange(count)
        return array("q", numbers.tobytes())

    @cached_property
    def _counts(self) -> list[int]:
        return [int(count) for count in np.bincount(self.track, minlength=self.tracks)]

    def wire(self, i: int) -> memoryview:
        """The bytes of chunk `i`, shared and not to be written to."""
        return self._payload[self._cuts[i] : self._cuts[i + 1]]

    @property
    def size(self) -> int:
        """Bytes of all chunks together."""
        return int(self.offset[-1])

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map a plan that `write` has made. Raises FileNotFoundError where it is not finished."""
        # No np.load: it parses a header as Python, and CPython 3.11 cannot do that in several threads at once.
        index = np.memmap(folder / INDEX, dtype="<i8", mode="r").reshape(-1, 4)
        if not index[-1, 2]:
            return cls(index, memoryview(b""))
        with (folder / "payload.bin").open("rb") as file:
            return cls(index, memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))

    @classmethod
    def write(
        cls,
        folder: Path,
        chunks: Iterable[tuple[int, int, bytes]],
        duration_ns: int | Callable[[], int],
        tracks: int = 1,
        media: Sequence[int] | None = None,
    ) -> Self:
        """Write chunks of (due_ns, track, bytes) as they come, and map the result. Due times must not fall.

        A duration that is known only after the last chunk is given as a function. Without `media` the chunks are
        nothing but media.
        """
        folder.mkdir(parents=True, exist_ok=True)
        rows: list[tuple[int, int, int, int]] = []
        offset = 0
        with (folder / "payload.bin").open("wb") as file:
            for due_ns, track, data in chunks:
                if rows and due_ns < rows[-1][0]:
                    raise ValueError(f"due times fall: {rows[-1][0]} then {due_ns}")
                rows.append((due_ns, track, offset, len(data) if media is None else media[len(rows)]))
                offset += file.write(data)
        rows.append((duration_ns if isinstance(duration_ns, int) else duration_ns(), tracks, offset, 0))
        partial = folder / f"{INDEX}.part"
        partial.write_bytes(np.array(rows, dtype="<i8").tobytes())
        partial.rename(folder / INDEX)
        return cls.load(folder)
