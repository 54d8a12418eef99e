"""Conversations as data: what a service says and when, and what a profile must make of it.

Each file of `conversations/` is one. Times are seconds from the beginning, which is the dial unless there is a prelude;
the connection stands as soon as it is dialled, and media starts when the opening is through. Unknown keys are errors.
What a file does not expect is not compared; `null` expects nothing.
"""

import base64
import json
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from ruamel.yaml import YAML

from loadbench.results.media import MediaOutput
from loadbench.results.record import Channel, Segment, SessionRecord, Utterance
from loadbench.session.load import load_profile
from loadbench.session.profile import Profile
from loadbench.session.wire import Answer as Answered
from loadbench.session.wire import Ask, Cause, Send
from tests.session.scripted import DIAL_NS, Event, Play, S

CONVERSATIONS = Path(__file__).parent / "conversations"
NEAR_S = 1e-6


class Part(BaseModel):
    """Unknown keys are errors everywhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Close(Part):
    """The service closes; no code is the regular end of a response."""

    code: int | None = None
    reason: str = ""


class Answer(Part):
    """The head of a response: a stream where it begins one, a refusal where it stands instead of one."""

    status: int
    content_type: str = ""
    body: str = ""


class Deed(Part):
    """What the service does at one time; exactly one thing. `say` is JSON, framed as the profile wants it.

    Within it `{pcm: [N, LEVEL]}` stands for the base64 of N samples of that level, s16le.
    """

    at: float
    say: Any = None
    text: str | None = None
    base64: str | None = None
    answer: Answer | None = None
    refuse: Answer | None = None
    close: Close | None = None
    drop: Literal["reset", "eof"] | None = None

    @model_validator(mode="after")
    def _one(self) -> "Deed":
        if len(self.model_fields_set - {"at"}) != 1:
            raise ValueError(f"at {self.at} s the service does exactly one thing, not {sorted(self.model_fields_set)}")
        return self


class Asked(Part):
    """A request of the prelude, as it must be (method and address, JSON body), and its answer, `after` so long."""

    request: str
    json_: Any = Field(None, alias="json")
    after: float
    status: int
    answer: Any = None

    def given(self) -> tuple[float, Answered]:
        """The answer as the player takes it."""
        return self.after, Answered(0, self.status, json.dumps(self.answer, ensure_ascii=False).encode())


class Sent(Part):
    """A message of the client's beside the media; `at` where its time matters."""

    text: str | None = None
    json_: Any = Field(None, alias="json")
    base64: str | None = None
    end_body: Literal[True] | None = None
    at: float | None = None


class ExpectedSegment(Part):
    """A segment with the service's own times (`start_s`, `end_s`) and ours."""

    text: str
    key: str | None = None
    first_s: float | None = None
    changed_s: float | None = None
    final_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    promoted: bool = False


class ExpectedMedia(Part):
    """Output media as `results.media` has it; `gaps` are pairs of seconds, from when and how long."""

    first_byte_s: float | None = None
    first_sound_s: float | None = None
    first_frame_s: float | None = None
    playback_end_s: float | None = None
    bytes: int = 0
    pieces: int = 0
    frames: int | None = None
    broken: int = 0
    gaps: list[tuple[float, float]] = []


class ExpectedChannel(Part):
    """A channel: `segments` are all of its segments that bear text, in order."""

    segments: list[ExpectedSegment] = []
    text: str = ""
    first_s: float | None = None
    first_final_s: float | None = None
    last_final_s: float | None = None
    finality: str = ""
    empty: int = 0
    media: ExpectedMedia | None = None


class ExpectedUtterance(Part):
    """One clip. `channels` are all that bear text or media. `clock` rows are [seconds, processed ms, final ms], and
    behind them the lag in ms, where one is told.
    """

    outcome: str = ""
    done_rule: str = ""
    done_s: float | None = None
    eos_s: float | None = None
    media_s: float | None = Field(None, description="media zero")
    channels: dict[str, ExpectedChannel] = {}
    clock: list[tuple[float | None, ...]] = []


