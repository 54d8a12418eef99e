"""Conversations with scripted services: what is measured, what is sent, and how it ends. Virtual time throughout."""

import json

import pytest

from loadbench.results.outcome import OUTCOMES
from loadbench.session import ending
from loadbench.session.load import load_profile, shipped
from loadbench.session.machine import MESSAGE_KINDS, Conversation, compile_profile
from loadbench.session.wire import Abort, ClipTask, Ended, Limits, Opened, Send, Shut, StartMedia, StopMedia
from tests.session.scripted import DIAL_NS, Play, S, closed, gone, profile, since


def first_output(play: Play) -> float | None:
    return since(play.utterance.media_zero_ns, play.utterance.channels["transcript"].first_ns)


def final_latency(play: Play) -> float | None:
    return since(play.utterance.source_end_ns, play.utterance.channels["transcript"].last_final_ns)


def done_latency(play: Play) -> float | None:
    return since(play.utterance.source_end_ns, play.utterance.done_ns)


WORDS = [(0.3, {"partial": "red"}), (0.7, {"partial": "red boat"}), (1.1, {"partial": "red boat leaves"})]
WHOLE = [*WORDS, (3.2, {"final": "red boat leaves"}), (3.2, {"done": True})]


# ---- a session as it should be


def test_a_session_is_opened_streamed_ended_and_closed_in_that_order() -> None:
    play = Play(profile(), WHOLE).run()
    assert [type(action) for _, action in play.did] == [StartMedia, Send, Shut, Ended]
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


# ---- what is measured


def test_a_greeting_and_empty_partials_are_no_output_and_a_late_message_moves_no_final() -> None:
    events = [
        (0.05, {"type": "ready"}),
        (0.10, {"partial": ""}),
        (0.20, {"partial": "  "}),
        (0.80, {"partial": "red"}),
        (3.30, {"final": "red boat"}),
        (3.80, {"type": "usage", "chars": 8}),
        (3.90, closed()),
    ]
    play = Play(profile(), events).run()
    assert since(play.utterance.media_zero_ns, play.utterance.first_message_ns) == pytest.approx(0.05)
    assert first_output(play) == pytest.approx(0.8)
    assert play.record.messages == {"ready": 1, "empty": 2, "partial": 1, "final": 1, "unmatched": 1}
    assert play.record.messages.keys() <= set(MESSAGE_KINDS)
    assert final_latency(play) == pytest.approx(0.3)
    assert play.record.outcome == "ok"


TAIL = [
    (3.0, {"final": "one two"}),
    (4.0, {"final": "three four"}),
    (5.5, {"final": "five", "last": True}),
    (5.6, closed()),
]


def test_a_tail_of_finals_is_waited_for_until_the_service_is_done() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"match": "last"}}])
    play = Play(how, TAIL).run()
    assert play.text == "one two three four five"
    assert done_latency(play) == pytest.approx(2.5)
    assert final_latency(play) == pytest.approx(2.5)
    assert play.times(Shut) == [5.5]


def test_a_profile_that_is_done_at_the_first_final_says_so() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"on": ["first_final"]}}])
    play = Play(how, TAIL).run()
    assert (done_latency(play), play.utterance.done_rule, play.text) == (0.0, "first_final", "one two")


@pytest.mark.parametrize(
    ("finals", "text"),
    [
        (["the train", "leaves at nine", "from platform two", ""], "the train leaves at nine from platform two"),
        (["今天下午", "三点开会"], "今天下午三点开会"),  # no space between Chinese segments
    ],
)
def test_several_finals_make_one_text(finals: list[str], text: str) -> None:
    events = [(1 + n / 2, {"final": final}) for n, final in enumerate(finals)]
    assert Play(profile(), [*events, (3.2, {"done": 1})]).run().text == text


def test_a_segment_with_a_number_is_replaced_when_it_is_revised() -> None:
    rule = {"has": "text", "text": {"model": "keyed", "key": "id", "text": "text", "final": True}}
    finals = [(1.0, 1, "the train"), (2.0, 2, "leaves at nine"), (3.1, 2, "leaves at five")]
    events = [(at, {"id": number, "text": text}) for at, number, text in finals]
    play = Play(profile(receive={"rules": [rule]}), [*events, (3.2, {"done": 1})]).run()
    assert play.text == "the train leaves at five"


