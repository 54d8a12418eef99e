"""How a conversation ends where it does not end well: the outcome, the sentence, and what is kept."""

import json

import pytest

from loadbench.results.outcome import OUTCOMES
from loadbench.session import ending
from loadbench.session.machine import Conversation, compile_profile
from loadbench.session.wire import Abort, ClipTask, Dial, Ended, Limits, Send, Shut, StartMedia, StopMedia
from tests.session.scripted import (
    DIAL_NS,
    WHOLE,
    WORDS,
    Play,
    S,
    closed,
    done_latency,
    final_latency,
    gone,
    http,
    profile,
    since,
)


@pytest.mark.parametrize(
    ("cause", "outcome", "sentence"),
    [
        (gone("eof"), "lost", "lost without close: the connection was cut 1.50 s into the media"),
        (gone("reset"), "lost", "lost without close: the connection was reset 1.50 s into the media"),
        (closed(1006), "lost", "lost without close"),
        (closed(1000), "closed_early", "closed by target 1000 without final, 1.50 s into the media"),
        (closed(None), "closed_early", "closed by target without final"),
        (closed(1011, "overrun"), "target_error", "closed by target 1011: overrun, 1.50 s into the media"),
        (gone("protocol", reason="bad opcode"), "target_error", "broke the protocol: bad opcode"),
        (gone("too_big"), "our_limit", "message_bytes"),
        (gone("aborted", by="us"), "internal", "unasked"),
    ],
)
def test_a_connection_lost_in_the_media_keeps_its_partial_and_says_how(cause, outcome, sentence) -> None:
    play = Play(profile(), [*WORDS, (1.5, cause)]).run()
    assert (play.record.outcome, play.utterance.outcome) == (outcome, outcome)
    assert sentence in play.record.cause
    assert [type(action) for at, action in play.did if at == 1.5] == [StopMedia, Ended]
    channel = play.utterance.channels["transcript"]
    assert channel.text == "red boat leaves"
    assert channel.settled_text == ""
    assert (channel.last_final_ns, play.utterance.done_ns, play.utterance.eos_ns) == (None, None, None)
    assert play.record.connections[0].cause == cause.kind


@pytest.mark.parametrize(
    ("cause", "named"), [(closed(1000), "closed by target 1000"), (closed(None), "closed by target")]
)
def test_a_close_in_the_media_after_a_final_does_not_say_that_there_was_none(cause, named) -> None:
    play = Play(profile(), [(0.5, {"final": "red boat"}), (1.5, cause)]).run()
    assert [channel.settled_text for channel in play.utterance.channels.values()] == ["red boat"]
    assert play.record.outcome == "closed_early"
    assert play.record.cause == f"{named} after a final, 1.50 s into the media, before the end mark"


def test_a_redirect_is_told_with_where_it_points() -> None:
    cause = gone("rejected", status=307, body=b"<html>", location="http://example.com/speech")
    play = Play(profile(), [(0.0, cause)]).run()
    assert "307, a redirect to http://example.com/speech, which is not followed: <html>" in play.record.cause


