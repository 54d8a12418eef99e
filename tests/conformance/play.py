"""Plays the conversations of `conversations.yaml`: real sessions of the engine, on each way that can carry them.

In memory time is virtual. On the others sessions run side by side on sockets and pipes, and no test asks how long.
"""

import asyncio
import contextlib
import os
import re
import ssl
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import looptime
from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML

from loadbench.engine.alarm import LoopAlarm
from loadbench.engine.pipe import ClipEntry, Outbound, Start
from loadbench.engine.prepare import wire_plans
from loadbench.engine.run import Engine
from loadbench.media.plan import ChunkPlan
from loadbench.results.record import SessionRecord
from loadbench.session.profile import Profile
from loadbench.transports import load as load_transport
from loadbench.transports import memory
from loadbench.transports.contract import Transport
from tests.conformance import services
from tests.engine import stage

MS: Final = 1_000_000
CHUNKS, CHUNK_MS = 24, 50  # long enough for a loaded machine to notice an end in the media while it lasts
WAYS: Final = ("memory", "websocket", "tls", "http", "requests", "process")
AT_ONCE: Final = 12  # sessions side by side
PROGRAMS: Final = 4  # of those that are an interpreter each, which a small machine starts slowly
PATIENCE_S: Final = 60
CLOSE_S: Final = 0.3  # for an answer to our close
UNANSWERED: Final = "the service did not answer our close"
RULES: Final = [
    {"has": "ready", "event": "ready"},
    {"has": "partial", "channel": "transcript", "text": {"model": "unkeyed", "text": "partial"}},
    {"has": "final", "channel": "transcript", "text": {"model": "unkeyed", "text": "final", "final": True}},
    {"has": "gloss", "channel": "gloss", "text": {"model": "unkeyed", "text": "gloss", "final": True}},
    {"has": "owed", "event": "pending", "key": "owed"},
    {"has": "paid", "event": "settled", "key": "paid"},
    {"match": "type == 'busy'", "outcome": "rejected", "detail": "why"},
    {"match": "type == 'expired'", "outcome": "auth_expired"},
    {"match": "type == 'fatal'", "outcome": "fatal", "detail": "why"},
    {"match": "type == 'hiccup'", "outcome": "recoverable", "detail": "why"},
    {"has": "done", "event": "done"},
]
# What each way needs of the profile; everything else is the same on all of them.
TRANSPORTS: Final[dict[str, dict[str, Any]]] = {
    "memory": {"kind": "websocket"},
    "websocket": {"kind": "websocket"},
    "tls": {"kind": "websocket"},
    "http": {"kind": "http"},
    "requests": {
        "kind": "requests",
        "requests": {
            "open": "POST /open",
            "media": "PUT /media",
            "end": "PUT /end",
            "poll": {"request": "GET /said", "every_ms": 10},
        },
    },
    "process": {"kind": "process", "stdin": "length"},
}
RECEIVE: Final[dict[str, dict[str, Any]]] = {
    "http": {"framing": "lines"},
    "process": {"framing": "lines"},
    "requests": {"decode": "array"},
}


