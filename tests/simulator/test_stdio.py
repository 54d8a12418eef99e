"""The simulator as a program, spoken to over pipes by nobody but this test."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loadbench.simulator.log import read

pytestmark = pytest.mark.realtime
FAST = ("--first", "0", "--final", "0")
LINES = """
schema_version: 1
name: lines
transport: {kind: process, stdin: lines}
open:
  - send_json: {start: true}
  - wait: {has: ready}
media: {kind: audio, chunk_ms: 100, frame: text, message: {audio: "{media.base64}"}}
end:
  - send_json: {stop: true}
  - done: {on: [close], closes: target}
receive:
  framing: lines
  rules:
    - {has: final, text: {model: unkeyed, text: final, final: true}}
"""


def program(
    profile: str, data: bytes, *flags: str, cwd: Path, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[bytes]":
    words = [sys.executable, "-m", "loadbench", "simulate", "--stdio", "--profile", profile, *FAST, *flags]
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""} | (env or {})
    return subprocess.run(words, input=data, capture_output=True, timeout=60, cwd=cwd, env=env)


def said(done: "subprocess.CompletedProcess[bytes]") -> list[dict[str, str]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_it_says_that_it_is_ready_hears_samples_and_ends_well(tmp_path: Path) -> None:
    env = {"LOADBENCH_SESSION": "w1-s3", "LOADBENCH_CLIP": "tone"}
    done = program("local-lines", b"\1\2" * 800, "--log", "log", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    messages = said(done)
    assert "ready" in messages[0]
    assert messages[-1] == {"final": "the red boat leaves at nine"}
    (entry,) = read(tmp_path / "log")
    assert (entry.session, entry.clip, entry.outcome) == ("w1-s3", "tone", "ok")
    assert (entry.media_bytes, entry.violations) == (1600, [])


def test_messages_with_a_length_are_told_apart_however_they_come(tmp_path: Path) -> None:
    images = [b"\xff\xd8" + bytes([number]) * (1000 * number) for number in range(1, 6)]
    data = b"".join(len(image).to_bytes(4, "big") + image for image in images)
    done = program("local-frames", data, "--log", "log", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (entry,) = read(tmp_path / "log")
    assert entry.chunk_bytes == [len(image) for image in images]


def test_messages_in_lines_are_the_profile_s_own(tmp_path: Path) -> None:
    (tmp_path / "lines.yaml").write_text(LINES)
    data = b'{"start":true}\n{"audio":"AAAA"}\n{"audio":"AAAAAAAA"}\n{"stop":true}\n'
    done = program("lines.yaml", data, "--log", "log", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (entry,) = read(tmp_path / "log")
    assert entry.violations == []
    assert entry.chunk_bytes == [3, 6]


@pytest.mark.parametrize(("how", "status"), [("fin", 0), ("rst", -signal.SIGKILL), ("4003", 4003 % 256)])
def test_it_can_end_as_badly_as_programs_do(tmp_path: Path, how: str, status: int) -> None:
    done = program("local-lines", b"\0" * 3200, "--drop", how, "--drop-s", "0", "--final", "5", cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert not [message for message in said(done) if "final" in message]


def test_one_that_is_no_local_program_is_refused(tmp_path: Path) -> None:
    done = program("vosk", b"", cwd=tmp_path)
    assert done.returncode == 2
    assert b"--stdio needs a profile of a local program; vosk is websocket" in done.stderr
    assert b"Traceback" not in done.stderr
