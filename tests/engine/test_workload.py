import statistics
from itertools import islice, pairwise
from typing import Any

import pytest

from loadbench.engine.pipe import Workload
from loadbench.engine.workload import Schedule, Slot, arrivals_ns, clips, phase_ms

S = 1_000_000_000
BEGIN = 50 * S


def schedule(**settings: Any) -> Schedule:
    return Schedule(Workload(**settings), BEGIN, seed=7)


def all_at_once(plan: Schedule) -> list[Slot]:
    """Every start that is planned without a session ever ending."""
    slots = []
    while plan.next_ns is not None:
        slots.append(plan.pop())
    return slots


@pytest.mark.parametrize(
    ("settings", "starts_s"),
    [
        ({"model": "closed", "users": 4}, [0, 0, 0, 0]),
        ({"model": "closed", "users": 4, "ramp_s": 2.0}, [0, 0.5, 1.0, 1.5]),
        ({"model": "closed", "users": 4, "ramp_s": 2.0, "duration_s": 1.0}, [0, 0.5]),  # nobody comes after the end
        ({"model": "closed", "users": 4, "sessions": 3}, [0, 0, 0]),  # fewer sessions than users
        ({"model": "constant", "rate": 2.0, "sessions": 4}, [0, 0.5, 1.0, 1.5]),
        ({"model": "constant", "rate": 10.0, "duration_s": 0.3}, [0, 0.1, 0.2]),  # the end itself is outside
        ({"model": "constant", "rate": 2.0, "ramp_s": 4.0, "sessions": 7}, [0, 2, 2.828427125, 3.464101615, 4, 4.5, 5]),
        ({"model": "constant", "rate": 1.0, "warmup_s": 2.0, "duration_s": 2.0}, [0, 1, 2, 3]),
        ({"model": "external"}, []),
    ],
)
def test_starts_are_planned_in_absolute_time(settings: dict[str, Any], starts_s: list[float]) -> None:
    slots = all_at_once(schedule(**settings))
    assert [(slot.planned_ns - BEGIN) / S for slot in slots] == starts_s


def test_the_next_session_of_a_user_is_planned_for_the_end_of_the_former_plus_the_think_time() -> None:
    plan = schedule(model="closed", users=2, think_s=1.5, sessions=3)
    assert [slot.user for slot in all_at_once(plan)] == [0, 1]
    assert not plan.exhausted
    plan.ended(1, BEGIN + 7 * S)
    assert plan.next_ns == BEGIN + 8.5 * S
    assert plan.pop().user == 1
    plan.ended(0, BEGIN + 9 * S)
    assert plan.next_ns is None
    assert plan.exhausted


def test_a_closed_workload_ends_with_its_duration_and_not_before_its_last_user() -> None:
    plan = schedule(model="closed", users=1, duration_s=10.0)
    plan.pop()
    assert (plan.next_ns, plan.exhausted) == (None, False)
    plan.ended(0, BEGIN + 4 * S)
    assert plan.pop().planned_ns == BEGIN + 4 * S
    plan.ended(0, BEGIN + 10 * S)
    assert (plan.next_ns, plan.exhausted) == (None, True)


@pytest.mark.parametrize(
    ("at_s", "window"),
    [(0, "warmup"), (1.999999999, "warmup"), (2, "measure"), (4.9, "measure"), (5, "drain"), (90, "drain")],
)
def test_the_window_goes_by_the_planned_start(at_s: float, window: str) -> None:
    plan = schedule(model="closed", warmup_s=2.0, duration_s=3.0)
    assert plan.window(BEGIN + round(at_s * S)) == window
    assert schedule(model="closed", warmup_s=2.0, sessions=9).window(BEGIN + 90 * S) == "measure"


def test_a_late_start_keeps_its_planned_moment() -> None:
    plan = schedule(model="constant", rate=1.0, sessions=3)
    assert [plan.pop().planned_ns for _ in range(3)] == [BEGIN, BEGIN + S, BEGIN + 2 * S]


def test_a_closed_schedule_starts_nothing_more() -> None:
    plan = schedule(model="constant", rate=1.0, duration_s=100.0)
    plan.pop()
    plan.close()
    assert (plan.next_ns, plan.exhausted) == (None, True)


def test_a_door_asks_for_sessions_by_name_until_it_closes() -> None:
    plan = schedule(model="external")
    assert not plan.exhausted
    plan.begin("b", BEGIN + 2 * S)
    plan.begin("a", BEGIN + 1 * S)
    assert [slot.name for slot in all_at_once(plan)] == ["a", "b"]
    plan.close()
    assert plan.exhausted


@pytest.mark.parametrize(("at_s", "users"), [(0, 1), (0.4, 1), (0.5, 2), (1.9, 4), (2.5, 4), (20, 0)])
def test_the_number_of_users_meant_to_be_there_grows_with_the_ramp(at_s: float, users: int) -> None:
    plan = schedule(model="closed", users=4, ramp_s=2.0, duration_s=10.0)
    assert plan.users_target(BEGIN + round(at_s * S)) == users


def test_poisson_arrivals_have_the_rate_asked_for_exponential_gaps_and_repeat_with_the_seed() -> None:
    work = Workload(model="poisson", rate=5.0)
    starts = list(islice(arrivals_ns(work, 3), 4000))
    assert starts == list(islice(arrivals_ns(work, 3), 4000))
    assert starts != list(islice(arrivals_ns(work, 4), 4000))
    gaps = [(after - before) / S for before, after in pairwise(starts)]
    assert statistics.mean(gaps) == pytest.approx(0.2, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(0.2, rel=0.08)


def test_clips_go_round_in_order_or_shuffled_anew_and_their_attempts_are_counted() -> None:
    assert list(islice(clips(3, "sequential", 1), 5)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    shuffled = list(islice(clips(50, "shuffle", 1), 150))
    rounds = [shuffled[start : start + 50] for start in (0, 50, 100)]
    assert [sorted(clip for clip, _ in deck) for deck in rounds] == [list(range(50))] * 3
    assert [{attempt for _, attempt in deck} for deck in rounds] == [{0}, {1}, {2}]
    orders = [[clip for clip, _ in deck] for deck in rounds]
    assert orders[0] != orders[1] != orders[2]
    assert shuffled == list(islice(clips(50, "shuffle", 1), 150))
    assert shuffled != list(islice(clips(50, "shuffle", 2), 150))


@pytest.mark.parametrize("sessions", [5, 20, 100, 1000])
def test_spread_phases_fill_the_chunk_clock_evenly_for_any_number_of_sessions(sessions: int) -> None:
    taken = [0] * 20
    for number in range(sessions):
        taken[phase_ms("spread", number, 20, 7)] += 1
    assert max(taken) <= -(-sessions // 20) + 2
    if sessions >= 100:
        assert min(taken) >= sessions // 20 - 2


def test_aligned_phases_are_one_and_random_ones_come_from_the_seed() -> None:
    assert {phase_ms("aligned", number, 20, 7) for number in range(9)} == {0}
    drawn = [phase_ms("random", number, 20, 7) for number in range(200)]
    assert drawn == [phase_ms("random", number, 20, 7) for number in range(200)]
    assert set(drawn) == set(range(20))
