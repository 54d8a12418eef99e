"""How long a clip is, with as little decoding as can be."""

from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.media import length
from tests.media import making


def of(*tracks: Track) -> float | None:
    return length.length_s(Clip("a", "speech2text", tracks, "en", "en"))


def test_what_is_declared_is_not_looked_up(tmp_path: Path) -> None:
    assert of(Track("audio", tmp_path / "gone.wav", duration_s=Fraction(5, 2))) == 2.5


def test_the_header_says_it_and_the_offset_is_taken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("loadbench.media.length.measure")  # so it is not decoded
    making.wav(tmp_path / "a.wav", making.THOUSANDS)
    making.video(tmp_path / "a.mp4", range(0, 2000, 40))
    sound = Track("audio", tmp_path / "a.wav", offset_s=Fraction(1, 4))
    assert of(sound) == 0.75
    assert of(sound, Track("video", tmp_path / "a.mp4")) == pytest.approx(2.0, abs=0.05)


def test_frames_are_counted_by_their_numbers(tmp_path: Path) -> None:
    for number in (1, 50):
        (tmp_path / f"{number}.png").touch()
    assert of(Track("video", tmp_path, "%d.png", Fraction(25))) == 2.0


def test_of_media_that_cannot_be_used_it_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"no sound")
    assert of(Track("audio", tmp_path / "a.wav")) is None
    assert of(Track("audio", tmp_path / "gone.wav")) is None
