"""The bundle: what is written is read back, whatever happens in between."""

import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from loadbench.results import bundle as bundles
from loadbench.results.bundle import Bundle, BundleError, BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.record import (
    Channel,
    ChunkTimes,
    ClipFacts,
    Connection,
    Message,
    SessionRecord,
    Started,
    Update,
    Utterance,
)
from loadbench.results.run import Anchor, Done, RunHeader
from loadbench.results.slo import Slo
from loadbench.results.tick import Tick


def header(**changes: object) -> RunHeader:
    facts = {
        "run_id": "r1",
        "anchor": Anchor(monotonic_ns=5, wall_ns=1_700_000_000_000_000_000),
        "plan": {"workload": {"users": 5}},
        "headline_channel": "transcript",
        "headline_metric": "final_from_source_end",
        "slo": [Slo(metric="completed", stat="min_share", limit=0.99)],
        "seed": 7,
    }
    return RunHeader(**(facts | changes))


def started(name: str) -> Started:
    return Started(id=name, worker="w1", user=0, stage="main", window="measure", planned_ns=1, begun_ns=2, clips=["a"])


def ended(name: str, **changes: object) -> SessionRecord:
    facts = {
        "id": name,
        "worker": "w1",
        "user": 0,
        "stage": "main",
        "window": "measure",
        "planned_ns": 1,
        "begun_ns": 2,
        "ended_ns": 9,
        "outcome": "ok",
        "side": "none",
    }
    return SessionRecord(**(facts | changes))


