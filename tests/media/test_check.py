"""A corpus is checked against its media."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadbench.media import level
from loadbench.media.check import check
from loadbench.media.level import Heard
from tests.media import making


def checked(folder: Path, *rows: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Problems and warnings without the manifest's name."""
    report = check(making.manifest(folder, rows))
    place = f"{folder / 'manifest.jsonl'}:"
    return [said.removeprefix(place) for said in report.problems.lines()], [
        said.removeprefix(place) for said in report.warnings.lines()
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
    assert (report.clips, report.problems.lines(), report.warnings.lines()) == (2, [], [])
    assert report.hours == pytest.approx(3.0 / 3600)
    assert report.languages == {("en", "en"): 1, ("en", "zh"): 1}
    assert report.text().splitlines() == [
        "layout        native",
        "clips         2",
        "length        3.0 s",
        "directions    speech2text: 2",
        "languages     en to en: 1, en to zh: 1",
        "units         by language",
        "frame rates   25/s: 1",
        "sample rates  16000 Hz: 1",
        "0 problems, 0 warnings",
    ]


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
    (warning,) = report.warnings.lines()
    assert "47 numbers are missing between 1.png and 50.png" in warning


def test_silence_and_clipping_are_told_of_the_segment_and_channel_that_are_streamed(tmp_path: Path) -> None:
    tone, nothing = making.tone(1.0), np.zeros(16_000, np.int16)
    faint, loud = (tone // 600).astype(np.int16), np.clip(tone.astype(np.int32) * 20, -32768, 32767).astype(np.int16)
    making.wav(tmp_path / "a.wav", np.concatenate([tone, nothing, faint, loud]).tobytes())
    making.wav(tmp_path / "b.wav", np.stack([tone, loud], 1).tobytes(), channels=2)
    part = {"audio_filepath": "a.wav", "duration": 0.7}
    _, warnings = checked(
        tmp_path,
        part | {"id": "tone", "offset": 0.1},
        part | {"id": "nothing", "offset": 1.2},
        part | {"id": "faint", "offset": 2.2},
        part | {"id": "loud", "offset": 3.2},
        {"id": "left", "audio_filepath": "b.wav", "channel": 0},
        {"id": "both", "audio_filepath": "b.wav", "channel": "mix"},
    )
    assert [re.sub(r"\d+\.\d%", "N%", warning) for warning in warnings] == [
        "2: clip nothing: a.wav is silent: all its samples are 0",
        "3: clip faint: a.wav is silent: nowhere louder than -70 dBFS",
        "4: clip loud: N% of the samples of a.wav are at full scale: it was cut off at the top",
        "6: clip both: N% of the samples of b.wav are at full scale: it was cut off at the top",
    ]


def test_segments_of_one_file_are_one_decoding_and_its_oddity_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[Path] = []

    def listen(path: Path, notes: list[str]) -> Heard:
        decoded.append(path)
        notes.append("odd")
        return level.listen(path, notes)

    monkeypatch.setattr("loadbench.media.check.listen", listen)
    making.wav(tmp_path / "a.wav", making.THOUSANDS)
    rows = [{"id": f"c{n}", "audio_filepath": "a.wav", "offset": n / 100, "duration": 0.01} for n in range(1, 60)]
    assert checked(tmp_path, *rows) == ([], ["1: clip c1: odd"])
    assert decoded == [tmp_path / "a.wav"]


def test_activity_is_estimated_where_the_corpus_does_not_say_it(tmp_path: Path) -> None:
    quiet, tone = np.zeros(8000, np.int16), making.tone(1.0)
    making.wav(tmp_path / "a.wav", np.concatenate([quiet, tone, quiet]).tobytes())
    rows = [{"id": "a", "audio_filepath": "a.wav"}, {"id": "b", "audio_filepath": "a.wav", "activity_start": 0.1}]
    report = check(making.manifest(tmp_path, rows), activity=True)
    assert report.activity == [("a", 0.48, 1.5)]
    assert "a: speech from 0.48 to 1.50 s (estimated)" in report.text()
    assert report.plain()["estimated_activity"] == [{"id": "a", "start": 0.48, "end": 1.5}]
