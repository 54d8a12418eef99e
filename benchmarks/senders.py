"""Starts a sender on a core of its own, and knows what its whole process tree has cost at any moment.

Where there are two cores, the sender has the first and everything else the last: the sink, this process, and of
loadbench the parent, whose engine is moved to the sender's core as soon as it is seen.
"""

import contextlib
import functools
import os
import pty
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

CORES = sorted(os.sched_getaffinity(0))
SENDER_CORE, OTHER_CORE = CORES[0], CORES[-1]
LOOK_S = 0.1  # between two looks at the tree
BUSY_PERCENT = 10  # of all cores


@dataclass
class Cost:
    """Processor time of a process tree: `cpu_ns[i]` in all at `at_ns[i]`. Ended processes keep what they had."""

    at_ns: list[int] = field(default_factory=list)
    cpu_ns: list[int] = field(default_factory=list)

    def between(self, from_ns: int, to_ns: int) -> float:
        """Nanoseconds of processor in a window, interpolated between looks."""
        start, end = np.interp([from_ns, to_ns], self.at_ns, self.cpu_ns)
        return float(end - start)


class SenderError(Exception):
    """A sender ended with another exit code than it may; its last words are the text."""


def stay_away() -> None:
    """Keep this process, and what it starts without a core, off the sender's core."""
    os.sched_setaffinity(0, {OTHER_CORE})


def place(core: int | None, pid: int = 0) -> None:
    """Put a process on a core (None: on all of them); with BENCH_REALTIME set, before all others but the measured."""
    os.sched_setaffinity(pid, CORES if core is None else {core})
    if os.environ.get("BENCH_REALTIME"):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def await_quiet() -> None:
    """Wait until other programs leave the machine alone, at most BENCH_PATIENCE seconds (0 where it is not set)."""
    end = time.monotonic() + float(os.environ.get("BENCH_PATIENCE", "0"))
    while time.monotonic() < end and psutil.cpu_percent(interval=0.5) > BUSY_PERCENT:
        pass


def send(
    command: Sequence[str | Path],
    *,
    core: int | None = SENDER_CORE,
    engine_core: int = SENDER_CORE,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    allowed: Sequence[int] = (0,),
    timeout_s: float = 180,
) -> Cost:
    """Run a sender to its end on `core` (None: as this process), on a terminal that nobody reads; what it cost.

    An engine of loadbench below it is moved to `engine_core`. Raises SenderError.
    """
    words = [str(word) for word in command]
    around = {**os.environ, "COLUMNS": "120", "LINES": "40", "TERM": "xterm", **(env or {})}
    begin = None if core is None else functools.partial(place, core)
    with _terminal() as (slave, last_words):
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=around, cwd=cwd, preexec_fn=begin
        )
        cost = _watch(process, engine_core, time.monotonic() + timeout_s)
        code = process.wait()
    if code not in allowed:
        raise SenderError(f"{Path(words[0]).name} ended with {code}: {last_words()[-600:]}")
    return cost


def _watch(process: "subprocess.Popen[bytes]", engine_core: int, deadline: float) -> Cost:
    cost, known, spent = Cost([time.monotonic_ns()], [0]), {process.pid: psutil.Process(process.pid)}, {}
    placed = False
    while process.poll() is None:
        for child in _children(known[process.pid]):
            known.setdefault(child.pid, child)
            if not placed and "loadbench.engine.child" in _words(child):
                place(engine_core, child.pid)
                placed = True
        for pid, one in known.items():
            with contextlib.suppress(psutil.Error):
                times = one.cpu_times()
                spent[pid] = round((times.user + times.system) * 1e9)
        cost.at_ns.append(time.monotonic_ns())
        cost.cpu_ns.append(sum(spent.values()))
        if time.monotonic() > deadline:
            for one in known.values():
                with contextlib.suppress(psutil.Error):
                    one.kill()
        time.sleep(LOOK_S if placed or len(cost.at_ns) > 50 else 0.02)
    return cost


def _children(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return process.children(recursive=True)
    return []


def _words(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[int, Callable[[], str]]]:
    """The slave of a terminal whose output is read and forgotten, but for its end."""
    master, slave = pty.openpty()
    tail = bytearray()

    def drain() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(master, 65536):
                tail.extend(data)
                del tail[:-4096]

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield slave, lambda: tail.decode(errors="replace")
    finally:
        os.close(slave)
        reader.join(5)
        os.close(master)
