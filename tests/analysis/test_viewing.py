"""What a viewer gets, worked out by hand: a screen of two rows of 7 characters, seconds from media zero."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.analysis.viewing import Reader, Setting, Viewing
from loadbench.results.media import MediaOutput
from loadbench.results.record import Channel, SessionRecord
from tests.analysis.records import at, header, record, updates, utterance

SETTING = Setting("by hand", 7, 2)
Said = list[tuple[float, str]]


def timeline(said: Said) -> Channel:
    """What the channel showed, from when; the whole text each time."""
    found = updates((at(at_s) or 0, text) for at_s, text in said)
    return Channel(first_ns=found[0].at_ns if found else None, updates=found)


def viewed(
    said: Said, outcome: str = "ok", *, ended: float = 9.0, setting: Setting = SETTING, **changes: Any
) -> dict[str, Any]:
    """The figures of one utterance of 4 s, with speech from 0.5 to 3.5 s."""
    facts = {"media_s": 4.0, "onset": 0.5, "activity_end": 3.5, "outcome": outcome} | changes
    one = utterance(channels={"transcript": timeline(said)} if said else {}, **facts)
    return texts(record("s", outcome, one, ended=ended), setting=setting)


def texts(*records: SessionRecord, setting: Setting = SETTING) -> dict[str, Any]:
    found = Viewing(header(), setting)
    for each in records:
        found.add(each)
    part: dict[str, Any] = found.summary()["texts"]["transcript"]
    return part


# "the cat" stands whole at 1.0 and leaves at 3.0, when a third row comes: 2.0 s for 7 characters, 3.5 a second.
# "sat on" and "mats", whole at 3.0, are still there at the end at 9.0.
PLAIN: Said = [(0.8, "the"), (1.0, "the cat"), (2.0, "the cat sat"), (3.0, "the cat sat on mats")]


def test_a_line_is_readable_from_its_last_character_to_when_it_leaves() -> None:
    found = viewed(PLAIN)["lines"]
    assert (found["n"], found["open"], found["too_fast"]) == (3, 2, None)
    assert {stat: (part.value_s, part.bound, part.n) for stat, part in found["readable"].items()} == dict.fromkeys(
        ("min", "p10", "p50"), (2.0, "exact", 1)
    )
    assert found["characters_per_s"] == {"p50": 3.5, "p90": 3.5}


def test_lines_faster_than_the_reader_are_counted_and_how_far_the_reader_is_behind() -> None:
    # At 2 characters a second: "the cat" needs 3.5 s and had 2.0: too fast. "sat on" needs 3.0, "mats" 2.0 of 6.0.
    # The reader: 1.0 + 3.5 = 4.5; then 3.0 + 2.0 more: 9.5, which is 5.5 s behind the source end at 4.0. All 17
    # characters (7 + 6 + 4) are unread at 4.0, since the first line is through at 4.5.
    found = viewed(PLAIN, setting=SETTING._replace(reader=Reader(characters_per_s=2.0)))
    assert found["lines"]["too_fast"] == {"n": 1, "of": 3}
    assert found["reader"]["through"]["p50"].value_s == 5.5
    assert found["reader"]["unread_share"] == 1.0
    # At 2 words a second: 1.0 s for "the cat" (2.0), 1.0 for "sat on" (3.0 to 4.0), 0.5 for "mats" (4.5): 4 of 17 late.
    found = viewed(PLAIN, setting=SETTING._replace(reader=Reader(words_per_s=2.0)))
    assert found["lines"]["too_fast"] == {"n": 0, "of": 3}
    assert found["reader"]["through"]["p50"].value_s == 0.5
    assert found["reader"]["unread_share"] == 4 / 17


def test_where_no_speed_is_set_there_is_no_limit_and_the_pace_is_shown() -> None:
    # 19 characters for 3.0 s of speech.
    found = viewed(PLAIN)
    assert found["reader"] is None
    assert found["characters_per_media_s"] == pytest.approx(19 / 3)


def test_gaps_reach_from_the_onset_and_from_each_change_to_the_next() -> None:
    # 0.5 to 0.8, 1.0, 2.0 and 3.0: gaps of 0.3, 0.2, 1.0 and 1.0; two are longer than 0.9, by 0.2 in all.
    found = viewed(PLAIN, setting=SETTING._replace(gap_s=0.9))["gaps"]
    assert (found["n"], found["longest"]["max"].value_s) == (4, 1.0)
    assert found["too_long"] == {"n": 2, "excess_s": pytest.approx(0.2)}


def test_the_screen_is_blank_until_the_first_text_and_while_it_was_taken_away() -> None:
    # Blank from 0 to 1.0 and from 2.0 to 2.5: 1.5 of 4.0 s; of the speech (0.5 to 3.5) 1.0 of 3.0.
    found = viewed([(1.0, "the"), (2.0, ""), (2.5, "the cat")])
    assert found["blank"] == {"share": 1.5 / 4.0, "active_share": pytest.approx(1 / 3)}


def test_changes_of_what_was_shown_count_against_media_time_and_not_against_the_wait() -> None:
    # "sit" becomes "sat", and "the" is taken back for good: 2 changes in 4 s of media are 30 a minute, though the last
    # one came at 8.
    found = viewed([(1.0, "the cat sit"), (2.0, "the cat sat"), (8.0, "a cat sat")])
    assert found["changes"] == {"n": 2, "per_media_min": 30.0}


def test_an_utterance_without_any_text_is_blank_throughout_and_its_gap_never_ended() -> None:
    found = viewed([], "no_output", setting=SETTING._replace(reader=Reader(words_per_s=2.0)))
    assert found["blank"] == {"share": 1.0, "active_share": 1.0}
    assert (found["gaps"]["longest"]["p50"].bound, found["gaps"]["longest"]["p50"].n) == ("never", 1)
    assert found["lines"]["readable"]["p50"].value_s is None
    assert found["reader"]["through"]["p50"].bound == "never"
    assert found["reader"]["unread_share"] is None


def test_what_was_cut_counts_for_the_media_that_it_had_and_its_gap_as_at_least() -> None:
    # Cut at 3.0: blank from 0 to 1.0 of 3.0 s; the text had stood still for 2.0 s by then.
    found = viewed([(1.0, "the")], "time_up", ended=3.0)
    assert found["media_s"] == 3.0
    assert found["blank"]["share"] == pytest.approx(1 / 3)
    assert (found["gaps"]["longest"]["p50"].value_s, found["gaps"]["longest"]["p50"].bound) == (2.0, "at_least")


def test_a_session_without_a_viewer_is_left_out_and_counted() -> None:
    found = Viewing(header(), SETTING)
    found.add(record("a", "connect_failed"))
    found.add(record("b", "closed_early", utterance(born=False)))
    assert (found.summary()["left_out"], found.summary()["texts"]) == (2, {})


def test_speech_that_reaches_into_the_next_sentence_is_measured_from_its_onset() -> None:
    # The second utterance begins at 5.0 and its speech at 5.3; the first is played until 6.0: 0.7 s over. Of the last
    # one nothing follows. A session whose speech ended at 5.2 has 0; one that never spoke is left out.
    def spoken(name: str, end: float | None) -> SessionRecord:
        media = MediaOutput(medium="audio", format="s16le", playback_end_ns=at(end))
        first = utterance(channels={"speech": Channel(media=media)}, outcome="ok")
        second = utterance(channels={}, outcome="ok", index=1, media_zero_ns=at(5.0), onset=0.3)
        return record(name, "ok", first, second)

    found = Viewing(header(channel_stages={"speech": "media"}, channel_media={"speech": "audio"}), SETTING)
    for name, end in (("a", 6.0), ("b", 5.2), ("c", None)):
        found.add(spoken(name, end))
    part = found.summary()["spoken"]["speech"]
    assert (part["n"], part["overlapping"], part["left_out"]) == (2, 1, 1)
    assert (part["over"]["max"].value_s, part["over"]["p50"].value_s) == (0.7, 0.0)


said = st.lists(st.text(alphabet="ab c", min_size=1, max_size=30), min_size=1, max_size=8)
steps = st.lists(st.floats(0.0, 3.0), min_size=8, max_size=8)
READER = SETTING._replace(reader=Reader(characters_per_s=3.0), gap_s=0.7)


def costs(found: dict[str, Any]) -> dict[str, float]:
    """Every figure of which less is better; how long lines stay is told apart."""
    return {
        "changes": found["changes"]["per_media_min"],
        "longest gap": found["gaps"]["longest"]["max"].value_s,
        "too long": found["gaps"]["too_long"]["n"],
        "excess": found["gaps"]["too_long"]["excess_s"],
        "blank": found["blank"]["share"],
        "blank while active": found["blank"]["active_share"],
        "pace": found["characters_per_media_s"],
        "through": found["reader"]["through"]["max"].value_s or 0.0,
        "unread": found["reader"]["unread_share"] or 0.0,
    }


def moved(contents: list[str], times: list[float], delays: list[float]) -> dict[str, Any]:
    late = [round(time + delay, 3) for time, delay in zip(times, delays, strict=False)]
    return viewed([(late[k], text) for k, text in enumerate(contents)], setting=READER, ended=100.0)


def sums(increments: list[float]) -> list[float]:
    return [round(sum(increments[: k + 1]), 3) for k in range(len(increments))]


@given(said, steps, st.floats(0.0, 5.0))
def test_the_same_delay_for_every_output_never_improves_any_figure(
    contents: list[str], increments: list[float], delay: float
) -> None:
    times = [0.5 + time for time in sums(increments)]  # nothing before the speech
    before, after = (moved(contents, times, [round(d, 3)] * 8) for d in (0.0, delay))
    for name, cost in costs(before).items():
        assert costs(after)[name] >= cost - 1e-6, name
    assert after["lines"]["open"] == before["lines"]["open"]
    assert after["lines"]["n"] == before["lines"]["n"]
    for stat, part in before["lines"]["readable"].items():  # a line stays no longer
        assert after["lines"]["readable"][stat].value_s == (part.value_s and pytest.approx(part.value_s))
    assert after["lines"]["too_fast"]["n"] >= before["lines"]["too_fast"]["n"]


@given(said, steps, steps)
def test_growing_delay_improves_no_figure_but_how_long_lines_stay_and_that_by_no_more_than_it_costs(
    contents: list[str], increments: list[float], growth: list[float]
) -> None:
    contents = ["x" + text for text in contents]  # text that is never taken away as a whole: then it would stay longer
    times, delays = [0.5 + time for time in sums(increments)], sums(growth)
    before, after = moved(contents, times, [0.0] * 8), moved(contents, times, delays)
    for name, cost in costs(before).items():
        assert costs(after)[name] >= cost - 1e-6, name
    least, longer = (found["lines"]["readable"]["min"].value_s for found in (before, after))
    if least is not None and longer is not None:
        assert longer - least <= delays[len(contents) - 1] + 1e-6
