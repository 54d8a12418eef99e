"""Conversations as they should be: the scripts, and what is sent when. Virtual time throughout."""

import json

import pytest

from loadbench.session.machine import Conversation, compile_profile
from loadbench.session.wire import Abort, ClipTask, Dial, Ended, Limits, Opened, Send, Shut, StartMedia
from tests.session.scripted import (
    DIAL_NS,
    WHOLE,
    WORDS,
    Play,
    S,
    closed,
    done_latency,
    final_latency,
    first_output,
    profile,
    since,
)


def test_a_session_is_opened_streamed_ended_and_closed_in_that_order() -> None:
    play = Play(profile(), WHOLE).run()
    assert [type(action) for _, action in play.did] == [Dial, StartMedia, Send, Shut, Ended]
    assert (play.record.outcome, play.record.side, play.record.cause) == ("ok", "none", "")
    assert play.text == "red boat leaves"
    assert first_output(play) == 0.3
    assert final_latency(play) == pytest.approx(0.2)
    assert play.utterance.done_rule == "message"
    assert since(play.utterance.source_end_ns, play.utterance.eos_ns) == 0.0
    assert play.record.connections[0].close_by == "us"


def test_the_end_mark_waits_for_the_end_of_the_media_even_when_the_last_chunk_was_early() -> None:
    early = (2.6, lambda play, at: play.talk.media_ended(0, 150, at))
    play = Play(profile(), [early, *WHOLE]).run()
    assert play.times(Send, role="end") == [3.0]
    assert play.utterance.eos_ns == play.utterance.source_end_ns
    assert play.utterance.chunks_sent == 150


def test_the_end_mark_leaves_when_it_can_where_the_media_came_late() -> None:
    talk = Conversation(profile(), [ClipTask("c", S, 50)], Limits(), {}, session="s", planned_ns=0)
    talk.dialled(0)
    talk.opened(Opened(10))
    talk.media_started(0, 10, 20)
    talk.take()
    talk.media_ended(0, 50, 10 + S + 777)
    (mark,) = talk.take()
    assert isinstance(mark, Send)
    talk.sent(mark, 10 + S + 800)
    talk.lost(closed())
    record = talk.record(worker="w", user=0, stage="", window="measure", begun_ns=0)
    assert record.utterances[0].eos_ns == 10 + S + 800


def test_an_opening_script_waits_for_what_it_needs_and_keeps_what_it_captures() -> None:
    how = profile(
        open=[
            {"send_json": {"hello": "{session.id}"}},
            {"wait": {"match": "type == 'welcome'", "timeout_s": 5, "capture": {"stream": "id"}}},
            {"send_text": "join {captured.stream}"},
            {"wait": {"has": "joined"}},
        ],
        end=[{"send_json": {"eos": "{captured.stream}", "sent": "{count.chunks_sent}"}}, {"done": {"has": "done"}}],
    )
    events = [
        (0.1, {"type": "news"}),
        (0.2, {"type": "welcome", "id": "st-7"}),
        (0.5, {"joined": None}),
        (4.0, {"final": "red"}),
        (4.1, {"done": 1}),
    ]
    play = Play(how, events).run()
    said = [(at, action.payload) for at, action in play.did if isinstance(action, Send)]
    assert said[:2] == [(0.0, b'{"hello":"s1"}'), (0.2, b"join st-7")]
    assert json.loads(said[2][1])["eos"] == "st-7"
    assert str(json.loads(said[2][1])["sent"]) == "150"
    assert since(DIAL_NS, play.record.ready_ns) == 0.5
    assert play.times(StartMedia) == [0.5]
    assert play.record.outcome == "ok"


def test_one_message_fulfils_one_wait_only() -> None:
    how = profile(open=[{"wait": {}}, {"wait": {}}])
    play = Play(how, [(0.1, {"type": "ready"}), (0.4, {"type": "ready"})], horizon_s=1).run()
    assert play.times(StartMedia) == [0.4]


def test_an_empty_opening_script_is_ready_at_once() -> None:
    play = Play(profile(), WHOLE).run()
    assert since(DIAL_NS, play.record.ready_ns) == 0.0


