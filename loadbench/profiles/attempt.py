"""Which profiles fit a service: one short session with each that may, one at a time, and what came of it.

The service is not to notice much: never two connections at once, two seconds of media in each, a close where it can be
said, a bound over all that is told before, and an end at the first profile that fits for certain.
"""

import asyncio
import fnmatch
import ipaddress
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from loadbench import plan as plans
from loadbench import prepared as preparing
from loadbench.engine.pipe import Outbound
from loadbench.engine.run import Engine
from loadbench.profiles import sample
from loadbench.profiles.recorded import Conversation, Recording
from loadbench.profiles.replay import replay
from loadbench.profiles.verdict import BUSY, RANK, UNREACHED, Verdict, judge, plain, reading
from loadbench.report.visible import visible
from loadbench.results.masks import Masks
from loadbench.results.record import Message, SessionRecord
from loadbench.session import load
from loadbench.session.profile import Profile

EACH_S: Final = 12.0  # a session, whatever happens in it, beside what its own end script waits
CONNECT_S: Final = 3.0
READY_S: Final = 3.0
ANSWER_S: Final = 4.0  # after the media
PAUSE_S: Final = 0.2  # between two connections
OVERALL_S: Final = 300.0
SCHEMES: Final = {"websocket": ("ws", "wss"), "http": ("http", "https"), "requests": ("http", "https")}
LOCAL: Final = ("localhost", "{host}")


@dataclass(frozen=True)
class Asked:
    """What to try. No `profiles`: all shipped ones that speak the scheme and are nobody else's own."""

    url: str
    profiles: tuple[str, ...] = ()
    corpus: Path | None = None
    headers: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    every: bool = False
    overall_s: float = OVERALL_S
    confirmed: bool = False


@dataclass(frozen=True)
class Candidate:
    """A profile that may fit, and where it would go. `clear` is that address without anything secret."""

    profile: Profile
    name: str
    plan: plans.Plan
    clear: str

    @property
    def sends(self) -> dict[str, Any]:
        """All that a session of it sends: two profiles with the same get the same answers."""
        heard = {
            "name",
            "about",
            "checked",
            "channels",
            "primary",
            "receive",
            "never_final",
            "close",
            "pace",
            "simulate",
        }
        full = self.profile.model_dump(mode="json", exclude=heard)
        steps = [{key: value for key, value in step.items() if key.startswith("send_")} for step in full["end"]]
        media = full["media"] | {"ack": None}
        return full | {"end": steps, "media": media, "transport": full["transport"] | {"url": self.clear}}


