"""The command as a shell sees it: signals at any moment, output that goes nowhere, folders that cannot be written."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from loadbench.__main__ import Stream
from tests.independent_stub import Stub
from tests.report.conftest import Write, session, write
from tests.test_main_job import loadbench, tone
from tests.typed import typed

__all__ = ["write"]
pytestmark = pytest.mark.realtime
ME = (sys.executable, "-m", "loadbench")
MODULES = ["loadbench.cli", "typer", "pydantic", "loadbench.plan", "numpy", "av", "loadbench.transports.websocket"]
INTERRUPTED = """
import os, signal, sys
module = sys.argv.pop(1)
class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, CtrlC())
from loadbench.__main__ import main
main()
"""


def short_run(url: str, *more: str) -> list[str]:
    words = ["run", "--url", url, "--profile", "vosk", "--corpus", ".", "--out", "bundle", "-q", "--set"]
    return [*words, "metrics.enabled=false", "--set", "canary.users=0", *more]


def shell(words: Sequence[str], line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`line` with `$@` for the words, and `rc=N` for their exit code at the end of stderr."""
    script = f'{line}; echo "rc=${{PIPESTATUS[0]}}" >&2'
    return subprocess.run(
        ["bash", "-c", script, "sh", *words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("module", MODULES)
def test_ctrl_c_while_the_command_still_loads_is_130_and_one_line_at_most(tmp_path: Path, module: str) -> None:
    tone(tmp_path, 1.0)
    words = short_run("ws://127.0.0.1:9", "--sessions", "1")
    told = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.returncode == 130, told.stderr
    assert told.stderr.strip() in ("", "loadbench: interrupted")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("words", [["profile", "show", "vosk"], ["--help"], ["run", "--help"], ["report", "bundle"]])
def test_a_reader_that_leaves_early_changes_no_exit_code(tmp_path: Path, write: Write, words: list[str]) -> None:
    write([session(number) for number in range(3)])
    told = shell([*ME, *words], '"$@" | head -c 1 >/dev/null', tmp_path)
    assert told.stderr == "rc=0\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["profile", "show", "vosk"], ["--help"], ["report", "bundle"], ["score", "bundle"]])
def test_output_to_a_full_disk_is_one_line_and_exit_code_2(tmp_path: Path, write: Write, words: list[str]) -> None:
    write([session(number) for number in range(3)])
    told = shell([*ME, *words], '"$@" >/dev/full', tmp_path)
    assert told.stderr == "loadbench: cannot write to standard output: no space left on device\nrc=2\n"


def test_a_stream_that_breaks_is_swallowed_and_remembered(tmp_path: Path) -> None:
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "w") as pipe:
        stream = Stream(pipe)
        for _ in range(3):
            assert stream.write("word\n") == 5
            stream.flush()
        assert isinstance(stream.error, BrokenPipeError)
    with (tmp_path / "ascii").open("w", encoding="ascii") as file:
        assert Stream(file).write("明") == 1


@pytest.mark.alone
async def test_a_run_whose_output_nobody_reads_keeps_its_own_exit_code(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    async with Stub(final_s=0.1).serving() as url:
        words = short_run(url, "--sessions", "1")
        told = await asyncio.to_thread(shell, [*ME, *words], '"$@" | true', tmp_path)
    assert told.stderr == "rc=0\n"
    assert (tmp_path / "bundle" / "done.json").is_file()


async def test_a_hang_up_drains_as_an_interrupt_does_and_a_second_one_changes_nothing(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    async with Stub(final_s=0.1).serving() as url:
        child = await asyncio.create_subprocess_exec(
            *ME, *short_run(url, "--users", "2", "--sessions", "400"), cwd=tmp_path, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # whatever these tests were started by
        )  # fmt: skip
        path = tmp_path / "bundle" / "sessions.jsonl"
        for _ in range(300):
            await asyncio.sleep(0.1)
            if path.exists() and '"type":"session"' in path.read_text():
                break
        for _ in range(2):
            os.killpg(child.pid, signal.SIGHUP)  # as a terminal does: everybody in it, and often twice
            await asyncio.sleep(0.2)
        assert await asyncio.wait_for(child.wait(), 20) == 130
    counts = json.loads((tmp_path / "bundle" / "summary.json").read_text())["sessions"]
    assert counts["finished"] >= 2
    assert counts["in_flight"] == 0
    assert json.loads((tmp_path / "bundle" / "done.json").read_text())["reason"] == "interrupted"


@pytest.mark.parametrize("command", ["report", "score"])
def test_a_derived_file_that_cannot_be_written_is_named_after_the_numbers(
    tmp_path: Path, write: Write, command: str
) -> None:
    folder = write([session(number) for number in range(3)])
    for name in ("summary.json", "scores.json", "report.html"):
        (folder / name).mkdir()
    code, out, err = typed(command, "bundle", cwd=tmp_path)
    assert code == 2
    assert "started 3" in out or '"rows": 3' in out
    assert "3 problems" in err
    assert "cannot write bundle/summary.json: is a directory; the records are intact" in err
    assert "Traceback" not in err


async def test_a_run_whose_derived_file_cannot_be_written_prints_its_numbers_and_keeps_its_records(
    tmp_path: Path,
) -> None:
    tone(tmp_path, 1.0)
    (tmp_path / "bundle" / "report.html").mkdir(parents=True)
    async with Stub(final_s=0.1).serving() as url:
        code, out, err = await loadbench(*short_run(url, "--sessions", "1"), cwd=tmp_path)
    assert code == 2
    assert "started 1 = finished 1" in out
    assert "bundle/report.html: is a directory" in err
    assert (tmp_path / "bundle" / "done.json").is_file()
    assert not list((tmp_path / "bundle").glob(".*.part"))


def test_the_score_of_a_damaged_bundle_says_so_beside_the_numbers(tmp_path: Path, write: Write) -> None:
    write([session(number) for number in range(3)])
    (tmp_path / "bundle" / "clips.jsonl").unlink()
    code, out, err = typed("score", "bundle", cwd=tmp_path)
    assert code == 0
    assert json.loads(out)["rows"] == 0
    assert err == "loadbench: damaged: clips.jsonl: the file is missing\n"


def test_a_folder_that_is_gone_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    told = shell([*ME, "corpus", "check", "x.jsonl"], 'cd gone && rmdir ../gone; "$@"', tmp_path)
    assert told.stderr == "loadbench: the folder in which this was started is gone; change to another one\nrc=2\n"


async def test_a_number_that_is_set_where_only_a_text_can_stand_is_that_text(tmp_path: Path) -> None:
    tone(tmp_path, 0.2)
    words = ("--set", "target.params.rate=8000", "--set", "target.headers.X-Level=1e3", "--set", "limits.final_s=7")
    code, out, err = await loadbench(
        *("run", "--url", "ws://127.0.0.1:9", "--profile", "vosk", "--corpus", ".", "--out", "bundle", "-q"),
        *("--set", "metrics.enabled=false", "--set", "canary.users=0", *words),
        cwd=tmp_path,
    )
    assert code == 4, out + err
    plan = json.loads((tmp_path / "bundle/run.json").read_text())["plan"]
    assert plan["target"]["params"] == {"rate": "8000"}
    assert plan["target"]["headers"] == {"X-Level": "1e3"}
    assert plan["limits"]["final_s"] == 7
