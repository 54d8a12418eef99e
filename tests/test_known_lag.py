"""Known lag in, known lag out: a service that is 250 ms later has lags that are longer by 250 ms, in virtual time."""

import asyncio
import json
from pathlib import Path

import pytest

from loadbench.analysis import lag
from loadbench.analysis.lagging import Emitted, Lagging, emitted
from loadbench.analysis.response import responses
from loadbench.results.record import ClipFacts, SessionRecord
from loadbench.transports import memory
from tests.analysis.records import header
from tests.engine.stage import EOF, Script, play, workload

pytestmark = pytest.mark.looptime

WORDS = ("the", "red", "boat", "leaves", "at", "nine")
ENDS_S = (0.4, 0.8, 1.2, 1.6, 2.0, 2.4)
MEDIA_S = 2.6
LATER_S = 0.25
FACTS = ClipFacts(
    id="tone", direction="speech2text", duration_s=MEDIA_S, source_lang="en", target_lang="en",
    transcript=" ".join(WORDS),
    words=[{"w": word, "start": end - 0.3, "end": end} for word, end in zip(WORDS, ENDS_S, strict=True)],
)  # fmt: skip


def interpreting(delay_s: float) -> Script:
    """A service that says each word so long after its last sample has come, and its final so long after the end."""

    async def script(peer: memory.Peer) -> None:
        saying: list[asyncio.Task[None]] = []

        async def say(message: dict[str, str]) -> None:
            await asyncio.sleep(delay_s)
            peer.send(json.dumps(message))

        heard_s = 0.0
        async for message in peer:
            if message == EOF:
                break
            if isinstance(message, str):
                continue  # how the samples are coded
            heard_s += 0.2
            words = [word for word, end in zip(WORDS, ENDS_S, strict=True) if end <= heard_s + 1e-6]
            if round(heard_s, 1) in ENDS_S:
                saying.append(asyncio.create_task(say({"partial": " ".join(words)})))
        await asyncio.gather(*saying, say({"text": " ".join(WORDS)}))
        peer.close(1000)

    return script


async def run(folder: Path, delay_s: float) -> SessionRecord:
    folder.mkdir()  # noqa: ASYNC240 - a test of one task
    work = workload(model="closed", users=1, sessions=1)
    heard, _ = await play(folder, interpreting(delay_s), work, media_ms=MEDIA_S * 1000)
    (record,) = heard.records.values()
    assert record.outcome == "ok", record.cause
    return record


def emission(record: SessionRecord) -> Emitted:
    found = emitted(record, record.utterances[0], "transcript", "recognition", {"tone": FACTS})
    assert isinstance(found, Emitted)
    return found


@pytest.mark.parametrize("delay_s", [0.05, 0.3, 1.0])
async def test_a_service_that_is_250_ms_later_is_measured_as_250_ms_later(tmp_path: Path, delay_s: float) -> None:
    """Response times, offsets, word lags and DAL (CA) move by it; the rest is what the formulas say of such times."""
    told, records = [], []
    for name, shift_s in (("sooner", 0.0), ("later", LATER_S)):
        records.append(await run(tmp_path / name, delay_s + shift_s))
        lagging = Lagging(header(channel_stages={"transcript": "recognition"}), {"tone": FACTS})
        lagging.add(records[-1])
        told.append(lagging.summary()[0]["transcript"])
    spans = [responses(each.utterances[0], each, each.utterances[0].channels["transcript"]) for each in records]
    for metric in ("first_output_from_media", "first_final_from_media", "final_from_source_end"):
        assert (spans[1][metric] or 0) - (spans[0][metric] or 0) == pytest.approx(LATER_S * 1e9, abs=10e6), metric
    for which in ("start_offset", "end_offset", "dal"):
        assert moved(told, which, "ca") == pytest.approx(LATER_S, abs=0.010), which
    for state in ("shown", "stable", "final"):
        assert told[1]["words"][state]["mean_s"] - told[0]["words"][state]["mean_s"] == pytest.approx(LATER_S, abs=0.01)
    assert told[0]["words"]["stable"]["mean_s"] == pytest.approx(delay_s, abs=0.01)
    assert told[0]["slope"]["value"] == pytest.approx(0.0, abs=0.01)
    assert (told[0]["words"]["matched"], told[0]["words"]["spare"], told[0]["words"]["missed"]) == (6, 0, 0)

    elapsed = [at + LATER_S * 1000 for at in emission(records[0]).output().elapsed]
    by_hand = lag.Batch.of([lag.Output([min(at, MEDIA_S * 1000) for at in elapsed], elapsed, MEDIA_S * 1000, 6)])
    for name, metric in lag.METRICS.items():
        for which, times in (("cu", by_hand.delays), ("ca", by_hand.elapsed)):
            found = told[1]["metrics"][name][which]
            wanted = float(metric(by_hand, times)[0])
            if name in lag.SHARES:
                assert found["mean"] == pytest.approx(wanted, abs=0.005), (name, which)
            else:
                assert found["mean_s"] == pytest.approx(wanted / 1000, abs=0.010), (name, which)


def moved(told: list[dict[str, dict[str, dict[str, dict[str, float]]]]], metric: str, which: str) -> float:
    sooner, later = (each["metrics"][metric][which]["mean_s"] for each in told)
    return later - sooner
