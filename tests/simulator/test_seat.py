"""A session of many requests, as a foreign client meets it; and uploads."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from loadbench.session.message import wav
from loadbench.session.profile import MediaPart
from loadbench.simulator.log import Entry, read
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running

pytestmark = pytest.mark.realtime
PCM = bytes(range(256)) * 10


def segment(payload: bytes, *, finished: bool) -> dict[str, Any]:
    samples = [int.from_bytes(payload[at : at + 2], "little", signed=True) / 32768 for at in range(0, len(payload), 2)]
    return {
        "index": 0,
        "content": samples,
        "finished": finished,
        "is_empty": False,
        "data_type": "speech",
        "tgt_lang": "en",
        "sample_rate": 16000,
    }


async def logged(path: Path, count: int) -> list[Entry]:
    """The log's lines, once there are so many: a connection's end is seen a little later."""
    async with asyncio.timeout(10):
        while len(found := list(read(path))) < count:  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.02)
    return found


async def test_an_agent_is_reset_fed_and_asked_until_it_has_finished(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    options = Options(profile="simuleval", first_s=0.0, final_s=0.05, text="red boat", log=log)
    async with running(options) as url, aiohttp.ClientSession() as client:
        async with client.post(f"{url}/reset") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        async with client.get(f"{url}/output") as answer:
            assert await answer.json() == {
                "index": 0, "content": [], "finished": False, "is_empty": True, "data_type": None, "tgt_lang": None,
            }  # fmt: skip
        for finished in (False, True):
            async with client.put(f"{url}/input", json=segment(PCM, finished=finished)) as answer:
                assert await answer.read() == b""
        said = []
        async with asyncio.timeout(10):
            while not said or not said[-1]["finished"]:
                async with client.get(f"{url}/output") as answer:
                    said += [found for found in [await answer.json()] if found["finished"] or not found["is_empty"]]
                await asyncio.sleep(0.01)
        assert [(one.get("data_type"), one["content"]) for one in said] == [("text", "red boat"), (None, [])]
        await client.close()
        (entry,) = await logged(log, 1)
    assert (entry.outcome, entry.close_by, entry.violations) == ("ok", "client", [])
    assert entry.chunk_bytes == [len(PCM), len(PCM)]


async def test_two_connections_are_two_sessions(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with running(Options(profile="simuleval", log=log)) as url:
        for name in ("a", "b"):
            headers = {"x-loadbench-session": name}
            async with aiohttp.ClientSession(headers=headers) as client, client.post(f"{url}/reset") as answer:
                assert answer.status == 200
        found = await logged(log, 2)
    assert [entry.session for entry in found] == ["a", "b"]


async def test_a_cut_takes_the_connection_away_in_the_middle(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    options = Options(profile="simuleval", drop="rst", drop_s=0.05, log=log)
    async with running(options) as url, aiohttp.ClientSession() as client:
        async with client.put(f"{url}/input", json=segment(PCM, finished=False)):
            pass
        (entry,) = await logged(log, 1)
    assert (entry.outcome, entry.close_by) == ("dropped", "service")


async def test_samples_that_are_none_are_a_violation(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with running(Options(profile="simuleval", log=log)) as url, aiohttp.ClientSession() as client:
        async with client.post(f"{url}/reset"):
            pass
        async with client.put(f"{url}/input", json=segment(b"", finished=False) | {"content": ["x"]}):
            pass
        await client.close()
        (entry,) = await logged(log, 1)
    assert "something else than samples" in entry.violations[0]


# Uploads.


def form(**fields: Any) -> aiohttp.FormData:
    data = aiohttp.FormData()
    for name, value in fields.items():
        if isinstance(value, bytes):
            data.add_field(name, value, filename="clip.wav", content_type="audio/wav")
        else:
            data.add_field(name, value)
    return data


FILE = wav(MediaPart.model_validate({"kind": "audio", "pace": "whole"}), PCM)
FIELDS = {"model": "m", "language": "en", "response_format": "json"}


async def test_an_upload_is_answered_at_once_or_in_events(tmp_path: Path) -> None:
    given = {"first_s": 0.0, "final_s": 0.02, "text": "red boat"}
    async with aiohttp.ClientSession() as client:
        async with (
            running(Options(profile="openai-http-plain", log=tmp_path / "plain", **given)) as url,
            client.post(f"{url}/v1/audio/transcriptions", data=form(file=FILE, **FIELDS)) as answer,
        ):
            assert answer.content_type == "application/json"
            assert await answer.json() == {"text": "red boat"}
        async with (
            running(Options(profile="openai-http", log=tmp_path / "events", **given)) as url,
            client.post(f"{url}/v1/audio/transcriptions", data=form(file=FILE, stream="true", **FIELDS)) as answer,
        ):
            assert answer.content_type == "text/event-stream"
            assert (await answer.text()).endswith("data: [DONE]\n\n")
    (plain,), (events,) = read(tmp_path / "plain"), read(tmp_path / "events")
    assert (plain.media_bytes, plain.violations) == (events.media_bytes, events.violations) == (len(PCM), [])


@pytest.mark.parametrize(
    ("data", "violations"),
    [
        (lambda: form(file=FILE, **FIELDS, odd="1"), ["unknown form field odd"]),
        (
            lambda: form(file=FILE, model="m"),
            ["the form has no field language", "the form has no field response_format"],
        ),
        (lambda: form(file=PCM, **FIELDS), ["the file is no WAV"]),
        (lambda: PCM, ["an upload as application/octet-stream, not multipart/form-data"]),
    ],
)
async def test_an_upload_that_is_not_the_profile_s_is_a_violation(
    tmp_path: Path, data: Any, violations: list[str]
) -> None:
    log = tmp_path / "log.jsonl"
    options = Options(profile="openai-http-plain", first_s=0.0, final_s=0.0, log=log)
    async with running(options) as url, aiohttp.ClientSession() as client, client.post(url, data=data()) as answer:
        await answer.read()
    (entry,) = read(log)
    assert entry.violations == violations
