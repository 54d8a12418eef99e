"""Output media of many utterances in a few numbers; what nobody knows stays None."""

from typing import Any

from loadbench.analysis.playback import Playbacks
from loadbench.results.media import MediaOutput
from loadbench.results.record import Channel
from tests.analysis.records import utterance

S = 1_000_000_000


def signed(**known: Any) -> Channel:
    facts = {"medium": "video", "format": "jpeg", "bytes": 100, "pieces": 4, "frames": 4, "first_frame_ns": 5}
    return Channel(media=MediaOutput(**(facts | known)))


def summary(*channels: Channel) -> dict[str, Any]:
    found = Playbacks({"sign": "video"})
    for channel in channels:
        found.add(utterance(channels={"sign": channel, "text": Channel()}))
    return found.summary()


def test_bytes_length_rate_and_gaps_are_added_up() -> None:
    one = signed(media_s=4.0, fps=25.0, gaps=[(1 * S, S // 2), (9 * S, S)], starved_ns=2 * S, broken=1)
    two = signed(media_s=2.0, fps=12.0)
    three = signed(media_s=2.0, fps=24.0, first_frame_ns=None)
    assert summary(one, two, three) == {
        "sign": {
            "n": 3, "opened": 3, "silent": 1, "bytes": 300, "pieces": 12, "broken": 1, "frames": 12, "media_s": 8.0,
            "fps": {"min": 12.0, "p50": 24.0},
            "gaps": {"utterances": 1, "n": 2, "longest_s": 1.0, "starved_s": 2.0},
        }
    }  # fmt: skip


def test_a_container_that_nobody_opened_counts_its_bytes_and_is_not_silent() -> None:
    found = summary(signed(decoded=False, frames=None, first_frame_ns=None))["sign"]
    assert (found["n"], found["opened"], found["silent"], found["bytes"]) == (1, 0, 0, 100)
    assert (found["frames"], found["media_s"], found["fps"], found["gaps"]["longest_s"]) == (None, None, None, None)


def test_a_channel_on_which_nothing_came_is_there() -> None:
    assert summary()["sign"]["n"] == 0
