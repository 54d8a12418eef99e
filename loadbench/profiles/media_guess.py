"""Which of a client's messages are media, and what media: by size, regularity, signatures and the values of samples."""

import base64
import binascii
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from PIL import Image, UnidentifiedImageError

from loadbench.profiles import shape
from loadbench.profiles.shape import Path

LEAST: Final = 3  # so many messages alike are a stream
LEAST_BYTES: Final = 64  # of a payload inside JSON: below it a text may be base64 by chance
JPEG: Final = b"\xff\xd8\xff"
RIFF: Final = b"RIFF"
WEBM: Final = bytes.fromhex("1a45dfa3")  # EBML, RFC 8794
CLUSTER: Final = bytes.fromhex("1f43b675")  # which holds the pictures, RFC 9559; in MP4 a moof stands before them
FTYP: Final = b"ftyp"  # behind the size of an MP4's first box
ACCESS_UNIT: Final = re.compile(rb"\x00{2,3}\x01[\x07\x09\x27\x47\x67]")  # Annex B: a parameter set, or a delimiter
RATES: Final = (8000, 16000, 22050, 24000, 44100, 48000)
NEAR: Final = 0.15  # of a rate worked out from the pace
MOST_BYTES: Final = 1_000_000  # that are looked at
LOUDEST: Final = 1.5  # of float samples, which are nominally within 1
FAINTEST: Final = 1e-7
ROUGH: Final = 1.2  # neighbouring samples that differ by more than their size are no linear samples


class Piece(NamedTuple):
    """One message of the client, or a piece of its body. `at_ms` from the connection's beginning."""

    at_ms: float
    is_text: bool
    data: bytes


@dataclass
class Media:
    """The media among the client's messages: which they are, the profile's `media` section, and what was guessed."""

    indexes: list[int]
    part: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def find(pieces: Sequence[Piece], hints: Sequence[int]) -> Media | None:
    """The media; None where no stream is to be seen. `hints` are rates that the client named elsewhere."""
    binary = [number for number, piece in enumerate(pieces) if not piece.is_text and piece.data]
    if len(binary) >= LEAST:
        return _described(pieces, binary, [pieces[number].data for number in binary], hints, {"frame": "binary"}, [])
    return _wrapped(pieces, hints)


def _wrapped(pieces: Sequence[Piece], hints: Sequence[int]) -> Media | None:
    """Payloads as base64 in JSON: the leaf that is one in most messages."""
    decoded = {number: _json(piece.data) for number, piece in enumerate(pieces) if piece.is_text}
    found: dict[Path, list[int]] = {}
    for number, message in decoded.items():
        for path, value in shape.leaves(message):
            if isinstance(value, str) and len(payload(value)[1]) >= LEAST_BYTES:
                found.setdefault(path, []).append(number)
    if not found:
        return None
    path = max(found, key=lambda each: len(found[each]))
    if len(found[path]) < LEAST:
        return None
    indexes = found[path]
    messages = [decoded[number] for number in indexes]
    prefix = payload(shape.at(messages[0], path))[0]
    payloads = [payload(shape.at(message, path))[1] for message in messages]
    times = [pieces[number].at_ms for number in indexes]
    part, notes = _messages(messages, path, times)
    if prefix:
        part["base64_prefix"] = prefix
    return _described(pieces, indexes, payloads, hints, part, notes)


def payload(value: str) -> tuple[str, bytes]:
    """A prefix such as that of a data URL, and the bytes behind it; none where it is no base64."""
    prefix = found[0] if (found := re.match(r"data:[^,]*;base64,", value)) else ""
    try:
        return prefix, base64.b64decode(value[len(prefix) :], validate=True)
    except (binascii.Error, ValueError):
        return "", b""


# ---- the wrapping


def _messages(messages: list[Any], path: Path, times: list[float]) -> tuple[dict[str, Any], list[str]]:
    """`message`, with `first` and `last` where these differ in what the others have in common."""
    notes: list[str] = []
    middle = messages[1:-1] if len(messages) > LEAST else messages
    usual = _template(messages, middle, path, times, notes)
    part: dict[str, Any] = {"frame": "text", "message": usual}
    for name, message in (("first", messages[0]), ("last", messages[-1])):
        own = _template(messages, [message], path, times, [])
        varying = {leaf for leaf, value in shape.leaves(usual) if isinstance(value, str) and "{" in value}
        same = dict(shape.leaves(usual)).keys() == dict(shape.leaves(own)).keys()
        differs = [leaf for leaf, value in shape.leaves(own) if leaf not in varying and shape.at(usual, leaf) != value]
        constant = [leaf for leaf in differs if len({repr(shape.at(each, leaf)) for each in middle}) == 1]
        if (not same or constant) and len(messages) > LEAST:
            for leaf in varying:
                if shape.at(own, leaf) is not None:
                    own = shape.replaced(own, leaf, shape.at(usual, leaf))
            part[name] = own
    return part, notes


