"""The corners of a conversation: counts, fields, graces, cuts between utterances."""

import re

import pytest

from loadbench.session.load import load_profile, shipped
from loadbench.session.machine import Conversation
from loadbench.session.wire import ClipTask, Ended, Limits, Opened, Send, Shut, StartMedia
from tests.session.scripted import WHOLE, Play, S, closed, done_latency, final_latency, first_output, gone, profile


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
    assert named.did[1][1] == Send("text", b"small", "open")


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
    needed = re.findall(r"\{((?:session|clip|param|secret)\.[\w.-]+)\}", shipped()[name].read_text())
    fields = dict.fromkeys(needed, "x") | {f"param.{key}": value for key, value in how.params.items()}
    play = Play(how, [], fields=fields, limits=Limits(ready_s=3, final_s=4)).run()
    assert play.record.outcome in ("no_final", "silent", "no_output")  # silent where the opening script waits
    assert play.ended_s <= 10.0


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
