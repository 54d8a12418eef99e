"""Whether one condition of a rule implies another, as far as their structure tells.

A condition is a list of atoms that must all hold. What is not understood is equal to itself and implies nothing else,
so that "implies" is never said wrongly, and "does not" may be.
"""

import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jmespath

from loadbench.session.profile import Condition
from loadbench.session.select import truthy

Path = tuple[str, ...]


@dataclass(frozen=True)
class Has:
    """A key that is there, with any value."""

    path: Path


@dataclass(frozen=True)
class Equal:
    """A path with one certain value, as JSON."""

    path: Path
    value: str


@dataclass(frozen=True)
class Truthy:
    """A bare path: there, and neither null, false nor empty."""

    path: Path


@dataclass(frozen=True)
class Either:
    """At least one of several conditions."""

    conditions: tuple[tuple["Atom", ...], ...]


@dataclass(frozen=True)
class Other:
    """Anything else, by its syntax tree."""

    tree: str


Atom = Has | Equal | Truthy | Either | Other


def atoms(condition: Condition) -> tuple[Atom, ...]:
    """What must hold for a rule to fit; nothing: it always does."""
    named = [condition.has] if isinstance(condition.has, str) else condition.has or []
    found: list[Atom] = [Has(tuple(path.split("."))) for path in named]
    if condition.match is not None:
        found += _of(jmespath.compile(condition.match).parsed)
    found += [Other(json.dumps(["like", *pair])) for pair in condition.like.items()]
    return tuple(found)


def implies(strong: tuple[Atom, ...], weak: tuple[Atom, ...]) -> bool:
    """Whether whatever fits `strong` surely fits `weak`."""
    return all(any(_implies(one, atom) for one in strong) or _chosen(strong, atom) for atom in weak)


class Shelf:
    """Conditions by number, from which those that another one implies are found without a look at all the rest.

    Each stands under atoms (`_needed`) of which one must be among what follows from (`_followed`) whatever implies it.
    """

    def __init__(self) -> None:
        self._under: dict[Atom | None, list[int]] = {}
        self._conditions: dict[int, tuple[Atom, ...]] = {}

    def put(self, number: int, condition: tuple[Atom, ...]) -> None:
        """Numbers must rise."""
        self._conditions[number] = condition
        for atom in self._needed(condition):
            self._under.setdefault(atom, []).append(number)

    def first_implied(self, strong: tuple[Atom, ...]) -> int | None:
        """The lowest number of a condition that `strong` implies."""
        near = heapq.merge(*(self._under.get(atom, ()) for atom in {None, *_followed(strong)}))
        return next((number for number in near if implies(strong, self._conditions[number])), None)

    def _needed(self, condition: tuple[Atom, ...]) -> set[Atom | None]:
        """Those of the one of its atoms that shares its place with the fewest others; None where it has no atom."""
        choices = [self._needed_of(atom) for atom in condition]
        return min(choices, key=lambda atoms: sum(len(self._under.get(atom, ())) for atom in atoms), default={None})

    def _needed_of(self, atom: Atom) -> set[Atom | None]:
        inner = atom.conditions if isinstance(atom, Either) else ()
        return {atom}.union(*(self._needed(each) for each in inner))


def _followed(condition: tuple[Atom, ...]) -> Iterator[Atom]:
    """Every atom that may be implied by one of these."""
    for atom in condition:
        yield atom
        if isinstance(atom, Either):
            for each in atom.conditions:
                yield from _followed(each)
        elif not isinstance(atom, Other):
            yield from (Has(atom.path[:end]) for end in range(1, len(atom.path) + 1))
        if isinstance(atom, Equal):
            yield Truthy(atom.path)


def contradiction(condition: tuple[Atom, ...]) -> Path | None:
    """A path that would have to have two values at once."""
    values: dict[Path, str] = {}
    for atom in condition:
        if isinstance(atom, Equal) and values.setdefault(atom.path, atom.value) != atom.value:
            return atom.path
    return None


def _chosen(strong: tuple[Atom, ...], weak: Atom) -> bool:
    return isinstance(weak, Either) and any(implies(strong, each) for each in weak.conditions)


def _implies(strong: Atom, weak: Atom) -> bool:
    if strong == weak:
        return True
    if isinstance(strong, Either):
        return all(implies(each, (weak,)) for each in strong.conditions)
    match strong, weak:
        case Has(path) | Truthy(path), Has(wanted):
            return path[: len(wanted)] == wanted
        case Equal(path, value), Has(wanted):
            return value != "null" and path[: len(wanted)] == wanted
        case Equal(path, value), Truthy(wanted):
            return path == wanted and truthy(json.loads(value))
    return False


def _of(tree: dict[str, Any]) -> list[Atom]:
    kind, children = tree["type"], tree["children"]
    if kind == "and_expression":
        return [atom for child in children for atom in _of(child)]
    if kind == "or_expression":
        return [Either(tuple(tuple(_of(child)) for child in children))]
    path = path_of(tree)
    if path is not None:
        return [Truthy(path)]
    if kind == "comparator" and tree["value"] == "eq":
        for one, other in (children, children[::-1]):
            path = path_of(one)
            if path is not None and other["type"] == "literal":
                return [Equal(path, json.dumps(other["value"], sort_keys=True))]
    return [Other(json.dumps(tree, sort_keys=True, default=str))]


def path_of(tree: dict[str, Any]) -> Path | None:
    """The keys of a plain dotted path; None for any other expression."""
    if tree["type"] == "field":
        return (tree["value"],)
    if tree["type"] != "subexpression":
        return None
    steps = [path_of(child) for child in tree["children"]]
    return None if None in steps else tuple(key for step in steps if step is not None for key in step)
