"""What a client says, told apart by the profile: opening, media, end marks, keep-alive. The rest is a violation."""

import base64
import binascii
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from loadbench.session.landmarks import gathered, member
from loadbench.session.message import BASE64, FLOATS
from loadbench.session.profile import EndStep, Medium, Profile, SendPart
from loadbench.session.template import Hole, compile_json, compile_text, is_landmarks
from loadbench.simulator.branches import Branches

SENDS = {"send_json", "send_text", "send_binary", "send_base64"}
# How the first slice of a recorder's file begins, and where in it.
HEADS = {"webm": (0, b"\x1aE\xdf\xa3"), "ogg": (0, b"OggS"), "wav": (0, b"RIFF"), "fmp4": (4, b"ftyp")}
Frame = Literal["text", "binary", "body"]  # "body": a piece of an HTTP body, which has no frame type


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of a client. `ms` is the media time that it bore; `last`: nothing more is to come.

    `also` is media of the second kind, where the profile sends two.

    A violation is what the profile does not allow; the message is then taken as a real service would take it.
    """

    kind: Literal["open", "media", "also", "end", "other", "unknown"]
    payload: bytes = b""
    ms: float | None = None
    last: bool = False
    violation: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """One message that a profile sends: the frame it must come in, and what it must look like."""

    name: str
    frame: Literal["text", "binary"]
    fits: Callable[[bytes], bool]


class Grammar:
    """All that a client may say; made once for a profile.

    `opening` has the steps of `open` and `begin`, by their place in both together, a message or None where the service
    is to speak; `begins` says where in it each utterance begins. `optional` is what the client alone knows whether it
    will say; it may come at any time, and an end mark of that kind is not waited for. `gap_ns` is the time from chunk
    to chunk, 0 where the clips have their own.
    """

    def __init__(self, profile: Profile) -> None:
        part = profile.media
        branches = Branches(profile)
        steps = [(at, step, branches.takes(step)) for at, step in enumerate((*profile.open, *profile.begin))]
        talk = [(at, step, taken) for at, step, taken in steps if step.refuse is None and taken is not False]
        self.opening = [
            (at, None if step.wait else _shape("opening message", step))
            for at, step, taken in talk
            if step.wait or taken
        ]
        self.optional = [_shape("opening message", step) for _, step, taken in talk if not (step.wait or taken)]
        self.begins = sum(at < len(profile.open) for at, _ in self.opening)
        marks = [(step, branches.takes(step)) for step in _sends(profile)]
        self.endings = [(_shape("end mark", step), taken is True) for step, taken in marks if taken is not False]
        self.others = [_shape("farewell", step) for step in profile.end if step.model_fields_set & SENDS]
        self.others += [_shape("keep-alive", profile.keepalive)] if profile.keepalive else []
        given = [template for template in (part.message, part.first, part.last) if template is not None]
        self.media = [
            Wrapped(
                template,
                part.base64_prefix,
                last=template == part.last and part.last != part.message,
                sample=part.format,
                batched=part.batch is not None,
            )
            for template in given
        ]
        also = part.also
        self.binary: Literal["media", "also"] | None = (  # which medium a binary message is
            "media" if part.frame == "binary" else "also" if also is not None and also.frame == "binary" else None
        )
        if also is not None and also.frame == "text":
            batched = also.batch is not None
            self.media.append(
                Wrapped(also.message, also.base64_prefix, kind="also", sample=also.format, batched=batched)
            )
        self.container = part.container
        self.marked = bool(self.endings) or any(step.end_body for step in profile.end) or part.last is not None
        self.quiet_first = any(step.quiet for step in profile.end[: _at_done(profile)])
        self.gap_ns = _gap_ns(part)


class Wrapped:
    """A media message in JSON: what it must look like, and where its payload and its time stand."""

    def __init__(
        self,
        template: Any,
        prefix: str,
        *,
        last: bool = False,
        kind: Literal["media", "also"] = "media",
        sample: str = "s16le",
        batched: bool = False,
    ) -> None:
        self.kind, self.last = kind, last
        self._prefix = prefix
        self.fits = pattern(template)
        self._payload = _find(template, BASE64)
        self._floats = _find(template, FLOATS)
        self._sample = sample
        parts = compile_json(template).parts
        holes = [part.name for part in parts if isinstance(part, Hole) and is_landmarks(part.name)]
        self._landmarks = {member(name): _find(template, name) or [] for name in holes}
        self._batched = batched
        self._ms = _find(template, "media.ms")

    def read(self, message: Any) -> tuple[bytes, float | None]:
        """The payload, decoded, and the media time where there is one. Raises ValueError for what cannot be decoded."""
        if self._floats is not None:
            payload = _samples(_at(message, self._floats), self._sample)
        elif self._landmarks:
            values = {name: _at(message, way) for name, way in self._landmarks.items()}
            payload = gathered(values, batched=self._batched)
        else:
            text = _at(message, self._payload) if self._payload is not None else ""
            payload = base64.b64decode(str(text).removeprefix(self._prefix), validate=True)
        return payload, float(_at(message, self._ms)) if self._ms is not None else None


class Ear:
    """Follows one session through its opening, its media and its end."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._at = 0
        self._ended = 0
        self._begun = False

    def owed(self) -> int | None:
        """The opening step that is the service's turn now, and is done with this call; None: the client's."""
        steps = self._grammar.opening
        if self._at < len(steps) and steps[self._at][1] is None:
            self._at += 1
            return steps[self._at - 1][0]
        return None

    @property
    def opened(self) -> bool:
        """Whether the opening script is over."""
        return self._at >= len(self._grammar.opening)

    def again(self) -> None:
        """Another utterance on the same connection."""
        self._ended = 0
        self._begun = False
        self._at = self._grammar.begins

    def hear(self, frame: Frame, data: bytes) -> Heard:
        """What this message is."""
        expected = self._grammar.opening[self._at][1] if not self.opened else None
        if expected is not None and _right(expected, frame) and expected.fits(data):
            self._at += 1
            return Heard("open")
        if any(_right(shape, frame) and shape.fits(data) for shape in self._grammar.optional):
            return Heard("open")
        early = "" if self.opened else "before the opening was over"
        ending = self._ending(frame, data)
        if ending is not None:
            return ending
        media = self._media(frame, data)
        if media is not None:
            return _noted(media, early or self._headless(media))
        for shape in self._grammar.others:
            if shape.fits(data):
                return Heard("other", violation="" if _right(shape, frame) else f"the {shape.name} came as {frame}")
        return Heard("unknown", violation=f"unknown {frame} message {data[:80]!r}")

    def _headless(self, media: Heard) -> str:
        """What is wrong with the first slice of a recorder's file, without which nobody can read the others."""
        container = self._grammar.container
        if container not in HEADS or media.kind != "media" or self._begun:
            return ""
        self._begun = True
        at, head = HEADS[container]
        return "" if media.payload.startswith(head, at) else f"that does not begin as {container} does"

    def _ending(self, frame: Frame, data: bytes) -> Heard | None:
        for place, (shape, _) in enumerate(self._grammar.endings):
            if not shape.fits(data):
                continue
            if _right(shape, frame):
                self._ended = max(self._ended, place + 1)
                return Heard("end", last=not any(sure for _, sure in self._grammar.endings[self._ended :]))
            wrong = f"the end mark came as {frame} and must be {shape.frame}"
            taken = frame == "binary" and self._grammar.binary == "media"
            return Heard("media" if taken else "unknown", payload=data if taken else b"", violation=wrong)
        return None

    def _media(self, frame: Frame, data: bytes) -> Heard | None:
        if self._grammar.binary is not None and frame != "text":
            return Heard(self._grammar.binary, payload=data)
        message = _json(data) if frame != "binary" else None
        for wrapped in self._grammar.media:
            if message is not None and wrapped.fits(message):
                try:
                    payload, ms = wrapped.read(message)
                except (ValueError, binascii.Error) as error:
                    return Heard("unknown", violation=f"media that cannot be decoded: {error}")
                return Heard(wrapped.kind, payload=payload, ms=ms, last=wrapped.last)
        return None


