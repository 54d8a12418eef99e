"""Scores of a run from its output rows: error rates, of translations BLEU, chrF and ROUGE-L as well, each with all that
decides it, and the standard's points.

The figure over *all* references is the headline: a session that failed said nothing, and that counts, so that a worse
system cannot score better by losing sessions. The one over the *completed* stands beside it with the coverage.
"""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import islice
from typing import Any, Final

import msgspec

import loadbench
from loadbench.results.bundle import Bundle
from loadbench.results.reference import tokens
from loadbench.scoring import outputs, rouge, tables, translation
from loadbench.scoring.normalise import RAW, name_of
from loadbench.scoring.outputs import OutputsError, Row, compared
from loadbench.scoring.rouge import Beta
from loadbench.scoring.wer import Errors, aligned, best, nearest, pooled

SCHEMA_VERSION: Final = 1
MOST_WORST: Final = 20  # outputs that are kept with their alignment
MOST_UNITS: Final = 400  # of each
Cut = Callable[[Row, str], list[str]]


def score(rows: Iterable[Row], beta: Beta = "1") -> dict[str, Any]:
    """Scores by channel, as plain data. Rows of the measure window count; raises OutputsError for doubled rows.

    A channel whose clips differ in direction or unit is scored apart for each, as "CHANNEL (DIRECTION UNIT)". `beta` is
    that of the ROUGE-L that is shown; those of the others stand beside it.
    """
    found = list(rows)
    problems = outputs.doubled(found)
    if problems:
        raise OutputsError(problems)
    measured = [row for row in found if row.window == "measure"]
    channels = {name: _channel(group, beta) for name, group in sorted(_groups(measured).items())}
    return {"schema_version": SCHEMA_VERSION, "rows": len(found), "measured": len(measured), "channels": channels}


def score_bundle(bundle: Bundle) -> dict[str, Any]:
    """`score` of a bundle's own outputs, with the beta of its plan."""
    return score(outputs.rows(bundle), beta_of(bundle))


def beta_of(bundle: Bundle) -> Beta:
    """The beta that a run's plan asked for (`scoring.rouge_beta`), else 1."""
    found = (bundle.header.plan.get("scoring") or {}).get("rouge_beta")
    return next((beta for beta in rouge.BETAS if beta == found), "1")


def errors_of(row: Row) -> Errors:
    """The errors of one row as the headline rate counts them: one that is not complete lost its whole reference."""
    return _errors(row, compared)


def quality(scores: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What the SLO judges, by metric and channel: over all references the rate, points, BLEU-4, chrF and ROUGE-L.

    Of a channel that is scored apart for several kinds of clips, the worst; a channel without a value is not there.
    """
    keys = {"wer": "wer", "score": "points", "bleu": "bleu", "chrf": "chrf", "rouge_l": "rouge_l"}
    found: dict[str, dict[str, float]] = {metric: {} for metric in keys}
    for part in scores["channels"].values():
        for metric, key in keys.items():
            value = (part[key] or {}).get("value")
            if value is not None:
                worst = max if metric == "wer" else min
                found[metric][part["channel"]] = worst(value, found[metric].get(part["channel"], value))
    return found


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


def _channel(rows: Sequence[Row], beta: Beta) -> dict[str, Any]:
    first = rows[0]
    counted = [row for row in rows if row.counted]
    complete = sum(row.complete for row in counted)
    folded, raw = [_errors(row, compared) for row in counted], [_errors(row, _as_is) for row in counted]
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
        **translation.overlaps(counted, beta),
        "points": _points(first, folded),
        "clips": _clips(counted, folded),
        "worst": _worst(counted, folded),
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


def _worst(rows: Sequence[Row], every: Sequence[Errors]) -> list[dict[str, Any]]:
    """At most 20 finished outputs with errors, highest rate first, each distinct one once: `n` counts its repeats."""
    found: dict[tuple[str, str], tuple[Row, Errors]] = {}
    repeats: Counter[tuple[str, str]] = Counter()
    for row, errors in zip(rows, every, strict=True):
        if row.complete and errors.total:
            found.setdefault((row.clip, row.hypothesis), (row, errors))
            repeats[row.clip, row.hypothesis] += 1
    worst = heapq.nsmallest(MOST_WORST, found.values(), key=_rank)
    return [_shown(row, errors, repeats[row.clip, row.hypothesis]) for row, errors in worst]


def _rank(item: tuple[Row, Errors]) -> tuple[float, int, tuple[str, int, int, str]]:
    row, errors = item
    return -(math.inf if errors.rate is None else float(errors.rate)), -errors.total, row.key


def _shown(row: Row, errors: Errors, n: int) -> dict[str, Any]:
    said = compared(row, row.hypothesis)
    reference, _ = nearest([compared(row, text) for text in row.references], said)
    pairs = list(islice(aligned(reference, said), MOST_UNITS + 1))
    found: dict[str, Any] = {"session": row.session, "utterance": row.utterance, "attempt": row.attempt}
    found |= {"clip": row.clip, "n": n, "wer": _float(errors.rate), "errors": _counts(errors)}
    found |= {"alignment": [list(pair) for pair in pairs[:MOST_UNITS]], "cut": len(pairs) > MOST_UNITS}
    if row.stage != "recognition":
        found |= translation.sentence(row)
    return found


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


def _errors(row: Row, cut: Cut) -> Errors:
    """A row that is not complete said nothing: all of its reference is deleted."""
    hypothesis = cut(row, row.hypothesis) if row.complete else []
    return best([cut(row, text) for text in row.references], hypothesis)


def _as_is(row: Row, text: str) -> list[str]:
    return tokens(text, row.unit)


def _counts(errors: Errors) -> dict[str, int]:
    return {"n": errors.n, "s": errors.substitutions, "d": errors.deletions, "i": errors.insertions}


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
