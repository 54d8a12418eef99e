import contextlib
from pathlib import Path

from loadbench.simulator.log import Entry, Log, read


def test_each_entry_is_a_line_that_can_be_read_at_once_and_logs_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = Entry(session="a", opened_ns=1, chunks_ns=[2, 3], chunk_bytes=[10, 20], text={"transcript": "今天\u2028"})
    with contextlib.closing(Log(path)) as log:
        log.write(first)
        assert read(path) == [first]
    with contextlib.closing(Log(path)) as log:
        log.write(Entry(session="b", opened_ns=4))
        assert log.count == 1
    assert [entry.session for entry in read(path)] == ["a", "b"]
    assert read(path)[1].end_ns is None


def test_without_a_path_nothing_is_written() -> None:
    with contextlib.closing(Log(None)) as log:
        log.write(Entry(session="a", opened_ns=1))
        assert log.count == 1
