"""A profile made ready to be followed: templates, selectors and conditions compiled once, shared by all its sessions.

Nothing here changes after it was made. Spans are whole nanoseconds.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from loadbench.session.plugin import NONE, Framing, Plugins
from loadbench.session.prelude import Request, compile_prelude
from loadbench.session.profile import (
    Condition,
    DoneRule,
    EndStep,
    MediaClock,
    MediaFormat,
    MediaRule,
    OpenStep,
    PollStep,
    Profile,
    Quiet,
    Rule,
    SendPart,
    StatusRule,
    WaitPart,
    When,
)
from loadbench.session.select import SELECT_ERRORS, compile_condition, compile_selector
from loadbench.session.signing import Signing, compile_signing
from loadbench.session.template import compile_json, compile_text
from loadbench.session.text import CompiledText, RuleError, compile_rule
from loadbench.session.wire import Kind

Selector = Callable[[Any], Any]
Test = Callable[[Any], bool]
Fields = Mapping[str, str]

_FIELDS = (
    "session.",
    "clip.",
    "param.",
    "captured.",
)  # what a channel's name may take from the session, not the message


@dataclass(frozen=True, slots=True)
class Say:
    """Send one message. `counts`: it tells how much has been sent so far."""

    kind: Kind
    render: Callable[[Fields], bytes]
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Expect:
    """Wait for a message that fits, and keep values of it."""

    fits: Test
    timeout_ns: int | None
    capture: dict[str, Selector]
    may_be_empty: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Lull:
    """Wait until nothing has come for a while, but not for ever."""

    for_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Wait for the event after which nothing more can come."""

    on: frozenset[str]
    fits: Test | None
    timeout_ns: int | None
    quiet_ns: int | None = None
    target_closes: bool = False

    @property
    def by_close(self) -> bool:
        """The end of the connection, or of the response, is the event."""
        return not self.on.isdisjoint(("close", "end_of_response"))


@dataclass(frozen=True, slots=True)
class Grace:
    """Let what is late arrive."""

    for_ns: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """End the session: what the service wants is not what the profile can do."""

    sentence: Callable[[Fields], str]


@dataclass(frozen=True, slots=True)
class Polling:
    """Make a request again and again, until the output is done."""

    request: Say
    every_ns: int


