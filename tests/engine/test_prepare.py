import json
from pathlib import Path

import pytest

from loadbench.engine.pipe import ClipEntry
from loadbench.engine.prepare import wire_plans
from loadbench.engine.reel import Reel
from loadbench.media.plan import ChunkPlan
from loadbench.session.load import load_profile
from loadbench.session.profile import Profile
from loadbench.transports import load


def payloads(folder: Path, *sizes: int, tracks: int = 1) -> Path:
    chunks = [
        (20_000_000 * (index + 1), index % tracks, bytes([65 + index]) * size) for index, size in enumerate(sizes)
    ]
    ChunkPlan.write(folder, chunks, 20_000_000 * len(sizes) + 5_000_000, tracks)
    return folder


def with_pictures(**message: str) -> Profile:
    """A profile of speech in JSON with pictures beside it."""
    media = {
        "kind": "audio",
        "chunk_ms": 20,
        "frame": "text",
        "message": {"sound": "{media.base64}", "n": "{media.index}", **message},
        "first": {"first": "{media.base64}"},
        "last": {"last": "{media.base64}"},
        "also": {"kind": "frames", "frame": "text", "message": {"picture": "{media.base64}", "n": "{media.index}"}},
    }
    data = load_profile("vosk").model_dump(exclude_unset=True)
    return Profile.model_validate(data | {"media": media})


def unmasked(frame: bytes) -> bytes:
    """The payload of one masked client frame (RFC 6455, 5.2)."""
    at = {126: 4, 127: 10}.get(frame[1] & 127, 2)
    key, body = frame[at : at + 4], frame[at + 4 :]
    return bytes(byte ^ key[index % 4] for index, byte in enumerate(body))


def test_binary_media_becomes_whole_frames_with_the_plan_unchanged_and_a_mask_for_each(tmp_path: Path) -> None:
    folders = {"a/b": payloads(tmp_path / "a", 640, 640, 70_000), "c": payloads(tmp_path / "c", 3)}
    drawn = iter(range(1, 100))
    made = wire_plans(
        load_profile("vosk"), folders, load("websocket"), tmp_path / "out", lambda n: bytes([next(drawn)]) * n
    )
    assert list(made) == ["a/b", "c"]
    plan = ChunkPlan.load(made["a/b"][0])
    assert not made["a/b"][1]
    assert plan.due_ns.tolist() == [20_000_000, 40_000_000, 60_000_000]
    assert plan.track.tolist() == [0, 0, 0]
    assert (plan.duration_ns, plan.tracks) == (65_000_000, 1)
    frames = [bytes(plan.wire(index)) for index in range(3)]
    assert [unmasked(frame) for frame in frames] == [b"A" * 640, b"B" * 640, b"C" * 70_000]
    assert frames[0][:4] == frames[1][:4], "the same head, and then"
    assert frames[0][4:8] != frames[1][4:8], "masks of their own"


def test_two_media_are_wrapped_each_in_its_own_message_and_counted_apart(tmp_path: Path) -> None:
    folders = {"a": payloads(tmp_path / "a", 3, 3, 3, 3, 3, tracks=2)}
    place, joined = wire_plans(with_pictures(), folders, load("memory"), tmp_path / "out", bytes)["a"]
    plan = ChunkPlan.load(place)
    assert not joined
    assert (plan.tracks, plan.track.tolist()) == (2, [0, 1, 0, 1, 0])
    assert [json.loads(bytes(plan.wire(index))[1:]) for index in range(5)] == [
        {"first": "QUFB"},
        {"picture": "QkJC", "n": 0},
        {"sound": "Q0ND", "n": 1},
        {"picture": "RERE", "n": 1},
        {"last": "RUVF"},
    ]


def test_where_one_of_two_media_bears_something_of_the_session_both_are_left_in_shared_parts(tmp_path: Path) -> None:
    folders = {"a": payloads(tmp_path / "a", 3, 3, tracks=2)}
    profile = with_pictures(session="{session.id}")
    place, joined = wire_plans(profile, folders, load("memory"), tmp_path / "out", bytes)["a"]
    assert joined
    reel = Reel(ClipEntry(id="a", wire=str(place), joined=True))
    assert [bytes(reel.wire(index)) for index in range(2)] == [b"QUFB", b"QkJC"]
    assert [reel.place(index) for index in range(2)] == [(0, 0, 1), (1, 0, 1)]


def test_a_reel_ticks_at_the_pace_of_its_first_medium(tmp_path: Path) -> None:
    place = payloads(tmp_path / "a", 3, 3, 3, 3, tracks=2)
    assert Reel(ClipEntry(id="a", wire=str(place), joined=False)).interval_ms == 42, "85 ms, two chunks"


def test_media_that_carries_something_of_the_session_is_left_in_shared_parts(tmp_path: Path) -> None:
    profile = load_profile("sign-frames")
    made = wire_plans(profile, {"a": payloads(tmp_path / "a", 9)}, load("memory"), tmp_path / "out", bytes)
    place, joined = made["a"]
    assert joined
    assert bytes(ChunkPlan.load(place).wire(0)) == b"QUFBQUFBQUFB"


def test_media_in_json_without_anything_of_the_session_is_made_whole(tmp_path: Path) -> None:
    profile = load_profile("sign-frames")
    data = profile.model_dump(exclude_unset=True)
    data["media"]["message"] = {"image": "{media.base64}", "at": "{media.ms}", "of": "{media.count}"}
    made = wire_plans(
        type(profile).model_validate(data),
        {"a": payloads(tmp_path / "a", 3, 3)},
        load("memory"),
        tmp_path / "out",
        bytes,
    )
    place, joined = made["a"]
    assert not joined
    wire = bytes(ChunkPlan.load(place).wire(1))
    assert json.loads(wire[1:]) == {"image": "QkJC", "at": 40, "of": 2}


@pytest.mark.parametrize(("sizes", "interval_ms"), [((3, 3, 3, 3), 21), ((3,), 25)])
def test_a_reel_knows_its_due_times_its_length_and_its_interval(
    tmp_path: Path, sizes: tuple[int, ...], interval_ms: int
) -> None:
    reel = Reel(ClipEntry(id="a", wire=str(payloads(tmp_path / "a", *sizes)), joined=False, onset_ns=7))
    assert reel.due_ns.tolist() == [20_000_000 * (i + 1) for i in range(len(sizes))] + [reel.media_ns]
    assert reel.media_ns == 20_000_000 * len(sizes) + 5_000_000
    assert reel.interval_ms == interval_ms
    task = reel.task(2)
    assert (task.id, task.chunks, task.media_ns, task.attempt, task.onset_ns) == ("a", len(sizes), reel.media_ns, 2, 7)
    assert bytes(reel.wire(0)) == b"AAA"


def test_a_clip_of_one_long_chunk_does_not_make_its_sessions_wait_for_it(tmp_path: Path) -> None:
    ChunkPlan.write(tmp_path / "a", [(60_000_000_000, 0, b"x")], 60_000_000_000)
    assert Reel(ClipEntry(id="a", wire=str(tmp_path / "a"), joined=False)).interval_ms == 1000


def test_with_fresh_masks_the_parts_are_left_bare_for_each_session_to_mask(tmp_path: Path) -> None:
    folders = {"a": payloads(tmp_path / "a", 640)}
    place, joined = wire_plans(load_profile("vosk"), folders, load("websocket"), tmp_path / "out", bytes, fresh=True)[
        "a"
    ]
    assert joined
    assert bytes(ChunkPlan.load(place).wire(0)) == b"A" * 640
