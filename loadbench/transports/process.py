"""A local program: media to its standard input, messages from its standard output, one program a session.

The program is started without a shell, in a process group of its own. Input and output are pipes that we read and write
without waiting; a pipe that is full is a far side that takes no more. The end of its output and its end together are
the end of the connection: status 0 is a regular close, another status is a close with that code, a signal is a reset.

Whatever way a session ends, its group is told to end, and killed a second later. When we go without a word the kernel
kills the program (Linux); what that has started itself then sees the end of its input, and no more. Secrets go by the
environment: everybody on the machine can read a command line.
"""

import asyncio
import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Final, Literal

from loadbench.session.wire import Cause, Kind, Opened
from loadbench.transports.contract import (
    NO_OPTIONS,
    Address,
    AddressError,
    Buffer,
    Clock,
    Link,
    Listener,
    takes_nothing,
)
from loadbench.transports.dial import HIGH_WATER, LINGER_S
from loadbench.transports.keeper import keeper

SCHEME: Final = "exec:"
LOW_WATER: Final = HIGH_WATER // 4
READ_BYTES: Final = 4096  # a turn: of a program that floods us a thousand lines, and not all that a pipe holds
ASIDE_BYTES: Final = 64 * 1024  # of a program's standard error, its end
SAID_CHARACTERS: Final = 300
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUR_SHORTAGE: Final = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}


class End(bytes):
    """Wire bytes after which the input is closed."""


class PipeEncoder:
    """Messages as a program reads them. `stdin`: raw (bytes one after another), length, or lines."""

    def __init__(self, stdin: str) -> None:
        self._stdin = stdin

    def whole(self, kind: Kind, payload: Buffer, role: str = "media") -> bytes:  # noqa: ARG002 - all in one stream
        """One message; "end" closes the input, after a last message where there is one."""
        if kind == "end":
            return End(self.joined("binary", b"", payload, b"") if len(payload) else b"")
        return self.joined(kind, b"", payload, b"")

    def shared(self, payload: Buffer) -> bytes:
        """The payload as it is."""
        return bytes(payload)

    def joined(self, kind: Kind, before: bytes, shared: Buffer, after: bytes) -> bytes:  # noqa: ARG002 - pipes have no kinds
        """One message around a shared part."""
        if self._stdin == "length":
            head = (len(before) + len(shared) + len(after)).to_bytes(4, "big")
            return b"".join((head, before, shared, after))
        return b"".join((before, shared, after, b"\n" if self._stdin == "lines" else b""))


