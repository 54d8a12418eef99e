"""A stage for engine tests: a run in virtual time against a scripted service in memory, and what the engine said."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from loadbench.engine.alarm import LoopAlarm
from loadbench.engine.pipe import ClipEntry, Outbound, Stage, Start, Workload
from loadbench.engine.prepare import wire_plans
from loadbench.engine.run import Engine
from loadbench.media.plan import ChunkPlan
from loadbench.results.record import SessionRecord
from loadbench.results.tick import Tick
from loadbench.session.load import load_profile
from loadbench.session.profile import Profile
from loadbench.transports import memory
from loadbench.transports.contract import Asker, Transport

S, MS = 1_000_000_000, 1_000_000
EOF = '{"eof" : 1}'
T = TypeVar("T")
Script = Callable[[memory.Peer], Any]


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


@dataclass
class Heard:
    """What an engine said, in order."""

    events: list[Outbound] = field(default_factory=list)

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def records(self) -> dict[str, SessionRecord]:
        return {record.id: record for record in self.of(SessionRecord)}

    @property
    def outcomes(self) -> dict[str, int]:
        found = [record.outcome for record in self.of(SessionRecord)]
        return {outcome: found.count(outcome) for outcome in sorted(set(found))}

    def ticked(self, name: str) -> int:
        """The sum of a count over all ticks."""
        return sum(getattr(tick, name) for tick in self.of(Tick))


def clip(folder: Path, profile: Profile, *, media_ms: float, chunk_ms: float, name: str = "tone") -> ClipEntry:
    """A clip of that length, in chunks that are due when they have been captured; the last may be shorter."""
    dues = [chunk_ms * (number + 1) for number in range(int(media_ms // chunk_ms))]
    dues += [media_ms] if media_ms % chunk_ms else []
    chunks = [(round(due * MS), 0, b"%05d" % number) for number, due in enumerate(dues)]
    ChunkPlan.write(folder / f"raw-{name}", chunks, round(media_ms * MS))
    out = folder / f"wire-{name}"
    place, joined = wire_plans(profile, {name: folder / f"raw-{name}"}, memory.transport, out, bytes)[name]
    return ClipEntry(id=name, wire=str(place), joined=joined, fields={"id": name, "source_lang": "en"})


def workload(
    *, users: float = 1, rate: float | None = None, duration_s: float | None = None, ramp_s: float = 0.0, **more: Any
) -> Workload:
    """A workload of one stage."""
    only = Stage(level=users if rate is None else rate, seconds=duration_s, ramp_s=ramp_s)
    return Workload(stages=[only], **more)


def plan(clips: Sequence[ClipEntry], profile: Profile, workload: Workload, **more: Any) -> Start:
    data = profile.model_dump(mode="json", exclude_unset=True)
    given: dict[str, Any] = {"run_id": "r", "worker": "w", "seed": 7, "url": "memory://asr"} | more
    return Start(profile=data, clips=list(clips), workload=workload, **given)


def engine(start: Start, heard: Heard, transport: Transport = memory.transport, asker: Asker | None = None) -> Engine:
    return Engine(
        start,
        heard.events.append,
        clock=now_ns,
        make_alarm=lambda ring: LoopAlarm(ring, now_ns, quantum_ns=1000),
        transport=transport,
        asker=asker,
    )


async def play(
    folder: Path,
    script: Script,
    workload: Workload,
    *,
    profile: Profile | None = None,
    media_ms: float = 1000,
    chunk_ms: float = 200,
    transport: Transport = memory.transport,
    during: Callable[[Engine], Any] | None = None,
    connect_s: float = 0.0,
    asker: Asker | None = None,
    **more: Any,
) -> tuple[Heard, memory.Served]:
    """Run one clip with that workload to its end; `during` is awaited beside it."""
    heard, how = Heard(), profile or load_profile("vosk")
    start = plan([clip(folder, how, media_ms=media_ms, chunk_ms=chunk_ms)], how, workload, **more)
    with memory.serve("asr", script, connect_s=connect_s) as served:
        running = engine(start, heard, transport, asker)
        beside = asyncio.ensure_future(during(running)) if during else None
        await asyncio.wait_for(running.run(), 10_000)
        if beside is not None:
            await beside
    return heard, served


def answering(final_s: float, *, text: str = "red boat") -> Script:
    """A speech service that says its final so long after the end mark, and closes."""

    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            if message == EOF:
                await asyncio.sleep(final_s)
                peer.send(json.dumps({"text": text}))
                peer.close(1000)

    return script


def media_of(peer: memory.Peer) -> list[tuple[int, bytes]]:
    return [(at, message) for at, message in peer.arrivals if isinstance(message, bytes)]


def final_ns(record: SessionRecord) -> int:
    at = record.utterances[0].channels["transcript"].last_final_ns
    assert at is not None
    return at
