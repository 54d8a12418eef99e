"""Any video becomes H.264, one access unit a chunk: each picture once, at its own time, for a decoder to begin with."""

import io
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from loadbench.corpus.clip import Track
from loadbench.media import h264
from loadbench.media.decode import MediaError
from loadbench.media.form import H264Form
from loadbench.media.made import Made
from tests.media import making

STEADY = range(0, 1000, 40)
SPS, PPS, IDR, SLICE, SEI = 7, 8, 5, 1, 6  # NAL unit types, ITU-T H.264, Table 7-1


def made_of(path: Path, form: H264Form | None = None, **track: Any) -> tuple[list[int], list[bytes], Made]:
    """Due times in ms, access units, and what was said at the end."""
    made = Made()
    rows = list(h264.chunks(Track("video", path, **track), form or H264Form(), made))
    return [row[0] // 10**6 for row in rows], [row[2] for row in rows], made


def units(access_unit: bytes) -> list[int]:
    """The types of its NAL units."""
    return [part[0] & 31 for part in access_unit.split(b"\0\0\1")[1:]]


def pictures(access_units: Iterable[bytes]) -> list[Image.Image]:
    """What a decoder makes of them, in the order in which they are shown."""
    with av.open(io.BytesIO(b"".join(access_units)), format="h264") as file:
        return [frame.to_image() for frame in file.decode(video=0)]  # type: ignore[no-untyped-call]


def numbered(folder: Path, times_ms: list[int], width: int = 64) -> Path:
    """A video whose picture n has a white bar of n pixels, in steps of two, from the left."""
    path = folder / "a.mkv"
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream("libx264", rate=25, options={"crf": "5", "bf": "0"})
        stream.width, stream.height, stream.pix_fmt = width, 48, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for number, time in enumerate(times_ms):
            picture = np.zeros((48, width, 3), np.uint8)
            picture[:, : 2 * number] = 255
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def number(image: Image.Image) -> int:
    """Which picture of `numbered` this is."""
    return round(float((np.asarray(image.convert("L"))[24] > 127).sum()) / 2)


def test_each_picture_is_an_access_unit_at_its_own_time_and_the_first_has_what_a_decoder_needs(tmp_path: Path) -> None:
    due, found, made = made_of(making.video(tmp_path / "a.mp4", STEADY, turn=(90, False)))
    assert due == list(STEADY)
    assert {unit[:4] for unit in found} == {b"\0\0\0\1"}
    assert [kind for kind in units(found[0]) if kind != SEI] == [SPS, PPS, IDR]
    assert {tuple(units(unit)) for unit in found[1:]} == {(SLICE,)}
    shown = pictures(found)
    assert len(shown) == 25
    assert {picture.size for picture in shown} == {(48, 64)}
    assert {making.colours(picture) for picture in shown} == {"gwrb"}
    assert made == Made(1_000_000_000, [])


def test_keyframes_come_as_often_as_asked_and_with_their_parameters_so_that_a_stream_can_begin_there(
    tmp_path: Path,
) -> None:
    path = numbered(tmp_path, list(STEADY))
    found = made_of(path, H264Form(keyframe_s=Fraction("0.3")))[1]
    begins = [at for at, unit in enumerate(found) if IDR in units(unit)]
    assert begins == [0, 8, 16, 24]
    assert all({SPS, PPS} < set(units(found[at])) for at in begins)
    assert [number(picture) for picture in pictures(found[8:])] == list(range(8, 25))


@pytest.mark.parametrize("seed", range(4))
def test_random_rates_keep_every_picture_once_in_order_at_its_time_and_b_frames_wait_for_what_goes_before(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    times = [0]
    while len(times) < 28:
        times.append(times[-1] + random.choice((1, 17, 33, 40, 100)))
    path = numbered(tmp_path, times)
    due, found, made = made_of(path, H264Form(crf=18))
    assert due == times
    assert [number(picture) for picture in pictures(found)] == list(range(28))
    assert made.duration_ns >= times[-1] * 10**6
    due, found, _ = made_of(path, H264Form(crf=18, bframes=1 + seed))
    assert [number(picture) for picture in pictures(found)] == list(range(28)), "shown once each, in order"
    assert due == sorted(due)
    assert all(sent >= taken for sent, taken in zip(sorted(due), times, strict=True)), "never before it was taken"
    assert len(due) == 28
    assert due[-1] == times[-1]
    assert len(set(due)) < 28, "some wait for one that is shown later"


def test_with_one_b_frame_each_second_picture_leaves_first_and_those_between_leave_with_it(tmp_path: Path) -> None:
    due, found, _ = made_of(numbered(tmp_path, [0, 40, 160, 200, 320]), H264Form(bframes=1))
    assert due == [0, 160, 160, 320, 320]
    assert len(pictures(found[:2])) == 2, "the second to leave builds on the first alone"


def test_sizes_become_even_stay_within_their_bounds_and_are_padded_where_that_is_asked(tmp_path: Path) -> None:
    path = making.video(tmp_path / "a.mkv", [0, 40], codec="libvpx-vp9", picture=making.quarters(65, 49))
    for form, size in (
        (H264Form(), (66, 50)),
        (H264Form(width=64), (64, 48)),
        (H264Form(width=80, height=80, fit="pad"), (80, 80)),
    ):
        (picture, _) = pictures(made_of(path, form)[1])
        assert picture.size == size
    assert picture.getpixel((40, 2)) == (0, 0, 0)


def test_thinning_and_segments_are_those_of_single_pictures(tmp_path: Path) -> None:
    path = numbered(tmp_path, list(STEADY))
    due, found, made = made_of(path, H264Form(fps=Fraction(10)), offset_s=Fraction("0.2"), duration_s=Fraction("0.5"))
    assert due == [0, 120, 200, 320, 400]
    assert [number(picture) for picture in pictures(found)] == [5, 8, 10, 13, 15]
    assert made.duration_ns == 500_000_000


def test_a_lower_rate_and_a_coarser_quality_are_fewer_bytes_and_the_same_each_time(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (96, 128, 3), dtype=np.uint8)
    path = making.video(tmp_path / "a.mp4", STEADY, picture=noise)
    forms = [H264Form(bitrate_kbps=100), H264Form(), H264Form(crf=40), H264Form(crf=15)]
    sizes = [sum(map(len, made_of(path, form)[1])) for form in forms]
    assert sizes[0] < sizes[1]
    assert sizes[2] < sizes[3]
    assert made_of(path) == made_of(path)


def test_what_cannot_be_encoded_is_named_with_its_file(tmp_path: Path) -> None:
    path = making.video(tmp_path / "a.mp4", [0, 40])
    with pytest.raises(MediaError, match=r"a\.mp4: its pictures cannot be encoded"):
        made_of(path, H264Form(width=20_000, height=2, fit="pad"))
