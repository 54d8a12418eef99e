"""Tables that people enter: what is wrong is said at once, and what is made up cannot pass for the standard."""

import json
import tomllib
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from loadbench.scoring import tables
from loadbench.scoring.tables import STANDARD
from loadbench.scoring.tables_file import NONE, Tables, TablesError, illustrative, load, read, schema, template
from tests.results.test_schema import faults

METRICS = ("final_from_source_end", "first_output_from_media")
RISING = [
    {"from": 0, "below": 0.5, "base": 0},
    {"from": 0.5, "below": 0.7, "base": 90, "limit": 0.7, "slope": -100},
    {"from": 0.7, "base": 90},
]


def entered(**parts: Any) -> Tables:
    return read(json.dumps({"name": STANDARD} | parts).encode(), "mine.json", METRICS)


def problems(text: str | dict[str, Any], source: str = "mine.json") -> list[str]:
    data = text if isinstance(text, str) else json.dumps(text)
    with pytest.raises(TablesError) as caught:
        read(data.encode(), source, METRICS)
    return [problem.removeprefix(f"{source}: ") for problem in caught.value.problems]


def test_the_template_is_read_as_a_file_without_any_value_and_has_every_title() -> None:
    found = read(template().encode(), "template.toml", METRICS)
    assert found.standard
    for number in range(2, 12):
        assert found.table(number).bands == {}
        assert found.table(number).title == tables.standard()["tables"][str(number)]["title"]
    assert {part["title"] for part in tomllib.loads(template())["tables"].values()} == {
        part["title"] for number, part in tables.standard()["tables"].items() if number != "1"
    }
    assert (found.weights("sign2spoken"), found.translation, found.response) == ({}, None, None)


def test_the_shipped_file_has_the_form_that_people_fill_in() -> None:
    shipped = resources.files("loadbench").joinpath(tables.FILE).read_bytes()
    assert read(shipped, "t-cadhoh.json").tables["1"].bands.keys() == {"sign2spoken", "spoken2sign"}


def test_entered_bands_are_used_with_their_clause_and_exact_to_the_decimal() -> None:
    found = entered(tables={"2": {"clause": "5.2", "bands": {"sign2spoken": RISING}}}).table(2)
    assert found.clause == "T/CADHOH 0004-2023, clause 5.2, Table 2"
    assert found.title == "translation accuracy score"
    values = {"0": 0, "0.4999": 0, "0.5": 70, "0.6": 80, "0.7": 90, "1": 90}
    assert {value: found.points("sign2spoken", Fraction(value)) for value in values} == values
    assert found.points("sign2spoken", Fraction(-1)) is None, "in no band"
    assert found.points("spoken2sign", Fraction(1)) is None, "not entered for that direction"


def test_the_end_that_belongs_to_a_band_can_be_chosen() -> None:
    bands = [{"from": 0, "below": 1, "base": 100}, {"from": 1, "base": 40}]
    lower = entered(tables={"5": {"bands": {"sign2spoken": bands}}}).table(5)
    upper = entered(tables={"5": {"bands": {"sign2spoken": bands}, "includes": "below"}}).table(5)
    values = (Fraction(0), Fraction(1), Fraction("1.01"))
    assert [lower.points("sign2spoken", value) for value in values] == [100, 40, 40]
    assert [upper.points("sign2spoken", value) for value in values] == [100, 100, 40]
    band = upper.band("sign2spoken", Fraction(1))
    assert band is not None
    assert band.span("x", upper=True) == "0 < x ≤ 1"


def test_the_first_table_is_part_of_loadbench_and_may_be_repeated_but_not_changed() -> None:
    first = tables.standard()["tables"]["1"]
    assert entered(tables={"1": first}).table(1).bands == tables.table(1).bands
    changed = {"sign2spoken": [{"from": 0, "base": 50}]}
    assert problems({"name": STANDARD, "tables": {"1": {"bands": changed}}}) == [
        "tables.1: differs from the standard's, which is part of loadbench: leave it out"
    ]


