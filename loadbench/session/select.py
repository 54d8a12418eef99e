"""Selectors and conditions of a profile: JMESPath, its parsed tree compiled to Python closures.

The closures give what the jmespath library gives, at a tenth of its cost or less; a node that has no closure of its
own (expression references) is left to the library. Two traps are closed here: in JMESPath an empty text or list is
false, so `has` asks only whether a key is there; and a condition that cannot be evaluated on a message does not match.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.visitor import TreeInterpreter

Node = dict[str, Any]
Select = Callable[[Any], Any]
Test = Callable[[Any], bool]

# What evaluating an expression on a foreign message may raise: a wrong type for a function, `1 < 'a'`, and the like.
# `RecursionError` is not among them: what is nested too deeply is refused before the run.
SELECT_ERRORS: Final = (JMESPathError, TypeError, ValueError, AttributeError, OverflowError)

MOST_LEVELS: Final = 100  # of a parsed expression: the closures call each other as deeply

_functions = Functions()
_interpreter = TreeInterpreter()


class SelectorError(ValueError):
    """An expression that does not parse, or calls a function that JMESPath does not have."""


def compile_selector(expression: str) -> Select:
    """A callable from a decoded message to what `jmespath.search(expression, message)` gives.

    Raises SelectorError here; the callable may raise one of SELECT_ERRORS.
    """
    try:
        tree = jmespath.compile(expression).parsed
    except JMESPathError as error:
        raise SelectorError(f"{expression!r} is no JMESPath expression: {_reason(error)}") from error
    except RecursionError:
        tree = None
    if tree is None or _levels(tree) > MOST_LEVELS:
        raise SelectorError(f"'{expression[:60]}…' is nested more than {MOST_LEVELS} levels deep")
    return _compile(tree)


def compile_condition(
    has: str | Sequence[str] | None, match: str | None, like: Mapping[str, str] | None = None
) -> Test:
    """Whether a message has all keys of `has` (dotted paths, any value) and fits `match`. Never raises on a message.

    `like`: and each of these selectors finds a text in which its regular expression is found.
    """
    if like:
        return _all([compile_condition(has, match), *(_alike(*pair) for pair in like.items())])
    paths = [tuple(path.split(".")) for path in ([has] if isinstance(has, str) else has or ())]
    select = None if match is None else compile_selector(match)

    def fits(message: Any) -> bool:
        for path in paths:
            if not _present(message, path):
                return False
        if select is None:
            return True
        try:
            return truthy(select(message))
        except SELECT_ERRORS:
            return False

    return fits


def _all(tests: Sequence[Test]) -> Test:
    return lambda message: all(test(message) for test in tests)


def _alike(expression: str, pattern: str) -> Test:
    select, found = compile_selector(expression), re.compile(pattern).search

    def fits(message: Any) -> bool:
        try:
            text = select(message)
        except SELECT_ERRORS:
            return False
        return isinstance(text, str) and found(text) is not None

    return fits


def truthy(value: Any) -> bool:
    """JMESPath's truth: null, false, and the empty text, list and object are false; every number is true."""
    return bool(value) or not (value is None or value is False or isinstance(value, str | list | dict))


