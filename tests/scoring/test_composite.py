"""From counts to points to the composite, each step by hand; and all that refuses a composite. Values of tables that
are entered here are made for the test.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loadbench.scoring.composite import Evidence, Timed, assess
from loadbench.scoring.outputs import Row
from loadbench.scoring.ratings import Rating
from loadbench.scoring.ratings import read as read_ratings
from loadbench.scoring.score import score
from loadbench.scoring.tables import STANDARD
from loadbench.scoring.tables_file import Tables, illustrative, read

RULE = {"bleu_order": 4, "bleu_smoothing": "exp", "rouge_beta": 1, "scale": 1}
RESPONSE = {"metric": "final_from_source_end", "stat": "p95", "counted": "started", "unit": "s"}
RISING = [{"from": 0, "below": 1, "base": 100, "limit": 1, "slope": -100}, {"from": 1, "base": 100}]
FALLING = [
    {"from": 0, "below": 2, "base": 100},
    {"from": 2, "below": 4, "base": 50, "limit": 4, "slope": 25},
    {"from": 4, "base": 10},
]
WEIGHTS = {"1": 0.4, "2": 0.3, "4": 0.2, "5": 0.1}


def sheet(**changes: Any) -> Tables:
    """Everything for sign to spoken, under the standard's name; what it gives no weight is entered all the same."""
    tables: dict[str, Any] = {str(number): {"given": "points"} for number in (3, *range(6, 12))} | {
        "2": {"bands": {"sign2spoken": RISING}},
        "4": {"given": "points"},
        "5": {"bands": {"sign2spoken": FALLING}},
        "12": {"weights": {"sign2spoken": WEIGHTS}},
    }
    parts: dict[str, Any] = {"name": STANDARD, "translation": RULE | {"combine": "mean", "bleu_weight": 0.5}}
    parts |= {"response": RESPONSE, "tables": tables | changes.pop("tables", {})}
    return read(json.dumps(parts | changes).encode(), "mine.json")


def row(session: str, clip: str, stage: str, reference: str, said: str | None, **changes: Any) -> Row:
    recognised = stage == "recognition"
    known: dict[str, Any] = {"session": session, "utterance": 0, "attempt": 0, "clip": clip, "window": "measure"}
    known |= {"channel": "gloss" if recognised else "text", "stage": stage, "direction": "sign2spoken"}
    known |= {"reference": "gloss" if recognised else "text", "language": "csl" if recognised else "zh"}
    known |= {"unit": "gloss" if recognised else "char", "references": [reference], "hypothesis": said or ""}
    known |= {"complete": said is not None, "outcome": "ok" if said is not None else "lost"}
    return Row(**(known | changes))


SIGNED = row("s", "park", "recognition", "今天 天气 好 我们 公园 去", "今天 天气 很 好 公园 去")
SPOKEN = row("s", "park", "translation", "今天天气很好我们去公园", "今天天气真好我去公园")
RATINGS = [
    Rating(indicator=4, clip="park", rater="anna", value=80),
    Rating(indicator=4, clip="park", rater="ben", value=90),
]


def evidence(*rows: Row, **changes: Any) -> Evidence:
    known: dict[str, Any] = {"scores": score(rows or (SIGNED, SPOKEN)), "ratings": RATINGS, "timed": Timed(3.0, n=1)}
    return Evidence(**(known | changes))


def of(entered: Tables | None, found: Evidence, direction: str = "sign2spoken") -> dict[str, Any]:
    made: dict[str, Any] = assess(entered, found)["standard"]["directions"][direction]
    return made


