"""A chunk of media as the service wants it: bare, or as base64 inside a JSON text.

The large part of a message is the same for all sessions. `whole` makes a message once for all of them where no field
depends on the session; otherwise `shared` makes the large part once, and `around` what each session puts around it.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final, Literal

from loadbench.session.profile import MediaPart, Medium
from loadbench.session.template import Hole, TemplateError, compile_json, filled, names_of

PAYLOAD: Final = "media.base64"
OWN_FIELDS: Final = frozenset({PAYLOAD, "media.ms", "media.index", "media.count"})
_Parts = tuple[str | Hole, ...]


def media_kinds(part: MediaPart) -> tuple[str, ...]:
    """What kind of medium each track is."""
    return tuple(medium.kind for medium in (part, part.also) if medium is not None)


def media_messages(part: MediaPart) -> "tuple[MediaMessage, ...]":
    """How the payloads of each track become messages: those of the first medium, and of the one beside it."""
    return tuple(MediaMessage(medium) for medium in (part, part.also) if medium is not None)


class MediaMessage:
    """How a payload becomes a message. `names` are the fields that it asks for beside its own {media.*}.

    The first chunk is wrapped by `first` where the profile has one, the last by `last`; a chunk that is both is the
    first. Raises TemplateError where a template does not hold {media.base64} exactly once.
    """

    def __init__(self, part: Medium) -> None:
        self.kind: Literal["text", "binary"] = part.frame
        given = {key: value for key in ("message", "first", "last") if (value := getattr(part, key, None)) is not None}
        wrapped = part.frame == "text"
        self._halves = {key: _halves(key, value, part.base64_prefix) for key, value in given.items()} if wrapped else {}
        if wrapped and "message" not in self._halves:
            raise TemplateError(f"text frames need a message that holds {{{PAYLOAD}}}")
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
        """The part that is the same in all sessions: the payload, or its base64."""
        return bytes(payload) if self.kind == "binary" else base64.b64encode(payload)

    def around(self, fields: Mapping[str, str], index: int, count: int, due_ns: int) -> tuple[bytes, bytes]:
        """What stands before and after the shared part. KeyError names a field that `fields` does not have."""
        if self.kind == "binary":
            return b"", b""
        before, after = self._template(index, count)
        own = {"media.ms": str(due_ns // 1_000_000), "media.index": str(index), "media.count": str(count)}
        values = {**fields, **own} if self.names else own
        return filled(before, values).encode(), filled(after, values).encode()

    def _template(self, index: int, count: int) -> tuple[_Parts, _Parts]:
        special = "first" if index == 0 else "last" if index == count - 1 else "message"
        if special not in self._halves and index == count - 1:
            special = "last"  # a single chunk, and no `first`: the end flag must not get lost
        return self._halves.get(special) or self._halves["message"]


def _halves(key: str, value: Any, prefix: str) -> tuple[_Parts, _Parts]:
    parts = compile_json(value).parts
    places = [at for at, part in enumerate(parts) if isinstance(part, Hole) and part.name == PAYLOAD]
    if len(places) != 1:
        raise TemplateError(f"{key} must hold {{{PAYLOAD}}} exactly once, not {len(places)} times")
    before = parts[: places[0]]
    lead = compile_json(prefix).parts[0] if prefix else '""'
    return (*before, str(lead)[1:-1]), parts[places[0] + 1 :]
