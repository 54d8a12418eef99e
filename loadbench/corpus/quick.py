"""The usual line of a manifest as a clip, ten times as fast as the model that explains what is wrong with others.

Whatever is not plainly right is left to that model, so the two never say different things of a line.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec

from loadbench.corpus import sample
from loadbench.corpus.clip import Clip, Direction, Track

DIRECTIONS: Final = frozenset(get_args(Direction))
DIGEST: Final = re.compile("[0-9a-fA-F]{64}")
MEDIA: Final[dict[str, Literal["audio", "video"]]] = {
    "audio_filepath": "audio",
    "video_filepath": "video",
    "frames_dir": "video",
}

_decoded: Final = msgspec.json.Decoder().decode
_rate: Final = lru_cache(64)(sample.rate)
NONE_S: Final = Fraction(0)


def clip(line: bytes, folder: Path, source: str, number: int) -> Clip | None:
    """The clip of a line that has only plain fields, each as it should be. None: let the model look at it."""
    try:
        row = _decoded(line)
        if type(row) is not dict or not _plain(row):
            return None
        track = _track(row, folder)
    except (ValueError, TypeError, RecursionError):
        return None
    if track is None:
        return None
    gloss, extra = row.get("gloss"), {}
    speaker, signer = row.get("speaker"), row.get("signer")
    if not row.keys() <= TAKEN:
        extra = {name: value for name, value in row.items() if name not in TAKEN}
    if speaker and signer is not None:
        extra["signer"] = signer
    return Clip(
        id=row["id"],
        direction=row["direction"],
        tracks=(track,),
        source_lang=row["source_lang"],
        target_lang=row["target_lang"],
        activity_start_s=_float(row.get("activity_start")),
        activity_end_s=_float(row.get("activity_end")),
        activity_estimated=row.get("activity_estimated", False),
        transcript=row.get("transcript"),
        gloss=None if gloss is None else tuple(gloss),
        text=row.get("text"),
        alt_text=tuple(row.get("alt_text", ())),
        text_unit=row.get("text_unit"),
        gloss_unit=row.get("gloss_unit"),
        speaker=speaker or signer,
        tags=tuple(row.get("tags", ())),
        extra=extra,
        source=source,
        line=number,
    )


def _plain(row: dict[str, Any]) -> bool:
    for name, value in row.items():
        right = FIELDS.get(name, _own)
        if right is _word:  # most are, and a call is half the work
            if type(value) is not str or not value or value.isspace():
                return False
        elif not right(value) or (right is _own and name in UNUSUAL):
            return False
    return row.keys() >= NEEDED


def _track(row: dict[str, Any], folder: Path) -> Track | None:
    """None where there is not exactly one medium, or it is not told in full."""
    given = row.keys() & MEDIA.keys()
    if len(given) != 1:
        return None
    (name,), pattern, digest = given, row.get("frames_pattern"), row.get("sha256")
    if name == "frames_dir":
        if pattern is None or digest is not None or not sample.PATTERN.fullmatch(pattern):
            return None
    else:
        pattern = None
    fps, duration, offset = row.get("fps"), row.get("duration"), row.get("offset")
    return Track(
        kind=MEDIA[name],
        path=_path(folder, row[name]),
        pattern=pattern,
        fps=None if fps is None else _rate(fps),
        offset_s=sample.seconds(offset) if offset else NONE_S,
        duration_s=None if duration is None else sample.seconds(duration),
        sample_rate=row.get("sample_rate"),
        channel=None if "channel" not in row else sample.channel(row["channel"]),
        sha256=None if digest is None else digest.lower(),
    )


def _path(folder: Path, name: str) -> Path:
    """`folder / name`, in a third of the time where other files stand beside it."""
    below, _, last = name.rpartition("/")
    if not last or last == "." or (name[0] == "/" and not below):
        return folder / name
    return _beside(folder, below).with_name(last)


@lru_cache(256)
def _beside(folder: Path, below: str) -> Path:
    """Some name in the folder below."""
    return folder / below / "name"


def _own(value: Any) -> bool:
    """Somebody's own key, where both decoders take its value for the same."""
    return type(value) is str or type(value) is bool


def _word(value: Any) -> bool:
    return type(value) is str and value != "" and not value.isspace()


def _words(value: Any) -> bool:
    return type(value) is list and all(map(_word, value))


def _some_words(value: Any) -> bool:
    return _words(value) and value != []


def _text(value: Any) -> bool:
    return type(value) is str


def _number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


FIELDS: Final[dict[str, Callable[[Any], bool]]] = {
    "id": _word,
    "direction": lambda value: type(value) is str and value in DIRECTIONS,
    "source_lang": _word,
    "target_lang": _word,
    "audio_filepath": _word,
    "video_filepath": _word,
    "frames_dir": _word,
    "frames_pattern": _word,
    "fps": lambda value: _number(value) or type(value) is str,
    "offset": _number,
    "duration": _number,
    "sample_rate": lambda value: type(value) is int and value > 0,
    "channel": lambda value: type(value) in (int, str),
    "sha256": lambda value: type(value) is str and DIGEST.fullmatch(value) is not None,
    "activity_start": _number,
    "activity_end": _number,
    "activity_estimated": lambda value: type(value) is bool,
    "transcript": _word,
    "gloss": _some_words,
    "text": _word,
    "alt_text": _words,
    "text_unit": _text,
    "gloss_unit": _text,
    "speaker": _text,
    "signer": _text,
    "tags": lambda value: type(value) is list and all(map(_text, value)),
    "license": _text,
}
NEEDED: Final = frozenset(("id", "direction", "source_lang", "target_lang"))
TAKEN: Final = FIELDS.keys() - {"license"}  # what is no field of a clip stays with it as it is
UNUSUAL: Final = frozenset(sample.Sample.model_fields) - FIELDS.keys()