class ProcessLink:
    """One program. The cause is decided once and delivered once; after that nothing is delivered."""

    def __init__(self, program: "subprocess.Popen[bytes]", listener: Listener, clock: Clock) -> None:
        self.cause: Cause | None = None
        self.mouth: list[Callable[[Buffer], int]] = [takes_nothing]
        self._program, self._listener, self._clock = program, listener, clock
        self._loop = asyncio.get_running_loop()
        self._life: int | None = os.pidfd_open(program.pid)
        self._in, self._out, self._err = program.stdin, program.stdout, program.stderr
        for pipe in (self._in, self._out, self._err):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        self._queue: deque[memoryview] = deque()
        self._queued = 0
        self._paused = self._ends = self._shut = False
        self._status: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._aside = bytearray()
        self._loop.call_soon(self._begin)

    # What the engine calls.

    def write(self, wire: Buffer) -> int:
        """Hand a message over, or nothing once the input is closed; see `Link`."""
        try:
            taken = self.mouth[0](wire)
        except OSError:  # full, or closed by the program: `rest` meets the same
            taken = 0
        waiting = 0 if taken == len(wire) else self.rest(wire, taken)
        if isinstance(wire, End):
            self._end_input()
        return waiting

    def rest(self, wire: Buffer, taken: int) -> int:
        """Queue what was not taken; see `Link`."""
        waiting = self._queued
        if self._in is None or self._ends:
            return waiting
        if not self._queue:
            self._loop.add_writer(self._in.fileno(), self._drain)
            self.mouth[0] = takes_nothing
        self._queue.append(memoryview(wire)[taken:])
        self._queued += len(wire) - taken
        if self._queued > HIGH_WATER and not self._paused and self.cause is None:
            self._paused = True
            self._listener.paused(self._clock())
        return waiting

    def unsent(self) -> int:
        """Bytes that the pipe has not taken."""
        return self._queued

    def aside(self) -> bytes:
        """The end of what the program has said on its standard error."""
        while self._hear_aside():
            pass
        return bytes(self._aside)

    def shut(self, code: int) -> None:  # noqa: ARG002 - a program takes no code
        """Close its input, once what waits has been taken; its own end is what `lost` reports."""
        if self.cause is None:
            self._shut = True
            self._end_input()

    def abort(self) -> None:
        """End the program and its group. The listener hears of it in a later turn of the loop."""
        if self.cause is None:
            self.cause = Cause("aborted", self._clock(), by="us")
            self._let_go()
            self._loop.call_soon(self._listener.lost, self.cause)

    # What the loop calls.

    def _begin(self) -> None:
        if self.cause is not None or self._in is None or self._out is None or self._err is None or self._life is None:
            return
        self.mouth[0] = self._give
        self._listener.opened(Opened(self._clock(), remote=f"process {self._program.pid}"))
        if self.cause is None:
            self._loop.add_reader(self._out.fileno(), self._hear)
            self._loop.add_reader(self._err.fileno(), self._hear_aside)
            self._loop.add_reader(self._life, self._exited)

    def _give(self, wire: Buffer) -> int:
        return 0 if self._in is None else os.write(self._in.fileno(), wire)

    def _drain(self) -> None:
        """Give what waits, as much as the pipe takes."""
        try:
            while self._queue:
                taken = self._give(self._queue[0])
                self._queued -= taken
                if taken == len(self._queue[0]):
                    self._queue.popleft()
                else:
                    self._queue[0] = self._queue[0][taken:]
        except BlockingIOError:
            pass
        except OSError:  # the program has closed its input, and may still speak
            self._close_input()
        if self._paused and self._queued <= LOW_WATER:
            self._resume()
        if self._in is not None and not self._queue:
            self._loop.remove_writer(self._in.fileno())
            self.mouth[0] = self._give
            if self._ends:
                self._close_input()

    def _hear(self) -> None:
        """Stamp, then read; once a turn, so that a program that floods us leaves the others their turns."""
        arrival_ns = self._clock()
        data = _read(self._out)
        if data:
            self._listener.received(data, arrival_ns)
        elif data is not None:
            self._close(self._out)
            self._out = None
            self._look_for_the_end()

    def _hear_aside(self) -> bool:
        data = _read(self._err)
        if data:
            self._aside += data
            del self._aside[:-ASIDE_BYTES]
        elif data is not None:
            self._close(self._err)
            self._err = None
        return bool(data)

    def _exited(self) -> None:
        self._close(self._life)
        self._life = None
        self._status = self._program.wait()
        self._look_for_the_end()

    # The end.

    def _look_for_the_end(self) -> None:
        """Its output is over, or the program is; the other must follow soon, unless somebody else holds the pipe."""
        if self.cause is not None:
            return
        if self._out is None and self._status is not None:
            self._end()
        elif self._timer is None:
            self._timer = self._loop.call_later(LINGER_S, self._end)

    def _end(self) -> None:
        if self.cause is not None:
            return
        self.aside()
        self.cause = self._farewell()
        self._let_go()
        self._listener.lost(self.cause)

    def _farewell(self) -> Cause:
        at_ns, status = self._clock(), self._status
        if status is None:
            return Cause("eof", at_ns, reason="the program closed its output, and did not end")
        if status < 0:
            name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
            return Cause("reset", at_ns, reason=f"the program was ended by {name}{self._said()}")
        by: Literal["us", "target"] = "us" if self._shut else "target"
        reason = f"the program ended with status {status}{self._said()}" if status else ""
        return Cause("closed", at_ns, by=by, code=status or None, reason=reason)

    def _said(self) -> str:
        """The last line of its standard error: what a program dies of is most often said there."""
        lines = [line for line in self._aside.decode("utf-8", "backslashreplace").splitlines() if line.strip()]
        return f": {lines[-1].strip()[:SAID_CHARACTERS]}" if lines else ""

    def _let_go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._close_input()
        for file in (self._out, self._err, self._life):
            self._close(file)
        self._out = self._err = self._life = None
        keeper().end(self._program)

    def _end_input(self) -> None:
        self._ends = True
        if not self._queue:
            self._close_input()

    def _close_input(self) -> None:
        """From now on the program is given nothing more."""
        if self._in is not None:
            self._loop.remove_writer(self._in.fileno())
            self._in.close()
        self._in, self.mouth[0] = None, takes_nothing
        self._queue.clear()
        self._queued = 0
        if self._paused:
            self._resume()

    def _resume(self) -> None:
        self._paused = False
        if self.cause is None:
            self._listener.resumed(self._clock())

    def _close(self, file: IO[bytes] | int | None) -> None:
        """Read from it no more."""
        if isinstance(file, int):
            self._loop.remove_reader(file)
            os.close(file)
        elif file is not None:
            self._loop.remove_reader(file.fileno())
            file.close()