def http(framing: str) -> dict[str, object]:
    return {
        "transport": {"kind": "http"},
        "end": [{"end_body": True}, {"done": {"on": ["end_of_response"]}}],
        "receive": {
            "framing": framing,
            "rules": [
                {"has": "partial", "text": {"model": "unkeyed", "text": "partial"}},
                {"has": "final", "text": {"model": "unkeyed", "text": "final", "final": True}},
            ],
        },
    }


LINES = '{"partial": "今天"}\n{"final": "今天下午\u0085三点\u2028开会"}\n'.encode()


@pytest.mark.parametrize("cut", [0, 15, 16, 22, 30, 45, 59, len(LINES) - 1])
def test_lines_are_cut_by_their_ends_and_not_by_packets(cut: int) -> None:
    events = [(3.5, LINES[:cut]), (3.9, LINES[cut:]), (4.0, closed(None))]
    play = Play(profile(**http("lines")), events).run()
    assert play.record.messages == {"partial": 1, "final": 1}
    assert play.text == "今天下午\u0085三点\u2028开会"
    assert final_latency(play) == pytest.approx(0.9)
    assert (play.utterance.done_rule, play.record.outcome) == ("close", "ok")


def test_events_keep_their_text_over_two_data_lines_and_a_cut_line_end() -> None:
    body = 'data: {"final":\r\ndata: "a\u2028b"}\r\n\r\n'.encode()
    how = profile(**http("auto"))
    head = (1.0, lambda play, at: play.talk.answered(200, at, "text/event-stream"))
    for cut in range(1, len(body)):
        play = Play(how, [head, (3.2, body[:cut]), (3.4, body[cut:]), (3.5, closed(None))]).run()
        assert (play.text, play.record.outcome) == ("a\u2028b", "ok")
    assert play.record.connections[0].status == 200


def test_a_last_line_without_its_end_counts_at_the_regular_end_only() -> None:
    torn = [(1.0, b'{"partial": "red"}\n{"final": "red bo')]
    whole = Play(profile(**http("lines")), [(3.2, b'{"final": "red"}'), (3.3, closed(None))]).run()
    assert (whole.text, whole.record.outcome) == ("red", "ok")
    cut = Play(profile(**http("lines")), [*torn, (1.5, gone("reset"))]).run()
    assert (cut.text, cut.record.outcome) == ("red", "lost")


def test_a_stream_of_five_and_a_half_minutes_dies_of_no_default_limit() -> None:
    events = [(n, {"partial": f"word {n}"}) for n in range(1, 331)]
    play = Play(profile(), [*events, (330.1, {"final": "words"}), (330.2, {"done": 1})], media_s=(330.0,)).run()
    assert (play.record.outcome, play.record.messages["partial"]) == ("ok", 330)


# ---- never-final texts


@pytest.mark.parametrize(
    ("never_final", "outcome"),
    [({"rule": "explicit"}, "no_final"), ({"rule": "promote_on_done"}, "ok"), ({"rule": "promote_on_quiet"}, "ok")],
)
def test_a_text_that_is_never_marked_final_is_promoted_only_where_the_profile_says_so(
    never_final: dict[str, object], outcome: str
) -> None:
    play = Play(profile(never_final=never_final), [*WORDS, (3.4, {"done": 1})]).run()
    channel = play.utterance.channels["transcript"]
    assert (play.record.outcome, channel.finality) == (outcome, never_final["rule"])
    if outcome == "ok":  # the time of the last change, not of the promotion
        assert since(play.utterance.media_zero_ns, channel.last_final_ns) == pytest.approx(1.1)
        assert channel.segments[-1].promoted


@pytest.mark.parametrize(
    ("again", "last_final_s"),
    [(None, 0.6), ({"partial": "red boat"}, 0.6), ({"partial": "red boats"}, 2.0)],  # a promoted text may change again
)
def test_a_text_that_stays_as_it_is_is_promoted_after_the_quiet_time(again, last_final_s) -> None:
    how = profile(never_final={"rule": "promote_on_quiet", "quiet_s": 0.5})
    events = [(0.3, {"partial": "red"}), (0.6, {"partial": "red boat"}), *([(2.0, again)] if again else [])]
    cut_short = Play(how, [*events, (2.9, gone("reset"))]).run()
    channel = cut_short.utterance.channels["transcript"]
    assert since(DIAL_NS, channel.last_final_ns) == last_final_s
    assert channel.settled_text == channel.text
    too_soon = Play(how, [*events, (2.4, gone("reset"))]).run().utterance.channels["transcript"]
    assert too_soon.last_final_ns == (None if last_final_s == 2.0 else channel.last_final_ns)


