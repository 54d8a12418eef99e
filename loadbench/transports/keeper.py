"""Who starts local programs and sees them to their end: a thread of its own, for two reasons.

The kernel ends a program with the *thread* that started it (PR_SET_PDEATHSIG), so that thread has to live as long as we
do. And a group that was told to end is looked after for a second, whatever has become of the loop meanwhile.
"""

import asyncio
import atexit
import contextlib
import ctypes
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Final

GRACE_S: Final = 1.0  # from SIGTERM to SIGKILL
LOOK_S: Final = 0.02
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h

Program = subprocess.Popen[bytes]


class Keeper:
    """The thread. What it is asked for is done in turn."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._alive: set[Program] = set()
        self._ending: dict[Program, tuple[float, bool]] = {}  # until when we wait, and whether it was killed
        threading.Thread(target=self._keep, name="programs", daemon=True).start()
        atexit.register(self.close)

    async def start(self, words: list[str], env: dict[str, str]) -> Program:
        """Start a program with pipes for its three streams. Raises OSError. Cancelled, it ends what was started."""
        loop = asyncio.get_running_loop()
        started: asyncio.Future[Program] = loop.create_future()
        self._asked.put(partial(self._start, words, env, loop, started))
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            started.add_done_callback(self._given_up)
            raise

    def end(self, program: Program) -> None:
        """Tell the program and its group to end, and see that they do."""
        self._asked.put(partial(self._end, program))

    def unwanted(self, program: Program) -> None:
        """End a program whose pipes nobody has taken."""
        for pipe in (program.stdin, program.stdout, program.stderr):
            if pipe is not None:
                pipe.close()
        self.end(program)

    def close(self) -> None:
        """End all that still run, and wait until they have ended."""
        for program in list(self._alive):
            self.end(program)
        patience = time.monotonic() + 2 * GRACE_S
        while self._alive and time.monotonic() < patience:
            time.sleep(LOOK_S)

    # In the thread.

    def _keep(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                self._asked.get(timeout=LOOK_S if self._ending else None)()
            for program, (until, killed) in list(self._ending.items()):
                late = time.monotonic() > until
                if _gone(program) or (late and killed):  # what outlives a kill waits for somebody else to reap it
                    del self._ending[program]
                    self._alive.discard(program)
                elif late:
                    _tell(program, signal.SIGKILL)
                    self._ending[program] = time.monotonic() + GRACE_S, True

    def _start(
        self,
        words: list[str],
        env: dict[str, str],
        loop: asyncio.AbstractEventLoop,
        started: "asyncio.Future[Program]",
    ) -> None:
        pipe = subprocess.PIPE
        try:
            program = subprocess.Popen(  # noqa: S603 - the user's own command
                words,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                bufsize=0,
                env=env,
                process_group=0,
                preexec_fn=partial(_in_the_child, os.getpid()),
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            trouble = error if isinstance(error, OSError) else OSError(str(error))
            _say(loop, partial(_settle, started, None, trouble))
            return
        self._alive.add(program)
        if not _say(loop, partial(_settle, started, program, None)):
            self._end(program)

    def _end(self, program: Program) -> None:
        if program in self._alive and program not in self._ending:
            _tell(program, signal.SIGTERM)
            self._ending[program] = time.monotonic() + GRACE_S, False

    def _given_up(self, started: "asyncio.Future[Program]") -> None:
        if not started.cancelled() and started.exception() is None:
            self.unwanted(started.result())


@cache
def keeper() -> Keeper:
    """The one of this process, from when it is first needed."""
    return Keeper()


def _settle(started: "asyncio.Future[Program]", program: Program | None, trouble: OSError | None) -> None:
    if program is not None:
        started.set_result(program)
    else:
        started.set_exception(trouble or OSError())


def _say(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> bool:
    """False where the loop is no more."""
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        return False
    return True


def _tell(program: Program, number: signal.Signals) -> None:
    """To the group: it keeps its number as long as anybody is in it."""
    try:
        os.killpg(program.pid, number)
    except OSError:  # nobody is left, or nobody whom we may end
        return


def _gone(program: Program) -> bool:
    """Whether the program has ended, and all of its group; no zombie is left of it."""
    program.poll()
    try:
        os.killpg(program.pid, 0)
    except OSError:
        return program.returncode is not None
    return False


_prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux only


def _in_the_child(parent: int) -> None:
    """Between fork and exec: signals as everybody expects them, and no life after ours."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
