"""What a run comes to: exit codes in their precedence."""

from typing import Any

import pytest

from loadbench import conduct


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
