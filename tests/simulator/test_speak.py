from typing import Any

import pytest

from loadbench.session.hearing import Hearing
from loadbench.session.load import load_profile, shipped
from loadbench.session.profile import Profile
from loadbench.session.script import compile_profile
from loadbench.simulator.speak import Speaker, SpeakerError

FIELDS = {"session.id": "s", "session.uuid": "u", "clip.target_lang": "es"}


def profile(rules: list[dict[str, Any]], **changes: Any) -> Profile:
    base: dict[str, Any] = {
        "name": "made",
        "transport": {"kind": "websocket"},
        "media": {"kind": "audio", "chunk_ms": 100},
        "end": [{"send_text": "end"}, {"done": {"on": ["close"], "closes": "target"}}],
        "receive": {"rules": rules},
    }
    return Profile.model_validate(base | changes)


def heard(made: Profile, channel: str = "transcript") -> tuple[str, list[str], list[str]]:
    """Two segments are said; what the profile's own ears make of it: the text, the kinds, the segments' texts."""
    speaker, hearing = Speaker(made), Hearing(compile_profile(made), 1 << 20, FIELDS)
    voice, kinds = speaker.voice(FIELDS), []
    sayings = [("partial", "the"), ("partial", "the train"), ("final", "the train")]
    sayings += [("partial", "leaves"), ("final", "leaves at nine")]
    for at, (kind, text) in enumerate(sayings):
        messages = voice.partial(channel, text) if kind == "partial" else voice.final(channel, text)
        for message in messages:
            kinds += [one.kind for one in hearing.listen(speaker.wire(message), at)]
            kinds += [one.kind for one in hearing.flush(at)]  # where a response is one message
    hearing.promote()
    (shown,) = [part for name, part in hearing.channels().items() if name.partition(":")[0] == channel]
    return shown.settled_text, kinds, [segment.text for segment in shown.segments]


FLAG = {"has": "text", "text": {"model": "unkeyed", "text": "text", "final": "is_final"}}
MODELS: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    ("a flag", [FLAG], {}),
    (
        "two rules",
        [
            {"match": "m == 'p'", "text": {"model": "unkeyed", "text": "t.x", "final": False}},
            {"match": "m == 'f'", "text": {"model": "unkeyed", "text": "t.x", "final": True}},
        ],
        {},
    ),
    ("a condition as flag", [{"has": "e", "text": {"model": "unkeyed", "text": "t", "final": "e == 'EndOfTurn'"}}], {}),
    (
        "keys of each element",
        [
            {
                "has": "segments",
                "each": "segments[*]",
                "text": {"model": "keyed", "key": "start", "text": "text", "final": "completed", "order": "number"},
            }
        ],
        {},
    ),
    (
        "a higher key seals lower ones",
        [
            {
                "has": "seg",
                "text": {"model": "keyed", "key": "seg", "text": "text", "order": "number", "seals_lower": True},
            }
        ],
        {},
    ),
    (
        "increments, and the whole at the end",
        [
            {"match": "type == 'delta'", "text": {"model": "delta", "text": "delta"}},
            {"match": "type == 'done'", "text": {"model": "delta", "replace": "text", "final": True}},
        ],
        {},
    ),
    (
        "increments that nothing ends",
        [{"has": "delta", "text": {"model": "delta", "text": "delta"}}],
        {"never_final": {"rule": "promote_on_done"}},
    ),
    (
        "committed lines and a tail",
        [{"has": "lines", "text": {"model": "snapshot", "committed": "lines", "text": "text", "tail": "buffer"}}],
        {},
    ),
    (
        "committed lines and a tail in one list, with times",
        [
            {
                "has": "lines",
                "text": {
                    "model": "snapshot",
                    "committed": "lines[?sure]",
                    "text": "text",
                    "tail": "lines[?!sure].text",
                    "start": "from",
                    "end": "to",
                },
            }
        ],
        {},
    ),
    (
        "committed lines by a path",
        [{"has": "lines", "text": {"model": "snapshot", "committed": "lines[*].text", "tail": "buffer"}}],
        {},
    ),
    (
        "tokens",
        [{"has": "tokens", "text": {"model": "tokens", "items": "tokens", "text": "text", "final": "fin", "join": ""}}],
        {},
    ),
    (
        "final and tentative tokens apart",
        [
            {
                "has": "said",
                "text": {
                    "model": "tokens",
                    "committed": "said.sure",
                    "tail": "said.unsure",
                    "text": "text",
                    "start": "from",
                    "end": "to",
                    "join": "",
                },
            }
        ],
        {},
    ),
    (
        "tokens of one kind",
        [
            {
                "has": "tokens",
                "text": {"model": "tokens", "items": "tokens[?kind == 'original']", "text": "text", "final": "fin"},
            }
        ],
        {},
    ),
    (
        "edits",
        [{"has": "new", "text": {"model": "edit", "text": "new", "delete": "deleted"}}],
        {"never_final": {"rule": "promote_on_done"}},
    ),
    (
        "edits by words",
        [{"has": "new", "text": {"model": "edit", "text": "new", "delete": "cut", "unit_of_delete": "words"}}],
        {"never_final": {"rule": "promote_on_done"}},
    ),
    (
        "labels, two in a row",
        [
            {
                "match": "sign",
                "text": {
                    "model": "labels",
                    "text": "sign",
                    "confidence": "p",
                    "min_confidence": 0.7,
                    "accept_after": 2,
                },
            }
        ],
        {"never_final": {"rule": "promote_on_done"}},
    ),
]


