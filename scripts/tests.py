"""All tests, in three parts, with what they took at the end: `make test` runs this.

Tests that only reckon share the processors. Tests that mostly wait, for sockets and for the time to pass, wait side by
side. Tests that ask whether the tester or a service was in time have the machine for themselves: beside others they
would skip what they cannot measure.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

PROCESSORS: Final = os.cpu_count() or 1
PARTS: Final = (
    ("reckoning", "not realtime", PROCESSORS),
    ("waiting", "realtime and not alone", PROCESSORS + 1),
    ("alone", "alone", 0),
)
SLOWEST: Final = 10


def run(marks: str, processes: int, results: Path) -> int:
    """One part; pytest's exit code. A file stays in one process, for its tests may share a fixture."""
    spread = ["-n", str(processes), "--dist", "loadfile", "--no-loadscope-reorder"] if processes else []
    told = [f"--junitxml={results}", "-o", "junit_duration_report=total"]
    # The tests start some hundred interpreters; without compiled files each would compile the package anew.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "-m", marks, *spread, *told]
    return subprocess.run(command, env=env, check=False).returncode


def times(results: Path) -> list[tuple[float, str]]:
    """Seconds and name of each test."""
    if not results.exists():
        return []
    cases = ElementTree.parse(results).iter("testcase")
    return [(float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in cases]


def main() -> int:
    """Run all parts, whatever becomes of them; 0 where all went well."""
    found: list[tuple[float, str]] = []
    lines, codes, begun = [], [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name, marks, processes in PARTS:
            print(f"-- {name}: {marks}", flush=True)
            part = time.monotonic()
            codes.append(run(marks, processes, Path(folder, f"{name}.xml")))
            own = times(Path(folder, f"{name}.xml"))
            found += own
            state = "passed" if codes[-1] == 0 else f"FAILED (exit code {codes[-1]})"
            lines.append(f"{name:10} {time.monotonic() - part:6.0f} s  {len(own):5} tests  {state}")
    print("\nslowest:")
    for seconds, name in sorted(found, reverse=True)[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name}")
    lines.append(f"{'total':10} {time.monotonic() - begun:6.0f} s  {len(found):5} tests")
    print("", *lines, sep="\n")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
