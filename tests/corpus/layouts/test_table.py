"""The table of corpora in the READMEs is made from the layouts."""

import pytest

from scripts import corpora_table
from scripts.corpora_table import BEGIN, END, HEADINGS, ROOT


@pytest.mark.parametrize("name", HEADINGS)
def test_the_table_in_the_readme_is_up_to_date(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == corpora_table.written(text, HEADINGS[name]), "python -m scripts.corpora_table writes it anew"


@pytest.mark.parametrize("text", ["no comments", f"{BEGIN} and no end", f"{BEGIN}{BEGIN}{END}"])
def test_a_readme_without_the_comments_is_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match="must stand there once"):
        corpora_table.written(text, HEADINGS["README.md"])
