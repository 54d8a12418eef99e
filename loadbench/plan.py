"""The plan file: what is run against what, how hard, how long, and what is asked of it. All problems at once."""

import contextlib
import difflib
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from loadbench.corpus.sample import rate as read_rate
from loadbench.results.slo import SCORES, Slo, Thresholds

SECRET_NAME = re.compile(
    r"auth|cookie|token|secret|passw|credential|signature|(^|[-_]|api|app|access|private)key$|(^|[-_])(sig|sign|signa|jwt|pwd)$",
    re.IGNORECASE,
)
RESPONSE_METRICS = (
    "first_output_from_media",
    "first_output_from_onset",
    "first_final_from_media",
    "final_from_source_end",
    "final_from_activity_end",
    "final_from_eos_msg",
    "final_from_planned_end",
    "done_from_source_end",
    "first_byte_from_media",
    "first_frame_from_media",
    "first_frame_from_onset",
    "first_sound_from_media",
    "first_sound_from_onset",
    "playback_end_from_source_end",
    "playback_end_from_planned_end",
)
OTHER_METRICS = {
    "completed": ("min_share",),
    **{metric: (*stats, "channel") for metric, stats in SCORES.items()},
    "erasure": ("max", "channel"),
}
STAGES = "stages"  # no metric's name
PERCENTILES = ("p50_s", "p90_s", "p95_s", "p99_s", "max_s")


# Beyond these nobody means what stands there: four months, a hundred thousand sessions a second.
LONGEST_S = 1e7
FASTEST = 1e5
MOST = 10**12
MOST_STAGES = 1000
LONGEST_PLAN = 16 * 1024 * 1024
LONGEST_SECRET = 64 * 1024
DEEPEST = 20  # levels of a plan's settings within each other
PROGRAM = "exec:"  # an address that is a command
RUNS_COMMANDS = "runs a command of this machine, so it must come from the command line (--url), or with --allow-exec"
_CONTROL = re.compile("[\x00-\x1f\x7f]")

Fps = Annotated[str, BeforeValidator(lambda value: str(read_rate(value)))]
PEOPLE = ("closed", "dialogue")  # models whose level is users


class Stretch(NamedTuple):
    """A stage laid out: reach `level` (users, or sessions a second) within `ramp_s`, and hold it up to `seconds`."""

    name: str
    level: float
    seconds: float | None
    ramp_s: float


class PlanError(ValueError):
    """The user's trouble: every problem of a plan, each a sentence."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class Section(BaseModel):
    """Unknown settings are errors, with a suggestion."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TlsSection(Section):
    """Trust. Verification is on unless `verify = false`, which the report shows."""

    verify: bool = True
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class Target(Section):
    """The service under test and the profile that says how it speaks."""

    url: str = ""
    urls: list[str] = Field(
        [], description="several endpoints in place of `url`; sessions go to them in turn", max_length=MOST_STAGES
    )
    per_endpoint: int | None = Field(
        None, gt=0, le=100_000, description="how many sessions each takes at a time; else as the profile says"
    )
    profile: str
    params: dict[str, str] = {}
    headers: dict[str, str] = {}
    env: dict[str, str] = Field(
        {}, description='what a local program finds in its environment, for instance TOKEN = "{secret.token}"'
    )
    secrets: dict[str, str] = {}
    mask: Literal["shared", "fresh"] = Field(
        "shared", description="WebSocket masks: one for each prepared message, or drawn anew for each that is sent"
    )
    identify: bool = Field(True, description="send x-loadbench-session, so that the service's log can be joined")
    tls: TlsSection = TlsSection()
    proxy: str = Field("", description="the HTTP proxy to go through; never taken from the environment")

    @property
    def endpoints(self) -> list[str]:
        """The addresses that are given: none, one, or several."""
        return self.urls or [self.url] * bool(self.url)


class CorpusSection(Section):
    """What is streamed: a corpus of a known layout. `limit` takes its first clips; `order` is that of those chosen.

    The languages, `fps` and `split` are for corpora whose files do not say them.
    """

    path: str
    order: Literal["sequential", "shuffle"] = "shuffle"
    layout: str | None = Field(None, description="instead of the one that is recognised: `loadbench corpus list`")
    split: str | None = None
    limit: int | None = Field(None, gt=0, le=MOST)
    ids: list[str] = []
    max_duration_s: float | None = Field(None, gt=0, le=LONGEST_S)
    source_lang: str | None = None
    target_lang: str | None = None
    fps: Fps | None = Field(None, description='of folders of frames, as in 25 or "30000/1001"')
    estimate_activity: bool = Field(
        False, description="listen where the corpus does not say when speech begins and ends; marked as estimated"
    )


