"""Response times from one utterance: names, signs, and what is unknown."""

from typing import Any

import pytest

from loadbench.analysis.response import (
    METRICS,
    Observation,
    applicable,
    connecting,
    first_metric,
    medium_of,
    observations,
    premature,
    readying,
    responses,
)
from loadbench.results.media import MediaOutput
from loadbench.results.record import Channel, Connection
from tests.analysis.records import at, channel, record, utterance

# A sentence of 4.000 s: speech from 0.500 to 3.200, end mark at 4.002, partials at 1.140, 1.820, 3.010 and 3.400,
# finals at 2.350 and 4.310.
TEXT = channel(1.140, 2.350, 4.310)
SENTENCE = utterance(
    media_s=4.0, channels={"transcript": TEXT}, eos=4.002, onset=0.5, activity_end=3.2, done=4.4, outcome="ok"
)
EXPECTED = {
    "first_output_from_media": 1.140,
    "first_output_from_onset": 0.640,
    "first_final_from_media": 2.350,
    "final_from_source_end": 0.310,
    "final_from_activity_end": 1.110,
    "final_from_eos_msg": 0.308,
    "done_from_source_end": 0.400,
    "final_from_planned_end": 0.810,  # planned 0.5 s before media zero
}


def seconds(found: dict[str, int | None]) -> dict[str, float | None]:
    return {name: None if span is None else round(span / 1e9, 9) for name, span in found.items()}


def test_the_worked_example_gives_every_response_time_to_the_nanosecond() -> None:
    assert seconds(responses(SENTENCE, record("s", "ok", SENTENCE), TEXT)) == EXPECTED
    assert EXPECTED.keys() == set(applicable(None))


# Speech of the same sentence: bytes from 1.000, sound from 1.200, played until 5.500.
SPOKEN = Channel(
    first_ns=at(1.2),
    media=MediaOutput(
        medium="audio", format="s16le", first_byte_ns=at(1.0), first_sound_ns=at(1.2), playback_end_ns=at(5.5)
    ),
)


def test_speech_has_times_of_its_own_and_none_of_texts() -> None:
    spoken = utterance(media_s=4.0, channels={"speech": SPOKEN}, onset=0.5, done=4.4, outcome="ok")
    assert seconds(responses(spoken, record("s", "ok", spoken), SPOKEN)) == {
        "done_from_source_end": 0.4,
        "first_byte_from_media": 1.0,
        "first_sound_from_media": 1.2,
        "first_sound_from_onset": 0.7,
        "playback_end_from_source_end": 1.5,
        "playback_end_from_planned_end": 2.0,
    }


def test_every_metric_is_one_of_texts_of_sound_or_of_pictures() -> None:
    kinds: tuple[str | None, ...] = (None, "audio", "video")
    assert {name for kind in kinds for name in applicable(kind)} == METRICS.keys()
    assert {first_metric(kind) for kind in kinds} == {
        "first_output_from_media",
        "first_sound_from_media",
        "first_frame_from_media",
    }


@pytest.mark.parametrize(
    ("outcome", "media", "expected"),
    [
        ("ok", {"first_frame_ns": at(0.7), "playback_end_ns": at(4.5)}, ("exact", "exact")),
        ("ok", {}, ("never", "never")),  # it finished, and there was nothing to see
        ("ok", {"decoded": False}, ("left_out", "left_out")),  # nobody opened the container
        ("interrupted", {"decoded": False}, ("left_out", "left_out")),
        ("interrupted", {}, ("at_least", "at_least")),
        ("lost", {"first_frame_ns": at(0.7)}, ("never", "never")),
    ],
)
def test_pictures_count_as_texts_do_and_what_nobody_opened_is_left_out(
    outcome: str, media: dict[str, Any], expected: tuple[str, str]
) -> None:
    channel = Channel(media=MediaOutput(medium="video", format="container", first_byte_ns=at(0.5), **media))
    signed = utterance(media_s=4.0, channels={"sign": channel}, outcome=outcome)
    found = observations(signed, record("s", outcome, signed, ended=6.0), channel, "video")
    assert (found["first_frame_from_media"].kind, found["playback_end_from_source_end"].kind) == expected
    assert found.keys() == set(applicable("video"))


def test_a_media_channel_on_which_nothing_came_never_answered() -> None:
    silent = utterance(media_s=4.0, outcome="ok")
    found = observations(silent, record("s", "ok", silent), None, "audio")
    assert {found[name].kind for name in ("first_byte_from_media", "playback_end_from_source_end")} == {"never"}


def test_the_parts_of_a_channel_have_its_medium() -> None:
    assert medium_of({"speech": "audio"}, "speech:es") == "audio"
    assert medium_of({"speech": "audio"}, "text") is None


def test_sound_before_the_onset_is_premature() -> None:
    spoken = utterance(media_s=4.0, channels={"speech": SPOKEN}, onset=1.3, outcome="ok")
    assert premature(spoken, SPOKEN)


