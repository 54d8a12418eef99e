"""A corpus is encoded once, and all its troubles come at once."""

import hashlib
import multiprocessing
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from loadbench.corpus.clip import Clip, Track
from loadbench.media import decode, prepare
from loadbench.media.form import AudioForm, FrameForm, with_silence
from loadbench.media.plan import ChunkPlan
from loadbench.media.prepare import MediaError, Progress
from tests.media import making
from tests.media.making import THOUSANDS

FORM = AudioForm("s16le", 16_000, 3200)


def clip(name: str, *tracks: Track, line: int = 1) -> Clip:
    return Clip(name, "speech2text", tracks, "en", "en", source="corpus/manifest.jsonl", line=line)


def sound(folder: Path, name: str = "a.wav", **track: Any) -> Track:
    return Track("audio", making.wav(folder / name, making.THOUSANDS), **track)


def test_each_clip_gets_a_plan_and_the_second_time_nothing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "TELL_S", 60)  # on a slow machine there would be more to tell
    clips = [clip("a", sound(tmp_path)), clip("b", sound(tmp_path, duration_s=Fraction("0.5")))]
    seen: list[Progress] = []
    first = prepare.prepare(clips, FORM, tmp_path / "cache", seen.append)
    plans = {name: ChunkPlan.load(folder) for name, folder in first.items()}
    assert [len(plans[name]) for name in ("a", "b")] == [5, 3]
    assert plans["b"].due_ns.tolist() == [200_000_000, 400_000_000, 500_000_000]
    assert plans["b"].duration_ns == 500_000_000
    assert seen == [Progress(1, 2, 1.0, None, "a"), Progress(2, 2, 1.5, None, "b")]
    for encoder in ("audio", "video"):
        monkeypatch.setattr(getattr(prepare, encoder), "chunks", lambda *_: pytest.fail("encoded again"))
    assert prepare.prepare(clips, FORM, tmp_path / "cache") == first


def test_a_file_that_was_replaced_is_encoded_anew(tmp_path: Path) -> None:
    track = sound(tmp_path)
    before = prepare.prepare([clip("a", track)], FORM, tmp_path / "cache")["a"]
    making.wav(track.path, making.THOUSANDS[:6400])
    after = prepare.prepare([clip("a", track)], FORM, tmp_path / "cache")["a"]
    assert before != after
    assert ChunkPlan.load(after).size == 6400


def pictures(folder: Path, name: str, count: int, fps: int) -> Track:
    place = folder / name
    place.mkdir()
    for number in range(count):
        Image.new("RGB", (64, 48), (number * 20, 90, 200)).save(place / f"image{number:02d}.png")
    return Track("video", place, pattern="image%02d.png", fps=Fraction(fps))


