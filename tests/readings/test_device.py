"""The machine's own sensors, as files that look like those of a board, a laptop, and a machine that shows nothing."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from loadbench.readings import device


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(device, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(device, "COOLERS", tmp_path / "thermal")
    monkeypatch.setattr(device, "FIRMWARE", tmp_path / "get_throttled")
    monkeypatch.setattr(psutil, "cpu_freq", lambda percpu=False: [])
    monkeypatch.setattr(psutil, "sensors_temperatures", dict, raising=False)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None, raising=False)
    return tmp_path


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_a_machine_that_shows_nothing_gives_no_reading_rather_than_zeros(board: Path) -> None:
    assert device.Device().take() == {}


def test_frequencies_temperatures_and_the_battery_have_names_and_units(
    board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warm(label: str, current: float | None) -> Any:
        return SimpleNamespace(label=label, current=current)

    cores = [SimpleNamespace(current=1800.0), SimpleNamespace(current=600.0), SimpleNamespace(current=0.0)]
    sensors = {
        "cpu_thermal": [warm("", 71.5)],
        "coretemp": [warm("Core 0", 50.0), warm("Core 0", 55.0), warm("Package id 0", None)],
        "odd": [warm("x", -274.0)],  # a sensor that is not there
    }
    monkeypatch.setattr(psutil, "cpu_freq", lambda percpu=False: cores)
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: sensors, raising=False)
    monkeypatch.setattr(
        psutil, "sensors_battery", lambda: SimpleNamespace(percent=81, power_plugged=False), raising=False
    )
    assert device.Device().take() == {
        "core0_mhz": 1800.0,
        "core1_mhz": 600.0,  # and none of a core that says 0: it is asleep, or tells nothing
        "temperature_cpu_thermal_c": 71.5,
        "temperature_coretemp_core_0_c": 55.0,
        "battery_share": 0.81,
        "battery_plugged": 0.0,
    }


def test_a_count_that_grows_means_throttled_since_the_last_look(board: Path) -> None:
    count = board / "cpu/cpu0/thermal_throttle/core_throttle_count"
    put(count, "7")
    read = device.Device()
    assert read.take() == {"throttled": 0.0}
    put(count, "9")
    assert read.take() == {"throttled": 1.0}
    assert read.take() == {"throttled": 0.0}


@pytest.mark.parametrize(
    ("kind", "state", "taken"),
    [
        ("thermal-cpufreq-0", "2", {"throttled": 1.0}),
        ("thermal-cpufreq-0", "0", {"throttled": 0.0}),
        ("Processor", "1", {"throttled": 1.0}),
        ("pwm-fan", "3", {}),  # a fan at work slows nothing down
    ],
)
def test_a_cooling_device_that_slows_the_processor_down_means_throttled(
    board: Path, kind: str, state: str, taken: dict[str, float]
) -> None:
    put(board / "thermal/cooling_device0/type", kind)
    put(board / "thermal/cooling_device0/cur_state", state)
    assert device.Device().take() == taken


@pytest.mark.parametrize(("bits", "throttled"), [("0", 0.0), ("50005", 1.0), ("50000", 0.0)])  # the high bits: once
def test_the_firmware_of_a_small_board_tells_as_well(board: Path, bits: str, throttled: float) -> None:
    put(board / "get_throttled", bits)
    assert device.Device().take() == {"throttled": throttled}
