"""Table 1 of T/CADHOH 0004-2023: every stated value, its jumps, and what is refused."""

from fractions import Fraction

import pytest

from loadbench.scoring.tables import TableMissingError, points, standard, table
from loadbench.scoring.wer import Errors

SIGN_TO_SPOKEN = [
    *(("0", "100"), ("0.1999999", "100"), ("0.2", "100"), ("0.25", "95"), ("0.3", "90"), ("0.39", "81"), ("0.4", "80")),
    *(("0.45", "75"), ("0.5", "70"), ("0.5999", "60.01"), ("0.6", "0"), ("1.5", "0")),
]
SPOKEN_TO_SIGN = [
    *(("0", "100"), ("0.0199999", "100"), ("0.02", "100"), ("0.05", "92.5"), ("0.08", "85"), ("0.1", "80")),
    *(("0.12", "76"), ("0.15", "70"), ("0.19", "62"), ("0.1999999", "60.00002"), ("0.2", "0"), ("0.25", "0")),
]


@pytest.mark.parametrize(("rate", "expected"), SIGN_TO_SPOKEN)
def test_sign_to_spoken(rate: str, expected: str) -> None:
    assert table(1).points("sign2spoken", Fraction(rate)) == Fraction(expected)


@pytest.mark.parametrize("direction", ["spoken2sign", "speech2text"])
@pytest.mark.parametrize(("rate", "expected"), SPOKEN_TO_SIGN)
def test_spoken_to_sign(direction: str, rate: str, expected: str) -> None:
    assert table(1).points(direction, Fraction(rate)) == Fraction(expected)


CONTINUITY = [
    ("sign2spoken", "0.2", 100),
    ("sign2spoken", "0.4", 80),
    ("spoken2sign", "0.02", 100),
    ("spoken2sign", "0.1", 80),
]
JUMPS = [("sign2spoken", "0.6"), ("spoken2sign", "0.2")]
TINY = Fraction(1, 10**12)


@pytest.mark.parametrize(("direction", "edge", "value"), CONTINUITY)
def test_neighbouring_bands_meet(direction: str, edge: str, value: int) -> None:
    for rate in (Fraction(edge) - TINY, Fraction(edge), Fraction(edge) + TINY):
        assert abs(table(1).points(direction, rate) - value) <= 250 * TINY


@pytest.mark.parametrize(("direction", "edge"), JUMPS)
def test_each_direction_has_one_jump_from_60_to_0(direction: str, edge: str) -> None:
    below = table(1).points(direction, Fraction(edge) - TINY)
    assert 60 < below <= 60 + 250 * TINY
    assert table(1).points(direction, Fraction(edge)) == 0


# errors, N -> points in both directions, to four decimal places
WORKED = [
    (2, 6, 86.6667, 0),
    (3, 11, 92.7273, 0),
    (4, 6, 0, 0),
    (2, 11, 100, 63.6364),
    (3, 6, 70, 0),
    (5, 3, 0, 0),
    (4, 4, 0, 0),
    (3, 5, 0, 0),  # exactly 0.6: not 60
    (1, 5, 100, 0),  # exactly 0.2
]


@pytest.mark.parametrize(("wrong", "n", "to_spoken", "to_sign"), WORKED)
def test_worked_rows(wrong: int, n: int, to_spoken: float, to_sign: float) -> None:
    sentence = [Errors(n, deletions=wrong)]
    assert float(points("sign2spoken", sentence).pooled) == pytest.approx(to_spoken, abs=5e-5)
    assert float(points("spoken2sign", sentence).pooled) == pytest.approx(to_sign, abs=5e-5)


@pytest.mark.parametrize("n", range(1, 101))
def test_bands_are_chosen_from_whole_counts(n: int) -> None:
    for wrong in range(n + 1):
        value = table(1).points("sign2spoken", Errors(n, wrong).rate)
        assert (value == 0) is (10 * wrong >= 6 * n)
        assert (value == 100) is (10 * wrong <= 2 * n)


def test_the_three_aggregations_differ_and_all_are_told() -> None:
    found = points("sign2spoken", [Errors(10, 1), Errors(5, 3), Errors(5)])
    assert found.pooled == 100
    assert float(found.of_mean_rate) == pytest.approx(96.6667, abs=5e-5)
    assert float(found.mean_of_points) == pytest.approx(66.6667, abs=5e-5)
    assert (found.n, found.undefined) == (3, 0)
    assert found.clause == "T/CADHOH 0004-2023, Table 1"


def test_an_undefined_rate_has_no_points() -> None:
    assert table(1).points("sign2spoken", None) is None
    found = points("sign2spoken", [Errors(0, insertions=2)])
    assert (found.pooled, found.of_mean_rate, found.mean_of_points) == (None, None, None)
    assert (found.n, found.undefined) == (0, 1)
    assert points("sign2spoken", []).pooled is None


@pytest.mark.parametrize("number", range(2, 13))
def test_a_table_that_is_not_there_is_named_and_never_guessed(number: int) -> None:
    with pytest.raises(TableMissingError, match=f"Table {number} \\(") as caught:
        table(number)
    assert "T/CADHOH 0004-2023" in caught.value.problems[0]


def test_a_table_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TableMissingError, match="Table 13"):
        table(13)


def test_every_table_of_the_contents_list_is_there_by_name_and_all_but_the_first_are_empty() -> None:
    found = standard()["tables"]
    assert list(found) == [str(number) for number in range(1, 13)]
    assert all(part["title"] for part in found.values())
    assert [number for number, part in found.items() if part.get("bands") or part.get("weights")] == ["1"]
