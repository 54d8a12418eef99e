"""Trying profiles: who is contacted, how often, with what, and what comes of it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from loadbench.plan import PlanError
from loadbench.profiles import attempt
from loadbench.profiles.verdict import Verdict
from loadbench.session import load
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running
from tests.profiles.sketch import written
from tests.test_main_job import loadbench

SIMULATED = ["vosk", "sign-frames", "sign-frames-binary", "http-stream"]
HOSTED = """\
name: hosted
transport: {kind: websocket, url: "wss://api.example.com/v1/listen"}
media: {kind: audio, chunk_ms: 100}
receive: {rules: [{has: text, text: {model: unkeyed, text: text}}]}
"""


@contextlib.asynccontextmanager
async def stranger(answer: Any) -> AsyncIterator[tuple[str, list[list[Any]]]]:
    """A service that speaks no profile, with `answer` to each message; what it heard, and the close codes."""
    heard: list[list[Any]] = []
    standing = 0

    async def handle(link: ServerConnection) -> None:
        nonlocal standing
        standing += 1
        assert standing == 1, "two connections at once"
        mine: list[Any] = []
        heard.append(mine)
        async for message in link:
            mine.append(message)
            reply = answer(message)
            if reply is not None:
                await link.send(reply)
        mine.append(link.close_code)
        standing -= 1

    async with serve(handle, "127.0.0.1", 0, ping_interval=None) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """All services are tried at once, for most of the time is waiting."""

    async def one(name: str) -> tuple[int, str, str]:
        async with running(Options(profile=name)) as url:
            words = ("profile", "try", url, "--json")
            return await loadbench(*words, cwd=tmp_path_factory.mktemp(name), patience_s=200)

    async def all_of_them() -> list[tuple[int, str, str]]:
        return await asyncio.gather(*map(one, SIMULATED))

    return dict(zip(SIMULATED, asyncio.run(all_of_them()), strict=True))


@pytest.mark.slow
@pytest.mark.realtime
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", SIMULATED)
def test_the_right_profile_is_named_for_each_simulated_service(
    name: str, tried: dict[str, tuple[int, str, str]]
) -> None:
    code, out, err = tried[name]
    found = json.loads(out)
    assert (code, found["fits"]) == (0, name), out + err
    assert "at most 2 s of media" in err, "the bound is told before"
    assert f"{name}: connecting" in err, "progress is told"
    fits = next(each for each in found["tried"] if each["fit"] == "fits")
    assert fits["texts"] > 0
    assert fits["unread"] == 0


@pytest.mark.realtime
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda message: message, id="an echo"),
        pytest.param(lambda _: '{"error": "unknown message"}', id="errors only"),
        pytest.param(lambda _: '{"temperature": 21.5}', id="something else"),
    ],
)
async def test_a_service_that_speaks_none_is_told_so_and_left_in_peace(answer: Any) -> None:
    async with stranger(answer) as (url, heard):
        asked = attempt.Asked(url=url, profiles=("vosk", "sign-frames-binary"))
        code = await asyncio.to_thread(attempt.door, asked, as_json=False, say=lambda _: None)
    assert code == 1
    assert len(heard) == 2, "a connection for each, and none again"
    assert [mine[-1] for mine in heard] == [1000, 1000], "each was closed politely"
    media = [sum(len(each) for each in mine if isinstance(each, bytes)) for mine in heard]
    assert media[0] <= 2 * 32_000, "two seconds of 16-bit samples at most"


@pytest.mark.realtime
async def test_where_nobody_listens_one_attempt_is_enough(tmp_path: Path) -> None:
    code, out, _ = await loadbench("profile", "try", "ws://127.0.0.1:9", cwd=tmp_path)
    assert code == 4, out
    assert "nobody can be reached there" in out
    assert out.splitlines()[-1] == "none"


@pytest.mark.realtime
async def test_of_two_that_send_the_same_the_one_that_reads_more_is_named_without_a_second_connection(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first one fits as well: it misses the times of the words, which the other one reads."""
    full, _ = load.source("vosk")
    poorer = full.replace(', start: "result[0].start", end: "result[-1].end", unit: s', "").replace(
        "name: vosk", "name: poorer"
    )
    assert poorer.count("result") == 0
    (tmp_path / "poorer.yaml").write_text(poorer)
    replies = iter([{"partial": "turn"}, {"partial": "turn left"}])

    def answer(message: Any) -> str | None:
        if message == '{"eof" : 1}':
            return json.dumps({"text": "turn left", "result": [{"start": 0.1, "end": 0.9, "word": "turn"}]})
        return json.dumps(next(replies, {"partial": "turn left"})) if isinstance(message, bytes) else None

    async with closing(answer) as (url, count):
        asked = attempt.Asked(url=url, profiles=(str(tmp_path / "poorer.yaml"), "vosk"))
        code = await asyncio.to_thread(attempt.door, asked, as_json=True, say=lambda _: None)
    found = json.loads(capsys.readouterr().out)
    assert (code, found["fits"], count()) == (0, "vosk", 1)
    assert {each["profile"]: each["fit"] for each in found["tried"]} == {"vosk": "fits", "poorer": "may fit"}


