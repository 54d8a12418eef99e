"""Whether an objective is beyond hope: what is still to come could not reasonably save it.

Asked every second of a run, so it is stricter than a verdict at the end: sure to 99.9 %, and not before
20 were at risk.
"""

from collections.abc import Iterable
from typing import Final

from loadbench.analysis import binomial
from loadbench.analysis.evidence import QUALITY, allowed, counted
from loadbench.analysis.judge import Judge
from loadbench.results.slo import Slo

CONFIDENCE: Final = 0.999
LEAST: Final = 20  # at risk; a service may begin with a bad second


def broken(judge: Judge, objectives: Iterable[Slo], channel: str) -> str | None:
    """A sentence on the first objective that cannot be met any more; None while all can. `channel` is the headline.

    Of response times and completion only: words are scored when a run is over.
    """
    for slo in objectives:
        if slo.metric in QUALITY:
            continue
        misses, n = counted(judge, slo, channel)
        share = allowed(slo)
        if n >= LEAST and misses > share * n and binomial.at_least(misses, n, share) <= 1 - CONFIDENCE:
            what = "failed" if slo.metric == "completed" else f"took longer than {slo.limit:g} s or failed"
            return f"{slo.name} cannot be met any more: {misses} of {n} {what}, and {share:.3g} of all may"
    return None
