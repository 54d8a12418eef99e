"""A bundle that is written by the real writer and told by numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadbench.results.bundle import BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.media import MediaOutput
from loadbench.results.outcome import side
from loadbench.results.record import (
    Channel,
    ChunkTimes,
    ClipFacts,
    Connection,
    Lateness,
    SessionRecord,
    Started,
    Update,
    Utterance,
)  # fmt: skip
from loadbench.results.run import Anchor, Done, RunHeader
from loadbench.results.slo import Slo
from loadbench.results.tick import Tick

MS = 1_000_000
S = 1_000 * MS
ZERO = 1_000 * S
MEDIA_NS = 3_000 * MS
REFERENCES = ("the cat sat on the mat", "a red boat leaves the harbour at noon", "今天天气很好我们去公园")
HYPOTHESES = ("the cat sit on mat", "a red boat leaves the harbour at noon", "今天天气真好我去公园吧")


def header(**changes: Any) -> RunHeader:
    known: dict[str, Any] = {
        "run_id": "0123abcd",
        "anchor": Anchor(monotonic_ns=ZERO, wall_ns=1_760_000_000 * S),
        "plan": {"target": {"url": "ws://127.0.0.1:2700"}, "workload": {"model": "closed", "users": 4}},
        "effective": {"limits_s": {"final_s": 30.0}, "media_start": "on_ready"},
        "profile": {"name": "vosk"},
        "headline_channel": "transcript",
        "channel_stages": {"transcript": "recognition"},
        "headline_metric": "final_from_source_end",
        "slo": [
            Slo(metric="completed", stat="min_share", limit=0.99),
            Slo(metric="final_from_source_end", stat="p95", limit=2.0),
            Slo(metric="wer", stat="max", limit=0.4),
        ],
        "seed": 7,
        "versions": {"loadbench": "0.1"},
        "machine": {"cpus": 2},
        "corpus": {"clips": 3},
    }
    return RunHeader(**(known | changes))


def clip(number: int, **changes: Any) -> ClipFacts:
    known = {"id": f"clip-{number}", "direction": "speech2text", "duration_s": 3.0}
    known |= {"source_lang": "zh" if number == 2 else "en", "target_lang": "en", "transcript": REFERENCES[number]}
    return ClipFacts(**(known | changes))


def session(
    number: int, outcome: str = "ok", *, first_ms: int = 800, final_ms: int = 500, **changes: Any
) -> SessionRecord:
    """A session that began 100 ms after the one before; it says a partial, and then all of its text as final."""
    begun = ZERO + number * 100 * MS
    zero = begun + 20 * MS
    end = zero + MEDIA_NS
    text: str = changes.pop("text", HYPOTHESES[number % 3])
    done = outcome == "ok"
    channel = Channel(first_ns=zero + first_ms * MS, updates=[Update(zero + first_ms * MS, 0, text[:5], 0)])
    if done:
        channel.first_final_ns = channel.last_final_ns = end + final_ms * MS
        channel.updates.append(Update(end + final_ms * MS, 0, text, len(text)))
    utterance = Utterance(
        index=0, clip=changes.pop("clip", f"clip-{number % 3}"), attempt=0, media_ns=MEDIA_NS, media_zero_ns=zero,
        source_end_ns=end, eos_ns=end + MS, done_ns=end + (final_ms + 5) * MS if done else None, done_rule="close",
        chunks_planned=15, chunks_sent=15, media_bytes=96_000, channels={"transcript": channel}, outcome=outcome,
    )  # fmt: skip
    known: dict[str, Any] = {
        "id": f"w1-{number}", "worker": "w1", "user": 0, "stage": "main", "window": "measure", "planned_ns": begun,
        "begun_ns": begun, "ready_ns": zero, "ended_ns": end + (final_ms + 20 if done else 5000) * MS,
        "connections": [Connection(dialled_ns=begun, tcp_ns=begun + MS, opened_ns=begun + 2 * MS)],
        "utterances": [utterance], "outcome": outcome, "side": side(outcome),
        "cause": "" if done else f"{outcome} happened", "lateness": Lateness(chunks=15, max_ns=MS),
        "messages": {"partial": 1, "final": 1},
    }  # fmt: skip
    return SessionRecord(**(known | changes))


def spoken(number: int, **known: Any) -> SessionRecord:
    """A session whose service spoke: the first sound 0.9 s after media zero, and played 0.4 s beyond its end."""
    record = session(number)
    (part,) = record.utterances
    zero, end = part.media_zero_ns or 0, part.source_end_ns or 0
    facts: dict[str, Any] = {"medium": "audio", "format": "s16le", "bytes": 96_000, "pieces": 50, "media_s": 2.0}
    facts |= {"first_byte_ns": zero + 700 * MS, "first_sound_ns": zero + 900 * MS, "playback_end_ns": end + 400 * MS}
    media = MediaOutput(**(facts | known))
    part.channels["speech"] = Channel(first_ns=media.first_ns, media=media)
    return record


SPEAKING: dict[str, Any] = {
    "headline_channel": "speech", "headline_metric": "playback_end_from_source_end",
    "channel_stages": {"transcript": "recognition", "speech": "media"}, "channel_media": {"speech": "audio"},
    "slo": [Slo(metric="first_sound_from_media", stat="p95", limit=0.8, channel="speech")],
}  # fmt: skip


SIGNED: dict[str, Any] = {
    "channel_stages": {"transcript": "recognition", "text": "translation"},
    "slo": [Slo(metric="completed", stat="min_share", limit=0.99)],
}
SIGNED_CLIP = ClipFacts(
    id="clip-0", direction="sign2spoken", duration_s=3.0, source_lang="csl", target_lang="zh",
    gloss=["今天", "天气", "好", "我们", "公园", "去"], text="今天天气很好我们去公园",
)  # fmt: skip


def signed(number: int, outcome: str = "ok") -> SessionRecord:
    """A session that read signs: one gloss of six is missing, one too many, and the text has two errors of eleven."""
    record = session(number, outcome, clip="clip-0", text="今天 天气 很 好 公园 去")
    (part,) = record.utterances
    said = "今天天气真好我去公园" if outcome == "ok" else ""
    updates = [Update((part.source_end_ns or 0) + 500 * MS, 0, said, len(said))] if said else []
    part.channels["text"] = Channel(last_final_ns=updates[0].at_ns if updates else None, updates=updates)
    return record


def started(record: SessionRecord) -> Started:
    return Started(
        id=record.id, worker=record.worker, user=record.user, stage=record.stage, window=record.window,
        planned_ns=record.planned_ns, begun_ns=record.begun_ns, clips=[item.clip for item in record.utterances],
    )  # fmt: skip


def ticks(count: int, gap_ms: float = 1.0) -> list[Tick]:
    return [
        Tick(
            worker="w1", seq=number, at_ns=ZERO + (number + 1) * S, span_ns=S, active=min(4, count - number),
            users_target=4, stage="main", window="measure", started=1, lateness={110 + number % 5: 40, 130: 1},
            lateness_sum_ns=40 * MS // 4, loop_gap_ns=round(gap_ms * MS), cpu_ns=S // 10, run_delay_ns=MS,
        )
        for number in range(count)
    ]  # fmt: skip


def chunk_times(record: SessionRecord) -> ChunkTimes:
    due = np.arange(1, 16, dtype="<i8") * 200 * MS
    zero = record.utterances[0].media_zero_ns or 0
    return ChunkTimes(
        session=record.id, utterance=0, media_zero_ns=zero, due=due.tobytes(), sent=(due + MS).tobytes(),
        unsent=bytes(120),
    )  # fmt: skip


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a bundle of these records and gives its folder; `flying` sessions are begun and never end."""

    def bundle(
        records: list[SessionRecord], *, name: str = "bundle", run: RunHeader | None = None, gap_ms: float = 1.0,
        clips: list[ClipFacts] | None = None, flying: int = 0, finish: bool = True,
        readings: dict[str, float] | None = None,
    ) -> Path:  # fmt: skip
        writer = BundleWriter(tmp_path / name, run or header(), Masks([]))
        for facts in clips if clips is not None else [clip(number) for number in range(3)]:
            writer.append("clips", facts)
        for record in records:
            writer.append("sessions", started(record))
        for number in range(flying):
            writer.append("sessions", started(session(1000 + number)))
        for record in records:
            writer.append("sessions", record)
            if record.utterances:
                writer.append("chunks", chunk_times(record))
        for tick in ticks(8, gap_ms):
            tick.readings = readings or {}
            writer.append("ticks", tick)
        writer.flush()
        if finish:
            writer.finish(Done(ended_ns=ZERO + 9 * S, reason="finished"))
        return tmp_path / name

    return bundle
