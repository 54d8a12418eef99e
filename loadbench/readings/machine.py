"""The tester's own machine: what it is, once; how it fares, each second; and what this process takes of it."""

import contextlib
import os
import platform
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import psutil

LIBRARIES: Final = ("uvloop", "websockets", "h11", "aiohttp", "av", "numpy", "msgspec", "rapidfuzz")
_CPU: Final = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_CLOCK: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
_QUOTA_V1: Final = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
_HANDLES: Final = Path(
    "/proc/self/fd"
)  # as large as there are handles, from Linux 6.2 on; counting takes 1 ms a thousand
_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
COARSE_MS: Final = 2.0  # a sleep that is late by more waits for a tick of the system's, each 4 to 15.6 ms


def versions() -> dict[str, str]:
    """Python and the libraries whose version can change a measurement; one that is not installed is absent."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def facts() -> dict[str, Any]:
    """What this machine is; None where the system does not say. Takes a tenth of a second, for the timer's sake."""
    frequency, overshoot = psutil.cpu_freq(), sleep_overshoot_ms()
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "cpu_mhz": round(frequency.current) if frequency else None,
        "cpu_mhz_max": round(frequency.max) if frequency and frequency.max else None,
        "cpu_quota": cpu_quota(),
        "governor": governor(),
        "clock_source": clock_source(),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_implementation(),
        "sleep_overshoot_ms": overshoot,
        "timers": "coarse" if overshoot["p50"] >= COARSE_MS else "fine",
    }


def governor() -> str | None:
    """By what rule the processor's frequency follows its load."""
    return _text(_CPU / "scaling_governor")


def clock_source() -> str | None:
    """Where the kernel takes its time from."""
    return _text(_CLOCK)


def cpu_quota() -> float | None:
    """Processors that a control group grants this process; None where it sets no limit, or there is none."""
    limit, _, period = (_text(_QUOTA) or "").partition(" ")
    if not period:
        limit, period = _text(_QUOTA_V1) or "", _text(_QUOTA_V1.with_name("cpu.cfs_period_us")) or ""
    if limit.isdigit() and period.isdigit():
        return round(int(limit) / int(period), 2)
    return None


def ephemeral_ports() -> int | None:
    """How many local ports connections to one address can have at once."""
    parts = (_text(_PORTS) or "").split()
    return int(parts[1]) - int(parts[0]) + 1 if len(parts) == 2 else None


def memory_available_bytes() -> int:
    """What can be had without swapping."""
    return int(psutil.virtual_memory().available)


def sleep_overshoot_ms(naps: int = 50) -> dict[str, float]:
    """How much longer than asked a sleep of 1 ms takes here: the middle one and the worst of `naps`."""
    late = []
    for _ in range(naps):
        due_ns = time.monotonic_ns() + 1_000_000
        time.sleep(0.001)
        late.append(max(0, time.monotonic_ns() - due_ns))
    late.sort()
    return {"p50": round(late[len(late) // 2] / 1e6, 3), "max": round(late[-1] / 1e6, 3)}


class Readings:
    """The machine each second. Processor shares are sampled by the kernel's tick and miss what runs in step with it."""

    def __init__(self) -> None:
        psutil.cpu_percent(percpu=True)  # the first call only sets the mark for the next

    def take(self) -> dict[str, float]:
        """Levels now, and shares (0 to 1) since the last call; nothing where no file handle is left to read them."""
        try:
            return self._taken()
        except OSError:
            return {}

    def _taken(self) -> dict[str, float]:
        cores = psutil.cpu_percent(percpu=True)
        taken = {f"core{number}_share_sampled": percent / 100 for number, percent in enumerate(cores)}
        taken["memory_available_bytes"] = float(psutil.virtual_memory().available)
        if hasattr(os, "getloadavg"):
            taken["load_1m"] = os.getloadavg()[0]
        return taken


class OwnProcess:
    """What this process takes. `cpu_ns` is accounted by the scheduler, not sampled."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._rss_bytes = self._fds = 0

    def cpu_ns(self) -> int:
        """Processor time of all threads so far."""
        return time.process_time_ns()

    def run_delay_ns(self) -> int | None:
        """Time in which the main thread was ready and another ran; None where the kernel does not count it."""
        line = _text(Path("/proc/self/schedstat"))
        return int(line.split()[1]) if line else None

    def rss_bytes(self) -> int:
        """Memory in use; as it was last known while no file handle is left to read it."""
        with contextlib.suppress(OSError):
            self._rss_bytes = int(self._process.memory_info().rss)
        return self._rss_bytes

    def fds(self) -> int:
        """Open file handles; as they were last known while none is left to count them."""
        with contextlib.suppress(OSError):
            self._fds = _HANDLES.stat().st_size or self._process.num_fds() - 1  # but the one that lists them
        return self._fds


def _cpu_model() -> str | None:
    for line in (_text(Path("/proc/cpuinfo")) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in {"model name", "Model", "Hardware"}:
            return value.strip()
    return platform.processor() or None


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", errors="replace").strip() or None
    except OSError:
        return None
