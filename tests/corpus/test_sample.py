"""What a line of a manifest may say."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus import sample
from loadbench.corpus.sample import Sample

USUAL: dict[str, Any] = {
    "id": "a",
    "direction": "spoken2sign",
    "audio_filepath": "a.wav",
    "source_lang": "zh",
    "target_lang": "csl",
    "transcript": "明天学校放假。",
    "gloss": ["明天", "学校", "休息"],
}


def of(**fields: Any) -> Sample:
    row = {key: value for key, value in (USUAL | fields).items() if value is not None}
    return Sample.model_validate(row)


FRAMES = {"audio_filepath": None, "frames_dir": "frames", "frames_pattern": "%d.png", "fps": 25}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"audio_filepath": None}, "names no medium: give one of"),
        (
            {"audio_filepath": None, "tracks": [{"kind": "audio", "filepath": "a.wav"}], "landmarks_filepath": "a.wav"},
            "landmarks_filepath: beside tracks, landmarks are one of them",
        ),
        ({"video_filepath": "a.mp4"}, "has video_filepath and audio_filepath: give one of"),
        (FRAMES | {"frames_pattern": None}, "frames_pattern is missing"),
        (FRAMES | {"frames_pattern": "a/%d.png"}, "must hold one number, as in images%04d.png, not 'a/%d.png'"),
        (FRAMES | {"frames_pattern": "%d-%d.png"}, "must hold one number"),
        (FRAMES | {"sha256": "0" * 64}, "sha256 is that of a media file"),
        ({"audio_filepath": None, "tracks": [{"kind": "audio"}]}, "tracks[0].filepath: give either"),
        (
            {"audio_filepath": None, "tracks": [FRAMES | {"kind": "audio", "audio_filepath": None}]},
            "tracks[0].frames_dir: frames are video",
        ),
    ],
)
def test_each_problem_is_found(fields: dict[str, Any], said: str) -> None:
    found = list(sample.problems(of(**fields)))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        FRAMES,
        {"audio_filepath": None, "tracks": [{"kind": "audio", "filepath": "a.wav"}]},
    ],
)
def test_a_good_line_has_none(fields: dict[str, Any]) -> None:
    assert list(sample.problems(of(**fields))) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("activty_end", ["activty_end is no field of the manifest and is only passed through; meant activity_end?"]),
        ("snr_db", []),
        ("license", []),
    ],
)
def test_a_key_that_is_probably_a_slip_is_told(name: str, said: list[str]) -> None:
    assert list(sample.misnamed([name])) == said


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", 17),  # ids are strings: 017 and 17 are two
        ("id", ""),
        ("direction", "sign2sign"),
        ("gloss", []),
        ("gloss", ["好", " "]),
        ("gloss", "好"),
        ("alt_gloss", [[]]),
        ("tracks", []),
        ("fps", 0),
        ("fps", "25/0"),
        ("fps", True),
        ("fps", float("inf")),
        ("offset", "1"),
        ("duration", float("nan")),
        ("channel", -1),
        ("channel", True),
        ("channel", "left"),
        ("sample_rate", 0),
        ("sha256", "abc"),
        ("activity_start", float("inf")),
        ("gloss_spans", [{"gloss": "好", "start": 0}]),
    ],
)
def test_values_of_the_wrong_kind_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        of(**{field: value})


@pytest.mark.parametrize(
    ("written", "rate"),
    [(25, Fraction(25)), (29.97, Fraction(2997, 100)), ("30000/1001", Fraction(30_000, 1001)), ("50", Fraction(50))],
)
def test_rates_and_seconds_are_exact(written: Any, rate: Fraction) -> None:
    assert of(fps=written, offset=16.08).fps == rate
    assert of(offset=16.08).offset == Fraction("16.08")


def test_the_speaker_goes_before_the_signer_who_is_kept(tmp_path: Path) -> None:
    clip = of(speaker="S1", signer="P3").clip(tmp_path, "m.jsonl", 1)
    assert (clip.speaker, clip.extra) == ("S1", {"signer": "P3"})


def test_the_schema_names_every_field() -> None:
    schema = Sample.model_json_schema()
    assert schema["required"] == ["id", "direction", "source_lang", "target_lang"]
    assert schema["properties"]["fps"]["anyOf"][0]["type"] == ["number", "string"]


def test_landmarks_stand_beside_what_they_are_of_or_alone(tmp_path: Path) -> None:
    folder = tmp_path
    both = FRAMES | {"landmarks_filepath": "a.jsonl", "offset": 0.5, "duration": 2.0, "direction": "sign2spoken"}
    line = of(**both)
    assert list(sample.problems(line)) == []
    pictures, found = line.clip(folder, "m.jsonl", 1).tracks
    assert (pictures.kind, pictures.fps, found.kind, found.path, found.fps) == (
        "video", 25, "landmarks", folder / "a.jsonl", None
    )  # fmt: skip
    assert (found.offset_s, found.duration_s) == (pictures.offset_s, pictures.duration_s) == (Fraction(1, 2), 2)
    digest = {"sha256": "AB" * 32}
    assert [track.sha256 for track in of(landmarks_filepath="a.jsonl", **digest).clip(folder, "", 1).tracks] == [
        "ab" * 32, None
    ]  # fmt: skip
    alone = of(audio_filepath=None, landmarks_filepath="a.jsonl", direction="sign2spoken", **digest)
    assert list(sample.problems(alone)) == []
    assert [(track.kind, track.sha256) for track in alone.clip(folder, "", 1).tracks] == [("landmarks", "ab" * 32)]
    tracks = [{"kind": "audio", "filepath": "a.wav"}, {"kind": "landmarks", "filepath": "a.jsonl", "offset": 1}]
    kinds = [
        (track.kind, track.offset_s) for track in of(audio_filepath=None, tracks=tracks).clip(folder, "", 1).tracks
    ]
    assert kinds == [("audio", 0), ("landmarks", 1)]