# ---- how it ends badly


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
    assert [type(action) for _, action in play.did] == [Ended]
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


# ---- corners


def rules(*each: dict[str, object], **more: object) -> dict[str, object]:
    return {"rules": [*each, {"has": "final", "text": {"model": "unkeyed", "text": "final", "final": True}}], **more}


LISTED = {"each": "words", "text": {"model": "unkeyed", "text": "word"}}


@pytest.mark.parametrize(
    ("rule", "message", "kind"),
    [
        ({"has": "words", **LISTED}, {"words": [{"word": "red"}]}, "partial"),
        ({"has": "words", **LISTED}, {"words": []}, "empty"),
        ({"has": "words", **LISTED}, {"words": None}, "empty"),
        ({"has": "words", "where": "word != 'red'", **LISTED}, {"words": [{"word": "red"}]}, "empty"),
        ({"has": "a", "where": "a > `1`"}, {"a": 2}, "event"),
        ({"has": "a", "where": "a > `1`"}, {"a": 1}, "unmatched"),  # without a list, where is one more condition
        ({"has": "a", "where": "a > `1`"}, {"a": "x"}, "unmatched"),  # and one that cannot be evaluated does not fit
        ({"has": "a", "event": "speech_start"}, {"a": 1}, "event"),
        ({"has": "a", "event": "ignore"}, {"a": 1}, "ignored"),
        ({"has": "a", "outcome": "warning"}, {"a": 1}, "error"),
    ],
)
def test_a_message_is_counted_once_under_what_it_was(rule, message, kind) -> None:
    play = Play(profile(receive=rules(rule)), [(1.0, message)], horizon_s=2).run()
    assert {name: count for name, count in play.talk.messages.items() if count} == {kind: 1}


def test_a_list_that_is_none_is_the_profile_s_fault() -> None:
    play = Play(profile(receive=rules({"has": "words", **LISTED})), [(1.0, {"words": "red"})]).run()
    assert play.record.outcome == "profile_error"
    assert 'each gave "red", not a list' in play.record.cause


def test_a_selector_that_cannot_be_evaluated_is_the_profile_s_fault() -> None:
    rule = {"has": "why", "outcome": "recoverable", "detail": "length(why)"}
    play = Play(profile(receive=rules(rule)), [(1.0, {"why": 7})]).run()
    assert (play.record.outcome, play.record.raw) == ("profile_error", ['{"why": 7}'])


def test_a_channel_that_a_message_does_not_name_is_the_profile_s_fault() -> None:
    rule = {"has": "text", "channel": "to:{lang}", "text": {"model": "unkeyed", "text": "text"}}
    play = Play(profile(receive=rules(rule)), [(1.0, {"text": "red"})]).run()
    assert (play.record.outcome, play.record.cause.count("{lang} of channel to:{lang} gave None")) == (
        "profile_error",
        1,
    )


@pytest.mark.parametrize(
    ("ack", "acked", "kinds"),
    [
        ({"one_per_chunk": True}, 4, {"ack": 2, "partial": 1, "final": 1}),
        ({"has": "seq"}, 2, {"ack": 2, "partial": 1, "final": 1}),
        ({"has": "nothing"}, 0, {"unmatched": 2, "partial": 1, "final": 1}),
    ],
)
def test_acknowledgements_are_counted_beside_what_they_bring(ack, acked, kinds) -> None:
    how = profile(media={"kind": "audio", "ack": ack}, end=[{"send_text": "x"}, {"done": {"on": ["close"]}}])
    events = [(0.2, {"seq": 1}), (0.4, {"seq": 2}), (0.6, {"partial": "red"}), (3.1, {"final": "red"}), (3.2, closed())]
    play = Play(how, events).run()
    assert (play.talk.acked, play.record.messages) == (acked, kinds)


def test_a_message_without_a_value_for_its_field_is_the_profile_s_fault() -> None:
    play = Play(profile(open=[{"send_text": "{param.model}"}]), []).run()
    assert (play.record.outcome, play.times(StartMedia)) == ("profile_error", [])
    assert "{param.model}" in play.record.cause
    named = Play(profile(open=[{"send_text": "{param.model}"}]), WHOLE, fields={"param.model": "small"}).run()
    assert named.did[0][1] == Send("text", b"small", "open")


