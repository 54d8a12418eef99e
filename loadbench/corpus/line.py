"""A clip as a line of the native manifest. Read again, it is the same clip, with its media where they lie."""

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.sample import Sample

KEPT = ("license", "meta", "signer")  # fields of the manifest that a clip carries among its extra ones
NEAR = 2  # folders up: what is not below these is told in full


def of(clip: Clip, folder: Path) -> dict[str, Any]:
    """The line's fields. Media below `folder`, or near it, are named relative to it, others in full."""
    line: dict[str, Any] = {"id": clip.id, "direction": clip.direction}
    if len(clip.tracks) == 1:
        (track,) = clip.tracks
        line |= _named(track, folder, f"{track.kind}_filepath") | _segment(track)
    else:
        line["tracks"] = [
            {"kind": track.kind} | _named(track, folder, "filepath") | _segment(track) for track in clip.tracks
        ]
    line |= {"source_lang": clip.source_lang, "target_lang": clip.target_lang}
    line |= _given(
        activity_start=clip.activity_start_s,
        activity_end=clip.activity_end_s,
        activity_estimated=clip.activity_estimated,
        transcript=clip.transcript,
        gloss=clip.gloss,
        gloss_spans=clip.gloss_spans,
        text=clip.text,
        words=clip.words,
        segments=clip.segments,
        alt_text=clip.alt_text,
        alt_gloss=clip.alt_gloss,
        text_unit=clip.text_unit,
        gloss_unit=clip.gloss_unit,
        avatar=clip.avatar,
    )
    signer_alone = clip.direction == "sign2spoken" and "signer" not in clip.extra
    line |= _given(**{"signer" if signer_alone else "speaker": clip.speaker}, tags=clip.tags)
    return line | _extra(clip.extra)


def _given(**fields: Any) -> dict[str, Any]:
    """Those that say something."""
    return {name: value for name, value in fields.items() if value is not None and value is not False and value != ()}


def _named(track: Track, folder: Path, field: str) -> dict[str, Any]:
    path = Path(os.path.abspath(track.path))  # noqa: PTH100  links stay what they are
    near = [folder, *folder.parents[:NEAR]]
    place = str(path)
    if any(path.is_relative_to(above) for above in near if above.name):  # what is only below / is not near
        place = os.path.relpath(path, folder)
    if track.pattern is None:
        return {field: place}
    return {"frames_dir": place, "frames_pattern": track.pattern}


def _segment(track: Track) -> dict[str, Any]:
    fps = track.fps
    return _given(
        fps=None if fps is None else int(fps) if fps.denominator == 1 else str(fps),
        offset=_seconds(track.offset_s) if track.offset_s else None,
        duration=None if track.duration_s is None else _seconds(track.duration_s),
        sample_rate=track.sample_rate,
        channel=track.channel,
        sha256=track.sha256,
    )


def _seconds(value: Fraction) -> float | str:
    """A decimal number where one says it exactly, else the ratio."""
    number = float(value)
    return number if Fraction(repr(number)) == value else f"{value.numerator}/{value.denominator}"


def _extra(extra: dict[str, Any]) -> dict[str, Any]:
    """Somebody's own keys; one that has the name of a field goes below `meta`, for it does not mean that field."""
    taken = {name: value for name, value in extra.items() if name in Sample.model_fields and name not in KEPT}
    kept = {name: value for name, value in extra.items() if name not in taken}
    if taken:
        kept["meta"] = taken | (kept.get("meta") or {})
    return kept
