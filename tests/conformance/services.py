"""The far side of a conversation on each transport: it says and does what the steps of `conversations.yaml` tell it.

None of it shares code with the transports under test: WebSocket is the websockets library's server, HTTP is by hand.
"""

import asyncio
import contextlib
import json
import shlex
import socket
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from loadbench.transports import memory

Kind = Literal["open", "media", "end"]
Step = dict[str, Any]
PROGRAM = Path(__file__).parent / "program.py"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"


class GoneError(Exception):
    """The client has left."""


class Far(Protocol):
    """What a script can do on any transport."""

    async def hear(self) -> Kind:
        """The next message of ours. Raises GoneError."""

    async def say(self, text: str) -> None:
        """One message."""

    async def close(self, code: int) -> None:
        """The polite end."""

    async def drop(self, how: str) -> None:
        """The other one."""

    def reading(self, on: bool) -> None:
        """Take what we write, or leave it."""


async def perform(steps: Sequence[Step], far: Far) -> None:
    """Play the steps; then stay until the client leaves."""
    for step in steps:
        ((verb, value),) = step.items()
        if verb == "hear":
            while await far.hear() != value:
                continue
        elif verb == "after":
            await asyncio.sleep(value)
        elif verb == "pause":
            far.reading(False)
            await asyncio.sleep(value)
            far.reading(True)
        elif verb == "close":
            await far.close(value)
        elif verb == "drop":
            await far.drop(value)
        else:
            await far.say(_text(verb, value))
    while True:
        await far.hear()


def _text(verb: str, value: Any) -> str:
    if verb == "long":
        return json.dumps({"partial": "x" * value})
    return str(value) if verb == "raw" else json.dumps(value, ensure_ascii=False)


def kind_of(data: str | bytes) -> Kind:
    """What a message of our dialect is."""
    text = data if isinstance(data, str) else data[:8].decode("latin-1")
    return "open" if text.startswith('{"hello"') else "end" if text.startswith('{"eos":t') else "media"


def reset(transport: asyncio.BaseTransport) -> None:
    """Drop a connection so that the near side sees a reset."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()  # type: ignore[attr-defined]


# ---- memory


class MemoryFar:
    """A peer in this process."""

    def __init__(self, peer: memory.Peer) -> None:
        self._peer = peer

    async def hear(self) -> Kind:
        async for message in self._peer:
            return "end" if isinstance(message, memory.End) else kind_of(message)
        raise GoneError

    async def say(self, text: str) -> None:
        self._peer.send(text)

    async def close(self, code: int) -> None:
        self._peer.close(code)

    async def drop(self, how: str) -> None:
        self._peer.drop("eof" if how == "eof" else "reset")

    def reading(self, on: bool) -> None:
        (self._peer.read_again if on else self._peer.stop_reading)()


def in_memory(steps: Sequence[Step]) -> memory.Script:
    """A script for `memory.serve`."""

    async def script(peer: memory.Peer) -> None:
        with contextlib.suppress(GoneError):
            await perform(steps, MemoryFar(peer))

    return script


# ---- WebSocket


class WebSocketFar:
    """A connection of the websockets library's server."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    async def hear(self) -> Kind:
        try:
            return kind_of(await self._socket.recv())
        except ConnectionClosed as error:
            raise GoneError from error

    async def say(self, text: str) -> None:
        with contextlib.suppress(ConnectionClosed):  # it may have gone on our last word
            await self._socket.send(text)

    async def close(self, code: int) -> None:
        await self._socket.close(code)

    async def drop(self, how: str) -> None:
        if how == "reset":
            reset(self._socket.transport)
        else:
            self._socket.transport.close()

    def reading(self, on: bool) -> None:
        transport = self._socket.transport
        (transport.resume_reading if on else transport.pause_reading)()


