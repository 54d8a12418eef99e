from random import Random
from typing import Any

import pytest

from loadbench.simulator.options import Options, OptionsError, delay


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        (0.3, 0.3, 0.3),
        ("0.3", 0.3, 0.3),
        ("constant:0.3", 0.3, 0.3),
        ("uniform:0.2,0.4", 0.2, 0.4),
        ("bimodal:0.2,2.0,0", 0.2, 0.2),  # no slow ones
        ("bimodal:0.2,2.0,1", 2.0, 2.0),  # none but slow ones
        ("lognormal:0.3,0", 0.3, 0.3),  # no spread: the median
    ],
)
def test_a_delay_is_a_number_or_a_word(given: str | float, low: float, high: float) -> None:
    draw = delay(given)
    assert all(low <= draw(Random(seed)) <= high for seed in range(50))


def test_a_lognormal_delay_has_its_median_and_a_heavy_tail() -> None:
    values = sorted(delay("lognormal:0.3,1.0")(Random(seed)) for seed in range(2001))
    assert values[1000] == pytest.approx(0.3, rel=0.1)
    assert values[-20] > 1.5


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        Options(
            first_s="uniform:1",
            final_s="soon",
            drop="bang",
            wrong_rate=1.5,
            tick_s=-1,
            capacity=0,
            reject_status=200,
            freeze_s=(2.0, 1.0),
            finals_s=(2.0, 1.0),
            overflow="queue",  # type: ignore[arg-type]
            engine="other",  # type: ignore[arg-type]
        )
    assert len(caught.value.problems) == 11


@pytest.mark.parametrize("freeze_s", [(5.0,), (None, 5.0), (-1.0, 2.0), (1.0, 2.0, 3.0)])
def test_a_freeze_is_from_and_to(freeze_s: Any) -> None:
    with pytest.raises(OptionsError, match="two numbers of seconds"):
        Options(freeze_s=freeze_s)


@pytest.mark.parametrize("given", ["", "uniform:", "uniform:1,2,3", "bimodal:1,2", "gamma:1,2", "-1", "uniform:-1,2"])
def test_a_delay_that_is_none_is_refused_with_what_is_allowed(given: str) -> None:
    with pytest.raises(OptionsError, match="lognormal:MEDIAN,SIGMA"):
        delay(given)


@pytest.mark.parametrize(
    "given",
    [
        {"first_s": "nan"},
        {"first_s": float("nan")},
        {"final_s": "uniform:0,inf"},
        {"done_s": float("nan")},
        {"wrong_rate": float("nan")},
        {"tick_s": float("inf")},
        {"freeze_s": (float("nan"), 1.0)},
        {"finals_s": (0.0, float("inf"))},
    ],
)
def test_what_is_no_number_of_seconds_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(OptionsError) as caught:
        Options(**given)
    assert next(iter(given)) in caught.value.problems[0]
