"""Bundles with the few facts that a scoring test is about."""

from pathlib import Path
from typing import Any

from loadbench.results.bundle import Bundle, BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.outcome import side
from loadbench.results.record import Channel, ClipFacts, SessionRecord, Started, Update, Utterance
from loadbench.results.run import Anchor, Done, RunHeader


def clip(name: str, **changes: Any) -> ClipFacts:
    facts = {"direction": "speech2text", "duration_s": 1.0, "source_lang": "en", "target_lang": "en"}
    return ClipFacts(id=name, **(facts | changes))


def said(text: str, *, settled: bool = True) -> Channel:
    return Channel(updates=[Update(5, 0, text, len(text) if settled else 0)] if text else [])


def utterance(
    clip_id: str, outcome: str | None = "ok", *, source_end_ns: int | None = 5, **channels: Channel
) -> Utterance:
    return Utterance(
        index=0, clip=clip_id, attempt=0, media_ns=5, source_end_ns=source_end_ns, channels=channels, outcome=outcome
    )


def session(name: str, outcome: str, *utterances: Utterance, ended_ns: int = 9, **changes: Any) -> SessionRecord:
    facts: dict[str, Any] = {
        "worker": "w1",
        "user": 0,
        "stage": "main",
        "window": "measure",
        "planned_ns": 0,
        "begun_ns": 0,
    }
    return SessionRecord(
        id=name,
        outcome=outcome,
        side=side(outcome),
        ended_ns=ended_ns,
        utterances=list(utterances),
        **(facts | changes),
    )


def bundle(
    folder: Path,
    clips: list[ClipFacts],
    sessions: list[tuple[list[str], SessionRecord | str]],
    stages: dict[str, str] | None = None,
) -> Bundle:
    """`sessions`: the clips that each was to carry, and its record, or its name where it never ended."""
    header = RunHeader(
        run_id="r1",
        anchor=Anchor(monotonic_ns=0, wall_ns=0),
        plan={},
        headline_channel="transcript",
        channel_stages=stages or {"transcript": "recognition"},
        headline_metric="final_from_source_end",
        slo=[],
        seed=7,
    )
    writer = BundleWriter(folder / "bundle", header, Masks([]))
    for facts in clips:
        writer.append("clips", facts)
    for planned, record in sessions:
        name = record if isinstance(record, str) else record.id
        window = "measure" if isinstance(record, str) else record.window
        start = Started(
            id=name, worker="w1", user=0, stage="main", window=window, planned_ns=0, begun_ns=0, clips=planned
        )
        writer.append("sessions", start)
        if isinstance(record, SessionRecord):
            writer.append("sessions", record)
    writer.finish(Done(ended_ns=99, reason="finished"))
    return Bundle(folder / "bundle")