def test_each_step_can_be_followed_from_counts_to_the_composite() -> None:
    made = of(sheet(), evidence())
    recognised, translated, rated, answered = made["steps"]
    assert recognised["inputs"]["errors"] == {"n": 6, "s": 0, "d": 1, "i": 1}
    assert recognised["value"] == pytest.approx(1 / 3)
    assert recognised["rule"] == "80 + (0.4 − w) × 100, for 0.2 ≤ w < 0.4"
    assert recognised["points"] == pytest.approx(86.6666667)
    assert recognised["weighted"] == pytest.approx(34.6666667)
    overlap = (0.3831260405050856 + 6 / 7) / 2
    assert (translated["inputs"]["bleu"], translated["inputs"]["rouge_l"]) == pytest.approx((38.31260405050856, 6 / 7))
    assert translated["value"] == pytest.approx(overlap)
    assert translated["points"] == pytest.approx(100 * overlap)
    assert translated["rule"] == "100 − (1 − t) × 100, for 0 ≤ t < 1"
    assert (rated["value"], rated["points"], rated["rule"]) == (85.0, 85.0, "the raters' points")
    assert (rated["inputs"]["raters"], rated["inputs"]["sd"]) == (2, pytest.approx(7.0710678))
    assert (answered["value"], answered["points"]) == (3.0, 75.0)
    assert answered["clause"] == "T/CADHOH 0004-2023, clause 5.3, Table 5"
    whole = made["composite"]
    assert whole["value"] == pytest.approx(0.4 * 86.6666667 + 30 * overlap + 0.2 * 85 + 0.1 * 75)
    assert (whole["clause"], whole["missing"]) == ("T/CADHOH 0004-2023, clause 6, Table 12", [])
    assert whole["rule"].startswith("0.4 × 86.6667 + 0.3 × ")


def test_without_tables_there_is_the_first_step_and_every_missing_table_is_named() -> None:
    found = assess(None, evidence(ratings=(), timed=None))
    assert found["not_the_standard"] is None
    assert found["standard"]["sha256"] is None
    made = found["standard"]["directions"]["sign2spoken"]
    assert [(step["table"], step["weight"]) for step in made["steps"]] == [(1, None)]
    assert made["composite"]["value"] is None
    assert [text.split(" (")[0] for text in made["composite"]["missing"]] == [f"Table {n}" for n in range(2, 13)]
    assert "take them from your own copy of the standard" in made["composite"]["missing"][0]


MISSING = {
    "a table": (sheet(tables={"2": {}}), {}, "Table 2 (translation accuracy score) of T/CADHOH 0004-2023 is not part"),
    "the rule of translation": (sheet(translation=None), {}, "how BLEU and ROUGE-L are combined is not said"),
    "which response time": (sheet(response=None), {}, "which response time is scored is not said"),
    "any rating": (sheet(), {"ratings": ()}, "Table 4 (spoken-language readability): no ratings"),
    "ratings of the other direction": (
        *(sheet(), {"ratings": [Rating(indicator=4, clip="system", rater="a", value=1, direction="spoken2sign")]}),
        "Table 4 (spoken-language readability): no ratings",
    ),
    "the rating of a clip": (
        *(sheet(), {"ratings": [Rating(indicator=4, clip="lake", rater="anna", value=80)]}),
        "Table 4 (spoken-language readability): no rating of park",
    ),
    "points that are none": (
        *(sheet(), {"ratings": [*RATINGS, Rating(indicator=4, clip="park", rater="cleo", value=102)]}),
        "the raters' points do not lie within 0 to 100",
    ),
    "a time": (sheet(), {"timed": Timed(None, why="nobody knows")}, "(translation response score): nobody knows"),
    "a sure time": (sheet(), {"timed": Timed(9.0, "at_least", 4)}, "p95 is only known to be at least 9 s"),
    "a band": (sheet(), {"timed": Timed(-0.5, n=1)}, "x = -0.5 lies in none of its bands"),
    "the end of the run": (sheet(), {"unfit": ["the run did not come to its end"]}, "the run did not come to its end"),
}


@pytest.mark.parametrize(("entered", "changes", "said"), MISSING.values(), ids=MISSING)
def test_while_anything_is_missing_there_is_no_composite_and_it_is_named(
    entered: Tables, changes: dict[str, Any], said: str
) -> None:
    whole = of(entered, evidence(**changes))["composite"]
    assert (whole["value"], whole["rule"]) == (None, "")
    (text,) = whole["missing"]
    assert said in text


