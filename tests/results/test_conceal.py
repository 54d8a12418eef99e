"""Texts of a record: a secret is spelled out neither by one update nor by all of them."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from loadbench.results.conceal import concealed
from loadbench.results.masks import Masks
from loadbench.results.record import Channel, Segment, SessionRecord, Update, Utterance

SECRET = "hunter2-Zq9xxyS-long"


def record(states: list[str], segments: list[str] | None = None) -> SessionRecord:
    """A session whose channel showed these states, one a millisecond, each written as the whole."""
    updates = [Update(at, 0, state, len(state) // 2) for at, state in enumerate(states)]
    parts = [Segment(key=str(at), text=text, first_ns=0, changed_ns=0) for at, text in enumerate(segments or states)]
    utterance = Utterance(
        index=0, clip="c", attempt=0, media_ns=1, channels={"text": Channel(updates=updates, segments=parts)}
    )
    times = {"planned_ns": 0, "begun_ns": 0, "ended_ns": 9}
    return SessionRecord(
        id="s",
        worker="w",
        user=0,
        stage="main",
        window="measure",
        utterances=[utterance],
        outcome="ok",
        side="none",
        **times,
    )


def states(shown: SessionRecord) -> list[str]:
    text, found = "", []
    for update in shown.utterances[0].channels["text"].updates:
        text = text[: update.keep] + update.add
        found.append(text)
    return found


def test_a_secret_that_grows_letter_by_letter_stops_at_seven_and_the_times_stay() -> None:
    grown = [f"a {SECRET[:size]}" for size in range(len(SECRET) + 1)] + [f"a {SECRET} b"]
    shown = concealed(record(grown), Masks([SECRET]))
    assert states(shown)[:8] == grown[:8]
    assert set(states(shown)[8:-1]) == {"a ***"}
    assert states(shown)[-1] == "a *** b"
    assert [update.at_ns for update in shown.utterances[0].channels["text"].updates] == list(range(len(grown)))
    assert "2-Z" not in msgspec.json.encode(shown).decode()


def test_a_secret_in_two_messages_is_hidden_with_the_joint_between_them() -> None:
    told = record(["so hunter2-Zq", f"so hunter2-Zq {SECRET[10:]} it is"], ["so hunter2-Zq", SECRET[10:] + " it is"])
    shown = concealed(told, Masks([SECRET]))
    assert states(shown) == ["so ***", "so *** it is"]
    assert [part.text for part in shown.utterances[0].channels["text"].segments] == ["so ***", "*** it is"]


def test_a_record_without_secrets_is_the_same_object() -> None:
    told = record(["red", "red boat", "red boat, blue sea"])
    assert concealed(told, Masks([SECRET, "pw"])) is told
    assert concealed(told, Masks([])) is told


@given(st.lists(st.text(alphabet="ab cd", max_size=12), max_size=8), st.text(alphabet="abcd", min_size=8, max_size=10))
def test_no_state_that_is_replayed_holds_the_secret(texts: list[str], secret: str) -> None:
    shown = concealed(record(texts), Masks([secret]))
    channel = shown.utterances[0].channels["text"]
    for state, update in zip(states(shown), channel.updates, strict=True):
        assert secret not in state
        assert secret not in state.replace(" ", "")
        assert 0 <= update.settled <= len(state)
