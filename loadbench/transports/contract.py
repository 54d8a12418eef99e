"""What every transport promises, and all that the engine knows of one.

`dial` never raises for what the network or the service does: it tells the listener. A transport calls the listener
from the event loop's own callbacks, stamps an arrival before it parses, never buffers a message for later, and calls
`lost` exactly once for each dial, whether or not the connection came to stand.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from loadbench.session.wire import Answer, Ask, Cause, Kind, Opened

Buffer: TypeAlias = bytes | bytearray | memoryview
Clock = Callable[[], int]  # the run clock: monotonic, nanoseconds
NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Tls:
    """Trust. `verify=False` only by a named, reported switch."""

    verify: bool = True
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


@dataclass(frozen=True, slots=True)
class Requests:
    """A request for each message: (method, path below the url) by the message's role, and one that asks for output.

    `poll` is made each `poll_every_s` from the first media on; both or neither. A role without a request has that of
    media.
    """

    media: tuple[str, str]
    open: tuple[str, str] | None = None
    end: tuple[str, str] | None = None
    poll: tuple[str, str] | None = None
    poll_every_s: float | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """Where to go and how; every limit explicit. `url`, `headers` and `proxy` may hold secrets and are never logged.

    `proxy`: the url of an HTTP proxy that is asked to CONNECT, whatever the scheme of `url`; "" for none, and the
    environment is not asked.
    `ping_every_s`: WebSocket pings of ours, off when None. One without a pong within `ping_timeout_s` is counted on the
    link and closes nothing, unless `ping_close`: a service whose pongs queue behind its model still works.

    `env` is what a local program finds in its environment beside our own; `options` is what the profile says to a
    plug-in (`transport.options`). Both may hold secrets as well. `hidden` is what a plug-in has worked out for this
    connection, and must not be written down.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    subprotocols: tuple[str, ...] = ()
    method: str = "POST"
    content_type: str | None = None
    compression: bool = False
    message_bytes: int = 64 * 1024 * 1024
    tls: Tls = field(default_factory=Tls)
    proxy: str = ""
    requests: Requests | None = None
    ping_every_s: float | None = None
    ping_timeout_s: float | None = None
    ping_close: bool = False
    env: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = ()


class AddressError(ValueError):
    """What is wrong in an address as the user wrote it: all of it, and never the secrets it holds."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Listener(Protocol):
    """Who is told. All times are the run clock's, taken in the protocol's own callback."""

    def opened(self, facts: Opened) -> None:
        """The connection stands and may be written to."""

    def answered(self, status: int, at_ns: int, content_type: str = "") -> None:
        """The head of an HTTP response is in, a good one (not called for WebSocket, nor for a refusal)."""

    def received(self, data: str | bytes, arrival_ns: int) -> None:
        """One WebSocket message, whole, stamped with its last fragment; or some bytes of an HTTP response body."""

    def paused(self, at_ns: int) -> None:
        """The socket takes no more: the far side, or the way there, is slow."""

    def resumed(self, at_ns: int) -> None:
        """It takes bytes again."""

    def lost(self, cause: Cause) -> None:
        """The connection is gone, once and for all."""


class Link(Protocol):
    """One connection. All but what `mouth` holds never wait and never raise, also after the end.

    `mouth` is a list of one, always the same, for those who have no time to ask the link: what it holds at the moment
    gives a complete wire message to the system at once and says how many bytes it took, like a socket's `send`, and
    like that it may raise OSError. What was not taken is for `rest`, before anything else.
    """

    @property
    def mouth(self) -> list[Callable[[Buffer], int]]:
        """See the class."""

    def rest(self, wire: Buffer, taken: int) -> int:
        """Go on with a message of which so many bytes were taken; tells what `write` tells."""

    def write(self, wire: Buffer) -> int:
        """Hand a complete wire message over; how many bytes of earlier ones the system had not taken until then."""

    def unsent(self) -> int:
        """Bytes that the operating system has not taken yet."""

    def aside(self) -> bytes:
        """What the far side has said beside its output so far, for people: of a program its standard error."""

    def shut(self, code: int) -> None:
        """Begin the polite end; `lost` follows."""

    def abort(self) -> None:
        """End at once; `lost` follows."""


def takes_nothing(_: Buffer) -> int:
    """What the mouth of a link holds when everything has to go another way."""
    return 0


class Encoder(Protocol):
    """Messages to wire bytes, without a connection, so that it can be done once before the run.

    `shared` prepares a large part that `joined` can place between two small ones of a session's own; for WebSocket it
    carries its mask, and `joined` turns the key so that the part need not be masked again.
    """

    def whole(self, kind: Kind, payload: Buffer, role: str = "media") -> bytes:
        """A complete message. `role` says which script it belongs to (`Send.role`), for ways that tell them apart."""

    def shared(self, payload: Buffer) -> bytes:
        """The part of a message that all sessions share."""

    def joined(self, kind: Kind, before: bytes, shared: Buffer, after: bytes) -> bytes:
        """A complete message around a shared part."""


class Asker(Protocol):
    """Carries out the HTTP requests of a prelude."""

    def check(self, request: Ask, tls: Tls) -> None:
        """Raise `AddressError` with all that is wrong in a request; contacts nobody."""

    async def ask(self, request: Ask, tls: Tls, clock: Clock) -> Answer | Cause:
        """The answer, whole, or why there was none. Raises only `AddressError`. May be cancelled at any time."""


class Transport(Protocol):
    """A way to a service. `encoder` takes a source of random bytes, for masks, and what the profile asks for."""

    name: str

    def encoder(self, random: Callable[[int], bytes], options: Mapping[str, str] = NO_OPTIONS) -> Encoder:
        """An encoder for this transport's wire format. `options`: `transport.options`, and `stdin` of a program."""

    def check(self, address: Address) -> None:
        """Raise `AddressError` with all that is wrong in the address; contacts nobody."""

    async def dial(self, address: Address, listener: Listener, clock: Clock) -> Link | None:
        """Connect; None where it failed, and then `lost` has been called.

        The link comes back as soon as it can be aborted. `opened` follows from a later callback of the loop, never
        before `dial` has returned to a caller that awaits it directly, so that a listener may write in `opened`.
        Cancelling `dial` drops what there is of a connection and calls `lost` (aborted). Raises `AddressError` for
        what the user wrote, before anything is contacted.
        """
