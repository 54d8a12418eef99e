"""What translations are scored by, of a whole channel: BLEU, chrF and ROUGE-L, each over all references and over the
completed ones, with a signature that says what decides it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import loadbench
from loadbench.scoring import bleu, rouge
from loadbench.scoring.normalise import name_of
from loadbench.scoring.outputs import Row, compared
from loadbench.scoring.rouge import Beta


def overlaps(rows: Sequence[Row], beta: Beta) -> dict[str, Any]:
    """What translations are scored by; None for recognition, whose measure is the error rate."""
    if not rows or rows[0].stage == "recognition":
        return dict.fromkeys(("bleu", "chrf", "rouge_l"))
    complete, lost = [row for row in rows if row.complete], [row for row in rows if not row.complete]
    tokenise = _tokeniser(rows)
    of_complete = bleu.count(_repeats(complete), tokenise)
    whole = of_complete + bleu.count(_repeats(lost), tokenise)
    return _ngrams(whole, of_complete, rows[0], tokenise) | {"rouge_l": _rouge(complete, lost, rows[0], beta)}


def sentence(row: Row) -> dict[str, Any]:
    """Figures of one output, for display only: they do not add up to those of the corpus."""
    tokenise = bleu.tokeniser(row.unit, row.language)
    found = rouge.rouge_l([compared(row, text) for text in row.references], compared(row, row.hypothesis))
    return {
        "sentence_bleu": bleu.sentence_bleu(row.references, row.hypothesis, tokenise),
        "sentence_rouge_l": found,
    }


def _tokeniser(rows: Iterable[Row]) -> str:
    """One for all; languages that would have several are cut into characters."""
    found = {bleu.tokeniser(row.unit, row.language) for row in rows}
    return found.pop() if len(found) == 1 else "char"


def _repeats(rows: Iterable[Row]) -> Counter[bleu.Pair]:
    return Counter((tuple(row.references), row.hypothesis) for row in rows)


def _ngrams(whole: bleu.Counts, complete: bleu.Counts, first: Row, tokenise: str) -> dict[str, Any]:
    by_order = {str(order): bleu.bleu_of(whole, order) for order in bleu.ORDERS}
    for_bleu, for_chrf = bleu.signatures(whole, tokenise)
    sys_len, ref_len, *counts = whole.bleu
    more = f"unit:{first.unit} | n:{whole.n}"
    return {
        "bleu": {
            "value": by_order["4"],
            "by_order": by_order,
            "completed": {"value": bleu.bleu_of(complete), "n": complete.n},
            "counts": {"matches": counts[:4], "ngrams": counts[4:], "length": sys_len, "reference_length": ref_len},
            "signature": _signed("bleu-4", by_order["4"], f"{more} | {for_bleu} | v{loadbench.__version__}"),
        },
        "chrf": {
            "value": bleu.chrf_of(whole),
            "completed": {"value": bleu.chrf_of(complete), "n": complete.n},
            "signature": _signed("chrf2", bleu.chrf_of(whole), f"{more} | {for_chrf} | v{loadbench.__version__}"),
        },
    }


def _rouge(complete: Sequence[Row], lost: Sequence[Row], first: Row, beta: Beta) -> dict[str, Any]:
    """The mean of the sentences' F; those with an empty reference have none."""
    scored, n = _sentences(complete)
    missed, failed = _sentences(lost)  # which said nothing, so each has F = 0
    means = {name: _mean(part + missed[name], n + failed) for name, part in scored.items()}
    rest = f"beta:{beta} | mean of sentence F | unit:{first.unit} | norm:{name_of(first.unit)} | n:{n + failed}"
    return {
        "value": means[beta],
        "beta": beta,
        "by_beta": means,
        "aggregation": "mean_of_sentence_f",
        "n": n + failed,
        "completed": {"value": _mean(scored[beta], n), "n": n},
        "empty_references": len(complete) + len(lost) - n - failed,
        "signature": _signed("rouge-l", means[beta], f"{rest} | v{loadbench.__version__}", places=3),
    }


def _sentences(rows: Sequence[Row]) -> tuple[dict[Beta, list[float]], int]:
    """F by beta of each distinct output, times how often it came, and of how many outputs these are."""
    kinds = {(row.language, *row.references, row.hypothesis): row for row in rows}
    repeats = Counter((row.language, *row.references, row.hypothesis) for row in rows)
    found: dict[Beta, list[float]] = {beta: [] for beta in rouge.BETAS}
    n = 0
    for key, row in kinds.items():
        by_beta = rouge.rouge_l([compared(row, text) for text in row.references], compared(row, row.hypothesis))
        for beta, value in (by_beta or {}).items():
            found[beta].append(value * repeats[key])
        n += repeats[key] if by_beta else 0
    return found, n


def _mean(values: Sequence[float], n: int) -> float | None:
    return math.fsum(values) / n if n else None


def _signed(name: str, value: float | None, rest: str, places: int = 2) -> str:
    return f"{name} {'-' if value is None else f'{value:.{places}f}'} | {rest}"
