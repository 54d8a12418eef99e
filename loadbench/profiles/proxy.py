"""Between a client and its service: bytes pass as they are, and copies of them are overheard.

One thing is changed, and has to be: the `Host` of a connection's first request, and its target where the client asks
for nothing but "/". All else, frames, masks, pings, close codes, compression, chunks, passes byte by byte.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from loadbench.profiles.overhear import Overhearing, Said, Who
from loadbench.transports.contract import Tls
from loadbench.transports.dial import tls_context

READ_BYTES: Final = 64 * 1024
MOST_HEAD_BYTES: Final = 64 * 1024
CONNECT_S: Final = 10.0
USUAL: Final = {"ws": 80, "http": 80, "wss": 443, "https": 443}
END: Final = b"\r\n\r\n"


class Proxy:
    """Serves connections to one service. `emit` gets what is said; `ended` is called at the end of each connection."""

    def __init__(self, to: str, emit: Callable[[Said], None], ended: Callable[[int, str], None]) -> None:
        self._to: SplitResult = urlsplit(to)
        self._emit, self._ended = emit, ended
        self._count = 0
        self._open: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[int]:
        """Listen; gives the port. Connections that still stand are cut on leaving. Raises OSError."""
        server = await asyncio.start_server(self._accepted, host, port)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        number, task = self._count, asyncio.current_task()
        if task is not None:
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        trouble = ""
        try:
            await self._between(number, reader, writer)
        except (OSError, TimeoutError) as error:
            trouble = f"the service cannot be reached: {error or 'no answer'}"
        finally:
            await _closed(writer)
            self._ended(number, trouble)

    async def _between(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = self._to.hostname or ""
        context = tls_context(Tls()) if self._to.scheme in ("wss", "https") else None
        port = self._to.port or USUAL[self._to.scheme]
        opening = asyncio.open_connection(host, port, ssl=context)
        their_reader, their_writer = await asyncio.wait_for(opening, CONNECT_S)
        overhearing = Overhearing(number, self._emit)
        try:
            head = await _head(reader)
            overhearing.hear("client", head, time.monotonic_ns())
            their_writer.write(readdressed(head, self._to))

            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on("client", reader, their_writer, overhearing))
                group.create_task(_pass_on("service", their_reader, writer, overhearing))
        finally:
            await _closed(their_writer)


def readdressed(head: bytes, to: SplitResult) -> bytes:
    """The first bytes of a connection with the service's own name, and its target where the client asks for "/"."""
    lines = head.split(b"\r\n")
    words = lines[0].split(b" ")
    if not head.partition(END)[1] or len(words) != 3:
        return head  # no HTTP: as it is
    path, mark, query = words[1].partition(b"?")
    if path == b"/" and to.path not in ("", "/"):
        words[1] = to.path.encode()
        asked = query if mark else to.query.encode()
        words[1] += b"?" + asked if asked else b""
    elif path == b"/" and not mark and to.query:
        words[1] += b"?" + to.query.encode()
    name = (to.hostname or "") if ":" not in (to.hostname or "") else f"[{to.hostname}]"
    host = name if to.port in (None, USUAL[to.scheme]) else f"{name}:{to.port}"
    upto = lines.index(b"")
    kept = [
        re.sub(rb"(?i)^(host:[ \t]*).*", lambda found: found[1] + host.encode(), line) if at else b" ".join(words)
        for at, line in enumerate(lines[:upto])
    ]
    return b"\r\n".join([*kept, *lines[upto:]])


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The first request's head with whatever came behind it, or all that there is."""
    head = b""
    while END not in head and len(head) < MOST_HEAD_BYTES:
        data = await _read(reader)
        if not data:
            break
        head += data
    return head


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(READ_BYTES)
    except ConnectionError:
        return b""


async def _pass_on(
    who: Who, source: asyncio.StreamReader, target: asyncio.StreamWriter, overhearing: Overhearing
) -> None:
    """One way, to its end. Either side may go while the other still speaks: that is no error of ours."""
    with contextlib.suppress(ConnectionError):
        while data := await _read(source):
            at_ns = time.monotonic_ns()
            target.write(data)  # first of all: who listens is not to hold up who speaks
            overhearing.hear(who, data, at_ns)
            await target.drain()
    overhearing.hear(who, b"", time.monotonic_ns())
    with contextlib.suppress(OSError):
        if target.can_write_eof():
            target.write_eof()
        else:
            target.close()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError, TimeoutError, OSError):
        await asyncio.wait_for(writer.wait_closed(), 1.0)