def test_all_problems_of_a_file_are_said_at_once() -> None:
    said = problems(
        """
        name = "T/CADHOH 0004-2023"
        colour = "red"
        [translation]
        combine = "mean"
        [response]
        metric = "final"
        stat = "mean"
        counted = "started"
        unit = "s"
        [tables.2.bands]
        sign2spoken = [
          { from = 0, below = 0.4, base = 50 },
          { from = 0.5, below = 0.7, base = 90, limit = 0.7, slope = 100 },
          { from = 0.6, base = 0 },
        ]
        [tables.3]
        given = "points"
        bands = { spoken2sign = [{ base = 1 }, { base = 2 }] }
        [tables.4.bands]
        both = [{ base = 101 }]
        [tables.5]
        given = "points"
        [tables.6.bands]
        spoken2sign = [{ from = 3, below = 3, base = 5 }, { from = 3, base = 5, slope = 2 }]
        [tables.7.weights]
        sign2spoken = { 1 = 1 }
        [tables.12]
        weights = { sign2spoken = { 1 = 0.5, 2 = 0.4 }, spoken2sign = { 12 = 0.5, 1 = 1.5 } }
        bands = { sign2spoken = [{ base = 1 }] }
        [tables.13]
        """,
        "mine.toml",
    )
    assert said == [
        "translation.bleu_order is missing",
        "translation.bleu_smoothing is missing",
        "translation.rouge_beta is missing",
        "translation.scale is missing",
        "tables.4.bands.both: a direction is sign2spoken or spoken2sign",
        "tables.4.bands.both.0.base: input should be less than or equal to 100, not 101",
        "colour: there is no such entry",
        "response: the mean of started ones is infinite as soon as one failed; take counted = finished",
        "response.metric: there is no response time 'final'; there are final_from_source_end, first_output_from_media",
        "tables.2.sign2spoken: band 2 gives 110 points at 0.5: points go from 0 to 100",
        "tables.2.sign2spoken: bands 1 and 2: a gap between 0.4 and 0.5",
        "tables.2.sign2spoken: bands 2 and 3: an overlap between 0.7 and 0.6",
        "tables.3: given = points is for tables that people rate, and then there are no bands",
        "tables.3.spoken2sign: bands 1 and 2: only the first may lack from, only the last may lack below",
        "tables.5: given = points is for tables that people rate, and then there are no bands",
        "tables.6.spoken2sign: band 1 goes from 3 to 3, which holds no value",
        "tables.6.spoken2sign: band 2 has a slope, so it needs limit, from and below",
        "tables.7: weights stand in Table 12",
        "tables.12: holds weights, and no bands",
        "tables.12.sign2spoken: the weights add up to 0.9, not to 1",
        "tables.12.spoken2sign: weight of '12': a weight belongs to a table, 1 to 11",
        "tables.12.spoken2sign: weight of 1: above 0 and at most 1, not 1.5",
        "tables.12.spoken2sign: the weights add up to 2, not to 1",
        "tables.13: there is no such table; the standard has 1 to 12",
    ]


def test_weights_of_decimals_add_up_to_one_exactly() -> None:
    tenths = {str(number): 0.1 for number in range(1, 11)}
    assert sum(tenths.values()) != 1
    found = entered(tables={"12": {"weights": {"sign2spoken": tenths}}})
    assert found.weights("sign2spoken") == dict.fromkeys(range(1, 11), 0.1)
    assert list(found.weights("sign2spoken")) == list(range(1, 11))
    assert found.weights("spoken2sign") == {}


RULE = {"bleu_order": 4, "bleu_smoothing": "none", "combine": "min", "scale": 100}


def test_a_beta_may_be_written_as_a_number_and_no_other_is_known() -> None:
    for written, beta in ((1, "1"), (1.2, "1.2"), ("p_over_r", "p_over_r")):
        rule = entered(translation=RULE | {"rouge_beta": written}).translation
        assert rule is not None
        assert rule.rouge_beta == beta
    assert problems({"name": STANDARD, "translation": RULE | {"rouge_beta": 3}}) == [
        "translation.rouge_beta: input should be '1', '1.2' or 'p_over_r', not '3'"
    ]


