"""BLEU, chrF and ROUGE-L of a channel: nobody vanishes, every figure says what decides it."""

import math
from pathlib import Path

import pytest

from loadbench.scoring.outputs import rows
from loadbench.scoring.score import score, score_bundle
from tests.scoring.records import bundle, clip, said, session, utterance


def only(found: dict) -> dict:
    (channel,) = found["channels"].values()
    return channel


def translated(folder: Path, *cases: tuple[list[str], str | None], **facts: str) -> dict:
    """One session for each (references, hypothesis) of a translation; None: the session failed."""
    clips, sessions = [], []
    for number, ((right, *others), hypothesis) in enumerate(cases):
        name, failed = f"u{number}", hypothesis is None
        clips.append(clip(name, text=right, alt_text=others, **facts))
        one = utterance(name, "lost" if failed else "ok", text=said(hypothesis or ""))
        sessions.append(([name], session(f"s{number}", "lost" if failed else "ok", one)))
    return only(score_bundle(bundle(folder, clips, sessions, stages={"text": "translation"})))


@pytest.mark.parametrize(
    ("hypothesis", "rate", "bleu", "rouge_l"),
    [("今天下午三点开会", 0.0, 100.0, 1.0), ("今天下午四点开会", 0.125, 50.0, 0.875)],
)
def test_a_chinese_translation_is_scored_by_character_in_every_figure(
    tmp_path: Path, hypothesis: str, rate: float, bleu: float, rouge_l: float
) -> None:
    found = translated(tmp_path, (["今天下午三点开会"], hypothesis), target_lang="zh")
    assert found["wer"]["value"] == rate
    assert found["bleu"]["value"] == pytest.approx(bleu)
    assert found["rouge_l"]["value"] == rouge_l
    for name, words in {
        "bleu": "unit:char | n:1 | nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|version:",
        "chrf": "unit:char | n:1 | nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:",
        "rouge_l": "beta:1 | mean of sentence F | unit:char | norm:loadbench-basic-1 | n:1",
    }.items():
        assert words in found[name]["signature"]


def test_translations_are_paired_by_session_and_a_missing_one_is_an_empty_one(tmp_path: Path) -> None:
    fox, rain = "the quick brown fox jumps over the lazy dog", "it rained all day long"
    whole = translated(tmp_path / "a", ([fox], fox), ([rain], rain))
    assert (whole["wer"]["value"], whole["bleu"]["value"], whole["rouge_l"]["value"]) == (0.0, 100.0, 1.0)
    found = translated(tmp_path / "b", ([fox], fox), ([rain], None))
    assert found["coverage"] == 0.5
    assert found["bleu"]["value"] == pytest.approx(100 * math.exp(1 - 14 / 9))
    assert found["bleu"]["completed"] == {"value": 100.0, "n": 1}
    assert found["bleu"]["counts"] == {
        "matches": [9, 8, 7, 6],
        "ngrams": [9, 8, 7, 6],
        "length": 9,
        "reference_length": 14,
    }
    assert found["rouge_l"]["value"] == 0.5
    assert found["rouge_l"]["completed"] == {"value": 1.0, "n": 1}
    assert found["chrf"]["value"] < 100
    assert found["chrf"]["completed"] == {"value": pytest.approx(100.0), "n": 1}
    assert "bleu-4 57.38 | unit:word | n:2" in found["bleu"]["signature"]


def test_every_reference_counts_and_the_figure_of_a_corpus_is_pooled_but_for_rouge(tmp_path: Path) -> None:
    cat, fox = "the cat sat on the mat", "the quick brown fox jumps over the lazy dog ."
    cases = [([cat], "the cat sat on mat"), ([fox], fox.replace("jumps", "jumped"))]
    found = translated(tmp_path / "a", *cases)
    assert found["bleu"]["value"] == pytest.approx(62.798764539514295)
    assert found["bleu"]["by_order"]["4"] == found["bleu"]["value"]
    assert found["rouge_l"]["aggregation"] == "mean_of_sentence_f"
    assert found["rouge_l"]["value"] == pytest.approx((10 / 11 + 8 / 9) / 2)  # the full stop is no word here
    assert found["rouge_l"]["by_beta"].keys() == {"1", "1.2", "p_over_r"}
    several = translated(tmp_path / "b", (["a dog ran away", "it was the cat"], "it was the cat"))
    assert (several["bleu"]["value"], several["rouge_l"]["value"], several["wer"]["value"]) == (100.0, 1.0, 0.0)
    assert "nrefs:2" in several["bleu"]["signature"]


def test_an_empty_reference_has_no_rouge_and_is_counted_as_such(tmp_path: Path) -> None:
    found = translated(tmp_path, ([""], "noise"), (["a b"], "a b"), ([""], None))["rouge_l"]
    assert (found["value"], found["n"], found["empty_references"]) == (1.0, 1, 2)
    none = translated(tmp_path / "none", ([""], "noise"))
    assert (none["rouge_l"]["value"], none["bleu"]["value"]) == (None, 0.0)
    assert none["rouge_l"]["signature"].startswith("rouge-l - | beta:1")


def test_the_beta_of_rouge_is_the_plans_and_stands_in_the_signature(tmp_path: Path) -> None:
    made = bundle(
        tmp_path,
        [clip("u", text="a b c d")],
        [(["u"], session("s", "ok", utterance("u", text=said("a x b x c x d x"))))],
        stages={"text": "translation"},
    )
    assert only(score(rows(made)))["rouge_l"]["value"] == pytest.approx(2 / 3)
    made.header.plan["scoring"] = {"rouge_beta": "p_over_r"}
    found = only(score_bundle(made))["rouge_l"]
    assert found["value"] == pytest.approx(5 / 9)
    assert found["signature"].startswith("rouge-l 0.556 | beta:p_over_r | mean of sentence F")


def test_a_sentence_is_shown_by_its_effective_order_and_is_no_corpus_figure(tmp_path: Path) -> None:
    found = translated(tmp_path, (["你好"], "你坏"), target_lang="zh")
    assert found["bleu"]["value"] == 0.0
    assert found["worst"][0]["sentence_bleu"] == pytest.approx(50.0)
    assert found["worst"][0]["sentence_rouge_l"]["1"] == 0.5


def test_languages_that_would_be_cut_in_several_ways_are_cut_into_characters(tmp_path: Path) -> None:
    clips = [clip("zh", text="今天", target_lang="zh"), clip("ja", text="今日は", target_lang="ja")]
    sessions = [([c.id], session(c.id, "ok", utterance(c.id, text=said(c.text or "")))) for c in clips]
    found = only(score_bundle(bundle(tmp_path, clips, sessions, stages={"text": "translation"})))
    assert "|tok:char|" in found["bleu"]["signature"]
    assert found["rouge_l"]["value"] == 1.0
