import pytest

from benchmarks import media


def test_the_table_has_a_recording_its_segments_and_some_of_them_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "FILES", [("wav", "pcm_s16le", 8000)])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in media.measure(1, 4).splitlines()[2:]]
    assert [row[0] for row in rows] == [
        "WAV, 8 kHz: 1 min",
        "WAV, 8 kHz: 4 segments",
        "WAV, 8 kHz: 4 of these, one at a time",
    ]
    assert [len(row) for row in rows] == [4] * 3
    assert all(float(cell) >= 0 for row in rows for cell in row[1:])  # so little takes less than is shown