def test_a_clip_s_own_fields_fill_the_scripts_of_its_utterance() -> None:
    how = profile(open=[{"send_text": "{clip.id} {clip.lang}"}], end=[{"send_text": "{clip.lang}"}])
    tasks = [ClipTask("c1", S, 1, fields={"lang": "it"}), ClipTask("c2", S, 1, fields={"clip.lang": "zh"})]
    talk = Conversation(how, tasks, Limits(), {}, session="s", planned_ns=0)
    talk.dialled(0)
    talk.opened(Opened(0))
    for index in (0, 1):
        talk.media_started(index, index * S, index * S)
        talk.media_ended(index, 1, (index + 1) * S)
    assert [action.payload for action in talk.take() if isinstance(action, Send)] == [b"c1 it", b"it", b"zh"]


def test_a_first_final_after_the_end_mark_is_done_where_the_profile_says_so() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"on": ["first_final"]}}])
    play = Play(how, [(1.0, {"partial": "red"}), (3.5, {"final": "red boat"}), (4.0, {"final": "late"})]).run()
    assert (done_latency(play), play.text, play.times(Shut)) == (0.5, "red boat", [3.5])


def test_a_limit_that_passes_in_the_grace_changes_nothing() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"has": "done"}}, {"grace_s": 5}])
    play = Play(how, WHOLE, limits=Limits(session_s=4, silence_s=2.5, final_s=2)).run()
    assert (play.record.outcome, play.times(Shut)) == ("ok", [8.2])


def test_an_error_in_the_grace_is_a_warning_beside_a_good_outcome() -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"has": "done"}}, {"grace_s": 5}])
    play = Play(how, [*WHOLE, (3.5, {"type": "fatal", "why": "bye"})]).run()
    assert (play.record.outcome, play.times(Shut)) == ("ok", [3.5])
    assert "the service reported an error: bye" in play.record.warnings[0]


def test_a_second_done_step_asks_for_nothing_more() -> None:
    how = profile(end=[{"done": {"has": "done"}}, {"send_text": "bye"}, {"done": {"has": "gone"}}])
    play = Play(how, WHOLE).run()
    assert (play.record.outcome, play.ended_s, play.utterance.eos_ns) == ("ok", 3.2, None)


@pytest.mark.parametrize("at_s", [3.4, 3.8, 4.5])  # in the grace of the first, in the media of the second, and later
def test_what_was_finished_before_the_cut_keeps_its_own_outcome(at_s: float) -> None:
    how = profile(end=[{"send_text": "eos"}, {"done": {"has": "done"}}, {"grace_s": 0.5}])
    play = Play(how, [*WHOLE, (at_s, lambda play, at: play.talk.stop("time_up", at))], media_s=(3.0, 9.0)).run()
    outcomes = [utterance.outcome for utterance in play.record.utterances]
    assert (play.record.outcome, outcomes) == ("time_up", ["ok"] if at_s == 3.4 else ["ok", "time_up"])


def test_one_utterance_without_a_final_makes_the_session_no_final_but_the_next_is_still_carried() -> None:
    events = [(1.0, {"partial": "red"}), (3.2, {"done": 1}), (4.0, {"final": "blue"}), (4.4, {"done": 1})]
    play = Play(profile(), events, media_s=(3.0, 1.0)).run()
    assert [utterance.outcome for utterance in play.record.utterances] == ["no_final", "ok"]
    assert (play.record.outcome, play.record.cause) == ("no_final", "done, but no text was ever final")


def test_a_time_that_goes_back_counts_as_the_last_one_told() -> None:
    early = (1.0, lambda play, at: play.talk.received('{"partial": "red"}', at - S))
    play = Play(profile(), [(0.9, {"type": "ready"}), early, *WHOLE[-2:]]).run()
    assert first_output(play) == 0.9


def test_an_error_of_our_own_after_the_outcome_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(profile(), WHOLE, mute=True)
    monkeypatch.setattr(Conversation, "_give_up", lambda *_: 1 / 0)
    play.run()
    assert (play.record.outcome, play.times(Ended)) == ("ok", [6.2])
    assert any("ZeroDivisionError" in warning for warning in play.record.warnings)


def test_a_conversation_carries_at_least_one_clip() -> None:
    with pytest.raises(ValueError, match="at least one clip"):
        Conversation(profile(), [], Limits(), {}, session="s", planned_ns=0)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_profile_can_be_followed_to_a_limit_by_a_service_that_says_nothing(name: str) -> None:
    how = load_profile(name)
    fields = {"session.uuid": "u-1", **{f"param.{key}": value for key, value in how.params.items()}}
    play = Play(how, [], fields=fields, limits=Limits(ready_s=3, final_s=4)).run()
    assert play.record.outcome in ("no_final", "silent")  # silent where the opening script waits for an answer
    assert play.ended_s in (7.0, 3.0, 10.0)


