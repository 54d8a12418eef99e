"""A corpus checked with its media: every file is decoded to its end and compared with what the corpus declares.

A file that many clips are segments of is decoded once, if they follow each other.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from loadbench.corpus import report as reports
from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry
from loadbench.corpus.read import ALL, NOTHING, Chosen
from loadbench.corpus.report import Measured, Report
from loadbench.media import activity as activities
from loadbench.media import ahead, landmarks
from loadbench.media.decode import TOLERANCE_S, Facts, MediaError, measure
from loadbench.media.frames import numbered
from loadbench.media.level import Heard, listen

FPS_TOLERANCE: Final = Fraction(1, 100)  # 29.97 written as 30 is no mistake
SILENT_DBFS: Final = -60.0
CLIPPED_SHARE: Final = 0.001  # of all samples; speech that only touches full scale stays far below
FILES: Final = 64  # whose facts are remembered
NOTES: Final = 1024  # that are not told again


def check(
    path: Path,
    asked: Asked = NOTHING,
    chosen: Chosen = ALL,
    *,
    activity: bool = False,
    whole: bool = False,
    seen: Callable[[str], None] | None = None,
) -> Report:
    """As `report.check`, with what the media say; measured lengths are counted, and activity estimated if asked."""
    return reports.check(path, asked, chosen, look=partial(_looked_at, active=activity), whole=whole, seen=seen)


def _looked_at(entries: Iterator[Entry], active: bool) -> Iterator[tuple[Entry, Measured | None]]:
    files, told = _Files(), dict[str, None]()

    def look(entry: Entry) -> _Look:
        if entry.clip is None or entry.problems:
            return _Look(entry, None)
        return _compared(entry, entry.clip, files, active)

    for _, found in ahead.in_order(look, entries):
        fresh = [note for note in found.notes if note not in told]  # once, though many clips are parts of one file
        told.update(dict.fromkeys(fresh))
        while len(told) > NOTES:
            del told[next(iter(told))]
        yield _warned(found.entry, fresh), found.measured


class _Look(NamedTuple):
    """What a look at a clip's media gave; `notes` are what is odd about whole files."""

    entry: Entry
    measured: Measured | None
    notes: Sequence[str] = ()


def _warned(entry: Entry, warnings: Sequence[str]) -> Entry:
    if not warnings or entry.clip is None:
        return entry
    told = (f"clip {entry.clip.id}: {warning}" for warning in warnings)
    return replace(entry, warnings=(*entry.warnings, *told))


class _Known(NamedTuple):
    facts: Facts
    heard: Heard | None
    notes: list[str]


class _Files:
    """What the last files said, so that segments of one file are one decoding."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Path, str, str | None, Fraction | None], Future[_Known]] = OrderedDict()

    def known(self, track: Track) -> _Known:
        """What decoding a track's file says. Raises MediaError, for each who asks."""
        key = (track.path, track.kind, track.pattern, track.fps)
        with self._lock:
            there = self._known.get(key)
            if there is None:
                mine: Future[_Known] = Future()
                self._known[key] = mine
                if len(self._known) > FILES:
                    self._known.popitem(last=False)
        if there is not None:
            return there.result()
        try:
            mine.set_result(_decoded(track))
        except BaseException as error:
            mine.set_exception(error)
            raise
        return mine.result()


def _decoded(track: Track) -> _Known:
    notes: list[str] = []
    if track.kind == "audio":
        heard = listen(track.path, notes)
        return _Known(heard.facts, heard, notes)
    return _Known(_measured(track, notes), None, notes)


def _measured(track: Track, notes: list[str]) -> Facts:
    if track.kind == "landmarks":
        return landmarks.measure(track.path)
    if track.pattern is None:
        return measure(track.path, track.kind, track.fps, notes)
    frames, fps = numbered(track, notes), track.fps or Fraction(25)
    return Facts((frames[-1][0] - frames[0][0] + 1) / fps, fps=fps)


