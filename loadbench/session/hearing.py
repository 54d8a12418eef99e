"""What a service's messages mean: cut, decoded, and read by the profile's rules; text goes to the channels' boards.

`Hearing` decides nothing about the conversation. It says of each message what it was, what it changed, and whether it
ends the session, and the state machine does the rest.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from loadbench.results.masks import shorten
from loadbench.results.record import Channel, MediaClock
from loadbench.session.decode import DecodeError, Framer, Raw, Timed, decode_message
from loadbench.session.media import MediaBoard
from loadbench.session.plugin import Framing, PluginError
from loadbench.session.profile import ChannelPart, MediaFormat
from loadbench.session.script import Clock, Compiled, CompiledMedia, Fields, Meaning, Selector, chosen
from loadbench.session.select import SELECT_ERRORS
from loadbench.session.text import Board, CompiledText, RuleError, seconds

RAW_CHARACTERS: Final = 300
Keep = Callable[[str, MediaFormat, bytes, int], None]

# Each decoded message is counted once, under the first of these that it was.
MESSAGE_KINDS: Final = (
    "error", "final", "partial", "media", "done", "ready", "ack", "event", "empty", "unchanged", "ignored", "unmatched",
)  # fmt: skip
_RANK: Final = {kind: rank for rank, kind in enumerate(MESSAGE_KINDS)}
_EVENTS: Final = {"ready": "ready", "ack": "ack", "done": "done", "ignore": "ignored"}
_SAID: Final = {
    "rejected": "refused by a message",
    "auth_expired": "the authorisation has expired",
    "pace_refused": "the pace of the media was refused",
    "target_error": "the service reported an error",
}


@dataclass(slots=True)
class Heard:
    """One decoded message. `ending` is an outcome and a sentence where it ends the session; `raw` then shows it."""

    at_ns: int
    item: Any
    kind: str = "unmatched"
    done: bool = False
    settled: bool = False
    acked: bool = False
    echo_ms: int | None = None
    changed: bool = False
    ending: tuple[str, str] | None = None
    warning: str = ""
    raw: str = ""

    def was(self, kind: str) -> None:
        """Take note of a kind; the weightier one stays."""
        if _RANK[kind] < _RANK[self.kind]:
            self.kind = kind


class Hearing:
    """Reads what one session's service says. `counts` goes over the session, the boards over one utterance.

    `owed` are the keys of what the service has begun and not settled yet; `clock` is what it said of its media clock.

    `shared`, if any, is counted up in step with `counts`; `keep` gets each piece of media: channel, form, payload,
    arrival.
    """

    def __init__(
        self,
        how: Compiled,
        message_bytes: int,
        fields: Fields,
        shared: dict[str, int] | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.counts = dict.fromkeys(MESSAGE_KINDS, 0)
        self._shared = dict(self.counts) if shared is None else shared
        self.acked = 0
        self.headline_final_ns: int | None = None
        self._how = how
        self._fields = fields
        self._keep = keep
        self._binary = how.profile.receive.binary
        self._media: dict[str, MediaBoard] = {}
        self._most_bytes = message_bytes
        self._surely_fits = message_bytes // 4  # characters, of at most four bytes each
        self._boards: dict[str, Board] = {}
        self._unsettled: dict[str, int] = {}
        self.owed: set[str] = set()
        self._settled: set[str] = set()
        self.clock: list[MediaClock] = []
        framing = how.profile.receive.framing
        self._framer = None if framing == "message" else Framer(framing, message_bytes)
        self._framing = how.framing
        self._unframe: Callable[[Raw], list[Raw]] | None = None  # of the connection, once something has come

    def content_type(self, value: str) -> None:
        """What the head of the response says, for profiles that cut by it."""
        if self._framer is not None:
            self._framer.set_content_type(value)

    def listen(self, data: str | bytes, at_ns: int) -> Iterable[Heard]:
        """The messages in `data`, each read only when the one before has been taken."""
        if self._framing is not None:
            return self._unframed(self._framing, data, at_ns)
        return self._listen(data, at_ns)

    def _unframed(self, framing: Framing, data: Raw, at_ns: int) -> Iterator[Heard]:
        """What the codec makes of a message."""
        if size(data) > self._most_bytes:
            yield self._too_big(DecodeError(f"a message of {size(data)} bytes"), at_ns, data)
            return
        try:
            self._unframe = self._unframe or framing.decoder()
            messages = self._unframe(data)
        except DecodeError as error:
            yield self._trouble(at_ns, "parse_error", str(error), data)
        except PluginError as error:
            yield self._trouble(at_ns, "profile_error", str(error), data)
        else:
            for message in messages:
                yield from self._listen(message, at_ns)

    def _listen(self, data: Raw, at_ns: int) -> Iterable[Heard]:
        if self._binary is not None and isinstance(data, bytes) and len(data) <= self._most_bytes:
            heard = Heard(at_ns, None)
            self._take_piece(self._binary.channel, self._binary, data, heard)
            self._count(heard.kind)
            return (heard,)
        if self._framer is None and len(data) <= self._surely_fits:
            return self._decoded(data, at_ns)
        return self._read(lambda: self._cut(data, at_ns), at_ns, data)

    def flush(self, at_ns: int) -> Iterable[Heard]:
        """What the regular end of a response completes."""
        if self._framer is not None:
            framer = self._framer
            yield from self._read(lambda: framer.flush(at_ns), at_ns, "")

    def begin(self) -> None:
        """The next utterance: empty boards."""
        self._boards = {}
        self._media = {}
        self._unsettled = {}
        self.owed, self._settled, self.clock = set(), set(), []
        self.headline_final_ns = None

    def channels(self) -> dict[str, Channel]:
        """What each channel used in this utterance shows, as it is recorded."""
        texts = {name: board.channel() for name, board in self._boards.items()}
        return texts | {name: board.channel() for name, board in self._media.items()}

    @property
    def said(self) -> bool:
        """Whether any channel ever showed a text, or gave media, in this utterance."""
        return bool(self._media) or any(board.first_ns is not None for board in self._boards.values())

    def promote(self, before_ns: int | None = None) -> int | None:
        """Make texts final that have not changed since `before_ns` (None: all). When the oldest other one changed."""
        for name, changed_ns in list(self._unsettled.items()):
            if before_ns is None or changed_ns <= before_ns:
                del self._unsettled[name]
                self._boards[name].promote()
        return min(self._unsettled.values(), default=None)

    def _cut(self, data: str | bytes, at_ns: int) -> list[Timed]:
        if self._framer is not None:
            return self._framer.feed(data, at_ns)
        if size(data) > self._most_bytes:
            raise DecodeError(f"a message of {size(data)} bytes")
        return [(data, at_ns)]

    def _read(self, cut: Callable[[], list[Timed]], at_ns: int, data: str | bytes) -> Iterator[Heard]:
        try:
            messages = cut()
        except DecodeError as error:
            yield self._too_big(error, at_ns, data)
            return
        for raw, arrival_ns in messages:
            yield from self._decoded(raw, arrival_ns)
        if self._framer is not None and (trouble := self._framer.trouble) is not None:
            yield self._too_big(trouble, at_ns, data)

    def _too_big(self, error: DecodeError, at_ns: int, data: str | bytes) -> Heard:
        """Cutting knows one trouble."""
        return self._trouble(at_ns, "our_limit", f"over our limit of {self._most_bytes} bytes: {error}", data)

    def _decoded(self, raw: str | bytes, at_ns: int) -> Iterable[Heard]:
        """Usually one, and then no generator is made for it."""
        try:
            items = decode_message(self._how.profile.receive, raw)
        except DecodeError as error:
            return (self._trouble(at_ns, "parse_error", str(error), raw),)
        if len(items) == 1:
            return (self._interpret(items[0], raw, at_ns),)
        return (self._interpret(item, raw, at_ns) for item in items)

    def _trouble(self, at_ns: int, outcome: str, sentence: str, raw: str | bytes) -> Heard:
        self._count("error")
        return Heard(at_ns, None, kind="error", ending=(outcome, sentence), raw=shown(raw))

    def _interpret(self, item: Any, raw: str | bytes, at_ns: int) -> Heard:
        heard, how = Heard(at_ns, item), self._how
        try:
            for meaning in how.meanings:
                if meaning.fits(item) and self._apply(meaning, heard) and how.first_only:
                    break
        except RuleError as error:
            return self._trouble(at_ns, "profile_error", f"a rule of the profile does not fit: {error}", raw)
        except DecodeError as error:
            return self._trouble(at_ns, "parse_error", str(error), raw)
        if how.clock is not None:
            self._read_clock(how.clock, item, at_ns)
        if how.ack is not None and how.ack(item):
            self.acked += 1
            heard.acked, heard.echo_ms = True, _milliseconds(how.echo, "ms", item)
            if heard.kind == "unmatched":
                heard.kind = "ack"
        if heard.ending is not None:
            heard.raw = shown(raw)
        self._count(heard.kind)
        return heard

    def _count(self, kind: str) -> None:
        self.counts[kind] += 1
        self._shared[kind] += 1

    def _apply(self, meaning: Meaning, heard: Heard) -> bool:
        """Do what a fitting rule says; False where its `where` keeps it from fitting after all."""
        items = [heard.item] if meaning.whole else self._items(meaning, heard.item)
        if not items and meaning.each is None:
            return False
        if meaning.text is not None:
            if not items:
                heard.was("empty")
            for item in items:
                self._show(meaning, meaning.text, item, heard)
        elif meaning.event is None and meaning.outcome is None and meaning.media is None:
            heard.was("event")
        if meaning.media is not None:
            for item in items:
                self._play(meaning, meaning.media, item, heard)
        if meaning.event is not None:
            heard.was(_EVENTS.get(meaning.event, "event"))
            heard.done = heard.done or meaning.event == "done"
            if meaning.key is not None:
                for item in items:
                    self._settle(meaning, meaning.key, item, heard)
        if meaning.outcome is not None:
            self._complain(meaning, heard)
        return True

    @staticmethod
    def _items(meaning: Meaning, message: Any) -> list[Any]:
        items = [message] if meaning.each is None else chosen(meaning.each, message) or []
        if not isinstance(items, list):
            raise RuleError(f"each gave {shorten(json.dumps(items, default=str), 80)}, not a list")
        return items if meaning.where is None else [item for item in items if meaning.where(item)]

    def _settle(self, meaning: Meaning, key: Selector, item: Any, heard: Heard) -> None:
        """Take note of what the service owes. What it has settled already, it does not owe: messages may overtake."""
        name = chosen(key, item)
        if not isinstance(name, str | int) or isinstance(name, bool):
            raise RuleError(
                f"key of event {meaning.event} gave {shorten(json.dumps(name, default=str), 80)}, not a key"
            )
        if meaning.event == "settled":
            heard.settled = True
            self._settled.add(str(name))
            self.owed.discard(str(name))
        elif str(name) not in self._settled:
            self.owed.add(str(name))

    def _read_clock(self, clock: Clock, item: Any, at_ns: int) -> None:
        said = [_milliseconds(select, clock.unit, item) for select in (clock.processed, clock.final, clock.lag)]
        last = self.clock[-1] if self.clock else MediaClock(at_ns, None, None)
        before = (last.processed_ms, last.final_ms, last.lag_ms)
        now = [old if new is None else new for old, new in zip(before, said, strict=True)]
        if (*now,) != before:
            self.clock.append(MediaClock(at_ns, *now))

    def _name(self, meaning: Meaning, item: Any) -> str:
        return meaning.channel if isinstance(meaning.channel, str) else meaning.channel(self._fields, item)

    def _play(self, meaning: Meaning, media: CompiledMedia, item: Any, heard: Heard) -> None:
        """Take the media of an item; one that bears none is empty."""
        text = chosen(media.select, item)
        if text is None or text == "":
            heard.was("empty")
            return
        if not isinstance(text, str):
            raise RuleError(f"media gave {shorten(json.dumps(text, default=str), 80)}, not a text")
        try:
            data = media.decode(text)
        except ValueError as error:
            raise DecodeError(f"media that cannot be decoded: {error}") from error
        self._take_piece(self._name(meaning, item), media.form, data, heard)

    def _take_piece(self, name: str, form: MediaFormat, data: bytes, heard: Heard) -> None:
        board = self._media.get(name)
        if board is None:
            part = self._part(name)
            board = self._media[name] = MediaBoard(part.medium or "audio", form, part.audible_dbfs)
        if not board.take(data, heard.at_ns):
            heard.was("empty")
            return
        heard.was("media")
        if self._keep is not None:
            self._keep(name, form, data, heard.at_ns)

    def _show(self, meaning: Meaning, rule: CompiledText, item: Any, heard: Heard) -> None:
        name = self._name(meaning, item)
        board = self._boards.get(name)
        if board is None:
            board = self._boards[name] = self._board(name)
        effect = board.apply(rule, item, heard.at_ns)
        heard.was(effect)
        if effect in ("empty", "unchanged"):
            return
        heard.changed = True
        self._unsettled[name] = heard.at_ns
        if effect == "final" and self.headline_final_ns is None and is_part(name, self._how.profile.headline):
            self.headline_final_ns = heard.at_ns

    def _board(self, name: str) -> Board:
        return Board(name, self._part(name), self._how.profile.never_final.rule)

    def _part(self, name: str) -> ChannelPart:
        channels = self._how.profile.channels
        return channels.get(name) or channels.get(name.partition(":")[0]) or ChannelPart()

    def _complain(self, meaning: Meaning, heard: Heard) -> None:
        heard.was("error")
        value = None if meaning.detail is None else chosen(meaning.detail, heard.item)
        detail = value if isinstance(value, str) else json.dumps(heard.item if value is None else value, default=str)
        if meaning.outcome in _SAID:
            heard.ending = heard.ending or (
                meaning.outcome,
                f"{_SAID[meaning.outcome]}: {shorten(detail, RAW_CHARACTERS)}",
            )
        else:
            heard.warning = f"{meaning.outcome}: {shorten(detail, RAW_CHARACTERS)}"


def _milliseconds(select: Selector | None, unit: Literal["s", "ms", "10ms", "hms"], item: Any) -> int | None:
    """A point in the media; None where the message does not tell one."""
    if select is None:
        return None
    try:
        found = seconds(select(item), unit)
    except SELECT_ERRORS:
        return None
    return None if found is None else round(found * 1000)


def is_part(channel: str, headline: str) -> bool:
    """Whether a channel is the headline channel, or one of those into which messages split it: `headline:...`."""
    return channel == headline or channel.startswith(f"{headline}:")


def size(message: str | bytes) -> int:
    """Bytes of a message on the wire."""
    return len(message) if isinstance(message, bytes) or message.isascii() else len(message.encode())


def shown(raw: str | bytes) -> str:
    """A raw message for people, cut."""
    return shorten(raw if isinstance(raw, str) else raw.decode("utf-8", "backslashreplace"), RAW_CHARACTERS)
