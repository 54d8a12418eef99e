"""What is of the right type and still cannot be: such a value comes from damage, or from a program of another age."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from loadbench.results.outcome import OUTCOMES
from loadbench.results.record import CanaryRecord, SessionRecord
from loadbench.results.run import RunHeader
from loadbench.results.tick import LATENESS_EDGES_NS, Tick

LARGEST: Final = 1 << 61  # nanoseconds: 73 years; the difference of two still fits into 64 bits
DEEPEST: Final = 100  # levels of a header, which is written out again
_LONG_NUMBER: Final = re.compile(rb"\d{19}")


def oddity(item: Any, raw: bytes) -> str:
    """What is wrong with a record that was read from `raw`; "" for one that may be believed."""
    if _LONG_NUMBER.search(raw) and any(abs(number) > LARGEST for number in _integers(msgspec.to_builtins(item))):
        return "it holds a number that no clock and no count can have come to"
    if isinstance(item, SessionRecord | CanaryRecord):
        outcomes = [item.outcome]
        if isinstance(item, SessionRecord):
            outcomes += [utterance.outcome for utterance in item.utterances if utterance.outcome is not None]
        return _unknown(outcomes)
    if isinstance(item, Tick):
        return _unknown(item.ended) or _no_buckets(item.lateness) or _no_buckets(item.start_lateness)
    if isinstance(item, RunHeader) and _depth(item.plan, item.effective, item.profile, item.corpus, item.machine):
        return "it is nested too deeply"
    return ""


def _unknown(outcomes: Iterable[str]) -> str:
    return next((f"there is no outcome {name!r}" for name in outcomes if name not in OUTCOMES), "")


def _no_buckets(buckets: dict[int, int]) -> str:
    """Bucket numbers go to one beyond the last edge."""
    for bucket, count in buckets.items():
        if not 0 <= bucket <= len(LATENESS_EDGES_NS):
            return f"there is no lateness bucket {bucket}"
        if count < 0:
            return f"lateness bucket {bucket} counts {count}"
    return ""


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _integers(item)


def _depth(*values: Any) -> bool:
    """Whether anything lies deeper than `DEEPEST`."""
    layer: list[Any] = list(values)
    for _ in range(DEEPEST):
        layer = [
            item
            for value in layer
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        if not layer:
            return False
    return True