@pytest.mark.parametrize(("rules", "changes"), [case[1:] for case in MODELS], ids=[case[0] for case in MODELS])
def test_every_text_model_is_spoken_so_that_the_profile_reads_the_text(
    rules: list[dict[str, Any]], changes: dict[str, Any]
) -> None:
    text, kinds, _ = heard(profile(rules, **changes))
    assert text == "the train leaves at nine"
    assert set(kinds) <= {"partial", "final", "unchanged", "empty"}
    assert kinds[0] == "partial" or "labels" in str(rules)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_profile_is_spoken_on_every_channel(name: str) -> None:
    made = load_profile(name)
    speaker = Speaker(made)
    assert sorted([*speaker.channels, *speaker.media]) == sorted(made.channels)
    for channel in made.channels:
        assert channel in speaker.media or heard(made, channel)[0] == "the train leaves at nine"


@pytest.mark.parametrize(
    "receive",
    [
        {"decode": "nested", "nested": "payload.result"},
        {"decode": "array"},
        {"framing": "lines"},
        {"framing": "sse"},
    ],
)
def test_every_wrapping_is_spoken(receive: dict[str, Any]) -> None:
    path = "payload.result.text" if receive.get("decode") == "nested" else "text"
    rule = {"has": path, "text": {"model": "unkeyed", "text": path, "final": "is_final"}}
    assert heard(profile([rule], receive=receive | {"rules": [rule]}))[0] == "the train leaves at nine"


def test_a_channel_named_by_the_message_bears_the_clips_language() -> None:
    rule = {
        "has": "content",
        "channel": "translation:{language}",
        "text": {"model": "unkeyed", "text": "content", "final": "fin"},
    }
    made = profile([rule], channels={"translation": {"stage": "translation"}})
    (message,) = Speaker(made).voice(FIELDS).partial("translation", "hola")
    assert message == {"content": "hola", "language": "es", "fin": False}


def test_templates_of_the_profile_go_before_what_is_derived() -> None:
    simulate = {"partial": {"text": "{text}", "is_final": False, "id": "{session.id}"}, "ready": {"type": "hello"}}
    speaker = Speaker(profile([FLAG], simulate=simulate))
    assert speaker.voice(FIELDS).partial("transcript", "red") == [{"text": "red", "is_final": False, "id": "s"}]
    assert speaker.greeting == {"type": "hello"}


def test_an_opening_is_answered_with_what_the_profile_waits_for_and_keeps() -> None:
    wait = {"match": "message == 'SERVER_READY'", "capture": {"id": "info.id"}}
    speaker = Speaker(profile([FLAG], open=[{"send_json": {"a": 1}}, {"wait": wait}]))
    assert speaker.waits == {1: {"message": "SERVER_READY", "info": {"id": "simulated"}}}


