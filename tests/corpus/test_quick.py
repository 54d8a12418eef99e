"""The quick way and the full model say the same of every line, or the quick way says nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadbench.corpus import quick, sample
from loadbench.corpus.clip import Clip
from loadbench.corpus.sample import Sample

USUAL: dict[str, Any] = {
    "id": "a",
    "direction": "speech2text",
    "audio_filepath": "a.wav",
    "source_lang": "en",
    "target_lang": "en",
    "transcript": "good morning",
}
FOLDER = Path("/corpus")
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**20),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.lists(st.text(max_size=2), max_size=2),
    st.sampled_from(
        ["mix", "sign2spoken", "30000/1001", "29.97", "images%04d.png", "AB" * 32, "\x1c", "\u3000", "x\0"]
    ),
)


def of_model(line: bytes) -> Clip | None:
    try:
        found = Sample.model_validate_json(line)
    except ValueError:
        return None
    return None if list(sample.problems(found)) else found.clip(FOLDER, "m", 7)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([*Sample.model_fields, "my_key", "SNR"]), VALUES, max_size=6), st.booleans())
def test_what_the_quick_way_takes_the_model_takes_for_the_same(fields: dict[str, Any], whole: bool) -> None:
    line = json.dumps((USUAL if whole else {}) | fields).encode()
    found = quick.clip(line, FOLDER, "m", 7)
    assert found is None or found == of_model(line)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"offset": 1, "duration": 2.6, "fps": "30000/1001", "channel": "mix", "sample_rate": 8000, "sha256": "AB" * 32},
        {"audio_filepath": None, "frames_dir": "f", "frames_pattern": "images%04d.png", "fps": 25},
        {
            "audio_filepath": None,
            "video_filepath": "a.mp4",
            "direction": "sign2spoken",
            "gloss": ["A", "B"],
            "text": "a b",
        },
        {"speaker": "s", "signer": "t", "license": "CC0", "split": "dev", "tags": ["dev"], "alt_text": ["hello"]},
        {
            "activity_start": 0,
            "activity_end": 1.5,
            "activity_estimated": True,
            "text_unit": "char",
            "gloss_unit": "word",
        },
    ],
)
def test_usual_lines_go_the_quick_way(fields: dict[str, Any]) -> None:
    row = {name: value for name, value in (USUAL | fields).items() if value is not None}
    line = json.dumps(row).encode()
    found = quick.clip(line, FOLDER, "m", 7)
    assert found is not None
    assert found == of_model(line)


@pytest.mark.parametrize(
    "fields",
    [
        {"duration": None},
        {"my_key": 3},
        {"meta": {}},
        {"tracks": [{"kind": "audio", "filepath": "a.wav"}]},
        {"gloss_spans": [{"gloss": "A", "start": 0, "end": 1}]},
        {"video_filepath": "a.mp4"},
        {"transcript": " "},
        {"duration": "1/3"},
    ],
)
def test_what_is_less_usual_is_left_to_the_model(fields: dict[str, Any]) -> None:
    assert quick.clip(json.dumps(USUAL | fields).encode(), FOLDER, "m", 7) is None


@pytest.mark.parametrize("line", [b"", b"[]", b'{"id": "a"', b'{"id": "\xff"}', b"3", b"[" * 100_000])
def test_what_is_no_object_is_left_to_the_model(line: bytes) -> None:
    assert quick.clip(line, FOLDER, "m", 7) is None


@pytest.mark.parametrize(
    "name",
    [
        *("x.wav", "d/x.wav", "/abs/x.wav", "/x.wav", "../x.wav", "./x.wav", "d//x.wav", "d/../x", "..", "d/..", "."),
        *("d/.", "a/", "//x/y.wav", "///z/y", "ü/明.wav", "d/.hidden", "x y.wav"),
    ],
)
def test_a_path_is_the_one_that_joining_gives(name: str) -> None:
    folder = Path("/a/b c")
    assert str(quick._path(folder, name)) == str(folder / name)
