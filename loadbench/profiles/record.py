"""The recording of a client's conversation with its service, and the profile that is drafted from it.

The file has JSON lines, each with `at_ms` (since the connection's beginning), `connection` and `from` (client or
service), and one of: `request`, `response` (heads), `data` (text; `cut` where long payloads in it were left out),
`binary` (size, first bytes, SHA-256; `base64` with all of it where media are kept), `ping`, `pong`, `close`, `end` (of
an HTTP body), `gone` (hung up), `unread`.
"""

import asyncio
import base64
import hashlib
import ipaddress
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit

import msgspec

from loadbench.plan import PlanError
from loadbench.profiles import draft, examine
from loadbench.profiles.overhear import Said
from loadbench.profiles.proxy import USUAL, Proxy
from loadbench.profiles.recorded import Recording
from loadbench.profiles.veil import Veil
from loadbench.report.visible import visible
from loadbench.session.load import ProfileError

HEAD_BYTES: Final = 32
LONG: Final = 1024  # letters of a text inside JSON: beyond them it is a payload
MOST_KEPT_BYTES: Final = 256_000_000  # of all that was said, in memory, for the draft


@dataclass(frozen=True)
class Asked:
    """What to record. `draft` is where the profile goes; `connections`: end after so many, None: at Ctrl-C."""

    listen: str
    to: str
    out: Path
    draft: Path
    secrets: tuple[str, ...] = ()
    keep_media: bool = False
    connections: int | None = None


def door(asked: Asked, say: Callable[[str], None]) -> int:
    """Record until Ctrl-C, then draft. 0: recorded; 1: nobody came. Raises PlanError for what is wrong in the question.

    A file that is there already is not written over.
    """
    host, port = _place(asked)
    veil = Veil(asked.secrets)
    shown = veil.address(asked.to)
    try:
        handle = os.open(asked.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise PlanError([f"--out {asked.out}: {error.strerror}"]) from None
    with os.fdopen(handle, "wb", buffering=0) as file:  # nothing is held back that a full disk would refuse at the end
        book = Book(file, veil, keep_media=asked.keep_media)
        asyncio.run(_record(asked, host, port, book, shown, say))
        if book.trouble:
            raise PlanError([f"--out {asked.out}: {book.trouble}; not all was written"])
    if not book.said:
        say("nobody came")
        return 1
    print(f"recording  {asked.out}")
    _drafted(asked, book, say)
    return 0


class Book:
    """Writes down what is said, without secrets, and keeps it for the draft while there is room."""

    def __init__(self, file: BinaryIO, veil: Veil, *, keep_media: bool) -> None:
        self.said: dict[int, list[Said]] = {}
        self.veil = veil
        self.trouble = ""
        self._file, self._keep_media = file, keep_media
        self._room = MOST_KEPT_BYTES

    def note(self, said: Said) -> None:
        """Take down one thing."""
        kept = self.said.setdefault(said.connection, [])
        zero_ns = kept[0].at_ns if kept else said.at_ns
        self._room -= said.size
        kept.append(said if self._room > 0 else msgspec.structs.replace(said, data=b""))
        line = {"at_ms": round((said.at_ns - zero_ns) / 1e6, 3), "connection": said.connection, "from": said.who}
        try:
            if not self.trouble:
                text = json.dumps(line | self._content(said), ensure_ascii=False)
                self._file.write(text.encode("utf-8", "surrogatepass") + b"\n")
        except OSError as error:  # the client and its service go on
            self.trouble = error.strerror or str(error)

    def _content(self, said: Said) -> dict[str, Any]:
        veil, ours = self.veil, said.who == "client"
        match said.kind:
            case "request":
                target = veil.address(said.target)
                return {"request": {"method": said.reason, "target": target, "headers": veil.headers(said.headers)}}
            case "response":
                return {"response": {"status": said.status, "headers": veil.headers(said.headers)}}
            case "text":
                return self._text(said.data.decode("utf-8", "replace"), ours=ours)
            case "body" if not ours and _is_text(said.data):
                return self._text(said.data.decode(), ours=False)
            case "binary" | "body":
                return self._binary(veil.data(said.data), said)
            case "close":
                return {"close": {"code": said.code, "reason": veil.text(said.reason)}}
            case "ping" | "pong":
                return {said.kind: base64.b64encode(veil.data(said.data)).decode("ascii")}
            case "unread":
                return {"unread": said.reason}
        return {said.kind: True}

    def _binary(self, data: bytes, said: Said) -> dict[str, Any]:
        whole = {"base64": base64.b64encode(data).decode("ascii")} if self._keep_media or said.who == "service" else {}
        digest = hashlib.sha256(said.data).hexdigest()
        head = base64.b64encode(data[:HEAD_BYTES]).decode("ascii")
        return {"binary": {"bytes": said.size, "head": head, "sha256": digest}} | whole

    def _text(self, text: str, *, ours: bool) -> dict[str, Any]:
        value = None
        if text[:1] in ("{", "["):
            try:
                value = msgspec.json.decode(text)
            except msgspec.DecodeError:
                value = None
        self.veil.message(value, ours=ours)
        if value is not None and not self._keep_media and len(text) > LONG:
            shortened = _shortened(value)
            if shortened != value:
                return {"data": self.veil.text(json.dumps(shortened, ensure_ascii=False)), "cut": True}
        return {"data": self.veil.text(text)}


def _shortened(value: Any) -> Any:
    """Without long texts: how long each was, and its SHA-256."""
    if isinstance(value, dict):
        return {key: _shortened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner) for inner in value]
    if isinstance(value, str) and len(value) > LONG and " " not in value:
        return f"({len(value)} characters, sha256 {hashlib.sha256(value.encode()).hexdigest()})"
    return value


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# ---- recording


