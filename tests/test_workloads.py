"""Workloads and engine options as people ask for them, over real sockets, beside a foreign service."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.foreign_service import Call, Service
from tests.independent_stub import Stub
from tests.test_main_job import loadbench, sessions, tone
from tests.typed import typed

pytestmark = pytest.mark.realtime

BASE = ("run", "--profile", "vosk", "--corpus", ".", "--out", "bundle", "-q", "--set", "canary.users=0")


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "bundle" / "summary.json").read_text()))


async def quick(call: Call) -> None:
    await call.answer_after(0.1)


async def test_a_spike_is_three_stages_with_their_own_books_and_objectives(tmp_path: Path) -> None:
    tone(tmp_path, 0.4)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[target]\nurl = "URL"\nprofile = "vosk"\n[corpus]\npath = "."\n'
        '[workload]\nmodel = "spike"\nusers = 1\npeak = 4\nbefore_s = 2\nspike_s = 2\nafter_s = 2\n'
        "[slo.stages.spike]\nfinal_from_source_end = { p95_s = 3.0 }\n"
        "[slo.stages.after]\nfinal_from_source_end = { p50_s = 0.001 }\n[canary]\nusers = 0\n"
    )
    service = Service(quick)
    async with service.serving() as url:
        plan.write_text(plan.read_text().replace("URL", url))
        code, out, err = await loadbench("run", "plan.toml", "--out", "bundle", "-q", cwd=tmp_path)
    assert code in (1, 3), out + err
    found, records = summary_of(tmp_path), sessions(tmp_path / "bundle")
    assert service.open_peak == 4
    assert set(found["stages"]) == {"before", "spike", "after"}
    begun_ns = min(record["begun_ns"] for record in records)
    for name, part in found["stages"].items():
        own = [record for record in records if record["stage"] == name]
        counts = part["sessions"]
        assert counts["started"] == len(own) == counts["finished"] + counts["failed"] + counts["cut"]
        assert part["from_s"] == pytest.approx((min(r["begun_ns"] for r in own) - begun_ns) / 1e9)
        assert part["to_s"] == pytest.approx((max(r["ended_ns"] for r in own) - begun_ns) / 1e9)
    assert found["stages"]["spike"]["plan"]["level"] == 4
    assert sum(part["sessions"]["started"] for part in found["stages"].values()) == found["sessions"]["started"]
    judged = {item["name"]: item["met"] for item in found["slo"]}
    assert judged["final_from_source_end.p95_s@spike"] is True
    assert judged["final_from_source_end.p50_s@after"] is False
    assert re.search(r"^spike\s+4\s", out, re.MULTILINE), out


async def test_a_dialogue_takes_turns_and_never_speaks_while_the_other_is_being_interpreted(tmp_path: Path) -> None:
    tone(tmp_path, 0.4)
    service = Service(quick)
    async with service.serving() as url:
        settings = ("--set", "workload.model=dialogue", "--set", "workload.think_s=0.2", "--sessions", "6")
        code, out, err = await loadbench(*BASE, "--url", url, *settings, cwd=tmp_path)
    assert code in (0, 3), out + err
    assert service.open_peak == 1
    records = sorted(sessions(tmp_path / "bundle"), key=lambda record: record["planned_ns"])
    assert [record["outcome"] for record in records] == ["ok"] * 6
    finals = [record["utterances"][0]["channels"]["transcript"]["last_final_ns"] for record in records]
    for final_ns, after in zip(finals, records[1:], strict=False):
        assert after["planned_ns"] >= final_ns + 200_000_000


async def test_fresh_masks_change_no_byte_of_what_the_service_hears(tmp_path: Path) -> None:
    media = tone(tmp_path, 0.5)
    stub = Stub()
    async with stub.serving() as url:
        settings = ("--set", "target.mask=fresh", "--users", "2", "--sessions", "2", "--realtime")
        code, out, err = await loadbench(*BASE, "--url", url, *settings, cwd=tmp_path)
    assert code in (0, 3), out + err
    assert [bytes(seen.media) for seen in stub.seen.values()] == [media] * 2
    found = summary_of(tmp_path)["run"]
    assert found["effective"]["mask"] == "fresh"
    assert re.match(r"SCHED_FIFO$|refused: ", found["engine"]["realtime"])
    assert found["engine"]["realtime"] in (tmp_path / "bundle" / "report.html").read_text()
    record = sessions(tmp_path / "bundle")[0]
    assert record["bytes_sent"] > len(media)


def test_only_websocket_has_masks(tmp_path: Path) -> None:
    tone(tmp_path, 0.4)
    words = ("run", "--profile", "http-stream", "--corpus", ".", "--url", "http://127.0.0.1:9")
    code, _, err = typed(*words, "--set", "target.mask=fresh", cwd=tmp_path)
    assert (code, "target.mask: only WebSocket has masks" in err) == (2, True)
