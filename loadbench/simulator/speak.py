"""The service's side of a profile: messages from which the profile's own rules read what the service means to say.

A rule reads a message; here it is turned round. Each message is made from the rule's conditions and selectors
(`invert`), then heard by the profile as a tester would hear it (`session.hearing`): the channel must show the text and
take it for a partial or a final. A profile that cannot be spoken so is refused with the names of its rules, and may
say with `simulate` what cannot be derived.
"""

import base64
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from loadbench.results.record import Channel
from loadbench.session.decode import Framer, decode_message
from loadbench.session.hearing import Hearing
from loadbench.session.plugin import named
from loadbench.session.profile import Condition, MediaFormat, MediaRule, Profile, Rule, TextRule, WaitPart
from loadbench.session.script import Compiled, compile_profile
from loadbench.session.select import compile_condition
from loadbench.simulator import invert
from loadbench.simulator.branches import Branches
from loadbench.simulator.debts import Debts, keyed
from loadbench.simulator.reception import Reception

Fields = Mapping[str, str]
Kind = Literal["partial", "final"]
Say = Callable[["Turn"], list[Any]]
SAMPLES = ("red", "red boat", "red boat leaves")  # a text that grows, to hear whether it is understood
SAMPLE_FIELDS = {
    "session.id": "s",
    "session.uuid": "u",
    "clip.id": "c",
    "clip.source_lang": "en",
    "clip.target_lang": "en",
}


