"""What two sides say to each other, read from copies of their bytes; nothing of it is answered or changed.

HTTP is read by h11 and WebSocket by the core of websockets, each once for either side. Where one of them can read no
further, the copies are dropped: the bytes themselves travel elsewhere, and go on.
"""

from collections.abc import Callable
from typing import Final, Literal

import h11
import msgspec
from websockets.exceptions import WebSocketException
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Close, Frame, Opcode
from websockets.headers import parse_extension
from websockets.protocol import Protocol, Side

Who = Literal["client", "service"]
Kind = Literal["request", "response", "text", "binary", "ping", "pong", "close", "body", "end", "gone", "unread"]
SWITCHING: Final = 101


class Said(msgspec.Struct, kw_only=True):
    """One thing that a side said. `size` is that of the whole data, which may not be kept.

    request, response: the head; `target`, `status`, `headers`. text, binary, ping, pong: a WebSocket message.
    close: `code` and `reason`. body: a piece of an HTTP body, as the chunks cut it; end: of that body. gone: the side
    hung up. unread: from here on nothing could be read, and `reason` says why.
    """

    at_ns: int
    connection: int
    who: Who
    kind: Kind
    data: bytes = b""
    size: int = 0
    target: str = ""
    status: int | None = None
    headers: list[tuple[str, str]] = []
    code: int | None = None
    reason: str = ""


class Overhearing:
    """One connection. `emit` gets what is said, in order."""

    def __init__(self, connection: int, emit: Callable[[Said], None]) -> None:
        self._connection, self._emit = connection, emit
        self._asks = h11.Connection(h11.SERVER)  # reads the client
        self._answers = h11.Connection(h11.CLIENT)  # reads the service
        self._frames: dict[Who, _Frames] | None = None
        self._pieces: dict[Who, bytearray] = {"client": bytearray(), "service": bytearray()}
        self._chunked: dict[Who, bool] = {"client": False, "service": False}
        self._upgrade = False
        self._lost = False

    def hear(self, who: Who, data: bytes, at_ns: int) -> None:
        """Bytes of one side; none: it has hung up."""
        if self._lost:
            return
        try:
            if self._frames is not None:
                self._frames[who].hear(data, at_ns)
            else:
                self._http(who, data, at_ns)
        except (h11.ProtocolError, WebSocketException, ValueError) as error:
            self._lost = True
            self._say(who, "unread", at_ns, reason=f"not readable any more: {error}")
        if not data:
            self._say(who, "gone", at_ns)

    def _say(self, who: Who, kind: Kind, at_ns: int, data: bytes = b"", **more: object) -> None:
        self._emit(
            Said(at_ns=at_ns, connection=self._connection, who=who, kind=kind, data=data, size=len(data), **more)  # type: ignore[arg-type]
        )

    # ---- HTTP: what one side said is told to the reader of the other, which must know what it is an answer to

    def _http(self, who: Who, data: bytes, at_ns: int) -> None:
        reader = self._asks if who == "client" else self._answers
        if reader.their_state is not h11.CLOSED:
            reader.receive_data(data)
        while self._frames is None:
            event = reader.next_event()
            if not isinstance(event, h11.Event) or isinstance(event, h11.ConnectionClosed):
                return
            self._http_event(who, event, at_ns)
            if self._asks.our_state is h11.DONE and self._asks.their_state is h11.DONE:
                self._asks.start_next_cycle()
                self._answers.start_next_cycle()

    def _http_event(self, who: Who, event: h11.Event, at_ns: int) -> None:
        if isinstance(event, h11.Request | h11.Response):
            self._chunked[who] = any(name == b"transfer-encoding" for name, _ in event.headers)
        if isinstance(event, h11.Request):
            self._answers.send(event)
            self._upgrade = any(name == b"upgrade" for name, _ in event.headers)
            self._say(
                who, "request", at_ns, target=_text(event.target), headers=_headers(event), reason=_text(event.method)
            )
        elif isinstance(event, h11.InformationalResponse):
            if event.status_code == SWITCHING:
                self._switch(event, at_ns)
        elif isinstance(event, h11.Response):
            self._asks.send(event)
            self._say(who, "response", at_ns, status=event.status_code, headers=_headers(event))
        elif isinstance(event, h11.Data):
            (self._answers if who == "client" else self._asks).send(event)
            self._pieces[who] += event.data
            if event.chunk_end or not self._chunked[who]:
                self._say(who, "body", at_ns, bytes(self._pieces[who]))
                self._pieces[who].clear()
        elif isinstance(event, h11.EndOfMessage):
            (self._answers if who == "client" else self._asks).send(h11.EndOfMessage())
            if not (self._upgrade and who == "client"):  # a handshake has no body to end
                self._say(who, "end", at_ns)

    # ---- WebSocket

    def _switch(self, event: h11.InformationalResponse, at_ns: int) -> None:
        self._say("service", "response", at_ns, status=SWITCHING, headers=_headers(event))
        offered = next((value for name, value in _headers(event) if name.lower() == "sec-websocket-extensions"), "")
        self._frames = {
            "client": _Frames(self._connection, "client", offered, self._emit),
            "service": _Frames(self._connection, "service", offered, self._emit),
        }
        self._frames["client"].hear(self._asks.trailing_data[0], at_ns)
        self._frames["service"].hear(self._answers.trailing_data[0], at_ns)


