"""A corpus is checked against its media."""

from pathlib import Path
from typing import Any

import pytest

from loadbench.media.check import check
from tests.media import making


def checked(folder: Path, *rows: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Problems and warnings without the manifest's name."""
    report = check(making.manifest(folder, rows))
    place = f"{folder / 'manifest.jsonl'}:"
    return [said.removeprefix(place) for said in report.problems], [
        said.removeprefix(place) for said in report.warnings
    ]


def test_a_good_corpus_is_counted_by_its_measured_length(tmp_path: Path) -> None:
    making.wav(tmp_path / "a.wav", making.THOUSANDS)
    making.video(tmp_path / "a.mp4", range(0, 2600, 40))
    path = making.manifest(
        tmp_path,
        [
            {"id": "a", "audio_filepath": "a.wav", "duration": 1.02, "activity_end": 1.0},
            {"id": "b", "video_filepath": "a.mp4", "target_lang": "zh", "offset": 0.6},
        ],
    )
    report = check(path)
    assert (report.clips, report.problems, report.warnings) == (2, [], [])
    assert report.hours == pytest.approx(3.0 / 3600)
    assert report.languages == {("en", "en"): 1, ("en", "zh"): 1}
    assert report.text() == "2 clips, 3.0 s (en to en: 1, en to zh: 1)"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"offset": 1.5}, "offset 1.5 lies beyond the end of a.wav at 1.000 s"),
        ({"sample_rate": 8000}, "sample_rate says 8000, a.wav has 16000 Hz"),
        ({"channel": 1}, "channel 1 of a.wav does not exist; it has 1"),
        ({"activity_end": 1.2}, "times up to 1.2 s lie outside a.wav, whose segment has 1.000 s"),
        (
            {"offset": 0.5, "words": [{"w": "hi", "start": 0, "end": 0.9}]},
            "times up to 0.9 s lie outside a.wav, whose segment has 0.500 s",
        ),
    ],
)
def test_what_the_media_belie_is_a_problem(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    making.wav(tmp_path / "a.wav", making.THOUSANDS)
    problems, warnings = checked(tmp_path, {"id": "a", "audio_filepath": "a.wav"} | row)
    assert problems == [f"1: clip a: {said}"]
    assert warnings == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"duration": 1.06}, "a.wav ends 0.060 s before the end of the declared segment"),
        ({"duration": 0.94}, "only the first 0.94 s of the 1.000 s of a.wav are streamed"),
    ],
)
def test_lengths_that_differ_by_more_than_50_ms_are_a_warning(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    making.wav(tmp_path / "a.wav", making.THOUSANDS)
    assert checked(tmp_path, {"id": "a", "audio_filepath": "a.wav"} | row) == ([], [f"1: clip a: {said}"])


def test_damaged_media_do_not_hide_the_next_clip_and_make_the_length_unknown(tmp_path: Path) -> None:
    making.wav(tmp_path / "a.wav", b"")
    making.wav(tmp_path / "b.wav", making.THOUSANDS * 2, channels=2)
    rows = [{"id": "a", "audio_filepath": "a.wav"}, {"id": "b", "audio_filepath": "b.wav"}]
    problems, _ = checked(tmp_path, *rows)
    assert problems == [
        f"1: clip a: {tmp_path / 'a.wav'}: holds no samples",
        '2: clip b: b.wav has 2 channels: choose one with "channel": 0, or "channel": "mix"',
    ]
    assert check(making.manifest(tmp_path, rows)).hours is None


def test_a_declared_rate_that_is_not_the_files_is_a_warning(tmp_path: Path) -> None:
    making.video(tmp_path / "a.mp4", range(0, 1000, 40))
    row = {"id": "a", "video_filepath": "a.mp4", "fps": 30}
    assert checked(tmp_path, row) == ([], ["1: clip a: fps says 30, a.mp4 has 25.000: its own times are kept"])


def test_frames_in_a_folder_are_measured_by_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "clip").mkdir()
    for number in (1, 2, 50):
        (tmp_path / "clip" / f"{number}.png").touch()
    row = {"id": "a", "frames_dir": "clip", "frames_pattern": "%d.png", "fps": 25}
    report = check(making.manifest(tmp_path, [row]))
    assert report.hours == pytest.approx(2 / 3600)
    assert len(report.warnings) == 1
    assert "47 numbers are missing between 1.png and 50.png" in report.warnings[0]
