"""One line of the native manifest: its fields, what is wrong or odd about it, and the clip that it means."""

import difflib
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, WithJsonSchema

from loadbench.corpus.clip import Clip, Direction, Track

MAX_GLOSSES: Final = 15  # sign words of a sentence, T/CADHOH 0004-2023, Appendix B
RATE: Final = re.compile(r"\d{1,6}(\.\d+)?|\d{1,9}/[1-9]\d{0,8}", re.ASCII)
PATTERN: Final = re.compile(r"(?P<before>[^%/]*)(?P<number>%(0\d+)?d)(?P<after>[^%/]*)")  # names of frames
UNITS: Final = ("char", "word")
ROUNDING_S: Final = 0.01  # a sum of written decimals may lie beyond the end by less than this
REFERENCE: Final[dict[str, tuple[str, ...]]] = {
    "sign2spoken": ("text", "gloss"),
    "spoken2sign": ("gloss", "transcript"),
    "speech2text": ("transcript", "text"),
}


def _seconds(value: object) -> Fraction:
    """Exactly the decimal number that was written."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number of seconds")
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise ValueError("must be a finite number of seconds")
    return Fraction(repr(value))


def _rate(value: object) -> Fraction:
    """25, 29.97 or "30000/1001"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not RATE.fullmatch(str(value)):
        raise ValueError('must be a rate as in 25, 29.97 or "30000/1001"')
    rate = Fraction(str(value))
    if not rate:
        raise ValueError("must be above 0")
    return rate


def _channel(value: object) -> int | str:
    if value == "mix" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError('must be the index of a channel, from 0, or "mix"')


Seconds = Annotated[Fraction, PlainValidator(_seconds), WithJsonSchema({"type": "number"})]
Rate = Annotated[Fraction, PlainValidator(_rate), WithJsonSchema({"type": ["number", "string"]})]
Channel = Annotated[int | str, PlainValidator(_channel), WithJsonSchema({"type": ["integer", "string"]})]
Word = Annotated[str, StringConstraints(pattern=r"\S")]  # empty references are errors
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")]


class Part(BaseModel):
    """Unknown keys are kept, types are not guessed."""

    model_config = ConfigDict(extra="allow", strict=True, arbitrary_types_allowed=True, allow_inf_nan=False)


class Medium(Part):
    """Which part of which medium. `offset` and `duration` in seconds; `sample_rate` and `channel` are expectations."""

    frames_dir: Word | None = None
    frames_pattern: Word | None = None
    fps: Rate | None = None
    offset: Seconds = Fraction(0)
    duration: Seconds | None = None
    sample_rate: int | None = Field(None, gt=0)
    channel: Channel | None = None
    sha256: Digest | None = None


class TrackEntry(Medium):
    """One of several media of a clip."""

    kind: Literal["audio", "video"]
    filepath: Word | None = None


class Span(Part):
    """When something was signed or said; seconds from the start of the clip."""

    start: float
    end: float


class GlossSpan(Span):
    """A sign with the time it takes."""

    gloss: Word
    hand: str | None = None
    marks: list[str] = []


class WordSpan(Span):
    """A spoken word with the time it takes."""

    w: Word


class SentenceSpan(Part):
    """One sentence of a long recording; seconds from the start of the clip, and what is right for it."""

    offset: float = Field(ge=0)
    duration: float = Field(gt=0)
    transcript: Word | None = None
    text: Word | None = None
    gloss: list[Word] | None = Field(None, min_length=1)


