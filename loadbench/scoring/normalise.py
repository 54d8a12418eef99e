"""A stated, versioned normaliser: what is folded before words are compared. Its name stands in every score.

`loadbench-basic-1`, for written text, in this order:
  1. Unicode NFKC, then case folding.
  2. For English: a comma between thousands goes ("12,500" "12500"), then whole numbers from 0 to 9999 become words
     ("105" "one hundred five"). Numbers with leading zeros, decimal places or letters attached stay as they are.
  3. Punctuation and symbols become a space, except an apostrophe between letters (o'clock, don't) and a full stop
     between digits (3.5). Typographic apostrophes are apostrophes.
  4. White space is collapsed, and gone at both ends.

`loadbench-gloss-1`, for glosses: NFKC, case folding, white space collapsed; punctuation is part of a gloss's name.
A change of any rule changes the number at the end of its name.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from loadbench.results.reference import Unit

BASIC: Final = "loadbench-basic-1"
GLOSS: Final = "loadbench-gloss-1"
RAW: Final = "none"

_APOSTROPHES: Final = str.maketrans(dict.fromkeys("‘’ʼ＇´`", "'"))
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER: Final = re.compile(r"(?<!\w)(?<!\d\.)(?:0|[1-9]\d{0,3})(?!\w|\.\d)")
_KEPT: Final = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])|(?<=\d)\.(?=\d)")
_ONES: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def name_of(unit: Unit) -> str:
    """The normaliser that is used for a unit."""
    return GLOSS if unit == "gloss" else BASIC


@lru_cache(maxsize=4096)  # references come back with every session of their clip
def normalise(text: str, unit: Unit, language: str = "") -> str:
    """`text` as it is compared. See the top of this file for the rules."""
    text = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold()
    if unit != "gloss":
        if language.lower().replace("_", "-").split("-")[0] in ("en", "eng"):
            text = _NUMBER.sub(lambda found: _in_words(int(found[0])), _THOUSANDS.sub("", text))
        text = _without_punctuation(text)
    return " ".join(text.split())


def _without_punctuation(text: str) -> str:
    kept = {found.start() for found in _KEPT.finditer(text)}
    return "".join(
        " " if unicodedata.category(character)[0] in "PS" and place not in kept else character
        for place, character in enumerate(text)
    )


def _in_words(number: int) -> str:
    """An English number from 0 to 9999."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = f" {_in_words(number % size)}" if number % size else ""
    return f"{_ONES[number // size]} {name}{rest}"