class SpeakerError(ValueError):
    """A profile that the simulator cannot speak; `problems` names the rules and what to do."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Turn:
    """What one channel says next: from the text `was`, shown in this segment so far, to `now`.

    `sealed` are the texts of the segments before this one.
    """

    was: str
    now: str
    final: bool
    sealed: tuple[str, ...] = ()
    heard_ms: float = 0.0
    fields: Fields = field(default_factory=lambda: SAMPLE_FIELDS)

    @property
    def key(self) -> int:
        """The number of this segment."""
        return len(self.sealed)

    def text(self, rule: TextRule) -> str:
        """The text as it is said: with the space before it where the profile joins segments with nothing."""
        spaced = rule.join == "" and self.sealed and self.now[:1].isascii()
        return f" {self.now}" if spaced else self.now


@dataclass(frozen=True, slots=True)
class Way:
    """How a channel is spoken: without media times or with them, at what length, and by what.

    `marked`: the message itself says that it is final. Else a final is only the last change of the text.
    """

    timeless: bool
    length: int
    partial: Say | None
    final: Say
    marked: bool


@dataclass(frozen=True, slots=True)
class MediaWay:
    """How media is spoken on a channel: its form, and what message a piece of it becomes; bytes go out as they are."""

    form: MediaFormat
    message: Callable[[bytes], Any]


class Speaker:
    """All that the service may say; made and checked once for a profile. Raises SpeakerError.

    `waits` are the answers to the steps that wait, by their place in `open` and `begin` together.
    """

    def __init__(self, profile: Profile) -> None:
        if any(step.wait or step.poll for step in profile.end):
            raise SpeakerError(["a simulator does not know what an end script waits or asks for"])
        if plugged := named(profile, auth=False):
            raise SpeakerError([f"a simulator does not speak through plug-ins: {', '.join(plugged)}"])
        self.profile = profile
        self._how = compile_profile(profile)
        self._said: dict[str, Way] = {}
        problems: list[str] = []
        for name in profile.channels:
            try:
                way = _found(self._how, name)
                self._said |= {name: way} if way else {}
            except SpeakerError as error:
                problems += error.problems
        self._branches, self.debts = Branches(profile), Debts(profile)
        self.reception = self._received(problems)
        self.media = dict(self._mediated(problems))
        self.waits = {
            at: self._tried(problems, _named(profile, at), step.wait)
            for at, step in enumerate((*profile.open, *profile.begin))
            if step.wait
        }
        self.done = self._done(problems)
        ready = profile.simulate.ready
        self.idle = profile.simulate.idle
        self.greeting = None if ready is None or self.waits else _filled(ready, SAMPLE_FIELDS)
        if problems:
            raise SpeakerError(problems)
        if not self._said and not self.media:
            raise SpeakerError([f"profile {profile.name} has no channel that a rule gives text or media to"])

    @property
    def channels(self) -> list[str]:
        """The channels that can be spoken on."""
        return list(self._said)

    def marks_final(self, channel: str) -> bool:
        """Whether finals differ from partials; else a client can only take the last change for the final."""
        return self._said[channel].marked

    def voice(self, fields: Fields) -> "Voice":
        """A voice for one utterance of a session with these template fields."""
        return Voice(self._said, fields, self.debts)

    def rejection(self, detail: str) -> tuple[list[Any], int | None]:
        """How the profile hears a refusal on an open connection: messages, and a close code (None: a usual one)."""
        receive = self.profile.receive
        code = next(
            (code for status in receive.statuses if status.outcome == "rejected" for code in status.close_code), None
        )
        if self.profile.simulate.reject is not None:
            return [_filled(self.profile.simulate.reject, {"text": detail})], code
        messages = [_complaint(rule, detail) for rule in receive.rules if rule.outcome == "rejected"]
        return [message for message in messages if self._ends(message) == "rejected"][:1], code

    @property
    def closes(self) -> bool:
        """Whether the service itself ends the connection when all has been said."""
        rule = next((step.done for step in self.profile.end if step.done), None)
        if rule is None or self.profile.transport.kind in ("http", "process") or rule.closes == "target":
            return True
        return self.done is None and "close" in rule.on

    @property
    def refusal_status(self) -> int | None:
        """The HTTP status that the profile takes for a refusal; None where it names none."""
        statuses = self.profile.receive.statuses
        return next(
            (status for rule in statuses if rule.outcome == "rejected" for status in reversed(rule.status)), None
        )

    def ack(self, echo: float | None) -> Any | None:
        """An acknowledgement of a chunk that bore media time `echo`; None where the profile has none of its own."""
        ack = self.profile.media.ack
        if ack is None or ack.one_per_chunk:
            return None
        message = invert.fitting(ack)
        return invert.put(message, ack.echo, echo or 0) if ack.echo else message

    def wire(self, message: Any, *, sse: bool = False) -> str:
        """A message as it goes out: text of a WebSocket message, or of a response body."""
        return _encoded(self.profile, message, sse=sse)

    def _mediated(self, problems: list[str]) -> Iterator[tuple[str, MediaWay]]:
        """A way to speak on each media channel, one that the profile hears."""
        receive = self.profile.receive
        for name in self.profile.media_channels:
            ways = [
                _by_media_rule(rule, rule.media)
                for rule in receive.rules
                if rule.media and _spoken_on(rule, self.profile) == name
            ]
            if receive.binary is not None and receive.binary.channel == name:
                ways.insert(0, MediaWay(receive.binary, lambda data: data))
            if not ways:
                continue
            if ways[0].form.format == "container":
                problems.append(f"channel {name}: the simulator makes no containers")
            elif self._heard_as_media(ways[0]):
                yield name, ways[0]
            else:
                problems.append(f"channel {name}: media that its rule should bear is not heard as such")

    def _heard_as_media(self, way: MediaWay) -> bool:
        hearing, message = Hearing(self._how, 1 << 26, SAMPLE_FIELDS), way.message(b"\0\0\0\0")
        raw = message if isinstance(message, bytes) else self.wire(message)
        return [heard.kind for heard in hearing.listen(raw, 0)] == ["media"]

    def _ends(self, message: Any) -> str | None:
        """The outcome with which a message ends a session."""
        hearing = Hearing(self._how, 1 << 26, SAMPLE_FIELDS)
        whole = [*hearing.listen(self.wire(message), 0), *(hearing.flush(0) if _alone(self.profile) else ())]
        heard = [one for one in whole if one.ending]
        return heard[0].ending[0] if heard and heard[0].ending else None

    def _received(self, problems: list[str]) -> Reception | None:
        try:
            return Reception(self.profile)
        except invert.NoInverseError as error:
            problems.append(f"prelude: {error}; the simulator cannot answer it")
            return None

    @property
    def farewell(self) -> list[Any]:
        """What settles everything once all has been said, where the profile waits for that."""
        rules = [step.done for step in self.profile.end if step.done]
        return self.debts.last("last") if any("settled" in rule.on for rule in rules) else []

    def _tried(self, problems: list[str], name: str, condition: Condition) -> Any:
        given = self.profile.simulate.ready
        if given is None and self.profile.transport.kind == "requests" and not (condition.has or condition.match):
            return None  # the bare answer to the request is what was waited for
        try:
            message = _answer(condition, self._branches) if given is None else _filled(given, SAMPLE_FIELDS)
        except invert.NoInverseError as error:
            problems.append(f"{name}: {error}; give simulate.ready")
            return None
        if not any(_fits(condition, item) for item in _decoded(self.profile, message)):
            problems.append(f"{name} is not fulfilled by {_short(message)}; give simulate.ready")
        return message

    def _final(self) -> Iterator[Any]:
        """What a final is decoded to, on each channel."""
        voice = self.voice(SAMPLE_FIELDS)
        for name in self._said:
            for message in voice.final(name, SAMPLES[0]):
                yield from _decoded(self.profile, message)

    def _done(self, problems: list[str]) -> Any | None:
        """The message after which nothing more comes; None where the end of the connection says so."""
        if self.profile.simulate.done is not None:
            return _filled(self.profile.simulate.done, SAMPLE_FIELDS)
        rule = next((step.done for step in self.profile.end if step.done), None)
        if rule is None or "message" not in rule.on:
            return None
        conditions: list[Condition] = [] if rule.always else [rule]
        conditions += [other for other in self.profile.receive.rules if other.event == "done"]
        if any(_fits(condition, item) for item in self._final() for condition in conditions):
            return None  # the final says it
        for condition in conditions:
            try:
                message = invert.fitting(condition)
            except invert.NoInverseError as error:
                problems.append(f"the done message cannot be made: {error}; give simulate.done")
                return None
            if any(_fits(condition, item) for item in _decoded(self.profile, message)):
                return message
            problems.append(f"{_short(message)} is not taken for the done message; give simulate.done")
        return None


class Voice:
    """Says texts on the channels of one utterance, and keeps in mind what it has said there."""

    def __init__(self, said: dict[str, Way], fields: Fields, debts: Debts) -> None:
        self._said = said
        self._debts = debts
        self._fields = fields
        self._was = dict.fromkeys(said, "")
        self._sealed: dict[str, tuple[str, ...]] = dict.fromkeys(said, ())

    def partial(self, channel: str, text: str, heard_ms: float = 0.0) -> list[Any]:
        """The messages by which the channel's open segment becomes `text`; none where it has no partials."""
        say = self._said[channel].partial
        if say is None:
            return []
        turn = Turn(self._was[channel], text, False, self._sealed[channel], heard_ms, self._fields)
        self._was[channel] = text
        return say(turn)

    def final(self, channel: str, text: str, heard_ms: float = 0.0) -> list[Any]:
        """The messages by which the channel's open segment becomes `text` for good."""
        turn = Turn(self._was[channel], text, True, self._sealed[channel], heard_ms, self._fields)
        self._was[channel] = ""
        self._sealed[channel] += (text,)
        messages = self._said[channel].final(turn)
        return [*self._debts.before(messages), *messages]


