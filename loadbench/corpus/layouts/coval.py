"""Coval's manifests: one JSON object whose `items` are clips of 2 to 15 s with path, sha256, transcript, duration_sec.

Paths are relative to the manifest. `speech_end_offset_ms` is where the last stretch of speech ends, in milliseconds
from the start of the file, by a voice activity detector that adds up to 100 ms (its scripts/precompute_vad_offsets.py);
it becomes `activity_end_s`. null, or none, is unknown. The manifest names no language.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts.asked import chosen, languages
from loadbench.corpus.layouts.reading import files, head, lines, quiet
from loadbench.corpus.layouts.rows import Row, entry
from loadbench.corpus.manifest import CorpusError

ITEMS: Final = re.compile(r'"items"\s*:\s*\[')
FIELDS: Final = ('"path"', '"sha256"', '"transcript"', '"duration_sec"')
BETWEEN: Final = re.compile(r"[\s,]*")
LOOK: Final = 20  # a folder with more JSON files than these is something else


def _is_manifest(path: Path) -> bool:
    text = head(path) if path.suffix == ".json" else ""
    return text.lstrip().startswith("{") and bool(ITEMS.search(text)) and all(field in text for field in FIELDS)


def _parts(path: Path) -> dict[str, Path]:
    """The manifests of a folder by name, as in stt-v1; a file alone is no split."""
    if path.is_file():
        return {}
    names = [name for name in files(path) if name.endswith(".json")]
    found = names if len(names) <= LOOK else []
    return {name.removesuffix(".json"): path / name for name in found if _is_manifest(path / name)}


def _splits(path: Path) -> tuple[str, ...]:
    return tuple(_parts(path))


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    parts = _parts(path)
    splits = chosen(path, tuple(parts), asked)
    if not parts and not path.is_file():
        raise CorpusError([f"{path}: holds no manifest with items, as in stt-v1.json"])
    for split in splits or ("",):
        manifest = parts[split] if split else path
        clip = partial(_clip, path=manifest, split=split, pair=languages(manifest, asked))
        for number, item in _items(manifest):
            if isinstance(item, dict):
                yield entry(manifest, number, item, clip)
            else:
                yield Entry(f"{manifest}:{number}", None, (f"must be an object, not {item!r}",))


def _items(path: Path) -> Iterator[tuple[int, Any]]:
    """The items, each with the line on which it begins."""
    text = "\n".join(line for _, line in lines(path))
    start = ITEMS.search(text)
    if start is None:
        raise CorpusError([f"{path}: has no list of items"])
    decode, at, number, counted = json.JSONDecoder().raw_decode, start.end(), 1, 0
    while True:
        at = BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        number, counted = number + text.count("\n", counted, at), at
        if text.startswith("]", at):
            return
        try:
            item, at = decode(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            raise CorpusError([f"{path}:{number}: not JSON: {error}"]) from None
        yield number, item


def _clip(row: Row, number: int, path: Path, split: str, pair: tuple[str, str]) -> Clip:
    name = str(row.rest.get("path", ""))
    file, digest = row.file("path", path.parent), row.string("sha256")
    track = Track("audio", file, duration_s=row.seconds("duration_sec"), sha256=digest.lower() if digest else None)
    spoken_until = row.seconds("speech_end_offset_ms")
    return Clip(
        "/".join(filter(None, (split, name.removesuffix(file.suffix)))), "speech2text", (track,), *pair,
        activity_end_s=None if spoken_until is None else float(spoken_until / 1000),
        activity_estimated=spoken_until is not None,
        transcript=row.string("transcript"), speaker=row.string("speaker_id"),
        tags=(split,) if split else (), extra=row.rest, source=str(path), line=number,
    )  # fmt: skip


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "coval",
        "Coval manifest: JSON with items of path, sha256, transcript, duration_sec",
        quiet(lambda path: _is_manifest(path) if path.is_file() else bool(_parts(path))),
        _splits,
        _entries,
    ),
)
