"""Chinese Sign Language: CSL-Daily, CSL of USTC (100 sentences) and CE-CSL."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts import choose
from loadbench.corpus.layouts.annotations import (
    GLANCE,
    Row,
    composed,
    encoding,
    first_line,
    is_folder,
    lines,
    names,
    objects,
    table,
)
from loadbench.corpus.manifest import CorpusError

# CSL-Daily
LABELS: Final = "sentence_label"
FRAMES: Final = ("sentence/frames_512x512", "sentence_frames-512x512/frames_512x512")
NAME: Final = re.compile(r"S\d+_(P\d+)_T\d+")  # sentence, person, take
USUAL_FPS: Final = Fraction(30)
LISTED_WRONGLY: Final = "S000005_P0004_T00"  # in the train split of split_1.txt, and nowhere else
NOT_LISTED: Final = "S000007_P0003_T00"  # what public loaders of CSL-Daily take for it
NO_FPS: Final = f"CSL-Daily stores no frame rate: {USUAL_FPS} frames a second are taken; say fps if that is wrong"
CONVERT: Final = (
    "python -c \"import json, pickle; json.dump(pickle.load(open('{0}.pkl', 'rb'))['info'], open('{0}.json', 'w'))\""
)

# CSL of USTC
VIDEO: Final = re.compile(r"(P\d+)_s(\d+)_(\d+)_(\d+)_?\.?_color\.avi")  # person, session, sentence, repetition
FOLDER: Final = re.compile(r"\d{6}")

# CE-CSL
CE_SPLITS: Final = ("train", "dev", "test")
CE_COLUMNS: Final = ("Number", "Translator", "Chinese Sentences", "Gloss")
CE_HEADER: Final = ",".join(CE_COLUMNS)


def _daily_marks(path: Path) -> bool:
    return first_line(path / LABELS / "split_1.txt") == "name|split"


def _daily_splits(path: Path) -> tuple[str, ...]:
    return choose.in_order(split for split, _ in _listed(path / LABELS / "split_1.txt").values())


def _listed(file: Path) -> dict[str, tuple[str, int]]:
    """The split of each name, with the line that says so; the name that was listed wrongly is put right."""
    rows = [row for row in table(file, "|", ("name", "split")) if row.cells]
    found = {row.cells["name"]: (row.cells["split"], row.line) for row in rows}
    if LISTED_WRONGLY in found:
        found.setdefault(NOT_LISTED, found.pop(LISTED_WRONGLY))
    return found


def _daily_entries(path: Path, asked: Asked) -> Iterator[Entry]:
    listing, labels = path / LABELS / "split_1.txt", _labels(path / LABELS)
    listed, languages = _listed(listing), (asked.source_lang or "csl", choose.target(path, asked, "zh"))
    wanted = choose.splits(path, asked, choose.in_order(split for split, _ in listed.values()))
    yield from _listing_troubles(listing)
    frames = next((path / name for name in FRAMES if is_folder(path / name)), path / FRAMES[0])
    unmet = {name for name, (split, _) in listed.items() if split in wanted}
    for line, record, problem in _records(labels):
        where, name = f"{labels}:{line}", record.get("name") if isinstance(record, dict) else None
        if problem or not isinstance(name, str) or not name:
            yield Entry(where, None, (problem or "has no name",))
        elif name not in listed:
            yield Entry(where, None, warnings=(f"{name} is in no split of {listing.name}: left out",))
        elif listed[name][0] in wanted:
            unmet.discard(name)
            track = Track("video", frames.absolute() / name, pattern="%06d.jpg", fps=asked.fps or USUAL_FPS)
            entry = _daily_entry(record, track, languages, listed[name][0], (str(labels), line))
            yield entry if asked.fps else replace(entry, warnings=(NO_FPS,))
    for name in sorted(unmet, key=lambda name: listed[name][1]):
        yield Entry(f"{listing}:{listed[name][1]}", None, (f"{name} has no annotation in {labels.name}",))


def _listing_troubles(listing: Path) -> Iterator[Entry]:
    for row in table(listing, "|", ("name", "split")):
        if row.problem:
            yield Entry(row.where, None, (row.problem,))
        elif row.cells["name"] == LISTED_WRONGLY:
            said = f"{LISTED_WRONGLY} is listed and not in the corpus; {NOT_LISTED} is taken for it, as is usual"
            yield Entry(row.where, None, warnings=(said,))


def _labels(folder: Path) -> Path:
    """The annotations as text. Raises CorpusError where there is only the pickle, or nothing, or a choice."""
    found = sorted(name for name in names(folder) if name.endswith((".json", ".jsonl", ".csv", ".tsv")))
    if len(found) == 1:
        return folder / found[0]
    if found:
        raise CorpusError([f"{folder}: holds {' and '.join(found)}; leave one of them there"])
    pickles = sorted(name.removesuffix(".pkl") for name in names(folder) if name.endswith(".pkl"))
    if not pickles:
        raise CorpusError([f"{folder}: holds no annotations as .json, .jsonl, .csv or .tsv"])
    raise CorpusError(
        [
            f"{folder / pickles[0]}.pkl: a pickle runs whatever program was put into it, so it is not read here; "
            f"if you trust where it came from, run this in its folder: {CONVERT.format(pickles[0])}"
        ]
    )


def _records(file: Path) -> Iterator[tuple[int, Any, str | None]]:
    """Line, record, and why a row is none."""
    if file.suffix in (".json", ".jsonl"):
        yield from ((line, item, None) for line, item in objects(file))
        return
    separator = "\t" if "\t" in first_line(file) else ","
    for row in table(file, separator, ("name", "label_gloss", "label_char"), quoted=True):
        yield row.line, row.cells, row.problem


def _daily_entry(
    record: dict[str, Any], track: Track, languages: tuple[str, str], split: str, source: tuple[str, int]
) -> Entry:
    where, name = "{}:{}".format(*source), record["name"]
    gloss, characters = _items(record.get("label_gloss")), _items(record.get("label_char"))
    if gloss is None or characters is None:
        odd = [key for key in ("label_gloss", "label_char") if _items(record.get(key)) is None]
        return Entry(where, None, tuple(f"{name}: {key} is no list of texts" for key in odd))
    person = NAME.fullmatch(name)
    clip = Clip(
        id=name,
        direction="sign2spoken",
        tracks=(track,),
        source_lang=languages[0],
        target_lang=languages[1],
        gloss=gloss,
        text="".join(characters),
        speaker=person[1] if person else None,
        tags=(split,),
        extra={key: record[key] for key in ("label_word", "label_postag") if key in record},
        source=source[0],
        line=source[1],
    )
    return Entry(where, clip)


def _items(value: object) -> tuple[str, ...] | None:
    """A list, a list as it is written in a table cell, or words between spaces; None for anything else."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    if isinstance(value, str):
        return tuple(composed(value).split())
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(composed(item) for item in value)
    return None


