"""The profile language: how a service speaks, as data.

Every feature that a profile can name is in this schema; each field's text is what `profile` errors and the JSON Schema
show. Durations carry their unit in the key. `load` reads YAML 1.2 and reports all problems at once, with lines.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

JsonValue = Any
T = TypeVar("T", bound="Part")
Selector = Annotated[str, Field(description="a JMESPath expression on the decoded message")]
Template = Annotated[
    str,
    Field(
        description="text with {session.id}, {session.uuid}, {clip.*}, {param.*}, {secret.*}, {captured.*}, {signed.*}"
    ),
]


class Part(BaseModel):
    """Unknown keys are errors everywhere. A key that Python will not have as a name is an alias, also when written."""

    model_config = ConfigDict(extra="forbid", frozen=True, serialize_by_alias=True, allow_inf_nan=False)


def keys(part: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys of a part as they stand in a file, with what the schema says of each."""
    return {field.alias or name: field for name, field in part.model_fields.items()}


class Condition(Part):
    """When something applies: all of those that are given.

    `has`: these keys are there, with any value. `match`: a JMESPath condition. `like`: each of these selectors finds a
    text in which its regular expression is found; without ^ and $, anywhere in it.
    """

    has: str | list[str] | None = None
    match: Selector | None = None
    like: dict[str, str] = {}

    @property
    def always(self) -> bool:
        """Nothing is asked."""
        return self.has is None and self.match is None and not self.like


class When(Part):
    """Whether a step is taken: the value of `field` is this text (`equals`), or is not (`differs`).

    Values are compared as the texts that {captured.NAME} gives: a captured true is "true". A field without a value
    equals nothing.
    """

    field: str = Field(description="a field of templates, without its braces: captured.NAME, param.NAME, clip.NAME")
    equals: str | None = None
    differs: str | None = None


