"""How2Sign: American Sign Language with English text, a row a sentence.

The clips of single sentences were cut by the first times; a realigned table has better times, which count in the full
video. So a sentence is cut out of the full video where that is there, and else is the clip as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts import choose
from loadbench.corpus.layouts.annotations import Row, composed, first_line, header_problems, is_file, is_folder, table
from loadbench.corpus.manifest import CorpusError
from loadbench.corpus.sample import RATE

SPLITS: Final = ("train", "val", "test")
COLUMNS: Final = ("VIDEO_ID", "VIDEO_NAME", "SENTENCE_ID", "SENTENCE_NAME", "SENTENCE")
REALIGNED: Final = ("START_REALIGNED", "END_REALIGNED")
ORIGINAL: Final = ("START", "END")
# Where the download script and people who unpack by hand put the tables, the full videos and the clips of a split.
TABLES: Final = (
    "how2sign_realigned_{0}.csv",
    "sentence_level/{0}/text/en/raw_text/re_aligned/how2sign_realigned_{0}.csv",
    "how2sign_{0}.csv",
    "sentence_level/{0}/text/en/raw_text/how2sign_{0}.csv",
)
FULL: Final = ("video_level/{0}/rgb_front/raw_videos", "{0}_raw_videos/raw_videos", "{0}_raw_videos")
CLIPS: Final = (
    "sentence_level/{0}/rgb_front/raw_videos",
    "{0}_rgb_front_clips/raw_videos",
    "{0}_rgb_front_clips",
    "raw_videos",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A split: its table and the folders of its videos; `times` are the columns that cut."""

    name: str
    file: Path
    separator: str
    times: tuple[str, str]
    full: Path
    clips: Path
    languages: tuple[str, str]


def _files(path: Path) -> dict[str, Path]:
    """The table of each split that is there, a realigned one before a first one. Never raises."""
    found = {}
    for split in SPLITS:
        for name in TABLES:
            if first_line(file := path / name.format(split)).startswith("VIDEO_ID"):
                found[split] = file
                break
    return found


def _marks(path: Path) -> bool:
    return bool(_files(path))


def _splits(path: Path) -> tuple[str, ...]:
    return tuple(_files(path))


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    files, languages = _files(path), (asked.source_lang or "ase", choose.target(path, asked, "en"))
    if not files:
        raise CorpusError([f"{path}: holds no {TABLES[0].format('train')}, nor one of another split"])
    parts = [_part(path, split, files[split], languages) for split in choose.splits(path, asked, tuple(files))]
    if problems := [problem for part in parts for problem in _header_problems(part)]:
        raise CorpusError(problems)
    for part in parts:
        # Tab separated in spite of its name, and quotes are text; only a copy that was written anew has commas.
        for row in table(part.file, part.separator, (*COLUMNS, *part.times), quoted=part.separator == ","):
            yield Entry(row.where, None, (row.problem,)) if row.problem else _entry(row, part)


def _part(path: Path, split: str, file: Path, languages: tuple[str, str]) -> Part:
    header = first_line(file)
    separator = "\t" if "\t" in header else ","
    times = REALIGNED if REALIGNED[0] in header.split(separator) else ORIGINAL
    return Part(split, file, separator, times, _there(path, FULL, split), _there(path, CLIPS, split), languages)


def _header_problems(part: Part) -> list[str]:
    return header_problems(part.file, part.separator, (*COLUMNS, *part.times))


def _there(path: Path, folders: tuple[str, ...], split: str) -> Path:
    found = [path / name.format(split) for name in folders]
    return next((folder for folder in found if is_folder(folder)), found[0])


def _entry(row: Row, part: Part) -> Entry:
    cells, where = row.cells, row.where
    try:
        start, end = (_seconds(cells[name]) for name in part.times)
    except ValueError:
        said = " and ".join(f"{name} {cells[name]!r}" for name in part.times)
        return Entry(where, None, (f"{said} are not seconds",))
    if not 0 <= start < end:
        return Entry(where, None, (f"its time is empty: {float(start):g} to {float(end):g} s",))
    rate = next((cell for name, cell in cells.items() if name.casefold() == "fps"), "")
    if rate and (not RATE.fullmatch(rate) or not Fraction(rate)):
        return Entry(where, None, (f"fps is no rate: {rate!r}",))
    fps, warnings = Fraction(rate) if rate else None, []
    full, clip = part.full / f"{cells['VIDEO_NAME']}.mp4", part.clips / f"{cells['SENTENCE_NAME']}.mp4"
    if is_file(full) or not is_folder(part.clips):
        track = Track("video", full.absolute(), fps=fps, offset_s=start, duration_s=end - start)
    else:
        track = Track("video", clip.absolute(), fps=fps)
        if part.times == REALIGNED:
            warnings.append(
                "realigned times count in the full video, which is not there: the clip is taken as it was cut"
            )
    return Entry(where, _clip(row, track, part), warnings=tuple(warnings))


def _seconds(text: str) -> Fraction:
    """Exactly the decimal number that was written; ValueError for anything else."""
    return Fraction(repr(float(text)))


def _clip(row: Row, track: Track, part: Part) -> Clip:
    cells = row.cells
    return Clip(
        id=cells["SENTENCE_NAME"],
        direction="sign2spoken",
        tracks=(track,),
        source_lang=part.languages[0],
        target_lang=part.languages[1],
        text=composed(cells["SENTENCE"]).strip(),
        tags=(part.name,),
        extra={"video": cells["VIDEO_NAME"]},
        source=row.source,
        line=row.line,
    )


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout("how2sign", "How2Sign: American Sign Language with English text", _marks, _splits, _entries),
)