@contextlib.asynccontextmanager
async def closing(answer: Any) -> AsyncIterator[tuple[str, Any]]:
    """A service that closes after its answer to the end mark; how many connections it had."""
    count = 0

    async def handle(link: ServerConnection) -> None:
        nonlocal count
        count += 1
        async for message in link:
            reply = answer(message)
            if reply is not None:
                await link.send(reply)
            if message == '{"eof" : 1}':
                await link.close()

    async with serve(handle, "127.0.0.1", 0, ping_interval=None) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", lambda: count


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("ws://127.0.0.1:1", True),
        ("ws://localhost", True),
        ("ws://[::1]:1", True),
        ("ws://192.168.1.5", True),
        ("ws://10.0.0.1/x", True),
        ("ws://8.8.8.8", False),
        ("wss://api.example.com", False),  # a name is not looked up, so nobody knows
    ],
)
def test_what_is_near_needs_no_confirmation(url: str, near: bool) -> None:
    assert attempt.is_near(url) is near


def test_a_far_address_is_not_contacted_unconfirmed_and_what_would_be_sent_is_said() -> None:
    said: list[str] = []
    asked = attempt.Asked(url="ws://api.example.com/?token=tok-FAKE-1", headers={"Authorization": "Bearer tok-FAKE-2"})
    with pytest.raises(PlanError, match="add --yes"):
        attempt.door(asked, as_json=False, say=said.append)
    text = "\n".join(said)
    assert "ws://api.example.com/?token=***" in text
    assert 'says {"config": {"sample_rate": 16000, "words": 1}}, then audio' in text
    assert "headers with each: Authorization" in text
    assert "FAKE" not in text


def test_a_hosted_service_s_profile_is_tried_at_its_host_or_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(written(tmp_path, HOSTED))
    monkeypatch.setattr(load, "shipped", lambda: {"hosted": path})

    def names(**given: Any) -> list[str]:
        candidates, _ = attempt.chosen(attempt.Asked(**given), tmp_path)
        return [candidate.clear for candidate in candidates]

    assert names(url="ws://127.0.0.1:1") == []
    assert names(url="wss://api.example.com") == ["wss://api.example.com/v1/listen"], "and its own path is used"
    assert names(url="wss://api.example.com/v2") == ["wss://api.example.com/v2"]
    assert names(url="ws://127.0.0.1:1", profiles=("hosted",)) == ["ws://127.0.0.1:1/v1/listen"]


