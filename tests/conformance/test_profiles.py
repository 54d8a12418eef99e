"""Each shipped profile from both sides in virtual time: a service that speaks as its simulator would, and its faults.

What is expected is worked out from the profile: the rules of its statuses, its expected closes, its done step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from loadbench.results.outcome import side
from loadbench.session.load import load_profile, shipped
from loadbench.session.profile import DoneRule, Profile
from loadbench.session.wire import Cause, Limits
from loadbench.simulator.playing import PIECE_NS, piece
from loadbench.simulator.speak import Speaker
from tests.profiles import conversation
from tests.session.scripted import DIAL_NS, Event, Play, closed, gone, since

MEDIA_S, MIDDLE_S = 2.0, 0.9
WORDS = "the red boat"
PATIENT = Limits(final_s=60.0)
NAMED = {"fatal": "target_error"}  # what a status rule calls an outcome, where the record says another word
UNNAMED_STATUS, UNNAMED_CODE, CUT = 418, 4999, 1006  # of the first two no profile speaks
Timed = tuple[float, Any]


@dataclass(frozen=True)
class Service:
    """What a profile's service says: `opening` and `partial` at their times, `rest` so long after the end mark.

    `marks`: there is an end mark of its own; else the last chunk says that it is the last, and `eos_s` is its time.
    """

    profile: Profile
    speaker: Speaker
    answers: tuple[Any, ...]
    fields: dict[str, str]
    opening: tuple[Event, ...]
    partial: tuple[Event, ...]
    rest: tuple[Timed, ...]
    eos_s: float
    start_s: float
    marks: bool = True

    def play(self, *events: Event, limits: Limits = PATIENT, opens: bool = True) -> Play:
        """These events, from the dial on."""
        return Play(
            self.profile,
            events,
            media_s=(MEDIA_S,),
            limits=limits,
            fields=self.fields,
            opens=opens,
            answers=self.answers,
        ).run()

    def begun(self, *events: Event, **more: Any) -> Play:
        """The opening and a partial, then these."""
        return self.play(*self.opening, *self.partial, *events, **more)


@cache
def service(name: str) -> Service:
    """Of a shipped profile."""
    profile = load_profile(name)
    speaker = Speaker(profile)
    talk = next(
        talk
        for talk in map(conversation.load, conversation.names())
        if talk.profile == name and talk.expect.outcome == "ok"
    )
    voice = speaker.voice(fields := conversation._fields(talk, profile))
    said_s = MEDIA_S + 0.1 if profile.media.pace == "whole" else 0.5
    partial = [(said_s, raw) for raw in _raw(speaker, _first(speaker, voice))]
    rest = [*_raw(speaker, [one for name in speaker.channels for one in voice.final(name, WORDS)])]
    rest += _raw(speaker, [*speaker.farewell, *([] if speaker.done is None else [speaker.done])])
    answers = tuple(asked.given() for asked in talk.prelude)
    start_s = sum(after for after, _ in answers)
    shift = [(start_s + at, event) for at, event in partial]
    opening = tuple(_opening(speaker, start_s))
    made = Service(profile, speaker, answers, fields, opening, tuple(shift), (), 0.0, start_s)
    utterance = made.begun().utterance
    eos_ns = utterance.eos_ns or utterance.source_end_ns
    timed = tuple((0.2 + 0.01 * at, raw) for at, raw in enumerate(rest))
    return replace(made, rest=timed, eos_s=since(DIAL_NS, eos_ns) or 0.0, marks=utterance.eos_ns is not None)


def _opening(speaker: Speaker, start_s: float) -> Iterator[Event]:
    profile, at_s = speaker.profile, start_s
    kinds = {"sse": "text/event-stream", "body": "application/json"}
    if profile.transport.kind in ("http", "requests"):
        kind = kinds.get(profile.receive.framing, "application/x-ndjson")
        yield at_s, lambda play, at: play.talk.answered(200, at, kind)
    for message in [*([] if speaker.greeting is None else [speaker.greeting]), *speaker.waits.values()]:
        at_s += 0.01
        yield at_s, "null" if message is None else speaker.wire(message)  # null: a bare answer to a request


def _first(speaker: Speaker, voice: Any) -> Iterator[Any]:
    """A partial on each channel, or what stands for one there."""
    for name in speaker.channels:
        yield from voice.partial(name, "the red")
    for way in speaker.media.values():
        yield way.message(piece(way.form, 0, PIECE_NS, 0.0))


def _raw(speaker: Speaker, messages: Any) -> list[Any]:
    return [message if isinstance(message, bytes) else speaker.wire(message) for message in messages]


def done_step(profile: Profile) -> DoneRule:
    return next(step.done for step in profile.end if step.done is not None)


def by_close(profile: Profile) -> bool:
    return bool({"close", "end_of_response"} & set(done_step(profile).on))


def of_code(profile: Profile, code: int | None, *, said: bool, marked: bool) -> str:
    """The outcome of a close, before the output was done and without a final, as the profile's own words have it."""
    for rule in profile.receive.statuses:
        if code in rule.close_code and rule.reason is None and not (rule.before_output and said):
            return NAMED.get(rule.outcome, rule.outcome)
    if code is not None and code not in profile.close.expect:
        return "lost" if code == CUT else "target_error"
    return "no_final" if marked else "closed_early"


