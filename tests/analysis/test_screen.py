"""Rows as a viewer sees them, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.analysis.screen import Line, Screen, rows_of, screened
from tests.analysis.records import updates


def replayed(texts: list[str], characters: int, rows: int) -> Screen:
    """What is shown at 0, 1, 2 ... of the run clock."""
    return screened(updates(enumerate(texts)), characters, rows)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("the cat sat", ["the cat", "sat"]),
        ("the cats sat", ["the cats", "sat"]),  # just fits
        ("  the   cat ", ["the", "cat"]),  # three spaces between: nine places
        ("abcdefghij", ["abcdefgh", "ij"]),  # longer than a row
        ("我们去公园散步好不好", ["我们去公园散步好", "不好"]),  # no spaces at all
        ("", []),
        ("   ", []),
    ],
)
def test_rows_take_whole_words_of_at_most_8_characters(text: str, rows: list[str]) -> None:
    assert [text[start:stop] for start, stop in rows_of(text, 0, 8)] == rows


def test_a_line_is_whole_with_its_last_character_and_leaves_with_the_row_that_pushes_it_out() -> None:
    # Two rows of 7. At 0 "the", at 1 "the cat", at 2 a second row, at 3 a third: the first leaves.
    screen = replayed(["the", "the cat", "the cat sat", "the cat sat on mats"], 7, 2)
    assert screen.lines == [Line(0, 7, 1, 3), Line(8, 14, 3, None), Line(15, 19, 3, None)]
    assert [screen.text[line.start : line.stop] for line in screen.lines] == ["the cat", "sat on", "mats"]
    assert (screen.taken_back, screen.changed_ns) == (0, [0, 1, 2, 3])


def test_a_first_row_that_a_longer_word_left_behind_stands_since_it_was_there() -> None:
    # "the cat" is one row; "the catalog" two: "the" has stood since 0.
    screen = replayed(["the cat", "the catalog"], 7, 2)
    assert screen.lines == [Line(0, 3, 0), Line(4, 11, 1)]


def test_a_change_in_a_row_begins_it_anew_and_what_stood_before_it_stays() -> None:
    # "the cat sit" becomes "the cat sat": the second row stands since 1, the first since 0; one change took text back.
    screen = replayed(["the cat sit", "the cat sat"], 7, 2)
    assert screen.lines == [Line(0, 7, 0), Line(8, 11, 1)]
    assert screen.taken_back == 1


def test_a_word_that_got_shorter_can_move_up_a_row() -> None:
    # "the" / "catalog" (a row holds 7): "cat" fits behind "the", so the first row changes as well.
    screen = replayed(["the catalog", "the cat"], 7, 2)
    assert screen.lines == [Line(0, 7, 1)]


def test_the_screen_is_blank_until_text_comes_and_again_when_it_is_taken_away() -> None:
    screen = replayed(["", " ", "the", "", "the"], 7, 2)
    assert screen.blank == [(None, 2), (3, 4)]


def test_a_line_that_left_and_came_back_has_left_when_it_first_did() -> None:
    screen = replayed(["aaa bbb ccc", "aaa bbb"], 3, 2)
    assert screen.lines == [Line(0, 3, 0, 0), Line(4, 7, 0)]


words = st.text(alphabet="ab 我\n", max_size=40)


@given(st.lists(words, max_size=8), st.integers(1, 9), st.integers(1, 3))
def test_what_is_kept_from_update_to_update_is_what_anew_would_be(texts: list[str], characters: int, rows: int) -> None:
    screen = replayed(texts, characters, rows)
    last = (texts or [""])[-1].replace("\n", " ")
    assert screen.text == last
    assert [(line.start, line.stop) for line in screen.lines] == list(rows_of(last, 0, characters))
    for line in screen.lines:  # since then the text up to its end has not changed
        since = [text.replace("\n", " ")[: line.stop] for text in texts[line.whole_ns :]]
        assert set(since) == {last[: line.stop]}