class Expect(ExpectedUtterance):
    """The session with its first utterance; `then` are the others. `cause` and `warnings` are parts of sentences."""

    ready_s: float | None = None
    side: str = ""
    ended_s: float | None = None
    cause: str = ""
    warnings: list[str] = []
    messages: dict[str, int] = Field({}, description="by kind, those that matter")
    acked: int = 0
    then: list[ExpectedUtterance] = []


class Conversation(Part):
    """One file. `media_s` are the lengths of the clips; the player sends no silence behind them."""

    profile: str
    about: str = Field(min_length=10)
    params: dict[str, str] = {}
    secrets: dict[str, str] = {}
    fields: dict[str, str] = {}
    media_s: list[float] = Field([2.0], min_length=1)
    prelude: list[Asked] = []
    service: list[Deed]
    sent: list[Sent] | None = None
    expect: Expect


def names() -> list[str]:
    """All conversations."""
    return sorted(path.stem for path in CONVERSATIONS.glob("*.yaml"))


def read(text: str) -> Conversation:
    """A conversation from its YAML. Raises pydantic's ValidationError."""
    return Conversation.model_validate(YAML(typ="safe", pure=True).load(text))


@cache
def load(name: str) -> Conversation:
    """A conversation by its name. Raises pydantic's ValidationError."""
    return read((CONVERSATIONS / f"{name}.yaml").read_text(encoding="utf-8"))


def play(talk: Conversation) -> Play:
    """Let it take place in virtual time."""
    profile = load_profile(talk.profile)
    refused = any(deed.refuse is not None for deed in talk.service)
    framed = _Framed(profile)
    return Play(
        profile,
        [(deed.at, framed.event(deed)) for deed in talk.service],
        media_s=tuple(talk.media_s),
        fields=_fields(talk, profile),
        opens=not refused,
        answers=[asked.given() for asked in talk.prelude],
    ).run()


def _fields(talk: Conversation, profile: Profile) -> dict[str, str]:
    """What an engine would fill in, with fixed values."""
    usual = {"session.uuid": "00000000-0000-4000-8000-000000000001", "time.unix": "1764000000"}
    usual |= {"time.unix_ms": "1764000000000", "host": "127.0.0.1", "port": "80"}
    usual |= {"clip.source_lang": "en", "clip.target_lang": "en"}
    usual |= {f"param.{name}": value for name, value in (profile.params | talk.params).items()}
    return usual | {f"secret.{name}": value for name, value in talk.secrets.items()} | talk.fields


class _Framed:
    """Deeds as the player takes them; JSON is framed as the content type that was answered says."""

    def __init__(self, profile: Profile) -> None:
        self._framing = profile.receive.framing

    def event(self, deed: Deed) -> Event:
        """What the player is told."""
        if deed.close is not None:
            return Cause("closed", 0, code=deed.close.code, reason=deed.close.reason)
        if deed.drop is not None:
            return Cause(deed.drop, 0, by="network")
        if deed.refuse is not None:
            return Cause("rejected", 0, status=deed.refuse.status, body=deed.refuse.body.encode())
        if (answer := deed.answer) is not None:
            if self._framing == "auto":
                self._framing = "sse" if answer.content_type.startswith("text/event-stream") else "lines"
            return lambda play, at_ns: play.talk.answered(answer.status, at_ns, answer.content_type)
        if deed.base64 is not None:
            return base64.b64decode(deed.base64)
        return deed.text if deed.text is not None else self._json(deed.say)

    def _json(self, value: Any) -> str:
        text = json.dumps(_filled(value), ensure_ascii=False)
        if self._framing == "sse":
            return f"data: {text}\n\n"
        return f"{text}\n" if self._framing in ("lines", "auto") else text


def _filled(value: Any) -> Any:
    """With its samples."""
    if isinstance(value, dict):
        if value.keys() == {"pcm"}:
            count, level = value["pcm"]
            return base64.b64encode(struct.pack("<h", level) * count).decode()
        return {name: _filled(item) for name, item in value.items()}
    return [_filled(item) for item in value] if isinstance(value, list) else value


