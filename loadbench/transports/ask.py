"""One HTTP request and its answer, whole: what a profile asks before the connection.

Each has a connection of its own, made as those of the sessions are made, and with their trust. Nothing is retried,
followed, cached or kept as a cookie, and no proxy is used but the one that was asked for, which is more than most HTTP
clients can be talked into. The patience is the caller's: cancelling leaves no socket behind.
"""

import asyncio
from typing import Final

import h11

from loadbench.session.wire import Answer, Ask, Cause, Opened
from loadbench.transports.contract import Address, AddressError, Clock, Tls
from loadbench.transports.dial import Place, SocketLink, connect, place
from loadbench.transports.rejection import location, retry_after_s

BODY_BYTES: Final = 1024 * 1024


def check(request: Ask, tls: Tls) -> None:
    """Raise `AddressError` with all that is wrong in a request; contacts nobody."""
    _placed(request, tls)


async def ask(request: Ask, tls: Tls, clock: Clock) -> Answer | Cause:
    """The answer, or why there was none. Raises only `AddressError`, for an address that cannot be read."""
    link = _Asking(_placed(request, tls), request, clock)
    if await connect(link.where, link):
        try:
            await link.outcome.known.wait()
        except asyncio.CancelledError:
            link.cancelled()
            raise
    came = link.outcome.came
    return Cause("eof", clock()) if came is None else came


def _placed(request: Ask, tls: Tls) -> Place:
    try:
        return place(Address(request.url, request.headers, tls=tls, proxy=request.proxy), "http", "https")
    except AddressError as error:
        told = [problem.replace("target.", "prelude: ").replace("url", "the address") for problem in error.problems]
        raise AddressError(told) from None


class _Outcome:
    """What came of it: the first thing that is said."""

    def __init__(self) -> None:
        self.came: Answer | Cause | None = None
        self.known = asyncio.Event()

    def lost(self, came: Answer | Cause) -> None:
        """Keep it."""
        self.came = self.came or came
        self.known.set()

    def opened(self, facts: Opened) -> None:
        """Of no interest, as the rest of what a listener hears."""

    def answered(self, status: int, at_ns: int, content_type: str = "") -> None:
        """See above."""

    def received(self, data: str | bytes, arrival_ns: int) -> None:
        """See above."""

    def paused(self, at_ns: int) -> None:
        """See above."""

    def resumed(self, at_ns: int) -> None:
        """See above."""


class _Asking(SocketLink):
    """One request with its length, and its response."""

    __slots__ = ("_body", "_core", "_head", "_request", "outcome", "where")

    def __init__(self, where: Place, request: Ask, clock: Clock) -> None:
        self.outcome = _Outcome()
        super().__init__(self.outcome, clock)
        self.where, self._request = where, request
        self._core = h11.Connection(h11.CLIENT)
        self._head: h11.Response | None = None
        self._body = bytearray()

    @property
    def heard(self) -> bool:
        """See `SocketLink`."""
        return self._head is not None or bool(self._core.trailing_data[0])

    def begin(self) -> None:
        """Send it, whole."""
        body = self._request.body
        headers = [*self.where.headers, ("Accept-Encoding", "identity"), ("Connection", "close")]
        if body is not None or self._request.method != "GET":
            headers.append(("Content-Length", str(len(body or b""))))
        encoded = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers]
        head = h11.Request(method=self._request.method, target=self.where.target, headers=encoded)
        said = [self._core.send(head), self._core.send(h11.Data(data=body)) if body else None]
        said.append(self._core.send(h11.EndOfMessage()))
        if self._transport is not None:
            self._transport.write(b"".join(part for part in said if part))

    def data_received(self, data: bytes) -> None:
        """Stamp, then parse."""
        arrival_ns = self.clock()
        if self.cause is None:
            self._parse(data, arrival_ns)

    def eof_received(self) -> None:
        """The regular end of an answer without a length, or of nothing at all."""
        now_ns = self.clock()
        if self.cause is None:
            self._parse(b"", now_ns)
        self.end(Cause("eof", now_ns))

    def _parse(self, data: bytes, arrival_ns: int) -> None:
        self._core.receive_data(data)
        try:
            while self.cause is None:
                event = self._core.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return
                if isinstance(event, h11.Response):
                    self._head = event
                elif isinstance(event, h11.Data):
                    self._add(bytes(event.data), arrival_ns)
                elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                    self.outcome.lost(self._answer(self._head, arrival_ns))
                    self.end(Cause("closed", arrival_ns))
        except h11.RemoteProtocolError as error:
            cut = Cause("eof", arrival_ns, status=self._head.status_code if self._head else None)
            self.end(Cause("protocol", arrival_ns, reason=str(error)) if data else cut)

    def _add(self, data: bytes, arrival_ns: int) -> None:
        self._body += data
        if self._head is not None and len(self._body) > BODY_BYTES:
            status, reason = self._head.status_code, "an answer of more than 1 MiB"
            self.end(Cause("too_big", arrival_ns, by="us", status=status, reason=reason))

    def _answer(self, head: h11.Response, at_ns: int) -> Answer:
        moved = location(head) if 300 <= head.status_code < 400 else ""
        return Answer(at_ns, head.status_code, bytes(self._body), retry_after_s(head.headers), moved)
