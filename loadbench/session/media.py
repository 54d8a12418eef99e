"""What a service says with sound and pictures: pieces counted and stamped as they come, never decoded.

PCM and G.711 are looked through for the first audible sample only until it is found; of a JPEG the structure is read,
not the picture. Both are exact in time. A container is counted and stamped; what is in it a decoder says elsewhere.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from loadbench.media.player import Player
from loadbench.results.media import MediaOutput, Medium
from loadbench.results.record import Channel
from loadbench.session.profile import MediaFormat

SECOND_NS: Final = 1_000_000_000
HELD_PER_S: Final = 100  # a sound is held for 10 ms
AUDIBLE_DBFS: Final = -50.0
SAMPLE_BYTES: Final = {"s16le": 2, "f32le": 4, "mulaw": 1, "alaw": 1}
Loud = Callable[[bytes], NDArray[np.bool_]]

# ITU-T T.81, Table B.1: start-of-frame markers, without DHT, JPG and DAC which lie among them; those without a length.
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD8)})
_HUFFMAN: Final = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7})
_SCAN: Final = 0xDA
BLOCK: Final = 64  # pixels


class Track(Protocol):
    """Media of a form that can be read piece by piece."""

    def take(self, data: bytes, at_ns: int) -> None:
        """The next piece."""

    def fill(self, output: MediaOutput) -> None:
        """Put down what is known so far."""


class MediaBoard:
    """The media of one channel in one utterance. Pieces come in the order and with the times of their arrival."""

    def __init__(self, medium: Medium, part: MediaFormat, audible_dbfs: float = AUDIBLE_DBFS) -> None:
        self._output = MediaOutput(medium=medium, format=part.format, decoded=part.format != "container")
        self._track: Track | None = None
        if part.format == "jpeg":
            self._track = _Pictures(part.fps)
        elif part.format != "container":
            self._track = _Sound(part, audible_dbfs)

    def take(self, data: bytes, at_ns: int) -> bool:
        """The next piece; False for one that holds nothing, which is not counted."""
        if not data:
            return False
        output = self._output
        output.pieces += 1
        output.bytes += len(data)
        if output.first_byte_ns is None:
            output.first_byte_ns = at_ns
        output.last_byte_ns = at_ns
        if self._track is not None:
            self._track.take(data, at_ns)
        return True

    def channel(self) -> Channel:
        """As it is recorded."""
        if self._track is not None:
            self._track.fill(self._output)
        return Channel(first_ns=self._output.first_ns, media=self._output)


class _Sound:
    """PCM or G.711. A sample that is cut between two pieces belongs to the second."""

    def __init__(self, part: MediaFormat, audible_dbfs: float) -> None:
        self._rate = part.rate_hz or 1
        self._channels = part.channels
        self._block = SAMPLE_BYTES[part.format] * part.channels
        self._loud = _loudness(part.format, audible_dbfs)
        self._held = -(-self._rate // HELD_PER_S)
        self._left = b""
        self._samples = 0
        self._player = Player()
        self._run: tuple[int, int] | None = None  # the first sample of a run that may be sound, and its arrival
        self._last = 0
        self._first_sound_ns: int | None = None

    def take(self, data: bytes, at_ns: int) -> None:
        whole = self._left + data if self._left else data
        rest = len(whole) % self._block
        self._left, whole = whole[len(whole) - rest :], whole[: len(whole) - rest]
        if not whole:
            return
        begin, end = self._samples, self._samples + len(whole) // self._block
        self._samples = end
        self._player.take(self._place_ns(begin), self._place_ns(end), at_ns)
        if self._first_sound_ns is None:
            loud = np.flatnonzero(self._loud(whole)) // self._channels + begin
            if loud.size:
                self._listen(loud, at_ns)

    def fill(self, output: MediaOutput) -> None:
        output.first_sound_ns = self._first_sound_ns
        output.playback_end_ns = self._player.end_ns
        output.gaps, output.starved_ns = list(self._player.gaps), self._player.starved_ns
        output.media_s = self._samples / self._rate

    def _place_ns(self, sample: int) -> int:
        return sample * SECOND_NS // self._rate

    def _listen(self, loud: NDArray[np.int64], at_ns: int) -> None:
        """Go on with the run of loud samples, or begin another where more than 10 ms were quiet."""
        for run in np.split(loud, np.flatnonzero(np.diff(loud) > self._held) + 1):
            first, last = int(run[0]), int(run[-1])
            if self._run is None or first - self._last > self._held:
                self._run = first, at_ns
            self._last = last
            if last - self._run[0] + 1 >= self._held:
                self._first_sound_ns = self._run[1]
                return


class _Pictures:
    """JPEG images, one a piece. Without a rate of their own they are shown as they come, and nothing can be a gap."""

    def __init__(self, fps: float | None) -> None:
        self._fps = fps
        self._frames = self._broken = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._player = Player()

    def take(self, data: bytes, at_ns: int) -> None:
        if not is_jpeg(data):
            self._broken += 1
            return
        if self._first_ns is None:
            self._first_ns = at_ns
        self._last_ns = at_ns
        if self._fps is None:
            self._player.take(at_ns - self._first_ns, at_ns - self._first_ns, at_ns)
        else:
            self._player.take(self._place_ns(self._frames), self._place_ns(self._frames + 1), at_ns)
        self._frames += 1

    def fill(self, output: MediaOutput) -> None:
        output.first_frame_ns = self._first_ns
        output.playback_end_ns = self._player.end_ns
        output.gaps, output.starved_ns = list(self._player.gaps), self._player.starved_ns
        output.frames, output.broken = self._frames, self._broken
        output.media_s = None if self._fps is None else self._frames / self._fps
        if self._first_ns is not None and self._last_ns > self._first_ns:
            output.fps = (self._frames - 1) * 1e9 / (self._last_ns - self._first_ns)

    def _place_ns(self, frame: int) -> int:
        return round(frame * 1e9 / (self._fps or 1))


def is_jpeg(data: bytes) -> bool:
    """Whether it reaches from SOI to EOI, with a frame header of some size before its first scan (ITU-T T.81, B.1).

    Of what is Huffman coded each 8x8 block takes a bit at least, so that a header cannot promise more than is there.
    """
    if data[:2] != b"\xff\xd8" or not data.rstrip(b"\0\r\n").endswith(b"\xff\xd9"):
        return False
    at, framed, least = 2, False, 0
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker in _BARE:
            at += 1 if marker == 0xFF else 2
        elif marker == _SCAN:
            return framed and len(data) - at >= least
        else:
            if marker in _FRAMES:
                height, width = (int.from_bytes(data[begin : begin + 2], "big") for begin in (at + 5, at + 7))
                framed = height > 0 and width > 0
                least = height * width // BLOCK // 8 if marker in _HUFFMAN else 0
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return False


def _loudness(form: str, audible_dbfs: float) -> Loud:
    """What tells for each sample whether it is above the threshold."""
    level = 10 ** (audible_dbfs / 20)
    kinds: dict[str, tuple[Any, float]] = {"s16le": ("<i2", level * 32768), "f32le": ("<f4", level)}
    if form in kinds:
        kind, limit = kinds[form]

        def above(data: bytes) -> NDArray[np.bool_]:
            samples = np.frombuffer(data, kind)
            return (samples > limit) | (samples < -limit)

        return above
    table = (MULAW if form == "mulaw" else ALAW) > level * 32768
    return lambda data: table[np.frombuffer(data, np.uint8)]


def _mulaw() -> NDArray[np.int64]:
    """The magnitude of each code on a 16-bit scale, ITU-T G.711 Table 2."""
    code = ~np.arange(256) & 0xFF
    return (((code & 0x0F) << 3) + 0x84 << ((code & 0x70) >> 4)) - 0x84


def _alaw() -> NDArray[np.int64]:
    """The magnitude of each code on a 16-bit scale, ITU-T G.711 Table 1."""
    code = np.arange(256) ^ 0x55
    segment, step = (code & 0x70) >> 4, (code & 0x0F) << 4
    return np.where(segment == 0, step + 8, step + 0x108 << np.maximum(segment - 1, 0))


MULAW: Final = _mulaw()
ALAW: Final = _alaw()
