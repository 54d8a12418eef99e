"""The plan file: what is run against what, how hard, how long, and what is asked of it. All problems at once."""

import difflib
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from loadbench.results.slo import Slo, Thresholds

SECRET_NAME = re.compile(r"auth|cookie|token|secret|passw|credential|signature|(^|[-_])(api)?key$", re.IGNORECASE)
RESPONSE_METRICS = (
    "first_output_from_media",
    "first_output_from_onset",
    "first_final_from_media",
    "final_from_source_end",
    "final_from_activity_end",
    "final_from_eos_msg",
    "final_from_planned_end",
    "done_from_source_end",
)
PERCENTILES = ("p50_s", "p90_s", "p95_s", "p99_s", "max_s")


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
    profile: str
    params: dict[str, str] = {}
    headers: dict[str, str] = {}
    secrets: dict[str, str] = {}
    identify: bool = Field(True, description="send x-loadbench-session, so that the service's log can be joined")
    tls: TlsSection = TlsSection()


class CorpusSection(Section):
    """What is streamed: a manifest, or a folder with one."""

    path: str
    order: Literal["sequential", "shuffle"] = "shuffle"
    limit: int | None = Field(None, gt=0)
    ids: list[str] = []


class WorkloadSection(Section):
    """When sessions start. `sessions` is a total; without it and `duration_s`, each clip is streamed once."""

    model: Literal["closed", "constant", "poisson"] = "closed"
    users: int = Field(1, gt=0, le=100_000)
    rate: float | None = Field(None, gt=0)
    sessions: int | None = Field(None, gt=0)
    duration_s: float | None = Field(None, gt=0)
    ramp_s: float = Field(0.0, ge=0)
    warmup_s: float = Field(0.0, ge=0)
    drain_s: float | None = Field(None, ge=0)
    think_s: float = Field(0.0, ge=0)
    failure_pause_s: float = Field(1.0, ge=0, description="a closed user waits so long after a session that failed")
    phase: Literal["spread", "random", "aligned"] = "spread"
    stop_when_broken: bool = Field(False, description="end the run as soon as an SLO cannot reasonably be met any more")

    @model_validator(mode="after")
    def _rate_where_open(self) -> "WorkloadSection":
        if self.model != "closed" and "users" in self.model_fields_set:
            raise ValueError(f'users goes with model = "closed"; model = "{self.model}" has a rate: choose one')
        if self.model == "closed" and self.rate is not None:
            raise ValueError('rate goes with model = "constant" or "poisson"; a closed workload has users')
        if self.model != "closed" and self.rate is None:
            raise ValueError(f'model = "{self.model}" needs a rate, in sessions a second')
        if self.model != "closed" and self.sessions is None and self.duration_s is None:
            raise ValueError("an open workload needs duration_s or sessions, or it would never end")
        return self


class MediaSection(Section):
    """How media time runs. The default of `start` is on_ready for closed workloads and on_plan for open ones."""

    start: Literal["on_ready", "on_plan"] | None = None
    late: Literal["burst", "drop_late"] | None = None
    cache: str | None = None


class LimitsSection(Section):
    """Every limit of a session, seconds; 0 switches one off (not connect_s and close_s)."""

    connect_s: float = Field(10.0, gt=0)
    ready_s: float = Field(30.0, ge=0)
    silence_s: float = Field(0.0, ge=0)
    final_s: float = Field(30.0, ge=0)
    session_s: float = Field(0.0, ge=0)
    close_s: float = Field(3.0, gt=0)
    message_mib: float = Field(64.0, gt=0)
    budget_media_min: float | None = Field(None, gt=0)


class MetricsSection(Section):
    """The Prometheus endpoint. Without a port: 9464, or the next free one. `host` beyond loopback must be asked for."""

    enabled: bool = True
    port: int | None = Field(None, ge=0, le=65535)
    host: str = "127.0.0.1"
    linger_s: float = Field(0.0, ge=0)


class SeedSection(Section):
    """Everything random comes from this."""

    value: int = 7


class VerdictSection(Section):
    """When the tester is no longer to be believed (design defaults)."""

    taint_gap_ms: float = Field(Thresholds().taint_gap_ms, gt=0)
    invalid_gap_ms: float = Field(Thresholds().invalid_gap_ms, gt=0)
    invalid_tainted_share: float = Field(Thresholds().invalid_tainted_share, ge=0, le=1)
    invalid_lateness_p99_ms: float = Field(Thresholds().invalid_lateness_p99_ms, gt=0)
    degraded_lateness_p99_ms: float = Field(Thresholds().degraded_lateness_p99_ms, gt=0)
    degraded_run_delay_share: float = Field(Thresholds().degraded_run_delay_share, ge=0, le=1)


class RecordSection(Section):
    """How much is kept beside the records: chunk times and raw messages of this many sessions."""

    chunks: int = Field(1000, ge=0)
    messages: int = Field(20, ge=0)


class Plan(Section):
    """A whole plan. Read by `read`; every default is written into the run's header."""

    title: str = ""
    target: Target
    corpus: CorpusSection
    workload: WorkloadSection = WorkloadSection()
    media: MediaSection = MediaSection()
    limits: LimitsSection = LimitsSection()
    slo: dict[str, dict[str, float | str]] = {}
    metrics: MetricsSection = MetricsSection()
    seed: SeedSection = SeedSection()
    verdict: VerdictSection = VerdictSection()
    record: RecordSection = RecordSection()

    @property
    def media_start(self) -> Literal["on_ready", "on_plan"]:
        """A user speaks when the service is ready; an open workload's media is overdue when the service is not."""
        return self.media.start or ("on_ready" if self.workload.model == "closed" else "on_plan")

    @property
    def headline_metric(self) -> str:
        """The response time that is printed large: of an open workload it counts from the planned end."""
        return "final_from_source_end" if self.workload.model == "closed" else "final_from_planned_end"

    @property
    def thresholds(self) -> Thresholds:
        """The verdict's thresholds."""
        return Thresholds(**self.verdict.model_dump())

    def objectives(self) -> list[Slo]:
        """The SLO, completion first; 99 % completed is asked unless the plan says otherwise."""
        wanted = {"completed": {"min_share": 0.99}} | self.slo
        return [
            Slo(metric=metric, stat=_stat(key), limit=float(limit), channel=_str(part, "channel"))
            for metric, part in wanted.items()
            for key, limit in part.items()
            if key != "channel"
        ]


