"""From an address to a connected socket, and what all links over a socket share.

Connecting is done by hand, step by step, so that name, TCP and TLS have stamps and causes of their own, and so that
cancelling it at any point leaves no socket behind. There is no pool, no limit on how many connect at once, and no proxy
but the one that the address names: it is asked to CONNECT, and what follows is between us and the service.
"""

import asyncio
import base64
import errno
import os
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

import h11

from loadbench import __version__
from loadbench.session.wire import Cause, Opened
from loadbench.transports.contract import Address, AddressError, Buffer, Clock, Listener, Tls, takes_nothing
from loadbench.transports.rejection import is_http

NEXT_ADDRESS_S = 2.0  # a name's last address may take as long as it likes, those before it only this
HIGH_WATER = 64 * 1024  # unsent bytes above which a pause is reported
LINGER_S = 1.0  # how long the far side may take to close first, which leaves TIME_WAIT, and its port, on its side
LAST_WORDS = 1024 * 1024

_NOT_HTTP = "what it answered is no answer in HTTP"
_OUR_SHORTAGE = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
_RESET = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
KEEP = "/:?#[]@!$&'()*+,;=%~"  # what stays as it is when a path or query with other letters is quoted
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\x09\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True, slots=True)
class Place:
    """An address taken apart. `headers` is all that a request carries besides what its protocol adds.

    `context` is None without TLS, `proxy` without a proxy.
    """

    host: str
    port: int
    target: str
    headers: tuple[tuple[str, str], ...]
    context: ssl.SSLContext | None
    proxy: "Proxy | None" = None


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, and what it is told of who asks."""

    host: str
    port: int
    headers: tuple[tuple[str, str], ...]


def place(address: Address, plain: str, secure: str) -> Place:
    """Take an address apart; `plain` and `secure` are the schemes. Raises `AddressError` with all problems."""
    problems = _header_problems(address)
    try:
        parts = urlsplit(address.url)
        host, port = _ascii(parts.hostname or ""), parts.port
    except ValueError:
        raise AddressError(["target.url: the host or the port cannot be read", *problems]) from None
    if parts.scheme not in (plain, secure):
        problems.append(f"target.url must begin with {plain}:// or {secure}://")
    if not host:
        problems.append("target.url names no host")
    context: ssl.SSLContext | None = None
    if parts.scheme == secure:
        context = _trust(address.tls, problems)
    proxy = _proxy(address.proxy, problems) if address.proxy else None
    if problems:
        raise AddressError(problems)
    usual = 80 if context is None else 443
    path = quote(parts.path, safe=KEEP) or "/"
    target = f"{path}?{quote(parts.query, safe=KEEP)}" if parts.query else path
    name = f"[{host}]" if ":" in host else host
    name = name if port in (None, usual) else f"{name}:{port}"
    return Place(host, port or usual, target, _all_headers(name, parts, address), context, proxy)


def _proxy(url: str, problems: list[str]) -> Proxy | None:
    """The proxy at this url. Its user information becomes a header; no problem shows it."""
    try:
        parts = urlsplit(url)
        host, port = _ascii(parts.hostname or ""), parts.port
    except ValueError:
        problems.append("target.proxy: the host or the port cannot be read")
        return None
    if parts.scheme != "http" or not host or port == 0:
        problems.append(
            "target.proxy must be http://HOST:PORT, with USER:PASSWORD@ before it where it asks who you are"
        )
        return None
    who = () if parts.username is None else (("Proxy-Authorization", _basic(parts)),)
    return Proxy(host, port or 80, who)


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode("ascii")


def _ascii(host: str) -> str:
    """The name as resolvers and certificates know it. Raises UnicodeError, a ValueError, for what cannot be one."""
    return host if ":" in host else host.encode("idna").decode("ascii")


def _all_headers(name: str, parts: SplitResult, address: Address) -> tuple[tuple[str, str], ...]:
    """Ours first, except those that the user gives as well."""
    ours = [("Host", name), ("User-Agent", f"loadbench/{__version__}")]
    if parts.username is not None:
        ours.append(("Authorization", _basic(parts)))
    if address.content_type is not None:
        ours.append(("Content-Type", address.content_type))
    given = {header.lower() for header, _ in address.headers}
    return (*(header for header in ours if header[0].lower() not in given), *address.headers)


def _header_problems(address: Address) -> list[str]:
    """Values may be secrets: only names are shown."""
    problems = []
    for name, value in (*address.headers, ("content_type", address.content_type or "")):
        if not _TOKEN.fullmatch(name):
            problems.append(f"target.headers: {name!r} is no header name")
        elif not _VALUE.fullmatch(value):
            problems.append(f"target.headers: the value of {name} has a line break or a letter outside ISO 8859-1")
    return problems


def _trust(tls: Tls, problems: list[str]) -> ssl.SSLContext | None:
    """The context, or None and each file that is to blame."""
    found = len(problems)
    for name in ("ca_file", "cert_file", "key_file"):
        path = getattr(tls, name)
        try:
            if path is not None:
                Path(path).open("rb").close()
        except OSError as trouble:
            problems.append(f"target.tls.{name}: {path}: {trouble.strerror or trouble}")
    if tls.key_file is not None and tls.cert_file is None:
        problems.append("target.tls.key_file: a key needs the certificate that it belongs to, cert_file")
    if len(problems) > found:
        return None
    try:
        return tls_context(tls)
    except NotOfUseError as trouble:
        problems.append(str(trouble))
    return None


class NotOfUseError(ValueError):
    """A file of certificates or keys that can be read, and not used."""


@lru_cache(maxsize=16)
def tls_context(tls: Tls) -> ssl.SSLContext:
    """One context for all sessions: to load a system's certificates takes longer than a handshake.

    Raises NotOfUseError, which names the file, and OSError where one cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except ssl.SSLError as error:
        raise NotOfUseError(f"target.tls.ca_file: {tls.ca_file}: holds no certificates: {_tls_reason(error)}") from None
    context.set_alpn_protocols(["http/1.1"])
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file is not None:
        try:
            context.load_cert_chain(tls.cert_file, tls.key_file, password=_no_password)
        except (ssl.SSLError, _LockedError) as error:
            files = tls.cert_file if tls.key_file is None else f"{tls.cert_file} with {tls.key_file}"
            why = str(error) if isinstance(error, _LockedError) else _tls_reason(error)
            raise NotOfUseError(f"target.tls.cert_file: {files}: {why}") from None
    return context