def kinds(*wanted: str) -> list[str]:
    return [name for name in shipped() if load_profile(name).transport.kind in wanted]


SOCKETS = kinds("websocket", "http", "requests")


@pytest.mark.parametrize("name", shipped())
def test_a_service_that_speaks_as_its_profile_says_is_heard_whole(name: str) -> None:
    it = service(name)
    last_s = it.eos_s + (it.rest[-1][0] if it.rest else 0.2)
    rest = [(it.eos_s + at, event) for at, event in it.rest]
    play = it.begun(*rest, (last_s + 0.1, closed(None if it.profile.transport.kind != "websocket" else 1000)))
    record, utterance = play.record, play.utterance
    assert (record.outcome, record.cause) == ("ok", "")
    texts = {name: channel for name, channel in utterance.channels.items() if channel.media is None}
    assert texts
    assert all(channel.settled_text.split() == WORDS.split() for channel in texts.values())
    assert {name.partition(":")[0] for name in utterance.channels} == set(it.profile.channels)
    assert "internal" not in (record.outcome, *record.warnings)


@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("kind", ["reset", "eof"])
def test_a_cut_in_the_media_is_lost_and_what_was_heard_is_kept(name: str, kind: str) -> None:
    it = service(name)
    play = it.begun((it.eos_s - 0.01, gone(kind)))
    expected = of_code(it.profile, CUT, said=play.utterance.channels != {}, marked=False)
    expected = "lost" if expected == "closed_early" else expected  # expected only once the end mark is out
    assert (play.record.outcome, play.record.side) == (expected, "target"), play.record.cause
    heard = {name.partition(":")[0] for name in play.utterance.channels}
    spoken = {name for name in it.speaker.channels if it.speaker.voice(it.fields).partial(name, "x")}
    assert heard == (spoken | it.speaker.media.keys() if it.partial and it.partial[0][0] < it.eos_s else set())
    assert (play.utterance.eos_ns, play.utterance.done_ns) == (None, None)


@pytest.mark.parametrize("name", shipped())
def test_a_cut_after_the_end_mark_is_lost(name: str) -> None:
    it = service(name)
    play = it.play(*it.opening, (it.eos_s + 0.1, gone("reset")))
    expected = of_code(it.profile, CUT, said=False, marked=True)
    if expected == "no_final":
        expected = "no_output"
    assert (play.record.outcome, play.record.side) == (expected, "target"), play.record.cause
    assert (play.utterance.eos_ns is not None) == it.marks