Deed = Say | Polling | Expect | Lull | Finish | Grace | Refuse


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a script; `when` (None: always) decides from a session's fields whether it is taken."""

    do: Deed
    when: Callable[[Fields], bool] | None = None

    def taken(self, fields: Fields) -> bool:
        """Whether a session with these fields takes it."""
        return self.when is None or self.when(fields)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end script of one session. `mark` is the step that is the end mark; None: there is none."""

    steps: tuple[Deed, ...]
    mark: int | None
    finish: Finish | None


@dataclass(frozen=True, slots=True)
class Clock:
    """How messages tell where in the media the service is; None: they do not."""

    processed: Selector | None
    final: Selector | None
    lag: Selector | None
    unit: Literal["s", "ms", "10ms", "hms"]


@dataclass(frozen=True, slots=True)
class Status:
    """What a refusal or a close means."""

    status: frozenset[int]
    close_code: frozenset[int]
    reason: re.Pattern[str] | None
    before_output: bool
    outcome: str

    def fits(self, text: str) -> bool:
        """The reason, or the body, is one that this rule speaks of."""
        return self.reason is None or self.reason.search(text) is not None


@dataclass(frozen=True, slots=True)
class CompiledMedia:
    """Where the media of an item stands, and how it is coded. `decode` raises ValueError for what is not."""

    form: MediaFormat
    select: Selector
    decode: Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A rule for messages. `whole`: the message is the item. `channel` is the channel's name, or finds it."""

    fits: Test
    each: Selector | None
    where: Test | None
    whole: bool
    channel: str | Callable[[Fields, Any], str]
    text: CompiledText | None
    media: CompiledMedia | None
    event: Literal["ready", "ack", "done", "pending", "settled", "speech_start", "speech_end", "ignore"] | None
    key: Selector | None
    outcome: str | None
    detail: Selector | None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A profile, ready to be followed. `usual_end` is the end script where no step of it has a condition.

    `promote_after_ns` is how long a text must stay as it is to become final; None: only the end of the output does it.
    """

    profile: Profile
    signing: Signing
    prelude: tuple[Request, ...]
    opening: tuple[Step, ...]
    begin: tuple[Step, ...]
    end: tuple[Step, ...]
    usual_end: Ending | None
    meanings: tuple[Meaning, ...]
    statuses: tuple[Status, ...]
    first_only: bool
    expected: frozenset[int]
    ack: Test | None
    echo: Selector | None
    promote_after_ns: int | None
    keepalive: Say | None
    clock: Clock | None
    framing: Framing | None

    def ending(self, fields: Fields) -> Ending:
        """The end script of a session with these fields."""
        return self.usual_end or _ending(step.do for step in self.end if step.taken(fields))

    def status_of_answer(self, status: int | None, body: str) -> str | None:
        """The outcome that the profile gives to an HTTP answer."""
        return next((rule.outcome for rule in self.statuses if status in rule.status and rule.fits(body)), None)

    def status_of_close(self, code: int | None, reason: str, *, said: bool) -> str | None:
        """The outcome that the profile gives to a close code; `said`: there had been a text."""
        rules = [rule for rule in self.statuses if not (said and rule.before_output)]
        return next((rule.outcome for rule in rules if code in rule.close_code and rule.fits(reason)), None)


def compile_profile(profile: Profile, plugins: Plugins = NONE) -> Compiled:
    """Make a profile ready; once for all sessions. `plugins` are those that it names; KeyError where they lack one."""
    if profile.transport.codec is not None and plugins.framing is None:
        raise KeyError(profile.transport.codec.kind)
    end = [step for part in profile.end if (step := _end_step(part)) is not None]
    if profile.close.grace_s:
        end.append(Step(Grace(nanoseconds(profile.close.grace_s))))
    ack = profile.media.ack
    quiet = profile.never_final.rule == "promote_on_quiet"
    return Compiled(
        profile=profile,
        signing=compile_signing(profile.signed),
        prelude=tuple(map(compile_prelude, profile.prelude)),
        opening=tuple(map(_open_step, profile.open)),
        begin=tuple(map(_open_step, profile.begin)),
        end=tuple(end),
        usual_end=None if any(step.when for step in end) else _ending(step.do for step in end),
        meanings=tuple(_meaning(rule, profile, plugins) for rule in profile.receive.rules),
        statuses=tuple(map(_status, profile.receive.statuses)),
        first_only=profile.receive.fire == "first",
        expected=frozenset(profile.close.expect),
        ack=None if ack is None else _always if ack.one_per_chunk else _condition(ack),
        echo=None if ack is None or ack.echo is None else compile_selector(ack.echo),
        promote_after_ns=_optional(profile.never_final.quiet_s) if quiet else None,
        keepalive=_say(profile.keepalive) if profile.keepalive else None,
        clock=_clock(profile.receive.clock) if profile.receive.clock else None,
        framing=plugins.framing,
    )


def chosen(select: Selector, item: Any) -> Any:
    """What a selector finds in an item. Raises RuleError where it cannot be evaluated on it."""
    try:
        return select(item)
    except SELECT_ERRORS as error:
        raise RuleError(f"a selector failed: {error}") from error


def nanoseconds(span_s: float) -> int:
    """Seconds of a setting as whole nanoseconds."""
    return round(span_s * 1e9)


def _optional(span_s: float | None) -> int | None:
    return None if span_s is None else nanoseconds(span_s)


def _always(_: Any) -> bool:
    return True


def _condition(part: Condition) -> Test | None:
    """None where the part names no condition."""
    return None if part.always else compile_condition(part.has, part.match, part.like)


def _say(part: SendPart) -> Say:
    given = part.model_fields_set
    if "send_json" in given:
        json = compile_json(part.send_json)
        return Say("text", json.render, _counts(json.names))
    if "send_base64" in given:
        fixed = base64.b64decode(part.send_base64 or "")
        return Say("binary", lambda _: fixed)
    text = compile_text((part.send_binary if "send_binary" in given else part.send_text) or "")
    kind: Kind = "binary" if "send_binary" in given else "text"
    return Say(kind, lambda fields: text.render(fields).encode(), _counts(text.names))


def _counts(names: Iterable[str]) -> bool:
    return any(name.startswith("count.") for name in names)


def _when(part: When | None) -> Callable[[Fields], bool] | None:
    if part is None:
        return None
    field, equals, differs = part.field, part.equals, part.differs
    if equals is not None:
        return lambda fields: fields.get(field) == equals
    return lambda fields: fields.get(field) != differs


def _open_step(part: OpenStep) -> Step:
    when = _when(part.when)
    if part.refuse is not None:
        return Step(Refuse(compile_text(part.refuse).render), when)
    return Step(_say(part) if part.wait is None else _expect(part.wait), when)


def _expect(part: WaitPart) -> Expect:
    capture = {name: compile_selector(expr) for name, expr in part.capture.items()}
    return Expect(
        _condition(part) or _always, _optional(part.timeout_s), capture, may_be_empty=frozenset(part.may_be_empty)
    )


def _end_step(part: EndStep) -> Step | None:
    """None for the silence, which is part of the media already."""
    return None if part.silence_s is not None else Step(_end_deed(part), _when(part.when))


def _end_deed(part: EndStep) -> Deed:
    match part:
        case EndStep(wait=WaitPart() as wait):
            return _expect(wait)
        case EndStep(poll=PollStep() as poll):
            line = compile_text(poll.request)
            return Polling(Say("text", lambda fields: line.render(fields).encode()), nanoseconds(poll.every_s))
        case EndStep(refuse=str() as sentence):
            return Refuse(compile_text(sentence).render)
        case EndStep(quiet=Quiet() as quiet):
            return Lull(nanoseconds(quiet.for_s), nanoseconds(quiet.max_s))
        case EndStep(end_body=True):
            return Say("end", lambda _: b"")
        case EndStep(done=DoneRule() as done):
            return Finish(
                frozenset(done.on),
                _condition(done),
                _optional(done.timeout_s),
                _optional(done.quiet_s),
                target_closes=done.closes == "target",
            )
        case EndStep(grace_s=float() as grace_s):
            return Grace(nanoseconds(grace_s))
    return _say(part)


def _ending(steps: Iterable[Deed]) -> Ending:
    """The end mark is the last message before the client waits for the end."""
    script = tuple(steps)
    finish = next((step for step in script if isinstance(step, Finish)), None)
    before = script if finish is None else script[: script.index(finish)]
    says = [index for index, step in enumerate(before) if isinstance(step, Say)]
    return Ending(script, says[-1] if says else None, finish)


def _clock(part: MediaClock) -> Clock:
    texts = (part.processed, part.final, part.lag)
    processed, final, lag = (None if text is None else compile_selector(text) for text in texts)
    return Clock(processed, final, lag, part.unit)


def _status(rule: StatusRule) -> Status:
    return Status(
        frozenset(rule.status),
        frozenset(rule.close_code),
        None if rule.reason is None else re.compile(rule.reason),
        rule.before_output,
        "target_error" if rule.outcome == "fatal" else rule.outcome,
    )


def _meaning(rule: Rule, profile: Profile, plugins: Plugins) -> Meaning:
    return Meaning(
        fits=_condition(rule) or _always,
        each=None if rule.each is None else compile_selector(rule.each),
        where=None if rule.where is None else compile_condition(None, rule.where),
        whole=rule.each is None and rule.where is None,
        channel=_channel(rule.channel or next(iter(profile.channels))),
        text=None if rule.text is None else compile_rule(rule.text, plugins),
        media=None if rule.media is None else _media(rule.media),
        event=rule.event,
        key=None if rule.key is None else compile_selector(rule.key),
        outcome="target_error" if rule.outcome == "fatal" else rule.outcome,
        detail=None if rule.detail is None else compile_selector(rule.detail),
    )


def _media(rule: MediaRule) -> CompiledMedia:
    if rule.base64 is not None:
        return CompiledMedia(rule, compile_selector(rule.base64), _from_base64)
    return CompiledMedia(rule, compile_selector(rule.hex or "@"), bytes.fromhex)


def _from_base64(text: str) -> bytes:
    """Also of a data URL, `data:image/jpeg;base64,...`."""
    return base64.b64decode(text.partition(",")[2] if text.startswith("data:") else text, validate=True)


def _channel(template: str) -> str | Callable[[Fields, Any], str]:
    """The name of a channel; `{...}` in it is a field of the session, or else a selector on the item."""
    parts = re.split(r"\{([^{}]+)\}", template)
    if len(parts) == 1:
        return template
    selectors = {field: compile_selector(field) for field in parts[1::2] if not field.startswith(_FIELDS)}

    def name(fields: Fields, item: Any) -> str:
        filled = list(parts)
        for index in range(1, len(parts), 2):
            field = parts[index]
            value = chosen(selectors[field], item) if field in selectors else fields.get(field)
            if not isinstance(value, str) or not value:
                raise RuleError(f"{{{field}}} of channel {template} gave {value!r}, not a name")
            filled[index] = value
        return "".join(filled)

    return name