class Sample(Medium):
    """A line of a manifest."""

    id: Word
    direction: Direction
    video_filepath: Word | None = None
    audio_filepath: Word | None = None
    tracks: list[TrackEntry] | None = Field(None, min_length=1)
    source_lang: Word
    target_lang: Word
    activity_start: float | None = None
    activity_end: float | None = None
    transcript: Word | None = None
    gloss: list[Word] | None = Field(None, min_length=1)
    gloss_spans: list[GlossSpan] = []
    text: Word | None = None
    words: list[WordSpan] = []
    segments: list[SentenceSpan] = []
    alt_text: list[Word] = []
    alt_gloss: list[Annotated[list[Word], Field(min_length=1)]] = []
    text_unit: str | None = None
    gloss_unit: str | None = None
    avatar: dict[str, Any] | None = None
    speaker: str | None = None
    signer: str | None = None
    tags: list[str] = []
    license: str | None = None
    meta: dict[str, Any] | None = None

    def clip(self, folder: Path, source: str, line: int) -> Clip:
        """The clip that this line means; paths are relative to `folder`, which is absolute."""
        kept = {"license": self.license, "meta": self.meta}
        kept["signer"] = self.signer if self.speaker else None
        return Clip(
            id=self.id,
            direction=self.direction,
            tracks=tuple(_track(medium, kind, file, folder) for medium, kind, file in self.media()),
            source_lang=self.source_lang,
            target_lang=self.target_lang,
            activity_start_s=self.activity_start,
            activity_end_s=self.activity_end,
            transcript=self.transcript,
            gloss=None if self.gloss is None else tuple(self.gloss),
            gloss_spans=tuple(span.model_dump(exclude_none=True) for span in self.gloss_spans),
            text=self.text,
            words=tuple(span.model_dump(exclude_none=True) for span in self.words),
            segments=tuple(span.model_dump(exclude_none=True) for span in self.segments),
            alt_text=tuple(self.alt_text),
            alt_gloss=tuple(tuple(gloss) for gloss in self.alt_gloss),
            text_unit=self.text_unit,
            gloss_unit=self.gloss_unit,
            avatar=self.avatar,
            speaker=self.speaker or self.signer,
            tags=tuple(self.tags),
            extra={name: value for name, value in kept.items() if value is not None} | (self.model_extra or {}),
            source=source,
            line=line,
        )

    def media(self) -> list[tuple[Medium, Literal["audio", "video"], str | None]]:
        """Each medium with its kind and its file (None: a folder of frames)."""
        if self.tracks is not None:
            return [(entry, entry.kind, entry.filepath) for entry in self.tracks]
        if self.audio_filepath is not None:
            return [(self, "audio", self.audio_filepath)]
        return [(self, "video", self.video_filepath)]


def _track(medium: Medium, kind: Literal["audio", "video"], file: str | None, folder: Path) -> Track:
    return Track(
        kind=kind,
        path=folder / (file or medium.frames_dir or ""),
        pattern=None if file else medium.frames_pattern,
        fps=medium.fps,
        offset_s=medium.offset,
        duration_s=medium.duration,
        sample_rate=medium.sample_rate,
        channel=medium.channel,
        sha256=None if medium.sha256 is None else medium.sha256.lower(),
    )


def problems(sample: Sample, folder: Path) -> Iterator[str]:
    """What makes the line unusable, beyond the types of its fields."""
    given = [name for name in ("video_filepath", "frames_dir", "audio_filepath", "tracks") if getattr(sample, name)]
    if len(given) != 1:
        said = f"has {' and '.join(given)}" if given else "names no medium"
        yield f"{said}: give one of video_filepath, frames_dir, audio_filepath, tracks"
    else:
        for n, (medium, kind, file) in enumerate(sample.media()):
            where = "" if sample.tracks is None else f"tracks[{n}]."
            yield from (where + problem for problem in _medium_problems(medium, kind, file, folder))
        if sample.direction == "sign2spoken" and all(kind == "audio" for _, kind, _ in sample.media()):
            yield "sign2spoken needs a video: video_filepath, frames_dir, or a video track"
    yield from _time_problems(sample)


def _medium_problems(medium: Medium, kind: str, file: str | None, folder: Path) -> Iterator[str]:
    if medium.offset < 0:
        yield f"offset must be 0 or more, not {float(medium.offset)}"
    if medium.duration is not None and medium.duration <= 0:
        yield f"duration must be above 0, not {float(medium.duration)}"
    if isinstance(medium, TrackEntry) and (file is None) == (medium.frames_dir is None):
        yield "filepath: give either filepath or frames_dir"
    elif file is not None:
        if (folder / file).is_dir():
            pictures = (
                "; a folder of pictures is named by frames_dir, frames_pattern and fps" if kind == "video" else ""
            )
            yield f"{folder / file} is a folder, not a file{pictures}"
        elif not (folder / file).is_file():
            yield f"no such file: {folder / file}"
    elif medium.frames_dir is not None:
        yield from _folder_problems(medium, kind, folder / medium.frames_dir)


