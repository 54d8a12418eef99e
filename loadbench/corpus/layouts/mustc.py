"""MuST-C: en-XX/data/SPLIT/txt/SPLIT.{yaml,en,XX} line by line beside each other, and SPLIT/wav/*.wav.

The YAML is a list of segments, as a rule one on each line in flow form, and may be long: such lines are taken apart
here, other forms by a YAML reader, segment by segment where each begins with a dash at the start of its line.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages
from loadbench.corpus.layouts.reading import filled, folders, lines, quiet, side_by_side
from loadbench.corpus.layouts.rows import Row, entry
from loadbench.corpus.manifest import CorpusError

PAIR: Final = re.compile(r"([a-z]{2,3})-([a-z]{2,3}(?:-[A-Za-z]+)?)")
VALUE: Final = r"\w+: [^\s,{}\[\]\"'#&*!|>%@`][^,{}\[\]\"'#]*"
SEGMENT: Final = re.compile(rf"-\s+{{({VALUE}(?:,\s*{VALUE})*)}}\s*")
WHOLE: Final = re.compile(r"-?(0|[1-9]\d*)")
MUST_BE: Final = "must be a segment with wav, offset and duration"
YAML_TROUBLE: Final = (YAMLError, RecursionError, ValueError)


def _parts(data: Path) -> dict[str, Path]:
    """The segment files of a `data` folder by split."""
    found = {name: data / name / "txt" / f"{name}.yaml" for name in folders(data)} if data.is_dir() else {}
    return {name: found[name] for name in in_order(name for name, path in found.items() if path.is_file())}


def _pairs(path: Path) -> dict[str, dict[str, Path]]:
    """Segment files by pair of languages and split; `path` is the corpus, a pair, its `data`, or a segment file."""
    if path.suffix == ".yaml":
        placed = path.is_file() and path.parent.name == "txt" and path.parents[1].name == path.stem
        return {path.absolute().parents[3].name: {path.stem: path}} if placed else {}
    pair = path.absolute().parent.name if path.name == "data" else path.absolute().name
    if parts := _parts(path if path.name == "data" else path / "data"):
        return {pair: parts}
    inside = {name: _parts(path / name / "data") for name in folders(path) if PAIR.fullmatch(name)}
    return {name: parts for name, parts in inside.items() if parts}


def _splits(path: Path) -> tuple[str, ...]:
    return in_order({split for parts in _pairs(path).values() for split in parts})


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    pairs = _pairs(path)
    if not pairs:
        raise CorpusError([f"{path}: holds no data/SPLIT/txt/SPLIT.yaml"])
    wanted = [name for name in pairs if name.endswith(f"-{asked.target_lang}")] if len(pairs) > 1 else list(pairs)
    if len(wanted) != 1:
        raise CorpusError([f"{path}: holds {', '.join(pairs)}; choose one with --target-lang, or give its folder"])
    said = PAIR.fullmatch(wanted[0])
    source, target = languages(path, asked, *(said.groups() if said else ()), both=True)
    parts = pairs[wanted[0]]
    for split in chosen(path, tuple(parts), asked):
        wavs = parts[split].absolute().parents[1] / "wav"
        yield from _Part(parts[split], wavs, split, (source, target), Counter()).entries()


@dataclass(frozen=True, slots=True)
class _Part:
    """A split while it is read. `seen` counts the segments of each recording, for their names."""

    path: Path
    wavs: Path
    split: str
    pair: tuple[str, str]
    seen: Counter[str]

    def entries(self) -> Iterator[Entry]:
        spoken, translated = (self.path.with_suffix(f".{language}") for language in self.pair)
        rows = side_by_side({self.path: segments(self.path), spoken: lines(spoken), translated: lines(translated)})
        for (number, segment), (_, transcript), (_, text) in rows:
            if isinstance(segment, str):
                yield Entry(f"{self.path}:{number}", None, (segment,))
            else:
                yield entry(self.path, number, segment, partial(self._clip, transcript=transcript, text=text))

    def _clip(self, row: Row, number: int, transcript: str, text: str) -> Clip:
        file = row.file("wav", self.wavs)
        offset, duration = row.seconds("offset", needed=True), row.seconds("duration", needed=True)
        self.seen[file.stem] += 1
        track = Track("audio", file, offset_s=offset or Fraction(0), duration_s=duration)
        return Clip(
            f"{file.stem}-{self.seen[file.stem]}", "speech2text", (track,), *self.pair, transcript=transcript.strip(),
            text=text.strip(), speaker=row.string("speaker_id"), tags=(self.split,), extra=row.rest,
            source=str(self.path), line=number,
        )  # fmt: skip


def segments(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    """The segments of a file with their lines; a sentence in place of what is none."""
    start, held = 0, ""
    for number, line in filled(path):
        if line.startswith("#") or line.strip() in ("---", "..."):
            continue
        if line.startswith("-"):
            if held:
                yield start, _segment(held)
            start, held = number, line
        elif held:
            held += f"\n{line}"
        else:
            yield from _list(path)
            return
    if held:
        yield start, _segment(held)


def _segment(text: str) -> Mapping[str, Any] | str:
    """One item of the list, `text` from its dash on."""
    if plain := SEGMENT.fullmatch(text):
        pairs = (pair.split(": ", 1) for pair in re.split(r",\s*", plain[1]))
        return {name: int(value) if WHOLE.fullmatch(value) else value.strip() for name, value in pairs}
    try:
        found = YAML(typ="safe", pure=True).load(text)
    except YAML_TROUBLE:
        return f"not YAML: {text.partition(chr(10))[0]}"
    one = found[0] if isinstance(found, list) and len(found) == 1 else None
    return one if isinstance(one, dict) else f"{MUST_BE}, not {text!r}"


def _list(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    """All segments of a file in another form, read as a whole."""
    try:
        found: Any = YAML().load(path)
    except YAML_TROUBLE as error:
        raise CorpusError([f"{path}: not YAML: {str(error).partition(chr(10))[0]}"]) from None
    if not isinstance(found, list):
        raise CorpusError([f"{path}: must be a list of segments"])
    places: Any = getattr(found, "lc", None)  # where each item begins
    for n, segment in enumerate(found):
        yield places.item(n)[0] + 1, segment if isinstance(segment, dict) else f"{MUST_BE}, not {segment!r}"


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "must-c",
        "MuST-C: en-XX/data/SPLIT/txt/SPLIT.{yaml,en,XX} with wav/",
        quiet(lambda path: bool(_pairs(path))),
        _splits,
        _entries,
    ),
)
