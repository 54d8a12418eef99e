"""A real Prometheus scrapes a real run, and its numbers are those of the bundle."""

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.independent_stub import Stub
from tests.test_main_job import loadbench, tone

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.alone,
    pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus (Debian) is not installed"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.asynccontextmanager
async def scraping(folder: Path, target: int) -> AsyncIterator[str]:
    """Prometheus with our rules, scraping `target` each second; gives its address."""
    port, rules = free_port(), Path(__file__).parent.parent / "dashboards" / "rules.yml"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "loadbench", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    child = await asyncio.create_subprocess_exec(
        *("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage"),
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        child.terminate()
        await child.wait()


async def ask(server: str, query: str) -> dict[str, float]:
    """The value of each series of a query, by its labels."""

    def fetch() -> Any:
        with urllib.request.urlopen(
            f"{server}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=5
        ) as page:
            return json.load(page)["data"]["result"]

    for _ in range(20):
        with contextlib.suppress(OSError):
            found = await asyncio.to_thread(fetch)
            if found:
                return {json.dumps(row["metric"], sort_keys=True): float(row["value"][1]) for row in found}
        await asyncio.sleep(0.5)
    return {}


async def test_what_prometheus_holds_after_a_run_equals_the_bundle(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    port = free_port()
    async with Stub(first_s=0.1, final_s=0.4).serving() as url, scraping(tmp_path, port) as server:
        run = asyncio.create_task(
            loadbench(
                *("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "4", "--sessions", "12"),
                *("--out", "bundle", "--port", str(port), "--linger", "6", "-q"),
                cwd=tmp_path,
            )
        )
        while not (tmp_path / "bundle" / "done.json").exists():
            assert not run.done(), run.result()
            await asyncio.sleep(0.2)
        await asyncio.sleep(2.5)  # two scrapes of the last word
        ended = await ask(server, "sum by (outcome) (loadbench_sessions_ended_total) > 0")
        wanted = 'histogram_quantile(0.5, loadbench_response_seconds_bucket{metric="final_from_source_end"})'
        (p50,) = (await ask(server, wanted)).values()
        (share,) = (await ask(server, "loadbench:completed:share")).values()
        verdicts = await ask(server, "sum(loadbench_verdict)")
        code, out, err = await run
    assert code in (0, 3), out + err
    assert ended == {'{"outcome": "ok"}': 12.0}
    assert share == 1.0
    assert list(verdicts.values()) == [1.0]
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    exact = summary["response"]["transcript"]["final_from_source_end"]["finished"]["p50"]["value_s"]
    assert p50 == pytest.approx(exact, rel=0.25), "not within a bucket of the exact value"
    assert exact == pytest.approx(0.4, abs=0.05)
