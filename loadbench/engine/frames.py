"""Messages of `pipe` on a stream of bytes: msgpack, each behind its length, four bytes, big-endian."""

import struct
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")
_LENGTH: Final = struct.Struct(">I")
_ENCODER: Final = msgspec.msgpack.Encoder()


def framed(message: msgspec.Struct) -> bytes:
    """A message as it goes over the pipe."""
    body = _ENCODER.encode(message)
    return _LENGTH.pack(len(body)) + body


class Unframer(Generic[T]):
    """Cuts what arrives into messages, whatever the pieces. `kinds` is a union of tagged structs."""

    def __init__(self, kinds: Any) -> None:
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(kinds)
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[T]:
        """The messages that are complete now. Raises msgspec.ValidationError for what is none of the kinds."""
        held = self._held
        held += data
        at = 0
        while len(held) - at >= _LENGTH.size:
            end = at + _LENGTH.size + _LENGTH.unpack_from(held, at)[0]
            if len(held) < end:
                break
            message = self._decoder.decode(bytes(held[at + _LENGTH.size : end]))
            at = end
            yield message
        del held[:at]
