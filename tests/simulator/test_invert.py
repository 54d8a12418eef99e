from typing import Any

import jmespath
import pytest

from loadbench.session.profile import Condition
from loadbench.session.select import compile_condition
from loadbench.simulator import invert


@pytest.mark.parametrize(
    ("has", "match", "expected"),
    [
        ("partial", None, {"partial": None}),
        (["a.b", "a.c"], None, {"a": {"b": None, "c": None}}),
        (None, "a == 'x' && b.c == 'y'", {"a": "x", "b": {"c": "y"}}),
        (None, "type == 'detection' && payload.sign", {"type": "detection", "payload": {"sign": True}}),
        (None, "error_code == `429`", {"error_code": 429}),
        (None, "`429` == error_code", {"error_code": 429}),
        (None, "a == 'x' || a == 'y'", {"a": "x"}),
        (None, "!(a == 'x')", {}),
        (None, "a != null", {"a": True}),
        (None, "a > `3` && b <= `2`", {"a": 4, "b": 2}),
        (None, "`3` < a", {"a": 4}),
        (None, "contains(name, 'boat')", {"name": "boat"}),
        (None, 'contains(`["a", "b"]`, kind)', {"kind": "a"}),
        (None, "starts_with(name, 'session.')", {"name": "session."}),
        (None, "items[?kind == 'final'].text", {"items": [{"kind": "final", "text": True}]}),
        (None, "\"x-y\".z == '1'", {"x-y": {"z": "1"}}),
        (None, "finished && !error", {"finished": True}),
        (None, "@ == 'Done!'", "Done!"),
        ("lines", "status == 'active'", {"lines": None, "status": "active"}),
    ],
)
def test_the_least_message_that_a_condition_takes(has: Any, match: str | None, expected: Any) -> None:
    message = invert.fitting(Condition(has=has, match=match))
    assert message == expected
    assert compile_condition(has, match)(message)


@pytest.mark.parametrize(
    "selector",
    [
        "text",
        "a.b.c",
        "alternatives[0].text",
        "result[-1].end",
        "segments[*].text | [0]",
        "x[?k == 'v'].t | [0]",
        "a || b",
    ],
)
def test_a_path_gives_back_what_was_put_at_it(selector: str) -> None:
    message = invert.put({}, selector.split(" | ")[0], "word")
    found = jmespath.search(selector, message)
    assert found == "word"


def test_a_filtered_path_takes_the_element_that_fits_or_can_and_else_another_one() -> None:
    lines = invert.put_all(None, "lines[?sure]", [{"text": "a"}])
    said = invert.put(lines, "lines[?!sure].text", "b")
    assert (jmespath.search("lines[?sure].text", said), jmespath.search("lines[?!sure].text", said)) == (["a"], ["b"])
    assert len(said["lines"]) == 2
    kind = invert.put({"lines": [{"text": "a"}]}, "lines[?kind == 'x'].end", 2)
    assert kind == {"lines": [{"text": "a", "kind": "x", "end": 2}]}, "nothing of it is lost"


@pytest.mark.parametrize(
    ("selector", "values"),
    [("lines", ["a", "b"]), ("lines", []), ("lines[*].text", ["a", "b"]), ("tokens[?kind == 'x']", [{"text": "a"}])],
)
def test_a_list_is_put_element_for_element(selector: str, values: list[Any]) -> None:
    found = jmespath.search(selector, invert.put_all({"other": 1}, selector, values))
    assert [{"text": item["text"]} if isinstance(item, dict) else item for item in found] == values


def test_the_first_of_joined_pieces_bears_the_whole_text() -> None:
    assert invert.put({}, "join('', [a.b || '', c || ''])", "word") == {"a": {"b": "word"}}


@pytest.mark.parametrize("listed", ["['a', 'b']", '`["a", "b"]`'])
def test_what_shall_be_one_of_a_list_is_its_first(listed: str) -> None:
    assert invert.satisfy(invert.parsed(f"contains({listed}, kind)"), {}) == {"kind": "a"}


@pytest.mark.parametrize("selector", ["is_final", "type == 'final'", "!pending", "a.b && c"])
@pytest.mark.parametrize("wanted", [True, False])
def test_finality_can_be_decided_either_way(selector: str, wanted: bool) -> None:
    message = invert.decide({}, selector, wanted)
    assert compile_condition(None, selector)(message) is wanted


@pytest.mark.parametrize("selector", ["length(a)", "[a, b]", "a == b", "`3`"])
def test_what_has_no_inverse_says_so(selector: str) -> None:
    with pytest.raises(invert.NoInverseError):
        invert.put({}, selector, "word")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^ERROR", "ERROR"), ("busy|full", "busy"), ("^(WAIT|BUSY)$", "WAIT"), (r"a\.b", "a.b"), ("no audio", "no audio")],
)
def test_a_regular_expression_of_words_has_an_inverse(pattern: str, text: str) -> None:
    assert invert.fitting(Condition(has="id", like={"a.text": pattern})) == {"id": None, "a": {"text": text}}


def test_any_other_regular_expression_has_none() -> None:
    with pytest.raises(invert.NoInverseError, match="the regular expression"):
        invert.fitting(Condition(like={"a": r"\d+ left"}))
