"""An HTTP answer that came instead of the stream we asked for: status, Retry-After, and a bounded piece of its body."""

import time
from collections.abc import Iterable, Sequence
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import h11

from loadbench.results.masks import shorten
from loadbench.session.wire import Cause

BODY_BYTES = 4096  # enough for any error text; a service that fails does not fill our memory
LONGEST_WAIT_S: Final = 1e9  # thirty years
LOCATION: Final = 200  # characters
_HTTP: Final = b"HTTP/"
NO_HTTP: Final = "what came is no answer in HTTP"
BODY_S = 1.0  # an answer without a length may never end


class Rejection:
    """Collects the answer. `cause` may be asked at any time; its time is that of the answer's head."""

    def __init__(self, response: h11.Response, at_ns: int) -> None:
        self._response = response
        self._at_ns = at_ns
        self._body = bytearray()

    def add(self, data: bytes) -> bool:
        """Keep some of the body; True when there is enough of it."""
        self._body += data[: BODY_BYTES - len(self._body)]
        return len(self._body) >= BODY_BYTES

    def cause(self) -> Cause:
        """What the listener is told."""
        return Cause(
            "rejected",
            self._at_ns,
            status=self._response.status_code,
            reason=self._response.reason.decode("latin-1"),
            retry_after_s=retry_after_s(self._response.headers),
            body=bytes(self._body),
            location=location(self._response) if 300 <= self._response.status_code < 400 else "",
        )


class RefusalReader:
    """Reads a refusal off a connection that was meant to become something else than HTTP."""

    def __init__(self) -> None:
        self._core = h11.Connection(h11.CLIENT)
        # The parser wants to have seen the request; this one is never sent.
        self._core.send(h11.Request(method="GET", target="/", headers=[("Host", "unsent")]))
        self._core.send(h11.EndOfMessage())
        self.rejection: Rejection | None = None

    @property
    def is_http(self) -> bool:
        """Whether what came so far is, or may become, an answer in HTTP."""
        return is_http(self._core)

    def feed(self, data: bytes, at_ns: int) -> bool:
        """Take what came (b"" is the end of the stream); True when the answer is in as far as it is kept.

        Raises h11.RemoteProtocolError for what is no HTTP answer, or one cut short.
        """
        self._core.receive_data(data)
        while True:
            event = self._core.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return False
            if isinstance(event, h11.Response):
                self.rejection = Rejection(event, at_ns)
            elif isinstance(event, h11.Data) and self.rejection is not None:
                if self.rejection.add(bytes(event.data)):
                    return True
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return True


def is_http(core: h11.Connection) -> bool:
    """Whether what the parser could not yet take in may be the head of an answer in HTTP; nothing at all may be."""
    waiting = core.trailing_data[0][: len(_HTTP)]
    return _HTTP.startswith(waiting)


def location(response: h11.Response) -> str:
    """Where a redirect points, without what may be secret in it: user, query, fragment. "" where it does not say."""
    for name, value in response.headers:
        if bytes(name).lower() == b"location":
            try:
                parts = urlsplit(bytes(value).decode("latin-1"))
            except ValueError:
                return ""
            return shorten(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")), LOCATION)
    return ""


def retry_after_s(headers: Iterable[Sequence[bytes]]) -> float | None:
    """Retry-After in seconds from the answer's own Date, or from now; never below 0.

    None where it is absent or unreadable, or farther away than anybody would wait: that is no time that was meant.
    """
    found = {bytes(name).lower(): bytes(value).decode("latin-1").strip() for name, value in headers}
    wish = found.get(b"retry-after")
    if wish is None:
        return None
    if wish.isascii() and wish.isdigit():
        return float(wish) if len(wish) < 12 and float(wish) <= LONGEST_WAIT_S else None
    until = _unix(wish)
    if until is None:
        return None
    said = _unix(found.get(b"date", ""))
    wait_s = max(0.0, until - (time.time() if said is None else said))
    return wait_s if wait_s <= LONGEST_WAIT_S else None


def _unix(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
