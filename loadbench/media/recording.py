"""Sound as a recorder sends it: one continuous file in slices, of which only the first has a head.

webm and ogg hold Opus, encoded once for a clip. FFmpeg closes a cluster (webm) or a page (ogg) at each slice's end, so
a slice is whole in itself behind the head, and all slices in a row are a file that any player takes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, NamedTuple

import av
import numpy as np
from av.audio.frame import AudioFrame

from loadbench.corpus.clip import Track
from loadbench.media import audio
from loadbench.media.form import WHOLE, RecordingForm
from loadbench.media.made import Made
from loadbench.results.media import opening

BIT_RATE: Final = 64_000
PART_MS: Final = 1000  # the longest cluster or page
FRAMES_MS: Final = (20, 10)  # of Opus: the first that divides a slice
GRANULES_HZ: Final = 48_000  # Ogg counts Opus on this clock, RFC 7845, 4
SEGMENT, CLUSTER, TIMESTAMP = 0x18538067, 0x1F43B675, 0xE7  # elements of Matroska, RFC 9559, 5.1
ENDLESS: Final = 1 << 62


class Part(NamedTuple):
    """A piece of the file that is whole in itself, and until when its sound was captured."""

    data: bytes
    until_ns: int


def chunks(track: Track, form: RecordingForm, tail_silence_s: float, made: Made) -> Iterator[tuple[int, int, bytes]]:
    """(due_ns, 0, bytes) of each slice, due when its last sample has been captured; the last is shorter.

    Tail silence is recorded on: the slice in which the sound ends may hold its beginning. Raises MediaError. A clip is
    in memory while it is encoded, as Opus: half a megabyte a minute.
    """
    if form.container == "wav":
        head = opening(form.sound.format, form.sound.rate_hz, 1)
        for due_ns, number, data in audio.chunks(track, form.sound, tail_silence_s, made):
            yield due_ns, number, head + data
            head = b""
        return
    rate_hz = form.sound.rate_hz
    as_is = replace(form.sound, format="f32le", chunk_samples=rate_hz)
    sound = list(audio.chunks(track, as_is, tail_silence_s, made))
    slice_ms = PART_MS if form.sound.chunk_samples == WHOLE else form.sound.chunk_samples * 1000 // rate_hz
    frame_ms = next(length for length in FRAMES_MS if slice_ms % length == 0)
    whole = slice_ms // frame_ms
    part_ms = frame_ms * next(count for count in range(PART_MS // frame_ms, 0, -1) if whole % count == 0)
    file = _encoded([data for _, _, data in sound], form, frame_ms, part_ms)
    parts = _pages(file) if form.container == "ogg" else _clusters(file, frame_ms)
    span_ns = ENDLESS if form.sound.chunk_samples == WHOLE else slice_ms * 1_000_000
    yield from ((due_ns, 0, data) for due_ns, data in _slices(parts, span_ns, end_ns=sound[-1][0]))


class _Sink:
    """Where FFmpeg writes, and cannot go back to fill in lengths: a recorder does not know them either."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)


def _encoded(sound: Sequence[bytes], form: RecordingForm, frame_ms: int, part_ms: int) -> bytes:
    """The whole file: the same bytes each time."""
    sink, rate_hz, at = _Sink(), form.sound.rate_hz, 0
    # Times in webm are rounded to milliseconds, so a limit must not be met by a rounding.
    options = {"webm": {"live": "1", "write_crc32": "0", "cluster_time_limit": str(part_ms + 1)}}.get(
        form.container, {"page_duration": str(part_ms * 1000)}
    )
    with av.open(sink, "w", format=form.container, options={"fflags": "+bitexact", **options}) as container:
        stream: Any = container.add_stream(
            "libopus", rate=rate_hz, layout="mono", options={"frame_duration": str(frame_ms), "flags": "+bitexact"}
        )
        stream.bit_rate = BIT_RATE
        for block in _cut(sound, rate_hz * frame_ms // 1000 * 4):
            samples = np.frombuffer(block, "<f4").astype(np.float32)
            frame = AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = rate_hz, at, Fraction(1, rate_hz)
            at += len(samples)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return bytes(sink.data)


def _cut(blocks: Sequence[bytes], size: int) -> Iterator[bytes]:
    """Pieces of `size` bytes, the last shorter."""
    held = b""
    for block in blocks:
        held += block
        whole = len(held) // size * size
        yield from (held[at : at + size] for at in range(0, whole, size))
        held = held[whole:]
    if held:
        yield held


def _slices(parts: Iterator[Part], span_ns: int, end_ns: int) -> Iterator[tuple[int, bytes]]:
    """Parts together that are captured in the same span; what the encoder adds behind the end goes with the last."""
    held, held_ns = b"", 0
    for part in parts:
        due_ns = min(-(-part.until_ns // span_ns) * span_ns, end_ns)
        if held_ns and due_ns != held_ns:
            yield held_ns, held
            held = b""
        held, held_ns = held + part.data, due_ns
    yield held_ns, held


def _pages(file: bytes) -> Iterator[Part]:
    """Pages of an Ogg file (RFC 3533, 6), the two of its head with the first that holds sound."""
    begin = at = 0
    while at < len(file):
        count = file[at + 26]
        granule = int.from_bytes(file[at + 6 : at + 14], "little", signed=True)
        at += 27 + count + sum(file[at + 27 : at + 27 + count])
        if granule > 0:
            yield Part(file[begin:at], granule * 1_000_000_000 // GRANULES_HZ)
            begin = at


def _clusters(file: bytes, frame_ms: int) -> Iterator[Part]:
    """Clusters of a webm file, its head with the first; each reaches until the next one begins.

    That is where a frame begins; what a cluster's time has beyond it, a millisecond at most, is FFmpeg's rounding.
    """
    begins: list[tuple[int, int]] = []  # where a cluster stands, and its time in ms
    at = 0
    while at < len(file):
        name, inside = _number(file, at)
        size, body = _length(file, inside)
        if name == CLUSTER:
            child, after = _number(file, body)
            if child != TIMESTAMP:
                raise ValueError("a cluster of FFmpeg's does not begin with its time")
            length, value = _length(file, after)
            begins.append((at, int.from_bytes(file[value : value + length])))
        at = body if name == SEGMENT else body + size
    begins.append((len(file), ENDLESS // 1_000_000))
    edges = [0, *(place for place, _ in begins[1:])]
    for n, (_, until_ms) in enumerate(begins[1:]):
        yield Part(file[edges[n] : edges[n + 1]], until_ms // frame_ms * frame_ms * 1_000_000)


def _number(file: bytes, at: int) -> tuple[int, int]:
    """An EBML number with its length mark, as names are written (RFC 8794, 4), and where it ends."""
    end = at + 9 - file[at].bit_length()
    return int.from_bytes(file[at:end]), end


def _length(file: bytes, at: int) -> tuple[int, int]:
    """An EBML number without its length mark, as sizes are written, and where it ends."""
    value, end = _number(file, at)
    return value & ~(1 << 7 * (end - at)), end
