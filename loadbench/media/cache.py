"""Encoded media on disk: one folder per content, segment and form, made whole or not at all.

A folder is written under another name and renamed when it is finished, so two processes may work at once: the one that
comes second uses what the first has made. Content hashes are remembered by size, time and inode of the files, so a
second run reads no media.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import av
import PIL

from loadbench.corpus.clip import Track
from loadbench.media.form import MediaForm
from loadbench.media.frames import numbered
from loadbench.media.plan import ChunkPlan

ENCODING: Final = 4  # counted up when the same file would be encoded to other bytes
HASHES: Final = "hashes.json"
UNFINISHED: Final = ".part-"
ABANDONED_S: Final = 86_400  # an unfinished folder of this age belongs to nobody


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/loadbench`, else `~/.cache/loadbench`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "loadbench"


def key(content: str, track: Track, form: MediaForm, tail_silence_s: float) -> str:
    """The name of a folder: everything that the encoded bytes depend on, and the expectations that were checked."""
    part = dataclasses.asdict(track) | {"path": content, "sha256": None}
    made_by = [ENCODING, av.__version__, PIL.__version__]
    text = json.dumps([made_by, part, dataclasses.asdict(form), tail_silence_s], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def joint(keys: Sequence[str]) -> str:
    """The name of a folder that holds several media in one plan: of one, its own."""
    return keys[0] if len(keys) == 1 else hashlib.sha256(" ".join(keys).encode()).hexdigest()


def finished(folder: Path) -> bool:
    """Whether a folder holds a whole plan."""
    try:
        plan = ChunkPlan.load(folder)
        return (folder / "payload.bin").stat().st_size == plan.size
    except (OSError, ValueError, EOFError, IndexError):
        return False


def fill(folder: Path, write: Callable[[Path], None]) -> None:
    """Make a folder with `write`, which is given another folder to write into; nothing is left where it raises."""
    part = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder.parent))
    try:
        write(part)
        try:
            part.rename(folder)
        except OSError:
            if not finished(folder):  # else another process was faster, with the same bytes
                shutil.rmtree(folder)
                part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sweep(cache: Path) -> None:
    """Remove what killed processes left unfinished long ago."""
    oldest = time.time() - ABANDONED_S
    for part in cache.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(FileNotFoundError):  # another process sweeps too
            if part.stat().st_mtime < oldest:
                shutil.rmtree(part) if part.is_dir() else part.unlink()


class Hashes:
    """SHA-256 of media by path, remembered in the cache folder as long as the files' size, time and inode stay."""

    def __init__(self, cache: Path) -> None:
        self._path = cache / HASHES
        self._known = self._stored()
        self._new: dict[str, list[str]] = {}

    def of(self, track: Track) -> str:
        """Hash of a file's bytes; of a folder's frames: their names and bytes in order. Raises MediaError, OSError."""
        files = [track.path] if track.pattern is None else [path for _, path in numbered(track, [])]
        name, state = f"{track.path.absolute()}|{track.pattern or ''}", _state(files)
        known = self._known.get(name)
        if known is None or known[0] != state:
            known = self._known[name] = self._new[name] = [state, _sha256(files)]
        return known[1]

    def save(self) -> None:
        """Keep what was learnt, beside what other processes have learnt meanwhile."""
        if not self._new:
            return
        handle, part = tempfile.mkstemp(prefix=UNFINISHED, dir=self._path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(self._stored() | self._new, file)
        Path(part).rename(self._path)
        self._new = {}

    def _stored(self) -> dict[str, list[str]]:
        try:
            found: Any = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}  # nothing learnt yet, or damaged: the files are read again
        return found if isinstance(found, dict) else {}


def _state(files: Sequence[Path]) -> str:
    rows = [(file.name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for file in files for stat in [file.stat()]]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def _sha256(files: Sequence[Path]) -> str:
    if len(files) == 1 and not files[0].is_dir():
        with files[0].open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    total = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            total.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()
