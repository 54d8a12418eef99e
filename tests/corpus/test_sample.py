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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.wav").touch()
    (tmp_path / "frames").mkdir()
    return tmp_path


def of(**fields: Any) -> Sample:
    row = {key: value for key, value in (USUAL | fields).items() if value is not None}
    return Sample.model_validate(row)


FRAMES = {"audio_filepath": None, "frames_dir": "frames", "frames_pattern": "%d.png", "fps": 25}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"audio_filepath": None}, "names no medium: give one of"),
        ({"video_filepath": "a.mp4"}, "has video_filepath and audio_filepath: give one of"),
        (FRAMES | {"fps": None}, "fps is missing"),
        (FRAMES | {"frames_pattern": None}, "frames_pattern is missing"),
        (FRAMES | {"frames_pattern": "a/%d.png"}, "must hold one number, as in images%04d.png, not 'a/%d.png'"),
        (FRAMES | {"frames_pattern": "%d-%d.png"}, "must hold one number"),
        (FRAMES | {"sha256": "0" * 64}, "sha256 is that of a media file"),
        (FRAMES | {"frames_dir": "gone"}, "no such folder: "),
        ({"audio_filepath": "frames"}, "frames is a folder, not a file"),
        ({"audio_filepath": None, "tracks": [{"kind": "audio"}]}, "tracks[0].filepath: give either"),
        (
            {"audio_filepath": None, "tracks": [FRAMES | {"kind": "audio", "audio_filepath": None}]},
            "tracks[0].frames_dir: frames are video",
        ),
        ({"duration": 2.0, "activity_end": 2.5}, "activity_end 2.5 lies outside the segment (0 to 2 s)"),
        ({"activity_start": -0.1}, "activity_start -0.1 lies outside the segment"),
        ({"activity_start": 2.0, "activity_end": 1.0}, "activity_end 1.0 is before activity_start 2.0"),
        (
            {"duration": 2.0, "gloss_spans": [{"gloss": "明天", "start": 0.0, "end": 2.1}]},
            "gloss_spans[0] (0.0 to 2.1) lies outside the segment (0 to 2 s)",
        ),
        ({"words": [{"w": "明", "start": 1.0, "end": 0.5}]}, "words[0] ends at 0.5, before its start at 1.0"),
    ],
)
def test_each_problem_is_found(folder: Path, fields: dict[str, Any], said: str) -> None:
    found = list(sample.problems(of(**fields), folder))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        FRAMES,
        {"duration": 2.0, "activity_start": 0.0, "activity_end": 2.0},
        {"activity_end": 1e6},  # without a duration only the medium can tell
        {"audio_filepath": None, "tracks": [{"kind": "audio", "filepath": "a.wav"}]},
    ],
)
def test_a_good_line_has_none(folder: Path, fields: dict[str, Any]) -> None:
    assert list(sample.problems(of(**fields), folder)) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gloss": ["好"] * 16}, "gloss has 16 signs; T/CADHOH 0004-2023 expects at most 15"),
        ({"alt_gloss": [["好"] * 17]}, "alt_gloss has 17 signs"),
        ({"text_unit": "syllable"}, "text_unit 'syllable' is unknown"),
        ({"transcript": None, "gloss": None}, "has no reference (gloss or transcript)"),
        (
            {"activty_end": 2.0},
            "activty_end is no field of the manifest and is only passed through; meant activity_end?",
        ),
    ],
)
def test_what_is_odd_is_a_warning(fields: dict[str, Any], said: str) -> None:
    found = list(sample.warnings(of(**fields)))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize("fields", [{}, {"gloss": ["好"] * 15}, {"text_unit": "char"}, {"snr_db": 12}])
def test_what_is_usual_is_none(fields: dict[str, Any]) -> None:
    assert list(sample.warnings(of(**fields))) == []


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


def test_the_speaker_goes_before_the_signer_who_is_kept(folder: Path) -> None:
    clip = of(speaker="S1", signer="P3").clip(folder, "m.jsonl", 1)
    assert (clip.speaker, clip.extra) == ("S1", {"signer": "P3"})


def test_the_schema_names_every_field() -> None:
    schema = Sample.model_json_schema()
    assert schema["required"] == ["id", "direction", "source_lang", "target_lang"]
    assert schema["properties"]["fps"]["anyOf"][0]["type"] == ["number", "string"]


SENTENCES = [
    # segments of a clip of 3 s -> the problem, None: there is none
    ([{"offset": 0.0, "duration": 1.2, "gloss": ["明天"]}, {"offset": 1.3, "duration": 1.7, "transcript": "好"}], None),
    ([{"offset": 1.0, "duration": 1.0, "gloss": ["a"]}, {"offset": 0.5, "duration": 0.2, "gloss": ["b"]}],
     "segments[1] begins at 0.5, before the one before it: sort them by their offsets"),
    ([{"offset": 2.0, "duration": 1.1, "gloss": ["a"]}],
     "segments[0] (2.0 to 3.1) lies outside the segment (0 to 3 s)"),
    ([{"offset": 0.0, "duration": 1.0, "text": "a"}], "segments[0] has no reference (gloss or transcript)"),
]  # fmt: skip


@pytest.mark.parametrize(("segments", "problem"), SENTENCES)
def test_sentences_of_a_recording_lie_in_it_in_order_and_have_references(
    folder: Path, segments: list[dict[str, Any]], problem: str | None
) -> None:
    line = of(duration=3.0, gloss=None, transcript=None, segments=segments)
    assert list(sample.problems(line, folder)) == ([problem] if problem else [])
    assert line.clip(folder, "m", 1).segments == tuple(segments)
    assert not [text for text in sample.warnings(line) if "no reference" in text]
