"""The verdict on the tester: what makes it doubtful, what makes it unusable, and why."""

import pytest

from loadbench.analysis.health import Health
from loadbench.results.record import Lateness
from loadbench.results.slo import Thresholds, Verdict
from tests.analysis.records import answered, bucket, record, tick, unanswered

LATE = "generator late, latency not usable"


def verdict(*events, thresholds: Thresholds | None = None) -> Verdict:
    health = Health(thresholds or Thresholds())
    for event in events:
        health.add(event)
    return health.verdict()


def test_a_healthy_run_is_valid_and_needs_no_reason() -> None:
    found = verdict(*(tick(k) for k in range(10)), *(answered(f"s{k}", 0.2) for k in range(5)))
    assert (found.state, found.reasons) == ("VALID", [])
    assert found.figures["lateness_p99_ms"] == pytest.approx(0.1, rel=0.06)


def test_a_frozen_service_leaves_the_tester_valid() -> None:
    found = verdict(
        *(tick(k, blocked_ns=900_000_000) for k in range(10)),
        *(unanswered(f"s{k}", "no_final", ended=31) for k in range(5)),
    )
    assert found.state == "VALID"
    assert found.figures["blocked_s"] == 9.0


def test_a_tester_that_sleeps_50_ms_every_100_ms_is_late_and_says_by_how_much() -> None:
    sleepy = [tick(k, lateness={bucket(1): 50, bucket(48): 50}, loop_gap_ns=51_000_000) for k in range(3)]
    found = verdict(*sleepy, *(answered(f"s{k}", 0.1, tainted=True) for k in range(20)))
    assert found.state == "INVALID"
    assert found.reasons[0] == LATE
    assert found.figures["loop_gap_p99_ms"] >= 45
    assert found.figures["lateness_p95_ms"] >= 40
    assert any("20 of 20 sessions (100.0%)" in reason for reason in found.reasons)
    assert any("chunks left late: p99" in reason and "limit 25 ms" in reason for reason in found.reasons)


GAPS = [(999, "VALID"), (1000, "INVALID"), (5000, "INVALID")]


@pytest.mark.parametrize(("gap_ms", "state"), GAPS)
def test_a_loop_that_stood_still_for_a_second_is_invalid(gap_ms: int, state: str) -> None:
    found = verdict(tick(0), tick(1, loop_gap_ns=gap_ms * 1_000_000), answered("s", 0.2))
    assert found.state == state


@pytest.mark.parametrize(("tainted", "state"), [(0, "VALID"), (1, "VALID"), (2, "INVALID")])
def test_more_than_one_tainted_session_in_a_hundred_is_invalid(tainted: int, state: str) -> None:
    ended = [answered(f"s{k}", 0.2, tainted=k < tainted) for k in range(100)]
    assert verdict(tick(), *ended).state == state


def test_a_session_with_a_gap_over_50_ms_is_tainted_whatever_its_flag_says() -> None:
    gap = Lateness(gap_max_ns=50_000_001)
    assert verdict(tick(), answered("s", 0.2, lateness=gap)).state == "INVALID"
    assert verdict(tick(), answered("s", 0.2, lateness=Lateness(gap_max_ns=50_000_000))).state == "VALID"


LATENESS = [(4.5, "VALID"), (5.5, "DEGRADED"), (23, "DEGRADED"), (26, "INVALID"), (200_000, "INVALID")]


@pytest.mark.parametrize("name", ["lateness", "start_lateness"])
@pytest.mark.parametrize(("ms", "state"), LATENESS)
def test_lateness_is_judged_at_its_99th_percentile(name: str, ms: float, state: str) -> None:
    assert verdict(tick(**{name: {bucket(0.1): 98, bucket(ms): 2}})).state == state
    assert verdict(tick(**{name: {bucket(0.1): 99, bucket(ms): 1}})).state == "VALID"


def test_lateness_of_all_seconds_and_workers_is_one_population() -> None:
    ticks = [tick(k, worker=f"w{k % 2}", lateness={bucket(0.1): 100}) for k in range(20)]
    assert verdict(*ticks, tick(20, lateness={bucket(100): 10})).state == "VALID"
    assert verdict(*ticks, tick(20, lateness={bucket(100): 30})).state == "INVALID"


def test_waiting_for_the_processor_is_degraded() -> None:
    found = verdict(tick(run_delay_ns=30_000_000))
    assert found.state == "DEGRADED"
    assert "processor" in found.reasons[0]
    assert "3.0%" in found.reasons[0]
    assert verdict(tick(run_delay_ns=None)).state == "VALID"
    assert verdict(tick(run_delay_ns=None)).figures["run_delay_share"] is None


CAUSES = [
    ({"gc_max_ns": 900_000_000}, "garbage collection"),
    ({"run_delay_ns": 900_000_000}, "the kernel ran something else"),
    ({"cpu_ns": 980_000_000}, "used up its core"),
    ({}, "blocked loop"),
]


@pytest.mark.parametrize(("changes", "cause"), CAUSES, ids=[cause for _, cause in CAUSES])
def test_the_cause_is_read_from_the_worst_second(changes: dict, cause: str) -> None:
    found = verdict(tick(0), tick(1, **({"loop_gap_ns": 1_200_000_000} | changes)))
    assert "stood still for 1200 ms" in found.reasons[1]
    assert cause in found.reasons[1]


def test_sessions_that_failed_by_the_testers_own_doing_are_its_fault() -> None:
    ended = [answered(f"s{k}", 0.2) for k in range(99)]
    few = verdict(tick(), *ended, record("x", "internal"))
    assert few.state == "DEGRADED"
    many = verdict(tick(), *ended, record("x", "no_resource"), record("y", "internal"))
    assert many.state == "INVALID"
    assert many.reasons == [
        "2 of 101 sessions failed by the tester's own doing (internal 1, no_resource 1); cause: file handles or ports"
    ]


def test_the_warm_up_does_not_count() -> None:
    found = verdict(
        tick(0, window="warmup", loop_gap_ns=3_000_000_000, lateness={bucket(500): 100}),
        answered("w", 0.2, window="warmup", tainted=True),
        tick(1),
        answered("s", 0.2),
    )
    assert found.state == "VALID"


def test_thresholds_are_settings() -> None:
    strict = Thresholds(invalid_lateness_p99_ms=0.05)
    assert verdict(tick(), thresholds=strict).state == "INVALID"


def test_without_a_single_second_nothing_is_known_and_that_is_said() -> None:
    found = verdict(answered("s", 0.2))
    assert found.state == "DEGRADED"
    assert "nothing is known" in found.reasons[0]
    assert found.figures["lateness_p99_ms"] is None
    assert verdict().state == "VALID"
