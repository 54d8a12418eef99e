"""Speech onset and end by energy, on sounds that were made for it."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loadbench.corpus.clip import Clip, Track
from loadbench.media import activity
from loadbench.media.decode import MediaError
from tests.media import making

FRAME_S = activity.FRAME_MS / 1000


def silence(seconds: float) -> NDArray[np.float64]:
    return np.zeros(round(seconds * 16_000))


def speech(seconds: float, level: float = 0.2) -> NDArray[np.float64]:
    """Syllables: a tone that comes and goes four times a second."""
    at = np.arange(round(seconds * 16_000)) / 16_000
    return level * np.sin(2 * np.pi * 220 * at) * (0.6 + 0.4 * np.cos(2 * np.pi * 4 * at))


def track(folder: Path, *parts: NDArray[np.float64], noise: float = 0.0, rate: int = 16_000) -> Track:
    sound = np.concatenate(parts)
    sound = sound + noise * np.random.default_rng(7).standard_normal(len(sound))
    path = making.wav(folder / "a.wav", np.rint(np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes(), rate=rate)
    return Track("audio", path)


@pytest.mark.parametrize("noise", [0.0, 0.0005, 0.01])
def test_onset_and_end_are_found_to_a_frame_in_silence_and_in_noise(tmp_path: Path, noise: float) -> None:
    found = activity.speech_s(track(tmp_path, silence(0.6), speech(1.5), silence(0.9), noise=noise))
    assert found is not None
    assert found[0] == pytest.approx(0.6, abs=FRAME_S)
    assert found[1] == pytest.approx(2.1, abs=FRAME_S)


def test_a_pause_inside_belongs_to_it_and_a_click_before_it_does_not(tmp_path: Path) -> None:
    click = speech(0.04)
    found = activity.speech_s(
        track(tmp_path, silence(0.3), click, silence(0.6), speech(0.6), silence(1.2), speech(0.6), silence(0.6))
    )
    assert found == pytest.approx((0.94, 3.34), abs=FRAME_S)


def test_a_short_sound_right_behind_speech_is_its_last_consonant(tmp_path: Path) -> None:
    found = activity.speech_s(track(tmp_path, silence(0.6), speech(0.6), silence(0.15), speech(0.03), silence(0.6)))
    assert found is not None
    assert found[1] == pytest.approx(1.38, abs=FRAME_S)


def test_speech_without_any_pause_is_active_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    assert activity.speech_s(track(tmp_path, speech(1.0))) == (0.0, 1.0)


@pytest.mark.parametrize("parts", [(silence(1.0),), (speech(1.0, 0.001),), (silence(0.5), speech(0.03), silence(0.5))])
def test_where_nothing_is_said_nothing_is_estimated(tmp_path: Path, parts: Any) -> None:
    assert activity.speech_s(track(tmp_path, *parts)) is None


def test_other_rates_and_segments_count_from_the_segment(tmp_path: Path) -> None:
    whole = track(tmp_path, silence(0.5), speech(1.0), silence(0.5), rate=8000)  # so it lasts twice as long
    found = activity.speech_s(Track("audio", whole.path, offset_s=Fraction(1, 2)))
    assert found == pytest.approx((0.5, 2.5), abs=FRAME_S)


def clip(direction: Any, *tracks: Track, **fields: Any) -> Clip:
    return Clip("a", direction, tracks, "en", "zh", **fields)


def test_only_what_is_missing_is_estimated_and_signing_never(tmp_path: Path) -> None:
    sound = track(tmp_path, silence(0.6), speech(0.6), silence(0.6))
    told = clip("speech2text", sound, activity_start_s=0.1)
    signed = clip("sign2spoken", sound, Track("video", tmp_path / "a.mp4"))
    pictures = clip("speech2text", Track("video", tmp_path / "a.mp4"))
    assert [activity.estimated(one) for one in (told, signed, pictures)] == [told, signed, pictures]
    found = activity.estimated(clip("spoken2sign", sound))
    assert (found.activity_start_s, found.activity_end_s, found.activity_estimated) == (0.6, 1.2, True)


def test_media_that_cannot_be_used_do_not_hide_the_next_clip(tmp_path: Path) -> None:
    good, bad = track(tmp_path, speech(0.6)), Track("audio", tmp_path / "gone.wav")
    found = list(activity.all_estimated([clip("speech2text", bad), clip("speech2text", good)]))
    assert found[0] == (clip("speech2text", bad), (f"{tmp_path / 'gone.wav'}: No such file or directory",))
    assert found[1][0].activity_estimated
    with pytest.raises(MediaError):
        activity.speech_s(bad)
