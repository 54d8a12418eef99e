"""BLEU and chrF by sacrebleu, of a whole corpus: the counts of all outputs are added up, never the scores averaged.

sacrebleu's own corpus functions hold the n-grams of every output at once, gigabytes for a hundred thousand. Here its
metrics count one output at a time, a repeated one once; the figures are the same, and tests hold them to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from loadbench.results.reference import Unit

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

ORDERS: Final = (1, 2, 3, 4)
SMOOTHING: Final = "exp"  # sacrebleu's own; the standard's visible text names none
CHINESE: Final = frozenset(("zh", "zho", "cmn", "yue", "wuu", "nan", "hak"))

Pair = tuple[tuple[str, ...], str]  # the references of an output, and the output


@dataclass(frozen=True, slots=True)
class Counts:
    """What both are computed from; they add up to those of a corpus. `references`: how many an output had, each number.

    `bleu`: length of the output and of the nearest reference, matches of order 1 to 4, n-grams of order 1 to 4.
    """

    n: int = 0
    references: frozenset[int] = frozenset()
    bleu: tuple[int, ...] = (0,) * 10
    chrf: tuple[int, ...] = (0,) * 18

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.n + other.n,
            self.references | other.references,
            tuple(one + more for one, more in zip(self.bleu, other.bleu, strict=True)),
            tuple(one + more for one, more in zip(self.chrf, other.chrf, strict=True)),
        )


def tokeniser(unit: Unit, language: str) -> str:
    """The tokeniser of sacrebleu for a unit: zh or char for text without spaces, 13a for words, none for glosses."""
    if unit == "char":
        return "zh" if language.lower().replace("_", "-").split("-")[0] in CHINESE else "char"
    return "none" if unit == "gloss" else "13a"


def count(pairs: Mapping[Pair, int], tokenise: str) -> Counts:
    """The counts of a corpus of pairs, each with how often it came. Texts are taken as they are, not normalised."""
    bleu, chrf = _bleu(tokenise), _chrf()
    words, characters = [0] * 10, [0] * 18
    known: dict[tuple[str, ...], tuple[dict[str, Any], dict[str, Any]]] = {}
    for (references, hypothesis), times in pairs.items():
        if references not in known:
            known[references] = (
                bleu._extract_reference_info([bleu._preprocess_segment(text) for text in references]),
                chrf._extract_reference_info([chrf._preprocess_segment(text) for text in references]),
            )
        for_bleu, for_chrf = known[references]
        _add(words, bleu._compute_segment_statistics(bleu._preprocess_segment(hypothesis), for_bleu), times)
        _add(characters, chrf._compute_segment_statistics(chrf._preprocess_segment(hypothesis), for_chrf), times)
    numbers = frozenset(len(references) for references, _ in pairs)
    return Counts(sum(pairs.values()), numbers, tuple(words), tuple(characters))


def bleu_of(counts: Counts, order: int = 4, smoothing: str = SMOOTHING) -> float | None:
    """Corpus BLEU up to n-grams of `order`, 0 to 100; None without outputs. 0 where none is as long as `order`."""
    if not counts.n:
        return None
    sys_len, ref_len, *rest = counts.bleu
    found = _bleu("none").compute_bleu(
        *(rest[:order], rest[4 : 4 + order], sys_len, ref_len), smooth_method=smoothing, max_ngram_order=order
    )
    return _clamped(found.score)


def chrf_of(counts: Counts) -> float | None:
    """Corpus chrF2 (characters to order 6, beta 2), 0 to 100; None without outputs."""
    return _clamped(_chrf()._compute_f_score(list(counts.chrf))) if counts.n else None


def sentence_bleu(references: Sequence[str], hypothesis: str, tokenise: str) -> float:
    """BLEU of one output, for display only: up to the longest n-gram that it has (effective order), 0 to 100."""
    return _clamped(_effective(tokenise).sentence_score(hypothesis, references).score)


def signatures(counts: Counts, tokenise: str) -> tuple[str, str]:
    """The signatures by sacrebleu of the two figures; its `nrefs` is `var` where outputs differ in it."""
    numbers = next(iter(counts.references)) if len(counts.references) == 1 else -1
    texts = []
    for metric in (_bleu(tokenise), _chrf()):
        metric.num_refs = numbers
        texts.append(str(metric.get_signature()))
    return texts[0], texts[1]


def _clamped(score: float) -> float:
    return min(100.0, max(0.0, score))  # a perfect score comes as 100.00000000000004


def _add(totals: list[int], counts: Iterable[int], times: int) -> None:
    for place, value in enumerate(counts):
        totals[place] += value * times


@lru_cache(maxsize=8)
def _bleu(tokenise: str) -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU  # half a second that only scores need

    return BLEU(tokenize=tokenise, smooth_method=SMOOTHING, force=True)


@lru_cache(maxsize=8)
def _effective(tokenise: str) -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenise, smooth_method=SMOOTHING, effective_order=True, force=True)


@lru_cache(maxsize=1)
def _chrf() -> "CHRF":
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()