def tick(seq: int) -> Tick:
    return Tick(
        worker="w1", seq=seq, at_ns=seq, span_ns=1, active=1, users_target=1, stage="main", window="measure", started=0
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bundle"


@pytest.fixture
def writer(folder: Path) -> BundleWriter:
    return BundleWriter(folder, header(), Masks([]))


def test_everything_that_is_written_is_read_back(writer: BundleWriter, folder: Path) -> None:
    text = Channel(first_ns=3, updates=[Update(3, 0, "red", 0), Update(4, 3, " boat", 8)])
    record = ended(
        "s1", utterances=[Utterance(index=0, clip="a", attempt=0, media_ns=5, channels={"transcript": text})]
    )
    times = ChunkTimes(
        session="s1", utterance=0, media_zero_ns=3, due=b"\x01" * 8, sent=b"\x02" * 8, unsent=b"\x00" * 8
    )
    message = Message(session="s1", at_ns=4, data='{"text": "红船"}')
    facts = ClipFacts(id="a", direction="speech2text", duration_s=1.0, source_lang="en", target_lang="en")
    for stem, item in [
        ("sessions", started("s1")),
        ("sessions", record),
        ("ticks", tick(1)),
        ("chunks", times),
        ("messages", message),
        ("clips", facts),
    ]:
        writer.append(stem, item)
    writer.finish(Done(ended_ns=99, reason="finished"))
    read = Bundle(folder)
    assert read.header == header()
    assert list(read.sessions()) == [started("s1"), record]
    assert [list(read.started()), list(read.records())] == [[started("s1")], [record]]
    assert list(read.ticks()) == [tick(1)]
    assert list(read.chunks()) == [times]
    assert list(read.messages()) == [message]
    assert read.clips() == {"a": facts}
    assert read.complete
    assert read.done is not None
    assert (read.done.ended_ns, read.done.reason) == (99, "finished")
    assert read.problems == []
    assert read.verify() == []
    assert read.in_flight() == []


def test_the_header_is_there_before_anything_else(writer: BundleWriter, folder: Path) -> None:
    assert json.loads((folder / "run.json").read_text())["run_id"] == "r1"
    assert not (folder / "done.json").exists()


def test_a_folder_that_holds_a_run_is_refused_and_left_alone(writer: BundleWriter, folder: Path) -> None:
    before = (folder / "run.json").read_bytes()
    with pytest.raises(BundleError, match="already holds a run") as caught:
        BundleWriter(folder, header(run_id="r2"), Masks([]))
    assert "--out" in caught.value.problems[0]
    assert (folder / "run.json").read_bytes() == before


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(BundleError, match="is a file"):
        BundleWriter(tmp_path / "out", header(), Masks([]))


def test_a_folder_that_cannot_be_made_is_the_users_trouble() -> None:
    with pytest.raises(BundleError, match="cannot write a bundle"):
        BundleWriter(Path("/proc/no/such/place"), header(), Masks([]))


def test_a_bundle_without_its_end_is_incomplete_and_says_what_was_in_flight(writer: BundleWriter, folder: Path) -> None:
    for name in ("s1", "s2", "s3"):
        writer.append("sessions", started(name))
    writer.append("sessions", ended("s2"))
    writer.flush()
    read = Bundle(folder)
    assert not read.complete
    assert [item.id for item in read.in_flight()] == ["s1", "s3"]
    assert "incomplete" in read.problems[0]
    assert read.verify() == []


def test_a_torn_last_line_is_skipped_and_reported(writer: BundleWriter, folder: Path) -> None:
    writer.append("sessions", ended("s1"))
    writer.flush()
    with (folder / "sessions.jsonl").open("a") as file:
        file.write('{"type":"session","id":"to')
    read = Bundle(folder)
    assert [record.id for record in read.records()] == ["s1"]
    assert any("torn" in text for text in read.problems)
    assert read.verify() == ["sessions.jsonl: 26 bytes after the last seal are not sealed"]


def test_a_broken_line_in_the_middle_costs_that_line_only(writer: BundleWriter, folder: Path) -> None:
    path = folder / "sessions.jsonl"
    lines = [msgspec.json.encode(ended("s1")), b"{no json", b'{"type":"session"}', msgspec.json.encode(ended("s2"))]
    path.write_bytes(b"\n".join(lines) + b"\n")
    read = Bundle(folder)
    assert [record.id for record in read.records()] == ["s1", "s2"]
    list(read.records())
    assert [text.split(":")[1] for text in read.problems if "sessions" in text] == [
        " line 2 cannot be read and was skipped",
        " line 3 cannot be read and was skipped",
    ]


def _flip(path: Path, word: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(word) + 1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(("name", "word"), [("run.json", b"r1"), ("sessions.jsonl", b"s0"), ("ticks.jsonl", b"w1")])
def test_a_changed_byte_breaks_a_seal(writer: BundleWriter, folder: Path, name: str, word: bytes) -> None:
    for number in range(3):
        writer.append("sessions", ended(f"s{number}"))
        writer.append("ticks", tick(number))
        writer.flush()
    writer.finish(Done(ended_ns=1, reason="finished"))
    _flip(folder / name, word)
    (only,) = Bundle(folder).verify()
    assert only.startswith(f"{name}: bytes 0 to ")


def test_a_removed_tail_breaks_the_seals(writer: BundleWriter, folder: Path) -> None:
    for number in range(3):
        writer.append("sessions", ended(f"s{number}"))
        writer.flush()
    writer.finish(Done(ended_ns=1, reason="finished"))
    for name in ("sessions.jsonl", "seals.jsonl"):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(lines[:-1]))
    assert Bundle(folder).verify() == ["sessions.jsonl: its last seal is not the one in done.json"]


def test_a_seal_follows_from_the_one_before(writer: BundleWriter, folder: Path) -> None:
    for number in range(2):
        writer.append("ticks", tick(number))
        writer.flush(at_ns=100 + number)
    seals = [json.loads(line) for line in (folder / "seals.jsonl").read_text().splitlines()]
    mine = [seal for seal in seals if seal["file"] == "ticks.jsonl"]
    first, second = (folder / "ticks.jsonl").read_bytes().splitlines(keepends=True)
    assert [seal["offset"] for seal in mine] == [0, len(first)]
    assert [seal["length"] for seal in mine] == [len(first), len(second)]
    assert [seal["at_ns"] for seal in mine] == [100, 101]
    assert mine[1]["seal"] == bundles._seal(mine[0]["seal"], second)


def test_a_newer_schema_is_refused(writer: BundleWriter, folder: Path) -> None:
    found = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(found | {"schema_version": 2, "slo": "of another kind"}))
    with pytest.raises(BundleError, match="newer loadbench") as caught:
        Bundle(folder)
    assert "update" in caught.value.problems[0]


