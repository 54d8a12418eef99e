"""A service in this process, for tests under virtual time: no socket, no thread, no delay but what the script asks for.

    async def service(peer: memory.Peer) -> None:
        async for message in peer:                 # str, bytes, or memory.END, decoded; as they are handed over
            if message == '{"eof": 1}':
                await asyncio.sleep(0.3)           # on the running loop: virtual under looptime
                peer.send('{"text": "red boat"}')
                peer.close(1000)

    with memory.serve("asr", service) as served:
        link = await transport.dial(Address("memory://asr"), listener, clock)

The script runs as a task of its own for each dial. When it returns, the connection stays open and silent, as with a
service that hangs. What a script raises is raised again at the end of the `with` block. A peer can also

    peer.answer(200, "application/x-ndjson")       the head of an HTTP response
    peer.close(1011, "why")  peer.close(None)      a close frame; the end of a response
    peer.drop("reset")  peer.drop("eof")           the ways to go without a close
    peer.stop_reading()  peer.read_again()         back pressure: `paused` above 64 KiB unread, then `resumed`
    peer.arrivals                                  (run clock, message) for each message of ours

`serve(..., connect_s=0.2)` takes that long to connect; `refuse` is asked at each dial and gives a `Cause` or None. A
client's `shut` is answered at once, by `lost` (closed by us), after what was sent before it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from enum import Enum
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

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
)  # fmt: skip

HIGH_WATER = 64 * 1024


class End(Enum):
    """What the end of a request's body arrives as."""

    END = "end"


END = End.END
Message = str | bytes | End
Script = Callable[["Peer"], Coroutine[Any, Any, None]]
_MARKS: dict[Kind, bytes] = {"text": b"t", "binary": b"b", "end": b"e"}


class MemoryEncoder:
    """One letter for the kind, then the payload."""

    def whole(self, kind: Kind, payload: Buffer, role: str = "media") -> bytes:  # noqa: ARG002
        """A complete message."""
        return _MARKS[kind] + bytes(payload)

    def shared(self, payload: Buffer) -> bytes:
        """The payload as it is."""
        return bytes(payload)

    def joined(self, kind: Kind, before: bytes, shared: Buffer, after: bytes) -> bytes:
        """A complete message around a shared part."""
        return b"".join((_MARKS[kind], before, shared, after))


def decoded(wire: Buffer) -> Message:
    """What a wire message says."""
    mark, payload = bytes(wire[:1]), bytes(wire[1:])
    if mark == b"t":
        return payload.decode()
    return payload if mark == b"b" else END


class Peer:
    """The service's end of one connection, and the client's link to it in one. See the module."""

    def __init__(self, address: Address, listener: Listener, clock: Clock) -> None:
        self.address = address
        self.arrivals: list[tuple[int, Message]] = []
        self.cause: Cause | None = None
        self._listener = listener
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._inbox: asyncio.Queue[Message | None] = asyncio.Queue()
        self._unread: deque[Buffer] = deque()
        self._reading = True
        self._paused = False
        self._open = False
        self.mouth: list[Callable[[Buffer], int]] = [takes_nothing]

    # What a script calls.

    def __aiter__(self) -> "Peer":
        return self

    async def __anext__(self) -> Message:
        message = await self._inbox.get()
        if message is None:
            raise StopAsyncIteration
        return message

    def send(self, data: str | bytes) -> None:
        """One message, which arrives in the next turn of the loop."""
        self._soon(lambda: self._listener.received(data, self._clock()))

    def answer(self, status: int, content_type: str = "") -> None:
        """The head of an HTTP response."""
        self._soon(lambda: self._listener.answered(status, self._clock(), content_type))

    def close(self, code: int | None = 1000, reason: str = "") -> None:
        """A close frame, or with None the end of a response."""
        self._soon(lambda: self._end(Cause("closed", self._clock(), code=code, reason=reason)))

    def drop(self, kind: Literal["reset", "eof"] = "reset") -> None:
        """Go without a close."""
        self._soon(lambda: self._end(Cause(kind, self._clock())))

    def stop_reading(self) -> None:
        """From now on what the client writes stays with it."""
        self._reading = False

    def read_again(self) -> None:
        """Take what was left, then go on as before."""
        self._reading = True
        while self._unread:
            self._take(self._unread.popleft())
        if self._paused:
            self._paused = False
            self._soon(lambda: self._listener.resumed(self._clock()))

    # What the engine calls.

    def rest(self, wire: Buffer, taken: int) -> int:  # noqa: ARG002 - nothing was taken
        """All of it."""
        return self.write(wire)

    def write(self, wire: Buffer) -> int:
        """Arrives at once, unless the script has stopped reading."""
        if not self._open:
            return 0
        if self._reading:
            self._take(wire)
            return 0
        waiting = self.unsent()
        self._unread.append(bytes(wire))
        if not self._paused and self.unsent() > HIGH_WATER:
            self._paused = True
            self._soon(lambda: self._listener.paused(self._clock()))
        return waiting

    def unsent(self) -> int:
        """Bytes that the script has left unread."""
        return sum(len(wire) for wire in self._unread)

    def aside(self) -> bytes:
        """Nothing is said beside the output."""
        return b""

    def shut(self, code: int) -> None:
        """Closed by us in the next turn of the loop; before it was opened this is an abort."""
        if not self._open:
            self.abort()
            return
        self._open = False
        self._soon(lambda: self._end(Cause("closed", self._clock(), by="us", code=code)))

    def abort(self) -> None:
        """Nothing is delivered from now on but `lost`."""
        if self.cause is not None:
            return
        self._open = False
        self.cause = Cause("aborted", self._clock(), by="us")
        self._inbox.put_nowait(None)
        self._loop.call_soon(self._listener.lost, self.cause)

    # Between the two.

    def opened(self) -> None:
        """Called by the transport, in the turn after `dial` has returned."""
        if self.cause is None:
            self._open = True
            now_ns = self._clock()
            self._listener.opened(Opened(now_ns, now_ns, remote=self.address.url))

    def _soon(self, call: Callable[[], None]) -> None:
        self._loop.call_soon(lambda: call() if self.cause is None else None)

    def _take(self, wire: Buffer) -> None:
        message = decoded(wire)
        self.arrivals.append((self._clock(), message))
        self._inbox.put_nowait(message)

    def _end(self, cause: Cause) -> None:
        self.cause = cause
        self._open = False
        self._inbox.put_nowait(None)
        self._listener.lost(cause)


