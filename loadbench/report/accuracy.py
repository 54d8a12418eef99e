"""Accuracy as a reader can follow it: the steps of a score, and one output of each clip beside its reference."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from typing import Any, Final

from loadbench.scoring import tables, wer
from loadbench.scoring.outputs import Row, compared
from loadbench.scoring.wer import Pair

MOST_CLIPS: Final = 200
MOST_UNITS: Final = 400


def examples(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """The first measured output of each channel and clip that finished."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.complete and row.window == "measure":
            found.setdefault((row.channel, row.clip), row)
    return found


def aligned(row: Row) -> list[Pair]:
    """Reference and hypothesis unit by unit, as they were compared, against the reference that fits best."""
    hypothesis = compared(row, row.hypothesis)
    references = [compared(row, text) for text in row.references]
    return list(islice(wer.aligned(wer.nearest(references, hypothesis)[0], hypothesis), MOST_UNITS))


def steps(part: dict[str, Any]) -> str | None:
    """How the rate of a channel became points, by the standard's table; None where there are none."""
    errors = part["wer"]["errors"]
    if not part["points"] or not errors["n"]:
        return None
    total = errors["s"] + errors["d"] + errors["i"]
    rate = Fraction(total, errors["n"])
    band = tables.table(1).band(tables.AS_DIRECTION[part["direction"]], rate)
    begin = f"w = ({errors['s']} + {errors['d']} + {errors['i']}) / {errors['n']} = {float(rate):.4f}"
    if band is None:
        return None
    how, points = band.formula("w"), float(band.points(rate))
    return f"{begin};  {band.span('w')}  →  " + (f"{how} = {points:.2f}" if band.slope else f"{points:g}")