def _present(message: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if not isinstance(message, dict) or key not in message:
            return False
        message = message[key]
    return True


def _reason(error: JMESPathError) -> str:
    return " ".join(str(error).split()).removeprefix("Invalid jmespath expression: ").removesuffix("^").strip()


def _levels(tree: Node) -> int:
    """How deep the nodes of an expression stand in each other, at most; of a tree of any depth."""
    levels, row = 0, [tree]
    while row:
        levels += 1
        row = [child for node in row for child in node["children"] if isinstance(child, dict)]
    return levels


def _compile(node: Node) -> Select:
    make = _MAKERS.get(node["type"])
    return make(node) if make else lambda value: _interpreter.visit(node, value)


def _current(_: Node) -> Select:
    return lambda value: value


def _literal(node: Node) -> Select:
    constant = node["value"]
    return lambda _: constant


def _field(node: Node) -> Select:
    key = node["value"]
    return lambda value: value.get(key) if isinstance(value, dict) else None


def _index(node: Node) -> Select:
    at = node["value"]

    def pick(value: Any) -> Any:
        if not isinstance(value, list) or not -len(value) <= at < len(value):
            return None
        return value[at]

    return pick


def _slice(node: Node) -> Select:
    part = slice(*node["children"])
    return lambda value: value[part] if isinstance(value, list) else None


def _chain(node: Node) -> Select:
    steps = _children(node)
    if len(steps) == 2:
        first, second = steps
        return lambda value: second(first(value))

    def walk(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return walk


def _projection(node: Node) -> Select:
    base, each = _children(node)

    def project(value: Any) -> Any:
        items = base(value)
        if not isinstance(items, list):
            return None
        return [found for item in items if (found := each(item)) is not None]

    return project


def _value_projection(node: Node) -> Select:
    base, each = _children(node)

    def project(value: Any) -> Any:
        items = base(value)
        if not isinstance(items, dict):
            return None
        return [found for item in items.values() if (found := each(item)) is not None]

    return project


def _filter(node: Node) -> Select:
    base, each, keep = _children(node)

    def project(value: Any) -> Any:
        items = base(value)
        if not isinstance(items, list):
            return None
        return [found for item in items if truthy(keep(item)) and (found := each(item)) is not None]

    return project


def _flatten(node: Node) -> Select:
    (base,) = _children(node)

    def flatten(value: Any) -> Any:
        items = base(value)
        if not isinstance(items, list):
            return None
        flat: list[Any] = []
        for item in items:
            if isinstance(item, list):
                flat.extend(item)
            else:
                flat.append(item)
        return flat

    return flatten


def _and(node: Node) -> Select:
    left, right = _children(node)
    return lambda value: right(value) if truthy(found := left(value)) else found


def _or(node: Node) -> Select:
    left, right = _children(node)
    return lambda value: found if truthy(found := left(value)) else right(value)


def _not(node: Node) -> Select:
    (inner,) = _children(node)
    return lambda value: not truthy(inner(value))


def _comparator(node: Node) -> Select:
    left, right = _children(node)
    if node["value"] in _ORDERS:
        return _ordering(_ORDERS[node["value"]], left, right)
    wanted = node["value"] == "eq"
    literal = node["children"][1]
    if literal["type"] == "literal" and isinstance(literal["value"], str):
        constant = literal["value"]
        return (lambda value: left(value) == constant) if wanted else (lambda value: left(value) != constant)
    return lambda value: _equal(left(value), right(value)) is wanted


def _ordering(compare: Callable[[Any, Any], bool], left: Select, right: Select) -> Select:
    def order(value: Any) -> Any:
        a, b = left(value), right(value)
        if _ordered(a) and _ordered(b):
            return compare(a, b)
        return None

    return order


def _ordered(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


def _equal(a: Any, b: Any) -> bool:
    # In Python True == 1; in JSON it does not.
    return (isinstance(a, bool) is isinstance(b, bool)) and bool(a == b)


def _multi_list(node: Node) -> Select:
    picks = _children(node)
    return lambda value: None if value is None else [pick(value) for pick in picks]


def _multi_dict(node: Node) -> Select:
    pairs = [(child["value"], _compile(child["children"][0])) for child in node["children"]]
    return lambda value: None if value is None else {key: pick(value) for key, pick in pairs}


def _function(node: Node) -> Select:
    name, count = node["value"], len(node["children"])
    table = Functions.FUNCTION_TABLE
    if name not in table:
        raise SelectorError(f"JMESPath has no function {name}(); it has {', '.join(sorted(table))}")
    signature = table[name]["signature"]
    variadic = bool(signature and signature[-1].get("variadic"))
    if count < len(signature) or (count > len(signature) and not variadic):
        raise SelectorError(f"{name}() takes {len(signature)} arguments{' or more' if variadic else ''}, not {count}")
    if any(child["type"] == "expref" for child in node["children"]):
        return lambda value: _interpreter.visit(node, value)
    arguments = _children(node)
    if name in _FAST:
        return _FAST[name](*arguments)
    return lambda value: _functions.call_function(name, [argument(value) for argument in arguments])


def _join(separator: Select, items: Select) -> Select:
    def join(value: Any) -> Any:
        between, texts = separator(value), items(value)
        try:
            if isinstance(between, str) and isinstance(texts, list):
                return between.join(texts)
        except TypeError:
            pass  # not all texts: the library words the error
        return _functions.call_function("join", [between, texts])

    return join


def _contains(subject: Select, search: Select) -> Select:
    def contains(value: Any) -> Any:
        inside, wanted = subject(value), search(value)
        if isinstance(inside, str | list):
            return wanted in inside
        return _functions.call_function("contains", [inside, wanted])

    return contains


def _children(node: Node) -> list[Select]:
    return [_compile(child) for child in node["children"]]


_ORDERS: Final = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}
_FAST: Final[dict[str, Callable[..., Select]]] = {"join": _join, "contains": _contains}
_MAKERS: Final[dict[str, Callable[[Node], Select]]] = {
    "current": _current,
    "identity": _current,
    "literal": _literal,
    "field": _field,
    "index": _index,
    "slice": _slice,
    "subexpression": _chain,
    "index_expression": _chain,
    "pipe": _chain,
    "projection": _projection,
    "value_projection": _value_projection,
    "filter_projection": _filter,
    "flatten": _flatten,
    "and_expression": _and,
    "or_expression": _or,
    "not_expression": _not,
    "comparator": _comparator,
    "multi_select_list": _multi_list,
    "multi_select_dict": _multi_dict,
    "function_expression": _function,
}
