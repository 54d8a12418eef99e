"""The tables in docs/media.md are made from the rows that the tests go by."""

import pytest

from scripts import quirks_table
from scripts.quirks_table import BEGIN, END, ROOT, WORDS
from tests.media.quirks import SIGHTS, SOUNDS


@pytest.mark.parametrize("name", WORDS)
def test_the_tables_on_the_page_are_up_to_date(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == quirks_table.written(text, WORDS[name]), "python -m scripts.quirks_table writes them anew"


def test_only_what_stands_between_the_comments_is_written_anew_and_a_page_without_them_is_left_alone() -> None:
    places = [f"{BEGIN.format(name)}\n| the last table |\n{END.format(name)}" for name in ("sounds", "sights")]
    text = quirks_table.written("before\n" + "\nbetween\n".join(places) + "\nafter\n", WORDS["docs/media.md"])
    assert text.startswith("before\n<!-- sounds: ")
    assert text.endswith("<!-- sights: end -->\nafter\n")
    assert "the last table" not in text
    assert text.count("\n| ") == len(SOUNDS) + len(SIGHTS) + 4
    with pytest.raises(ValueError, match="must stand there once"):
        quirks_table.written(places[0], WORDS["docs/media.md"])


def test_a_row_says_what_becomes_of_a_file() -> None:
    words = WORDS["docs/media.md"]
    named = {row.name: quirks_table.sound(row, words)[1] for row in SOUNDS}
    assert named["EXTENSIBLE, 24 bits"] == "16,000 samples, each as it was recorded"
    assert named["MP3"] == "16,000 samples"
    assert named["two channels, `mix` chosen"] == "16,000 samples, each as it was recorded (channel `mix`)"
    assert named["header only"] == "refused: “holds no samples”"
    films = {row.name: quirks_table.sight(row, words)[1] for row in SIGHTS}
    assert films["variable frame rate"] == "7 pictures of 64 x 48 in 520 ms, at 0, 40, 160, 200, 320, 360, 480 ms"
    assert films["rotated by 90 degrees"] == "25 pictures of 48 x 64 in 1000 ms, turned as the file asks"
    assert films["pixels of 4:3"] == "25 pictures of 64 x 36 in 1000 ms"
