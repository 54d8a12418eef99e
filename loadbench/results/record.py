"""What is known of a session when it has ended.

Every `_ns` that is not called a span is a point on the run clock (the machine's monotonic clock, whole
nanoseconds); `None` is unknown and never 0. Points in media time carry `media_` or are said to be relative.
"""

from typing import Literal

import msgspec

from loadbench.results.media import MediaOutput

Finality = Literal["explicit", "promote_on_done", "promote_on_quiet"]


class Update(msgspec.Struct, array_like=True, frozen=True):
    """One change of what a channel shows: `shown = shown[:keep] + add`, its first `settled` characters final."""

    at_ns: int
    keep: int
    add: str
    settled: int


class Segment(msgspec.Struct, kw_only=True):
    """A stretch of output. `changed_ns` is when its text last changed; `final_ns` is None while it may change.

    A promoted final (see `Channel.finality`) bears the time of its last change, not of the promotion.
    `start_s` and `end_s` are the service's own media clock.
    """

    key: str
    text: str
    first_ns: int
    changed_ns: int
    final_ns: int | None = None
    promoted: bool = False
    start_s: float | None = None
    end_s: float | None = None


class Channel(msgspec.Struct, kw_only=True):
    """One named output stream of one utterance.

    `first_ns` is the first non-empty text, `first_final_ns` and `last_final_ns` the first and last non-empty text
    that became final. `updates` replay what was shown; their last state is the hypothesis. A channel of sound or
    pictures has `media` instead of texts, and `first_ns` is then when there was something to hear or to see.
    """

    finality: Finality = "explicit"
    first_ns: int | None = None
    first_final_ns: int | None = None
    last_final_ns: int | None = None
    segments: list[Segment] = []
    updates: list[Update] = []
    empty: int = 0
    media: MediaOutput | None = None

    @property
    def text(self) -> str:
        """The text shown at the end, finals and any last partial."""
        shown = ""
        for update in self.updates:
            shown = shown[: update.keep] + update.add
        return shown

    @property
    def settled_text(self) -> str:
        """The part of `text` that is final."""
        return self.text[: self.updates[-1].settled] if self.updates else ""


class MediaClock(msgspec.Struct, array_like=True, frozen=True):
    """Where in the media the service said, at `at_ns`, that it was: how far heard, and how far final. None: unsaid.

    `lag_ms` is how far it said that it was behind what it had been sent.
    """

    at_ns: int
    processed_ms: int | None
    final_ms: int | None
    lag_ms: int | None = None


class Acks(msgspec.Struct, kw_only=True):
    """Acknowledgements of chunks; chunks sent minus `count` is the service's backlog.

    `trip_..._ns` are spans over the `echoed` ones, those that bore a chunk's media time back: from when that chunk was
    due to its acknowledgement.
    """

    count: int = 0
    echoed: int = 0
    trip_sum_ns: int = 0
    trip_max_ns: int | None = None


class Utterance(msgspec.Struct, kw_only=True):
    """One clip carried by a session. Spans `media_ns`, `onset_ns`, `activity_end_ns` count from `media_zero_ns`.

    `media_zero_ns` is where media time begins, None when it never did; `source_end_ns = media_zero_ns + media_ns`.
    `eos_ns` is when the end mark was handed over, `done_ns` when the service said that nothing more will come.
    `clock` is the service's own media clock, a row for each change; `acks` is None where the profile knows none.
    """

    index: int
    clip: str
    attempt: int
    media_ns: int
    media_zero_ns: int | None = None
    source_end_ns: int | None = None
    eos_ns: int | None = None
    done_ns: int | None = None
    done_rule: str = ""
    onset_ns: int | None = None
    activity_end_ns: int | None = None
    first_message_ns: int | None = None
    chunks_planned: int = 0
    chunks_sent: int = 0
    chunks_dropped: int = 0
    media_bytes: int = 0
    channels: dict[str, Channel] = {}
    clock: list[MediaClock] = []
    acks: Acks | None = None
    outcome: str | None = None


class Prelude(msgspec.Struct, kw_only=True):
    """One HTTP request before the connection. `name` is its method and address, without user, query and fragment.

    `ended_ns` is when its answer was in, or why not was known (`cause`); None: the session was cut before.
    """

    name: str
    began_ns: int
    ended_ns: int | None = None
    status: int | None = None
    cause: str = ""


class Connection(msgspec.Struct, kw_only=True):
    """One connection of a session: when each step was over, where it led, and how it ended.

    `close_by` says whose close came first; `close_code` is the WebSocket code, or the HTTP status in `status`.
    """

    dialled_ns: int
    tcp_ns: int | None = None
    tls_ns: int | None = None
    opened_ns: int | None = None
    ended_ns: int | None = None
    local: str | None = None
    remote: str | None = None
    status: int | None = None
    retry_after_s: float | None = None
    close_code: int | None = None
    close_reason: str = ""
    close_by: Literal["us", "target", "network", ""] = ""
    cause: str = ""
    pongs_missed: int = 0


