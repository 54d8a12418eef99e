"""A run that can start: the plan checked, the media encoded, the wire messages built, before anyone is contacted.

All of the user's trouble is found here, and said at once.
"""

import resource
import secrets as randomness
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

import loadbench
from loadbench import plan as plans
from loadbench import plugins
from loadbench.analysis.response import applicable
from loadbench.corpus import read
from loadbench.corpus.clip import Clip
from loadbench.corpus.layout import Asked
from loadbench.engine import pipe
from loadbench.engine import prepare as wiring
from loadbench.engine.address import Addresses, MissingFieldError
from loadbench.media import activity
from loadbench.media import prepare as media
from loadbench.media.form import with_silence
from loadbench.media.length import length_s
from loadbench.media.plan import ChunkPlan
from loadbench.plan import Plan, PlanError
from loadbench.readings import machine, target
from loadbench.results.masks import Masks
from loadbench.results.record import ClipFacts, Sentence
from loadbench.results.run import Anchor, RunHeader
from loadbench.results.slo import Slo
from loadbench.scoring import tables_file
from loadbench.scoring.tables_file import Tables
from loadbench.session import load
from loadbench.session.plugin import PluginError, Plugins
from loadbench.session.plugin import named as named_plugins
from loadbench.session.profile import Profile
from loadbench.session.template import is_number
from loadbench.transports import load as load_transport
from loadbench.transports import load_asker
from loadbench.transports.contract import AddressError, Transport

NOTES: Final = 100  # remarks on media that the header keeps
STARTS_PER_S: Final = 400  # connections that one engine opens without falling behind its plan
SPARE_FILES: Final = 128  # handles beside the sessions' own: libraries, the bundle, the endpoint


@dataclass
class Prepared:
    """A run that can start: everything is checked and encoded. `close` removes the wire files."""

    plan: Plan
    profile: Profile
    start: pipe.Start
    header: RunHeader
    masks: Masks
    facts: dict[str, ClipFacts]
    media_ns: dict[str, int]
    media_bytes: dict[str, int]
    wires: Path
    tables: Tables | None = None

    def close(self) -> None:
        """Forget the wire files; the encoded media stays in the cache."""
        shutil.rmtree(self.wires, ignore_errors=True)


def prepare(
    plan: Plan, *, allow_exec: bool = False, progress: Callable[[media.Progress], None] | None = None
) -> Prepared:
    """Check everything, encode the media once, build the wire messages. Raises PlanError with every problem."""
    problems: list[str] = []
    with plans.noting(problems):
        profile = load.load_profile(plan.target.profile)
    with plans.noting(problems):
        clips = _clips(plan.corpus)
    with plans.noting(problems):
        values = plans.secrets(plan, allow_exec)
    sheet = None
    with plans.noting(problems):
        sheet = tables_file.load(plan.scoring.tables, plans.RESPONSE_METRICS) if plan.scoring.tables else None
    problems += [*_resource_problems(plan), *_watch_problems(plan)]
    if problems:
        raise PlanError(problems)
    with plans.noting(problems):
        transport = load_transport(profile.transport.carrier)
    with plans.noting(problems):
        found = plugins.load(profile)
    with plans.noting(problems):
        encoders = plugins.encoders(profile)
    problems += [*_fit_problems(plan, profile, clips, values), *_program_problems(plan, profile, allow_exec)]
    if problems:
        raise PlanError(problems)
    form, also = load.media_form(profile.media, encoders), load.also_form(profile, encoders)
    form = with_silence(form, plan.media.lead_in_s, plan.media.tail_s)
    tail_s = sum(step.silence_s or 0.0 for step in profile.end)
    notes: dict[str, None] = {}

    def note(state: media.Progress) -> None:
        notes.update(dict.fromkeys(f"{state.clip}: {text}" for text in state.notes))
        if progress is not None:
            progress(state)

    try:
        made = load.form_encoders(profile, encoders)
        folders = media.prepare(clips, form, _cache(plan), note, tail_s, also, made)
    except ValueError as error:
        raise PlanError(plans.problems_of(error)) from None
    clips = [clip.later(plan.media.lead_in_s) for clip in clips]
    wires = Path(tempfile.mkdtemp(prefix="loadbench-wire-"))
    try:
        prepared = _prepared(plan, profile, transport, found, clips, values, folders, wires)
    except PluginError as error:
        shutil.rmtree(wires, ignore_errors=True)
        raise PlanError(error.problems) from None
    except BaseException:
        shutil.rmtree(wires, ignore_errors=True)
        raise
    prepared.header.corpus["notes"] = list(notes)[:NOTES]
    prepared.tables = sheet
    return prepared