class _LockedError(Exception):
    """A key that nobody can be asked the password of: a run is started and left alone."""


def _no_password() -> str:
    raise _LockedError("the key asks for a password: give one without")


class SocketLink(asyncio.Protocol):
    """What every link over a socket does alike; a subclass says what is spoken.

    The cause is decided once (`cause` is not None from then on) and delivered once. After that nothing is delivered.

    A message goes straight to the socket while the loop holds none back: the loop's own way costs half as much again as
    the system call. What the socket does not take, and all behind it, goes through the loop, which tells when to pause.
    """

    __slots__ = (
        *("_loop", "_socket", "_timer", "_transport", "_writable"),
        *("cause", "clock", "listener", "mouth", "tcp_ns", "tls_ns"),
    )

    def __init__(self, listener: Listener, clock: Clock) -> None:
        self.listener = listener
        self.clock = clock
        self.cause: Cause | None = None
        self.tcp_ns: int | None = None
        self.tls_ns: int | None = None
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writable: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self.mouth: list[Callable[[Buffer], int]] = [takes_nothing]  # the socket's `send`, while the loop holds nothing
        self._timer: asyncio.TimerHandle | None = None

    # What the engine calls.

    def write(self, wire: Buffer) -> int:
        """Hand a complete wire message over, or nothing once the link can take no more; see `Link`."""
        try:
            taken = self.mouth[0](wire)
        except OSError:  # full, or broken: the loop meets the same, and says so where it belongs
            taken = 0
        return 0 if taken == len(wire) else self.rest(wire, taken)

    def rest(self, wire: Buffer, taken: int) -> int:
        """By way of the loop, from now on until it holds nothing back any more; see `Link`."""
        waiting = self.unsent()
        if self._writable is None:
            return waiting
        if self.mouth[0] is takes_nothing and self._socket is not None and not waiting:
            self.mouth[0] = self._socket.send
            return self.write(wire)
        self.mouth[0] = takes_nothing
        self._writable.write(memoryview(wire)[taken:])
        return waiting

    def unsent(self) -> int:
        """Bytes that the operating system has not taken. Ask in a later tick: uvloop writes at the end of a turn."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def aside(self) -> bytes:
        """A service says nothing beside its output."""
        return b""

    def abort(self) -> None:
        """Drop the connection. The listener hears of it in a later turn of the loop."""
        if self.cause is not None:
            return
        self.cause = Cause("aborted", self.clock(), by="us")
        self.close_mouth()
        if self._transport is not None:
            self._transport.abort()
        self._loop.call_soon(self.listener.lost, self.cause)

    def cancelled(self) -> None:
        """Connecting was given up: like `abort`, but the listener hears of it before the caller goes on."""
        if self._transport is not None:
            self._transport.abort()
        self.end(Cause("aborted", self.clock(), by="us"))

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket stands, and so does TLS where it is asked for."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        if self._transport.get_extra_info("ssl_object") is not None:
            self.tls_ns = self.clock()

    def pause_writing(self) -> None:
        """The far side takes no more: told, never awaited."""
        if self.cause is None:
            self.listener.paused(self.clock())

    def resume_writing(self) -> None:
        """It takes bytes again."""
        if self.cause is None:
            self.listener.resumed(self.clock())

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone, and with it whatever was still to be waited for."""
        if self.cause is None and exc is None:
            self.eof_received()  # not every loop says it for TLS
        elif self.cause is None and exc is not None:
            self._hear_last_words()
            self.end(self._unconfirmed(exc) or gone(exc, self.clock()))
        if self._timer is not None:
            self._timer.cancel()
        self.close_mouth()
        self._transport = None

    def _unconfirmed(self, error: Exception) -> Cause | None:
        """A reset in place of the handshake's end.

        Under TLS 1.3 our side is done before the service has looked at our certificate. One that misses it sends an
        alert and hangs up; where our request is unread then, the reset may overtake the alert. Its first words of its
        own free will are session tickets (RFC 8446, 4.6.1), sent once it is content.
        """
        found = None if self._transport is None or self.heard else self._transport.get_extra_info("ssl_object")
        if found is None or found.version() != "TLSv1.3" or not isinstance(error, _RESET):
            return None
        if found.session is not None and found.session.has_ticket:
            return None
        why = "the connection was reset before the service had confirmed it, as where a client's certificate is missing"
        return Cause("tls", self.clock(), by="network", reason=why)

    # What a subclass says, and what it calls.

    @property
    def heard(self) -> bool:
        """Whether the service has said anything, within TLS where there is TLS."""
        raise NotImplementedError

    def plain(self, sock: socket.socket) -> None:
        """The connection is this socket and no TLS lies over it."""
        self._socket = sock

    def eof_received(self) -> None:
        """The far side will send no more: a cause must be decided now."""
        raise NotImplementedError

    def begin(self) -> None:
        """Speak first: the socket stands, and `dial` is about to return."""
        raise NotImplementedError

    def opened(self, at_ns: int, status: int | None = None, subprotocol: str | None = None) -> None:
        """From now on the link may be written to."""
        self._writable = transport = self._transport
        names = (None, None) if transport is None else (_name(transport, "sockname"), _name(transport, "peername"))
        self.listener.opened(Opened(at_ns, self.tcp_ns, self.tls_ns, *names, status, subprotocol))

    def end(self, cause: Cause) -> None:
        """Say once how it ended, then leave the far side a moment to close first."""
        if self.cause is not None:
            return
        self.cause = cause
        self.close_mouth()
        self._linger()
        self.listener.lost(cause)

    def close_mouth(self) -> None:
        """From now on the link takes nothing more."""
        self._writable, self.mouth[0] = None, takes_nothing

    def _hear_last_words(self) -> None:
        """A service may speak, close and reset at once.

        A write that meets the reset stops the loop's reading, and the last message, the close code or the refusal would
        lie unread in the socket.
        """
        words = b"" if self._transport is None else last_words(self._transport)
        if words:
            self.data_received(words)

    def _linger(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None and not self._transport.is_closing():
            self._timer = self._loop.call_later(LINGER_S, self._transport.abort)


async def connect(where: Place, link: SocketLink) -> bool:
    """Bring the link's socket up; False where it failed or went at once, and then the listener knows why."""
    trouble = await _connect(where, link)
    if trouble is not None:
        link.end(trouble)
    if link.cause is not None:
        return False
    link.begin()
    return True


async def _connect(where: Place, link: SocketLink) -> Cause | None:
    loop = asyncio.get_running_loop()
    try:
        sock = await (
            _reached(where, link.clock) if where.proxy is None else _tunnelled(where, where.proxy, link.clock)
        )
        if isinstance(sock, Cause):
            return sock
        link.tcp_ns = link.clock()
        tls: dict[str, Any] = {}
        if where.context is None:
            link.plain(sock)
        else:
            tls = {"ssl": where.context, "server_hostname": where.host, "ssl_shutdown_timeout": LINGER_S}
        try:
            await loop.create_connection(lambda: link, sock=sock, **tls)
        except OSError as error:
            if where.context is None:
                return gone(error, link.clock())
            return Cause("tls", link.clock(), by="network", reason=_tls_reason(error))
    except asyncio.CancelledError:
        link.cancelled()
        raise
    return None


async def _reached(where: "Place | Proxy", clock: Clock) -> socket.socket | Cause:
    """A socket connected to a place, by the first of its addresses that takes us."""
    try:
        return await _first(await _resolve(where), clock)
    except socket.gaierror as error:
        if error.errno in (socket.EAI_SYSTEM, socket.EAI_MEMORY):
            return Cause("resource", clock(), by="us", reason=f"name lookup: {error.strerror}")
        return Cause("dns", clock(), by="network", reason=str(error.strerror))


async def _tunnelled(where: Place, proxy: Proxy, clock: Clock) -> socket.socket | Cause:
    """A socket behind which the proxy has connected to the place; the proxy's trouble is told as its own."""
    sock = await _reached(proxy, clock)
    if isinstance(sock, Cause):
        return sock if sock.by == "us" else Cause("proxy", sock.at_ns, by="network", reason=sock.reason)
    try:
        trouble = await _ask_through(sock, where, proxy)
    except OSError as error:
        trouble = error.strerror or str(error)
    except BaseException:
        sock.close()
        raise
    if not trouble:
        return sock
    sock.close()
    return Cause("proxy", clock(), by="network", reason=trouble)


async def _ask_through(sock: socket.socket, where: Place, proxy: Proxy) -> str:
    """CONNECT (RFC 9110, 9.3.6). Why it was refused; "" where it was not."""
    loop, core = asyncio.get_running_loop(), h11.Connection(h11.CLIENT)
    goal = f"[{where.host}]:{where.port}" if ":" in where.host else f"{where.host}:{where.port}"
    request = h11.Request(method="CONNECT", target=goal, headers=[("Host", goal), *proxy.headers])
    await loop.sock_sendall(sock, core.send(request) or b"")
    core.send(h11.EndOfMessage())
    try:
        while (event := core.next_event()) is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
            if event is h11.NEED_DATA:
                data = await loop.sock_recv(sock, 65_536)
                if not data:
                    return "it closed the connection without an answer"
                core.receive_data(data)
                if not is_http(core):
                    return _NOT_HTTP
    except h11.RemoteProtocolError as error:
        return f"{_NOT_HTTP}: {error}"
    if not isinstance(event, h11.Response):
        return _NOT_HTTP
    if not 200 <= event.status_code < 300:
        return f"it answered {event.status_code} {event.reason.decode('latin-1')}".rstrip()
    return "it went on talking after its answer" if core.trailing_data[0] else ""


_Found = tuple[socket.AddressFamily, tuple[Any, ...]]


async def _resolve(where: Place | Proxy) -> list[_Found]:
    """Addresses in the resolver's order; one that is a number already needs no thread."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, where.host)
        except OSError:
            continue
        return [(family, (where.host, where.port))]
    answers = await asyncio.get_running_loop().getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in answers]


async def _first(found: Sequence[_Found], clock: Clock) -> socket.socket | Cause:
    """The first address that takes us, tried in order; else what became of each."""
    failures: list[str] = []
    kind_is_ours = False
    for index, (family, address) in enumerate(found):
        patience = NEXT_ADDRESS_S if index + 1 < len(found) else None
        try:
            return await _attempt(family, address, patience)
        except TimeoutError:
            failures.append(f"{address[0]}: no answer")
            kind_is_ours = False
        except OSError as error:
            failures.append(f"{address[0]}: {os.strerror(error.errno).lower() if error.errno else error}")
            kind_is_ours = error.errno in _OUR_SHORTAGE
    reason = "; ".join(failures)
    if kind_is_ours:
        return Cause("resource", clock(), by="us", reason=reason)
    return Cause("refused", clock(), by="network", reason=reason)


async def _attempt(family: socket.AddressFamily, address: tuple[Any, ...], patience_s: float | None) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        # A header and its payload written apart would else wait 40 ms for an acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(patience_s):
            await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def gone(error: Exception, at_ns: int) -> Cause:
    """What the loss of a standing connection means."""
    if isinstance(error, ssl.SSLError):
        return Cause("tls", at_ns, by="network", reason=_tls_reason(error))
    if isinstance(error, _RESET):
        return Cause("reset", at_ns, reason=str(error))
    return Cause("reset", at_ns, by="network", reason=str(error))


def last_words(transport: asyncio.Transport) -> bytes:
    """What still lies in the receive buffer of a broken plain connection; b"" for TLS."""
    if transport.get_extra_info("ssl_object") is not None:
        return b""
    words = bytearray()
    try:
        handle = transport.get_extra_info("socket").fileno()
        while len(words) < LAST_WORDS and (piece := os.read(handle, 65_536)):
            words += piece
    except OSError:
        return bytes(words)  # nothing more can be read: that is what we came to find out
    return bytes(words)


def _name(transport: asyncio.Transport, which: str) -> str | None:
    name = transport.get_extra_info(which)
    if not name:
        return None
    return f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"


def _tls_reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate was not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return str(error.reason or error)
    return str(error) or type(error).__name__