@pytest.mark.parametrize(
    ("cause", "outcome", "sentence"),
    [
        (gone("refused"), "connect_failed", "nobody answers"),
        (gone("dns"), "dns", "no address"),
        (gone("tls", reason="self-signed"), "tls", "self-signed"),
        (gone("resource"), "no_resource", "file handles"),
        (gone("reset"), "connect_failed", "before it stood"),
        (gone("rejected", status=503, retry_after_s=1.0, body=b"full"), "rejected", "503, retry after 1 s: full"),
        (gone("rejected", status=401, body=b"token expired"), "auth_expired", "401: token expired"),
        (gone("rejected", status=401, body=b"who are you"), "rejected", "401"),
        (gone("rejected", status=500), "target_error", "500"),
    ],
)
def test_a_connection_that_never_stood_says_why(cause, outcome, sentence) -> None:
    how = profile(
        receive={
            "rules": [{"has": "final"}],
            "statuses": [
                {"status": [401], "reason": "expired", "outcome": "auth_expired"},
                {"status": [500, 502], "outcome": "fatal"},
            ],
        }
    )
    play = Play(how, [(0.2, cause)], opens=False).run()
    assert play.record.outcome == outcome
    assert sentence in play.record.cause
    assert play.utterance.media_zero_ns is None
    assert [type(action) for _, action in play.did] == [Dial, Ended]
    assert play.record.connections[0].retry_after_s == cause.retry_after_s


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([(3.2, closed(1000))], "no_output"),
        ([*WORDS, (3.2, closed(1000))], "no_final"),
        ([*WORDS, (3.1, {"final": "red"}), (3.2, closed(1000))], "no_final"),  # and never said that this was all
        ([*WORDS, (3.2, closed(4000))], "target_error"),
        ([*WORDS, (3.2, closed(4005))], "rejected"),
        ([*WORDS, (3.2, gone("eof"))], "lost"),
    ],
)
def test_a_close_after_the_end_mark_is_not_done_where_a_message_has_to_say_so(events, outcome) -> None:
    how = profile(
        end=[{"send_text": "eos"}, {"done": {"on": ["message"], "has": "done"}}],
        receive={
            "rules": profile().model_dump(exclude_unset=True)["receive"]["rules"],
            "statuses": [{"close_code": [4005], "outcome": "rejected"}],
        },
    )
    assert Play(how, events).run().record.outcome == outcome


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([(3.2, closed(1000))], "no_output"),
        ([*WORDS, (3.2, closed(1000))], "no_final"),
        ([*WORDS, (3.1, {"final": "red"}), (3.2, closed(1000))], "ok"),
        ([*WORDS, (3.1, {"final": ""}), (3.2, closed(1000))], "no_final"),
        ([*WORDS, (3.1, {"final": "red"}), (3.2, closed(1011))], "target_error"),
    ],
)
def test_a_close_after_the_end_mark_is_done_where_the_profile_counts_it(events, outcome) -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"on": ["close"]}}])
    play = Play(how, events).run()
    assert play.record.outcome == outcome
    assert play.utterance.done_rule == ("" if outcome == "target_error" else "close")


def test_a_service_that_drops_the_connection_by_habit_is_taken_as_closing() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"on": ["close"]}}], close={"expect": [1000, 1006]})
    for habit in (gone("eof"), gone("reset"), closed(1006)):
        assert Play(how, [(3.1, {"final": "red"}), (3.2, habit)]).run().record.outcome == "ok"


def test_such_a_service_is_lost_all_the_same_where_it_drops_the_connection_before_the_end_mark() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"on": ["close"]}}], close={"expect": [1000, 1006]})
    for cut in (gone("eof"), gone("reset"), closed(1006)):
        record = Play(how, [(0.5, {"final": "red"}), (1.5, cut)]).run().record
        assert (record.outcome, "1.50 s into the media" in record.cause) == ("lost", True)


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([(1.0, closed(1000))], "rejected"),
        ([(0.5, {"partial": ""}), (1.0, closed(1000))], "rejected"),  # an empty text is none
        ([(0.5, {"partial": "red"}), (1.0, closed(1000))], "closed_early"),
        ([(3.5, closed(1000))], "rejected"),
        ([(0.5, {"final": "red"}), (3.2, {"done": 1}), (3.3, closed(1000))], "ok"),
    ],
)
def test_a_usual_close_before_any_output_may_be_how_a_service_refuses(events, outcome) -> None:
    whole = profile().model_dump(mode="json", exclude_unset=True)["receive"]
    statuses = [{"close_code": [1000], "before_output": True, "outcome": "rejected"}]
    end = [{"send_text": "eos"}, {"done": {"on": ["message"], "has": "done"}}]
    how = profile(receive=whole | {"statuses": statuses}, end=end)
    assert Play(how, events).run().record.outcome == outcome


@pytest.mark.parametrize(
    ("after", "rule", "done_s", "ended_s"),
    [
        ([], "quiet", None, 5.0),
        ([(3.5, {"final": "boat"}), (5.0, {"partial": ""})], "quiet", None, 7.0),  # each message puts it off
        ([(3.5, {"done": 1})], "message", 3.5, 3.5),
        ([(3.5, {"final": "boat"}), (6.0, {"done": 1})], "quiet", None, 5.5),  # too late
    ],
)
def test_quiet_after_the_end_mark_ends_the_output_at_no_known_time(after, rule, done_s, ended_s) -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"on": ["message", "quiet"], "has": "done", "quiet_s": 2}}])
    play = Play(how, [(0.5, {"final": "red"}), *after]).run()
    assert (play.record.outcome, play.utterance.done_rule, play.ended_s) == ("ok", rule, ended_s)
    assert since(DIAL_NS, play.utterance.done_ns) == done_s


