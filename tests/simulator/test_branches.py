"""What the service says so that a client can go on, which steps it then expects, and what it answers beforehand."""

from typing import Any

import pytest

from loadbench.session.load import load_text
from loadbench.session.profile import Profile
from loadbench.simulator.branches import Branches
from loadbench.simulator.debts import Debts
from loadbench.simulator.hear import Ear, Grammar
from loadbench.simulator.reception import Reception
from loadbench.simulator.speak import Speaker, SpeakerError

RULE = "receive: {rules: [{has: text, text: {model: unkeyed, text: text, final: true}}]}\n"
HEAD = "schema_version: 1\nname: mine\nmedia: {kind: audio, chunk_ms: 100}\n"


def profile(parts: str, rules: str = RULE) -> Profile:
    transport = "" if "transport:" in parts else "transport: {kind: websocket}\n"
    return load_text(HEAD + transport + rules + parts, "mine.yaml")


def refusing(when: str) -> Profile:
    return profile(
        "open: [{wait: {has: a, capture: {x: a}}}, {refuse: no, when: {field: captured.x, "
        + when
        + "}}, {send_text: yes, when: {field: captured.x, "
        + when.replace("differs", "equals")
        + "}}]\n"
    )


@pytest.mark.parametrize(
    ("when", "value"),
    [("differs: 'true'", True), ("differs: '4000'", 4000), ("differs: raw", "raw"), ("equals: 'true'", "simulated")],
)
def test_what_is_said_is_what_no_step_refuses(when: str, value: Any) -> None:
    made = refusing(when)
    assert Branches(made).value("x") == value
    assert Speaker(made).waits == {0: {"a": value}}
    taken = [Branches(made).takes(step) for step in made.open]
    assert taken == [True, False, "differs" in when]


def test_a_step_that_hangs_on_what_only_the_client_knows_may_come_or_not() -> None:
    parts = (
        'params: {vad: "on"}\nopen: [{send_text: vad, when: {field: param.vad, equals: "on"}}, {wait: {has: a}}]\n'
        'end: [{send_text: commit, when: {field: param.vad, differs: "on"}}, {send_text: stop}, {done: {}}]\n'
    )
    ear = Ear(Grammar(profile(parts)))
    assert ear.owed() == 1
    assert ear.opened
    assert (ear.hear("text", b"vad").kind, ear.hear("text", b"vad").violation) == ("open", "")
    assert (ear.hear("text", b"commit").last, ear.hear("text", b"stop").last) == (False, True)
    ear = Ear(Grammar(profile(parts)))
    ear.owed()
    assert ear.hear("text", b"stop").last


def test_each_utterance_opens_anew_with_what_it_begins_with() -> None:
    parts = "open: [{send_text: hello}]\nbegin: [{send_text: run}, {wait: {has: a}}]\nend: [{send_text: stop}]\n"
    ear = Ear(Grammar(profile(parts)))
    for _ in range(2):
        if not ear.opened:
            ear.hear("text", b"hello")
        assert ear.hear("text", b"run").kind == "open"
        assert ear.owed() == 2
        assert ear.opened
        assert ear.hear("text", b"stop").last
        ear.again()
        assert not ear.opened


def test_a_prelude_is_answered_with_a_way_back_and_made_up_values() -> None:
    parts = (
        'params: {api: "https://x.example"}\n'
        'prelude: [{request: "POST {param.api}/v2/live?k={secret.k}", expect: [201], capture: {u: a.url, t: token}},'
        ' {request: "GET https://y.example/then/{captured.t}", capture: {n: "list[1]"}}]\n'
        'transport: {kind: websocket, url: "{captured.u}?t={captured.t}"}\n'
    )
    reception = Reception(profile(parts))
    desk = reception.desk("POST", "/v2/live?k=abc")
    assert desk is not None
    assert (desk.status, desk.answer("h:1")) == (201, {"a": {"url": "ws://h:1/simulated"}, "token": "simulated"})
    then = reception.desk("GET", "/then/simulated")
    assert then is not None
    assert then.answer("h:1") == {"list": [None, "simulated"]}
    assert reception.desk("GET", "/v2/live") is None
    assert reception.desk("POST", "/") is None


def test_an_answer_that_cannot_be_made_is_said_before_the_service_listens() -> None:
    parts = 'prelude: [{request: "GET https://h/", capture: {n: "length(a)"}}]\n'
    with pytest.raises(SpeakerError, match=r"prelude: .* the simulator cannot answer it"):
        Speaker(profile(parts))


def test_what_a_final_settles_was_begun_before_it() -> None:
    rules = (
        "receive: {rules: [{has: begun, event: pending, key: begun}, "
        "{has: text, event: settled, key: item.id, text: {model: unkeyed, text: text, final: true}}]}\n"
    )
    debts = Debts(profile("", rules))
    assert debts.before([{"text": "a", "item": {"id": 4}}, {"other": 1}]) == [{"begun": 4}]
    assert debts.last("z") == [{"begun": "z"}, {"text": "", "item": {"id": "z"}}]
    assert Debts(profile("")).before([{"text": "a"}]) == []
