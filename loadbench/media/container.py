"""Output in containers, opened: when each picture or sound of it could have been played, by the arrival of its bytes.

A packet can be decoded when the piece that holds its last byte has come; a picture or a sound belongs to the packet at
which the decoder gives it out. Exact where packets lie in the container as they are (webm, mp4, wav). This takes
processor time, so it is done outside of the engine's process, for the sampled sessions, after each of them.
"""

import io
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import av
import numpy as np
from av.audio.resampler import AudioResampler
from PIL import Image

from loadbench.media.player import Player
from loadbench.results.media import HEAD_BYTES, MediaOutput, MediaPiece, Medium, ending
from loadbench.results.record import SessionRecord

AUDIBLE: Final = 10 ** (-50 / 20)
HELD_S: Final = 0.01
FORMATS: Final = {"webm": "matroska", "mp4": "mp4", "ogg": "ogg", "wav": "wav"}


class Found(NamedTuple):
    """A picture or a stretch of sound: its place and length in the output, and when it could be played.

    `loud` holds the places of its audible samples, in seconds.
    """

    place_s: float
    length_s: float
    at_ns: int
    loud: Sequence[float] = ()


class Reels:
    """The pieces of sessions that go on; each session's are let go when it has ended."""

    def __init__(self) -> None:
        self._pieces: dict[str, dict[tuple[int, str], list[MediaPiece]]] = {}

    def keep(self, piece: MediaPiece) -> None:
        """Hold a piece."""
        self._pieces.setdefault(piece.session, {}).setdefault((piece.utterance, piece.channel), []).append(piece)

    def holds(self, session: str) -> bool:
        """Whether there are pieces of a session."""
        return session in self._pieces

    def open(self, record: SessionRecord) -> None:
        """Fill in what a decoder finds in the media of an ended session, and what it cannot decode: counted, and told.

        Whether an utterance is still ok with that is for its judge to say again.
        """
        for (index, name), pieces in self._pieces.pop(record.id, {}).items():
            channel = next((part.channels.get(name) for part in record.utterances if part.index == index), None)
            if channel is None or channel.media is None:
                continue
            media = channel.media
            if not media.decoded and sum(len(piece.data) for piece in pieces) < media.bytes:
                record.warnings.append(f"channel {name} is longer than record.media_mib, and was not opened")
            elif not media.decoded:
                why = opened(media, pieces)
                channel.first_ns = media.first_ns
                record.warnings += [f"channel {name} cannot be decoded: {why}"] if why else []
            elif media.format == "jpeg" and (count := _looked_through(media, pieces)):
                channel.first_ns = media.first_ns
                record.warnings.append(f"channel {name}: {count} more pictures cannot be decoded in full")


def opened(media: MediaOutput, pieces: Sequence[MediaPiece]) -> str:
    """Fill in what is in the container; why that ended before its end, if it did. What came before that counts."""
    player, first_ns, last_ns, count, seconds = Player(), None, 0, 0, 0.0
    heard, why = _Heard(), ""
    media.decoded = True
    try:
        for found in _decoded(media.medium, pieces):
            if first_ns is None:
                first_ns, zero_s = found.at_ns, found.place_s
            place_s = found.place_s - zero_s
            player.take(round(place_s * 1e9), round((place_s + found.length_s) * 1e9), found.at_ns)
            last_ns, count, seconds = found.at_ns, count + 1, max(seconds, place_s + found.length_s)
            heard.take(found)
    except Exception as error:  # whatever a service's bytes make a decoder do, they cost this channel alone
        why, media.broken = f"{type(error).__name__}: {error}", 1
    media.playback_end_ns, media.gaps, media.starved_ns = player.end_ns, player.gaps, player.starved_ns
    media.media_s = seconds if count else None
    if media.medium == "audio":
        media.first_sound_ns = heard.first_ns
        return why
    media.first_frame_ns, media.frames = first_ns, count
    if first_ns is not None and last_ns > first_ns:
        media.fps = (count - 1) * 1e9 / (last_ns - first_ns)
    return why


class _Heard:
    """The first audible sample, as `MediaOutput` defines it."""

    def __init__(self) -> None:
        self.first_ns: int | None = None
        self._run: tuple[float, int] | None = None
        self._last_s = 0.0

    def take(self, found: Found) -> None:
        for place_s in found.loud if self.first_ns is None else ():
            if self._run is None or place_s - self._last_s > HELD_S:
                self._run = place_s, found.at_ns
            self._last_s = place_s
            if place_s - self._run[0] >= HELD_S:
                self.first_ns = self._run[1]
                return


def _decoded(medium: Medium, pieces: Sequence[MediaPiece]) -> Iterator[Found]:
    """All that can be decoded, in its order. Raises what a decoder raises, and ValueError where nothing is known."""
    ends = list(accumulate(len(piece.data) for piece in pieces))
    data = b"".join(piece.data for piece in pieces)
    kind = FORMATS.get(ending("container", data[:HEAD_BYTES]))
    if kind is None:  # never a guess of FFmpeg's: it knows playlists, and would fetch what they name
        raise ValueError("no container that is known here: webm, mp4, ogg, wav")
    with av.open(io.BytesIO(data), "r", format=kind) as container:
        stream = container.streams.best(medium)
        if stream is None:
            raise ValueError(f"there is no {medium} in it")
        stream.codec_context.thread_count = 1  # threads give pictures out late, and so with a later packet's arrival
        mono = AudioResampler("flt", "mono")
        at_ns = pieces[0].at_ns
        for packet in container.demux(stream):
            if packet.pos is not None and packet.pos >= 0 and packet.size:
                piece = min(bisect_left(ends, _end(data, packet)), len(pieces) - 1)
                at_ns = max(at_ns, pieces[piece].at_ns)
            for frame in packet.decode():
                yield _found(frame, stream, mono, at_ns)


def _end(data: bytes, packet: Any) -> int:
    """Where a packet's last byte has come; some containers say where its head begins, so it is looked for behind."""
    begin = data.find(bytes(packet), packet.pos)
    return int(max(begin, packet.pos) + packet.size)


def _found(frame: Any, stream: Any, mono: AudioResampler, at_ns: int) -> Found:
    """One picture, or one block of sound with the places of its audible samples."""
    place_s = float(frame.time or 0.0)
    if isinstance(frame, av.VideoFrame):
        length_s = (
            float(frame.duration * frame.time_base)
            if frame.duration and frame.time_base
            else 1 / float(stream.average_rate or 25)
        )
        return Found(place_s, length_s, at_ns)
    samples = np.concatenate([block.to_ndarray()[0] for block in mono.resample(frame)] or [np.zeros(0)])
    loud = np.flatnonzero(np.abs(samples) > AUDIBLE) / frame.sample_rate + place_s
    return Found(place_s, frame.samples / frame.sample_rate, at_ns, loud.tolist())


def _looked_through(media: MediaOutput, pieces: Sequence[MediaPiece]) -> int:
    """How many pictures only looked whole: they are counted as broken, and the first is one that can be decoded."""
    good = [piece.at_ns for piece in pieces if _is_picture(piece.data)]
    count = len(pieces) - len(good) - media.broken
    if count and media.frames is not None:
        media.broken += count
        media.frames -= count
        media.first_frame_ns = good[0] if good else None
    return count


def _is_picture(data: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except Exception:  # as above
        return False
    return True