def _found(how: Compiled, channel: str) -> Way | None:
    """The best way to speak on a channel that the profile understands; None where no rule gives it text."""
    given = how.profile.simulate
    partials = list(_ways(how.profile, channel, "partial", given.partial))
    finals = list(_ways(how.profile, channel, "final", given.final)) or partials
    reasons: list[str] = []
    found: list[Way] = []
    nothing: list[tuple[str, Say | None]] = [("", None)]
    for (name, partial), (final_name, final) in itertools.product(partials or nothing, finals):
        try:
            found.append(_understood(how, channel, partial, final))
        except (invert.NoInverseError, SpeakerError) as error:
            reasons.append(f"{' and '.join(filter(None, dict.fromkeys((name, final_name))))}: {error}")
    if reasons and not found:
        hint = "give simulate.partial and simulate.final, or say it more simply"
        raise SpeakerError(
            [f"channel {channel} cannot be spoken by {reason}; {hint}" for reason in dict.fromkeys(reasons)]
        )
    return min(found, key=lambda way: (way.timeless, way.length), default=None)


def _spoken_on(rule: Rule, profile: Profile) -> str:
    """The declared channel of a rule."""
    return (rule.channel or next(iter(profile.channels))).partition(":{")[0]


def _by_media_rule(rule: Rule, media: MediaRule) -> MediaWay:
    """The least message on which the rule fires, with the coded media in its place."""

    def message(data: bytes) -> Any:
        item = invert.fitting(Condition(match=rule.where)) if rule.where else None
        coded = data.hex() if media.base64 is None else base64.b64encode(data).decode("ascii")
        if rule.each is None:
            return invert.put(invert.fitting(rule), media.base64 or media.hex or "@", coded)
        return _put_item(invert.fitting(rule), rule.each, invert.put(item, media.base64 or media.hex or "@", coded))

    return MediaWay(media, message)