class StageSection(Section):
    """A stretch of a staged workload: reach the level within `ramp_s`, hold it for the rest of `duration_s`."""

    name: str = Field(pattern=r"^[\w.-]+$", max_length=100)
    users: int | None = Field(None, ge=0, le=100_000)
    rate: float | None = Field(None, ge=0, le=FASTEST)
    duration_s: float = Field(gt=0, le=LONGEST_S)
    ramp_s: float = Field(0.0, ge=0, le=LONGEST_S)


class WorkloadSection(Section):
    """When sessions start. `sessions` is a total; without it and `duration_s`, each clip is streamed once.

    Models: `closed` and `dialogue` have users; `constant` and `poisson` a rate of arrival; `steps`, `spike` and `soak`
    are stages of either, and so is `[[workload.stages]]` under any of the first four. `arrivals` says how a rate comes.
    """

    model: Literal["closed", "constant", "poisson", "dialogue", "steps", "spike", "soak"] = "closed"
    users: int = Field(1, gt=0, le=100_000)
    rate: float | None = Field(None, gt=0, le=FASTEST)
    sessions: int | None = Field(None, gt=0, le=MOST)
    duration_s: float | None = Field(None, gt=0, le=LONGEST_S)
    ramp_s: float = Field(0.0, ge=0, le=LONGEST_S, description="over which each change of level takes place")
    warmup_s: float = Field(0.0, ge=0, le=LONGEST_S)
    drain_s: float | None = Field(None, ge=0, le=LONGEST_S)
    think_s: float = Field(0.0, ge=0, le=LONGEST_S)
    failure_pause_s: float = Field(
        1.0, ge=0, le=LONGEST_S, description="a closed user waits so long after a session that failed"
    )
    phase: Literal["spread", "random", "aligned"] = "spread"
    arrivals: Literal["constant", "poisson"] = "constant"
    of: Literal["users", "rate"] = Field("users", description="what the levels of steps are")
    levels: list[Annotated[float, Field(le=FASTEST)]] = Field(
        [], max_length=MOST_STAGES, description="steps: the level of each"
    )
    step_s: float | None = Field(None, gt=0, le=LONGEST_S, description="steps: the length of each")
    peak: float | None = Field(None, gt=0, le=FASTEST, description="spike: its level")
    before_s: float | None = Field(None, gt=0, le=LONGEST_S)
    spike_s: float | None = Field(None, gt=0, le=LONGEST_S)
    after_s: float | None = Field(None, gt=0, le=LONGEST_S)
    windows: int = Field(6, ge=2, le=MOST_STAGES, description="soak: equal stages, whose figures show what time does")
    stop_when_broken: bool = Field(False, description="end the run as soon as an SLO cannot reasonably be met any more")
    stages: list[StageSection] = Field([], max_length=MOST_STAGES)

    @property
    def open(self) -> bool:
        """Whether sessions arrive at a rate, rather than users with one session at a time."""
        if self.model in PEOPLE:
            return False
        return self.model in ("constant", "poisson") or (self.of if self.model == "steps" else self._given) == "rate"

    @property
    def kind(self) -> Literal["closed", "constant", "poisson", "dialogue"]:
        """What lies under the stages."""
        if self.model in ("closed", "constant", "poisson", "dialogue"):
            return self.model
        return self.arrivals if self.open else "closed"

    @property
    def laid_out(self) -> list[Stretch]:
        """The stages in their order."""
        level = (self.rate or 0.0) if self.open else float(self.users)
        if self.stages:
            return [Stretch(part.name, _level(part), part.duration_s, part.ramp_s) for part in self.stages]
        if self.model == "steps":
            return [Stretch(f"step-{at}", to, self.step_s, self.ramp_s) for at, to in enumerate(self.levels, 1)]
        if self.model == "spike":
            spans = {"before": self.before_s, "spike": self.spike_s, "after": self.after_s}
            return [
                Stretch(name, self.peak or 0.0 if name == "spike" else level, span_s, self.ramp_s)
                for name, span_s in spans.items()
            ]
        if self.model == "soak" and self.duration_s is not None:
            span_s = self.duration_s / self.windows
            ramps_s = [self.ramp_s] + [0.0] * (self.windows - 1)
            return [Stretch(f"soak-{at}", level, span_s, ramp_s) for at, ramp_s in enumerate(ramps_s, 1)]
        return [Stretch("main", level, self.duration_s, self.ramp_s)]

    @property
    def top(self) -> float:
        """The highest level of all."""
        return max(part.level for part in self.laid_out)

    @property
    def length_s(self) -> float | None:
        """From the end of the warm-up to where nothing more starts; None where only the number of sessions ends it."""
        spans = [part.seconds for part in self.laid_out]
        return None if None in spans else sum(span for span in spans if span is not None)

    @property
    def _given(self) -> Literal["users", "rate"]:
        return "users" if self.rate is None else "rate"

    @model_validator(mode="after")
    def _fits(self) -> "WorkloadSection":
        problems = [*_level_problems(self), *_shape_problems(self)]
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _level(part: StageSection) -> float:
    return float((part.rate if part.users is None else part.users) or 0)


