"""What figures need of a bundle beyond its summary: a point for each utterance, the tester's time, some sessions."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from loadbench.analysis.response import Observation, first_metric, medium_of, observations
from loadbench.results.bundle import Bundle
from loadbench.results.outcome import ending
from loadbench.results.record import ChunkTimes, SessionRecord, Utterance
from loadbench.results.run import RunHeader
from loadbench.results.tick import LATENESS_EDGES_NS, Tick

MOST_TIMELINES: Final = 50
MOST_SECONDS: Final = 300
WORST: Final = 1 << 62  # more than any span: one that never answered is looked at first


@dataclass(frozen=True, slots=True)
class Point:
    """One measured utterance: when its session began, and what it says about the first output and the headline."""

    session: str
    begun_ns: int
    outcome: str
    finished: bool
    first: Observation
    final: Observation


@dataclass
class Second:
    """One stretch of the tester's time, all workers together; spans in milliseconds, None where no chunk was sent."""

    at_s: float
    active: int = 0
    target: int = 0
    gap_ms: float = 0.0
    lateness: Counter[int] = field(default_factory=Counter)

    @property
    def lateness_ms(self) -> float | None:
        """The 99th percentile, as an upper edge."""
        if not self.lateness:
            return None
        buckets = sorted(self.lateness)
        below = np.cumsum([self.lateness[bucket] for bucket in buckets])
        bucket = buckets[int(np.searchsorted(below, below[-1] * 0.99))]
        return LATENESS_EDGES_NS[min(bucket, len(LATENESS_EDGES_NS) - 1)] / 1e6


def headline_medium(header: RunHeader) -> str | None:
    """The medium of the headline channel; None for texts."""
    return medium_of(header.channel_media, header.headline_channel)


def first(header: RunHeader) -> str:
    """The metric of the first output on the headline channel."""
    return first_metric(headline_medium(header))


def points(bundle: Bundle) -> list[Point]:
    """A point for each utterance of the measure window; a session that ended before its first one has one as well."""
    header = bundle.header
    return [
        _point(header, record, utterance)
        for record in bundle.records()
        if record.window == "measure"
        for utterance in record.utterances or [_unborn()]
    ]


def zero_ns(bundle: Bundle) -> int:
    """When the first session began; figures count from there. The run's anchor where none did."""
    return min((start.begun_ns for start in bundle.started()), default=bundle.header.anchor.monotonic_ns)


def seconds(bundle: Bundle, zero: int) -> list[Second]:
    """The tester's time, in at most 300 stretches."""
    ticks = list(bundle.ticks())
    if not ticks:
        return []
    last_s = max(1.0, max(tick.at_ns - zero for tick in ticks) / 1e9)
    width_s = max(1.0, last_s / MOST_SECONDS)
    found: dict[int, Second] = {}
    workers: dict[int, dict[str, Tick]] = {}
    for tick in ticks:
        number = max(0, int((tick.at_ns - zero) / 1e9 / width_s))
        second = found.setdefault(number, Second(at_s=number * width_s))
        workers.setdefault(number, {})[tick.worker] = tick
        second.lateness.update(tick.lateness)
        second.gap_ms = max(second.gap_ms, tick.loop_gap_ns / 1e6)
    for number, second in found.items():
        second.active = sum(tick.active for tick in workers[number].values())
        second.target = sum(tick.users_target for tick in workers[number].values())
    return [found[number] for number in sorted(found)]


def timelines(bundle: Bundle) -> list[SessionRecord]:
    """At most 50 measured sessions, those that failed and the slowest before others, in the order of their start."""
    header = bundle.header
    measured = (record for record in bundle.records() if record.window == "measure")
    worst = heapq.nlargest(MOST_TIMELINES, measured, key=lambda record: (_weight(header, record), record.id))
    return sorted(worst, key=lambda record: (record.begun_ns, record.id))


def chunk_times(bundle: Bundle, sessions: set[str]) -> dict[tuple[str, int], ChunkTimes]:
    """The chunk times of these sessions, by session and utterance; not every session's were kept."""
    return {(times.session, times.utterance): times for times in bundle.chunks() if times.session in sessions}


def sent_s(times: ChunkTimes) -> Iterator[float]:
    """When each chunk was handed over, seconds from media zero."""
    return (float(span) / 1e9 for span in np.frombuffer(times.sent, dtype="<i8"))


def _point(header: RunHeader, record: SessionRecord, utterance: Utterance) -> Point:
    outcome = utterance.outcome or record.outcome
    channel = utterance.channels.get(header.headline_channel)
    seen = observations(utterance, record, channel, headline_medium(header))
    return Point(
        session=record.id,
        begun_ns=record.begun_ns,
        outcome=outcome,
        finished=ending(outcome) == "finished",
        first=seen[first(header)],
        final=seen[header.headline_metric],
    )


def _unborn() -> Utterance:
    """What a session is counted as that ended before its first utterance: it had promised all of it."""
    return Utterance(index=0, clip="", attempt=0, media_ns=0, onset_ns=0, activity_end_ns=0)


def _weight(header: RunHeader, record: SessionRecord) -> int:
    if record.outcome != "ok":
        return WORST
    spans = (_point(header, record, utterance).final.span_ns for utterance in record.utterances)
    return max((span for span in spans if span is not None), default=0)
