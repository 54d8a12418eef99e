"""A service of our own in a process of its own, which answers at once: for the canary, and for the doctor.

`python -m loadbench.simulator.responder PROFILE` says on its first line where it listens, on loopback and nowhere
else, or what stands in its way. It ends when its standard input does, and so with its parent, however that one ends. It
leaves Ctrl-C to the parent, which shares its terminal. The parent's side needs no server, and so loads none.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Final

from loadbench.simulator.options import Options

LISTENS: Final = "listens "
PATIENCE_S: Final = 15.0  # for the process to come up, on a small device
END_S: Final = 3.0


class ResponderError(Exception):
    """There is no responder; says why."""


class Responder:
    """The process. `url` is where it listens."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self.url = url

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid


@contextlib.asynccontextmanager
async def responding(profile: str) -> AsyncIterator[Responder]:
    """A responder that speaks `profile` (a shipped name or a path); gone when the block is left.

    Raises ResponderError where it cannot speak the profile, or does not come up.
    """
    process = await _spawned(profile)
    try:
        yield Responder(process, await _address(process))
    finally:
        await _ended(process)


def at_once(profile: str) -> Options:
    """A service that has no delays."""
    return Options(profile=profile, first_s=0.0, final_s=0.0, media_first_s=0.0, media_silence_s=0.0)


async def _spawned(profile: str) -> asyncio.subprocess.Process:
    """A Ctrl-C or hang-up meant for us may come before the child can ignore it, so the child is born deaf to them."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadbench.simulator.responder", profile),
            stdin=subprocess.PIPE,  # held open by us alone: its end is ours
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise ResponderError(f"no process for it: {error.strerror or error}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


async def _address(process: asyncio.subprocess.Process) -> str:
    if process.stdout is None:
        raise ResponderError("it has no voice")
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode().strip()
    except TimeoutError:
        raise ResponderError(f"it did not come up within {PATIENCE_S:g} s") from None
    if not line.startswith(LISTENS):
        raise ResponderError(line or "it ended without a word")
    return line.removeprefix(LISTENS)


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), END_S)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _serve(profile: str) -> None:
    from loadbench.simulator import serve

    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _heard_of_parent)
    try:
        await serve.serve(at_once(profile), ready=lambda url: print(f"{LISTENS}{url}", flush=True))
    except ValueError as error:
        print("; ".join(getattr(error, "problems", [str(error)])), flush=True)


def _heard_of_parent() -> None:
    """At once: sessions that are still open belong to nobody."""
    if not os.read(sys.stdin.fileno(), 64):
        os._exit(0)


def main() -> None:
    """See the module."""
    from loadbench.engine.child import new_loop
    from loadbench.engine.health import raise_file_limit

    for number in (signal.SIGINT, signal.SIGHUP):  # meant for the parent, whose end is ours
        signal.signal(number, signal.SIG_IGN)
    raise_file_limit()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    main()
