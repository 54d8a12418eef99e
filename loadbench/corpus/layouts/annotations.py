"""Annotation files read one line, row or object at a time, however long they are.

Lines end with a line feed; a carriage return before it and a byte order mark at the start are fine. Nothing is guessed:
what does not fit is said with its line.
"""

import csv
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final

from loadbench.corpus.manifest import BOM, CorpusError

FIRST: Final = 4096  # bytes of a first line that are looked at
GLANCE: Final = 10_000
PIECE: Final = 1 << 16  # characters of JSON read at a time
BETWEEN: Final = re.compile(r"[\s,\[\]]*")  # what stands between the objects of a list


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table. `cells` are by column, and empty where `problem` says why the row does not fit."""

    source: str
    line: int
    cells: dict[str, str] = field(default_factory=dict)
    problem: str | None = None

    @property
    def where(self) -> str:
        """FILE:LINE."""
        return f"{self.source}:{self.line}"


def head(path: Path, size: int) -> bytes:
    """The first bytes of a file, without a byte order mark; none where there is nothing to read. Never raises."""
    try:
        if not is_file(path):  # a pipe would wait for its writer
            return b""
        with path.open("rb") as file:
            return file.read(size).removeprefix(BOM)
    except (OSError, ValueError):
        return b""


def first_line(path: Path) -> str:
    """The first line of a file, as far as it can be looked at; "" where there is none to read. Never raises."""
    return head(path, FIRST).partition(b"\n")[0].decode("utf-8", "replace").strip()


def is_file(path: Path) -> bool:
    """Whether a file is there. Never raises, whatever a row made of its name."""
    return os.path.isfile(path)  # noqa: PTH113  Path.is_file raises for a name that is too long


def is_folder(path: Path) -> bool:
    """Whether a folder is there. Never raises."""
    return os.path.isdir(path)  # noqa: PTH112


def names(folder: Path, most: int | None = None) -> Iterator[str]:
    """Names in a folder as the disk has them, unsorted; none where it cannot be listed. Never raises.

    To know a corpus, look at no more than GLANCE: no corpus has so many files beside the one it is known by.
    """
    try:
        with os.scandir(folder) as found:
            for entry in islice(found, most):
                yield entry.name
    except (OSError, ValueError):
        return


def composed(text: str) -> str:
    """Text with its accents and umlauts as one character each (NFC). Not for the names of files."""
    return unicodedata.normalize("NFC", text)


def encoding(path: Path, *others: str) -> str:
    """UTF-8, or the first of `others` in which the whole file reads. Raises CorpusError where none fits."""
    for name in ("utf-8", *others):
        if all(text is not None for _, text in lines(path, name)):
            return name
    raise CorpusError([f"{path}: is in none of {', '.join(('utf-8', *others))}: convert it to UTF-8"])


def lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str | None]]:
    """Numbered lines that are not blank, without their ends; None where a line is not in `encoding`."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                line = line.removeprefix(BOM) if number == 1 else line
                if line.strip():
                    yield number, _decoded(line.rstrip(b"\r\n"), encoding)
    except OSError as error:
        raise CorpusError([f"{path}: {error.strerror}"]) from None


def _decoded(line: bytes, encoding: str) -> str | None:
    try:
        return line.decode(encoding)
    except UnicodeDecodeError:
        return None


def table(
    path: Path, separator: str, columns: Sequence[str], *, quoted: bool = False, encoding: str = "utf-8"
) -> Iterator[Row]:
    """The rows under a header that holds `columns`, and may hold more. Quotes are text unless `quoted`.

    Raises CorpusError where the header does not fit, and for a quoted table that is not in `encoding`.
    """
    found = (_quoted if quoted else _plain)(path, separator, encoding)
    _, header = next(found, (1, []))
    missing = [name for name in columns if name not in (header or [])]
    if header is None or missing:
        reads = "is not UTF-8" if header is None else f"reads {separator.join(header)[:200]!r}"
        raise CorpusError([f"{path}:1: the header {reads}; missing: {', '.join(missing)}"])
    for line, cells in found:
        if cells is None:
            yield Row(str(path), line, problem="is not UTF-8")
        elif len(cells) != len(header):
            yield Row(str(path), line, problem=f"has {len(cells)} columns, the header has {len(header)}")
        else:
            yield Row(str(path), line, dict(zip(header, cells, strict=True)))


def header_problems(path: Path, separator: str, columns: Sequence[str]) -> list[str]:
    """What is wrong with the header of a table, to know of all tables before the rows of the first are read."""
    try:
        next(table(path, separator, columns), None)
    except CorpusError as error:
        return error.problems
    return []


def _plain(path: Path, separator: str, encoding: str) -> Iterator[tuple[int, list[str] | None]]:
    for number, text in lines(path, encoding):
        yield number, None if text is None else text.split(separator)


def _quoted(path: Path, separator: str, encoding: str) -> Iterator[tuple[int, list[str] | None]]:
    at = 0

    def texts() -> Iterator[str]:
        nonlocal at
        for at, text in lines(path, encoding):
            if text is None:
                raise CorpusError([f"{path}:{at}: is not {encoding}: convert the file to UTF-8"])
            yield text + "\n"

    try:
        for cells in csv.reader(texts(), delimiter=separator):
            yield at, cells
    except csv.Error as error:
        raise CorpusError([f"{path}:{at}: {error}"]) from None


def objects(path: Path) -> Iterator[tuple[int, Any]]:
    """The elements of a JSON list, or of JSON lines, one at a time, each with the line on which it begins.

    Raises CorpusError where the file is not JSON, or a list has no end.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from _objects(path, iter(lambda: file.read(PIECE), ""))
    except OSError as error:
        raise CorpusError([f"{path}: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise CorpusError([f"{path}: is not UTF-8"]) from None


def _objects(path: Path, pieces: Iterator[str]) -> Iterator[tuple[int, Any]]:
    decoder, trouble = json.JSONDecoder(), "ends too early"
    text, at, line, between, listed = "", 0, 1, "", None
    for piece in pieces:
        text, at = text[at:] + piece, 0
        while True:
            start = BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it also matches nothing
            between, line, at = between + text[at:start], line + text.count("\n", at, start), start
            if at == len(text):
                break
            try:
                item, end = decoder.raw_decode(text, at)
            except (JSONDecodeError, RecursionError) as error:
                trouble = error.msg if isinstance(error, JSONDecodeError) else "is nested too deeply"
                break  # perhaps only because the rest of the object is still to come
            yield line, item
            listed = "[" in between if listed is None else listed
            between, line, at = "", line + text.count("\n", at, end), end
    if at < len(text):
        raise CorpusError([f"{path}:{line}: not JSON: {trouble}"])
    if listed and "]" not in between:
        raise CorpusError([f"{path}:{line}: the list has no end: the file was cut"])
