import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, SERVER, Protocol

from loadbench.transports.frames import FrameEncoder, masked, turned

EDGES = [0, 1, 3, 4, 5, 124, 125, 126, 127, 511, 512, 513, 65_534, 65_535, 65_536, 65_537, 70_001]
sizes = st.one_of(st.sampled_from(EDGES), st.integers(0, 2_000))


def encoder(seed: int = 7) -> FrameEncoder:
    return FrameEncoder(random.Random(seed).randbytes)


def blob(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def as_a_server_reads(wire: bytes) -> Frame:
    """The one frame in `wire`, by the websockets library's own parser."""
    core = Protocol(SERVER, state=OPEN, max_size=None)
    core.receive_data(wire)
    assert core.parser_exc is None
    (only,) = core.events_received()
    assert isinstance(only, Frame)
    return only


@pytest.mark.parametrize("size", EDGES)
@pytest.mark.parametrize(("kind", "opcode"), [("text", Opcode.TEXT), ("binary", Opcode.BINARY)])
def test_a_whole_message_is_one_frame_that_a_server_reads_back(size, kind, opcode):
    frame = as_a_server_reads(encoder().whole(kind, blob(size)))
    assert (frame.opcode, bytes(frame.data), frame.fin) == (opcode, blob(size), True)


@given(before=sizes, middle=sizes, after=sizes, seed=st.integers(0, 1000))
def test_a_shared_part_keeps_its_bytes_wherever_it_lands(before, middle, after, seed):
    one = encoder(seed)
    shared = one.shared(blob(middle, 2))
    frame = as_a_server_reads(one.joined("text", blob(before, 1), shared, blob(after, 3)))
    assert bytes(frame.data) == blob(before, 1) + blob(middle, 2) + blob(after, 3)


@given(before=st.integers(0, 9), middle=sizes)
def test_a_shared_part_is_on_the_wire_as_it_was_prepared(before, middle):
    """That is the point of turning the key: no byte of the large part is touched again."""
    shared = encoder().shared(blob(middle))
    assert encoder().joined("binary", b"x" * before, shared, b"").endswith(shared[4:])


def test_a_shared_part_may_be_a_view_of_a_mapped_file():
    shared = memoryview(b"..." + encoder().shared(b"media"))[3:]
    assert bytes(as_a_server_reads(encoder().joined("text", b"<", shared, b">")).data) == b"<media>"


@given(size=sizes, key=st.binary(min_size=4, max_size=4))
def test_masking_twice_gives_the_payload_back(size, key):
    assert masked(masked(blob(size), key), key) == blob(size)


@given(size=st.integers(0, 2_000), cut=st.integers(0, 2_000), key=st.binary(min_size=4, max_size=4))
def test_a_turned_key_goes_on_where_the_first_part_ended(size, cut, key):
    head, tail = blob(size)[:cut], blob(size)[cut:]
    assert masked(head, key) + masked(tail, turned(key, len(head))) == masked(blob(size), key)


def test_each_frame_has_a_mask_of_its_own_and_a_seed_repeats_them():
    one = encoder(3)
    first, second = one.whole("binary", b"same"), one.whole("binary", b"same")
    assert first[2:6] != second[2:6]
    assert encoder(3).whole("binary", b"same") == first


def test_a_websocket_has_no_end_of_body():
    with pytest.raises(ValueError, match="no end of body"):
        encoder().whole("end", b"")