def public_params(start: pipe.Start) -> dict[str, str]:
    """The parameters as a responder of ours may see them: without those that look like secrets by their names."""
    return {name: "canary" if plans.SECRET_NAME.search(name) else text for name, text in start.params.items()}


def dry_run(prepared: Prepared) -> dict[str, Any]:
    """What `perform` would do: sessions, media minutes, bytes, memory, and whom it would contact. Contacts nobody."""
    work, count = prepared.start.workload, len(prepared.media_ns)
    mean_s = sum(prepared.media_ns.values()) / count / 1e9
    sessions = work.sessions or _sessions_in(prepared.plan.workload, mean_s)
    mean_bytes = sum(prepared.media_bytes.values()) / count
    return {
        "contacts": Masks(plans.hidden(prepared.plan)).mask(_contacts(prepared), cut=False),
        "proxy": prepared.header.effective["proxy"],
        "profile": prepared.profile.name,
        "clips": count,
        "sessions": sessions,
        "media_minutes": round(sessions * mean_s / 60, 2),
        "bytes_to_send": round(sessions * mean_bytes),
        "wire_bytes_mapped": sum(prepared.media_bytes.values()),
        "file_handles": None if prepared.plan.workload.open else round(prepared.plan.workload.top) + SPARE_FILES,
    }


def _contacts(prepared: Prepared) -> str:
    """Whom a session asks, and then where it connects, with the settings filled in."""
    endpoints = ", ".join(prepared.start.urls or [prepared.start.url])
    told = ", then ".join([*(step.request for step in prepared.profile.prelude), endpoints])
    for name, value in prepared.start.params.items():
        told = told.replace(f"{{param.{name}}}", value)
    return told


def _prepared(
    plan: Plan,
    profile: Profile,
    transport: Transport,
    found: Plugins,
    clips: list[Clip],
    values: dict[str, str],
    folders: dict[str, Path],
    wires: Path,
) -> Prepared:
    fresh = plan.target.mask == "fresh"
    wired = wiring.wire_plans(
        profile, folders, transport, wires, randomness.token_bytes, fresh=fresh, framing=found.framing
    )
    plain = {clip.id: ChunkPlan.load(folders[clip.id]) for clip in clips}
    entries = [
        pipe.ClipEntry(
            id=clip.id,
            wire=str(wired[clip.id][0]),
            joined=wired[clip.id][1],
            onset_ns=_ns(clip.activity_start_s),
            activity_end_ns=_ns(clip.activity_end_s),
            fields=_fields(clip),
        )
        for clip in clips
    ]
    masks = Masks({*values.values(), *plans.hidden(plan)})
    start = _start(plan, profile, entries, values)
    _check_address(start, profile, transport, found)
    return Prepared(
        plan=plan,
        profile=profile,
        start=start,
        header=_header(plan, profile, start, clips, plain, masks),
        masks=masks,
        facts={clip.id: _facts(clip, plain[clip.id].duration_ns) for clip in clips},
        media_ns={name: chunks.duration_ns for name, chunks in plain.items()},
        media_bytes={name: chunks.size for name, chunks in plain.items()},
        wires=wires,
    )