class PluginPart(Part):
    """A plug-in by the name of its entry point, and what is said to it."""

    kind: str = Field(min_length=1)
    options: dict[str, str] = {}

    @property
    def key(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """What tells it from all others."""
        return self.kind, tuple(sorted(self.options.items()))


class AuthPart(Part):
    """A plug-in that adds headers and query to each connection just before it is made."""

    kind: str = Field(min_length=1)
    options: dict[str, Template] = {}


class Ping(Part):
    """WebSocket pings of ours. Off unless asked; a missing pong is recorded, and closes nothing unless `close`.

    `close`: a ping without a pong within `timeout_s` ends the session as lost.
    """

    every_s: float | None = Field(None, ge=0.01)
    timeout_s: float | None = Field(None, gt=0)
    close: bool = False


class Poll(Part):
    """A request that asks for output, `every_ms` from the first media on; only one is under way at a time."""

    request: str
    every_ms: float = Field(ge=1)


class RequestsPart(Part):
    """Which request carries which message: a method and a path below the url, such as `PUT /input`.

    All go over one connection, in order, each when the one before has been answered; `open` carries what `begin` sends
    as well. An answer's body is a message; an answer without one is the message null.
    """

    open: str | None = None
    media: str
    end: str | None = None
    poll: Poll | None = None


class FormPart(Part):
    """A multipart upload: `fields`, then the media as a WAV file in the field `file`."""

    file: str = "file"
    filename: str = "clip.wav"
    fields: dict[str, Template] = {}


class TransportPart(Part):
    """How bytes travel. `url` is the default address; the plan's `target.url` goes before it.

    `kind` is websocket; http, one request whose body is the media and whose response is the output (with `form` the
    body is a multipart upload of the whole clip); requests, a request for each message; process, a local program; or
    the name of a plug-in, to which `options` are given. `stdin` is how a program reads: raw (bytes one after another),
    length (each message after its length in four bytes, big end first), or lines (each message a line).
    """

    kind: str = Field(min_length=1)
    url: Template | None = None
    headers: dict[str, Template] = {}
    query: list[tuple[str, Template]] = []
    subprotocols: list[Template] = []
    method: Literal["POST", "PUT"] = "POST"
    content_type: str | None = None
    compression: bool = False
    sessions_per_endpoint: int | None = Field(
        None, ge=1, description="how many sessions an address takes at a time; the others wait for one that is free"
    )
    max_message_bytes: int | None = Field(None, gt=0)
    ping: Ping = Ping()
    stdin: Literal["raw", "length", "lines"] = "raw"
    options: dict[str, Template] = {}
    codec: PluginPart | None = Field(
        None, description="a plug-in that frames each message of ours, and makes messages for the rules of theirs"
    )

    requests: RequestsPart | None = None
    form: FormPart | None = None

    @property
    def encoding(self) -> dict[str, str]:
        """What an encoder must know: `stdin` of a program, the options of a plug-in as they are written."""
        return {"stdin": self.stdin} if self.kind == "process" else self.options

    @property
    def carrier(self) -> str:
        """The name of the transport: an upload of known length goes another way than a stream."""
        return "upload" if self.form is not None else self.kind


class SendPart(Part):
    """One message: JSON, exact text (never re-serialised), or binary (given as text or as base64)."""

    send_json: JsonValue = None
    send_text: Template | None = None
    send_binary: Template | None = None
    send_base64: str | None = None


class WaitPart(Condition):
    """Until a message fits; `capture` keeps values of it as {captured.NAME}. No condition: any message.

    A value that is an empty text ends the session as one that is not there does, unless `may_be_empty` names it.
    """

    timeout_s: float | None = Field(None, gt=0)
    capture: dict[str, Selector] = {}
    may_be_empty: list[str] = []


class OpenStep(SendPart):
    """A step of a script before media: exactly one of send_json, send_text, send_binary, send_base64, wait, refuse.

    `refuse` ends the session as profile_error with this sentence. `when`: the step is taken only then.
    """

    wait: WaitPart | None = None
    refuse: Template | None = None
    when: When | None = None

    @model_validator(mode="after")
    def _one(self) -> "OpenStep":
        return _exactly_one(self)


class Quiet(Part):
    """Wait until nothing has come for `for_s`, but no longer than `max_s`."""

    for_s: float = Field(gt=0)
    max_s: float = Field(gt=0)


class DoneRule(Condition):
    """The event after which nothing more can come: any of `on`, or a message that fits.

    `message`: a rule with `event: done` fits it. `settled`: after the end mark something has been settled, and nothing
    is owed any more (rules with `event: pending` and `event: settled`). `quiet`: nothing has come for `quiet_s` since
    the end mark; when the output was done is then not known.
    """

    on: list[Literal["close", "end_of_response", "message", "first_final", "settled", "quiet"]] = ["close", "message"]
    quiet_s: float | None = Field(None, gt=0)
    timeout_s: float | None = Field(None, gt=0)
    closes: Literal["client", "target"] = "client"


class PollStep(Part):
    """Ask for the output where it is to be found, such as `GET /jobs/{captured.id}`: now, and again until it is done.

    `every_s` is from one request to the next; only one is under way at a time.
    """

    request: Template
    every_s: float = Field(ge=0.001)


class EndStep(SendPart):
    """A step of the end script: exactly one of the send kinds, silence_s, quiet, end_body, wait, poll, done, grace_s,
    refuse.

    `when`: the step is taken only then; it is decided as the end script begins.
    """

    silence_s: float | None = Field(None, gt=0, le=3600, description="silence is sent as media, in real time")
    quiet: Quiet | None = None
    end_body: Literal[True] | None = None
    wait: WaitPart | None = None
    poll: PollStep | None = None
    done: DoneRule | None = None
    grace_s: float | None = Field(None, gt=0)
    refuse: Template | None = None
    when: When | None = None

    @model_validator(mode="after")
    def _one(self) -> "EndStep":
        return _exactly_one(self)


class Ack(Condition):
    """How the service acknowledges chunks, which tells its backlog. `one_per_chunk`: any message is one.

    `echo` finds the {media.ms} of a chunk in its acknowledgement, and so the round trip of a chunk.
    """

    one_per_chunk: bool = False
    echo: Selector | None = None


class Medium(Part):
    """One medium: how it is encoded and cut, and how a chunk is wrapped.

    `kind: audio`: chunks are `chunk_ms` long, or `chunk_bytes` of payload. With a `container` they are slices of one
    file, as a recorder makes them: webm and ogg hold Opus at 64 kbit/s, and `chunk_ms` is a multiple of 10; wav holds
    samples of `format`, behind a head of open length.

    `kind: frames`: a picture a chunk, as jpeg, as bare rgb24 or i420, or as an access unit of h264 (Annex B).
    `kind: video`: slices of one `container`, cut at every `slice_ms`; what stands at its head goes with the first
    slice, or apart as a message of its own. fmp4 is H.264 in fragmented MP4, webm is VP8 in WebM, file is the clip's
    own file. Pictures keep their shape within `width` and `height` (`fit: contain`), or are exactly so large with black
    borders (`fit: pad`). h264, fmp4 and webm are encoded at `bitrate_kbps` (1000 unless said), the first two as well at
    a quality, `crf`.

    `kind: landmarks` sends what a detector found in each picture, as JSON: {media.landmarks} is a frame without its
    time, {media.landmarks.NAME} a member of it, null where the frame has none. With `batch` a message holds so many
    frames, each of these fields is a list, and {media.ms} that of the last frame, with which the message is due.

    With `pace: whole` the clip is a single chunk, due at its end. `frame: binary` sends the bare payload, `frame: text`
    the `message` as JSON text with {media.base64}, or {media.floats} for a list of samples between -1 and 1, and
    {media.ms}, {media.index}, {media.count}.
    """

    kind: Literal["audio", "frames", "video", "landmarks"]
    batch: int | None = Field(None, gt=0)
    format: Literal["s16le", "f32le", "alaw", "mulaw"] = "s16le"
    rate_hz: int = Field(16_000, ge=4_000, le=192_000)
    chunk_ms: float | None = Field(None, gt=0)
    chunk_bytes: int | None = Field(None, gt=0)
    pace: Literal["live", "whole"] = "live"
    codec: Literal["jpeg", "rgb24", "i420", "h264"] = "jpeg"
    quality: int = Field(85, ge=1, le=100)
    container: Literal["fmp4", "webm", "ogg", "wav", "file"] | None = None
    slice_ms: float | None = Field(None, gt=0)
    header: Literal["first", "apart"] = "first"
    width: int | None = Field(None, gt=0)
    height: int | None = Field(None, gt=0)
    fit: Literal["contain", "pad"] = "contain"
    fps: float | Literal["clip"] = "clip"
    bitrate_kbps: int | None = Field(None, ge=1, le=1_000_000)
    crf: int | None = Field(None, ge=1, le=51, description="constant quality of H.264: the lower, the better")
    keyframe_s: float = Field(2.0, gt=0, description="from a picture that stands for itself to the next at most")
    bframes: int = Field(0, ge=0, le=8, description="pictures in a row that are sent after one that is shown later")
    frame: Literal["binary", "text"] = "binary"
    message: JsonValue = None
    base64_prefix: str = ""
    encoder: PluginPart | None = Field(
        None, description="a plug-in that encodes and cuts in place of format, rate, chunk, codec and the like"
    )


class AlsoPart(Medium):
    """A second medium of the same clip, beside the first and at its own times.

    None of it leaves before the first chunk of the first medium, and none after the last, which stay the first and the
    last message of the utterance. {media.index} and {media.count} count its own chunks.
    """


class MediaPart(Medium):
    """What media is sent. `first` and `last` replace `message` for the first and the last chunk of an utterance."""

    late: Literal["burst", "drop_late"] = "burst"
    first: JsonValue = None
    last: JsonValue = None
    ack: Ack | None = None
    also: AlsoPart | None = Field(None, description="a second medium of the same clip, such as pictures beside speech")


class TextRule(Part):
    """How a message changes the text of a channel. See `session/text.py` for the models.

    `text`, `key`, `final`, `start`, `end`, `confidence` are selectors on the item (`final` may be true or false);
    `unit` is that of `start` and `end`. Which fields a model takes: unkeyed text, final; keyed also key, order,
    seals_lower, reworded; delta text, final, replace, key, order; snapshot committed, tail, text; tokens text and
    either items, final or committed, tail; edit text, delete, unit_of_delete, or key, from_key, to_key, order; labels
    text, final, confidence, min_confidence, accept_after, collapse. Every model takes start, end, unit, join, and
    ignore, the texts that count as none. `model: plugin` is one of your own, named by `plugin`, and takes them all.
    """

    model: Literal["unkeyed", "keyed", "delta", "snapshot", "tokens", "edit", "labels", "plugin"]
    plugin: PluginPart | None = None
    text: Selector | None = None
    final: bool | Selector = False
    key: Selector | None = None
    order: Literal["first_seen", "number", "text"] = "first_seen"
    seals_lower: bool = False
    reworded: Selector | None = Field(
        None, description="true of a message that only writes a final text better: the text is taken, the time stays"
    )
    replace: Selector | None = None
    committed: Selector | None = None
    tail: Selector | None = None
    items: Selector | None = None
    delete: Selector | None = None
    unit_of_delete: Literal["words", "characters", "text"] = "text"
    from_key: Selector | None = None
    to_key: Selector | None = None
    confidence: Selector | None = None
    min_confidence: float | None = None
    accept_after: int = Field(1, ge=1)
    collapse: bool = True
    ignore: list[str] = []
    start: Selector | None = None
    end: Selector | None = None
    unit: Literal["s", "ms", "10ms", "hms", "iso"] = "s"
    join: str | None = None


class MediaFormat(Part):
    """How output media is coded: samples (s16le, f32le, mulaw, alaw), JPEG images, or slices of a container.

    Samples need `rate_hz`, and `channels` where there are several, interleaved. `fps` is the rate at which JPEG images
    are meant to be shown; without it they are shown as they come. A container (webm, fragmented mp4, ogg, wav) is known
    by its first bytes.
    """

    format: Literal["s16le", "f32le", "mulaw", "alaw", "jpeg", "container"]
    rate_hz: int | None = Field(None, ge=4_000, le=192_000)
    channels: int = Field(1, ge=1, le=8)
    fps: float | None = Field(None, gt=0, le=1000)


class BinaryOutput(MediaFormat):
    """Binary messages are pieces of this media channel, and no rule sees them."""

    channel: str


class MediaRule(MediaFormat):
    """The media that a message bears: `base64` or `hex` is a selector on the item, and gives the coded text."""

    base64: Selector | None = None
    hex: Selector | None = None


class Rule(Condition):
    """What a message means. `each` applies it to every element of a list; `where` keeps those that fit.

    `event`: ready and ack are counted apart and are no output; done ends the utterance; ignore drops the message.
    pending says that something is owed, by the value of `key`, and settled that it is not any more (`done: settled`).
    `outcome`: rejected (capacity or authorisation), auth_expired, pace_refused and fatal end the session;
    recoverable and warning are counted.
    """

    each: Selector | None = None
    where: Selector | None = None
    channel: Template | None = None
    text: TextRule | None = None
    media: MediaRule | None = None
    event: Literal["ready", "ack", "done", "pending", "settled", "speech_start", "speech_end", "ignore"] | None = None
    key: Selector | None = None
    outcome: Literal["rejected", "auth_expired", "pace_refused", "fatal", "recoverable", "warning"] | None = None
    detail: Selector | None = None


class StatusRule(Part):
    """What a refusal means: by HTTP status, or by close code.

    `before_output`: a close means this only while no text has come; some services refuse by a plain close.
    """

    status: list[int] = []
    close_code: list[int] = []
    reason: str | None = Field(None, description="a regular expression on the close reason or the body")
    before_output: bool = False
    outcome: Literal["rejected", "auth_expired", "pace_refused", "fatal"]


class MediaClock(Part):
    """Where the service says it is in the media: how far it has heard, and how far its text is final. Recorded.

    `lag` is how far it says that it is behind what it has been sent.
    """

    processed: Selector | None = None
    final: Selector | None = None
    lag: Selector | None = None
    unit: Literal["s", "ms", "10ms", "hms"] = "s"


class Receive(Part):
    """How messages are cut and decoded, and the rules; `fire`: the first rule that fits, or all of them.

    `framing` cuts an HTTP body or a program's output: message (what comes whole: WebSocket, requests), lines (one
    message a line), sse (events; a response that calls itself application/json is one message), auto (lines or sse, as
    the response calls itself), body (the whole response is one message). `decode`: json, text, nested (JSON inside the
    string field `nested`), array (each element is a message). A text equal to one of `sentinels` is not decoded: it is
    matched as {"sentinel": TEXT}.
    """

    framing: Literal["message", "lines", "sse", "auto", "body"] = "message"
    decode: Literal["json", "text", "nested", "array"] = "json"
    nested: Selector | None = None
    sentinels: list[str] = []
    fire: Literal["first", "all"] = "first"
    binary: BinaryOutput | None = None
    rules: list[Rule] = Field(min_length=1)
    statuses: list[StatusRule] = []
    clock: MediaClock | None = None


class ChannelPart(Part):
    """A named output stream. `stage` says what it is; `unit` how its text is counted and joined in scoring.

    A media channel has a `medium`; one of sound begins to be heard above `audible_dbfs` (decibels below full scale).
    """

    stage: Literal["recognition", "translation", "media"] = "recognition"
    medium: Literal["audio", "video"] | None = None
    audible_dbfs: float = Field(-50.0, ge=-120, lt=0)
    unit: Literal["auto", "word", "char", "gloss"] = "auto"
    join: str | None = None


class NeverFinal(Part):
    """What becomes of a text that the service never marks final."""

    rule: Literal["explicit", "promote_on_done", "promote_on_quiet"] = "explicit"
    quiet_s: float | None = Field(None, gt=0)


class ClosePart(Part):
    """Closes that are no failure once the utterance is done, and codes that count as done."""

    expect: list[int] = [1000, 1001, 1005]
    grace_s: float = Field(0.0, ge=0)


class KeepAlive(SendPart):
    """An application message that keeps the service from hanging up."""

    every_s: float = Field(ge=0.01)
    when: Literal["idle", "always"] = "idle"


class Pace(Part):
    """What the service says it takes; a plan outside is refused before it starts."""

    realtime_factor_min: float | None = None
    realtime_factor_max: float | None = None
    chunk_ms_min: float | None = None
    chunk_ms_max: float | None = None
    gap_s_max: float | None = None
    session_s_max: float | None = None


class Signed(Part):
    """A value worked out for each session just before it connects: exactly one of the functions below.

    `hmac` of `message` under `key`, as base64 or hex; `md5` in hex; `base64`; `quote`, percent-encoded up to the
    unreserved characters of RFC 3986; `text`; `sorted_query`, its names in their order and `name=value` joined by &
    (`quote: false` leaves the values as they are); `unix_after_s`, the unix time in so many seconds.
    """

    hmac: Literal["sha1", "sha256", "sha512"] | None = None
    key: Template | None = None
    message: Template | None = None
    as_: Literal["base64", "hex"] = Field("base64", alias="as", description="how an hmac is written")
    md5: Template | None = None
    base64: Template | None = None
    quote: bool | Template | None = None
    text: Template | None = None
    sorted_query: dict[str, Template] | None = None
    unix_after_s: int | None = Field(
        None, ge=0, description="seconds from now: the moment when it is over, as unix time"
    )


class PreludeStep(Part):
    """An HTTP request before the connection. In order, for each session, never cached, never retried.

    `request` is method and address: "POST https://host/path". It has one body or none: `json`, or a `form`.
    `expect`: the statuses that go on, any 2xx when left out. What another means is said by `receive.statuses`; else
    401, 402, 403, 429 and 503 are rejected, and the rest target_error. `capture` keeps values of the JSON answer as
    {captured.NAME}; none may be an empty text, unless `may_be_empty` names it. Redirects are not followed.
    """

    request: Template
    headers: dict[str, Template] = {}
    json_: JsonValue = Field(None, alias="json", description="the body, as JSON")
    form: dict[str, Template] | None = Field(None, description="the body, as an HTML form")
    expect: list[int] = []
    capture: dict[str, Selector] = {}
    may_be_empty: list[str] = []
    timeout_s: float = Field(10.0, gt=0)


class Simulated(Part):
    """What a simulator says where it cannot be derived from the rules: templates of whole messages."""

    ready: JsonValue = None
    idle: JsonValue = Field(None, description="the answer to a poll when there is nothing to say")
    partial: JsonValue = None
    final: JsonValue = None
    done: JsonValue = None
    reject: JsonValue = None


class Profile(Part):
    """How one service speaks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    name: str
    about: str = ""
    checked: str = Field("", description="how this profile was checked: against what, or from documents only")
    params: dict[str, str] = Field({}, description="settings that a plan may change, with their defaults")
    signed: dict[str, Signed] = Field({}, description="values worked out in this order, for {signed.NAME}")
    prelude: list[PreludeStep] = Field([], description="HTTP requests before the connection")
    auth: AuthPart | None = None
    transport: TransportPart
    channels: dict[str, ChannelPart] = {"transcript": ChannelPart()}
    primary: str | None = Field(None, description="the headline channel; else translation, else recognition")
    open: list[OpenStep] = Field([], description="what is said and awaited once, before the service is ready")
    begin: list[OpenStep] = Field([], description="what is said and awaited before the media of each utterance")
    media: MediaPart
    end: list[EndStep] = []
    receive: Receive
    never_final: NeverFinal = NeverFinal()
    close: ClosePart = ClosePart()
    keepalive: KeepAlive | None = None
    pace: Pace = Pace()
    simulate: Simulated = Simulated()

    @property
    def media_channels(self) -> dict[str, Literal["audio", "video"]]:
        """The medium of each media channel, by name."""
        return {name: part.medium for name, part in self.channels.items() if part.medium is not None}

    @property
    def headline(self) -> str:
        """The channel whose response times are the headline."""
        if self.primary:
            return self.primary
        stages = {part.stage: name for name, part in reversed(self.channels.items())}
        return stages.get("translation") or stages.get("recognition") or next(iter(self.channels))


def _exactly_one(step: T) -> T:
    given = sorted(step.model_fields_set - {"when"})
    if len(given) != 1:
        allowed = ", ".join(sorted(type(step).model_fields.keys() - {"when"}))
        raise ValueError(f"a step is exactly one of {allowed}; this one has {given or 'none'}")
    return step
