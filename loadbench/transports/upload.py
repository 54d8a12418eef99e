"""HTTP: one request of known length, whose body is a whole clip and whose response is the output.

The connection is made when the session begins, like every other, so that connecting is no part of a response time; the
head of the request goes with its body, when the clip is over. A length rather than chunks: what takes uploads need not
know how to take a stream.
"""

from collections.abc import Callable, Mapping

from loadbench.session.wire import Cause, Kind
from loadbench.transports.contract import NO_OPTIONS, Address, Buffer, Clock, Link, Listener
from loadbench.transports.dial import connect, place
from loadbench.transports.http import CLOSE, HttpLink


class BodyEncoder:
    """A message is the body. The end of a body of known length is no bytes at all."""

    def whole(self, kind: Kind, payload: Buffer, role: str = "media") -> bytes:  # noqa: ARG002 - there is but one
        """The body as it is."""
        return bytes(payload)

    def shared(self, payload: Buffer) -> bytes:
        """The payload as it is."""
        return bytes(payload)

    def joined(self, kind: Kind, before: bytes, shared: Buffer, after: bytes) -> bytes:  # noqa: ARG002 - as above
        """The body around a shared part."""
        return b"".join((before, shared, after))


class UploadLink(HttpLink):
    """One request and its response."""

    __slots__ = ("_asked",)

    _asked: bool

    def begin(self) -> None:
        """Nothing is said until there is a body."""
        self._asked = False
        self.ready()

    def rest(self, wire: Buffer, taken: int) -> int:
        """The head before the first message, whose length it tells."""
        if self._asked or self._writable is None:
            return super().rest(wire, taken)
        self._asked = True
        headers = [*self._where.headers, ("Content-Length", str(len(wire))), CLOSE]
        super().rest(self.head(self._address.method, self._where.target, headers), 0)
        return self.write(wire)

    def eof_received(self) -> None:
        """A service that does not wait for the upload has closed; it has cut nothing off."""
        if self._asked:
            super().eof_received()
        else:
            self.end(Cause("closed", self.clock(), reason="the service did not wait for the upload"))


class UploadTransport:
    """See the module."""

    name = "upload"

    def encoder(self, random: Callable[[int], bytes], options: Mapping[str, str] = NO_OPTIONS) -> BodyEncoder:  # noqa: ARG002
        """Bodies as they are."""
        return BodyEncoder()

    def check(self, address: Address) -> None:
        """Raise `AddressError` for what cannot be dialled."""
        place(address, "http", "https")

    async def dial(self, address: Address, listener: Listener, clock: Clock) -> Link | None:
        """Connect; `opened` follows at once, `answered` with the response."""
        where = place(address, "http", "https")
        link = UploadLink(where, address, listener, clock)
        return link if await connect(where, link) else None


transport = UploadTransport()
