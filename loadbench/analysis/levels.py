"""What the ticks' readings come to: of the process under test, and of the machine. None is what was not shown."""

from typing import Any, Final

from loadbench.results.tick import Tick

_TEMPERATURE: Final = "temperature_"


class Levels:
    """Takes ticks in any order; readings are of one machine."""

    def __init__(self) -> None:
        self._most: dict[str, float] = {}
        self._least_mhz: float | None = None
        self._cpu: list[float] = []
        self._throttled_s: float | None = None
        self._battery: list[tuple[int, float]] = []

    def add(self, tick: Tick) -> None:
        """Take note of a second."""
        for name, value in tick.readings.items():
            self._most[name] = max(self._most.get(name, value), value)
            if name.startswith("core") and name.endswith("_mhz"):
                self._least_mhz = value if self._least_mhz is None else min(self._least_mhz, value)
        if "target_cpu_share" in tick.readings:
            self._cpu.append(tick.readings["target_cpu_share"])
        if "throttled" in tick.readings:
            self._throttled_s = (self._throttled_s or 0.0) + tick.readings["throttled"] * tick.span_ns / 1e9
        if "battery_share" in tick.readings:
            self._battery.append((tick.at_ns, tick.readings["battery_share"]))

    def summary(self) -> dict[str, Any]:
        """`target` is None where no process was read. `cpu_share` 1 is one processor, all of the time."""
        most = self._most.get
        return {
            "target": None
            if most("target_processes") is None
            else {
                "cpu_mean_share": sum(self._cpu) / len(self._cpu) if self._cpu else None,
                "cpu_max_share": max(self._cpu, default=None),
                "rss_max_bytes": most("target_rss_bytes"),
                "threads_max": most("target_threads"),
                "files_max": most("target_files"),
                "processes_max": most("target_processes"),
            },
            "machine": {
                "hottest": self._hottest(),
                "lowest_mhz": self._least_mhz,
                "throttled_s": self._throttled_s,
                "battery": None
                if not self._battery
                else {"from_share": min(self._battery)[1], "to_share": max(self._battery)[1]},
                "load_max": most("load_1m"),
            },
        }

    def _hottest(self) -> dict[str, Any] | None:
        found = [(value, name) for name, value in self._most.items() if name.startswith(_TEMPERATURE)]
        if not found:
            return None
        value, name = max(found)
        return {"sensor": name.removeprefix(_TEMPERATURE).removesuffix("_c"), "c": value}