class Served:
    """A service under its name, until the `with` block ends. `peers` are its connections in order."""

    def __init__(self, name: str, script: Script, connect_s: float, refuse: Callable[[], Cause | None] | None) -> None:
        self.name = name
        self.peers: list[Peer] = []
        self.connect_s = connect_s
        self.refuse = refuse
        self._script = script
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, peer: Peer) -> None:
        """Start the script for a new connection."""
        self.peers.append(peer)
        self._tasks.append(asyncio.get_running_loop().create_task(self._run(peer)))

    async def _run(self, peer: Peer) -> None:
        try:
            await self._script(peer)
        except Exception:
            peer.drop("reset")
            raise

    def __enter__(self) -> "Served":
        if self.name in _services:
            raise ValueError(f"memory://{self.name} is served already")
        _services[self.name] = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        del _services[self.name]
        faults: list[Exception] = []
        for task in self._tasks:
            if not task.done():
                task.cancel()
            elif not task.cancelled() and isinstance(fault := task.exception(), Exception):
                faults.append(fault)
        if faults and error is None:
            raise ExceptionGroup(f"the script of memory://{self.name} failed", faults)


_services: dict[str, Served] = {}


def serve(
    name: str, script: Script, *, connect_s: float = 0.0, refuse: Callable[[], Cause | None] | None = None
) -> Served:
    """A service at memory://NAME. See the module."""
    return Served(name, script, connect_s, refuse)


class MemoryTransport:
    """See the module."""

    name = "memory"

    def encoder(self, random: Callable[[int], bytes], options: Mapping[str, str] = NO_OPTIONS) -> MemoryEncoder:  # noqa: ARG002
        """Nothing but a mark for the kind."""
        return MemoryEncoder()

    def check(self, address: Address) -> None:
        """Raise `AddressError` for what cannot be dialled."""
        if urlsplit(address.url).scheme != "memory":
            raise AddressError(["target.url must begin with memory://"])

    async def dial(self, address: Address, listener: Listener, clock: Clock) -> Link | None:
        """Find the service; `opened` follows in the next turn of the loop."""
        self.check(address)
        service = _services.get(urlsplit(address.url).netloc)
        try:
            await asyncio.sleep(service.connect_s if service else 0)
        except asyncio.CancelledError:
            listener.lost(Cause("aborted", clock(), by="us"))
            raise
        if service is None:
            listener.lost(Cause("refused", clock(), by="network", reason="nobody serves this name"))
            return None
        if service.refuse is not None and (refusal := service.refuse()) is not None:
            listener.lost(refusal)
            return None
        peer = Peer(address, listener, clock)
        asyncio.get_running_loop().call_soon(peer.opened)
        service.begin(peer)
        return peer


transport = MemoryTransport()
