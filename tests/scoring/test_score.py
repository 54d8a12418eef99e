"""Scores: no output vanishes, every number carries what decides it."""

from pathlib import Path

import pytest

import loadbench
from loadbench.results.bundle import Bundle
from loadbench.scoring.outputs import OutputsError, rows
from loadbench.scoring.score import encode, quality, score, score_bundle
from tests.scoring.records import bundle, clip, said, session, utterance

NO_TRANSLATION: dict[str, dict[str, float]] = {"bleu": {}, "chrf": {}, "rouge_l": {}}


def scores(folder: Path, *cases: tuple[str, str | None], **facts: str) -> dict:
    """One session for each (reference, hypothesis); None: the session failed."""
    language = {"source_lang": "en", "target_lang": "en"} | facts
    clips, sessions = [], []
    for number, (reference, hypothesis) in enumerate(cases):
        name = f"u{number}"
        clips.append(clip(name, transcript=reference, **language))
        failed = hypothesis is None
        one = utterance(name, "lost" if failed else "ok", transcript=said(hypothesis or ""))
        sessions.append(([name], session(f"s{number}", "lost" if failed else "ok", one)))
    return score_bundle(bundle(folder, clips, sessions))


def only(found: dict) -> dict:
    (channel,) = found["channels"].values()
    return channel


def test_empty_and_missing_outputs_stay_in_the_error_rate(tmp_path: Path) -> None:
    found = only(scores(tmp_path, ("a b c d", "a b c d"), ("e f g h", ""), ("i j", None)))
    assert found["wer"]["value"] == 0.6
    assert found["wer"]["errors"] == {"n": 10, "s": 0, "d": 6, "i": 0}
    assert found["wer"]["completed"] == {"value": 0.5, "errors": {"n": 8, "s": 0, "d": 4, "i": 0}, "n": 2}
    assert found["coverage"] == pytest.approx(2 / 3)
    assert found["wer"]["mean_of_sentences"] == pytest.approx(2 / 3)
    assert (found["n"], found["complete"]) == (3, 2)


def test_an_empty_reference_counts_insertions_and_divides_by_nothing(tmp_path: Path) -> None:
    found = only(scores(tmp_path / "a", ("", "noise words")))
    assert found["wer"]["value"] is None
    assert found["wer"]["errors"] == {"n": 0, "s": 0, "d": 0, "i": 2}
    assert found["wer"]["empty_references"] == 1
    assert found["points"]["value"] is None
    assert found["signature"].startswith("wer - | unit:word")
    both = only(scores(tmp_path / "b", ("", "noise words"), ("a b", "a b")))
    assert both["wer"]["value"] == 1.0
    assert both["wer"]["mean_of_sentences"] == 0.0


@pytest.mark.parametrize(("hypothesis", "rate"), [("今天下午三点开会", 0.0), ("今天下午四点开会", 0.125)])
def test_chinese_is_counted_by_character_and_says_so(tmp_path: Path, hypothesis: str, rate: float) -> None:
    found = only(scores(tmp_path, ("今天下午三点开会", hypothesis), source_lang="zh"))
    assert found["wer"]["value"] == rate
    assert found["unit"] == "char"
    assert "unit:char" in found["signature"]
    assert "unit:char" in found["raw"]["signature"]


def test_the_order_of_finishing_does_not_matter_and_a_missing_output_is_a_deletion(tmp_path: Path) -> None:
    fox, rain = "the quick brown fox jumps over the lazy dog", "it rained all day long"
    clips = [clip("u1", transcript=fox), clip("u2", transcript=rain)]
    first = (["u1"], session("a", "ok", utterance("u1", transcript=said(fox))))
    second = (["u2"], session("b", "ok", utterance("u2", transcript=said(rain))))
    shuffled = only(score_bundle(bundle(tmp_path / "a", clips, [second, first])))
    assert (shuffled["wer"]["value"], shuffled["coverage"]) == (0.0, 1.0)
    missing = only(score_bundle(bundle(tmp_path / "b", clips, [first, (["u2"], session("b", "silent"))])))
    assert missing["wer"]["value"] == pytest.approx(5 / 14)
    assert missing["coverage"] == 0.5


