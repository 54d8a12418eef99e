"""Where a response time comes from: split into parts that follow each other and add up to the whole, to the nanosecond.

From its start event to its stop event an utterance waits for

- `opening`: the connection and the service to be ready, where the time counts from the plan;
- `source`: the speech or signing that the output rests on;
- `chunk`: the chunk that holds the last sample of that to be full, since nothing leaves before it is due;
- `tester`: our own lateness: of the session's start, of that chunk, and the gap of our loop that the answer met;
- `uplink`: the bytes before that chunk and its own to be taken, and half a round trip;
- `service`: queue and computation, by what the service itself says;
- `endpointing`: the decision that an unchanged text is final (a pause, a tick);
- `downlink`: half a round trip;
- `rest`: all that nobody can tell apart.

A part without evidence is None, and its time is in the rest. A round trip is taken to be the opening of the TCP
connection (name resolution included), so each half is an estimate; bytes in the system's own buffers are not seen.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from loadbench.analysis.response import METRICS, applicable, events, first_metric, medium_of
from loadbench.results.outcome import ending
from loadbench.results.record import Channel, ChunkTimes, Segment, SessionRecord, Utterance
from loadbench.results.run import RunHeader
from loadbench.results.tick import Tick

PARTS: Final = ("opening", "source", "chunk", "tester", "uplink", "service", "endpointing", "downlink", "rest")
MET_NS: Final = 5_000_000  # output that is read so soon after a gap of our loop may have come at any time within it
MOST: Final = 20_000  # utterances whose chunk times are looked at
FINALS: Final = frozenset({"last final", "first final"})

Gaps = Mapping[str, list[tuple[int, int]]]  # of a worker's loop, by the worker


class Split(NamedTuple):
    """A response time in its parts, nanoseconds; `evidence` says of each known one where it comes from."""

    whole_ns: int
    parts: dict[str, int | None]
    evidence: dict[str, str]


class Chunks(NamedTuple):
    """The chunks of an utterance: when each was due and left, run clock, and what it found unsent."""

    due_ns: "np.ndarray[Any, np.dtype[np.int64]]"
    sent_ns: "np.ndarray[Any, np.dtype[np.int64]]"
    unsent: "np.ndarray[Any, np.dtype[np.int64]]"
    begun_ns: int | None

    @classmethod
    def of(cls, times: ChunkTimes) -> "Chunks | None":
        """As recorded; None where no chunk left, or the columns do not fit each other."""
        due, sent, unsent = (np.frombuffer(part, dtype="<i8") for part in (times.due, times.sent, times.unsent))
        if not len(due) or not len(due) == len(sent) == len(unsent):
            return None
        return cls(due + times.media_zero_ns, sent + times.media_zero_ns, unsent, times.begun_ns)

    def drain_ns(self, number: int, chunk_bytes: float) -> int | None:
        """How long the bytes before this chunk and its own took to be taken; 0 where nothing was held back.

        By the rate at which bytes were taken while some were held back; None where that was never seen.
        """
        if not self.unsent[number]:
            return 0
        held = (self.unsent[1:] > 0) & (self.unsent[:-1] > 0)
        spent_ns = int(np.diff(self.sent_ns)[held].sum())
        taken = float((chunk_bytes - np.diff(self.unsent)[held]).sum())
        if spent_ns <= 0 or taken <= 0:
            return None
        return round((float(self.unsent[number]) + chunk_bytes) * spent_ns / taken)


class _Cuts:
    """Moments between start and stop, put down one after the other from both ends; none can go behind another."""

    def __init__(self, start_ns: int, stop_ns: int) -> None:
        self.low, self.high = start_ns, stop_ns
        self.parts: dict[str, int | None] = dict.fromkeys(PARTS)
        self.evidence: dict[str, str] = {}

    def until(self, at_ns: int, part: str, why: str) -> None:
        """From where we are up to this moment it was `part`."""
        at_ns = min(max(at_ns, self.low), self.high)
        self._add(part, at_ns - self.low, why)
        self.low = at_ns

    def since(self, at_ns: int, part: str, why: str) -> None:
        """From this moment up to where we are, from the end, it was `part`."""
        at_ns = max(min(at_ns, self.high), self.low)
        self._add(part, self.high - at_ns, why)
        self.high = at_ns

    def _add(self, part: str, span_ns: int, why: str) -> None:
        self.parts[part] = (self.parts[part] or 0) + span_ns
        if span_ns or part not in self.evidence:
            known = self.evidence.get(part, "")
            self.evidence[part] = f"{known}; {why}" if known and span_ns and why not in known else known or why


def split(
    utterance: Utterance,
    record: SessionRecord,
    channel: Channel,
    metric: str,
    chunks: Chunks | None = None,
    gaps: Iterable[tuple[int, int]] = (),
    known: Mapping[str, int | None] | None = None,
) -> Split | None:
    """One response time in its parts; None where it is not known. A negative one is all rest: it came too early.

    `gaps` are those of the worker's loop (from, to); without `chunks` what depends on them is in the rest. `known` are
    the utterance's events, for those who have them already.
    """
    known = events(utterance, record, channel) if known is None else known
    start_ns, stop_ns = known[METRICS[metric].start], known[METRICS[metric].stop]
    zero_ns = utterance.media_zero_ns
    if start_ns is None or stop_ns is None or zero_ns is None:
        return None
    whole_ns = stop_ns - start_ns
    if whole_ns < 0:
        return Split(whole_ns, dict.fromkeys(PARTS) | {"rest": whole_ns}, {})
    cuts = _Cuts(start_ns, stop_ns)
    half_ns = _half_trip(record)
    for from_ns, to_ns in gaps:
        if from_ns < stop_ns <= to_ns + MET_NS:
            cuts.since(from_ns, "tester", "gap of the loop that the answer met, at most")
    if half_ns is not None:
        cuts.since(cuts.high - half_ns, "downlink", "half of the TCP opening")
    if METRICS[metric].start == "planned end":
        cuts.until(start_ns + record.begun_ns - record.planned_ns, "tester", "late start of the session")
        cuts.until(start_ns + zero_ns - record.planned_ns, "opening", "media zero behind the plan")
    segment = _segment(channel, metric, stop_ns)
    needed_ns = _needed(utterance, metric, segment, zero_ns, stop_ns)
    if METRICS[metric].start in ("media zero", "onset"):
        said = segment is not None and segment.end_s is not None
        cuts.until(needed_ns, "source", "the service's own end of the segment" if said else "onset")
    if chunks is not None:
        _sent(cuts, utterance, record, chunks, needed_ns, half_ns)
    _answered(cuts, utterance, record, segment, needed_ns, half_ns, final=METRICS[metric].stop in FINALS)
    told_ns = sum(span for span in cuts.parts.values() if span is not None)
    return Split(whole_ns, cuts.parts | {"rest": whole_ns - told_ns}, cuts.evidence)


def _half_trip(record: SessionRecord) -> int | None:
    opened = [link.tcp_ns - link.dialled_ns for link in record.connections if link.tcp_ns is not None]
    return min(opened) // 2 if opened else None


def _segment(channel: Channel, metric: str, stop_ns: int) -> Segment | None:
    """The segment whose text the output is; None where it cannot be told."""
    if METRICS[metric].stop in FINALS:
        return next((part for part in reversed(channel.segments) if part.final_ns == stop_ns), None)
    # A segment that has grown since bears the end of what it holds now, not of what came first.
    return next((part for part in channel.segments if part.first_ns == part.changed_ns == stop_ns), None)


def _needed(utterance: Utterance, metric: str, segment: Segment | None, zero_ns: int, stop_ns: int) -> int:
    """The moment in media time up to which the output rests on the source, at least."""
    begins = {
        "media zero": 0,
        "onset": utterance.onset_ns or 0,
        "activity end": utterance.activity_end_ns or 0,
    }.get(METRICS[metric].start, utterance.media_ns)
    rests_on = begins if utterance.onset_ns is None else max(begins, utterance.onset_ns)
    if segment is not None and segment.end_s is not None and zero_ns + segment.end_s * 1e9 <= stop_ns:
        rests_on = max(begins, round(segment.end_s * 1e9))
    return zero_ns + rests_on


def _sent(
    cuts: _Cuts, utterance: Utterance, record: SessionRecord, chunks: Chunks, needed_ns: int, half_ns: int | None
) -> None:
    """Up to when what was needed had left us and was on the far side."""
    number = min(int(np.searchsorted(chunks.due_ns, needed_ns)), len(chunks.due_ns) - 1)
    due_ns, sent_ns = int(chunks.due_ns[number]), int(chunks.sent_ns[number])
    cuts.until(due_ns, "chunk", "due time of the chunk that holds the last sample")
    if chunks.begun_ns is not None and chunks.begun_ns > due_ns:
        cuts.until(chunks.begun_ns, "opening", "the service was not ready when the chunk was due")
    cuts.until(sent_ns, "tester", "lateness of that chunk")
    drained_ns = chunks.drain_ns(number, utterance.media_bytes / max(1, utterance.chunks_sent))
    why = "unsent bytes and the rate at which they went" if drained_ns else "nothing was unsent"
    if drained_ns is None:
        drained_ns, why = record.lateness.blocked_ns, "time in which the socket took no more, at most"
    cuts.until(sent_ns + drained_ns, "uplink", why)
    if half_ns is not None:
        cuts.until(sent_ns + drained_ns + half_ns, "uplink", "half of the TCP opening")


def _answered(
    cuts: _Cuts,
    utterance: Utterance,
    record: SessionRecord,
    segment: Segment | None,
    needed_ns: int,
    half_ns: int | None,
    *,
    final: bool,
) -> None:
    """What the service did with it, as far as it says so."""
    zero_ns = utterance.media_zero_ns or 0
    position_ms = (needed_ns - zero_ns) // 1_000_000
    said = [row for row in utterance.clock if row.processed_ms is not None]
    heard_ns = next((row.at_ns for row in said if (row.processed_ms or 0) >= position_ms), None)
    all_heard = heard_ns is not None or not said
    if final and segment is not None and not segment.promoted and all_heard:
        why = "the text stood unchanged" + (", and all was heard" if said else "")
        cuts.since(max(segment.changed_ns, heard_ns or 0), "endpointing", why)
    if said:
        cuts.until(cuts.high, "service", "the service's own media clock")
    elif segment is not None and segment.end_s is not None:
        cuts.until(cuts.high, "service", "the service's own end of the segment")
    elif utterance.acks is not None and utterance.acks.echoed:
        late_ns = record.lateness.sum_ns // max(1, record.lateness.chunks)
        trip_ns = utterance.acks.trip_sum_ns // utterance.acks.echoed - late_ns - 2 * (half_ns or 0)
        cuts.until(cuts.low + max(0, trip_ns), "service", "mean trip of acknowledged chunks")


class Attribution:
    """The response times of the headline channel that were added, in their parts, by metric and stage.

    `chunks` are read once, the first 20,000 utterances of them; `ticks` bring the gaps of each worker's loop.
    """

    def __init__(self, header: RunHeader, chunks: Iterable[ChunkTimes], ticks: Iterable[Tick]) -> None:
        self._channel = header.headline_channel
        medium = medium_of(header.channel_media, self._channel)
        wanted = (first_metric(medium), "final_from_activity_end", "final_from_source_end", header.headline_metric)
        self._metrics = [name for name in dict.fromkeys(wanted) if name in applicable(medium)]
        self._chunks = {(times.session, times.utterance): times for times, _ in zip(chunks, range(MOST), strict=False)}
        self._gaps: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for tick in ticks:
            self._gaps[tick.worker] += tick.gaps
        self._sums: dict[str, defaultdict[str, _Sums]] = {name: defaultdict(_Sums) for name in self._metrics}

    def add(self, record: SessionRecord) -> None:
        """Take the utterances of a session apart; what was not answered is only counted."""
        for utterance in record.utterances:
            chunks = self._chunks_of(record, utterance)
            gaps = self._gaps_of(record)
            channel = utterance.channels.get(self._channel) or Channel()
            finished = ending(utterance.outcome or record.outcome) == "finished"
            known = events(utterance, record, channel)
            for metric, sums in self._sums.items():
                found = split(utterance, record, channel, metric, chunks, gaps, known) if finished else None
                sums[record.stage].add(found)

    def largest(self, record: SessionRecord, metric: str) -> str | None:
        """The part that took most of a session's slowest answer in this metric; None where there is none."""
        splits = [
            found
            for utterance in record.utterances
            for channel in [utterance.channels.get(self._channel)]
            if channel is not None
            for found in [
                split(utterance, record, channel, metric, self._chunks_of(record, utterance), self._gaps_of(record))
            ]
            if found is not None and found.whole_ns > 0
        ]
        if not splits:
            return None
        worst = max(splits, key=lambda one: one.whole_ns)
        return max(PARTS, key=lambda part: worst.parts[part] or 0)

    def summary(self) -> dict[str, Any]:
        """As published: by channel and metric, over all stages and by stage."""
        return {
            self._channel: {
                metric: {
                    "from": METRICS[metric].start,
                    "to": METRICS[metric].stop,
                    **_Sums.of(sums.values()).summary(),
                    "stages": {stage: part.summary() for stage, part in sums.items()},
                }
                for metric, sums in self._sums.items()
            }
        }

    def _chunks_of(self, record: SessionRecord, utterance: Utterance) -> Chunks | None:
        times = self._chunks.get((record.id, utterance.index))
        return None if times is None else Chunks.of(times)

    def _gaps_of(self, record: SessionRecord) -> list[tuple[int, int]]:
        """A session that met no gap needs not look for one."""
        return self._gaps[record.worker] if record.tainted else []