def test_nothing_known_gives_none_and_never_0() -> None:
    empty = utterance(born=False)
    found = responses(empty, record("s", "ok", empty), Channel())
    assert all(span is None for span in found.values())


def test_early_output_keeps_its_sign_and_is_flagged() -> None:
    early = channel(0.2, 0.9, 0.9)
    spoken = utterance(media_s=4.0, onset=0.5, channels={"transcript": early}, outcome="ok")
    found = seconds(responses(spoken, record("s", "ok", spoken), early))
    assert found["first_output_from_onset"] == -0.3
    assert found["final_from_source_end"] == -3.1
    assert premature(spoken, early)
    assert not premature(spoken, channel(0.6))
    assert not premature(spoken, Channel())


def test_without_an_onset_output_before_media_zero_is_premature() -> None:
    spoken = utterance()
    assert premature(spoken, channel(-0.1))
    assert not premature(spoken, channel(0.1))


@pytest.mark.parametrize("outcome", ["no_final", "lost", "closed_early", "time_up", "interrupted"])
def test_an_utterance_that_did_not_finish_has_no_last_final(outcome: str) -> None:
    segment = channel(0.3, 0.7, 1.1)
    broken = utterance(media_s=3.0, channels={"transcript": segment}, eos=3.0, done=3.5, outcome=outcome)
    found = seconds(responses(broken, record("s", outcome, broken), segment))
    assert found["first_output_from_media"] == 0.3
    assert found["first_final_from_media"] == 0.7
    for name in ("final_from_source_end", "final_from_eos_msg", "final_from_planned_end", "done_from_source_end"):
        assert found[name] is None


def test_a_later_utterance_has_no_plan_of_its_own() -> None:
    second = utterance(index=1, channels={"transcript": TEXT}, outcome="ok")
    assert responses(second, record("s", "ok", second), TEXT)["final_from_planned_end"] is None
    assert observations(second, record("s", "ok", second), TEXT)["final_from_planned_end"].kind == "left_out"


def test_an_utterance_without_an_outcome_takes_that_of_its_session() -> None:
    silent = utterance(channels={})
    assert observations(silent, record("s", "lost", silent), None)["final_from_source_end"].kind == "never"


CASES = [
    # outcome, first, final, ended -> what first_output_from_media and final_from_source_end count as
    ("ok", 0.5, 1.2, 1.3, ("exact", 0.5), ("exact", 0.2)),
    ("ok", None, None, 1.3, ("never", None), ("never", None)),  # finished, and said nothing on this channel
    ("no_final", 0.5, None, 9.0, ("never", None), ("never", None)),
    ("time_up", 0.5, None, 5.0, ("exact", 0.5), ("at_least", 4.0)),  # its first output was seen before the cut
    ("time_up", None, None, 5.0, ("at_least", 5.0), ("at_least", 4.0)),
    ("interrupted", None, None, 0.4, ("at_least", 0.4), ("left_out", None)),  # cut in the middle of its media
]


@pytest.mark.parametrize(("outcome", "first", "final", "ended", "of_first", "of_final"), CASES)
def test_what_an_utterance_counts_as(outcome, first, final, ended, of_first, of_final) -> None:
    text = channel(first, final, final)
    one = utterance(media_s=1.0, channels={"transcript": text}, outcome=outcome)
    found = observations(one, record("s", outcome, one, ended=ended), text)
    for name, (kind, span) in {"first_output_from_media": of_first, "final_from_source_end": of_final}.items():
        assert found[name].kind == kind
        assert span is None or found[name].span_ns == pytest.approx(span * 1e9)


def test_a_session_that_never_got_to_its_media_failed_in_every_metric_that_applies() -> None:
    unborn = utterance(born=False, outcome="connect_failed")
    found = observations(unborn, record("s", "connect_failed", unborn), None)
    assert found["final_from_source_end"] == Observation("never")
    assert found["final_from_eos_msg"] == Observation("never")
    assert found["first_output_from_onset"] == Observation("left_out")


def test_a_service_without_a_done_event_does_not_fail_for_it() -> None:
    one = utterance(channels={"transcript": TEXT}, outcome="ok")
    assert observations(one, record("s", "ok", one), TEXT)["done_from_source_end"] == Observation("left_out")


def test_connecting_and_readying_are_apart() -> None:
    link = Connection(dialled_ns=at(0), tcp_ns=at(0.1), opened_ns=at(0.3))
    again = Connection(dialled_ns=at(2))
    one = record("s", "ok", connections=[link, again], ready_ns=at(0.8))
    assert connecting(one) == [{"tcp": 100_000_000, "opened": 300_000_000}, {"tcp": None, "opened": None}]
    assert readying(one) == 500_000_000
    assert readying(record("s", "rejected", ready_ns=None)) is None
