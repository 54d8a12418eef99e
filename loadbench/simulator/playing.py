"""Output media of the simulated service: tone bursts or moving pictures, as long as the source lasts."""

import io
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from loadbench.session.profile import MediaFormat
from loadbench.simulator.behave import SECOND, Course, ns
from loadbench.simulator.sitting import Sitting

PIECE_NS = SECOND // 25  # of sound; a picture where the profile names no rate
TONE_HZ = 440
BURST_S, PAUSE_S = 0.4, 0.1
AMPLITUDE = 0.25  # -12 dBFS
LOOP = 25  # pictures, then the first again
SIZE = (160, 120)
# A code of each format that G.711 gives to silence, and to a loud sample of either sign.
G711 = {"mulaw": (0xFF, 0x90, 0x10), "alaw": (0xD5, 0xA5, 0x25)}


class Playing:
    """One media channel of one utterance. `over` when it has said all; `settled` is then called with the time.

    Pieces leave in real time, the first `Course.media_ns` after the slot. Sound has silence in front of it, and every
    channel the gaps that were asked for: a piece at or after so many seconds of output comes so much later, with all
    that follow.
    """

    def __init__(self, sitting: Sitting, channel: str, course: Course, settled: Callable[[int], None]) -> None:
        options, self._form = sitting.house.options, sitting.house.speaker.media[channel].form
        self._sitting = sitting
        self._channel = channel
        self._settled = settled
        self._delay_ns = course.media_ns
        self._piece_ns = PIECE_NS if self._form.fps is None else ns(1 / self._form.fps)
        self._silence_s = options.media_silence_s
        given = options.media_gaps_s
        self._gaps_ns = [(ns(at), ns(length)) for at, length in zip(given[::2], given[1::2], strict=True)]
        self._count = 0
        self._due_ns = 0
        self._length_ns: int | None = None
        self.over = False

    def begin(self, now_ns: int) -> None:
        """The service listens from now on."""
        self._due_ns = now_ns + self._delay_ns
        self._next()

    def end(self, now_ns: int) -> None:
        """The source is over, and so its length is known."""
        self._length_ns = self._heard_ns(now_ns)

    def _next(self) -> None:
        place_ns = self._count * self._piece_ns
        while self._gaps_ns and self._gaps_ns[0][0] <= place_ns:
            self._due_ns += self._gaps_ns.pop(0)[1]
        self._sitting.mouth.at(self._due_ns, self._say)

    async def _say(self, now_ns: int) -> None:
        if self._length_ns is not None and self._count * self._piece_ns >= self._length_ns:
            self.over = True
            self._settled(now_ns)
            return
        sounds = self._form.format != "jpeg" and (self._count + 1) * self._piece_ns > ns(self._silence_s)
        data = piece(self._form, self._count, self._piece_ns, self._silence_s)
        await self._sitting.say_media(self._channel, data, sounds=sounds)
        self._count += 1
        self._due_ns += self._piece_ns
        self._next()

    def _heard_ns(self, now_ns: int) -> int:
        """Of samples that came, their length; of all else the time in which it came."""
        entry, part = self._sitting.entry, self._sitting.house.profile.media
        if part.kind == "audio" and part.container is None:
            return entry.media_bytes * SECOND // ({"s16le": 2, "f32le": 4}.get(part.format, 1) * part.rate_hz)
        return now_ns - entry.chunks_ns[0] if entry.chunks_ns else 0


def piece(form: MediaFormat, number: int, piece_ns: int, silence_s: float) -> bytes:
    """Piece `number` of the output: a picture, or the sound of its span."""
    if form.format == "jpeg":
        return picture(number % LOOP)
    rate = form.rate_hz or 1
    places = np.arange(number * piece_ns * rate // SECOND, (number + 1) * piece_ns * rate // SECOND)
    return _coded(form.format, np.repeat(_tone(places / rate - silence_s), form.channels))


@cache
def picture(number: int) -> bytes:
    """A bar on its way from the left to the right."""
    image = Image.new("RGB", SIZE, (16, 24, 48))
    left = number * SIZE[0] // LOOP
    ImageDraw.Draw(image).rectangle((left, 20, left + 12, 100), fill=(240, 200, 60))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def _tone(at_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bursts with pauses between them from second 0 on; before it nothing."""
    on = (at_s >= 0) & (at_s % (BURST_S + PAUSE_S) < BURST_S)
    sound: NDArray[np.float64] = np.where(on, AMPLITUDE * np.cos(2 * np.pi * TONE_HZ * at_s), 0.0)
    return sound


def _coded(form: str, sound: NDArray[np.float64]) -> bytes:
    if form in G711:
        silent, plus, minus = G711[form]
        return np.where(sound == 0, silent, np.where(sound > 0, plus, minus)).astype(np.uint8).tobytes()
    coded: NDArray[Any] = sound.astype("<f4") if form == "f32le" else np.round(sound * 32767).astype("<i2")
    return coded.tobytes()