class Lateness(msgspec.Struct, kw_only=True):
    """How far deeds lay behind the plan in one session; spans in nanoseconds.

    Late against the plan is the tester's; time in which the socket would take no more is the far side's.
    """

    chunks: int = 0
    sum_ns: int = 0
    max_ns: int = 0
    start_ns: int = 0
    blocked_ns: int = 0
    unsent_max_bytes: int = 0
    gap_max_ns: int = 0


class SessionRecord(msgspec.Struct, kw_only=True, tag="session", tag_field="type"):
    """One user's conversation with the service, whole. `cause` is a sentence for people, cut to 500 characters.

    `endpoint` is where it went; "" where the service has one for all, and for a session that was cut before any was
    free. `endpoint_wait_ns` is how long after its plan one was free; None: at once.
    """

    id: str
    worker: str
    user: int
    stage: str
    window: Literal["warmup", "measure", "drain"]
    planned_ns: int
    begun_ns: int
    ready_ns: int | None = None
    ended_ns: int
    endpoint: str = ""
    endpoint_wait_ns: int | None = None
    prelude: list[Prelude] = []
    connections: list[Connection] = []
    utterances: list[Utterance] = []
    outcome: str
    side: str
    cause: str = ""
    warnings: list[str] = []
    lateness: Lateness = msgspec.field(default_factory=Lateness)
    tainted: bool = False
    bytes_sent: int = 0
    bytes_received: int = 0
    messages: dict[str, int] = {}
    raw: list[str] = []


class Started(msgspec.Struct, kw_only=True, tag="started", tag_field="type"):
    """A session has begun. Written before anything is sent, so that a killed run knows what was in flight."""

    id: str
    worker: str
    user: int
    stage: str
    window: Literal["warmup", "measure", "drain"]
    planned_ns: int
    begun_ns: int
    clips: list[str]


class ChunkTimes(msgspec.Struct, kw_only=True, tag="chunks", tag_field="type"):
    """Per-chunk times of one utterance. Each array is base64 of little-endian int64.

    `due` and `sent` count from `media_zero_ns`; `unsent` is how many bytes the socket still held of earlier writes.
    Before `begun_ns` nothing could be sent, since the service was not ready: a chunk that was due before then counts as
    due then, so that its lateness is `sent - max(due, begun_ns - media_zero_ns)`. None in bundles of older versions.
    """

    session: str
    utterance: int
    media_zero_ns: int
    begun_ns: int | None = None
    due: bytes
    sent: bytes
    unsent: bytes


class Message(msgspec.Struct, kw_only=True, tag="message", tag_field="type"):
    """One raw message of the service as it arrived; `data` is base64 where `binary`."""

    session: str
    at_ns: int
    data: str
    binary: bool = False
    cut: bool = False


class Aside(msgspec.Struct, kw_only=True, tag="aside", tag_field="type"):
    """What a local program said on its standard error: the end of it, at most 64 KiB, as it was when it was let go."""

    session: str
    text: str


class CanaryRecord(msgspec.Struct, kw_only=True, tag="canary", tag_field="type"):
    """A session against the responder that answers at once: what is left of a response time is the tester's own.

    Spans in nanoseconds, signed, None where there was none: `connect_span_ns` from the dial to the open connection,
    `first_span_ns` from when the first chunk was due to the first output, `final_span_ns` from the source end to the
    last final. `lateness_max_ns` is that of its worst chunk.
    """

    id: str
    worker: str
    clip: str
    window: Literal["warmup", "measure", "drain"]
    begun_ns: int
    outcome: str
    side: str
    cause: str = ""
    connect_span_ns: int | None = None
    first_span_ns: int | None = None
    final_span_ns: int | None = None
    lateness_max_ns: int = 0
    tainted: bool = False


class Sentence(msgspec.Struct, kw_only=True):
    """One sentence of a long recording: where it lies in it, in seconds, and what is right for it."""

    offset: float
    duration: float
    transcript: str | None = None
    text: str | None = None
    gloss: list[str] | None = None


class ClipFacts(msgspec.Struct, kw_only=True):
    """What scoring and reports need to know of a clip that was used; spans in seconds of media.

    `words` are `w` with `start` and `end`, `gloss_spans` are `gloss` with these; `segments` are in order of time.
    """

    id: str
    direction: str
    duration_s: float
    source_lang: str
    target_lang: str
    transcript: str | None = None
    gloss: list[str] | None = None
    text: str | None = None
    alt_text: list[str] = []
    alt_gloss: list[list[str]] = []
    text_unit: str | None = None
    gloss_unit: str | None = None
    activity_start_s: float | None = None
    activity_end_s: float | None = None
    activity_estimated: bool = False
    words: list[dict[str, str | float]] = []
    gloss_spans: list[dict[str, str | float]] = []
    segments: list[Sentence] = []
    tags: list[str] = []
