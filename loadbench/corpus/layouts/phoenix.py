"""RWTH-PHOENIX-Weather 2014 T and 2014: German Sign Language of weather forecasts, a folder of frames a sentence.

The glosses of 2014 T are as written. Those of 2014 are cleaned as its papers do before scoring (see `cleaned`), and
`extra["annotation"]` keeps what was written.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts import choose
from loadbench.corpus.layouts.annotations import Row, composed, first_line, header_problems, is_folder, names, table
from loadbench.corpus.manifest import CorpusError

SPLITS: Final = ("train", "dev", "test")
FPS: Final = Fraction(25)
BROKEN: Final = "13April_2011_Wednesday_tagesschau_default-14"  # row 2390 of train
MARKERS: Final = frozenset(("__ON__", "__OFF__", "__EMOTION__", "__PU__", "__LEFTHAND__", "__EPENTHESIS__"))
PREFIXES: Final = re.compile(r"^(?:(?:loc|cl|qu|poss|lh)-)+(?=.)")
LETTERS: Final = re.compile(r"[A-ZÄÖÜ](?:\+[A-ZÄÖÜ])*")  # spelled with the fingers, as in S W R
CLEANED: Final = "the glosses of PHOENIX-2014 are cleaned as for scoring; extra.annotation keeps what was written"
FRAME_2014: Final = re.compile(r"([^%]*_fn)\d{6}(-\d+\.png)")


@dataclass(frozen=True, slots=True)
class Release:
    """One of the two: where its tables lie, and how a row becomes a clip."""

    inner: str  # the folder inside the release that holds everything
    table: str
    columns: tuple[str, ...]
    folder: str  # the column that names the folder of frames
    entry: Callable[[Row, "Place"], Entry]


@dataclass(frozen=True, slots=True)
class Place:
    """The table of a split, its frames, and what holds for all of its rows."""

    split: str
    file: Path
    frames: Path
    fps: Fraction
    languages: tuple[str, str]


def cleaned(annotation: str) -> tuple[str, ...]:
    """Glosses of PHOENIX-2014 as they are scored: without markers, prefixes and -PLUSPLUS; S W R is S+W+R; A A is A."""
    bare = (PREFIXES.sub("", gloss) for gloss in annotation.split() if gloss not in MARKERS)
    joined: list[str] = []
    for spelled, group in groupby((gloss.removesuffix("-PLUSPLUS") for gloss in bare), _is_spelled):
        glosses = list(group)
        joined += ["+".join(glosses)] if spelled else glosses
    return tuple(gloss for gloss, _ in groupby(joined))


def _is_spelled(gloss: str) -> bool:
    return LETTERS.fullmatch(gloss) is not None


def _files(release: Release, path: Path) -> dict[str, Path]:
    """The tables that are there, by split. Never raises."""
    for root in (path, path / release.inner):
        manual = root / "annotations" / "manual"
        found = {split: manual / release.table.format(split) for split in SPLITS}
        if there := {split: file for split, file in found.items() if first_line(file)}:
            return there
    return {}


def _marks(release: Release, path: Path) -> bool:
    first = release.columns[0] + "|" + release.columns[1]
    return any(first_line(file).startswith(first) for file in _files(release, path).values())


def _splits(release: Release, path: Path) -> tuple[str, ...]:
    return tuple(_files(release, path))


def _entries(release: Release, path: Path, asked: Asked) -> Iterator[Entry]:
    files = _files(release, path)
    if not files:
        raise CorpusError([f"{path}: holds no annotations/manual/{release.table.format('train')}"])
    languages = (asked.source_lang or "gsg", choose.target(path, asked, "de"))
    chosen = choose.splits(path, asked, tuple(files))
    if problems := [problem for split in chosen for problem in header_problems(files[split], "|", release.columns)]:
        raise CorpusError(problems)
    for split in chosen:
        place = Place(split, files[split], _features(files[split].parents[2]) / split, asked.fps or FPS, languages)
        for row in table(place.file, "|", release.columns):
            said = PurePosixPath(row.cells.get(release.folder, ""))
            if row.problem:
                yield Entry(row.where, None, (row.problem,))
            elif said.is_absolute() or ".." in said.parts:
                yield Entry(row.where, None, (f"{release.folder} leads out of the corpus: {said}",))
            else:
                yield release.entry(row, place)


def _features(root: Path) -> Path:
    """The frames in their first size, or as they were scaled for a model."""
    usual = root / "features" / "fullFrame-210x260px"
    return usual if is_folder(usual) else min(usual.parent.glob("fullFrame-*"), default=usual)


def _frames(frames: Path, said: str) -> Path:
    """The folder that a column as `NAME/1/*.png` means: the level 1 stands in the column, and seldom on disk."""
    folder = frames / (PurePosixPath(said).parent if "*" in said else PurePosixPath(said))
    return folder.parent if folder.name == "1" and not is_folder(folder) else folder


def _pattern_2014(folder: Path, name: str) -> str:
    """Frames are named after the broadcast, of which the clip is a part."""
    for frame in names(folder):
        if found := FRAME_2014.fullmatch(frame):
            return f"{found[1]}%06d{found[2]}"
    return f"{name.rsplit('_default-', 1)[0]}.avi_pid0_fn%06d-0.png"


def _entry_2014t(row: Row, place: Place) -> Entry:
    cells = row.cells
    folder = _frames(place.frames, cells["video"] or cells["name"])
    warnings = []
    if (cells["start"], cells["end"]) != ("-1", "-1"):
        warnings.append(f"start {cells['start']} and end {cells['end']} are not -1; all frames are taken")
    clip = Clip(
        id=cells["name"],
        direction="sign2spoken",
        tracks=(Track("video", folder.absolute(), pattern="images%04d.png", fps=place.fps),),
        source_lang=place.languages[0],
        target_lang=place.languages[1],
        gloss=tuple(composed(cells["orth"]).split()),
        text=composed(cells["translation"]).strip(),
        speaker=cells["speaker"] or None,
        tags=(place.split,),
        source=row.source,
        line=row.line,
    )
    return Entry(row.where, clip, warnings=tuple(warnings))


def _entry_2014(row: Row, place: Place) -> Entry:
    cells, where = row.cells, row.where
    annotation = composed(cells["annotation"]).strip()
    gloss = cleaned(annotation)
    if cells["id"] == BROKEN:
        return Entry(where, None, warnings=(f"{BROKEN} is known to be broken: left out",))
    if annotation and not gloss:
        return Entry(where, None, (f"{cells['id']} has markers and no sign: {annotation}",))
    folder = _frames(place.frames, cells["folder"] or cells["id"])
    clip = Clip(
        id=cells["id"],
        direction="sign2spoken",
        tracks=(Track("video", folder.absolute(), pattern=_pattern_2014(folder, cells["id"]), fps=place.fps),),
        source_lang=place.languages[0],
        target_lang=place.languages[1],
        gloss=gloss,
        speaker=cells["signer"] or None,
        tags=(place.split,),
        extra={"annotation": annotation},
        source=row.source,
        line=row.line,
    )
    changed = gloss != tuple(annotation.split())
    return Entry(where, clip, warnings=(CLEANED,) if changed else ())


TRANSLATED: Final = Release(
    "PHOENIX-2014-T",
    "PHOENIX-2014-T.{}.corpus.csv",
    ("name", "video", "start", "end", "speaker", "orth", "translation"),
    "video",
    _entry_2014t,
)
GLOSSED: Final = Release(
    "phoenix-2014-multisigner", "{}.corpus.csv", ("id", "folder", "signer", "annotation"), "folder", _entry_2014
)
LAYOUTS: Final[tuple[Layout, ...]] = tuple(
    Layout(name, about, partial(_marks, release), partial(_splits, release), partial(_entries, release))
    for name, about, release in (
        ("phoenix-2014-t", "RWTH-PHOENIX-Weather 2014 T: glosses and German text", TRANSLATED),
        ("phoenix-2014", "RWTH-PHOENIX-Weather 2014: glosses, cleaned for scoring", GLOSSED),
    )
)
