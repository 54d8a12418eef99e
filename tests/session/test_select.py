"""Selectors agree with the jmespath library; conditions see empty values and survive any message."""

import re
from typing import Any

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadbench.session.select import SELECT_ERRORS, SelectorError, compile_condition, compile_selector, truthy
from tests.examples import examples

# What the services of the reference need, and the corners of each kind of node.
EXPRESSIONS = (
    """
text ; a.b.c ; result[0].start ; result[-1].end ; alternatives[0].text ; channel.alternatives[0].transcript
type == 'error' ; type != 'error' ; type == 'command' && payload.status == 'started'
type == 'detection' && payload.sign
status == 'WAIT' || status == 'ERROR' ; error_code == `429` ; code != `0` ; flag == `true` ; flag == `1` ; text == null
sentence_end == `true` || end_time != null ; !a ; !(a || b) ; a < `3` ; a >= b ; a == b ; a != b ; a < b
segments[*] ; segments[*].text ; segments[?completed].text ; segments[?!completed] | [0].text
tokens[?is_final && text != '<end>' && text != '<fin>'].text | join('', @)
tokens[?translation_status == 'translation' && !is_final].text ; lines[?speaker != `-2`].text
cn.st.rt[].ws[].cw[].w | join('', @) ; data.result.ws[].cw[0].w | join('', @) ; results[*].content | join(' ', @)
join(', ', segments[*].text) ; join(text, a) ; contains(mode, 'offline') ; contains(a, `1`) ; contains(a, b)
ends_with(mode, '-offline') || mode == 'offline' ; starts_with(text, 'ERROR')
[text, type] ; {t: text, k: type} ; a.[b, c] ; a.{x: b} ; a.* ; a.*.b ; * ; a[] ; a[][] ; a[1:3] ; a[::-1] ; @ ; keys(@)
length(text) ; not_null(transcript, text, 'none') ; to_number(a) ; to_string(a) ; sort_by(a, &b)[0].b ; max(a) ; type(a)
map(&b, a) ; "with-hyphen".x ; `[1, 2]` ; 'raw' ; a | b | c ; a[0] ; a[?b == `1`] ; a[?b > `0`].c | [-1]
""".replace("\n", " ; ")
    .strip(" ;")
    .split(" ; ")
)
KEYS = sorted(set(re.findall(r"[a-z][a-z_-]*", " ".join(EXPRESSIONS))))  # and the names of functions, which is fine
SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 2, -2, 0.0, 1.5, 429, "", "a", "error", "ERROR", "offline", "command", "<end>", "started"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)


def outcome(evaluate: Any, message: Any) -> Any:
    try:
        return "gives", repr(evaluate(message))
    except SELECT_ERRORS as error:
        return "raises", type(error)


@given(st.sampled_from(EXPRESSIONS), VALUES)
@settings(max_examples=examples(500), deadline=None)
def test_the_closures_give_what_the_library_gives_errors_included(expression: str, message: Any) -> None:
    library = jmespath.compile(expression)
    assert outcome(compile_selector(expression), message) == outcome(library.search, message)


def nested(path: list[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


@given(st.sampled_from(EXPRESSIONS), VALUES, VALUES)
@settings(max_examples=examples(250), deadline=None)
def test_they_agree_where_the_message_has_what_the_expression_looks_for(expression: str, one: Any, two: Any) -> None:
    words = [word for word in KEYS if word in expression.replace("[", " ").replace(".", " ").replace("(", " ").split()]
    paths = [words[:1], words[1:2], words[:2], words]
    for path in paths:
        for value in ([one, two], {"a": one, "b": two, **{word: [one, two] for word in words}}, one):
            message = nested(path, value)
            assert outcome(compile_selector(expression), message) == outcome(
                jmespath.compile(expression).search, message
            )


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("a ==", "Incomplete"),
        ("", "empty"),
        ("'open", "Unclosed"),
        ("frobnicate(a)", "no function frobnicate()"),
        ("length(a, b)", "takes 1 arguments, not 2"),
        ("a[?frobnicate(b)]", "no function"),
        ("(" * 3000 + "a" + ")" * 3000, "nested more than 100 levels deep"),
        ("||".join(["a"] * 102), "nested more than 100 levels deep"),
    ],
)
def test_an_expression_that_cannot_work_is_refused_before_the_run(expression: str, says: str) -> None:
    with pytest.raises(SelectorError, match=re.escape(says)):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("has", "message", "fits"),
    [
        ("partial", {"partial": ""}, True),  # an empty text is false to JMESPath, and the key is there
        ("tokens", {"tokens": []}, True),  # an empty list must clear the tentative text
        ("end_of_stream", {"end_of_stream": {}}, True),
        ("a", {"a": None}, True),
        ("a", {"a": False}, True),
        ("a", {"b": 1}, False),
        ("a.b", {"a": {"b": 0}}, True),
        ("a.b", {"a": "b"}, False),  # no looking into texts
        ("a.b", {"a.b": 1}, False),
        (["a", "b"], {"a": 1, "b": None}, True),
        (["a", "b"], {"a": 1}, False),
        ("a", ["a"], False),
        ("a", "a", False),
        ("a", None, False),
        (None, "anything", True),
    ],
)
def test_has_asks_for_the_key_and_not_for_its_value(has: Any, message: Any, fits: bool) -> None:
    assert compile_condition(has, None)(message) is fits


def test_the_bare_key_as_a_match_falls_into_the_trap_that_has_avoids() -> None:
    assert not compile_condition(None, "partial")({"partial": ""})


@pytest.mark.parametrize("message", [[], "OUT_OF_QUOTA", 3, None, {"a": "x"}])
@pytest.mark.parametrize("match", ["contains(keys(@), 'id')", "a < `3` && length(b) > `1`", "join('', @)"])
def test_a_condition_that_cannot_be_evaluated_does_not_match(match: str, message: Any) -> None:
    assert compile_condition(None, match)(message) is False


def test_has_and_match_must_both_hold() -> None:
    fits = compile_condition("id", "type == 'x'")
    assert [fits({"id": 0, "type": "x"}), fits({"type": "x"}), fits({"id": 0, "type": "y"})] == [True, False, False]


@pytest.mark.parametrize(
    ("message", "fits"),
    [
        ({"text": "ERROR: no audio"}, True),
        ({"text": "an ERROR"}, False),  # the expression begins with ^
        ({"text": 7}, False),
        ({"text": None}, False),
        ([], False),
        ("ERROR", False),
    ],
)
def test_like_looks_for_a_regular_expression_in_a_text_and_in_nothing_else(message: Any, fits: bool) -> None:
    assert compile_condition(None, None, {"text": "^ERROR|^FATAL"})(message) is fits


def test_like_stands_beside_has_and_match_and_a_selector_that_fails_does_not_fit() -> None:
    fits = compile_condition("id", "type == 'x'", {"text": "a", "join('', more)": "b"})
    whole = {"id": 1, "type": "x", "text": "ca", "more": ["b"]}
    assert fits(whole)
    assert [fits(whole | {key: 0}) for key in ("type", "text", "more")] == [False] * 3
    del whole["id"]
    assert not fits(whole)


@given(VALUES)
def test_truth_is_the_library_s(value: Any) -> None:
    assert truthy(value) is (jmespath.search("@ && `true`", value) is True)
