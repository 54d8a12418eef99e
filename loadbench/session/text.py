"""Text models: what a service's messages make of the text that a channel shows.

Seven ways to speak come down to one small state: an ordered list of segments, each with a key, a text, and whether it
is final. Every model is a function that reads an item and uses the operations put, extend, drop, cut and seal.

    unkeyed    one open segment; a message replaces its text, a final one closes it, and the next opens another
    keyed      a segment for each key; a message replaces the text of its key
    delta      a message extends the open segment (or the one of its key); `replace`, where given, replaces its text
    snapshot   a message holds all that is committed, which is final, and a tail, which is not
    tokens     final items come once and are added; those that are not final are all replaced by each message;
               `final` tells them apart in one list, or there are two, `committed` and `tail`
    edit       take `delete` off the end and add `text`; or drop the keys from `from_key` to `to_key` and put `key`
    labels     one label a frame: `accept_after` equal ones in a row make a segment, and the rest of the row nothing

A plug-in can be another model (`model: plugin`): a function as these are, with the same operations.
A final text stays final; it changes only where the service itself replaces it. Empty texts never count as output.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from loadbench.results.masks import shorten_front
from loadbench.results.record import Channel, Finality, Segment, Update
from loadbench.session.plugin import NONE, PluginError, Plugins, called
from loadbench.session.profile import ChannelPart, TextRule
from loadbench.session.select import SELECT_ERRORS, Select, compile_selector, truthy

Span = tuple[float | None, float | None]
Effect = Literal["partial", "final", "empty", "unchanged"]
Order = Literal["first_seen", "number", "text"]

NO_SPAN: Final[Span] = (None, None)
_NO_SPACE_BEFORE: Final = frozenset(",.;:!?%)]}…»”’、。，．；：！？）」』】》")
_NO_SPACE_AFTER: Final = frozenset("([{«“‘¿¡（「『【《")
# Scripts written without spaces: CJK punctuation, kana, bopomofo, Han with its extensions, full-width forms.
_UNSPACED: Final = ((0x2E80, 0x312F), (0x31A0, 0x33FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF),
                    (0xFF00, 0xFF9F), (0x20000, 0x323AF))  # fmt: skip


class RuleError(ValueError):
    """A text rule met an item that it cannot read; the profile does not fit the service."""


@dataclass(frozen=True, slots=True)
class CompiledText:
    """A text rule with its selectors compiled. Made once for all sessions."""

    rule: TextRule
    model: "Model"
    selectors: dict[str, Select]
    constant_final: bool
    asks_final: bool
    asks_span: bool

    def get(self, name: str, item: Any) -> Any:
        """What the selector `name` gives on `item`; None where the rule has no such selector. Raises RuleError."""
        select = self.selectors.get(name)
        if select is None:
            return None
        try:
            return select(item)
        except SELECT_ERRORS as error:
            raise RuleError(f"{self._named(name)} cannot be read: {error}") from error

    def string(self, name: str, item: Any) -> str:
        """As `get`, and a text or nothing less. Raises RuleError."""
        value = self.get(name, item)
        if not isinstance(value, str):
            raise RuleError(f"{self._named(name)} gives {_kind(value)}, not a text")
        return value

    def texts(self, name: str, item: Any) -> list[str]:
        """The texts in a list, or in a single text; null is none. Raises RuleError."""
        value = self.get(name, item)
        listed = [] if value is None else value if isinstance(value, list) else [value]
        for text in listed:
            if not isinstance(text, str):
                raise RuleError(f"{self._named(name)} gives {_kind(text)} in its list, not a text")
        return listed

    def listed(self, name: str, item: Any) -> list[Any]:
        """A list. Raises RuleError."""
        value = self.get(name, item)
        if not isinstance(value, list):
            raise RuleError(f"{self._named(name)} gives {_kind(value)}, not a list")
        return value

    def key(self, name: str, item: Any) -> str:
        """A text or a number, as text. Raises RuleError."""
        value = self.get(name, item)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise RuleError(f"{self._named(name)} gives {_kind(value)}, not a key")
        return str(value)

    def final(self, item: Any) -> bool:
        """Whether the item's text is final. Raises RuleError."""
        return self.constant_final or (self.asks_final and truthy(self.get("final", item)))

    def span(self, item: Any) -> tuple[float | None, float | None]:
        """Start and end by the service's own clock, seconds; None where it does not say."""
        if not self.asks_span:
            return NO_SPAN
        return seconds(self.get("start", item), self.rule.unit), seconds(self.get("end", item), self.rule.unit)

    def _named(self, name: str) -> str:
        return f"text rule: {name}: {getattr(self.rule, name)!r}"


