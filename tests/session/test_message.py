"""Media messages: made whole or in parts, the same bytes."""

import array
import base64
import email.parser
import email.policy
import io
import json
import struct
import wave
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.session.message import FORM_TYPE, MediaMessage, media_messages, wav
from loadbench.session.profile import FormPart, MediaPart
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


# Samples as numbers.


@given(st.lists(st.integers(-32768, 32767), max_size=50))
def test_samples_as_numbers_read_back_to_the_same_samples(samples: list[int]) -> None:
    shape = {"frame": "text", "message": {"content": "{media.floats}", "finished": False}}
    whole = message(shape).whole(array.array("h", samples).tobytes(), 0, 2, 0)
    content = json.loads(whole)["content"]
    assert json.loads(whole)["finished"] is False
    assert [round(value * 32768) for value in content] == samples
    assert all(-1 <= value < 1 for value in content)


def test_float_samples_are_numbers_as_they_are() -> None:
    shape = {"frame": "text", "format": "f32le", "message": ["{media.floats}", "{media.ms}"]}
    assert message(shape).whole(struct.pack("<3f", 0.5, -1.0, 0.25), 0, 1, 7_000_000) == b"[[0.5,-1.0,0.25],7]"


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ({"a": "<{media.floats}>"}, "must be a value of its own"),
        ({"a": "{media.floats}", "b": "{media.base64}"}, "exactly once, not 2"),
        ({"a": 1}, "exactly once, not 0"),
    ],
)
def test_a_message_holds_its_media_once_and_numbers_only_as_a_value(template: Any, says: str) -> None:
    with pytest.raises(TemplateError, match=says):
        message({"frame": "text", "message": template})


# Uploads.


def uploaded(form: dict[str, Any], payload: bytes, **fields: str) -> dict[str, tuple[str | None, bytes]]:
    """The parts of an upload by name, with their file names, as the standard library reads them."""
    made = MediaMessage(
        MediaPart.model_validate({"kind": "audio", "pace": "whole"}), FormPart.model_validate({"file": "file", **form})
    )
    before, after = made.around(fields, 0, 1, 0)
    head = f"Content-Type: {FORM_TYPE}\r\n\r\n".encode()
    parsed = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + before + made.shared(payload) + after)
    assert not parsed.defects
    found = {}
    for part in parsed.iter_parts():
        name = part.get_param("name", header="content-disposition")
        found[str(name)] = part.get_filename(), part.get_payload(decode=True)
    return found


def test_an_upload_is_its_fields_and_a_wav_file() -> None:
    payload = bytes(range(200))
    form = {"filename": "a clip.wav", "fields": {"model": "{param.model}", "stream": "true"}}
    found = uploaded(form, payload, **{"param.model": "tiny, \u4eca\u5929"})
    assert found["model"] == (None, "tiny, \u4eca\u5929".encode())
    assert found["stream"] == (None, b"true")
    name, file = found["file"]
    assert name == "a clip.wav"
    with wave.open(io.BytesIO(file)) as sound:
        assert sound.getparams()[:4] == (1, 2, 16000, 100)
        assert sound.readframes(1000) == payload


def test_an_upload_without_fields_of_the_session_serves_them_all() -> None:
    part = MediaPart.model_validate({"kind": "audio", "pace": "whole"})
    assert MediaMessage(part, FormPart(fields={"stream": "true"})).independent
    assert MediaMessage(part, FormPart(fields={"model": "{param.model}"})).names == {"param.model"}


@pytest.mark.parametrize(
    ("form", "size", "tag", "bits"), [("s16le", 4, 1, 16), ("f32le", 8, 3, 32), ("alaw", 3, 6, 8), ("mulaw", 3, 7, 8)]
)
def test_a_wav_file_says_what_is_in_it_and_has_an_even_length(form: str, size: int, tag: int, bits: int) -> None:
    part = MediaPart.model_validate({"kind": "audio", "pace": "whole", "format": form, "rate_hz": 8000})
    file = wav(part, bytes(size))
    riff, length, kind, fmt, found_tag, channels, rate, per_s, align, found_bits = struct.unpack(
        "<4sI8sIHHIIHH", file[:36]
    )
    assert (riff, kind, fmt, found_tag, channels, rate) == (b"RIFF", b"WAVEfmt ", 16, tag, 1, 8000)
    assert (per_s, align, found_bits) == (8000 * bits // 8, bits // 8, bits)
    assert struct.unpack("<4sI", file[36:44]) == (b"data", size)
    assert length == len(file) - 8
    assert len(file) % 2 == 0