def test_quiet_in_the_media_ends_nothing_and_the_limit_goes_before_the_quiet() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"on": ["quiet"], "quiet_s": 2}}])
    assert Play(how, [(0.1, {"final": "red"})], media_s=(20.0,)).run().ended_s == 22.0
    late = Play(how, [(0.1, {"final": "red"})], limits=Limits(final_s=1)).run()
    assert (late.record.outcome, late.ended_s) == ("no_final", 4.0)


def test_an_odd_close_after_done_is_a_warning_and_no_failure() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"has": "done"}}, {"grace_s": 1}])
    play = Play(how, [*WHOLE, (3.5, closed(1011, "tired"))]).run()
    assert play.record.outcome == "ok"
    assert "1011" in play.record.warnings[0]


def test_done_without_a_final_on_the_headline_channel_is_not_ok() -> None:
    how = profile(
        channels={"transcript": {}, "translation": {"stage": "translation"}},
        receive={
            "rules": [
                {"has": "final", "channel": "transcript", "text": {"model": "unkeyed", "text": "final", "final": True}}
            ]
        },
    )
    play = Play(how, [(1.0, {"final": "red"}), (3.2, {"done": 1})]).run()
    assert (play.record.outcome, play.record.cause) == (
        "no_final",
        "no final on channel translation, only on transcript",
    )


def test_a_final_that_never_comes_ends_the_session_at_the_limit() -> None:
    play = Play(profile(), WORDS[:2], limits=Limits(final_s=4), mute=True).run()
    assert (play.record.outcome, play.ended_s) == ("no_final", 7.0)
    assert play.record.cause.startswith("no end of output within 4 s of the end of the media")
    assert play.utterance.channels["transcript"].last_final_ns is None
    assert since(play.utterance.source_end_ns, play.record.ended_ns) == 4.0


def test_finals_without_the_event_that_ends_them_are_not_enough() -> None:
    play = Play(profile(), WHOLE[:-1], limits=Limits(final_s=4)).run()
    assert (play.record.outcome, play.ended_s, play.text) == ("no_final", 7.0, "red boat leaves")


def test_the_done_step_may_have_a_limit_of_its_own() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"has": "done", "timeout_s": 2}}])
    play = Play(how, WORDS).run()
    assert (play.record.outcome, play.ended_s) == ("no_final", 5.0)
    assert play.record.cause.startswith("no end of output within 2 s of the end mark")


def test_our_session_limit_is_our_doing_and_keeps_what_was_said() -> None:
    events = [(n, {"partial": f"word {n}"}) for n in range(1, 9)]
    limits = Limits(session_s=5, silence_s=2)
    play = Play(
        profile(), [*events, (8.1, {"final": "words"}), (8.1, {"done": 1})], media_s=(8.0,), limits=limits
    ).run()
    assert (play.record.outcome, play.record.side, play.ended_s) == ("our_limit", "policy", 5.0)
    assert "session limit of 5 s" in play.record.cause
    assert 4 <= play.record.messages["partial"] <= 5
    free = Play(
        profile(), [*events, (8.1, {"final": "words"}), (8.1, {"done": 1})], media_s=(8.0,), limits=Limits(silence_s=2)
    ).run()
    assert free.record.outcome == "ok"


def test_a_service_that_falls_silent_is_given_up_with_the_age_of_its_last_message() -> None:
    events = [(0.5 * n, {"partial": f"word {n}"}) for n in range(1, 5)]
    play = Play(profile(), events, media_s=(6.0,), limits=Limits(silence_s=3)).run()
    assert (play.record.outcome, play.record.side, play.ended_s) == ("silent", "target", 5.0)
    assert "the last message is 3.00 s old" in play.record.cause


def test_sessions_closed_by_the_target_are_told_from_those_that_finish() -> None:
    events = [(0.5 * n, {"partial": f"word {n}"}) for n in range(1, 12)]
    plays = [Play(profile(), [*events, (4.0, closed(1011))], media_s=(6.0,)).run() for _ in range(16)]
    plays += [
        Play(profile(), [*events, (6.2, {"final": "w"}), (6.2, {"done": 1})], media_s=(6.0,)).run() for _ in range(4)
    ]
    outcomes = [play.record.outcome for play in plays]
    assert (outcomes.count("ok"), outcomes.count("target_error")) == (4, 16)
    assert all("closed by target 1011" in play.record.cause for play in plays[:16])


