"""ROUGE-L: the worked rows in each of three conventions, and a plain computation of the subsequence."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq

from loadbench.results.reference import Unit, tokens
from loadbench.scoring.rouge import f_of, lcs, rouge_l

# reference, hypothesis, unit, LCS, and F with b = 1, 1.2 and P/R
WORKED = {
    "words": (
        *("the cat sat on the mat", "the cat sat on mat quickly today", "word", 5),
        *(Fraction(10, 13), Fraction(305, 391), Fraction(425, 559)),
    ),
    "Chinese by character": (
        *("今天天气很好我们去公园", "今天天气真好我去公园", "char", 9),
        *(Fraction(6, 7), Fraction(549, 646), Fraction(221, 259)),
    ),
    "glosses": (
        *("今天 天气 好 我们 公园 去", "今天 天气 很 好 公园 去", "gloss", 5),
        *(Fraction(5, 6), Fraction(5, 6), Fraction(5, 6)),
    ),
    "repeated tokens": (
        *("a b c d", "a x b x c x d x", "word", 4),
        *(Fraction(2, 3), Fraction(61, 86), Fraction(5, 9)),
    ),
    "the same Chinese": (*("今天天气好", "今天天气好", "char", 5), *(Fraction(1),) * 3),
    "nothing said": (*("a b", "", "word", 0), *(Fraction(0),) * 3),
    "nothing in common": (*("a b", "c", "word", 0), *(Fraction(0),) * 3),
}


@pytest.mark.parametrize(
    ("reference", "hypothesis", "unit", "common", "plain", "coco", "by_ratio"), WORKED.values(), ids=WORKED
)
def test_worked_rows(
    reference: str, hypothesis: str, unit: Unit, common: int, plain: Fraction, coco: Fraction, by_ratio: Fraction
) -> None:
    one, other = tokens(reference, unit), tokens(hypothesis, unit)
    assert lcs(one, other) == common
    expected = {"1": float(plain), "1.2": float(coco), "p_over_r": float(by_ratio)}
    assert rouge_l([one], other) == pytest.approx(expected, abs=1e-12)


letters = st.lists(st.sampled_from("abcd"), max_size=80)


@given(letters, letters)
def test_the_subsequence_is_as_long_as_an_outside_tool_finds_it(one: list[str], other: list[str]) -> None:
    assert lcs(one, other) == LCSseq.similarity(one, other)


def test_an_empty_reference_has_no_recall_and_so_no_figure() -> None:
    assert f_of(0, 0, 3, "1") is None
    assert rouge_l([[]], ["a"]) is None
    assert rouge_l([[], ["a"]], ["a"]) == {"1": 1.0, "1.2": 1.0, "p_over_r": 1.0}


def test_the_best_of_several_references_counts_for_each_beta() -> None:
    found = rouge_l([["a", "b", "c", "d"], ["a", "x"]], ["a", "x"])
    assert found == {"1": 1.0, "1.2": 1.0, "p_over_r": 1.0}
