"""The native manifest: JSON lines, one clip a line, UTF-8, paths relative to the manifest's folder.

Lines end with a line feed (a carriage return before it and a byte order mark at the start are fine) and nowhere else:
U+2028 inside a string is text. Blank lines are ignored. A file is read line by line, so it may be long.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from loadbench.corpus import sample as lines
from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.decode import TOLERANCE_S, Facts, MediaError, measure
from loadbench.corpus.frames import numbered
from loadbench.corpus.sample import Sample

BOM: Final = b"\xef\xbb\xbf"
FILE_NAME: Final = "manifest.jsonl"
FPS_TOLERANCE: Final = Fraction(1, 100)  # 29.97 written as 30 is no mistake


class CorpusError(ValueError):
    """A corpus that cannot be used; `problems` holds a sentence for each trouble, with file and line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `problems` forbid a run, `warnings` do not.

    `hours` sums the declared or, where the media were opened, the measured lengths; None where one is unknown.
    `languages` counts clips by (source, target).
    """

    clips: int
    hours: float | None
    languages: dict[tuple[str, str], int]
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read(path: Path) -> list[Clip]:
    """All clips of a manifest, or of the `manifest.jsonl` in a folder. Raises CorpusError with every problem."""
    clips, problems, _ = _parsed(path)
    if problems:
        raise CorpusError(problems)
    return clips


def check(path: Path, *, media: bool = True) -> Report:
    """Everything that is wrong or odd, without stopping; with `media` every file is decoded and compared."""
    clips, problems, warnings = _parsed(path)
    lengths: list[float | None] = []
    for clip in clips:
        longest: float | None = 0.0
        for track in clip.tracks:
            length = None if track.duration_s is None else float(track.duration_s)
            if media:
                length = _compared(clip, track, problems, warnings)
            longest = None if length is None or longest is None else max(longest, length)
        lengths.append(longest)
    known = [length for length in lengths if length is not None]
    return Report(
        clips=len(clips),
        hours=sum(known) / 3600 if len(known) == len(lengths) else None,
        languages=dict(Counter((clip.source_lang, clip.target_lang) for clip in clips)),
        problems=problems,
        warnings=warnings,
    )


def _parsed(path: Path) -> tuple[list[Clip], list[str], list[str]]:
    """The usable clips, the problems and the warnings of a manifest."""
    clips: list[Clip] = []
    problems: list[str] = []
    warnings: list[str] = []
    if path.is_dir():
        path /= FILE_NAME
    folder = path.parent.absolute()  # the run may start from another folder
    first_line: dict[str, int] = {}
    try:
        for number, line in _lines(path):
            where = f"{path}:{number}: "
            try:
                sample = Sample.model_validate_json(line)
            except ValidationError as error:
                problems += [where + sentence for sentence in _sentences(error)]
                if not line.strip().endswith(b"}"):
                    problems[-1] += "; each line must be one whole JSON object"
                continue
            found = list(lines.problems(sample, folder))
            if sample.id in first_line:
                found.append(f"duplicate id {sample.id}, first at line {first_line[sample.id]}")
            first_line.setdefault(sample.id, number)
            problems += [f"{where}{sentence}" for sentence in found]
            warnings += [f"{where}{sentence}" for sentence in lines.warnings(sample)]
            if not found:
                clips.append(sample.clip(folder, str(path), number))
    except OSError as error:
        problems.append(f"{path.absolute()}: {error.strerror}; give a manifest or a folder that holds {FILE_NAME}")
    if not clips and not problems:
        problems.append(f"{path}: holds no clips")
    return clips, problems, warnings


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not blank."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            line = line.removeprefix(BOM) if number == 1 else line
            if line.strip():
                yield number, line


def _sentences(error: ValidationError) -> Iterator[str]:
    for item in error.errors(include_url=False, include_context=True):
        name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"])[1:]
        yield f"{name} {_said(item)}".strip()


def _said(item: ErrorDetails) -> str:
    """Pydantic's error as a plain sentence about the field."""
    given: Any = item["input"]
    match item["type"]:
        case "missing":
            return "is missing"
        case "json_invalid":
            return f"not JSON: {item['ctx']['error'].split(' at line ')[0]}"
        case "model_type":
            return "must be a JSON object"
        case "string_pattern_mismatch":
            return (
                f"must be 64 hexadecimal digits, not {given!r}" if item["loc"][-1] == "sha256" else "must not be empty"
            )
        case "too_short":
            return "must not be empty"
        case "value_error":
            return f"{item['ctx']['error']}, not {given!r}"
    return f"{item['msg'][0].lower()}{item['msg'][1:]}, not {given!r}"


def _compared(clip: Clip, track: Track, problems: list[str], warnings: list[str]) -> float | None:
    """Decode a track and compare it with what the manifest declares; the length of its segment in seconds."""
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
    wrong, odd = _differences(clip, track, facts, float(length_s))
    problems += [where + problem for problem in wrong]
    warnings += [where + note for note in (*notes, *odd)]
    return float(length_s) if length_s > 0 else None


def _measured(track: Track, notes: list[str]) -> Facts:
    if track.pattern is None:
        return measure(track.path, track.kind, track.fps, notes)
    frames = numbered(track, notes)
    fps = track.fps or Fraction(25)
    return Facts((frames[-1][0] - frames[0][0] + 1) / fps, fps=fps)


def _differences(clip: Clip, track: Track, facts: Facts, length_s: float) -> tuple[list[str], list[str]]:
    wrong, odd = [], []
    name, full_s = track.path.name, float(facts.duration_s)
    if length_s <= 0:
        wrong.append(f"offset {float(track.offset_s)} lies beyond the end of {name} at {full_s:.3f} s")
    elif track.duration_s is not None:
        missing_s = float(track.duration_s) - length_s
        if missing_s > TOLERANCE_S:
            odd.append(f"{name} ends {missing_s:.3f} s before the end of the declared segment")
        elif not track.offset_s and full_s - length_s > TOLERANCE_S:
            odd.append(f"only the first {length_s:g} s of the {full_s:.3f} s of {name} are streamed")
    if track.sample_rate not in (None, facts.rate_hz) and track.kind == "audio":
        wrong.append(f"sample_rate says {track.sample_rate}, {name} has {facts.rate_hz} Hz")
    if isinstance(track.channel, int) and facts.channels is not None and track.channel >= facts.channels:
        wrong.append(f"channel {track.channel} of {name} does not exist; it has {facts.channels}")
    if track.channel is None and (facts.channels or 1) > 1:
        wrong.append(f'{name} has {facts.channels} channels: choose one with "channel": 0, or "channel": "mix"')
    if track.fps and facts.fps and abs(track.fps / facts.fps - 1) > FPS_TOLERANCE:
        odd.append(f"fps says {float(track.fps):g}, {name} has {float(facts.fps):.3f}: its own times are kept")
    ends = [span["end"] for span in (*clip.gloss_spans, *clip.words)]
    ends += [at for at in (clip.activity_start_s, clip.activity_end_s) if at is not None]
    if length_s > 0 and max(ends, default=0.0) > length_s + TOLERANCE_S:
        wrong.append(f"times up to {max(ends)} s lie outside {name}, whose segment has {length_s:.3f} s")
    return wrong, odd