# ---- what differs


def differences(talk: Conversation, played: Play) -> list[str]:
    """Every expectation that is not met, a sentence each."""
    record, expected = played.record, talk.expect
    told = list(_of_session(record, expected, played))
    for number, (wanted, found) in enumerate(zip([expected, *expected.then], record.utterances, strict=False)):
        where = f"utterance {number + 1}: " if expected.then else ""
        told += [where + sentence for sentence in _of_utterance(found, wanted)]
    if len(expected.then) + 1 != len(record.utterances) and expected.then:
        told.append(f"there are {len(record.utterances)} utterances, expected {len(expected.then) + 1}")
    told += _of_prelude(played, talk.prelude)
    if talk.sent is not None:
        told += _of_sent(played, talk.sent)
    return told


def _of_session(record: SessionRecord, expected: Expect, played: Play) -> Iterator[str]:
    given = expected.model_fields_set
    found = {
        "outcome": record.outcome,
        "side": record.side,
        "ready_s": _seconds(record.ready_ns),
        "ended_s": _seconds(record.ended_ns),
        "acked": played.talk.acked,
    }
    yield from _unequal("the session", {name: found[name] for name in found if name in given}, expected)
    if record.outcome != expected.outcome and record.cause:
        yield f"the cause is {record.cause!r}"
    if expected.cause not in record.cause:
        yield f"the cause is {record.cause!r}, expected to hold {expected.cause!r}"
    if "warnings" in given:
        if len(record.warnings) != len(expected.warnings):
            yield f"the warnings are {record.warnings}, expected {expected.warnings}"
        for part, warning in zip(expected.warnings, record.warnings, strict=False):
            if part not in warning:
                yield f"a warning is {warning!r}, expected to hold {part!r}"
    for kind, count in expected.messages.items():
        if record.messages.get(kind, 0) != count:
            yield f"{record.messages.get(kind, 0)} messages are of kind {kind}, expected {count}: {record.messages}"


def _of_utterance(found: Utterance, expected: ExpectedUtterance) -> Iterator[str]:
    given = expected.model_fields_set
    values = {
        "done_rule": found.done_rule,
        "done_s": _seconds(found.done_ns),
        "eos_s": _seconds(found.eos_ns),
        "media_s": _seconds(found.media_zero_ns),
    }
    if not isinstance(expected, Expect):
        values["outcome"] = found.outcome
    yield from _unequal("the utterance", {name: values[name] for name in values if name in given}, expected)
    if "clock" in given:
        rows = [
            (_seconds(row.at_ns), row.processed_ms, row.final_ms, *([] if row.lag_ms is None else [row.lag_ms]))
            for row in found.clock
        ]
        if rows != expected.clock:
            yield f"the media clock is {rows}, expected {expected.clock}"
    if "channels" not in given:
        return
    spoken = {name: channel for name, channel in found.channels.items() if channel.segments or channel.media}
    if spoken.keys() != expected.channels.keys():
        yield f"channels with output are {sorted(spoken)}, expected {sorted(expected.channels)}"
    for name in spoken.keys() & expected.channels.keys():
        yield from _of_channel(name, spoken[name], expected.channels[name])


def _of_channel(name: str, found: Channel, expected: ExpectedChannel) -> Iterator[str]:
    given = expected.model_fields_set
    values = {
        "text": found.text,
        "first_s": _seconds(found.first_ns),
        "first_final_s": _seconds(found.first_final_ns),
        "last_final_s": _seconds(found.last_final_ns),
        "finality": found.finality,
        "empty": found.empty,
    }
    yield from _unequal(f"channel {name}", {key: values[key] for key in values if key in given}, expected)
    if expected.media is not None:
        yield from _of_media(f"channel {name}, media", found.media, expected.media)
    if "segments" not in given:
        return
    texts = [segment.text for segment in found.segments]
    if len(texts) != len(expected.segments):
        yield f"channel {name} has the segments {texts}, expected {[each.text for each in expected.segments]}"
    for number, (segment, wanted) in enumerate(zip(found.segments, expected.segments, strict=False)):
        yield from _of_segment(f"channel {name}, segment {number + 1}", segment, wanted)


