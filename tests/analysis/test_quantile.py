"""Percentiles: nearest rank, both bounds, intervals from order statistics, and values that are none."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.analysis.quantile import STATS, Durations, interval, quantiles, rank


def spans(*groups: tuple[int, float]) -> list[int]:
    return [round(value * 1e9) for count, value in groups for _ in range(count)]


def test_workers_are_merged_raw_so_an_idle_one_does_not_halve_the_tail() -> None:
    found = quantiles(spans((98, 0.10), (2, 5.00)) + spans((2, 0.10)))
    assert found["p99"].value_s == 5.00
    assert found["p99"].n == 102


def test_a_burst_in_one_window_is_not_the_percentile_of_the_run() -> None:
    windows = [spans((50, 0.10)), spans((50, 0.10)), spans((45, 0.10), (5, 0.90))]
    run = quantiles([value for window in windows for value in window])
    assert (run["p95"].value_s, run["p95"].n) == (0.10, 150)
    assert max(quantiles(window)["p95"].value_s or 0 for window in windows) == 0.90


def test_the_largest_of_three_is_the_p99_and_never_more() -> None:
    found = quantiles(spans((1, 0.1), (1, 0.2), (1, 0.596)))
    assert found["p99"].value_s == 0.596
    assert found["max"].value_s == 0.596


RANKS = [
    (1, "p50", 1),
    (2, "p50", 1),
    (100, "p50", 50),
    (100, "p95", 95),
    (100, "p99", 99),
    (101, "p99", 100),
    (20, "p95", 19),
]


@pytest.mark.parametrize(("n", "stat", "expected"), RANKS)
def test_the_rank_is_exact_where_floating_point_is_not(n: int, stat: str, expected: int) -> None:
    assert rank(n, STATS[stat]) == expected


def test_a_rank_of_seven_percent_of_a_hundred_is_seven() -> None:
    assert math.ceil(0.07 * 100) == 8  # what floating point would make of it
    assert rank(100, Fraction("0.07")) == 7


def test_failed_ones_are_infinite() -> None:
    found = quantiles(spans((4, 0.2)), failed=16)
    assert found["p95"].bound == "never"
    assert found["p95"].value_s is None
    assert found["p95"].n == 20
    assert quantiles(spans((19, 0.2)), failed=1)["p95"].value_s == 0.2
    assert quantiles(spans((19, 0.2)), failed=1)["max"].bound == "never"


def test_cut_ones_are_lower_bounds() -> None:
    found = quantiles(spans((7, 0.2)), cut=spans((3, 4.0)))
    assert (found["p50"].value_s, found["p50"].bound) == (0.2, "exact")
    assert (found["p95"].value_s, found["p95"].bound) == (4.0, "at_least")
    assert found["p95"].n == 10


def test_a_young_cut_makes_the_values_above_it_lower_bounds_too() -> None:
    found = quantiles(spans((5, 0.2), (5, 1.0)), cut=spans((1, 0.5)))
    assert (found["p50"].value_s, found["p50"].bound) == (0.5, "at_least")
    assert (found["p90"].value_s, found["p90"].bound) == (1.0, "at_least")  # the cut one may have come after it
    assert quantiles(spans((9, 0.2)), cut=spans((1, 0.5)))["p50"].bound == "exact"


def test_nothing_has_no_value() -> None:
    for found in quantiles([]).values():
        assert (found.value_s, found.n, found.reliable) == (None, 0, False)


# The smallest n whose 95 % interval closes, and the textbook ranks of the median of 100.
SMALLEST = [("p50", 6), ("p90", 36), ("p95", 72), ("p99", 368)]


@pytest.mark.parametrize(("stat", "n"), SMALLEST)
def test_too_few_samples_are_said_to_be_too_few(stat: str, n: int) -> None:
    assert not quantiles(range(n - 1))[stat].reliable
    assert quantiles(range(n))[stat].reliable


def test_the_interval_is_that_of_the_order_statistics() -> None:
    assert interval(100, Fraction(1, 2)) == (40, 61)
    found = quantiles(spans(*((1, k / 100) for k in range(1, 101))))["p50"]
    assert (found.low_s, found.value_s, found.high_s) == (0.40, 0.50, 0.61)


@pytest.mark.parametrize("stat", ["p50", "p90", "p95", "p99"])
@pytest.mark.parametrize("n", [10, 72, 400, 1500])
def test_the_interval_covers_what_it_promises_and_no_rank_less_would(stat: str, n: int) -> None:
    share = STATS[stat]

    def below(k: int) -> Fraction:  # P(at most k of n lie below the quantile), exact
        return sum((math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k + 1)), Fraction(0))

    low, high = interval(n, share)
    tail = Fraction(1, 40)
    if low is not None:
        assert below(low - 1) <= tail < below(low)
    else:
        assert below(0) > tail
    if high is not None:
        assert below(high - 2) < 1 - tail <= below(high - 1)
    else:
        assert below(n - 1) < 1 - tail


def test_the_maximum_has_no_interval_and_needs_none() -> None:
    found = quantiles(spans((3, 1.0)))["max"]
    assert (found.low_s, found.high_s, found.reliable) == (None, None, True)


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1), st.sampled_from(list(STATS)))
def test_a_percentile_is_an_observed_value_with_its_share_at_or_below(values: list[int], stat: str) -> None:
    found = quantiles(values)[stat]
    assert found.value_s in {value / 1e9 for value in values}
    covered = sum(value / 1e9 <= found.value_s for value in values)
    assert covered >= STATS[stat] * len(values)


@given(st.lists(st.integers(0, 10**12)), st.lists(st.integers(0, 10**12)), st.integers(0, 20))
def test_whatever_the_cut_ones_would_have_become_no_bound_is_broken(
    exact: list[int], cut: list[int], failed: int
) -> None:
    found = quantiles(exact, failed, cut)
    later = quantiles([*exact, *(age * 3 + 1 for age in cut)], failed)
    for stat in STATS:
        before, after = found[stat], later[stat]
        if before.bound == "exact":
            assert after.value_s == before.value_s
        elif before.bound == "at_least":
            assert after.value_s is not None
            assert after.value_s >= before.value_s
        else:
            assert after.bound == "never"


def test_values_beyond_the_nominal_top_are_kept_and_what_is_no_duration_is_counted() -> None:
    durations = Durations(top_s=60.0)
    for value in [0.2] * 99 + [90.0, -0.01, math.nan]:
        durations.add(value)
    found = durations.quantiles()
    assert durations.n == 100
    assert found["max"].value_s == 90.0
    assert found["p99"].value_s == 0.2
    assert durations.overflow == 1
    assert durations.invalid == 2
    assert durations.sum_s == pytest.approx(109.8)
    durations.add(math.inf)
    durations.add(0.3)
    assert (durations.invalid, durations.n) == (3, 101)


def test_an_unknown_duration_is_not_counted() -> None:
    durations = Durations()
    durations.add_ns(None)
    durations.add_ns(2_000_000)
    durations.add_ns(-1)
    summary = durations.summary()
    assert (summary["n"], summary["invalid"], summary["sum_s"]) == (1, 1, 0.002)
    assert summary["p50"].value_s == 0.002
