"""Every clip of a corpus made ready before a run: encoded once, found again the next time."""

import contextlib
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from loadbench.corpus.clip import Clip, Track
from loadbench.media import audio, cache, h264, landmarks, recording, slices, strip, video, whole_file
from loadbench.media.cache import default_cache
from loadbench.media.decode import MediaError
from loadbench.media.form import (
    TRACKS,
    AudioForm,
    Encoder,
    FileForm,
    FrameForm,
    H264Form,
    LandmarksForm,
    MediaForm,
    OwnForm,
    PluginForm,
    RecordingForm,
    SliceForm,
)
from loadbench.media.made import Made
from loadbench.media.plan import ChunkPlan

__all__ = ["MediaError", "Progress", "default_cache", "prepare"]
NOTES: Final = "notes.json"
BATCH: Final = 1000  # clips that wait for a free core
TELL_S: Final = 0.5  # between two words about clips that are not ready yet
NO_ENCODERS: Final[Mapping[PluginForm, Encoder]] = MappingProxyType({})
Chunks = Iterator[tuple[int, int, bytes]]  # due_ns, track, payload


@dataclass(frozen=True, slots=True)
class Progress:
    """How far encoding is: `done` of `total` clips, `clip` the last of them or the first that is still under way.

    `notes` say what is odd about its media. `done_s` are seconds of media, those of clips under way among them, so that
    a single recording of an hour moves too; it never falls. `total_s` is None where a length is not declared.
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
    encoders: Mapping[PluginForm, Encoder] = NO_ENCODERS,
) -> dict[str, Path]:
    """Folder of each clip's `ChunkPlan` by clip id, encoded where the cache does not hold it yet.

    A medium in the form `also` goes beside the first, as the plan's track 1. A plan's duration is that of the first;
    `tail_silence_s` of silence follows it as further chunks. `encoders` are the plug-ins of the forms that name one.
    Raises MediaError with the problems of all clips.
    """
    problems: list[str] = []
    folders: dict[str, Path] = {}
    try:
        cache_folder.mkdir(parents=True, exist_ok=True)
        cache.sweep(cache_folder)
    except OSError as error:
        raise MediaError([f"{cache_folder}: the media cache cannot be used: {error.strerror}"]) from error
    hashes, total_s = cache.Hashes(cache_folder), _total_s(clips, form)
    work = _Work(clips, [form] if also is None else [form, also], cache_folder, hashes, tail_silence_s, encoders)
    ended, ended_s, told_s = 0, 0.0, 0.0
    with contextlib.closing(work.results()) as results:
        for found in results:
            clip = clips[min(ended, len(clips) - 1)]
            if isinstance(found, _Ready):
                problems += found.problems
                if found.folder is not None:
                    folders[clip.id] = found.folder
                ended, ended_s = ended + 1, ended_s + found.length_s
                told_s = max(told_s, ended_s)
            else:
                told_s = max(told_s, ended_s + found)
            if progress is not None:
                notes = found.notes if isinstance(found, _Ready) else ()
                progress(Progress(ended, len(clips), told_s, total_s, clip.id, notes))
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


class _StoppedError(Exception):
    """Nobody waits for the media any more."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A folder to be filled, and the places of the clips that it is for; mostly one."""

    folder: Path
    sources: Sequence[tuple[Track, MediaForm]]
    places: list[int]

    @property
    def tracks(self) -> tuple[Track, ...]:
        """What is read."""
        return tuple(track for track, _ in self.sources)

    @property
    def files(self) -> Hashable:
        """What one decoding can serve."""
        return tuple((track.path, track.pattern, track.fps, track.kind) for track in self.tracks)


