"""Other tools and loadbench at the same work, in turn, against the same sink: pace, cost, and how many they hold."""

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks import arrivals, ours
from benchmarks.arrivals import SETTLE_NS, Pace
from benchmarks.peers.command import PEERS, Peer, Work
from benchmarks.search import most
from benchmarks.senders import Cost, SenderError, send
from benchmarks.sink import Seen, sinking
from benchmarks.table import figure, table
from benchmarks.workloads import WORKLOADS, Workload

LIMITS_MS = [5.0, 20.0]
TOP = 4000
ABOUT = """Every tool has one core; loadbench's parent process (writing, endpoint, live view) has the other one, with
the sink, and is counted in "CPU us/frame". Drift: how far behind real time the last message of a session was.
"""


@dataclass(frozen=True)
class Run:
    """What one run showed; `cpu_us` of the whole process tree for each frame, while all sessions stream."""

    pace: Pace
    drift_ms: float
    real_time: float
    cpu_us: float


@dataclass(frozen=True)
class Paced:
    """How the runs of the first table are: sessions, seconds that all of them stream, repeats."""

    sessions: int
    seconds: float
    repeats: int


@dataclass(frozen=True)
class Searched:
    """How the trials of a search are, and how many halvings follow the doubling."""

    seconds: float
    steps: int


def measure(sender: "Sender", workload: Workload, sessions: int, seconds: float) -> Run:
    """One run against a fresh sink. Raises SenderError."""
    with sinking() as seen:
        cost = sender(seen, workload, sessions, seconds)
    if not seen.arrivals:
        raise SenderError("nothing arrived")
    pace = arrivals.pace(seen.arrivals, workload.interval_ns, sessions)
    frames = sum(int(((at >= pace.from_ns) & (at < pace.to_ns)).sum()) for at in seen.arrivals)
    cpu_us = cost.between(pace.from_ns, pace.to_ns) / max(1, frames) / 1e3 if pace.rate else float("nan")
    drift, rate = (f(seen.arrivals, workload.interval_ns) for f in (arrivals.drift_ms, arrivals.real_time))
    return Run(pace, drift, rate, cpu_us)


Sender = Callable[[Seen, Workload, int, float], Cost]


def loadbench(seen: Seen, workload: Workload, sessions: int, seconds: float) -> Cost:
    """Ours."""
    with ours.running(seen.url, workload, sessions, seconds) as run:
        return run.cost


def of(peer: Peer) -> Sender | None:
    """A peer as a sender; None where it is not here."""
    tool = peer.tool()
    if tool is None:
        return None

    def sender(seen: Seen, workload: Workload, sessions: int, seconds: float) -> Cost:
        work = Work(seen.url, workload, sessions, 0)
        length_s = seconds + work.stagger_s + SETTLE_NS / 1e9
        work = Work(seen.url, workload, sessions, round(length_s * 1000 / workload.interval_ms))
        called = peer.command(tool, work)
        return send(called.words, env=called.env, allowed=called.allowed, timeout_s=60 + 3 * length_s)

    return sender


def senders() -> dict[str, Sender | None]:
    """All, ours first."""
    return {"loadbench": loadbench, **{peer.name: of(peer) for peer in PEERS}}


def paces(workload: Workload, paced: Paced, found: dict[str, Sender | None]) -> str:
    """The table of drift, error and cost at one number of sessions."""
    runs: dict[str, list[Run]] = {name: [] for name in found}
    for _ in range(paced.repeats):
        for name, sender in found.items():
            if sender:
                _kept(name, runs[name], partial(measure, sender, workload, paced.sessions, paced.seconds))
    head = ["sender", "real time", "drift ms", "p50 ms", "p99 ms", "CPU us/frame", "by loadbench"]
    least = statistics.median([run.cpu_us for run in runs["loadbench"]] or [float("nan")])
    absent = {name: "failed" if sender else "not here" for name, sender in found.items()}
    rows = [[name, *(_cells(runs[name], least) or [absent[name]] + [""] * 5)] for name in found]
    return table(head, rows)


def _kept(name: str, runs: list[Run], make: Callable[[], Run]) -> None:
    print(f"  {name}", file=sys.stderr)
    try:
        runs.append(make())
    except SenderError as failure:
        print(f"{name}: {failure}", file=sys.stderr)


def _cells(runs: list[Run], least: float) -> list[str]:
    if not runs:
        return []
    columns = [([r.real_time for r in runs], 3), ([r.drift_ms for r in runs], 1), ([r.pace.p50_ms for r in runs], 2)]
    columns += [
        ([r.pace.p99_ms for r in runs], 2),
        ([r.cpu_us for r in runs], 1),
        ([r.cpu_us / least for r in runs], 2),
    ]
    return [figure(values, digits) for values, digits in columns]


def capacities(workload: Workload, search: Searched, found: dict[str, Sender | None]) -> str:
    """The table of sessions that are held."""
    rows = []
    for name, sender in found.items():
        if sender is None:
            rows.append([name, "not here", ""])
            continue
        start = 1000 if sender is loadbench else 10 if any(p.relative for p in PEERS if p.name == name) else 200
        one = partial(trial, sender, workload, seconds=search.seconds)
        held = most(one, LIMITS_MS, start=start, top=TOP, steps=search.steps)
        rows.append([name, *(f"{n:,}" + (" or more" if n >= TOP else "") for n in held)])
    return table(["sender", *(f"p99 < {limit:g} ms" for limit in LIMITS_MS)], rows)


def trial(sender: Sender, workload: Workload, sessions: int, seconds: float) -> Pace:
    """One run of a search; what fails has no pace."""
    try:
        pace = measure(sender, workload, sessions, seconds).pace
    except SenderError:
        pace = Pace(0.0, float("inf"), float("inf"), 0, 0)
    print(f"  {sessions} sessions: rate {pace.rate:.3f}, p99 {pace.p99_ms:.1f} ms", file=sys.stderr)
    return pace


def report(names: list[str], paced: Paced, searched: list[str], search: Searched) -> str:
    """All tables of the workloads; the most sessions only of those in `searched`."""
    found, parts = senders(), [ABOUT]
    for name in names:
        workload = WORKLOADS[name]
        parts.append(
            f"**{name}** ({workload.about}), {paced.sessions} sessions, {paced.seconds:g} s, {paced.repeats} repeats\n"
        )
        parts.append(paces(workload, paced, found))
        if name in searched:
            parts.append(f"**{name}**, most sessions held on one core: errors of arrival below, rate 99 % or more\n")
            parts.append(capacities(workload, search, found))
    return "\n".join(parts)