def test_the_vosk_profile_reads_what_the_server_says() -> None:
    events = [
        (0.25, {"partial": ""}),
        (0.80, {"partial": "turn left"}),
        (1.60, {"text": "turn left here", "result": [{"start": 0.3, "end": 0.5}, {"start": 0.9, "end": 1.4}]}),
        (3.30, {"text": ""}),
        (3.31, closed()),
    ]
    play = Play(load_profile("vosk"), events, fields={"param.rate": "16000"}).run()
    assert (play.record.outcome, play.text, play.utterance.done_rule) == ("ok", "turn left here", "close")
    assert [action.payload for _, action in play.did if isinstance(action, Send)][-1] == b'{"eof" : 1}'
    assert (first_output(play), final_latency(play)) == (0.8, -1.4)  # signed: the final came before the end
    segment = play.utterance.channels["transcript"].segments[0]
    assert (segment.start_s, segment.end_s) == (0.3, 1.4)
    assert play.talk.acked == 4


def test_silence_is_no_failure_while_the_script_waits_for_it() -> None:
    how = profile(end=[{"quiet": {"for_s": 2, "max_s": 5}}, {"send_text": "bye"}, {"done": {"on": ["close"]}}])
    chatter = [(n / 2, {"final": f"word {n}"}) for n in range(1, 6)]
    play = Play(how, [*chatter, (6.1, closed())], limits=Limits(silence_s=1.2)).run()
    assert (play.record.outcome, play.times(Send)) == ("ok", [5.0])
    mute = Play(how, chatter, limits=Limits(silence_s=1.2)).run()
    assert (mute.record.outcome, mute.ended_s) == ("silent", 6.2)  # counted anew from the end mark


def test_the_longest_quiet_ends_with_its_step() -> None:
    how = profile(end=[{"quiet": {"for_s": 1, "max_s": 5}}, {"send_text": "bye"}, {"done": {"on": ["close"]}}])
    play = Play(how, [(1.0, {"final": "red"}), (12.0, closed())]).run()
    assert (done_latency(play), play.times(Shut)) == (9.0, [])


def test_only_the_last_message_before_done_is_the_end_mark() -> None:
    how = profile(end=[{"send_text": "flush"}, {"send_text": "eos"}, {"done": {"has": "done"}}, {"send_text": "bye"}])
    talk = Conversation(how, [ClipTask("c", S, 50)], Limits(), {}, session="s", planned_ns=0)
    talk.dialled(0)
    talk.opened(Opened(0))
    talk.media_started(0, 0, 0)
    talk.media_ended(0, 50, S)
    flush, eos = (action for action in talk.take() if isinstance(action, Send))
    talk.sent(flush, S + 5)
    talk.sent(eos, S + 7)
    talk.received('{"final": "red"}', S + 8)
    talk.received('{"done": 1}', S + 9)
    bye, _ = talk.take()
    assert isinstance(bye, Send)
    talk.sent(bye, S + 11)
    talk.lost(closed())
    (utterance,) = talk.record(worker="w", user=0, stage="", window="measure", begun_ns=0).utterances
    assert (utterance.eos_ns, utterance.done_ns) == (S + 7, S + 9)


def test_a_message_before_media_time_begins_is_not_its_first() -> None:
    talk = Conversation(profile(), [ClipTask("c", S, 50)], Limits(), {}, session="s", planned_ns=0)
    talk.dialled(0)
    talk.opened(Opened(0))
    talk.media_started(0, 100, 0)
    talk.received('{"type": "ready"}', 99)
    talk.received('{"partial": "red"}', 130)
    talk.stop("interrupted", 200)
    (utterance,) = talk.record(worker="w", user=0, stage="", window="measure", begun_ns=0).utterances
    assert utterance.first_message_ns == 130


@pytest.mark.parametrize(("fire", "channels"), [("first", {"one"}), ("all", {"one", "two"})])
def test_the_first_rule_that_fits_or_all_of_them_are_followed(fire: str, channels: set[str]) -> None:
    each = [{"has": "a", "channel": name, "text": {"model": "unkeyed", "text": "a"}} for name in ("one", "two")]
    play = Play(profile(receive={"fire": fire, "rules": each}), [(1.0, {"a": "red"}), (1.5, gone("eof"))]).run()
    assert play.utterance.channels.keys() == channels
