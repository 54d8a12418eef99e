from typing import Any

import pytest

from loadbench.profiles.replay import replay
from loadbench.session.load import load_text
from tests.profiles.sketch import examined, recording, text, whats

PARTIAL = "{has: partial, text: {model: unkeyed, text: partial}}"
FINAL = "{has: text, text: {model: unkeyed, text: text, final: true}}"
FLAGGED = "{has: text, text: {model: unkeyed, text: text, final: done}}"
GOOD = ({"partial": "turn"}, {"partial": "turn left"}, {"text": "turn left here"})


def test_messages_that_fit_leave_nothing_to_say() -> None:
    found = examined(text(PARTIAL, FINAL), *GOOD)
    assert found.findings == []
    assert found.messages == 3
    assert found.code(strict=True) == 0


def test_a_text_that_every_message_marks_final_and_that_goes_on_is_no_final() -> None:
    rule = "{has: text, text: {model: unkeyed, text: text, final: true}}"
    grown = [{"text": said, "over": said.endswith("here")} for said in ("turn", "turn left", "turn left here")]
    (what,) = whats(examined(text(rule), *grown))
    assert what == "marked 3 texts final, and 2 of them went on as the next segment's beginning"
    assert "over" in examined(text(rule), *grown).findings[0].advice, "a switch that changes is a better mark"


def test_a_keyed_text_that_changes_after_its_final_is_told_once_for_each() -> None:
    rule = "{has: text, text: {model: keyed, text: text, key: id, final: 'true'}}"
    rule = rule.replace("'true'", "over")
    said = [{"id": 1, "text": "turn", "over": True}, {"id": 1, "text": "burn", "over": True}]
    (what,) = whats(examined(text(rule), *said))
    assert what == "marked 2 texts final, and 1 of them changed afterwards in the same segment"


def test_finals_that_are_sentences_of_their_own_are_fine() -> None:
    said = [{"text": "turn left here"}, {"text": "turn right there"}, {"text": "no"}, {"text": "no problem"}]
    assert examined(text(FINAL), *said).findings == []


def test_a_final_that_never_comes_is_told() -> None:
    (what,) = whats(examined(text(PARTIAL), *GOOD[:2]))
    assert what == "leaves channel transcript with 2 texts, and none of them final"


@pytest.mark.parametrize("never", ["promote_on_done", "promote_on_quiet, quiet_s: 1.0"])
def test_it_is_not_missed_where_the_profile_knows_that(never: str) -> None:
    more = f"never_final: {{rule: {never}}}\n"
    assert examined(text(PARTIAL, more=more), *GOOD[:2]).findings == []


def test_a_last_text_that_is_repeated_unchanged_to_the_end_was_final_long_ago() -> None:
    said = [{"text": "turn", "done": False}, *[{"text": "turn left", "done": False}] * 4]
    (what,) = whats(examined(text(FLAGGED), *said))
    assert what == "leaves the last text of channel transcript, which came 3 times more, without a final"


def test_a_field_that_no_message_has_is_told_with_the_one_that_was_meant() -> None:
    rule = "{has: text, text: {model: unkeyed, text: text, final: is_finel, start: begin}}"
    found = examined(text(rule), {"text": "turn", "is_final": True})
    said = {finding.what: finding.advice for finding in found.findings}
    assert said["selects final: is_finel, which none of 1 messages that it took has"] == "meant is_final?"
    assert "selects start: begin, which none of 1 messages that it took has" in said


def test_an_empty_value_of_a_bare_path_is_a_trap_and_has_is_the_way_out() -> None:
    bare = "{match: partial, text: {model: unkeyed, text: partial}}"
    said = ({"partial": ""}, {"partial": ""}, *GOOD)
    found = examined(text(bare, FINAL), *said)
    assert whats(found) == ["does not fit 2 messages in which partial is empty, for an empty text or list is false"]
    assert found.findings[0].advice.startswith("has: partial")
    assert examined(text(PARTIAL, FINAL), *said).findings == []


def test_a_rule_whose_messages_another_one_takes_is_told_by_the_messages_too() -> None:
    swallowing = '{match: "length(keys(@)) > `0`", event: ignore}'
    found = examined(text(swallowing, PARTIAL), *GOOD)
    assert "never fires: rule 1 took 2 messages that it fits" in whats(found)


def test_a_rule_that_fits_nothing_is_a_fact_unless_another_name_is_near() -> None:
    other = "{has: translation, text: {model: unkeyed, text: translation}}"
    assert whats(examined(text(PARTIAL, FINAL, other), *GOOD)) == []
    near = "{has: partiel, text: {model: unkeyed, text: partiel}}"
    assert "fits none of 3 recorded messages" in whats(examined(text(near, FINAL), *GOOD))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("<html>", "not JSON"),  # what a session would end with
        ({"text": 7}, "does not fit: text rule: text: 'text' gives a number"),
    ],
)
def test_a_message_that_would_end_a_session_is_an_error(message: Any, said: str) -> None:
    found = examined(text(PARTIAL, FINAL), message)
    assert found.code(strict=False) == 2
    assert said in whats(found, "error")[0]


def test_a_wait_and_a_done_that_no_message_fulfils_are_told() -> None:
    more = "open: [{wait: {match: \"type == 'ready'\"}}]\n"
    profile = text(PARTIAL, FINAL, more=more).replace("[close]", "[message], match: \"type == 'end'\"")
    said = whats(examined(profile, *GOOD))
    assert any("open[0] waits for a message" in what for what in said)
    assert any("the output is done with a message" in what for what in said)


def test_messages_that_the_scripts_wait_for_are_not_unread() -> None:
    more = "open: [{wait: {has: ready}}]\n"
    profile = load_text(text(PARTIAL, more=more), "sketch.yaml")
    found = replay(profile, recording({"ready": 1}, {"partial": "turn"}, {"odd": 1}))
    assert (found.matched, found.unread, found.kinds["unmatched"]) == (1, 1, 2)