class Part(BaseModel):
    """Unknown keys are errors everywhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Expect(Part):
    """What the record must hold on every way; `cause` and `warnings` are parts of sentences. `text: null`: none."""

    outcome: str
    side: str = "none"
    done_rule: str | None = None
    text: str | None = ""
    settled: str | None = None
    gloss: str | None = None
    finality: str = "explicit"
    cause: str = ""
    warnings: list[str] = []
    messages: dict[str, int] | None = None
    then: list[str] = Field([], description="the text of each later utterance")


class Talk(Part):
    """One conversation."""

    name: str
    service: list[services.Step]
    expect: Expect
    not_: list[str] = Field([], alias="not")
    done: dict[str, Any] = {"on": ["message", "close"]}
    grace_s: float | None = None
    never_final: dict[str, Any] = {}
    limits: dict[str, float] = {}
    utterances: int = 1
    chunk_bytes: int = 320

    @property
    def ways(self) -> list[str]:
        """Those that can carry it."""
        return [way for way in WAYS if way not in self.not_]

    def profile(self, way: str) -> Profile:
        """How this service speaks on that way."""
        done = self.done
        if way == "http":
            done = done | {"on": ["end_of_response" if event == "close" else event for event in done["on"]]}
        end: list[dict[str, Any]] = [{"send_json": {"eos": True}}]
        end += [{"end_body": True}] if way in ("http", "process") else []
        end += [{"done": done}, *([{"grace_s": self.grace_s}] if self.grace_s else [])]
        return Profile.model_validate(
            {
                "name": "conformance",
                "transport": TRANSPORTS[way],
                "channels": {"transcript": {}, "gloss": {"unit": "gloss"}},
                "primary": "transcript",
                "open": [{"send_json": {"hello": 1}}, {"wait": {"has": "ready", "timeout_s": 20}}],
                "media": {"kind": "audio", "chunk_ms": CHUNK_MS},
                "end": end,
                "receive": {"rules": RULES, **RECEIVE.get(way, {})},
                **({"never_final": self.never_final} if self.never_final else {}),
            }
        )


@cache
def talks() -> dict[str, Talk]:
    """All conversations, by name."""
    path = Path(__file__).parent / "conversations.yaml"
    found = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return {talk.name: talk for talk in map(Talk.model_validate, found)}


def start(folder: Path, talk: Talk, way: str, url: str, **more: Any) -> Start:
    """A run of one session."""
    profile, transport = talk.profile(way), _transport(way)
    media = bytes(range(256)) * -(-talk.chunk_bytes // 256)
    chunks = [((at + 1) * CHUNK_MS * MS, 0, media[: talk.chunk_bytes]) for at in range(CHUNKS)]
    ChunkPlan.write(folder / "raw", chunks, CHUNKS * CHUNK_MS * MS)
    place, joined = wire_plans(profile, {"clip": folder / "raw"}, transport, folder / "wire", os.urandom)["clip"]
    return Start(
        run_id="r",
        worker="w",
        seed=7,
        profile=profile.model_dump(mode="json", exclude_unset=True),
        url=url,
        clips=[ClipEntry(id="clip", wire=str(place), joined=joined)],
        workload=stage.workload(model="closed", users=1, sessions=1, utterances=talk.utterances),
        limits={"close_s": CLOSE_S, **talk.limits},
        **more,
    )


def _transport(way: str) -> Transport:
    return memory.transport if way == "memory" else load_transport("websocket" if way == "tls" else way)


def in_memory(talk: Talk, folder: Path) -> SessionRecord:
    """In virtual time."""
    records: list[SessionRecord] = []

    async def run() -> None:
        engine = Engine(
            start(folder, talk, "memory", "memory://conformance"),
            keeping(records),
            clock=stage.now_ns,
            make_alarm=lambda ring: LoopAlarm(ring, stage.now_ns, quantum_ns=1000),
            transport=memory.transport,
        )
        with memory.serve("conformance", services.in_memory(talk.service)):
            await asyncio.wait_for(engine.run(), 10_000)

    loop = looptime.new_event_loop()
    with contextlib.closing(loop):
        loop.run_until_complete(run())
    (record,) = records
    return record


def on_way(way: str, folder: Path, context: ssl.SSLContext, ca_file: str) -> dict[str, SessionRecord]:
    """Every conversation that this way can carry, in real time, side by side. By name."""
    records: dict[str, SessionRecord] = {}
    gate = asyncio.Semaphore(PROGRAMS if way == "process" else AT_ONCE)

    async def one(number: int, talk: Talk) -> None:
        place, found = folder / str(number), list[SessionRecord]()
        place.mkdir()
        more: dict[str, Any] = {"tls": {"ca_file": ca_file}} if way == "tls" else {}
        async with gate, _service(way, talk, context) as url:
            engine = Engine(start(place, talk, way, url, **more), keeping(found))
            await asyncio.wait_for(engine.run(), PATIENCE_S)
        (records[talk.name],) = found

    async def all_of_them() -> None:
        wanted = [talk for talk in talks().values() if way in talk.ways]
        await asyncio.gather(*(one(number, talk) for number, talk in enumerate(wanted)))

    asyncio.run(all_of_them())
    return records


@contextlib.asynccontextmanager
async def _service(way: str, talk: Talk, context: ssl.SSLContext) -> AsyncIterator[str]:
    if way == "process":
        yield services.as_program(talk.service)
    elif way in ("http", "requests"):
        async with services.on_http(talk.service, requests=way == "requests") as url:
            yield url
    else:
        async with services.on_websocket(talk.service, context if way == "tls" else None) as url:
            yield url


def keeping(records: list[SessionRecord]) -> Any:
    def take(event: Outbound) -> None:
        if isinstance(event, SessionRecord):
            records.append(event)

    return take


# ---- what must be the same

# A sentence tells spans, and in the words of its transport how the connection went.
_SPAN: Final = re.compile(r"\d+\.\d+ s\b")
_CLOSED: Final = re.compile(r"(closed by (?:us|target))(?: \d+)?(?:: the program ended with status \d+)?")
_KEPT: Final = re.compile(r": the service does not keep the connection$")
_GONE: Final = re.compile(r"the connection was (?:cut|reset) ([^:]*).*")
_TOO_BIG: Final = re.compile(r".*(over our limit) of (?:message_bytes|\d+ bytes).*")


def likeness(record: SessionRecord) -> dict[str, Any]:
    """A record without what may differ between two ways of the same conversation.

    Left out, and why:
    - `..._ns`, `lateness`, `tainted`: times, which `misplaced` checks by themselves;
    - of a connection the addresses, `status`, `close_code`, `close_reason`, `cause`, `pongs_missed`: facts and words of
      its transport. Whose end came first is kept, but of a loss: a kernel resets where another has hung up, as it finds
      bytes unread or not;
    - `bytes_sent`, `bytes_received`: with framing, and heads of requests;
    - `raw`: as it was framed; how many are kept;
    - of a message over our limit that it was an error, and its beginning: who frames messages never lets it in;
    - that a program did not answer our close: it sees no more of us than the end of its input, which it has seen;
    - `chunks_sent`, `media_bytes` of an utterance that was not carried to its end mark: how far it came is time;
    - in sentences the spans, the codes, and what a transport adds behind a colon; of a loss also whether it came before
      any media or into them: who does not wait for media is gone when the kernel says so.
    """
    too_big = record.outcome == "our_limit" and sentence(record.cause) == "over our limit"
    warnings = [sentence(warning) for warning in record.warnings]
    return {
        "id": record.id,
        "user": record.user,
        "stage": record.stage,
        "window": record.window,
        "ready": record.ready_ns is not None,
        "outcome": record.outcome,
        "side": record.side,
        "cause": sentence(record.cause).replace("was gone before any media", "was gone so many s into the media"),
        "warnings": [warning for warning in warnings if not warning.startswith(UNANSWERED)],
        "messages": {kind: count for kind, count in record.messages.items() if not (too_big and kind == "error")},
        "raw": 0 if too_big else len(record.raw),
        "connections": [(link.opened_ns is not None, _ended_by(record, link.close_by)) for link in record.connections],
        "utterances": [_utterance(utterance) for utterance in record.utterances],
    }


def _ended_by(record: SessionRecord, by: str) -> str:
    return "" if record.outcome in ("lost", "our_limit") else by


def _utterance(utterance: Any) -> dict[str, Any]:
    marked = utterance.eos_ns is not None
    return {
        "clip": (utterance.index, utterance.clip, utterance.attempt, utterance.media_ns),
        "begun": utterance.media_zero_ns is not None,
        "marked": marked,
        "done": utterance.done_ns is not None,
        "done_rule": utterance.done_rule,
        "outcome": utterance.outcome,
        "planned": utterance.chunks_planned,
        "sent": (utterance.chunks_sent, utterance.media_bytes) if marked else None,
        "channels": {name: _channel(channel) for name, channel in utterance.channels.items()},
    }


def _channel(channel: Any) -> dict[str, Any]:
    return {
        "finality": channel.finality,
        "segments": [(part.key, part.text, part.final_ns is not None, part.promoted) for part in channel.segments],
        "updates": [(update.keep, update.add, update.settled) for update in channel.updates],
        "empty": channel.empty,
        "first": channel.first_ns is not None,
        "finals": (channel.first_final_ns is not None, channel.last_final_ns is not None),
    }


def sentence(text: str) -> str:
    """Without what only this way can say; see `likeness`."""
    text = _SPAN.sub("so many s", text)
    text = _CLOSED.sub(r"\1", text)
    text = _KEPT.sub("", text)
    text = _GONE.sub(r"the connection was gone \1", text)
    return _TOO_BIG.sub(r"\1", text)


def misplaced(record: SessionRecord) -> list[str]:
    """Times that are out of order, and counts that are out of bounds, a sentence each."""
    (link,) = record.connections
    order = [record.begun_ns, link.dialled_ns, link.tcp_ns, link.tls_ns, link.opened_ns, record.ready_ns]
    told = _falling("the session", [record.planned_ns, *order, record.ended_ns])
    before_ns = record.ready_ns or record.begun_ns
    for utterance in record.utterances:
        where = f"utterance {utterance.index}"
        told += _falling(where, [before_ns, utterance.media_zero_ns, utterance.source_end_ns, utterance.eos_ns])
        before_ns = utterance.eos_ns or before_ns
        if not 0 <= utterance.chunks_sent <= utterance.chunks_planned == CHUNKS:
            told.append(f"{where}: {utterance.chunks_sent} chunks were sent of {utterance.chunks_planned}")
        for name, channel in utterance.channels.items():
            told += _falling(f"{where}, {name}", [channel.first_ns, channel.first_final_ns, channel.last_final_ns])
            changes = [update.at_ns for update in channel.updates]
            told += _falling(f"{where}, changes of {name}", [record.begun_ns, *changes, record.ended_ns])
            for part in channel.segments:
                told += _falling(f"{where}, {part.text}", [part.first_ns, part.changed_ns, part.final_ns])
    return told


def _falling(where: str, times: list[int | None]) -> list[str]:
    known = [at for at in times if at is not None]
    return [] if known == sorted(known) else [f"{where}: times that go back: {times}"]
