"""A pool of endpoints from the command line to the summary, against simulated agents that take one session each."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from loadbench.analysis.summary import summarise
from loadbench.results.bundle import Bundle
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running
from tests.test_main_job import loadbench, sessions, tone


@pytest.mark.realtime
async def test_sessions_take_turns_at_the_endpoints_that_were_given_and_the_summary_counts_them(tmp_path: Path) -> None:
    tone(tmp_path, 0.6)
    log = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    how = [Options(profile="simuleval", first_s=0.0, final_s=0.05, text="red boat", log=path) for path in log]
    async with running(how[0]) as first, running(how[1]) as second:
        code, out, errors = await loadbench(
            *("run", "--url", first, "--url", second, "--profile", "simuleval", "--corpus", ".", "--users", "2"),
            *("--sessions", "6", "--quiet", "--out", "bundle", "--set", "metrics.enabled=false"),
            *("--set", f"media.cache={tmp_path / 'cache'}"),
            cwd=tmp_path,
        )
    assert code in (0, 3), (out, errors)
    records = sorted(sessions(tmp_path / "bundle"), key=lambda record: record["begun_ns"])
    assert [record["outcome"] for record in records] == ["ok"] * 6
    for url, path in ((first, log[0]), (second, log[1])):
        there = [record for record in records if record["endpoint"] == url.rstrip("/")]
        assert len(there) == len(path.read_text().splitlines()) >= 2
        assert all(a["ended_ns"] <= b["begun_ns"] for a, b in pairwise(there))
    summary = await asyncio.to_thread(lambda: summarise(Bundle(tmp_path / "bundle")))
    assert summary["endpoints"].keys() == {first.rstrip("/"), second.rstrip("/")}
    assert sum(row["sessions"] for row in summary["endpoints"].values()) == 6
    assert {row["waited"] for row in summary["endpoints"].values()} == {0}
    effective = json.loads((tmp_path / "bundle/run.json").read_text())["effective"]
    assert (effective["endpoints"], effective["per_endpoint"]) == (2, 1)