def test_a_second_medium_goes_beside_the_first_at_its_own_times(tmp_path: Path) -> None:
    both = clip("a", sound(tmp_path), pictures(tmp_path, "v", 4, fps=4))
    plan = ChunkPlan.load(prepare.prepare([both], FORM, tmp_path / "cache", also=FrameForm())["a"])
    assert (plan.duration_ns, plan.tracks) == (1_000_000_000, 2)
    due_ms = [due_ns // 1_000_000 for due_ns in plan.due_ns.tolist()]
    assert list(zip(due_ms, plan.track.tolist(), strict=True)) == [
        (200, 0),
        (200, 1),  # of 0 ms: nothing goes before the first chunk of the first medium
        (250, 1),
        (400, 0),
        (500, 1),
        (600, 0),
        (750, 1),
        (800, 0),
        (1000, 0),
    ]
    assert [plan.place(index) for index in (0, 1, 2, 3, 8)] == [(0, 0, 5), (1, 0, 4), (1, 1, 4), (0, 1, 5), (0, 4, 5)]
    assert bytes(plan.wire(1)[:2]) == b"\xff\xd8"


def test_a_second_medium_that_is_longer_ends_with_the_first_and_that_is_noted(tmp_path: Path) -> None:
    both = clip("a", sound(tmp_path, duration_s=Fraction("0.5")), pictures(tmp_path, "v", 4, fps=4))
    seen: list[Progress] = []
    plan = ChunkPlan.load(prepare.prepare([both], FORM, tmp_path / "cache", seen.append, also=FrameForm())["a"])
    assert (plan.duration_ns, plan.track.tolist()) == (500_000_000, [0, 1, 1, 0, 0])
    assert seen[0].notes == ("what the second medium has from 0.500 s on comes too late, and is left out",)


def test_a_clip_without_the_second_medium_is_named(tmp_path: Path) -> None:
    clips = [clip("a", sound(tmp_path)), clip("b", pictures(tmp_path, "v", 2, fps=4), line=2)]
    with pytest.raises(MediaError) as caught:
        prepare.prepare(clips, FORM, tmp_path / "cache", also=FrameForm())
    assert caught.value.problems == [
        "corpus/manifest.jsonl:1: clip a: has no video track, which the profile sends",
        "corpus/manifest.jsonl:2: clip b: has no audio track, which the profile sends",
    ]


def test_notes_about_media_come_back_from_the_cache(tmp_path: Path) -> None:
    path = making.wav(tmp_path / "a.wav", making.THOUSANDS + b"\1")
    seen: list[Progress] = []
    for _ in range(2):
        prepare.prepare([clip("a", Track("audio", path))], FORM, tmp_path / "cache", seen.append)
    said = (f"{path}: 1 byte(s) at its end are less than a sample and were dropped",)
    assert [progress.notes for progress in seen] == [said, said]


def test_the_track_is_chosen_by_what_the_profile_sends(tmp_path: Path) -> None:
    film = Track("video", making.video(tmp_path / "a.mp4", range(0, 400, 40)))
    both = clip("a", film, sound(tmp_path))
    assert len(ChunkPlan.load(prepare.prepare([both], FORM, tmp_path / "cache")["a"])) == 5
    assert len(ChunkPlan.load(prepare.prepare([both], FrameForm(), tmp_path / "cache")["a"])) == 10


def test_silence_of_the_end_script_makes_a_plan_of_its_own(tmp_path: Path) -> None:
    clips = [clip("a", sound(tmp_path))]
    plain = ChunkPlan.load(prepare.prepare(clips, FORM, tmp_path / "cache")["a"])
    tailed = ChunkPlan.load(prepare.prepare(clips, FORM, tmp_path / "cache", tail_silence_s=0.3)["a"])
    assert (len(plain), len(tailed)) == (5, 7)
    assert plain.duration_ns == tailed.duration_ns == 1_000_000_000
    assert tailed.due_ns[-1] == 1_300_000_000


def test_a_second_medium_moves_behind_the_silence_before_the_first(tmp_path: Path) -> None:
    both = clip("a", sound(tmp_path), pictures(tmp_path, "v", 4, fps=4))
    form = with_silence(FORM, 0.4, 0.1)
    plan = ChunkPlan.load(prepare.prepare([both], form, tmp_path / "cache", also=FrameForm())["a"])
    film_ms = [due // 10**6 for due, track in zip(plan.due_ns.tolist(), plan.track.tolist(), strict=True) if track]
    assert (plan.duration_ns, film_ms) == (1_500_000_000, [400, 650, 900, 1150])
    assert with_silence(FrameForm(), 0.4, 0.1) == FrameForm()


def test_all_problems_come_at_once_with_their_places(tmp_path: Path) -> None:
    good = sound(tmp_path)
    digest = hashlib.sha256(good.path.read_bytes()).hexdigest()
    clips = [
        clip("good", sound(tmp_path, sha256=digest)),
        clip("other", sound(tmp_path, sha256="0" * 64), line=2),
        clip("gone", Track("audio", tmp_path / "gone.wav"), line=3),
        clip("mute", Track("video", tmp_path / "a.mp4"), line=4),
        clip("empty", Track("audio", making.wav(tmp_path / "e.wav", b"")), line=5),
    ]
    with pytest.raises(MediaError) as caught:
        prepare.prepare(clips, FORM, tmp_path / "cache")
    where = "corpus/manifest.jsonl"
    assert caught.value.problems == [
        f"{where}:2: clip other: {good.path}: its sha256 is {digest}, the manifest says {'0' * 64}",
        f"{where}:3: clip gone: {tmp_path / 'gone.wav'}: No such file or directory",
        f"{where}:4: clip mute: has no audio track, which the profile sends",
        f"{where}:5: clip empty: {tmp_path / 'e.wav'}: holds no samples",
    ]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MediaError, match="the media cache cannot be used"):
        prepare.prepare([clip("a", sound(tmp_path))], FORM, tmp_path / "file" / "cache")


def _prepare(folder: Path) -> None:
    clips = [clip(name, Track("audio", folder / f"{name}.wav")) for name in "abcdefgh"]
    done = prepare.prepare(clips, FORM, folder / "cache")
    os._exit(0 if all(len(ChunkPlan.load(path)) == 5 for path in done.values()) else 1)


def test_segments_of_a_file_are_made_from_one_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    monkeypatch.setattr(decode, "opened", lambda *what, opened=decode.opened: decoded.append(what) or opened(*what))
    numbers = np.arange(16_000, dtype="<i2").tobytes()
    path = making.wav(tmp_path / "talk.wav", numbers)
    cuts = [Track("audio", path, offset_s=Fraction(n, 20), duration_s=Fraction(1, 20)) for n in range(20)]
    clips = [clip(f"c{n}", cut) for n, cut in reversed(list(enumerate(cuts)))]
    clips += [clip("again", cuts[7]), clip("late", Track("audio", path, offset_s=Fraction(2)), line=22)]
    with pytest.raises(MediaError) as caught:
        prepare.prepare(clips, FORM, tmp_path / "cache")
    assert caught.value.problems == [
        f"corpus/manifest.jsonl:22: clip late: {path}: offset 2.0 s lies beyond its end at 1.000 s"
    ]
    assert len(decoded) == 1
    done = prepare.prepare(clips[:-1], FORM, tmp_path / "cache")
    assert b"".join(ChunkPlan.load(done[f"c{n}"])._payload for n in range(20)) == numbers
    assert done["again"] == done["c7"]
    assert len(decoded) == 1


def test_one_long_recording_shows_how_far_it_is_and_leaves_no_trace_where_it_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "TELL_S", 0.0)
    path = making.wav(tmp_path / "a.wav", THOUSANDS * 60)
    seen: list[Progress] = []
    prepare.prepare([clip("talk", Track("audio", path))], FORM, tmp_path / "cache", seen.append)
    lengths_s = [state.done_s for state in seen]
    assert lengths_s == sorted(lengths_s)
    assert len({length_s for length_s in lengths_s if 0 < length_s < 60}) > 1
    assert {(state.done, state.clip) for state in seen[:-1]} == {(0, "talk")}
    assert seen[-1] == Progress(1, 1, 60.0, None, "talk")

    class GivenUpError(Exception):
        pass

    def give_up(state: Progress) -> None:
        if state.done_s:
            raise GivenUpError

    with pytest.raises(GivenUpError):
        prepare.prepare([clip("talk", Track("audio", path))], FORM, tmp_path / "other", give_up)
    assert list((tmp_path / "other").glob("*")) == []


