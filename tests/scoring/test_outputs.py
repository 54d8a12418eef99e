"""Output rows: nobody is lost, everybody is paired with the right reference."""

import json
from pathlib import Path

import pytest

from loadbench.scoring.outputs import OutputsError, encode, pair, read, rows
from tests.scoring.records import bundle, clip, said, session, utterance

DOG = clip("u1", transcript="the quick brown fox jumps over the lazy dog")
RAIN = clip("u2", transcript="it rained all day long")


def test_a_finished_utterance_gives_its_text_and_a_silent_one_an_empty_text(tmp_path: Path) -> None:
    found = list(
        rows(
            bundle(
                tmp_path,
                [DOG, RAIN],
                [
                    (["u2"], session("b", "ok", utterance("u2"))),
                    (["u1"], session("a", "ok", utterance("u1", transcript=said("the quick fox")))),
                ],
            )
        )
    )
    assert [(row.session, row.clip, row.hypothesis, row.complete) for row in found] == [
        ("b", "u2", "", True),
        ("a", "u1", "the quick fox", True),
    ]
    assert found[1].references == [DOG.transcript]
    assert found[1].key == ("a", 0, 0, "transcript")
    assert (found[1].unit, found[1].reference, found[1].language) == ("word", "transcript", "en")


def test_three_sessions_of_one_clip_give_three_rows(tmp_path: Path) -> None:
    sessions = [(["u1"], session(f"s{k}", "ok", utterance("u1", transcript=said("x")))) for k in range(3)]
    assert [row.session for row in rows(bundle(tmp_path, [DOG], sessions))] == ["s0", "s1", "s2"]


def test_a_failed_session_has_a_row_with_nothing_and_keeps_what_it_showed_apart(tmp_path: Path) -> None:
    lost = utterance("u1", "lost", transcript=said("red boat leaves", settled=False))
    sessions = [
        (["u1"], session("shown", "lost", lost)),
        (["u1"], session("refused", "connect_failed")),
        (["u1", "u2"], session("half", "lost", utterance("u1", transcript=said("the")))),
    ]
    shown, refused, first, second = rows(bundle(tmp_path, [DOG, RAIN], sessions))
    assert (shown.hypothesis, shown.unfinished, shown.partial_only) == ("", "red boat leaves", True)
    assert (shown.complete, shown.counted, shown.outcome) == (False, True, "lost")
    assert (refused.hypothesis, refused.complete, refused.counted) == ("", False, True)
    assert (first.complete, first.hypothesis) == (True, "the")
    assert (second.utterance, second.clip, second.complete, second.counted) == (1, "u2", False, True)


def test_one_that_was_cut_in_its_media_is_there_and_not_counted(tmp_path: Path) -> None:
    sessions = [
        (["u1"], session("young", "time_up", utterance("u1", "time_up", source_end_ns=20))),
        (["u1"], session("old", "time_up", utterance("u1", "time_up", source_end_ns=5))),
        (["u1"], session("early", "interrupted")),
        (["u1"], "killed"),
    ]
    found = {row.session: row for row in rows(bundle(tmp_path, [DOG], sessions))}
    assert {name: row.counted for name, row in found.items()} == {
        "young": False,
        "old": True,
        "early": False,
        "killed": False,
    }
    assert found["killed"].outcome == "in_flight"
    assert not any(row.complete for row in found.values())


def test_a_last_partial_is_part_of_what_was_shown(tmp_path: Path) -> None:
    promised = utterance("u1", transcript=said("the quick brown", settled=False))
    (row,) = rows(bundle(tmp_path, [DOG], [(["u1"], session("s", "ok", promised))]))
    assert (row.hypothesis, row.partial_only, row.complete) == ("the quick brown", True, True)


