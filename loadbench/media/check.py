"""A corpus checked with its media: every file is decoded to its end and compared with what the manifest declares."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

from loadbench.corpus import manifest
from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import Report
from loadbench.media import landmarks
from loadbench.media.decode import TOLERANCE_S, Facts, MediaError, measure
from loadbench.media.frames import numbered

FPS_TOLERANCE: Final = Fraction(1, 100)  # 29.97 written as 30 is no mistake


def check(path: Path) -> Report:
    """Everything that is wrong or odd in a manifest and in the media that it names. Measured lengths are counted."""
    clips, problems, warnings = manifest.parse(path)
    lengths_s: list[float | None] = []
    for clip in clips:
        spans_s = [_compared(clip, track, problems, warnings) for track in clip.tracks]
        lengths_s.append(None if None in spans_s else max(span_s or 0.0 for span_s in spans_s))
    return manifest.report(clips, lengths_s, problems, warnings)


def _compared(clip: Clip, track: Track, problems: list[str], warnings: list[str]) -> float | None:
    """The measured length of a track's segment in seconds; None where the medium cannot be used."""
    where = f"{clip.source}:{clip.line}: clip {clip.id}: "
    notes: list[str] = []
    try:
        facts = _measured(track, notes)
    except MediaError as error:
        problems += [where + problem for problem in error.problems]
        return None
    length_s = facts.duration_s - track.offset_s
    if track.duration_s is not None:
        length_s = min(length_s, track.duration_s)
    problems += [where + problem for problem in _problems(clip, track, facts, float(length_s))]
    warnings += [where + note for note in (*notes, *_warnings(track, facts, float(length_s)))]
    return float(length_s) if length_s > 0 else None


def _measured(track: Track, notes: list[str]) -> Facts:
    if track.kind == "landmarks":
        return landmarks.measure(track.path)
    if track.pattern is None:
        return measure(track.path, track.kind, track.fps, notes)
    frames, fps = numbered(track, notes), track.fps or Fraction(25)
    return Facts((frames[-1][0] - frames[0][0] + 1) / fps, fps=fps)


def _problems(clip: Clip, track: Track, facts: Facts, length_s: float) -> Iterator[str]:
    name = track.path.name
    if length_s <= 0:
        yield f"offset {float(track.offset_s)} lies beyond the end of {name} at {float(facts.duration_s):.3f} s"
    if track.kind == "audio" and track.sample_rate not in (None, facts.rate_hz):
        yield f"sample_rate says {track.sample_rate}, {name} has {facts.rate_hz} Hz"
    if isinstance(track.channel, int) and facts.channels is not None and track.channel >= facts.channels:
        yield f"channel {track.channel} of {name} does not exist; it has {facts.channels}"
    if track.channel is None and (facts.channels or 1) > 1:
        yield f'{name} has {facts.channels} channels: choose one with "channel": 0, or "channel": "mix"'
    ends = [span["end"] for span in (*clip.gloss_spans, *clip.words)]
    ends += [at for at in (clip.activity_start_s, clip.activity_end_s) if at is not None]
    if length_s > 0 and max(ends, default=0.0) > length_s + TOLERANCE_S:
        yield f"times up to {max(ends)} s lie outside {name}, whose segment has {length_s:.3f} s"


def _warnings(track: Track, facts: Facts, length_s: float) -> Iterator[str]:
    name, full_s = track.path.name, float(facts.duration_s)
    if length_s > 0 and track.duration_s is not None:
        missing_s = float(track.duration_s) - length_s
        if missing_s > TOLERANCE_S:
            yield f"{name} ends {missing_s:.3f} s before the end of the declared segment"
        elif not track.offset_s and full_s - length_s > TOLERANCE_S:
            yield f"only the first {length_s:g} s of the {full_s:.3f} s of {name} are streamed"
    if track.fps and facts.fps and abs(track.fps / facts.fps - 1) > FPS_TOLERANCE:
        yield f"fps says {float(track.fps):g}, {name} has {float(facts.fps):.3f}: its own times are kept"
