"""The standard's score tables as data (T/CADHOH 0004-2023), read from a file that cites them.

Only what was transcribed is there. A table that is not there is not guessed: asking for it raises `TableMissingError`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any, Final, NoReturn

import msgspec

from loadbench.scoring.wer import Errors, pooled

STANDARD: Final = "t-cadhoh-0004-2023"
# The standard knows two directions; plain speech recognition is the first half of spoken to sign.
AS_DIRECTION: Final = {"sign2spoken": "sign2spoken", "spoken2sign": "spoken2sign", "speech2text": "spoken2sign"}


class TableMissingError(ValueError):
    """A score was asked for whose table loadbench does not have; names each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Band:
    """Points for at_least <= w < below: `points + (edge - w) * factor`."""

    at_least: Fraction
    below: Fraction | None
    points: Fraction
    edge: Fraction
    factor: Fraction


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a standard. `clause` names it in results, `bands` are sorted, by direction."""

    clause: str
    bands: dict[str, tuple[Band, ...]]

    def points(self, direction: str, rate: Fraction | None) -> Fraction | None:
        """Points for an exact rate, never rounded before; None where the rate is undefined."""
        if rate is None:
            return None
        band = next(band for band in reversed(self.bands[AS_DIRECTION[direction]]) if rate >= band.at_least)
        return band.points + (band.edge - rate) * band.factor


@dataclass(frozen=True, slots=True)
class Points:
    """Points of a corpus, by each of three aggregations: the standard's visible text does not fix one.

    `pooled`, from the pooled rate, is the default. `n` sentences have a rate, `undefined` have none (empty references).
    """

    clause: str
    pooled: Fraction | None
    of_mean_rate: Fraction | None
    mean_of_points: Fraction | None
    n: int
    undefined: int


def table(number: int) -> Table:
    """A table by its number. Raises TableMissingError where it is not there."""
    data = _standard()
    found = data["tables"].get(str(number))
    if found is None:
        raise TableMissingError([_missing(data, str(number))])
    bands = {name: tuple(_band(row) for row in rows) for name, rows in found["directions"].items()}
    return Table(clause=f"{data['standard']}, Table {number}", bands=bands)


def composite() -> NoReturn:
    """The standard's composite score (clause 6). Raises TableMissingError, naming each table that is not there."""
    data = _standard()
    raise TableMissingError([_missing(data, number) for number in data["absent"]])


def points(direction: str, sentences: Sequence[Errors]) -> Points:
    """Points by Table 1 for a corpus of sentences, from whole error counts."""
    first = table(1)
    rates = [rate for rate in (item.rate for item in sentences) if rate is not None]
    scores = [score for score in (first.points(direction, rate) for rate in rates) if score is not None]
    return Points(
        clause=first.clause,
        pooled=first.points(direction, pooled(sentences).rate),
        of_mean_rate=first.points(direction, mean(rates)),
        mean_of_points=mean(scores),
        n=len(rates),
        undefined=len(sentences) - len(rates),
    )


def mean(values: Sequence[Fraction]) -> Fraction | None:
    """Their exact mean; None of nothing."""
    return sum(values, Fraction(0)) / len(values) if values else None


@cache
def _standard() -> dict[str, Any]:
    text = resources.files("loadbench").joinpath(f"data/scoring/{STANDARD}.json").read_bytes()
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


def _band(row: dict[str, str]) -> Band:
    below = row.get("below")
    return Band(
        at_least=Fraction(row["at_least"]),
        below=None if below is None else Fraction(below),
        points=Fraction(row["points"]),
        edge=Fraction(row.get("edge", "0")),
        factor=Fraction(row.get("factor", "0")),
    )


def _missing(data: dict[str, Any], number: str) -> str:
    title = data["absent"].get(number)
    if title is None:
        return f"{data['standard']} has no Table {number} that loadbench knows of"
    return (
        f"Table {number} ({title}) of {data['standard']} is not part of loadbench, which does not know its values;"
        " take them from your own copy of the standard"
    )
