"""HTTP: a request for each message, all on one kept-alive connection, and one that asks again and again for output.

Requests go in the order in which they were handed over, each when the one before it has been answered: pipelining is
what few services can take. A message is handed over on time all the same. What waits here waits for the service, counts
as unsent, and is reported as a pause, as with a socket that takes no more.

An answer is stamped with the bytes that complete it and is a message; without a body it is the message `null`. An
answer that is no success ends the connection, as a rejection. What the end script asks for (`poll`) is a request as any
other.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

import h11

from loadbench.session.wire import Cause, Kind
from loadbench.transports.contract import NO_OPTIONS, Address, AddressError, Buffer, Clock, Link, Listener, Requests
from loadbench.transports.dial import HIGH_WATER, KEEP, Place, connect, place
from loadbench.transports.http import HttpLink

_MARKS: Final = {"media": b"m", "open": b"o", "end": b"e"}
_ASK: Final = b"a"  # a request as the script words it: GET /path
_MEDIA: Final = b"m"
_POLL: Final = b""
_NOTHING: Final = b"null"


class BodyEncoder:
    """A mark for the request that is to carry the message, then its body."""

    def whole(self, kind: Kind, payload: Buffer, role: str = "media") -> bytes:  # noqa: ARG002 - JSON says it itself
        """A complete message."""
        return (_ASK if role == "poll" else _MARKS.get(role, _MEDIA)) + payload

    def shared(self, payload: Buffer) -> bytes:
        """The payload as it is."""
        return bytes(payload)

    def joined(self, kind: Kind, before: bytes, shared: Buffer, after: bytes) -> bytes:  # noqa: ARG002 - as above
        """A complete message around a shared part."""
        return b"".join((_MEDIA, before, shared, after))


class RequestsLink(HttpLink):
    """One connection and all its requests. Every message takes the way of `rest`."""

    __slots__ = (
        *("_asking", "_bare", "_body", "_every_ns", "_full", "_lines", "_paused", "_poll_ns", "_poll_timer"),
        *("_queue", "_queued"),
    )

    def __init__(self, where: Place, address: Address, requests: Requests, listener: Listener, clock: Clock) -> None:
        super().__init__(where, address, listener, clock)
        self._lines = {
            mark: (line[0], _below(where.target, line[1]))
            for mark, line in (
                *((_MARKS[role], getattr(requests, role) or requests.media) for role in _MARKS),
                (_POLL, requests.poll),
            )
            if line is not None
        }
        self._bare = tuple(header for header in where.headers if header[0].lower() != "content-type")
        self._every_ns = round((requests.poll_every_s or 0.0) * 1e9)
        self._queue: deque[Buffer] = deque()
        self._queued = 0
        self._asking: bytes | None = None  # the mark of the request whose answer is awaited
        self._full = self._paused = False
        self._body = bytearray()
        self._poll_ns: int | None = None  # when the next poll is due; None: there was no media yet
        self._poll_timer: asyncio.TimerHandle | None = None

    # What the engine calls.

    def rest(self, wire: Buffer, taken: int) -> int:  # noqa: ARG002 - nothing was taken
        """Behind all that waits."""
        waiting = self.unsent()
        if self._writable is None:
            return waiting
        self._queue.append(wire)
        self._queued += len(wire)
        if bytes(wire[:1]) == _MEDIA and self._poll_ns is None and _POLL in self._lines:
            self._poll_ns = self.clock()
            self._poll_later()
        self._go_on()
        return waiting

    def unsent(self) -> int:
        """Bytes that the system has not taken, or that we have not given it."""
        return self._queued + super().unsent()

    # What the loop calls.

    def begin(self) -> None:
        """Nothing is asked before there is something to say."""
        self.ready()

    def eof_received(self) -> None:
        """Between two requests a service may hang up; then nothing was cut off."""
        if self._asking is not None:
            super().eof_received()
        else:
            self.end(Cause("closed", self.clock()))

    def pause_writing(self) -> None:
        """The socket takes no more."""
        self._full = True
        self._tell_pause()

    def resume_writing(self) -> None:
        """It takes bytes again; what waits here may still be too much."""
        self._full = False
        self._tell_pause()

    def close_mouth(self) -> None:
        """From now on nothing is asked any more."""
        super().close_mouth()
        self._queue.clear()
        self._queued = 0
        if self._poll_timer is not None:
            self._poll_timer.cancel()

    # Requests.

    def _poll_later(self) -> None:
        wait_ns = max(0, (self._poll_ns or 0) + self._every_ns - self.clock())
        self._poll_timer = self._loop.call_later(wait_ns / 1e9, self._poll)

    def _poll(self) -> None:
        if self._writable is not None:
            self._poll_ns = self.clock()
            self._queue.append(_POLL)
            self._go_on()

    def _go_on(self) -> None:
        """Make the next request, if it is its turn."""
        if self._asking is None and self._queue and self._writable is not None:
            wire = self._queue.popleft()
            self._queued -= len(wire)
            self._asking = bytes(wire[:1])
            self._writable.write(self._request(self._asking, bytes(wire[1:])))
        self._tell_pause()

    def _tell_pause(self) -> None:
        paused = self._full or self._queued > HIGH_WATER
        if paused != self._paused:
            self._paused = paused
            (super().pause_writing if paused else super().resume_writing)()

    def _request(self, mark: bytes, body: bytes) -> bytes:
        if mark == _ASK:
            method, _, path = body.decode().partition(" ")
            target, body = _below(self._where.target, quote(path, safe=KEEP)), b""
        else:
            method, target = self._lines[mark]
        length = () if mark in (_POLL, _ASK) and method == "GET" else (("Content-Length", str(len(body))),)
        head = self.head(method, target, [*(self._where.headers if body else self._bare), *length])
        told = self._core.send(h11.Data(data=body)) if body else b""
        self._core.send(h11.EndOfMessage())
        return head + (told or b"")

    # Answers.

    def _tell(self, event: object, arrival_ns: int) -> None:
        if self._asking is None:
            self.end(Cause("protocol", arrival_ns, reason="an answer that nobody asked for"))
        elif self._rejection is not None or isinstance(event, h11.Response):
            super()._tell(event, arrival_ns)
        elif isinstance(event, h11.Data):
            self._body += event.data
            if len(self._body) > self._address.message_bytes:
                self.end(
                    Cause("too_big", arrival_ns, reason=f"an answer of more than {self._address.message_bytes} bytes")
                )
        elif isinstance(event, h11.EndOfMessage):
            self._answer(arrival_ns)

    def _answer(self, arrival_ns: int) -> None:
        body, self._body = bytes(self._body), bytearray()
        asked, self._asking = self._asking, None
        stays = self._core.their_state is h11.DONE
        if stays:
            self._core.start_next_cycle()
        self.listener.received(body or _NOTHING, arrival_ns)
        if self._writable is None:
            return  # that was all we wanted to hear
        if not stays:
            self.end(Cause("closed", arrival_ns, reason="the service does not keep the connection"))
            return
        if asked == _POLL:
            self._poll_later()
        self._go_on()


def _below(target: str, path: str) -> str:
    """A path below the one of the url, with the url's query behind it."""
    base, mark, query = target.partition("?")
    joint = "&" if mark and "?" in path else mark
    return f"{base.rstrip('/')}{path}{joint}{query}"


class RequestsTransport:
    """See the module."""

    name = "requests"

    def encoder(self, random: Callable[[int], bytes], options: Mapping[str, str] = NO_OPTIONS) -> BodyEncoder:  # noqa: ARG002
        """Bodies with their marks."""
        return BodyEncoder()

    def check(self, address: Address) -> None:
        """Raise `AddressError` for what cannot be dialled."""
        _place(address)

    async def dial(self, address: Address, listener: Listener, clock: Clock) -> Link | None:
        """Connect; `opened` follows at once, `answered` with each response."""
        where, requests = _place(address)
        link = RequestsLink(where, address, requests, listener, clock)
        return link if await connect(where, link) else None


def _place(address: Address) -> tuple[Place, Requests]:
    if address.requests is None:
        raise AddressError(["transport.requests is missing: nobody knows what to ask for"])
    return place(address, "http", "https"), address.requests


transport = RequestsTransport()