def door(asked: Asked, *, as_json: bool, say: Callable[[str], None]) -> int:
    """Try, and print. 0: one fits; 1: none; 4: nobody was reached. Raises PlanError for what is wrong in the question.

    An address that is neither of this machine nor private is contacted only when that is confirmed.
    """
    with tempfile.TemporaryDirectory(prefix="loadbench-try-") as folder:
        candidates, passed_over = chosen(asked, Path(folder))
        for line in outline(asked, candidates):
            say(visible(line))
        if not asked.confirmed and not is_near(asked.url):
            raise plans.PlanError(["the address is neither of this machine nor private: add --yes to contact it so"])
        found = asyncio.run(_tried(asked, candidates, say))
    verdicts = sorted([*found, *passed_over], key=lambda each: (RANK[each.fit], each.unread, -each.texts))
    named = next((verdict.profile for verdict in verdicts if verdict.fit == "fits"), None)
    if as_json:
        print(json.dumps({"fits": named, "tried": list(map(plain, verdicts))}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(_lines(verdicts, named)))
    contacted = [verdict.outcome for verdict in found if verdict.fit != "not tried"]
    if contacted and all(outcome in UNREACHED for outcome in contacted):
        return 4
    return 1 if named is None else 0


def chosen(asked: Asked, folder: Path) -> tuple[list[Candidate], list[Verdict]]:
    """The profiles to try, in their order, and those that cannot be, with the reason. Raises PlanError."""
    profiles = _named(asked)
    clips = sample.clips(asked.corpus)
    candidates, passed_over = [], []
    for name, profile in profiles.items():
        if not asked.profiles and _unfit(asked, profile):
            continue
        try:
            path = sample.write(clips, profile.media.kind, folder)
        except sample.SampleError as error:
            passed_over.append(Verdict(profile=profile.name, fit="not tried", why=str(error)))
            continue
        plan = _plan(asked, profile, name, path)
        missing = load.secret_names(profile) - asked.secrets.keys()
        if missing:
            why = f"it needs the secret {', '.join(sorted(missing))}: --secret NAME=env:VARIABLE"
            passed_over.append(Verdict(profile=profile.name, fit="not tried", why=why))
            continue
        clear = Masks(plans.hidden(plan)).mask(plan.target.url, cut=False)
        candidates.append(Candidate(profile, name, plan, clear))
    return candidates, passed_over


def _named(asked: Asked) -> dict[str, Profile]:
    """The profiles in their order; those that were asked for are good and fit the address. Raises PlanError."""
    problems, found = [], {}
    schemes = sorted({each for known in SCHEMES.values() for each in known})
    try:
        parts = urlsplit(asked.url)
        good = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        problems.append(
            f"the address must be {', '.join(f'{each}://' for each in schemes)} and a host: only these are tried"
        )
    if not 0 < asked.overall_s <= plans.LONGEST_S:
        problems.append(f"--seconds must be above 0 and at most {plans.LONGEST_S:g}")
    for name in asked.profiles or tuple(sorted(load.shipped(), key=_modesty)):
        try:
            profile = found[name] = load.load_profile(name)
        except load.ProfileError as error:
            problems += error.problems
            continue
        if good and asked.profiles and (why := _unfit(asked, profile)):
            problems.append(f"profile {profile.name} {why}")
    if problems:
        raise plans.PlanError(problems)
    return found


def _modesty(name: str) -> tuple[int, int]:
    """Profiles that ask much of a service come first: one that fulfils it is theirs, and may well suit others too."""
    profile = load.load_profile(name)
    steps = [*profile.open, *profile.begin]
    return -sum(step.wait is not None for step in steps), -len(steps)


def is_near(url: str) -> bool:
    """Whether an address is of this machine or of a private network. Names are not looked up."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def outline(asked: Asked, candidates: list[Candidate]) -> Iterator[str]:
    """What would be sent, to whom, and how much of it at most."""
    longest_s = max((_longest_s(candidate.profile) for candidate in candidates), default=EACH_S)
    most_s = min(asked.overall_s, sum(_longest_s(candidate.profile) + PAUSE_S for candidate in candidates))
    yield (
        f"at most {len(candidates)} connections, one at a time, each with at most {sample.MOST_S:g} s of media"
        f" and {longest_s:g} s long; at most {most_s:.0f} s over all"
    )
    if asked.headers:
        yield f"headers with each: {', '.join(asked.headers)}"
    for candidate in candidates:
        media = candidate.profile.media
        coding = {
            "audio": f"{media.container or media.format} at {media.rate_hz} Hz",
            "frames": f"{media.codec} frames",
            "video": str(media.container),
        }
        form = coding.get(media.kind, f"{media.batch or 1} frames a message")
        says = [text for step in candidate.profile.open if (text := _said(step))]
        opening = f"says {' '.join(says)}, then " if says else ""
        yield f"  {candidate.profile.name}: {candidate.clear}: {opening}{media.kind}, {form}"


# ---- choosing


def _unfit(asked: Asked, profile: Profile) -> str:
    """Why a profile is not to be tried here; nothing where it is."""
    scheme = urlsplit(asked.url).scheme
    schemes = SCHEMES.get(profile.transport.kind, ())
    if scheme not in schemes:
        return f"speaks {' or '.join(f'{each}://' for each in schemes) or profile.transport.kind}, not {scheme}://"
    own = _host(profile)
    if own and not asked.profiles and not fnmatch.fnmatchcase(urlsplit(asked.url).hostname or "", own):
        return f"is that of a service at {own}"
    return ""


def _host(profile: Profile) -> str:
    """The host of a hosted service, a pattern where parts of it are the user's; nothing where anyone may run it."""
    address = _authority(profile.transport.url or "")
    filled = address
    for name, value in profile.params.items():
        filled = filled.replace(f"{{param.{name}}}", value)
    if not filled or filled in LOCAL or is_near(f"ws://{filled}"):
        return ""
    pattern = re.sub(r"\{[^{}]*\}", "*", address)
    return pattern if set(pattern) - {"*"} else filled


def _authority(address: str) -> str:
    """The host of an address that may have fields in it, without user and port."""
    rest = re.split(r"[/?#]", address.partition("://")[2])[0].rpartition("@")[2]
    return re.sub(r":(\d+|\{[^{}]*\})$", "", rest)


def _longest_s(profile: Profile) -> float:
    """How long a session may take."""
    return EACH_S + _waits_s(profile)


def _waits_s(profile: Profile) -> float:
    """How long the end script waits of itself."""
    spans = ((step.silence_s, step.quiet and step.quiet.for_s, step.done and step.done.quiet_s) for step in profile.end)
    return sum(span_s or 0.0 for step in spans for span_s in step)


def _plan(asked: Asked, profile: Profile, name: str, corpus: Path) -> plans.Plan:
    used = load.secret_names(profile)
    chosen = {
        "target.url": _address(asked.url, profile),
        "target.profile": name,
        "target.headers": asked.headers,
        "target.params": {key: value for key, value in asked.params.items() if key in profile.params},
        "target.secrets": {key: value for key, value in asked.secrets.items() if key in used},
        "target.identify": False,
        "corpus.path": str(corpus),
        "workload.sessions": 1,
        "limits.connect_s": CONNECT_S,
        "limits.ready_s": READY_S,
        "limits.final_s": ANSWER_S + _waits_s(profile),
        "limits.session_s": _longest_s(profile),
        "limits.close_s": 1.0,
        "record.messages": 1,
        "canary.users": 0,
    }
    return plans.read(None, chosen)


def _address(url: str, profile: Profile) -> str:
    """The address as given; with the profile's own path where only a host was given."""
    parts = urlsplit(url)
    own = urlsplit(profile.transport.url or "")
    if parts.path not in ("", "/") or not own.path:
        return url
    return urlunsplit(parts._replace(path=own.path, query=parts.query or own.query))


def _said(step: Any) -> str:
    """An opening message as the profile writes it: fields are not filled in, so there is no secret in it."""
    if step.send_json is not None:
        return json.dumps(step.send_json, ensure_ascii=False)
    if step.send_text is not None:
        return str(step.send_text)
    return "a binary message" if step.model_fields_set & {"send_binary", "send_base64"} else ""


# ---- trying


async def _tried(asked: Asked, candidates: list[Candidate], say: Callable[[str], None]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    heard: list[tuple[Candidate, Conversation]] = []
    ends_s = time.monotonic() + asked.overall_s
    stopped = ""
    for number, candidate in enumerate(candidates, 1):
        name = candidate.profile.name
        left_s = ends_s - time.monotonic()
        if not stopped and left_s < CONNECT_S:
            stopped = f"the {asked.overall_s:g} s over all are used up"
        if stopped:
            verdicts.append(Verdict(profile=name, fit="not tried", why=stopped))
            continue
        known = next(((other, said) for other, said in heard if other.sends == candidate.sends), None)
        refuted = known and _refuted(candidate, *known)
        if refuted:
            verdicts.append(refuted)
            continue
        say(f"{number}/{len(candidates)} {name}: connecting")
        verdict, messages, status = await _one(candidate, min(_longest_s(candidate.profile), left_s))
        say(visible(f"{number}/{len(candidates)} {name}: {verdict.fit}: {verdict.why}"))
        verdicts.append(verdict)
        if verdict.handshake:
            heard.append((candidate, messages))
        stopped = _reason_to_stop(asked, verdict, status)
        if verdict.fit == "fits" and not asked.every:
            _compare(candidate, candidates, messages, verdicts)
            stopped = f"{next(each.profile for each in verdicts if each.fit == 'fits')} fits"
        await asyncio.sleep(PAUSE_S)
    told = {verdict.profile for verdict in verdicts if verdict.fit != "not tried"}
    return [verdict for verdict in verdicts if verdict.fit != "not tried" or verdict.profile not in told]


def _reason_to_stop(asked: Asked, verdict: Verdict, status: int | None) -> str:
    if verdict.outcome in UNREACHED:
        return "nobody can be reached there"
    if status in BUSY:
        return f"the service answered {status}, and is left alone"
    return f"{verdict.profile} fits" if verdict.fit == "fits" and not asked.every else ""


async def _one(candidate: Candidate, most_s: float) -> tuple[Verdict, Conversation, int | None]:
    """One session; what it came to, what the service said, and the status with which it refused, if it did."""
    limits = candidate.plan.limits.model_copy(update={"session_s": most_s})
    plan = candidate.plan.model_copy(update={"limits": limits})
    try:
        ready = await asyncio.to_thread(preparing.prepare, plan)
    except plans.PlanError as error:
        why = "; ".join(error.problems)
        return Verdict(profile=candidate.profile.name, fit="not tried", why=why), Conversation(), None
    try:
        events: list[Outbound] = []
        await Engine(ready.start, events.append).run()
    finally:
        ready.close()
    record = next(event for event in events if isinstance(event, SessionRecord))
    heard = Conversation(
        [(event.at_ns, event.data) for event in events if isinstance(event, Message) and not event.binary]
    )
    waits = any(step.wait and (step.wait.has or step.wait.match) for step in candidate.profile.open)
    verdict = judge(
        candidate.profile.name, candidate.clear, record, replay(candidate.profile, Recording([heard])), waits=waits
    )
    return verdict, heard, record.connections[0].status if record.connections else None


def _refuted(candidate: Candidate, other: Candidate, heard: Conversation) -> Verdict | None:
    """What another profile heard speaks against this one, which would send the same; None: it does not."""
    found = replay(candidate.profile, Recording([heard]))
    if found.matched and found.unread <= found.matched and not found.troubles:
        return None
    why = f"sends the same as {other.profile.name}, and cannot read what came back; not contacted"
    return Verdict(
        profile=candidate.profile.name, fit="no", why=why, url=candidate.clear, outcome="no_output", unread=found.unread
    )


def _compare(fits: Candidate, candidates: list[Candidate], heard: Conversation, verdicts: list[Verdict]) -> None:
    """Hold what came back against the profiles that would have sent the same; nobody is contacted for it.

    One that reads it better takes the place of the one that was tried.
    """
    recording = Recording([heard])
    tried = verdicts[-1]
    best, measure = fits, reading(replay(fits.profile, recording))
    for other in candidates:
        if other is fits or other.sends != fits.sends:
            continue
        found = replay(other.profile, recording)
        if found.unread or found.troubles or not found.matched:
            continue
        why = f"sends the same as {fits.profile.name}, and reads what came back as well; not contacted"
        verdict = Verdict(
            profile=other.profile.name, fit="may fit", why=why, url=other.clear, outcome="ok", read=found.matched
        )
        if reading(found) > measure:
            best, measure = other, reading(found)
            verdict.fit = "fits"
            verdict.why = f"sends the same as {fits.profile.name}, and reads more of what came back"
        verdicts.append(verdict)
    if best is not fits:
        tried.fit, tried.why = "may fit", f"said text; {best.profile.name} reads more of it"
        for verdict in verdicts:
            if verdict.fit == "fits" and verdict.profile != best.profile.name:
                verdict.fit = "may fit"


def _lines(verdicts: list[Verdict], named: str | None) -> Iterator[str]:
    width = max((len(verdict.profile) for verdict in verdicts), default=0)
    reasons: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.fit == "not tried":
            reasons.setdefault(verdict.why, []).append(verdict.profile)
        else:
            yield verdict.text(width)
    yield from (visible(f"not tried: {', '.join(names)}: {why}") for why, names in reasons.items())
    if named is not None:
        yield f"fits: {named}"
        return
    perhaps = [verdict.profile for verdict in verdicts if verdict.fit == "may fit"]
    yield f"none for certain; may fit: {', '.join(perhaps)}" if perhaps else "none"
