import statistics
from itertools import islice, pairwise
from typing import Any

import pytest

from loadbench.engine.pipe import Stage, Workload
from loadbench.engine.workload import Schedule, Slot, clips, decks, phase_ms
from tests.engine.stage import workload

S = 1_000_000_000
BEGIN = 50 * S


def schedule(**settings: Any) -> Schedule:
    return Schedule(workload(**settings), BEGIN, seed=7)


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
    def drawn(seed: int) -> list[int]:
        plan = Schedule(workload(model="poisson", rate=5.0, sessions=4000), BEGIN, seed)
        return [slot.planned_ns for slot in all_at_once(plan)]

    starts = drawn(3)
    assert starts == drawn(3)
    assert starts != drawn(4)
    gaps = [(after - before) / S for before, after in pairwise(starts)]
    assert statistics.mean(gaps) == pytest.approx(0.2, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(0.2, rel=0.08)


def test_clips_go_round_in_order_or_shuffled_anew_and_their_attempts_are_counted() -> None:
    assert list(islice(clips(range(3), "sequential", 1), 5)) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    shuffled = list(islice(clips(range(50), "shuffle", 1), 150))
    rounds = [shuffled[start : start + 50] for start in (0, 50, 100)]
    assert [sorted(clip for clip, _ in deck) for deck in rounds] == [list(range(50))] * 3
    assert [{attempt for _, attempt in deck} for deck in rounds] == [{0}, {1}, {2}]
    orders = [[clip for clip, _ in deck] for deck in rounds]
    assert orders[0] != orders[1] != orders[2]
    assert shuffled == list(islice(clips(range(50), "shuffle", 1), 150))
    assert shuffled != list(islice(clips(range(50), "shuffle", 2), 150))


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


STEPS = [Stage(name="two", level=2, seconds=10), Stage(name="four", level=4, seconds=10, ramp_s=4)]


def staged(model: str, stages: list[Stage], **more: Any) -> Schedule:
    return Schedule(Workload(model=model, stages=stages, **more), BEGIN, seed=7)


def test_users_come_with_the_steps_and_each_start_bears_the_name_of_its_stage() -> None:
    slots = all_at_once(staged("closed", STEPS))
    assert [(slot.user, (slot.planned_ns - BEGIN) / S, slot.stage) for slot in slots] == [
        (0, 0, "two"),
        (1, 0, "two"),
        (2, 10, "four"),  # the ramp from 2 to 4 in 4 s passes 2 at once
        (3, 12, "four"),
    ]


def test_a_user_leaves_with_the_spike_and_a_session_that_goes_on_is_not_followed_by_another() -> None:
    spike = [
        Stage(name="before", level=1, seconds=5),
        Stage(name="spike", level=3, seconds=5),
        Stage(name="after", level=1, seconds=5),
    ]
    plan = staged("closed", spike)
    assert [(plan.pop().user, plan.users_target(BEGIN)) for _ in range(1)] == [(0, 1)]
    assert [slot.user for slot in all_at_once(plan)] == [1, 2]
    assert plan.users_target(BEGIN + 7 * S) == 3
    plan.ended(1, BEGIN + 9 * S)
    assert plan.next_ns == BEGIN + 9 * S  # still in the spike
    plan.pop()
    plan.ended(1, BEGIN + 11 * S)
    assert plan.next_ns is None  # the level has fallen below user 1
    plan.ended(0, BEGIN + 11 * S)
    assert (plan.next_ns, plan.pop().stage) == (BEGIN + 11 * S, "after")
    assert plan.users_target(BEGIN + 12 * S) == 1


def test_a_user_who_has_left_comes_again_when_the_level_rises_again() -> None:
    plan = staged(
        "closed", [Stage(level=2, seconds=5), Stage(level=1, seconds=5), Stage(name="back", level=2, seconds=5)]
    )
    assert len(all_at_once(plan)) == 2
    plan.ended(1, BEGIN + 6 * S)
    assert (plan.next_ns, plan.pop().stage) == (BEGIN + 10 * S, "back")


def test_arrivals_follow_the_rate_through_the_stages() -> None:
    plan = staged("constant", [Stage(name="slow", level=1, seconds=3), Stage(name="fast", level=4, seconds=1)])
    slots = all_at_once(plan)
    assert [((slot.planned_ns - BEGIN) / S, slot.stage) for slot in slots] == [
        (0, "slow"),
        (1, "slow"),
        (2, "slow"),
        (3, "fast"),
        (3.25, "fast"),
        (3.5, "fast"),
        (3.75, "fast"),
    ]
    assert plan.exhausted


def test_the_warm_up_belongs_to_the_first_stage_and_comes_before_its_time() -> None:
    plan = staged("constant", [Stage(name="a", level=1, seconds=2), Stage(name="b", level=1, seconds=2)], warmup_s=2.0)
    assert [(slot.window, slot.stage) for slot in all_at_once(plan)] == [
        *[("warmup", "a")] * 2,
        *[("measure", "a")] * 2,
        *[("measure", "b")] * 2,
    ]


def test_in_a_dialogue_the_next_turn_is_the_others_and_waits_for_the_answer_and_a_thought() -> None:
    plan = staged("dialogue", [Stage(level=1)], think_s=0.5, sessions=4)
    first = plan.pop()
    assert (first.party, plan.next_ns) == (0, None)
    plan.answered(0, BEGIN + 3 * S)
    assert plan.next_ns == BEGIN + 3.5 * S
    plan.ended(0, BEGIN + 4 * S)  # the close took a while; that moves nothing
    assert plan.next_ns == BEGIN + 3.5 * S
    second = plan.pop()
    assert (second.party, second.user) == (1, 0)
    plan.ended(0, BEGIN + 6 * S, failed=True)  # never answered: the other says so after the pause
    assert plan.next_ns == BEGIN + 7 * S
    assert plan.pop().party == 0


def test_each_party_of_a_dialogue_has_its_speakers_clips_where_the_corpus_knows_two() -> None:
    ada, ben = decks(["ada", "ben", "ada", "ben"], "sequential", 1, dialogue=True)
    assert [list(islice(deck, 3)) for deck in (ada, ben)] == [[(0, 0), (2, 0), (0, 1)], [(1, 0), (3, 0), (1, 1)]]
    for speakers in (["", ""], ["ada", "ada"], ["ada", "ben", "cem"], ["ada", ""]):
        assert len(decks(speakers, "sequential", 1, dialogue=True)) == 1


def test_two_speakers_who_hold_no_dialogue_share_one_deck() -> None:
    (deck,) = decks(["ada", "ben", "ada"], "sequential", 1, dialogue=False)
    assert list(islice(deck, 4)) == [(0, 0), (1, 0), (2, 0), (0, 1)]
