"""A record whose media has been opened since is judged again; the rest of `ending` is tested through the machine."""

from typing import Any

import pytest

from loadbench.results.media import MediaOutput
from loadbench.results.record import Channel, SessionRecord, Utterance
from loadbench.session.ending import judged_again


def record(*media: MediaOutput, outcome: str = "ok") -> SessionRecord:
    parts = [
        Utterance(
            index=index,
            clip="a",
            attempt=0,
            media_ns=1,
            channels={"sign": Channel(media=one)},
            outcome=outcome,
            done_ns=9,
        )
        for index, one in enumerate(media)
    ]
    return SessionRecord(
        id="s", worker="w", user=0, stage="main", window="measure", planned_ns=0, begun_ns=0, ended_ns=1,
        utterances=parts, outcome=outcome, side="none",
    )  # fmt: skip


def film(**facts: Any) -> MediaOutput:
    return MediaOutput(medium="video", format="container", bytes=7, pieces=1, **facts)


@pytest.mark.parametrize(
    ("media", "outcome"),
    [
        ([film(decoded=False)], "ok"),  # nobody opened it
        ([film(first_frame_ns=5, frames=9, broken=1)], "ok"),  # torn later: counted, and what came was seen
        ([film(frames=0, broken=1)], "no_output"),
        ([film(first_frame_ns=5), film(frames=0, broken=1)], "no_output"),
    ],
)
def test_a_film_in_which_nothing_can_be_seen_is_no_output_and_keeps_its_times(
    media: list[MediaOutput], outcome: str
) -> None:
    ended = record(*media)
    judged_again(ended, "sign", "video")
    assert (ended.outcome, ended.side) == (outcome, "none" if outcome == "ok" else "target")
    wanted = (
        "" if outcome == "ok" else "done, with 7 bytes on channel sign and no picture that can be decoded among them"
    )
    assert ended.cause == wanted
    assert [part.outcome for part in ended.utterances] == ["ok"] * (len(media) - 1) + [outcome]
    assert [part.done_ns for part in ended.utterances] == [9] * len(media)


def test_another_outcome_stays_and_a_headline_of_text_is_not_judged_by_its_media() -> None:
    for ended, medium in ((record(film(frames=0), outcome="lost"), "video"), (record(film(frames=0)), None)):
        before = ended.outcome
        judged_again(ended, "sign", medium)  # type: ignore[arg-type]
        assert (ended.outcome, ended.side, ended.cause) == (before, "none", "")