def _level_problems(work: WorkloadSection) -> Iterator[str]:
    """Users or a rate, never both, and the one that the model has."""
    model, users_given = work.model, "users" in work.model_fields_set
    staged = bool(work.stages) or model == "steps"
    if users_given and work.rate is not None and model not in ("closed", "constant", "poisson"):
        yield "users and rate are two kinds of load: choose one"
    if model in ("constant", "poisson") and users_given:
        yield f'users goes with model = "closed"; model = "{model}" has a rate: choose one'
    if model in PEOPLE and work.rate is not None:
        yield f'rate goes with model = "constant" or "poisson"; a {model} workload has users'
    if model in ("constant", "poisson") and work.rate is None and not staged:
        yield f'model = "{model}" needs a rate, in sessions a second'
    if work.open and work.sessions is None and work.length_s is None:
        yield "an open workload needs duration_s or sessions, or it would never end"
    if model == "steps" and ("users" in work.model_fields_set or work.rate is not None):
        yield 'steps have levels, of = "users" or of = "rate", and neither users nor a rate beside them'
    if not work.open and any(level != round(level) for level in [*work.levels, work.peak or 0.0]):
        yield "a level of users must be whole"


def _shape_problems(work: WorkloadSection) -> Iterator[str]:
    """What each model needs, what only one of them takes, and stages that fit it."""
    needs = {
        "steps": ("levels", "step_s"),
        "spike": ("peak", "before_s", "spike_s", "after_s"),
        "soak": ("duration_s",),
    }
    for model, keys in needs.items():
        for key in keys:
            if work.model == model and not getattr(work, key):
                yield f'model = "{model}" needs {key}'
            elif work.model != model and key != "duration_s" and getattr(work, key):
                yield f'{key} goes with model = "{model}"'
    if work.stages and work.model not in ("closed", "constant", "poisson", "dialogue"):
        yield f'stages go with model = "closed", "dialogue", "constant" or "poisson"; "{work.model}" makes its own'
    if (work.stages or work.model in ("steps", "spike")) and work.duration_s is not None:
        yield "duration_s: the stages have their own"
    names = [part.name for part in work.stages]
    yield from (f"stages: two are called {name}" for name in dict.fromkeys(names) if names.count(name) > 1)
    want, other = ("rate", "users") if work.open else ("users", "rate")
    for part in work.stages:
        if getattr(part, want) is None or getattr(part, other) is not None:
            yield f'stages: {part.name} needs {want}, and no {other}, under model = "{work.model}"'
    if any(level < 0 for level in work.levels) or (work.laid_out and work.top <= 0):
        yield "the load never rises above 0"


class MediaSection(Section):
    """How media time runs. The default of `start` is on_ready for closed workloads and on_plan for open ones."""

    start: Literal["on_ready", "on_plan"] | None = None
    late: Literal["burst", "drop_late"] | None = None
    cache: str | None = None
    lead_in_s: float = Field(0.0, ge=0, le=3600, description="silence before each clip's sound, as part of its media")
    tail_s: float = Field(0.0, ge=0, le=3600, description="silence after each clip's sound, as part of its media")