def test_a_profile_that_needs_a_secret_is_passed_over_until_it_is_given(tmp_path: Path) -> None:
    profile = HOSTED.replace("/v1/listen", "").replace(
        "{kind: web", "{headers: {Authorization: '{secret.key}'}, kind: web"
    )
    path = written(tmp_path, profile)
    asked = attempt.Asked(url="ws://127.0.0.1:1", profiles=(path,))
    candidates, passed_over = attempt.chosen(asked, tmp_path)
    assert candidates == []
    assert "needs the secret key" in passed_over[0].why
    asked = attempt.Asked(url="ws://127.0.0.1:1", profiles=(path,), secrets={"key": "env:KEY", "other": "env:OTHER"})
    (candidate,), _ = attempt.chosen(asked, tmp_path)
    assert candidate.plan.target.secrets == {"key": "env:KEY"}, "and no other secret goes there"


def test_a_profile_of_another_scheme_is_not_tried_and_refused_where_asked_for(tmp_path: Path) -> None:
    candidates, _ = attempt.chosen(attempt.Asked(url="ws://127.0.0.1:1"), tmp_path)
    assert "http-stream" not in {candidate.profile.name for candidate in candidates}
    with pytest.raises(PlanError, match="speaks http:// or https://, not ws://"):
        attempt.chosen(attempt.Asked(url="ws://127.0.0.1:1", profiles=("http-stream",)), tmp_path)


@pytest.mark.parametrize("url", ["exec:./program", "ftp://127.0.0.1", "127.0.0.1:2700", "ws://", "ws://127.0.0.1:x"])
def test_an_address_that_no_profile_could_be_tried_at_is_the_user_s_trouble(tmp_path: Path, url: str) -> None:
    with pytest.raises(PlanError, match="the address must be http://, https://, ws://, wss:// and a host"):
        attempt.chosen(attempt.Asked(url=url), tmp_path)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, float("nan"), float("inf")])
def test_all_that_is_wrong_in_a_question_is_told_at_once(tmp_path: Path, seconds: float) -> None:
    asked = attempt.Asked(url="ws://127.0.0.1:1", profiles=("vosk", "none", "http-stream"), overall_s=seconds)
    with pytest.raises(PlanError) as error:
        attempt.chosen(asked, tmp_path)
    bound, unknown, unfit = error.value.problems
    assert bound == "--seconds must be above 0 and at most 1e+07"
    assert unknown.startswith("no profile is called none")
    assert unfit == "profile http-stream speaks http:// or https://, not ws://"


def test_what_a_service_says_steers_no_terminal() -> None:
    found = Verdict(profile="vosk", fit="no", why="refused: \x1b[31mred\nfits: vosk", handshake="\x07")
    assert found.text(4).splitlines() == [
        "vosk  no       refused: ‹U+001B›[31mred‹U+000A›fits: vosk",
        "               ‹U+0007›",
    ]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("wss://api.example.com:443/v1?x=1", "api.example.com"),
        ("wss://{param.region}.example.com/v1", "*.example.com"),  # whichever region the user names
        ("ws://{host}:{port}/asr", ""),
        ("ws://127.0.0.1:2700", ""),  # anyone may run it
        ("{param.own}", ""),
    ],
)
def test_a_profile_is_a_hosted_service_s_by_its_own_address(tmp_path: Path, url: str, host: str) -> None:
    text = HOSTED.replace("wss://api.example.com/v1/listen", url)
    text = text.replace("media:", "params: {region: eu, own: 'ws://127.0.0.1'}\nmedia:")
    assert attempt._host(load.load_text(text, "sketch.yaml")) == host


@pytest.mark.realtime
async def test_a_profile_that_sends_what_was_answered_in_vain_is_not_sent_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, _ = load.source("vosk")
    (tmp_path / "twin.yaml").write_text(text.replace("name: vosk", "name: twin"))
    async with stranger(lambda _: '{"temperature": 21.5}') as (url, heard):
        asked = attempt.Asked(url=url, profiles=("vosk", str(tmp_path / "twin.yaml")))
        code = await asyncio.to_thread(attempt.door, asked, as_json=True, say=lambda _: None)
    found = {each["profile"]: each for each in json.loads(capsys.readouterr().out)["tried"]}
    assert (code, len(heard)) == (1, 1)
    assert found["twin"]["why"] == "sends the same as vosk, and cannot read what came back; not contacted"
