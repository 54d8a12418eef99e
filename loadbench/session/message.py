"""A chunk of media as the service wants it: bare, inside a JSON text, or as a file in a multipart upload.

The large part of a message is the same for all sessions. `whole` makes a message once for all of them where no field
depends on the session; otherwise `shared` makes the large part once, and `around` what each session puts around it.
"""

import base64
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from loadbench.session.landmarks import spliced
from loadbench.session.profile import FormPart, MediaPart, Medium
from loadbench.session.template import (
    LANDMARKS,
    Hole,
    TemplateError,
    compile_json,
    compile_text,
    filled,
    is_landmarks,
    names_of,
)

BASE64: Final = "media.base64"
FLOATS: Final = "media.floats"
PAYLOADS: Final = (BASE64, FLOATS, LANDMARKS)
HELD: Final = f"{{{BASE64}}}, {{{FLOATS}}} or {{{LANDMARKS}}}"
OWN_FIELDS: Final = frozenset({*PAYLOADS, "media.ms", "media.index", "media.count"})
# Random once for all: a clip that holds it by chance will not be met.
BOUNDARY: Final = "loadbench-5b1f0c9d7ae84c3f96d2e870b41a3c55"
FORM_TYPE: Final = f"multipart/form-data; boundary={BOUNDARY}"
# WAVE format tags (RFC 2361) and bytes a sample.
WAVE: Final = {"s16le": (1, 2), "f32le": (3, 4), "alaw": (6, 1), "mulaw": (7, 1)}
_Parts = tuple[str | Hole, ...]
_Halves = tuple[_Parts, _Parts]


def media_kinds(part: MediaPart) -> tuple[str, ...]:
    """What kind of medium each track is."""
    return tuple(medium.kind for medium in (part, part.also) if medium is not None)


def media_messages(part: MediaPart, form: FormPart | None = None) -> "tuple[MediaMessage, ...]":
    """How the payloads of each track become messages: those of the first medium, and of the one beside it."""
    return (MediaMessage(part, form), *([] if part.also is None else [MediaMessage(part.also)]))


