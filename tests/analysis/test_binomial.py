"""The exact binomial against numbers worked by hand and published ones."""

import math

import pytest

from loadbench.analysis import binomial


def test_with_none_missed_59_show_a_p95_and_299_a_p99() -> None:
    assert binomial.least(0.05) == 59
    assert binomial.least(0.01) == 299
    assert binomial.least(0.1) == 29
    assert binomial.least(0.5) == 5
    assert binomial.upper(0, 59) == pytest.approx(0.0495, abs=5e-5)
    assert binomial.upper(0, 58) > 0.05
    assert binomial.upper(0, 299) <= 0.01 < binomial.upper(0, 298)


def test_a_share_of_none_and_one_of_all_ask_for_one() -> None:
    assert binomial.least(0.0) == binomial.least(1.0) == 1


@pytest.mark.parametrize(
    ("misses", "n", "confidence", "low", "high"),
    [
        (5, 100, 0.95, 0.0199, 0.1023),  # Clopper and Pearson, two-sided 90 %
        (5, 100, 0.975, 0.0164, 0.1128),  # the same, two-sided 95 %
        (1, 10, 0.975, 0.0025, 0.4450),
        (10, 20, 0.975, 0.2720, 0.7280),
        (0, 20, 0.975, 0.0, 0.1684),
        (20, 20, 0.975, 0.8316, 1.0),
    ],
)
def test_bounds_are_those_of_clopper_and_pearson(
    misses: int, n: int, confidence: float, low: float, high: float
) -> None:
    assert binomial.lower(misses, n, confidence) == pytest.approx(low, abs=6e-5)
    assert binomial.upper(misses, n, confidence) == pytest.approx(high, abs=6e-5)


@pytest.mark.parametrize(("misses", "n", "share"), [(0, 5, 0.3), (2, 5, 0.3), (5, 5, 0.3), (3, 40, 0.05)])
def test_tails_are_sums_of_the_binomial_s_terms(misses: int, n: int, share: float) -> None:
    terms = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    assert binomial.at_most(misses, n, share) == pytest.approx(sum(terms[: misses + 1]), rel=1e-12)
    assert binomial.at_least(misses, n, share) == pytest.approx(sum(terms[misses:]), rel=1e-12)


def test_nothing_seen_says_nothing() -> None:
    assert (binomial.lower(0, 0), binomial.upper(0, 0)) == (0.0, 1.0)


def test_impossible_and_certain_shares() -> None:
    assert binomial.at_least(1, 10, 0.0) == 0.0
    assert binomial.at_most(9, 10, 1.0) == 0.0
    assert binomial.at_most(0, 10, 0.0) == 1.0


def test_bounds_of_a_hundred_thousand_are_still_exact() -> None:
    assert binomial.upper(5000, 100_000) == pytest.approx(0.05 + 1.645 * math.sqrt(0.05 * 0.95 / 100_000), abs=2e-5)


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_the_bound_from_above_holds_in_at_least_95_of_100_samples(share: float) -> None:
    for n in (30, 59, 200):
        missed = sum(
            math.comb(n, k) * share**k * (1 - share) ** (n - k)
            for k in range(n + 1)
            if not binomial.lower(k, n) <= share
        )
        assert missed <= 0.05
        above = sum(
            math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1) if binomial.upper(k, n) < share
        )
        assert above <= 0.05
