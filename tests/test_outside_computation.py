"""One run in which sessions end in ten ways: every file tells the same counts, and the percentiles are those that a
few lines of plain Python find in the raw file.

The lines in here import nothing of the package. They are the second opinion on its statistics.
"""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.foreign_service import Call, Service
from tests.test_main_job import loadbench, tone

pytestmark = pytest.mark.realtime

CUT = ("interrupted", "time_up")
SHARES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
NEVER = math.inf


async def behave(call: Call) -> None:
    """The first ten answer, the next ten each have a fault of their own, and all others answer."""
    number = call.number
    if number < 10:
        await call.answer_after(0.1 + 0.03 * number)
    elif number >= 20:
        await call.answer_after(0.1)
    elif number in (10, 11):
        await call.first_chunk.wait()
        call.say('{"partial": nul')
    elif number == 12:
        await call.first_chunk.wait()
        call.say({"partial": "red"})
        call.close(1000)
    elif number == 13:
        call.say({"partial": "red"})
        await call.first_chunk.wait()
        call.drop()
    elif number == 14:
        await call.end.wait()
        call.close(1011)
    elif number == 15:
        await call.end.wait()
        call.say({"text": ""})
        call.close(1000)
    else:
        if number != 19:
            await call.first_chunk.wait()
            call.say({"partial": "red"})
        await call.answer_after(60)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The bundle and what was printed. Users come again after 3 s, so that some are cut while they still speak."""
    folder = tmp_path_factory.mktemp("mixed")
    tone(folder, 1.0)

    async def perform() -> tuple[int, str, str]:
        async with Service(behave, refuse=lambda number: 503 if number in (3, 8) else None).serving() as url:
            return await loadbench(
                *("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "20", "--ramp", "0.5"),
                *("--duration", "5", "--set", "workload.drain_s=0", "--set", "workload.think_s=3"),
                *("--set", "slo.final_from_source_end.p95_s=2", "--out", "bundle", "-q"),
                cwd=folder,
            )

    code, out, err = asyncio.run(perform())
    assert code in (1, 3), out + err
    return folder / "bundle", out


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, (folder / "sessions.jsonl").open()) if line["type"] == kind]


def counts(folder: Path) -> Counter[str]:
    """Started, finished, failed and cut, and each outcome, from the raw file."""
    found = Counter({"started": len(lines(folder, "started"))})
    for record in lines(folder, "session"):
        outcome = record["outcome"]
        found["finished" if outcome == "ok" else "cut" if outcome in CUT else "failed"] += 1
        found[f"={outcome}"] += 1
    return found


def test_every_file_and_the_screen_tell_the_same_counts_and_they_add_up(run: tuple[Path, str]) -> None:
    folder, out = run
    raw = counts(folder)
    four = [raw[name] for name in ("started", "finished", "failed", "cut")]
    assert four[0] == sum(four[1:])
    assert min(four) >= 3
    told = json.loads((folder / "summary.json").read_text())["sessions"]
    assert [told[name] for name in ("started", "finished", "failed", "cut", "in_flight")] == [*four, 0]
    outcomes = {name[1:]: count for name, count in raw.items() if name.startswith("=")}
    assert {name: count for name, count in told["ended"].items() if count} == outcomes
    assert outcomes["parse_error"] == 2
    assert outcomes["rejected"] == 2
    assert {"closed_early", "lost", "target_error", "time_up"} <= outcomes.keys()

    page = (folder / "report.html").read_text()
    equation = re.search(r'<p class="equation">(.*?)</p>', page)
    assert equation is not None
    assert [int(number) for number in re.findall(r"(\d+) ", re.sub(r"<.*?>", "", equation[1]))] == [*four, 0]
    rows = dict(re.findall(r'<span class="key \w+">(\w+)</span></td><td>[^<]*</td><td class="n">(\d+)<', page))
    assert {name: int(count) for name, count in rows.items()} == outcomes

    suite = ElementTree.fromstring((folder / "junit.xml").read_bytes())
    found = {item.get("name"): item.get("value") for item in suite.iter("property")}
    names = ("sessions.started", "sessions.finished", "sessions.failed", "sessions.cut", "sessions.in_flight")
    assert [found[name] for name in names] == [str(number) for number in [*four, 0]]

    prom = (folder / "metrics.prom").read_text()
    assert f"loadbench_sessions_started_total {four[0]}.0" in prom
    assert "loadbench_sessions_active 0.0" in prom
    ended = dict(re.findall(r'loadbench_sessions_ended_total\{outcome="(\w+)",side="\w+"\} (\d+)\.0', prom))
    assert {name: int(count) for name, count in ended.items() if count != "0"} == outcomes

    assert f"started {four[0]} = finished {four[1]} + failed {four[2]} + cut {four[3]} " in out


def observed(folder: Path, metric: str) -> Iterator[tuple[str, float, bool]]:
    """(population, nanoseconds, a lower bound only) of each session at risk; what failed is infinite."""
    for record in lines(folder, "session"):
        outcome, parts = record["outcome"], record["utterances"]
        if outcome != "ok" and outcome not in CUT:
            yield "failed", NEVER, False
            continue
        if not parts:
            continue  # cut before there was anything to wait for
        (part,) = parts
        channel = part["channels"].get("transcript", {})
        start = {
            "first_output_from_media": part.get("media_zero_ns"),
            "final_from_source_end": part.get("source_end_ns"),
            "final_from_planned_end": record["planned_ns"] + part["media_ns"],
            "final_from_eos_msg": part.get("eos_ns"),
        }[metric]
        stop = channel.get("first_ns" if metric.startswith("first") else "last_final_ns")
        if outcome == "ok":
            yield "finished", stop - start, False
        elif stop is not None and metric.startswith("first"):
            yield "open", stop - start, False
        elif start is not None and record["ended_ns"] > start:
            yield "cut", record["ended_ns"] - start, True


def nearest_rank(values: list[tuple[float, bool]], percent: int) -> tuple[float | None, str]:
    """The value, and what is known of it: above a value that is a lower bound, everything is one."""
    values = sorted(values)
    first = values[: max(1, -(-len(values) * percent // 100))]
    value = first[-1][0]
    if value == NEVER:
        return None, "never"
    return round(value) / 1e9, "at_least" if any(bound for _, bound in first) else "exact"


@pytest.mark.parametrize(
    "metric", ["first_output_from_media", "final_from_source_end", "final_from_planned_end", "final_from_eos_msg"]
)
def test_percentiles_of_both_populations_are_those_of_plain_arithmetic(run: tuple[Path, str], metric: str) -> None:
    folder, _ = run
    told = json.loads((folder / "summary.json").read_text())["response"]["transcript"][metric]
    seen = list(observed(folder, metric))
    finished = [(value, bound) for population, value, bound in seen if population == "finished"]
    everyone = [(value, bound) for _, value, bound in seen]
    assert told["n"] == len(finished) >= 8
    assert told["failed"] == sum(population == "failed" for population, _, _ in seen) >= 6
    assert told["mean_s"] == pytest.approx(sum(value for value, _ in finished) / len(finished) / 1e9, abs=1e-9)
    for name, percent in SHARES.items():
        for population, values in (("finished", finished), ("started", everyone)):
            cell = told[population][name]
            assert (cell["value_s"], cell["bound"]) == nearest_rank(values, percent), (population, name)
            assert cell["n"] == len(values)


def test_sessions_cut_after_their_media_are_lower_bounds_and_young_ones_were_not_at_risk(
    run: tuple[Path, str],
) -> None:
    folder, _ = run
    seen = list(observed(folder, "final_from_source_end"))
    old = [value / 1e9 for population, value, _ in seen if population == "cut"]
    cut = counts(folder)["cut"]
    assert len([value for value in old if value > 2.5]) == 4, "the four that would have taken a minute"
    assert cut > len(old), "others were cut while they still spoke"
    told = json.loads((folder / "summary.json").read_text())["response"]["transcript"]["final_from_source_end"]
    assert (told["cut"], told["left_out"]) == (len(old), cut - len(old))


def test_the_histogram_holds_the_finished_ones_and_none_is_beyond_its_last_finite_edge(run: tuple[Path, str]) -> None:
    folder, _ = run
    prom = (folder / "metrics.prom").read_text()
    values = [value / 1e9 for kind, value, _ in observed(folder, "final_from_source_end") if kind == "finished"]
    name = r'loadbench_response_seconds_{}\{{channel="transcript",metric="final_from_source_end"\}} (\S+)'
    swapped = r'loadbench_response_seconds_{}\{{metric="final_from_source_end",channel="transcript"\}} (\S+)'
    found = {
        part: float((re.search(name.format(part), prom) or re.search(swapped.format(part), prom))[1])  # type: ignore[index]
        for part in ("count", "sum")
    }
    assert found["count"] == len(values)
    assert found["sum"] == pytest.approx(sum(values), abs=1e-6)


def test_the_clip_was_streamed_as_often_as_the_report_says_and_the_run_ends_with_its_last_session(
    run: tuple[Path, str],
) -> None:
    folder, _ = run
    summary = json.loads((folder / "summary.json").read_text())
    records = lines(folder, "session")
    attempts = [part["attempt"] for record in records for part in record["utterances"]]
    streamed = [part for record in records for part in record["utterances"] if part.get("media_zero_ns")]
    assert len(set(attempts)) == len(attempts), "each time is told apart"
    assert summary["clips"]["tone"]["n"] == len(streamed) == len(attempts) - 2, "two were refused, and spoke to nobody"
    ended_ns = json.loads((folder / "done.json").read_text())["ended_ns"]
    last_ns = max(record["ended_ns"] for record in records)
    ticks = [json.loads(line) for line in (folder / "ticks.jsonl").open()]
    assert last_ns <= max(tick["at_ns"] for tick in ticks) <= ended_ns < last_ns + 2e9, "no chart goes on after that"
    begun_ns = min(record["begun_ns"] for record in records)
    assert summary["run"]["duration_s"] == pytest.approx((ended_ns - begun_ns) / 1e9, abs=1e-6)
