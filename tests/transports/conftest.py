"""A listener that insists on the contract, small servers that misbehave on order, and certificates."""

import asyncio
import base64
import gc
import hashlib
import socket
import struct
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop

from loadbench import transports
from loadbench.session.wire import Cause, Opened
from loadbench.transports.contract import Address, Link

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PATIENCE_S = 10.0


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], Any]]:
    """Whatever has a socket runs on both loops."""
    loops: dict[str, Callable[[], Any]] = {"asyncio": asyncio.new_event_loop}
    return loops | {"uvloop": uvloop.new_event_loop} if item.get_closest_marker("realtime") else loops


@dataclass
class Recorder:
    """Keeps what it is told, and that nothing is told after the end."""

    facts: list[Opened] = field(default_factory=list)
    answers: list[tuple[int, int, str]] = field(default_factory=list)
    messages: list[tuple[str | bytes, int]] = field(default_factory=list)
    pauses: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    link: Link | None = None
    returned: bool = False
    react: Callable[["Recorder"], None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def opened(self, facts: Opened) -> None:
        assert self.returned, "opened was called before dial had returned"
        self.facts.append(facts)
        self._note()

    def answered(self, status: int, at_ns: int, content_type: str = "") -> None:
        self.answers.append((status, at_ns, content_type))
        self._note()

    def received(self, data: str | bytes, arrival_ns: int) -> None:
        assert self.facts, "data came before opened"
        self.messages.append((data, arrival_ns))
        self._note()
        if self.react is not None:
            self.react(self)

    def paused(self, at_ns: int) -> None:
        self.pauses.append("paused")
        self._note()

    def resumed(self, at_ns: int) -> None:
        self.pauses.append("resumed")
        self._note()

    def lost(self, cause: Cause) -> None:
        self.causes.append(cause)
        self.changed.set()

    def _note(self) -> None:
        assert not self.causes, "told of something after the end"
        self.changed.set()

    @property
    def data(self) -> list[str | bytes]:
        return [data for data, _ in self.messages]

    async def until(self, holds: Callable[["Recorder"], Any]) -> "Recorder":
        async with asyncio.timeout(PATIENCE_S):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()
        return self

    async def wait_for(self, holds: Callable[["Recorder"], Any]) -> "Recorder":
        """For what the listener is not told of."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds(self):  # noqa: ASYNC110 - nothing is set when a counter of the link moves
                await asyncio.sleep(0.01)
        return self

    async def end(self) -> Cause:
        await self.until(lambda one: one.causes)
        return self.causes[0]


Dial = Callable[..., Awaitable[Recorder]]


@pytest.fixture
async def recorders() -> AsyncIterator[list[Recorder]]:
    """Whoever is in this list has been told of its end exactly once when the test is over."""
    made: list[Recorder] = []
    yield made
    for one in made:
        if one.link is not None:
            one.link.abort()
    await asyncio.sleep(0.02)
    for one in made:
        assert len(one.causes) == 1, one.causes


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def dial(recorders: list[Recorder]) -> Dial:
    """`await dial("websocket", url, **address)`: a recorder with its link, however that ended."""

    async def dialling(name: str, url: str, **more: Any) -> Recorder:
        one = Recorder(react=more.pop("react", None))
        recorders.append(one)
        one.link = await transports.load(name).dial(Address(url, **more), one, time.monotonic_ns)
        one.returned = True
        assert (one.link is None) == bool(one.causes)
        return one

    return dialling


TEXT, BINARY, CONTINUATION, CLOSE, PING = 1, 2, 0, 8, 9


class Far:
    """The far side, by hand."""

    @staticmethod
    @asynccontextmanager
    async def server(handler: Handler, **options: Any) -> AsyncIterator[int]:
        """A TCP server on the loopback; its port. Broken connections are what the tests are about."""

        async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await handler(reader, writer)
            writer.close()

        server = await asyncio.start_server(guarded, "127.0.0.1", 0, **options)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            await asyncio.sleep(0)

    @staticmethod
    async def head(reader: asyncio.StreamReader) -> str:
        return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")

    @staticmethod
    async def shake_hands(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """The service's side of a WebSocket handshake; the request's head."""
        head = await Far.head(reader)
        writer.write(Far.acceptance(head))
        return head

    @staticmethod
    def acceptance(head: str) -> bytes:
        key = next(line.split(": ")[1] for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key"))
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        return (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n"
        )

    @staticmethod
    def frame(opcode: int, payload: bytes, *, fin: bool = True) -> bytes:
        """A frame as a server sends it: unmasked."""
        first, size = opcode | (0x80 if fin else 0), len(payload)
        if size < 126:
            return struct.pack("!BB", first, size) + payload
        if size < 65_536:
            return struct.pack("!BBH", first, 126, size) + payload
        return struct.pack("!BBQ", first, 127, size) + payload

    @staticmethod
    def text(words: str) -> bytes:
        return Far.frame(TEXT, words.encode())

    @staticmethod
    def close(code: int, reason: str = "") -> bytes:
        return Far.frame(CLOSE, struct.pack("!H", code) + reason.encode())

    @staticmethod
    def reset(writer: asyncio.StreamWriter) -> None:
        """Drop a connection so that the near side sees a reset."""
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    @staticmethod
    def sockets() -> int:
        """File handles of this process that are sockets."""
        gc.collect()
        links = []
        for handle in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):
                links.append(str(handle.readlink()))
        return sum(link.startswith("socket:") for link in links)


@pytest.fixture
def far() -> type[Far]:
    return Far


# Certificates.


@dataclass
class Certificates:
    """A certificate authority, a server's certificate for `localhost`, and a client's."""

    folder: Path

    def __getattr__(self, name: str) -> str:
        return str(self.folder / name.replace("_", "."))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=own authority")
    for name in ("localhost", "client"):
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (folder / "names").write_text(f"subjectAltName=DNS:{name}\n")
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", f"{name}.pem", "-days", "2", "-extfile", "names"),
        )
    return Certificates(folder)
