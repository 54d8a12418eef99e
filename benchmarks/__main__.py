"""Side by side: what loadbench sends and what it costs, beside the least possible and beside other tools.

    python -m benchmarks                 all of it in modest sizes (12 minutes), written to benchmarks/results.md
    python -m benchmarks --quick         the same in 2 minutes, with fewer sessions, one repeat and no search
    python -m benchmarks floor|peers|stamps|growth|capacity|video|selectors|media|corpus [...]    one of them, printed

Linux only; needs a C compiler. What cannot be installed of other tools is left out. Options of all: `--realtime` runs
what is measured before all other processes, `--patience S` waits up to S seconds for a quiet machine before each run.
"""

import argparse
import math
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import beside, capacity, corpus, floor, growth, media, selectors, senders, stamps, video
from benchmarks.workloads import WORKLOADS

HOW = """A third party, a sink written in C, says when each message arrived. Figures are medians of alternated repeats,
in brackets the range. Figures of one table compare; figures of two tables do not. Errors of arrival (p50, p99) are
against an even schedule through the earliest message of a session. "own" is lateness by loadbench's own stamps.
"waited" is time in which the kernel had the engine ready and ran something else: above 2 % its core was shared."""
RESULTS = Path(__file__).parent / "results.md"


def whole(text: str) -> int:
    """At least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text!r}")
    return int(text)


def span(text: str) -> float:
    """Seconds, more than none of them."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"must be seconds above 0, not {text!r}")
    return found


