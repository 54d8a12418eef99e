"""AISHELL-1: wav/SPLIT/SPEAKER/ID.wav and transcript/aishell_transcript_v0.8.txt with lines `ID word word ...`.

The spaces between the words are not a part of the text and are removed. One file holds the transcripts of all splits,
so it is read once, in its order, and a line belongs to the split in which its speaker's folder stands. Some recordings
have no transcript; they are left out with a warning.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages
from loadbench.corpus.layouts.reading import files, filled, folders, left_out, quiet
from loadbench.corpus.manifest import CorpusError

TRANSCRIPT: Final = re.compile(r"aishell_transcript.*\.txt")
SPEAKER: Final = re.compile(r"S\d{4}")


def _home(path: Path) -> Path:
    return path / "data_aishell" if (path / "data_aishell").is_dir() else path


def _transcripts(home: Path) -> list[Path]:
    folder = home / "transcript"
    return [folder / name for name in files(folder) if TRANSCRIPT.fullmatch(name)] if folder.is_dir() else []


def _splits(path: Path) -> tuple[str, ...]:
    wav = _home(path) / "wav"
    return in_order(name for name in folders(wav) if not SPEAKER.fullmatch(name)) if wav.is_dir() else ()


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    home, there = _home(path), _splits(path)
    found = _transcripts(home)
    if not found:
        raise CorpusError([f"{home}: holds no transcript/aishell_transcript_v0.8.txt"])
    if not there:
        raise CorpusError([f"{home / 'wav'}: holds no train, dev or test folder; unpack the archives of the speakers"])
    pair = languages(path, asked, "zh")
    splits = chosen(path, there, asked)
    homes = {name: (split, home / "wav" / split / name) for split in splits for name in folders(home / "wav" / split)}
    untold: dict[str, set[str]] = {}  # what is left of each speaker's recordings; empty again as the lines go by
    for number, line in filled(found[0]):
        name, *words = line.split()
        said = SPEAKER.search(name)
        if said is None or not words:
            yield Entry(f"{found[0]}:{number}", None, (f"must be an id with a speaker and words, not {line!r}",))
        elif said[0] in homes:
            split, folder = homes[said[0]]
            _recordings(untold, folder).discard(name)
            track = Track("audio", folder.absolute() / f"{name}.wav")
            yield Entry(
                f"{found[0]}:{number}",
                Clip(name, "speech2text", (track,), *pair, transcript="".join(words), speaker=said[0], tags=(split,),
                     source=str(found[0]), line=number),
            )  # fmt: skip
    names = [name for _, folder in homes.values() for name in sorted(_recordings(untold, folder))]
    yield from left_out(str(home / "wav"), names, "recordings without a transcript")


def _recordings(untold: dict[str, set[str]], folder: Path) -> set[str]:
    if folder.name not in untold:
        untold[folder.name] = {Path(name).stem for name in files(folder) if name.endswith(".wav")}
    return untold[folder.name]


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "aishell",
        "AISHELL-1: wav/SPLIT/SPEAKER/*.wav with transcript/aishell_transcript_v0.8.txt",
        quiet(lambda path: bool(_transcripts(_home(path)) and (_home(path) / "wav").is_dir())),
        _splits,
        _entries,
    ),
)
