"""Known pictures and sound in, known times out: the command line against the simulator's own log, by session."""

import asyncio
import contextlib
import json
import statistics
import time
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import WSMsgType, web

from loadbench.media.player import Player
from loadbench.results.bundle import Bundle
from loadbench.simulator import log
from tests.media.test_container import video
from tests.test_known_delays import joined, simulating, speech
from tests.test_main_job import loadbench, sessions
from tests.typed import typed

pytestmark = [pytest.mark.realtime, pytest.mark.alone]

MS = 1_000_000
PIECE_NS = 40 * MS
PLANTED = ("--media-first", "0.35", "--media-silence", "0.2", "--media-gaps", "0.6,0.25,1.2,0.4")


async def run(folder: Path, profile: str, *words: str) -> list[tuple[dict[str, Any], log.Entry]]:
    """Six sessions of three users."""
    async with simulating(folder, "--profile", profile, *PLANTED) as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", profile, "--corpus", ".", "--users", "3", "--sessions", "6"),
            *("--out", "bundle", "--quiet", *words),
            cwd=folder,
        )
    assert code in (0, 3), out + err
    summary = json.loads((folder / "bundle" / "summary.json").read_text())
    assert summary["sessions"]["finished"] == 6, summary["causes"]
    if summary["verdict"]["state"] == "INVALID":
        pytest.skip(f"this machine was too busy to measure: {summary['verdict']['reasons']}")
    return joined(folder)


def played(sent_ns: list[int]) -> Player:
    """What a player would have had to wait for that got each piece when it left."""
    player = Player()
    for number, at_ns in enumerate(sent_ns):
        player.take(number * PIECE_NS, (number + 1) * PIECE_NS, at_ns)
    return player


def median_ms(errors_ns: list[int]) -> float:
    return statistics.median(abs(error) for error in errors_ns) / MS


def check(pairs: list[tuple[dict[str, Any], log.Entry]], channel: str) -> None:
    """Times within 10 ms at the median; the planted gaps of 250 and 400 ms are there, and no other of 100 ms."""
    first, end, places, lengths = [], [], [], []
    for record, entry in pairs:
        media, spoken = record["utterances"][0]["channels"][channel]["media"], entry.media[channel]
        logged = played(spoken.sent_ns)
        assert media["bytes"] == spoken.bytes
        assert media["pieces"] == len(spoken.sent_ns)
        first.append(media["first_byte_ns"] - spoken.sent_ns[0])
        end.append(media["playback_end_ns"] - (logged.end_ns or 0))
        ours, theirs = ([gap for gap in gaps if gap[1] >= 100 * MS] for gaps in (media["gaps"], logged.gaps))
        assert len(ours) == len(theirs) == 2
        assert all(length >= 200 * MS for _, length in theirs), "an earlier delay takes from a later gap"
        places += [own[0] - other[0] for own, other in zip(ours, theirs, strict=True)]
        lengths += [own[1] - other[1] for own, other in zip(ours, theirs, strict=True)]
    assert max(map(median_ms, (first, end, places, lengths))) <= 10


async def test_signing_is_timed_as_the_service_says_and_a_sample_is_kept(tmp_path: Path) -> None:
    speech(tmp_path, 2.0)
    pairs = await run(tmp_path, "speech-to-sign", "--set", "record.media=2")
    check(pairs, "sign")
    frames = []
    for record, entry in pairs:
        media = record["utterances"][0]["channels"]["sign"]["media"]
        frames.append(media["first_frame_ns"] - entry.media["sign"].sent_ns[0])
        assert media["frames"] == 50, "25 pictures a second for the length of the source"
        assert media["broken"] == 0
    assert median_ms(frames) <= 10
    kept = sorted(path.name for path in (tmp_path / "bundle" / "media").iterdir())
    assert kept == ["w1-s0.sign.mjpeg", "w1-s1.sign.mjpeg"]
    assert Bundle(tmp_path / "bundle").damage() == []
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    assert summary["headline"]["metric"] == "playback_end_from_source_end"
    assert summary["media"]["sign"]["gaps"]["utterances"] == 6
    assert summary["response"]["sign"]["first_frame_from_media"]["n"] == 6
    assert "first_output_from_media" not in summary["response"]["sign"]