def names(text: str) -> list[str]:
    """Workloads with commas; none at all where there is no text."""
    found = text.split(",") if text else []
    if unknown := [name for name in found if name not in WORKLOADS]:
        raise argparse.ArgumentTypeError(f"no workload is called {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    return found


def case(text: str) -> tuple[str, int]:
    """A workload, and how many sessions of it."""
    name, _, sessions = text.partition(":")
    return names(name or "?")[0], whole(sessions)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    asked = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--quick", action="store_true", help="all of it, small")
    asked.add_argument("--realtime", action="store_true", help="measured processes before all others (needs the right)")
    asked.add_argument(
        "--patience", type=float, default=0, help="seconds to wait for a quiet machine before each run (0)"
    )
    commands = asked.add_subparsers(dest="what")
    for name, seconds, repeats in [
        ("floor", 4, 3),
        ("peers", 15, 3),
        ("stamps", 4, 3),
        ("growth", 4, 3),
        ("capacity", 5, 3),
        ("video", 6, 1),
    ]:
        one = commands.add_parser(name)
        one.add_argument("--seconds", type=span, default=seconds, help=f"that all sessions stream ({seconds})")
        one.add_argument("--repeats", type=whole, default=repeats, help=f"({repeats})")
        if name == "floor":
            usual = " ".join(f"{workload}:{sessions}" for workload, sessions in floor.CASES)
            one.add_argument("cases", nargs="*", type=case, default=floor.CASES, help=f"WORKLOAD:SESSIONS ({usual})")
        if name in ("stamps", "growth", "capacity"):
            levels = {"stamps": [10, 100, 1000], "growth": [10, 100, 500, 1000, 2000, 4000], "capacity": [500, 800]}[
                name
            ]
            one.add_argument("levels", nargs="*", type=whole, default=levels, help=f"sessions ({levels})")
        if name in ("peers", "video"):
            one.add_argument("--sessions", type=whole, default=100 if name == "peers" else 20)
        if name == "peers":
            one.add_argument("--workloads", type=names, default="W1,W2")
            one.add_argument(
                "--search", type=names, default="W1,W2", help="workloads of which the most sessions are looked for"
            )
        if name in ("peers", "capacity"):
            one.add_argument("--no-search", action="store_true") if name == "capacity" else None
            one.add_argument("--window", type=span, default=5, help="seconds of a trial of the search (5)")
            one.add_argument("--steps", type=int, default=3, help="halvings after doubling (3)")
    one = commands.add_parser("selectors")
    one.add_argument("--rounds", type=int, default=7, help="of which the least counts (7)")
    one.add_argument("--evaluations", type=int, default=20_000, help="in a round (20000)")
    one = commands.add_parser("media")
    one.add_argument("--minutes", type=whole, default=60, help="length of the recording (60)")
    one.add_argument("--segments", type=whole, default=500, help="that it is cut into (500)")
    one = commands.add_parser("corpus")
    one.add_argument("--lines", type=whole, default=300_000, help="of the manifest (300000)")
    return asked


def one_of(asked: argparse.Namespace, realtime: bool) -> str:
    """The tables of one command. Beside other tools nothing is realtime: some have threads that spin for each other."""
    os.environ["BENCH_REALTIME"] = "1" if realtime and asked.what != "peers" else ""
    if asked.what == "floor":
        return floor.measure(asked.cases, asked.seconds, asked.repeats)
    if asked.what == "selectors":
        return selectors.measure(asked.rounds, asked.evaluations)
    if asked.what == "media":
        return media.measure(asked.minutes, asked.segments)
    if asked.what == "corpus":
        return corpus.measure(asked.lines)
    if asked.what == "stamps":
        return stamps.measure(asked.levels, asked.seconds, asked.repeats)
    if asked.what == "growth":
        return growth.measure(asked.levels, asked.seconds, asked.repeats)
    if asked.what == "capacity":
        steps = None if asked.no_search else asked.steps
        return capacity.measure(asked.window, steps, asked.levels, asked.repeats)
    if asked.what == "video":
        return video.measure(asked.sessions, asked.seconds, asked.repeats)
    paced = beside.Paced(asked.sessions, asked.seconds, asked.repeats)
    return beside.report(asked.workloads, paced, asked.search, beside.Searched(asked.window, asked.steps))


# What `all` measures: a title, what is said of it, and the command line of each; then the same for --quick.
PARTS = [
    (
        "Beside the physical floor",
        floor.__doc__,
        "floor --seconds 3 --repeats 2",
        "floor --seconds 2 --repeats 1 W1:500 W3:100",
    ),
    (
        "Beside other tools",
        beside.__doc__,
        "peers --seconds 8 --repeats 1 --search W1 --window 3 --steps 1",
        "peers --seconds 3 --repeats 1 --search= --workloads W1",
    ),
    ("Arrival stamps", stamps.__doc__, "stamps --seconds 3 --repeats 1", "stamps --seconds 2 --repeats 1 100"),
    (
        "As sessions grow",
        growth.__doc__,
        "growth --seconds 3 --repeats 1 10 100 500 1000 2000",
        "growth --seconds 2 --repeats 1 10 500",
    ),
    (
        "On a core, and on two",
        capacity.__doc__,
        "capacity --no-search --window 3 --repeats 1 500",
        "",
    ),
    ("Video", video.__doc__, "video", "video --seconds 3"),
    ("A look into a message", selectors.__doc__, "selectors", "selectors --rounds 3 --evaluations 5000"),
    ("A long recording", media.__doc__, "media --minutes 20 --segments 200", "media --minutes 2 --segments 20"),
    ("A long corpus", corpus.__doc__, "corpus", "corpus --lines 30000"),
]


def machine(realtime: bool) -> str:
    """What the figures were measured on."""
    facts = [
        f"{len(senders.CORES)} cores",
        f"Python {platform.python_version()}",
        f"Linux {platform.release().partition('-')[0]}",
    ]
    if realtime:
        facts.append("measured processes before all others (SCHED_FIFO), but not beside other tools")
    return ", ".join(facts)


def everything(quick: bool, realtime: bool) -> Iterator[str]:
    """All tables, part by part, as they are measured."""
    yield f"# Measured\n\n{HOW}\n\n{machine(realtime)}.\n"
    for title, about, full, small in PARTS:
        words = (small if quick else full).split()
        if words:
            print(title, file=sys.stderr)
            yield f"## {title}\n\n{(about or '').strip()}\n\n{one_of(parser().parse_args(words), realtime)}"


def main() -> None:
    """Measure and print; what was measured before somebody ended it stays."""
    asked = parser().parse_args()
    os.environ["BENCH_PATIENCE"] = str(asked.patience)
    senders.stay_away()
    if asked.what:
        print(one_of(asked, asked.realtime))
        return
    with RESULTS.open("w") as file:
        for part in everything(asked.quick, asked.realtime):
            for where in (file, sys.stdout):
                print(part, file=where, flush=True)


if __name__ == "__main__":
    main()