def _ways(profile: Profile, channel: str, kind: Kind, given: Any) -> Iterator[tuple[str, Say]]:
    if given is not None:
        yield f"simulate.{kind}", _template(given)
        return
    for at, rule in enumerate(profile.receive.rules):
        if rule.text is None or _spoken_on(rule, profile) != channel:
            continue
        if rule.text.final is (kind == "partial") and rule.text.model in FLAGGED:
            continue
        yield f"receive.rules[{at}] ({rule.text.model})", _by_rule(rule, rule.text)


def _by_rule(rule: Rule, text: TextRule) -> Say:
    return lambda turn: [_message(rule, text, step, turn) for step in MODELS[text.model](text, turn)]


def _understood(how: Compiled, channel: str, partial: Say | None, final: Say) -> Way:
    """Say `SAMPLES` in this way. SpeakerError where something else is heard."""
    hearing = Hearing(how, 1 << 26, SAMPLE_FIELDS)
    length, at_ns, was = 0, 0, ""
    for now in SAMPLES[:-1]:
        if partial is not None:
            length += _hear(how, hearing, channel, partial(Turn(was, now, final=False)), now, at_ns := at_ns + 1)
            was = now
    length += _hear(how, hearing, channel, final(Turn(was, SAMPLES[-1], final=True)), SAMPLES[-1], at_ns + 1)
    marked = _shown(hearing, channel).settled_text != ""
    hearing.promote()
    shown = _shown(hearing, channel)
    if shown.settled_text.split() != SAMPLES[-1].split():
        raise SpeakerError([f"its text does not become final, but stays {shown.settled_text!r}"])
    return Way(shown.segments[-1].end_s is None, length, partial, final, marked)


def _shown(hearing: Hearing, channel: str) -> Channel:
    return next(part for name, part in hearing.channels().items() if name.partition(":")[0] == channel)


def _hear(how: Compiled, hearing: Hearing, channel: str, messages: list[Any], text: str, at_ns: int) -> int:
    length = 0
    for message in messages:
        raw = _encoded(how.profile, message, sse=False)
        length += len(raw)
        heard_all = [*hearing.listen(raw, at_ns), *(hearing.flush(at_ns) if _alone(how.profile) else ())]
        for heard in heard_all:
            if heard.ending:
                raise SpeakerError([f"{_short(message)} is heard as {heard.ending[1]}"])
    shown = {name: part.text for name, part in hearing.channels().items() if name.partition(":")[0] == channel}
    if [value.split() for value in shown.values()] != [text.split()]:
        raise SpeakerError([f"{_short(messages)} is heard as {shown or 'nothing'}, not as {text!r}"])
    return length


@dataclass(frozen=True, slots=True)
class Lines:
    """A list that a selector shall give, element for element."""

    items: list[Any]


Fill = list[tuple[str, Any]]  # selectors on the item, and what they shall give


def _message(rule: Rule, text: TextRule, fill: Fill, turn: Turn) -> Any:
    """The least message on which `rule` fires and its selectors give what `fill` says."""
    message = invert.fitting(rule)
    item = message if rule.each is None else None
    if rule.where:
        item = invert.fitting(Condition(match=rule.where), item)
    for name in _message_fields(rule.channel or ""):
        item = invert.put(item, name, turn.fields.get("clip.target_lang") or "en")
    for selector, value in fill:
        item = (
            invert.put_all(item, selector, value.items)
            if isinstance(value, Lines)
            else invert.put(item, selector, value)
        )
    item = keyed(rule, item, turn.key)
    if isinstance(text.final, str) and text.model in FLAGGED:
        item = invert.decide(item, text.final, turn.final)
    if text.model not in ("tokens", "snapshot"):  # whose times stand with each token, or line
        item = _timed(text, turn, item)
    if rule.each is None:
        return item
    return _put_item(message, rule.each, item)