def _place(asked: Asked) -> tuple[str, int]:
    """Where to listen. Raises PlanError with all that is wrong in the question."""
    problems = []
    host, colon, port = asked.listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdigit() or int(port) > 65535:
        problems.append(f"--listen is HOST:PORT, for instance 127.0.0.1:2800, not {asked.listen!r}")
    elif not _is_loopback(host):
        problems.append(f"--listen: {host} is not of this machine alone; use 127.0.0.1")
    try:
        to = urlsplit(asked.to)
        named = bool(to.hostname) and (to.port is None or to.port > 0)
    except ValueError:
        named = False
        to = urlsplit("")
    if to.scheme not in USUAL or not named:
        problems.append("--to is the service's address, for instance ws://127.0.0.1:2700")
    for name, path in (("--out", asked.out), ("--draft", asked.draft)):
        if path.exists():
            problems.append(f"{name} {path}: is there already")
    if problems:
        raise PlanError(problems)
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _record(asked: Asked, host: str, port: int, book: Book, shown: str, say: Callable[[str], None]) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    count = 0

    def ended(connection: int, trouble: str) -> None:
        nonlocal count
        count += 1
        parts = len(book.said.get(connection, []))
        say(visible(f"connection {connection}: {trouble or f'over, {parts} things said'}"))
        if asked.connections is not None and count >= asked.connections:
            over.set()

    proxy = Proxy(asked.to, book.note, ended)
    try:
        async with proxy.serving(host, port) as found:
            say(f"listening on {host}:{found}, for {shown}; Ctrl-C ends the recording")
            await over.wait()
    except OSError as error:
        raise PlanError([f"--listen {asked.listen}: {error.strerror or error}"]) from None


def _drafted(asked: Asked, book: Book, say: Callable[[str], None]) -> None:
    """The draft of the longest conversation, written, and checked against it."""
    said = max(book.said.values(), key=len)
    try:
        scene = draft.scene(said)
        text = book.veil.exact(draft.draft(scene, asked.draft.stem, asked.to, book.veil.known))
    except draft.DraftError as error:
        say(visible(f"no profile could be drafted: {error}"))
        return
    asked.draft.write_text(text, "utf-8")
    print(f"draft      {asked.draft}")
    try:
        found = examine.examine_text(text, asked.draft.name, Recording([draft.conversation(scene)]))
    except ProfileError as error:
        print("\n".join(map(visible, error.problems)))
        return
    print(found.text())