class _Work:
    """All clips of a corpus on the way to their folders, by as many threads as there are cores."""

    def __init__(
        self,
        clips: Sequence[Clip],
        forms: Sequence[MediaForm],
        cache_folder: Path,
        hashes: cache.Hashes,
        tail_silence_s: float,
        encoders: Mapping[PluginForm, Encoder],
    ) -> None:
        self._clips, self._forms = clips, forms
        self._cache, self._hashes = cache_folder, hashes
        self._tail_silence_s, self._encoders = tail_silence_s, encoders
        self._events: queue.SimpleQueue[tuple[int, _Ready] | BaseException] = queue.SimpleQueue()
        self._under_way_s: dict[Path, float] = {}
        self._stopped = threading.Event()

    def results(self) -> Generator[_Ready | float, None, None]:
        """Each clip's result, in the order of the clips; between them, now and then, the seconds that are under way.

        Closing it, as Ctrl-C does, drops what has not begun and ends what has.
        """
        pool = ThreadPoolExecutor(os.cpu_count())
        early: dict[int, _Ready] = {}
        try:
            jobs: dict[Path, _Job] = {}
            for place, looked in enumerate(self._looked(pool)):
                if isinstance(looked, _Ready):
                    early[place] = looked
                else:
                    jobs.setdefault(looked.folder, looked).places.append(place)
            for jobs_of_pass in strip.passes(jobs.values()):
                pool.submit(self._pass, jobs_of_pass)
            for place in range(len(self._clips)):
                yield from self._until(place, early)
                yield early.pop(place)
        finally:
            self._stopped.set()
            pool.shutdown(cancel_futures=True)

    def _looked(self, pool: ThreadPoolExecutor) -> Iterator[_Ready | _Job]:
        for start in range(0, len(self._clips), BATCH):
            yield from pool.map(self._look, self._clips[start : start + BATCH])

    def _look(self, clip: Clip) -> _Ready | _Job:
        """What the cache holds of a clip, or what is to be done."""
        try:
            sources = [(_track(clip, form), form) for form in self._forms]
            keys = [
                cache.key(_content(track, self._hashes), track, form, self._tail_silence_s) for track, form in sources
            ]
            folder = self._cache / cache.joint(keys)
            return _found(folder) if cache.finished(folder) else _Job(folder, sources, [])
        except (MediaError, OSError) as error:
            return _trouble(clip, error)

    def _until(self, place: int, early: dict[int, _Ready]) -> Iterator[float]:
        """Take what comes until a clip's result is there; twice a second, how far the others are."""
        told = time.monotonic()
        while place not in early:
            try:
                event = self._events.get(timeout=TELL_S)
            except queue.Empty:
                pass
            else:
                if isinstance(event, BaseException):
                    raise event
                early[event[0]] = event[1]
            if place not in early and time.monotonic() - told >= TELL_S:
                told = time.monotonic()
                yield sum(found.length_s for found in early.values()) + sum(list(self._under_way_s.values()))

    def _pass(self, jobs: Sequence[_Job]) -> None:
        """Fill the folders of jobs that read one decoding of their files."""
        try:
            strips = [_strip(track) for track in jobs[0].tracks]
            for job, after in zip(jobs, [*jobs[1:], None], strict=True):
                for at, source in enumerate(strips):
                    if source is not None:
                        source.hold_from(None if after is None else after.tracks[at].offset_s)
                self._fill(job, strips)
        except _StoppedError:
            pass
        except BaseException as fault:  # whoever waits for the results has to know
            self._events.put(fault)

    def _fill(self, job: _Job, strips: Sequence[strip.Strip[Any] | None]) -> None:
        def tell(done_s: float) -> None:
            if self._stopped.is_set():
                raise _StoppedError
            self._under_way_s[job.folder] = done_s

        try:
            tell(0.0)
            cache.fill(job.folder, lambda part: self._encode(job.sources, strips, part, tell))
            found = [_found(job.folder)] * len(job.places)
        except (MediaError, OSError) as error:
            found = [_trouble(self._clips[place], error) for place in job.places]
        self._under_way_s.pop(job.folder, None)
        for place, ready in zip(job.places, found, strict=True):
            self._events.put((place, ready))

    def _encode(
        self,
        sources: Sequence[tuple[Track, MediaForm]],
        strips: Sequence[strip.Strip[Any] | None],
        folder: Path,
        tell: Callable[[float], None],
    ) -> None:
        made = [Made(shared=shared) for shared in strips]
        first, *also = [self._chunks(track, form, own) for (track, form), own in zip(sources, made, strict=True)]
        if also:
            first = _beside(first, _later(also[0], sources[0][1]), made[0])
        ChunkPlan.write(folder, _told(first, tell), lambda: made[0].duration_ns, len(sources))
        (folder / NOTES).write_text(json.dumps([note for own in made for note in own.notes]), encoding="utf-8")

    def _chunks(self, track: Track, form: MediaForm, made: Made) -> Chunks:
        if isinstance(form, PluginForm):
            return _plugged(form, self._encoders[form], track, made)
        return encoded(track, form, self._tail_silence_s, made)