def _folder_problems(medium: Medium, kind: str, path: Path) -> Iterator[str]:
    if kind != "video":
        yield "frames_dir: frames are video"
    if not path.is_dir():
        yield f"no such folder: {path}"
    if medium.fps is None:
        yield "fps is missing: frames in a folder have no times of their own"
    if medium.frames_pattern is None:
        yield "frames_pattern is missing: say how the frames are named, as in images%04d.png"
    elif not PATTERN.fullmatch(medium.frames_pattern):
        yield f"frames_pattern must hold one number, as in images%04d.png, not {medium.frames_pattern!r}"
    if medium.sha256 is not None:
        yield "sha256 is that of a media file; a folder of frames has none"


def _time_problems(sample: Sample) -> Iterator[str]:
    length = segment_s(sample)
    for name, at in (("activity_start", sample.activity_start), ("activity_end", sample.activity_end)):
        if at is not None and not 0 <= at <= length:
            yield f"{name} {at} lies outside the segment (0 to {length:g} s)"
    if (
        sample.activity_start is not None
        and sample.activity_end is not None
        and sample.activity_end < sample.activity_start
    ):
        yield f"activity_end {sample.activity_end} is before activity_start {sample.activity_start}"
    for name, spans in (("gloss_spans", sample.gloss_spans), ("words", sample.words)):
        for n, span in enumerate(spans):
            if span.end < span.start:
                yield f"{name}[{n}] ends at {span.end}, before its start at {span.start}"
            if span.start < 0 or span.end > length:
                yield f"{name}[{n}] ({span.start} to {span.end}) lies outside the segment (0 to {length:g} s)"
    before = 0.0
    for n, part in enumerate(sample.segments):
        if part.offset < before:
            yield f"segments[{n}] begins at {part.offset}, before the one before it: sort them by their offsets"
        if part.offset + part.duration > length + ROUNDING_S:
            where = f"{part.offset} to {part.offset + part.duration:g}"
            yield f"segments[{n}] ({where}) lies outside the segment (0 to {length:g} s)"
        if not any(getattr(part, name) for name in REFERENCE[sample.direction]):
            yield f"segments[{n}] has no reference ({' or '.join(REFERENCE[sample.direction])})"
        before = part.offset


def segment_s(sample: Sample) -> float:
    """The longest declared duration of the clip's media; infinity where one declares none."""
    declared = [medium.duration for medium, _, _ in sample.media()]
    return max((float("inf") if length is None else float(length) for length in declared), default=float("inf"))


def warnings(sample: Sample) -> Iterator[str]:
    """What is odd about the line, though it can be used."""
    for name in ("gloss", "alt_gloss"):
        for gloss in [sample.gloss or []] if name == "gloss" else sample.alt_gloss:
            if len(gloss) > MAX_GLOSSES:
                yield f"{name} has {len(gloss)} signs; T/CADHOH 0004-2023 expects at most {MAX_GLOSSES} a sentence"
    for name in ("text_unit", "gloss_unit"):
        unit = getattr(sample, name)
        if unit not in (None, *UNITS):
            yield f"{name} {unit!r} is unknown and will not be used; known: {', '.join(UNITS)}"
    if not sample.segments and not any(getattr(sample, name) for name in REFERENCE[sample.direction]):
        yield f"has no reference ({' or '.join(REFERENCE[sample.direction])}): its output cannot be scored"
    for name in sample.model_extra or {}:
        near = difflib.get_close_matches(name, type(sample).model_fields, 1, 0.85)
        if near:
            yield f"{name} is no field of the manifest and is only passed through; meant {near[0]}?"
