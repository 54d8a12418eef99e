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
from loadbench.media import audio, cache, h264, slices, video, whole_file
from loadbench.media.cache import default_cache
from loadbench.media.decode import MediaError
from loadbench.media.form import AudioForm, FileForm, FrameForm, H264Form, MediaForm, SliceForm
from loadbench.media.made import Made
from loadbench.media.plan import ChunkPlan

__all__ = ["MediaError", "Progress", "default_cache", "prepare"]
NOTES: Final = "notes.json"
BATCH: Final = 1000  # clips that wait for a free core
Chunks = Iterator[tuple[int, int, bytes]]  # due_ns, track, payload


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
    also: MediaForm | None = None,
) -> dict[str, Path]:
    """Folder of each clip's `ChunkPlan` by clip id, encoded where the cache does not hold it yet.

    A medium in the form `also` goes beside the first, as the plan's track 1. A plan's duration is that of the first;
    `tail_silence_s` of silence follows it as further chunks. Raises MediaError with the problems of all clips.
    """
    problems: list[str] = []
    folders: dict[str, Path] = {}
    try:
        cache_folder.mkdir(parents=True, exist_ok=True)
        cache.sweep(cache_folder)
    except OSError as error:
        raise MediaError([f"{cache_folder}: the media cache cannot be used: {error.strerror}"]) from error
    hashes, total_s, done_s = cache.Hashes(cache_folder), _total_s(clips, form), 0.0
    forms = [form] if also is None else [form, also]

    def ready(clip: Clip) -> _Ready:
        try:
            return _prepared(clip, forms, cache_folder, hashes, tail_silence_s)
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


def _prepared(
    clip: Clip, forms: Sequence[MediaForm], cache_folder: Path, hashes: cache.Hashes, tail_silence_s: float
) -> _Ready:
    sources = [(_track(clip, form), form) for form in forms]
    keys = [cache.key(_content(track, hashes), track, form, tail_silence_s) for track, form in sources]
    folder = cache_folder / cache.joint(keys)
    if not cache.finished(folder):
        cache.fill(folder, lambda part: _encode(sources, tail_silence_s, part))
    notes = tuple(json.loads((folder / NOTES).read_text(encoding="utf-8")))
    return _Ready(folder, ChunkPlan.load(folder).duration_ns / 1e9, notes)


def _content(track: Track, hashes: cache.Hashes) -> str:
    content = hashes.of(track)
    if track.sha256 not in (None, content):
        raise MediaError([f"{track.path}: its sha256 is {content}, the manifest says {track.sha256}"])
    return content


def _encode(sources: Sequence[tuple[Track, MediaForm]], tail_silence_s: float, folder: Path) -> None:
    made = [Made() for _ in sources]
    first, *also = [encoded(track, form, tail_silence_s, own) for (track, form), own in zip(sources, made, strict=True)]
    chunks = _beside(first, also[0], made[0]) if also else first
    ChunkPlan.write(folder, chunks, lambda: made[0].duration_ns, len(sources))
    (folder / NOTES).write_text(json.dumps([note for own in made for note in own.notes]), encoding="utf-8")


def _beside(first: Chunks, also: Chunks, made: Made) -> Chunks:
    """Both media in the order of their due times, the second as track 1.

    None of the second leaves before the first chunk of the first, and none after its last: those two may carry marks.
    """
    waiting = next(also, None)
    first_ns: int | None = None
    for due_ns, track, data in first:
        while first_ns is not None and waiting is not None and waiting[0] < due_ns:
            yield max(first_ns, waiting[0]), 1, waiting[2]
            waiting = next(also, None)
        yield due_ns, track, data
        first_ns = due_ns if first_ns is None else first_ns
    if waiting is not None:
        made.notes.append(
            f"what the second medium has from {waiting[0] / 1e9:.3f} s on comes too late, and is left out"
        )


def encoded(track: Track, form: MediaForm, tail_silence_s: float, made: Made) -> Chunks:
    """The chunks of one track in a form, as they are encoded; `made` is filled in by the last. Raises MediaError."""
    match form:
        case AudioForm():
            return audio.chunks(track, form, tail_silence_s, made)
        case FrameForm():
            return video.chunks(track, form, made)
        case H264Form():
            return h264.chunks(track, form, made)
        case SliceForm():
            return slices.chunks(track, form, made)
        case FileForm():
            return whole_file.chunks(track, made)


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