@contextlib.asynccontextmanager
async def on_websocket(steps: Sequence[Step], context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The address of a service."""

    async def handler(socket: ServerConnection) -> None:
        with contextlib.suppress(GoneError):
            await perform(steps, WebSocketFar(socket))

    options: dict[str, Any] = {"max_size": None, "ping_interval": None, "compression": None, "close_timeout": 1}
    async with serve(handler, "127.0.0.1", 0, ssl=context, **options) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}" if context is None else f"wss://localhost:{port}"


# ---- an HTTP stream


class HttpFar:
    """A request whose body is heard while the response is written."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def begin(self) -> None:
        await self._reader.readuntil(b"\r\n\r\n")
        self._writer.write(HEAD)

    async def hear(self) -> Kind:
        while True:
            try:
                size = int(await self._reader.readuntil(b"\r\n"), 16)
                data = (await self._reader.readexactly(size + 2))[:-2]
            except (asyncio.IncompleteReadError, OSError) as error:
                raise GoneError from error
            if not size:
                return "end"
            if (kind := kind_of(data)) != "end":
                return kind

    async def say(self, text: str) -> None:
        line = text.encode() + b"\n"
        self._writer.write(b"%x\r\n%s\r\n" % (len(line), line))

    async def close(self, code: int) -> None:
        self._writer.write(b"0\r\n\r\n")

    async def drop(self, how: str) -> None:
        await self._writer.drain()
        if how == "reset":
            reset(self._writer.transport)
        else:
            self._writer.close()

    def reading(self, on: bool) -> None:
        """Nobody reads while the script sleeps, and a stream reader holds little."""


# ---- a request for each message


class RequestsFar:
    """Each request is answered at once with what the script has said until then, as an array; close and drop as well.

    A raw message has an answer to itself.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._heard: asyncio.Queue[Kind | None] = asyncio.Queue()
        self._saying: list[str] = []
        self._end = ""
        self._reads = asyncio.Event()
        self._reads.set()

    async def serve(self) -> None:
        """Take requests and answer them until somebody ends it."""
        try:
            while await self._request():
                for _ in range(5):  # turns, in which the script says what it has to say to this
                    await asyncio.sleep(0)
                if not self._answer():
                    return
                await self._reads.wait()
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            self._heard.put_nowait(None)

    async def _request(self) -> bool:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        sizes = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
        data = await self._reader.readexactly(int(sizes[0]) if sizes else 0)
        if not head.startswith("GET"):
            self._heard.put_nowait(kind_of(data))
        return True

    def _answer(self) -> bool:
        """False where that was the last one. Who hangs up between two requests has cut nothing off; a reset has."""
        if not self._saying and self._end in ("eof", "reset"):
            return self._gone()
        body = self._body().encode()
        last = not self._saying and self._end == "close"
        more = b"Connection: close\r\n" if last else b""
        self._writer.write(b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (more, len(body), body))
        if not self._saying and self._end == "reset":
            return self._gone()
        return not last

    def _gone(self) -> bool:
        if self._end == "reset":
            reset(self._writer.transport)
        else:
            self._writer.close()
        return False

    def _body(self) -> str:
        known = [text.startswith("{") for text in self._saying]
        count = known.index(False) if False in known else len(known)
        if known and not known[0]:
            return self._saying.pop(0)
        said, self._saying = self._saying[:count], self._saying[count:]
        return f"[{', '.join(said)}]"

    async def hear(self) -> Kind:
        if (kind := await self._heard.get()) is None:
            raise GoneError
        return kind

    async def say(self, text: str) -> None:
        self._saying.append(text)

    async def close(self, code: int) -> None:
        self._end = "close"

    async def drop(self, how: str) -> None:
        self._end = how

    def reading(self, on: bool) -> None:
        (self._reads.set if on else self._reads.clear)()


@contextlib.asynccontextmanager
async def on_http(steps: Sequence[Step], *, requests: bool = False) -> AsyncIterator[str]:
    """The address of a service that is spoken to by one streamed request, or by one for each message."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(GoneError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            if requests:
                far = RequestsFar(reader, writer)
                serving = asyncio.create_task(far.serve())
                await perform(steps, far)
                await serving
            else:
                stream = HttpFar(reader, writer)
                await stream.begin()
                await perform(steps, stream)
        writer.close()

    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


# ---- a local program


def as_program(steps: Sequence[Step]) -> str:
    """The command of a program that plays the steps."""
    return "exec:" + shlex.join([sys.executable, "-S", str(PROGRAM), json.dumps(list(steps))])
