"""All corpora are judged alike."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus import rules
from loadbench.corpus.clip import Track
from tests.corpus import clips

SIGNED: dict[str, Any] = {
    "direction": "sign2spoken",
    "source_lang": "csl",
    "target_lang": "zh",
    "transcript": None,
    "text": "好",
}


def frames(folder: Path, fps: Fraction | None = Fraction(25)) -> tuple[Track, ...]:
    return (Track("video", folder, "%d.png", fps),)


def test_a_good_clip_is_neither_wrong_nor_odd(tmp_path: Path) -> None:
    good = [
        {},
        {"activity_start_s": 0.0, "activity_end_s": 2.0},
        {"text_unit": "char", "tags": ("dev",)},
        {"transcript": "明天学校放假\u2028好", "source_lang": "zh", "target_lang": "en", "text": "tomorrow"},
        SIGNED | {"tracks": frames(tmp_path), "gloss": ("好",) * 15},
        {"tracks": (Track("audio", tmp_path / "a.wav"),), "activity_end_s": 1e6},  # only the medium can tell
    ]
    assert [rules.judged(clips.clip(tmp_path, **fields)) for fields in good] == [([], [])] * len(good)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tracks": ()}, "names no medium"),
        ({"tracks": (Track("audio", Path("/gone.wav")),)}, "no such file: /gone.wav"),
        ({"tracks": (Track("audio", Path("/a\0b")),)}, "no such file: /a"),
        ({"tracks": (Track("audio", Path("/dev/null")),)}, "/dev/null is no regular file"),
        (
            {"tracks": (Track("video", Path("/")),)},
            "/ is a folder, not a file; a folder of pictures is named by frames",
        ),
        ({"tracks": (Track("video", Path("/gone"), "%d.png", Fraction(25)),)}, "no such folder: /gone"),
        ({"tracks": frames(Path("/"), None)}, "fps is missing: frames in a folder have no times"),
        (SIGNED, "sign2spoken needs a video"),
        ({"source_lang": " "}, "source_lang is unknown: the corpus does not say it, so you must (--source-lang)"),
        ({"transcript": " "}, "transcript must not be empty"),
        ({"text": ""}, "text must not be empty"),
        ({"gloss": ()}, "gloss must not be empty"),
        ({"alt_text": ("",)}, "alt_text must not be empty"),
        ({"transcript": "good\0 \0morning"}, "transcript holds a null character"),
        ({"activity_end_s": 2.5}, "activity_end 2.5 lies outside the segment (0 to 2 s)"),
        ({"activity_start_s": -0.1}, "activity_start -0.1 lies outside the segment"),
        ({"activity_start_s": 2.0, "activity_end_s": 1.0}, "activity_end 1.0 is before activity_start 2.0"),
        (
            {"gloss_spans": ({"gloss": "明天", "start": 0.0, "end": 2.1},)},
            "gloss_spans[0] (0.0 to 2.1) lies outside the segment (0 to 2 s)",
        ),
        ({"words": ({"w": "明", "start": 1.0, "end": 0.5},)}, "words[0] ends at 0.5, before its start at 1.0"),
    ],
)
def test_each_problem_is_found_once(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    problems, _ = rules.judged(clips.clip(tmp_path, **fields))
    assert len(problems) == 1, problems
    assert said in problems[0]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gloss": ("好",) * 16}, "gloss has 16 signs; T/CADHOH 0004-2023 expects at most 15"),
        ({"alt_gloss": (("好",) * 17,)}, "alt_gloss has 17 signs"),
        ({"text_unit": "syllable"}, "text_unit 'syllable' is unknown"),
        ({"transcript": None}, "has no reference (transcript or text)"),
        ({"transcript": "Mu\u0308tze, Mu\u0308ller"}, "clip a: transcript is not in Unicode form NFC"),
        ({"gloss": ("Gebа\u0308rde",)}, "clip a: gloss is not in Unicode form NFC"),
        ({"text": "在１０点"}, "clip a: text has full-width digits (１)"),
        ({"text": "a\u0007b"}, "clip a: text holds the control character U+0007"),
        ({"text": "caf\ufffd"}, "clip a: text holds U+FFFD: it was once read in a wrong encoding"),
        ({"direction": "spoken2sign", "source_lang": "csl", "target_lang": "zh-CN"}, "look reversed for spoken2sign"),
        (
            {"source_lang": "zh", "target_lang": "en", "transcript": "tomorrow", "text": "明天"},
            "source_lang zh and target_lang en look reversed for speech2text",
        ),
        ({"source_lang": "en", "target_lang": "zh", "transcript": "明天", "text": "tomorrow"}, "look reversed"),
    ],
)
def test_each_oddity_is_a_warning_and_no_problem(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    problems, warnings = rules.judged(clips.clip(tmp_path, **fields))
    assert problems == []
    assert len(warnings) == 1, warnings
    assert said in warnings[0]


def test_of_several_media_the_one_that_is_wrong_is_named(tmp_path: Path) -> None:
    tracks = (Track("audio", tmp_path / "a.wav"), Track("video", Path("/gone.mp4"), offset_s=Fraction(-1)))
    problems, _ = rules.judged(clips.clip(tmp_path, tracks=tracks))
    assert problems == ["tracks[1].offset must be 0 or more, not -1.0", "tracks[1].no such file: /gone.mp4"]


def test_signing_reversed_with_speech_is_seen_by_the_languages(tmp_path: Path) -> None:
    fields = SIGNED | {"tracks": frames(tmp_path), "source_lang": "de", "target_lang": "gsg"}
    assert rules.judged(clips.clip(tmp_path, **fields))[1] == [
        "source_lang de and target_lang gsg look reversed for sign2spoken"
    ]


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
    tmp_path: Path, segments: list[dict[str, Any]], problem: str | None
) -> None:
    path = tmp_path / "a.wav"
    path.touch()
    tracks = (Track("audio", path, duration_s=Fraction(3)),)
    spoken = clips.clip(tmp_path, direction="spoken2sign", target_lang="csl", transcript=None, tracks=tracks)
    problems, warnings = rules.judged(replace(spoken, segments=tuple(segments)))
    assert problems == ([problem] if problem else [])
    assert not [text for text in warnings if "no reference" in text]