class LimitsSection(Section):
    """Every limit of a session, seconds; 0 switches one off (not connect_s and close_s)."""

    connect_s: float = Field(10.0, gt=0, le=LONGEST_S)
    ready_s: float = Field(30.0, ge=0, le=LONGEST_S)
    silence_s: float = Field(0.0, ge=0, le=LONGEST_S)
    final_s: float = Field(30.0, ge=0, le=LONGEST_S)
    session_s: float = Field(0.0, ge=0, le=LONGEST_S)
    close_s: float = Field(3.0, gt=0, le=LONGEST_S)
    message_mib: float = Field(64.0, gt=0, le=1024)
    budget_media_min: float | None = Field(None, gt=0, le=LONGEST_S / 60)


class MetricsSection(Section):
    """The Prometheus endpoint. Without a port: 9464, or the next free one. `host` beyond loopback must be asked for."""

    enabled: bool = True
    port: int | None = Field(None, ge=0, le=65535)
    host: str = "127.0.0.1"
    linger_s: float = Field(0.0, ge=0, le=LONGEST_S)


class EngineSection(Section):
    """How the engine's process runs."""

    realtime: bool = Field(False, description="ask the system to run it before all ordinary processes (SCHED_FIFO)")


class SeedSection(Section):
    """Everything random comes from this."""

    value: int = Field(7, ge=-(2**60), le=2**60)


class VerdictSection(Section):
    """When the tester is no longer to be believed (design defaults)."""

    taint_gap_ms: float = Field(Thresholds().taint_gap_ms, gt=0, le=LONGEST_S * 1000)
    invalid_gap_ms: float = Field(Thresholds().invalid_gap_ms, gt=0, le=LONGEST_S * 1000)
    invalid_tainted_share: float = Field(Thresholds().invalid_tainted_share, ge=0, le=1)
    invalid_lateness_p99_ms: float = Field(Thresholds().invalid_lateness_p99_ms, gt=0, le=LONGEST_S * 1000)
    degraded_lateness_p99_ms: float = Field(Thresholds().degraded_lateness_p99_ms, gt=0, le=LONGEST_S * 1000)
    degraded_run_delay_share: float = Field(Thresholds().degraded_run_delay_share, ge=0, le=1)


class RecordSection(Section):
    """How much is kept beside the records: chunk times, raw messages and output media of this many sessions."""

    chunks: int = Field(1000, ge=0, le=MOST)
    messages: int = Field(20, ge=0, le=MOST)
    media: int = Field(5, ge=0, le=1000, description="the first so many sessions; containers are opened of these alone")
    media_mib: float = Field(16.0, gt=0, le=1024, description="at most so much of each of them")


def _as_text(value: Any) -> Any:
    """1.2 may be written as a number."""
    return f"{value:g}" if _is_number(value) else value


class ScoringSection(Section):
    """How output is scored. `transcribe`, a command as exec:CMD, makes text of kept speech when `score` is run."""

    transcribe: str | None = Field(None, pattern="^exec:.*[^ ]")
    rouge_beta: Annotated[Literal["1", "1.2", "p_over_r"], BeforeValidator(_as_text)] = Field(
        "1", description="of the ROUGE-L that is shown: 1, 1.2 or p_over_r"
    )
    tables: str | None = Field(
        None, description="score tables from one's own copy of the standard, or the made-up ones: illustrative"
    )


class ReadingsSection(Section):
    """What is read each second of the machine and of the process under test, beside the run."""

    enabled: bool = True
    pid: int | None = Field(
        None, gt=0, description="the process under test, its children included; of a program that we start: found by us"
    )


class ViewingSection(Section):
    """The viewer whom texts are judged for. Speeds and gaps have no default: without one the figure has no limit."""

    layout: Literal["cfr-4x3", "cfr-16x9"] = Field("cfr-16x9", description="rows of 32 or of 42 characters, 4 at once")
    characters: int | None = Field(None, gt=0, le=10_000, description="a row, instead of the layout's")
    rows: int | None = Field(None, gt=0, le=1000, description="at once, instead of the layout's")
    characters_per_s: float | None = Field(None, gt=0, le=10_000, description="the reader's speed")
    words_per_s: float | None = Field(None, gt=0, le=10_000, description="the reader's speed; with both, both hold")
    gap_s: float | None = Field(None, gt=0, le=LONGEST_S, description="without a change, from where on it is too long")


