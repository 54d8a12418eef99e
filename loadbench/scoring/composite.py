"""From figures to points to the composite score of T/CADHOH 0004-2023 (clause 6, Table 12), step by step.

Each step names its table, what went in, the rule that was applied, and under whose name: the standard's, or that it is
not the standard. While a table, a weight, a figure or a rating is missing there is no composite; each of them is named.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from loadbench.scoring import bleu, ratings, tables
from loadbench.scoring.ratings import Rating
from loadbench.scoring.tables import AS_DIRECTION, Band, Direction, Table, exact
from loadbench.scoring.tables_file import NONE, RATED, WEIGHTS, Tables, Translation

SCORED: Final = range(1, WEIGHTS)


@dataclass(frozen=True)
class Timed:
    """The response time that a tables file asks for, from the timed run. `value_s` is None where there is none: `why`.

    `bound` is exact, at_least (`value_s` is a lower bound) or never (beyond any value).
    """

    value_s: float | None
    bound: str = "exact"
    n: int = 0
    why: str = ""


@dataclass(frozen=True)
class Figure:
    """What a table is asked with. `value` is None where there is none, and `why` says so; "" where it is infinite."""

    name: str
    value: Fraction | None
    inputs: Mapping[str, Any]
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """All that is known of a run: its scores, ratings, response time, and why it may not be scored as a whole."""

    scores: Mapping[str, Any]
    ratings: Sequence[Rating] = ()
    timed: Timed | None = None
    unfit: Sequence[str] = ()


def assess(sheet: Tables | None, found: Evidence) -> dict[str, Any]:
    """What stands in scores.json: `standard`, under the standard's name, and `not_the_standard`, which is None unless
    the tables have another name. Each holds, by direction, `steps` and the `composite` with what it is missing.
    """
    own = sheet if sheet is not None and sheet.standard else NONE
    other = sheet if sheet is not None and not sheet.standard else None
    return {"standard": _under(own, found), "not_the_standard": None if other is None else _under(other, found)}


def _under(sheet: Tables, found: Evidence) -> dict[str, Any]:
    parts = found.scores["channels"].values()
    directions = sorted({AS_DIRECTION[part["direction"]] for part in parts})
    clips = {clip for part in parts for clip in part["clips"]}
    rated = {each.clip for each in found.ratings} - {ratings.SYSTEM}
    return {
        "under": sheet.label,
        "source": sheet.source,
        "sha256": None if sheet is NONE else sheet.digest,
        "directions": {name: _direction(sheet, name, found, len(directions)) for name in directions},
        "unused_ratings": sorted(rated - clips),
    }


def _direction(sheet: Tables, direction: Direction, found: Evidence, directions: int) -> dict[str, Any]:
    weights = sheet.weights(direction)
    missing = list(found.unfit)
    steps = []
    for number in sorted(weights) or SCORED:
        step, why = _step(sheet, number, direction, found, directions)
        missing += [why] if why else []
        if step is not None:
            steps.append(step | _weighed(weights.get(number), step["points"]))
    missing += [] if weights else [_missing(sheet, WEIGHTS)]
    if sheet.standard and weights:  # whoever speaks in its name knows all of it, also what he gives no weight here
        others = [number for number in SCORED if number not in weights]
        missing += [_missing(sheet, number) for number in others if not _entered(sheet, number)]
    return {"steps": steps, "composite": _composite(sheet, weights, steps, missing)}


def _weighed(weight: float | None, points: float) -> dict[str, float | None]:
    return {"weight": weight, "weighted": None if weight is None else float(exact(weight) * exact(points))}


def _composite(
    sheet: Tables, weights: Mapping[int, float], steps: Sequence[Mapping[str, Any]], missing: Sequence[str]
) -> dict[str, Any]:
    known = tables.standard()["tables"][str(WEIGHTS)]
    value = (
        None if missing else sum((exact(weights[step["table"]]) * exact(step["points"]) for step in steps), Fraction())
    )
    rule = " + ".join(f"{step['weight']:g} × {step['points']:g}" for step in steps) if not missing else ""
    return {
        "under": sheet.label,
        "clause": f"{sheet.label}, clause {known['clause']}, Table {WEIGHTS}",
        "rule": rule,
        "value": None if value is None else float(value),
        "missing": list(missing),
    }


def _step(
    sheet: Tables, number: int, direction: Direction, found: Evidence, directions: int
) -> tuple[dict[str, Any] | None, str]:
    """A table applied; or None, and what is missing for it."""
    table = sheet.table(number)
    given = number in RATED and sheet.given(number) == "points"
    if not given and not table.bands.get(direction):
        return None, _missing(sheet, number)
    figure = _figure(sheet, number, direction, found, directions)
    if figure.why:
        return None, f"Table {number} ({table.title}): {figure.why}"
    points, rule = _points(table, direction, figure, given=given)
    how = sheet.recognition.aggregation
    if number == 1 and how != "pooled":  # exact, as the rates were when they were added up
        points, rule = (
            exact(figure.inputs[how]),
            rule if how == "of_mean_rate" else "mean of the points of each sentence",
        )
    if points is None:
        return None, f"Table {number} ({table.title}): {rule}"
    return {
        "table": number,
        "title": table.title,
        "clause": table.clause,
        "under": sheet.label,
        "inputs": dict(figure.inputs),
        "name": figure.name,
        "value": None if figure.value is None else float(figure.value),
        "rule": rule,
        "points": float(points),
    }, ""


def _entered(sheet: Tables, number: int) -> bool:
    """Whether a table has values, for either direction."""
    return any(sheet.table(number).bands.values()) or (number in RATED and sheet.given(number) == "points")


def _points(table: Table, direction: Direction, figure: Figure, *, given: bool) -> tuple[Fraction | None, str]:
    """Points, and the rule that gave them; or None, and why there are none."""
    value, name = figure.value, figure.name
    if given:
        inside = figure.inputs["min"] >= 0 and figure.inputs["max"] <= 100
        return (value, "the raters' points") if inside else (None, "the raters' points do not lie within 0 to 100")
    band = _last(table, direction) if value is None else table.band(direction, value)
    if band is None:
        return None, f"{name} = {'infinite' if value is None else f'{float(value):g}'} lies in none of its bands"
    where = band.span(name, upper=table.upper)
    return band.base if value is None else band.points(value), f"{band.formula(name)}, for {where}"


def _last(table: Table, direction: Direction) -> Band | None:
    """The band of what is beyond any value: it has no upper end."""
    last = table.bands[direction][-1]
    return last if last.below is None else None


def _missing(sheet: Tables, number: int) -> str:
    if sheet.standard:
        return tables.missing(number)
    title = tables.standard()["tables"][str(number)]["title"]
    return f"Table {number} ({title}) is not in the tables that go by the name {sheet.name}"


def _figure(sheet: Tables, number: int, direction: Direction, found: Evidence, directions: int) -> Figure:
    if number == 1:
        return _recognition(sheet, direction, found)
    if number == 2:
        return _translation(sheet.translation, direction, found)
    if number == 5:
        return _response(sheet, found, directions)
    return _rated(number, direction, found)


def _recognition(sheet: Tables, direction: Direction, found: Evidence) -> Figure:
    part, why = _only(found.scores, "recognition", direction)
    if part is None or part["points"] is None or part["points"]["value"] is None:
        return Figure("w", None, {}, why or "no error rate: every reference is empty")
    errors, how = part["wer"]["errors"], sheet.recognition.aggregation
    rate = Fraction(errors["s"] + errors["d"] + errors["i"], errors["n"])
    inputs = {"channel": part["channel"], "signature": part["signature"], "errors": errors, "aggregation": how}
    inputs |= {key: part["points"][key] for key in ("of_mean_rate", "mean_of_points")}
    return Figure("w", rate if how == "pooled" else exact(part["wer"]["mean_of_sentences"]), inputs)


def _translation(rule: Translation | None, direction: Direction, found: Evidence) -> Figure:
    part, why = _only(found.scores, "translation", direction)
    if rule is None:
        return Figure("t", None, {}, "how BLEU and ROUGE-L are combined is not said: enter it as translation")
    if part is None or not part["rouge_l"] or part["rouge_l"]["by_beta"][rule.rouge_beta] is None:
        return Figure("t", None, {}, why or "no BLEU and ROUGE-L")
    made = part["bleu"]["counts"]
    flat = (made["length"], made["reference_length"], *made["matches"], *made["ngrams"])
    found_bleu = bleu.bleu_of(bleu.Counts(n=part["n"], bleu=flat), rule.bleu_order, rule.bleu_smoothing) or 0.0
    found_rouge = part["rouge_l"]["by_beta"][rule.rouge_beta]
    inputs = {"channel": part["channel"], "bleu": found_bleu, "rouge_l": found_rouge, "how": rule.model_dump()}
    inputs |= {"signatures": [part["bleu"]["signature"], part["rouge_l"]["signature"]]}
    return Figure("t", exact(_combined(found_bleu / 100, found_rouge, rule) * rule.scale), inputs)


def _combined(one: float, other: float, rule: Translation) -> float:
    """BLEU and ROUGE-L, both from 0 to 1, as one value from 0 to 1."""
    if rule.combine == "mean":
        weight = rule.bleu_weight or 0.0
        return weight * one + (1 - weight) * other
    if rule.combine == "harmonic_mean":
        return 2 * one * other / (one + other) if one + other else 0.0
    if rule.combine == "geometric_mean":
        return math.sqrt(one * other)
    return min(one, other) if rule.combine == "min" else max(one, other)


def _response(sheet: Tables, found: Evidence, directions: int) -> Figure:
    asked, timed = sheet.response, found.timed
    if asked is None:
        return Figure("x", None, {}, "which response time is scored is not said: enter it as response")
    if directions > 1:
        return Figure("x", None, {}, "clips of both directions were run, and response times are of all: run them apart")
    if timed is None or timed.why:
        return Figure("x", None, {}, timed.why if timed else "no response time")
    inputs = asked.model_dump() | {"value_s": timed.value_s, "bound": timed.bound, "n": timed.n}
    if timed.bound == "at_least":
        return Figure(
            "x", None, inputs, f"{asked.metric} {asked.stat} is only known to be at least {timed.value_s:g} s"
        )
    if timed.value_s is None:
        return Figure("x", None, inputs)
    return Figure("x", exact(timed.value_s) * (1000 if asked.unit == "ms" else 1), inputs)


def _rated(number: int, direction: Direction, found: Evidence) -> Figure:
    rated = ratings.items(found.ratings, number, direction)
    if not rated:
        return Figure("r", None, {}, "no ratings")
    unrated = ratings.missing(rated, _clips(found.scores, direction))
    if unrated:
        return Figure("r", None, {}, f"no rating of {', '.join(unrated)}")
    return Figure("r", ratings.overall(rated), ratings.summarise(rated))


def _clips(scores: Mapping[str, Any], direction: Direction) -> set[str]:
    return {clip for part in _parts(scores, direction) for clip in part["clips"]}


def _only(scores: Mapping[str, Any], stage: str, direction: Direction) -> tuple[Mapping[str, Any] | None, str]:
    """The one channel of a stage in a direction; or why there is none."""
    parts = [part for part in _parts(scores, direction) if part["stage"] == stage]
    if len(parts) == 1:
        return parts[0], ""
    several = ", ".join(f"{part['channel']} ({part['unit']})" for part in parts)
    return None, f"several {stage} channels or units: {several}" if parts else f"no {stage} channel was scored"


def _parts(scores: Mapping[str, Any], direction: Direction) -> Iterable[Mapping[str, Any]]:
    return [part for part in scores["channels"].values() if AS_DIRECTION[part["direction"]] == direction]
