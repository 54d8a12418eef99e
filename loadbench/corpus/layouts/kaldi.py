"""A Kaldi data directory: wav.scp, and where they are there text, segments, utt2spk, spk2gender, utt2lang, reco2dur.

A folder whose folders are such directories holds them as splits. Relative paths start at the directory. The files are
joined as they are read: Kaldi keeps them sorted by the same key. Kaldi runs what wav.scp names with a `|` at its end;
here that is refused, for a corpus is data. Segments that end at -1 last to the end of their file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages
from loadbench.corpus.layouts.reading import Keyed, few_folders, filled, left_out, quiet
from loadbench.corpus.layouts.rows import Row
from loadbench.corpus.manifest import CorpusError

ARCHIVED: Final = re.compile(r".+:\d+")  # a place in an archive, as in foo.ark:42


def _is_data(folder: Path) -> bool:
    """With text.txt and no text it would be FunASR's."""
    other = (folder / "text.txt").is_file() and not (folder / "text").is_file()
    return (folder / "wav.scp").is_file() and not other


def _parts(path: Path) -> dict[str, Path]:
    """The data directories by split; one alone is no split and has the name ""."""
    if path.name == "wav.scp":
        path = path.parent
    if not path.is_dir():
        return {}
    if _is_data(path):
        return {"": path}
    return {name: path / name for name in in_order(few_folders(path)) if _is_data(path / name)}


def _splits(path: Path) -> tuple[str, ...]:
    return tuple(filter(None, _parts(path)))


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    parts = _parts(path)
    if not parts:
        raise CorpusError([f"{path}: holds no wav.scp"])
    for split in chosen(path, _splits(path), asked) or ("",):
        yield from _Data(parts[split], split).entries(asked)


@dataclass(frozen=True, slots=True)
class _Utterance:
    """An utterance by the file that lists it. Seconds; None is to the end."""

    where: tuple[Path, int]
    id: str
    recording: str
    file: Path
    offset: Fraction = Fraction(0)
    duration: Fraction | None = None
    channel: int | None = None


class _Data:
    """One data directory while it is read."""

    def __init__(self, folder: Path, split: str) -> None:
        self.folder, self.split = folder, split
        names = ("text", "utt2spk", "utt2lang")
        self.text, self.speaker, self.language = (Keyed(folder / name) for name in names)
        self.gender = dict(_pairs(folder / "spk2gender"))

    def entries(self, asked: Asked) -> Iterator[Entry]:
        segmented = (self.folder / "segments").is_file()
        for found in self._segments() if segmented else self._recordings():
            yield found if isinstance(found, Entry) else self._entry(found, asked)
        yield from left_out(str(self.text.path), self.text.left(), "lines of no utterance")

    def _recordings(self) -> Iterator[Entry | _Utterance]:
        """The recordings of wav.scp; each is an utterance where there are no segments."""
        path = self.folder / "wav.scp"
        declared = Keyed(self.folder / "reco2dur")
        for number, line in filled(path):
            name, *rest = line.split(maxsplit=1)
            file = rest[0].strip() if rest else ""
            if file.endswith("|"):
                said = f"{name} is the output of a command, and a corpus runs no commands; name audio files instead"
                yield Entry(f"{path}:{number}", None, (said,))
                continue
            if not file or ARCHIVED.fullmatch(file):
                said = f"lies in an archive ({file}); only audio files are read" if file else "has no file"
                yield Entry(f"{path}:{number}", None, (f"{name} {said}",))
                continue
            row = Row({"reco2dur": declared.take(name)})
            duration = row.seconds("reco2dur")
            if row.problems:
                yield Entry(f"{path}:{number}", None, tuple(row.problems))
                continue
            yield _Utterance((path, number), name, name, self.folder.absolute() / file, duration=duration)

    def _segments(self) -> Iterator[Entry | _Utterance]:
        path = self.folder / "segments"
        known: dict[str, Path] = {}
        for found in self._recordings():
            if isinstance(found, Entry):
                yield found
            else:
                known[found.id] = found.file
        for number, line in filled(path):
            name, recording, start, end, channel = (*line.split(), "", "", "", "", "")[:5]
            row = Row({"start": start, "end": end})
            offset, stop = row.seconds("start"), row.seconds("end")
            said = row.problems
            if len(line.split()) not in (4, 5) or (channel and not channel.isdecimal()):
                said = [f"must be an utterance, a recording, a start and an end, not {line!r}"]
            elif recording not in known:
                said = [*said, f"{name} is cut from {recording}, of which wav.scp has no file"]
            if said or offset is None or stop is None:
                self.text.take(name)
                yield Entry(f"{path}:{number}", None, tuple(said))
                continue
            duration = None if stop == -1 else stop - offset
            yield _Utterance(
                (path, number), name, recording, known[recording], offset, duration, int(channel) if channel else None
            )

    def _entry(self, found: _Utterance, asked: Asked) -> Entry:
        path, number = found.where
        where = f"{path}:{number}"
        written, speaker = self.text.take(found.id), self.speaker.take(found.id)
        source, target = languages(self.folder, asked, self.language.take(found.id))
        kept = {
            "gender": self.gender.get(speaker or ""),
            "recording": found.recording if found.recording != found.id else None,
        }
        track = Track("audio", found.file, offset_s=found.offset, duration_s=found.duration, channel=found.channel)
        clip = Clip(
            found.id, "speech2text", (track,), source, target, transcript=written or None, speaker=speaker,
            tags=(self.split,) if self.split else (),
            extra={name: value for name, value in kept.items() if value}, source=str(path), line=number,
        )  # fmt: skip
        return Entry(where, clip, warnings=("its text is empty",) if written == "" else ())


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for _, line in filled(path) if path.is_file() else ():
        name, *value = line.split(maxsplit=1)
        if value:
            yield name, value[0].strip()


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "kaldi",
        "Kaldi data directory: wav.scp with text, segments, utt2spk",
        quiet(lambda path: bool(_parts(path))),
        _splits,
        _entries,
    ),
)
