"""A service in virtual time: sessions that speak to it without sockets, so that its delays are exact."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loadbench.session.load import load_profile
from loadbench.simulator.answers import Answers
from loadbench.simulator.hear import Grammar
from loadbench.simulator.log import Entry, Log, read
from loadbench.simulator.options import Options
from loadbench.simulator.sitting import House, Sitting
from loadbench.simulator.speak import Speaker
from loadbench.simulator.timetable import Timetable

SECOND = 1_000_000_000


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


@dataclass
class Client:
    """What one client hears, in seconds after its first chunk."""

    heard: list[tuple[float, Any]] = field(default_factory=list)
    closed: tuple[float, Any] | None = None
    zero_ns: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def say(self, text: str) -> None:
        self.heard.append((self._at(), json.loads(text)))

    async def close(self, code: int | None) -> None:
        self.closed = (self._at(), code)
        self.over.set()

    async def drop(self, how: str | int) -> None:
        self.closed = (self._at(), how)
        self.over.set()

    def _at(self) -> float:
        return round((now_ns() - self.zero_ns) / SECOND, 6)

    def said(self, key: str) -> list[tuple[float, str]]:
        return [(at, message[key]) for at, message in self.heard if message.get(key)]


class Service:
    """The simulated service of a profile, without its server."""

    def __init__(self, log: Path, options: Options) -> None:
        profile = load_profile(options.profile)
        self._log = log
        self._numbers = iter(range(1_000))
        self.house = House(
            options=options,
            profile=profile,
            speaker=Speaker(profile),
            grammar=Grammar(profile),
            answers=Answers(profile, options.text, {}, {}),
            log=Log(log),
            clock=now_ns,
            mind=Timetable,
        )

    async def vosk(self, *, chunks: int = 5, wait_s: float = 30.0, payload: bytes = b"\0" * 6400) -> Client:
        """One session of `chunks` chunks of 200 ms; returns when the service has closed, or `wait_s` later."""
        client, number = Client(zero_ns=now_ns()), next(self._numbers)
        entry = Entry(session=f"s{number}", opened_ns=now_ns())
        sitting = Sitting(self.house, client, self.house.fate.course(number), entry)
        talking = asyncio.create_task(sitting.mouth.talk())
        self.house.gate.leaves(now_ns())  # as the server asks at each handshake; the first is the service's zero
        sitting.opened()
        sitting.heard("text", b'{"config":{"sample_rate":16000,"words":1}}', now_ns())
        for at in range(chunks):
            if client.over.is_set():
                break
            sitting.heard("binary", payload[:-1] + bytes([at]), now_ns())
            await asyncio.sleep(0.2)
        if not client.over.is_set():
            sitting.heard("text", b'{"eof" : 1}', now_ns())
            try:
                await asyncio.wait_for(client.over.wait(), wait_s)
            except TimeoutError:
                assert client.closed is None
        talking.cancel()
        sitting.gone(now_ns(), "service", None)
        return client

    @property
    def entries(self) -> dict[str, Entry]:
        return {entry.session: entry for entry in read(self._log)}


@pytest.fixture
def service(tmp_path: Path) -> Callable[..., Service]:
    return lambda **given: Service(tmp_path / "service.jsonl", Options(**({"acks": False} | given)))