async def test_speech_is_timed_as_the_service_says_and_a_sample_can_be_heard_and_scored(tmp_path: Path) -> None:
    speech(tmp_path, 2.0)
    clip = json.loads((tmp_path / "manifest.jsonl").read_text()) | {"text": "das rote boot"}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(clip) + "\n")
    slo = ("--set", "slo.first_sound_from_media.p95_s=5", "--set", "record.media=1")
    pairs = await run(tmp_path, "speech-to-speech", *slo)
    check(pairs, "speech")
    sounds = [
        record["utterances"][0]["channels"]["speech"]["media"]["first_sound_ns"]
        - entry.media["speech"].sent_ns[entry.media["speech"].sound or 0]
        for record, entry in pairs
    ]
    assert median_ms(sounds) <= 10
    assert all(entry.media["speech"].sound == 5 for _, entry in pairs), "after 0.2 s of silence"
    path = tmp_path / "bundle" / "media" / "w1-s0.speech.wav"
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 1, 2)
        samples = np.frombuffer(file.readframes(1 << 24), "<i2")
    assert len(samples) == 48000
    assert not samples[: 4800 - 1].any()
    command = """python3 -c "import sys\nfor p in sys.stdin: print('{\\"text\\": \\"das rote boot\\"}', flush=True)" """
    code, out, err = typed("score", "bundle", "--transcribe", command, cwd=tmp_path)
    assert code == 0, err
    scored = json.loads(out)["channels"]["speech"]
    assert (scored["n"], scored["wer"]["value"], scored["unit"]) == (1, 0.0, "word")
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    assert [item["met"] for item in summary["slo"]] == [True, True]


AVATAR = """
name: avatar
transport: {kind: websocket}
channels: {sign: {stage: media, medium: video}}
media: {kind: audio, chunk_ms: 200}
end: [{send_text: eos}, {done: {on: [close], closes: target}}]
receive:
  binary: {channel: sign, format: container}
  rules: [{has: error, outcome: fatal}]
"""
SLICE = 400


@contextlib.asynccontextmanager
async def filming(data: bytes, sent: dict[str, list[int]]) -> AsyncIterator[str]:
    """A service that answers the end mark with a container, slice by slice, and closes; when each slice left."""

    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        times = sent.setdefault(request.headers.get("x-loadbench-session", ""), [])
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                for at in range(0, len(data), SLICE):
                    times.append(time.monotonic_ns())
                    await socket.send_bytes(data[at : at + SLICE])
                    await asyncio.sleep(0.02)
                await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def test_containers_of_the_sampled_sessions_are_opened_and_those_of_others_only_counted(tmp_path: Path) -> None:
    speech(tmp_path, 0.5)
    (tmp_path / "avatar.yaml").write_text(AVATAR)
    data, sent = video("webm", frames=50), dict[str, list[int]]()
    async with filming(data, sent) as url:
        code, out, err = await loadbench(
            *("run", "--url", url, "--profile", "avatar.yaml", "--corpus", ".", "--users", "1", "--sessions", "3"),
            *("--set", "record.media=2", "--set", "canary.users=0", "--out", "bundle", "--quiet"),
            cwd=tmp_path,
        )
    assert code in (0, 3), out + err
    found = sessions(tmp_path / "bundle")
    media = [record["utterances"][0]["channels"]["sign"]["media"] for record in found]
    assert [part["decoded"] for part in media] == [True, True, False]
    assert [part["bytes"] for part in media] == [len(data)] * 3
    assert [part["frames"] for part in media] == [50, 50, None]
    for record, part in zip(found[:2], media, strict=False):
        first, last = (part[name] - sent[record["id"]][at] for name, at in (("first_byte_ns", 0), ("last_byte_ns", -1)))
        assert sent[record["id"]][0] < part["first_frame_ns"] < sent[record["id"]][-1], "with its own slice"
        assert max(first, last) >= 0
    summary = json.loads((tmp_path / "bundle" / "summary.json").read_text())
    assert summary["response"]["sign"]["first_frame_from_media"]["n"] == 2
    assert summary["response"]["sign"]["first_frame_from_media"]["left_out"] == 1
    assert summary["response"]["sign"]["first_byte_from_media"]["n"] == 3
    assert (summary["media"]["sign"]["n"], summary["media"]["sign"]["opened"]) == (3, 2)
    assert (tmp_path / "bundle" / "media" / "w1-s0.sign.webm").read_bytes() == data
