"""NeMo manifests: JSON lines with audio_filepath, duration, offset and text; Canary's with source_lang and target_lang.

`text` is in the target language: the transcript where that is spoken too, else the translation. Relative paths start at
the manifest's folder. A manifest printed over several lines is recognised, and refused. The native manifest names
audio_filepath too, but always a direction.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, in_order, languages, references
from loadbench.corpus.layouts.reading import files, filled, head, quiet
from loadbench.corpus.layouts.rows import Row, entries, first_object
from loadbench.corpus.manifest import CorpusError

NAME: Final = re.compile(r"((?P<before>.+)[_-])?manifest([_-](?P<after>.+))?\.jsonl?")


def _is_manifest(path: Path) -> bool:
    if first := first_object(path):
        return "audio_filepath" in first and "direction" not in first
    text = head(path)
    return text.lstrip()[:1] in ("{", "[") and '"audio_filepath"' in text and '"direction"' not in text


def _parts(path: Path) -> dict[str, Path]:
    """The manifests of a folder by split: train_manifest.json holds train, manifest.json alone "manifest"."""
    if path.is_file():
        return {}
    named = [(match, match[0]) for match in map(NAME.fullmatch, files(path)) if match]
    found = {match["before"] or match["after"] or "manifest": path / name for match, name in named}
    return {split: found[split] for split in in_order(found) if _is_manifest(found[split])}


def _splits(path: Path) -> tuple[str, ...]:
    return tuple(_parts(path))


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    parts = _parts(path)
    splits = chosen(path, tuple(parts), asked)
    if not parts and not path.is_file():
        raise CorpusError([f"{path}: holds no NeMo manifest, as in manifest.json or train_manifest.json"])
    for split in splits or ("",):
        yield from _manifest(parts[split] if split else path, split, asked)


def _manifest(path: Path, split: str, asked: Asked) -> Iterator[Entry]:
    first = next((line.strip() for _, line in filled(path)), "")
    if first == "{" or first.startswith("["):
        raise CorpusError([f"{path}: is printed over several lines or as one list; write one object on each line"])
    yield from entries(path, partial(_clip, path=path, split=split, asked=asked))


def _clip(row: Row, number: int, path: Path, split: str, asked: Asked) -> Clip:
    file, offset, duration = row.file("audio_filepath", path.parent), row.seconds("offset"), row.seconds("duration")
    source, target = languages(path, asked, row.string("source_lang", "lang"), row.string("target_lang"))
    transcript, text = references(row.string("text"), source, target)
    made = "-".join(filter(None, (split, file.stem, str(number))))
    track = Track("audio", file, offset_s=offset or Fraction(0), duration_s=duration)
    return Clip(
        row.string("id") or made, "speech2text", (track,), source, target, transcript=transcript, text=text,
        speaker=row.string("speaker", "speaker_id"), tags=(split,) if split else (), extra=row.rest,
        source=str(path), line=number,
    )  # fmt: skip


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "nemo",
        "NeMo manifest: JSON lines with audio_filepath (also Canary's)",
        quiet(lambda path: _is_manifest(path) if path.is_file() else bool(_parts(path))),
        _splits,
        _entries,
    ),
)
