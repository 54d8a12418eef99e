"""ROUGE-L on token lists, by the longest common subsequence. Libraries for it drop Chinese, or repeated tokens.

F = (1 + b²)RP / (R + b²P) with R = LCS / |reference| and P = LCS / |hypothesis|. Three values of b are in use, and the
standard's visible text fixes none: 1, 1.2, and P / R. The value of a corpus is the mean of its sentences' F.
"""

from collections.abc import Sequence
from typing import Final, Literal, get_args

Beta = Literal["1", "1.2", "p_over_r"]
BETAS: Final[tuple[Beta, ...]] = get_args(Beta)


def lcs(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence (Hyyrö 2004: a bit for each token of `one`)."""
    places: dict[str, int] = {}
    for place, token in enumerate(one):
        places[token] = places.get(token, 0) | 1 << place
    whole = (1 << len(one)) - 1
    free = whole
    for token in other:
        hits = free & places.get(token, 0)
        free = ((free + hits) | (free - hits)) & whole
    return len(one) - free.bit_count()


def f_of(common: int, reference: int, hypothesis: int, beta: Beta) -> float | None:
    """F from the lengths; 0 for an empty hypothesis, None for an empty reference, which has no recall."""
    if not reference:
        return None
    if not common:
        return 0.0
    recall, precision = common / reference, common / hypothesis
    square = (precision / recall if beta == "p_over_r" else float(beta)) ** 2
    return (1 + square) * recall * precision / (recall + square * precision)


def rouge_l(references: Sequence[Sequence[str]], hypothesis: Sequence[str]) -> dict[Beta, float] | None:
    """F of one output by each beta, against the reference that fits best; None where every reference is empty."""
    lengths = [(lcs(reference, hypothesis), len(reference)) for reference in references if reference]
    if not lengths:
        return None
    return {beta: max(f_of(common, n, len(hypothesis), beta) or 0.0 for common, n in lengths) for beta in BETAS}
