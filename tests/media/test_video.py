"""Any video becomes upright JPEG pictures, each due at its own time."""

import io
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from loadbench.corpus.clip import Track
from loadbench.media import video
from loadbench.media.decode import MediaError
from loadbench.media.form import FrameForm
from loadbench.media.made import Made
from tests.media import making

STEADY = range(0, 1000, 40)
SHARED = Path(os.environ.get("LOADBENCH_SHARED", Path(__file__).parents[3] / "shared"))
SIGN_CLIP = SHARED / "data" / "sign_clip.mp4"


def made_of(path: Path, form: FrameForm | None = None, **track: Any) -> tuple[list[int], list[Image.Image], Made]:
    """Due times in ms, pictures, and what was said at the end."""
    made = Made()
    rows = list(video.chunks(Track("video", path, **track), form or FrameForm(), made))
    return [row[0] // 10**6 for row in rows], [Image.open(io.BytesIO(row[2])) for row in rows], made


def refused(path: Path, **track: Any) -> str:
    with pytest.raises(MediaError) as caught:
        made_of(path, **track)
    return str(caught.value)


def frames(folder: Path, numbers: list[int], name: str = "images%04d.png") -> Path:
    folder.mkdir()
    for number in numbers:
        Image.fromarray(making.quarters()).save(folder / (name % number))
    return folder


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("a.mp4", "libx264", {"bf": "0"}),
        ("a.mp4", "libx264", {"bf": "3"}),  # sent in another order than shown
        ("a.mkv", "libx264", {"bf": "3"}),
        ("a.webm", "libvpx-vp9", {}),
    ],
)
def test_frames_leave_in_the_order_and_at_the_times_at_which_they_are_shown(
    tmp_path: Path, name: str, codec: str, options: dict[str, str]
) -> None:
    due, pictures, made = made_of(making.video(tmp_path / name, STEADY, codec=codec, options=options))
    assert due == list(STEADY)
    assert {picture.size for picture in pictures} == {(64, 48)}
    assert {making.colours(picture) for picture in pictures} == {"rgbw"}
    assert made == Made(1_000_000_000, [])


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
@pytest.mark.parametrize("bframes", ["0", "2"])
def test_a_variable_rate_stays_variable(tmp_path: Path, name: str, bframes: str) -> None:
    times = [0, 40, 160, 200, 320, 360, 480]
    due, _, made = made_of(making.video(tmp_path / name, times, options={"bf": bframes}))
    assert due == times
    assert 480 < made.duration_ns / 1e6 <= 600


@pytest.mark.parametrize(
    ("turn", "corners"),
    [
        (None, "rgbw"),
        ((90, False), "gwrb"),
        ((180, False), "wbgr"),
        ((270, False), "brwg"),
        ((0, True), "grwb"),
        ((180, True), "bwrg"),
        ((90, True), "wgbr"),
        ((270, True), "rbgw"),
    ],
)
def test_pictures_are_turned_and_mirrored_as_the_file_asks(
    tmp_path: Path, turn: tuple[int, bool] | None, corners: str
) -> None:
    picture = made_of(making.video(tmp_path / "a.mp4", [0, 40], turn=turn))[1][0]
    assert making.colours(picture) == corners
    assert picture.size == ((48, 64) if turn and turn[0] in (90, 270) else (64, 48))


@pytest.mark.parametrize(
    ("bounds", "size"),
    [((32, None), (32, 24)), ((None, 12), (16, 12)), ((32, 12), (16, 12)), ((640, 480), (64, 48)), ((1, 1), (1, 1))],
)
def test_pictures_fit_into_the_bounds_and_are_never_enlarged(
    tmp_path: Path, bounds: tuple[int | None, int | None], size: tuple[int, int]
) -> None:
    path = making.video(tmp_path / "a.mp4", [0, 40])
    assert made_of(path, FrameForm(width=bounds[0], height=bounds[1]))[1][0].size == size


