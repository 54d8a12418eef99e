"""A service on the loopback that does what a test's script says; it shares no code with the package.

WebSocket (RFC 6455) and HTTP (chunked both ways) by hand on asyncio streams. It keeps what it saw, on the machine's
monotonic clock: that is the second opinion on arrivals, bytes and how many were there at once.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    """One conversation: what came and when, and the means to answer. `number` counts from 0 in order of arrival."""

    number: int
    session: str
    writer: asyncio.StreamWriter
    is_http: bool = False
    arrivals: list[int] = field(default_factory=list)
    media_bytes: int = 0
    end_ns: int = 0
    first_chunk: asyncio.Event = field(default_factory=asyncio.Event)
    chunks: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    end: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, message: dict[str, Any] | str) -> int:
        """Send one message, a whole one or one that is broken on purpose; when that was."""
        body = (message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)).encode()
        if self.is_http:
            body += b"\n"
            self.writer.write(b"%x\r\n%b\r\n" % (len(body), body))
        else:
            assert len(body) < 126
            self.writer.write(bytes([0x81, len(body)]) + body)
        return time.monotonic_ns()

    def close(self, code: int = 1000) -> None:
        """End politely; HTTP knows no code."""
        self.writer.write(b"0\r\n\r\n" if self.is_http else b"\x88\x02" + struct.pack("!H", code))

    def drop(self) -> None:
        """Reset the connection."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def answer_after(self, seconds: float, text: str = "red boat") -> None:
        """Wait for the end mark, and so long; say the final, and close."""
        await self.end.wait()
        await asyncio.sleep(seconds)
        self.say({"final" if self.is_http else "text": text})
        self.close()


Script = Callable[[Call], Awaitable[None]]


@dataclass
class Service:
    """Answers each call by the script. `refuse` gives an HTTP status for the calls that get no further."""

    script: Script
    refuse: Callable[[int], int | None] = lambda number: None
    calls: dict[str, Call] = field(default_factory=dict)
    knocked: int = 0
    open_now: int = 0
    open_peak: int = 0

    @contextlib.asynccontextmanager
    async def serving(self, scheme: str = "ws", host: str = "127.0.0.1") -> AsyncIterator[str]:
        server = await asyncio.start_server(self._talk, host, 0, backlog=512)
        try:
            yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_now += 1
        self.open_peak = max(self.open_peak, self.open_now)
        speaking: asyncio.Task[None] | None = None
        try:
            call = await self._greet(reader, writer)
            if call is not None:
                speaking = asyncio.ensure_future(self.script(call))
                if call.is_http:
                    await _hear_chunks(reader, call)
                    await speaking
                else:
                    await _hear_frames(reader, call)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return  # gone, or the test is over
        finally:
            self.open_now -= 1
            if speaking is not None:
                speaking.cancel()
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call | None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        headers = {name.lower(): value for name, value in headers.items()}
        number, self.knocked = self.knocked, self.knocked + 1
        status = self.refuse(number)
        if status is not None:
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return None
        key = headers.get("sec-websocket-key")
        call = Call(number, headers.get("x-loadbench-session", ""), writer, is_http=key is None)
        self.calls[call.session] = call
        if key is None:
            kind = "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\nConnection: close"
            writer.write(f"HTTP/1.1 200 OK\r\n{kind}\r\n\r\n".encode())
        else:
            digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            accept = base64.b64encode(digest).decode()
            upgrade = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}"
            writer.write(f"HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\n\r\n".encode())
        return call


def _came(call: Call, size: int) -> None:
    call.arrivals.append(time.monotonic_ns())
    call.media_bytes += size
    call.first_chunk.set()
    call.chunks.put_nowait(size)


def _ended(call: Call) -> None:
    call.end_ns = time.monotonic_ns()
    call.end.set()


async def _hear_frames(reader: asyncio.StreamReader, call: Call) -> None:
    """Until the close frame. Text is the opening or the end mark, binary is media, and nobody looks into that."""
    while True:
        first, second = await reader.readexactly(2)
        length = second & 127
        if length == 126:
            (length,) = struct.unpack("!H", await reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await reader.readexactly(8))
        mask, body = await reader.readexactly(4), await reader.readexactly(length)
        opcode = first & 15
        if opcode == 2:
            _came(call, length)
        elif opcode == 1 and bytes(byte ^ mask[i % 4] for i, byte in enumerate(body)) == b'{"eof" : 1}':
            _ended(call)
        elif opcode == 8:
            return


async def _hear_chunks(reader: asyncio.StreamReader, call: Call) -> None:
    """Until the empty chunk."""
    while length := int(await reader.readline(), 16):
        await reader.readexactly(length + 2)
        _came(call, length)
    await reader.readexactly(2)
    _ended(call)