@pytest.mark.parametrize(
    ("end", "rules", "done", "closes"),
    [
        ([{"done": {"on": ["close"], "closes": "target"}}], [], None, True),
        ([{"done": {"on": ["message"], "match": "type == 'done'"}}], [], {"type": "done"}, False),
        ([{"done": {"on": ["close", "message"]}}], [{"has": "fin", "event": "done"}], {"fin": None}, False),
        ([{"done": {"on": ["close", "message"]}}], [], None, True),
        ([{"done": {"on": ["first_final"]}}], [], None, False),
        ([{"done": {"on": ["message"], "match": "is_final"}}], [], None, False),  # the final says it
        ([], [], None, True),
    ],
)
def test_the_end_is_said_as_the_profile_wants_to_hear_it(end: Any, rules: Any, done: Any, closes: bool) -> None:
    speaker = Speaker(profile([FLAG, *rules], end=end))
    assert (speaker.done, speaker.closes) == (done, closes)


def test_it_is_known_whether_a_message_can_mark_a_final() -> None:
    assert Speaker(load_profile("vosk")).marks_final("transcript")
    assert not Speaker(load_profile("sign-frames")).marks_final("gloss")


def test_a_refusal_is_one_that_the_profile_takes_for_one() -> None:
    rule = {"match": "status == 'WAIT'", "outcome": "rejected", "detail": "message"}
    assert Speaker(profile([rule, FLAG])).rejection("full") == ([{"status": "WAIT", "message": "full"}], None)
    hidden = [{"has": "status", "event": "ignore"}, rule, FLAG]  # the first rule takes it for something else
    assert Speaker(profile(hidden)).rejection("full") == ([], None)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            [
                {"has": "text", "event": "ignore"},
                {"has": "text", "text": {"model": "unkeyed", "text": "text", "final": True}},
            ],
            ["receive.rules[1] (unkeyed)", "heard as nothing", "simulate.final"],
        ),
        (
            [{"has": "n", "text": {"model": "unkeyed", "text": "length(n)", "final": True}}],
            ["receive.rules[0] (unkeyed)", "function expression length is no path"],
        ),
        (
            [{"has": "t", "text": {"model": "unkeyed", "text": "t", "final": False}}],
            ["receive.rules[0] (unkeyed)", "does not become final"],
        ),
    ],
)
def test_a_profile_that_cannot_be_spoken_is_refused_with_its_rule(rules: list[dict[str, Any]], said: list[str]) -> None:
    with pytest.raises(SpeakerError) as caught:
        Speaker(profile(rules))
    for part in said:
        assert part in caught.value.problems[0]


def test_a_wait_that_cannot_be_fulfilled_is_named() -> None:
    with pytest.raises(SpeakerError, match=r"open\[0\]\.wait"):
        Speaker(profile([FLAG], open=[{"wait": {"match": "a == 'x' && a == 'y'"}}]))


MEDIA = {"stage": "media", "medium": "audio"}


@pytest.mark.parametrize("coding", ["base64", "hex"])
def test_a_channel_of_sound_is_spoken_by_its_rule_also_where_there_is_no_text(coding: str) -> None:
    form = {"format": "s16le", "rate_hz": 8000}
    for rule in (
        {"match": "type == 'audio'", "media": {coding: "data.chunk", **form}},
        {"has": "parts", "each": "parts[*]", "where": "kind == 'pcm'", "media": {coding: "body", **form}},
    ):
        made = profile([rule], channels={"speech": MEDIA})
        speaker, hearing = Speaker(made), Hearing(compile_profile(made), 1 << 20, FIELDS)
        (way,) = speaker.media.values()
        for at in range(2):
            assert [one.kind for one in hearing.listen(speaker.wire(way.message(b"\1\2\3")), at)] == ["media"]
        media = hearing.channels()["speech"].media
        assert (speaker.channels, media and media.bytes) == ([], 6)


def test_a_container_cannot_be_spoken_and_that_is_said() -> None:
    rule = {"match": "type == 'audio'", "media": {"base64": "x", "format": "container"}}
    with pytest.raises(SpeakerError, match="channel speech: the simulator makes no containers"):
        Speaker(profile([rule], channels={"speech": MEDIA}))
