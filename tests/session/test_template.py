"""Templates: exact texts stay exact, fields are escaped for where they stand."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.session.template import TemplateError, compile_json, compile_text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ('{"eof" : 1}', '{"eof" : 1}'),  # compared byte for byte by a server
        ('{"a":{"b":{}}}', '{"a":{"b":{}}}'),
        ("Done", "Done"),
        ("", ""),
        ("{session.id}", "s-1"),
        ("ws://{host}:{port}/x?y={session.id}", "ws://h:1/x?y=s-1"),
        ('{"k":{session.id}}', '{"k":s-1}'),
        ("{{session.id}}", "{session.id}"),
        ("{{", "{{"),
        ("{ session.id }", "{ session.id }"),
        ("{1}", "{1}"),
        ("{param.a-b}", 'q"\n'),  # a text is filled in as it is
    ],
)
def test_a_text_keeps_every_byte_that_is_no_field(template: str, text: str) -> None:
    fields = {"session.id": "s-1", "host": "h", "port": "1", "param.a-b": 'q"\n'}
    assert compile_text(template).render(fields) == text


def test_a_template_knows_the_names_that_it_asks_for() -> None:
    assert compile_text("{a.b}{c}{{d}}{ e }").names == {"a.b", "c"}
    assert compile_json({"x": ["{a.b}", {"y": "-{c}-"}], "z": 1}).names == {"a.b", "c"}


def test_a_name_that_is_missing_when_it_is_needed_raises() -> None:
    with pytest.raises(KeyError, match=re.escape("clip.lang")):
        compile_text("{clip.lang}").render({})
    with pytest.raises(KeyError, match=re.escape("clip.lang")):
        compile_json(["{clip.lang}"]).render({})


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        ({"a": 1, "b": [True, None, 1.5]}, b'{"a":1,"b":[true,null,1.5]}'),
        ({"t": "{media.ms}"}, b'{"t":40}'),  # nothing but the field: a number
        ({"t": "{media.index}/{media.count}"}, b'{"t":"2/9"}'),
        ({"t": "{media.index}", "n": "{media.count}"}, b'{"t":2,"n":9}'),
        ({"last_seq_no": "{count.chunks_sent}"}, b'{"last_seq_no":9}'),
        ({"t": " {media.ms}"}, b'{"t":" 40"}'),
        ({"t": "{param.n}"}, b'{"t":"7"}'),  # a parameter is a text
        ({"t": "{number:param.n}"}, b'{"t":7}'),  # unless it shall be a number
        ({"t": "<{number:param.n}>"}, b'{"t":"<7>"}'),
        ({"t": "{{number:param.n}}"}, b'{"t":"{number:param.n}"}'),
        ("{param.quote}", b'"a\\"b\\\\c"'),
        ({"zh": "今天{param.n}"}, '{"zh":"今天7"}'.encode()),
        ([], b"[]"),
        ({}, b"{}"),
        ("{{param.n}}", b'"{param.n}"'),
    ],
)
def test_json_is_compact_utf8_with_its_fields_escaped(value: Any, wire: bytes) -> None:
    fields = {"media.ms": "40", "media.index": "2", "media.count": "9", "count.chunks_sent": "9", "param.n": "7"}
    assert compile_json(value).render(fields | {"param.quote": 'a"b\\c'}) == wire


@pytest.mark.parametrize(
    ("value", "good"),
    [("0", True), ("-3", True), ("1.50", True), ("2e-3", True), ("", False), ("1.", False), ("007", False),
     ("1,5", False), ("NaN", False), ("1 ", False), ("1}", False)],
)  # fmt: skip
def test_what_shall_be_a_number_must_be_one_as_json_writes_it(value: str, good: bool) -> None:
    template = compile_json({"n": "{number:param.n}"})
    if good:
        assert template.render({"param.n": value}) == b'{"n":' + value.encode() + b"}"
    else:
        with pytest.raises(KeyError, match=r"number:param\.n"):
            template.render({"param.n": value})


PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="{"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.text(st.characters(codec="utf-8")))
def test_whatever_the_field_holds_the_result_is_the_json_that_was_meant(value: Any, filled: str) -> None:
    template = compile_json({"known": "<{param.x}>", "other": value})
    assert json.loads(template.render({"param.x": filled})) == {"known": f"<{filled}>", "other": value}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: "x"}, {"{param.x}": 1}])
def test_what_json_cannot_say_is_refused_when_the_profile_is_read(value: Any) -> None:
    with pytest.raises(TemplateError):
        compile_json(value)
