"""What a session costs as sessions grow: processor, memory, and how well the schedule is kept."""

import sys

from benchmarks import arrivals, ours
from benchmarks.sink import sinking
from benchmarks.table import figure, table
from benchmarks.workloads import WORKLOADS

HEAD = ["W1 sessions", "CPU us/frame", "core", "KB/session", "rate", "p50 ms", "p99 ms", "own p99 ms", "waited"]


def measure(levels: list[int], seconds: float, repeats: int) -> str:
    """One table; memory of the engine beyond what it had in the smallest run, by session."""
    rows: list[list[str]] = []
    least: tuple[int, float] | None = None
    for sessions in levels:
        print(f"  {sessions} sessions", file=sys.stderr)
        runs = [_run(sessions, seconds) for _ in range(repeats)]
        engines, paces = [engine for engine, _ in runs], [pace for _, pace in runs]
        rss = sorted(engine.rss_bytes for engine in engines)[repeats // 2]
        least = least or (sessions, rss)
        more = sessions - least[0]
        rows.append(
            [
                f"{sessions:,}",
                figure([e.cpu_us for e in engines]),
                figure([e.core_share * 100 for e in engines], 0) + " %",
                f"{(rss - least[1]) / more / 1024:.1f}" if more else f"({rss / 2**20:.0f} MB)",
                figure([p.rate for p in paces], 3),
                figure([p.p50_ms for p in paces], 2),
                figure([p.p99_ms for p in paces], 2),
                figure([e.late_p99_ms for e in engines], 2),
                figure([e.waited_share * 100 for e in engines]) + " %",
            ]
        )
    return table(HEAD, rows)


def _run(sessions: int, seconds: float) -> tuple[ours.Engine, arrivals.Pace]:
    workload = WORKLOADS["W1"]
    with sinking() as seen, ours.running(seen.url, workload, sessions, seconds) as run:
        pass
    pace = arrivals.pace(seen.arrivals, workload.interval_ns, sessions)
    return run.engine(pace), pace
