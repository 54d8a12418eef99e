"""Output media: the first byte, picture and sound, the end of playback and its gaps, to the nanosecond."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from loadbench.media.audio import ENCODINGS
from loadbench.results.media import MediaOutput
from loadbench.session.media import MediaBoard, is_jpeg
from loadbench.session.profile import MediaFormat

MS = 1_000_000
RATE = 8000


def tone(ms: float, level: float = 0.5) -> np.ndarray[Any, np.dtype[np.float32]]:
    return (level * np.cos(2 * np.pi * 440 * np.arange(round(ms * RATE / 1000)) / RATE)).astype(np.float32)


def quiet(ms: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.zeros(round(ms * RATE / 1000), np.float32)


def sound(pieces: list[tuple[int, bytes]], form: str = "s16le", **changes: Any) -> MediaOutput:
    board = MediaBoard("audio", MediaFormat(format=form, rate_hz=RATE, **changes))
    for at_ms, data in pieces:
        board.take(data, at_ms * MS)
    found = board.channel().media
    assert found is not None
    return found


def jpeg(size: tuple[int, int] = (64, 48)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (200, 40, 40)).save(file, "JPEG")
    return file.getvalue()


def pictures(times_ms: list[int], fps: float | None, data: bytes | None = None) -> MediaOutput:
    board = MediaBoard("video", MediaFormat(format="jpeg", fps=fps))
    for at_ms in times_ms:
        board.take(data or jpeg(), at_ms * MS)
    found = board.channel().media
    assert found is not None
    return found


@pytest.mark.parametrize("form", sorted(ENCODINGS))
def test_the_first_audible_sample_bears_the_arrival_of_its_piece_in_every_format(form: str) -> None:
    encode = ENCODINGS[form]
    pieces = [(100, quiet(40)), (140, quiet(40)), (180, np.concatenate([quiet(20), tone(20)])), (220, tone(40))]
    found = sound([(at, encode(block)) for at, block in pieces], form)
    assert found.first_byte_ns == 100 * MS
    assert found.first_sound_ns == 180 * MS
    assert found.playback_end_ns == 260 * MS
    assert found.media_s == pytest.approx(0.16)
    assert (found.gaps, found.starved_ns, found.pieces) == ([], 0, 4)


@pytest.mark.parametrize(
    ("blocks", "first_ms"),
    [
        ([quiet(40), tone(5), quiet(40), tone(40)], 3),  # a click of 5 ms is no sound
        ([quiet(40), tone(40, level=0.003)], None),  # -50.5 dBFS
        ([quiet(40), tone(40, level=0.0033)], 1),  # -49.6 dBFS
        ([np.concatenate([quiet(36), tone(4)]), tone(40)], 0),  # it begins with the last samples of a piece
        ([tone(4), quiet(9), tone(40)], 0),  # 9 ms of quiet do not part it
        ([tone(4), quiet(12), tone(40)], 2),
        ([quiet(1000)], None),
    ],
)
def test_sound_is_what_is_above_minus_50_dbfs_for_10_ms(blocks: list[Any], first_ms: int | None) -> None:
    found = sound([(at, ENCODINGS["s16le"](block)) for at, block in enumerate(blocks)])
    assert found.first_sound_ns == (None if first_ms is None else first_ms * MS)


def test_the_threshold_can_be_another() -> None:
    board = MediaBoard("audio", MediaFormat(format="s16le", rate_hz=RATE), audible_dbfs=-3.0)
    board.take(ENCODINGS["s16le"](tone(40)), 7)  # -6 dBFS
    assert board.channel().first_ns is None


def test_a_sample_cut_between_two_pieces_belongs_to_the_second_however_the_bytes_are_cut() -> None:
    data = ENCODINGS["s16le"](tone(40))
    found = sound([(10 * at, data[at * 7 : at * 7 + 7]) for at in range(-(-len(data) // 7))])
    assert found.bytes == len(data)
    assert found.media_s == pytest.approx(0.04)
    assert sound([(5, data[:1]), (9, data[1:])]).first_sound_ns == 9 * MS
    assert sound([(5, data[:1])]).first_sound_ns is None
    assert sound([(5, data[:1])]).playback_end_ns is None


def test_two_channels_are_half_as_long() -> None:
    data = ENCODINGS["s16le"](np.repeat(tone(40), 2))
    assert sound([(5, data)], channels=2).media_s == pytest.approx(0.04)


def test_sound_of_100_ms_a_piece_that_comes_late_makes_gaps_and_shifts_all_that_follows() -> None:
    piece = ENCODINGS["s16le"](tone(100))
    arrivals = [1000, 1050, 1400, 1410, 1605]  # wanted at 1000, 1100, 1200 (200 ms late), 1500, 1600 (5 ms late)
    found = sound([(at, piece) for at in arrivals])
    assert found.gaps == [(1200 * MS, 200 * MS)]
    assert found.starved_ns == 205 * MS
    assert found.playback_end_ns == 1705 * MS  # the greatest of arrival plus all that is still to be played


def test_pictures_have_a_rate_gaps_and_an_end() -> None:
    found = pictures([0, 40, 80, 420, 460], fps=25)
    assert (found.first_frame_ns, found.frames, found.broken) == (0, 5, 0)
    assert found.gaps == [(120 * MS, 300 * MS)]
    assert found.playback_end_ns == 500 * MS
    assert found.fps == pytest.approx(4 / 0.46)
    assert found.media_s == pytest.approx(0.2)


def test_pictures_without_a_rate_are_shown_as_they_come() -> None:
    found = pictures([0, 40, 900], fps=None)
    assert (found.gaps, found.starved_ns, found.playback_end_ns) == ([], 0, 900 * MS)
    assert found.media_s is None


def test_a_picture_that_is_none_is_counted_and_is_not_the_first() -> None:
    board = MediaBoard("video", MediaFormat(format="jpeg", fps=25))
    for at_ms, data in ((10, jpeg()[:-2]), (20, b"no picture"), (30, jpeg()), (40, b"")):
        board.take(data, at_ms * MS)
    found = board.channel().media
    assert found is not None
    assert (found.first_byte_ns, found.first_frame_ns) == (10 * MS, 30 * MS)
    assert (found.pieces, found.broken, found.frames) == (3, 2, 1)
    assert found.fps is None


def test_a_jpeg_must_reach_from_its_beginning_to_its_end_with_a_size_before_the_scan() -> None:
    good = jpeg()
    frame = good.index(b"\xff\xc0")
    assert is_jpeg(good)
    assert is_jpeg(good + b"\0\0")
    assert is_jpeg(b"\xff\xd8\xff" + good[2:])  # a fill byte
    for wrong in (b"", b"\xff\xd8\xff\xd9", good[1:], good[:400], good[:frame] + b"\xff\xfe" + good[frame + 2 :]):
        assert not is_jpeg(wrong)
    assert not is_jpeg(good[: frame + 5] + b"\0\0" + good[frame + 7 :])


def test_a_header_that_promises_more_blocks_than_there_are_bits_is_no_picture() -> None:
    for options in ({"progressive": True, "optimize": True}, {"quality": 1, "optimize": True}, {}):
        file = io.BytesIO()
        Image.new("RGB", (1600, 1200)).save(file, "JPEG", **options)
        plain = file.getvalue()
        assert is_jpeg(plain)  # all of one colour: as small as a picture of this size can be
        frame = plain.index(b"\xff\xc2" if options.get("progressive") else b"\xff\xc0")
        assert not is_jpeg(plain[: frame + 5] + b"\xff\xff\xff\xff" + plain[frame + 9 :])


def test_of_a_container_only_its_bytes_are_known(tmp_path: Path) -> None:
    board = MediaBoard("video", MediaFormat(format="container"))
    board.take(b"\x1aE\xdf\xa3....", 5)
    board.take(b"....", 9)
    found = board.channel().media
    assert found is not None
    assert (found.first_byte_ns, found.last_byte_ns, found.bytes, found.decoded) == (5, 9, 12, False)
    assert (found.first_frame_ns, found.playback_end_ns, found.media_s, found.frames) == (None, None, None, None)
