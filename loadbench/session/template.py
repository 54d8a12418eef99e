"""Templates: text and JSON with {fields}.

A field is a dotted name in braces, such as {session.id} or {clip.source_lang}. Any other brace stands for itself, so
that exact texts such as `{"eof" : 1}` need no escaping; `{{name}}` gives the text `{name}`. A JSON value that is
nothing but {number:param.NAME} is sent as a number and not as a text, and {media.landmarks} as the JSON that it is.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_NAME: Final = r"[A-Za-z_]\w*(?:\.[\w-]+)*"
_FIELD: Final = re.compile(rf"\{{\{{((?:number:)?{_NAME})\}}\}}|\{{(number:)?({_NAME})\}}")
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")  # RFC 8259, 6
LANDMARKS: Final = "media.landmarks"
# A JSON leaf that is nothing but one of these becomes a number, or a list of numbers.
NUMBERS: Final = frozenset(
    {
        *("media.ms", "media.index", "media.count", "media.floats", "utterance.index"),
        *("count.chunks_sent", "count.acked", "count.media_ms", "count.bytes_sent"),
    }
)


class TemplateError(ValueError):
    """A value that cannot be sent as JSON."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Where a field goes. `quoted`: inside a JSON string, so its value is escaped for one; `number`: it must be one."""

    name: str
    quoted: bool
    number: bool = False

    def fill(self, fields: Mapping[str, str]) -> str:
        """The field's text as it stands in the message. KeyError where there is none, or no number."""
        value = fields[self.name]
        if self.number and not is_number(value):
            raise KeyError(f"number:{self.name}")
        return _escaped(value) if self.quoted else value


@dataclass(frozen=True, slots=True)
class Text:
    """A text with fields in it."""

    parts: tuple[str | Hole, ...]

    @property
    def names(self) -> frozenset[str]:
        """The fields it asks for."""
        return names_of(self.parts)

    def render(self, fields: Mapping[str, str]) -> str:
        """The text with its fields filled in. KeyError names a field that is not there."""
        return filled(self.parts, fields)


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value with fields in its texts; compact, UTF-8, keys in the order of the profile."""

    parts: tuple[str | Hole, ...]

    @property
    def names(self) -> frozenset[str]:
        """The fields it asks for."""
        return names_of(self.parts)

    def render(self, fields: Mapping[str, str]) -> bytes:
        """The message. KeyError names a field that is not there."""
        return filled(self.parts, fields).encode()


def compile_text(text: str) -> Text:
    """A template from a text."""
    return Text(_merged(_split(text, quoted=False)))


def compile_json(value: Any) -> Json:
    """A template from a JSON value. Raises TemplateError for what JSON does not have, such as dates and NaN."""
    return Json(_merged(_written(value)))


def is_landmarks(name: str) -> bool:
    """Whether a field is a frame of landmarks or a member of one: JSON, which is sent as it stands."""
    return name == LANDMARKS or name.startswith(f"{LANDMARKS}.")


def is_number(text: str) -> bool:
    """Whether a text can stand in JSON as a number."""
    return _NUMBER.fullmatch(text) is not None


def names_of(parts: tuple[str | Hole, ...]) -> frozenset[str]:
    """The fields among these parts."""
    return frozenset(part.name for part in parts if isinstance(part, Hole))


def filled(parts: tuple[str | Hole, ...], fields: Mapping[str, str]) -> str:
    """The parts in a row, fields filled in."""
    return "".join([part if isinstance(part, str) else part.fill(fields) for part in parts])


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _split(text: str, *, quoted: bool) -> Iterator[str | Hole]:
    literal = _escaped if quoted else str
    position = 0
    for found in _FIELD.finditer(text):
        yield literal(text[position : found.start()])
        yield literal(f"{{{found[1]}}}") if found[1] else Hole(found[3], quoted)
        position = found.end()
    yield literal(text[position:])


def _written(value: Any) -> Iterator[str | Hole]:
    if isinstance(value, str):
        found = _FIELD.fullmatch(value)
        if found and found[3] and (found[2] or found[3] in NUMBERS or is_landmarks(found[3])):
            yield Hole(found[3], quoted=False, number=bool(found[2]))
        else:
            yield '"'
            yield from _split(value, quoted=True)
            yield '"'
    elif isinstance(value, list):
        yield from _between("[]", [_written(item) for item in value])
    elif isinstance(value, dict):
        yield from _between("{}", [_pair(key, item) for key, item in value.items()])
    else:
        yield _scalar(value)


def _pair(key: Any, value: Any) -> Iterator[str | Hole]:
    if not isinstance(key, str):
        raise TemplateError(f"the key {key!r} is no text: put it in quotes")
    if _FIELD.search(key):
        raise TemplateError(f"the key {key!r} would be sent as it stands: fields are filled into values only")
    yield f'"{_escaped(key)}":'
    yield from _written(value)


def _between(brackets: str, members: list[Iterator[str | Hole]]) -> Iterator[str | Hole]:
    yield brackets[0]
    for number, member in enumerate(members):
        if number:
            yield ","
        yield from member
    yield brackets[1]


def _scalar(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"JSON has no way to write {value!r}: put it in quotes") from error


def _merged(parts: Iterator[str | Hole]) -> tuple[str | Hole, ...]:
    """Neighbouring literals as one."""
    merged: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        elif part != "":
            merged.append(part)
    return tuple(merged)
