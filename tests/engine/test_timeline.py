import math
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.engine.pipe import Stage
from loadbench.engine.timeline import Timeline

UP_AND_DOWN = [Stage(name="low", level=2, seconds=10, ramp_s=4), Stage(name="high", level=6, seconds=10, ramp_s=8)]
UP_AND_DOWN += [Stage(name="down", level=1, seconds=10, ramp_s=10)]


@pytest.mark.parametrize(
    ("at_s", "users", "name"),
    [
        (0, 1, "low"),  # user 0 comes at once
        (1.9, 1, "low"),
        (2, 2, "low"),
        (9, 2, "low"),
        (10, 3, "high"),  # the ramp passes 2 here
        (13.9, 4, "high"),
        (14, 5, "high"),
        (19, 6, "high"),
        (20, 6, "down"),
        (22, 5, "down"),  # at level 5 user 5 has gone
        (22.1, 5, "down"),
        (29.9, 2, "down"),
        (30, 0, "down"),  # its time is over
    ],
)
def test_users_and_stages_go_by_the_level(at_s: float, users: int, name: str) -> None:
    line = Timeline(UP_AND_DOWN)
    assert (line.users(at_s), line.stage(at_s)) == (users, name)


@pytest.mark.parametrize(
    ("user", "stays"),
    [(0, [(0, 30)]), (1, [(2, 30)]), (2, [(10, 28)]), (3, [(12, 26)]), (5, [(16, 22)]), (6, [])],
)
def test_a_user_stays_while_the_level_is_above_their_number(user: int, stays: list[tuple[float, float]]) -> None:
    assert list(Timeline(UP_AND_DOWN).stays(user)) == stays


def test_a_stage_without_an_end_goes_on_for_ever() -> None:
    line = Timeline([Stage(level=3, ramp_s=6)])
    assert (line.end_s, line.top, line.ramped_s) == (None, 3, 6)
    assert list(line.stays(1)) == [(2, math.inf)]
    assert list(islice(line.arrivals(map(float, range(10_000))), 9_999, None)) == [pytest.approx(3336.0)]


def test_a_ramp_longer_than_its_stage_is_cut_and_the_next_goes_on_from_there() -> None:
    line = Timeline([Stage(level=10, seconds=5, ramp_s=10), Stage(level=0, seconds=5)])
    assert (line.top, line.users(4.99), line.users(6)) == (5, 5, 0)


def test_a_time_without_load_has_no_arrivals() -> None:
    line = Timeline([Stage(level=2, seconds=1), Stage(level=0, seconds=10), Stage(level=2, seconds=1)])
    assert list(line.arrivals([0.0, 1.0, 2.0, 3.0, 4.0])) == [0.0, 0.5, 11.0, 11.5]


levels = st.lists(
    st.builds(
        Stage,
        level=st.floats(0.01, 50),
        seconds=st.floats(0.1, 100),
        ramp_s=st.just(0.0) | st.floats(0.001, 150),
    ),
    min_size=1,
    max_size=5,
)


@given(levels, st.floats(0, 30))
def test_arrivals_never_go_back_lie_within_the_run_and_are_as_many_as_the_area(
    stages: list[Stage], warmup_s: float
) -> None:
    line = Timeline(stages, warmup_s)
    area = sum(leg.area for leg in line.legs)
    made = list(line.arrivals(map(float, range(20_000))))
    assert len(made) == pytest.approx(min(area, 20_000), abs=1.001)
    assert made == sorted(made)
    assert line.end_s is not None
    assert made[0] >= 0
    assert made[-1] <= line.end_s + 1e-6


@given(levels)
def test_as_many_users_stay_as_the_level_asks_for(stages: list[Stage]) -> None:
    line = Timeline(stages)
    assert line.end_s is not None
    for part in range(1, 20):
        at_s = line.end_s * part / 20
        there = sum(any(came <= at_s < left for came, left in line.stays(user)) for user in range(math.ceil(line.top)))
        assert there == pytest.approx(line.users(at_s), abs=1)  # to the nanosecond, a border has two sides
