"""Lists of audio files with their texts: WeNet's data.list, FunASR's wav.scp + text.txt and JSON lines, SimulEval's
source.txt + target.txt.

Relative paths start at the list's folder. Where a list does not name its languages, one text is the transcript if what
is spoken is also what is to come out, else the translation.
"""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages, references
from loadbench.corpus.layouts.reading import Keyed, files, filled, head, kind_of, left_out, lines, quiet, side_by_side
from loadbench.corpus.layouts.rows import Row, entries, entry, first_object
from loadbench.corpus.manifest import CorpusError

TAGGED: Final = re.compile(r"<\|(\w+)\|>")  # FunASR's languages, as in <|zh|>
SCP: Final = re.compile(r"(?P<split>.+)_wav\.scp")


def _file_in(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path


def _no_splits(path: Path) -> tuple[str, ...]:  # noqa: ARG001 - the seam asks about a path
    return ()


# WeNet


def _is_wenet(path: Path) -> bool:
    """In a folder with wav.scp the list is a copy of it: the folder is Kaldi's, the list itself WeNet's."""
    return (
        not (path / "wav.scp").is_file() and {"key", "wav", "txt"} <= first_object(_file_in(path, "data.list")).keys()
    )


def _wenet(path: Path, asked: Asked) -> Iterator[Entry]:
    path = _file_in(path, "data.list")
    chosen(path, (), asked)
    yield from entries(path, partial(_wenet_clip, path=path, pair=languages(path, asked)))


def _wenet_clip(row: Row, number: int, path: Path, pair: tuple[str, str]) -> Clip:
    """`start` and `end`, in seconds, are there where WeNet made the list from Kaldi's segments; -1 is the end."""
    file, start, end = row.file("wav", path.parent), row.seconds("start"), row.seconds("end")
    offset = start or Fraction(0)
    duration = None if end is None or end == -1 else end - offset
    transcript, text = references(row.string("txt"), *pair)
    return Clip(
        _key(row), "speech2text", (Track("audio", file, offset_s=offset, duration_s=duration),), *pair,
        transcript=transcript, text=text, speaker=row.string("speaker"), extra=row.rest, source=str(path), line=number,
    )  # fmt: skip


def _key(row: Row) -> str:
    key = row.string("key")
    if not key:
        row.problems.append("key is missing")
    return key or ""


# FunASR


def _is_funasr(path: Path) -> bool:
    return {"key", "source", "target"} <= first_object(path).keys()


def _funasr(path: Path, asked: Asked) -> Iterator[Entry]:
    chosen(path, (), asked)
    yield from entries(path, partial(_funasr_clip, path=path, asked=asked))


def _language(said: str) -> str | None:
    found = TAGGED.fullmatch(said)
    return found[1] if found else said or None


def _funasr_clip(row: Row, number: int, path: Path, asked: Asked) -> Clip:
    file = row.file("source", path.parent)
    source, target = languages(path, asked, _language(row.string("text_language") or ""))
    transcript, text = references(row.string("target"), source, target)
    return Clip(
        _key(row), "speech2text", (Track("audio", file),), source, target, transcript=transcript, text=text,
        extra=row.rest, source=str(path), line=number,
    )  # fmt: skip


def _scps(path: Path) -> dict[str, tuple[Path, Path]]:
    """wav.scp and text.txt by split: train_wav.scp with train_text.txt is train, the bare names are none ("")."""
    if path.suffix == ".scp":
        names, path = [path.name], path.parent
    else:
        names = files(path) if path.is_dir() else []
    splits = in_order(match["split"] for match in map(SCP.fullmatch, names) if match)
    bare = [""] if "wav.scp" in names and not (path / "text").is_file() else []
    found = {split: (path / f"{split}_wav.scp", path / f"{split}_text.txt") for split in splits}
    found |= {"": (path / "wav.scp", path / "text.txt")} if bare else {}
    return {split: pair for split, pair in found.items() if pair[1].is_file() and pair[0].is_file()}


def _scp_splits(path: Path) -> tuple[str, ...]:
    return tuple(filter(None, _scps(path)))


def _scp(path: Path, asked: Asked) -> Iterator[Entry]:
    parts = _scps(path)
    if not parts:
        raise CorpusError([f"{path}: holds no wav.scp with text.txt"])
    pair = languages(path, asked)
    for split in chosen(path, _scp_splits(path), asked) or ("",):
        scp, texts = parts[split][0], Keyed(parts[split][1])
        for number, line in filled(scp):
            name, *rest = line.split(maxsplit=1)
            written = texts.take(name)
            clip = partial(_scp_clip, path=scp, split=split, pair=pair, written=written)
            found = entry(scp, number, {"id": name, "file": rest[0].strip() if rest else ""}, clip)
            untold = () if written is not None else (f"{name} has no line in {texts.path.name}",)
            yield Entry(found.where, found.clip, found.problems, untold)
        yield from left_out(str(texts.path), texts.left(), "lines of no recording")


def _scp_clip(row: Row, number: int, path: Path, split: str, pair: tuple[str, str], written: str | None) -> Clip:
    file = row.file("file", path.parent)
    transcript, text = references(written, *pair)
    return Clip(
        row.string("id") or "", "speech2text", (Track("audio", file),), *pair, transcript=transcript, text=text,
        tags=(split,) if split else (), source=str(path), line=number,
    )  # fmt: skip


# SimulEval


def _lists(path: Path) -> tuple[Path, Path, Path]:
    """The list of sources, that of targets, and that of target languages, which need not be there."""
    source = _file_in(path, "source.txt")
    target, language = (source.with_name(source.name.replace("source", name)) for name in ("target", "tgt_lang"))
    return source, target, language


def _is_simuleval(path: Path) -> bool:
    """Where source.txt holds sentences, they are for a translator of text."""
    source, target, _ = _lists(path)
    first = head(source).strip().partition("\n")[0].strip()
    return source != target and target.is_file() and kind_of(first) == "audio"


def _simuleval(path: Path, asked: Asked) -> Iterator[Entry]:
    source, target, language = _lists(path)
    chosen(source, (), asked)
    parts = {source: lines(source), target: lines(target)} | ({language: lines(language)} if language.is_file() else {})
    for (number, file), (_, written), *said in side_by_side(parts):
        tongue = said[0][1].strip() if said else None
        clip = partial(_simuleval_clip, path=source, pair=languages(source, asked, target=tongue, both=True))
        yield entry(source, number, {"file": file.strip(), "written": written.strip()}, clip)


def _simuleval_clip(row: Row, number: int, path: Path, pair: tuple[str, str]) -> Clip:
    """SimulEval counts from 0: `index` is that of its instances.log."""
    file = row.file("file", path.parent)
    transcript, text = references(row.string("written"), *pair)
    return Clip(
        f"{file.stem}-{number}", "speech2text", (Track("audio", file),), *pair, transcript=transcript, text=text,
        extra={"index": number - 1}, source=str(path), line=number,
    )  # fmt: skip


def _layout(
    name: str,
    about: str,
    marks: Callable[[Path], bool],
    read: Callable[[Path, Asked], Iterator[Entry]],
    splits: Callable[[Path], tuple[str, ...]] = _no_splits,
) -> Layout:
    return Layout(name, about, quiet(marks), splits, read)


LAYOUTS: Final[tuple[Layout, ...]] = (
    _layout("wenet", "WeNet data.list: JSON lines with key, wav and txt", _is_wenet, _wenet),
    _layout("funasr", "FunASR JSON lines with key, source and target", _is_funasr, _funasr),
    _layout("funasr-scp", "FunASR wav.scp with text.txt", lambda path: bool(_scps(path)), _scp, _scp_splits),
    _layout("simuleval", "SimulEval source.txt with target.txt, line by line", _is_simuleval, _simuleval),
)
