"""Sound in slices of a recorder's file: due when captured, the head in the first, and together a file that plays."""

import io
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from loadbench.corpus.clip import Track
from loadbench.media import recording
from loadbench.media.form import WHOLE, AudioForm, RecordingForm
from loadbench.media.made import Made
from tests.media import making

MS = 1_000_000
HEADS = {"webm": b"\x1aE\xdf\xa3", "ogg": b"OggS", "wav": b"RIFF"}


def recorded(
    path: Path, container: Any, chunk_ms: int | None, rate_hz: int = 16_000, seconds: float = 1.03, tail_s: float = 0.0
) -> tuple[list[tuple[int, bytes]], Made]:
    """Due times in ns with the slices of a tone."""
    making.wav(path / "a.wav", making.tone(seconds).tobytes())
    samples = WHOLE if chunk_ms is None else rate_hz * chunk_ms // 1000
    made, form = Made(), RecordingForm(container, AudioForm("s16le", rate_hz, samples))
    rows = list(recording.chunks(Track("audio", path / "a.wav"), form, tail_s, made))
    return [(due_ns, data) for due_ns, _, data in rows], made


def heard(data: bytes) -> tuple[float, np.ndarray[Any, Any]]:
    """Seconds of sound in a file, and its samples."""
    with av.open(io.BytesIO(data)) as file:
        frames = list(file.decode(audio=0))
    samples = np.concatenate([np.atleast_2d(frame.to_ndarray())[0] for frame in frames])
    return len(samples) / frames[0].sample_rate, samples


@pytest.mark.parametrize("container", ["webm", "ogg", "wav"])
@pytest.mark.parametrize(("chunk_ms", "rate_hz"), [(100, 16_000), (250, 48_000), (30, 8_000), (1500, 24_000)])
def test_a_slice_is_due_when_its_sound_has_been_captured_and_all_in_a_row_are_a_file(
    tmp_path: Path, container: str, chunk_ms: int, rate_hz: int
) -> None:
    rows, made = recorded(tmp_path, container, chunk_ms, rate_hz)
    ends = [*range(chunk_ms, 1030, chunk_ms), 1030]
    assert [due for due, _ in rows] == [end * MS for end in ends]
    assert (made.duration_ns, made.notes) == (1030 * MS, [])
    assert rows[0][1].startswith(HEADS[container])
    length_s, samples = heard(b"".join(data for _, data in rows))
    assert length_s == pytest.approx(1.03, abs=1e-9)
    assert np.abs(samples).max() > 0.2 * (32768 if samples.dtype == np.int16 else 1)


@pytest.mark.parametrize("container", ["webm", "ogg"])
def test_each_slice_can_be_decoded_as_soon_as_it_has_come_to_its_end_but_for_the_look_ahead(
    tmp_path: Path, container: str
) -> None:
    rows, _ = recorded(tmp_path, container, 200)
    for count in range(1, len(rows)):
        length_s, _ = heard(b"".join(data for _, data in rows[:count]))
        assert rows[count - 1][0] / 1e9 - 0.0066 <= length_s <= rows[count - 1][0] / 1e9, "RFC 7845: 312 of 48000"


@pytest.mark.parametrize("container", ["webm", "ogg", "wav"])
def test_a_whole_clip_is_one_slice_and_the_same_bytes_each_time(tmp_path: Path, container: str) -> None:
    ((due_ns, data),), _ = recorded(tmp_path, container, None)
    assert due_ns == 1030 * MS
    assert recorded(tmp_path, container, None)[0] == [(due_ns, data)]
    assert heard(data)[0] == pytest.approx(1.03, abs=1e-9)


@pytest.mark.parametrize("container", ["webm", "ogg"])
def test_tail_silence_is_recorded_on_and_is_not_media(tmp_path: Path, container: str) -> None:
    rows, made = recorded(tmp_path, container, 100, tail_s=0.25)
    assert made.duration_ns == 1030 * MS
    assert [due // MS for due, _ in rows] == [*range(100, 1300, 100), 1280]
    length_s, samples = heard(b"".join(data for _, data in rows))
    assert length_s == pytest.approx(1.28, abs=1e-9)
    assert np.abs(samples[-4800:]).max() < 0.01
