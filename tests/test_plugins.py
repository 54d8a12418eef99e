"""Plug-ins of the profile language: an installed package of one of each kind, and what becomes of those that fail."""

import gzip
import hashlib
import hmac
import json
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve

from loadbench import plugins
from loadbench.engine.address import Addresses
from loadbench.engine.pipe import Start, Workload
from loadbench.media.plan import ChunkPlan
from loadbench.plugins import NoPluginError
from loadbench.profiles.examine import examine
from loadbench.session import load
from loadbench.session.plugin import Credentials, Frame, Framing, PluginError, Plugins
from loadbench.session.profile import Profile
from loadbench.session.script import compile_profile
from loadbench.simulator.speak import Speaker, SpeakerError
from loadbench.transports import memory
from tests.engine import stage
from tests.installing import installed
from tests.session.scripted import WHOLE, Play, profile
from tests.test_main_job import sessions, tone
from tests.test_plugin_transport import loadbench

HERE = Path(__file__).parent
EXAMPLE = HERE / "plugged"
KEY = "k3y-of-the-service"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example was installed."""
    return installed(EXAMPLE, tmp_path_factory.mktemp("site"))


@pytest.fixture
def present(site: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """The example's profile, with its package at hand."""
    monkeypatch.syspath_prepend(str(site))
    return load.load_profile(str(EXAMPLE / "plugged.yaml"))


