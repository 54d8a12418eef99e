"""The metrics of lag against fixed values: what SimulEval 1.1.4 and OmniSTEval 0.1.10 say of the same outputs."""

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.analysis.lag import METRICS, Batch, Output, degeneracy, sums

# case -> source ms, reference length, delays, elapsed
CASES: dict[str, tuple[float, int, str, str]] = {
    "A": (4000, 6, "1000 1500 2000 2500 3000 4000", "1200 1750 2300 2800 3350 4450"),
    "B over-long": (
        *(4000, 4, "800 800 1200 1600 2000 2400 3000 3600 4000"), "900 950 1400 1850 2300 2750 3400 4050 4500",
    ),
    "C short": (4000, 6, "1000 2000 4000", "1300 2350 4400"),
    "D all late": (4000, 3, "4200 4200 4500", "4300 4300 4650"),
    "E boundary": (4000, 3, "4000 4000 4000", "4100 4120 4150"),
    "F tail": (3000, 4, "1000 2000 3000 3000", "1100 2100 3200 3250"),
    "G characters": (2400, 6, "600 600 1200 1200 1800 2400", "700 700 1350 1350 2000 2650"),
    "H burst": (1800, 4, "900 900 1800 1800", "1000 1000 2000 2000"),
    "T1": (4000, 6, "1140 1820 2350 3010 4000 4000", "1140 1820 2350 3010 4310 4310"),
}  # fmt: skip

# case -> metric -> of the delays, of the elapsed times
SAID: dict[str, dict[str, tuple[float, float]]] = {
    "A": {
        "al": (666.6666666666666, 975.0), "laal": (666.6666666666666, 975.0),
        "ap": (0.5833333333333334, 0.6604166666666667), "dal": (999.9999999999997, 1200.0), "atd": (1400.0, 1475.0),
        "start_offset": (1000, 1200), "end_offset": (0, 450), "rtf": (1.0, 1.1125),
        "yaal": (666.6666666666667, 946.6666666666667),
    },
    "B over-long": {
        "al": (-1844.4444444444443, -1300.0), "laal": (377.77777777777766, 644.4444444444443),
        "ap": (1.2125, 1.38125), "dal": (799.9999999999995, 909.2592592592589), "atd": (933.3333333333334, 1000.0),
        "start_offset": (800, 900), "end_offset": (0, 500), "rtf": (1.0, 1.125),
        "yaal": (369.44444444444434, 602.3809523809523),
    },
    "C short": {
        "al": (1666.6666666666667, 2016.6666666666667), "laal": (1666.6666666666667, 2016.6666666666667),
        "ap": (0.2916666666666667, 0.33541666666666664), "dal": (1111.111111111111, 1444.4444444444446),
        "atd": (1733.3333333333333, 1866.6666666666667), "start_offset": (1000, 1300), "end_offset": (0, 400),
        "rtf": (1.0, 1.1), "yaal": (1166.6666666666667, 1491.6666666666667),
    },
    "D all late": {
        "al": (4200, 4300), "laal": (4200, 4300), "ap": (1.075, 1.1041666666666667), "dal": (4200.0, 4300.0),
        "atd": (3700.0, 3783.3333333333335), "start_offset": (4200, 4300), "end_offset": (500, 650),
        "rtf": (1.125, 1.1625), "yaal": (nan, nan),
    },
    "E boundary": {  # d_1 == X is not late for AL, and is for YAAL
        "al": (4000.0, 4100), "laal": (4000.0, 4100), "ap": (1.0, 1.0308333333333333), "dal": (4000.0, 4100.0),
        "atd": (3400.0, 3523.3333333333335), "start_offset": (4000, 4100), "end_offset": (0, 150),
        "rtf": (1.0, 1.0375), "yaal": (nan, nan),
    },
    "F tail": {
        "al": (1250.0, 1383.3333333333333), "laal": (1250.0, 1383.3333333333333), "ap": (0.75, 0.8041666666666667),
        "dal": (1312.5, 1462.5), "atd": (1550.0, 1637.5), "start_offset": (1000, 1100), "end_offset": (0, 250),
        "rtf": (1.0, 1.0833333333333333), "yaal": (1125.0, 1225.0),
    },
    "G characters": {
        "al": (300.0, 458.3333333333333), "laal": (300.0, 458.3333333333333),
        "ap": (0.5416666666666666, 0.6076388888888888), "dal": (600.0, 700.0), "atd": (250.0, 316.6666666666667),
        "start_offset": (600, 700), "end_offset": (0, 250), "rtf": (1.0, 1.1041666666666667), "yaal": (280.0, 420.0),
    },
    "H burst": {
        "al": (750.0, 883.3333333333334), "laal": (750.0, 883.3333333333334), "ap": (0.75, 0.8333333333333334),
        "dal": (900.0, 1050.0), "atd": (600.0, 700.0), "start_offset": (900, 1000), "end_offset": (0, 200),
        "rtf": (1.0, 1.1111111111111112), "yaal": (675.0, 775.0),
    },
    "T1": {
        "al": (1130.6667, 1192.6667), "laal": (1130.6667, 1192.6667), "ap": (0.68, 0.7058333),
        "dal": (1211.1111, 1314.4444), "atd": (1700.0, 1803.3333), "start_offset": (1140, 1140),
        "end_offset": (0, 310), "rtf": (1.0, 1.0775), "yaal": (1080.0, 1080.0),
    },
}  # fmt: skip
MEANS = {  # of A, B, C, D, F and an empty one
    "al": (1187.7777777777778, 1475.0), "laal": (1632.2222222222222, 1863.888888888889),
    "ap": (0.7825, 0.8570833333333334), "dal": (1684.7222222222222, 1863.2407407407406),
    "atd": (1863.3333333333333, 1952.5), "start_offset": (1600, 1760), "end_offset": (100, 450),
    "yaal": (831.9444444444445, 1066.4285714285716),
}  # fmt: skip
CHECKS = {  # SWF, EFSW, DSPTV
    "A": (83.3333, 83.3333, 0.0), "B over-long": (88.8889, 90.7639, 1.875), "C short": (66.6667, 70.8333, 4.1667),
    "D all late": (0.0, None, None), "E boundary": (0.0, None, None), "F tail": (50.0, 62.5, 12.5),
    "G characters": (83.3333, 88.3333, 5.0), "H burst": (50.0, 62.5, 12.5),
}  # fmt: skip
CORPUS = ("A", "B over-long", "C short", "D all late", "F tail")
EMPTY = Output([], [], 4000.0, 3)


