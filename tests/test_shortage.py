"""A tester that runs out of something: said beforehand where it can be known, else the tester's own outcome."""

import asyncio
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.independent_stub import Stub
from tests.test_main_job import sessions, tone

pytestmark = pytest.mark.realtime


async def limited(handles: int, *words: str, cwd: Path) -> tuple[int, str]:
    """A run with so many file handles and no more."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loadbench", "run", "--profile", "vosk", "--corpus", ".", "--out", "bundle", "-q"),
        *words,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (handles, handles)),
    )
    out, _ = await asyncio.wait_for(child.communicate(), 60)
    assert child.returncode is not None
    return child.returncode, out.decode()


async def test_users_beyond_the_file_handles_are_refused_before_anybody_is_contacted(tmp_path: Path) -> None:
    tone(tmp_path, 0.5)
    code, out = await limited(200, "--url", "ws://127.0.0.1:9", "--users", "73", cwd=tmp_path)
    assert code == 2, out
    assert "workload.users = 73 needs 201 file handles, and this system allows 200" in out
    assert not (tmp_path / "bundle").exists()


async def test_handles_that_run_out_on_the_way_are_the_tester_s_doing_and_never_the_service_s(tmp_path: Path) -> None:
    tone(tmp_path, 4.0)
    async with Stub(final_s=0.1).serving() as url:
        code, out = await limited(
            140, "--url", url, "--rate", "80", "--sessions", "240", "--set", "canary.users=0", cwd=tmp_path
        )
    assert code == 3, out
    found = [(record["outcome"], record["side"]) for record in sessions(tmp_path / "bundle")]
    assert len(found) == 240
    assert set(found) == {("ok", "none"), ("no_resource", "tester")}
    verdict = json.loads((tmp_path / "bundle" / "summary.json").read_text())["verdict"]
    assert verdict["state"] == "INVALID"
    assert any("file handles" in reason for reason in verdict["reasons"])