def read(path: Path | None, overrides: Mapping[str, Any]) -> Plan:
    """A plan from a file, with `overrides` ("workload.users": 5) laid over it. Raises PlanError with all problems."""
    data: dict[str, Any] = {}
    if path is not None:
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            raise PlanError([f"{path}: {error.strerror or error}"]) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise PlanError([f"{path}: not a TOML file: {error}"]) from None
        _root(data, path.parent)
    problems = _lay_over(data, overrides)
    plan = None
    try:
        plan = Plan.model_validate(data)
    except ValidationError as error:
        problems += [_sentence(item) for item in error.errors()]
    problems += _objective_problems(data.get("slo", {}))
    target = data.get("target")
    if isinstance(target, dict) and isinstance(target.get("url"), str):
        problems += _address_problems(target["url"], str(target.get("profile")))
    if problems or plan is None:
        raise PlanError(problems + _absent_files(data))
    return plan


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
                values[name] = Path(rest).read_text("utf-8").strip()
            elif kind == "cmd":
                values[name] = _output(rest)
            else:
                problems.append(
                    f"target.secrets.{name} must be env:NAME, file:PATH or cmd:COMMAND, never the secret itself"
                )
        except KeyError:
            problems.append(f"target.secrets.{name}: the environment has no {rest}")
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
            problems.append(f"target.secrets.{name}: {kind}: failed: {type(error).__name__}")
    if problems:
        raise PlanError(problems)
    return values


def hidden(plan: Plan) -> set[str]:
    """What must never be shown although it stands in the plan: user information, secret headers, secret parameters."""
    url = urlsplit(plan.target.url)
    found = {url.password or "", unquote(url.password or "")}
    found |= {value for name, value in parse_qsl(url.query) if SECRET_NAME.search(name)}
    for name, value in [*plan.target.headers.items(), *plan.target.params.items()]:
        if SECRET_NAME.search(name):
            found |= {value, *value.split()}
    return {text for text in found if text and not re.fullmatch(r"(?i)bearer|basic|token|\{[\w.]+\}", text)}


def _output(command: str) -> str:
    done = subprocess.run(shlex.split(command), capture_output=True, timeout=30, check=True, text=True)  # noqa: S603
    return done.stdout.strip()


def _root(data: dict[str, Any], folder: Path) -> None:
    """Paths in a plan file are relative to the file; those on the command line to where it is typed."""
    for section, key in (("corpus", "path"), ("target", "profile"), ("media", "cache")):
        part = data.get(section)
        if not isinstance(part, dict):
            continue
        value = part.get(key)
        if isinstance(value, str) and (key != "profile" or "/" in value or value.endswith((".yaml", ".yml"))):
            part[key] = str(folder / Path(value).expanduser())


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


def _objective_problems(slo: Any) -> list[str]:
    if not isinstance(slo, dict):
        return ["slo must be a section: [slo], then for instance final_from_source_end = { p95_s = 2.0 }"]
    problems = []
    for metric, part in slo.items():
        allowed = _stats(metric)
        if not allowed:
            names = [*RESPONSE_METRICS, "completed", "wer"]
            near = difflib.get_close_matches(metric, names, 1)
            problems.append(
                f"slo.{metric}: no such metric; "
                + (f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}")
            )
            continue
        for key, value in part.items() if isinstance(part, dict) else []:
            if key not in allowed:
                problems.append(f"slo.{metric}.{key}: must be one of {', '.join(allowed)}")
            elif key != "channel" and not (isinstance(value, int | float) and value >= 0):
                problems.append(f"slo.{metric}.{key} must be a number of at least 0, not {value!r}")
            elif key == "min_share" and value > 1:
                problems.append(f"slo.{metric}.min_share is a share of 1, so 99 % is 0.99, not {value}")
    return problems


def _stats(metric: str) -> tuple[str, ...]:
    if metric in RESPONSE_METRICS:
        return (*PERCENTILES, "channel")
    return {"completed": ("min_share",), "wer": ("max", "channel")}.get(metric, ())


def _stat(key: str) -> str:
    return key.removesuffix("_s")


def _str(part: Mapping[str, Any], key: str) -> str | None:
    return str(part[key]) if key in part else None


def _absent_files(data: Mapping[str, Any]) -> list[str]:
    """What a later reader would find first; said now, since a plan with problems does not come that far."""
    part = data.get("corpus")
    path = part.get("path") if isinstance(part, dict) else None
    absent = isinstance(path, str) and not Path(path).exists()
    return [f"corpus.path: {path}: no such file or folder"] if absent else []


def _address_problems(text: str, profile: str) -> list[str]:
    if not text:
        return []
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        return [f"target.url: {error}"]
    if url.scheme not in {"ws", "wss", "http", "https"}:
        start = "ws://" if profile != "http-stream" else "http://"
        return [f"target.url must begin with ws://, wss://, http:// or https://, for instance {start}127.0.0.1:2700"]
    if not url.hostname:
        return ["target.url names no host, for instance ws://127.0.0.1:2700"]
    return ["target.url: port 0 cannot be dialled"] if port == 0 else []
