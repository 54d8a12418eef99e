"""What a service's messages mean: texts that grow, and what makes one of them final."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from loadbench.profiles import shape
from loadbench.profiles.shape import Path

LIKED: Final = re.compile(
    r"text|transcript|partial|sentence|result|translation|content|delta|gloss|sign|label|caption|utterance",
    re.IGNORECASE,
)
FINAL: Final = re.compile(r"final|complete|commit|done|end|stable|definite|recognized", re.IGNORECASE)
SURE: Final = re.compile(r"confidence|probability|prob|score", re.IGNORECASE)
DELTA: Final = re.compile(r"delta", re.IGNORECASE)
ERROR: Final = re.compile(r"error|fail", re.IGNORECASE)
LEAST_SCORE: Final = 3
SHORT: Final = 3  # words of a label
NO_LABELS: Final = ("none", "null", "unknown", "")


@dataclass
class Group:
    """Messages of one kind. `numbers` are their places among all; `condition` is how a rule knows them."""

    condition: dict[str, str]
    numbers: list[int] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    name: str = ""
    text: Path | None = None


@dataclass
class Speech:
    """Rules for the messages, what becomes of texts never marked final, and what was guessed."""

    rules: list[dict[str, Any]]
    kind: Path | None
    texts: list[int]  # numbers of the messages with text
    never_final: str = "explicit"
    has_final: bool = False
    notes: list[str] = field(default_factory=list)


def understand(messages: Sequence[Any], chunks: int) -> Speech:
    """What decoded messages say; `chunks` is how many media messages there were, to know one reply a frame."""
    kind = shape.kind_key(messages)
    groups = _groups(messages, kind)
    speaking = [group for group in groups if not _error_key(group) and _find_text(group, kind)]
    speech = Speech([], kind, sorted(number for group in speaking for number in group.numbers))
    shown = [
        (number, group, str(shape.at(message, group.text or ()) or ""))
        for group in speaking
        for number, message in zip(group.numbers, group.messages, strict=True)
    ]
    shown.sort(key=lambda row: row[0])
    for group in speaking:
        speech.rules.append(_rule(group, speaking, [(each, text) for _, each, text in shown], chunks, speech))
    if speaking and not speech.has_final:
        speech.never_final = "promote_on_done"
        speech.notes.append("nothing seems to mark a text final: what stands at the end is taken for final")
    if not speaking:
        speech.notes.append("no text was found in the messages: the rules have to be written by hand")
    for group in groups:
        if group in speaking:
            continue
        if _error_key(group):
            speech.rules.insert(0, (group.condition or {"has": _error_key(group)}) | {"outcome": "recoverable"})
            speech.notes.append(f"{group.name}: taken for an error that ends nothing; outcome: fatal, if it does")
        elif group.condition:
            speech.rules.append(group.condition | {"event": _silent(group, chunks)})
    for group in speaking:
        if kind is not None and "&&" in group.condition.get("match", ""):
            rest = {"match": group.condition["match"].partition(" && ")[0], "event": _silent(group, chunks)}
            speech.rules.append(rest)
    return speech


def _groups(messages: Sequence[Any], kind: Path | None) -> list[Group]:
    """By the value that names the kind, else by the keys that are there."""
    found: dict[str, Group] = {}
    for number, message in enumerate(messages):
        value = None if kind is None else shape.at(message, kind)
        if value is not None and kind is not None:
            name, condition = str(value), {"match": shape.equals(kind, value)}
        elif isinstance(message, dict):
            name, condition = ", ".join(sorted(message)), {}
        else:
            name, condition = type(message).__name__, {}
        group = found.setdefault(name, Group(condition, name=name))
        group.numbers.append(number)
        group.messages.append(message)
    return list(found.values())


def _silent(group: Group, chunks: int) -> str:
    """What messages without text are: acknowledgements, where there is one for about each chunk."""
    return "ack" if len(group.messages) >= max(3, chunks // 2) else "ignore"


def _error_key(group: Group) -> str:
    """What calls these messages errors: the name of their kind, or a key; nothing where they are none."""
    keys = list(group.messages[0]) if isinstance(group.messages[0], dict) else []
    return next((name for name in [*keys, group.name] if ERROR.search(name)), "")


# ---- where the text is


def _find_text(group: Group, kind: Path | None) -> bool:
    """Whether a group speaks; notes where, and by which condition a rule finds it."""
    values: dict[Path, list[str]] = {}
    for message in group.messages:
        for path, value in shape.leaves(message):
            if isinstance(value, str) and path != kind:
                values.setdefault(path, []).append(value)
    scores = {path: _score(path, texts) for path, texts in values.items()}
    best = max(scores, key=lambda path: (scores[path], -len(path)), default=None)
    if best is None or scores[best] < LEAST_SCORE:
        return False
    group.text = best
    everywhere = all(isinstance(shape.at(message, best), str) for message in group.messages)
    if kind is None and isinstance(best, tuple) and best:
        group.condition = {"has": str(best[0])} if everywhere else {"match": shape.selector(best)}
    elif not everywhere:
        group.condition = {"match": f"{group.condition['match']} && {shape.selector(best)}"}
    return True


def _score(path: Path, texts: list[str]) -> int:
    """How much a leaf is like a text that is being said."""
    said = [text for text in texts if text.strip()]
    letters = any(character.isalpha() for text in said for character in text)
    if not letters or all(shape.UUID.fullmatch(text) for text in said) or max(map(len, said)) > 20_000:
        return 0
    grows = sum(after != before and after.startswith(before) for before, after in itertools.pairwise(said))
    spaced = any(" " in text.strip() or ord(text[0]) >= 0x2E80 for text in said)
    named = bool(path) and LIKED.search(str(path[-1] if isinstance(path[-1], str) else path[-2])) is not None
    return min(len(set(said)), 3) + 2 * min(grows, 3) + 2 * spaced + 3 * named


# ---- what it is


def _rule(
    group: Group, speaking: list[Group], shown: list[tuple[Group, str]], chunks: int, speech: Speech
) -> dict[str, Any]:
    path = group.text or ()
    text: dict[str, Any] = {"model": "unkeyed", "text": shape.selector(path)}
    flag = _flag(group)
    if flag is not None:
        text["final"] = shape.selector(flag)
        speech.has_final = True
    elif len(speaking) == 1 and _is_labels(group, chunks):
        text = _labels(group, text, speech)
    elif DELTA.search(group.name) or DELTA.search(shape.selector(path)):
        text["model"] = "delta"
        text.pop("final", None)
        speech.notes.append(f"{group.name}: taken for pieces that are added to each other")
    elif len(speaking) > 1:
        text["final"] = _ends_texts(group, shown)
        speech.has_final = speech.has_final or text["final"]
        said = "ends a text, so it is final" if text["final"] else "goes on, so it is not final"
        speech.notes.append(f"{group.name}: {said}")
        if text["final"] and any(DELTA.search(other.name) for other in speaking):
            text = {"model": "delta", "replace": text["text"], "final": True}
    else:
        text["final"] = False
    return group.condition | {"channel": "transcript", "text": text}


def _flag(group: Group) -> Path | None:
    """A switch that is on where the text is final: by its name, or because the text begins anew behind it."""
    switches: dict[Path, list[bool]] = {}
    for message in group.messages:
        for path, value in shape.leaves(message):
            if isinstance(value, bool):
                switches.setdefault(path, []).append(value)
    named = [path for path in switches if FINAL.search(str(path[-1]))]
    changing = [path for path in named if len(set(switches[path])) > 1]
    for path in [*changing, *(path for path in switches if len(set(switches[path])) > 1 and path not in changing)]:
        if path in changing or _resets(group, path):
            return path
    return named[0] if named else None


def _resets(group: Group, path: Path) -> bool:
    """Whether the text never goes on behind a message in which the switch is on."""
    texts = [str(shape.at(message, group.text or ()) or "") for message in group.messages]
    states = [shape.at(message, path) is True for message in group.messages]
    ends = [number for number, state in enumerate(states[:-1]) if state]
    goes_on = [texts[number + 1].startswith(texts[number]) for number in ends if texts[number]]
    return states[-1] and not any(goes_on)


def _ends_texts(group: Group, shown: list[tuple[Group, str]]) -> bool:
    """Whether what comes behind a message of this group never goes on with its text; the name may say it as well."""
    goes_on = ends = 0
    said = [(each, text.strip()) for each, text in shown if text.strip()]
    for number, (each, text) in enumerate(said):
        if each is group:
            following = said[number + 1][1] if number + 1 < len(said) else None
            goes_on += following is not None and following.startswith(text)
            ends += following is None or not following.startswith(text)
    if goes_on + ends == 0:
        return FINAL.search(group.name) is not None
    return ends > goes_on


def _is_labels(group: Group, chunks: int) -> bool:
    """One short label a frame: it does not grow, and there are about as many messages as frames."""
    texts = [shape.at(message, group.text or ()) for message in group.messages]
    said = [text for text in texts if isinstance(text, str) and text.strip()]
    grows = any(after != before and after.startswith(before) for before, after in itertools.pairwise(said))
    short = all(len(text.split()) <= SHORT for text in said)
    return bool(said) and not grows and short and len(group.messages) >= max(3, chunks // 2)


def _labels(group: Group, text: dict[str, Any], speech: Speech) -> dict[str, Any]:
    sure = next(
        (
            path
            for message in group.messages
            for path, value in shape.leaves(message)
            if isinstance(value, int | float) and SURE.search(str(path[-1]))
        ),
        None,
    )
    made = text | {"model": "labels", "accept_after": 1, "collapse": True, "ignore": list(NO_LABELS[:3])}
    if sure is not None:
        made["confidence"] = shape.selector(sure)
    speech.notes.append(
        f"{group.name}: taken for one label a frame; set accept_after, and min_confidence, to what the client does"
    )
    return made
