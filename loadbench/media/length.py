"""How long a clip is, asked of its files where the corpus does not say it: their headers, if these know it."""

from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

import av

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.read import declared_s
from loadbench.media import landmarks
from loadbench.media.decode import MediaError, measure, opened
from loadbench.media.frames import numbered

MOST_S: Final = 1_000_000  # a header that says more was never filled in


def length_s(clip: Clip) -> float | None:
    """Seconds of the clip's longest medium; None where some medium cannot be used, which the check of it says."""
    declared = declared_s(clip)
    if declared is not None:
        return declared
    try:
        return float(max(_track_s(track) for track in clip.tracks))
    except (MediaError, OSError, ValueError):
        return None


def _track_s(track: Track) -> Fraction:
    if track.duration_s is not None:
        return track.duration_s
    if track.pattern is not None:
        frames = numbered(track, [])
        return (frames[-1][0] - frames[0][0] + 1) / (track.fps or Fraction(25)) - track.offset_s
    if track.kind == "landmarks":
        return landmarks.measure(track.path).duration_s - track.offset_s
    known_s = _announced_s(track.path, track.kind) or measure(track.path, track.kind, track.fps, []).duration_s
    return known_s - track.offset_s


def _announced_s(path: Path, kind: Literal["audio", "video"]) -> Fraction | None:
    with opened(path, kind) as (container, stream):
        if stream.duration:
            length = Fraction(stream.duration) * stream.time_base
        elif container.duration:
            length = Fraction(container.duration, av.time_base)
        else:
            return None
    return length if 0 < length < MOST_S else None
