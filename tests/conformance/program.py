"""A local program that plays a conversation: its steps come as JSON in its only argument. It shares no code with us."""

import json
import os
import signal
import sys
import time
from typing import Any


def heard() -> str | None:
    """What our next message is, each behind its length; the end of the input is the end mark."""
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        return None
    data = sys.stdin.buffer.read(int.from_bytes(head, "big"))
    return {b'{"hello"': "open", b'{"eos":t': "eos"}.get(data[:8], "media")


def hear(kind: str) -> None:
    while (message := heard()) not in (kind, None):
        continue
    if message is None and kind != "end":
        sys.exit(9)  # the client went away


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def leave(status: int) -> None:
    sys.stdout.flush()
    os._exit(status)


def act(verb: str, value: Any) -> None:
    if verb == "hear":
        hear(value)
    elif verb in ("after", "pause"):
        time.sleep(value)
    elif verb == "say":
        say(json.dumps(value, ensure_ascii=False))
    elif verb == "raw":
        say(value)
    elif verb == "long":
        say(json.dumps({"partial": "x" * value}))
    elif verb == "close":
        leave(0 if value == 1000 else value % 256)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    for step in json.loads(sys.argv[1]):
        ((verb, value),) = step.items()
        act(verb, value)
    while sys.stdin.buffer.read(65536):
        continue
    time.sleep(60)  # it stays, until it is told to end