def test_under_the_standards_name_a_few_tables_are_not_enough_whatever_they_weigh() -> None:
    few = {str(number): {} for number in (2, 3, *range(5, 12))}
    made = of(sheet(tables=few | {"12": {"weights": {"sign2spoken": {"1": 0.5, "4": 0.5}}}}), evidence())
    assert made["composite"]["value"] is None
    assert [text.split(" (")[0] for text in made["composite"]["missing"]] == [
        f"Table {number}" for number in (2, 3, 5, 6, 7, 8, 9, 10, 11)
    ]
    assert [step["table"] for step in made["steps"]] == [1, 4]


def test_all_that_is_missing_is_named_at_once() -> None:
    whole = of(sheet(tables={"12": {}}), evidence(ratings=()))["composite"]
    assert [text.split(" (")[0] for text in whole["missing"]] == [
        f"Table {number}" for number in (3, 4, 6, 7, 8, 9, 10, 11, 12)
    ]


def test_a_translation_that_was_not_run_or_is_ambiguous_is_missing() -> None:
    assert "no translation channel was scored" in of(sheet(), evidence(SIGNED))["composite"]["missing"][0]
    second = row("t", "park", "translation", "a b", "a b", channel="text2", unit="word", language="en")
    whole = of(sheet(), evidence(SIGNED, SPOKEN, second))["composite"]
    assert "several translation channels or units: text (char), text2 (word)" in whole["missing"][0]
    empty = of(sheet(), evidence(row("s", "park", "recognition", "", "今天"), SPOKEN))["composite"]
    assert "every reference is empty" in empty["missing"][0]


def test_response_times_of_two_directions_belong_to_neither() -> None:
    other = row("t", "talk", "recognition", "a b", "a b", direction="spoken2sign", channel="heard", unit="word")
    whole = of(sheet(), evidence(SIGNED, SPOKEN, other))["composite"]
    assert "run them apart" in whole["missing"][0]


def test_one_that_never_answered_has_the_points_of_the_last_band() -> None:
    step = of(sheet(), evidence(timed=Timed(None, "never", 3)))["steps"][-1]
    assert (step["value"], step["points"], step["rule"]) == (None, 10.0, "10, for 4 ≤ x")
    ended = sheet(tables={"5": {"bands": {"sign2spoken": FALLING[:2]}}})
    whole = of(ended, evidence(timed=Timed(None, "never", 3)))["composite"]
    assert "x = infinite lies in none of its bands" in whole["missing"][0]


def test_a_time_is_scored_in_the_unit_of_its_table() -> None:
    bands = [{"from": 0, "below": 3000, "base": 100}, {"from": 3000, "base": 20}]
    entered = sheet(response=RESPONSE | {"unit": "ms"}, tables={"5": {"bands": {"sign2spoken": bands}}})
    step = of(entered, evidence(timed=Timed(2.9996, n=1)))["steps"][-1]
    assert (step["value"], step["points"]) == (2999.6, 100.0)


COMBINED = {
    "mean": ({"combine": "mean", "bleu_weight": 0.25}, 0.25 * 0.3831260405 + 0.75 * 0.8571428571),
    "geometric_mean": ({"combine": "geometric_mean"}, (0.3831260405 * 0.8571428571) ** 0.5),
    "harmonic_mean": ({"combine": "harmonic_mean"}, 2 / (1 / 0.3831260405 + 1 / 0.8571428571)),
    "min": ({"combine": "min"}, 0.3831260405),
    "max": ({"combine": "max"}, 0.8571428571),
    "other settings": (
        *({"combine": "max", "bleu_order": 1, "scale": 100, "rouge_beta": "p_over_r"},),
        100 * 221 / 259,
    ),
}


@pytest.mark.parametrize(("changes", "expected"), COMBINED.values(), ids=COMBINED)
def test_bleu_and_rouge_are_combined_as_the_file_says(changes: dict[str, Any], expected: float) -> None:
    bands = [{"from": 0, "base": 50}]
    entered = sheet(translation=RULE | changes, tables={"2": {"bands": {"sign2spoken": bands}}})
    assert of(entered, evidence())["steps"][1]["value"] == pytest.approx(expected, abs=1e-9)


