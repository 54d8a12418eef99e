"""A speech service of a few lines that shares no code with the package: the second opinion on pace and time stamps.

It speaks the Vosk protocol over a hand-written WebSocket (RFC 6455) on asyncio streams, and keeps what it saw: arrival
times on the machine's monotonic clock, and bytes. `first_s` after the first chunk it says a partial, `final_s` after
the end mark the final.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import struct
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass
class Seen:
    """One conversation as the service saw it; times in monotonic nanoseconds."""

    session: str
    config: str = ""
    arrivals: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    media: bytearray = field(default_factory=bytearray)
    eof_ns: int = 0
    partial_ns: int = 0
    final_ns: int = 0


@dataclass
class Stub:
    """The service; `seen` by session id."""

    first_s: float = 0.3
    final_s: float = 0.5
    text: str = "the red boat leaves"
    seen: dict[str, Seen] = field(default_factory=dict)
    open_now: int = 0
    open_peak: int = 0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=512)
        async with server:
            yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_now += 1
        self.open_peak = max(self.open_peak, self.open_now)
        tasks: set[asyncio.Task[None]] = set()
        try:
            seen = await self._shake_hands(reader, writer)
            while True:
                opcode, payload = await _frame(reader)
                now = time.monotonic_ns()
                if opcode == 2:
                    if not seen.arrivals:
                        tasks.add(asyncio.create_task(self._partial(writer, seen)))
                    seen.arrivals.append(now)
                    seen.sizes.append(len(payload))
                    seen.media += payload
                elif opcode == 1 and payload == b'{"eof" : 1}':
                    seen.eof_ns = now
                    await asyncio.sleep(self.final_s)
                    seen.final_ns = time.monotonic_ns()
                    _say(writer, {"text": self.text})
                    writer.write(b"\x88\x02\x03\xe8")
                elif opcode == 1:
                    seen.config = payload.decode()
                elif opcode == 8:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self.open_now -= 1
            for task in tasks:
                task.cancel()
            writer.close()

    async def _shake_hands(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Seen:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        headers = {name.lower(): value for name, value in headers.items()}
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        seen = Seen(headers["x-loadbench-session"])
        self.seen[seen.session] = seen
        return seen

    async def _partial(self, writer: asyncio.StreamWriter, seen: Seen) -> None:
        await asyncio.sleep(self.first_s)
        seen.partial_ns = time.monotonic_ns()
        _say(writer, {"partial": self.text.split()[0]})


async def _frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, second = await reader.readexactly(2)
    length = second & 127
    if length == 126:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
    elif length == 127:
        (length,) = struct.unpack("!Q", await reader.readexactly(8))
    assert second & 128, "a client masks its frames"
    mask = await reader.readexactly(4)
    body = await reader.readexactly(length)
    repeated = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
    return first & 15, (int.from_bytes(body, "big") ^ repeated).to_bytes(length, "big")


def _say(writer: asyncio.StreamWriter, message: dict[str, str]) -> None:
    body = json.dumps(message).encode()
    assert len(body) < 126
    writer.write(bytes([0x81, len(body)]) + body)
