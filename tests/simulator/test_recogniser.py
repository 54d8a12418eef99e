import array
import asyncio
import json
import sys
import time
import wave
from pathlib import Path

import aiohttp
import pytest

from loadbench.simulator.log import read
from loadbench.simulator.options import Options, OptionsError
from loadbench.simulator.recogniser import samples
from loadbench.simulator.serve import running


def test_samples_run_from_minus_one_to_one() -> None:
    assert samples(array.array("h", [0, 16384, -32768]).tobytes()) == [0.0, 0.5, -1.0]


async def test_a_profile_that_sends_no_speech_is_refused() -> None:
    with pytest.raises(OptionsError, match="hears s16le audio, and sign-frames sends frames"):
        async with running(Options(profile="sign-frames", engine="moonshine")):
            pass


async def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moonshine_voice", None)
    with pytest.raises(OptionsError, match=r'pip install "loadbench\[demo\]"'):
        async with running(Options(engine="moonshine")):
            pass


@pytest.mark.realtime
@pytest.mark.parametrize("profile", ["vosk", "http-stream"])
async def test_a_real_recogniser_hears_a_known_passage(tmp_path: Path, profile: str) -> None:
    moonshine = pytest.importorskip("moonshine_voice")
    with wave.open(str(Path(moonshine.__file__).parent / "assets" / "beckett.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        speech = file.readframes(16000 * 2)
    log = tmp_path / "log.jsonl"
    async with running(Options(profile=profile, engine="moonshine", acks=False, log=log)) as url:
        heard = await (_over_websocket(url, speech) if profile == "vosk" else _over_http(url, speech))
    partials = [message["partial"] for message in heard if "partial" in message]
    finals = [message.get("text") or message.get("final") for message in heard if "partial" not in message]
    assert partials
    assert "ever tried" in " ".join(finals).lower()
    (entry,) = read(log)
    assert (entry.outcome, entry.media_bytes, entry.violations) == ("ok", len(speech), [])
    assert entry.chunks_ns[0] < entry.first_sent_ns <= entry.final_sent_ns


def _pieces(speech: bytes) -> list[bytes]:
    return [speech[at : at + 6400] for at in range(0, len(speech), 6400)]


async def _over_websocket(url: str, speech: bytes) -> list[dict[str, str]]:
    async with aiohttp.ClientSession() as client, client.ws_connect(url) as link:
        await link.send_str('{"config":{"sample_rate":16000,"words":1}}')
        begun = time.monotonic()
        for at, piece in enumerate(_pieces(speech)):
            await link.send_bytes(piece)
            await asyncio.sleep(max(0, begun + 0.2 * (at + 1) - time.monotonic()))
        await link.send_str('{"eof" : 1}')
        return [message.json() async for message in link]


async def _over_http(url: str, speech: bytes) -> list[dict[str, str]]:
    async def body():
        for piece in _pieces(speech):
            yield piece
            await asyncio.sleep(0.2)

    async with aiohttp.ClientSession() as client, client.post(url, data=body()) as answer:
        return [json.loads(line) async for line in answer.content]