class Service:
    """Speaks in the shape of Volcengine; its guesses go from "the" to "the red boat leaves"."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.numbers: list[int] = []
        self.config: dict[str, Any] = {}
        self.samples = b""

    async def talk(self, connection: ServerConnection) -> None:
        self.requests.append(connection.request)
        async for data in connection:
            assert isinstance(data, bytes)
            kind, number = data[1] >> 4, struct.unpack(">i", data[4:8])[0]
            payload = gzip.decompress(data[12:])
            self.numbers.append(number)
            if kind == 1:
                self.config = json.loads(payload)
                await connection.send(said({"ready": True}))
                continue
            self.samples += payload
            words = ["the", "red", "boat", "leaves"][: 1 + len(self.numbers) // 3]
            await connection.send(said({"result": {"text": " ".join(words)}}, last=number < 0))


def said(value: Any, *, last: bool = False) -> bytes:
    payload = gzip.compress(json.dumps(value).encode())
    return bytes([0x11, 0x90 | (3 if last else 1), 0x11, 0]) + struct.pack(">iI", 1, len(payload)) + payload


@pytest.mark.realtime
async def test_a_service_is_spoken_to_through_plug_ins_of_each_kind(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_KEY", KEY)
    tone(tmp_path, 1.05)
    service = Service()
    async with serve(service.talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        code, out = await loadbench(
            *("run", "--profile", str(EXAMPLE / "plugged.yaml"), "--corpus", ".", "--quiet", "--out", "bundle"),
            *("--set", "metrics.enabled=false", "--set", "target.secrets.key=env:SERVICE_KEY"),
            *(
                "--set",
                f"media.cache={tmp_path / 'cache'}",
                "--sessions",
                "2",
                "--url",
                f"ws://127.0.0.1:{port}/v3/asr",
            ),
            cwd=tmp_path,
            site=site,
        )
    assert code in (0, 3), out
    first, second = sessions(tmp_path / "bundle")
    assert (first["outcome"], second["outcome"]) == ("ok", "ok")

    headers = service.requests[0].headers
    message = f"/v3/asr {headers['X-Time']}".encode()
    assert headers["X-Signature"] == hmac.new(KEY.encode(), message, hashlib.sha256).hexdigest()
    assert headers["X-App"] == "demo"

    assert service.numbers == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12] * 2
    assert service.config["audio"] == {"format": "pcm", "rate": 8000, "bits": 8, "channel": 1}
    assert len(service.samples) == pytest.approx(2 * 8400, abs=8)
    heard = np.frombuffer(service.samples[:8000], np.uint8).astype(float) - 128
    assert np.argmax(np.abs(np.fft.rfft(heard))) == 440  # a second of the tone, whose bins are whole hertz

    segments = first["utterances"][0]["channels"]["transcript"]["segments"]
    assert [segment["text"] for segment in segments] == ["the", "red", "boat", "leaves"]
    finals = [segment["final_ns"] for segment in segments]
    assert finals == sorted(finals)
    assert finals[0] < finals[2]

    header = json.loads((tmp_path / "bundle/run.json").read_text())
    assert header["profile"]["plugins"] == [
        *("auth stamped", "codec volcengine", "text model agreement", "media encoder bytes"),
    ]
    assert header["effective"]["canary"]["users"] == 0
    assert "through plug-ins: codec volcengine" in header["effective"]["canary"]["why"]
    for file in (tmp_path / "bundle").rglob("*"):
        if file.is_file():
            assert headers["X-Signature"].encode() not in file.read_bytes(), file


def test_the_encoded_media_is_found_again_by_name_version_and_options(present: Profile, tmp_path: Path) -> None:
    from loadbench.corpus import read
    from loadbench.media.prepare import prepare

    tone(tmp_path, 0.25)
    clips = read.clips(tmp_path)

    def encoded(how: Profile, version: str = "1") -> Path:
        found = plugins.encoders(how)
        for encoder in found.values():
            encoder.version = version
        form = load.media_form(how.media, found)
        return prepare(clips, form, tmp_path / "cache", encoders=load.form_encoders(how, found))["tone"]

    other = how_with(present, media={"encoder": {"kind": "bytes", "options": {"chunk_ms": "50"}}})
    places = [encoded(present), encoded(present), encoded(present, "2"), encoded(other)]
    assert len(set(places)) == 3
    assert places[0] == places[1]
    plans = [ChunkPlan.load(place) for place in places]
    assert [len(plan) for plan in plans] == [3, 3, 3, 5]
    assert plans[0].due_ns.tolist()[:2] == [100_000_000, 200_000_000]
    assert plans[0].duration_ns == plans[0].due_ns[-1] == len(plans[0].wire(2)) * 125_000 + 200_000_000


def how_with(how: Profile, **parts: dict[str, Any]) -> Profile:
    tree = how.model_dump(exclude_unset=True)
    for name, part in parts.items():
        tree[name] = tree[name] | part
    return Profile.model_validate(tree)


# What is missing or broken.


def test_check_names_the_plug_ins_and_a_simulator_will_not_have_them(present: Profile) -> None:
    told = examine(str(EXAMPLE / "plugged.yaml"), None).text()
    assert "speaks websocket, with auth stamped, codec volcengine, text model agreement, media encoder bytes" in told
    with pytest.raises(SpeakerError, match="does not speak through plug-ins: codec volcengine, text model agreement"):
        Speaker(present)


@pytest.mark.realtime
async def test_plug_ins_that_are_not_there_are_asked_for_by_name_before_anything_starts(tmp_path: Path) -> None:
    tone(tmp_path, 0.2)
    words = ("--url", "ws://127.0.0.1:1", "--profile", str(EXAMPLE / "plugged.yaml"), "--corpus", ".")
    code, out = await loadbench("run", *words, "--set", "target.secrets.key=file:manifest.jsonl", cwd=tmp_path)
    assert code == 2
    missing = [("auth.kind", "auth", "stamped"), ("transport.codec.kind", "codec", "volcengine")]
    missing += [("receive.rules[1].text.plugin.kind", "text model", "agreement")]
    for key, what, name in [*missing, ("media.encoder.kind", "media encoder", "bytes")]:
        assert f"{key}: no {what} is called {name!r}; plug-ins installed: none" in out
    assert "Traceback" not in out
    code, checked = await loadbench("profile", "check", str(EXAMPLE / "plugged.yaml"), cwd=tmp_path)
    assert code == 2
    assert "transport.codec.kind: no codec is called 'volcengine'" in checked


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such_library", "(broken:make) cannot be loaded: ModuleNotFoundError: No module named 'no_such"),
        ("raise SystemExit(7)", "(broken:make) cannot be loaded: SystemExit: 7"),
        ("make = 3", "(broken:make) is no codec: it lacks __call__"),
        ("def make(options): return object()", "makes is no codec: it lacks encode, decoder"),
        ("def make(options): return options['level']", "does not take its options: KeyError: 'level'"),
    ],
)
def test_a_plug_in_that_is_broken_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
) -> None:
    info = tmp_path / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[loadbench.codecs]\nodd = broken:make\n")
    (tmp_path / "broken.py").write_text(f"{code}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "broken", raising=False)
    how = profile(transport={"kind": "websocket", "codec": {"kind": "odd"}})
    with pytest.raises(NoPluginError) as raised:
        plugins.load(how)
    (problem,) = raised.value.problems
    assert problem.startswith("transport.codec")
    assert says in problem
    assert "\n" not in problem


# What fails in a session is data of that session.


def connecting(auth: Callable[[Any], Credentials]) -> Addresses:
    how = profile(auth={"kind": "mine", "options": {"who": "{session.id}"}}, transport={"kind": "websocket"})
    workload = Workload(model="closed")
    start = Start(
        run_id="r", worker="w", seed=1, profile={}, url="ws://h/?a=1", clips=[], workload=workload, secrets={"key": KEY}
    )
    return Addresses(start, how, lambda: 1_700_000_000_000_000_000, auth)


def test_credentials_are_added_and_their_values_are_hidden_unless_they_are_public() -> None:
    seen: list[Any] = []

    def auth(given: Any) -> Credentials:
        seen.append(given)
        return Credentials({"X-Loadbench-Session": "other", "When": "now"}, {"sig": "a b"}, public=["When"])

    addresses = connecting(auth)
    address = addresses.of(addresses.fields("s1", {}))
    assert address.url == "ws://h/?a=1&sig=a%20b"
    assert address.headers == (("X-Loadbench-Session", "other"), ("When", "now"))
    assert address.hidden == ("other", "a b")
    (given,) = seen
    assert (given.secrets, given.options, given.unix_ns) == ({"key": KEY}, {"who": "s1"}, 1_700_000_000_000_000_000)
    assert given.headers == (("x-loadbench-session", "s1"),)


@pytest.mark.parametrize(
    ("auth", "says"),
    [
        (lambda _: 1 / 0, "the auth mine failed: ZeroDivisionError: division by zero"),
        (lambda _: None, "the auth mine failed: AttributeError"),
        (lambda _: sys.exit(7), "the auth mine failed: SystemExit: 7"),
        (lambda given: {}[given.secrets["key"]], r"the auth mine failed: KeyError: '\*\*\*'$"),
        (lambda _: Credentials({"a": 3}), "the auth mine failed: TypeError: it gave names or values that are no texts"),  # type: ignore[dict-item]
    ],
)
def test_credentials_that_fail_are_no_exception_of_another_kind_and_no_secret_stands_in_it(
    auth: Callable[[Any], Any], says: str
) -> None:
    addresses = connecting(auth)
    with pytest.raises(PluginError, match=says):
        addresses.of(addresses.fields("s1", {}))


class Odd:
    """A codec whose decoder does what it is made for."""

    def __init__(self, decode: Callable[[Any], Any]) -> None:
        self._decode = decode

    def encode(self, frame: Frame) -> bytes | str:
        return f"{frame.role} {frame.number}" if frame.kind == "text" else frame.payload

    def decoder(self) -> Callable[[Any], Any]:
        return self._decode


def raising(error: Exception) -> Callable[[Any], Iterator[str]]:
    def decode(_: Any) -> Iterator[str]:
        raise error

    return decode


@pytest.mark.parametrize(
    ("decode", "outcome", "says"),
    [
        (lambda data: [data, '{"done": 1}'][: 1 + ("final" in data)], "ok", ""),
        (lambda data: ["{", data], "parse_error", "not JSON"),
        (raising(ValueError("no header")), "parse_error", "the codec odd cannot read it: no header"),
        (raising(struct.error("short")), "profile_error", "the codec odd failed: error: short"),
        (lambda data: [3], "profile_error", "the codec odd gave int, and neither bytes nor a text"),
        (lambda data: None, "profile_error", "the codec odd failed: TypeError"),
    ],
)
def test_what_a_codec_makes_of_messages_is_read_by_the_rules_and_its_failure_ends_the_session(
    decode: Callable[[Any], Any], outcome: str, says: str
) -> None:
    how = profile(transport={"kind": "websocket", "codec": {"kind": "odd"}})
    compiled = compile_profile(how, Plugins(framing=Framing("odd", Odd(decode))))
    record = Play(how, events=[(1.0, {"partial": "red"}), (3.2, {"final": "red"})], compiled=compiled).run().record
    assert record.outcome == outcome
    assert says in record.cause


@pytest.mark.looptime
async def test_an_auth_or_a_codec_that_fails_costs_the_session_that_met_it_and_a_chunk_of_ones_own_is_framed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first session is whole, the second gets no credentials, the third cannot say its end mark."""
    calls: list[int] = []

    def auth(given: Any) -> Credentials:
        calls.append(1)
        if len(calls) == 3:  # the first call is the check before the run
            raise RuntimeError(f"no credentials for {given.secrets['key']}")
        return Credentials()

    class Numbered(Odd):
        def encode(self, frame: Frame) -> bytes | str:
            if frame.role == "end" and len(calls) == 4:
                raise OverflowError("too many")
            return f"{frame.role} {frame.number} {frame.last} {frame.payload.decode()}"

    found = Plugins(auth, Framing("odd", Numbered(lambda data: [data])))
    monkeypatch.setattr(plugins, "load", lambda _: found)
    media = {"kind": "audio", "chunk_ms": 200, "frame": "text"}
    how = profile(
        auth={"kind": "mine"},
        transport={"kind": "websocket", "codec": {"kind": "odd"}},
        media=media | {"message": {"id": "{session.id}", "data": "{media.base64}"}},
    )

    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            if str(message).startswith("end"):
                peer.send('{"final": "red"}')
                peer.send('{"done": 1}')

    work = stage.workload(model="closed", users=1, sessions=3)
    heard, served = await stage.play(tmp_path, script, work, profile=how, secrets={"key": KEY}, media_ms=500)
    first, second, third = (heard.records[f"w-s{number}"] for number in range(3))
    said = [str(message) for _, message in served.peers[0].arrivals]
    assert [text.partition(" {")[0] for text in said] == [
        *("media 0 False", "media 1 False", "media 2 True", "end 3 False"),
    ]
    assert said[1].endswith('{"id":"w-s0","data":"MDAwMDE="}')
    assert (first.outcome, second.outcome, third.outcome) == ("ok", "profile_error", "profile_error")
    assert (second.side, second.cause) == ("policy", "the auth mine failed: RuntimeError: no credentials for ***")
    assert third.cause == "the codec odd failed: OverflowError: too many"


def test_a_text_model_that_fails_ends_the_session_as_a_rule_that_does_not_fit() -> None:
    rule = {"has": "final", "text": {"model": "plugin", "plugin": {"kind": "mine"}, "text": "final"}}
    how = profile(receive={"rules": [rule, {"has": "done", "event": "done"}]})
    key = how.receive.rules[0].text.plugin.key  # type: ignore[union-attr]
    for model, says in (
        (lambda *_: 1 / 0, "ZeroDivisionError"),
        (lambda b, r, i, t: r.string("key", i), "gives nothing"),
    ):
        compiled = compile_profile(how, Plugins(texts={key: model}))  # type: ignore[dict-item]
        record = Play(how, events=WHOLE, compiled=compiled).run().record
        assert record.outcome == "profile_error"
        assert says in record.cause


def test_the_page_about_plug_ins_shows_the_example_that_is_tested() -> None:
    page = (HERE.parent / "docs" / "plugins.md").read_text()
    for name in ("loadbench_plugged.py", "pyproject.toml", "plugged.yaml"):
        assert (EXAMPLE / name).read_text().strip() in page, name
