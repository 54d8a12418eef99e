"""What is measured of a service's output, whatever the shape in which it comes."""

import json
from typing import Any

import pytest

from loadbench.session.machine import MESSAGE_KINDS
from loadbench.session.wire import Shut
from tests.session.scripted import (
    DIAL_NS,
    WORDS,
    Play,
    closed,
    done_latency,
    final_latency,
    first_output,
    gone,
    http,
    profile,
    since,
)


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


@pytest.mark.parametrize("way", ["websocket", "http"])
def test_b02_a_stream_of_five_and_a_half_minutes_dies_of_no_default_limit(way: str) -> None:
    events: list[Any] = [(n, {"partial": f"word {n}"}) for n in range(1, 331)]
    events += [(330.1, {"final": "words"}), (330.2, {"done": 1} if way == "websocket" else closed(None))]
    if way == "http":
        events = [(at, f"{json.dumps(said)}\n" if isinstance(said, dict) else said) for at, said in events]
    play = Play(profile(**(http("lines") if way == "http" else {})), events, media_s=(330.0,)).run()
    assert (play.record.outcome, play.record.messages["partial"]) == ("ok", 330)
    assert final_latency(play) == pytest.approx(0.1)


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