def test_padded_pictures_are_exactly_so_large_with_black_borders(tmp_path: Path) -> None:
    path = making.video(tmp_path / "a.mp4", [0, 40])
    (picture, _) = made_of(path, FrameForm(width=128, height=128, fit="pad"))[1]
    assert picture.size == (128, 128)
    assert making.colours(picture.crop((0, 16, 128, 112))) == "rgbw"
    assert {max(picture.getpixel((64, row))) // 16 for row in (0, 10, 117, 127)} == {0}


def test_bare_pictures_are_rows_of_colours_or_planes_without_anything_between(tmp_path: Path) -> None:
    path, made = making.video(tmp_path / "a.mp4", [0, 40], turn=(180, False)), Made()
    track = Track("video", path)
    form = FrameForm(codec="rgb24", width=62, height=48, fit="pad")
    rows = list(video.chunks(track, form, made))
    assert [(due_ns, len(data)) for due_ns, _, data in rows] == [(0, 62 * 48 * 3), (40_000_000, 62 * 48 * 3)]
    assert making.colours(Image.frombytes("RGB", (62, 46), rows[0][2][62 * 3 :])) == "wbgr"
    form = FrameForm(codec="i420", width=62, height=46, fit="pad")
    rows = list(video.chunks(track, form, made))
    assert [len(data) for _, _, data in rows] == [62 * 46 * 3 // 2] * 2
    frame = av.VideoFrame.from_ndarray(np.frombuffer(rows[0][2], np.uint8).reshape(69, 62), format="yuv420p")
    assert making.colours(frame.to_image()) == "wbgr"  # type: ignore[no-untyped-call]
    luma, centre = np.frombuffer(rows[0][2], np.uint8)[: 62 * 46].reshape(46, 62), slice(8, 16)
    assert [
        round(float(luma[rows_, columns].mean()))
        for rows_, columns in ((centre, centre), (slice(30, 38), slice(46, 54)))
    ] == [pytest.approx(235, abs=3), pytest.approx(81, abs=4)], "white and red of BT.601, in the limited range"


def test_quality_is_a_matter_of_bytes(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    path = making.video(tmp_path / "a.mp4", [0, 40], picture=noise)
    sizes = []
    for quality in (20, 85):
        rows = list(video.chunks(Track("video", path), FrameForm(quality=quality), Made()))
        assert rows[0][2].startswith(b"\xff\xd8")
        sizes.append(len(rows[0][2]))
    assert sizes[0] * 2 < sizes[1]


def test_thinning_keeps_the_own_times_of_those_that_stay(tmp_path: Path) -> None:
    path = making.video(tmp_path / "a.mp4", STEADY)
    due, _, made = made_of(path, FrameForm(fps=Fraction(10)))
    assert due == [0, 120, 200, 320, 400, 520, 600, 720, 800, 920]
    assert made.duration_ns == 1_000_000_000
    assert made_of(path, FrameForm(fps=Fraction(60)))[0] == list(STEADY)


def test_a_segment_keeps_its_place_in_time(tmp_path: Path) -> None:
    path = making.video(tmp_path / "a.mp4", STEADY)
    due, _, made = made_of(path, offset_s=Fraction("0.1"), duration_s=Fraction("0.5"))
    assert due == list(range(20, 500, 40))  # the frame of 120 ms is 20 ms into the segment
    assert made == Made(500_000_000, [])
    assert "no frame lies in the segment from 2.0 s; it ends at 1.000 s" in refused(path, offset_s=Fraction(2))
    short = made_of(path, offset_s=Fraction("0.8"), duration_s=Fraction(1))[2]
    assert short == Made(200_000_000, [f"{path}: ends 0.800 s before the end of the declared segment"])


def test_a_folder_of_frames_goes_by_number_with_gaps_and_without_strays(tmp_path: Path) -> None:
    folder = frames(tmp_path / "clip", [10, 2, 3, 7])
    (folder / "createTrainingLabels.lprof").write_text("stray")
    (folder / "images3.png").write_text("stray")
    due, pictures, made = made_of(folder, pattern="images%04d.png", fps=Fraction(25))
    assert due == [0, 40, 200, 320]
    assert made.duration_ns == 360_000_000
    assert made.notes == [
        f"{folder}: ignored, not named like images%04d.png: createTrainingLabels.lprof, images3.png",
        f"{folder}: 5 numbers are missing between images0002.png and images0010.png",
    ]
    assert making.colours(pictures[0]) == "rgbw"


def test_rates_that_are_no_decimal_numbers_stay_exact(tmp_path: Path) -> None:
    folder = frames(tmp_path / "clip", list(range(1, 32)))
    made = Made()
    rows = list(
        video.chunks(Track("video", folder, pattern="images%04d.png", fps=Fraction(30_000, 1001)), FrameForm(), made)
    )
    assert rows[-1][0] == 1_001_000_000
    assert made.duration_ns == 1_034_366_667


def test_unusable_video_is_refused_with_name_and_reason(tmp_path: Path) -> None:
    whole = making.video(tmp_path / "a.mp4", STEADY).read_bytes()
    (tmp_path / "torn.mp4").write_bytes(whole[: len(whole) // 2])  # without its table, which stands at the end
    assert f"{tmp_path / 'torn.mp4'}: cannot be decoded" in refused(tmp_path / "torn.mp4")
    noise = np.random.default_rng(1).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    head = making.video(tmp_path / "b.mp4", range(0, 4000, 40), picture=noise, muxing={"movflags": "faststart"})
    (tmp_path / "cut.mp4").write_bytes(head.read_bytes()[: head.stat().st_size // 2])
    assert str(tmp_path / "cut.mp4") in refused(tmp_path / "cut.mp4")
    assert "has no video in it" in refused(making.wav(tmp_path / "a.wav", making.THOUSANDS))
    folder = frames(tmp_path / "clip", [1])
    (folder / "images0002.png").write_bytes(b"no picture")
    assert "images0002.png: cannot be read as a picture" in refused(folder, pattern="images%04d.png", fps=Fraction(25))


@pytest.mark.skipif(not SIGN_CLIP.is_file(), reason="the sign clip lies outside the repository")
def test_a_real_sign_clip_keeps_its_58_frames() -> None:
    due, pictures, made = made_of(SIGN_CLIP, FrameForm(width=480, height=480))
    assert len(due) == 58
    assert due[0] == 0
    assert pictures[0].size == (360, 480)
    assert made.duration_ns == pytest.approx(1.9387e9, abs=1e5)
    assert made.notes == []
