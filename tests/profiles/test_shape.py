import pytest

from loadbench.profiles import shape
from loadbench.session.select import compile_condition, compile_selector

STARTED = {"type": "command", "payload": {"status": "started"}}
STOPPED = {"type": "command", "payload": {"status": "stopped"}}
OTHER = {"type": "detection", "payload": {"sign": "hi"}}


def test_messages_are_told_apart_by_as_few_values_as_do() -> None:
    assert shape.telling([OTHER], [STARTED, STOPPED], ("type",)) == "type == 'detection'"
    match = shape.telling([STOPPED], [STARTED, OTHER], ("type",))
    assert match == "type == 'command' && payload.status == 'stopped'"
    fits = compile_condition(None, match)
    assert [fits(each) for each in (STOPPED, STARTED, OTHER)] == [True, False, False]


def test_equal_messages_cannot_be_told_apart() -> None:
    assert shape.telling([STARTED], [STARTED], ("type",)) is None
    assert shape.telling([{"n": 1}], [{"n": 2}], None) is None


@pytest.mark.parametrize("path", [("a", "b"), ("a-b", "c d"), ("a", 0, "b")])
def test_a_path_becomes_a_selector_that_finds_it(path: tuple[str | int, ...]) -> None:
    value: object = "found"
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    assert compile_selector(shape.selector(path))(value) == "found"
    assert shape.at(value, path) == "found"
    assert [leaf for leaf, _ in shape.leaves(value)] == [path]


@pytest.mark.parametrize("value", ["it's", "a\\b", "plain", True, 3])
def test_a_value_is_quoted_so_that_it_fits_itself(value: object) -> None:
    assert compile_condition(None, shape.equals(("a",), value))({"a": value})


def test_the_key_of_kinds_is_one_that_nearly_all_have() -> None:
    assert shape.kind_key([STARTED, STOPPED, OTHER]) == ("type",)
    assert shape.kind_key([{"header": {"name": "Started"}}, {"header": {"name": "Done"}}]) == ("header", "name")
    assert shape.kind_key([{"partial": "a"}, {"text": "a"}]) is None
