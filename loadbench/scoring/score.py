"""Scores of a run from its output rows: error rates with everything that decides them, and the standard's points.

The rate over *all* references is the headline: a session that failed counts as deletions, so that a worse system cannot
score better by losing sessions. The rate over the *completed* ones stands beside it with the coverage, never alone.
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec

import loadbench
from loadbench.results.bundle import Bundle
from loadbench.results.reference import tokens
from loadbench.scoring import outputs, tables
from loadbench.scoring.normalise import RAW, name_of, normalise
from loadbench.scoring.outputs import OutputsError, Row
from loadbench.scoring.wer import Errors, best, pooled

SCHEMA_VERSION: Final = 1
Fold = Callable[[Row, str], str]


def score(rows: Iterable[Row]) -> dict[str, Any]:
    """Scores by channel, as plain data. Rows of the measure window count; raises OutputsError for doubled rows.

    A channel whose clips differ in direction or unit is scored apart for each, as "CHANNEL (DIRECTION UNIT)".
    """
    found = list(rows)
    problems = outputs.doubled(found)
    if problems:
        raise OutputsError(problems)
    measured = [row for row in found if row.window == "measure"]
    channels = {name: _channel(group) for name, group in sorted(_groups(measured).items())}
    return {"schema_version": SCHEMA_VERSION, "rows": len(found), "measured": len(measured), "channels": channels}


def score_bundle(bundle: Bundle) -> dict[str, Any]:
    """`score` of a bundle's own outputs."""
    return score(outputs.rows(bundle))


def errors_of(row: Row) -> Errors:
    """The errors of one row as the headline rate counts them: one that is not complete lost its whole reference."""
    return _errors(row, _folded)


def quality(scores: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What the SLO judges: {"wer": {channel: rate over all references}, "score": {channel: points}}.

    Of a channel that is scored apart for several kinds of clips, the worst; a channel without a rate is not there.
    """
    rates: dict[str, float] = {}
    scored: dict[str, float] = {}
    for part in scores["channels"].values():
        name, rate, found = part["channel"], part["wer"]["value"], (part["points"] or {}).get("value")
        if rate is not None:
            rates[name] = max(rate, rates.get(name, rate))
        if found is not None:
            scored[name] = min(found, scored.get(name, found))
    return {"wer": rates, "score": scored}


def encode(scores: dict[str, Any]) -> bytes:
    """`scores.json`: the same bytes for the same scores."""
    return msgspec.json.format(msgspec.json.encode(scores, order="sorted"), indent=2) + b"\n"


def _groups(rows: Iterable[Row]) -> dict[str, list[Row]]:
    kinds: dict[str, dict[tuple[str, str, str], list[Row]]] = {}
    for row in rows:
        kinds.setdefault(row.channel, {}).setdefault((row.direction, row.reference, row.unit), []).append(row)
    return {
        channel if len(groups) == 1 else f"{channel} ({direction} {unit})": group
        for channel, groups in kinds.items()
        for (direction, _, unit), group in groups.items()
    }


def _channel(rows: Sequence[Row]) -> dict[str, Any]:
    first = rows[0]
    counted = [row for row in rows if row.counted]
    complete = sum(row.complete for row in counted)
    folded, raw = [_errors(row, _folded) for row in counted], [_errors(row, _as_is) for row in counted]
    rate = _rates(counted, folded, name_of(first.unit))
    return {
        "channel": first.channel,
        "stage": first.stage,
        "direction": first.direction,
        "reference": first.reference,
        "language": first.language,
        "unit": first.unit,
        "n": len(counted),
        "complete": complete,
        "left_out": len(rows) - len(counted),
        "partial_only": sum(row.partial_only for row in counted if row.complete),
        "coverage": complete / len(counted) if counted else None,
        "signature": rate["signature"],
        "wer": rate,
        "raw": _rates(counted, raw, RAW),
        "points": _points(first, folded),
        "clips": _clips(counted, folded),
    }


def _rates(rows: Sequence[Row], every: Sequence[Errors], normaliser: str) -> dict[str, Any]:
    complete = [item for item, row in zip(every, rows, strict=True) if row.complete]
    sentence_rates = [rate for rate in (item.rate for item in every) if rate is not None]
    whole = pooled(every)
    return {
        "value": _float(whole.rate),
        "errors": _counts(whole),
        "completed": {"value": _float(pooled(complete).rate), "errors": _counts(pooled(complete)), "n": len(complete)},
        "mean_of_sentences": _float(tables.mean(sentence_rates)),
        "empty_references": len(every) - len(sentence_rates),
        "signature": signature(whole.rate, rows[0].unit if rows else "word", normaliser, len(rows)),
    }


def signature(rate: Fraction | None, unit: str, normaliser: str, n: int) -> str:
    """A rate with all that it depends on; `n` is the number of outputs, failed ones among them."""
    value = "-" if rate is None else f"{float(rate) * 100:.1f} %"
    return f"wer {value} | unit:{unit} | norm:{normaliser} | n:{n} | v{loadbench.__version__}"


def _points(first: Row, sentences: Sequence[Errors]) -> dict[str, Any] | None:
    """Table 1 scores recognition; for the translation stage there is no table here, so no points."""
    if first.stage != "recognition":
        return None
    found = tables.points(first.direction, sentences)
    return {
        "clause": found.clause,
        "column": tables.AS_DIRECTION[first.direction],
        "aggregation": "pooled",
        "value": _float(found.pooled),
        "of_mean_rate": _float(found.of_mean_rate),
        "mean_of_points": _float(found.mean_of_points),
        "n": found.n,
        "undefined": found.undefined,
    }


def _clips(rows: Sequence[Row], every: Sequence[Errors]) -> dict[str, dict[str, Any]]:
    by_clip: dict[str, list[tuple[Row, Errors]]] = {}
    for row, errors in zip(rows, every, strict=True):
        by_clip.setdefault(row.clip, []).append((row, errors))
    return {
        clip: {
            "n": len(group),
            "complete": sum(row.complete for row, _ in group),
            "wer": _float(pooled(errors for _, errors in group).rate),
        }
        for clip, group in sorted(by_clip.items())
    }


def _errors(row: Row, fold: Fold) -> Errors:
    """A row that is not complete said nothing: all of its reference is deleted."""
    hypothesis = tokens(fold(row, row.hypothesis), row.unit) if row.complete else []
    return best([tokens(fold(row, text), row.unit) for text in row.references], hypothesis)


def _folded(row: Row, text: str) -> str:
    return normalise(text, row.unit, row.language)


def _as_is(_: Row, text: str) -> str:
    return text


def _counts(errors: Errors) -> dict[str, int]:
    return {"n": errors.n, "s": errors.substitutions, "d": errors.deletions, "i": errors.insertions}


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