def _timed(text: TextRule, turn: Turn, item: Any) -> Any:
    for when, heard_ms in ((text.start, 0.0), (text.end, turn.heard_ms)):
        if when and when != text.key:
            item = invert.put(item, when, _media_time(heard_ms, text.unit))
    return item


def _put_item(message: Any, each: str, item: Any) -> Any:
    steps = invert.path(invert.parsed(each))
    if not any(isinstance(step, invert.Element) for step in steps):
        return invert.place(message, steps, [item])
    return invert.place(message, steps, item)


def _message_fields(channel: str) -> list[str]:
    """The selectors in a channel's name, such as the language in `translation:{language}`."""
    names = [part.partition("}")[0] for part in channel.split("{")[1:]]
    return [name for name in names if not name.startswith(("session.", "clip.", "param.", "captured."))]


def _media_time(ms: float, unit: str) -> Any:
    seconds = ms / 1000
    hms = f"{int(seconds // 3600)}:{int(seconds // 60) % 60:02d}:{seconds % 60:05.2f}"
    return {"s": round(seconds, 3), "ms": round(ms), "10ms": round(ms / 10), "hms": hms}.get(unit, f"{seconds:.3f}")


def _unkeyed(rule: TextRule, turn: Turn) -> list[Fill]:
    return [[(rule.text or "@", turn.text(rule))]]


def _keyed(rule: TextRule, turn: Turn) -> list[Fill]:
    said: list[Fill] = [[_key(rule, turn.key), (rule.text or "@", turn.text(rule))]]
    if turn.final and rule.final is False and rule.seals_lower:
        said.append([_key(rule, turn.key + 1), (rule.text or "@", "")])
    return said


def _delta(rule: TextRule, turn: Turn) -> list[Fill]:
    key = [_key(rule, turn.key)] if rule.key else []
    if rule.replace and (turn.final or rule.text is None):
        return [[*key, (rule.replace, turn.now)]]
    added = _added(turn)
    if turn.sealed and not turn.was and added[:1].isascii():
        added = f" {added}"  # where nothing is ever final, all texts are one
    return [[*key, (rule.text or "@", added.strip() if rule.join else added)]]


def _snapshot(rule: TextRule, turn: Turn) -> list[Fill]:
    texts = [*turn.sealed, turn.now] if turn.final else list(turn.sealed)
    lines: list[Any] = list(texts)
    if rule.text:
        lines = [_timed(rule, turn, invert.put(None, rule.text, text)) for text in texts]
    if rule.committed is None or (rule.tail is None and not turn.final):
        raise invert.NoInverseError("a snapshot without committed and tail")
    fill: Fill = [(rule.committed, Lines(lines))]
    ends = turn.final and any(isinstance(step, invert.Element) for step in invert.path(invert.parsed(rule.tail or "@")))
    return [fill if ends or rule.tail is None else [*fill, (rule.tail, "" if turn.final else turn.now)]]


def _tokens(rule: TextRule, turn: Turn) -> list[Fill]:
    token = _timed(rule, turn, invert.put(None, rule.text or "@", turn.text(rule)))
    if rule.items is None:
        lists = ((rule.committed, turn.final), (rule.tail, not turn.final))
        if not any(name for name, said in lists if said):
            raise invert.NoInverseError("tokens without committed and tail")
        return [[(name, Lines([token] if said else [])) for name, said in lists if name]]
    if isinstance(rule.final, str):
        token = invert.decide(token, rule.final, turn.final)
    return [[(rule.items, Lines([token]))]]


def _edit(rule: TextRule, turn: Turn) -> list[Fill]:
    if rule.key:
        range_ = [(name, str(turn.key)) for name in (rule.from_key, rule.to_key) if name and turn.was]
        return [[_key(rule, turn.key), *range_, (rule.text or "@", turn.now)]]
    kept = _common(turn.was, turn.now)
    gone = turn.was[len(kept) :]
    if rule.unit_of_delete == "words" and gone:
        kept = kept[: kept.rfind(" ") + 1]  # whole words go
        gone = turn.was[len(kept) :]
    amount = {"text": gone, "words": len(gone.split()), "characters": len(gone)}[rule.unit_of_delete]
    return [[*([(rule.delete, amount)] if rule.delete else []), (rule.text or "@", turn.now[len(kept) :])]]


