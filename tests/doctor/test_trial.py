"""From what a trial measured to whether so many users fit."""

from types import SimpleNamespace
from typing import Any

import pytest

from loadbench.doctor import trial
from loadbench.doctor.trial import Trial
from loadbench.results.slo import Verdict


def tried(users: int = 50, share: float | None = 0.12, state: Any = "VALID", **changes: Any) -> Trial:
    reasons = [] if state == "VALID" else ["chunks left late"]
    known = {"idle_share": 0.02, "responder_share": 0.3, "seconds": 4.5, "sessions": 60}
    return Trial(users=users, cpu_share=share, verdict=Verdict(state=state, reasons=reasons), **(known | changes))


@pytest.mark.parametrize(
    ("found", "asked", "state", "part"),
    [
        (tried(), 50, "ok", "VALID with 50 users"),
        (tried(state="DEGRADED"), 50, "warning", "chunks left late"),
        (tried(state="INVALID"), 50, "problem", "chunks left late"),
        (tried(), 340, "ok", ""),  # 0.02 + 340 * 0.002 is 0.7
        (tried(), 400, "warning", "400 users would take 82.0 % of the engine's one core"),
        (tried(), 500, "problem", "500 users would take 102.0 %"),
        (tried(responder_share=0.95), 50, "ok", "the true limit lies higher"),
        (tried(share=None, error="no clip"), 50, "problem", "no clip"),
    ],
)
def test_users_fit_as_far_as_the_engine_s_one_core_goes(found: Trial, asked: int, state: str, part: str) -> None:
    row = trial.judged(found, asked)
    assert row.state == state
    assert part in row.found + row.advice


@pytest.mark.parametrize(
    ("found", "about"),
    [
        (tried(), 340),
        (tried(users=1, share=0.021), 10),  # no further than ten times what was tried
        (tried(users=2000, share=1.4), 980),
        (tried(share=0.02), None),
        (tried(state="INVALID"), None),
        (tried(share=None), None),
    ],
)
def test_how_many_would_fit_is_a_line_through_one_point(found: Trial, about: int | None) -> None:
    assert found.about == about


def test_the_sentence_answers_the_question_and_says_what_is_an_estimate() -> None:
    assert trial.sentence(tried(), 50, fit=True) == (
        "fit for 50 users: yes; at 50 the engine used 12.0 % of a core, so about 340 would fit (an estimate from 50)"
    )
    assert "so at least 10 would fit" in trial.sentence(tried(users=1, share=0.021), 1, fit=True)
    assert "on a machine that does nothing else" in trial.sentence(tried(state="DEGRADED"), 50, fit=True)
    late = trial.sentence(tried(state="INVALID"), 50, fit=False)
    assert late.startswith("fit for 50 users: no")
    assert late.endswith("how many would fit is not known")
    assert "not measured" in trial.sentence(None, 50, fit=True)


@pytest.mark.parametrize(
    ("asked", "media_s", "wire_bytes", "users"),
    [
        (50, 10.0, 320_000, 50),
        (9000, 10.0, 320_000, 1562),  # of 32 kB a second, half a gigabyte in ten seconds
        (9000, 10.0, 32_000, 2000),
        (200, 10.0, 20_000_000, 25),  # video
    ],
)
def test_a_trial_is_bounded_in_users_and_in_bytes(asked: int, media_s: float, wire_bytes: int, users: int) -> None:
    ready: Any = SimpleNamespace(media_ns={"a": round(media_s * 1e9)})
    assert trial.size(asked, ready, wire_bytes) == users
