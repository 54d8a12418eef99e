"""From bytes to messages: cutting a stream, and decoding what was cut.

A message bears the arrival of the bytes that completed it. Where packets end means nothing: any split of the bytes
gives the same messages. Lines end at LF only (a CR before it is no part of the line), never at U+0085 or U+2028.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from loadbench.results.masks import shorten
from loadbench.session.profile import Receive

Raw = str | bytes
Timed = tuple[Raw, int]
Framing = Literal["message", "lines", "sse", "auto", "body"]

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_SSE_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_json: Final = msgspec.json.Decoder()


class DecodeError(ValueError):
    """Something that arrived cannot be read as the profile says."""


class Framer:
    """Cuts what arrives into messages.

    `message`: each piece is one. `lines`: a line is one, a blank line is none. `sse`: the data of an event is one, by
    the WHATWG's rules. `auto`: sse where `set_content_type` was told text/event-stream, else lines. `body`: all of it
    is one, when it has ended; so is the answer of a service that was asked for sse and says application/json.
    A line that is not UTF-8 is handed on as bytes, and `decode_message` refuses it.
    """

    def __init__(self, framing: Framing, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._framing = framing
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._scanned = 0  # up to here there is no line end in `_pending`
        self._started = False
        self._after_cr = False
        self._event: list[bytes] = []
        self._event_bytes = 0
        self._trouble: DecodeError | None = None

    def set_content_type(self, content_type: str) -> None:
        """Tell what the response calls itself, before the first byte; decides `auto`, and may change `sse`."""
        kind = content_type.partition(";")[0].strip().lower()
        if self._framing == "auto":
            self._framing = "sse" if kind == "text/event-stream" else "lines"
        elif self._framing == "sse" and kind == "application/json":
            self._framing = "body"

    def feed(self, data: Raw, at_ns: int) -> list[Timed]:
        """The messages that are complete now. DecodeError("too big"); behind messages it is kept as `trouble`."""
        if self._framing == "message":
            if len(data) > self._max_bytes:
                raise self._too_big()
            return [(data, at_ns)]
        self._raise_trouble()
        self._pending += data.encode() if isinstance(data, str) else data
        return self._complete(at_ns, ended=False)

    @property
    def trouble(self) -> DecodeError | None:
        """What came behind the last messages and cannot be taken; from then on there is nothing but this."""
        return self._trouble

    def flush(self, at_ns: int) -> list[Timed]:
        """The stream has ended: a last line without its end is a message, an event without its blank line is none."""
        self._raise_trouble()
        return [] if self._framing == "message" else self._complete(at_ns, ended=True)

    def _complete(self, at_ns: int, *, ended: bool) -> list[Timed]:
        messages: list[Timed] = []
        if self._begun(ended):
            cut = {"sse": self._cut_events, "body": self._cut_body}.get(self._framing, self._cut_lines)
            try:
                cut(lambda message: messages.append((_text(message), at_ns)), ended)
            except DecodeError as error:
                if not messages:
                    raise
                self._trouble = error
        return messages

    def _begun(self, ended: bool) -> bool:
        """Whether the start of the stream is past, and with it a byte order mark."""
        if not self._started:
            if not ended and len(self._pending) < len(_BOM) and _BOM.startswith(self._pending):
                return False
            self._started = True
            if self._pending.startswith(_BOM):
                del self._pending[: len(_BOM)]
        return True

    def _cut_lines(self, emit: Callable[[bytes], None], ended: bool) -> None:
        start = 0
        while (end := self._pending.find(b"\n", max(start, self._scanned))) >= 0:
            self._line(bytes(self._pending[start:end]), emit)
            start = end + 1
        del self._pending[:start]
        self._scanned = len(self._pending)
        if ended:
            self._line(bytes(self._pending), emit)
            self._pending.clear()
        elif len(self._pending) - self._pending.endswith(b"\r") > self._max_bytes:
            raise self._too_big()

    def _line(self, line: bytes, emit: Callable[[bytes], None]) -> None:
        line = line.removesuffix(b"\r")
        if len(line) > self._max_bytes:
            raise self._too_big()
        if line.strip():
            emit(line)

    def _cut_body(self, emit: Callable[[bytes], None], ended: bool) -> None:
        if len(self._pending) > self._max_bytes:
            raise self._too_big()
        if ended:
            if self._pending.strip():
                emit(bytes(self._pending))
            self._pending.clear()

    def _cut_events(self, emit: Callable[[bytes], None], ended: bool) -> None:
        if self._after_cr and self._pending:
            if self._pending.startswith(b"\n"):  # the other half of a CRLF that was cut in two
                del self._pending[:1]
            self._after_cr = False
        start = 0
        for found in _SSE_LINE_END.finditer(self._pending, self._scanned):
            self._after_cr = found.end() == len(self._pending) and found[0] == b"\r"
            self._event_line(bytes(self._pending[start : found.start()]), emit)
            start = found.end()
        del self._pending[:start]
        self._scanned = len(self._pending)
        if len(self._pending) > self._max_bytes:
            raise self._too_big()
        if ended:
            self._pending.clear()

    def _event_line(self, line: bytes, emit: Callable[[bytes], None]) -> None:
        if len(line) > self._max_bytes:
            raise self._too_big()
        if not line:
            if self._event:
                emit(b"\n".join(self._event))
            self._event, self._event_bytes = [], 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._event.append(value.removeprefix(b" "))
            self._event_bytes += len(self._event[-1]) + 1
            if self._event_bytes - 1 > self._max_bytes:
                raise self._too_big()

    def _too_big(self) -> DecodeError:
        self._trouble = DecodeError(f"too big: a message of more than {self._max_bytes} bytes")
        return self._trouble

    def _raise_trouble(self) -> None:
        if self._trouble:
            raise self._trouble


def decode_message(receive: Receive, raw: Raw) -> list[Any]:
    """The messages in one piece of the stream: none where it is blank, several for `array`. Raises DecodeError.

    `nested` puts the decoded value in the place of the JSON text that the field holds, so that rules see both levels.
    """
    text = raw if isinstance(raw, str) else _strict(raw)
    if text in receive.sentinels:
        return [{"sentinel": text}]
    if receive.decode == "text":
        return [text]
    if not text.strip():
        return []
    message = _from_json(text)
    if receive.decode == "array":
        return message if isinstance(message, list) else [message]
    if receive.decode == "nested" and receive.nested:
        _unpack(message, receive.nested.split("."))
    return [message]


def _unpack(message: Any, path: list[str]) -> None:
    *parents, last = path
    for key in parents:
        message = message.get(key) if isinstance(message, dict) else None
    if isinstance(message, dict) and isinstance(inner := message.get(last), str) and inner.strip():
        message[last] = _from_json(inner)


def _from_json(text: str) -> Any:
    try:
        return _json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return _from_loose_json(text)
    except RecursionError as error:
        raise DecodeError("JSON that is nested too deeply") from error


def _from_loose_json(text: str) -> Any:
    """As Python and JavaScript write it: with NaN, and with halves of surrogate pairs, which become U+FFFD."""
    try:
        value = json.loads(text)
        whole = (
            json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        )
        return json.loads(whole)
    except ValueError as error:
        why = (
            f"not JSON ({error})" if isinstance(error, json.JSONDecodeError) else "a number of too many digits in JSON"
        )
        raise DecodeError(f"{why}: {shorten(text, 80)!r}") from error
    except RecursionError as error:
        raise DecodeError("JSON that is nested too deeply") from error


def _strict(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(
            f"not UTF-8 at byte {error.start}: {shorten(data[:200].decode('utf-8', 'backslashreplace'), 40)!r}"
        ) from error


def _text(message: bytes) -> Raw:
    try:
        return message.decode()
    except UnicodeDecodeError:
        return message