class _Frames:
    """The frames of one side, put together to messages."""

    def __init__(self, connection: int, who: Who, extensions: str, emit: Callable[[Said], None]) -> None:
        self._connection, self._who, self._emit = connection, who, emit
        self._core = Protocol(Side.SERVER if who == "client" else Side.CLIENT, max_size=None)
        self._core.extensions = [_deflate(parameters, who) for parameters in _agreed(extensions)]
        self._parts: list[bytes] = []
        self._kind: Kind = "text"

    def hear(self, data: bytes, at_ns: int) -> None:
        """Bytes, wherever they were cut. Raises ValueError for what is no WebSocket."""
        if not data:
            return
        self._core.receive_data(data)
        self._core.data_to_send()  # its own answers, which nobody gets
        for frame in self._core.events_received():
            if isinstance(frame, Frame):
                self._frame(frame, at_ns)
        if self._core.parser_exc is not None and not isinstance(self._core.parser_exc, EOFError):
            raise ValueError(str(self._core.parser_exc))

    def _frame(self, frame: Frame, at_ns: int) -> None:
        data = bytes(frame.data)
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._kind, self._parts = "text" if frame.opcode is Opcode.TEXT else "binary", []
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            self._parts.append(data)
            if frame.fin:
                self._say(self._kind, at_ns, b"".join(self._parts))
        elif frame.opcode is Opcode.CLOSE:
            close = Close.parse(data)
            self._say("close", at_ns, code=int(close.code), reason=close.reason)
        else:
            self._say("ping" if frame.opcode is Opcode.PING else "pong", at_ns, data)

    def _say(self, kind: Kind, at_ns: int, data: bytes = b"", code: int | None = None, reason: str = "") -> None:
        self._emit(
            Said(
                at_ns=at_ns,
                connection=self._connection,
                who=self._who,
                kind=kind,
                data=data,
                size=len(data),
                code=code,
                reason=reason,
            )
        )


def _agreed(header: str) -> list[dict[str, str | None]]:
    """The parameters of permessage-deflate as the service has chosen them; none where it has not."""
    found = parse_extension(header) if header else []
    return [dict(parameters) for name, parameters in found if name == "permessage-deflate"]


def _deflate(chosen: dict[str, str | None], who: Who) -> PerMessageDeflate:
    """A reader of what `who` compresses (RFC 7692)."""
    theirs, ours = ("client", "server") if who == "client" else ("server", "client")
    return PerMessageDeflate(
        f"{theirs}_no_context_takeover" in chosen,
        f"{ours}_no_context_takeover" in chosen,
        int(chosen.get(f"{theirs}_max_window_bits") or 15),
        int(chosen.get(f"{ours}_max_window_bits") or 15),
    )


def _headers(event: h11.Request | h11.Response | h11.InformationalResponse) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in event.headers.raw_items()]


def _text(data: bytes) -> str:
    return data.decode("latin-1")