def test_repeats_of_a_clip_are_scored_each_and_told_by_clip(tmp_path: Path) -> None:
    texts = ["a b", "a x", "x y"]
    sessions = [(["u1"], session(f"s{k}", "ok", utterance("u1", transcript=said(texts[k])))) for k in range(3)]
    found = only(score_bundle(bundle(tmp_path, [clip("u1", transcript="a b")], sessions)))
    assert found["n"] == 3
    assert found["clips"] == {"u1": {"n": 3, "complete": 3, "wer": 0.5}}


def test_doubled_rows_are_an_error_and_no_score(tmp_path: Path) -> None:
    made = bundle(tmp_path, [clip("u1", transcript="a")], [(["u1"], session("s", "ok", utterance("u1")))])
    (row,) = rows(made)
    with pytest.raises(OutputsError, match="two outputs for session s"):
        score([row, row])


def test_raw_stands_beside_normalised_and_the_signature_says_which(tmp_path: Path) -> None:
    found = only(scores(tmp_path, ("Hello, world.", "hello world")))
    version = loadbench.__version__
    assert found["signature"] == f"wer 0.0 % | unit:word | norm:loadbench-basic-1 | n:1 | v{version}"
    assert found["raw"]["signature"] == f"wer 100.0 % | unit:word | norm:none | n:1 | v{version}"
    assert (found["wer"]["value"], found["raw"]["value"]) == (0.0, 1.0)


def test_the_standards_points_come_with_their_clause_and_all_three_aggregations(tmp_path: Path) -> None:
    ten, five = "a b c d e f g h i j", "a b c d e"
    cases = [(ten, ten.replace("j", "x")), (five, "a b x y z"), (five, five)]
    found = only(scores(tmp_path, *cases))["points"]
    assert found["clause"] == "T/CADHOH 0004-2023, Table 1"
    assert (found["column"], found["aggregation"]) == ("spoken2sign", "pooled")
    assert found["value"] == 0  # exactly 0.2, which fails in this direction
    signed = [clip(f"u{k}", direction="sign2spoken", gloss=reference.split()) for k, (reference, _) in enumerate(cases)]
    sessions = [
        ([f"u{k}"], session(f"s{k}", "ok", utterance(f"u{k}", gloss=said(text)))) for k, (_, text) in enumerate(cases)
    ]
    made = bundle(tmp_path / "signed", signed, sessions, stages={"gloss": "recognition"})
    found = only(score_bundle(made))
    assert (found["unit"], found["points"]["column"], found["points"]["value"]) == ("gloss", "sign2spoken", 100)
    assert found["points"]["of_mean_rate"] == pytest.approx(96.6667, abs=5e-5)
    assert found["points"]["mean_of_points"] == pytest.approx(66.6667, abs=5e-5)
    assert "norm:loadbench-gloss-1" in found["signature"]


def test_the_translation_stage_has_no_points_because_its_table_is_not_here(tmp_path: Path) -> None:
    made = bundle(
        tmp_path,
        [clip("u", direction="sign2spoken", text="a b")],
        [(["u"], session("s", "ok", utterance("u", text=said("a b"))))],
        stages={"text": "translation"},
    )
    assert only(score_bundle(made))["points"] is None


def test_recognition_is_scored_by_its_error_rate_alone(tmp_path: Path) -> None:
    found = only(scores(tmp_path, ("a b", "a b")))
    assert (found["bleu"], found["chrf"], found["rouge_l"]) == (None, None, None)