class CanarySection(Section):
    """Sessions at a time against a responder of ours, for what of a response time may be the tester's; 0: none."""

    users: int = Field(1, ge=0, le=10)


class Plan(Section):
    """A whole plan. Read by `read`; every default is written into the run's header."""

    title: str = ""
    target: Target
    corpus: CorpusSection
    workload: WorkloadSection = WorkloadSection()
    media: MediaSection = MediaSection()
    limits: LimitsSection = LimitsSection()
    slo: dict[str, Any] = Field({}, description="by metric; of one stage alone: [slo.stages.NAME]")
    metrics: MetricsSection = MetricsSection()
    engine: EngineSection = EngineSection()
    seed: SeedSection = SeedSection()
    verdict: VerdictSection = VerdictSection()
    record: RecordSection = RecordSection()
    scoring: ScoringSection = ScoringSection()
    canary: CanarySection = CanarySection()
    readings: ReadingsSection = ReadingsSection()
    viewing: ViewingSection = ViewingSection()

    @property
    def media_start(self) -> Literal["on_ready", "on_plan"]:
        """A user speaks when the service is ready; an open workload's media is overdue when the service is not."""
        return self.media.start or ("on_plan" if self.workload.open else "on_ready")

    @property
    def headline_metric(self) -> str:
        """The response time that is printed large: of an open workload it counts from the planned end."""
        return "final_from_planned_end" if self.workload.open else "final_from_source_end"

    @property
    def thresholds(self) -> Thresholds:
        """The verdict's thresholds."""
        return Thresholds(**self.verdict.model_dump())

    def objectives(self) -> list[Slo]:
        """The SLO, completion first; 99 % completed is asked unless the plan says otherwise. Then those of stages."""
        wanted: dict[str | None, dict[str, dict[str, Any]]] = {None: {"completed": {"min_share": 0.99}}}
        wanted[None] |= {metric: part for metric, part in self.slo.items() if metric != STAGES}
        wanted.update(self.slo.get(STAGES, {}))
        return [
            Slo(metric=metric, stat=_stat(key), limit=float(limit), channel=_str(part, "channel"), stage=stage)
            for stage, metrics in wanted.items()
            for metric, part in metrics.items()
            for key, limit in part.items()
            if key != "channel"
        ]


def read(path: Path | None, overrides: Mapping[str, Any], *, allow_exec: bool = False) -> Plan:
    """A plan from a file, with `overrides` ("workload.users": 5) laid over it. Raises PlanError with all problems.

    Only overrides, which somebody has typed here, may be commands; those of a file need `allow_exec`.
    """
    data: dict[str, Any] = {}
    if path is not None:
        try:
            with path.open("rb") as file:  # it may be a device that never ends
                data = from_toml(file.read(LONGEST_PLAN).decode())
        except OSError as error:
            raise PlanError([f"{path}: {error.strerror or error}"]) from None
        except ValueError as error:
            raise PlanError([f"{path}: not a TOML file: {error}"]) from None
    odd = list(_odd_values(data)) if path else []
    if path and not odd:
        _root(data, path.parent)
    problems = _lay_over(data, overrides)
    odd = list(_odd_values(data))
    if odd:
        raise PlanError(problems + odd)
    plan = None
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        problems += [_sentence(item) for item in error.errors()]
    problems += _all_objective_problems(data.get("slo", {}), plan)
    target = data.get("target")
    if isinstance(target, dict) and isinstance(target.get("url"), str):
        problems += _address_problems(target["url"], str(target.get("profile")))
        if target["url"].startswith(PROGRAM) and "target.url" not in overrides and not allow_exec:
            problems.append(f"target.url: {PROGRAM} {RUNS_COMMANDS}")
    if isinstance(target, dict) and isinstance(target.get("urls"), list):
        problems += _pool_problems(target, allow_exec=allow_exec or "target.urls" in overrides)
    if isinstance(target, dict) and isinstance(target.get("proxy"), str):
        problems += _proxy_problems(target["proxy"])
    if problems or plan is None:
        raise PlanError(problems + _absent_files(data))
    return plan


