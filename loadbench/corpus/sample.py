"""One line of the native manifest: its fields, what is wrong or odd about it, and the clip that it means."""

import difflib
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, WithJsonSchema

from loadbench.corpus.clip import Clip, Direction, Kind, Track

RATE: Final = re.compile(r"\d{1,6}(\.\d+)?|\d{1,9}/[1-9]\d{0,8}", re.ASCII)
PATTERN: Final = re.compile(r"(?P<before>[^%/]*)(?P<number>%(0\d+)?d)(?P<after>[^%/]*)")  # names of frames
INFINITY: Final = float("inf")
RATIO: Final = re.compile(r"-?\d+/[1-9]\d*", re.ASCII)


def seconds(value: object) -> Fraction:
    """Exactly the decimal number that was written, or the ratio where no decimal says it. ValueError: neither."""
    if type(value) is float and -INFINITY < value < INFINITY:  # as most are
        return _decimal(value)
    if isinstance(value, str) and RATIO.fullmatch(value):
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number of seconds")
    if isinstance(value, float):
        raise ValueError("must be a finite number of seconds")
    return Fraction(value)


@lru_cache(1 << 15)  # lengths written in milliseconds come again and again
def _decimal(value: float) -> Fraction:
    """As it was written; most texts need not be looked at with Fraction's regular expression."""
    written = repr(value)
    whole, _, part = written.partition(".")
    return Fraction(int(whole + part), 10 ** len(part)) if part.isdecimal() else Fraction(written)


def rate(value: object) -> Fraction:
    """25, 29.97 or "30000/1001"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not RATE.fullmatch(str(value)):
        raise ValueError('must be a rate as in 25, 29.97 or "30000/1001"')
    found = Fraction(str(value))
    if not found:
        raise ValueError("must be above 0")
    return found


def channel(value: object) -> int | str:
    """An index from 0, or "mix"."""
    if value == "mix" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError('must be the index of a channel, from 0, or "mix"')


Seconds = Annotated[Fraction, PlainValidator(seconds), WithJsonSchema({"type": ["number", "string"]})]
Rate = Annotated[Fraction, PlainValidator(rate), WithJsonSchema({"type": ["number", "string"]})]
Channel = Annotated[int | str, PlainValidator(channel), WithJsonSchema({"type": ["integer", "string"]})]
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

    kind: Kind
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
    landmarks_filepath: Word | None = None
    tracks: list[TrackEntry] | None = Field(None, min_length=1)
    source_lang: Word
    target_lang: Word
    activity_start: float | None = None
    activity_end: float | None = None
    activity_estimated: bool = False
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
            activity_estimated=self.activity_estimated,
            transcript=self.transcript,
            gloss=None if self.gloss is None else tuple(self.gloss),
            gloss_spans=tuple(span.model_dump(exclude_none=True, exclude_unset=True) for span in self.gloss_spans),
            text=self.text,
            words=tuple(span.model_dump(exclude_none=True, exclude_unset=True) for span in self.words),
            segments=tuple(span.model_dump(exclude_none=True, exclude_unset=True) for span in self.segments),
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

    def media(self) -> list[tuple[Medium, Kind, str | None]]:
        """Each medium with its kind and its file (None: a folder of frames); landmarks come behind what they are of."""
        if self.tracks is not None:
            return [(entry, entry.kind, entry.filepath) for entry in self.tracks]
        found: list[tuple[Medium, Kind, str | None]] = []
        if self.audio_filepath is not None:
            found.append((self, "audio", self.audio_filepath))
        elif self.video_filepath is not None or self.frames_dir is not None:
            found.append((self, "video", self.video_filepath))
        if self.landmarks_filepath is not None:
            found.append((self, "landmarks", self.landmarks_filepath))
        return found


def _track(medium: Medium, kind: Kind, file: str | None, folder: Path) -> Track:
    sha256 = None if medium.sha256 is None else medium.sha256.lower()
    if kind == "landmarks":  # what else a line expects is expected of the pictures
        beside = isinstance(medium, Sample) and len(medium.media()) > 1
        return Track(
            kind="landmarks",
            path=folder / (file or ""),
            offset_s=medium.offset,
            duration_s=medium.duration,
            sha256=None if beside else sha256,
        )
    return Track(
        kind=kind,
        path=folder / (file or medium.frames_dir or ""),
        pattern=None if file else medium.frames_pattern,
        fps=medium.fps,
        offset_s=medium.offset,
        duration_s=medium.duration,
        sample_rate=medium.sample_rate,
        channel=medium.channel,
        sha256=sha256,
    )


def problems(sample: Sample) -> Iterator[str]:
    """What makes the line unusable as a line; what is wrong with the clip that it means, `rules` says."""
    given = [name for name in ("video_filepath", "frames_dir", "audio_filepath", "tracks") if getattr(sample, name)]
    if len(given) > 1 or not (given or sample.landmarks_filepath):
        said = f"has {' and '.join(given)}" if given else "names no medium"
        yield f"{said}: give one of video_filepath, frames_dir, audio_filepath, landmarks_filepath, tracks"
    elif given == ["tracks"] and sample.landmarks_filepath:
        yield "landmarks_filepath: beside tracks, landmarks are one of them"
    else:
        found: dict[str, None] = {}  # offset and duration are those of all media of a line
        for n, (medium, kind, file) in enumerate(sample.media()):
            where = "" if sample.tracks is None else f"tracks[{n}]."
            found |= dict.fromkeys(where + problem for problem in _medium_problems(medium, kind, file))
        yield from found


def _medium_problems(medium: Medium, kind: str, file: str | None) -> Iterator[str]:
    if isinstance(medium, TrackEntry) and (file is None) == (medium.frames_dir is None):
        yield "filepath: give either filepath or frames_dir"
    elif file is None:
        if kind != "video":
            yield "frames_dir: frames are video"
        if medium.frames_pattern is None:
            yield "frames_pattern is missing: say how the frames are named, as in images%04d.png"
        elif not PATTERN.fullmatch(medium.frames_pattern):
            yield f"frames_pattern must hold one number, as in images%04d.png, not {medium.frames_pattern!r}"
        if medium.sha256 is not None:
            yield "sha256 is that of a media file; a folder of frames has none"


def misnamed(extra: Iterable[str]) -> Iterator[str]:
    """What to say of keys that are no fields, though passed through: some are probably slips."""
    for name in extra:
        if near := _meant(name):
            yield f"{name} is no field of the manifest and is only passed through; meant {near}?"


@lru_cache(1024)
def _meant(name: str) -> str | None:
    """The field that a name is probably a slip of; None: an own key of somebody's."""
    if name in Sample.model_fields:
        return None
    near = difflib.get_close_matches(name, Sample.model_fields, 1, 0.85)
    return near[0] if near else None
