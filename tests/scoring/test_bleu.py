"""BLEU and chrF: the worked rows, and the outside tool's own corpus functions."""

import random

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from loadbench.scoring.bleu import ORDERS, Counts, bleu_of, chrf_of, count, sentence_bleu, signatures, tokeniser

CAT, CAT_REFERENCE = "the cat sat on mat", "the cat sat on the mat"
FOX = "the quick brown fox jumped over the lazy dog ."
FOX_REFERENCE = "the quick brown fox jumps over the lazy dog ."
PARK, PARK_REFERENCE = "今天天气真好我去公园", "今天天气很好我们去公园"
PHONE, PHONE_REFERENCE = "我今天买了2个iPhone15。", "我今天买了两个iPhone 15。"
GLOSS, GLOSS_REFERENCE = "今天 天气 很 好 公园 去", "今天 天气 好 我们 公园 去"
SAME = "今天天气好"

# pairs (hypothesis, reference), tokeniser, BLEU
WORKED = {
    "a word left out": ([(CAT, CAT_REFERENCE)], "13a", 57.89300674674101),
    "a word replaced": ([(FOX, FOX_REFERENCE)], "13a", 65.80370064762461),
    "both, as a corpus": ([(CAT, CAT_REFERENCE), (FOX, FOX_REFERENCE)], "13a", 62.798764539514295),
    "Chinese": ([(PARK, PARK_REFERENCE)], "zh", 38.31260405050856),
    "Chinese by character": ([(PARK, PARK_REFERENCE)], "char", 38.31260405050856),
    "Chinese taken for one word": ([(PARK, PARK_REFERENCE)], "13a", 0.0),
    "Chinese not cut at all": ([(PARK, PARK_REFERENCE)], "none", 0.0),
    "Chinese cut into words": (
        [("今天天气 真好 我 去 公园", "今天天气 很 好 我们 去 公园")],
        "none",
        19.3576934939088,
    ),
    "Chinese and Latin, zh": ([(PHONE, PHONE_REFERENCE)], "zh", 43.44371253135793),
    "Chinese and Latin, char": ([(PHONE, PHONE_REFERENCE)], "char", 81.53551038173119),
    "a short one beside a long one": ([(PARK, PARK_REFERENCE), ("你好", "你好")], "zh", 39.61589481347071),
    "glosses": ([(GLOSS, GLOSS_REFERENCE)], "none", 24.274588585366175),
    "shorter than four tokens": ([("好", "好")], "zh", 0.0),
    "two tokens": ([("你好", "你好")], "zh", 0.0),
    "the same": ([(SAME, SAME)], "zh", 100.0),
    "nothing said": ([("", SAME)], "zh", 0.0),
    "an empty reference": ([(SAME, "")], "zh", 0.0),
    "nothing in common": ([("甲乙丙丁", SAME)], "zh", 0.0),
    "one wrong character of eight": ([("今天下午四点开会", "今天下午三点开会")], "zh", 50.0),
}


def counts(pairs: list[tuple[str, str]], tokenise: str) -> Counts:
    return count({((reference,), hypothesis): 1 for hypothesis, reference in pairs}, tokenise)


@pytest.mark.parametrize(("pairs", "tokenise", "expected"), WORKED.values(), ids=WORKED)
def test_worked_rows(pairs: list[tuple[str, str]], tokenise: str, expected: float) -> None:
    found = bleu_of(counts(pairs, tokenise))
    assert found == pytest.approx(expected, abs=1e-9)
    assert found is not None
    assert 0 <= found <= 100


ORDERED = [
    (PARK, PARK_REFERENCE, "zh", "exp", (81.43536762323636, 70.08840502157177, 55.034039496477924, 38.31260405050856)),
    (GLOSS, GLOSS_REFERENCE, "none", "none", (83.33333333333334, 57.73502691896257, 0.0, 0.0)),
]


@pytest.mark.parametrize(("hypothesis", "reference", "tokenise", "smoothing", "expected"), ORDERED)
def test_lower_orders(hypothesis: str, reference: str, tokenise: str, smoothing: str, expected: tuple) -> None:
    found = counts([(hypothesis, reference)], tokenise)
    assert [bleu_of(found, order, smoothing) for order in ORDERS] == pytest.approx(expected, abs=1e-9)


