"""Error rates: counts against worked rows and an outside tool, and the unit that decides them."""

from fractions import Fraction

import jiwer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.results.reference import Unit, tokens, unit_of
from loadbench.scoring.wer import Errors, aligned, best, errors, pooled

# reference, hypothesis, unit, N S D I
ROWS = {
    "one wrong and one missing word": ("the cat sat on the mat", "the cat sit on mat", "word", 6, 1, 1, 0),
    "Chinese by character": ("今天天气很好我们去公园", "今天天气真好我去公园吧", "char", 11, 1, 1, 1),
    "Chinese by character, shorter": ("今天天气很好我们去公园", "今天天气真好我去公园", "char", 11, 1, 1, 0),
    "glosses out of order": ("今天 天气 好 我们 公园 去", "今天 天气 很 好 公园 去", "gloss", 6, 0, 1, 1),
    "more errors than words": ("a b c", "x y z w v", "word", 3, 3, 0, 2),
    "nothing said": ("a b c d", "", "word", 4, 0, 4, 0),
    "an empty reference": ("", "noise words", "word", 0, 0, 0, 2),
    "both empty": ("", "", "word", 0, 0, 0, 0),
    "one wrong character of eight": ("今天下午三点开会", "今天下午四点开会", "char", 8, 1, 0, 0),
    "the same": ("今天下午三点开会", "今天下午三点开会", "char", 8, 0, 0, 0),
    "spaces between characters are nothing": ("今天 天气 好", "今天 天气好", "char", 5, 0, 0, 0),
}


@pytest.mark.parametrize(("reference", "hypothesis", "unit", "n", "s", "d", "i"), ROWS.values(), ids=ROWS)
def test_errors_of_worked_rows(reference: str, hypothesis: str, unit: Unit, n: int, s: int, d: int, i: int) -> None:
    found = errors(tokens(reference, unit), tokens(hypothesis, unit))
    assert (found.n, found.total) == (n, s + d + i)
    assert found == Errors(n, s, d, i)


RATES = {
    "words": ("the cat sat on the mat", "the cat sit on mat", "word", Fraction(1, 3)),
    "Chinese by character": ("今天天气很好我们去公园", "今天天气真好我去公园吧", "char", Fraction(3, 11)),
    "the same pair cut into words": (
        "今天天气 很 好 我们 去 公园",
        "今天天气 真好 我 去 公园 吧",
        "word",
        Fraction(2, 3),
    ),
    "Chinese by character, shorter": ("今天天气很好我们去公园", "今天天气真好我去公园", "char", Fraction(2, 11)),
    "that pair cut into words": ("今天天气 很 好 我们 去 公园", "今天天气 真好 我 去 公园", "word", Fraction(1, 2)),
    "glosses": ("今天 天气 好 我们 公园 去", "今天 天气 很 好 公园 去", "gloss", Fraction(1, 3)),
    "above one": ("a b c", "x y z w v", "word", Fraction(5, 3)),
    "nothing said": ("a b c d", "", "word", Fraction(1)),
    "one of eight": ("今天下午三点开会", "今天下午四点开会", "char", Fraction(1, 8)),
    "an empty reference has none": ("", "noise words", "word", None),
}


@pytest.mark.parametrize(("reference", "hypothesis", "unit", "rate"), RATES.values(), ids=RATES)
def test_rates_of_worked_rows_are_exact(reference: str, hypothesis: str, unit: Unit, rate: Fraction | None) -> None:
    assert errors(tokens(reference, unit), tokens(hypothesis, unit)).rate == rate


def test_unit_costs_count_eight_where_the_fields_own_code_counts_nine() -> None:
    found = errors(["r1", "r2", "r3", "A", "r5", "B", "r7", "r8"], ["A", "h2", "B", "h4", "h5", "h6", "h7", "h8"])
    assert found.total == 8


def test_a_corpus_is_pooled_and_not_a_mean_of_sentences() -> None:
    pairs = [("a b c d", "a b c d"), ("e", "x y")]
    found = [errors(tokens(one, "word"), tokens(other, "word")) for one, other in pairs]
    assert pooled(found).rate == Fraction(2, 5)
    assert sum(item.rate or 0 for item in found) / 2 == 1
    assert pooled([]).rate is None


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@given(words.filter(bool), words)
def test_an_outside_tool_counts_the_same(reference: list[str], hypothesis: list[str]) -> None:
    found = errors(reference, hypothesis)
    theirs = jiwer.process_words(" ".join(reference), " ".join(hypothesis))
    assert found.total == theirs.substitutions + theirs.deletions + theirs.insertions
    assert float(found.rate or 0) == pytest.approx(theirs.wer)


def test_the_best_of_several_references_counts() -> None:
    references = [["the", "cat", "sat"], ["a", "cat", "is", "sitting"]]
    assert best(references, ["a", "cat", "is", "sitting"]) == Errors(4)
    assert best(references, ["the", "dog", "sat"]) == Errors(3, 1)
    assert best([[], ["a"]], ["a"]) == Errors(1)


UNITS = [
    ("gloss", "csl", None, "gloss"),
    ("gloss", "zh", None, "gloss"),
    ("gloss", "zh", "char", "char"),
    ("transcript", "zh", None, "char"),
    ("transcript", "zh-CN", None, "char"),
    ("text", "ZH_tw", None, "char"),
    ("text", "ja", None, "char"),
    ("text", "zh", "word", "word"),
    ("text", "en", None, "word"),
    ("transcript", "en", "char", "char"),
    ("transcript", "", None, "word"),
]


@pytest.mark.parametrize(("kind", "language", "override", "unit"), UNITS)
def test_the_unit_follows_from_what_is_compared(kind, language: str, override: str | None, unit: str) -> None:
    assert unit_of(kind, language, override) == unit


def test_an_alignment_has_the_errors_that_are_counted_and_keeps_the_order() -> None:
    reference, hypothesis = tokens("the cat sat on the mat", "word"), tokens("the cat sit on mat now", "word")
    pairs = list(aligned(reference, hypothesis))
    kinds = [pair.kind for pair in pairs]
    found = errors(reference, hypothesis)
    assert (kinds.count("sub"), kinds.count("del"), kinds.count("ins")) == (
        found.substitutions,
        found.deletions,
        found.insertions,
    )
    assert [pair.reference for pair in pairs if pair.reference] == reference
    assert [pair.hypothesis for pair in pairs if pair.hypothesis] == hypothesis
