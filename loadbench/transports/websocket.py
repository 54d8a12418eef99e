"""WebSocket: the websockets library's sans-I/O core under an asyncio protocol of our own.

What arrives is stamped first thing in `data_received`, before anyone parses it. A frame that is a whole message and has
come in one piece is handed on as it is; every other one (fragments, pieces, pings, closes, errors) is the core's, which
costs some times as much. Media goes straight to the socket as complete frames made by `frames.FrameEncoder`; the core
only writes the handshake, pongs, pings and closes. Compression is offered only when asked for, and then the service's
messages may come compressed, all of them through the core; ours stay as they are, which the extension allows. Redirects
are not followed: where to measure is the user's choice, not the service's.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import h11
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, PayloadTooBig
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from loadbench.session.wire import Cause
from loadbench.transports.contract import NO_OPTIONS, Address, Buffer, Clock, Link, Listener, takes_nothing
from loadbench.transports.dial import Place, SocketLink, connect, place
from loadbench.transports.frames import FrameEncoder
from loadbench.transports.rejection import BODY_S, NO_HTTP, RefusalReader

_SWITCHING = b"HTTP/1.1 101"
_NO_CODE = 1005  # RFC 6455 7.1.5: the close frame carried none
_NOT_TEXT = 1007
_TOO_BIG = 1009
_MOST = (1 << 63) - 1  # RFC 6455 5.2: the first bit of a length is 0
_NO_PONG = 1011  # as other clients say it
_BLANK_LINE = b"\r\n\r\n"
_WHOLE_TEXT = 0x81  # RFC 6455 5.2: the last frame of its message, no extension, text
_WHOLE = (_WHOLE_TEXT, 0x82)
_MASKED = 0x80  # a service must not mask; the core says so


class WebSocketLink(SocketLink):
    """One WebSocket. `pings_sent` and `pongs_missed` count our own pings, when they are asked for."""

    __slots__ = (
        *("_address", "_awaited_pongs", "_core", "_head", "_hear", "_is_text", "_owed", "_parts", "_refusal", "_small"),
        *("_start", "_where", "pings_sent", "pongs_missed"),
    )

    def __init__(self, where: Place, address: Address, listener: Listener, clock: Clock) -> None:
        super().__init__(listener, clock)
        self.pings_sent = 0
        self.pongs_missed = 0
        self._where = where
        self._address = address
        self._core = ClientProtocol(
            WebSocketURI(where.context is not None, where.host, where.port, "/", ""),
            extensions=[ClientPerMessageDeflateFactory(client_max_window_bits=True)] if address.compression else None,
            subprotocols=[Subprotocol(name) for name in address.subprotocols] or None,
            max_size=address.message_bytes,
        )
        self._head: bytes | None = b""  # until it is known whether the handshake was accepted
        self._refusal: RefusalReader | None = None
        self._parts: list[bytes] = []
        self._is_text = False
        self._hear: Callable[[bytes, int], None] = self._greet
        self._start = b""  # of a frame, too little to tell its length; of the handshake, too little to tell its end
        self._small = min(125, address.message_bytes)  # RFC 6455 5.2: up to here one byte tells the length
        self._owed = 0  # bytes still to come of a frame that the core has begun to read
        self._awaited_pongs: set[bytes] = set()

    # What the engine calls.

    def shut(self, code: int) -> None:
        """Send a close frame; the service's own, or its hanging up, is what `lost` reports."""
        if self.cause is not None:
            return
        if self._core.state is not OPEN:
            if self._core.close_sent is None:
                self.abort()
            return
        self.close_mouth()  # after a close frame nothing may follow
        self._core.send_close(code if _may_be_sent(code) else 1000)
        self._flush()

    # What the loop calls.

    @property
    def heard(self) -> bool:
        """See `SocketLink`."""
        return self._head != b""

    def end(self, cause: Cause) -> None:
        """Say with the end how many of our pings found no answer."""
        super().end(replace(cause, pongs_missed=self.pongs_missed))

    def begin(self) -> None:
        """Ask for the WebSocket."""
        request = self._core.connect()
        request.path = self._where.target
        for name, _ in self._where.headers:
            if name in request.headers:
                del request.headers[name]
        for name, value in self._where.headers:
            request.headers[name] = value
        self._core.send_request(request)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Stamp, then parse."""
        arrival_ns = self.clock()
        if self.cause is not None:
            return
        if self._head is not None:
            data = self._head = self._head + data
            if _SWITCHING.startswith(data):
                return  # too little to tell
            self._head = None
            if not data.startswith(_SWITCHING):
                self._refusal = RefusalReader()
        if self._refusal is not None:
            self._refused(self._refusal, data, arrival_ns)
            return
        self._hear(data, arrival_ns)

    def _greet(self, data: bytes, arrival_ns: int) -> None:
        """The service's answer to the handshake, up to the blank line; what follows are frames."""
        seen = self._start + data
        blank = seen.find(_BLANK_LINE)
        if blank < 0:
            self._start = seen[1 - len(_BLANK_LINE) :]
            self._read(data, arrival_ns)
            return
        rest = blank + len(_BLANK_LINE) - len(self._start)
        self._start = b""
        self._read(data[:rest], arrival_ns)
        if self.cause is None:
            self._hear = self._read if self._core.extensions else self._frames
            if rest < len(data):
                self._hear(data[rest:], arrival_ns)

    def _frames(self, data: bytes, arrival_ns: int) -> None:
        """Frames without extensions, in whatever pieces they come; most often it is a single small message."""
        if self._start or self._owed:
            self._resume(data, arrival_ns)
        elif 0 <= (size := len(data) - 2) <= self._small and data[1] == size and data[0] in _WHOLE and not self._parts:
            self._is_text = data[0] == _WHOLE_TEXT
            self._message(data[2:], arrival_ns)
        else:
            self._split(data, arrival_ns)

    def _split(self, data: bytes, arrival_ns: int) -> None:
        """Frame by frame; `data` begins with one. Whole messages are handed on, the rest is for the core."""
        at, end = 0, len(data)
        while at < end and self.cause is None:
            head = payload_at(data, at)
            if head is None:
                self._start = data[at:]
                return
            begin, size = head
            stop, opcode = begin + size, data[at]
            if opcode in _WHOLE and stop <= end and data[at + 1] < _MASKED and not self._parts and self._fits(size):
                self._is_text = opcode == _WHOLE_TEXT
                self._message(data[begin:stop], arrival_ns)
            else:
                self._owed = max(0, stop - end)
                self._read(data[at:stop], arrival_ns)
            at = stop

    def _resume(self, data: bytes, arrival_ns: int) -> None:
        """More of a frame that came in pieces, and what comes behind it."""
        if self._start:
            data, self._start = self._start + data, b""
        elif self._owed:
            part = data[: self._owed]
            self._owed -= len(part)
            data = data[len(part) :]
            self._read(part, arrival_ns)
        if data and self.cause is None:
            self._split(data, arrival_ns)

    def _fits(self, size: int) -> bool:
        return size <= self._address.message_bytes

    def _read(self, data: bytes, arrival_ns: int) -> None:
        self._core.receive_data(data)
        self._flush()
        for event in self._core.events_received():
            if self.cause is not None:
                return
            if isinstance(event, Frame):
                self._frame(event, arrival_ns)
            elif isinstance(event, Response):
                self._answered(arrival_ns)
        self._failed(arrival_ns)

    def eof_received(self) -> None:
        """The service hung up; a polite close would have said so before."""
        now_ns = self.clock()
        if self._refusal is not None:
            self._refused(self._refusal, b"", now_ns)
        during = "during the handshake" if self._core.close_sent is None and self._core.state is not OPEN else ""
        self.end(Cause("eof", now_ns, reason=during))

    # The handshake.

    def _answered(self, arrival_ns: int) -> None:
        error = self._core.handshake_exc
        if error is not None:
            self.end(Cause("protocol", arrival_ns, reason=f"the handshake: {error}"))
            return
        self.opened(arrival_ns, status=101, subprotocol=self._core.subprotocol)
        if self._address.ping_every_s is not None and self.cause is None:
            self._loop.call_later(self._address.ping_every_s, self._ping, self._address.ping_every_s)

    def _refused(self, reader: RefusalReader, data: bytes, arrival_ns: int) -> None:
        known = reader.rejection is not None
        try:
            complete = reader.feed(data, arrival_ns)
        except h11.RemoteProtocolError as error:
            if not data and reader.rejection is None and reader.is_http:
                return  # hung up before it had answered: that is what the caller says
            broken = Cause("protocol", arrival_ns, reason=f"no answer to the handshake: {error}")
            self.end(broken if reader.rejection is None else reader.rejection.cause())
            return
        if reader.rejection is None:
            if not reader.is_http:  # and what follows need never come
                self.end(Cause("protocol", arrival_ns, reason=f"no answer to the handshake: {NO_HTTP}"))
            return
        if complete:
            self.end(reader.rejection.cause())
        elif not known:
            rejection = reader.rejection
            self._timer = self._loop.call_later(BODY_S, lambda: self.end(rejection.cause()))

    # Messages.

    def _frame(self, frame: Frame, arrival_ns: int) -> None:
        opcode = frame.opcode
        if opcode is Opcode.TEXT or opcode is Opcode.BINARY:
            self._is_text = opcode is Opcode.TEXT
            if frame.fin:
                self._message(frame.data, arrival_ns)
            else:
                self._parts = [bytes(frame.data)]
        elif opcode is Opcode.CONT:
            self._parts.append(bytes(frame.data))
            if frame.fin:
                whole, self._parts = b"".join(self._parts), []
                self._message(whole, arrival_ns)
        elif opcode is Opcode.PONG:
            self._awaited_pongs.discard(bytes(frame.data))
        elif opcode is Opcode.CLOSE:
            self._closed(arrival_ns)

    def _message(self, data: Buffer, arrival_ns: int) -> None:
        """Only whole messages are text: a fragment may end inside a character."""
        if not self._is_text:
            self.listener.received(bytes(data), arrival_ns)
            return
        try:
            text = str(data, "utf-8")
        except UnicodeDecodeError as error:
            reason = f"a text message is not UTF-8: {error.reason} at byte {error.start}"
            self._core.fail(_NOT_TEXT, "text is not UTF-8")
            self._flush()
            self.end(Cause("protocol", arrival_ns, code=_NOT_TEXT, reason=reason))
            return
        self.listener.received(text, arrival_ns)

    def _closed(self, arrival_ns: int) -> None:
        """Whose close frame came first, and what that one said."""
        core = self._core
        theirs, ours = core.close_rcvd, core.close_sent
        if core.close_rcvd_then_sent is False and ours is not None:
            self.end(Cause("closed", arrival_ns, by="us", code=int(ours.code), reason=theirs.reason if theirs else ""))
        elif theirs is not None:
            self.end(Cause("closed", arrival_ns, code=int(theirs.code), reason=theirs.reason))

    def _failed(self, arrival_ns: int) -> None:
        """Bytes that the core could not go on from: a close frame of ours is on its way already."""
        error = self._core.parser_exc or self._core.handshake_exc
        if error is None or self.cause is not None:
            return
        if isinstance(error, PayloadTooBig) and (error.size or 0) <= _MOST:
            limit = self._address.message_bytes
            reason = f"a message is over our limit of {limit} bytes"
            self.end(Cause("too_big", arrival_ns, by="us", code=_TOO_BIG, reason=reason))
            return
        where = "the handshake: " if isinstance(error, InvalidHandshake) else ""
        sent = self._core.close_sent
        self.end(Cause("protocol", arrival_ns, code=int(sent.code) if sent else None, reason=f"{where}{error}"))

    def _flush(self) -> None:
        """Write what the core has to say. Its empty string, the wish to half-close, is left to the lingering end."""
        for data in self._core.data_to_send():
            if data and self._transport is not None:
                self.mouth[0] = takes_nothing  # until the loop holds none of it any more
                self._transport.write(data)

    # Our pings.

    def _ping(self, every_s: float) -> None:
        if self._writable is None:
            return
        self._loop.call_later(every_s, self._ping, every_s)
        self.pings_sent += 1
        payload = self.pings_sent.to_bytes(4, "big")
        self._core.send_ping(payload)
        self._flush()
        timeout_s = self._address.ping_timeout_s
        if timeout_s is not None:
            self._awaited_pongs.add(payload)
            self._loop.call_later(timeout_s, self._pong_due, payload)

    def _pong_due(self, payload: bytes) -> None:
        if payload in self._awaited_pongs and self.cause is None:
            self.pongs_missed += 1
            if self._address.ping_close:
                self.shut(_NO_PONG)
                within = f"none within {self._address.ping_timeout_s:g} s"
                self.end(Cause("no_pong", self.clock(), by="us", code=_NO_PONG, reason=within))


