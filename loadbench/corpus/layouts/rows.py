"""Rows with named fields, from JSON lines or tables: what a reader takes is checked, the rest is kept as it is."""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from loadbench.corpus.clip import Clip
from loadbench.corpus.layout import Entry
from loadbench.corpus.layouts import reading


class Row:
    """A row while it is translated. Fields are taken out of `rest`; what does not fit is said in `problems`.

    A field that is absent or null is None. A clip made of a row that has problems is not to be used.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.rest = {name: value for name, value in fields.items() if value is not None}
        self.problems: list[str] = []

    def string(self, *names: str) -> str | None:
        """The first of these fields that is there. A whole number is taken as it is written: ids are strings."""
        for name in names:
            if name in self.rest:
                value = self.rest.pop(name)
                if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
                    return str(value)
                self.problems.append(f"{name} must be a string, not {value!r}")
                return None
        return None

    def seconds(self, name: str, *, needed: bool = False) -> Fraction | None:
        """A number of seconds, exactly the decimal number that was written."""
        value = self.rest.pop(name, None)
        if value is None:
            self.problems += [f"{name} is missing"] if needed else []
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return Fraction(repr(number))
        self.problems.append(f"{name} must be a number of seconds, not {value!r}")
        return None

    def file(self, name: str, folder: Path) -> Path:
        """A media file, relative to `folder`."""
        value = self.string(name) if name in self.rest else ""
        if value == "":
            self.problems.append(f"{name} is missing")
        elif value and "://" in value:
            self.problems.append(f"{name} is a URL ({value}); only files are read, so download it first")
        return folder.absolute() / (value or "")


def objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The JSON objects of a file with one on each line; a sentence in place of what is none."""
    decode = msgspec.json.Decoder().decode
    for number, line in reading.filled(path):
        try:
            found = decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            yield number, f"not JSON: {error}; each line must be one whole JSON object"
        else:
            yield number, found if isinstance(found, dict) else "must be a JSON object"


def first_object(path: Path) -> dict[str, Any]:
    """The object on the first line of a file, {} where there is none."""
    line = reading.head(path).lstrip().partition("\n")[0]
    if not line.startswith("{"):
        return {}
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def entry(path: Path, number: int, fields: Mapping[str, Any], clip: Callable[[Row, int], Clip]) -> Entry:
    """What `clip` makes of one row of a file."""
    row = Row(fields)
    made = clip(row, number)
    return Entry(f"{path}:{number}", None if row.problems else made, tuple(row.problems))


def entries(path: Path, clip: Callable[[Row, int], Clip]) -> Iterator[Entry]:
    """What `clip` makes of the objects of a file of JSON lines."""
    for number, found in objects(path):
        if isinstance(found, str):
            yield Entry(f"{path}:{number}", None, (found,))
        else:
            yield entry(path, number, found, clip)
