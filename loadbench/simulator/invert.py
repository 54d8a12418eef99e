"""The inverse of JMESPath: a message in which a condition holds, or in which a path gives a value.

Only what profiles use has an inverse: paths, indexes, projections, filters, comparisons with a literal, `&&`, `||`,
`!`, and a few functions. The result is always checked by the caller with the real selectors.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jmespath
from jmespath.parser import ParsedResult

from loadbench.session.profile import Condition

Node = dict[str, Any]


class NoInverseError(ValueError):
    """No message can be made for this expression; the text says which part."""


@dataclass(frozen=True, slots=True)
class Element:
    """A step into a list: any element (`where` is None), or one that fits."""

    where: Node | None = None


Step = str | int | Element


def fitting(condition: Condition, tree: Any = None) -> Any:
    """`tree` with the least added so that the condition holds."""
    for name in [condition.has] if isinstance(condition.has, str) else condition.has or []:
        steps = name.split(".")
        if not _present(tree, steps):
            tree = place(tree, steps, None)
    if condition.match:
        tree = satisfy(parsed(condition.match), tree)
    for selector, pattern in condition.like.items():
        tree = put(tree, selector, _alike(pattern))
    return {} if tree is None else tree


def _alike(pattern: str) -> str:
    """A text for a regular expression that is words, or words to choose from."""
    text = re.split(r"(?<!\\)\|", pattern)[0].removeprefix("^").removesuffix("$")
    text = re.sub(r"\\(\W)", r"\1", text.strip("()"))
    if not re.search(pattern, text):
        raise NoInverseError(f"the regular expression {pattern!r}")
    return text


def parsed(expression: str) -> Node:
    """The syntax tree of an expression."""
    tree: Node = jmespath.compile(expression).parsed
    return tree


def found(tree: Any, selector: str) -> Any:
    """What a selector gives on `tree`."""
    return jmespath.search(selector, tree)


def put(tree: Any, selector: str, value: Any) -> Any:
    """`tree` changed so that `selector` gives `value`."""
    return place(tree, path(parsed(selector)), value)


def put_all(tree: Any, selector: str, values: Sequence[Any]) -> Any:
    """`tree` changed so that `selector` gives this list."""
    steps = path(parsed(selector))
    at = next((at for at, step in enumerate(steps) if isinstance(step, Element)), None)
    if at is None:
        return place(tree, steps, list(values))
    tree = place(tree, steps[:at], [])
    where = steps[at]
    for number, value in enumerate(values):
        begun = satisfy(where.where, None) if isinstance(where, Element) and where.where else None
        tree = place(tree, [*steps[:at], number], place(begun, steps[at + 1 :], value))
    return tree


def decide(tree: Any, selector: str, wanted: bool) -> Any:
    """`tree` changed so that `selector` is true, or not; a bare path gets the truth value itself."""
    node = parsed(selector)
    try:
        return place(tree, path(node), wanted)
    except NoInverseError:
        return satisfy(node, tree, wanted)


def path(node: Node) -> list[Step]:
    """The steps of a path. Raises NoInverseError for what is none."""
    inside = node["children"]
    match node["type"]:
        case "field" | "index":
            return [node["value"]]
        case "identity" | "current":
            return []
        case "subexpression" | "index_expression" | "pipe":
            return [step for child in inside for step in path(child)]
        case "projection":
            return [*path(inside[0]), Element(), *path(inside[1])]
        case "filter_projection":
            return [*path(inside[0]), Element(inside[2]), *path(inside[1])]
        case "flatten" | "or_expression":
            return path(inside[0])
        case "function_expression" if node["value"] == "join":
            pieces = inside[1]  # where they are listed one by one, the first bears it all
            return path(pieces["children"][0] if pieces["type"] == "multi_select_list" else pieces)
        case "function_expression" if node["value"] in ("to_string", "to_number", "not_null"):
            return path(inside[0])
    raise NoInverseError(f"{_name(node)} is no path")


def place(tree: Any, steps: Sequence[Step], value: Any) -> Any:
    """A copy of `tree` with `value` at the end of `steps`; what is missing on the way is made, objects are merged."""
    if not steps:
        return tree | value if isinstance(tree, dict) and isinstance(value, dict) else value
    head, rest = steps[0], steps[1:]
    if isinstance(head, str):
        branch = dict(tree) if isinstance(tree, dict) else {}
        branch[head] = place(branch.get(head), rest, value)
        return branch
    row = list(tree) if isinstance(tree, list) else []
    at = head if isinstance(head, int) else _chosen(row, head.where)
    at = max(0, len(row) + at) if at < 0 else at
    row += [None] * (at + 1 - len(row))
    here = satisfy(head.where, row[at]) if isinstance(head, Element) and head.where else row[at]
    row[at] = place(here, rest, value)
    return row


def _chosen(row: list[Any], where: Node | None) -> int:
    """Which element of a list is meant: the first that fits or can, without losing anything; else another one."""
    if where is None or not row:
        return 0
    return next((at for at, item in enumerate(row) if _holds(satisfy(where, item), item)), len(row))


def _holds(tree: Any, part: Any) -> bool:
    """Whether all of `part` is still in `tree`."""
    if isinstance(part, dict) and isinstance(tree, dict):
        return all(key in tree and _holds(tree[key], value) for key, value in part.items())
    return part is None or part == tree


def satisfy(node: Node, tree: Any, wanted: bool = True) -> Any:
    """`tree` with the least added so that `node` is true, or false. Raises NoInverseError."""
    if truth(node, tree) == wanted:
        return tree
    inside = node["children"]
    match node["type"]:
        case "and_expression" | "or_expression":
            if (node["type"] == "and_expression") == wanted:
                return satisfy(inside[1], satisfy(inside[0], tree, wanted), wanted)
            return satisfy(inside[0], tree, wanted)
        case "not_expression":
            return satisfy(inside[0], tree, not wanted)
        case "comparator":
            return _compared(node, tree, wanted)
        case "function_expression" if wanted:
            return _called(node, tree)
    return place(tree, path(node), wanted)


def truth(node: Node, tree: Any) -> bool:
    """Whether an expression holds, by JMESPath's own rules; one that errs does not."""
    try:
        found = ParsedResult("", node).search(tree)
    except jmespath.exceptions.JMESPathError:
        return False
    return not (found is None or found is False or found in ("", [], {}))


