"""A recording, a draft from it, and a run with the draft: the whole way from the outside."""

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from loadbench.profiles import sample
from loadbench.profiles.overhear import Said
from loadbench.profiles.record import Book
from loadbench.profiles.veil import Veil
from loadbench.session.load import load_profile
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running
from tests.test_main_job import loadbench, sessions

pytestmark = pytest.mark.realtime
KEY = "sk-FAKE-0123456789abcdef"


class Recorder:
    """`profile record` as a process."""

    def __init__(self, child: asyncio.subprocess.Process, port: int) -> None:
        self._child, self.port = child, port

    @classmethod
    async def to(cls, url: str, folder: Path, *words: str) -> "Recorder":
        words = ("profile", "record", "--to", url, "--out", "said.jsonl", *words)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "loadbench", *words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert child.stderr is not None
        first = (await asyncio.wait_for(child.stderr.readline(), 30)).decode()
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", first)
        assert found, first
        return cls(child, int(found[1]))

    async def over(self, *, interrupt: bool = False) -> tuple[int | None, str]:
        if interrupt:
            self._child.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(self._child.communicate(), 30)
        return self._child.returncode, (out + err).decode()


def corpus(folder: Path, profile: str) -> str:
    return str(sample.write(sample.clips(None), load_profile(profile).media.kind, folder))


def said(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "said.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vosk", "sign-frames", "sign-frames-binary", "http-stream"])
async def test_a_draft_of_a_recorded_session_works(tmp_path: Path, name: str) -> None:
    path = corpus(tmp_path, name)
    words = ("--corpus", path, "--sessions", "1", "--quiet", "--set", "canary.users=0")
    async with running(Options(profile=name)) as url:
        recorder = await Recorder.to(url, tmp_path, "--connections", "1")
        through = f"{url.partition(':')[0]}://127.0.0.1:{recorder.port}"
        code, out, err = await loadbench(
            *("run", "--url", through, "--profile", name, "--out", "first", *words), cwd=tmp_path
        )
        assert code in (0, 3), out + err
        code, told = await recorder.over()
        assert code == 0, told
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", "said.yaml", "--out", "second", *words), cwd=tmp_path
        )
    assert code in (0, 3), (tmp_path / "said.yaml").read_text() + out + err
    first, second = (sessions(tmp_path / folder)[0] for folder in ("first", "second"))
    assert (first["outcome"], second["outcome"]) == ("ok", "ok"), second["cause"]
    assert not second["messages"].get("unmatched")
    spoken = [
        [segment["text"] for channel in record["utterances"][0]["channels"].values() for segment in channel["segments"]]
        for record in (first, second)
    ]
    assert set(spoken[1]) <= set(spoken[0])
    assert spoken[1], "the draft reads the text"
    assert second["utterances"][0]["chunks_sent"] == first["utterances"][0]["chunks_sent"]
    code, out, err = await loadbench("profile", "check", "said.yaml", "--messages", "said.jsonl", cwd=tmp_path)
    assert code == 0, out + err


async def test_secrets_are_in_neither_file_and_the_draft_asks_for_them(tmp_path: Path) -> None:
    async with running(Options(profile="vosk", first_s=0.05, final_s=0.05)) as url:
        recorder = await Recorder.to(url, tmp_path, "--secret", "ticket")
        address = f"ws://127.0.0.1:{recorder.port}/?token={KEY}&lang=en"
        async with connect(address, additional_headers={"Authorization": f"Bearer {KEY}2"}) as link:
            await link.send('{"config":{"sample_rate":16000,"ticket":"open-sesame-77"}}')
            for at in range(4):
                await link.send(bytes([at, 1]) * 1600)
                await asyncio.sleep(0.1)
            await link.send('{"eof" : 1}')
            async for _ in link:
                pass
        code, told = await recorder.over(interrupt=True)
    assert code == 0, told
    text, draft = (tmp_path / "said.jsonl").read_text(), (tmp_path / "said.yaml").read_text()
    for secret in (KEY, "open-sesame-77"):
        assert secret not in text + draft + told
    assert {"{secret.authorization}", "{secret.ticket}", "{secret.token}"} <= set(re.findall(r"\{secret\.\w+\}", draft))
    media = [entry for entry in said(tmp_path) if "binary" in entry]
    assert [entry["binary"]["bytes"] for entry in media] == [3200] * 4
    assert all("base64" not in entry for entry in media)
    assert oct(os.stat(tmp_path / "said.jsonl").st_mode & 0o777) == "0o600"  # noqa: PTH116
    first, *_ = said(tmp_path)
    assert first["request"]["headers"]["Authorization"] == "***"


async def test_all_media_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    async with running(Options(profile="vosk")) as url:
        recorder = await Recorder.to(url, tmp_path, "--keep-media", "--connections", "1")
        async with connect(f"ws://127.0.0.1:{recorder.port}") as link:
            await link.send(b"\x01\x02" * 100)
        code, told = await recorder.over()
    assert code == 0, told
    assert "no profile could be drafted: no stream of media was seen" in told
    (entry,) = [entry for entry in said(tmp_path) if "binary" in entry]
    assert base64.b64decode(entry["base64"]) == b"\x01\x02" * 100
    assert entry["from"] == "client"


def test_a_recording_that_cannot_be_written_is_said_and_the_client_is_not_disturbed() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        book = Book(full, Veil(), keep_media=False)
        for at_ns in (5, 6):
            book.note(Said(at_ns=at_ns, connection=1, who="client", kind="text", data=b"x", size=1))
    assert "space" in book.trouble.lower()
    assert len(book.said[1]) == 2, "and what was said is kept for the draft"


async def test_nobody_came_is_no_success(tmp_path: Path) -> None:
    recorder = await Recorder.to("ws://127.0.0.1:9", tmp_path)
    code, told = await recorder.over(interrupt=True)
    assert code == 1
    assert "nobody came" in told