def compile_rule(rule: TextRule, plugins: Plugins = NONE) -> CompiledText:
    """Compile the selectors of a text rule. Raises SelectorError, and KeyError for a plug-in that is not among them."""
    selectors = {name: getattr(rule, name) for name in SELECTORS if isinstance(getattr(rule, name), str)}
    compiled = {name: compile_selector(expression) for name, expression in selectors.items()}
    asks_span = not compiled.keys().isdisjoint(("start", "end"))
    model = MODELS[rule.model] if rule.plugin is None else _plugged(rule.plugin.kind, plugins.texts[rule.plugin.key])
    return CompiledText(rule, model, compiled, rule.final is True, "final" in compiled, asks_span)


def _plugged(name: str, model: "Model") -> "Model":
    """A plug-in's model: what it raises tells that the profile does not fit."""

    def applied(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
        try:
            said = called(f"the text model {name}", lambda: model(board, rule, item, at_ns), passing=RuleError)
        except PluginError as error:
            raise RuleError(str(error)) from error
        return bool(said)

    return applied


SELECTORS: Final = (
    "text", "final", "key", "reworded", "replace", "committed", "tail", "items", "delete", "from_key", "to_key",
    "confidence", "start", "end",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class _Segment:
    """`join` goes before it (None: automatic); `stop` is where it ends in what is shown."""

    key: str
    join: str | None
    rank: float | str | None = None
    text: str = ""
    final: bool = False
    promoted: bool = False
    first_ns: int = 0
    changed_ns: int = 0
    final_ns: int | None = None
    start_s: float | None = None
    end_s: float | None = None
    stop: int = 0


class Board:
    """What one channel of one utterance shows, and how it came to show it. Times must not go back."""

    def __init__(self, channel: str, part: ChannelPart, finality: Finality = "explicit") -> None:
        self.name = channel
        self.first_ns: int | None = None
        self.labels = _LabelRow()
        self.space = ""  # white space that came alone and belongs before the next token
        self.kept: dict[str, Any] = {}  # for a plug-in's model to remember what it likes
        self._join = " " if part.join is None and part.unit == "gloss" else part.join  # a gloss is a word in any script
        self._finality = finality
        self._segments: list[_Segment] = []
        self._by_key: dict[str, _Segment] = {}
        self._open: _Segment | None = None  # the one that models without keys write to; it stands last
        self._opened = 0
        self._dirty: int | None = None
        self._shown = ""
        self._leading = 0  # so many segments at the start are final, or empty
        self._settled = 0
        self._updates: list[Update] = []
        self._empty = 0
        self._first_final_ns: int | None = None
        self._finalised = False

    def apply(self, rule: CompiledText, item: Any, at_ns: int) -> Effect:
        """Let an item change the text.

        `final`: a text became final, or a final one was replaced; else `empty`: the item had no text; `unchanged`:
        nothing that is shown has changed; `partial`: something has. Raises RuleError, and then nothing has changed.
        """
        self._finalised = False
        said = rule.model(self, rule, item, at_ns)
        changed = self._show(at_ns)
        if self._finalised:
            return "final"
        if not said:
            self._empty += 1
            return "empty"
        return "partial" if changed else "unchanged"

    def promote(self) -> None:
        """Make what is not final so, as of its last change, unless only the service may do that (`explicit`).

        A promoted text that changes after all is not final any more.
        """
        if self._finality == "explicit":
            return
        for segment in self._segments:
            if segment.text and not segment.final:
                segment.final = segment.promoted = True
                segment.final_ns = segment.changed_ns
                self._touch(segment)
        if self._dirty is not None and self._updates:
            self._show(self._updates[-1].at_ns)

    def channel(self) -> Channel:
        """The record of it all."""
        segments = [segment for segment in self._segments if segment.text]
        finals = [segment.final_ns for segment in segments if segment.final_ns is not None]
        earliest = [at for at in (self._first_final_ns, *finals) if at is not None]
        return Channel(
            finality=self._finality,
            first_ns=self.first_ns,
            first_final_ns=min(earliest, default=None) if finals else None,
            last_final_ns=max(finals, default=None),
            segments=[_recorded(segment) for segment in segments],
            updates=list(self._updates),
            empty=self._empty,
        )

    # ---- operations of the models

    def segment(self, key: str, rule: CompiledText) -> _Segment:
        """The segment of a key, made where the rule's order wants it, but never behind the open one."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = _Segment(key, rule.rule.join, _rank(key, rule.rule.order))
            place = self._place(found.rank)
            self._segments.insert(place, found)
            self._touch_from(place)
        return found

    def open_segment(self, rule: CompiledText) -> _Segment:
        """The one segment that models without keys write to."""
        if self._open is None:
            self._opened += 1
            self._open = _Segment(f"#{self._opened}", rule.rule.join)
            self._segments.append(self._open)
            self._touch_from(len(self._segments) - 1)
        return self._open

    def close(self) -> None:
        """What comes next makes a new open segment."""
        self._open = None

    def put(self, segment: _Segment, text: str, at_ns: int, *, final: bool = False) -> None:
        """Replace its text. An empty text erases nothing that the service has made final."""
        text = text if text.strip() else ""
        held = segment.final and not segment.promoted
        if not text and held:
            return
        if text != segment.text:
            if text and not segment.text:
                segment.first_ns = at_ns
            segment.text = text
            segment.changed_ns = at_ns
            segment.final = held
            segment.promoted = False
            segment.final_ns = None
            self._touch(segment)
        if final or held:
            self.seal(segment, at_ns)

    def reword(self, segment: _Segment, text: str, at_ns: int) -> bool:
        """Write a final text better, which leaves its time alone; False where no text is final yet."""
        if not text.strip() or not segment.text or not segment.final or segment.promoted:
            return False
        if text != segment.text:
            segment.text, segment.changed_ns = text, at_ns
            self._touch(segment)
        self._finalised = True
        return True

    def extend(self, segment: _Segment, text: str, at_ns: int, *, join: str = "") -> None:
        """Add to its text."""
        self.put(segment, segment.text + join + text if segment.text and text else segment.text + text, at_ns)

    def seal(self, segment: _Segment, at_ns: int) -> None:
        """The service will not change it any more."""
        if segment.final and not segment.promoted and segment.final_ns is not None:
            return
        segment.final, segment.promoted = True, False
        self._touch(segment)
        if segment.text:
            segment.final_ns = at_ns
            self._first_final_ns = at_ns if self._first_final_ns is None else self._first_final_ns
            self._finalised = True

    def seal_before(self, segment: _Segment, at_ns: int) -> None:
        """Seal all that stand before it."""
        for earlier in self._segments[: self._segments.index(segment)]:
            if not earlier.final or earlier.promoted:
                self.seal(earlier, at_ns)

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Take out the segments of these keys."""
        gone = {key for key in self._by_key if unwanted(key)}
        if gone:
            dropped = [self._by_key.pop(key) for key in gone]
            self._touch_from(min(map(self._segments.index, dropped)))
            self._segments = [segment for segment in self._segments if segment not in dropped]

    def joint(self, left: str, right: str, join: str | None) -> str:
        """What goes between two texts: the rule's join, the channel's, or a space where writing wants one."""
        if not left or not right:
            return ""
        chosen = self._join if join is None else join
        return automatic_joint(left, right) if chosen is None else chosen

    def joined(self, texts: Iterable[str], rule: CompiledText) -> str:
        """Several pieces of one segment as one text."""
        whole = ""
        for text in texts:
            whole += self.joint(whole, text, rule.rule.join) + text
        return whole

    # ---- what is shown

    def _place(self, rank: float | str | None) -> int:
        end = len(self._segments) - (self._open is not None)
        if rank is None:
            return end
        ranked = [(place, s.rank) for place, s in enumerate(self._segments[:end]) if type(s.rank) is type(rank)]
        behind = bisect_right([other for _, other in ranked], rank)
        return ranked[behind][0] if behind < len(ranked) else end

    def _touch(self, segment: _Segment) -> None:
        # From the end: it is nearly always the last segment that changes.
        place = len(self._segments) - 1
        while self._segments[place] is not segment:
            place -= 1
        self._touch_from(place)

    def _touch_from(self, place: int) -> None:
        self._dirty = place if self._dirty is None else min(self._dirty, place)

    def _show(self, at_ns: int) -> bool:
        """Bring what is shown up to date, from the first changed segment on; whether it looks different."""
        if self._dirty is None:
            return False
        first, self._dirty = self._dirty, None
        base = self._segments[first - 1].stop if first else 0
        pieces: list[str] = []
        stop, left = base, self._shown[base - 1 : base] if base else ""
        for segment in self._segments[first:]:
            if segment.text:
                joint = self.joint(left, segment.text, segment.join)
                pieces += (joint, segment.text)
                stop += len(joint) + len(segment.text)
                left = segment.text[-1]
            segment.stop = stop
        return self._update(at_ns, base, "".join(pieces), self._settled_at(first))

    def _settled_at(self, first: int) -> int:
        self._leading = min(self._leading, first)
        while self._leading < len(self._segments):
            segment = self._segments[self._leading]
            if segment.text and not segment.final:
                break
            self._leading += 1
        return self._segments[self._leading - 1].stop if self._leading else 0

    def _update(self, at_ns: int, base: int, tail: str, settled: int) -> bool:
        before = self._shown[base:]
        if tail == before and settled == self._settled:
            return False
        common = _common_prefix(before, tail)
        self._shown = self._shown[:base] + tail
        self._settled = settled
        self._updates.append(Update(at_ns, base + common, tail[common:], settled))
        if self.first_ns is None and self._shown:
            self.first_ns = at_ns
        return True


# ---- the models: each reads the whole item before it changes anything, and says whether there was a text in it


def _unkeyed(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
    text, final, span = _heard(rule, rule.string("text", item)), rule.final(item), rule.span(item)
    _write_open(board, rule, text, at_ns, final=final, span=span)
    return bool(text.strip())


def _keyed(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
    text, key, final = _heard(rule, rule.string("text", item)), rule.key("key", item), rule.final(item)
    span = rule.span(item)
    _rank(key, rule.rule.order)
    segment = board.segment(key, rule)
    if not truthy(rule.get("reworded", item)) or not board.reword(segment, text, at_ns):
        board.put(segment, text, at_ns, final=final)
    _place_in_media(segment, span)
    if rule.rule.seals_lower:
        board.seal_before(segment, at_ns)
    return bool(text.strip())


def _delta(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
    whole = rule.get("replace", item)
    if not isinstance(whole, str):
        if rule.rule.text is None:
            raise RuleError(f"text rule: replace: {rule.rule.replace!r} gives {_kind(whole)}, not a text")
        whole = None
    text = _heard(rule, rule.string("text", item) if whole is None else whole)
    final, span = rule.final(item), rule.span(item)
    key = rule.key("key", item) if rule.rule.key else None
    segment = board.open_segment(rule) if key is None else board.segment(key, rule)
    if whole is None:
        board.extend(segment, text, at_ns, join=rule.rule.join or "")
    else:
        board.put(segment, text, at_ns)
    _place_in_media(segment, span)
    if final:
        board.seal(segment, at_ns)
        if key is None:
            board.close()
    return bool(text.strip())


def _snapshot(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
    tail = board.joined((_heard(rule, text) for text in rule.texts("tail", item)), rule)
    committed = rule.listed("committed", item) if rule.rule.committed else []
    texts = [rule.string("text", each) if rule.rule.text else each for each in committed]
    for text in texts:
        if not isinstance(text, str):
            raise RuleError(f"text rule: committed: {rule.rule.committed!r} holds {_kind(text)}: name its `text`")
    spans = [rule.span(each) for each in committed]
    kept = {f"line-{number}" for number in range(len(texts))}
    board.drop(lambda key: key not in kept)
    for number, (text, span) in enumerate(zip(texts, spans, strict=True)):
        segment = board.segment(f"line-{number}", rule)
        board.put(segment, _heard(rule, text), at_ns, final=True)
        _place_in_media(segment, span)
    board.put(board.open_segment(rule), tail, at_ns)
    return bool(tail.strip()) or any(text.strip() for text in texts)


def _tokens(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
    if rule.rule.items:
        tokens = rule.listed("items", item)
        flags = [rule.final(token) for token in tokens]
        final = [token for token, sure in zip(tokens, flags, strict=True) if sure]
        tentative = [token for token, sure in zip(tokens, flags, strict=True) if not sure]
    else:
        final = rule.listed("committed", item) if rule.rule.committed else []
        tentative = rule.listed("tail", item) if rule.rule.tail else []
    spans = [rule.span(token) for token in final]
    sure, unsure = (
        board.joined([_heard(rule, rule.string("text", token)) for token in part], rule) for part in (final, tentative)
    )
    sure = board.space + sure
    if sure.strip():
        tail = board.open_segment(rule)
        board.put(tail, sure, at_ns, final=True)
        _place_in_media(tail, (spans[0][0], spans[-1][1]))
        board.close()
    board.space = "" if sure.strip() else sure
    board.put(board.open_segment(rule), board.space + unsure, at_ns)
    return bool(sure.strip() or unsure.strip())


def _edit(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
    text, span = _heard(rule, rule.string("text", item)), rule.span(item)
    if rule.rule.key:
        key, low, high = rule.key("key", item), rule.get("from_key", item), rule.get("to_key", item)
        _rank(key, rule.rule.order)
        if low is not None and high is not None:
            board.drop(lambda other: _between(str(low), other, str(high)))
        segment = board.segment(key, rule)
        board.put(segment, text, at_ns)
        _place_in_media(segment, span)
        return bool(text.strip())
    segment = board.open_segment(rule)
    kept = _cut(segment.text, rule.get("delete", item), rule.rule.unit_of_delete)
    board.put(segment, kept + board.joint(kept, text, rule.rule.join) + text, at_ns)
    _place_in_media(segment, span)
    return bool(text.strip())


def _labels(board: Board, rule: CompiledText, item: Any, at_ns: int) -> bool:
    label, final, span = rule.string("text", item).strip(), rule.final(item), rule.span(item)
    least, sure = rule.rule.min_confidence, rule.get("confidence", item)
    if not label or label in rule.rule.ignore:
        board.labels.end()  # "no sign" parts two equal signs
        return False
    if least is not None and not (_number(sure) and sure >= least):
        return False  # a doubtful frame is not seen at all
    if board.labels.accepts(label, rule.rule.accept_after, collapse=rule.rule.collapse):
        _write_open(board, rule, label, at_ns, final=final, span=span)
        board.close()
    return True


Model = Callable[[Board, CompiledText, Any, int], bool]
MODELS: Final[dict[str, Model]] = {
    "unkeyed": _unkeyed,
    "keyed": _keyed,
    "delta": _delta,
    "snapshot": _snapshot,
    "tokens": _tokens,
    "edit": _edit,
    "labels": _labels,
}


@dataclass(slots=True)
class _LabelRow:
    """Equal labels in a row."""

    label: str | None = None
    count: int = 0

    def end(self) -> None:
        self.label, self.count = None, 0

    def accepts(self, label: str, after: int, *, collapse: bool) -> bool:
        if label != self.label:
            self.label, self.count = label, 0
        self.count += 1
        return self.count == after if collapse else self.count >= after


def _write_open(board: Board, rule: CompiledText, text: str, at_ns: int, *, final: bool, span: Span) -> None:
    segment = board.open_segment(rule)
    board.put(segment, text, at_ns, final=final)
    _place_in_media(segment, span)
    if final:
        board.close()


def _heard(rule: CompiledText, text: str) -> str:
    """The text, or nothing where the profile says that it is to be ignored."""
    return "" if text.strip() in rule.rule.ignore else text


def _place_in_media(segment: _Segment, span: Span) -> None:
    if span is NO_SPAN:
        return
    start_s, end_s = span
    segment.start_s = start_s if start_s is not None else segment.start_s
    segment.end_s = end_s if end_s is not None else segment.end_s


def _rank(key: str, order: Order) -> float | str | None:
    if order == "number":
        try:
            return float(key)
        except ValueError:
            raise RuleError(f"text rule: order is number, and the key {key!r} is none") from None
    return key if order == "text" else None


def _between(low: str, key: str, high: str) -> bool:
    try:
        return float(low) <= float(key) <= float(high)
    except ValueError:
        return low <= key <= high


def _cut(text: str, deleted: Any, unit: Literal["words", "characters", "text"]) -> str:
    """The text without what is deleted at its end: that very text, or so many words or characters."""
    if deleted is None or deleted == "":
        return text
    if unit == "text":
        if not isinstance(deleted, str):
            raise RuleError(f"text rule: delete gives {_kind(deleted)}, not the text to delete")
        return text[: _without(text, deleted)]
    if isinstance(deleted, str):
        count = len(deleted.split()) if unit == "words" else len(deleted)
    elif isinstance(deleted, int) and not isinstance(deleted, bool) and deleted >= 0:
        count = deleted
    else:
        raise RuleError(f"text rule: delete gives {_kind(deleted)}, not a number of {unit}")
    if unit == "characters":
        return text[: max(0, len(text) - count)]
    for _ in range(count):
        *kept, _last = text.rstrip().rsplit(None, 1) or [""]
        text = kept[0] if kept else ""
    return text


def _without(text: str, suffix: str) -> int:
    """Where `suffix` begins at the end of `text`; white space is ours as much as theirs, and is not compared."""
    end = len(text)
    for character in reversed(suffix):
        if character.isspace():
            continue
        while end and text[end - 1].isspace():
            end -= 1
        if not end or text[end - 1] != character:
            raise RuleError(
                f"text rule: the service deletes {suffix!r}, but the text ends in {shorten_front(text, 40)!r}"
            )
        end -= 1
    while suffix[0].isspace() and end and text[end - 1].isspace():
        end -= 1
    return end


def automatic_joint(left: str, right: str) -> str:
    """A space between two texts, unless there is white space, punctuation wants none, or a side is Han or kana."""
    a, b = left[-1], right[0]
    tight = a.isspace() or b.isspace() or a in _NO_SPACE_AFTER or b in _NO_SPACE_BEFORE
    return "" if tight or _unspaced(a) or _unspaced(b) else " "


def _unspaced(character: str) -> bool:
    point = ord(character)
    return point >= 0x2E80 and any(low <= point <= high for low, high in _UNSPACED)


def _common_prefix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _recorded(segment: _Segment) -> Segment:
    return Segment(
        key=segment.key,
        text=segment.text,
        first_ns=segment.first_ns,
        changed_ns=segment.changed_ns,
        final_ns=segment.final_ns,
        promoted=segment.promoted,
        start_s=segment.start_s,
        end_s=segment.end_s,
    )


def seconds(value: Any, unit: Literal["s", "ms", "10ms", "hms", "iso"]) -> float | None:
    """A time field of a service as seconds; None where it is not one. `iso` counts from 1970."""
    try:
        if unit == "hms":
            parts = [float(part) for part in value.split(":")]
            result = sum(part * 60**power for power, part in enumerate(reversed(parts))) if len(parts) <= 3 else None
        elif unit == "iso":
            moment = datetime.fromisoformat(value)
            result = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        else:
            result = None if isinstance(value, bool) else float(value) * {"s": 1.0, "ms": 0.001, "10ms": 0.01}[unit]
    except (TypeError, ValueError, AttributeError, OverflowError):
        return None
    return result if result is not None and math.isfinite(result) else None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    kinds = ((bool, "a boolean"), (int | float, "a number"), (str, "a text"), (list, "a list"), (dict, "an object"))
    return next((name for kind, name in kinds if isinstance(value, kind)), type(value).__name__)
