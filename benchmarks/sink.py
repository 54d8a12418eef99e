"""The sink (`sink.c`) from Python: a process on a free port, and what it saw.

By hand, until SIGTERM or Ctrl-C; the port is printed first:

    python -m benchmarks.sink ARRIVALS [--port 0] [--every 10] [--delay-us 0] [--core N]
"""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.compiled import built
from benchmarks.senders import OTHER_CORE, await_quiet, place


@dataclass
class Seen:
    """What a sink saw, filled when it has ended. `arrivals`: monotonic ns, an array a connection that sent media."""

    url: str
    arrivals: list[NDArray[np.int64]] = field(default_factory=list)
    payload_bytes: list[int] = field(default_factory=list)
    cpu_s: float = 0.0
    refused: int = 0  # connections that it broke off: no handshake, or a far side that does not read


@contextlib.contextmanager
def sinking(*, every: int = 10, delay_us: int = 0, core: int | None = OTHER_CORE) -> Iterator[Seen]:
    """A sink on a free port of the loopback, ended with the block. Each `every`-th message is answered; 0: none."""
    await_quiet()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arrivals"
        words: list[str | Path] = [built("sink"), path, "--every", str(every), "--delay-us", str(delay_us)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=functools.partial(place, core))
        assert process.stdout
        seen = Seen(f"ws://127.0.0.1:{process.stdout.readline().strip()}/")
        try:
            yield seen
        finally:
            process.send_signal(signal.SIGTERM)
            totals = json.loads(process.communicate(timeout=60)[0])
        seen.cpu_s, seen.refused = totals["cpu_s"], totals["refused"]
        for arrivals, payload_bytes in read(path):
            seen.arrivals.append(arrivals)
            seen.payload_bytes.append(payload_bytes)


def read(path: Path) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Arrival times and payload bytes of each connection that sent media, from the sink's file."""
    numbers, at = np.fromfile(path, dtype=np.int64), 0
    while at < len(numbers):
        count = int(numbers[at])
        if count:
            yield numbers[at + 2 : at + 2 + count], int(numbers[at + 1])
        at += 2 + count


if __name__ == "__main__":
    os.execv(built("sink"), ["sink", *sys.argv[1:]])
