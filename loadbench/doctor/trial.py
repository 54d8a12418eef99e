"""The machine tried out: the plan's own media, in the engine's own process, to a responder here, for some seconds."""

import math
from typing import Any, Final

import msgspec
import psutil

from loadbench.analysis.health import Health
from loadbench.doctor.row import Row, State
from loadbench.engine import host, pipe
from loadbench.engine.canary import elsewhere
from loadbench.prepared import STARTS_PER_S, Prepared, public_params
from loadbench.results.record import SessionRecord
from loadbench.results.slo import Verdict
from loadbench.results.tick import Tick
from loadbench.simulator.responder import Responder

MOST_S: Final = 10.0
STEADY_S: Final = 4.0  # with all users there
GENTLE_PER_S: Final = 100  # starts: half the work of each is the responder's, on the same processors
MOST_USERS: Final = 2000
MOST_BYTES: Final = 500_000_000  # that may wait in our memory where the responder is slower than the engine
FULL: Final = 0.7  # of a core: above it, chunks wait for each other
STANDING: Final = 0.9  # of the users, in a second that counts as steady
BUSY: Final = 0.9
FEW: Final = 10  # times as many users as were tried: nobody knows more from so little


class Trial(msgspec.Struct, kw_only=True):
    """What came of it. Shares are of one core; None where nothing was measured."""

    users: int
    seconds: float
    verdict: Verdict
    cpu_share: float | None
    responder_share: float | None
    idle_share: float
    sessions: int
    error: str = ""

    @property
    def per_user(self) -> float | None:
        """Of a core, for each session, beyond what idling costs."""
        return None if self.cpu_share is None else max(0.0, self.cpu_share - self.idle_share) / self.users

    @property
    def about(self) -> int | None:
        """How many users would fit: an estimate, a straight line through one point, rounded down to two digits.

        None where the engine was late: what it then took of a processor tells only what it was given.
        """
        if not self.per_user or self.verdict.state == "INVALID":
            return None
        fits = round(min((FULL - self.idle_share) / self.per_user, FEW * self.users), 6)
        if fits < 1:
            return 0
        step = 10 ** max(0, int(math.log10(fits)) - 1)
        return int(fits // step * step)


def size(asked: int, prepared: Prepared, wire_bytes: int) -> int:
    """How many users to try: those asked for, as far as a few seconds and this machine's memory allow."""
    rate = wire_bytes / max(0.1, sum(prepared.media_ns.values()) / 1e9)  # bytes a second of one user
    return max(1, min(asked, MOST_USERS, int(MOST_BYTES / (rate * MOST_S))))


async def attempt(prepared: Prepared, responder: Responder, users: int, idle_share: float) -> Trial:
    """Stream to the responder with so many users for ten seconds at most."""
    ramp_s = max(users / STARTS_PER_S, min(users / GENTLE_PER_S, MOST_S - STEADY_S))
    seconds = min(MOST_S, ramp_s + STEADY_S)
    health, ticks, sessions, error = Health(prepared.header.thresholds), list[Tick](), 0, ""
    watched = psutil.Process(responder.pid)
    engine = host.EngineProcess()
    try:
        await engine.start(_start(prepared, responder.url, users, ramp_s, seconds))
        before = sum(watched.cpu_times()[:2])
        async for event in engine.events():
            if isinstance(event, Tick | SessionRecord):
                health.add(event)
            if isinstance(event, Tick):
                ticks.append(event)
            sessions += isinstance(event, SessionRecord)
            if isinstance(event, pipe.Finished):
                error = event.error
        spent = sum(watched.cpu_times()[:2]) - before
    finally:
        engine.kill()
        await engine.close()
    return Trial(
        users=users,
        seconds=seconds,
        verdict=health.verdict(),
        cpu_share=_share(ticks, users),
        responder_share=spent / (sum(tick.span_ns for tick in ticks) / 1e9) if ticks else None,
        idle_share=idle_share,
        sessions=sessions,
        error=error,
    )


def judged(trial: Trial, asked: int) -> Row:
    """Whether `asked` users fit, and how sure that is."""
    expected = None if trial.per_user is None else round(trial.idle_share + trial.per_user * asked, 6)
    state, advice = _judgement(trial, asked, expected)
    figures = trial.verdict.figures
    found = (
        f"{trial.verdict.state} with {trial.users} users for {trial.seconds:.0f} s: lateness p50"
        f" {_ms(figures.get('lateness_p50_ms'))}, p99 {_ms(figures.get('lateness_p99_ms'))}, longest pause"
        f" {_ms(figures.get('loop_gap_max_ms'))}, engine {_percent(trial.cpu_share)} of a core"
    )
    busy = (trial.responder_share or 0.0) > BUSY
    note = "the responder took a whole core of this machine, so the true limit lies higher" if busy else ""
    return Row(
        name="own capacity",
        state=state,
        found=found,
        needed=f"{asked} users",
        advice="\n".join(filter(None, (*advice, note))),
    )


def sentence(trial: Trial | None, asked: int, *, fit: bool) -> str:
    """The answer to the question."""
    answer = f"fit for {asked} users: {'yes' if fit else 'no'}"
    if trial is None or trial.cpu_share is None:
        return f"{answer}; the engine's own share was not measured"
    head = f"{answer}; at {trial.users} the engine used {_percent(trial.cpu_share)} of a core"
    if trial.about is None:
        return f"{head}, and was late; how many would fit is not known" if trial.verdict.state == "INVALID" else head
    more = "at least" if trial.about >= FEW * trial.users * STANDING else "about"
    alone = "" if trial.verdict.state == "VALID" else ", on a machine that does nothing else"
    return f"{head}, so {more} {trial.about:,} would fit (an estimate from {trial.users}{alone})"


def _judgement(trial: Trial, asked: int, expected: float | None) -> tuple[State, list[str]]:
    if trial.error or expected is None:
        return "problem", [f"the trial did not come to its end: {trial.error or 'nothing was measured'}"]
    if trial.verdict.state == "INVALID":
        return "problem", [*trial.verdict.reasons, "fewer users, or a machine of its own for the tester"]
    if expected > 1:
        return "problem", [f"{asked} users would take {_percent(expected)} of the engine's one core (an estimate)"]
    advice = [] if trial.verdict.state == "VALID" else list(trial.verdict.reasons)
    if expected > FULL:
        advice.append(f"{asked} users would take {_percent(expected)} of the engine's one core (an estimate)")
    return ("warning" if advice else "ok"), advice


def _start(prepared: Prepared, url: str, users: int, ramp_s: float, seconds: float) -> pipe.Start:
    stage = pipe.Stage(level=users, seconds=seconds, ramp_s=ramp_s)
    workload = pipe.Workload(model="closed", stages=[stage], drain_s=0.0)
    return msgspec.structs.replace(
        elsewhere(prepared.start, url, public_params(prepared.start)),
        workload=workload,
        budget_media_s=None,
        sample_chunks=0,
        sample_messages=0,
    )


def _share(ticks: list[Tick], users: int) -> float | None:
    """Of a core, in the seconds in which nearly all users were there."""
    steady = [tick for tick in ticks if tick.active >= STANDING * users and tick.span_ns > 0] or ticks
    span_ns = sum(tick.span_ns for tick in steady)
    return sum(tick.cpu_ns for tick in steady) / span_ns if span_ns else None


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1f} ms"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share * 100:.1f} %"


def plain(trial: Trial) -> dict[str, Any]:
    """For JSON."""
    found: dict[str, Any] = msgspec.to_builtins(trial)
    return found | {"about_users": trial.about}
