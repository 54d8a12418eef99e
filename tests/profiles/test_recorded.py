import json
from pathlib import Path
from typing import Any

import pytest

from loadbench.profiles import recorded
from loadbench.profiles.recorded import RecordingError


def lines(folder: Path, *entries: Any) -> Path:
    path = folder / "messages.jsonl"
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in entries))
    return path


def test_plain_lines_hold_text_or_json(tmp_path: Path) -> None:
    path = lines(tmp_path, {"at_ms": 1.5, "data": '{"a" : 1}'}, {"at_ms": 2, "data": {"b": 2}})
    (conversation,) = recorded.read(path).conversations
    assert conversation.messages == [(1_500_000, '{"a" : 1}'), (2_000_000, '{"b": 2}')]


def test_of_a_recording_only_what_the_service_said_counts_by_connection(tmp_path: Path) -> None:
    entries = [
        {"at_ms": 0, "connection": number, "from": who, "data": f"{who}-{number}"}
        for number in (1, 2)
        for who in ("client", "service")
    ]
    found = recorded.read(lines(tmp_path, *entries, {"at_ms": 3, "connection": 1, "from": "service", "gone": True}))
    assert [each.messages for each in found.conversations] == [[(0, "service-1")], [(0, "service-2")]]


def test_a_bundle_s_messages_go_by_session_and_cut_ones_are_counted(tmp_path: Path) -> None:
    entry = {"type": "message", "at_ns": 5}
    lines(
        tmp_path,
        entry | {"session": "s0", "data": "one"},
        entry | {"session": "s1", "data": "dHdv", "binary": True},
        entry | {"session": "s1", "data": "thr", "cut": True},
    )
    for path in (tmp_path, tmp_path / "messages.jsonl"):
        found = recorded.read(path)
        assert [each.messages for each in found.conversations] == [[(5, "one")], [(5, b"two")]]
        assert (found.count, found.cut) == (2, 1)


def test_everything_wrong_is_said_with_its_line(tmp_path: Path) -> None:
    path = lines(tmp_path, "{", {"data": "x"}, [1], {"at_ms": 1, "data": "fine"})
    with pytest.raises(RecordingError) as caught:
        recorded.read(path)
    assert [problem.split(": ")[0].rpartition(":")[2] for problem in caught.value.problems] == ["1", "2", "3"]


def test_what_holds_no_message_or_is_not_there_is_said(tmp_path: Path) -> None:
    for path in (lines(tmp_path), tmp_path / "nowhere"):
        with pytest.raises(RecordingError, match=r"holds no message|cannot be read"):
            recorded.read(path)
