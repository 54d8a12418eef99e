"""How the machine itself fares: frequencies, temperatures, throttling, battery. What it does not show is absent."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

CPUS: Final = Path("/sys/devices/system/cpu")
COOLERS: Final = Path("/sys/class/thermal")
FIRMWARE: Final = Path("/sys/devices/platform/soc/soc:firmware/get_throttled")  # Raspberry Pi
FIRMWARE_NOW: Final = 0b1111  # its lowest bits: under voltage, frequency capped, throttled, soft temperature limit, now
_PROCESSOR: Final = re.compile(r"cpufreq|^processor$", re.IGNORECASE)  # cooling devices that slow the processor down


class Device:
    """Read once a second; may take some milliseconds, for a sensor is asked over a slow bus."""

    def __init__(self) -> None:
        self._counted = _throttle_counts()

    def take(self) -> dict[str, float]:
        """Levels now; `throttled` is 1 where the processor was slowed down since the last call, or is, else 0."""
        taken = {**_frequencies(), **_temperatures(), **_battery()}
        throttled = self._throttled()
        if throttled is not None:
            taken["throttled"] = float(throttled)
        return taken

    def _throttled(self) -> bool | None:
        """None where nothing on this system tells."""
        before, self._counted = self._counted, _throttle_counts()
        told = [count > before.get(path, count) for path, count in self._counted.items()]
        told += [state > 0 for state in _cooling_states()]
        firmware = _number(FIRMWARE, 16)
        if firmware is not None:
            told.append(bool(firmware & FIRMWARE_NOW))
        return any(told) if told else None


def _frequencies() -> dict[str, float]:
    with suppress(OSError, AttributeError, NotImplementedError, ValueError):
        cores = psutil.cpu_freq(percpu=True) or []
        return {f"core{number}_mhz": float(core.current) for number, core in enumerate(cores) if core.current}
    return {}


def _temperatures() -> dict[str, float]:
    """Degrees Celsius by sensor; of sensors of one name the hottest."""
    found: dict[str, float] = {}
    with suppress(OSError, AttributeError, ValueError):
        for group, sensors in psutil.sensors_temperatures().items():  # type: ignore[attr-defined,unused-ignore]
            for sensor in sensors:
                name = re.sub(r"\W+", "_", f"{group}_{sensor.label}".strip("_").lower())
                if sensor.current is not None and -50 < sensor.current < 200:  # beyond: a sensor that is not there
                    key = f"temperature_{name}_c"
                    found[key] = max(found.get(key, -273.15), float(sensor.current))
    return found


def _battery() -> dict[str, float]:
    with suppress(OSError, AttributeError, ValueError):
        battery = psutil.sensors_battery()
        if battery is not None:
            plugged = {} if battery.power_plugged is None else {"battery_plugged": float(battery.power_plugged)}
            return {"battery_share": battery.percent / 100, **plugged}
    return {}


def _throttle_counts() -> dict[Path, int]:
    """How often each core, or its package, was slowed down so far (x86)."""
    paths = CPUS.glob("cpu[0-9]*/thermal_throttle/*_throttle_count")
    return {path: count for path in paths if (count := _number(path)) is not None}


def _cooling_states() -> list[int]:
    """How far the kernel has each processor slowed down, 0 for not at all (ARM boards, ACPI)."""
    states = []
    for cooler in COOLERS.glob("cooling_device[0-9]*"):
        with suppress(OSError):
            if _PROCESSOR.search((cooler / "type").read_text("utf-8").strip()):
                state = _number(cooler / "cur_state")
                states += [] if state is None else [state]
    return states


def _number(path: Path, base: int = 10) -> int | None:
    try:
        return int(path.read_text("utf-8").strip(), base)
    except (OSError, ValueError):
        return None