def pattern(template: Any) -> Callable[[Any], bool]:
    """Whether a decoded message is one of `template`: constants must be equal, templated leaves may be anything."""
    if isinstance(template, dict):
        inside = {key: pattern(value) for key, value in template.items()}
        return lambda value: (
            isinstance(value, dict)
            and value.keys() == inside.keys()
            and all(fits(value[key]) for key, fits in inside.items())
        )
    if isinstance(template, list):
        items = [pattern(value) for value in template]
        return lambda value: (
            isinstance(value, list)
            and len(value) == len(items)
            and all(fits(at) for fits, at in zip(items, value, strict=True))
        )
    if template == f"{{{FLOATS}}}":
        return lambda value: isinstance(value, list)
    if isinstance(template, str) and is_landmarks(template.strip("{}")):
        return lambda _: True
    if isinstance(template, str):
        regex = _regex(template)
        return lambda value: isinstance(value, str | int | float) and regex.fullmatch(str(value)) is not None
    return lambda value: bool(value == template)


def _gap_ns(part: Medium) -> int:
    rate_ms = 1000 / part.fps if part.kind == "frames" and part.fps != "clip" else 0
    return 0 if part.pace == "whole" else round((part.slice_ms or part.chunk_ms or rate_ms) * 1_000_000)


