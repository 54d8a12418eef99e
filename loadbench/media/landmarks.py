"""A file of landmarks, JSON lines: what a detector found in each picture of a clip, each frame due at its own time.

    {"t": 0.04, "landmarks": [{"x": 0.41, "y": 0.62, "z": -0.01}], "left_hand": [], "right_hand": null}

`t` counts seconds from the first picture and rises from line to line; `timestamp_ms`, as MediaPipe calls it, may stand
in its place. All other members are the frame's own: of any name, and any JSON. Blank lines are passed over. A file that
begins with [ is one JSON list of such frames.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from loadbench.corpus.clip import Track
from loadbench.media.decode import TOLERANCE_S, Facts, MediaError
from loadbench.media.form import LandmarksForm
from loadbench.media.made import Made

BOM: Final = b"\xef\xbb\xbf"
PERIOD_S: Final = Fraction(1, 25)  # how long a frame is seen that has none before it
MOST_PROBLEMS: Final = 10  # of one file
TIMES: Final = {"t": Fraction(1), "timestamp_ms": Fraction(1, 1000)}  # where a frame's time stands, and its unit
_FRAME: Final = msgspec.json.Decoder()
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])


class Frame(NamedTuple):
    """One line: from and until when it holds, in seconds, and what is in it beside its time."""

    at_s: Fraction
    until_s: Fraction
    members: dict[str, Any]


def frames(path: Path) -> Iterator[Frame]:
    """All frames in their order; each lasts as long as the one before it did.

    Raises MediaError at the end of a file that is wrong somewhere, with the lines, and for one that holds no frame.
    """
    problems: list[str] = []
    before: Fraction | None = None
    for place, text in _rows(path):
        try:
            at_s, members = _read(text)
            if before is not None and at_s <= before:
                raise ValueError(f"its time, {float(at_s):g} s, does not come after {float(before):g} s before it")
        except ValueError as error:
            problems.append(f"{path}: {place}: {error}")
            if len(problems) == MOST_PROBLEMS:
                problems.append(f"{path}: there may be more; {MOST_PROBLEMS} are told")
                break
            continue
        yield Frame(at_s, at_s + (PERIOD_S if before is None else at_s - before), members)
        before = at_s
    if problems:
        raise MediaError(problems)
    if before is None:
        raise MediaError([f"{path}: holds no frames"])


def measure(path: Path) -> Facts:
    """How long a file of landmarks is, and how many frames a second it has. Raises MediaError."""
    first, count = Fraction(0), 0
    for count, frame in enumerate(frames(path), 1):
        first, last = (frame.at_s if count == 1 else first), frame
    return Facts(last.until_s, fps=(count - 1) / (last.at_s - first) if count > 1 else None)


def chunks(track: Track, form: LandmarksForm, made: Made) -> Iterator[tuple[int, int, bytes]]:
    """(due_ns, 0, JSON) of each frame of the track's segment, or of each batch of frames. Raises MediaError.

    A frame is due at its own time in the segment, a batch at that of its last frame.
    """
    start, stop, end = track.offset_s, None, Fraction(0)
    if track.duration_s is not None:
        stop = start + track.duration_s
    slot, taken, batch, due_ns = -1, 0, list[dict[str, Any]](), 0
    seen: set[str] = set()
    for frame in frames(track.path):
        if stop is not None and frame.at_s >= stop:
            end = stop
            break
        end = frame.until_s
        if frame.at_s < start:
            continue
        if form.fps:
            before, slot = slot, math.floor((frame.at_s - start) * form.fps)
            if slot == before:
                continue
        taken += 1
        seen |= frame.members.keys()
        due_ns = _ns(frame.at_s - start)
        batch.append({name: frame.members.get(name) for name in form.members or frame.members})
        if len(batch) == (form.batch or 1):
            yield due_ns, 0, _coded(batch, form)
            batch = []
    if batch:
        yield due_ns, 0, _coded(batch, form)
    made.duration_ns = _ns(_length(track, form, taken, seen, end, made.notes))


def _coded(batch: list[dict[str, Any]], form: LandmarksForm) -> bytes:
    return msgspec.json.encode(batch[0] if form.batch is None else batch)


def _length(track: Track, form: LandmarksForm, taken: int, seen: set[str], end: Fraction, notes: list[str]) -> Fraction:
    """The length of the segment, of which `taken` frames with `seen` members were sent. Raises MediaError."""
    start, path = track.offset_s, track.path
    if not taken:
        raise MediaError([f"{path}: no frame lies in the segment from {float(start)} s; it ends at {float(end):.3f} s"])
    if missing := [name for name in form.members if name not in seen]:
        there = ", ".join(sorted(seen)) or "nothing"
        raise MediaError(
            [f"{path}: no frame has {name}, which the profile sends; there is {there}" for name in missing]
        )
    if track.duration_s is None:
        return end - start
    if (short_s := start + track.duration_s - end) > TOLERANCE_S:
        notes.append(f"{path}: ends {float(short_s):.3f} s before the end of the declared segment")
    return min(end - start, track.duration_s)


def _ns(seconds: Fraction) -> int:
    """Nanoseconds, rounded up: never before the picture was taken."""
    return math.ceil(seconds * 1_000_000_000)


def _rows(path: Path) -> Iterator[tuple[str, bytes | msgspec.Raw]]:
    """Where each frame stands, and its JSON text."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(BOM) if number == 1 else line
                if number == 1 and text.lstrip().startswith(b"["):
                    listed = _LIST.decode(text + file.read())
                    yield from ((f"frame {at}", raw) for at, raw in enumerate(listed, 1))
                    return
                if text.strip():
                    yield f"line {number}", text
    except (msgspec.DecodeError, RecursionError) as error:
        raise MediaError([f"{path}: is no JSON list of frames: {error}"]) from error
    except OSError as error:
        raise MediaError([f"{path}: {error.strerror or error}"]) from error


def _read(text: bytes | msgspec.Raw) -> tuple[Fraction, dict[str, Any]]:
    """A frame's time in seconds and its members. Raises ValueError."""
    try:
        frame = _FRAME.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"is no JSON: {error}") from error
    if not isinstance(frame, dict):
        raise ValueError("must be a JSON object, one frame")
    name = next((name for name in TIMES if name in frame), None)
    if name is None:
        raise ValueError("t is missing: the time of the frame, in seconds")
    value = frame.pop(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} must be 0 or more, not {value!r}")
    return Fraction(repr(value)) * TIMES[name], frame