def _check_address(start: pipe.Start, profile: Profile, transport: Transport, found: Plugins) -> None:
    """An address that no session could dial is the user's trouble, and found before there is a session."""
    try:
        asker = load_asker() if profile.prelude else None
        for url in start.urls or [start.url]:
            addresses = Addresses(start, profile, auth=found.auth, url=url)
            addresses.check(addresses.fields("s1", start.clips[0].fields), transport, asker)
    except (MissingFieldError, AddressError) as error:
        raise PlanError(getattr(error, "problems", [f"target: {error}"])) from None


def _start(plan: Plan, profile: Profile, entries: list[pipe.ClipEntry], values: dict[str, str]) -> pipe.Start:
    work = plan.workload
    sessions = work.sessions
    if sessions is None and work.length_s is None:
        sessions = max(len(entries), round(work.top))
    limits = {
        name: value or None
        for name, value in plan.limits.model_dump(exclude={"message_mib", "budget_media_min"}).items()
    }
    budget = plan.limits.budget_media_min
    return pipe.Start(
        run_id=uuid.uuid4().hex[:12],
        worker="w1",
        seed=plan.seed.value,
        profile=profile.model_dump(mode="json", exclude_unset=True),
        url=_endpoints(plan, profile)[0],
        urls=plan.target.urls,
        per_endpoint=_per_endpoint(plan, profile),
        headers=list(plan.target.headers.items()),
        env=plan.target.env,
        params=profile.params | plan.target.params,
        secrets=values,
        hidden=sorted(plans.hidden(plan)),
        identify=plan.target.identify,
        tls=plan.target.tls.model_dump(),
        proxy=plan.target.proxy,
        clips=entries,
        order=plan.corpus.order,
        workload=pipe.Workload(
            model=work.kind,
            stages=_stages(work),
            sessions=sessions,
            warmup_s=work.warmup_s,
            drain_s=work.drain_s,
            think_s=work.think_s,
            failure_pause_s=work.failure_pause_s,
            phase=work.phase,
        ),
        media_start=plan.media_start,
        late=plan.media.late or profile.media.late,
        mask=plan.target.mask,
        realtime=plan.engine.realtime,
        limits=limits | {"message_bytes": plan.limits.message_mib * 1024 * 1024},
        thresholds=plan.thresholds,
        budget_media_s=budget * 60 if budget else None,
        sample_chunks=plan.record.chunks,
        sample_messages=plan.record.messages,
        sample_media=plan.record.media if profile.media_channels else 0,
        media_bytes=round(plan.record.media_mib * 1024 * 1024),
    )


def _stages(work: plans.WorkloadSection) -> list[pipe.Stage]:
    """With the ramps asked for, or the shortest that one engine can keep: a crowd that all comes at once comes late."""
    stages, before = [], 0.0
    for part in work.laid_out:
        least_s = 0.0 if work.open else max(0.0, part.level - before) / STARTS_PER_S
        stages.append(
            pipe.Stage(name=part.name, level=part.level, seconds=part.seconds, ramp_s=max(part.ramp_s, least_s))
        )
        before = part.level
    return stages


