"""Known delay in, known delay out: the command line against the simulator, joined by session id with its own log."""

import asyncio
import contextlib
import hashlib
import json
import statistics
import subprocess
import sys
import wave
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from loadbench.results.bundle import Bundle
from loadbench.simulator import log
from tests.test_main_job import loadbench, sessions

pytestmark = [pytest.mark.realtime, pytest.mark.slow]


def speech(folder: Path, seconds: float) -> bytes:
    """A manifest with one clip whose every sample is different from its neighbours; its bytes."""
    samples = np.random.default_rng(7).integers(-8000, 8000, round(seconds * 16000)).astype("<i2").tobytes()
    with wave.open(str(folder / "clip.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(samples)
    clip = {"id": "clip", "direction": "speech2text", "audio_filepath": "clip.wav", "source_lang": "en"}
    clip |= {"target_lang": "en", "transcript": "the red boat leaves at nine"}
    (folder / "manifest.jsonl").write_text(json.dumps(clip) + "\n")
    return samples


def signing(folder: Path, frames: int) -> None:
    """A manifest with one folder of small frames at 25 a second."""
    (folder / "frames").mkdir()
    for n in range(frames):
        Image.new("RGB", (160, 120), (n * 4 % 256, 90, 200)).save(folder / "frames" / f"image{n:04d}.png")
    clip = {"id": "clip", "direction": "sign2spoken", "frames_dir": "frames", "frames_pattern": "image%04d.png"}
    clip |= {"fps": 25, "source_lang": "csl", "target_lang": "zh", "gloss": ["明天", "学校", "休息"]}
    clip |= {"text": "明天学校放假。"}
    (folder / "manifest.jsonl").write_text(json.dumps(clip, ensure_ascii=False) + "\n")


@contextlib.asynccontextmanager
async def simulating(folder: Path, *words: str) -> AsyncIterator[str]:
    """A simulator in a process of its own; its log is complete when the block ends."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "loadbench", "simulate", "--log", "service.jsonl", *words),
        cwd=folder,
        stdout=subprocess.PIPE,
    )
    assert child.stdout
    try:
        yield (await asyncio.wait_for(child.stdout.readline(), 30)).decode().split()[-1]
    finally:
        child.terminate()
        await child.wait()


def joined(folder: Path, bundle: str = "bundle") -> list[tuple[dict[str, Any], log.Entry]]:
    """Our record and the service's own line of each session."""
    served = {entry.session: entry for entry in log.read(folder / "service.jsonl")}
    return [(record, served[record["id"]]) for record in sessions(folder / bundle)]


def errors_ms(
    pairs: list[tuple[dict[str, Any], log.Entry]], channel: str, first_chunk_ns: int
) -> dict[str, list[float]]:
    """How far the first output and the final of each session lie from the delays that the service logged, sorted."""
    errors: dict[str, list[float]] = {"first": [], "final": []}
    for record, entry in pairs:
        assert record["outcome"] == "ok", record["cause"]
        utterance = record["utterances"][0]
        heard, zero_ns = utterance["channels"][channel], utterance["media_zero_ns"]
        first_ns = entry.first_sent_ns - entry.chunks_ns[0] + first_chunk_ns
        errors["first"].append(abs(heard["first_ns"] - zero_ns - first_ns) / 1e6)
        final_ns = entry.final_sent_ns - entry.end_ns
        errors["final"].append(abs(heard["last_final_ns"] - utterance["source_end_ns"] - final_ns) / 1e6)
    return {name: sorted(values) for name, values in errors.items()}


@pytest.mark.alone
@pytest.mark.parametrize(
    ("profile", "channel", "first_chunk_ns"),
    [("vosk", "transcript", 200_000_000), ("http-stream", "transcript", 100_000_000), ("sign-frames", "gloss", 0)],
)
async def test_20_users_and_60_sessions_are_measured_as_the_service_says(
    tmp_path: Path, profile: str, channel: str, first_chunk_ns: int
) -> None:
    if profile == "sign-frames":
        signing(tmp_path, 50)
    else:
        speech(tmp_path, 2.03)
    words = ("--first", "0.3", "--final", "0.5", "--profile", profile, "--corpus", "manifest.jsonl")
    async with simulating(tmp_path, *words) as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", profile, "--corpus", ".", "--users", "20", "--sessions", "60"),
            *("--out", "bundle", "--quiet"),
            cwd=tmp_path,
        )
    assert code in (0, 3), out + err
    errors = errors_ms(joined(tmp_path), channel, first_chunk_ns)
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    assert summary["sessions"]["started"] == summary["sessions"]["finished"] == 60
    if summary["verdict"]["state"] == "INVALID":
        pytest.skip(f"this machine was too busy to measure: {summary['verdict']['reasons']}")
    for values in errors.values():
        assert len(values) == 60
        assert statistics.median(values) <= 10
        assert values[58] <= 25


async def test_a_minute_of_speech_arrives_bit_for_bit_never_early_and_without_drift(tmp_path: Path) -> None:
    media = speech(tmp_path, 60.13)
    async with simulating(tmp_path, "--profile", "vosk") as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", "vosk", "--corpus", ".", "--users", "2", "--sessions", "2"),
            *("--out", "bundle", "--quiet"),
            cwd=tmp_path,
        )
    assert code in (0, 3), out + err
    for record, entry in joined(tmp_path):
        zero_ns = record["utterances"][0]["media_zero_ns"]
        captured = zero_ns + np.minimum(np.arange(1, 302) * 200_000_000, 60_130_000_000)
        behind = np.array(entry.chunks_ns) - captured
        assert entry.media_sha256 == hashlib.sha256(media).hexdigest()
        assert sum(entry.chunk_bytes) == len(media)
        assert behind.min() >= 0, "a chunk before it can have been captured"
        assert entry.end_ns >= zero_ns + 60_130_000_000, "the end mark before the end of the media"
        first, last = np.median(behind[:25]), np.median(behind[-25:])
        assert abs(last - first) < 5_000_000, "drift"
        assert not entry.violations


