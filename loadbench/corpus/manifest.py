"""The native manifest: JSON lines, one clip a line, UTF-8, paths relative to the manifest's folder.

Lines end with a line feed (a carriage return before it and a byte order mark at the start are fine) and nowhere else:
U+2028 inside a string is text. Blank lines are ignored. A file is read line by line, so it may be long.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from loadbench.corpus import quick
from loadbench.corpus import sample as lines
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.sample import Sample

BOM: Final = b"\xef\xbb\xbf"
FILE_NAME: Final = "manifest.jsonl"
FIRST_BYTES: Final = 1 << 20  # of which the first line is looked for


class CorpusError(ValueError):
    """A corpus that cannot be used; `problems` holds a sentence for each trouble, with file and line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


def of(path: Path) -> Path | None:
    """The file that would be read: the path, or the `manifest.jsonl` in it. None: there is none."""
    file = path / FILE_NAME if path.is_dir() else path
    return file if file.is_file() else None


def marks(path: Path) -> bool:
    """Whether the first line of the file, or of the `manifest.jsonl` in the folder, is one of ours."""
    try:
        file = of(path)
        if file is None:
            return False
        with file.open("rb") as opened:
            head = opened.read(FIRST_BYTES).removeprefix(BOM).lstrip()
        first = msgspec.json.decode(head.split(b"\n", 1)[0])
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.keys() >= {"id", "direction"}


def entries(path: Path, asked: Asked) -> Iterator[Entry]:
    """The lines of a manifest; of one split, those that have it among their tags.

    Languages and rates stand in the lines, so what else was asked is not needed.
    """
    file = of(path)
    if file is None:
        raise CorpusError([f"{path.absolute()}: no such file, nor a folder that holds {FILE_NAME}"])
    folder, source = file.parent.absolute(), str(file)  # the run may start from another folder
    try:
        for number, line in _lines(file):
            entry = _entry(line, folder, source, number)
            clip = entry.clip
            if asked.split is None or clip is None or asked.split in clip.tags:
                yield entry
    except OSError as error:
        raise CorpusError([f"{file.absolute()}: {error.strerror}"]) from None


def _entry(line: bytes, folder: Path, source: str, number: int) -> Entry:
    where = f"{source}:{number}"
    clip = quick.clip(line, folder, source, number)
    if clip is not None:
        return Entry(where, clip, (), tuple(lines.misnamed(clip.extra)) if clip.extra else ())
    try:
        sample = Sample.model_validate_json(line)
    except ValidationError as error:
        sentences = list(_sentences(error))
        if not line.strip().endswith(b"}"):
            sentences[-1] += "; each line must be one whole JSON object"
        return Entry(where, None, tuple(sentences))
    problems = tuple(lines.problems(sample))
    warnings = tuple(lines.misnamed(sample.model_extra or {}))
    return Entry(where, None if problems else sample.clip(folder, source, number), problems, warnings)


def _no_splits(_: Path) -> tuple[str, ...]:
    """Which there are, only the lines say."""
    return ()


LAYOUT: Final = Layout(
    name="native",
    about=f"loadbench's own manifest: JSON lines with id and direction ({FILE_NAME} in a folder)",
    marks=marks,
    splits=_no_splits,
    entries=entries,
)


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