@pytest.mark.parametrize("changed", [{"combine": "mean"}, {"bleu_weight": 0.5}])
def test_a_weight_of_bleu_goes_with_a_mean(changed: dict[str, Any]) -> None:
    assert problems({"name": STANDARD, "translation": RULE | {"rouge_beta": 1} | changed}) == [
        "translation.bleu_weight goes with combine = mean, and has to be there"
    ]


def test_made_up_tables_say_so_and_cannot_be_entered_under_the_standards_name() -> None:
    made_up = illustrative()
    assert (made_up.standard, made_up.label) == (False, "illustrative, not T/CADHOH 0004-2023")
    for number in range(1, 12):
        assert "illustrative, not T/CADHOH 0004-2023" in made_up.table(number).clause
    said = problems(template("illustrative.toml").replace('name = "illustrative"', f'name = "{STANDARD}"'), "mine.toml")
    numbers = [text.split(":")[0] for text in said]
    assert numbers == [f"tables.{number}" for number in (2, 5, 6, 8, 12)]
    assert "made-up values of the illustrative tables" in said[0]


@pytest.mark.parametrize("name", ["T/CADHOH 0004-2023 (draft)", "t/cadhoh", "T-CADHOH-0004-2023", "standard 0004"])
def test_a_name_that_looks_like_the_standard_is_refused(name: str) -> None:
    assert "looks like the standard" in problems({"name": name})[0]


def test_a_name_of_ones_own_stands_beside_every_score() -> None:
    own = read(b'{"name": "house rules"}', "mine.json")
    assert (own.label, own.table(2).clause) == (
        "house rules, not T/CADHOH 0004-2023",
        "house rules, not T/CADHOH 0004-2023, Table 2",
    )


@pytest.mark.parametrize(
    ("data", "source", "said"),
    [
        (b"name = ", "a.toml", "neither TOML (*.toml) nor JSON"),
        (b"\xff", "a.json", "neither TOML (*.toml) nor JSON"),
        (b"[" * 100_000, "a.json", "neither TOML (*.toml) nor JSON"),
        (b"[]", "a.json", "the file: input should be a valid dictionary"),
        (b"{}", "a.json", "name is missing"),
        (b'{"name": "x", "tables": {"2": {"bands": {"sign2spoken": [{"base": 1e999}]}}}}', "a.json", "finite number"),
    ],
)
def test_what_is_no_tables_file_is_said_without_a_traceback(data: bytes, source: str, said: str) -> None:
    with pytest.raises(TablesError) as caught:
        read(data, source)
    assert said in str(caught.value)
    assert str(caught.value).startswith(source)


def test_a_file_that_is_not_there_or_far_too_long_is_named(tmp_path: Path) -> None:
    with pytest.raises(TablesError, match=r"no\.toml: No such file"):
        load(str(tmp_path / "no.toml"))
    (tmp_path / "long.json").write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(TablesError, match="no score tables"):
        load(str(tmp_path / "long.json"))
    assert load("illustrative") is illustrative()


def test_what_is_kept_in_a_bundle_is_read_back_as_it_was_and_has_a_digest() -> None:
    found = illustrative()
    again = read(found.encode(), "tables.json")
    assert again == found
    assert again.digest == found.digest != NONE.digest


def test_files_fit_the_published_schema_and_others_do_not() -> None:
    whole = json.loads(json.dumps(schema()))
    assert whole["title"] == "loadbench score tables"
    for name in ("template.toml", "illustrative.toml"):
        assert faults(tomllib.loads(template(name)), whole, whole) == []
    assert faults({"name": 5}, whole, whole)
    assert faults({"tables": {}}, whole, whole)


def test_an_outline_says_what_each_table_holds() -> None:
    lines = illustrative().outline()
    assert lines[0] == "illustrative, not T/CADHOH 0004-2023 (made up for loadbench)"
    assert "Table 3  sign readability: points by raters" in lines
    assert "Table 6  head vertex count: spoken2sign: 3 bands" in lines
    assert NONE.outline()[-1] == "Table 12 weights of single indicators: missing"
