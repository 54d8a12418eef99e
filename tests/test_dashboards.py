"""What Prometheus is told in `dashboards/` is true of the exporter."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent / "dashboards"
promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")


@promtool
@pytest.mark.parametrize("words", [["check", "config", "prometheus.yml"], ["check", "rules", "rules.yml"]])
def test_promtool_finds_nothing_wrong(words: list[str]) -> None:
    done = subprocess.run(["promtool", *words], cwd=HERE, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_in_a_rule_is_in_the_exposition_of_a_run(exposition: str) -> None:
    used = set(re.findall(r"\bloadbench_[a-z_]+", (HERE / "rules.yml").read_text()))
    assert used
    have = set(re.findall(r"^(loadbench_[a-z_]+)", exposition, re.MULTILINE))
    assert used <= have, used - have


@pytest.fixture
def exposition() -> str:
    """The metrics of a run that has just begun."""
    from loadbench.results.run import Anchor, RunHeader
    from loadbench.results.slo import Slo
    from loadbench.watch.exporter import Exporter

    header = RunHeader(
        run_id="r",
        anchor=Anchor(monotonic_ns=0, wall_ns=0),
        plan={},
        headline_channel="transcript",
        headline_metric="final_from_source_end",
        slo=[Slo(metric="completed", stat="min_share", limit=0.99)],
        seed=7,
    )
    exporter = Exporter(
        header,
        metrics=("final_from_source_end",),
        channels=("transcript",),
        kinds=("audio",),
        session_limit_s=60.0,
    )
    return exporter.text()