NEGATED = {"eq": "ne", "ne": "eq", "lt": "gte", "gte": "lt", "gt": "lte", "lte": "gt"}
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "lte": "gte", "gte": "lte"}
FULFILLED: dict[str, Callable[[Any], Any]] = {
    "eq": lambda value: value,
    "ne": lambda value: _other(value),
    "lt": lambda value: value - 1,
    "gt": lambda value: value + 1,
    "lte": lambda value: value,
    "gte": lambda value: value,
}


def _compared(node: Node, tree: Any, wanted: bool) -> Any:
    left, right = node["children"]
    operator = node["value"] if wanted else NEGATED[node["value"]]
    if left["type"] == "literal":
        left, right, operator = right, left, MIRRORED[operator]
    constant = ParsedResult("", right).search(tree)  # a path on this side keeps what it has: `a != null` is one
    try:
        value = FULFILLED[operator](constant)
    except TypeError as error:
        raise NoInverseError(f"a comparison with {constant!r}") from error
    if left["type"] == "function_expression" and left["value"] == "length":
        return place(tree, path(left["children"][0]), "x" * value)
    return place(tree, path(left), value)


def _called(node: Node, tree: Any) -> Any:
    name, inside = node["value"], node["children"]
    if name in ("contains", "starts_with", "ends_with"):
        whole, part = inside
        if part["type"] == "literal":
            return place(tree, path(whole), part["value"])
        if name == "contains" and (known := _constants(whole)):
            return place(tree, path(part), known[0])
    raise NoInverseError(f"{_name(node)} has no inverse")


def _constants(node: Node) -> list[Any]:
    """The elements of a list of literals; none where it is something else."""
    if node["type"] == "literal":
        return list(node["value"])
    listed = node["type"] == "multi_select_list" and all(child["type"] == "literal" for child in node["children"])
    return [child["value"] for child in node["children"]] if listed else []


def _other(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return not value
    return f"not {value}" if isinstance(value, str) else value + 1


def _present(tree: Any, steps: Sequence[str]) -> bool:
    for step in steps:
        if not isinstance(tree, dict) or step not in tree:
            return False
        tree = tree[step]
    return True


def _name(node: Node) -> str:
    kind = str(node["type"]).replace("_", " ")
    return f"{kind} {node['value']}" if "value" in node else kind
