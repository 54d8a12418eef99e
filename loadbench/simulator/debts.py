"""What a service owes by a profile's own rules: what it begins it says first, and settles with its final text."""

from collections.abc import Iterable
from typing import Any

from loadbench.session.profile import Profile, Rule
from loadbench.session.select import compile_condition
from loadbench.simulator import invert


class Debts:
    """The messages of `event: pending` and `event: settled`; none where the profile has no such rules."""

    def __init__(self, profile: Profile) -> None:
        rules = profile.receive.rules
        self._pending = next((rule for rule in rules if rule.event == "pending"), None)
        self._settled = [rule for rule in rules if rule.event == "settled"]

    def before(self, messages: Iterable[Any]) -> list[Any]:
        """What must have been begun for these messages to settle it."""
        keys = [key for message in messages for rule in self._settled for key in _keys(rule, message)]
        return [] if self._pending is None else [_said(self._pending, key) for key in dict.fromkeys(keys)]

    def last(self, key: str) -> list[Any]:
        """Something begun and settled, without a text: nothing is owed after it."""
        plain = [rule for rule in self._settled if rule.text is None] or self._settled
        started = [] if self._pending is None else [_said(self._pending, key)]
        return [*started, *(_said(rule, key) for rule in plain[:1])]


def keyed(rule: Rule, item: Any, key: Any) -> Any:
    """An item that says by `key` what it begins or settles, unless it says so already."""
    if rule.key is None or invert.found(item, rule.key) is not None:
        return item
    return invert.put(item, rule.key, str(key))


def _keys(rule: Rule, message: Any) -> list[Any]:
    if not compile_condition(rule.has, rule.match)(message):
        return []
    items = [message] if rule.each is None else invert.found(message, rule.each) or []
    return [key for item in items if rule.key and (key := invert.found(item, rule.key)) is not None]


def _said(rule: Rule, key: Any) -> Any:
    message = invert.fitting(rule)
    if rule.each is not None:
        item = keyed(rule, None, key)
        return invert.place(message, invert.path(invert.parsed(rule.each)), [item])
    return invert.put(message, rule.key or "key", key)