def strangers(profile: Profile, query: Iterable[str]) -> list[str]:
    """Query keys that the profile does not know, in words."""
    known = {name for name, _ in profile.transport.query}
    known |= set(re.findall(r"[?&]([^=&#]+)=", profile.transport.url or ""))
    return [f"unknown query key {name}" for name in dict.fromkeys(query) if name not in known]


def _sends(profile: Profile) -> list[EndStep]:
    """The end marks: what is sent before the client waits for the end. What it sends after that is a farewell."""
    return [step for step in profile.end[: _at_done(profile)] if step.model_fields_set & SENDS]


def _at_done(profile: Profile) -> int:
    return next((at for at, step in enumerate(profile.end) if step.done), len(profile.end))


def _shape(name: str, step: SendPart) -> Shape:
    given = step.model_fields_set
    if "send_json" in given:
        fits = pattern(step.send_json)
        return Shape(name, "text", lambda data: (message := _json(data)) is not None and fits(message))
    if "send_text" in given:
        words = _regex(step.send_text or "")
        return Shape(name, "text", lambda data: words.fullmatch(data.decode("utf-8", "replace")) is not None)
    if "send_binary" in given:
        raw = _regex(step.send_binary or "")
        return Shape(name, "binary", lambda data: raw.fullmatch(data.decode("utf-8", "replace")) is not None)
    exact = base64.b64decode(step.send_base64 or "")
    return Shape(name, "binary", lambda data: data == exact)


def _right(shape: Shape, frame: Frame) -> bool:
    return frame in ("body", shape.frame)


def _noted(heard: Heard, violation: str) -> Heard:
    return Heard(heard.kind, heard.payload, heard.ms, heard.last, f"media {violation}") if violation else heard


def _regex(template: str) -> re.Pattern[str]:
    """A regular expression for all that a template can become."""
    parts = compile_text(template).parts
    return re.compile("".join(re.escape(part) if isinstance(part, str) else ".*" for part in parts), re.DOTALL)


def _samples(values: list[Any], sample: str) -> bytes:
    """Numbers between -1 and 1 as the samples that they were made of. Raises ValueError for other values."""
    try:
        if sample == "f32le":
            return struct.pack(f"<{len(values)}f", *values)
        return struct.pack(f"<{len(values)}h", *(round(value * 32768) for value in values))
    except (struct.error, TypeError) as error:
        raise ValueError(f"a list of something else than samples: {error}") from error


def _find(template: Any, name: str) -> list[str | int] | None:
    """The way to the leaf that holds a placeholder."""
    items: Iterable[tuple[str | int, Any]] = ()
    if isinstance(template, dict):
        items = template.items()
    elif isinstance(template, list):
        items = enumerate(template)
    elif isinstance(template, str) and f"{{{name}}}" in template:
        return []
    for key, value in items:
        way = _find(value, name)
        if way is not None:
            return [key, *way]
    return None


def _at(message: Any, way: list[str | int]) -> Any:
    for step in way:
        message = message[step]
    return message


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