@pytest.mark.parametrize(
    ("step", "kind", "payload"),
    [
        ({"send_json": {"a": [1, None]}}, "text", b'{"a":[1,null]}'),
        ({"send_text": '{"eof" : 1}'}, "text", b'{"eof" : 1}'),  # compared byte for byte by some servers
        ({"send_text": ""}, "text", b""),  # an empty text is an end mark of its own
        ({"send_binary": ""}, "binary", b""),
        ({"send_binary": "END_OF_AUDIO"}, "binary", b"END_OF_AUDIO"),
        ({"send_base64": "/wAB"}, "binary", b"\xff\x00\x01"),
        ({"end_body": True}, "end", b""),
    ],
)
def test_each_kind_of_end_mark_is_sent_as_it_is_written(step: dict[str, object], kind: str, payload: bytes) -> None:
    play = Play(profile(end=[step, {"done": {"has": "done"}}]), WHOLE).run()
    (mark,) = [action for _, action in play.did if isinstance(action, Send)]
    assert (mark.kind, mark.payload, mark.role) == (kind, payload, "end")
    assert play.record.outcome == "ok"


def test_a_quiet_period_goes_before_the_end_mark_and_ends_when_nothing_comes() -> None:
    how = profile(end=[{"quiet": {"for_s": 1, "max_s": 5}}, {"send_text": "bye"}, {"done": {"on": ["close"]}}])
    events = [
        *WORDS,
        (3.4, {"partial": "red boat leaves now"}),
        (4.1, {"final": "red boat leaves now"}),
        (6.0, closed()),
    ]
    play = Play(how, events, limits=Limits(silence_s=0.95)).run()
    play_without_silence = Play(how, events).run()
    assert play.record.outcome == "silent"  # 1.9 s without a message in the media itself
    assert play_without_silence.times(Send) == [5.1]
    assert play_without_silence.record.outcome == "ok"


def test_a_quiet_period_that_never_gets_quiet_is_over_at_its_maximum() -> None:
    how = profile(end=[{"quiet": {"for_s": 1, "max_s": 5}}, {"send_text": "bye"}, {"done": {"on": ["close"]}}])
    ticks = [(3 + n / 2, {"tick": n}) for n in range(20)]
    play = Play(how, [(1.0, {"final": "red"}), *ticks, (13.0, closed())]).run()
    assert play.times(Send) == [8.0]


def test_a_script_without_a_done_step_has_no_time_of_done() -> None:
    how = profile(end=[{"quiet": {"for_s": 1, "max_s": 5}}])
    play = Play(how, [(1.0, {"final": "red"})]).run()
    assert (play.record.outcome, play.utterance.done_ns, play.utterance.done_rule) == ("ok", None, "quiet")
    assert play.utterance.eos_ns is None
    assert play.ended_s == 4.0


def test_grace_lets_a_last_result_arrive_after_done() -> None:
    how = profile(end=[{"send_text": "Done"}, {"done": {"has": "done"}}, {"grace_s": 0.5}])
    play = Play(how, [(3.1, {"done": True}), (3.3, {"final": "red"})]).run()
    assert (play.record.outcome, play.text) == ("ok", "red")
    assert done_latency(play) == pytest.approx(0.1)
    assert play.times(Shut) == [3.6]


def test_the_grace_of_the_close_counts_as_well() -> None:
    play = Play(profile(close={"grace_s": 2.0}), WHOLE).run()
    assert play.times(Shut) == [5.2]


def test_the_service_closes_where_the_profile_leaves_it_to_it() -> None:
    how = profile(end=[{"send_text": "x"}, {"done": {"has": "done", "closes": "target"}}])
    waits = Play(how, [*WHOLE, (4.0, closed())]).run()
    assert (waits.times(Shut), waits.ended_s, waits.record.outcome) == ([], 4.0, "ok")
    assert waits.record.connections[0].close_by == "target"
    tired = Play(how, WHOLE, limits=Limits(close_s=1.5)).run()
    assert (tired.times(Shut), tired.record.outcome) == ([4.7], "ok")
    assert "did not close within 1.5 s" in tired.record.warnings[0]