@pytest.mark.parametrize(
    ("events", "opening", "limits", "outcome", "ended_s", "sentence"),
    [
        ([], [], Limits(connect_s=2), "connect_failed", 2.0, "no connection within 2 s"),
        ([], [{"wait": {"has": "ok"}}], Limits(ready_s=3), "silent", 3.0, "no message ever came"),
        ([(1.0, {"a": 1})], [{"wait": {"has": "ok"}}], Limits(ready_s=3), "target_error", 3.0, "2.00 s old"),
        ([], [{"wait": {"has": "ok", "timeout_s": 1.5}}], Limits(ready_s=3), "silent", 1.5, "within 1.5 s"),
    ],
)
def test_a_service_that_is_never_ready_is_given_up(events, opening, limits, outcome, ended_s, sentence) -> None:
    play = Play(profile(open=opening), events, limits=limits, opens=outcome != "connect_failed").run()
    assert (play.record.outcome, play.ended_s) == (outcome, ended_s)
    assert sentence in play.record.cause
    assert play.record.ready_ns is None
    assert len(play.times(Abort)) == 1


@pytest.mark.parametrize(
    ("message", "outcome", "sentence"),
    [
        ({"type": "busy", "why": "no slot"}, "rejected", "refused by a message: no slot"),
        ({"type": "expired"}, "auth_expired", "the authorisation has expired"),
        ({"type": "too fast", "why": "1.5 x"}, "pace_refused", "1.5 x"),
        ({"type": "fatal", "why": {"code": 7}}, "target_error", '{"code": 7}'),
    ],
)
def test_a_message_may_end_the_session(message, outcome, sentence) -> None:
    play = Play(profile(), [*WORDS, (1.5, message), (2.0, {"final": "too late"})], mute=True).run()
    assert (play.record.outcome, play.record.messages["error"]) == (outcome, 1)
    assert sentence in play.record.cause
    assert [type(action) for at, action in play.did if at == 1.5] == [StopMedia, Shut]
    assert play.ended_s == 4.5  # the close is waited for, and no more than close_s
    assert play.text == "red boat leaves"


def test_trouble_that_the_service_gets_over_is_counted_and_bounded() -> None:
    events = [(0.01 * n, {"type": "hiccup", "why": f"no. {n}"}) for n in range(1, 101)]
    play = Play(profile(), [*events, *WHOLE[-2:]]).run()
    assert (play.record.outcome, play.record.messages["error"], len(play.record.warnings)) == ("ok", 100, 20)
    assert play.record.warnings[0] == "recoverable: no. 1"


def test_one_bad_message_costs_its_own_session_and_no_other() -> None:
    how = profile(
        receive={
            "rules": [
                {"has": "partial", "text": {"model": "unkeyed", "text": "partial"}},
                {"has": "kind", "text": {"model": "unkeyed", "text": "words.best", "final": True}},
                {"has": "final", "text": {"model": "unkeyed", "text": "final", "final": True}},
            ]
        }
    )
    compiled = compile_profile(how)
    sixth = [(0.1 * n, {"partial": f"word {n}"}) for n in range(1, 7)]
    good = (0.7, {"partial": "word 7"})
    torn = (0.7, '{"partial": nul')
    keyless = (0.7, {"kind": "final", "padding": "x" * 1000})
    plays = [
        Play(how, [*sixth, seventh, (1.2, {"final": "words"}), (1.2, {"done": 1})], (1.0,), compiled=compiled).run()
        for seventh in [torn] * 5 + [keyless] * 3 + [good] * 42
    ]
    outcomes = [play.record.outcome for play in plays]
    assert {outcome: outcomes.count(outcome) for outcome in outcomes} == {
        "parse_error": 5,
        "profile_error": 3,
        "ok": 42,
    }
    assert plays[0].record.raw == ['{"partial": nul']
    assert len(plays[5].record.raw[0]) == 300
    assert all(final_latency(play) == pytest.approx(0.2) for play in plays[8:])
    assert all(play.text == "word 6" for play in plays[:8])


def test_a_line_over_our_limit_right_behind_a_good_one_ends_the_session_at_once_and_is_counted_once() -> None:
    """Both in one packet: nothing need come after them for the second to be noticed."""
    both = b'{"final": "red"}\n{"final": "' + b"x" * 3000 + b'"}\n'
    how = profile(**http("lines"))
    play = Play(how, [(0.5, both), (0.6, closed(None))], limits=Limits(message_bytes=1000)).run()
    assert (play.record.outcome, play.record.side, play.times(Shut)) == ("our_limit", "policy", [0.5])
    assert (play.text, play.record.messages) == ("red", {"final": 1, "error": 1})


