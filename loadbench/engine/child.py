"""The engine's own process: `python -m loadbench.engine.child FD`, with a connected stream socket at FD.

`Start` comes first; secrets come with it and by no other way. The process ends when the run has, and when the other end
of the socket is gone. It leaves Ctrl-C to the parent, which shares its terminal.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from typing import Any, Final, cast

from loadbench.engine import health
from loadbench.engine.frames import Unframer, framed
from loadbench.engine.pipe import Begin, Finished, Inbound, Outbound, Start, Stop
from loadbench.engine.run import Engine

BATCH_S: Final = 0.02  # of messages that leave together
LINGER_S: Final = 10.0  # for the parent to take the last words


class Pipe(asyncio.Protocol):
    """The child's end: never blocks, keeps what the parent has not taken, and knows how much that was at most."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.start: asyncio.Future[Start] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.backlog_max = 0
        self.engine: Engine | None = None
        self._early: list[Begin | Stop] = []
        self._loop = loop
        self._unframer: Unframer[Inbound] = Unframer(Inbound)
        self._transport: asyncio.Transport | None = None
        self._batch: list[bytes] = []

    def serve(self, engine: Engine) -> None:
        """From now on what comes in is for `engine`."""
        self.engine = engine
        for message in self._early:
            engine.take(message)

    def emit(self, message: Outbound) -> None:
        """Send with the next batch."""
        if not self._batch:
            self._loop.call_later(BATCH_S, self._flush)
        self._batch.append(framed(message))

    def close(self) -> None:
        """Send what is left and end; `gone` follows when the parent has taken it."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def levels(self) -> dict[str, float]:
        """For each tick: the most bytes that waited for the parent."""
        return {"pipe_backlog_max_bytes": float(self.backlog_max)}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        for message in self._unframer.feed(data):
            if isinstance(message, Start):
                self.start.set_result(message)
            elif self.engine is not None:
                self.engine.take(message)
            else:
                self._early.append(message)

    def connection_lost(self, _exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._transport = None
        if not self.gone.done():
            self.gone.set_result(None)

    def _flush(self) -> None:
        batch, self._batch = b"".join(self._batch), []
        if self._transport is not None and batch:
            self._transport.write(batch)
            self.backlog_max = max(self.backlog_max, self._transport.get_write_buffer_size())


async def serve(fd: int) -> None:
    """Carry out the run that comes over the socket. Where the parent goes before its end, so does the process."""
    loop = asyncio.get_running_loop()
    _, pipe = await loop.create_unix_connection(Pipe, sock=socket.socket(fileno=fd))
    pipe.gone.add_done_callback(_orphaned)
    await _carry_out(await pipe.start, pipe)
    pipe.gone.remove_done_callback(_orphaned)
    pipe.close()
    await asyncio.wait({pipe.gone}, timeout=LINGER_S)


def _orphaned(_: "asyncio.Future[None]") -> None:
    """Nobody is left to tell. At once, for a name lookup in a thread could hold an orderly exit up for minutes."""
    os._exit(1)


async def _carry_out(start: Start, pipe: Pipe) -> None:
    facts: dict[str, Any] = {"files": health.raise_file_limit(), "loop": loop_name()}
    if start.realtime:
        facts["realtime"] = health.ask_realtime()
    health.quiet_collector()
    try:
        engine = Engine(start, pipe.emit, facts=facts, levels=pipe.levels, settle=health.settle)
        health.settle()
        pipe.serve(engine)
        await engine.run()
    except Exception as error:  # said to the parent, which says it to the user
        problems = getattr(error, "problems", None) or [f"{type(error).__name__}: {error}"]
        started = pipe.engine.started if pipe.engine else 0
        pipe.emit(Finished(ended_ns=time.monotonic_ns(), started=started, reason="failed", error="; ".join(problems)))


def loop_name() -> str:
    """Whose loop is running."""
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def main() -> None:
    """See the module."""
    for number in (signal.SIGINT, signal.SIGHUP):  # meant for the parent, which tells us what to do
        signal.signal(number, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(int(sys.argv[1])))


def new_loop() -> asyncio.AbstractEventLoop:
    """The loop of uvloop where there is one: half the processor time."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


if __name__ == "__main__":
    main()