def from_toml(text: str) -> dict[str, Any]:
    """What a text of TOML holds. Raises ValueError, also for what is nested too deeply for its reader."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise ValueError("a number of too many digits") from None  # Python's own words are about Python


def _odd_values(data: dict[str, Any]) -> Iterator[str]:
    """What no setting can be: text with a null in it, bytes that are no text, sections without end."""
    layer: list[tuple[str, Any]] = [("", data)]
    for _ in range(DEEPEST):
        found = [(f"{place}.{key}".lstrip("."), item) for place, whole in layer for key, item in _items(whole)]
        for place, value in found:
            if "\0" in place or (isinstance(value, str) and "\0" in value):
                yield f"{repr(place)[1:-1]}: there is a null character in it"
            elif isinstance(value, str) and not _is_text(value):
                yield f"{repr(place)[1:-1]}: there are bytes in it that are not UTF-8"
        layer = [(place, value) for place, value in found if isinstance(value, dict | list)]
        if not layer:
            return
    yield f"{repr(layer[0][0])[1:41]}: nested too deeply for a plan"


def _command_problems(text: str) -> list[str]:
    """A secret in a command line could be read by everybody on the machine."""
    if "{secret." in text:
        return ["target.url: a command line can be read by everybody here: give the secret by target.env instead"]
    return []


def _items(whole: Any) -> Iterable[tuple[Any, Any]]:
    return whole.items() if isinstance(whole, dict) else enumerate(whole)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def secrets(plan: Plan, allow_exec: bool) -> dict[str, str]:
    """The values behind `target.secrets`: env:NAME, file:PATH, or cmd:COMMAND (only where commands are allowed)."""
    values, problems = {}, []
    for name, where in plan.target.secrets.items():
        kind, _, rest = where.partition(":")
        try:
            if kind == "cmd" and not allow_exec:
                problems.append(f"target.secrets.{name}: cmd: runs a command; allow it with --allow-exec")
            elif kind == "env":
                values[name] = os.environ[rest]
            elif kind == "file":
                values[name] = _start_of(rest)
            elif kind == "cmd":
                values[name] = _output(rest)
            else:
                problems.append(
                    f"target.secrets.{name} must be env:NAME, file:PATH or cmd:COMMAND, never the secret itself"
                )
        except KeyError:
            problems.append(f"target.secrets.{name}: the environment has no {rest}")
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            problems.append(f"target.secrets.{name}: {kind}: failed: {type(error).__name__}")
    for name, value in values.items():
        if not _is_text(value):
            problems.append(f"target.secrets.{name}: there are bytes in it that are not UTF-8")
        elif len(value) > LONGEST_SECRET:
            problems.append(f"target.secrets.{name}: more than {LONGEST_SECRET} characters are no secret")
    if problems:
        raise PlanError(problems)
    return values


def hidden(plan: Plan) -> set[str]:
    """What must never be shown although the plan has it: user information, secret headers, parameters, variables."""
    found = _user_information(plan.target.proxy)
    for address in plan.target.endpoints:
        if address.startswith(PROGRAM):
            continue
        url = urlsplit(address)
        found |= {url.password or "", unquote(url.password or "")}
        found |= {value for name, value in parse_qsl(url.query) if SECRET_NAME.search(name)}
    for name, value in [*plan.target.headers.items(), *plan.target.params.items(), *plan.target.env.items()]:
        if SECRET_NAME.search(name):
            found |= {value, *value.split()}
    return {text for text in found if text and not re.fullmatch(r"(?i)bearer|basic|token|\{[\w.]+\}", text)}


def _user_information(url: str) -> set[str]:
    """Password, and user with password as they go over the wire; a user without a password is itself the secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return set()  # a problem of the plan, told elsewhere
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not password:
        return {parts.username or "", user}
    return {parts.password or "", password, f"{user}:{password}", f"{parts.username or ''}:{parts.password or ''}"}


@contextlib.contextmanager
def noting(problems: list[str]) -> Iterator[None]:
    """Gather the problems that a reader reports, so that the user sees those of all readers at once."""
    try:
        yield
    except ValueError as error:
        problems += problems_of(error)


