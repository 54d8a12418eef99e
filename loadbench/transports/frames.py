"""WebSocket messages to wire bytes: whole client frames, masked once, shared by all sessions.

RFC 6455 asks for a fresh mask for each frame, to protect boxes on the way from payload that an attacker chose. A load
tester owns its corpus: one random mask for each prepared frame costs nobody anything and spares the masking of every
chunk of every session. A shared part carries its key in its first four bytes; `joined` turns the key by the length of
what comes before, so that the part lies masked as it is wherever it lands.
"""

import struct
from collections.abc import Callable

import numpy as np

from loadbench.session.wire import Kind
from loadbench.transports.contract import Buffer

_FIN_AND_OPCODE = {"text": 0x81, "binary": 0x82}
_MASKED = 0x80
_SMALL = 512  # below, one big integer is quicker than an array


class FrameEncoder:
    """Messages as single masked frames. `random` gives the masks; a seeded source gives the same wire each time."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self._random = random

    def whole(self, kind: Kind, payload: Buffer, role: str = "media") -> bytes:  # noqa: ARG002
        """A complete frame. A WebSocket has no end of body: "end" is an error of whoever asks for it."""
        key = self._random(4)
        return b"".join((_header(kind, len(payload)), key, masked(payload, key)))

    def shared(self, payload: Buffer) -> bytes:
        """Four bytes of key, then the payload masked with it."""
        key = self._random(4)
        return key + masked(payload, key)

    def joined(self, kind: Kind, before: bytes, shared: Buffer, after: bytes) -> bytes:
        """A complete frame around a shared part, which is copied and not masked again."""
        key = turned(bytes(shared[:4]), -len(before))
        part = memoryview(shared)[4:]
        ahead = len(before) + len(part)
        header = _header(kind, ahead + len(after))
        return b"".join((header, key, masked(before, key), part, masked(after, turned(key, ahead))))


def turned(key: bytes, by: int) -> bytes:
    """The key as seen from `by` bytes further on (negative: further back)."""
    start = by % 4
    return key[start:] + key[:start]


def masked(payload: Buffer, key: bytes) -> bytes:
    """The payload XOR the repeated key; applied twice it is the payload again."""
    length = len(payload)
    if length < _SMALL:
        repeated = (key * (length // 4 + 1))[:length]
        return (int.from_bytes(payload, "little") ^ int.from_bytes(repeated, "little")).to_bytes(length, "little")
    words = length // 4
    body = np.frombuffer(payload, dtype=np.uint32, count=words) ^ np.frombuffer(key, dtype=np.uint32)
    return body.tobytes() + masked(memoryview(payload)[words * 4 :], key)


def _header(kind: Kind, length: int) -> bytes:
    if kind not in _FIN_AND_OPCODE:
        raise ValueError("a WebSocket message is text or binary; there is no end of body to send")
    first = _FIN_AND_OPCODE[kind]
    if length < 126:
        return struct.pack("!BB", first, _MASKED | length)
    if length < 65_536:
        return struct.pack("!BBH", first, _MASKED | 126, length)
    return struct.pack("!BBQ", first, _MASKED | 127, length)