def _header(
    plan: Plan, profile: Profile, start: pipe.Start, clips: list[Clip], plain: Mapping[str, ChunkPlan], masks: Masks
) -> RunHeader:
    masked: dict[str, Any] = _masked(plan.model_dump(mode="json"), masks)
    return RunHeader(
        run_id=start.run_id,
        title=plan.title,
        anchor=Anchor(monotonic_ns=time.monotonic_ns(), wall_ns=time.time_ns()),
        plan=masked,
        effective={
            "limits_s": {name: value for name, value in start.limits.items() if name != "message_bytes"},
            "message_bytes": start.limits["message_bytes"],
            "media_start": start.media_start,
            "late": start.late,
            "sessions": start.workload.sessions,
            "workload": start.workload.model,
            "stages": {stage.name: _told(stage) for stage in start.workload.stages},
            "failure_pause_s": start.workload.failure_pause_s,
            "compression": profile.transport.compression,
            "ping": profile.transport.ping.model_dump(),
            "mask": start.mask if profile.transport.kind == "websocket" else None,
            "endpoints": max(1, len(start.urls)),
            "per_endpoint": start.per_endpoint,
            "proxy": _named_only(plan.target.proxy),
            "retries": 0,
            "tls_verify": plan.target.tls.verify,
        },
        profile={
            "name": profile.name,
            "about": profile.about,
            "checked": profile.checked,
            "transport": profile.transport.kind,
            "plugins": named_plugins(profile),
            "never_final": profile.never_final.rule,
            "done": [step.done.model_dump(mode="json", exclude_none=True) for step in profile.end if step.done],
        },
        headline_channel=profile.headline,
        channel_stages={name: part.stage for name, part in profile.channels.items()},
        channel_media=dict(profile.media_channels),
        headline_metric=_headline_metric(plan, profile),
        slo=plan.objectives(),
        thresholds=plan.thresholds,
        seed=plan.seed.value,
        versions={"loadbench": loadbench.__version__} | machine.versions(),
        machine=machine.facts(),
        corpus={
            "path": masks.mask(plan.corpus.path, cut=False),
            "layout": read.found(Path(plan.corpus.path), plan.corpus.layout).layout.name,
            "clips": len(clips),
            "media_s": round(sum(chunks.duration_ns for chunks in plain.values()) / 1e9, 3),
            "activity_estimated": sum(clip.activity_estimated for clip in clips),
        },
    )


def _headline_metric(plan: Plan, profile: Profile) -> str:
    """Output that is heard or seen is complete when it has been played."""
    metric = plan.headline_metric
    return metric.replace("final_from", "playback_end_from") if profile.headline in profile.media_channels else metric


def _named_only(url: str) -> str:
    """Where a proxy is, without who asks it; "off" where there is none."""
    if not url:
        return "off"
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _told(stage: pipe.Stage) -> dict[str, float | None]:
    return {"level": stage.level, "seconds": stage.seconds, "ramp_s": stage.ramp_s}


def _fit_problems(plan: Plan, profile: Profile, clips: list[Clip], values: Mapping[str, str]) -> list[str]:
    """What the plan asks of a profile that cannot have it."""
    problems = [problem for url in _endpoints(plan, profile) for problem in _address_problems(url, profile)]
    problems += _pool_problems(plan, profile)
    if plan.target.mask == "fresh" and profile.transport.kind != "websocket":
        problems.append(f"target.mask: only WebSocket has masks, and profile {profile.name} does not speak it")
    silence_s = plan.media.lead_in_s + plan.media.tail_s
    if silence_s and profile.media.kind != "audio":
        problems.append(f"media: only sound has lead_in_s and tail_s, and profile {profile.name} sends pictures")
    if plan.media.late == "drop_late":
        problems += _drop_problems(profile)
    problems += _setting_problems(plan, profile, values)
    problems += [problem for slo in plan.objectives() for problem in _objective_problems(slo, profile)]
    longest = profile.pace.session_s_max
    for clip in clips:
        length = clip.tracks[0].duration_s
        if longest is not None and length is not None and (whole_s := float(length) + silence_s) > longest:
            problems.append(f"clip {clip.id} is {whole_s:g} s long; profile {profile.name} takes at most {longest:g} s")
    return problems


def _endpoints(plan: Plan, profile: Profile) -> list[str]:
    return plan.target.endpoints or [profile.transport.url or ""]


def _per_endpoint(plan: Plan, profile: Profile) -> int | None:
    return plan.target.per_endpoint or profile.transport.sessions_per_endpoint