def test_smoothing_is_the_files_and_not_that_of_the_figure_which_is_shown() -> None:
    glosses = row("s", "park", "translation", "今天 天气 好 我们 公园 去", "今天 天气 很 好 公园 去", unit="gloss")
    for smoothing, expected in (("exp", 24.274588585366175), ("none", 0.0), ("floor", 12.909944487358057)):
        entered = sheet(translation=RULE | {"combine": "min", "bleu_smoothing": smoothing})
        assert of(entered, evidence(SIGNED, glosses))["steps"][1]["inputs"]["bleu"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("aggregation", "points", "rule"),
    [
        ("pooled", 100.0, "80 + (0.4 − w) × 100, for 0.2 ≤ w < 0.4"),
        ("of_mean_rate", 96.6666667, "80 + (0.4 − w) × 100, for 0.2 ≤ w < 0.4"),
        ("mean_of_points", 66.6666667, "mean of the points of each sentence"),
    ],
)
def test_the_aggregation_of_recognition_is_the_files(aggregation: str, points: float, rule: str) -> None:
    cases = [("a b c d e f g h i j", "a b c d e f g h i x"), ("a b c d e", "a b x y z"), ("a b c d e", "a b c d e")]
    rows = [row(f"s{k}", f"c{k}", "recognition", *case) for k, case in enumerate(cases)]
    step = of(sheet(recognition={"aggregation": aggregation}), evidence(*rows))["steps"][0]
    assert step["points"] == pytest.approx(points)
    assert step["rule"] == rule


def test_made_up_tables_give_scores_that_say_so_in_every_step_and_never_under_the_standards_name() -> None:
    found = assess(illustrative(), evidence())
    assert found["standard"]["directions"]["sign2spoken"]["composite"]["value"] is None
    made = found["not_the_standard"]["directions"]["sign2spoken"]
    words = "illustrative, not T/CADHOH 0004-2023"
    assert made["composite"]["value"] is not None
    for part in (found["not_the_standard"], made["composite"], *made["steps"]):
        assert part["under"] == words
    assert all(part["clause"].startswith(words) for part in (made["composite"], *made["steps"]))
    assert len(made["steps"]) == 4


def test_values_by_a_table_that_people_rate_go_through_its_bands() -> None:
    bands = {"sign2spoken": [{"from": 1, "below": 3, "base": 30}, {"from": 3, "below": 5, "base": 70}]}
    found = [Rating(indicator=4, clip="system", rater=name, value=value) for name, value in (("a", 2), ("b", 5))]
    step = of(sheet(tables={"4": {"bands": bands}}), evidence(ratings=found))["steps"][2]
    assert (step["value"], step["points"], step["rule"]) == (3.5, 70.0, "70, for 3 ≤ r < 5")


def test_ratings_of_clips_that_were_not_run_are_named() -> None:
    extra = [*RATINGS, Rating(indicator=4, clip="lake", rater="anna", value=80)]
    assert assess(sheet(), evidence(ratings=extra))["standard"]["unused_ratings"] == ["lake"]


def test_plain_speech_recognition_counts_as_the_first_half_of_spoken_to_sign() -> None:
    heard = row("s", "c", "recognition", "a b", "a b", direction="speech2text", unit="word", language="en")
    found = assess(None, evidence(heard))["standard"]["directions"]
    assert list(found) == ["spoken2sign"]
    assert found["spoken2sign"]["steps"][0]["points"] == 100.0


def test_a_run_without_scores_has_no_direction() -> None:
    assert assess(sheet(), Evidence(scores=score([])))["standard"]["directions"] == {}


@pytest.mark.parametrize("name", ["scoring.md", "scoring.zh-CN.md"])
def test_the_worked_example_of_the_documentation_comes_out_as_it_says(name: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / name).read_text()
    entered, rated = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0] for kind in ("toml", "csv"))
    eleven = row("s", "c", "recognition", "a b c d e f g h i j k", "a b c d e f g h x y z")
    found = assess(read(entered.encode(), "a.toml"), evidence(eleven, ratings=read_ratings(rated.encode(), "r.csv")))
    made = found["not_the_standard"]["directions"]["sign2spoken"]
    assert [f"{step['points']:.2f}" for step in made["steps"]] == ["92.73", "80.00"]
    assert f"{made['composite']['value']:.2f}" == "86.36"
    assert "86.36" in text
    assert f"{found['not_the_standard']['under']}" == "example, not T/CADHOH 0004-2023"