def test_the_worst_outputs_are_kept_with_their_alignment_each_once_and_not_those_that_failed(tmp_path: Path) -> None:
    found = only(scores(tmp_path, ("a b c", "a x"), ("a b", "a b"), ("a b", None), ("a b", "c d e")))["worst"]
    assert [(item["session"], item["wer"], item["n"]) for item in found] == [("s3", 1.5, 1), ("s0", 2 / 3, 1)]
    assert found[1]["errors"] == {"n": 3, "s": 1, "d": 1, "i": 0}
    kinds = [pair[0] for pair in found[1]["alignment"]]
    assert sorted(kinds) == ["del", "same", "sub"]
    assert found[1]["alignment"][0] == ["same", "a", "a"]
    assert found[1]["cut"] is False
    sessions = [(["u1"], session(f"s{k:02}", "ok", utterance("u1", transcript=said("a x")))) for k in range(30)]
    again = only(score_bundle(bundle(tmp_path / "again", [clip("u1", transcript="a b")], sessions)))["worst"]
    assert [(item["session"], item["n"]) for item in again] == [("s00", 30)]
    many = only(scores(tmp_path / "many", *(("a b", f"a {k}") for k in range(30))))["worst"]
    assert len(many) == 20


def test_one_that_was_cut_in_its_media_is_left_out_and_counted_as_such(tmp_path: Path) -> None:
    cut = session("cut", "time_up", utterance("u1", "time_up", source_end_ns=20))
    good = session("good", "ok", utterance("u1", transcript=said("a b")))
    found = only(score_bundle(bundle(tmp_path, [clip("u1", transcript="a b")], [(["u1"], cut), (["u1"], good)])))
    assert (found["wer"]["value"], found["coverage"], found["n"], found["left_out"]) == (0.0, 1.0, 1, 1)


def test_the_warm_up_is_not_scored(tmp_path: Path) -> None:
    warm = session("w", "ok", utterance("u1", transcript=said("x")), window="warmup")
    good = session("m", "ok", utterance("u1", transcript=said("a b")))
    found = score_bundle(bundle(tmp_path, [clip("u1", transcript="a b")], [(["u1"], warm), (["u1"], good)]))
    assert (found["rows"], found["measured"]) == (2, 1)
    assert only(found)["wer"]["value"] == 0.0


def test_clips_of_different_kinds_are_scored_apart(tmp_path: Path) -> None:
    clips = [clip("en", transcript="a b"), clip("zh", transcript="今天", source_lang="zh")]
    sessions = [
        (["en"], session("s1", "ok", utterance("en", transcript=said("a x")))),
        (["zh"], session("s2", "ok", utterance("zh", transcript=said("今天")))),
    ]
    found = score_bundle(bundle(tmp_path, clips, sessions))["channels"]
    assert {name: part["wer"]["value"] for name, part in found.items()} == {
        "transcript (speech2text char)": 0.0,
        "transcript (speech2text word)": 0.5,
    }
    assert quality(score_bundle(Bundle(tmp_path / "bundle"))) == {
        "wer": {"transcript": 0.5},
        "score": {"transcript": 0},
        **NO_TRANSLATION,
    }


def test_what_an_objective_needs_is_by_channel(tmp_path: Path) -> None:
    found = quality(scores(tmp_path, ("a b", "a x")))
    assert found == {"wer": {"transcript": 0.5}, "score": {"transcript": 0.0}, **NO_TRANSLATION}


def test_a_bundle_without_references_has_no_scores(tmp_path: Path) -> None:
    found = score_bundle(bundle(tmp_path, [clip("u")], [(["u"], session("s", "ok", utterance("u")))]))
    assert found["channels"] == {}
    assert quality(found) == {"wer": {}, "score": {}, **NO_TRANSLATION}


def test_the_same_bundle_gives_the_same_bytes(tmp_path: Path) -> None:
    clips = [clip("u1", transcript="a b")]
    made = bundle(tmp_path, clips, [(["u1"], session("s", "ok", utterance("u1", transcript=said("a x"))))])
    assert score_bundle(made) == score_bundle(made)
    assert encode(score_bundle(made)) == encode(score_bundle(made))
