"""Ratings by people: what is read, who left what out, and how far they agree."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.scoring.ratings import (
    Rating,
    alpha,
    encode,
    items,
    load,
    missing,
    outline,
    overall,
    read,
    schema,
    summarise,
)
from loadbench.scoring.tables_file import TablesError
from tests.results.test_schema import faults

CSV = """indicator,clip,rater,value,direction
3,a,anna,80,
3,a,ben,70.5,
3,b,anna,90,
7,system,anna,4,spoken2sign
"""
# Four observers, twelve units: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), where the alpha of
# interval data is 0.849.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)


def test_a_csv_file_and_json_lines_hold_the_same_ratings() -> None:
    found = read(CSV.encode(), "r.csv")
    assert found[1] == Rating(indicator=3, clip="a", rater="ben", value=70.5)
    assert found[3].direction == "spoken2sign"
    lines = b"".join(encode(found))
    assert read(lines, "r.jsonl") == found
    assert read(b"\xef\xbb\xbf" + CSV.encode(), "r.csv") == found


def test_all_lines_that_are_no_ratings_are_named_at_once() -> None:
    text = """indicator,clip,rater,value,direction
3,a,anna,eighty,
2,a,anna,80,
4,,anna,80,
4,a,anna,nan,
4,a,ben,80,sideways
4,b,ben,80,
4,b,ben,85,
6,a,ben,85,sign2spoken
6,a,ben,85,
8,a,ben,1,
8,system,ben,1,
9,a,ben,1,,more
"""
    with pytest.raises(TablesError) as caught:
        read(text.encode(), "r.csv")
    assert caught.value.problems == [
        "r.csv:2: no rating: Expected `float`, got `str` - at `$.value`",
        "r.csv:3: indicator 2: people rate tables 3, 4, 6, 7, 8, 9, 10, 11",
        "r.csv:4: no rating: Object missing required field `clip`",
        "r.csv:5: value nan is no number",
        "r.csv:6: direction 'sideways': there are sign2spoken and spoken2sign",
        "r.csv:8: ben rated indicator 4 of b before",
        "r.csv:10: ben rated indicator 6 of a before",
        "r.csv:13: no rating: Object contains unknown field `more than its columns`",
        "r.csv: indicator 8 is rated for the system and for clips: choose one",
    ]


@pytest.mark.parametrize(
    ("data", "source", "said"),
    [
        (b"{", "r.jsonl", "r.jsonl:1: no rating"),
        (b'{"indicator": 3, "clip": "", "rater": "x", "value": 1}', "r.jsonl", "needs a clip"),
        (b"\xff\xfe", "r.csv", "not UTF-8"),
        (b'indicator,clip\n3,"a', "r.csv", "no CSV: unexpected end of data"),
    ],
)
def test_what_is_no_file_of_ratings_is_said_without_a_traceback(data: bytes, source: str, said: str) -> None:
    with pytest.raises(TablesError) as caught:
        read(data, source)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match=r"r\.csv: No such file"):
        load(tmp_path / "r.csv")


def test_agreement_of_a_published_example() -> None:
    units = [[float(value) for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]
    assert alpha(units) == pytest.approx(0.849, abs=5e-4)
    assert alpha(units) == pytest.approx(951 / 1120, abs=1e-12)


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ([[1, 1], [2, 2], [5, 5]], 1.0),
        ([[1, 2], [2, 1]], -0.5),  # worse than chance
        ([[3, 3], [3, 3]], None),  # all the same: no chance to compare with
        ([[1], [2]], None),  # nobody rated the same thing
        ([], None),
    ],
)
def test_agreement_at_its_ends(units: list[list[float]], expected: float | None) -> None:
    assert alpha(units) == (None if expected is None else pytest.approx(expected))


def test_a_rater_who_rated_more_does_not_count_more_and_who_left_something_out_is_named() -> None:
    rated = items(read(CSV.encode(), "r.csv"), 3, "sign2spoken")
    assert overall(rated) == (Fraction(301, 4) + 90) / 2
    found = summarise(rated)
    assert (found["ratings"], found["raters"], found["items"]) == (3, 2, 2)
    assert (found["value"], found["min"], found["max"]) == (82.625, 70.5, 90.0)
    assert found["sd"] == pytest.approx(9.75107, abs=1e-5)
    assert found["unrated"] == ["ben did not rate b"]
    assert found["alpha"] == pytest.approx(0.0)
    assert summarise({"a": {"anna": Fraction(3)}})["sd"] is None


def test_ratings_of_one_direction_count_in_that_one_alone() -> None:
    found = read(CSV.encode(), "r.csv")
    assert items(found, 7, "spoken2sign") == {"system": {"anna": 4}}
    assert items(found, 7, "sign2spoken") == {}


def test_clips_that_nobody_rated_are_named_unless_the_system_was_rated() -> None:
    assert missing({"a": {"anna": Fraction(1)}}, {"a", "c", "b"}) == ["b", "c"]
    assert missing({"system": {"anna": Fraction(1)}}, {"a"}) == []


def test_an_outline_tells_each_indicator() -> None:
    assert outline(read(CSV.encode(), "r.csv")) == [
        "indicator 3: 3 ratings of 2 items by 2 raters, mean 82.625, from 70.5 to 90, alpha 0.000",
        "  ben did not rate b",
        "indicator 7 (spoken2sign): 1 ratings of 1 items by 1 raters, mean 4, from 4 to 4",
    ]
    assert outline([]) == ["no ratings"]


def test_ratings_fit_the_published_schema() -> None:
    whole = json.loads(json.dumps(schema()))
    for line in encode(read(CSV.encode(), "r.csv")):
        assert faults(json.loads(line), whole, whole) == []
    assert faults({"indicator": 3}, whole, whole)
