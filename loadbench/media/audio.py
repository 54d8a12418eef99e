"""Any audio file as mono chunks of the form that a profile asks for.

Samples pass as 32-bit floats, which hold 16-bit and 24-bit sound exactly: where rate and width fit, the bytes that
leave are the bytes of the file.
"""

import itertools
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from numpy.typing import NDArray

from loadbench.corpus.clip import Track
from loadbench.media import strip
from loadbench.media.decode import TOLERANCE_S, MediaError
from loadbench.media.form import AudioForm
from loadbench.media.made import Made

Samples = NDArray[np.float32]
FULL_SCALE: Final = {"u8": 2.0**7, "s16": 2.0**15, "s32": 2.0**31, "s64": 2.0**63, "flt": 1.0, "dbl": 1.0}


def chunks(track: Track, form: AudioForm, tail_silence_s: float, made: Made) -> Iterator[tuple[int, int, bytes]]:
    """(due_ns, 0, bytes) of each chunk. A chunk is due when its last sample has been captured; the last is shorter.

    The form's silence before and after the sound is media like it: chunks run across, and `made.duration_ns` counts it.
    `tail_silence_s` of silence follows as chunks of its own, due after the media's end: it belongs to the end script,
    not to the media, so `made.duration_ns` does not count it. Raises MediaError.
    """
    encode, taken = ENCODINGS[form.format], 0
    for block in _cut(_surrounded(_sounding(track, form, made), form), form.chunk_samples):
        taken += len(block)
        yield _due_ns(taken, form.rate_hz), 0, encode(block)
    made.duration_ns = _due_ns(taken, form.rate_hz)
    end = taken + round(tail_silence_s * form.rate_hz)
    while taken < end:
        size = min(form.chunk_samples, end - taken)
        taken += size
        yield _due_ns(taken, form.rate_hz), 0, encode(np.zeros(size, np.float32))


