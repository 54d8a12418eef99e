"""Sessions that ask over HTTP first, in virtual time: what is asked, what becomes of the answer, what stays hidden."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadbench.engine.address import Addresses, MissingFieldError
from loadbench.engine.canary import elsewhere
from loadbench.results.record import Message, Prelude, SessionRecord
from loadbench.session.load import load_text
from loadbench.session.wire import Answer, Ask, Cause
from loadbench.transports import memory
from loadbench.transports.contract import Address, AddressError, Clock, Tls
from tests.engine.stage import MS, Heard, S, answering, clip, plan, play, workload

pytestmark = pytest.mark.looptime
ONE = workload(model="closed", users=1, sessions=1)
LIVE = """
schema_version: 1
name: live
params: {api: "https://api.example"}
signed:
  digest: {md5: "{session.id}"}
  signa: {hmac: sha1, key: "{secret.key}", message: "{signed.digest}"}
prelude:
  - request: "POST {param.api}/v2/live?key={secret.key}"
    headers: {x-signature: "{signed.signa}"}
    json: {language: "{clip.source_lang}"}
    capture: {url: url, token: token}
transport:
  kind: websocket
  url: "{captured.url}"
  query: [[token, "{captured.token}"]]
  headers: {Authorization: "Bearer {secret.key}"}
