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


def basis(step: dict[str, Any]) -> str:
    """What went into a step of the composite score, in signs rather than words."""
    given, number = step["inputs"], step["table"]
    if number == 1:
        errors = given["errors"]
        return f"{given['channel']}: S {errors['s']} + D {errors['d']} + I {errors['i']}, N {errors['n']}"
    if number == 2:
        how = given["how"]
        name = f"BLEU-{how['bleu_order']} ({how['bleu_smoothing']})"
        return f"{given['channel']}: {name} {given['bleu']:.2f}, ROUGE-L (b {how['rouge_beta']}) {given['rouge_l']:.3f}"
    if number == 5:
        return f"{given['metric']} {given['stat']} ({given['counted']}), n {given['n']}"
    spread = "" if given["sd"] is None else f", sd {given['sd']:.2f}"
    agreement = "" if given["alpha"] is None else f", α {given['alpha']:.3f}"
    return f"n {given['ratings']}, raters {given['raters']}, items {given['items']}{spread}{agreement}"


def assessments(scores: dict[str, Any]) -> list[tuple[dict[str, Any], str, dict[str, Any]]]:
    """What was scored by entered tables: under which name, in which direction, and its steps with the composite."""
    parts = [part for part in (scores["standard"], scores["not_the_standard"]) if part and part["sha256"]]
    return [(part, direction, made) for part in parts for direction, made in part["directions"].items()]


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
