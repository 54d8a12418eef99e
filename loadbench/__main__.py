"""The way in: `loadbench`, or `python -m loadbench`. It is light: the command line behind it takes a second to load.

Whatever a user does to a command from outside ends in an exit code and at most one line, not in a traceback: Ctrl-C
while it still loads, and standard output that goes nowhere (`| head -1` leaves the run's own exit code; a full disk is
trouble, and exit code 2).
"""

import errno
import os
import signal
import sys
from typing import Any, Final, TextIO

GONE: Final = (errno.EPIPE, errno.EIO)  # nobody reads any more: a pipe whose reader left, a terminal that hung up
_UNTOLD: Final = "loadbench: cannot write to standard output: "


class Stream:
    """A standard stream that swallows what cannot be written, and remembers the first trouble in `error`."""

    def __init__(self, stream: TextIO) -> None:
        self.error: OSError | None = None
        self._stream = stream
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a letter that it does not know is no trouble at all

    def write(self, text: str) -> int:
        """Write, or pretend to."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        """Flush, or pretend to."""
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        """What still comes, the interpreter's own last flush included, goes nowhere."""
        self.error = self.error or error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


def main() -> None:
    """Run a command and exit."""
    asleep = signal.getsignal(signal.SIGINT) is not signal.default_int_handler  # as `nohup` or a job control asks for
    if not asleep:
        signal.signal(signal.SIGINT, _leave)
    out, err = (Stream(stream) if stream else None for stream in (sys.stdout, sys.stderr))
    sys.stdout, sys.stderr = out or sys.stdout, err or sys.stderr

    from loadbench import cli

    if not asleep:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = cli.main()
    if not asleep:
        signal.signal(signal.SIGINT, _leave)
    if out is not None:
        out.flush()
        if out.error is not None and out.error.errno not in GONE:
            print(_UNTOLD + (out.error.strerror or "no reason given").lower(), file=sys.stderr)
            code = 2
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # all is done and said; the interpreter, while it ends, would die of it
    sys.exit(code)


def _leave(*_: object) -> None:
    """Nothing has begun yet, or all is over; an exception would be raised within an import, or where none is caught."""
    os.write(2, b"\nloadbench: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
