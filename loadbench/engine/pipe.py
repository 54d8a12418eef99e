"""The messages between a door and an engine, and nothing else passes between them.

In: `Start`, `Begin`, `Stop`. Out: `Ready`, one `Tick` a second, `Started`, `SessionRecord`, `ChunkTimes`, `Message`,
`Aside`, `MediaPiece`, `CanaryRecord`, `Finished`. On a socket each message is msgpack behind a four-byte big-endian
length. Either side sees the other's death as the end of the stream.
"""

from typing import Any, Literal

import msgspec

from loadbench.results.media import MediaPiece
from loadbench.results.record import Aside, CanaryRecord, ChunkTimes, Message, SessionRecord, Started
from loadbench.results.slo import Thresholds
from loadbench.results.tick import Tick


class ClipEntry(msgspec.Struct, kw_only=True):
    """A clip ready for the wire: `wire` is the folder of a `ChunkPlan`; `fields` fill `{clip.*}` in templates.

    `joined`: the plan holds shared parts, and each session puts its own parts around them.
    """

    id: str
    wire: str
    joined: bool
    onset_ns: int | None = None
    activity_end_ns: int | None = None
    fields: dict[str, str] = {}


class Stage(msgspec.Struct, kw_only=True, frozen=True):
    """A stretch of a workload: `level` (users at once, or sessions a second) is reached evenly within `ramp_s` of its
    beginning, and then holds for the rest of `seconds`. Without `seconds` it has no end of its own.
    """

    name: str = "main"
    level: float = 1.0
    seconds: float | None = None
    ramp_s: float = 0.0


class Workload(msgspec.Struct, kw_only=True):
    """When sessions start. Spans in seconds. `sessions` is the total over the run; stages follow each other.

    `closed`: the level is users, each with one session at a time. `dialogue`: two parties take turns, a session a turn,
    and the level is dialogues. `constant` and `poisson`: sessions arrive, and the level is their rate. `external`: none
    but those that `Begin` asks for. `failure_pause_s`: a closed user whose session failed waits at least so long, since
    a service that refuses at once would else be stormed.
    """

    model: Literal["closed", "dialogue", "constant", "poisson", "external"]
    stages: list[Stage] = msgspec.field(default_factory=lambda: [Stage()])
    sessions: int | None = None
    warmup_s: float = 0.0
    drain_s: float | None = None
    think_s: float = 0.0
    failure_pause_s: float = 1.0
    phase: Literal["spread", "random", "aligned"] = "spread"
    utterances: int = 1


class Canary(msgspec.Struct, kw_only=True):
    """`users` sessions at a time against a responder of ours at `url`, beside the run and in none of its totals.

    `params` stand for the plan's; its headers and secrets are not sent there.
    """

    url: str
    users: int
    params: dict[str, str] = {}


class Start(msgspec.Struct, kw_only=True, tag="start", tag_field="type"):
    """All that an engine needs. Holds secrets in the clear: it goes over a pipe and is never written down.

    `hidden` is what must not be shown either: passwords and keys in address, headers, parameters, `env` (of a program).
    `prelude_at` is where the requests of a prelude go instead of to the hosts that the profile names. The output media
    of the first `sample_media` sessions is handed on, `media_bytes` of each at most. `urls` are the endpoints where
    there are several, `url` among them; each takes `per_endpoint` sessions at a time (None: any number).
    """

    run_id: str
    worker: str
    seed: int
    profile: dict[str, Any]
    url: str
    urls: list[str] = []
    per_endpoint: int | None = None
    headers: list[tuple[str, str]] = []
    env: dict[str, str] = {}
    params: dict[str, str] = {}
    secrets: dict[str, str] = {}
    hidden: list[str] = []
    identify: bool = True
    prelude_at: str | None = None
    tls: dict[str, Any] = {}
    proxy: str = ""
    clips: list[ClipEntry]
    order: Literal["sequential", "shuffle"] = "shuffle"
    workload: Workload
    media_start: Literal["on_ready", "on_plan"] = "on_ready"
    late: Literal["burst", "drop_late"] = "burst"
    mask: Literal["shared", "fresh"] = "shared"
    limits: dict[str, float | None] = {}
    thresholds: Thresholds = msgspec.field(default_factory=Thresholds)
    begin_ns: int | None = None
    budget_media_s: float | None = None
    sample_chunks: int = 1000
    sample_messages: int = 20
    sample_media: int = 0
    media_bytes: int = 16 * 1024 * 1024
    realtime: bool = False
    canary: Canary | None = None


class Begin(msgspec.Struct, kw_only=True, tag="begin", tag_field="type"):
    """Start one session at `planned_ns`, for a workload that lives elsewhere."""

    session: str
    planned_ns: int


class Stop(msgspec.Struct, kw_only=True, tag="stop", tag_field="type"):
    """Start nothing more; what still runs after `drain_s` is cut as `outcome`."""

    drain_s: float
    outcome: Literal["interrupted", "time_up"] = "interrupted"


class Ready(msgspec.Struct, kw_only=True, tag="ready", tag_field="type"):
    """The engine has mapped its media and will begin at `begin_ns`."""

    begin_ns: int
    pid: int
    facts: dict[str, Any] = {}


class Finished(msgspec.Struct, kw_only=True, tag="finished", tag_field="type"):
    """Every session has ended and its record has been sent."""

    ended_ns: int
    started: int
    reason: str
    error: str = ""


Inbound = Start | Begin | Stop
Outbound = Ready | Started | SessionRecord | ChunkTimes | Message | Aside | MediaPiece | CanaryRecord | Tick | Finished
