"""What the process under test takes: a process and all that it has started, each second."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import psutil


class Target:
    """The process `pid` and its descendants; without `itself` only these. One that has ended is simply gone.

    Its number may be given to another process when it has ended; that other one is not counted.
    """

    def __init__(self, pid: int, *, itself: bool = True) -> None:
        self._root: psutil.Process | None = None
        with suppress(psutil.Error):
            self._root = psutil.Process(pid)
        self._itself = itself
        self._used_s: dict[psutil.Process, float] = {process: _used_s(process) for process in self._all()}
        self._at_ns = time.monotonic_ns()

    def take(self) -> dict[str, float]:
        """Levels now, and of one processor the share that was used since the last call; nothing where nobody runs.

        `target_rss_bytes` is the sum of resident memory: pages that processes share count in each. What a process used
        between the last look and its end is not known, and not counted.
        """
        now_ns = time.monotonic_ns()
        used_s = {process: _used_s(process) for process in self._all()}
        span_s, self._at_ns = max(1, now_ns - self._at_ns) / 1e9, now_ns
        spent_s = sum(max(0.0, used - self._used_s.get(process, 0.0)) for process, used in used_s.items())
        self._used_s = used_s
        if not used_s:
            return {}
        return {"target_processes": float(len(used_s)), "target_cpu_share": spent_s / span_s, **_levels(list(used_s))}

    def _all(self) -> Iterator[psutil.Process]:
        if self._root is None:
            return
        with suppress(psutil.Error):  # it ends just now
            if not self._root.is_running():
                return
            yield from self._root.children(recursive=True)
            if self._itself:
                yield self._root


def exists(pid: int) -> bool:
    """Whether there is such a process, ours or not."""
    return psutil.pid_exists(pid)


def _used_s(process: psutil.Process) -> float:
    """Processor time so far. 0 where it has just ended."""
    with suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def _levels(processes: list[psutil.Process]) -> dict[str, float]:
    """Sums over all; a level that the system does not show of any of them is absent."""
    found: dict[str, float] = {}
    for process in processes:
        for name, read in _READ.items():
            with suppress(psutil.Error, OSError):  # ended just now, or somebody else's
                found[name] = found.get(name, 0.0) + float(read(process))
    return found


_READ: Final[dict[str, Callable[[psutil.Process], int]]] = {
    "target_rss_bytes": lambda process: process.memory_info().rss,
    "target_threads": psutil.Process.num_threads,
    "target_files": psutil.Process.num_fds,
}
