"""A WebSocket service that does next to nothing, so that the sender is what is measured.

It reads frames without unmasking them and keeps the arrival time of each, by connection; every tenth frame it says a
partial, after a text frame a final and a close. On SIGTERM it writes one JSON line a connection to the file it was
given: arrival times in monotonic nanoseconds.

    python -m benchmarks.sink ARRIVALS.jsonl
"""

import array
import asyncio
import base64
import contextlib
import hashlib
import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import ClassVar

import uvloop

PARTIAL = b'\x81\x11{"partial":"red"}'
FINAL = b'\x81\x14{"final":"red boat"}' + b"\x88\x02\x03\xe8"
EVERY = 10
KEY = re.compile(rb"(?i)sec-websocket-key: *([^\r]+)")


class Sink(asyncio.Protocol):
    """One connection; `arrivals` of media frames on the machine's monotonic clock."""

    seen: ClassVar[list["array.array[int]"]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.arrivals = array.array("q")
        self.seen.append(self.arrivals)
        self.buffer = b""
        self.shaken = False

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self.buffer += data
        if not self.shaken and not self._shake_hands():
            return
        at, size = 0, len(self.buffer)
        while size - at >= 6:
            length, head = self.buffer[at + 1] & 127, 6
            if length == 126:
                if size - at < 8:
                    break
                length, head = int.from_bytes(self.buffer[at + 2 : at + 4], "big"), 8
            elif length == 127:
                if size - at < 14:
                    break
                length, head = int.from_bytes(self.buffer[at + 2 : at + 10], "big"), 14
            if size - at < head + length:
                break
            self._frame(self.buffer[at] & 15, now)
            at += head + length
        self.buffer = self.buffer[at:]

    def _frame(self, opcode: int, now: int) -> None:
        if opcode == 2:
            self.arrivals.append(now)
            if len(self.arrivals) % EVERY == 0:
                self.transport.write(PARTIAL)
        elif opcode == 1:
            self.transport.write(FINAL)
        elif opcode == 8:
            self.transport.close()

    def _shake_hands(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        found = KEY.search(self.buffer[:end])
        assert found
        guid = found.group(1).strip() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            + base64.b64encode(hashlib.sha1(guid).digest())
            + b"\r\n\r\n"
        )
        self.buffer, self.shaken = self.buffer[end + 4 :], True
        return True


async def main(path: Path) -> None:
    """Serve until SIGTERM."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(Sink, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stop.wait()
    with path.open("w") as file:
        for arrivals in Sink.seen:
            file.write(json.dumps(arrivals.tolist()) + "\n")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(main(Path(sys.argv[1])))
