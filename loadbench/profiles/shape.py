"""JSON messages by their shape: leaves, and conditions that tell some messages from others."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

Step = str | int
Path = tuple[Step, ...]

UUID: Final = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
KINDS: Final = (
    "type",
    "event",
    "message_type",
    "msg_type",
    "message",
    "action",
    "status",
    "object",
    "kind",
    "name",
    "code",
)
MOST_KINDS: Final = 20  # different values of a key that names the kind of a message
LONGEST_KIND: Final = 60


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar with its path; of a list only its first element, and that where there is no other."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        if len(value) == 1:
            yield from leaves(value[0], (*path, 0))
    else:
        yield path, value


def at(value: Any, path: Path) -> Any:
    """What stands at a path; None: nothing."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def replaced(value: Any, path: Path, by: Any) -> Any:
    """The same with another value at a path."""
    if not path:
        return by
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {key: replaced(inner, rest, by) if key == step else inner for key, inner in value.items()}
    return [replaced(inner, rest, by) if number == step else inner for number, inner in enumerate(value)]


def selector(path: Path) -> str:
    """A path as a JMESPath expression."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if re.fullmatch(r"[A-Za-z_]\w*", step, re.ASCII) else json.dumps(step)
            text += f".{name}" if text else name
    return text


def is_name(value: Any) -> bool:
    """A short text that may name a kind, and no id."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_KIND and not UUID.search(value) and " " not in value


def kind_key(messages: Sequence[Any]) -> Path | None:
    """The key by which messages name their kinds: nearly all have it, with few values; None: they do not."""
    found: dict[Path, list[str]] = {}
    for message in messages:
        for path, value in leaves(message):
            if len(path) <= 2 and all(isinstance(step, str) for step in path) and is_name(value):
                found.setdefault(path, []).append(value)
    most = [
        path
        for path, values in found.items()
        if len(values) >= 0.9 * len(messages) and path[-1] in KINDS and len(set(values)) <= MOST_KINDS
    ]
    return min(most, key=lambda path: (len(path), KINDS.index(str(path[-1]))), default=None)


def equals(path: Path, value: Any) -> str:
    """A JMESPath condition."""
    literal = f"'{value}'" if isinstance(value, str) and not set(value) & set("'\\") else f"`{json.dumps(value)}`"
    return f"{selector(path)} == {literal}"


def telling(targets: Sequence[Any], others: Sequence[Any], kind: Path | None) -> str | None:
    """A condition that fits all `targets` and none of the others: values that they share; None where there is none."""
    shared = [
        (path, value)
        for path, value in leaves(targets[0])
        if (isinstance(value, bool) or is_name(value)) and all(at(each, path) == value for each in targets)
    ]
    shared.sort(key=lambda pair: pair[0] != kind)
    chosen: list[str] = []
    left = list(others)
    while left or not chosen:
        best = min(shared, key=lambda pair: sum(at(each, pair[0]) == pair[1] for each in left), default=None)
        if not chosen and shared and shared[0][0] == kind:
            best = shared[0]
        if best is None:
            return None
        after = [each for each in left if at(each, best[0]) == best[1]]
        if chosen and len(after) == len(left):
            return None
        chosen.append(equals(*best))
        shared.remove(best)
        left = after
    return " && ".join(chosen)