SMOOTHED = [("exp", 24.274588585366175), ("none", 0.0), ("floor", 12.909944487358057), ("add-k", 37.99178428257963)]


@pytest.mark.parametrize(("smoothing", "expected"), SMOOTHED)
def test_smoothing_decides_a_corpus_of_glosses(smoothing: str, expected: float) -> None:
    found = counts([(GLOSS, GLOSS_REFERENCE)], "none")
    assert bleu_of(found, 4, smoothing) == pytest.approx(expected, abs=1e-9)
    assert bleu_of(found, 4, smoothing) == pytest.approx(expected, abs=1e-9), "computing it changes no counts"


def test_what_it_is_computed_from_is_counted() -> None:
    assert counts([(CAT, CAT_REFERENCE)], "13a").bleu == (5, 6, 5, 3, 2, 1, 5, 4, 3, 2)
    both = counts([(CAT, CAT_REFERENCE)], "13a") + counts([(FOX, FOX_REFERENCE)], "13a")
    assert both.bleu == (15, 16, 14, 10, 7, 4, 15, 13, 11, 9)
    assert (both.n, both.references) == (2, {1})


def test_a_single_sentence_is_shown_by_its_effective_order() -> None:
    assert sentence_bleu(["好"], "好", "zh") == 100.0
    assert sentence_bleu([CAT_REFERENCE], CAT, "13a") == pytest.approx(57.89300674674101)
    shown = [sentence_bleu([reference], hypothesis, "zh") for hypothesis, reference in [(PARK, PARK_REFERENCE)]]
    assert (shown[0] + sentence_bleu(["你好"], "你好", "zh")) / 2 == pytest.approx(69.1563020252543)


def test_repeats_references_that_differ_in_number_and_all_else_count_as_the_outside_tool_counts() -> None:
    chance = random.Random(7)
    words = ["今天", "the", "cat", "sat", "on", "mat.", "3.5", "don't"]

    def text() -> str:
        return " ".join(chance.choices(words, k=chance.randrange(12)))

    pairs = [((text(), *([text()] if chance.random() < 0.5 else [])), text()) for _ in range(40)]
    pairs += pairs[:10]
    repeated = {pair: pairs.count(pair) for pair in pairs}
    hypotheses = [hypothesis for _, hypothesis in pairs]
    references = [[texts[place] if place < len(texts) else None for texts, _ in pairs] for place in (0, 1)]
    for tokenise in ("13a", "zh", "char", "none"):
        found = count(repeated, tokenise)
        theirs = BLEU(tokenize=tokenise, force=True)
        assert bleu_of(found) == pytest.approx(theirs.corpus_score(hypotheses, references).score, abs=1e-9)
        for order in ORDERS:
            by_order = BLEU(tokenize=tokenise, force=True, max_ngram_order=order).corpus_score(hypotheses, references)
            assert bleu_of(found, order) == pytest.approx(by_order.score, abs=1e-9)
        chrf = CHRF()
        assert chrf_of(found) == pytest.approx(chrf.corpus_score(hypotheses, references).score, abs=1e-9)
        assert signatures(found, tokenise) == (str(theirs.get_signature()), str(chrf.get_signature()))


def test_a_signature_says_what_decides_the_figure() -> None:
    for_bleu, for_chrf = signatures(counts([(PARK, PARK_REFERENCE)], "zh"), "zh")
    assert for_bleu.startswith("nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:")
    assert for_chrf.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_without_outputs_there_is_no_figure() -> None:
    assert (bleu_of(Counts()), chrf_of(Counts())) == (None, None)


TOKENISERS = [
    ("char", "zh", "zh"),
    ("char", "zh-CN", "zh"),
    ("char", "yue_HK", "zh"),
    ("char", "ja", "char"),
    ("word", "en", "13a"),
    ("word", "zh", "13a"),
    ("gloss", "csl", "none"),
]


@pytest.mark.parametrize(("unit", "language", "expected"), TOKENISERS)
def test_the_tokeniser_follows_from_the_unit(unit, language: str, expected: str) -> None:
    assert tokeniser(unit, language) == expected