@pytest.mark.parametrize(
    ("text", "expected"), [(None, "no run.json"), ("{", "cannot be read"), ("[]", "cannot be read")]
)
def test_a_folder_without_a_readable_header_is_no_bundle(tmp_path: Path, text: str | None, expected: str) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(BundleError, match=expected):
        Bundle(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_clear_error_and_earlier_records_stay(writer: BundleWriter, folder: Path) -> None:
    writer.append("sessions", ended("s1"))
    writer.flush()
    file = writer._files["sessions.jsonl"]
    whole = file._file
    file._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
    writer.append("sessions", ended("s2"))
    with pytest.raises(BundleError, match="no space left") as caught:
        writer.flush()
    assert len(caught.value.problems) == 1
    assert writer.error is caught.value
    file._file.close()
    file._file = whole
    writer.append("sessions", ended("s3"))
    writer.flush()
    writer.snapshot("metrics.prom", "x 1\n")
    writer.finish(Done(ended_ns=1, reason="finished"))
    read = Bundle(folder)
    assert [record.id for record in read.records()] == ["s1"]
    assert not read.complete
    assert read.verify() == []


def test_a_piece_that_fits_in_part_is_taken_back(writer: BundleWriter, folder: Path) -> None:
    class HalfFull:
        def __init__(self, file):
            self.file, self.room = file, 10

        def write(self, data):
            if not self.room:
                raise OSError(28, "No space left on device")
            self.room -= len(data[: self.room])
            return self.file.write(data[:10])

        def __getattr__(self, name):
            return getattr(self.file, name)

    writer.append("sessions", ended("s1"))
    writer.flush()
    before = (folder / "sessions.jsonl").read_bytes()
    writer._files["sessions.jsonl"]._file = HalfFull(writer._files["sessions.jsonl"]._file)
    writer.append("sessions", ended("s2"))
    with pytest.raises(BundleError):
        writer.flush()
    assert (folder / "sessions.jsonl").read_bytes() == before


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
import importlib.util
spec = importlib.util.spec_from_file_location("made", {here!r})
made = importlib.util.module_from_spec(spec); spec.loader.exec_module(made)
writer = made.BundleWriter(Path({folder!r}), made.header(), made.Masks([]))
number = 0
while True:
    writer.append("sessions", made.started(f"s{{number}}"))
    writer.append("sessions", made.ended(f"s{{number}}"))
    writer.flush()
    number += 1
    if number == 50:
        print("ready", flush=True)
"""


def test_kill_9_leaves_whole_records_in_a_readable_incomplete_bundle(folder: Path) -> None:
    code = KILLED.format(path=sys.path, here=__file__, folder=str(folder))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    read = Bundle(folder)
    assert len(list(read.records())) >= 50
    assert not read.complete
    assert all("not sealed" in text for text in read.verify())


def test_appends_and_flushes_of_many_threads_lose_nothing(writer: BundleWriter, folder: Path) -> None:
    def append(thread: int) -> None:
        for number in range(200):
            writer.append("sessions", started(f"{thread}-{number}"))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        writer.flush()
    writer.finish(Done(ended_ns=1, reason="finished"))
    read = Bundle(folder)
    assert {item.id for item in read.started()} == {
        f"{thread}-{number}" for thread in range(4) for number in range(200)
    }
    assert read.verify() == []


def test_twenty_thousand_records_are_read_in_bounded_memory(folder: Path) -> None:
    BundleWriter(folder, header(), Masks([])).finish(Done(ended_ns=1, reason="finished"))
    start, end = (msgspec.json.encode(item).decode() for item in (started("NAME"), ended("NAME", cause="x" * 200)))
    with (folder / "sessions.jsonl").open("w") as file:
        for number in range(10_000):
            file.write(f"{start}\n{end}\n".replace("NAME", f"s{number}"))
    read = Bundle(folder)
    tracemalloc.start()
    try:
        count = sum(1 for _ in read.sessions())
        open_ = read.in_flight()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, open_) == (20_000, [])
    assert peak < 400_000


def test_after_the_end_nothing_more_is_written_and_nothing_breaks(writer: BundleWriter, folder: Path) -> None:
    writer.append("sessions", ended("s1"))
    writer.finish(Done(ended_ns=1, reason="finished"))
    writer.append("sessions", ended("s2"))
    writer.flush()
    writer.snapshot("metrics.prom", "x 1\n")
    writer.finish(Done(ended_ns=2, reason="again"))
    read = Bundle(folder)
    assert [record.id for record in read.records()] == ["s1"]
    assert read.done is not None
    assert read.done.reason == "finished"
    assert not (folder / "metrics.prom").exists()


def test_a_snapshot_replaces_the_one_before_and_is_masked(folder: Path) -> None:
    writer = BundleWriter(folder, header(), Masks(["tok-FAKE-71"]))
    writer.snapshot("metrics.prom", "old 1\n")
    writer.snapshot("metrics.prom", 'new{a="tok-FAKE-71"} 2\n')
    assert (folder / "metrics.prom").read_text() == 'new{a="***"} 2\n'
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def test_no_secret_gets_into_any_file(folder: Path) -> None:
    writer = BundleWriter(
        folder,
        header(plan={"target": {"url": "ws://h/?key=key-FAKE-72"}, "id": "tok-FAKE-71"}, title="tok-FAKE-71 trial"),
        Masks(["tok-FAKE-71", "key-FAKE-72", 'p"w-FAKE\n73']),
    )
    link = Connection(dialled_ns=1, close_reason="bad dG9rLUZBS0UtNzE=", cause="no key-FAKE-72")
    writer.append("sessions", ended("s1", cause='said p"w-FAKE\n73', connections=[link], raw=["key%2DFAKE%2d72"]))
    writer.append("messages", Message(session="s1", at_ns=1, data='{"echo": "tok-FAKE-71"}'))
    nested = json.dumps({"echo": 'p"w-FAKE\n73'})
    writer.append("messages", Message(session="s1", at_ns=1, data=nested))
    writer.append("messages", Message(session="s1", at_ns=1, data="dG9rLUZBS0UtNzE=", binary=True))
    writer.append(
        "clips",
        ClipFacts(
            id="token-eval/list.tsv",
            direction="speech2text",
            duration_s=1,
            source_lang="en",
            target_lang="en",
            transcript="--users 5",
        ),
    )
    writer.finish(Done(ended_ns=1, reason="finished"))
    everything = "".join(path.read_text() for path in folder.iterdir())
    for secret in ("tok-FAKE-71", "key-FAKE-72", "FAKE\\n73", "key%2DFAKE", "dG9rLUZBS0UtNzE", "FAKE"):
        assert secret not in everything
    read = Bundle(folder)
    (record,) = read.records()
    assert record.cause == "said ***"
    assert record.raw == ["***"]
    assert read.header.plan == {"target": {"url": "ws://h/?key=***"}, "id": "***"}
    assert read.header.title == "*** trial"
    assert read.clips()["token-eval/list.tsv"].transcript == "--users 5"
    assert read.verify() == []


@pytest.mark.parametrize("secret", ["measure", "session", "1234", "transcript", "none", "main", "AAAA"])
def test_a_secret_that_is_a_word_of_our_own_does_not_unmake_the_bundle(folder: Path, secret: str) -> None:
    writer = BundleWriter(folder, header(), Masks([secret]))
    record = ended("s1", begun_ns=1234, cause=f"the service said {secret}")
    times = ChunkTimes(session="s1", utterance=0, media_zero_ns=1234, due=bytes(24), sent=bytes(24), unsent=bytes(24))
    writer.append("sessions", record)
    writer.append("chunks", times)
    writer.finish(Done(ended_ns=1, reason="finished"))
    read = Bundle(folder)
    assert read.header.headline_channel == "transcript"
    assert list(read.records()) == [msgspec.structs.replace(record, cause="the service said ***")]
    assert list(read.chunks()) == [times]


def test_a_name_that_no_disk_takes_is_the_users_trouble(tmp_path: Path) -> None:
    for take in (lambda: BundleWriter(tmp_path / ("a" * 5000), header(), Masks([])), lambda: Bundle(Path("a" * 5000))):
        with pytest.raises(BundleError, match="file name too long"):
            take()


def test_a_bundle_that_is_as_it_was_written_has_no_damage_and_one_that_is_not_names_the_file(
    writer: BundleWriter, folder: Path
) -> None:
    for number in range(3):
        writer.append("sessions", ended(f"s{number}"))
        writer.append("ticks", tick(number))
        writer.flush()
    assert Bundle(folder).damage() == []
    writer.finish(Done(ended_ns=1, reason="finished"))
    assert Bundle(folder).damage() == []
    path = folder / "sessions.jsonl"
    path.write_bytes(path.read_bytes().replace(b"s1", b"s9"))
    (folder / "ticks.jsonl").unlink()
    first, second = Bundle(folder).damage()
    assert first.startswith("damaged: sessions.jsonl: bytes ")
    assert second == "damaged: ticks.jsonl: the file is missing"


def test_a_secret_that_grows_in_the_updates_is_in_no_file(folder: Path) -> None:
    secret = "hunter2-Zq9xxyS"
    updates = [Update(at, at, letter, 0) for at, letter in enumerate(secret)]
    utterance = Utterance(index=0, clip="c", attempt=0, media_ns=1, channels={"text": Channel(updates=updates)})
    writer = BundleWriter(folder, header(), Masks([secret]))
    writer.append("sessions", ended("s1", utterances=[utterance]))
    writer.finish(Done(ended_ns=1, reason="finished"))
    (record,) = Bundle(folder).records()
    channel = record.utterances[0].channels["text"]
    assert channel.text == "***"
    assert "".join(update.add for update in channel.updates) == "hunter2***"
    assert [update.at_ns for update in channel.updates] == list(range(len(secret)))