def test_a_fault_of_ours_on_a_thread_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare.audio, "chunks", lambda *_: [][0])
    with pytest.raises(IndexError):
        prepare.prepare([clip("a", sound(tmp_path))], FORM, tmp_path / "cache")


def test_a_long_recording_never_sits_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    making.wav(path, b"", announced=0)
    with path.open("ab") as file:
        for _ in range(600):
            file.write(THOUSANDS)  # 10 minutes: 19 MB, 38 as the samples pass
    asked = [sys.executable, "-c", MEASURED, str(path), str(tmp_path / "cache")]
    grown = subprocess.run(asked, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": PATH})
    assert 0 <= int(grown.stdout) < 12_000


MEASURED = """
import resource, sys
from pathlib import Path
from loadbench.corpus.clip import Clip, Track
from loadbench.media.form import AudioForm
from loadbench.media.prepare import prepare

def ready(offset_s, duration_s):
    track = Track("audio", Path(sys.argv[1]), offset_s=offset_s, duration_s=duration_s)
    prepare([Clip("a", "speech2text", (track,), "en", "en")], AudioForm("s16le", 16_000, 3200), Path(sys.argv[2]))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(-ready(0, 1) + ready(0, None))
"""
PATH = os.pathsep.join(sys.path)


def test_processes_at_once_come_to_the_same_folders(tmp_path: Path) -> None:
    for n, name in enumerate("abcdefgh"):
        making.wav(tmp_path / f"{name}.wav", making.THOUSANDS[:-2] + bytes([n, 0]))
    spawn = multiprocessing.get_context("spawn")
    children = [spawn.Process(target=_prepare, args=(tmp_path,)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    left = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert len(left) == 9
    assert left[-1] == "hashes.json"
