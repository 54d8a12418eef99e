"""Common Voice: LANGUAGE/{train,dev,test}.tsv and LANGUAGE/clips/*.mp3.

The tables have a header and no quoting: a quotation mark is a part of its sentence. `validated.tsv` and the like repeat
rows of the splits, so they are read only where there are no splits, or when one is given as a file. A row is in the
language of its `locale`, else in that of the folder.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages
from loadbench.corpus.layouts.reading import filled, folders, head, quiet
from loadbench.corpus.layouts.rows import Row, entry
from loadbench.corpus.manifest import CorpusError

SPLITS: Final = ("train", "dev", "test")
REPEATS: Final = ("validated", "invalidated", "other")
COLUMNS: Final = {"client_id", "path", "sentence"}
LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})*")


def _is_table(path: Path) -> bool:
    return path.suffix == ".tsv" and set(head(path).partition("\n")[0].rstrip("\r").split("\t")) >= COLUMNS


def _tables(path: Path) -> dict[str, Path]:
    """The tables to read of a language's folder, or the one that `path` is."""
    if path.is_file():
        return {path.stem: path} if _is_table(path) else {}
    for names in (SPLITS, REPEATS):
        if found := {name: path / f"{name}.tsv" for name in names if _is_table(path / f"{name}.tsv")}:
            return found
    return {}


def _homes(path: Path) -> list[Path]:
    """The folders of languages at or in `path`, or the table that it is."""
    if _tables(path):
        return [path]
    inside = [path / name for name in folders(path) if LANGUAGE.fullmatch(name)] if path.is_dir() else []
    return [folder for folder in inside if _tables(folder)]


def _splits(path: Path) -> tuple[str, ...]:
    return in_order({name for home in _homes(path) for name in _tables(home)})


def _home(path: Path, asked: Asked) -> Path:
    homes = _homes(path)
    wanted = [home for home in homes if home.name == asked.source_lang] if len(homes) > 1 else homes
    if len(wanted) == 1:
        return wanted[0]
    if not homes:
        raise CorpusError([f"{path}: holds no train.tsv, dev.tsv or test.tsv with client_id, path and sentence"])
    raise CorpusError([f"{path}: holds {', '.join(home.name for home in homes)}; choose one with --source-lang"])


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    home = _home(path, asked)
    tables = _tables(home)
    folder = home.parent if home.is_file() else home
    for split in chosen(home, tuple(tables), asked):
        yield from _table(tables[split], folder.absolute(), split, asked)


def _table(path: Path, folder: Path, split: str, asked: Asked) -> Iterator[Entry]:
    rows = filled(path)
    _, first = next(rows)
    header = first.split("\t")
    named = folder.name if LANGUAGE.fullmatch(folder.name) else None
    for number, line in rows:
        values = line.split("\t")
        if len(values) != len(header):
            said = f"has {len(values)} columns where the header has {len(header)}"
            yield Entry(f"{path}:{number}", None, (said,))
            continue
        fields = {name: value for name, value in zip(header, values, strict=True) if value or name == "sentence"}
        yield entry(
            path, number, fields, partial(_clip, path=path, folder=folder, split=split, asked=asked, named=named)
        )


def _clip(row: Row, number: int, path: Path, folder: Path, split: str, asked: Asked, named: str | None) -> Clip:
    file = row.file("path", folder / "clips")
    source, target = languages(path, asked, row.string("locale") or named)
    return Clip(
        file.stem, "speech2text", (Track("audio", file),), source, target, transcript=row.string("sentence"),
        speaker=row.string("client_id"), tags=(split,), extra=row.rest, source=str(path), line=number,
    )  # fmt: skip


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "common-voice",
        "Common Voice: LANGUAGE/{train,dev,test}.tsv with clips/",
        quiet(lambda path: bool(_homes(path))),
        _splits,
        _entries,
    ),
)