class ProcessTransport:
    """See the module."""

    name = "process"

    def encoder(self, random: Callable[[int], bytes], options: Mapping[str, str] = NO_OPTIONS) -> PipeEncoder:  # noqa: ARG002
        """Messages with the framing that the profile names; nothing is masked."""
        return PipeEncoder(options.get("stdin", "raw"))

    def check(self, address: Address) -> None:
        """Raise `AddressError` for a command that cannot be read, a program that is not there, a name that is none."""
        problems = [f"target.env: {name!r} is no name for a variable" for name, _ in address.env if not _fits(name)]
        try:
            words = command(address.url)
        except AddressError as error:
            raise AddressError([*error.problems, *problems]) from None
        path = dict(address.env).get("PATH", os.environ.get("PATH"))
        if shutil.which(words[0], path=path) is None:
            problems.append(f"target.url: there is no program {words[0]} here, or it may not be run")
        if not hasattr(os, "pidfd_open"):
            problems.append("target.url: local programs need Linux")
        if problems:
            raise AddressError(problems)

    async def dial(self, address: Address, listener: Listener, clock: Clock) -> Link | None:
        """Start the program; `opened` follows as soon as it runs."""
        words, env = command(address.url), {**os.environ, **dict(address.env)}
        try:
            program = await keeper().start(words, env)
            try:
                return ProcessLink(program, listener, clock)
            except OSError:  # no file handle is left for it
                keeper().unwanted(program)
                raise
        except OSError as error:
            listener.lost(_not_started(error, words[0], clock()))
        except asyncio.CancelledError:
            listener.lost(Cause("aborted", clock(), by="us"))
            raise
        return None


def command(url: str) -> list[str]:
    """The words of an `exec:` address, cut as a shell would cut them; nothing in them is expanded. AddressError."""
    if not url.startswith(SCHEME):
        raise AddressError([f"target.url must begin with {SCHEME}, for instance {SCHEME}./recognise --live"])
    try:
        words = shlex.split(url.removeprefix(SCHEME))
    except ValueError as error:
        raise AddressError([f"target.url: the command cannot be read: {str(error).lower()}"]) from None
    if not words:
        raise AddressError([f"target.url: {SCHEME} needs a command"])
    return words


def _not_started(error: OSError, program: str, at_ns: int) -> Cause:
    reason = f"{program} could not be started: {(error.strerror or str(error)).lower()}"
    if error.errno in _OUR_SHORTAGE:
        return Cause("resource", at_ns, by="us", reason=reason)
    return Cause("refused", at_ns, reason=reason)


def _read(pipe: IO[bytes] | None) -> bytes | None:
    """What is there; b"" at its end, None where there is nothing now, or nothing to read from."""
    try:
        return None if pipe is None else os.read(pipe.fileno(), READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _fits(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


transport = ProcessTransport()
