"""WLASL: frame numbers that count from 1 at 25 a second, and videos that were cut before."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layouts.wlasl import CUT
from tests.corpus import made
from tests.corpus.layouts.reads import clips, refused, troubles, under
from tests.corpus.made import written

FILE = "WLASL_v0.3.json"
INSTANCE = {"video_id": "00001", "fps": 25, "frame_start": 1, "frame_end": -1, "split": "train", "url": ""}


def corpus(folder: Path, *items: Any) -> Path:
    """The first element looks like WLASL, as it must to be found."""
    written(folder / FILE, json.dumps([{"gloss": "first", "instances": []}, *items]))
    return folder


def test_an_instance_is_a_clip_of_one_sign(tmp_path: Path) -> None:
    """Frames 6 to 20 of 25 a second are 0.2 s to 0.8 s; -1 is the end; a video in videos/ is the sign already."""
    path = made.wlasl(tmp_path)
    first, second, third = clips("wlasl", path)
    assert first == Clip(
        id="00001",
        direction="sign2spoken",
        tracks=(
            Track(
                "video",
                path / "raw_videos_mp4/abcdefghijk.mp4",
                offset_s=Fraction(1, 5),
                duration_s=Fraction(3, 5),
            ),
        ),
        source_lang="ase",
        target_lang="en",
        gloss=("boat",),
        speaker="12",
        tags=("train",),
        extra={
            "bbox": [0, 0, 64, 48],
            "instance_id": 0,
            "variation_id": 0,
            "source": "made",
            "url": "https://www.youtube.com/watch?v=abcdefghijk",
        },
        source=str(path / FILE),
        line=2,
    )
    assert (second.id, second.speaker, second.tracks) == (
        "00002",
        "3",
        (Track("video", path / "raw_videos/00002.mp4"),),
    )
    assert (third.id, third.speaker, third.gloss, third.line) == ("00003", None, ("tea",), 43)
    assert third.tracks == (Track("video", path / "videos/00003.mp4"),)
    assert troubles("wlasl", path) == [f"{FILE}:43: warning: {CUT}"]


@pytest.mark.parametrize(
    ("said", "segment"),
    [
        ({}, (Fraction(0), None)),
        ({"frame_start": 26}, (Fraction(1), None)),
        ({"frame_end": 25}, (Fraction(0), Fraction(1))),
        ({"frame_start": 3, "frame_end": 3}, (Fraction(2, 25), Fraction(1, 25))),
        ({"fps": 12.5, "frame_start": 26, "frame_end": 50}, (Fraction(2), Fraction(2))),
    ],
)
def test_frames_cut_a_downloaded_video(
    said: dict[str, Any], segment: tuple[Fraction, Fraction | None], tmp_path: Path
) -> None:
    written(tmp_path / "raw_videos/00001.mp4", "")
    (clip,) = clips("wlasl", corpus(tmp_path, {"gloss": "tea", "instances": [INSTANCE | said]}))
    assert (clip.tracks[0].offset_s, clip.tracks[0].duration_s) == segment


def test_a_video_that_is_nowhere_is_named_where_it_should_be_and_numbers_are_ids(tmp_path: Path) -> None:
    path = corpus(tmp_path, {"gloss": "tea", "instances": [INSTANCE | {"video_id": 7, "url": "youtu.be/../../../x"}]})
    (clip,) = clips("wlasl", path)
    assert (clip.id, under(path, clip)) == ("7", "videos/7.mp4")


def test_what_is_no_gloss_and_no_instance_is_told(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"video_id": ""},
        {"fps": 0},
        {"fps": None},
        {"frame_start": 0},
        {"frame_start": 9, "frame_end": 8},
        {"frame_end": "8"},
    ]
    path = corpus(
        tmp_path,
        "text",
        {"gloss": 1, "instances": []},
        {"gloss": "tea", "instances": [1]},
        {"gloss": "tea"},
        {"gloss": "tea", "instances": [INSTANCE | said for said in wrong]},
    )
    placed = "video 00001: its frames cannot be placed: "
    assert troubles("wlasl", path) == [
        f"{FILE}:1: {problem}"
        for problem in (
            "is no object with a gloss",
            "is no object with a gloss",
            "tea: instances is no list of objects",
            "tea: instances is no list of objects",
            "tea: an instance has no video_id",
            f"{placed}fps 0, frame_start 1, frame_end -1",
            f"{placed}fps None, frame_start 1, frame_end -1",
            f"{placed}fps 25, frame_start 0, frame_end -1",
            f"{placed}fps 25, frame_start 9, frame_end 8",
            f"{placed}fps 25, frame_start 1, frame_end '8'",
        )
    ]


def test_the_list_may_lie_in_the_start_kit_and_a_folder_without_one_is_refused(tmp_path: Path) -> None:
    corpus(tmp_path / "start_kit", {"gloss": "tea", "instances": [INSTANCE]})
    assert [clip.id for clip in clips("wlasl", tmp_path, split="train")] == ["00001"]
    assert refused("wlasl", tmp_path / "gone") == [".: holds no WLASL*.json with a list of glosses"]
