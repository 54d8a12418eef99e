"""LibriSpeech: SPLIT/SPEAKER/CHAPTER/SPEAKER-CHAPTER-NNNN.flac, with SPEAKER-CHAPTER.trans.txt beside them.

The lines of that file are `ID TEXT`. Transcripts are upper case without punctuation and stay so; scoring normalises.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages
from loadbench.corpus.layouts.reading import files, filled, folders, kind_of, left_out, quiet
from loadbench.corpus.manifest import CorpusError

SPLIT: Final = re.compile(r"(train|dev|test)(-.+)?")
LOOK: Final = 8  # speakers, and chapters of each, that are looked at to know a split


def _numbered(folder: Path) -> list[str]:
    return sorted((name for name in folders(folder) if name.isdecimal()), key=int)


def _is_split(folder: Path) -> bool:
    return any(
        (folder / speaker / chapter / f"{speaker}-{chapter}.trans.txt").is_file()
        for speaker in islice(_numbered(folder), LOOK)
        for chapter in islice(_numbered(folder / speaker), LOOK)
    )


def _parts(path: Path) -> dict[str, Path]:
    """Splits with their folders; `path` is the corpus, what its archive was unpacked into, or one split."""
    if (path / "LibriSpeech").is_dir():
        path /= "LibriSpeech"
    found = {name: path / name for name in in_order(filter(SPLIT.fullmatch, folders(path))) if _is_split(path / name)}
    return found or ({path.name: path} if _is_split(path) else {})


def _splits(path: Path) -> tuple[str, ...]:
    return tuple(_parts(path))


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    parts = _parts(path)
    if not parts:
        raise CorpusError([f"{path}: holds no SPLIT/SPEAKER/CHAPTER/SPEAKER-CHAPTER.trans.txt"])
    pair = languages(path, asked, "en")
    for split in chosen(path, tuple(parts), asked):
        untold: list[str] = []
        for speaker in _numbered(parts[split]):
            for chapter in _numbered(parts[split] / speaker):
                yield from _chapter(parts[split] / speaker / chapter, speaker, split, pair, untold)
        yield from left_out(str(parts[split]), untold, "recordings without a transcript")


def _chapter(folder: Path, speaker: str, split: str, pair: tuple[str, str], untold: list[str]) -> Iterator[Entry]:
    """The entries of one chapter; recordings without a transcript are added to `untold`."""
    heard = {Path(name).stem: name for name in files(folder) if kind_of(name) == "audio"}
    listing = folder / f"{speaker}-{folder.name}.trans.txt"
    for number, line in filled(listing) if heard or listing.is_file() else ():
        name, _, text = line.strip().partition(" ")
        if not text:
            yield Entry(f"{listing}:{number}", None, (f"must be an id and a transcript, not {line!r}",))
            heard.pop(name, None)
            continue
        track = Track("audio", folder.absolute() / heard.pop(name, f"{name}.flac"))
        yield Entry(
            f"{listing}:{number}",
            Clip(name, "speech2text", (track,), *pair, transcript=text.strip(), speaker=speaker, tags=(split,),
                 source=str(listing), line=number),
        )  # fmt: skip
    untold += heard


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "librispeech",
        "LibriSpeech: SPLIT/SPEAKER/CHAPTER/*.flac with *.trans.txt",
        quiet(lambda path: bool(_parts(path))),
        _splits,
        _entries,
    ),
)