def _compared(entry: Entry, clip: Clip, files: _Files, active: bool) -> _Look:
    """The entry with what its media say; the length is that of the longest segment."""
    problems: list[str] = []
    warnings: list[str] = []
    lengths: list[float | None] = []
    facts: list[Facts] = []
    notes: list[str] = []
    for track in clip.tracks:
        try:
            known = files.known(track)
        except MediaError as error:
            problems += error.problems
            lengths.append(None)
            continue
        notes += known.notes
        length_s = known.facts.duration_s - track.offset_s
        if track.duration_s is not None:
            length_s = min(length_s, track.duration_s)
        problems += _problems(clip, track, known.facts, float(length_s))
        warnings += _warnings(track, known.facts, float(length_s))
        if known.heard is not None and not problems:
            warnings += _sound_warnings(track, known.heard)
        lengths.append(float(length_s) if length_s > 0 else None)
        facts.append(known.facts)
    spoken_s = None
    if active and not problems:
        try:
            spoken_s = activities.missing_s(clip)
        except MediaError as error:
            problems += error.problems
    known_s = [length for length in lengths if length is not None]
    measured = Measured(
        max(known_s) if len(known_s) == len(lengths) else None,
        tuple(found.fps.limit_denominator(1001) for found in facts if found.fps),
        tuple(found.rate_hz for found in facts if found.rate_hz),
        spoken_s,
    )
    told = tuple(f"clip {clip.id}: {problem}" for problem in problems)
    return _Look(_warned(replace(entry, problems=(*entry.problems, *told)), warnings), measured, notes)


def _problems(clip: Clip, track: Track, facts: Facts, length_s: float) -> Iterator[str]:
    name = track.path.name
    if length_s <= 0:
        yield f"offset {float(track.offset_s)} lies beyond the end of {name} at {float(facts.duration_s):.3f} s"
    if track.kind == "audio" and track.sample_rate not in (None, facts.rate_hz):
        yield f"sample_rate says {track.sample_rate}, {name} has {facts.rate_hz} Hz"
    if isinstance(track.channel, int) and facts.channels is not None and track.channel >= facts.channels:
        yield f"channel {track.channel} of {name} does not exist; it has {facts.channels}"
    if track.channel is None and (facts.channels or 1) > 1:
        yield f'{name} has {facts.channels} channels: choose one with "channel": 0, or "channel": "mix"'
    ends = [span["end"] for span in (*clip.gloss_spans, *clip.words)]
    ends += [at for at in (clip.activity_start_s, clip.activity_end_s) if at is not None]
    if length_s > 0 and max(ends, default=0.0) > length_s + TOLERANCE_S:
        yield f"times up to {max(ends)} s lie outside {name}, whose segment has {length_s:.3f} s"


def _warnings(track: Track, facts: Facts, length_s: float) -> Iterator[str]:
    name, full_s = track.path.name, float(facts.duration_s)
    if length_s > 0 and track.duration_s is not None:
        missing_s = float(track.duration_s) - length_s
        if missing_s > TOLERANCE_S:
            yield f"{name} ends {missing_s:.3f} s before the end of the declared segment"
        elif not track.offset_s and full_s - length_s > TOLERANCE_S:
            yield f"only the first {length_s:g} s of the {full_s:.3f} s of {name} are streamed"
    if track.fps and facts.fps and abs(track.fps / facts.fps - 1) > FPS_TOLERANCE:
        yield f"fps says {float(track.fps):g}, {name} has {float(facts.fps):.3f}: its own times are kept"


def _sound_warnings(track: Track, heard: Heard) -> Iterator[str]:
    loudest, share = heard.loudest_dbfs(track), heard.full_scale_share(track)
    if loudest < SILENT_DBFS:
        level = f"nowhere louder than {loudest:.0f} dBFS" if loudest > float("-inf") else "all its samples are 0"
        yield f"{track.path.name} is silent: {level}"
    if share > CLIPPED_SHARE:
        yield f"{share:.1%} of the samples of {track.path.name} are at full scale: it was cut off at the top"
