"""Every clip of a corpus made ready before a run: encoded once, found again the next time."""

import contextlib
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from loadbench.corpus.clip import Clip, Track
from loadbench.media import audio, cache, video
from loadbench.media.cache import default_cache
from loadbench.media.decode import MediaError
from loadbench.media.form import AudioForm, MediaForm
from loadbench.media.made import Made
from loadbench.media.plan import ChunkPlan

__all__ = ["MediaError", "Progress", "default_cache", "prepare"]
NOTES: Final = "notes.json"
BATCH: Final = 1000  # clips that wait for a free core


@dataclass(frozen=True, slots=True)
class Progress:
    """How far encoding is: `done` of `total` clips, the last of them `clip`; `notes` say what is odd about its media.

    `done_s` are seconds of media; `total_s` is None where the manifest does not declare every length.
    """

    done: int
    total: int
    done_s: float
    total_s: float | None
    clip: str
    notes: tuple[str, ...] = ()


def prepare(
    clips: Sequence[Clip],
    form: MediaForm,
    cache_folder: Path,
    progress: Callable[[Progress], None] | None = None,
    tail_silence_s: float = 0.0,
) -> dict[str, Path]:
    """Folder of each clip's `ChunkPlan` by clip id, encoded where the cache does not hold it yet.

    A plan's duration is that of the media; `tail_silence_s` of silence follows it as further chunks. Raises MediaError
    with the problems of all clips.
    """
    problems: list[str] = []
    folders: dict[str, Path] = {}
    try:
        cache_folder.mkdir(parents=True, exist_ok=True)
        cache.sweep(cache_folder)
    except OSError as error:
        raise MediaError([f"{cache_folder}: the media cache cannot be used: {error.strerror}"]) from error
    hashes, total_s, done_s = cache.Hashes(cache_folder), _total_s(clips, form), 0.0

    def ready(clip: Clip) -> _Ready:
        try:
            return _prepared(clip, form, cache_folder, hashes, tail_silence_s)
        except (MediaError, OSError) as error:
            return _Ready(problems=[f"{_place(clip)}{problem}" for problem in _sentences(error)])

    with ThreadPoolExecutor(os.cpu_count()) as pool, contextlib.closing(_in_order(pool, ready, clips)) as all_ready:
        for n, (clip, found) in enumerate(zip(clips, all_ready, strict=True), 1):
            problems += found.problems
            if found.folder is not None:
                folders[clip.id] = found.folder
            done_s += found.length_s
            if progress is not None:
                progress(Progress(n, len(clips), done_s, total_s, clip.id, found.notes))
    try:
        hashes.save()
    except OSError as error:
        problems.append(f"{cache_folder}: the media cache cannot be written: {error.strerror}")
    if problems:
        raise MediaError(problems)
    return folders


class _Ready(NamedTuple):
    folder: Path | None = None
    length_s: float = 0.0
    notes: tuple[str, ...] = ()
    problems: Sequence[str] = ()


def _in_order(
    pool: ThreadPoolExecutor, ready: Callable[[Clip], _Ready], clips: Sequence[Clip]
) -> Generator[_Ready, None, None]:
    """Results in the order of the clips; closing it, as Ctrl-C does, drops what has not begun."""
    for start in range(0, len(clips), BATCH):
        yield from pool.map(ready, clips[start : start + BATCH])


def _prepared(clip: Clip, form: MediaForm, cache_folder: Path, hashes: cache.Hashes, tail_silence_s: float) -> _Ready:
    track = _track(clip, form)
    content = hashes.of(track)
    if track.sha256 not in (None, content):
        raise MediaError([f"{track.path}: its sha256 is {content}, the manifest says {track.sha256}"])
    folder = cache_folder / cache.key(content, track, form, tail_silence_s)
    if not cache.finished(folder):
        cache.fill(folder, lambda part: _encode(track, form, tail_silence_s, part))
    notes = tuple(json.loads((folder / NOTES).read_text(encoding="utf-8")))
    return _Ready(folder, ChunkPlan.load(folder).duration_ns / 1e9, notes)


def _encode(track: Track, form: MediaForm, tail_silence_s: float, folder: Path) -> None:
    made = Made()
    ChunkPlan.write(folder, _chunks(track, form, tail_silence_s, made), lambda: made.duration_ns)
    (folder / NOTES).write_text(json.dumps(made.notes), encoding="utf-8")


def _chunks(track: Track, form: MediaForm, tail_silence_s: float, made: Made) -> Iterator[tuple[int, int, bytes]]:
    if isinstance(form, AudioForm):
        return audio.chunks(track, form, tail_silence_s, made)
    return video.chunks(track, form, made)


def _track(clip: Clip, form: MediaForm) -> Track:
    """The clip's first track of the kind that the form needs."""
    kind = "audio" if isinstance(form, AudioForm) else "video"
    for track in clip.tracks:
        if track.kind == kind:
            return track
    raise MediaError([f"has no {kind} track, which the profile sends"])


def _total_s(clips: Sequence[Clip], form: MediaForm) -> float | None:
    kind = "audio" if isinstance(form, AudioForm) else "video"
    declared = [next((track.duration_s for track in clip.tracks if track.kind == kind), None) for clip in clips]
    known = [float(length) for length in declared if length is not None]
    return sum(known) if len(known) == len(declared) else None


def _place(clip: Clip) -> str:
    return f"{clip.source}:{clip.line}: clip {clip.id}: " if clip.source else f"clip {clip.id}: "


def _sentences(error: MediaError | OSError) -> list[str]:
    if isinstance(error, MediaError):
        return error.problems
    return [f"{error.filename or 'the media cache'}: {error.strerror or error}"]
