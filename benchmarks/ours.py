"""One run of loadbench as people run it: interpretation, records, live view and metrics endpoint on."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.arrivals import SETTLE_NS, Pace
from benchmarks.senders import SENDER_CORE, Cost, send
from benchmarks.workloads import Workload, make_corpus
from loadbench.results.tick import LATENESS_EDGES_NS

STARTS_PER_S = 400  # how fast loadbench begins sessions that are asked for at once
CODES = (0, 1, 3)  # a verdict is a result here, not a failure


@dataclass
class Ours:
    """What a run left behind, and the cost of parent and engine together."""

    bundle: Path
    ticks: list[dict[str, Any]]
    cost: Cost

    def within(self, from_ns: int, to_ns: int) -> list[dict[str, Any]]:
        """The ticks that lie in a window."""
        return [tick for tick in self.ticks if tick["at_ns"] - tick["span_ns"] >= from_ns and tick["at_ns"] <= to_ns]

    def engine(self, pace: Pace) -> "Engine":
        """The engine in a window, by its own ticks."""
        ticks = self.within(pace.from_ns - SETTLE_NS // 2, pace.to_ns + SETTLE_NS // 2)
        chunks = sum(sum(tick["chunks"].values()) for tick in ticks)
        span_ns = sum(tick["span_ns"] for tick in ticks)
        counts: dict[int, int] = {}
        for tick in ticks:
            for bucket, count in tick["lateness"].items():
                counts[int(bucket)] = counts.get(int(bucket), 0) + count
        rss = max(tick["rss_bytes"] for tick in self.ticks)
        if not chunks:  # no second in which all sessions streamed
            nan = float("nan")
            return Engine(nan, nan, nan, nan, nan, rss)
        cpu_ns = sum(tick["cpu_ns"] for tick in ticks)
        return Engine(
            cpu_us=cpu_ns / chunks / 1e3,
            core_share=cpu_ns / span_ns,
            waited_share=sum(tick["run_delay_ns"] or 0 for tick in ticks) / span_ns,
            late_p50_ms=quantile_ms(counts, 0.5),
            late_p99_ms=quantile_ms(counts, 0.99),
            rss_bytes=rss,
        )


@dataclass(frozen=True)
class Engine:
    """Processor a frame, share of a core used and share waited for, lateness by our own stamps, resident memory."""

    cpu_us: float
    core_share: float
    waited_share: float
    late_p50_ms: float
    late_p99_ms: float
    rss_bytes: int


def quantile_ms(counts: dict[int, int], share: float) -> float:
    """From lateness buckets; at most 5 % too high."""
    left = share * sum(counts.values())
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return LATENESS_EDGES_NS[min(bucket, len(LATENESS_EDGES_NS) - 1)] / 1e6
    return float("nan")


@contextmanager
def running(
    url: str, workload: Workload, sessions: int, seconds: float, *, engine_core: int = SENDER_CORE, messages: int = 20
) -> Iterator[Ours]:
    """A run of which all sessions stream for `seconds`; its bundle is gone after the block."""
    length = seconds + sessions / STARTS_PER_S + SETTLE_NS / 1e9 + 0.5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = command(url, workload, sessions, make_corpus(workload, length, folder), folder / "bundle", messages)
        cost = send(words, core=None, engine_core=engine_core, allowed=CODES, timeout_s=120 + length)
        lines = (folder / "bundle" / "ticks.jsonl").read_text().splitlines()
        yield Ours(folder / "bundle", [json.loads(line) for line in lines], cost)


def command(url: str, workload: Workload, sessions: int, corpus: Path, bundle: Path, messages: int) -> list[str]:
    """The command line."""
    words = ["run", "--url", url, "--profile", str(workload.profile), "--corpus", str(corpus), "--out", str(bundle)]
    words += ["--users", str(sessions), "--sessions", str(sessions), "--set", f"media.cache={corpus / 'cache'}"]
    words += ["--set", f"record.messages={messages}"]
    return [sys.executable, "-m", "loadbench", *words]