def output(case: str) -> Output:
    source, reference, delays, elapsed = CASES[case]
    return Output([float(at) for at in delays.split()], [float(at) for at in elapsed.split()], source, reference)


@pytest.mark.parametrize("metric", METRICS)
def test_each_case_alone_and_in_a_batch_with_others_is_what_the_reference_tools_say(metric: str) -> None:
    together = Batch.of([*map(output, CASES), EMPTY])
    found = [METRICS[metric](together, times) for times in (together.delays, together.elapsed)]
    assert isnan(found[0][-1]), "an empty output has no lag"
    assert isnan(found[1][-1]), "an empty output has no lag"
    for at, case in enumerate(CASES):
        alone = Batch.of([output(case)])
        for which, times in enumerate((alone.delays, alone.elapsed)):
            said = pytest.approx(SAID[case][metric][which], abs=1e-4 if case == "T1" else 1e-6, nan_ok=True)
            assert METRICS[metric](alone, times)[0] == said, case
            assert found[which][at] == said, case


@pytest.mark.parametrize("metric", MEANS)
def test_the_mean_of_a_corpus_leaves_out_the_empty_output_and_yaal_the_one_that_is_all_late(metric: str) -> None:
    batch = Batch.of([*map(output, CORPUS), EMPTY])
    for which, times in enumerate((batch.delays, batch.elapsed)):
        found = METRICS[metric](batch, times)
        assert int(np.isnan(found).sum()) == (2 if metric == "yaal" else 1)
        assert np.nanmean(found) == pytest.approx(MEANS[metric][which], abs=1e-6)


@pytest.mark.parametrize("case", CHECKS)
def test_the_check_for_degenerate_policies_is_that_of_omnisteval(case: str) -> None:
    found = degeneracy(sums(Batch.of([output(case)])))
    assert found[:3] == pytest.approx(CHECKS[case], abs=5e-5)
    assert not found.suspicious


def test_the_check_of_a_corpus_is_pooled_and_the_late_output_counts_in_its_words_alone() -> None:
    apart = [sums(Batch.of([output(case)])) for case in CORPUS]
    found = degeneracy(sum(apart[1:], apart[0]) + sums(Batch.of([EMPTY])))
    assert found[:3] == pytest.approx((68.0, 77.81481481481481, 9.81481481481481), abs=1e-6)
    assert degeneracy(sums(Batch.of([EMPTY]))) == (None, None, None, False)


def test_a_policy_whose_words_come_early_on_average_and_in_one_late_burst_is_suspicious() -> None:
    burst = Output([100.0, *[4000.0] * 9], [100.0, *[4000.0] * 9], 4000.0, 10)
    found = degeneracy(sums(Batch.of([burst])))
    assert found[:3] == pytest.approx((10.0, 97.5, 87.5))
    assert found.suspicious


def test_an_output_without_a_reference_is_held_against_its_own_length() -> None:
    batch = Batch.of([Output([1000.0, 2000.0], [1000.0, 2000.0], 4000.0)])
    assert METRICS["al"](batch, batch.delays)[0] == pytest.approx((1000 + 2000 - 2000) / 2)
    assert METRICS["ap"](batch, batch.delays)[0] == pytest.approx(3000 / 8000)


def test_a_batch_of_nothing_but_empty_outputs_and_one_of_none_have_no_values() -> None:
    for batch in (Batch.of([EMPTY, EMPTY]), Batch.of([])):
        for metric in METRICS.values():
            assert np.isnan(metric(batch, batch.delays)).all()


@given(st.lists(st.integers(0, 6000), min_size=1, max_size=12).map(sorted), st.integers(1, 15), st.integers(1, 400))
def test_a_service_that_is_later_by_so_much_has_computation_aware_lags_that_are_longer_by_so_much(
    times: list[int], reference: int, later: int
) -> None:
    """DAL and the offsets move by exactly that; AL and LAAL by no more than how many units they look at allows."""
    before, after = (
        Output([0.0] * len(times), [float(at + shift) for at in times], 3000.0, reference) for shift in (0, later)
    )
    batch = Batch.of([before, after])
    for metric in ("dal", "start_offset", "end_offset"):
        early, late = METRICS[metric](batch, batch.elapsed)
        assert late - early == pytest.approx(later, abs=1e-6)
