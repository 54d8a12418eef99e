"""Whether a service falls behind, by hand-made points and by numpy's own least squares."""

from random import Random

import numpy as np
import pytest

from loadbench.analysis.slope import Slope, Trend, heard, student
from loadbench.results.record import MediaClock
from tests.analysis.records import at, utterance

S = 1_000_000_000


def trend(*utterances: list[tuple[float, float]], stage: int = 0) -> Trend:
    found = Trend()
    for points in utterances:
        found.add([round(x * S) for x, _ in points], [round(y * S) for _, y in points], stage)
    return found


def test_a_service_that_hears_at_four_fifths_of_real_time_falls_behind_a_second_in_four() -> None:
    spoken = [1.0, 2.0, 4.0, 7.0, 8.0]
    found = trend([(x, x / 0.8 + 0.3 - x) for x in spoken]).slope()
    assert found.value == pytest.approx(0.25)
    assert found.low == pytest.approx(0.25)
    assert found.falling_behind
    assert (found.utterances, found.points, found.few) == (1, 5, 0)


def test_of_services_with_a_steady_lag_that_jitters_about_one_in_forty_seems_to_fall_behind() -> None:
    """The interval holds the truth 95 times in a hundred; the other five are on both sides of it."""
    random = Random(7)
    found = [
        trend(*([(x / 2, 1 + random.uniform(-0.3, 0.3)) for x in range(20)] for _ in range(20))).slope()
        for _ in range(200)
    ]
    assert sum(each.falling_behind for each in found) <= 12
    assert 180 <= sum(each.low <= 0 <= each.high for each in found) <= 198  # type: ignore[operator]


def test_each_utterance_has_a_lag_of_its_own_to_begin_with() -> None:
    """Slow clips that are long as well must not look like a slope."""
    found = trend([(x, 0.5) for x in range(5)], [(x + 100, 9.5) for x in range(5)]).slope()
    assert found.value == pytest.approx(0.0)


def test_one_utterance_has_the_slope_and_the_error_of_least_squares() -> None:
    random = Random(3)
    points = [(x, 0.1 * x + random.gauss(1, 0.2)) for x in map(float, range(30))]
    found = trend(points).slope()
    (value, _), covariance = np.polyfit(*zip(*points, strict=True), 1, cov=True)
    assert found.value == pytest.approx(value, abs=1e-6)
    assert found.high is not None
    assert found.high - value == pytest.approx(2.048407 * covariance[0, 0] ** 0.5, rel=1e-3)  # Student, 28 degrees


def test_of_ten_utterances_and_more_the_interval_is_of_how_they_differ() -> None:
    """Points without any error, of utterances with slopes of 0.1 and 0.3: nobody knows the slope to the last digit."""
    found = trend(*([(float(x), slope * x) for x in range(5)] for slope in (0.1, 0.3) * 5)).slope()
    assert found.value == pytest.approx(0.2)
    assert found.high is not None
    assert found.high - 0.2 == pytest.approx(
        2.262157 * 0.1 / 3, rel=1e-3
    )  # Student, 9 degrees; 0.1 * sqrt(10 / 9 / 10)


def test_stages_have_slopes_of_their_own_and_who_has_too_few_points_is_counted() -> None:
    found = trend([(1, 1), (2, 1), (3, 1)], [(1, 1), (2, 2)], [(1, 1), (1, 2), (1, 3)])
    found.add([0, S, 2 * S], [0, S, 2 * S], 1)
    assert found.slope(0)[:1] + found.slope(0)[3:] == (0.0, 1, 3, 2)
    assert found.slope(1).value == pytest.approx(1.0)
    assert found.slope().utterances == 2
    assert found.slope(5) == Slope(None, None, None, 0, 0, 0)
    assert Trend().slope() == Slope(None, None, None, 0, 0, 0)


def test_the_services_own_media_clock_is_how_far_it_has_heard_else_how_far_it_is_final() -> None:
    clock = [MediaClock(at(1.5), 1000, 500), MediaClock(at(2.5), None, 1800), MediaClock(at(3.0), None, None)]  # type: ignore[arg-type]
    places, lags = heard(utterance(media_s=4.0, clock=clock))
    assert places == [1 * S, 1.8 * S]
    assert lags == [0.5 * S, 0.7 * S]
    assert heard(utterance(born=False, clock=clock)) == ([], [])


STUDENT = [(1, 12.7062), (2, 4.3027), (3, 3.1824), (5, 2.5706), (10, 2.2281), (30, 2.0423), (1000, 1.9623)]


@pytest.mark.parametrize(("free", "value"), STUDENT)
def test_students_factor_is_that_of_the_tables_within_one_percent(free: int, value: float) -> None:
    assert student(free) == pytest.approx(value, rel=0.01)


def test_a_slope_that_is_sure_and_does_not_matter_is_no_falling_behind() -> None:
    found = trend(*([(float(x), 0.004 * x) for x in range(5)] for _ in range(20))).slope()
    assert found.low == pytest.approx(0.004)
    assert not found.falling_behind
