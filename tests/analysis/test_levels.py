from loadbench.analysis.levels import Levels
from loadbench.results.tick import Tick

S = 1_000_000_000


def told(*readings: dict[str, float]) -> dict:
    levels = Levels()
    for number, reading in enumerate(readings):
        levels.add(
            Tick(
                worker="w", seq=number, at_ns=number * S, span_ns=S, active=0, users_target=0, stage="main",
                window="measure", started=0, readings=reading,
            )
        )  # fmt: skip
    return levels.summary()


def test_what_no_tick_shows_is_none_and_not_zero() -> None:
    assert told({}, {"load_1m": 0.5}) == {
        "target": None,
        "machine": {"hottest": None, "lowest_mhz": None, "throttled_s": None, "battery": None, "load_max": 0.5},
    }


def test_the_target_is_told_by_its_most_and_its_mean() -> None:
    one = {"target_processes": 1.0, "target_cpu_share": 0.5, "target_rss_bytes": 100.0, "target_threads": 3.0}
    two = {"target_processes": 2.0, "target_cpu_share": 1.5, "target_rss_bytes": 80.0, "target_threads": 4.0}
    assert told({}, one, two)["target"] == {
        "cpu_mean_share": 1.0,  # of the seconds in which it ran
        "cpu_max_share": 1.5,
        "rss_max_bytes": 100.0,
        "threads_max": 4.0,
        "files_max": None,
        "processes_max": 2.0,
    }


def test_the_machine_is_told_by_its_hottest_sensor_its_slowest_core_and_its_throttled_seconds() -> None:
    found = told(
        {"temperature_cpu_c": 60.0, "temperature_gpu_c": 61.0, "core0_mhz": 1800.0, "throttled": 0.0},
        {"temperature_cpu_c": 82.0, "core0_mhz": 1800.0, "core1_mhz": 600.0, "throttled": 1.0, "battery_share": 0.8},
        {"temperature_cpu_c": 70.0, "throttled": 1.0, "battery_share": 0.78},
    )["machine"]
    assert found["hottest"] == {"sensor": "cpu", "c": 82.0}
    assert found["lowest_mhz"] == 600.0
    assert found["throttled_s"] == 2.0
    assert found["battery"] == {"from_share": 0.8, "to_share": 0.78}
