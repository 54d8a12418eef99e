"""HTTP: one request whose body is the media and whose response is the output, both at once, on a connection of its own.

h11, which does no I/O, reads the response under an asyncio protocol of ours; bytes are stamped before it sees them and
are delivered as they come, also while we still upload. The request's body is chunked, and its chunks are framed once
before the run. Connections are not kept alive: each session shows what connecting costs, as a new user's would. We ask
for no `100 Continue`: a user who speaks does not wait for leave. Redirects are not followed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import h11

from loadbench.session.wire import Cause, Kind
from loadbench.transports.contract import NO_OPTIONS, Address, Buffer, Clock, Link, Listener
from loadbench.transports.dial import Place, SocketLink, connect, place
from loadbench.transports.rejection import BODY_S, NO_HTTP, Rejection, is_http

_LAST_CHUNK = b"0\r\n\r\n"
CLOSE: Final = ("Connection", "close")


class ChunkEncoder:
    """Messages as chunks of a request's body; whether they are text or binary is not shown on the wire."""

    def whole(self, kind: Kind, payload: Buffer, role: str = "media") -> bytes:  # noqa: ARG002
        """One chunk; "end" also ends the body. An empty message is no bytes at all: an empty chunk would be the end."""
        return self.joined(kind, b"", payload, b"")

    def shared(self, payload: Buffer) -> bytes:
        """The payload as it is."""
        return bytes(payload)

    def joined(self, kind: Kind, before: bytes, shared: Buffer, after: bytes) -> bytes:
        """One chunk around a shared part."""
        length = len(before) + len(shared) + len(after)
        last = _LAST_CHUNK if kind == "end" else b""
        return b"".join((b"%x\r\n" % length, before, shared, after, b"\r\n", last)) if length else last


class HttpLink(SocketLink):
    """One request and its response."""

    __slots__ = ("_address", "_answered", "_core", "_ready_ns", "_rejection", "_shut", "_where")

    def __init__(self, where: Place, address: Address, listener: Listener, clock: Clock) -> None:
        super().__init__(listener, clock)
        self._where = where
        self._address = address
        self._core = h11.Connection(h11.CLIENT)
        self._rejection: Rejection | None = None
        self._shut = False
        self._answered = False
        self._ready_ns: int | None = None  # while the link stands, and nobody has been told of it

    # What the engine calls.

    def shut(self, code: int) -> None:  # noqa: ARG002 - HTTP has no code to give
        """Close once what we wrote has gone out."""
        if self.cause is None and self._transport is not None:
            self._shut = True
            self.close_mouth()
            self._transport.close()

    # What the loop calls.

    @property
    def heard(self) -> bool:
        """See `SocketLink`."""
        return self._answered or bool(self._core.trailing_data[0])

    def begin(self) -> None:
        """Send the head of the request; its body may follow at once."""
        headers = [*self._where.headers, ("Transfer-Encoding", "chunked"), CLOSE]
        head = self.head(self._address.method, self._where.target, headers)
        if self._transport is not None:
            self._transport.write(head)
        self.ready()

    def ready(self) -> None:
        """The link may be written to, from the next turn of the loop on."""
        self._ready_ns = self.clock()
        self._loop.call_soon(self._stands)

    def data_received(self, data: bytes) -> None:
        """Stamp, then parse."""
        arrival_ns = self.clock()
        self._stands()
        if self.cause is None:
            self._parse(data, arrival_ns)

    def eof_received(self) -> None:
        """The regular end of a response without a length; else the service was cut off, or cut us off."""
        now_ns = self.clock()
        self._stands()
        if self.cause is None:
            self._parse(b"", now_ns)
        self.end(Cause("eof", now_ns))

    def connection_lost(self, exc: Exception | None) -> None:
        """After `shut` this is the end that we wanted."""
        if self._shut and exc is None:
            self.end(Cause("closed", self.clock(), by="us"))
        super().connection_lost(exc)

    # The response.

    def head(self, method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
        """The head of a request, which the parser knows of from now on."""
        whole = [*headers, ("Accept-Encoding", "identity")]
        encoded = [(name.encode("ascii"), value.encode("latin-1")) for name, value in whole]
        return self._core.send(h11.Request(method=method, target=target, headers=encoded)) or b""

    def _stands(self) -> None:
        """Once; the answer may be there before the loop comes to it, and must not be the first that is heard of."""
        at_ns, self._ready_ns = self._ready_ns, None
        if self.cause is None and at_ns is not None:
            self.opened(at_ns)

    def _parse(self, data: bytes, arrival_ns: int) -> None:
        """Feed the parser (b"" is the end of the stream) and tell all that it found."""
        self._core.receive_data(data)
        try:
            while self.cause is None:
                event = self._core.next_event()
                if event is h11.NEED_DATA and self._core.their_state is h11.SEND_RESPONSE and not is_http(self._core):
                    self.end(Cause("protocol", arrival_ns, reason=NO_HTTP))  # and what follows need never come
                    return
                if event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return
                self._tell(event, arrival_ns)
        except h11.RemoteProtocolError as error:
            if self._rejection is not None:
                self.end(self._rejection.cause())
            elif data or not (self._answered or is_http(self._core)):
                reason = str(error) if data else NO_HTTP
                self.end(Cause("protocol", arrival_ns, reason=reason))
            # else a stream that ends too soon, and the caller says so

    def _tell(self, event: object, arrival_ns: int) -> None:
        if isinstance(event, h11.Response):
            self._head(event, arrival_ns)
        elif isinstance(event, h11.Data):
            if self._rejection is None:
                self.listener.received(bytes(event.data), arrival_ns)
            elif self._rejection.add(bytes(event.data)):
                self.end(self._rejection.cause())
        elif isinstance(event, h11.EndOfMessage):
            whole = Cause("closed", arrival_ns)
            self.end(whole if self._rejection is None else self._rejection.cause())

    def _head(self, response: h11.Response, arrival_ns: int) -> None:
        self._answered = True
        if not 200 <= response.status_code < 300:
            rejection = self._rejection = Rejection(response, arrival_ns)
            self._timer = self._loop.call_later(BODY_S, lambda: self.end(rejection.cause()))
            return
        found = {bytes(name): bytes(value).decode("latin-1") for name, value in response.headers}
        coding = found.get(b"content-encoding", "identity")
        if coding != "identity":
            self.end(Cause("protocol", arrival_ns, reason=f"content-encoding {coding} although we asked for none"))
            return
        self.listener.answered(response.status_code, arrival_ns, found.get(b"content-type", ""))


class HttpTransport:
    """See the module."""

    name = "http"

    def encoder(self, random: Callable[[int], bytes], options: Mapping[str, str] = NO_OPTIONS) -> ChunkEncoder:  # noqa: ARG002
        """Chunks of a request's body."""
        return ChunkEncoder()

    def check(self, address: Address) -> None:
        """Raise `AddressError` for what cannot be dialled."""
        place(address, "http", "https")

    async def dial(self, address: Address, listener: Listener, clock: Clock) -> Link | None:
        """Connect and send the head of the request; `opened` follows at once, `answered` with the response."""
        where = place(address, "http", "https")
        link = HttpLink(where, address, listener, clock)
        return link if await connect(where, link) else None


transport = HttpTransport()
