"""The native manifest: JSON lines, one clip a line, UTF-8, paths relative to the manifest's folder.

Lines end with a line feed (a carriage return before it and a byte order mark at the start are fine) and nowhere else:
U+2028 inside a string is text. Blank lines are ignored. A file is read line by line, so it may be long.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from loadbench.corpus import sample as lines
from loadbench.corpus.clip import Clip
from loadbench.corpus.sample import Sample

BOM: Final = b"\xef\xbb\xbf"
FILE_NAME: Final = "manifest.jsonl"


class CorpusError(ValueError):
    """A corpus that cannot be used; `problems` holds a sentence for each trouble, with file and line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `problems` forbid a run, `warnings` do not.

    `hours` is None where the length of a clip is unknown. `languages` counts clips by (source, target).
    """

    clips: int
    hours: float | None
    languages: dict[tuple[str, str], int]
    problems: list[str]
    warnings: list[str]

    def text(self) -> str:
        """For people: problems, warnings, and a line of what the corpus holds."""
        pairs = ", ".join(f"{source} to {target}: {n}" for (source, target), n in sorted(self.languages.items()))
        length = "of unknown length" if self.hours is None else _length(self.hours * 3600)
        found = [*self.problems, *(f"warning: {warning}" for warning in self.warnings)]
        return "\n".join([*found, f"{self.clips} clips, {length}" + (f" ({pairs})" if pairs else "")])


def _length(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


def read(path: Path) -> list[Clip]:
    """All clips of a manifest, or of the `manifest.jsonl` in a folder. Raises CorpusError with every problem."""
    clips, problems, _ = parse(path)
    if problems:
        raise CorpusError(problems)
    return clips


def check(path: Path) -> Report:
    """Everything that is wrong or odd in a manifest; media files need only be there. Declared lengths are counted."""
    clips, problems, warnings = parse(path)
    declared = [[track.duration_s for track in clip.tracks] for clip in clips]
    lengths = [None if None in spans else max(float(span or 0) for span in spans) for spans in declared]
    return report(clips, lengths, problems, warnings)


def report(
    clips: Sequence[Clip], lengths_s: Sequence[float | None], problems: list[str], warnings: list[str]
) -> Report:
    """A report of clips whose lengths are known by declaration or by measuring."""
    known = [length for length in lengths_s if length is not None]
    return Report(
        clips=len(clips),
        hours=sum(known) / 3600 if len(known) == len(clips) else None,
        languages=dict(Counter((clip.source_lang, clip.target_lang) for clip in clips)),
        problems=problems,
        warnings=warnings,
    )


def parse(path: Path) -> tuple[list[Clip], list[str], list[str]]:
    """The usable clips, the problems and the warnings of a manifest."""
    clips: list[Clip] = []
    problems: list[str] = []
    warnings: list[str] = []
    first_line: dict[str, int] = {}
    try:
        if path.is_dir():
            path /= FILE_NAME
        elif path.exists() and not path.is_file():
            return [], [f"{path}: neither a file nor a folder; give a manifest or a folder that holds {FILE_NAME}"], []
        folder = path.parent.absolute()  # the run may start from another folder
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