open: [{send_text: "{host} {captured.token}"}]
media: {kind: audio, chunk_ms: 200}
end: [{send_text: '{"eof" : 1}'}, {done: {on: [close], closes: target}}]
receive: {rules: [{has: text, text: {model: unkeyed, text: text, final: true}}]}
"""
SECRETS = {"key": "s3cret-key"}


@dataclass
class Desk:
    """Answers requests after half a second; keeps them."""

    reply: Callable[[int], Answer | Cause]
    asks: list[Ask] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    cancelled: int = 0
    takes_s: float = 0.5

    def check(self, request: Ask, tls: Tls) -> None:
        self.checked.append(request.url)
        if " " in request.url:
            raise AddressError(["prelude: the address names no host"])

    async def ask(self, request: Ask, tls: Tls, clock: Clock) -> Answer | Cause:
        self.asks.append(request)
        try:
            await asyncio.sleep(self.takes_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.reply(clock())


def granting(token: str = "tok-1234567", **more: Any) -> Desk:
    body = json.dumps({"url": "memory://asr/live", "token": token}).encode()
    return Desk(lambda at: Answer(at, 201, body), **more)


async def perform(folder: Path, desk: Desk, script: Any = None, **more: Any) -> tuple[Heard, memory.Served]:
    given = {"secrets": SECRETS, "url": "", "profile": load_text(LIVE, "live.yaml")} | more
    return await play(folder, script or answering(0.3), ONE, asker=desk, **given)


async def test_a_session_asks_first_and_dials_where_it_was_told_to(tmp_path: Path) -> None:
    desk = granting()
    heard, served = await perform(tmp_path, desk)
    record = heard.records["w-s0"]
    assert record.outcome == "ok", record.cause
    assert [ask.url for ask in desk.asks] == ["https://api.example/v2/live?key=s3cret-key"]
    assert desk.asks[0].body == b'{"language":"en"}'
    peer = served.peers[0]
    assert peer.address.url == "memory://asr/live?token=tok-1234567"
    assert peer.arrivals[0][1] == "asr tok-1234567"
    dialled_ns = record.connections[0].dialled_ns
    assert dialled_ns - record.begun_ns == 500 * MS
    assert record.prelude == [
        Prelude(name="POST https://api.example/v2/live", began_ns=record.begun_ns, ended_ns=dialled_ns, status=201)
    ]
    assert record.utterances[0].media_zero_ns is not None
    assert record.utterances[0].media_zero_ns >= dialled_ns


async def test_what_it_was_given_and_what_it_signed_stay_hidden(tmp_path: Path) -> None:
    desk = granting()

    async def script(peer: memory.Peer) -> None:
        signature = dict(desk.asks[0].headers)["x-signature"]
        peer.send(json.dumps({"text": "red", "why": f"{peer.address.url} {signature}"}))
        peer.close(4000, "token tok-1234567 is used up")

    heard, _ = await perform(tmp_path, desk, script)
    record = heard.records["w-s0"]
    assert record.outcome == "target_error"
    assert record.connections[0].close_reason == "token *** is used up"
    assert heard.of(Message)[0].data == '{"text": "red", "why": "***?token=*** ***"}'
    for secret in ("tok-1234567", "s3cret-key", dict(desk.asks[0].headers)["x-signature"]):
        assert secret not in repr(heard.events)


async def test_a_token_that_comes_back_as_a_text_is_hidden_there_too(tmp_path: Path) -> None:
    heard, _ = await perform(tmp_path, granting(), answering(0.3, text="say tok-1234567 twice"))
    assert heard.records["w-s0"].utterances[0].channels["transcript"].settled_text == "say *** twice"
    assert "tok-1234567" not in repr(heard.of(SessionRecord))


async def test_a_refused_prelude_is_an_outcome_with_a_side(tmp_path: Path) -> None:
    desk = Desk(lambda at: Answer(at, 429, b"full for s3cret-key", retry_after_s=2.0))
    heard, served = await perform(tmp_path, desk)
    record = heard.records["w-s0"]
    assert (record.outcome, record.side, record.connections) == ("rejected", "target", [])
    assert record.cause == "request 1 of the prelude: answered with HTTP status 429, retry after 2 s: full for ***"
    assert (record.prelude[0].status, len(desk.asks), served.peers) == (429, 1, [])


async def test_an_address_that_cannot_be_dialled_is_no_fault_of_the_tester(tmp_path: Path) -> None:
    desk = Desk(lambda at: Answer(at, 200, b'{"url": "ftp://x", "token": "t"}'))
    heard, _ = await perform(tmp_path, desk)
    record = heard.records["w-s0"]
    assert (record.outcome, record.side) == ("profile_error", "policy")
    assert "must begin with memory://" in record.cause


async def test_a_question_without_an_answer_is_given_up_and_taken_back(tmp_path: Path) -> None:
    desk = granting(takes_s=60.0)
    heard, _ = await perform(tmp_path, desk)
    record = heard.records["w-s0"]
    assert (record.outcome, record.ended_ns - record.begun_ns, desk.cancelled) == ("silent", 10 * S, 1)


async def test_an_error_of_ours_costs_one_session(tmp_path: Path) -> None:
    desk = Desk(lambda at: 1 / 0)  # type: ignore[arg-type, return-value]
    heard, _ = await perform(tmp_path, desk)
    record = heard.records["w-s0"]
    assert (record.outcome, record.side) == ("internal", "tester")
    assert "ZeroDivisionError" in record.cause


def made(folder: Path, **more: Any) -> Addresses:
    profile = load_text(LIVE, "live.yaml")
    entry = clip(folder, profile, media_ms=200, chunk_ms=200)
    return Addresses(plan([entry], profile, ONE, **{"url": "", "secrets": SECRETS} | more), profile)


async def test_what_is_wrong_is_found_before_there_is_a_session(tmp_path: Path) -> None:
    desk = granting()
    addresses = made(tmp_path, params={"api": "https://api.example"})
    addresses.check(addresses.fields("s", {"source_lang": "en"}), memory.transport, desk)
    assert desk.checked == ["https://api.example/v2/live?key=s3cret-key"]
    with pytest.raises(MissingFieldError, match=r"\{clip\.source_lang\}"):
        addresses.check(addresses.fields("s", {}), memory.transport, desk)
    addresses = made(tmp_path, params={"api": "https://no host"})
    with pytest.raises(AddressError, match="names no host"):
        addresses.check(addresses.fields("s", {"source_lang": "en"}), memory.transport, desk)
    with pytest.raises(MissingFieldError, match=r"\{secret\.key\}"):
        made(tmp_path, secrets={}).fields("s", {})


async def test_host_and_port_are_known_when_the_address_is(tmp_path: Path) -> None:
    addresses = made(tmp_path)
    fields = addresses.fields("s", {})
    assert "host" not in fields
    assert addresses.place(fields | {"captured.url": "wss://asr.example/x"}) == {"host": "asr.example", "port": "443"}
    with pytest.raises(AddressError):
        addresses.place(fields | {"captured.url": "wss://asr.example:x/"})


async def test_a_run_kept_to_ourselves_asks_nobody_else(tmp_path: Path) -> None:
    profile = load_text(LIVE, "live.yaml")
    entry = clip(tmp_path, profile, media_ms=200, chunk_ms=200)
    start = plan([entry], profile, ONE, url="", secrets=SECRETS)
    addresses = Addresses(elsewhere(start, "ws://127.0.0.1:8123", {"api": "https://api.example"}), profile)
    fields = addresses.fields("canary-0", {"source_lang": "en"})
    ask = addresses.asking(Ask("POST", "https://api.example/v2/live?key=canary", (), b"", 1), {})
    assert ask.url == "http://127.0.0.1:8123/v2/live?key=canary"
    assert addresses.of(fields | {"captured.token": "t"}) == Address(
        url="ws://127.0.0.1:8123?token=t", headers=(("Authorization", "Bearer canary"),)
    )
