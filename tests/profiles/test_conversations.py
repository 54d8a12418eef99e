"""Every shipped profile makes of its service's messages what they mean: scripted conversations in virtual time."""

import pytest
from pydantic import ValidationError

from loadbench.session.load import shipped
from tests.profiles import conversation

WHOLE = """
profile: vosk
about: a final with its times
media_s: [1.0]
service:
  - {at: 0.4, say: {partial: "turn left"}}
  - {at: 1.2, say: {text: "turn left here"}}
  - {at: 1.2, close: {code: 1000}}
sent: [{json: {config: {sample_rate: 16000, words: 1}}}, {text: '{"eof" : 1}', at: 1.0}]
expect:
  outcome: ok
  channels: {transcript: {first_s: 0.4, segments: [{text: turn left here, final_s: 1.2, promoted: false}]}}
"""


@pytest.mark.parametrize("name", conversation.names())
def test_a_conversation_means_what_its_file_says(name: str) -> None:
    talk = conversation.load(name)
    told = conversation.differences(talk, conversation.play(talk))
    assert not told, "\n".join([f"{name} ({talk.about}):", *told])


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_profile_has_a_conversation(name: str) -> None:
    assert name in {conversation.load(each).profile for each in conversation.names()}


def test_a_conversation_that_is_as_expected_differs_in_nothing() -> None:
    talk = conversation.read(WHOLE)
    assert conversation.differences(talk, conversation.play(talk)) == []


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("outcome: ok", "outcome: lost", "the session: outcome is 'ok', expected 'lost'"),
        ("first_s: 0.4", "first_s: 0.5", "channel transcript: first_s is 0.4, expected 0.5"),
        ("final_s: 1.2", "final_s: null", "channel transcript, segment 1: final_s is 1.2, expected None"),
        ("{text: turn left here, ", "{text: turn, ", "channel transcript, segment 1: text is 'turn left here', exp"),
        ("promoted: false", "promoted: true", "channel transcript, segment 1: promoted is False, expected True"),
        ("promoted: false}]", "promoted: false}, {text: more}]", "channel transcript has the segments ['turn left h"),
        ("{transcript:", "{translation:", "channels with output are ['transcript'], expected ['translation']"),
        ("at: 1.0", "at: 1.1", "message 2 of ours was sent at 1 s, expected at 1.1 s"),
        ('{"eof" : 1}', '{"eof":1}', """message 2 of ours is text b'{"eof" : 1}', expected text b'{"eof":1}'"""),
        ("words: 1", "words: 2", "message 1 of ours is text b'"),
        ("sent: [", "sent: [{text: more}, ", "beside the media 2 messages were sent, expected 3"),
        ("outcome: ok", "outcome: ok\n  messages: {partial: 2}", "1 messages are of kind partial, expected 2"),
        ("outcome: ok", "outcome: ok\n  warnings: [late]", "the warnings are [], expected ['late']"),
        ("outcome: ok", "outcome: ok\n  cause: why", "the cause is '', expected to hold 'why'"),
        ("outcome: ok", "outcome: ok\n  then: [{outcome: ok}]", "there are 1 utterances, expected 2"),
    ],
)
def test_what_differs_is_said_in_a_sentence(right: str, wrong: str, sentence: str) -> None:
    assert WHOLE.count(right) >= 1
    talk = conversation.read(WHOLE.replace(right, wrong))
    told = conversation.differences(talk, conversation.play(talk))
    assert any(found.startswith(sentence) for found in told), told


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ("first_frame_s: 0.9", "first_frame_s: 0.8", "channel sign, media: first_frame_s is 0.9, expected 0.8"),
        ("frames: 5", "frames: 6", "channel sign, media: frames is 5, expected 6"),
        ("gaps: [[1.02, 0.18]]", "gaps: []", "channel sign, media: gaps is [(1.02, 0.18)], expected []"),
        ("segments: [{text: BOAT}]", "media: {bytes: 9}", "channel gloss, media: there is none"),
    ],
)
def test_what_differs_in_output_media_is_said_too(right: str, wrong: str, sentence: str) -> None:
    text = (conversation.CONVERSATIONS / "speech-to-sign.yaml").read_text(encoding="utf-8")
    assert right in text
    talk = conversation.read(text.replace(right, wrong))
    assert conversation.differences(talk, conversation.play(talk)) == [sentence]


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("about:", "abuot:", "abuot"),
        ("first_s: 0.4", "frist_s: 0.4", "frist_s"),
        ("say: {text:", "sya: {text:", "sya"),
        ("at: 0.4, say: {partial", "at: 0.4, text: x, say: {partial", "exactly one thing"),
    ],
)
def test_a_misspelt_key_of_a_conversation_is_an_error(right: str, wrong: str, complaint: str) -> None:
    assert right in WHOLE
    with pytest.raises(ValidationError, match=complaint):
        conversation.read(WHOLE.replace(right, wrong))
