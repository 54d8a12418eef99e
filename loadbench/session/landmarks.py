"""Landmarks in messages: a frame, or members of it, as JSON inside a larger JSON text."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from loadbench.session.template import LANDMARKS, Hole, compile_json, is_landmarks

_FRAME: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FRAMES: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_NULL: Final = msgspec.Raw(b"null")


def member(name: str) -> str:
    """The member that a field of landmarks names; "" for the whole frame."""
    return name.removeprefix(LANDMARKS).removeprefix(".")


def members(message: Any) -> tuple[str, ...]:
    """The members that a message asks for, in its order; none where it asks for whole frames."""
    holes = [part.name for part in compile_json(message).parts if isinstance(part, Hole) and is_landmarks(part.name)]
    return () if LANDMARKS in holes else tuple(dict.fromkeys(map(member, holes)))


def spliced(middle: tuple[str | Hole, ...], *, batched: bool) -> Callable[[bytes | memoryview], bytes]:
    """What makes of a payload, a frame or with `batched` a list of frames, the part of a message that `middle` is."""
    steps = [part.encode() if isinstance(part, str) else member(part.name) for part in middle]
    if steps == [""]:
        return bytes

    def encode(payload: bytes | memoryview) -> bytes:
        frames = _FRAMES.decode(payload) if batched else [_FRAME.decode(payload)]
        parts: list[Any] = []
        for step in steps:
            if isinstance(step, bytes):
                parts.append(step)
            elif not step:
                parts.append(payload)
            else:
                values = b",".join([frame.get(step, _NULL) for frame in frames])
                parts.append(b"[%b]" % values if batched else values)
        return b"".join(parts)

    return encode


def gathered(values: dict[str, Any], *, batched: bool) -> bytes:
    """The payload again, from what a message held by member. Raises ValueError where the lists of a batch differ."""
    if "" in values:
        return msgspec.json.encode(values[""])
    if not batched:
        return msgspec.json.encode(values)
    if not all(isinstance(value, list) for value in values.values()):
        raise ValueError("a batch of landmarks that is no list")
    return msgspec.json.encode([dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)])