def _of_media(where: str, found: MediaOutput | None, expected: ExpectedMedia) -> Iterator[str]:
    if found is None:
        yield f"{where}: there is none"
        return
    values = {
        "first_byte_s": _seconds(found.first_byte_ns),
        "first_sound_s": _seconds(found.first_sound_ns),
        "first_frame_s": _seconds(found.first_frame_ns),
        "playback_end_s": _seconds(found.playback_end_ns),
        "bytes": found.bytes,
        "pieces": found.pieces,
        "frames": found.frames,
        "broken": found.broken,
        "gaps": [(_seconds(at_ns), length_ns / S) for at_ns, length_ns in found.gaps],
    }
    given = expected.model_fields_set
    yield from _unequal(where, {name: values[name] for name in values if name in given}, expected)


def _of_segment(where: str, found: Segment, expected: ExpectedSegment) -> Iterator[str]:
    values = {
        "text": found.text,
        "key": found.key,
        "first_s": _seconds(found.first_ns),
        "changed_s": _seconds(found.changed_ns),
        "final_s": _seconds(found.final_ns),
        "start_s": found.start_s,
        "end_s": found.end_s,
        "promoted": found.promoted,
    }
    given = expected.model_fields_set | {"promoted"}
    yield from _unequal(where, {name: values[name] for name in values if name in given}, expected)


def _of_prelude(played: Play, expected: list[Asked]) -> Iterator[str]:
    found = [action for _, action in played.did if isinstance(action, Ask)]
    if len(found) != len(expected):
        yield f"the prelude asked {len(found)} times, expected {len(expected)}"
    for number, (ask, wanted) in enumerate(zip(found, expected, strict=False)):
        where = f"request {number + 1} of the prelude"
        if f"{ask.method} {ask.url}" != wanted.request:
            yield f"{where} is {ask.method} {ask.url}, expected {wanted.request}"
        if (body := None if ask.body is None else json.loads(ask.body)) != wanted.json_:
            yield f"{where} has the body {body}, expected {wanted.json_}"


def _of_sent(played: Play, expected: list[Sent]) -> Iterator[str]:
    found = [(at, action) for at, action in played.did if isinstance(action, Send)]
    if len(found) != len(expected):
        shown = [action.payload[:60] for _, action in found]
        yield f"beside the media {len(found)} messages were sent, expected {len(expected)}: {shown}"
    for number, ((at, action), wanted) in enumerate(zip(found, expected, strict=False)):
        where = f"message {number + 1} of ours"
        if wanted.at is not None and abs(at - wanted.at) > NEAR_S:
            yield f"{where} was sent at {at:g} s, expected at {wanted.at:g} s"
        kind, payload = _message(wanted)
        same = json.loads(action.payload) == wanted.json_ if payload is None and action.kind == kind else None
        if action.kind != kind or (payload is not None and action.payload != payload) or same is False:
            yield f"{where} is {action.kind} {action.payload[:200]!r}, expected {kind} {payload or wanted.json_!r}"


def _message(sent: Sent) -> tuple[str, bytes | None]:
    """Kind and exact bytes; None where any JSON of that value will do."""
    if sent.end_body:
        return "end", b""
    if sent.base64 is not None:
        return "binary", base64.b64decode(sent.base64)
    return "text", None if sent.text is None else sent.text.encode()


def _unequal(where: str, found: dict[str, Any], expected: Part) -> Iterator[str]:
    for name, value in found.items():
        wanted = getattr(expected, name)
        near = isinstance(value, float) and isinstance(wanted, int | float) and abs(value - wanted) <= NEAR_S
        if value != wanted and not near:
            yield f"{where}: {name} is {value!r}, expected {wanted!r}"


def _seconds(at_ns: int | None) -> float | None:
    return None if at_ns is None else round((at_ns - DIAL_NS) / S, 9)
