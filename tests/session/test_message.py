"""Media messages: made whole or in parts, the same bytes."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.session.message import MediaMessage, media_messages
from loadbench.session.profile import MediaPart
from loadbench.session.template import TemplateError

SHAPES: list[dict[str, Any]] = [
    {"frame": "binary"},
    {"frame": "text", "message": "{media.base64}"},
    {"frame": "text", "message": {"type": "append", "audio": "{media.base64}"}},
    {
        "frame": "text",
        "message": {"image": "{media.base64}", "t": "{media.ms}"},
        "base64_prefix": "data:image/jpeg;base64,",
    },
    {"frame": "text", "message": {"i": "{media.index}", "x": "<{media.base64}>", "n": "{media.count}"}},
    {
        "frame": "text",
        "first": {"common": {"app": 1}, "data": {"status": 0, "audio": "{media.base64}"}},
        "message": {"data": {"status": 1, "audio": "{media.base64}"}},
        "last": {"data": {"status": 2, "audio": "{media.base64}"}},
    },
    {"frame": "text", "message": {"audio": "{media.base64}"}, "last": {"audio": "{media.base64}", "commit": True}},
]


def message(shape: dict[str, Any]) -> MediaMessage:
    return MediaMessage(MediaPart.model_validate({"kind": "audio", "chunk_ms": 100, **shape}))


@given(st.sampled_from(SHAPES), st.binary(max_size=60), st.integers(0, 5), st.integers(1, 6), st.integers(0, 10**12))
def test_a_message_is_the_same_bytes_whole_and_in_parts(
    shape: dict[str, Any], payload: bytes, index: int, more: int, due_ns: int
) -> None:
    made, count = message(shape), index + more
    before, after = made.around({"session.id": "s"}, index, count, due_ns)
    whole = made.whole(payload, index, count, due_ns)
    assert before + made.shared(payload) + after == whole
    assert whole == made.whole(memoryview(payload), index, count, due_ns)
    if made.kind == "text":
        assert base64.b64encode(payload) in whole
        json.loads(whole)
    else:
        assert whole == payload


@pytest.mark.parametrize(
    ("shape", "index", "count", "wire"),
    [
        (SHAPES[2], 0, 3, b'{"type":"append","audio":"AQI="}'),
        (SHAPES[3], 0, 3, b'{"image":"data:image/jpeg;base64,AQI=","t":240}'),
        (SHAPES[4], 1, 3, b'{"i":1,"x":"<AQI=>","n":3}'),
        (SHAPES[5], 0, 3, b'{"common":{"app":1},"data":{"status":0,"audio":"AQI="}}'),
        (SHAPES[5], 1, 3, b'{"data":{"status":1,"audio":"AQI="}}'),
        (SHAPES[5], 2, 3, b'{"data":{"status":2,"audio":"AQI="}}'),
        (SHAPES[5], 0, 1, b'{"common":{"app":1},"data":{"status":0,"audio":"AQI="}}'),  # one chunk: it is the first
        (SHAPES[6], 0, 2, b'{"audio":"AQI="}'),
        (SHAPES[6], 0, 1, b'{"audio":"AQI=","commit":true}'),  # no first: the end flag must not get lost
    ],
)
def test_first_middle_and_last_chunks_are_wrapped_as_the_profile_says(
    shape: dict[str, Any], index: int, count: int, wire: bytes
) -> None:
    assert message(shape).whole(b"\x01\x02", index, count, 240_900_000) == wire


@pytest.mark.parametrize(
    ("inner", "names"),
    [
        ({}, set()),
        ({"t": "{media.ms}"}, set()),  # the same in all sessions
        ({"s": "{session.uuid}"}, {"session.uuid"}),
        ({"s": "{captured.id}", "t": "{time.unix}"}, {"captured.id", "time.unix"}),
    ],
)
def test_a_message_is_shared_by_all_sessions_unless_it_names_one(inner: dict[str, str], names: set[str]) -> None:
    made = message({"frame": "text", "message": {"a": "{media.base64}", **inner}})
    assert (made.independent, made.names) == (not names, names)


def test_a_session_s_own_field_stands_around_the_shared_part() -> None:
    made = message({"frame": "text", "message": {"s": "{session.id}", "a": "{media.base64}", "t": "{media.ms}"}})
    around = made.around({"session.id": 'q"'}, 0, 1, 1_000_000)
    assert around == (b'{"s":"q\\"","a":"', b'","t":1}')
    with pytest.raises(KeyError):
        made.whole(b"", 0, 1, 0)


def test_two_media_have_a_message_each_and_the_second_knows_no_first_or_last() -> None:
    also = {"kind": "frames", "frame": "text", "message": {"i": "{media.base64}", "n": "{media.index}"}}
    part = MediaPart.model_validate({"kind": "audio", "chunk_ms": 100, **SHAPES[5], "also": also})
    sound, picture = media_messages(part)
    assert sound.whole(b"\x01\x02", 0, 3, 0) == b'{"common":{"app":1},"data":{"status":0,"audio":"AQI="}}'
    assert [picture.whole(b"\x01\x02", number, 2, 0) for number in (0, 1)] == [
        b'{"i":"AQI=","n":0}',
        b'{"i":"AQI=","n":1}',
    ]


@pytest.mark.parametrize(
    "shape",
    [
        {"frame": "text"},
        {"frame": "text", "message": {"a": "none"}},
        {"frame": "text", "message": ["{media.base64}", "{media.base64}"]},
        {"frame": "text", "message": "{media.base64}", "last": {"end": True}},
    ],
)
def test_a_message_that_would_lose_or_double_the_payload_is_refused(shape: dict[str, Any]) -> None:
    with pytest.raises(TemplateError, match=r"media\.base64"):
        message(shape)
