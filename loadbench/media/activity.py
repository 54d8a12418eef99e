"""When speech begins and ends in a clip of which the corpus does not say it, by the energy of its sound.

The sound at 16 kHz is cut into frames of 30 ms. The noise floor is the level that a tenth of the frames do not exceed;
speech is what lies 12 dB above it, but never more than 15 dB below the loud frames (there may be no pause to take a
floor from) nor below -55 dBFS. Stretches less than 240 ms apart belong together (hangover), and one of less than 90 ms
is a click. Music, breath and other voices count as speech: it is an estimate, and marked as one.

A small detector of our own: a learned one asks for a neural runtime and brings a model many times the size of this
package; the small well-known one judges by energy in bands, knows four rates only, and gives no better ends of a clip.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loadbench.corpus.clip import Clip, Track
from loadbench.media import ahead, audio
from loadbench.media.decode import MediaError
from loadbench.media.form import AudioForm
from loadbench.media.made import Made

FRAME_MS: Final = 30
FORM: Final = AudioForm("f32le", 16_000, 16_000 * FRAME_MS // 1000)
FLOOR_PERCENTILE: Final = 10
LOUD_PERCENTILE: Final = 95
ABOVE_FLOOR_DB: Final = 12.0
BELOW_LOUD_DB: Final = 15.0
LEAST_DBFS: Final = -55.0
HANGOVER_FRAMES: Final = 8
LEAST_FRAMES: Final = 3
SILENCE_DBFS: Final = -120.0


def speech_s(track: Track) -> tuple[float, float] | None:
    """Onset and end in seconds from the start of the segment, to the frame; None where nothing is said.

    Raises MediaError where the sound cannot be used.
    """
    made = Made()
    levels = np.array([_dbfs(data) for _, _, data in audio.chunks(track, FORM, 0.0, made)])
    found = _spans(levels > _threshold(levels))
    if not found:
        return None
    end_s = min(found[-1][1] * FRAME_MS / 1000, made.duration_ns / 1e9)
    return found[0][0] * FRAME_MS / 1000, end_s


def _dbfs(data: bytes) -> float:
    """RMS level of a frame without its direct current."""
    power = float(np.frombuffer(data, "<f4").var())
    return 10 * float(np.log10(power)) if power > 1e-12 else SILENCE_DBFS


def _threshold(levels: NDArray[np.float64]) -> float:
    floor, loud = np.percentile(levels, [FLOOR_PERCENTILE, LOUD_PERCENTILE])
    return max(min(float(floor) + ABOVE_FLOOR_DB, float(loud) - BELOW_LOUD_DB), LEAST_DBFS)


def _spans(active: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Stretches of active frames as (first, behind the last), joined over short pauses, without clicks."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], active, [False])).astype(np.int8)))
    joined: list[tuple[int, int]] = []
    for first, end in edges.reshape(-1, 2).tolist():
        if joined and first - joined[-1][1] < HANGOVER_FRAMES:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return [(first, end) for first, end in joined if end - first >= LEAST_FRAMES]


def missing_s(clip: Clip) -> tuple[float, float] | None:
    """Estimated onset and end of a clip whose corpus gives neither; None where it does, or nothing is said in it.

    Signing is not estimated. Raises MediaError.
    """
    if clip.activity_start_s is not None or clip.activity_end_s is not None or clip.direction == "sign2spoken":
        return None
    track = next((track for track in clip.tracks if track.kind == "audio"), None)
    return None if track is None else speech_s(track)


def estimated(clip: Clip) -> Clip:
    """The clip with the times that are missing, as `missing_s` finds them, and marked. Raises MediaError."""
    span_s = missing_s(clip)
    if span_s is None:
        return clip
    return replace(clip, activity_start_s=span_s[0], activity_end_s=span_s[1], activity_estimated=True)


def all_estimated(clips: Iterable[Clip]) -> Iterator[tuple[Clip, tuple[str, ...]]]:
    """Each clip as `estimated` has it, in order; as it is, and with problems, where its media cannot be used."""

    def judged(clip: Clip) -> tuple[Clip, tuple[str, ...]]:
        try:
            return estimated(clip), ()
        except MediaError as error:
            return clip, tuple(error.problems)

    return (result for _, result in ahead.in_order(judged, clips))
