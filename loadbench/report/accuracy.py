"""Accuracy as a reader can follow it: the steps of a score, and one output of each clip beside its reference."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from rapidfuzz.distance import Levenshtein

from loadbench.results.reference import tokens
from loadbench.scoring import tables
from loadbench.scoring.normalise import normalise
from loadbench.scoring.outputs import Row
from loadbench.scoring.wer import best

MOST_CLIPS: Final = 200
MOST_UNITS: Final = 400


class Pair(NamedTuple):
    """A stretch of an alignment: `kind` is same, sub, del or ins; what is not there is ""."""

    kind: str
    reference: str
    hypothesis: str


def examples(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """The first measured output of each channel and clip that finished."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.complete and row.window == "measure":
            found.setdefault((row.channel, row.clip), row)
    return found


def aligned(row: Row) -> list[Pair]:
    """Reference and hypothesis unit by unit, as they were compared, against the reference that fits best."""
    hypothesis = tokens(normalise(row.hypothesis, row.unit, row.language), row.unit)
    references = [tokens(normalise(text, row.unit, row.language), row.unit) for text in row.references]
    # Not by `best` alone: it returns counts, and here the tokens are wanted.
    wanted = best(references, hypothesis)
    reference = next(words for words in references if best([words], hypothesis) == wanted)
    return list(_pairs(reference, hypothesis))[:MOST_UNITS]


def steps(part: dict[str, Any]) -> str | None:
    """How the rate of a channel became points, by the standard's table; None where there are none."""
    errors = part["wer"]["errors"]
    if not part["points"] or not errors["n"]:
        return None
    total = errors["s"] + errors["d"] + errors["i"]
    rate = Fraction(total, errors["n"])
    bands = tables.table(1).bands[tables.AS_DIRECTION[part["direction"]]]
    band = next(band for band in reversed(bands) if rate >= band.at_least)
    begin = f"w = ({errors['s']} + {errors['d']} + {errors['i']}) / {errors['n']} = {float(rate):.4f}"
    where = f"{float(band.at_least):g} ≤ w" + ("" if band.below is None else f" < {float(band.below):g}")
    points = float(band.points + (band.edge - rate) * band.factor)
    if not band.factor:
        return f"{begin};  {where}  →  {points:g}"
    how = f"{float(band.points):g} + ({float(band.edge):g} − w) × {float(band.factor):g}"
    return f"{begin};  {where}  →  {how} = {points:.2f}"


def _pairs(reference: Sequence[str], hypothesis: Sequence[str]) -> Iterable[Pair]:
    names = {"equal": "same", "replace": "sub", "delete": "del", "insert": "ins"}
    for step in Levenshtein.opcodes(reference, hypothesis):
        left, right = reference[step.src_start : step.src_end], hypothesis[step.dest_start : step.dest_end]
        for one, other in zip_longest(left, right, fillvalue=""):
            yield Pair(names[step.tag], one, other)
