"""The normaliser, rule by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.scoring.normalise import BASIC, GLOSS, name_of, normalise

ENGLISH = [
    ("Hello, world.", "hello world"),
    ("  the   cat\tsat \n", "the cat sat"),
    ("It's nine o'clock!", "it's nine o'clock"),
    ("Don’t “quote” me", "don't quote me"),
    ("the dogs' 'home'", "the dogs home"),
    ("well-known", "well known"),
    ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
    ("STRASSE straße", "strasse strasse"),
    ("105 red boats", "one hundred five red boats"),
    ("0 7 12 20 21 99 100", "zero seven twelve twenty twenty one ninety nine one hundred"),
    ("9999", "nine thousand nine hundred ninety nine"),
    ("1000 2024", "one thousand two thousand twenty four"),
    ("1,000 people", "one thousand people"),
    ("1,2 or 3,4567", "one two or three four thousand five hundred sixty seven"),
    ("10000 and 12,500", "10000 and 12500"),  # beyond what is stated: left as digits
    ("3.5 metres.", "3.5 metres"),
    ("platform 2.", "platform two"),
    ("room 007, B12, 5th", "room 007 b12 5th"),
    ("5 % of $20", "five of twenty"),
    ("a_b", "a b"),
    ("", ""),
    ("...", ""),
]


@pytest.mark.parametrize(("text", "expected"), ENGLISH)
def test_english(text: str, expected: str) -> None:
    assert normalise(text, "word", "en") == expected
    assert normalise(text, "word", "en-GB") == expected


OTHERS = [
    ("今天下午，三点开会。", "char", "zh", "今天下午 三点开会"),
    ("我买了２个iPhone15！", "char", "zh", "我买了2个iphone15"),
    ("Das kostet 20 Euro.", "word", "de", "das kostet 20 euro"),
    ("L’été, déjà", "word", "fr", "l'été déjà"),
    ("  IX-1  loc-HAUS ", "gloss", "dgs", "ix-1 loc-haus"),
    ("今天 天气", "gloss", "zh", "今天 天气"),
]


@pytest.mark.parametrize(("text", "unit", "language", "expected"), OTHERS)
def test_other_languages_and_glosses(text: str, unit, language: str, expected: str) -> None:
    assert normalise(text, unit, language) == expected


def test_every_normaliser_has_a_versioned_name() -> None:
    assert (name_of("word"), name_of("char"), name_of("gloss")) == (BASIC, BASIC, GLOSS)
    assert BASIC == "loadbench-basic-1"


@given(st.text())
def test_normalising_what_is_normalised_changes_nothing_but_composed_forms(text: str) -> None:
    once = normalise(text, "word", "de")
    assert once == " ".join(once.split())
    assert normalise(once, "gloss") == normalise(normalise(once, "gloss"), "gloss")