def payload_at(data: bytes, at: int) -> tuple[int, int] | None:
    """Where the payload of the frame at `at` begins and how long it is (RFC 6455 5.2); None: too little to tell."""
    left = len(data) - at
    if left < 2:
        return None
    length = data[at + 1]
    mask = 4 if length >= _MASKED else 0
    length &= 0x7F
    if length < 126:
        return at + 2 + mask, length
    if length == 126:
        return None if left < 4 else (at + 4 + mask, data[at + 2] << 8 | data[at + 3])
    return None if left < 10 else (at + 10 + mask, int.from_bytes(data[at + 2 : at + 10], "big"))


def _may_be_sent(code: int) -> bool:
    """RFC 6455 7.4: what an endpoint may put into a close frame."""
    return 3000 <= code < 5000 or (1000 <= code <= 1014 and code not in (1004, _NO_CODE, 1006))


class WebSocketTransport:
    """See the module."""

    name = "websocket"

    def encoder(self, random: Callable[[int], bytes], options: Mapping[str, str] = NO_OPTIONS) -> FrameEncoder:  # noqa: ARG002
        """Masked frames."""
        return FrameEncoder(random)

    def check(self, address: Address) -> None:
        """Raise `AddressError` for what cannot be dialled."""
        place(address, "ws", "wss")

    async def dial(self, address: Address, listener: Listener, clock: Clock) -> Link | None:
        """Connect and ask for a WebSocket; `opened` comes with the answer."""
        where = place(address, "ws", "wss")
        link = WebSocketLink(where, address, listener, clock)
        return link if await connect(where, link) else None


transport = WebSocketTransport()
