"""The door's side of the pipe: an engine in a process of its own, spoken to over a socket.

The process shares our group and dies with us. When it dies before its time, whoever listens is told, and its sessions
are in the books as `worker_lost`.
"""

import asyncio
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from typing import IO, Final

from loadbench.engine.frames import Unframer, framed
from loadbench.engine.pipe import Finished, Inbound, Outbound, Start
from loadbench.results.masks import CUT, Masks, shorten
from loadbench.results.record import SessionRecord, Started

ENGINE: Final = (sys.executable, "-m", "loadbench.engine.child")
READ_BYTES: Final = 256 * 1024
PATIENCE_S: Final = 3.0
LAST_WORDS: Final = 2000


class EngineProcess:
    """One engine. `start` (with or without `spawn` before it), then `events` until it ends; `close` in any case."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._log: IO[bytes] | None = None
        self._masks = Masks(())
        self._begun: dict[str, Started] = {}
        self._started = 0

    @property
    def pid(self) -> int | None:
        """The process; None before `start`."""
        return self._process.pid if self._process else None

    async def spawn(self) -> None:
        """Spawn the process, which can so come up while the plan is not ready yet."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
            self._process = _spawn(theirs.fileno(), self._log)
        self._reader, self._writer = await asyncio.open_unix_connection(sock=ours)

    async def start(self, start: Start) -> None:
        """Hand the plan to the process; spawn it first where that has not been done."""
        self._masks = Masks([*start.secrets.values(), *start.hidden])
        if self._process is None:
            await self.spawn()
        await self.send(start)

    async def send(self, message: Inbound) -> None:
        """Say something to the engine; nothing happens where it is gone, for `events` says that."""
        if self._writer is None:
            return
        try:
            self._writer.write(framed(message))
            await self._writer.drain()
        except ConnectionError:
            return

    async def events(self) -> AsyncIterator[Outbound]:
        """What the engine says, up to `Finished`; where it died, the sessions that it took with it and a `Finished`."""
        unframer: Unframer[Outbound] = Unframer(Outbound)
        while data := await self._read():
            for event in unframer.feed(data):
                if isinstance(event, Started):
                    self._begun[event.id] = event
                    self._started += 1
                elif isinstance(event, SessionRecord):
                    self._begun.pop(event.id, None)
                yield event
                if isinstance(event, Finished):
                    return
        why = await self._obituary()
        now_ns = time.monotonic_ns()
        for started in self._begun.values():
            yield _lost(started, now_ns, why)
        yield Finished(ended_ns=now_ns, started=self._started, reason="engine lost", error=why)

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    async def close(self) -> None:
        """Let go of the process: it ends by itself when the pipe is gone, and is ended where it does not."""
        if self._writer is not None:
            self._writer.close()
        await self._status()
        if self._log is not None:
            self._log.close()

    async def _read(self) -> bytes:
        if self._reader is None:
            return b""
        try:
            return await self._reader.read(READ_BYTES)
        except ConnectionError:
            return b""

    async def _status(self) -> int | None:
        process = self._process
        if process is None:
            return None
        try:
            return await asyncio.to_thread(process.wait, PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return await asyncio.to_thread(process.wait)

    async def _obituary(self) -> str:
        status = await self._status()
        how = f"was ended by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"
        return self._masks.mask(f"the engine's process {how}{self._last_line()}")

    def _last_line(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        whole = self._log.read()
        words = whole[-LAST_WORDS:].decode("utf-8", "backslashreplace")
        lines = (CUT + words if len(whole) > LAST_WORDS else words).strip().splitlines()
        return f": {lines[-1]}" if lines else ""


def _spawn(fd: int, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """A Ctrl-C or hang-up meant for us may come before the child can ignore it, so the child is born deaf to them."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            [*ENGINE, str(fd)],
            pass_fds=[fd],
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _lost(started: Started, now_ns: int, why: str) -> SessionRecord:
    return SessionRecord(
        id=started.id,
        worker=started.worker,
        user=started.user,
        stage=started.stage,
        window=started.window,
        planned_ns=started.planned_ns,
        begun_ns=started.begun_ns,
        ended_ns=now_ns,
        outcome="worker_lost",
        side="tester",
        cause=shorten(why, 500),
    )
