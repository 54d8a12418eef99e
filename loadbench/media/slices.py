"""Pictures in one continuous container, cut into slices as a browser's recorder cuts it: H.264 in fragmented MP4
(ISO/IEC 14496-12), VP8 in WebM (RFC 8794, RFC 9559).

Each picture is a fragment or a cluster of its own, so that slices of any length hold whole ones. All slices one after
another, with what stands at the head of the container, are a file that can be played.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import av

from loadbench.corpus.clip import Track
from loadbench.media.encoder import Feed, encoding, options
from loadbench.media.form import SliceForm
from loadbench.media.h264 import TICK
from loadbench.media.made import Made
from loadbench.media.video import ns

Element = tuple[bytes, int]  # its name, and where it ends
SEGMENT, CLUSTER = bytes.fromhex("18538067"), bytes.fromhex("1f43b675")


@dataclass(frozen=True)
class Container:
    """How a container is written, and how its pictures are found in it: each begins with one element, ends with one."""

    format: str
    codec: str
    tick: Fraction
    muxing: dict[str, str]
    element: Callable[[bytearray, int], Element | None]
    begin: bytes
    end: bytes


def chunks(track: Track, form: SliceForm, made: Made) -> Iterator[tuple[int, int, bytes]]:
    """(due_ns, 0, slice); a picture belongs to the slice in which it is first seen, a slice without one is not sent.

    Due when the last picture in it has been seen in full: only then does its length stand in the container. A head that
    goes apart is due at once, for it says nothing of any picture. Raises MediaError.
    """
    held, number, due = b"", None, Fraction(0)
    for head, (at, until), piece in _pieces(track, form, made):
        if head and form.header == "apart":
            yield 0, 0, head
        elif head:
            held = head
        mine = 0 if form.slice_s is None else math.floor(at / form.slice_s)
        if number is not None and mine != number:
            yield ns(due), 0, held
            held = b""
        held, number, due = held + piece, mine, until
    yield ns(due), 0, held


def _pieces(track: Track, form: SliceForm, made: Made) -> Iterator[tuple[bytes, tuple[Fraction, Fraction], bytes]]:
    """What stands before the first picture (before all others: nothing), when a picture is seen, and its bytes."""
    how = CONTAINERS[form.container]
    cut, feed, spans = _Cut(how), Feed(track, form, made, how.tick), deque[tuple[Fraction, Fraction]]()
    with encoding(track), av.open(cut, "w", format=how.format, options=how.muxing) as file:
        stream: Any = file.add_stream(how.codec, options=options(how.codec, form))
        for frame in feed.frames(stream.codec_context):
            for packet in stream.encode(frame):
                spans.append(feed.seen(packet))
                packet.duration = max(1, round((spans[-1][1] - spans[-1][0]) / how.tick))  # the last one's is told so
                file.mux(packet)
            for head, piece in cut.whole():
                yield head, spans.popleft(), piece
        file.close()  # what the muxer holds back comes out
        for head, piece in cut.whole():
            yield head, spans.popleft(), piece


class _Cut:
    """A file that is written to, and cut into pictures as they become whole."""

    def __init__(self, how: Container) -> None:
        self._how = how
        self._data = bytearray()
        self._seen = 0
        self._head = b""

    def write(self, data: bytes) -> int:
        """Called by the muxer."""
        self._data += data
        return len(data)

    def whole(self) -> Iterator[tuple[bytes, bytes]]:
        """Those that have become whole, each once; with the first, what stands before it."""
        while (found := self._how.element(self._data, self._seen)) is not None:
            name, end = found
            if name == self._how.begin:
                self._head, self._data, end = (
                    bytes(self._data[: self._seen]),
                    self._data[self._seen :],
                    end - self._seen,
                )
            self._seen = end
            if name == self._how.end:
                head, piece = self._head, bytes(self._data[:end])
                self._head, self._data, self._seen = b"", self._data[end:], 0
                yield head, piece


def _box(data: bytearray, at: int) -> Element | None:
    """The box that begins at a place; None where it is not there in full."""
    size = int.from_bytes(data[at : at + 4], "big")
    return (bytes(data[at + 4 : at + 8]), at + size) if size and at + size <= len(data) else None


def _ebml(data: bytearray, at: int) -> Element | None:
    """The same of an EBML element; of the segment, which holds all the others and ends with the file, only its head."""
    if at + 12 > len(data):
        return None
    sized = at + 9 - data[at].bit_length()  # the first byte of a number says how many there are
    length = 9 - data[sized].bit_length()
    name, body = bytes(data[at:sized]), sized + length
    if name == SEGMENT:
        return name, body
    size = int.from_bytes(data[sized:body], "big") - (1 << 7 * length)
    return (name, body + size) if body + size <= len(data) else None


# FFmpeg's muxers: a fragment or cluster for each picture; no date and no random number in it, and nothing behind it.
CONTAINERS: Final = {
    "fmp4": Container(
        *("mp4", "libx264", TICK),
        {
            "movflags": "frag_every_frame+empty_moov+default_base_moof+skip_trailer+frag_discont",
            "avoid_negative_ts": "disabled",  # with frag_discont: times are ours, also of a first picture after 0
            "fflags": "bitexact",
        },
        *(_box, b"moof", b"mdat"),
    ),
    "webm": Container(
        *("webm", "libvpx", Fraction(1, 1000)),  # the clock of WebM
        {"live": "1", "cluster_time_limit": "0", "cluster_size_limit": "0", "fflags": "bitexact"},
        *(_ebml, CLUSTER, CLUSTER),
    ),
}
