"""The main job from the outside: the command line against a service that shares no code with the package."""

import array
import asyncio
import json
import math
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
import wave
from pathlib import Path
from typing import Any

import pytest

from tests.independent_stub import Stub
from tests.typed import typed

pytestmark = pytest.mark.realtime
CHUNK_NS = 200_000_000


def tone(folder: Path, seconds: float) -> bytes:
    """Write a manifest with one clip of a 440 Hz tone, 16 kHz mono; its samples."""
    samples = array.array("h", (round(9000 * math.sin(i * 0.1728)) for i in range(round(seconds * 16000))))
    with wave.open(str(folder / "tone.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    clip = {"id": "tone", "direction": "speech2text", "audio_filepath": "tone.wav", "source_lang": "en"}
    clip |= {"target_lang": "en", "transcript": "the red boat leaves"}
    (folder / "manifest.jsonl").write_text(json.dumps(clip) + "\n")
    return samples.tobytes()


async def loadbench(*words: str, cwd: Path, patience_s: float = 90) -> tuple[int, str, str]:
    """A run of the command line: exit code, output, errors."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "loadbench", *words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asyncio.wait_for(child.communicate(), patience_s)
    assert child.returncode is not None
    return child.returncode, out.decode(), err.decode()


def sessions(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "sessions.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["type"] == "session"]


@pytest.mark.alone
async def test_pace_bytes_and_both_response_times_agree_with_what_a_foreign_service_saw(tmp_path: Path) -> None:
    media = tone(tmp_path, 3.05)
    stub = Stub(first_s=0.3, final_s=0.5)
    async with stub.serving() as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "8", "--sessions", "16"),
            *("--out", "bundle", "--quiet"),
            cwd=tmp_path,
        )
    assert code in (0, 3), out + err
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    near_ms = 10 if summary["verdict"]["state"] == "VALID" else 50
    found = sessions(tmp_path / "bundle")
    assert sorted(record["id"] for record in found) == sorted(stub.seen)
    assert len(found) == 16
    assert stub.open_peak == 8
    errors: dict[str, list[float]] = {"first": [], "final": []}
    for record in found:
        seen, utterance = stub.seen[record["id"]], record["utterances"][0]
        zero, channel = utterance["media_zero_ns"], utterance["channels"]["transcript"]
        assert record["outcome"] == "ok"
        assert bytes(seen.media) == media
        assert seen.sizes == [6400] * 15 + [1600]
        assert json.loads(seen.config) == {"config": {"sample_rate": 16000, "words": 1}}
        captured = [zero + min((i + 1) * CHUNK_NS, 3_050_000_000) for i in range(16)]
        assert all(at >= due for at, due in zip(seen.arrivals, captured, strict=True)), "a chunk before its capture"
        assert seen.eof_ns >= zero + 3_050_000_000, "the end mark before the end of the media"
        assert statistics.median(at - due for at, due in zip(seen.arrivals, captured, strict=True)) < near_ms * 1e6
        errors["first"].append(abs(channel["first_ns"] - zero - (seen.partial_ns - seen.arrivals[0] + CHUNK_NS)) / 1e6)
        errors["final"].append(
            abs(channel["last_final_ns"] - utterance["source_end_ns"] - (seen.final_ns - seen.eof_ns)) / 1e6
        )
    for name, values in errors.items():
        assert statistics.median(values) <= near_ms, (name, sorted(values))
    assert summary["sessions"]["started"] == 16
    p50 = summary["response"]["transcript"]["final_from_source_end"]["finished"]["p50"]["value_s"]
    assert p50 == pytest.approx(0.5, abs=0.05)


async def test_the_endpoint_is_scraped_while_the_run_goes_on_and_its_last_word_is_in_the_bundle(tmp_path: Path) -> None:
    tone(tmp_path, 2.0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with Stub().serving() as url:
        run = asyncio.create_task(
            loadbench(
                *("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "3", "--sessions", "6"),
                *("--out", "bundle", "--port", str(port), "-q"),
                cwd=tmp_path,
            )
        )
        active = []
        while not run.done():
            await asyncio.sleep(0.25)
            page = await asyncio.to_thread(_page, f"http://127.0.0.1:{port}/metrics")
            active += [
                float(line.split()[1]) for line in page.splitlines() if line.startswith("loadbench_sessions_active ")
            ]
        code, out, err = await run
    assert code in (0, 3), out + err
    assert max(active) == 3
    last = (tmp_path / "bundle" / "metrics.prom").read_text()
    assert "loadbench_sessions_started_total 6.0" in last
    assert 'loadbench_sessions_ended_total{outcome="ok",side="none"} 6.0' in last
    assert 'loadbench_sessions_ended_total{outcome="no_final",side="target"} 0.0' in last


def _page(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


async def test_an_engine_that_is_killed_between_two_sessions_is_exit_code_3_and_never_a_pass(tmp_path: Path) -> None:
    tone(tmp_path, 0.5)
    async with Stub(final_s=0.1).serving() as url:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadbench", "run", "--url", url, "--profile", "vosk", "--corpus", "."),
            *("--users", "1", "--sessions", "9", "--set", "workload.think_s=60", "--set", "canary.users=0"),
            *("--out", "bundle", "-q"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
        )
        await _sessions_ended(tmp_path / "bundle", 1)
        for pid in _engines_of(child.pid):
            os.kill(pid, signal.SIGKILL)
        out, _ = await asyncio.wait_for(child.communicate(), 30)
    assert child.returncode == 3, out.decode()
    assert "the tester did not do its work to the end: the engine's process was ended by signal 9" in out.decode()
    assert "NOT MET" in out.decode()
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    assert (summary["sessions"]["started"], summary["sessions"]["finished"]) == (1, 1)


async def test_kill_9_in_mid_run_leaves_a_bundle_that_is_read_and_marked_incomplete(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    async with Stub(final_s=0.1).serving() as url:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadbench", "run", "--url", url, "--profile", "vosk", "--corpus", "."),
            *("--users", "4", "--sessions", "400", "--out", "bundle", "-q"),
            cwd=tmp_path,
        )
        await _sessions_ended(tmp_path / "bundle", 8)
        child.send_signal(signal.SIGKILL)
        await child.wait()
        with (tmp_path / "bundle" / "sessions.jsonl").open("a") as file:
            file.write('{"type":"session","id":"to')
        code, out, err = await loadbench("report", "bundle", cwd=tmp_path)
    assert code == 0, out + err
    assert "incomplete" in out.lower()
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    counts = summary["sessions"]
    assert summary["complete"] is False
    assert counts["finished"] >= 8
    assert counts["started"] == counts["finished"] + counts["failed"] + counts["cut"] + counts["in_flight"]


async def test_the_first_interrupt_drains_writes_everything_and_ends_with_130(tmp_path: Path) -> None:
    tone(tmp_path, 1.0)
    async with Stub(final_s=0.1).serving() as url:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadbench", "run", "--url", url, "--profile", "vosk", "--corpus", "."),
            *("--users", "2", "--sessions", "400", "--out", "bundle", "-q"),
            cwd=tmp_path,
        )
        await _sessions_ended(tmp_path / "bundle", 2)
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert await asyncio.wait_for(child.wait(), 20) == 130
        assert time.monotonic() - begun < 8
    counts = json.loads((tmp_path / "bundle" / "summary.json").read_text())["sessions"]
    assert counts["finished"] >= 2
    assert counts["in_flight"] == 0
    assert json.loads((tmp_path / "bundle" / "done.json").read_text())["reason"] == "interrupted"


def _engines_of(parent: int) -> list[int]:
    children = map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return [pid for pid in children if b"loadbench.engine.child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def _sessions_ended(folder: Path, count: int) -> None:
    deadline, path = time.monotonic() + 30, folder / "sessions.jsonl"
    while time.monotonic() < deadline:
        await asyncio.sleep(0.2)
        if path.exists() and path.read_text().count('"type":"session"') >= count:
            break


GOOD = ["--url", "ws://127.0.0.1:9", "--profile", "vosk", "--corpus", "."]
WRONG = [
    (["run", "--profile", "vosk", "--corpus", "nowhere.jsonl", "--url", "ws://127.0.0.1:9"], ["nowhere.jsonl"]),
    (["run", "--url", "127.0.0.1:2700", "--profile", "vosk", "--corpus", "."], ["target.url must begin with ws://"]),
    (["run", *GOOD, "--set", "workload.usrs=3"], ["workload.usrs", "did you mean workload.users"]),
    (
        ["run", *GOOD, "--users", "0", "--set", "limits.finals=2"],
        ["2 problems", "workload.users must be above 0", "limits.finals"],
    ),
    (["run", "--url", "ws://127.0.0.1:9", "--profile", "vosc", "--corpus", "."], ["vosc", "vosk"]),
    (
        ["run", "--url", "ws://127.0.0.1:9", "--profile", "vosk", "--corpus", "bad.jsonl"],
        ["bad.jsonl:1", "bad.jsonl:2"],
    ),
    (["run", "--url", "http://127.0.0.1:9", "--profile", "vosk", "--corpus", "."], ["vosk speaks ws://"]),
    (["run", "missing.toml"], ["missing.toml"]),
    (["run", "--no-such-flag"], ["--no-such-flag"]),
    (["report", "not-a-bundle"], ["not-a-bundle"]),
]


@pytest.mark.parametrize(("words", "expected"), WRONG, ids=lambda value: " ".join(value)[-40:])
def test_wrong_input_gives_one_message_with_all_problems_exit_2_and_no_traceback(
    tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    tone(tmp_path, 0.5)
    (tmp_path / "bad.jsonl").write_text('{"id": "a"}\nnot json\n')
    code, out, err = typed(*words, cwd=tmp_path)
    assert code == 2, out + err
    assert "Traceback" not in err
    for part in expected:
        assert part in err
    assert not (tmp_path / "runs").exists()


async def test_a_port_in_use_that_was_asked_for_is_an_error_before_anything_is_contacted(tmp_path: Path) -> None:
    tone(tmp_path, 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, _, err = await loadbench("run", *GOOD, "--port", port, "--out", "bundle", cwd=tmp_path)
    assert code == 2
    assert port in err
    assert "Traceback" not in err


async def test_a_service_that_refuses_the_connection_ends_with_4_and_says_why(tmp_path: Path) -> None:
    tone(tmp_path, 0.5)
    code, out, err = await loadbench("run", *GOOD, "--out", "bundle", "-q", cwd=tmp_path)
    assert code == 4, out + err
    assert "refused" in err
    assert "Traceback" not in err
    assert sessions(tmp_path / "bundle")[0]["outcome"] == "connect_failed"


async def test_secrets_of_a_run_are_in_no_file_and_on_no_screen(tmp_path: Path) -> None:
    tone(tmp_path, 0.5)
    os.environ["STUB_TOKEN"] = "tok-FAKE-71"
    try:
        async with Stub(final_s=0.1).serving() as url:
            address = url.replace("ws://", "ws://user:pw-FAKE-73@") + "/?key=key-FAKE-72"
            code, out, err = await loadbench(
                *("run", "--url", address, "--profile", "vosk", "--corpus", ".", "--out", "bundle"),
                *("--header", "Authorization: Bearer {secret.token}", "--set", 'target.secrets.token="env:STUB_TOKEN"'),
                cwd=tmp_path,
            )
    finally:
        del os.environ["STUB_TOKEN"]
    assert code in (0, 3), out + err
    everything = out + err + "".join(path.read_text() for path in (tmp_path / "bundle").rglob("*") if path.is_file())
    for secret in ("tok-FAKE-71", "key-FAKE-72", "pw-FAKE-73"):
        assert secret not in everything


@pytest.mark.alone
async def test_120_sessions_at_once_are_all_open_at_once_and_each_begins_on_its_plan(tmp_path: Path) -> None:
    tone(tmp_path, 3.0)
    stub = Stub(final_s=0.1)
    async with stub.serving() as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "120", "--sessions", "120"),
            *("--ramp", "1", "--out", "bundle", "-q"),
            cwd=tmp_path,
        )
    assert code in (0, 3), out + err
    found = sessions(tmp_path / "bundle")
    assert [record["outcome"] for record in found] == ["ok"] * 120
    assert stub.open_peak == 120
    if code == 0:  # 3: the machine was too busy
        assert max(record["begun_ns"] - record["planned_ns"] for record in found) < 50e6
    links = [record["connections"][0] for record in found]
    assert max(link["opened_ns"] - link["dialled_ns"] for link in links) < 500e6


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ('target.headers.x-who="{clip.nobody}"', "clip.nobody"),
        ('target.headers."bad name"="x"', "bad name"),
        ('target.secrets.token="tok-FAKE-71"', "target.secrets.token must be env:NAME"),
        ('target.params.speed="2"', "target.params.speed: profile vosk has no such parameter"),
    ],
)
def test_what_no_session_could_send_is_found_before_there_is_one(tmp_path: Path, setting: str, sentence: str) -> None:
    tone(tmp_path, 0.5)
    code, out, err = typed("run", *GOOD, "--set", setting, cwd=tmp_path)
    assert code == 2, out + err
    assert sentence in err
    assert "Traceback" not in err
    assert "FAKE" not in err