def _ustc_marks(path: Path) -> bool:
    number, *words = first_line(path / "corpus.txt").split() or [""]
    return bool(FOLDER.fullmatch(number) and words) and any(map(FOLDER.fullmatch, names(path / "color", GLANCE)))


def _no_splits(_: Path) -> tuple[str, ...]:
    return ()


def _ustc_entries(path: Path, asked: Asked) -> Iterator[Entry]:
    choose.splits(path, asked, ())
    languages = (asked.source_lang or "csl", choose.target(path, asked, "zh"))
    file, unnamed = path / "corpus.txt", {name for name in names(path / "color") if FOLDER.fullmatch(name)}
    code = encoding(file, "gb18030")
    if code != "utf-8":
        yield Entry(
            f"{file}:1", None, warnings=(f"{file.name} is not UTF-8 and is read as GB18030: look at the texts",)
        )
    for number, line in lines(file, code):
        where, (folder, *words) = f"{file}:{number}", composed(line or "").split() or [""]
        if not FOLDER.fullmatch(folder):
            yield Entry(where, None, (f"begins with {folder!r}, not with six digits",))
        elif folder not in unnamed:
            yield Entry(where, None, (f"no such folder, or named twice: {path / 'color' / folder}",))
        else:
            unnamed.remove(folder)
            yield from _ustc_sentence(path / "color" / folder, words, languages, (str(file), number))
    for folder in sorted(unnamed):
        yield Entry(str(path / "color" / folder), None, (f"{file.name} has no sentence for it",))


