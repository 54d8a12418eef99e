"""Is this machine fit to test so many users with this plan? Looks, listens to its own clock, and tries it on itself."""

import asyncio
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from loadbench import plan as plans
from loadbench import prepared as preparing
from loadbench.doctor import checks, contact, trial
from loadbench.doctor.row import Row
from loadbench.engine.address import Addresses
from loadbench.prepared import SPARE_FILES, Prepared
from loadbench.readings import machine
from loadbench.simulator import responder
from loadbench.watch.terminal import encoding

USERS: Final = 50  # where nobody says how many
ANSWER_S: Final = 1.0  # of a session beyond its media, where only a rate of starts is known
SELFTEST_S: Final = 30.0
CORPUS: Final = Path(str(resources.files("loadbench") / "data" / "demo"))
NAME_WIDTH: Final = 20


@dataclass(frozen=True)
class Asked:
    """What to examine. Without a `plan`: the machine alone, tried with the embedded corpus."""

    plan: plans.Plan | None
    users: int | None = None
    rate: float | None = None
    contact: bool = True
    allow_exec: bool = False


@dataclass
class Findings:
    """All rows, and what the trial came to; None where it could not be made."""

    users: int
    rows: list[Row]
    trial: trial.Trial | None

    @property
    def fit(self) -> bool:
        """No row is a problem."""
        return all(row.state != "problem" for row in self.rows)

    def text(self) -> str:
        """For people."""
        lines = [line for row in self.rows for line in _lines(row)]
        return "\n".join([*lines, "", trial.sentence(self.trial, self.users, fit=self.fit)])

    def plain(self) -> dict[str, Any]:
        """For programs."""
        tried = None if self.trial is None else trial.plain(self.trial)
        return {"fit": self.fit, "users": self.users, "rows": msgspec.to_builtins(self.rows), "trial": tried}


def doctor(
    asked: Asked, *, as_json: bool, say: Callable[[str], None] = lambda text: print(text, file=sys.stderr)
) -> int:
    """Examine and print. 0 where the machine is fit, else 1. Raises PlanError for what is wrong with the plan."""
    found = examine(asked, say)
    print(json.dumps(found.plain(), indent=2, ensure_ascii=False) if as_json else found.text())
    return 0 if found.fit else 1


def examine(asked: Asked, say: Callable[[str], None]) -> Findings:
    """Prepare the media, look at the machine, try it. Takes some twenty seconds. Raises PlanError."""
    given = {"users": asked.users, "rate": asked.rate}
    if problems := [f"--{name} {wrong}" for name, value in given.items() if (wrong := _out_of_bounds(value))]:
        raise plans.PlanError(problems)
    with encoding(quiet=False) as progress:
        ready = preparing.prepare(_plan(asked), allow_exec=asked.allow_exec, progress=progress)
    try:
        return asyncio.run(_examined(asked, ready, say))
    finally:
        ready.close()