def test_a_close_that_is_never_answered_is_aborted_and_the_session_is_still_good() -> None:
    play = Play(profile(), WHOLE, mute=True, limits=Limits(close_s=2)).run()
    assert play.times(Shut) == [3.2]
    assert play.times(Abort) == [5.2]
    assert play.record.outcome == "ok"
    assert "did not answer our close within 2 s" in play.record.warnings[0]


def test_a_keepalive_fills_the_idle_times_and_never_follows_the_end_mark() -> None:
    how = profile(
        open=[{"wait": {"match": "type == 'ready'"}}],
        keepalive={"send_json": {"type": "KeepAlive"}, "every_s": 1.0},
        end=[{"quiet": {"for_s": 2.5, "max_s": 9}}, {"send_text": "bye"}, {"done": {"on": ["close"]}}],
    )
    events = [(2.5, {"type": "ready"}), (3.0, {"final": "red"}), (12.0, closed())]
    play = Play(how, events).run()
    assert play.times(StartMedia) == [2.5]
    assert play.times(Send, role="keepalive") == [1.0, 2.0, 6.5, 7.5]
    assert play.times(Send, role="end") == [8.0]


def test_a_keepalive_may_go_on_during_the_media() -> None:
    how = profile(keepalive={"send_text": "alive", "every_s": 0.7, "when": "always"})
    assert Play(how, WHOLE).run().times(Send, role="keepalive") == [0.7, 1.4, 2.1, 2.8]


def test_two_utterances_go_over_one_connection_and_are_kept_apart() -> None:
    events = [
        *WHOLE,
        (3.5, {"partial": "blue"}),
        (4.2, {"final": "blue car"}),
        (4.3, {"done": True}),
    ]
    play = Play(profile(), events, media_s=(3.0, 1.0)).run()
    first, second = play.record.utterances
    assert play.times(StartMedia) == [0.0, 3.2]
    assert [first.channels["transcript"].text, second.channels["transcript"].text] == ["red boat leaves", "blue car"]
    assert (first.clip, second.clip, second.index) == ("clip-0", "clip-1", 1)
    assert since(second.media_zero_ns, second.channels["transcript"].first_ns) == pytest.approx(0.3)
    assert since(second.source_end_ns, second.done_ns) == pytest.approx(0.1)
    assert since(second.source_end_ns, second.eos_ns) == 0.0
    assert len(play.times(Shut)) == 1
    assert play.record.outcome == "ok"


def test_a_service_that_closes_after_the_first_of_two_utterances_has_closed_early() -> None:
    play = Play(profile(), [*WHOLE[:-1], (3.3, closed())], media_s=(3.0, 1.0)).run()
    assert play.record.outcome == "closed_early"
    assert "after 1 of 2 utterances" in play.record.cause
    assert [utterance.outcome for utterance in play.record.utterances] == ["ok", "closed_early"]


def test_sessions_share_one_compiled_profile_and_nothing_else() -> None:
    how = profile()
    compiled = compile_profile(how)
    plays = [
        Play(how, [(1.0, {"final": word}), (3.1, {"done": 1})], compiled=compiled).run() for word in ("red", "blue")
    ]
    assert [play.text for play in plays] == ["red", "blue"]
    assert [play.record.messages for play in plays] == [{"final": 1, "done": 1}] * 2


def test_a_channel_may_take_its_name_from_the_message() -> None:
    how = profile(
        channels={"transcript": {}, "translation": {"stage": "translation"}},
        receive={
            "fire": "all",
            "rules": [
                {
                    "has": "text",
                    "channel": "transcript",
                    "text": {"model": "unkeyed", "text": "text", "final": "ended"},
                },
                {
                    "has": "translations",
                    "each": "translations[*]",
                    "where": "lang != 'xx'",
                    "channel": "translation:{lang}",
                    "text": {"model": "unkeyed", "text": "text", "final": "ended"},
                },
            ],
        },
    )
    message = {
        "text": "red",
        "ended": True,
        "translations": [{"lang": "it", "text": "rosso", "ended": True}, {"lang": "xx", "text": "?", "ended": True}],
    }
    play = Play(how, [(1.0, message), (3.2, {"done": 1})]).run()
    assert {name: channel.text for name, channel in play.utterance.channels.items()} == {
        "transcript": "red",
        "translation:it": "rosso",
    }
    assert play.record.outcome == "ok"
