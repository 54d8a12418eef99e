"""Our engine beside the least that sending can cost (`floor.c`), in turn, against the same sink."""

import json
import subprocess
import sys
from functools import partial

from benchmarks import arrivals, ours
from benchmarks.compiled import built
from benchmarks.senders import SENDER_CORE, place
from benchmarks.sink import sinking
from benchmarks.table import figure, table
from benchmarks.workloads import WORKLOADS, Workload

CASES = [("W1", 500), ("W1", 1000), ("W2", 1000), ("W3", 100)]
HEAD = ["case", "sender", "CPU us/frame", "by floor", "core", "rate", "p50 ms", "p99 ms", "own p99 ms", "waited"]
Figures = dict[str, float]


def floor(workload: Workload, sessions: int, seconds: float) -> Figures:
    """One run of the bare sender."""
    words = [sessions, workload.payload_bytes, workload.interval_ms, seconds + 1]
    with sinking() as seen:
        port = seen.url.rsplit(":", 1)[1].strip("/")
        said = subprocess.check_output(
            [built("floor"), port, *map(str, words)], preexec_fn=partial(place, SENDER_CORE), timeout=120
        )
    counted = json.loads(said)
    pace = arrivals.pace(seen.arrivals, workload.interval_ns, sessions)
    cpu = {"cpu": counted["cpu_ns"] / counted["frames"] / 1e3, "core": counted["cpu_ns"] / counted["wall_ns"]}
    return cpu | {"rate": pace.rate, "p50": pace.p50_ms, "p99": pace.p99_ms}


def loadbench(workload: Workload, sessions: int, seconds: float) -> Figures:
    """One run of ours."""
    with sinking() as seen, ours.running(seen.url, workload, sessions, seconds) as run:
        pass
    pace = arrivals.pace(seen.arrivals, workload.interval_ns, sessions)
    engine = run.engine(pace)
    found = {"cpu": engine.cpu_us, "core": engine.core_share, "rate": pace.rate, "p50": pace.p50_ms}
    return found | {"p99": pace.p99_ms, "own": engine.late_p99_ms, "waited": engine.waited_share * 100}


def measure(cases: list[tuple[str, int]], seconds: float, repeats: int) -> str:
    """One table: floor and ours of each case."""
    rows = []
    for name, sessions in cases:
        workload, pairs = WORKLOADS[name], list[tuple[Figures, Figures]]()
        for _ in range(repeats):
            print(f"  {name}, {sessions} sessions", file=sys.stderr)
            pairs.append((floor(workload, sessions, seconds), loadbench(workload, sessions, seconds)))
        ratio = figure([us["cpu"] / least["cpu"] for least, us in pairs], 2)
        for who, found, by in [("floor", [p[0] for p in pairs], "1"), ("loadbench", [p[1] for p in pairs], ratio)]:
            rows.append([f"{name}, {sessions:,} sessions", who, *_cells(found, by)])
    about = "; ".join(f"{w.name}: {w.about}" for w in WORKLOADS.values() if any(w.name == case for case, _ in cases))
    return (
        f"{about}. CPU of the sending process while all sessions stream; for loadbench that is its engine.\n\n"
        + table(HEAD, rows)
    )


def _cells(found: list[Figures], by: str) -> list[str]:
    def cell(key: str, digits: int) -> str:
        return figure([run.get(key) for run in found], digits)

    core = figure([run["core"] * 100 for run in found], 0) + " %"
    waited = cell("waited", 1)
    return [
        cell("cpu", 1), by, core, cell("rate", 3), cell("p50", 2), cell("p99", 2), cell("own", 2),
        waited if waited == "n/a" else waited + " %",
    ]  # fmt: skip
