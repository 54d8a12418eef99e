"""What is installed without any extra is enough to run: on a small board nothing else is there."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.test_main_job import sessions, tone

ROOT = Path(__file__).parents[1]
MODULES = {  # what the packages of the extras are imported as
    "moonshine-voice": "moonshine_voice",
    "pytest-asyncio": "pytest_asyncio",
    "pytest-timeout": "pytest_timeout",
    "pytest-cov": "pytest_cov",
    "import-linter": "importlinter",
    "types-psutil": "psutil_stubs",
}
BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {
        line.partition("[")[0].partition(">")[0].partition("=")[0].partition(";")[0].strip()
        for group in project["optional-dependencies"].values()
        for line in group
    }
    return {MODULES.get(name, name.replace("-", "_")) for name in names} | {"gevent", "zmq"}


@pytest.mark.realtime
def test_a_run_needs_no_package_of_any_extra(tmp_path: Path) -> None:
    tone(tmp_path, 0.5)
    names = extras()
    assert {"moonshine_voice", "locust", "pytest"} <= names
    (tmp_path / "sitecustomize.py").write_text(
        BLOCK.format(names=names)
    )  # the engine's process is born with it as well
    env = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    tried = subprocess.run(
        [sys.executable, "-c", "import locust"], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert "No module named 'locust'" in tried.stderr
    done = subprocess.run(
        [
            *(sys.executable, "-m", "loadbench", "run", "--url", "exec:wc -c", "--profile", "local-text"),
            *("--corpus", ".", "--out", "bundle", "--quiet", "--port", "0"),
        ],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    (record,) = sessions(tmp_path / "bundle")
    assert record["outcome"] == "ok"
    assert (tmp_path / "bundle/report.html").stat().st_size > 10_000