def _due_ns(samples: int, rate_hz: int) -> int:
    """When so many samples have been captured, rounded up: never before."""
    return -(-samples * 1_000_000_000 // rate_hz)


def _surrounded(sound: Iterator[Samples], form: AudioForm) -> Iterator[Samples]:
    """The sound with the silence before and after it, in pieces of a second."""
    for seconds, inner in ((form.lead_in_s, sound), (form.tail_s, ())):
        left = round(seconds * form.rate_hz)
        yield from (np.zeros(min(form.rate_hz, left - at), np.float32) for at in range(0, left, form.rate_hz))
        yield from inner


def _sounding(track: Track, form: AudioForm, made: Made) -> Iterator[Samples]:
    """The track's segment at the form's rate. Raises MediaError where there is not a sample of it."""
    taken = 0
    for block in _resampled(_mono(track, made), form.rate_hz):
        taken += len(block)
        yield block
    if not taken:
        raise MediaError([f"{track.path}: holds no samples"])


def _mono(track: Track, made: Made) -> Iterator[tuple[int, Samples]]:
    """(rate, samples) of the track's segment at the file's own rate, cut to the sample."""
    position, start, rate = 0, 0, 0
    stop: int | None = None
    for position, frame, kept in (made.shared or strip.sound(track)).read(track.offset_s, made.notes):
        if not rate:
            rate = frame.sample_rate
            _expect(track, rate, frame.layout.nb_channels)
            start = round(track.offset_s * rate)
            stop = None if track.duration_s is None else round((track.offset_s + track.duration_s) * rate)
        first = max(start - position, 0)
        last = kept if stop is None else min(kept, stop - position)
        if last > first:
            yield rate, _channel(track, frame)[first:last]
        position += kept
        if stop is not None and position >= stop:
            return
    end_s = Fraction(position, rate)
    if position <= start:
        raise MediaError(
            [f"{track.path}: offset {float(track.offset_s)} s lies beyond its end at {float(end_s):.3f} s"]
        )
    if stop is not None and (short_s := track.offset_s + (track.duration_s or 0) - end_s) > TOLERANCE_S:
        made.notes.append(f"{track.path}: ends {float(short_s):.3f} s before the end of the declared segment")


def _expect(track: Track, rate: int, channels: int) -> None:
    """Refuse what the manifest did not expect, and more than one channel without a choice."""
    problems = []
    if track.sample_rate not in (None, rate):
        problems.append(f"{track.path}: has {rate} Hz, but sample_rate says {track.sample_rate}")
    if track.channel is None and channels > 1:
        problems.append(f'{track.path}: has {channels} channels: choose one with "channel": 0, or "channel": "mix"')
    if isinstance(track.channel, int) and not 0 <= track.channel < channels:
        problems.append(f"{track.path}: has no channel {track.channel}, only 0 to {channels - 1}")
    if problems:
        raise MediaError(problems)


def _channel(track: Track, frame: AudioFrame) -> Samples:
    """The chosen channel, or the mean of all, full scale 1."""
    data: NDArray[Any] = frame.to_ndarray()
    planes = data if frame.format.is_planar else data.reshape(-1, frame.layout.nb_channels).T
    name = frame.format.name.removesuffix("p")
    level = planes[track.channel or 0] if not isinstance(track.channel, str) else planes.mean(axis=0, dtype=np.float64)
    if name == "u8":
        level = level - 128.0
    samples: Samples = np.ascontiguousarray(level / FULL_SCALE[name], dtype=np.float32)
    if not np.isfinite(samples).all():
        raise MediaError([f"{track.path}: some samples are not numbers"])
    return samples


def _resampled(blocks: Iterator[tuple[int, Samples]], rate_hz: int) -> Iterator[Samples]:
    """The same sound at another rate, to its last sample; untouched where the rate is right."""
    for rate, same in itertools.groupby(blocks, key=operator.itemgetter(0)):
        sound = (block for _, block in same)
        yield from sound if rate == rate_hz else _converted(_cut(sound, rate), rate, rate_hz)


def _converted(seconds: Iterator[Samples], rate: int, rate_hz: int) -> Iterator[Samples]:
    """A second at a time: what a call costs, for each frame of a codec, would be more than the filter."""
    resampler = AudioResampler("flt", "mono", rate_hz)
    for block in seconds:
        frame = AudioFrame.from_ndarray(block[None], format="flt", layout="mono")
        frame.sample_rate = rate
        yield from (out.to_ndarray()[0] for out in resampler.resample(frame))
    yield from (out.to_ndarray()[0] for out in resampler.resample(None))


def _cut(blocks: Iterator[Samples], size: int) -> Iterator[Samples]:
    """Pieces of `size` samples, the last shorter. Blocks are joined only when there is a piece: it may be the clip."""
    waiting: list[Samples] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        if count >= size:
            held = np.concatenate(waiting)
            whole = count // size * size
            yield from (held[i : i + size] for i in range(0, whole, size))
            waiting, count = [held[whole:]], count - whole
    if count:
        yield np.concatenate(waiting)


def _s16(block: Samples) -> NDArray[np.int16]:
    samples: NDArray[np.int16] = np.clip(np.rint(block * 32768.0), -32768, 32767).astype("<i2")
    return samples


def _magnitudes() -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """All 16-bit samples in rising order as magnitude (one's complement, as in ITU-T G.191) and sign."""
    samples = np.arange(-32768, 32768)
    negative = samples < 0
    return np.where(negative, ~samples, samples), negative


def _mulaw_codes() -> NDArray[np.uint8]:
    """Code of each 16-bit sample, ITU-T G.711 Table 2: 14-bit magnitude and bias 33, segment and 4 bits, inverted."""
    magnitude, negative = _magnitudes()
    biased = np.minimum((magnitude >> 2) + 33, 0x1FFF)
    segment = np.frexp(biased)[1] - 6
    code = (segment << 4) | ((biased >> (segment + 1)) & 0x0F)
    codes: NDArray[np.uint8] = (~(code | np.where(negative, 0x80, 0)) & 0xFF).astype(np.uint8)
    return codes


def _alaw_codes() -> NDArray[np.uint8]:
    """Code of each 16-bit sample, ITU-T G.711 Table 1: 12-bit magnitude, segment and 4 bits, even bits inverted."""
    magnitude, negative = _magnitudes()
    level = magnitude >> 4
    segment = np.maximum(np.frexp(level)[1] - 4, 0)
    code = (segment << 4) | ((level >> np.maximum(segment - 1, 0)) & 0x0F)
    codes: NDArray[np.uint8] = ((code | np.where(negative, 0, 0x80)) ^ 0x55).astype(np.uint8)
    return codes


MULAW: Final = _mulaw_codes()
ALAW: Final = _alaw_codes()

ENCODINGS: Final[dict[str, Callable[[Samples], bytes]]] = {
    "s16le": lambda block: _s16(block).tobytes(),
    "f32le": lambda block: block.astype("<f4").tobytes(),
    "mulaw": lambda block: MULAW[_s16(block).astype(np.int64) + 32768].tobytes(),
    "alaw": lambda block: ALAW[_s16(block).astype(np.int64) + 32768].tobytes(),
}
