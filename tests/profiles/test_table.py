"""The table of profiles in the READMEs is made from the profiles."""

import pytest

from scripts import profiles_table
from scripts.profiles_table import BEGIN, END, HEADINGS, ROOT


@pytest.mark.parametrize("name", HEADINGS)
def test_the_table_in_the_readme_is_up_to_date(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == profiles_table.written(text, HEADINGS[name]), "python -m scripts.profiles_table writes it anew"


def test_only_what_stands_between_the_comments_is_written_anew() -> None:
    text = profiles_table.written(f"before\n{BEGIN}\n| old |\n{END}\nafter\n", HEADINGS["README.md"])
    assert text.startswith(f"before\n{BEGIN}\n\n| name | service |")
    assert text.endswith(f"|\n\n{END}\nafter\n")
    assert "old" not in text


@pytest.mark.parametrize("text", ["no comments", f"{BEGIN} and no end", f"{BEGIN}{BEGIN}{END}"])
def test_a_readme_without_the_comments_is_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match="must stand there once"):
        profiles_table.written(text, HEADINGS["README.md"])


def test_a_row_says_how_a_profile_speaks() -> None:
    line = next(row for row in profiles_table.table(HEADINGS["README.md"]).splitlines() if row.startswith("| `vosk` "))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2:6] == ["WebSocket", "s16le 16 kHz, 200 ms, binary", "unkeyed", "**transcript**"]
