from typing import Any

from loadbench.profiles import speech_guess

GROWN = ("turn", "turn left", "turn left here")


def rules(messages: list[Any], chunks: int = 20) -> list[dict[str, Any]]:
    return speech_guess.understand(messages, chunks).rules


def test_partials_and_finals_in_keys_of_their_own() -> None:
    found = rules([*({"partial": text} for text in GROWN), {"text": GROWN[-1], "result": [{"w": 1}, {"w": 2}]}])
    assert [(rule["has"], rule["text"]["final"]) for rule in found] == [("partial", False), ("text", True)]


def test_a_switch_that_is_on_for_the_last_of_a_text_marks_the_final() -> None:
    said = [*GROWN, "the next", "the next one"]
    finals = (GROWN[-1], "the next one")
    messages = [{"type": "transcript", "is_final": text in finals, "channel": {"text": text}} for text in said]
    speech = speech_guess.understand(messages, 20)
    (rule,) = speech.rules
    assert rule["match"] == "type == 'transcript'"
    assert rule["text"] == {"model": "unkeyed", "text": "channel.text", "final": "is_final"}
    assert speech.never_final == "explicit"


def test_a_switch_of_any_name_does_where_the_text_begins_anew_behind_it() -> None:
    said = [*GROWN, "go on", "go on then"]
    messages = [{"x": text in (GROWN[-1], "go on then"), "text": text} for text in said]
    assert rules(messages)[0]["text"]["final"] == "x"


def test_kinds_by_a_type_with_the_one_that_ends_a_text() -> None:
    messages = [{"type": "hypothesis", "text": text} for text in GROWN]
    messages += [{"type": "utterance", "text": GROWN[-1]}, {"type": "info", "load": 1}]
    found = {rule["match"]: rule for rule in rules(messages)}
    assert found["type == 'hypothesis'"]["text"]["final"] is False
    assert found["type == 'utterance'"]["text"]["final"] is True
    assert found["type == 'info'"]["event"] == "ignore"


def test_deltas_are_added_and_replaced_by_the_whole() -> None:
    messages = [{"type": "t.delta", "delta": piece} for piece in ("turn ", "left ", "here")]
    messages += [{"type": "t.completed", "transcript": "turn left here"}]
    by_kind = {rule["match"]: rule["text"] for rule in rules(messages)}
    assert by_kind["type == 't.delta'"] == {"model": "delta", "text": "delta"}
    assert by_kind["type == 't.completed'"] == {"model": "delta", "replace": "transcript", "final": True}


def test_one_label_a_frame_and_the_rest_acknowledgements() -> None:
    signs = [None, None, "hello", "hello", None, "thanks"]
    messages = [{"type": "d", "p": {"sign": sign, "confidence": 0.9} if sign else {}} for sign in signs]
    speech = speech_guess.understand(messages, 6)
    text, rest = speech.rules
    assert text["match"] == "type == 'd' && p.sign"
    assert text["text"]["model"] == "labels"
    assert text["text"]["confidence"] == "p.confidence"
    assert rest == {"match": "type == 'd'", "event": "ack"}
    assert speech.never_final == "promote_on_done"


def test_an_error_is_a_rule_before_all_others() -> None:
    messages = [{"type": "text", "text": text} for text in GROWN]
    messages.append({"type": "error", "message": "too fast"})
    assert rules(messages)[0] == {"match": "type == 'error'", "outcome": "recoverable"}


def test_where_nothing_speaks_that_is_said() -> None:
    speech = speech_guess.understand([{"type": "x", "n": 1}], 3)
    assert not any("text" in rule for rule in speech.rules)
    assert "no text was found" in speech.notes[0]
