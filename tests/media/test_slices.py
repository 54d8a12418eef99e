"""Any video becomes slices of one container, each due when its last picture has been seen, all together a file."""

import io
import math
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from loadbench.corpus.clip import Track
from loadbench.media import slices
from loadbench.media.decode import MediaError
from loadbench.media.form import SliceForm
from loadbench.media.made import Made
from tests.media import making
from tests.media.test_h264 import number, numbered

STEADY = range(0, 1000, 40)
FIFTH = Fraction("0.2")
CONTAINERS = pytest.mark.parametrize("container", ["fmp4", "webm"])


def form_of(container: Any, slice_s: Fraction | None = FIFTH, **more: Any) -> SliceForm:
    return SliceForm(container=container, slice_s=slice_s, **more)


def made_of(path: Path, form: SliceForm, **track: Any) -> tuple[list[int], list[bytes], Made]:
    """Due times in ms, slices, and what was said at the end."""
    made = Made()
    rows = list(slices.chunks(Track("video", path, **track), form, made))
    return [row[0] // 10**6 for row in rows], [row[2] for row in rows], made


def played(data: bytes) -> list[tuple[int, Image.Image]]:
    """The pictures of a file with their times in ms."""
    with av.open(io.BytesIO(data)) as file:
        shown = [(frame.time or 0.0, frame.to_image()) for frame in file.decode(video=0)]  # type: ignore[no-untyped-call]
    return [(round(time * 1000), image) for time, image in shown]


@CONTAINERS
def test_a_slice_is_due_at_the_end_of_its_last_picture_and_all_together_are_a_file(
    tmp_path: Path, container: str
) -> None:
    path = making.video(tmp_path / "a.mp4", STEADY, turn=(270, False))
    due, found, made = made_of(path, form_of(container))
    assert due == [200, 400, 600, 800, 1000]
    assert made == Made(1_000_000_000, [])
    shown = played(b"".join(found))
    assert [time for time, _ in shown] == list(STEADY)
    assert {making.colours(image) for _, image in shown} == {"brwg"}
    assert {image.size for _, image in shown} == {(48, 64)}
    with pytest.raises(av.error.FFmpegError):
        played(found[1])  # what stands at the head of the container went with the first
    for count in (1, 2, 3):  # each slice is whole: what has come can be shown
        assert len(played(b"".join(found[:count]))) == 5 * count


@CONTAINERS
def test_a_slice_that_ends_within_a_picture_holds_it_and_waits_for_its_end(tmp_path: Path, container: str) -> None:
    due, found, _ = made_of(numbered(tmp_path, list(STEADY)), form_of(container, Fraction("0.5")))
    assert due == [520, 1000]
    assert [number(image) for _, image in played(found[0])] == list(range(13))


@CONTAINERS
@pytest.mark.parametrize("seed", range(4))
def test_random_rates_and_slices_hold_every_picture_once_in_order(tmp_path: Path, container: str, seed: int) -> None:
    random, times = Random(seed), [0]
    while len(times) < 25:
        times.append(times[-1] + random.choice((1, 17, 33, 40, 250)))
    slice_ms = random.choice((1, 30, 125, 500, 10_000))
    path = numbered(tmp_path, times)
    due, found, made = made_of(path, form_of(container, Fraction(slice_ms, 1000)))
    shown = played(b"".join(found))
    assert [number(image) for _, image in shown] == list(range(25))
    assert [time for time, _ in shown] == times
    rows: dict[int, list[int]] = {}
    for at in range(25):
        rows.setdefault(math.floor(times[at] / slice_ms), []).append(at)
    ends = [*times[1:], made.duration_ns // 10**6]
    assert due == [ends[row[-1]] for row in rows.values()]
    counts = [len(played(b"".join(found[: count + 1]))) for count in range(len(found))]
    assert counts == [sum(map(len, list(rows.values())[: count + 1])) for count in range(len(found))]


def test_mp4_knows_how_long_the_last_picture_is_seen(tmp_path: Path) -> None:
    found = made_of(making.video(tmp_path / "a.mp4", STEADY), form_of("fmp4"))[1]
    with av.open(io.BytesIO(b"".join(found))) as file:
        assert file.duration == 1_000_000


@CONTAINERS
def test_the_head_goes_apart_where_that_is_asked_and_is_the_same(tmp_path: Path, container: str) -> None:
    path = making.video(tmp_path / "a.mp4", STEADY)
    together, apart = made_of(path, form_of(container)), made_of(path, form_of(container, header="apart"))
    assert apart[0] == [0, *together[0]]
    assert apart[1][0] + apart[1][1] == together[1][0]
    assert apart[1][2:] == together[1][1:]
    assert len(apart[1][0]) < 1000


@CONTAINERS
def test_a_whole_clip_is_one_chunk_at_the_end_of_its_media(tmp_path: Path, container: str) -> None:
    path = making.video(tmp_path / "a.mp4", STEADY)
    due, found, _ = made_of(path, form_of(container, None))
    assert due == [1000]
    assert found == [b"".join(made_of(path, form_of(container))[1])]


@CONTAINERS
def test_segments_thinning_and_folders_of_frames_are_those_of_single_pictures(tmp_path: Path, container: str) -> None:
    path = numbered(tmp_path, list(STEADY))
    thinned = form_of(container, fps=Fraction(10))
    due, found, made = made_of(path, thinned, offset_s=Fraction("0.1"), duration_s=Fraction("0.5"))
    assert [(time, number(image)) for time, image in played(b"".join(found))] == [
        (20, 3), (100, 5), (220, 8), (300, 10), (420, 13)
    ]  # fmt: skip
    assert due == [220, 420, 500]
    assert made.duration_ns == 500_000_000
    folder = tmp_path / "frames"
    folder.mkdir()
    for at in (1, 2, 5):
        Image.fromarray(making.quarters(65, 49)).resize((65 + at, 49)).save(folder / f"{at}.png")
    due, found, _ = made_of(folder, form_of(container), pattern="%d.png", fps=Fraction(25))
    assert due == [200]
    assert [(time, image.size) for time, image in played(found[0])] == [(0, (66, 50)), (40, (66, 50)), (160, (66, 50))]
    with pytest.raises(MediaError, match="no frame lies in the segment from 2"):
        made_of(path, form_of(container), offset_s=Fraction(2))


@CONTAINERS
def test_keyframes_come_as_often_as_asked(tmp_path: Path, container: str) -> None:
    form = form_of(container, keyframe_s=Fraction("0.4"))
    with av.open(io.BytesIO(b"".join(made_of(numbered(tmp_path, list(STEADY)), form)[1]))) as file:
        assert [at for at, frame in enumerate(file.decode(video=0)) if frame.key_frame] == [0, 10, 20]


@CONTAINERS
def test_bytes_are_the_same_each_time_however_fast_the_machine_is(tmp_path: Path, container: str) -> None:
    """Neither a clock, nor chance, nor how long the encoder has taken for the pictures before."""
    folder, grain = tmp_path / "frames", np.random.default_rng(1)
    folder.mkdir()
    for at in range(20):
        Image.fromarray(grain.integers(0, 256, (240, 320, 3), dtype=np.uint8)).save(folder / f"{at}.png")
    first, second = (made_of(folder, form_of(container), pattern="%d.png", fps=Fraction(25)) for _ in range(2))
    assert first == second
