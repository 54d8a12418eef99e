"""The writer: everything that was taken is on disk within half a second, and a full disk is said once."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loadbench.results.bundle import Bundle, BundleError, BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.media import MediaPiece
from loadbench.results.record import ChunkTimes, ClipFacts, Message, SessionRecord, Started
from loadbench.results.run import Anchor, Done, RunHeader
from loadbench.results.tick import Tick
from loadbench.watch.writer import Writer

HEADER = RunHeader(
    run_id="r",
    anchor=Anchor(monotonic_ns=0, wall_ns=0),
    plan={},
    headline_channel="transcript",
    headline_metric="final_from_source_end",
    slo=[],
    seed=7,
)
STARTED = Started(id="s", worker="w", user=0, stage="main", window="measure", planned_ns=0, begun_ns=0, clips=["c"])
RECORD = SessionRecord(
    id="s", worker="w", user=0, stage="main", window="measure", planned_ns=0, begun_ns=0, ended_ns=9, outcome="ok",
    side="none",
)  # fmt: skip
TICK = Tick(worker="w", seq=0, at_ns=1, span_ns=1, active=0, users_target=1, stage="main", window="measure", started=0)
CHUNKS = ChunkTimes(session="s", utterance=0, media_zero_ns=0, due=b"", sent=b"", unsent=b"")
MESSAGE = Message(session="s", at_ns=5, data="{}")
CLIP = ClipFacts(id="c", direction="speech2text", duration_s=1.0, source_lang="en", target_lang="en")


def writer(folder: Path) -> Writer:
    return Writer(BundleWriter(folder, HEADER, Masks([])), clock=lambda: 77)


def wait_for(holds: Callable[[], bool], limit_s: float = 10.0) -> float:
    begun = time.monotonic()
    while not holds() and time.monotonic() - begun < limit_s:
        time.sleep(0.01)
    return time.monotonic() - begun


def test_each_event_goes_into_its_own_file_and_what_has_none_is_passed_over(tmp_path: Path) -> None:
    subject = writer(tmp_path / "b")
    for event in (STARTED, RECORD, TICK, CHUNKS, MESSAGE, object()):
        subject.take(event)
    subject.clip(CLIP)
    subject.clip(CLIP)
    subject.snapshot("# metrics\n")
    subject.close(Done(ended_ns=9, reason="finished"))
    bundle = Bundle(tmp_path / "b")
    assert list(bundle.sessions()) == [STARTED, RECORD]
    assert (list(bundle.ticks()), list(bundle.chunks()), list(bundle.messages())) == ([TICK], [CHUNKS], [MESSAGE])
    assert bundle.clips() == {"c": CLIP}
    assert (tmp_path / "b" / "clips.jsonl").read_text().count("\n") == 1
    assert (tmp_path / "b" / "metrics.prom").read_text() == "# metrics\n"
    assert bundle.complete
    assert bundle.verify() == []
    assert subject.error is None


@pytest.mark.realtime
def test_what_was_taken_is_on_disk_within_half_a_second_without_being_asked(tmp_path: Path) -> None:
    subject = writer(tmp_path / "b")
    subject.take(STARTED)
    path = tmp_path / "b" / "sessions.jsonl"
    waited = wait_for(lambda: path.stat().st_size > 0)
    subject.close(Done(ended_ns=9, reason="finished"))
    assert waited < 2.0, "half a second, and what a busy machine adds"


def test_a_disk_that_takes_no_more_is_told_by_error_and_by_close_and_leaves_earlier_lines_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = BundleWriter(tmp_path / "b", HEADER, Masks([]))
    subject = Writer(bundle)
    subject.take(STARTED)
    subject.flush()

    def full(at_ns: int | None = None) -> None:
        raise BundleError(["no space left on device"])

    monkeypatch.setattr(bundle, "flush", full)
    wait_for(lambda: subject.error is not None)
    assert "no space left" in str(subject.error)
    subject.take(RECORD)
    with pytest.raises(BundleError, match="no space left"):
        subject.close(Done(ended_ns=9, reason="finished"))
    left = Bundle(tmp_path / "b")
    assert list(left.sessions()) == [STARTED]
    assert not left.complete


def test_pieces_of_media_are_appended_to_their_file_as_they_are_and_a_secret_in_them_is_not_hidden(
    tmp_path: Path,
) -> None:
    subject = Writer(BundleWriter(tmp_path / "b", HEADER, Masks(["hunter2"])), clock=lambda: 77)
    known = {"session": "s", "utterance": 0, "channel": "speech", "at_ns": 5, "file": "s.speech.wav"}
    subject.take(MediaPiece(data=b"hunter2", head=b"RIFF", **known))
    subject.flush()
    assert (tmp_path / "b" / "media" / "s.speech.wav").read_bytes() == b"RIFFhunter2"
    subject.take(MediaPiece(data=b"\0\1", **known))
    subject.close(Done(ended_ns=9, reason="finished"))
    bundle = Bundle(tmp_path / "b")
    assert bundle.verify() == []
    assert bundle.media("s", 0, "speech") == tmp_path / "b" / "media" / "s.speech.wav"
    assert bundle.media("s", 1, "speech") is None
    assert (tmp_path / "b" / "media" / "s.speech.wav").read_bytes() == b"RIFFhunter2\0\1"


def test_a_bundle_without_media_has_no_folder_for_it(tmp_path: Path) -> None:
    writer(tmp_path / "b").close(Done(ended_ns=9, reason="finished"))
    assert not (tmp_path / "b" / "media").exists()