def _ustc_sentence(
    folder: Path, words: list[str], languages: tuple[str, str], source: tuple[str, int]
) -> Iterator[Entry]:
    """The videos of one sentence, by person, session and repetition. Only words that are given are glosses."""
    where, found, strays = "{}:{}".format(*source), [], []
    for name in names(folder):
        if said := VIDEO.fullmatch(name):
            found.append((said[1], int(said[2]), int(said[4]), int(said[3]), name))
        else:
            strays.append(name)
    if strays:
        some = ", ".join(sorted(strays)[:5])
        yield Entry(where, None, warnings=(f"{folder}: ignored, not named like P01_s1_00_0_color.avi: {some}",))
    if not found:
        yield Entry(where, None, (f"{folder}: holds no video",))
    for person, _, _, sentence, name in sorted(found):
        if sentence != int(folder.name):
            yield Entry(where, None, (f"{folder / name}: its name says sentence {sentence}, its folder another",))
            continue
        clip = Clip(
            id=name.removesuffix("_color.avi").rstrip("._"),
            direction="sign2spoken",
            tracks=(Track("video", folder.absolute() / name),),
            source_lang=languages[0],
            target_lang=languages[1],
            gloss=tuple(words) if len(words) > 1 else None,
            text="".join(words),
            speaker=person,
            source=source[0],
            line=source[1],
        )
        yield Entry(where, clip)


def _ce_files(path: Path) -> dict[str, Path]:
    """The tables that are there, by split. Never raises."""
    files = {split: path / "label" / f"{split}.csv" for split in CE_SPLITS}
    return {split: file for split, file in files.items() if first_line(file).startswith(CE_HEADER)}


def _ce_marks(path: Path) -> bool:
    return bool(_ce_files(path))


def _ce_splits(path: Path) -> tuple[str, ...]:
    return tuple(_ce_files(path))


def _ce_entries(path: Path, asked: Asked) -> Iterator[Entry]:
    files, languages = _ce_files(path), (asked.source_lang or "csl", choose.target(path, asked, "zh"))
    if not files:
        raise CorpusError([f"{path}: holds no label/train.csv that begins with {CE_HEADER}"])
    videos = path / "video" if is_folder(path / "video") else path
    for split in choose.splits(path, asked, tuple(files)):
        file, code = files[split], encoding(files[split], "gb18030")
        odd = () if code == "utf-8" else (f"{file.name} is not UTF-8 and is read as GB18030: look at the texts",)
        for row in table(file, ",", CE_COLUMNS, quoted=True, encoding=code):
            if row.problem:
                yield Entry(row.where, None, (row.problem,), odd)
            else:
                yield Entry(row.where, _ce_clip(row, split, videos, languages), warnings=odd)


def _ce_clip(row: Row, split: str, videos: Path, languages: tuple[str, str]) -> Clip:
    cells = row.cells
    return Clip(
        id=cells["Number"],
        direction="sign2spoken",
        tracks=(Track("video", videos.absolute() / split / cells["Translator"] / f"{cells['Number']}.mp4"),),
        source_lang=languages[0],
        target_lang=languages[1],
        gloss=tuple(item.strip() for item in composed(cells["Gloss"]).split("/") if item.strip()),
        text=composed(cells["Chinese Sentences"]).strip(),
        speaker=cells["Translator"] or None,
        tags=(split,),
        source=row.source,
        line=row.line,
    )


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout("csl-daily", "CSL-Daily: glosses and Chinese text", _daily_marks, _daily_splits, _daily_entries),
    Layout("csl-ustc", "CSL of USTC: 100 Chinese sentences", _ustc_marks, _no_splits, _ustc_entries),
    Layout("ce-csl", "CE-CSL: glosses and Chinese text", _ce_marks, _ce_splits, _ce_entries),
)