def _pool_problems(plan: Plan, profile: Profile) -> list[str]:
    """More users than the endpoints take, who would wait for each other for ever; and more than the profile allows."""
    most, ours = profile.transport.sessions_per_endpoint, plan.target.per_endpoint
    problems = []
    if most is not None and ours is not None and ours > most:
        problems.append(f"target.per_endpoint = {ours}: profile {profile.name} allows {most}")
    per, count, users = _per_endpoint(plan, profile), len(_endpoints(plan, profile)), round(plan.workload.top)
    if per is not None and not plan.workload.open and users > count * per:
        room = f"{count} endpoint{'s take' if count > 1 else ' takes'} {count * per} at a time, {per} each"
        problems.append(f"workload.users = {users}: {room}; give more in target.urls (--url for each)")
    return problems


def _drop_problems(profile: Profile) -> list[str]:
    """Why what is late cannot be left out: only a picture that stands for itself can."""
    media = profile.media
    if media.kind not in ("frames", "landmarks"):
        return [f"media.late: only frames may be dropped, and profile {profile.name} sends {media.kind}"]
    if media.kind == "frames" and media.codec == "h264":
        return [f"media.late: profile {profile.name} sends h264, whose pictures build on those before them"]
    return []


def _setting_problems(plan: Plan, profile: Profile, values: Mapping[str, str]) -> list[str]:
    """Parameters that a profile has not, secrets that it lacks, and what it sends as a number."""
    known = ", ".join(profile.params) or "none"
    problems = [
        f"target.params.{name}: profile {profile.name} has no such parameter; it has {known}"
        for name in plan.target.params
        if name not in profile.params
    ]
    missing = load.secret_names(profile) - values.keys()
    problems += [f"target.secrets.{name} is missing: profile {profile.name} asks for it" for name in sorted(missing)]
    given = {f"param.{name}": text for name, text in (profile.params | plan.target.params).items()}
    given |= {f"secret.{name}": text for name, text in values.items()}
    for name in sorted(load.number_names(profile) & given.keys()):
        if not is_number(given[name]):
            group, _, key = name.partition(".")
            problems.append(f"target.{group}s.{key} must be a number: profile {profile.name} sends it as one")
    return problems


def _objective_problems(slo: Slo, profile: Profile) -> list[str]:
    """A channel that there is not, or a time that a channel cannot have."""
    channel = (slo.channel or profile.headline).partition(":")[0]
    if channel not in profile.channels:
        known = ", ".join(profile.channels)
        return [f"slo.{slo.metric}.channel: profile {profile.name} has no channel {slo.channel}; it has {known}"]
    if slo.metric not in plans.RESPONSE_METRICS or slo.metric in applicable(profile.media_channels.get(channel)):
        return []
    fitting = [name for name in profile.channels if slo.metric in applicable(profile.media_channels.get(name))]
    others = f"; give channel = one of: {', '.join(fitting)}" if fitting else ", and no other channel has it"
    return [f"slo.{slo.metric}: channel {channel} has no such time{others}"]


def _address_problems(url: str, profile: Profile) -> list[str]:
    """An address of another kind than the profile speaks. What a plug-in takes it says itself."""
    kind = profile.transport.kind
    starts = {
        "websocket": ("ws://", "wss://"),
        "http": ("http://", "https://"),
        "requests": ("http://", "https://"),
        "process": (plans.PROGRAM,),
    }.get(kind)
    if not url:
        example = (
            f"{plans.PROGRAM}./recognise" if kind == "process" else f"{starts[0] if starts else 'ws://'}127.0.0.1:2700"
        )
        return [f"target.url is missing (--url), for instance {example}"]
    if starts is None or url.startswith((*starts, "{")):  # a whole address may be a field, known later
        return []
    begun = plans.PROGRAM if url.startswith(plans.PROGRAM) else f"{urlsplit(url).scheme}://"
    return [f"target.url: profile {profile.name} speaks {' or '.join(starts)}, not {begun}"]


