"""Alignments and the steps of a score, against numbers worked by hand."""

from typing import Any

import pytest

from loadbench.report.accuracy import Pair, aligned, examples, steps
from loadbench.scoring.outputs import Row


def row(references: list[str], hypothesis: str, **changes: Any) -> Row:
    known = {"session": "s", "utterance": 0, "attempt": 0, "channel": "transcript", "clip": "c", "window": "measure"}
    known |= {"direction": "speech2text", "stage": "recognition", "reference": "transcript", "language": "en"}
    known |= {"unit": "word", "complete": True, "outcome": "ok"}
    return Row(**(known | {"references": references, "hypothesis": hypothesis} | changes))


def test_words_are_aligned_with_one_substitution_and_one_deletion() -> None:
    pairs = aligned(row(["the cat sat on the mat"], "the cat sit on mat"))
    assert [pair for pair in pairs if pair.kind != "same"] == [Pair("sub", "sat", "sit"), Pair("del", "the", "")]
    assert " ".join(pair.reference for pair in pairs) == "the cat sat on the mat"


def test_chinese_is_aligned_by_character_without_spaces() -> None:
    pairs = aligned(row(["今天天气很好我们去公园"], "今天天气真好 我去公园吧", unit="char", language="zh"))
    assert [pair for pair in pairs if pair.kind != "same"] == [
        Pair("sub", "很", "真"),
        Pair("del", "们", ""),
        Pair("ins", "", "吧"),
    ]


def test_the_reference_that_fits_best_is_the_one_that_is_shown() -> None:
    pairs = aligned(row(["a b c", "x y z"], "x y z"))
    assert [pair.reference for pair in pairs] == ["x", "y", "z"]
    assert {pair.kind for pair in pairs} == {"same"}


def test_more_wrong_words_than_there_are_are_insertions() -> None:
    kinds = [pair.kind for pair in aligned(row(["a b c"], "x y z w v"))]
    assert sorted(kinds) == ["ins", "ins", "sub", "sub", "sub"]


def test_the_example_of_a_clip_is_its_first_output_that_finished_in_the_measure_window() -> None:
    found = examples(
        [
            row(["a"], "warm", window="warmup"),
            row(["a"], "", complete=False, outcome="lost"),
            row(["a"], "first", session="s2"),
            row(["a"], "second", session="s3"),
        ]
    )
    assert {key: item.hypothesis for key, item in found.items()} == {("transcript", "c"): "first"}


@pytest.mark.parametrize(
    ("direction", "counts", "expected"),
    [
        (
            "sign2spoken",
            (1, 1, 1, 11),
            "w = (1 + 1 + 1) / 11 = 0.2727;  0.2 ≤ w < 0.4  →  80 + (0.4 − w) × 100 = 92.73",
        ),
        ("sign2spoken", (2, 0, 0, 11), "w = (2 + 0 + 0) / 11 = 0.1818;  0 ≤ w < 0.2  →  100"),
        ("sign2spoken", (3, 0, 2, 3), "w = (3 + 0 + 2) / 3 = 1.6667;  0.6 ≤ w  →  0"),
        (
            "spoken2sign",
            (1, 0, 0, 10),
            "w = (1 + 0 + 0) / 10 = 0.1000;  0.1 ≤ w < 0.2  →  60 + (0.2 − w) × 200 = 80.00",
        ),
    ],
)
def test_the_steps_of_a_score_can_be_followed_by_hand(
    direction: str, counts: tuple[int, int, int, int], expected: str
) -> None:
    errors = dict(zip("sdin", counts, strict=True))
    assert steps({"direction": direction, "wer": {"errors": errors}, "points": {"value": 1.0}}) == expected


def test_where_there_are_no_points_there_are_no_steps() -> None:
    nothing = {"s": 0, "d": 0, "i": 2, "n": 0}
    assert steps({"direction": "sign2spoken", "wer": {"errors": nothing}, "points": {"value": None}}) is None
    assert steps({"direction": "sign2spoken", "wer": {"errors": nothing | {"n": 3}}, "points": None}) is None
