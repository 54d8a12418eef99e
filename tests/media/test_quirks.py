"""Each odd file of the table becomes what is right, or is refused with the reason; a check of the corpus agrees."""

import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from loadbench.corpus.clip import Track
from loadbench.media import audio, video
from loadbench.media.decode import MediaError, measure
from loadbench.media.form import AudioForm, FrameForm
from loadbench.media.made import Made
from tests.media import making, quirks
from tests.media.quirks import SIGHTS, SOUNDS, Sight, Sound


def by_name(rows: Any) -> dict[str, Any]:
    return {"argvalues": rows, "ids": [row.name for row in rows]}


@pytest.mark.parametrize("row", **by_name(SOUNDS))
def test_an_odd_sound_is_exact_to_the_sample_or_refused_with_the_reason(tmp_path: Path, row: Sound) -> None:
    path, made = row.make(tmp_path), Made()
    track, form = Track("audio", path, channel=row.channel), AudioForm("s16le", row.rate, 3200)
    if row.refused:
        with pytest.raises(MediaError) as caught:
            list(audio.chunks(track, form, 0.0, made))
        assert str(path) in str(caught.value)
        assert row.refused in str(caught.value)
        return
    data = b"".join(payload for _, _, payload in audio.chunks(track, form, 0.0, made))
    assert len(data) == 2 * row.samples
    assert made.duration_ns == -(-row.samples * 10**9 // row.rate)
    assert made.notes == ([f"{path}: {row.said}"] if row.said else [])
    if row.exact is not None:
        assert data == row.exact
    else:  # neither delay nor loss: the tone stands where it stood
        got, wanted = np.frombuffer(data, "<i2").astype(int), making.tone(1.0, row.rate).astype(int)
        assert np.abs(got[3000:15_000] - wanted[3000:15_000]).max() < 1500
    assert measure(path, "audio", None, []).duration_s == Fraction(row.samples, row.rate)


@pytest.mark.parametrize("row", **by_name(SIGHTS))
def test_an_odd_video_is_shown_upright_and_at_its_own_times_or_refused_with_the_reason(
    tmp_path: Path, row: Sight
) -> None:
    path, made = row.make(tmp_path), Made()
    track = Track("video", path, pattern=row.pattern, fps=row.fps)
    if row.refused:
        with pytest.raises(MediaError) as caught:
            list(video.chunks(track, FrameForm(), made))
        assert str(path) in str(caught.value)
        assert row.refused in str(caught.value)
        return
    rows = list(video.chunks(track, FrameForm(), made))
    assert [due_ns for due_ns, _, _ in rows] == pytest.approx([due_ms * 1e6 for due_ms in row.due_ms], abs=1)
    assert made.duration_ns == pytest.approx(row.duration_ms * 1e6, abs=1)
    assert made.notes == ([f"{path}: {row.said}"] if row.said else [])
    pictures = [Image.open(io.BytesIO(payload)) for _, _, payload in rows]
    assert {picture.size for picture in pictures} == {row.size}
    if row.corners:
        assert {making.colours(picture) for picture in pictures} == {row.corners}
    if row.pattern is None:
        assert float(measure(path, "video", row.fps, []).duration_s) == pytest.approx(row.duration_ms / 1e3, abs=1e-6)


def test_the_table_names_each_row_once_in_both_languages() -> None:
    for rows in (SOUNDS, SIGHTS):
        for column in (0, 1):
            assert len({row[column] for row in rows}) == len(rows)
    assert quirks.STEADY[-1] == 960
