"""Published figures beside those of a run: only what their sources say, each with its kind."""

from typing import Any, get_args

import pytest

from loadbench.analysis.population import Responses
from loadbench.analysis.presets import setting, standing, table
from loadbench.analysis.response import METRICS
from loadbench.plan import ViewingSection
from tests.analysis.records import channel, record, utterance

KINDS = {"informative", "guideline", "limit", "measured"}


def told(*lags: float | None) -> list[dict[str, Any]]:
    """How texts stand whose last final came so long after the speech; None: it failed."""
    responses = Responses(["transcript"])
    for number, lag in enumerate(lags):
        outcome = "ok" if lag is not None else "lost"
        text = {} if lag is None else {"transcript": channel(1.0, 0.9 + lag, 0.9 + lag)}
        one = utterance(channels=text, onset=0.2, activity_end=0.9, outcome=outcome)
        responses.add(record(f"s{number}", outcome, one))
    return standing(responses, {}, {})


def row(rows: list[dict[str, Any]], preset: str, figure: str | None, stat: str | None) -> dict[str, Any]:
    (found,) = [each for each in rows if (each["preset"], each["figure"], each["stat"]) == (preset, figure, stat)]
    return found


def test_every_row_has_a_source_a_kind_a_number_and_a_figure_that_there_is() -> None:
    for preset in table()["presets"].values():
        assert preset["source"]
        for each in preset["rows"]:
            assert each["kind"] in KINDS
            assert len({"at_most", "at_least", "compare"} & each.keys()) == 1
            assert each["figure"] in (None, "fps", *METRICS)
            assert ("compare" in each) == (each["kind"] == "measured")


def test_a_mean_of_5_s_is_within_6_and_a_greatest_of_7_is_not_within_3() -> None:
    rows = told(3.0, 7.0)
    crtc = row(rows, "crtc", "final_from_activity_end", "mean")
    assert (crtc["value"], crtc["at_most"], crtc["within"]) == (pytest.approx(5.0), 6.0, True)
    ofcom = row(rows, "ofcom", "final_from_activity_end", "max")
    assert (ofcom["value"], ofcom["within"], ofcom["kind"]) == (pytest.approx(7.0), False, "guideline")


def test_what_others_measured_is_for_comparison_only_and_what_is_not_measured_here_has_no_value() -> None:
    rows = told(3.0)
    assert row(rows, "ofcom", "final_from_activity_end", "p50")["within"] is None
    player = row(rows, "en-301-549-captions", None, None)
    assert (player["value"], player["within"]) == (None, None)


def test_one_that_never_answered_is_not_within_a_greatest_delay() -> None:
    found = row(told(1.0, None), "ofcom", "final_from_activity_end", "max")
    assert (found["value"], found["bound"], found["within"]) == (None, "never", False)


def test_pictures_are_held_against_rates_and_texts_are_not() -> None:
    responses = Responses(["sign"], media={"sign": "video"})
    rows = standing(responses, {"sign": {"fps": {"min": 15.0, "p50": 25.0}}}, {"sign": "video"})
    assert [(each["at_least"], each["within"]) for each in rows if each["figure"] == "fps"] == [(20, False), (12, True)]
    assert {each["preset"] for each in rows} == {"en-301-549"}


def test_a_layout_has_its_numbers_from_the_table_and_speeds_have_none() -> None:
    plain = setting({})
    assert (plain.layout, plain.characters, plain.rows) == ("cfr-16x9", 42, 4)
    assert (plain.reader.known, plain.gap_s) == (False, None)
    asked = setting({"layout": "cfr-4x3", "rows": 2, "words_per_s": 3.0, "gap_s": 1.5})
    assert (asked.characters, asked.rows, asked.reader.words_per_s, asked.gap_s) == (32, 2, 3.0, 1.5)


def test_the_plan_knows_the_layouts_of_the_table() -> None:
    assert set(get_args(ViewingSection.model_fields["layout"].annotation)) == set(table()["layouts"])