def test_a_message_over_our_limit_is_our_limit() -> None:
    play = Play(profile(), [(0.5, {"partial": "x" * 2000})], limits=Limits(message_bytes=1000)).run()
    assert (play.record.outcome, play.record.side) == ("our_limit", "policy")
    lines = Play(
        profile(**http("lines")), [(0.5, b"x" * 800), (0.6, b"x" * 800)], limits=Limits(message_bytes=1000)
    ).run()
    assert lines.record.outcome == "our_limit"
    long_but_within = Play(
        profile(**http("lines")),
        [(0.5, json.dumps({"final": "x" * 600_000}).encode() + b"\n"), (3.1, closed(None))],
    ).run()
    assert long_but_within.record.outcome == "ok"


def test_a_capture_that_finds_nothing_is_the_profile_s_fault() -> None:
    how = profile(open=[{"wait": {"has": "hello", "capture": {"id": "stream.id"}}}])
    play = Play(how, [(0.1, {"hello": 1})]).run()
    assert (play.record.outcome, play.record.raw) == ("profile_error", ['{"hello": 1}'])
    assert play.times(StartMedia) == []


def test_done_before_the_end_mark_is_believed_with_its_own_time() -> None:
    play = Play(profile(), [(1.0, {"final": "red"}), (2.0, {"done": 1})]).run()
    assert play.record.outcome == "ok"
    assert done_latency(play) == -1.0
    assert play.times(Send, role="end") == [3.0]
    assert "2.00 s into the media" in play.record.warnings[0]


# ---- cut, and failed by ourselves


@pytest.mark.parametrize("outcome", ["interrupted", "time_up"])
@pytest.mark.parametrize("at_s", [0.0, 1.5, 3.1])
def test_a_session_is_cut_at_once_with_what_there_is(outcome: str, at_s: float) -> None:
    play = Play(profile(), [*WORDS, (at_s, lambda play, at: play.talk.stop(outcome, at))], mute=True).run()
    assert (play.record.outcome, play.record.side, play.ended_s) == (outcome, "policy", at_s)
    assert play.text == "red boat leaves" if at_s > 1.1 else not play.utterance.channels
    assert (len(play.times(StopMedia)), len(play.times(Abort))) == (int(at_s < 3), 1)


def test_a_session_that_is_done_keeps_its_outcome_when_the_run_is_stopped() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"has": "done"}}, {"grace_s": 5}])
    play = Play(how, [*WHOLE, (4.0, lambda play, at: play.talk.stop("time_up", at))]).run()
    assert (play.record.outcome, play.ended_s) == ("ok", 4.0)


def test_a_session_that_was_never_dialled_can_be_cut() -> None:
    talk = Conversation(profile(), [ClipTask("c", S, 50)], Limits(), {}, session="s", planned_ns=0)
    talk.stop("interrupted", 5)
    assert talk.take() == [Ended()]
    assert talk.record(worker="w", user=0, stage="", window="measure", begun_ns=0).outcome == "interrupted"


def test_the_tester_may_fail_a_session_and_nothing_comes_after_that() -> None:
    play = Play(profile(), [(1.0, lambda play, at: play.talk.fail("no_resource", "no file handle left", at))]).run()
    assert (play.record.outcome, play.record.side, play.record.cause) == (
        "no_resource",
        "tester",
        "no file handle left",
    )
    play.talk.received('{"final": "late"}', DIAL_NS + 2 * S)
    play.talk.lost(closed())
    play.talk.wake(DIAL_NS + 9 * S)
    play.talk.stop("time_up", DIAL_NS + 9 * S)
    assert play.talk.take() == []
    assert play.talk.deadline_ns is None
    assert play.record.outcome == "no_resource"


def test_an_error_of_our_own_is_kept_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("as planned")

    monkeypatch.setattr(Conversation, "_offer", breaks)
    play = Play(profile(), WORDS).run()
    assert (play.record.outcome, play.record.side) == ("internal", "tester")
    assert "RuntimeError" in play.record.cause
    assert "as planned" in play.record.cause


def test_a_record_is_not_to_be_had_before_the_end() -> None:
    talk = Conversation(profile(), [ClipTask("c", S, 50)], Limits(), {}, session="s", planned_ns=0)
    with pytest.raises(ValueError, match="has not ended"):
        talk.record(worker="w", user=0, stage="", window="measure", begun_ns=0)


def test_every_outcome_that_a_conversation_gives_is_on_the_closed_list() -> None:
    assert {outcome for outcome, _ in ending._PLAIN.values()} <= OUTCOMES.keys()
