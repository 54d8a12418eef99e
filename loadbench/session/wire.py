"""The words between a conversation and whoever drives it: what it asks for, what it is told.

The conversation never sees a socket or a clock: times come in as arguments, on the run clock.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["text", "binary", "end"]  # "end" is the end of a request's body; WebSocket has none


@dataclass(frozen=True, slots=True)
class Send:
    """Hand this message to the transport now. What polls is a request, `GET /path`, and no message of the profile's."""

    kind: Kind
    payload: bytes
    role: Literal["open", "end", "keepalive", "poll"] = "open"


@dataclass(frozen=True, slots=True)
class Ask:
    """Make this HTTP request of the prelude. Answered by `Conversation.asked`; Abort takes it back.

    `url`, `headers`, `body` and `proxy`, the url of one that was asked for, may hold secrets.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    timeout_ns: int
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect. Answered by `Conversation.dialled`."""


@dataclass(frozen=True, slots=True)
class StartMedia:
    """The service is ready: media of utterance `index` may begin. Answered by `Conversation.media_started`."""

    index: int


@dataclass(frozen=True, slots=True)
class StopMedia:
    """Send no further chunk."""


@dataclass(frozen=True, slots=True)
class Shut:
    """Close politely: a WebSocket close with `code`, an HTTP connection closed."""

    code: int = 1000


@dataclass(frozen=True, slots=True)
class Abort:
    """Drop the connection at once."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The conversation is over and its record is complete."""


Action = Ask | Dial | Send | StartMedia | StopMedia | Shut | Abort | Ended


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an `Ask`: an HTTP answer, whole and within our limit, at `at_ns`.

    `location` is where a redirect points, without user, query and fragment; `retry_after_s` is None where unsaid.
    """

    at_ns: int
    status: int
    body: bytes
    retry_after_s: float | None = None
    location: str = ""


class Progress(NamedTuple):
    """How much of the utterance at hand has been handed over: chunks, media time, bytes of media."""

    chunks: int
    media_ns: int
    media_bytes: int


@dataclass(frozen=True, slots=True)
class Opened:
    """The connection stands: a WebSocket handshake is done, or an HTTP request's head has been sent."""

    at_ns: int
    tcp_ns: int | None = None
    tls_ns: int | None = None
    local: str | None = None
    remote: str | None = None
    status: int | None = None
    subprotocol: str | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a connection is no more. Exactly one is delivered for each connection, opened or not.

    kind:
      closed     a close frame or the regular end of a response; `code` is the close code, `by` whose came first
      eof        the far side went without a close        reset      the connection was reset
      refused    nobody listens, or no route              dns        the name has no address
      proxy      the asked-for proxy cannot be reached, or does not let us through
      tls        the handshake or the certificate         rejected   an HTTP answer instead of the stream: `status`
      protocol   bytes that break the protocol            too_big    over our message limit
      resource   file handles or ports on our side ran out aborted   we dropped it
      no_pong    a ping of ours found no answer in time, and the profile says that this ends the session

    `location` is where a redirect points, without user, query and fragment.
    `pongs_missed` counts pings of ours that found no answer in time.
    """

    kind: Literal[
        "closed", "eof", "reset", "refused", "proxy", "dns", "tls", "rejected", "protocol", "too_big", "resource",
        "aborted", "no_pong",
    ]  # fmt: skip
    at_ns: int
    by: Literal["us", "target", "network"] = "target"
    code: int | None = None
    reason: str = ""
    status: int | None = None
    retry_after_s: float | None = None
    body: bytes = b""
    location: str = ""
    pongs_missed: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit of a session, seconds; None switches one off. All are stored in the run's header."""

    connect_s: float | None = 10.0
    ready_s: float | None = 30.0
    silence_s: float | None = None
    final_s: float | None = 30.0
    session_s: float | None = None
    close_s: float = 3.0
    message_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClipTask:
    """What a conversation needs to know of a clip that it carries. Spans in nanoseconds from media zero."""

    id: str
    media_ns: int
    chunks: int
    attempt: int = 0
    onset_ns: int | None = None
    activity_end_ns: int | None = None
    fields: dict[str, str] = field(default_factory=dict)