def _found(folder: Path) -> _Ready:
    notes = tuple(json.loads((folder / NOTES).read_text(encoding="utf-8")))
    return _Ready(folder, ChunkPlan.load(folder).duration_ns / 1e9, notes)


def _trouble(clip: Clip, error: MediaError | OSError) -> _Ready:
    return _Ready(problems=[f"{_place(clip)}{problem}" for problem in _sentences(error)])


def _strip(track: Track) -> strip.Strip[Any] | None:
    """The decoding that the segments of a file share; folders of frames and files of landmarks are read each time."""
    if track.pattern is not None or track.kind == "landmarks":
        return None
    return strip.sound(track) if track.kind == "audio" else strip.pictures(track)


def _content(track: Track, hashes: cache.Hashes) -> str:
    content = hashes.of(track)
    if track.sha256 not in (None, content):
        raise MediaError([f"{track.path}: its sha256 is {content}, the manifest says {track.sha256}"])
    return content


def _told(chunks: Chunks, tell: Callable[[float], None]) -> Chunks:
    for chunk in chunks:
        tell(chunk[0] / 1e9)
        yield chunk


def _later(chunks: Chunks, form: MediaForm) -> Chunks:
    """The second medium moved behind the silence that stands before the first."""
    sound = form.sound if isinstance(form, RecordingForm) else form
    lead_ns = round(sound.lead_in_s * 1e9) if isinstance(sound, AudioForm) else 0
    return ((due_ns + lead_ns, track, data) for due_ns, track, data in chunks)


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


def _plugged(form: PluginForm, encoder: Encoder, track: Track, made: Made) -> Chunks:
    """What a plug-in makes. MediaError for what it raises, and for what a plan cannot hold."""
    last_ns = 0
    try:
        for due_ns, data in encoder.chunks(track, made):
            if not isinstance(due_ns, int) or not isinstance(data, bytes) or due_ns < last_ns:
                what = f"a chunk ({due_ns!r}, {type(data).__name__}) behind {last_ns} is no (due_ns, bytes) that rises"
                raise TypeError(what)
            yield due_ns, 0, data
            last_ns = due_ns
        if not isinstance(made.duration_ns, int) or made.duration_ns < last_ns or not made.duration_ns:
            raise TypeError(f"duration_ns {made.duration_ns!r} ends before its last chunk, due at {last_ns}")
    except Exception as error:
        if isinstance(error, MediaError | OSError):
            raise
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise MediaError([f"{track.path}: the media encoder {form.name} failed: {told}"]) from error


def encoded(track: Track, form: OwnForm, tail_silence_s: float, made: Made) -> Chunks:
    """The chunks of one track in a form, as they are encoded; `made` is filled in by the last. Raises MediaError."""
    match form:
        case AudioForm():
            return audio.chunks(track, form, tail_silence_s, made)
        case RecordingForm():
            return recording.chunks(track, form, tail_silence_s, made)
        case FrameForm():
            return video.chunks(track, form, made)
        case H264Form():
            return h264.chunks(track, form, made)
        case SliceForm():
            return slices.chunks(track, form, made)
        case FileForm():
            return whole_file.chunks(track, made)
        case LandmarksForm():
            return landmarks.chunks(track, form, made)


def _track(clip: Clip, form: MediaForm) -> Track:
    """The clip's first track of the kind that the form needs."""
    kind = TRACKS[form.kind]
    for track in clip.tracks:
        if track.kind == kind:
            return track
    raise MediaError([f"has no {kind} track, which the profile sends"])


def _total_s(clips: Sequence[Clip], form: MediaForm) -> float | None:
    kind = TRACKS[form.kind]
    declared = [next((track.duration_s for track in clip.tracks if track.kind == kind), None) for clip in clips]
    sound = form.sound if isinstance(form, RecordingForm) else form
    silence_s = sound.lead_in_s + sound.tail_s if isinstance(sound, AudioForm) else 0.0
    known = [float(length) + silence_s for length in declared if length is not None]
    return sum(known) if len(known) == len(declared) else None


def _place(clip: Clip) -> str:
    return f"{clip.source}:{clip.line}: clip {clip.id}: " if clip.source else f"clip {clip.id}: "


def _sentences(error: MediaError | OSError) -> list[str]:
    if isinstance(error, MediaError):
        return error.problems
    return [f"{error.filename or 'the media cache'}: {error.strerror or error}"]
