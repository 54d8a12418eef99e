"""A clip's own file goes as it is, at the end of its media."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus.clip import Track
from loadbench.media import whole_file
from loadbench.media.decode import MediaError
from loadbench.media.made import Made
from tests.media import making


def refused(path: Path, **track: Any) -> str:
    with pytest.raises(MediaError) as caught:
        list(whole_file.chunks(Track("video", path, **track), Made()))
    return str(caught.value)


@pytest.mark.parametrize("declared", [None, Fraction(1), Fraction("0.96"), Fraction(2)])
def test_a_file_is_one_chunk_of_its_own_bytes_due_at_its_end(tmp_path: Path, declared: Fraction | None) -> None:
    path, made = making.video(tmp_path / "a.mp4", range(0, 1000, 40)), Made()
    rows = list(whole_file.chunks(Track("video", path, duration_s=declared), made))
    assert rows == [(1_000_000_000, 0, path.read_bytes())]
    assert made == Made(1_000_000_000, [])


def test_a_part_of_a_file_and_a_folder_of_frames_are_no_file(tmp_path: Path) -> None:
    path = making.video(tmp_path / "a.mp4", range(0, 1000, 40))
    part = "the clip is only a part of this file, and the profile sends files whole"
    assert part in refused(path, offset_s=Fraction("0.1"))
    assert part in refused(path, duration_s=Fraction("0.5"))
    assert "is a folder of frames, and the profile sends files" in refused(tmp_path, pattern="%d.png", fps=Fraction(25))
    (tmp_path / "b.mp4").write_bytes(b"")
    assert "the file is empty" in refused(tmp_path / "b.mp4")
