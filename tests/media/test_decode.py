"""Files are measured by what can be decoded."""

from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.media.decode import Facts, MediaError, measure
from tests.media import making


def test_sound_is_measured_in_decoded_samples(tmp_path: Path) -> None:
    path = making.wav(tmp_path / "a.wav", making.THOUSANDS * 2, channels=2, rate=44_100, announced=0xFFFFFFFF)
    assert measure(path, "audio", None, []) == Facts(Fraction(16_000, 44_100), rate_hz=44_100, channels=2)


def test_pictures_are_measured_to_the_end_of_the_last(tmp_path: Path) -> None:
    path = making.video(tmp_path / "a.mp4", range(0, 2000, 40))
    assert measure(path, "video", None, []) == Facts(Fraction(2), fps=Fraction(25))


def test_a_shorter_stream_than_announced_is_noted_or_refused_by_how_far_the_container_can_be_trusted(
    tmp_path: Path,
) -> None:
    whole = making.encoded(tmp_path / "a.mp3", making.tone(3.0), "libmp3lame").read_bytes()
    (tmp_path / "b.mp3").write_bytes(whole[: len(whole) // 2])
    notes: list[str] = []
    assert 1 < measure(tmp_path / "b.mp3", "audio", None, notes).duration_s < 2
    assert len(notes) == 1
    assert notes[0].startswith(f"{tmp_path / 'b.mp3'}: its header announces 3.000 s, 1.")
    torn = making.wav(tmp_path / "c.wav", making.THOUSANDS[:-2], announced=len(making.THOUSANDS))
    with pytest.raises(MediaError, match="truncated"):
        measure(torn, "audio", None, [])


def test_a_file_whose_tags_are_no_utf8_is_read_all_the_same(tmp_path: Path) -> None:
    tag = b"INFOINAM\x04\0\0\0\xff\xfe\xe9\0"
    chunk = b"LIST" + len(tag).to_bytes(4, "little") + tag
    path = making.wav(tmp_path / "a.wav", making.THOUSANDS, before_data=chunk)
    assert measure(path, "audio", None, []).duration_s == 1


def test_a_folder_is_no_media_file(tmp_path: Path) -> None:
    with pytest.raises(MediaError) as caught:
        measure(tmp_path, "audio", None, [])
    assert str(tmp_path) in str(caught.value)
