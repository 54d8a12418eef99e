"""Installs the peers, each once, beside the project: `.venv-peers` for Python's, `.bench/npm` for Node's.

What cannot be had here is None: a peer that is missing is no error.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PEERS, NODE, BIN = ROOT / ".venv-peers", ROOT / ".bench" / "npm", Path("node_modules") / ".bin"


def python_tool(name: str) -> Path | None:
    """A program of the peers' Python environment."""
    tool, done = PEERS / "bin" / name, PEERS / ".done"
    wanted = (HERE / "requirements.txt").read_text()
    if not done.exists() or done.read_text() != wanted:
        if not (PEERS / "bin" / "python").exists() and not _ran([sys.executable, "-m", "venv", str(PEERS)]):
            return None
        pip: list[str | Path] = [PEERS / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        for requirement in wanted.split():
            _ran([*pip, requirement])  # one by one: each may be missing by itself
        done.write_text(wanted)
    return tool if tool.exists() else None


def node_tool(name: str) -> Path | None:
    """A program of the peers' Node packages, with a Node of their own: the system's may be too old."""
    tool, done = NODE / "tools" / BIN / name, NODE / ".done"
    wanted = (HERE / "package.json").read_text()
    if not done.exists() or done.read_text() != wanted:
        pins = json.loads(wanted)["dependencies"]
        _npm("node", f"node@{pins.pop('node')}")  # by itself: its script, which fetches the binary, has to run
        _npm("tools", "--ignore-scripts", *(f"{package}@{version}" for package, version in pins.items()))
        done.write_text(wanted)
    return tool if tool.exists() and (NODE / "node" / BIN / "node").exists() else None


def node_path() -> dict[str, str]:
    """An environment in which `node` is ours."""
    return {"PATH": f"{NODE / 'node' / BIN}{os.pathsep}{os.environ['PATH']}"}


def _npm(folder: str, *words: str) -> None:
    (NODE / folder).mkdir(parents=True, exist_ok=True)
    quiet = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund"]
    _ran(["npm", "install", "--prefix", NODE / folder, *quiet, *words], node_path())


def _ran(words: Sequence[str | Path], env: Mapping[str, str] | None = None) -> bool:
    """Whether it came to a good end; a program that is not there did not."""
    try:
        around = {**os.environ, **(env or {})}
        done = subprocess.run([str(word) for word in words], env=around, capture_output=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