def _template(messages: list[Any], alike: list[Any], path: Path, times: list[float], notes: list[str]) -> Any:
    """The first of `alike` as a template, each leaf replaced that is known to be something."""
    made = shape.replaced(alike[0], path, "{media.base64}")
    for leaf, value in shape.leaves(alike[0]):
        if leaf == path:
            continue
        values = [shape.at(message, leaf) for message in messages]
        found = _field(values, times)
        if found is not None:
            made = shape.replaced(made, leaf, found)
        elif len({repr(shape.at(message, leaf)) for message in alike}) > 1:
            notes.append(
                f"{shape.selector(leaf)} changes from message to message, and nobody knows how: kept as {value!r}"
            )
        elif isinstance(value, str):
            made = shape.replaced(made, leaf, literal(value))
    return made


def literal(text: str) -> str:
    """A text that is sent as it is: `{name}` in it is no field."""
    if shape.UUID.fullmatch(text):
        return "{session.uuid}"
    return re.sub(r"\{([A-Za-z_]\w*(?:\.[\w-]+)*)\}", r"{{\1}}", text)


def _field(values: list[Any], times: list[float]) -> str | None:
    """What a leaf is that changes in step with the media."""
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return None
    steps = {after - before for before, after in itertools.pairwise(values)}
    if values[0] == 0 and steps == {1}:
        return "{media.index}"
    span_ms = times[-1] - times[0]
    if span_ms > 0 and 0 <= values[0] < 1e9 and abs((values[-1] - values[0]) / span_ms - 1) < NEAR:
        return "{media.ms}"
    return None


# ---- the payload


def _described(
    pieces: Sequence[Piece],
    indexes: list[int],
    payloads: list[bytes],
    hints: Sequence[int],
    part: dict[str, Any],
    notes: list[str],
) -> Media:
    if payloads[0].startswith(JPEG):
        known: dict[str, Any] = {"kind": "frames", "codec": "jpeg", "quality": 85}
        try:
            with Image.open(io.BytesIO(payloads[0])) as picture:
                known |= {"width": picture.width, "height": picture.height}
        except (UnidentifiedImageError, OSError):
            notes.append("the size of the pictures is not known")
        notes.append("the quality of the pictures is not known: 85")
        return Media(indexes, known | part, notes)
    if ACCESS_UNIT.match(payloads[0]):
        notes.append("the size, the rate and the keyframes of the pictures are not known: usual ones")
        return Media(indexes, {"kind": "frames", "codec": "h264"} | part, notes)
    if container := "webm" if payloads[0].startswith(WEBM) else "fmp4" if payloads[0][4:8] == FTYP else "":
        gaps = [pieces[after].at_ms - pieces[before].at_ms for before, after in itertools.pairwise(indexes)]
        notes.append("the size and the rate of the pictures are not known: usual ones; there may be sound with them")
        sliced = {"kind": "video", "container": container, "slice_ms": max(1, round(float(np.median(gaps))))}
        head = {} if any(mark in payloads[0] for mark in (CLUSTER, b"moof")) else {"header": "apart"}
        return Media(indexes, sliced | head | part, notes)
    kind, sample_bytes = _samples(payloads, notes)
    size = Counter(map(len, payloads)).most_common(1)[0][0]
    span_s = (pieces[indexes[-1]].at_ms - pieces[indexes[0]].at_ms) / 1000
    rate = _rate(sum(map(len, payloads[1:])) / sample_bytes, span_s, hints, notes)
    chunk_ms = size / sample_bytes / rate * 1000
    length = {"chunk_ms": round(chunk_ms)} if chunk_ms == round(chunk_ms) else {"chunk_bytes": size}
    headed = {"container": "wav"} if payloads[0].startswith(RIFF) else {}
    return Media(indexes, {"kind": "audio", "format": kind, "rate_hz": rate} | headed | length | part, notes)


def _samples(payloads: list[bytes], notes: list[str]) -> tuple[str, int]:
    """The format by what the values are like."""
    data = b"".join(payloads)[:MOST_BYTES]
    if data.startswith(RIFF):
        notes.append("the media begins with a WAV header: the samples behind it are in the container wav")
        data = data[44:]
    if all(len(each) % 4 == 0 for each in payloads):
        values = np.frombuffer(data[: len(data) // 4 * 4], "<f4")
        sound = values[values != 0]
        plausible = np.isfinite(sound) & (np.abs(sound) <= LOUDEST) & (np.abs(sound) >= FAINTEST)
        if len(sound) and float(plausible.mean()) > 0.98:
            return "f32le", 4
    linear = np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(float)
    size = float(np.abs(linear).mean()) if len(linear) else 0.0
    if size and float(np.abs(np.diff(linear)).mean()) > ROUGH * size:
        notes.append("format: these do not look like 16-bit samples; perhaps mulaw, alaw, or compressed")
    return "s16le", 2


def _rate(samples: float, span_s: float, hints: Sequence[int], notes: list[str]) -> int:
    if hints:
        return hints[0]
    paced = samples / span_s if span_s > 0 else 0.0
    near = min(RATES, key=lambda rate: abs(rate - paced))
    if abs(near - paced) <= NEAR * near:
        notes.append(f"rate_hz: nobody said it; worked out from the pace, {paced:.0f} samples a second")
        return near
    notes.append("rate_hz: nobody said it, and the media did not come in real time: 16000 is a guess")
    return 16_000


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None
