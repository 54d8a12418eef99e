"""The simulator as a local program: one session from standard input to standard output, and a status at its end.

It is told who it is by its environment: LOADBENCH_SESSION, as the tester calls the session, and LOADBENCH_CLIP, where
the tester gives it (`target.env`). Several write to one log, each its own lines.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import Literal

from loadbench.session.load import load_profile
from loadbench.simulator.log import Entry
from loadbench.simulator.options import Options, OptionsError
from loadbench.simulator.serve import house_of
from loadbench.simulator.sitting import House, Sitting

FAILED = 1  # the status where a close code is none


def run(options: Options) -> int:
    """One session; the status to exit with, which is best done at once, so that the end is not late as well.

    Raises OptionsError, ProfileError and the like before it speaks.
    """
    return asyncio.run(_session(options))


async def _session(options: Options) -> int:
    profile = load_profile(options.profile)
    if profile.transport.kind != "process":
        raise OptionsError([f"--stdio needs a profile of a local program; {profile.name} is {profile.transport.kind}"])
    if options.nice:
        os.nice(options.nice)
    with contextlib.ExitStack() as stack:
        house = await asyncio.to_thread(house_of, options, profile, stack)
        return await _sit(house)


async def _sit(house: House) -> int:
    loop, now_ns = asyncio.get_running_loop(), house.clock()
    name = os.environ.get("LOADBENCH_SESSION", "")
    number = re.search(r"\d+$", name)
    entry = Entry(session=name or f"peer-{os.getpid()}", clip=os.environ.get("LOADBENCH_CLIP"), opened_ns=now_ns)
    house.gate.leaves(now_ns)  # this session is the service's first: it counts from here
    wire = _Pipes()
    sitting = Sitting(house, wire, house.fate.course(int(number[0]) if number else 0), entry)
    loop.add_signal_handler(signal.SIGTERM, wire.over.set)
    talking = asyncio.create_task(_talk(sitting, wire))
    sitting.opened()
    try:
        await loop.connect_read_pipe(lambda: _Input(house, sitting, wire), sys.stdin)
    except ValueError:
        raise OptionsError(["--stdio reads from a pipe, as a tester gives it"]) from None
    await wire.over.wait()
    sitting.gone(house.clock(), wire.ended or "client", wire.status)
    talking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await talking
    return wire.status


async def _talk(sitting: Sitting, wire: "_Pipes") -> None:
    try:
        await sitting.mouth.talk()
    except ConnectionError:  # nobody reads any more
        wire.over.set()


class _Pipes:
    """Says things on standard output. `over`: the session is, and `status` is what the process exits with."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.ended: Literal["service"] | None = None
        self.status = 0

    async def say(self, message: str | bytes) -> None:
        data = message.encode() if isinstance(message, str) else message
        sys.stdout.buffer.write(data if data.endswith(b"\n") else data + b"\n")
        sys.stdout.flush()

    async def close(self, code: int | None) -> None:
        self._end(0 if code is None else code if 0 < code < 256 else FAILED)

    async def drop(self, how: str | int) -> None:
        if how == "rst":
            os.kill(os.getpid(), signal.SIGKILL)
        self._end(0 if how == "fin" else int(how) % 256)

    def _end(self, status: int) -> None:
        self.ended, self.status = "service", status
        self.over.set()


class _Input(asyncio.Protocol):
    """Stamps what comes, and cuts it as the profile says."""

    def __init__(self, house: House, sitting: Sitting, wire: _Pipes) -> None:
        self._house, self._sitting, self._wire = house, sitting, wire
        self._stdin = house.profile.transport.stdin
        self._marked_by_end = any(step.end_body for step in house.profile.end)
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        now_ns = self._house.clock()
        for message in self._messages(data):
            self._sitting.heard("body", message, now_ns)

    def eof_received(self) -> bool:
        if self._marked_by_end:
            self._sitting.ended(self._house.clock())
        else:
            self._wire.over.set()
        return False

    def _messages(self, data: bytes) -> Iterator[bytes]:
        if self._stdin == "raw":
            yield data
            return
        self._rest += data
        while (size := self._whole()) is not None:
            head = 4 if self._stdin == "length" else 0
            message, self._rest = self._rest[head:size], self._rest[size:]
            yield message.removesuffix(b"\n") if self._stdin == "lines" else message

    def _whole(self) -> int | None:
        """How many bytes the first message has, with all that is about it; None: it is not all there."""
        if self._stdin == "lines":
            end = self._rest.find(b"\n")
            return None if end < 0 else end + 1
        size = 4 + int.from_bytes(self._rest[:4], "big")
        return size if len(self._rest) >= 4 and size <= len(self._rest) else None
