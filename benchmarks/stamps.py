"""How true the stamp of an arriving message is: when we say that it came, minus when the sink says it was sent."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import arrivals, ours
from benchmarks.sink import sinking
from benchmarks.table import figure, table
from benchmarks.workloads import WORKLOADS


def partials(bundle: Path) -> Iterator[tuple[int, int]]:
    """(sent, arrived) of each partial, monotonic nanoseconds: the sink's word and ours."""
    with (bundle / "messages.jsonl").open() as lines:
        for line in lines:
            message = json.loads(line)
            said = json.loads(message["data"])
            if "partial" in said:
                yield said["at"], message["at_ns"]


def delays_ms(sessions: int, seconds: float) -> NDArray[np.float64]:
    """Of each partial that was sent while all sessions stream."""
    workload = WORKLOADS["W1"]
    with sinking() as seen, ours.running(seen.url, workload, sessions, seconds, messages=sessions) as run:
        times = np.array(list(partials(run.bundle)), dtype=np.int64).reshape(-1, 2)
    from_ns, to_ns = arrivals.steady(seen.arrivals)
    within = times[(times[:, 0] >= from_ns) & (times[:, 0] < to_ns)]
    return (within[:, 1] - within[:, 0]) / 1e6


def measure(levels: list[int], seconds: float, repeats: int) -> str:
    """One table."""
    rows = []
    for sessions in levels:
        found = [delays_ms(sessions, seconds) for _ in range(repeats)]
        counts = figure([len(run) for run in found], 0)
        quantiles = [figure([float(np.percentile(run, q)) for run in found if len(run)], 3) for q in (50, 99)]
        rows.append([f"{sessions:,}", counts, *quantiles])
    return table(["W1 sessions", "partials", "p50 ms", "p99 ms"], rows)