class MediaMessage:
    """How a payload becomes a message. `names` are the fields that it asks for beside its own {media.*}.

    The first chunk is wrapped by `first` where the profile has one, the last by `last`; a chunk that is both is the
    first. With `form` each chunk is the body of an upload. Raises TemplateError where a template does not hold its
    payload as `payload_of` wants it.
    """

    def __init__(self, part: Medium, form: FormPart | None = None) -> None:
        self.kind: Literal["text", "binary"] = part.frame
        self._encode: Callable[[bytes | memoryview], bytes] = bytes
        self._halves: dict[str, _Halves] = {}
        if form is not None:
            self._halves["message"] = _upload(form)
            self._encode = lambda payload: wav(part, payload)
        elif part.frame == "text":
            whole = {key: getattr(part, key, None) for key in ("message", "first", "last")}
            given = {key: value for key, value in whole.items() if value is not None}
            if "message" not in given:
                raise TemplateError(f"text frames need a message that holds {HELD}")
            self._halves = {key: _halves(key, value, part.base64_prefix) for key, value in given.items()}
            name = payload_of(given["message"])
            if name == LANDMARKS:
                self._encode = spliced(middle_of(given["message"]), batched=part.batch is not None)
            else:
                self._encode = _floats(part) if name == FLOATS else base64.b64encode
        halves = self._halves.values()
        self.names = frozenset[str]().union(*(names_of(before + after) for before, after in halves)) - OWN_FIELDS

    @property
    def independent(self) -> bool:
        """Whether one message serves all sessions."""
        return not self.names

    def whole(self, payload: bytes | memoryview, index: int, count: int, due_ns: int) -> bytes:
        """The message of chunk `index` of `count`, due at `due_ns` of media. KeyError where it is not independent."""
        before, after = self.around({}, index, count, due_ns)
        return b"".join((before, self.shared(payload), after))

    def shared(self, payload: bytes | memoryview) -> bytes:
        """The part that is the same in all sessions: the payload, as base64, numbers, landmarks, or as a WAV file."""
        return self._encode(payload)

    def around(self, fields: Mapping[str, str], index: int, count: int, due_ns: int) -> tuple[bytes, bytes]:
        """What stands before and after the shared part. KeyError names a field that `fields` does not have."""
        if not self._halves:
            return b"", b""
        before, after = self._template(index, count)
        own = {"media.ms": str(due_ns // 1_000_000), "media.index": str(index), "media.count": str(count)}
        values = {**fields, **own} if self.names else own
        return filled(before, values).encode(), filled(after, values).encode()

    def _template(self, index: int, count: int) -> _Halves:
        special = "first" if index == 0 else "last" if index == count - 1 else "message"
        if special not in self._halves and index == count - 1:
            special = "last"  # a single chunk, and no `first`: the end flag must not get lost
        return self._halves.get(special) or self._halves["message"]


def payload_of(template: Any) -> str:
    """The field by which a template holds the payload. Raises TemplateError where that is not one, and once.

    Landmarks may be there in parts, {media.landmarks.NAME}, with nothing but constants between the first and the last.
    """
    holes = [part for part in compile_json(template).parts if isinstance(part, Hole) and _is_payload(part.name)]
    parts = bool(holes) and all(is_landmarks(hole.name) for hole in holes)
    if len(holes) != 1 and not parts:
        raise TemplateError(f"must hold {HELD} exactly once, not {len(holes)} times")
    for hole in holes:
        if hole.quoted and hole.name != BASE64:
            kind = "a list" if hole.name == FLOATS else "JSON"
            raise TemplateError(
                f"{{{hole.name}}} is {kind} and must be a value of its own, with nothing else in the text"
            )
    if others := sorted(names_of(middle_of(template)) - {hole.name for hole in holes}):
        listed = ", ".join(f"{{{name}}}" for name in others)
        raise TemplateError(f"{listed} stands between fields of landmarks, which are one part: put it before or behind")
    return LANDMARKS if parts else holes[0].name


def middle_of(template: Any) -> _Parts:
    """What is filled once for all sessions: from the first field that is payload up to the last."""
    parts = compile_json(template).parts
    places = [at for at, part in enumerate(parts) if isinstance(part, Hole) and _is_payload(part.name)]
    return parts[places[0] : places[-1] + 1]


def _is_payload(name: str) -> bool:
    return name in PAYLOADS or is_landmarks(name)


def wav(part: Medium, payload: bytes | memoryview) -> bytes:
    """Mono sound as a WAV file: RIFF, `fmt ` and `data`; what is in it is padded to an even number of bytes."""
    (tag, width), size = WAVE[part.format], len(payload)
    pad = bytes(size % 2)
    form = struct.pack("<HHIIHH", tag, 1, part.rate_hz, part.rate_hz * width, width, 8 * width)
    head = struct.pack("<4sI8sI16s4sI", b"RIFF", 36 + size + len(pad), b"WAVEfmt ", 16, form, b"data", size)
    return b"".join((head, payload, pad))


def _floats(part: Medium) -> Callable[[bytes | memoryview], bytes]:
    """Samples as a JSON list, full scale 1. Python writes the shortest digits that read back to the same number."""
    code, full_scale = ("h", 32768.0) if part.format == "s16le" else ("f", 1.0)

    def encode(payload: bytes | memoryview) -> bytes:
        samples = struct.unpack(f"<{len(payload) // struct.calcsize(code)}{code}", payload)
        return json.dumps([sample / full_scale for sample in samples], separators=(",", ":")).encode()

    return encode


def _halves(key: str, value: Any, prefix: str) -> _Halves:
    try:
        payload_of(value)
    except TemplateError as error:
        raise TemplateError(f"{key}: {error}") from None
    parts = compile_json(value).parts
    place = next(at for at, part in enumerate(parts) if isinstance(part, Hole) and _is_payload(part.name))
    lead = compile_json(prefix).parts[0] if prefix else '""'
    return (*parts[:place], str(lead)[1:-1]), parts[place + len(middle_of(value)) :]


def _upload(form: FormPart) -> _Halves:
    """RFC 7578: a part for each field, then the file's; names are escaped as browsers do it."""
    before: list[str | Hole] = []
    for name, value in form.fields.items():
        before.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{_named(name)}"\r\n\r\n')
        before += [*compile_text(value).parts, "\r\n"]
    file = f'name="{_named(form.file)}"; filename="{_named(form.filename)}"'
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {file}\r\nContent-Type: audio/wav\r\n\r\n"
    return (*before, head), (f"\r\n--{BOUNDARY}--\r\n",)


def _named(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