def _program_problems(plan: Plan, profile: Profile, allow_exec: bool) -> list[str]:
    """What only a local program has, or has not; and a command that nobody typed here."""
    is_program, problems = profile.transport.kind == "process", []
    if plan.target.headers and is_program:
        problems.append("target.headers: a local program has none; give it target.env")
    if plan.target.env and not is_program:
        problems.append(f"target.env: only a local program has it, and profile {profile.name} speaks to none")
    url = profile.transport.url or ""
    if not plan.target.url and url.startswith(plans.PROGRAM) and not allow_exec:
        problems.append(f"transport.url of profile {profile.name}: {plans.PROGRAM} {plans.RUNS_COMMANDS}")
    return problems


def _watch_problems(plan: Plan) -> list[str]:
    pid = plan.readings.pid
    return [] if pid is None or target.exists(pid) else [f"readings.pid: there is no process {pid} here"]


def _resource_problems(plan: Plan) -> list[str]:
    if plan.workload.open:
        return []  # how many sessions stand at once is the service's doing
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    users = round(plan.workload.top)
    need = users + SPARE_FILES
    if hard not in (resource.RLIM_INFINITY, -1) and need > hard:
        return [f"workload.users = {users} needs {need} file handles, and this system allows {hard} (ulimit -Hn)"]
    return []


def _clips(part: plans.CorpusSection) -> list[Clip]:
    """The chosen clips of any known corpus. Raises CorpusError, MediaError."""
    fps = None if part.fps is None else Fraction(part.fps)
    clips = read.clips(
        Path(part.path),
        Asked(part.split, part.source_lang, part.target_lang, fps),
        read.Chosen(part.limit, tuple(part.ids), part.max_duration_s, part.layout, length_s),
    )
    if not part.estimate_activity:
        return clips
    judged = list(activity.all_estimated(clips))
    if problems := [f"clip {clip.id}: {problem}" for clip, found in judged for problem in found]:
        raise media.MediaError(problems)
    return [clip for clip, _ in judged]


def _cache(plan: Plan) -> Path:
    return plans.expanded(plan.media.cache) if plan.media.cache else media.default_cache()


def _fields(clip: Clip) -> dict[str, str]:
    return {
        "id": clip.id,
        "direction": clip.direction,
        "source_lang": clip.source_lang,
        "target_lang": clip.target_lang,
        "speaker": clip.speaker or "",
    }


def _facts(clip: Clip, duration_ns: int) -> ClipFacts:
    return ClipFacts(
        id=clip.id,
        direction=clip.direction,
        duration_s=duration_ns / 1e9,
        source_lang=clip.source_lang,
        target_lang=clip.target_lang,
        transcript=clip.transcript,
        gloss=list(clip.gloss) if clip.gloss is not None else None,
        text=clip.text,
        alt_text=list(clip.alt_text),
        alt_gloss=[list(item) for item in clip.alt_gloss],
        text_unit=clip.text_unit,
        gloss_unit=clip.gloss_unit,
        activity_start_s=clip.activity_start_s,
        activity_end_s=clip.activity_end_s,
        activity_estimated=clip.activity_estimated,
        words=[dict(word) for word in clip.words],
        gloss_spans=[{name: span[name] for name in ("gloss", "start", "end")} for span in clip.gloss_spans],
        segments=[msgspec.convert(dict(part), Sentence) for part in clip.segments],
        tags=list(clip.tags),
    )


def _masked(value: Any, masks: Masks) -> Any:
    if isinstance(value, str):
        return masks.mask(value, cut=False)
    if isinstance(value, dict):
        return {key: _masked(item, masks) for key, item in value.items()}
    return [_masked(item, masks) for item in value] if isinstance(value, list) else value


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


def _sessions_in(work: plans.WorkloadSection, mean_s: float) -> int:
    """About how many sessions a workload comes to that only its time ends; a dialogue's users take turns."""
    turn_s = mean_s + work.think_s
    share = 1.0 if work.open else 1 / turn_s
    parts = work.laid_out
    lead = parts[0].level * work.warmup_s
    sessions = round(share * (lead + sum(part.level * (part.seconds or 0.0) for part in parts)))
    return sessions if work.open else max(round(work.top), sessions)
