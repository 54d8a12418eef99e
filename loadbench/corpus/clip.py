"""A clip: one or more media tracks and what a right answer is."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

Direction = Literal["sign2spoken", "spoken2sign", "speech2text"]
Kind = Literal["audio", "video", "landmarks"]


@dataclass(frozen=True, slots=True)
class Track:
    """One medium of a clip. `path` is a media file, or a folder of frames where `pattern` is set.

    Landmarks are what a detector has found in the pictures of a video; the file is described in docs/landmarks.md.

    `offset_s` and `duration_s` cut a segment out of the file (`None`: to its end). `sample_rate` and `channel` are
    expectations to verify, `channel` an index or "mix".
    """

    kind: Kind
    path: Path
    pattern: str | None = None
    fps: Fraction | None = None
    offset_s: Fraction = Fraction(0)
    duration_s: Fraction | None = None
    sample_rate: int | None = None
    channel: int | str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Clip:
    """One item of a corpus. Times are seconds from the start of the clip; None is unknown.

    `line` is where it stands in `source`, for messages. References: `transcript` is what was spoken, `gloss` what was
    signed (or is to be signed), `text` what the spoken-language output should say. `activity_estimated`: a detector
    said when signing or speech begins and ends, no person did. `segments` are the sentences of a long recording:
    `offset`, `duration`, and `transcript`, `text` or `gloss`.
    """

    id: str
    direction: Direction
    tracks: tuple[Track, ...]
    source_lang: str
    target_lang: str
    activity_start_s: float | None = None
    activity_end_s: float | None = None
    activity_estimated: bool = False
    transcript: str | None = None
    gloss: tuple[str, ...] | None = None
    gloss_spans: tuple[dict[str, Any], ...] = ()
    text: str | None = None
    words: tuple[dict[str, Any], ...] = ()
    segments: tuple[dict[str, Any], ...] = ()
    alt_text: tuple[str, ...] = ()
    alt_gloss: tuple[tuple[str, ...], ...] = ()
    text_unit: str | None = None
    gloss_unit: str | None = None
    avatar: dict[str, Any] | None = None
    speaker: str | None = None
    tags: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    line: int = 0

    def later(self, by_s: float) -> "Clip":
        """The same clip with so much silence before it: whatever has a time in it comes so much later."""
        if not by_s:
            return self
        return replace(
            self,
            activity_start_s=_plus(self.activity_start_s, by_s),
            activity_end_s=_plus(self.activity_end_s, by_s),
            gloss_spans=tuple(_moved(span, by_s) for span in self.gloss_spans),
            words=tuple(_moved(word, by_s) for word in self.words),
            segments=tuple(part | {"offset": part["offset"] + by_s} for part in self.segments),
        )


def _plus(at_s: float | None, by_s: float) -> float | None:
    return None if at_s is None else at_s + by_s


def _moved(span: dict[str, Any], by_s: float) -> dict[str, Any]:
    return span | {name: span[name] + by_s for name in ("start", "end") if span.get(name) is not None}