class _Sums:
    """Splits of one metric, added up. Those below zero came too early, and are in no share."""

    def __init__(self) -> None:
        self.unanswered = self.early = 0
        self.wholes = array("q")
        self.parts = {part: array("q") for part in PARTS}
        self.evidence: dict[str, Counter[str]] = {part: Counter() for part in PARTS}

    @classmethod
    def of(cls, parts: Iterable["_Sums"]) -> "_Sums":
        """All of these together."""
        whole = cls()
        for each in parts:
            whole.unanswered += each.unanswered
            whole.early += each.early
            whole.wholes += each.wholes
            for name in PARTS:
                whole.parts[name] += each.parts[name]
                whole.evidence[name] += each.evidence[name]
        return whole

    def add(self, found: Split | None) -> None:
        """One utterance; None: it has no such time."""
        if found is None:
            self.unanswered += 1
        elif found.whole_ns < 0:
            self.early += 1
        else:
            self.wholes.append(found.whole_ns)
            for part, span in found.parts.items():
                if span is not None:
                    self.parts[part].append(span)
            for part, why in found.evidence.items():
                self.evidence[part][why] += 1

    def summary(self) -> dict[str, Any]:
        """`n` answered; `share` of a part is its sum over that of all wholes, `n` in how many it is known."""
        total = sum(self.wholes)
        return {
            "n": len(self.wholes),
            "early": self.early,
            "unanswered": self.unanswered,
            "p50_s": _median_s(self.wholes),
            "sum_s": total / 1e9,
            "parts": {
                part: {
                    "n": len(spans),
                    "p50_s": _median_s(spans),
                    "share": sum(spans) / total if total and len(spans) else None,
                    "evidence": dict(self.evidence[part]),
                }
                for part, spans in self.parts.items()
            },
        }


def _median_s(spans: "array[int]") -> float | None:
    """An observed value, by nearest rank."""
    if not len(spans):
        return None
    return int(np.quantile(np.array(spans, dtype=np.int64), 0.5, method="inverted_cdf")) / 1e9
