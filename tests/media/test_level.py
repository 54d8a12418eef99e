"""How loud each part of a file is."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from loadbench.corpus.clip import Track
from loadbench.media import level
from loadbench.media.decode import MediaError
from tests.media import making


def test_levels_are_of_the_segment_and_the_channel(tmp_path: Path) -> None:
    tone, full = making.tone(1.0), np.full(16_000, 32767, np.int16)
    path = making.wav(
        tmp_path / "a.wav", np.stack([np.r_[tone, tone * 0], np.r_[tone * 0, full]], 1).tobytes(), channels=2
    )
    heard = level.listen(path, [])
    assert (heard.facts.duration_s, heard.facts.rate_hz, heard.facts.channels) == (2, 16_000, 2)
    left, right = (Track("audio", path, channel=channel) for channel in (0, 1))
    assert heard.loudest_dbfs(left) == pytest.approx(20 * np.log10(9000 / 32768 / 2**0.5), abs=0.1)
    assert heard.loudest_dbfs(Track("audio", path, duration_s=Fraction(1, 2), channel=1)) == float("-inf")
    assert heard.full_scale_share(left) == 0
    assert heard.full_scale_share(right) == pytest.approx(0.5, abs=0.01)
    assert heard.full_scale_share(Track("audio", path, offset_s=Fraction(3, 2), channel="mix")) == 1
    assert heard.loudest_dbfs(Track("audio", path, offset_s=Fraction(9))) == float("-inf")


def test_all_kinds_of_samples_have_the_same_full_scale(tmp_path: Path) -> None:
    half = {8: b"\xc0", 16: b"\x00\x40", 24: b"\x00\x00\x40", 32: b"\x00\x00\x00\x40"}
    for bits, sample in half.items():
        path = making.wav(tmp_path / f"{bits}.wav", sample * 1000, bits=bits)
        assert level.listen(path, []).loudest_dbfs(Track("audio", path)) == pytest.approx(20 * np.log10(0.5), abs=0.01)


def test_samples_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    path = making.wav(tmp_path / "a.wav", np.array([0, np.nan], "<f4").tobytes(), tag=3, bits=32)
    with pytest.raises(MediaError, match="some samples are not numbers"):
        level.listen(path, [])