async def _examined(asked: Asked, ready: Prepared, say: Callable[[str], None]) -> Findings:
    wire_bytes = sum(path.stat().st_size for path in ready.wires.rglob("*") if path.is_file())
    need = _need(asked, ready, wire_bytes)
    limits = ready.header.thresholds
    rows = _machine(need)
    say("listening to this machine's timers for a second")
    measured = await asyncio.to_thread(_selftest, limits.taint_gap_ms)
    rows += [checks.timers(measured, limits), checks.loop(measured, limits), checks.realtime(measured["realtime"])]
    rows += await _target(asked, ready, say)
    most = _limit(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    users = trial.size(need.users, ready, wire_bytes)
    users = users if most is None else max(1, min(users, most - SPARE_FILES))
    say(f"trying {users} users for up to {trial.MOST_S:g} s against a responder on this machine")
    tried, row = await _tried(ready, users, measured["cpu_share"], need.users)
    return Findings(need.users, [*rows, row], tried)


async def _tried(ready: Prepared, users: int, idle_share: float, asked: int) -> tuple[trial.Trial | None, Row]:
    try:
        async with responder.responding(ready.plan.target.profile) as found:
            tried = await trial.attempt(ready, found, users, idle_share)
    except responder.ResponderError as error:
        why = ready.masks.mask(str(error))
        return None, Row(name="own capacity", state="unknown", found=f"not tried, for there is no responder: {why}")
    return tried, trial.judged(tried, asked)


def _plan(asked: Asked) -> plans.Plan:
    """The plan with a single user: how many is the doctor's own question, and not one of preparing."""
    plan = asked.plan
    if plan is None:
        lines = (CORPUS / "manifest.jsonl").read_text("utf-8").splitlines()
        heard = [clip["id"] for clip in map(json.loads, lines) if "audio_filepath" in clip]
        own = {"target.url": "ws://127.0.0.1:9", "target.profile": "vosk"}
        plan = plans.read(None, own | {"corpus.path": str(CORPUS), "corpus.ids": heard})
    return plan.model_copy(update={"workload": plans.WorkloadSection(users=1, sessions=1)})


def _need(asked: Asked, ready: Prepared, wire_bytes: int) -> checks.Need:
    """An open workload has as many sessions at once as start while one of them lasts (Little's law)."""
    work = asked.plan.workload if asked.plan else None
    lasts_s = sum(ready.media_ns.values()) / len(ready.media_ns) / 1e9 + ANSWER_S
    rate = asked.rate or (work.top if work and work.open and asked.users is None else None)
    if rate is not None:
        users = asked.users or math.ceil(rate * lasts_s)
    else:
        users = asked.users or (round(work.top) if work else USERS)
        rate = users / (lasts_s + (work.think_s if work else 0.0))
    return checks.Need(users=users, starts_per_s=rate, mapped_bytes=wire_bytes)


def _out_of_bounds(value: float | None) -> str:
    """What is wrong with a level that was asked for; "" where nothing is. The bounds are those of a plan."""
    if value is None or 0 < value <= plans.FASTEST:
        return ""
    return f"must be at most {plans.FASTEST:g}, not {value:g}" if value > 0 else f"must be above 0, not {value:g}"


def _machine(need: checks.Need) -> list[Row]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    facts = machine.facts()
    return [
        checks.file_handles(need, soft, _limit(hard)),
        checks.ports(need, machine.ephemeral_ports()),
        checks.memory(need, machine.memory_available_bytes()),
        checks.processors(facts["cores_usable"], facts["cores"], facts["cpu_quota"]),
        checks.governor(facts["governor"]),
        checks.clock(facts["clock_source"], time.get_clock_info("monotonic").resolution),
    ]


def _limit(hard: int) -> int | None:
    return None if hard in (resource.RLIM_INFINITY, -1) else hard


def _selftest(calm_ms: float) -> dict[str, Any]:
    """The calmer of two where the first was disturbed: a neighbour's hiccup is no property of the machine."""
    first = _listened()
    return (
        first if first["loop_gap_max_ms"] <= calm_ms else min(first, _listened(), key=lambda it: it["loop_gap_max_ms"])
    )


def _listened() -> dict[str, Any]:
    words = [sys.executable, "-m", "loadbench.engine.selftest"]
    done = subprocess.run(words, capture_output=True, timeout=SELFTEST_S, check=True)  # noqa: S603 - our own words
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def _target(asked: Asked, ready: Prepared, say: Callable[[str], None]) -> list[Row]:
    if asked.plan is None:
        return []
    if not asked.contact:
        return [Row(name="target's addresses", state="unknown", found="not looked at, as asked (--no-contact)")]
    if ready.start.proxy:
        found = f"behind the proxy {ready.header.effective['proxy']}, as sessions will meet it: not looked at"
        return [Row(name="target's addresses", state="unknown", found=found)]
    fields = Addresses(ready.start, ready.profile).fields("doctor", ready.start.clips[0].fields)
    if "host" not in fields:
        found = "not known before a session's prelude has asked for it"
        return [Row(name="target's addresses", state="unknown", found=found)]
    if not fields["host"] or not fields["port"]:
        return [Row(name="target's addresses", state="ok", found="none: it is a local program, or no host is named")]
    host, port = fields["host"], int(fields["port"])
    say(f"contacting {ready.masks.mask(host)}, port {port}: TCP only, then closed; --no-contact skips this")
    return await contact.contact(host, port)


def _lines(row: Row) -> list[str]:
    needed = f"   (needed: {row.needed})" if row.needed else ""
    head = f"{row.state:8} {row.name:{NAME_WIDTH}} {row.found}{needed}"
    return [head, *(f"{'':{9 + NAME_WIDTH}} {line}" for line in row.advice.splitlines())]