def _labels(rule: TextRule, turn: Turn) -> list[Fill]:
    sure = [(rule.confidence, 0.99)] if rule.confidence else []
    before = "".join(turn.was.split()[-1:])
    said: list[str] = []
    for label in _added(turn).split():
        if label == before and rule.collapse and rule.ignore:
            said.append(rule.ignore[0])  # parts two equal signs
        said += [label] * rule.accept_after
        before = label
    return [[(rule.text or "@", label), *sure] for label in said]


def _key(rule: TextRule, number: int) -> tuple[str, Any]:
    return rule.key or "key", number if rule.order == "number" else f"{number:06d}"


MODELS: dict[str, Callable[[TextRule, Turn], list[Fill]]] = {
    "unkeyed": _unkeyed,
    "keyed": _keyed,
    "delta": _delta,
    "snapshot": _snapshot,
    "tokens": _tokens,
    "edit": _edit,
    "labels": _labels,
}
FLAGGED = ("unkeyed", "keyed", "delta")  # the models whose message itself says whether it is final


def _added(turn: Turn) -> str:
    """What `now` has that `was` had not; all of it where it is no continuation."""
    return turn.now.removeprefix(turn.was) if turn.now.startswith(turn.was) else turn.now


def _common(was: str, now: str) -> str:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(was, now, strict=False))
    return "".join(pair[0] for pair in same)


def _template(template: Any) -> Say:
    return lambda turn: [_filled(template, {**turn.fields, "text": turn.now, "key": str(turn.key)})]


def _filled(template: Any, fields: Fields) -> Any:
    """A template of `simulate` with {text} and the session's fields put in; a text goes out as it is."""
    if isinstance(template, dict):
        return {key: _filled(value, fields) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, fields) for value in template]
    if isinstance(template, str):
        for name, value in fields.items():
            template = template.replace(f"{{{name}}}", value)
    return template


def _named(profile: Profile, at: int) -> str:
    """A step that waits, as a profile's author knows it."""
    opening = len(profile.open)
    return f"open[{at}].wait" if at < opening else f"begin[{at - opening}].wait"


def _answer(condition: Condition, branches: Branches) -> Any:
    message = invert.fitting(condition)
    for name, selector in condition.capture.items() if isinstance(condition, WaitPart) else ():
        message = invert.put(message, selector, branches.value(name))
    return message or {"type": "ready"}


def _complaint(rule: Rule, detail: str) -> Any:
    message = invert.fitting(rule)
    return invert.put(message, rule.detail, detail) if rule.detail else message


def _fits(condition: Condition, item: Any) -> bool:
    return compile_condition(condition.has, condition.match, condition.like)(item)


def _decoded(profile: Profile, message: Any) -> list[Any]:
    raw: str | bytes = _encoded(profile, message, sse=False)
    if profile.receive.framing == "message":
        return decode_message(profile.receive, raw)
    framer = Framer(profile.receive.framing)
    said = [*framer.feed(raw, 0), *(framer.flush(0) if _alone(profile) else ())]
    return [item for text, _ in said for item in decode_message(profile.receive, text)]


def _alone(profile: Profile) -> bool:
    """A response is one message, which its end completes."""
    return profile.receive.framing == "body"


def _encoded(profile: Profile, message: Any, *, sse: bool) -> str:
    receive = profile.receive
    text = _body(profile, message)
    if receive.framing in ("message", "body"):
        return text
    if receive.framing == "sse" or (receive.framing == "auto" and sse):
        return "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"
    return text + "\n"


def _body(profile: Profile, message: Any) -> str:
    if isinstance(message, str):
        return message
    if isinstance(message, dict) and message.keys() == {"sentinel"}:
        return str(message["sentinel"])
    receive = profile.receive
    if receive.decode == "nested" and receive.nested:
        inner = invert.found(message, receive.nested)
        if inner is not None:
            message = invert.put(message, receive.nested, _dumped(inner))
    return _dumped([message] if receive.decode == "array" else message)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _short(message: Any) -> str:
    return _dumped(message)[:160]
