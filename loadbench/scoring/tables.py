"""Score tables as data: the standard's (T/CADHOH 0004-2023), read from a file that cites them, and tables of that form.

Only what was transcribed is there. A table that is not there is not guessed: asking for it raises `TableMissingError`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

import msgspec

from loadbench.scoring.wer import Errors, pooled

STANDARD: Final = "T/CADHOH 0004-2023"
FILE: Final = "data/scoring/t-cadhoh-0004-2023.json"
Direction = Literal["sign2spoken", "spoken2sign"]
# The standard knows two directions; plain speech recognition is the first half of spoken to sign.
AS_DIRECTION: Final[dict[str, Direction]] = {
    "sign2spoken": "sign2spoken",
    "spoken2sign": "spoken2sign",
    "speech2text": "spoken2sign",
}


class TableMissingError(ValueError):
    """A score was asked for whose table loadbench does not have; names each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Band:
    """Points of values from `at_least` to `below`: `base + (limit - value) * slope`. None: no bound on that side."""

    at_least: Fraction | None
    below: Fraction | None
    base: Fraction
    limit: Fraction
    slope: Fraction

    def points(self, value: Fraction) -> Fraction:
        """Points of a value in it."""
        return self.base + (self.limit - value) * self.slope

    def formula(self, name: str) -> str:
        """How they are computed, as people write it."""
        if not self.slope:
            return f"{float(self.base):g}"
        sign = "+" if self.slope > 0 else "−"
        return f"{float(self.base):g} {sign} ({float(self.limit):g} − {name}) × {abs(float(self.slope)):g}"

    def span(self, name: str, *, upper: bool = False) -> str:
        """The values in it, as people write them; `upper`: the upper bound belongs to it, and not the lower one."""
        low, high = (" < ", " ≤ ") if upper else (" ≤ ", " < ")
        begin = "" if self.at_least is None else f"{float(self.at_least):g}{low}"
        return f"{begin}{name}" + ("" if self.below is None else f"{high}{float(self.below):g}")


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `clause` names it in results, `bands` are sorted, by direction; `upper` as in `Band.span`."""

    number: int
    title: str
    clause: str
    bands: dict[str, tuple[Band, ...]]
    upper: bool = False

    def band(self, direction: str, value: Fraction) -> Band | None:
        """The band that holds a value; None where none does. A lowest bound always belongs to its band."""
        bands = self.bands.get(direction, ())
        for number, band in enumerate(bands):
            low, high = band.at_least, band.below
            over = low is None or value > low or (value == low and not (self.upper and number))
            under = high is None or value < high or (value == high and self.upper)
            if over and under:
                return band
        return None

    def points(self, direction: str, value: Fraction | None) -> Fraction | None:
        """Points for an exact value, never rounded before; None where it is undefined, or in no band."""
        band = None if value is None else self.band(AS_DIRECTION[direction], value)
        return None if band is None or value is None else band.points(value)


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


@cache
def table(number: int) -> Table:
    """The standard's table of that number. Raises TableMissingError where it is not there."""
    found = made(number, standard()["tables"].get(str(number), {}), STANDARD)
    if not found.bands:
        raise TableMissingError([missing(number)])
    return found


def made(number: int, data: Mapping[str, Any], source: str) -> Table:
    """A table from its data; `source` names the standard, or what stands in for it."""
    bands = {name: tuple(map(_band, rows)) for name, rows in data.get("bands", {}).items() if rows}
    clause = ", ".join([source, *([f"clause {data['clause']}"] if data.get("clause") else []), f"Table {number}"])
    return Table(number, data.get("title", ""), clause, bands, data.get("includes") == "below")


def missing(number: int) -> str:
    """A sentence about a table that is not there."""
    found = standard()["tables"].get(str(number))
    if found is None:
        return f"{STANDARD} has no Table {number} that loadbench knows of"
    return (
        f"Table {number} ({found['title']}) of {STANDARD} is not part of loadbench, which does not know its values;"
        " take them from your own copy of the standard"
    )


def exact(number: float) -> Fraction:
    """A number as it is written in decimals: 0.1 is a tenth."""
    return Fraction(repr(number))


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
def standard() -> dict[str, Any]:
    """The shipped file: Table 1, and the names of the others."""
    found: dict[str, Any] = msgspec.json.decode(resources.files("loadbench").joinpath(FILE).read_bytes())
    return found


def _band(row: Mapping[str, Any]) -> Band:
    low, high = row.get("from"), row.get("below")
    return Band(
        at_least=None if low is None else exact(low),
        below=None if high is None else exact(high),
        base=exact(row["base"]),
        limit=exact(row.get("limit") or 0),
        slope=exact(row.get("slope") or 0),
    )
