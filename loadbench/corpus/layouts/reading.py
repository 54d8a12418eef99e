"""The files of a corpus as readers meet them: folders, text line by line, files that go side by side.

Text is UTF-8; a byte order mark and CRLF are accepted, and a line ends with a line feed and nowhere else (U+2028 inside
a sentence is text). What cannot be read is a CorpusError that names the place.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

from loadbench.corpus.layout import Entry
from loadbench.corpus.manifest import BOM, CorpusError

HEAD: Final = 1 << 16
MANY: Final = 100  # more folders than these are no splits
AUDIO: Final = (".aac", ".aif", ".aiff", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".sph", ".wav", ".wma")
VIDEO: Final = (".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm")
END: Final = object()


def quiet(test: Callable[[Path], bool]) -> Callable[[Path], bool]:
    """`test`, with no where it cannot look (no such file, no right to read, a name too long)."""

    @functools.wraps(test)
    def marks(path: Path) -> bool:
        try:
            return test(path)
        except (OSError, ValueError):  # ValueError: a NUL in a name, or a CorpusError
            return False

    return marks


def kind_of(name: str) -> Literal["audio", "video"] | None:
    """What a file's name says that it holds."""
    suffix = Path(name).suffix.lower()
    return "audio" if suffix in AUDIO else "video" if suffix in VIDEO else None


def folders(path: Path) -> list[str]:
    """The names of the folders in a folder, sorted. Costs one listing, however many files stand beside them."""
    return _listed(path, os.DirEntry.is_dir)


def few_folders(path: Path) -> list[str]:
    """The same where they may be splits of any name, and none where they are too many for that."""
    names = folders(path)
    return names if len(names) <= MANY else []


def files(path: Path) -> list[str]:
    """The names of the files in a folder, sorted."""
    return _listed(path, os.DirEntry.is_file)


def _listed(path: Path, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
    try:
        with os.scandir(path) as found:
            return sorted(entry.name for entry in found if _is(entry, wanted))
    except OSError as error:
        raise CorpusError([f"{path}: {error.strerror}"]) from None


def _is(entry: os.DirEntry[str], wanted: Callable[[os.DirEntry[str]], bool]) -> bool:
    try:
        return wanted(entry)
    except OSError:  # a link that leads in a circle, or where nobody may look: as one that leads nowhere
        return False


def head(path: Path) -> str:
    """The first 64 KiB of a regular file as text, "" where there is none. For a look: wrong bytes are replaced."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(HEAD).removeprefix(BOM).decode(errors="replace")


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, blank ones too."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                raw = line.removeprefix(BOM) if number == 1 else line
                try:
                    text = raw.decode()
                except UnicodeDecodeError as error:
                    said = f"not UTF-8 (byte 0x{raw[error.start]:02x}); convert the file to UTF-8"
                    raise CorpusError([f"{path}:{number}: {said}"]) from None
                yield number, text.removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise CorpusError([f"{path}: {error.strerror}"]) from None


def filled(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank."""
    return ((number, line) for number, line in lines(path) if line.strip())


def side_by_side(parts: Mapping[Path, Iterator[Any]]) -> Iterator[tuple[Any, ...]]:
    """The first item of each part, then the second of each, ...; a CorpusError where one part ends before another."""
    for n, row in enumerate(zip_longest(*parts.values(), fillvalue=END)):
        short = [path for path, item in zip(parts, row, strict=True) if item is END]
        if short:
            longer = next(path for path in parts if path not in short)
            said = f"ends after line {n} and {longer.name} goes on; both need a line for each clip"
            raise CorpusError([f"{short[0]}: {said}"])
        yield row


class Keyed:
    """A file of `key value` lines, asked by key; an absent file has no keys, and a key alone has the value "".

    It is read only as far as it must be, so files in the same order are joined without holding either in memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.there = path.is_file()
        self._lines = filled(path) if self.there else iter(())
        self._waiting: dict[str, str] = {}

    def take(self, key: str) -> str | None:
        """The value of a key, which is then forgotten; None where there is none."""
        if key in self._waiting:
            return self._waiting.pop(key)
        for _, line in self._lines:
            name, _, value = line.strip().replace("\t", " ", 1).partition(" ")
            if name == key:
                return value.strip()
            self._waiting.setdefault(name, value.strip())
        return None

    def left(self) -> list[str]:
        """The keys that nobody took."""
        for _, line in self._lines:
            self._waiting.setdefault(line.split(maxsplit=1)[0], "")
        return list(self._waiting)


def left_out(where: str, names: list[str], said: str) -> Iterator[Entry]:
    """One warning about all that cannot become a clip: what it is, how many, and the first of them by name."""
    if names:
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        yield Entry(where, None, warnings=(f"{said}, left out: {len(names)} ({shown})",))
