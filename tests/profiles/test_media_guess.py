import base64
import io
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from loadbench.corpus.clip import Track
from loadbench.media import prepare
from loadbench.media.form import H264Form, SliceForm
from loadbench.media.made import Made
from loadbench.profiles import media_guess
from loadbench.profiles.media_guess import Media, Piece
from tests.media import making

FIFTH = Fraction(1, 5)
TONE = (9000 * np.sin(np.arange(8000) * 0.17)).astype("<i2")


def paced(messages: list[Any], every_ms: float) -> list[Piece]:
    """What a client says at even distances: bytes as they are, else JSON."""
    return [
        Piece(100 + number * every_ms, not isinstance(each, bytes), each if isinstance(each, bytes) else encoded(each))
        for number, each in enumerate(messages)
    ]


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def chunks(samples: Any, size: int) -> list[bytes]:
    data = samples.tobytes()
    return [data[at : at + size] for at in range(0, len(data), size)]


def found(pieces: list[Piece], *hints: int) -> Media:
    media = media_guess.find(pieces, hints)
    assert media is not None
    return media


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_binary_audio_is_known_by_its_samples_its_size_and_its_pace() -> None:
    media = found([Piece(0, True, b'{"start": 1}'), *paced(chunks(TONE, 3200), 100)])
    assert media.indexes == [1, 2, 3, 4, 5]
    assert media.part == {"kind": "audio", "format": "s16le", "rate_hz": 16000, "chunk_ms": 100, "frame": "binary"}
    assert "worked out from the pace" in media.notes[0]


def test_a_rate_that_the_client_names_goes_before_the_pace() -> None:
    media = found(paced(chunks(TONE, 3200), 5), 8000)  # sent much faster than it was heard
    assert (media.part["rate_hz"], media.part["chunk_ms"], media.notes) == (8000, 200, [])


def test_a_rate_that_nobody_knows_is_a_guess_and_said_to_be_one() -> None:
    media = found(paced(chunks(TONE, 3200), 5))
    assert media.part["rate_hz"] == 16000
    assert "is a guess" in media.notes[0]


def test_float_samples_are_told_from_whole_numbers() -> None:
    media = found(paced(chunks((TONE / 32768).astype("<f4"), 6400), 100))
    assert (media.part["format"], media.part["rate_hz"]) == ("f32le", 16000)


def test_samples_behind_a_wav_header_are_a_container() -> None:
    first, *more = chunks(TONE, 3200)
    media = found(paced([b"RIFF".ljust(44, b"\0") + first, *more], 100), 16000)
    assert {"container": "wav", "format": "s16le", "rate_hz": 16000, "chunk_ms": 100}.items() <= media.part.items()


def test_what_looks_like_no_samples_is_said() -> None:
    noise = random.Random(7).randbytes(16_000)
    media = found(paced([noise[at : at + 3200] for at in range(0, 16_000, 3200)], 100))
    assert any("do not look like 16-bit samples" in note for note in media.notes)


def test_chunks_that_are_no_whole_milliseconds_are_given_in_bytes() -> None:
    media = found(paced(chunks(TONE, 1024 * 3), 96), 16000)
    assert media.part["chunk_ms"] == 96
    media = found(paced(chunks(TONE, 1000), 31.25), 16000)
    assert media.part["chunk_bytes"] == 1000


def test_pictures_are_known_by_their_signature_and_have_a_size() -> None:
    stream = io.BytesIO()
    Image.new("RGB", (64, 48)).save(stream, "JPEG")
    media = found(paced([stream.getvalue()] * 4, 40))
    assert {"kind": "frames", "width": 64, "height": 48, "frame": "binary"}.items() <= media.part.items()


@pytest.mark.parametrize(
    ("form", "every_ms", "part"),
    [
        (H264Form(), 40, {"kind": "frames", "codec": "h264"}),
        (SliceForm(container="webm", slice_s=FIFTH), 200, {"kind": "video", "container": "webm", "slice_ms": 200}),
        (
            SliceForm(container="fmp4", slice_s=FIFTH, header="apart"),
            200,
            {"kind": "video", "container": "fmp4", "slice_ms": 200, "header": "apart"},
        ),
    ],
)
def test_encoded_video_is_known_by_its_first_bytes_and_its_slices_by_their_pace(
    tmp_path: Path, form: H264Form | SliceForm, every_ms: float, part: dict[str, Any]
) -> None:
    track = Track("video", making.video(tmp_path / "a.mp4", range(0, 1000, 40)))
    media = found(paced([data for _, _, data in prepare.encoded(track, form, 0.0, Made())], every_ms))
    assert media.part == part | {"frame": "binary"}
    assert any("not known" in note for note in media.notes)


def test_base64_in_json_is_found_with_index_time_session_and_prefix() -> None:
    parts = chunks(TONE, 3200)
    session = "db9ca5b6-c362-46a5-a1f1-7f236a54185c"
    messages = [
        {"n": at, "t": at * 100, "id": session, "d": {"a": f"data:x;base64,{coded(part)}"}}
        for at, part in enumerate(parts)
    ]
    media = found(paced(messages, 100))
    assert media.part["message"] == {
        "n": "{media.index}",
        "t": "{media.ms}",
        "id": "{session.uuid}",
        "d": {"a": "{media.base64}"},
    }
    assert media.part["base64_prefix"] == "data:x;base64,"
    assert media.part["frame"] == "text"


def test_a_first_and_a_last_message_that_differ_have_templates_of_their_own() -> None:
    parts = chunks(TONE, 1600)
    marks = [0, *[1] * (len(parts) - 2), 2]
    messages: list[dict[str, Any]] = [
        {"data": {"status": mark, "audio": coded(part)}} for mark, part in zip(marks, parts, strict=True)
    ]
    messages[0]["common"] = {"app": "x"}
    media = found(paced(messages, 50))
    assert media.part["first"] == {"data": {"status": 0, "audio": "{media.base64}"}, "common": {"app": "x"}}
    assert media.part["message"] == {"data": {"status": 1, "audio": "{media.base64}"}}
    assert media.part["last"] == {"data": {"status": 2, "audio": "{media.base64}"}}


@pytest.mark.parametrize("messages", [[], [b"one"], [{"a": 1}] * 5, [{"a": "dGVzdA=="}] * 5])
def test_without_a_stream_there_is_none(messages: list[Any]) -> None:
    assert media_guess.find(paced(messages, 100), ()) is None


def test_a_text_with_braces_stays_a_text() -> None:
    assert media_guess.literal('{"eof" : 1} {name}') == '{"eof" : 1} {{name}}'