def problems_of(error: ValueError) -> list[str]:
    """Those that a reader reported; any other error is raised again."""
    found = getattr(error, "problems", None)
    if found is None:
        raise error
    return list(found)


def _start_of(path: str) -> str:
    """As much of a file as a secret may have, and a bit: it may be a pipe, or a device that never ends."""
    with Path(path).open("rb") as file:
        return file.read(4 * LONGEST_SECRET + 1).decode().strip()


def _output(command: str) -> str:
    done = subprocess.run(shlex.split(command), capture_output=True, timeout=30, check=True, text=True)  # noqa: S603
    return done.stdout.strip()


def _root(data: dict[str, Any], folder: Path) -> None:
    """Paths in a plan file are relative to the file; those on the command line to where it is typed."""
    target = data.get("target")
    tls = target.get("tls") if isinstance(target, dict) else None
    files = [
        (data.get(section), key) for section, key in (("corpus", "path"), ("target", "profile"), ("media", "cache"))
    ]
    if _part(data, "scoring").get("tables") != "illustrative":
        files.append((data.get("scoring"), "tables"))
    for part, key in [*files, *((tls, key) for key in ("ca_file", "cert_file", "key_file"))]:
        if not isinstance(part, dict):
            continue
        value = part.get(key)
        if isinstance(value, str) and (key != "profile" or "/" in value or value.endswith((".yaml", ".yml"))):
            part[key] = str(folder / expanded(value))


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def expanded(path: str) -> Path:
    """The path with `~` filled in, where there is such a user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path's own raises for a user whom nobody knows


def _lay_over(data: dict[str, Any], overrides: Mapping[str, Any]) -> list[str]:
    problems = []
    for dotted, value in overrides.items():
        *parents, last = dotted.split(".")
        place = data
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                problems.append(f"{dotted}: {parent} is not a section")
                break
        else:
            place[last] = value
    return problems


def _sentence(item: Any) -> str:
    path = ".".join(str(part) for part in item["loc"])
    kind = item["type"]
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(item["loc"][-1]), _siblings(item["loc"]), 1)
        parent = "".join(f"{part}." for part in item["loc"][:-1])
        hint = (
            f"; did you mean {parent}{near[0]}?" if near else f"; there are {', '.join(sorted(_siblings(item['loc'])))}"
        )
        return f"{path}: no such setting{hint}"
    if kind == "model_type":
        return f"{path} must be a section: [{path}], not {item['input']!r}"
    if kind == "missing":
        return f"{path} is missing" + (
            " (--corpus)" if path.startswith("corpus") else " (--profile)" if path == "target" else ""
        )
    if kind == "value_error":
        return f"{path}: {item['ctx']['error']}"
    bound = {
        "greater_than": ("above", "gt"),
        "greater_than_equal": ("at least", "ge"),
        "less_than_equal": ("at most", "le"),
    }
    if kind in bound:
        word, key = bound[kind]
        return f"{path} must be {word} {item['ctx'][key]:g}, not {item['input']}"
    return f"{path}: {item['msg'].lower()}, not {item['input']!r}"


def _siblings(loc: tuple[Any, ...]) -> list[str]:
    model: Any = Plan
    for part in loc[:-1]:
        field = model.model_fields.get(part) if hasattr(model, "model_fields") else None
        model = field.annotation if field else None
    return list(model.model_fields) if hasattr(model, "model_fields") else []


def _all_objective_problems(slo: Any, plan: "Plan | None") -> list[str]:
    """Of the whole run and of single stages; `plan` knows their names, where it could be read."""
    stages = slo.get(STAGES, {}) if isinstance(slo, dict) else {}
    if not isinstance(stages, dict):
        return ["slo.stages must hold sections: [slo.stages.NAME], then for instance completed = { min_share = 0.9 }"]
    problems = _objective_problems({k: v for k, v in slo.items() if k != STAGES} if isinstance(slo, dict) else slo)
    known = [part.name for part in plan.workload.laid_out] if plan else list(stages)
    for name, part in stages.items():
        if name not in known:
            problems.append(f"slo.stages.{name}: the workload has no such stage; there are {', '.join(known)}")
        problems += [f"slo.stages.{name}: {problem}" for problem in _objective_problems(part)]
    return problems


def _objective_problems(slo: Any) -> list[str]:
    if not isinstance(slo, dict):
        return ["slo must be a section: [slo], then for instance final_from_source_end = { p95_s = 2.0 }"]
    problems = []
    for metric, part in slo.items():
        allowed = _stats(metric)
        if not isinstance(part, dict):
            problems.append(f"slo.{metric} must be a table, for instance {{ p95_s = 2.0 }}, not {part!r}")
            continue
        if not allowed:
            names = [*RESPONSE_METRICS, *OTHER_METRICS]
            near = difflib.get_close_matches(metric, names, 1)
            problems.append(
                f"slo.{metric}: no such metric; "
                + (f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}")
            )
            continue
        for key, value in part.items() if isinstance(part, dict) else []:
            if key not in allowed:
                problems.append(f"slo.{metric}.{key}: must be one of {', '.join(allowed)}")
            elif key == "channel" and not isinstance(value, str):
                problems.append(f"slo.{metric}.channel must be a channel's name, not {value!r}")
            elif key != "channel" and not (_is_number(value) and 0 <= value <= LONGEST_S):
                problems.append(f"slo.{metric}.{key} must be a number from 0 to {LONGEST_S:g}, not {value!r}")
            elif key == "min_share" and value > 1:
                problems.append(f"slo.{metric}.min_share is a share of 1, so 99 % is 0.99, not {value}")
    return problems


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stats(metric: str) -> tuple[str, ...]:
    if metric in RESPONSE_METRICS:
        return (*PERCENTILES, "channel")
    return OTHER_METRICS.get(metric, ())


def _stat(key: str) -> str:
    return key.removesuffix("_s")


def _str(part: Mapping[str, Any], key: str) -> str | None:
    return str(part[key]) if key in part else None


def _absent_files(data: Mapping[str, Any]) -> list[str]:
    """What a later reader would find first; said now, since a plan with problems does not come that far."""
    part = data.get("corpus")
    path = part.get("path") if isinstance(part, dict) else None
    absent = isinstance(path, str) and not os.path.exists(path)  # noqa: PTH110 - it never raises, however long a name
    return [f"corpus.path: {path}: no such file or folder"] if absent else []


def _proxy_problems(text: str) -> list[str]:
    """Its user information is a secret, so that the address is not shown."""
    if not text or re.match(r"http://(\S*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/:@?#]+)(:\d{1,5})?/?$", text):
        return []
    return ["target.proxy must be http://HOST:PORT, with USER:PASSWORD@ before the host where it asks who you are"]


def _pool_problems(target: Mapping[str, Any], *, allow_exec: bool) -> list[str]:
    """Several endpoints, each an address, and none twice."""
    urls = [url for url in target["urls"] if isinstance(url, str)]
    problems = [
        problem.replace("target.url", f"target.urls[{at}]", 1)
        for at, url in enumerate(urls)
        for problem in ([] if url else ["target.url is empty"]) + _address_problems(url, str(target.get("profile")))
    ]
    if urls and target.get("url"):
        problems.append("target.urls: there is target.url beside it: give one or the other")
    problems += [f"target.urls[{at}]: is there twice" for at, url in enumerate(urls) if url in urls[:at]]
    if any(url.startswith(PROGRAM) for url in urls) and not allow_exec:
        problems.append(f"target.urls: {PROGRAM} {RUNS_COMMANDS}")
    return problems


def _address_problems(text: str, profile: str) -> list[str]:
    if not text:
        return []
    if _CONTROL.search(text):  # urlsplit would drop a line break without a word
        return ["target.url: there is a control character in it"]
    if text.startswith(PROGRAM):
        return _command_problems(text)
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        return [f"target.url: {error}"]
    if url.scheme not in {"ws", "wss", "http", "https"}:
        if "://" in text and url.scheme:
            return []  # a plug-in may speak it, which only the profile knows
        start = "ws://" if profile != "http-stream" else "http://"
        return [
            f"target.url must begin with ws://, wss://, http://, https:// or {PROGRAM}, for instance"
            f" {start}127.0.0.1:2700"
        ]
    if not url.hostname:
        return ["target.url names no host, for instance ws://127.0.0.1:2700"]
    return ["target.url: port 0 cannot be dialled"] if port == 0 else []