@pytest.mark.parametrize("name", shipped())
def test_a_service_that_takes_everything_and_says_nothing_is_silent(name: str) -> None:
    it = service(name)
    play = it.play(*it.opening, limits=replace(PATIENT, silence_s=1.0))
    assert (play.record.outcome, play.record.side) == ("silent", "target"), play.record.cause
    assert play.record.utterances[0].channels == {}


@pytest.mark.parametrize("name", shipped())
def test_a_service_that_freezes_while_it_stays_connected_ends_by_the_profile_s_own_rule(name: str) -> None:
    it = service(name)
    play = it.begun(limits=Limits(final_s=20.0))
    record, how = play.record, done_step(it.profile)
    if "quiet" in how.on:
        said = any(channel.first_ns is not None for channel in play.utterance.channels.values())
        promoted = it.profile.never_final.rule != "explicit"
        expected = "no_output" if not said else "ok" if promoted else "no_final"
    else:
        expected = "no_final"
        limit_s = min(20.0, how.timeout_s or 20.0)
        assert f"no end of output within {limit_s:g} s" in record.cause
    assert (record.outcome, record.side) == (expected, side(expected)), record.cause
    assert record.utterances[0].done_ns is None


@pytest.mark.parametrize("name", SOCKETS)
def test_a_service_that_never_answers_the_opening_is_not_waited_for(name: str) -> None:
    it = service(name)
    if not it.speaker.waits:
        return  # nothing is waited for: the case above
    play = it.play(limits=Limits(ready_s=3.0))
    assert (play.record.outcome, play.record.side) == ("silent", "target"), play.record.cause
    assert "no message ever came" in play.record.cause
    assert play.record.ready_ns is None


@pytest.mark.parametrize("name", SOCKETS)
def test_a_refusal_by_status_is_what_the_profile_makes_of_that_status(name: str) -> None:
    it = service(name)
    rules = it.profile.receive.statuses
    named = {
        status: NAMED.get(rule.outcome, rule.outcome)
        for rule in reversed(rules)
        for status in rule.status
        if rule.reason is None
    }
    for status, expected in (named | {UNNAMED_STATUS: "rejected"}).items():
        play = it.play((it.start_s, Cause("rejected", 0, status=status)), opens=False)
        assert (play.record.outcome, play.record.side) == (expected, side(expected)), (status, play.record.cause)
        assert f"HTTP status {status}" in play.record.cause
        assert play.utterance.media_zero_ns is None


@pytest.mark.parametrize("name", kinds("websocket"))
@pytest.mark.parametrize("marked", [False, True])
def test_a_close_code_is_what_the_profile_makes_of_it(name: str, marked: bool) -> None:
    it = service(name)
    codes = {code for rule in it.profile.receive.statuses for code in rule.close_code}
    for code in sorted((codes | set(it.profile.close.expect) | {1000, 1011, UNNAMED_CODE}) - {CUT}):
        play = it.play(*it.opening, (it.eos_s + 0.1 if marked else MIDDLE_S, closed(code)))
        expected = of_code(it.profile, code, said=False, marked=marked)
        expected = "no_output" if expected == "no_final" else expected
        assert (play.record.outcome, play.record.side) == (expected, "target"), (code, play.record.cause)


@pytest.mark.parametrize("name", kinds("websocket"))
def test_a_refusal_on_an_open_connection_is_heard_in_the_profile_s_words(name: str) -> None:
    it = service(name)
    messages, code = it.speaker.rejection("all seats are taken")
    begin_s = it.start_s + 0.01
    raw = [(begin_s, raw) for raw in _raw(it.speaker, messages)]
    play = it.play(*raw, (begin_s + 0.01, closed(code or 1000)))
    expected = "rejected" if messages else of_code(it.profile, code or 1000, said=False, marked=False)
    assert (play.record.outcome, play.record.side) == (expected, "target"), play.record.cause
