"""Media files opened and decoded to their end. What is decoded counts; what a header says is only compared with it.

`measure` serves the check of a corpus, the two generators serve it and the encoders. Where a file is odd but
usable, a sentence goes into the caller's `notes`; where it is not, MediaError names the file and the reason.
"""

import contextlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import av
from av.audio.frame import AudioFrame
from av.video.frame import VideoFrame

TOLERANCE_S: Final = Fraction(1, 20)  # declared and decoded lengths may differ by this much without a word
TORN_S: Final = Fraction(1, 2)  # so much less than an exact header announces is a torn file
EXACT: Final = ("flac", "aiff", "mov,mp4,m4a,3gp,3g2,mj2")  # containers that count samples, not bytes a second
PLACEHOLDER_BYTES: Final = 2_000_000_000  # writers to a pipe announce this or more, or nothing


class MediaError(ValueError):
    """Media that cannot be used; `problems` holds a sentence for each trouble."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class Shown(NamedTuple):
    """A decoded picture with the span in which it is seen, in seconds from the first picture of its file.

    `pixel_aspect` is the width of a pixel by its height.
    """

    at_s: Fraction
    until_s: Fraction
    frame: VideoFrame
    pixel_aspect: Fraction


@dataclass(frozen=True, slots=True)
class Facts:
    """What a track's medium holds, in full (not cut to the track's segment). None: does not apply."""

    duration_s: Fraction
    rate_hz: int | None = None
    channels: int | None = None
    fps: Fraction | None = None


def measure(path: Path, kind: Literal["audio", "video"], fps: Fraction | None, notes: list[str]) -> Facts:
    """Decode a media file to its end. Raises MediaError where it holds nothing or is damaged."""
    if kind == "audio":
        samples, rate, channels = 0, 0, 0
        for sound, kept in audio_frames(path, notes):
            samples, rate, channels = samples + kept, sound.sample_rate, sound.layout.nb_channels
        return Facts(Fraction(samples, rate), rate_hz=rate, channels=channels)
    count, at, until = 0, Fraction(0), Fraction(0)
    for shown in video_frames(path, fps, notes):
        count, at, until = count + 1, shown.at_s, shown.until_s
    return Facts(until, fps=(count - 1) / at if at else None)


@contextlib.contextmanager
def opened(path: Path, kind: Literal["audio", "video"]) -> Iterator[tuple[Any, Any]]:
    """A file's container and its best stream of a kind. FFmpeg's trouble inside the block becomes a MediaError."""
    try:
        if not path.stat().st_size:
            raise MediaError([f"{path}: the file is empty (0 bytes)"])
        # A playlist among the media must not make FFmpeg contact anybody.
        only_files = {"protocol_whitelist": "file"}
        with av.open(str(path.absolute()), metadata_errors="ignore", options=only_files) as container:
            stream = container.streams.best(kind)
            if stream is None:
                raise MediaError([f"{path}: has no {kind} in it"])
            yield container, stream
    except av.error.FFmpegError as error:
        raise MediaError([f"{path}: cannot be decoded ({error.strerror}): damaged, or no media file"]) from error
    except OSError as error:
        raise MediaError([f"{path}: {error.strerror or error}"]) from error


def audio_frames(path: Path, notes: list[str]) -> Iterator[tuple[AudioFrame, int]]:
    """Decoded sound in order, each frame with how many of its samples belong to the recording (the rest is padding).

    Raises MediaError at the end of a file that holds no sample, or fewer than its header announces.
    """
    with opened(path, "audio") as (container, stream):
        body = _wav_body(path) if stream.codec_context.name.startswith("pcm_") else None
        samples, held = 0, None
        whole = container.format.name == "ogg" and stream.codec_context.name == "vorbis"
        for packet in container.demux(stream):
            if body and 0 < packet.size < body.block:
                continue  # less than one sample: FFmpeg refuses it; noted below
            for frame in _bare(stream, packet) if whole else packet.decode():
                if held is not None:
                    samples += held.samples
                    yield held, held.samples
                held = frame
        if held is None:
            raise MediaError([f"{path}: holds no samples"])
        kept = _unpadded(held)
        if whole and stream.duration:
            padding = samples + held.samples - round(stream.duration * stream.time_base * held.sample_rate)
            kept = held.samples - padding if 0 < padding < held.samples else held.samples
        yield held, kept
        if body:
            _compare_bytes(path, body, notes)
        elif stream.duration:
            announced_s = Fraction(stream.duration) * stream.time_base
            _compare_times(path, container.format.name, announced_s, Fraction(samples + kept, held.sample_rate), notes)


def _bare(stream: Any, packet: Any) -> list[AudioFrame]:
    """All that a packet decodes to, whatever the container says of its end.

    Where all of a Vorbis file is one page, FFmpeg counts the first packet as sound, which gives none, and so cuts real
    sound off at the end, or nothing of the padding. The file's length tells the end instead.
    """
    return list(stream.codec_context.decode(av.Packet(bytes(packet)) if packet.size else None))


def video_frames(path: Path, fps: Fraction | None, notes: list[str]) -> Iterator[Shown]:
    """Decoded pictures in the order and at the times at which they are shown; times never fall.

    A picture without a time follows the one before it by 1/`fps` (None: the file's average rate), which is noted.
    Raises MediaError where there is no picture, or no rate to go by.
    """
    with opened(path, "video") as (container, stream):
        rate = fps or stream.average_rate
        first: Fraction | None = None
        at, end = Fraction(0), Fraction(0)
        for frame in container.decode(stream):
            if frame.pts is not None:
                time = frame.pts * frame.time_base
            elif not rate:
                raise MediaError([f"{path}: its pictures have neither times nor a rate: say fps"])
            elif first is None:
                time = Fraction(0)
                notes.append(f"{path}: its pictures have no times of their own: taken as {rate} a second")
            else:
                time = first + at + 1 / Fraction(rate)
            first = time if first is None else first
            at = max(at, time - first)
            end = max(end, _until(at, first, frame, stream, rate))
            yield Shown(at, end, frame, Fraction(stream.sample_aspect_ratio or 1))
        if first is None:
            raise MediaError([f"{path}: holds no pictures"])
        if stream.duration:
            start = Fraction(stream.start_time or 0) * stream.time_base
            announced_s = start + Fraction(stream.duration) * stream.time_base - first
            _compare_times(path, container.format.name, announced_s, end, notes)


def _until(at: Fraction, first: Fraction, frame: VideoFrame, stream: Any, rate: Fraction | None) -> Fraction:
    """When a picture goes.

    Lengths are stored in decoding order, so with B-frames a picture may carry a neighbour's: the file's end bounds it.
    """
    if frame.duration and frame.time_base:
        until = at + frame.duration * frame.time_base
    else:
        until = at + (1 / Fraction(rate) if rate else 0)
    if stream.duration and frame.pts is not None:
        file_end = ((stream.start_time or 0) + stream.duration) * stream.time_base - first
        if at < file_end < until:
            return Fraction(file_end)
    return until


def _unpadded(last: AudioFrame) -> int:
    """Samples of the last frame that were recorded: codecs fill it up, a container on the sample clock says how far."""
    if last.time_base == Fraction(1, last.sample_rate) and 0 < last.duration < last.samples:
        return int(last.duration)
    return int(last.samples)


class _WavBody(NamedTuple):
    announced: int | None
    present: int
    block: int


def _wav_body(path: Path) -> _WavBody | None:
    """Sizes of a RIFF file's sound in bytes, announced (None: streamed, so unknown) and present; None: no RIFF file."""
    with path.open("rb") as file:
        head = file.read(12)
        block, large = 1, 0
        if head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
            return None
        while len(chunk := file.read(8)) == 8:
            name, size = struct.unpack("<4sI", chunk)
            if name == b"data":
                present = path.stat().st_size - file.tell()
                honest = 0 < size < PLACEHOLDER_BYTES
                if size == 0xFFFFFFFF and 0 < large < 1 << 62:
                    size, honest = large, True
                return _WavBody(size if honest else None, min(size, present) if honest else present, block)
            after = file.tell() + size + (size & 1)
            if name == b"fmt ":
                block = max(1, int.from_bytes(file.read(14)[12:14], "little"))
            elif name == b"ds64":  # EBU Tech 3306: sizes of 64 bits, of the file and then of its sound
                large = int.from_bytes(file.read(16)[8:], "little")
            file.seek(after)
    return None


def _compare_bytes(path: Path, body: _WavBody, notes: list[str]) -> None:
    if body.announced is not None and body.present < body.announced:
        raise MediaError(
            [f"{path}: truncated: its header announces {body.announced} bytes of sound, {body.present} are there"]
        )
    if body.present % body.block:
        notes.append(f"{path}: {body.present % body.block} byte(s) at its end are less than a sample and were dropped")


def _compare_times(path: Path, name: str, announced_s: Fraction, found_s: Fraction, notes: list[str]) -> None:
    missing_s = announced_s - found_s
    said = f"its header announces {float(announced_s):.3f} s, {float(found_s):.3f} s could be decoded"
    if missing_s > TORN_S and name in EXACT:
        raise MediaError([f"{path}: truncated: {said}"])
    if missing_s > TOLERANCE_S:
        notes.append(f"{path}: {said}")
