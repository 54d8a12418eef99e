"""How many W1 sessions loadbench holds on a core, and what a second core adds: two runs at once, an engine on each."""

import threading

from benchmarks import arrivals, ours
from benchmarks.beside import TOP, loadbench, trial
from benchmarks.search import most
from benchmarks.senders import OTHER_CORE, SENDER_CORE
from benchmarks.sink import sinking
from benchmarks.table import figure, table
from benchmarks.workloads import WORKLOADS

W1 = WORKLOADS["W1"]
HEAD = ["engines", "sessions each", "CPU us/frame", "core each", "rate", "p99 ms", "own p99 ms", "sink, core"]


def measure(seconds: float, steps: int | None, each: list[int], repeats: int) -> str:
    """The capacity, and one engine beside two."""
    words = "" if steps is None else _held(seconds, steps)
    rows = [_row(cores, n, seconds, repeats) for n in each for cores in ([SENDER_CORE], [SENDER_CORE, OTHER_CORE])]
    floating = (
        "With two engines the sink runs on either core, and both parents share one with an engine: their cost is in.\n"
    )
    return words + floating + "\n" + table(HEAD, rows)


def _held(seconds: float, steps: int) -> str:
    held = most(lambda n: trial(loadbench, W1, n, seconds), [5.0], start=1000, top=TOP, steps=steps)[0]
    return f"Held on one core, p99 of errors of arrival below 5 ms, rate 99 % or more: **{held:,}** W1 sessions.\n\n"


def _row(cores: list[int], sessions: int, seconds: float, repeats: int) -> list[str]:
    found = [_together(cores, sessions, seconds) for _ in range(repeats)]
    engines = [engine for run in found for engine in run[0]]
    return [
        str(len(cores)),
        f"{sessions:,}",
        figure([e.cpu_us for e in engines]),
        figure([e.core_share * 100 for e in engines], 0) + " %",
        figure([pace.rate for _, pace, _ in found], 3),
        figure([pace.p99_ms for _, pace, _ in found], 2),
        figure([e.late_p99_ms for e in engines], 2),
        figure([sink * 100 for _, _, sink in found], 0) + " %",
    ]


def _together(cores: list[int], sessions: int, seconds: float) -> tuple[list[ours.Engine], arrivals.Pace, float]:
    """The engines, the pace of all their sessions together, and the share of a core that the sink took meanwhile."""
    runs: list[ours.Ours] = []

    def one(core: int) -> None:
        with ours.running(seen.url, W1, sessions, seconds + 2, engine_core=core) as run:
            runs.append(run)

    with sinking(core=OTHER_CORE if len(cores) == 1 else None) as seen:
        threads = [threading.Thread(target=one, args=(core,)) for core in cores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    pace = arrivals.pace(seen.arrivals, W1.interval_ns, sessions * len(cores))
    first = min(int(at[0]) for at in seen.arrivals)
    last = max(int(at[-1]) for at in seen.arrivals)
    return [run.engine(pace) for run in runs], pace, seen.cpu_s / ((last - first) / 1e9)
