"""Records with the few facts that a test is about; times in seconds, media zero at 100 s of the run clock."""

from collections.abc import Iterable
from typing import Any

from loadbench.results.outcome import side
from loadbench.results.record import Channel, Connection, SessionRecord, Started, Update, Utterance
from loadbench.results.run import Anchor, RunHeader
from loadbench.results.slo import Slo
from loadbench.results.tick import LATENESS_EDGES_NS, Tick

ZERO_S = 100.0


def ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


def at(seconds: float | None) -> int | None:
    """A point in media time on the run clock."""
    return None if seconds is None else round((ZERO_S + seconds) * 1e9)


def header(*slo: Slo, metric: str = "final_from_source_end", **changes: Any) -> RunHeader:
    facts: dict[str, Any] = {
        "run_id": "r1",
        "anchor": Anchor(monotonic_ns=0, wall_ns=1_700_000_000_000_000_000),
        "plan": {},
        "headline_channel": "transcript",
        "channel_stages": {"transcript": "recognition"},
        "headline_metric": metric,
        "slo": list(slo),
        "seed": 7,
    }
    return RunHeader(**(facts | changes))


def channel(first: float | None = None, first_final: float | None = None, last_final: float | None = None) -> Channel:
    return Channel(first_ns=at(first), first_final_ns=at(first_final), last_final_ns=at(last_final))


def updates(said: Iterable[tuple[int, str]]) -> list[Update]:
    """What a channel says whose whole text is each of these, from when on."""
    found, shown = [], ""
    for at_ns, text in said:
        keep = next(
            (k for k, (a, b) in enumerate(zip(shown, text, strict=False)) if a != b), min(len(shown), len(text))
        )
        found.append(Update(at_ns, keep, text[keep:], 0))
        shown = text
    return found


def utterance(
    *,
    media_s: float = 1.0,
    channels: dict[str, Channel] | None = None,
    born: bool = True,
    eos: float | None = None,
    done: float | None = None,
    onset: float | None = None,
    activity_end: float | None = None,
    **changes: Any,
) -> Utterance:
    facts: dict[str, Any] = {
        "index": 0,
        "clip": "a",
        "attempt": 0,
        "media_ns": ns(media_s),
        "media_zero_ns": at(0) if born else None,
        "source_end_ns": at(media_s) if born else None,
        "eos_ns": at(eos),
        "done_ns": at(done),
        "onset_ns": ns(onset),
        "activity_end_ns": ns(activity_end),
        "channels": channels or {},
    }
    return Utterance(**(facts | changes))


def record(name: str, outcome: str = "ok", *utterances: Utterance, ended: float = 9.0, **changes: Any) -> SessionRecord:
    facts: dict[str, Any] = {
        "id": name,
        "worker": "w1",
        "user": 0,
        "stage": "main",
        "window": "measure",
        "planned_ns": at(-0.5),
        "begun_ns": at(-0.5),
        "ready_ns": at(0),
        "ended_ns": at(ended),
        "connections": [Connection(dialled_ns=at(-0.5), tcp_ns=at(-0.4), opened_ns=at(-0.3))],
        "utterances": list(utterances),
        "outcome": outcome,
        "side": side(outcome),
    }
    return SessionRecord(**(facts | changes))


def answered(name: str, final: float, *, first: float = 0.5, media_s: float = 1.0, **changes: Any) -> SessionRecord:
    """A session that finished, `final` seconds after the end of its media."""
    end = media_s + final
    text = {"transcript": channel(first, end, end)}
    return record(name, "ok", utterance(media_s=media_s, channels=text, outcome="ok"), ended=end + 0.1, **changes)


def unanswered(
    name: str, outcome: str, *, ended: float, media_s: float = 1.0, first: float | None = None
) -> SessionRecord:
    """A session that failed or was cut `ended` seconds after media zero."""
    text = {} if first is None else {"transcript": channel(first)}
    return record(name, outcome, utterance(media_s=media_s, channels=text, outcome=outcome), ended=ended)


def started(name: str, **changes: Any) -> Started:
    facts: dict[str, Any] = {
        "id": name,
        "worker": "w1",
        "user": 0,
        "stage": "main",
        "window": "measure",
        "planned_ns": at(-0.5),
        "begun_ns": at(-0.5),
        "clips": ["a"],
    }
    return Started(**(facts | changes))


def bucket(ms: float) -> int:
    """The index of the lateness bucket that holds a span."""
    return next((i for i, edge in enumerate(LATENESS_EDGES_NS) if ms * 1e6 <= edge), len(LATENESS_EDGES_NS))


def tick(seq: int = 0, **changes: Any) -> Tick:
    """A healthy second: a hundred chunks 0.1 ms late."""
    facts: dict[str, Any] = {
        "worker": "w1",
        "seq": seq,
        "at_ns": at(seq),
        "span_ns": 1_000_000_000,
        "active": 1,
        "users_target": 1,
        "stage": "main",
        "window": "measure",
        "started": 0,
        "lateness": {bucket(0.1): 100},
        "loop_gap_ns": 1_000_000,
        "cpu_ns": 100_000_000,
        "run_delay_ns": 0,
    }
    return Tick(**(facts | changes))
