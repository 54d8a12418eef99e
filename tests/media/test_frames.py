"""A folder's frames in the order of their numbers."""

from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Track
from loadbench.media.decode import MediaError
from loadbench.media.frames import numbered


def folder(path: Path, names: list[str]) -> Path:
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


@pytest.mark.parametrize(
    ("pattern", "names", "numbers"),
    [
        ("images%04d.png", ["images0010.png", "images0009.png", "images10000.png"], [9, 10, 10_000]),
        ("%d.jpg", ["10.jpg", "9.jpg", "1.jpg"], [1, 9, 10]),  # by number, not by letters
        ("f_%03d_left.png", ["f_001_left.png", "f_001_right.png", "f_2_left.png"], [1]),
        ("f%03d.png", ["f٠٠١.png", "f001.png", "f001.PNG", "f-01.png"], [1]),  # only plain digits count
    ],
)
def test_frames_are_those_whose_name_the_pattern_prints(
    tmp_path: Path, pattern: str, names: list[str], numbers: list[int]
) -> None:
    found = numbered(Track("video", folder(tmp_path / "a", names), pattern, Fraction(25)), [])
    assert [number for number, _ in found] == numbers
    assert [path.name for _, path in found] == [pattern % number for number in numbers]


@pytest.mark.parametrize(
    ("names", "pattern", "fps", "said"),
    [
        (["a.png"], "images%04d.png", Fraction(25), "no file is named like images%04d.png; it holds a.png"),
        ([], "images%04d.png", Fraction(25), "no file is named like images%04d.png; it is empty"),
        (["1.png"], "%d.png", None, "say their fps"),
        (["1.png"], "images.png", Fraction(25), "must hold one number"),
        (list("abcdefg"), "%d", Fraction(25), "it holds a, b, c, d, e and 2 more"),
    ],
)
def test_a_folder_without_frames_says_what_it_holds(
    tmp_path: Path, names: list[str], pattern: str, fps: Fraction | None, said: str
) -> None:
    with pytest.raises(MediaError, match=r".") as caught:
        numbered(Track("video", folder(tmp_path / "a", names), pattern, fps), [])
    assert said in str(caught.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(MediaError) as caught:
        numbered(Track("video", tmp_path / "gone", "%d.png", Fraction(25)), [])
    assert caught.value.problems == [f"{tmp_path / 'gone'}: no such folder of frames"]