SIGN = {"direction": "sign2spoken", "source_lang": "csl", "target_lang": "zh"}
SPOKEN = {"direction": "spoken2sign", "source_lang": "zh", "target_lang": "csl"}
SPEECH = {"direction": "speech2text", "source_lang": "zh", "target_lang": "en"}
EVERYTHING = {"transcript": "明天学校休息", "gloss": ["明天", "学校", "休息"], "text": "School is closed."}
PAIRS = [
    (SIGN, "recognition", "gloss", "明天 学校 休息", "gloss"),
    (SIGN, "translation", "text", "School is closed.", "char"),
    (SPOKEN, "recognition", "transcript", "明天学校休息", "char"),
    (SPOKEN, "translation", "gloss", "明天 学校 休息", "gloss"),
    (SPEECH, "recognition", "transcript", "明天学校休息", "char"),
    (SPEECH, "translation", "text", "School is closed.", "word"),
]


@pytest.mark.parametrize(("direction", "stage", "kind", "reference", "unit"), PAIRS)
def test_each_channel_is_held_against_its_own_reference(tmp_path, direction, stage, kind, reference, unit) -> None:
    clips = [clip("c", **EVERYTHING, **direction)]
    made = bundle(tmp_path, clips, [(["c"], session("s", "ok", utterance("c")))], stages={"out": stage})
    (row,) = rows(made)
    assert (row.reference, row.references, row.unit) == (kind, [reference], unit)


def test_a_channel_without_a_reference_or_of_media_has_no_row(tmp_path: Path) -> None:
    stages = {"gloss": "recognition", "text": "translation", "avatar": "media"}
    made = bundle(
        tmp_path, [clip("c", gloss=["A"], **SIGN)], [(["c"], session("s", "ok", utterance("c")))], stages=stages
    )
    assert [row.channel for row in rows(made)] == ["gloss"]


def test_further_references_and_the_corpus_own_unit_are_taken(tmp_path: Path) -> None:
    facts = clip("c", text="a b", alt_text=["b a"], gloss=["A", "B"], alt_gloss=[["B", "A"]], text_unit="word", **SIGN)
    stages = {"gloss": "recognition", "text": "translation"}
    made = bundle(tmp_path, [facts], [(["c"], session("s", "ok", utterance("c")))], stages=stages)
    assert [(row.references, row.unit) for row in rows(made)] == [(["A B", "B A"], "gloss"), (["a b", "b a"], "word")]


def test_lines_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    made = bundle(tmp_path, [DOG], [(["u1"], session("s", "ok", utterance("u1", transcript=said("x\u2028y"))))])
    lines = list(encode(rows(made)))
    assert lines == list(encode(rows(made)))
    assert read(lines, "outputs.jsonl") == list(rows(made))


def test_malformed_lines_are_an_error_with_every_line_and_no_score(tmp_path: Path) -> None:
    made = bundle(tmp_path, [DOG], [(["u1"], session("s", "ok", utterance("u1")))])
    (line,) = encode(rows(made))
    extra = json.dumps(json.loads(line) | {"hypotesis": "x"}).encode()
    with pytest.raises(OutputsError) as caught:
        read([line, b"{no json\n", b"\n", extra, line], "outputs.jsonl")
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [
        "outputs.jsonl:2",
        "outputs.jsonl:4",
        "two outputs for session s, utterance 0, attempt 0, channel transcript",
    ]


EXPECTED = {"u1": ["the quick brown fox"], "u2": ["it rained all day long"]}


def test_pairing_is_by_id_in_whatever_order() -> None:
    assert pair(EXPECTED, [("u2", "b"), ("u1", "a")]) == {"u1": "a", "u2": "b"}
    assert pair(EXPECTED, [("u1", "a")]) == {"u1": "a", "u2": None}


def test_ids_that_do_not_pair_and_bare_texts_are_errors_all_at_once() -> None:
    expected = EXPECTED | {"u3": "a bare text"}
    with pytest.raises(OutputsError) as caught:
        pair(expected, [("u9", "x"), ("u1", "a"), ("u1", "b")])  # type: ignore[arg-type]
    assert [next(name for name in ("u3", "u9", "u1") if name in text) for text in caught.value.problems] == [
        "u3",
        "u9",
        "u1",
    ]
