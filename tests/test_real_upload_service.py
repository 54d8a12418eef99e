"""Uploads to a real server, from another package and in a process and an environment of its own."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.test_main_job import loadbench, sessions

NAME = "LOADBENCH_UPLOAD_PYTHON"
PYTHON = os.environ.get(NAME)
HOW = (
    f"{NAME} names no interpreter; to make one: python -m venv V && "
    "V/bin/pip install bootlegger-voice==0.1.2 moonshine-voice==0.1.0, then V/bin/python"
)
pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.skipif(not PYTHON, reason=HOW)]
SERVICE = str(Path(__file__).with_name("upload_service.py"))
UP_S = 60.0


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    child = await asyncio.create_subprocess_exec(str(PYTHON), SERVICE, str(port))
    try:
        async with asyncio.timeout(UP_S):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1/audio/transcriptions"
    finally:
        child.terminate()
        await child.wait()


def corpus(folder: Path) -> None:
    """A recording that comes with the recogniser, ten seconds long."""
    told = subprocess.run([str(PYTHON), SERVICE], capture_output=True, text=True, check=True)
    clip = {"id": "beckett", "direction": "speech2text", "audio_filepath": f"{told.stdout.strip()}/beckett.wav"}
    clip |= {"source_lang": "en", "target_lang": "en"}
    clip |= {"transcript": "Ever tried. Ever failed. No matter. Try again. Fail again. Fail better."}
    (folder / "manifest.jsonl").write_text(json.dumps(clip) + "\n")


@pytest.mark.parametrize(("profile", "rule"), [("openai-http", "message"), ("openai-http-plain", "close")])
async def test_a_real_server_hears_the_upload_and_its_text_comes_after_the_clip(
    tmp_path: Path, profile: str, rule: str
) -> None:
    corpus(tmp_path)
    async with serving() as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", profile, "--corpus", ".", "--users", "2", "--sessions", "2"),
            *("--out", "bundle", "--quiet", "--set", "metrics.enabled=false", "--set", "canary.users=0"),
            cwd=tmp_path,
        )
    assert code in (0, 3), (out, err)  # 3: the machine was too busy for its own clock
    for record in sessions(tmp_path / "bundle"):
        assert (record["outcome"], record["cause"]) == ("ok", "")
        (utterance,) = record["utterances"]
        shown = utterance["channels"]["transcript"]
        words = "".join(segment["text"] for segment in shown["segments"]).lower()
        assert "ever tried. ever failed. no matter" in words  # of the rest the model hears "fare again"
        assert shown["first_ns"] > utterance["source_end_ns"]
        assert utterance["done_rule"] == rule
