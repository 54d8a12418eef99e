"""However the bytes of a service are cut, the same messages come out: at the link itself, without a socket."""

import asyncio
import base64
import hashlib
import re
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadbench.session.wire import Cause, Opened
from loadbench.transports.contract import Address
from loadbench.transports.dial import place
from loadbench.transports.websocket import WebSocketLink, payload_at
from tests.examples import examples

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Pipe:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, **_: Any) -> None:
        pass

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return True


class Ear:
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def opened(self, facts: Opened) -> None:
        self.heard.append(facts.status)

    def received(self, data: str | bytes, _: int) -> None:
        self.heard.append(data)

    def lost(self, cause: Cause) -> None:
        self.heard.append((cause.kind, cause.code, cause.reason))


def frame(opcode: int, payload: bytes, *, fin: bool = True, rsv: int = 0, masked: bool = False) -> bytes:
    size = len(payload)
    if size < 126:
        length = bytes([size])
    else:
        length = b"\x7e" + size.to_bytes(2, "big") if size < 65_536 else b"\x7f" + size.to_bytes(8, "big")
    if masked:
        length = bytes([length[0] | 0x80]) + length[1:] + bytes(4)
    return bytes([(0x80 if fin else 0) | rsv | opcode]) + length + payload


def hear(stream: bytes, cuts: list[int], most_bytes: int = 1_000_000) -> tuple[list[Any], bytes]:
    """What the listener and the service get of a handshake and `stream`, cut at these places."""

    async def play() -> tuple[list[Any], bytes]:
        address, ear, pipe = Address("ws://127.0.0.1:1/", message_bytes=most_bytes), Ear(), Pipe()
        link = WebSocketLink(place(address, "ws", "wss"), address, ear, time.monotonic_ns)  # type: ignore[arg-type]
        link.connection_made(pipe)  # type: ignore[arg-type]
        link.begin()
        key = re.search(rb"(?i)sec-websocket-key: (\S+)", pipe.written)
        assert key
        accept = base64.b64encode(hashlib.sha1(key[1] + GUID.encode()).digest())
        pipe.written = b""
        answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        whole = answer + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + stream
        places = sorted({0, *(cut % len(whole) for cut in cuts), len(whole)})
        for start, stop in pairwise(places):
            link.data_received(whole[start:stop])
        return ear.heard, pipe.written

    return asyncio.run(play())


frames = st.one_of(
    st.builds(frame, st.just(TEXT), st.text(max_size=200).map(str.encode)),
    st.builds(frame, st.just(BINARY), st.binary(max_size=300)),
    st.builds(frame, st.just(BINARY), st.integers(65_530, 70_000).map(bytes)),
    st.builds(frame, st.just(PING), st.binary(max_size=20)),
    st.builds(frame, st.just(PONG), st.binary(max_size=20)),
    st.text(max_size=40).map(
        lambda text: (
            frame(TEXT, text.encode()[:7], fin=False) + frame(PING, b"between") + frame(CONTINUATION, text.encode()[7:])
        )
    ),
    st.just(frame(TEXT, b"", fin=False) + frame(CONTINUATION, b"")),
    st.just(frame(CLOSE, b"\x03\xe8bye")),
)


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(frames, max_size=8), st.lists(st.integers(0, 100_000), max_size=12))
def test_any_cut_gives_the_same_messages_and_answers(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(sent)
    whole, pongs = hear(stream, [])
    assert (whole, _unmasked(pongs)) == (hear(stream, cuts)[0], _unmasked(hear(stream, cuts)[1]))
    assert whole[0] == 101


def test_byte_by_byte_is_no_different() -> None:
    stream = frame(TEXT, "红船".encode()) + frame(PING, b"?") + frame(BINARY, bytes(300)) + frame(CLOSE, b"\x03\xe9")
    assert hear(stream, list(range(1000)))[0] == [101, "红船", bytes(300), ("closed", 1001, "")]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (frame(TEXT, b"\xff"), "not UTF-8"),
        (frame(TEXT, b"a", rsv=0x40), "reserved bits"),
        (frame(TEXT, b"a", masked=True), "incorrect masking"),
        (frame(3, b"a"), "invalid opcode"),
        (frame(CONTINUATION, b"a"), "unexpected continuation"),
        (frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"), "expected a continuation"),
        (frame(BINARY, bytes(2000)), "over our limit of 1500 bytes"),
    ],
)
def test_what_no_service_may_send_is_refused_in_any_pieces_and_nothing_behind_it_is_heard(
    bad: bytes, says: str
) -> None:
    for cuts in ([], list(range(1000))):
        heard, _ = hear(frame(TEXT, b"before") + bad + frame(TEXT, b"behind"), cuts, most_bytes=1500)
        assert heard[:2] == [101, "before"]
        assert len(heard) == 3
        assert says in heard[2][2]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
@pytest.mark.parametrize("masked", [False, True])
def test_the_head_of_a_frame_tells_where_its_payload_lies_once_there_is_enough_of_it(size: int, masked: bool) -> None:
    data = b"xyz" + frame(BINARY, bytes(size), masked=masked)
    found = payload_at(data, 3)
    assert found == (len(data) - size, size)
    head = 2 if size < 126 else 4 if size < 65_536 else 10
    for cut in range(head):
        assert payload_at(data[: 3 + cut], 3) is None


def _unmasked(written: bytes) -> list[bytes]:
    """The payloads of our control frames, each with a mask of its own."""
    found = []
    while written:
        size, key = written[1] & 0x7F, written[2:6]
        found.append(bytes(byte ^ key[at % 4] for at, byte in enumerate(written[6 : 6 + size])))
        written = written[6 + size :]
    return found
