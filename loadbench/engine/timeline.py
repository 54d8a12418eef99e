"""How much load is meant to be there at each moment: a level that holds, ramps and jumps, stage by stage. Pure.

The level is users at once or sessions a second. Time is seconds from the beginning of the run; the first stage ramps
from nothing and begins with the warm-up, which comes before its own time.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from loadbench.engine.pipe import Stage

EVER: Final = math.inf
HALF_NS: Final = 0.5e-9  # moments are whole nanoseconds, and their seconds are rounded


class Leg(NamedTuple):
    """A straight piece: the level goes evenly from `low` at `from_s` to `high` at `to_s`."""

    from_s: float
    to_s: float
    low: float
    high: float

    def at(self, at_s: float) -> float:
        """The level at a moment of this leg."""
        if self.low == self.high:
            return self.high
        return self.low + (self.high - self.low) * (at_s - self.from_s) / (self.to_s - self.from_s)

    def when(self, level: float) -> float:
        """When a level between `low` and `high` is passed."""
        return self.from_s + (self.to_s - self.from_s) * (level - self.low) / (self.high - self.low)

    def filled(self, amount: float) -> float:
        """When the area under this leg has come to `amount`; `from_s` for none. The leg must hold so much."""
        if self.low == self.high or amount == 0.0:
            return self.from_s + (amount and amount / self.high)
        slope = (self.high - self.low) / (self.to_s - self.from_s)
        # low t + slope t²/2 = amount, written so that neither a small slope nor a small level cancels.
        return self.from_s + 2 * amount / (self.low + math.sqrt(max(0.0, self.low**2 + 2 * slope * amount)))

    @property
    def area(self) -> float:
        """Level times seconds."""
        mean = (self.low + self.high) / 2
        return mean and mean * (self.to_s - self.from_s)


class Timeline:
    """The stages of a workload, laid end to end behind `warmup_s`. `end_s` is None where the last has no end."""

    def __init__(self, stages: Iterable[Stage], warmup_s: float = 0.0) -> None:
        self.legs: list[Leg] = []
        self._starts: list[tuple[float, str]] = []
        at_s, level = 0.0, 0.0
        for stage in stages:
            lead_s = 0.0 if self._starts else warmup_s
            self._starts.append((at_s + lead_s, stage.name))
            end_s = EVER if stage.seconds is None else at_s + lead_s + stage.seconds
            top_s = min(end_s, at_s + stage.ramp_s)
            if top_s > at_s:
                whole = Leg(at_s, at_s + stage.ramp_s, level, stage.level)
                self.legs.append(Leg(at_s, top_s, level, whole.at(top_s)))
            if end_s > top_s:
                self.legs.append(Leg(top_s, end_s, stage.level, stage.level))
            at_s, level = end_s, self.legs[-1].high if self.legs else 0.0
        self.end_s = None if at_s == EVER else at_s

    def stage(self, at_s: float) -> str:
        """The name of the stage that a moment belongs to; the warm-up's is that of the first."""
        name = self._starts[0][1]
        for start_s, other in self._starts:
            if start_s <= at_s + HALF_NS:
                name = other
        return name

    @property
    def top(self) -> float:
        """The highest level of all."""
        return max((max(leg.low, leg.high) for leg in self.legs), default=0.0)

    @property
    def ramped_s(self) -> float:
        """When the first stage has reached its level."""
        first = self.legs[0] if self.legs else Leg(0.0, 0.0, 0.0, 0.0)
        return first.to_s if first.low != first.high else first.from_s

    def users(self, at_s: float) -> int:
        """How many users are meant to be there: user k is while the level is above k."""
        for leg in self.legs:
            if leg.from_s <= at_s < leg.to_s:
                level = leg.at(at_s)
                rising = leg.high > leg.low
                return min(math.ceil(leg.high), math.floor(level) + 1) if rising else math.ceil(level)
        return 0

    def stays(self, user: int) -> Iterator[tuple[float, float]]:
        """When user number `user` comes, and when they leave again, each time."""
        came_s: float | None = None
        for leg in self.legs:
            if came_s is None and max(leg.low, leg.high) > user:
                came_s = leg.from_s if leg.low > user else leg.when(user)
            if came_s is not None and leg.high <= user:
                yield came_s, leg.from_s if leg.low <= user else leg.when(user)
                came_s = None
        if came_s is not None:
            yield came_s, self.legs[-1].to_s

    def arrivals(self, amounts: Iterable[float]) -> Iterator[float]:
        """The moments at which so many sessions have been due; `amounts` must not fall. Ends with the timeline."""
        legs = iter(self.legs)
        leg, before = next(legs, None), 0.0
        for amount in amounts:
            while leg is not None and amount - before >= leg.area:
                before += leg.area
                leg = next(legs, None)
            if leg is None:
                return
            yield leg.filled(amount - before)
