"""The capacity search, as questions and answers: coarse steps up, bisection, and the last levels once more.

    while (step := search.ask()) is not None:
        search.tell(run(step))

It knows no service, no clock and no file. Each step is to be run with an order and a seed of its own (`step.number`): a
service that keeps what it has heard answers repeats faster. The level that is reported passed in every repeat.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

import msgspec

from loadbench.analysis.evidence import Evidence, Observed

Unit = Literal["users", "sessions/s"]
Held = Literal["passed", "failed", "undecided", "invalid"]
Limit = Literal["service", "tester", "range", "unfinished"]
MOST: Final = 100_000  # of anything: users, sessions a second, a factor
LEAST_STEP: Final = 1.1
ORDER: Final[tuple[Held, ...]] = ("failed", "undecided", "invalid")
DIGITS: Final = 3  # of a rate: 2.38 sessions a second, not 2.3784142


@dataclass(frozen=True)
class Span:
    """Where to look. `step` is the factor of the coarse steps; `resolution` is in users, of rates a share of the rate.

    `problems` says what is wrong with it, before anything else is asked.
    """

    low: float
    high: float
    unit: Unit = "users"
    step: float = 2.0
    resolution: float = 1.0

    @property
    def problems(self) -> list[str]:
        """Each a sentence; empty for a span that can be searched."""
        beyond = {"--from": self.low, "--to": self.high, "--step": self.step, "--resolution": self.resolution}
        endless = [
            f"{name} must be at most {MOST:g}, not {value:g}" for name, value in beyond.items() if not value <= MOST
        ]
        if endless:
            return endless
        whole = self.unit != "users" or all(value == int(value) for value in (self.low, self.high, self.resolution))
        checks = {
            f"--from must be above 0, not {self.low:g}": self.low > 0,
            f"--to must be at least --from: {self.high:g} is below {self.low:g}": self.high >= self.low,
            f"--step is the factor from one coarse step to the next: at least {LEAST_STEP:g}, not {self.step:g}": (
                self.step >= LEAST_STEP
            ),
            f"--resolution must be above 0, not {self.resolution:g}": self.resolution > 0,
            "--from, --to and --resolution are whole users": whole,
        }
        return [sentence for sentence, good in checks.items() if not good]

    def coarse(self) -> list[float]:
        """The levels of the coarse steps, from `low` to `high`."""
        levels = [self.low]
        while levels[-1] < self.high:
            levels.append(min(self.high, self._above(levels[-1])))
        return levels

    def between(self, low: float, high: float) -> float | None:
        """The level in the middle; None where the two are as close as was asked."""
        near = self.resolution * (1 if self.unit == "users" else low)
        middle = (low + high) // 2 if self.unit == "users" else _rounded((low + high) / 2)
        return middle if high - low > near * (1 + 1e-9) and low < middle < high else None

    @property
    def bisections(self) -> int:
        """How many levels at most lie on the way from two coarse steps to the resolution."""
        return max((self._halvings(low, high) for low, high in pairwise(self.coarse())), default=0)

    def _above(self, level: float) -> float:
        return max(level + 1, round(level * self.step)) if self.unit == "users" else _rounded(level * self.step)

    def _halvings(self, low: float, high: float) -> int:
        near = self.resolution * (1 if self.unit == "users" else low)
        return max(0, math.ceil(math.log2((high - low) / near) - 1e-9))


class Step(msgspec.Struct, frozen=True):
    """One run to be made. `trial` 0 is the search, 1 and up are repeats from scratch; `number` counts all steps from 0.

    `part` counts the runs of one trial from 1: more utterances, or again after an INVALID one.
    """

    level: float
    trial: int
    part: int
    number: int
    why: str


class Run(NamedTuple):
    """What came of a step. Nothing that it `saw` counts where the tester was not `valid`; `facts` are kept for show."""

    step: Step
    saw: Observed
    valid: bool = True
    reasons: Sequence[str] = ()
    facts: Mapping[str, Any] = {}


class Point(msgspec.Struct, frozen=True):
    """A run as the curve keeps it; `evidence` is that of its trial up to here, None where no run of it was valid."""

    step: Step
    utterances: int
    valid: bool
    reasons: list[str]
    evidence: Evidence | None
    facts: dict[str, Any]


class Trial(msgspec.Struct, frozen=True):
    """A level as one trial found it; `evidence` is over all of its valid runs, None where there was none."""

    held: Held
    evidence: Evidence | None
    runs: int


class Level(msgspec.Struct, frozen=True):
    """A level as all of its trials found it, and a sentence on why."""

    level: float
    held: Held
    trials: list[Trial]
    why: str


class Broke(msgspec.Struct, frozen=True):
    """The objective that broke first: at the lowest level at which any failed."""

    slo: str
    level: float
    why: str


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """The result. `value` is the highest level that held; None where the lowest did not, and `why` says so.

    The capacity lies from `low`, which passed, to below `high`, the lowest level that surely failed (None: none did).
    `at_least`: nothing that the service did ended the search: the tester, or the range that was asked for, did.
    `levels` are merged and in order; `curve` has each run, in the order in which they were made.
    """

    value: float | None
    low: float | None
    high: float | None
    at_least: bool
    unit: Unit
    limited_by: Limit
    broke: Broke | None
    why: str
    undecided: list[float]
    least_utterances: int
    levels: list[Level]
    curve: list[Point]

    @property
    def sentence(self) -> str:
        """The result in words."""
        if self.value is None:
            return f"none found: {self.why}"
        number = f"{'at least ' if self.at_least else ''}{_named(self.value, self.unit)}"
        return f"{number}: {self.why}" if self.why else number


Course = Generator[Step, Run, None]
Judging = Generator[Step, Run, Trial]


class Search:
    """Asks for steps until it knows. `weigh` judges what was seen; `most` utterances are spent on a trial of a level.

    `most` is asked by level. A trial ends when it passed or failed, when it has its most, or when the tester was late
    twice. May be asked for its `result` at any time.
    """

    def __init__(
        self,
        span: Span,
        weigh: Callable[[Observed], Evidence],
        most: Callable[[float], int],
        *,
        repeats: int = 1,
        least_utterances: int = 1,
    ) -> None:
        self._curve: list[Point] = []
        self._span, self._weigh, self._most, self._repeats = span, weigh, most, repeats
        self._least_utterances = least_utterances
        self._trials: dict[float, list[Trial]] = {}
        self._number = 0
        self._course = self._whole()
        self._next: Step | None = next(self._course, None)

    def ask(self) -> Step | None:
        """The run to make; the same until it is told. None: the search is over."""
        return self._next

    def tell(self, run: Run) -> None:
        """What came of the step that was asked for."""
        if self._next is None or run.step != self._next:
            raise ValueError(f"nobody asked for {run.step}")
        try:
            self._next = self._course.send(run)
        except StopIteration:
            self._next = None

    @property
    def result(self) -> Capacity:
        """What is known so far."""
        levels = [self._level(level) for level in sorted(self._trials)]
        over = _over(levels)
        value = levels[over - 1].level if over else None
        limited_by = self._limit(levels, over)
        return Capacity(
            value=value,
            low=value,
            high=next((found.level for found in levels[over:] if found.held == "failed"), None),
            at_least=value is not None and limited_by != "service",
            unit=self._span.unit,
            limited_by=limited_by,
            broke=_broke(levels[over:]),
            why=_why(levels, over, limited_by, self._span.unit),
            undecided=[found.level for found in levels if found.held == "undecided"],
            least_utterances=self._least_utterances,
            levels=levels,
            curve=list(self._curve),
        )

    # ---- the course: each part asks for runs and leaves what they showed in `_trials`

    def _whole(self) -> Course:
        low, high = yield from self._up()
        while low is not None:
            low, high = yield from self._bisect(low, high)
            if (yield from self._repeat(low, high)):
                return
            low, high = self._below(low), low

    def _below(self, level: float) -> float | None:
        return max((lower for lower in self._trials if lower < level and self._held(lower) == "passed"), default=None)

    def _up(self) -> Generator[Step, Run, tuple[float | None, float | None]]:
        """One undecided level does not end the way up: the one above it may hold, and then it was bad luck."""
        passed, doubted = None, None
        for level in self._span.coarse():
            held = yield from self._holds(level, "coarse")
            if held == "passed":
                passed, doubted = level, None
            elif held == "undecided" and doubted is None:
                doubted = level
            else:
                return passed, level if doubted is None else doubted
        return passed, doubted

    def _bisect(self, low: float, high: float | None) -> Generator[Step, Run, tuple[float, float | None]]:
        while high is not None and (middle := self._span.between(low, high)) is not None:
            held = yield from self._holds(middle, "bisect")
            further = self._span.between(middle, high) if held == "undecided" else None
            if held == "passed":
                low = middle
            elif further is not None and (yield from self._holds(further, "beyond an undecided one")) == "passed":
                low = further
            else:
                high = middle
        return low, high

    def _repeat(self, low: float, high: float | None) -> Generator[Step, Run, bool]:
        """The level that is to be reported, and the one above it, from scratch; whether the first still holds."""
        for trial in range(1, self._repeats + 1):
            yield from self._tried(low, trial, "repeat")
            if self._held(low) != "passed":
                return False
            if high is not None and self._held(high) != "invalid":
                yield from self._tried(high, trial, "repeat above")
        return True

    def _holds(self, level: float, why: str) -> Generator[Step, Run, Held]:
        yield from self._tried(level, 0, why)
        return self._held(level)

    def _tried(self, level: float, trial: int, why: str) -> Course:
        if len(self._trials.get(level, ())) <= trial:
            found = yield from self._trial(level, trial, why)
            self._trials.setdefault(level, []).append(found)

    def _trial(self, level: float, trial: int, why: str) -> Judging:
        seen, evidence, late, part = Observed(0, {}), None, 0, 0
        while late < 2 and (part == late or (evidence is not None and self._open(level, seen, evidence))):
            part += 1
            run = yield self._step(level, trial, part, why)
            if run.valid:
                seen += run.saw
                evidence, why = self._weigh(seen), "more utterances"
            else:
                late, why = late + 1, "again, the tester was late"
            self._keep(run, evidence)
            if run.valid and not run.saw.utterances:  # it showed nothing, and would show nothing again
                break
        return Trial("invalid" if late == 2 or evidence is None else evidence.state, evidence, part)

    def _keep(self, run: Run, evidence: Evidence | None) -> None:
        self._curve.append(Point(run.step, run.saw.utterances, run.valid, list(run.reasons), evidence, dict(run.facts)))

    def _open(self, level: float, seen: Observed, evidence: Evidence) -> bool:
        return evidence.more and seen.utterances < self._most(level)

    def _step(self, level: float, trial: int, part: int, why: str) -> Step:
        self._number += 1
        return Step(level, trial, part, self._number - 1, why)

    # ---- what the trials of a level come to

    def _held(self, level: float) -> Held:
        return _merged([trial.held for trial in self._trials[level]])

    def _level(self, level: float) -> Level:
        trials, held = self._trials[level], self._held(level)
        return Level(level, held, trials, _reason(trials, held))

    def _limit(self, levels: Sequence[Level], over: int) -> Limit:
        if self._next is not None:
            return "unfinished"
        if over == len(levels):
            return "range"
        return "tester" if levels[over].held == "invalid" else "service"


def _merged(held: Sequence[Held]) -> Held:
    """Passing means passing every time. Once passed and once failed is undecided: the level lies at the edge."""
    found = set(held)
    if {"passed", "failed"} <= found:
        return "undecided"
    return next((kind for kind in ORDER if kind in found), "passed")


def _over(levels: Sequence[Level]) -> int:
    """How many levels lie up to the highest that held, undecided ones below it among them."""
    broke = next((index for index, found in enumerate(levels) if found.held in ("failed", "invalid")), len(levels))
    return max((index + 1 for index, found in enumerate(levels[:broke]) if found.held == "passed"), default=0)


def _reason(trials: Sequence[Trial], held: Held) -> str:
    passed = sum(trial.held == "passed" for trial in trials)
    if held == "invalid":
        return "the tester was late, so nothing is known of the service"
    if held == "undecided" and passed:
        return f"passed in {passed} of {len(trials)} trials"
    parts = [
        f"{finding.slo}: {finding.why}"
        for trial in trials
        if trial.held == held and trial.evidence
        for finding in trial.evidence.findings
        if finding.state == held
    ]
    return parts[0] if held != "passed" and parts else ""


def _broke(levels: Sequence[Level]) -> Broke | None:
    for level in levels:
        for trial in level.trials if level.held == "failed" else ():
            for finding in trial.evidence.findings if trial.evidence else ():
                if finding.state == "failed":
                    return Broke(finding.slo, level.level, finding.why)
    return None


def _why(levels: Sequence[Level], over: int, limited_by: Limit, unit: str) -> str:
    if limited_by == "unfinished":
        return "the search did not come to its end"
    if over == len(levels):
        return "limited by the range: its highest level held"
    above = levels[over]
    if above.held == "invalid":
        return f"limited by the tester at {_named(above.level, unit)}: {above.why}"
    where = f"{'even ' if above is levels[0] else ''}{_named(above.level, unit)}"
    return f"{where} {'did not hold' if above.held == 'failed' else 'stayed undecided'}: {above.why}"


def _named(level: float, unit: str) -> str:
    return f"{level:g} {'user' if (level, unit) == (1, 'users') else unit}"


def _rounded(rate: float) -> float:
    return float(f"{rate:.{DIGITS}g}")


def at_most(span: Span, repeats: int) -> tuple[int, int]:
    """(levels, trials) at most, as long as no level is undecided and every repeat holds; else there are a few more."""
    levels = len(span.coarse()) + span.bisections
    return levels, levels + 2 * repeats
