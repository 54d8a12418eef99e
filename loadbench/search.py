"""The capacity search carried out: each level is a run with a bundle of its own, judged by the pure search.

A level begins with a ramp as long as one session, which is its warm-up: users who all came at once would stay in step
and leave the service idle between their waves, which is not what a crowd of that size does. So each user's first
session is not measured, and the phases of the others are spread.

`search.json` is written anew after each level, whole or not at all: whoever kills the search keeps what it had found.
"""

import asyncio
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from loadbench import conduct, prepared
from loadbench.analysis import capacity, evidence
from loadbench.analysis.capacity import Capacity, Run, Search, Span, Step
from loadbench.analysis.evidence import Evidence, Observed, Spoken
from loadbench.analysis.judge import Judge
from loadbench.plan import LONGEST_S, Plan, PlanError
from loadbench.prepared import STARTS_PER_S, Prepared
from loadbench.results.bundle import Bundle, why, write_whole
from loadbench.results.outcome import ending
from loadbench.results.reference import REFERENCES
from loadbench.results.slo import Slo
from loadbench.scoring import outputs, score, tables
from loadbench.watch.terminal import View, encoding

SCHEMA_VERSION: Final = 1
PER_USER: Final = 3  # measured sessions of each user, at least
# A level is one stage, whatever the plan makes of its own.
PLAIN: Final[dict[str, Any]] = {"stages": [], "levels": [], "peak": None}
MOST: Final = 4  # times the least: as many utterances are spent on a level that stays undecided
DRAINED: Final = 1.5  # times the unloaded response: the service has worked off what it was left with
NOISE_S: Final = 0.05  # a response of a few milliseconds is never within 1.5 times of another
COLUMNS: Final = "{:>9}  {:>6}  {:>19}  {:>9}  {:>7}  {:>8}  {}"
State = Literal["running", "done", "interrupted", "budget"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What the command line asked for, beside the plan."""

    span: Span
    folder: Path
    repeats: int = 1
    max_utterances: int | None = None
    cooldown_s: float = 60.0
    allow_exec: bool = False
    quiet: bool = False


@dataclass(frozen=True)
class Outline:
    """What a search is up to, known before anyone is contacted. Media lengths in seconds."""

    asked: Asked
    objectives: Sequence[Slo]
    channel: str
    least: int
    most: int
    mean_s: float
    shortest_s: float
    think_s: float
    ramp_s: float
    warmup_s: float
    clips: int
    url: str

    def measured(self, level: float) -> int:
        """The fewest measured sessions of a run at this level: three a user, or three times those under way at once."""
        at_once = level if self.asked.span.unit == "users" else level * self.mean_s
        return max(self.least, math.ceil(PER_USER * at_once))

    def spent(self, level: float) -> int:
        """The most utterances that a level gets while it stays undecided."""
        return max(self.most, self.measured(level))

    def ramp(self, level: float) -> float:
        """Users come over the length of one session, so that they are out of step; arrivals need no ramp."""
        if self.asked.span.unit != "users":
            return self.ramp_s
        return max(self.ramp_s, self.mean_s + self.think_s, level / STARTS_PER_S)

    def warmup(self, level: float) -> float:
        """The ramp, or as long as it takes until the first arrivals may have left."""
        return max(self.warmup_s, self.ramp(level), self.mean_s)

    def sessions(self, level: float) -> int:
        """All sessions of a run: the measured ones, and the most that can begin during the warm-up."""
        warmup_s = self.warmup(level)
        if self.asked.span.unit != "users":
            return self.measured(level) + math.ceil(warmup_s * level)
        users, cycle_s = int(level), self.shortest_s + self.think_s
        begins = (warmup_s - user * self.ramp(level) / users for user in range(users))
        return self.measured(level) + sum(max(1, math.ceil(left_s / cycle_s - 1e-9)) for left_s in begins)

    def media_s(self, level: float) -> float:
        """Media of one run."""
        return self.sessions(level) * self.mean_s

    def media_minutes(self) -> tuple[float, float]:
        """(least, most) of the whole search; the least is that of a lowest level which fails at once."""
        span = self.asked.span
        _, trials = capacity.at_most(span, self.asked.repeats)
        rest = [span.high] * (trials - len(span.coarse()))
        each = [self._trial_s(level) for level in (*span.coarse(), *rest)]
        probes_s = trials * max(self.asked.cooldown_s, self.mean_s)
        return self.media_s(span.low) / 60, (sum(each) + probes_s) / 60

    def _trial_s(self, level: float) -> float:
        """A trial that stays undecided, with one run of it made again."""
        return (math.ceil(self.spent(level) / self.measured(level)) + 1) * self.media_s(level)

    def lines(self, plan: Plan) -> list[str]:
        """The plan of the search, for people."""
        asked, span = self.asked, self.asked.span
        levels, trials = capacity.at_most(span, asked.repeats)
        least_min, most_min = self.media_minutes()
        clips = f"{self.clips} clips in a new order at each level" if self.clips > 1 else "one clip"
        near = (
            f"{span.resolution:g} user{'s' * (span.resolution > 1)}"
            if span.unit == "users"
            else f"{span.resolution:.0%}"
        )
        needs = ", ".join(f"{slo.name} {evidence.least_utterances(slo)}" for slo in self.objectives)
        people = span.unit == "users"
        each = "of each user" if people else "for each that is under way at once"
        warm = (
            "in which the users come one by one: about one session of each" if people else "until the first may be over"
        )
        probes = "" if self._starts_unloaded else "; one also before the search"
        return [
            f"search   {span.unit} from {span.low:g} to {span.high:g}, times {span.step:g}, then halving to {near}",
            f"contacts {self.url}: nobody else, with {clips}",
            f"levels   at most {levels}, in {trials} trials (repeats of the last one and of the one above:"
            f" {asked.repeats}); a few more where one is undecided, or a repeat does not hold",
            f"each     at least {self.least} measured utterances ({needs}) and {PER_USER} {each};"
            f" while undecided up to {self.most}",
            f"warm-up  {self.warmup(span.low):.3g} s, {warm}, not measured",
            f"stops    a level early, where an SLO cannot be met any more; then single sessions for at most"
            f" {asked.cooldown_s:g} s, until the service answers as it did unloaded{probes}",
            f"media    {least_min:.3g} minutes at least, {most_min:.4g} at most"
            + (f"; the budget is {budget:g}" if (budget := plan.limits.budget_media_min) else ""),
            f"bundles  {asked.folder}/",
        ]

    @property
    def _starts_unloaded(self) -> bool:
        return self.asked.span.unit == "users" and self.asked.span.low == 1


def outline(plan: Plan, asked: Asked) -> Outline:
    """Check the plan at its highest level, encode the media, and say what the search needs. Raises PlanError."""
    problems = list(asked.span.problems)
    problems += [f"{asked.folder} already holds a search"] if (asked.folder / "search.json").exists() else []
    objectives = plan.objectives()
    least = max(evidence.least_utterances(slo) for slo in objectives)
    if asked.repeats < 0 or not 0 <= asked.cooldown_s <= LONGEST_S:
        problems.append(f"--repeats and --cooldown must be at least 0, and the cooldown at most {LONGEST_S:g} s")
    if asked.max_utterances is not None and asked.max_utterances < least:
        needs = ", ".join(f"{slo.name}: {evidence.least_utterances(slo)}" for slo in objectives)
        problems.append(
            f"--max-utterances {asked.max_utterances} can show nothing: {least} are needed with none missed ({needs})"
        )
    if problems:
        raise PlanError(problems)
    with encoding(asked.quiet) as progress:
        ready = prepared.prepare(_at(plan, asked.span, asked.span.high), allow_exec=asked.allow_exec, progress=progress)
    ready.close()
    problems = [
        text for slo in objectives if slo.metric in evidence.QUALITY for text in _reference_problems(slo, ready)
    ]
    if problems:
        raise PlanError(problems)
    lengths_s = [length / 1e9 for length in ready.media_ns.values()]
    return Outline(
        asked=asked,
        objectives=objectives,
        channel=ready.header.headline_channel,
        least=least,
        most=asked.max_utterances or MOST * least,
        mean_s=sum(lengths_s) / len(lengths_s),
        shortest_s=max(min(lengths_s), 1e-3),
        think_s=plan.workload.think_s,
        ramp_s=plan.workload.ramp_s,
        warmup_s=plan.workload.warmup_s,
        clips=len(lengths_s),
        url=prepared.dry_run(ready)["contacts"],
    )


def _say(line: str) -> None:
    print(line, flush=True)


def search(plan: Plan, asked: Asked, say: Say = _say) -> int:
    """Find the capacity, printing as it goes; the exit code.

    0: there is one, also "at least"; 1: even the lowest level does not hold; 3: it is INVALID; 4: no session reached
    the target; 130: interrupted. Raises PlanError before anything is contacted.
    """
    found = outline(plan, asked)
    for line in found.lines(plan):
        say(line)
    hunt = Hunt(plan, found, say)
    state = hunt.go()
    result = hunt.search.result
    say("")
    for line in _table(result):
        say(line)
    say(f"\ncapacity {result.sentence}" + (f" ({ENDED[state]})" if state in ENDED else ""))
    if result.broke and result.broke.why not in result.sentence:
        say(f"broke    {result.broke.slo} first, at {result.broke.level:g} {result.unit}: {result.broke.why}")
    say(f"result   {asked.folder / 'search.json'}")
    return _exit_code(result, state, reached=hunt.reached)


ENDED: Final = {"interrupted": "interrupted", "budget": "the media budget is used up"}


def _exit_code(result: Capacity, state: State, *, reached: bool) -> int:
    if state == "interrupted":
        return 130
    if result.value is not None:
        return 0
    if not reached:
        return 4
    return 3 if result.limited_by == "tester" else 1


@dataclass
class Hunt:
    """A search under way."""

    plan: Plan
    outline: Outline
    say: Say
    search: Search = field(init=False)
    reached: bool = False
    _unloaded_s: float | None = None
    _media_s: float = 0.0
    _probes: int = 0
    _made: Counter[float] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        asked = self.outline.asked
        self.search = Search(
            asked.span,
            self._weigh,
            self.outline.spent,
            repeats=asked.repeats,
            least_utterances=self.outline.least,
        )

    def go(self) -> State:
        """All steps, until the search is over or was ended; `search.json` is there from the beginning."""
        folder = self.outline.asked.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlanError([f"cannot make {folder}: {why(error)}; choose another --out"]) from None
        self._write("running")
        self.say("\n" + COLUMNS.format("level", "n", "p95 finished/all", "completed", "WER", "tester", ""))
        try:
            state = self._steps()
        except (_InterruptedError, KeyboardInterrupt):
            state = "interrupted"
        self._write(state)
        return state

    def _steps(self) -> State:
        if not self.outline._starts_unloaded:
            self._unloaded_s = self._probe()
        while (step := self.search.ask()) is not None:
            if not self._affordable(step.level):
                return "budget"
            run = self._run(step)
            self.search.tell(run)
            self._write("running")
            point = self.search.result.curve[-1]
            self.say(_line(point))
            if self.search.ask() is not None and (run.facts["reason"] == "broken" or _failed(point.evidence)):
                self._cool_down()
        return "done"

    def _run(self, step: Step) -> Run:
        found, span = self.outline, self.outline.asked.span
        self._made[step.level] += 1
        name = f"{int(step.level):04d}" if span.unit == "users" else f"{step.level:g}"
        folder = found.asked.folder / f"level-{name}-{self._made[step.level]}"
        plan = _at(self.plan, span, step.level, found, self.plan.seed.value + step.number, self._left_min())
        result = self._perform(plan, folder)
        verdict, facts = result.summary["verdict"], _facts(result, folder, plan, found.channel)
        if self._unloaded_s is None and step.level == 1:
            self._unloaded_s = facts["p50_s"]
        return Run(step, observed(folder, found), verdict["state"] != "INVALID", verdict["reasons"], facts)

    def _perform(self, plan: Plan, folder: Path) -> conduct.Result:
        quiet = self.outline.asked.quiet or not sys.stderr.isatty()
        ready = prepared.prepare(plan, allow_exec=self.outline.asked.allow_exec)
        try:
            result = asyncio.run(conduct.perform(ready, folder, View(ready.header, quiet=quiet)))
        finally:
            ready.close()
        self._media_s += result.summary["sessions"]["started"] * self.outline.mean_s
        self.reached = self.reached or (result.summary["sessions"]["started"] > 0 and conduct.reached(result.summary))
        for problem in result.unwritten:
            self.say(f"warning  {problem}")
        if result.summary["run"]["reason"] == "interrupted":
            raise _InterruptedError
        return result

    def _weigh(self, seen: Observed) -> Evidence:
        return evidence.weigh(
            seen, self.outline.objectives, self.outline.channel, points=points, seed=self.plan.seed.value
        )

    # ---- between levels

    def _cool_down(self) -> None:
        """One session after another, until the service answers as it did before it had load, or patience is at an end.

        The next level would else begin with what the last one left behind.
        """
        patience_s, begun = self.outline.asked.cooldown_s, time.monotonic()
        while time.monotonic() - begun < patience_s:
            response_s = self._probe()
            if response_s is not None and self._drained(response_s):
                return
        if patience_s:
            self.say(f"          not drained after {patience_s:g} s of single sessions; going on")

    def _probe(self) -> float | None:
        """The headline response of a single session, seconds; None where it got none."""
        folder = self.outline.asked.folder / f"cooldown-{self._probes}"
        plan = _single(self.plan, self.plan.seed.value + self._probes)
        self._probes += 1
        headline = self._perform(plan, folder).summary["headline"]
        value: float | None = headline["finished"]["p50"]["value_s"]
        return value

    def _drained(self, response_s: float) -> bool:
        metrics = {self.plan.headline_metric, "final_from_source_end", "playback_end_from_source_end"}
        limit_s = min((slo.limit for slo in self.outline.objectives if slo.metric in metrics), default=None)
        if self._unloaded_s is None:
            return limit_s is None or response_s <= limit_s
        return response_s <= max(DRAINED * self._unloaded_s, self._unloaded_s + NOISE_S, limit_s or 0.0)

    def _left_min(self) -> float | None:
        budget = self.plan.limits.budget_media_min
        return None if budget is None else budget - self._media_s / 60

    def _affordable(self, level: float) -> bool:
        left_min = self._left_min()
        return left_min is None or self.outline.media_s(level) / 60 <= left_min

    def _write(self, state: State) -> None:
        found = self.outline
        whole = {
            "schema_version": SCHEMA_VERSION,
            "state": state,
            "asked": {
                "span": found.asked.span,
                "repeats": found.asked.repeats,
                "max_utterances": found.most,
                "cooldown_s": found.asked.cooldown_s,
                "slo": found.objectives,
            },
            "capacity": self.search.result,
        }
        path = found.asked.folder / "search.json"
        try:
            write_whole(path, [msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"])
        except OSError as error:
            text = f"cannot write {path}: {why(error)}; the levels that were run have whole bundles beside it"
            raise PlanError([text]) from None


class _InterruptedError(Exception):
    """A level was interrupted, and its bundle is written."""


def observed(folder: Path, found: Outline) -> Observed:
    """What the bundle of a level says about the objectives."""
    bundle = Bundle(folder)
    judge = Judge(bundle.header)
    for event in bundle.sessions():
        judge.add(event)
    asked = any(slo.metric in ("wer", "score") for slo in found.objectives)
    return evidence.observe(judge, found.objectives, found.channel, _words(bundle) if asked else None)


def points(kind: str, rate: float) -> float:
    """The points of a rate by the standard's table, for one kind of clips as `_words` names it."""
    return float(tables.table(1).points(kind.split()[0], Fraction(rate)) or 0)


def _words(bundle: Bundle) -> dict[str, dict[str, list[Spoken]]]:
    """Errors by channel and kind of clips; sessions that were cut, as a broken level's are, could not say theirs."""
    found: dict[str, dict[str, list[Spoken]]] = {}
    for row in outputs.rows(bundle):
        if row.window == "measure" and row.counted and ending(row.outcome) != "cut":
            errors = score.errors_of(row)
            kinds = found.setdefault(row.channel, {})
            kinds.setdefault(f"{row.direction} {row.reference} {row.unit}", []).append(
                Spoken(row.clip, errors.total, errors.n)
            )
    return found


def _reference_problems(slo: Slo, ready: Prepared) -> list[str]:
    if slo.metric not in evidence.BOUNDED:
        return [f"slo.{slo.metric}: a search knows no interval of it; leave it out, and judge it in a run"]
    channel = slo.channel or ready.header.headline_channel
    stage = ready.header.channel_stages.get(channel, "")
    kinds = [(facts, REFERENCES.get((stage, facts.direction))) for facts in ready.facts.values()]
    count = sum(kind is not None and getattr(facts, kind) is not None for facts, kind in kinds)
    have = f"clips have a reference for channel {channel}"
    if stage == "media" and slo.metric != "erasure":
        count, have = 0, f"clips can be scored on channel {channel}, whose speech is made text after the runs"
    if slo.metric == "erasure":  # which needs none
        count, have = len(ready.facts), "clips are in the corpus"
    if count >= evidence.LEAST_CLIPS:
        return []
    return [
        f"slo.{slo.metric}: {count} {have}, and {evidence.LEAST_CLIPS} are the least from which anything can be said of"
        " others"
    ]


def _at(
    plan: Plan,
    span: Span,
    level: float,
    found: Outline | None = None,
    seed: int | None = None,
    budget_min: float | None = None,
) -> Plan:
    """The plan of one level."""
    closed = span.unit == "users"
    kind = plan.workload.kind
    model = (
        ("dialogue" if kind == "dialogue" else "closed") if closed else "poisson" if kind == "poisson" else "constant"
    )
    load: dict[str, Any] = PLAIN | {
        "model": model,
        "users": int(level) if closed else 1,
        "rate": None if closed else level,
        "sessions": found.sessions(level) if found else 1,
        "duration_s": None,
        "stop_when_broken": True,
    }
    if found:
        load |= {"ramp_s": found.ramp(level), "warmup_s": found.warmup(level)}
    return _changed(plan, load, seed, f"{level:g} {span.unit}", budget_min)


def _single(plan: Plan, seed: int) -> Plan:
    """The plan of one session, to hear how the service answers when it has nothing else to do."""
    load = PLAIN | {"model": "closed", "users": 1, "rate": None, "sessions": 1, "duration_s": None}
    return _changed(plan, load | {"ramp_s": 0.0, "warmup_s": 0.0, "stop_when_broken": False}, seed, "single session")


def _changed(plan: Plan, load: Mapping[str, Any], seed: int | None, name: str, budget_min: float | None = None) -> Plan:
    changes: dict[str, Any] = {
        "title": f"{plan.title}: {name}" if plan.title else name,
        "workload": plan.workload.model_copy(update=dict(load)),
        "corpus": plan.corpus.model_copy(update={"order": "shuffle"}),
        "limits": plan.limits.model_copy(update={"budget_media_min": budget_min}),
    }
    if seed is not None:
        changes["seed"] = plan.seed.model_copy(update={"value": seed})
    return plan.model_copy(update=changes)


# ---- for people


def _facts(result: conduct.Result, folder: Path, plan: Plan, channel: str) -> dict[str, Any]:
    """What the curve shows of a run beside its evidence: spans in seconds, None where unknown."""
    summary, headline = result.summary, result.summary["headline"]
    rate = next(
        (part["wer"]["value"] for part in result.scores["channels"].values() if part["channel"] == channel), None
    )
    return {
        "bundle": folder.name,
        "seed": plan.seed.value,
        "reason": summary["run"]["reason"],
        "why": summary["run"]["why"],
        "duration_s": summary["run"]["duration_s"],
        "metric": headline["metric"],
        "p50_s": headline["finished"]["p50"]["value_s"],
        "p95_s": headline["finished"]["p95"]["value_s"],
        "started_p95": headline["started"]["p95"],
        "completed_share": summary["windows"].get("measure", {}).get("completed_share"),
        "wer": rate,
        "verdict": summary["verdict"]["state"],
    }


def _failed(found: Evidence | None) -> bool:
    return found is not None and found.state == "failed"


def _line(point: capacity.Point) -> str:
    facts, usable = point.facts, point.valid
    started = facts["started_p95"]
    both = f"{_seconds(facts['p95_s'])} / {_seconds(started['value_s'], started['bound'])}"
    held = (point.evidence.state if point.evidence else "undecided") if usable else "says nothing of the service"
    words = f"{held}  {point.step.why}" + (", stopped early" if facts["reason"] == "broken" else "")
    return COLUMNS.format(
        f"{point.step.level:g}",
        point.utterances,
        both if usable else f"({both})",
        _percent(facts["completed_share"]),
        _percent(facts["wer"]),
        facts["verdict"],
        words,
    )


def _table(result: Capacity) -> list[str]:
    """The curve, merged by level."""
    lines = [f"{'level':>9}  {'n':>6}  held"]
    for level in result.levels:
        n = sum(trial.evidence.utterances for trial in level.trials if trial.evidence)
        why = f"   {level.why}" if level.why else ""
        lines.append(f"{level.level:>9g}  {n:>6}  {level.held}{why}")
    return lines


def _seconds(value_s: float | None, bound: str = "exact") -> str:
    if value_s is None:
        return "never" if bound == "never" else "n/a"
    return f"{'>=' if bound == 'at_least' else ''}{value_s:.3f}"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.1%}"
