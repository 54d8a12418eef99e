"""What was asked of the service, what came of it, and whether the tester itself can be believed."""

from typing import Final, Literal

import msgspec

Bound = Literal["exact", "at_least", "never"]
State = Literal["VALID", "DEGRADED", "INVALID"]

# What scoring finds of a channel, and the statistics that an objective may have of it.
SCORES: Final = {"wer": ("max",), "score": ("min",), "bleu": ("min",), "chrf": ("min",), "rouge_l": ("min",)}


class Slo(msgspec.Struct, kw_only=True, frozen=True):
    """One objective. `metric` is a response time, `completed`, `erasure`, or one of `SCORES`; `stat` is p50, p90, p95,
    p99, max, min_share, min, or max (the largest allowed value of a rate); `limit` in seconds, points or as a share.
    """

    metric: str
    stat: str
    limit: float
    channel: str | None = None
    stage: str | None = None

    @property
    def name(self) -> str:
        """As people write it, for instance `final_from_source_end.p95_s`."""
        suffix = "_s" if self.stat.startswith("p") else ""
        where = f"@{self.stage}" if self.stage else ""
        return f"{self.metric}.{self.stat}{suffix}{where}"


class SloResult(msgspec.Struct, kw_only=True):
    """`value` is None where there was no data, and then `met` is False and `why` says so."""

    name: str
    met: bool
    limit: float
    value: float | None
    bound: Bound = "exact"
    why: str = ""


class Quantile(msgspec.Struct, kw_only=True):
    """An observed value (inverted CDF), with the 95 % interval from order statistics.

    `never`: the rank falls on a session that did not answer, so there is no value. `at_least`: it falls on one that
    was cut, so the value is its age. `reliable` is False where `n` is too small for the interval to close.
    """

    value_s: float | None
    bound: Bound
    n: int
    low_s: float | None
    high_s: float | None
    reliable: bool


class Thresholds(msgspec.Struct, kw_only=True, frozen=True):
    """When the tester is no longer to be believed. Spans in milliseconds, shares as fractions."""

    taint_gap_ms: float = 50.0
    invalid_gap_ms: float = 1000.0
    invalid_tainted_share: float = 0.01
    invalid_lateness_p99_ms: float = 25.0
    degraded_lateness_p99_ms: float = 5.0
    degraded_run_delay_share: float = 0.02


class Verdict(msgspec.Struct, kw_only=True):
    """On the tester, never on the service."""

    state: State
    reasons: list[str]
    figures: dict[str, float | None] = {}
