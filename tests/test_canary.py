"""The canary of a run from the outside: what it leaves in the bundle, and that nothing of it stays behind."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.independent_stub import Stub
from tests.simulator.test_responder import alive, until
from tests.test_main_job import loadbench, sessions, tone

pytestmark = pytest.mark.realtime

UNSPEAKABLE = """
schema_version: 1
name: strange
about: "a final that no responder can make up"
checked: "nowhere"
transport: {kind: websocket}
channels: {transcript: {stage: recognition}}
open:
  - send_json: {config: {sample_rate: 16000, words: 1}}
media: {kind: audio, format: s16le, rate_hz: 16000, chunk_ms: 200, frame: binary}
end:
  - send_text: '{"eof" : 1}'
  - done: {on: [close], closes: target}
receive:
  decode: json
  rules:
    - {has: text, channel: transcript, text: {model: unkeyed, text: "reverse(text)", final: true}}
close: {expect: [1000]}
"""


def run_words(url: str, *more: str) -> tuple[str, ...]:
    return ("run", "--url", url, "--corpus", ".", "--out", "bundle", *more)


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "bundle" / "summary.json").read_text())
    return found


def responders(parent: int) -> list[int]:
    """Processes of ours, of that parent, that are responders."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in children if b"responder" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def test_canary_sessions_are_in_their_own_file_and_in_no_total(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    stub = Stub(final_s=1.0)
    async with stub.serving() as url:
        words = run_words(url, "--profile", "vosk", "--users", "2", "--sessions", "4", "--set", "canary.users=2")
        code, out, err = await loadbench(*words, cwd=tmp_path)
    assert code in (0, 3), out + err
    assert len(stub.seen) == len(sessions(tmp_path / "bundle")) == summary(tmp_path)["sessions"]["started"] == 4
    lines = [json.loads(line) for line in (tmp_path / "bundle" / "canary.jsonl").read_text().splitlines()]
    assert len(lines) >= 2
    assert {line["outcome"] for line in lines} == {"ok"}
    assert all(line["first_span_ns"] > 0 and line["final_span_ns"] > 0 for line in lines)
    assert summary(tmp_path)["canary"]["n"] == len(lines)
    assert "own share at most" in out
    told = (tmp_path / "bundle" / "metrics.prom").read_text()
    assert "loadbench_sessions_started_total 4.0" in told


async def test_a_profile_that_no_responder_can_speak_leaves_the_run_without_a_canary_and_says_so(
    tmp_path: Path,
) -> None:
    tone(tmp_path, 0.5)
    (tmp_path / "strange.yaml").write_text(UNSPEAKABLE)
    async with Stub(final_s=0.1).serving() as url:
        code, out, err = await loadbench(*run_words(url, "--profile", "strange.yaml"), cwd=tmp_path)
    assert code in (0, 3), out + err
    assert summary(tmp_path)["canary"] is None
    assert summary(tmp_path)["run"]["effective"]["canary"]["users"] == 0
    assert "canary   none" in err
    assert "own share" not in out


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
async def test_the_responder_goes_with_the_run_however_that_ends(tmp_path: Path, end: signal.Signals) -> None:
    tone(tmp_path, 1.0)
    async with Stub(final_s=0.1).serving() as url:
        words = run_words(url, "--profile", "vosk", "--sessions", "400", "-q")
        child = await asyncio.create_subprocess_exec(sys.executable, "-m", "loadbench", *words, cwd=tmp_path)
        path = tmp_path / "bundle" / "sessions.jsonl"
        await until(lambda: path.exists() and '"session"' in path.read_text())
        found = responders(child.pid)
        assert len(found) == 1
        child.send_signal(end)
        await asyncio.wait_for(child.wait(), 15)
        await until(lambda: not alive(found[0]))
