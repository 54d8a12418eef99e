"""Sessions whose service answers with sound or pictures."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from loadbench.session.machine import Conversation
from loadbench.session.wire import ClipTask, Limits, Opened
from loadbench.simulator.playing import picture
from tests.session.scripted import DIAL_NS, Play, S, closed, profile, since

TONE = np.full(2400, 8000, "<i2").tobytes()  # 100 ms at 24 kHz
QUIET = bytes(4800)
SPOKEN: dict[str, Any] = {
    "channels": {"speech": {"stage": "media", "medium": "audio"}, "text": {"stage": "translation"}},
    "primary": "speech",
    "receive": {
        "rules": [
            {
                "match": "type == 'audio'",
                "channel": "speech",
                "media": {"base64": "delta", "format": "s16le", "rate_hz": 24000},
            },
            {"has": "final", "channel": "text", "text": {"model": "unkeyed", "text": "final", "final": True}},
            {"has": "done", "event": "done"},
        ]
    },
}
SIGNED: dict[str, Any] = {
    "channels": {"sign": {"stage": "media", "medium": "video"}},
    "receive": {
        "binary": {"channel": "sign", "format": "jpeg", "fps": 25},
        "rules": [{"has": "done", "event": "done"}],
    },
}


def audio(data: bytes) -> dict[str, str]:
    return {"type": "audio", "delta": base64.b64encode(data).decode()}


def test_speech_in_json_is_timed_and_a_text_beside_it_keeps_its_own_times() -> None:
    events = [(0.5, audio(QUIET)), (0.6, audio(TONE)), (1.2, audio(TONE)), (3.2, {"final": "da"}), (3.3, {"done": 1})]
    play = Play(profile(**SPOKEN), [*events, (3.4, closed())]).run()
    speech = play.utterance.channels["speech"]
    assert speech.media is not None
    assert since(DIAL_NS, speech.media.first_byte_ns) == pytest.approx(0.5)
    assert since(DIAL_NS, speech.first_ns) == since(DIAL_NS, speech.media.first_sound_ns) == pytest.approx(0.6)
    assert since(DIAL_NS, speech.media.playback_end_ns) == pytest.approx(1.3)
    assert [(since(DIAL_NS, at), length / 1e9) for at, length in speech.media.gaps] == [(pytest.approx(0.7), 0.5)]
    assert play.utterance.channels["text"].text == "da"
    assert play.record.outcome == "ok"
    assert play.record.messages == {"media": 3, "final": 1, "done": 1}


def test_binary_messages_are_pictures_and_no_rule_sees_them() -> None:
    play = Play(profile(**SIGNED), [(0.5, picture(0)), (0.54, picture(1)), (3.3, {"done": 1})]).run()
    sign = play.utterance.channels["sign"]
    assert sign.media is not None
    assert (sign.media.frames, since(DIAL_NS, sign.first_ns)) == (2, pytest.approx(0.5))
    assert play.record.outcome == "ok"
    assert play.record.messages == {"media": 2, "done": 1}


def test_pieces_are_handed_on_as_they_were_heard_with_their_utterance() -> None:
    kept: list[tuple[int, str, str, bytes, int]] = []
    tasks = [ClipTask("clip", S, 50)]
    talk = Conversation(
        profile(**SPOKEN), tasks, Limits(), {}, session="s1", planned_ns=0,
        keep=lambda index, channel, form, data, at: kept.append((index, channel, form.format, data, at)),
    )  # fmt: skip
    talk.dialled(0)
    talk.opened(Opened(1))
    talk.media_started(0, 2, 2)
    talk.received(json.dumps(audio(TONE)), 7)
    talk.received(json.dumps({"type": "audio", "delta": "data:audio/pcm;base64,AAA="}), 8)
    assert kept == [(0, "speech", "s16le", TONE, 7), (0, "speech", "s16le", bytes(2), 8)]


@pytest.mark.parametrize(
    ("events", "outcome", "words"),
    [
        ([(0.5, audio(QUIET))], "no_output", "with 4800 bytes on channel speech and no audible sample among them"),
        ([], "no_output", "no media came on channel speech"),
        ([(0.5, {"final": "da"})], "no_output", "no media came on channel speech"),
        ([(0.5, {"type": "audio", "delta": ""})], "no_output", "no media came on channel speech"),
    ],
)
def test_a_headline_channel_that_stays_silent_is_no_output(events: list[Any], outcome: str, words: str) -> None:
    play = Play(profile(**SPOKEN), [*events, (3.3, {"done": 1})]).run()
    assert play.record.outcome == outcome
    assert words in play.record.cause


def test_coded_media_that_cannot_be_decoded_is_the_services_fault() -> None:
    play = Play(profile(**SPOKEN), [(0.5, {"type": "audio", "delta": "not base64!"})]).run()
    assert (play.record.outcome, play.record.side) == ("parse_error", "target")
    play = Play(profile(**SPOKEN), [(0.5, {"type": "audio", "delta": 7})]).run()
    assert play.record.outcome == "profile_error"


def test_a_message_over_our_limit_is_not_taken() -> None:
    play = Play(profile(**SIGNED), [(0.5, picture(0))], limits=Limits(message_bytes=100)).run()
    assert play.record.outcome == "our_limit"