def own_errors_ms(folder: Path, bundle: str, first_chunk_ns: int) -> dict[str, list[float]]:
    """As `errors_ms`, with the delays counted from when a message was handed over instead of when the service read it.

    500 sessions keep the simulator, which is Python too, as busy as the tester: what lies between is its own slowness.
    """
    handed = {times.session: int(np.frombuffer(times.sent, "<i8")[0]) for times in Bundle(folder / bundle).chunks()}
    errors: dict[str, list[float]] = {"first": [], "final": [], "read": []}
    for record, entry in joined(folder, bundle):
        utterance = record["utterances"][0]
        heard, zero_ns = utterance["channels"]["transcript"], utterance["media_zero_ns"]
        first_ns = entry.first_sent_ns - (zero_ns + handed[record["id"]]) + first_chunk_ns
        errors["first"].append(abs(heard["first_ns"] - zero_ns - first_ns) / 1e6)
        final_ns = entry.final_sent_ns - utterance["eos_ns"]
        errors["final"].append(abs(heard["last_final_ns"] - utterance["source_end_ns"] - final_ns) / 1e6)
        errors["read"].append((entry.end_ns - utterance["eos_ns"]) / 1e6)
    return {name: sorted(values) for name, values in errors.items()}


@pytest.mark.alone
async def test_500_sessions_at_once_are_measured_as_the_service_says_to_2_ms_at_the_median_and_10_ms_at_p99(
    tmp_path: Path,
) -> None:
    speech(tmp_path, 6.0)
    profile = resources.files("loadbench").joinpath("data/profiles/vosk.yaml").read_text()
    assert profile.count("chunk_ms: 200") == 1
    (tmp_path / "halves.yaml").write_text(profile.replace("chunk_ms: 200", "chunk_ms: 500"))
    words = ("--profile", "halves.yaml", "--first", "0.3", "--final", "0.5", "--partial-every", "0", "--no-acks")
    for attempt in ("one", "two"):
        (tmp_path / "service.jsonl").unlink(missing_ok=True)
        async with simulating(tmp_path, *words) as url:
            code, out, err = await loadbench(
                *("run", "--url", url, "--profile", "halves.yaml", "--corpus", ".", "--users", "500"),
                *("--sessions", "500", "--ramp", "5", "--out", attempt, "--quiet"),
                cwd=tmp_path,
            )
        assert code in (0, 3), out + err
        summary = json.loads((tmp_path / attempt / "summary.json").read_text())
        if summary["verdict"]["state"] == "VALID":
            break
    assert summary["users"]["active_max"] == 500
    assert summary["sessions"]["started"] == summary["sessions"]["finished"] == 500
    errors = own_errors_ms(tmp_path, attempt, 500_000_000)
    if summary["verdict"]["state"] == "INVALID":
        pytest.skip(f"this machine was too busy to measure: {summary['verdict']['reasons']}")
    valid = summary["verdict"]["state"] == "VALID"
    assert errors["read"][0] > -2, "an end mark that the service read before it was handed over"
    for name in ("first", "final"):
        assert len(errors[name]) == 500
        assert statistics.median(errors[name]) <= (2 if valid else 10), name
        assert errors[name][494] <= (10 if valid else 60), name
    assert statistics.median(errors["read"]) <= 10
