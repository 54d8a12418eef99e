"""Folders with a table: Hugging Face's audiofolder and videofolder, metadata.csv or metadata.jsonl with file_name.

`file_name` is relative to the table; the table lies in the corpus' folder, or one lies in each split's. A column named
transcription, transcript or sentence is what is spoken; translation is a translation; text is in the target language.
A video is of signing (with all of these what its signs mean, and `gloss` its signs), unless source and target are the
same language; a clip is named by its path. Other columns are kept.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from loadbench.corpus.clip import Clip, Direction, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages, references
from loadbench.corpus.layouts.reading import few_folders, head, kind_of, lines, quiet
from loadbench.corpus.layouts.rows import Row, entries, entry, first_object
from loadbench.corpus.manifest import CorpusError

TABLES: Final = ("metadata.csv", "metadata.jsonl")
SPOKEN: Final = ("transcription", "transcript", "sentence")
LANGUAGES: Final = ("source_lang", "language", "lang")
SPEAKERS: Final = ("speaker", "speaker_id", "signer")
Kind = Literal["audio", "video"]


def _first(table: Path) -> dict[str, Any]:
    """The first row of a table, {} where there is none."""
    if table.suffix == ".jsonl":
        return first_object(table)
    try:
        rows = csv.reader(head(table).splitlines(keepends=True))
        return dict(zip(next(rows, []), next(rows, []), strict=False))
    except csv.Error:
        return {}


def _table(folder: Path) -> Path | None:
    return next((folder / name for name in TABLES if "file_name" in _first(folder / name)), None)


def _parts(path: Path) -> dict[str, Path]:
    """The tables by split; one alone is no split and has the name ""."""
    if path.is_file():
        return {"": path} if path.name in TABLES and "file_name" in _first(path) else {}
    if table := _table(path):
        return {"": table}
    found = {name: _table(path / name) for name in in_order(few_folders(path))}
    return {name: table for name, table in found.items() if table}


def _holds(path: Path, kind: Kind) -> bool:
    return any(kind_of(str(_first(table)["file_name"])) == kind for table in list(_parts(path).values())[:1])


def _splits(path: Path) -> tuple[str, ...]:
    return tuple(filter(None, _parts(path)))


@dataclass(frozen=True, slots=True)
class _Table:
    path: Path
    split: str
    asked: Asked
    kind: Kind

    def clip(self, row: Row, number: int) -> Clip:
        name = str(row.rest.get("file_name", ""))
        file = row.file("file_name", self.path.parent)
        kind = kind_of(name) or self.kind
        pair = languages(
            self.path, self.asked, row.string(*LANGUAGES), row.string("target_lang"), both=self.kind == "video"
        )
        gloss, spoken, text = _glosses(row), row.string(*SPOKEN), row.string("text")
        direction: Direction = "sign2spoken" if kind == "video" and (gloss or pair[0] != pair[1]) else "speech2text"
        transcript, written = (None, text) if direction == "sign2spoken" else references(text, *pair)
        if direction == "sign2spoken":
            transcript, spoken, written = None, None, written if written is not None else spoken
        translation = row.string("translation")
        return Clip(
            str(row.string("id") or "/".join(filter(None, (self.split, name.removesuffix(file.suffix))))),
            direction, (Track(kind, file),), *pair,
            transcript=transcript if spoken is None else spoken, text=written if translation is None else translation,
            gloss=gloss, speaker=row.string(*SPEAKERS), tags=(self.split,) if self.split else (), extra=row.rest,
            source=str(self.path), line=number,
        )  # fmt: skip


def _glosses(row: Row) -> tuple[str, ...] | None:
    """A list, or words with spaces between."""
    given = row.rest.get("gloss")
    if isinstance(given, list) and all(isinstance(gloss, str) for gloss in given):
        return tuple(row.rest.pop("gloss"))
    written = row.string("gloss")
    return None if written is None else tuple(written.split())


def _entries(path: Path, asked: Asked, kind: Kind) -> Iterator[Entry]:
    parts = _parts(path)
    if not parts:
        raise CorpusError([f"{path}: holds no metadata.csv or metadata.jsonl with file_name"])
    for split in chosen(path, _splits(path), asked) or ("",):
        table = _Table(parts[split], split, asked, kind)
        yield from entries(table.path, table.clip) if table.path.suffix == ".jsonl" else _rows(table)


def _rows(table: _Table) -> Iterator[Entry]:
    """The rows of a table with quoting; a sentence may go over several lines, and a row stands where it begins."""
    reader = csv.reader((f"{line}\n" for _, line in lines(table.path)), strict=True)
    begins = 1
    try:
        header = next(reader, [])
        begins = reader.line_num + 1
        for values in reader:
            if len(values) != len(header) and values:
                said = f"has {len(values)} columns where the header has {len(header)}"
                yield Entry(f"{table.path}:{begins}", None, (said,))
            elif values:
                fields = {name: value for name, value in zip(header, values, strict=True) if value}
                yield entry(table.path, begins, fields, table.clip)
            begins = reader.line_num + 1
    except csv.Error as error:
        yield Entry(f"{table.path}:{begins}", None, (f"not CSV: {error}; the rest of the file is not read",))


def _layout(kind: Kind) -> Layout:
    return Layout(
        f"{kind}folder",
        f"Hugging Face {kind}folder: metadata.csv or metadata.jsonl with file_name",
        quiet(partial(_holds, kind=kind)),
        _splits,
        partial(_entries, kind=kind),
    )


LAYOUTS: Final[tuple[Layout, ...]] = (_layout("audio"), _layout("video"))
