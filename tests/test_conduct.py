"""What a run comes to: exit codes in their precedence."""

from typing import Any

import pytest

from loadbench import conduct
from loadbench.media.container import Reels
from loadbench.session.load import load_profile
from tests.media.test_container import container, cut, record, video


def summary(*, reached: int = 3, lost: int = 0, state: str = "VALID", met: bool = True) -> dict[str, Any]:
    counts = {"started": 3, "reached": reached, "ended": {"worker_lost": lost}}
    return {"sessions": counts, "verdict": {"state": state}, "slo": [{"met": met}]}


@pytest.mark.parametrize(
    ("found", "reason", "code"),
    [
        (summary(), "completed", 0),
        (summary(met=False), "completed", 1),
        (summary(state="DEGRADED"), "completed", 0),
        (summary(state="INVALID", met=False), "completed", 3),
        (summary(reached=0, state="INVALID", met=False), "completed", 4),
        # what the sessions had reached when their engine was killed went with it, so nobody can say that it was nothing
        (summary(reached=0, lost=3, state="INVALID", met=False), "engine lost", 3),
        (summary(reached=0, state="INVALID", met=False), "interrupted", 130),
        (summary(), "broken", 1),
        (summary(state="INVALID"), "broken", 3),
    ],
)
def test_the_worst_news_decides_the_exit_code(found: dict[str, Any], reason: str, code: int) -> None:
    assert conduct._exit_code(found, reason) == code


def test_causes_are_told_most_frequent_first() -> None:
    causes = {"lost": {"n": 1, "examples": ["a"]}, "silent": {"n": 5, "examples": ["b", "c"]}}
    result = conduct.Result(conduct.Path("x"), 1, {"causes": causes}, {})
    assert result.causes == ["silent (5): b; c", "lost (1): a"]


@pytest.mark.parametrize(("data", "outcome"), [(video("webm"), "ok"), (b"no film at all", "no_output")])
async def test_a_sampled_session_whose_film_cannot_be_opened_is_recorded_as_without_output(
    data: bytes, outcome: str
) -> None:
    profile, reels, ended = load_profile("speech-to-sign"), Reels(), record(container("video", data))
    profile = profile.model_copy(update={"primary": "sign"})
    for piece in cut(data, 100, every_ms=40):
        await conduct._open(piece, reels, profile)
    await conduct._open(ended, reels, profile)
    assert (ended.outcome, ended.utterances[0].outcome) == (outcome, outcome)
    assert ended.side == ("none" if outcome == "ok" else "target")
    assert bool(ended.cause) == bool(ended.warnings) == (outcome != "ok")
