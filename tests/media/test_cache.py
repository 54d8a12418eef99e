"""A folder of the cache is whole or not there."""

import os
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Track
from loadbench.media import cache
from loadbench.media.form import AudioForm, FileForm, FrameForm, H264Form, MediaForm, SliceForm
from loadbench.media.plan import ChunkPlan

TRACK = Track("audio", Path("a.wav"))
FORM = AudioForm("s16le", 16_000, 3200)


def write(folder: Path, data: bytes = b"sound") -> None:
    ChunkPlan.write(folder, [(1, 0, data)], 1)


@pytest.mark.parametrize(
    ("content", "track", "form", "tail_s"),
    [
        ("2", TRACK, FORM, 0.0),
        ("1", replace(TRACK, offset_s=Fraction(1, 3)), FORM, 0.0),
        ("1", replace(TRACK, duration_s=Fraction(1)), FORM, 0.0),
        ("1", replace(TRACK, channel="mix"), FORM, 0.0),
        ("1", replace(TRACK, sample_rate=16_000), FORM, 0.0),  # an expectation that has to be checked
        ("1", TRACK, replace(FORM, format="alaw"), 0.0),
        ("1", TRACK, replace(FORM, chunk_samples=1600), 0.0),
        ("1", TRACK, FrameForm(), 0.0),
        ("1", TRACK, FORM, 0.5),
    ],
)
def test_whatever_changes_the_bytes_changes_the_key(content: str, track: Track, form: MediaForm, tail_s: float) -> None:
    assert cache.key(content, track, form, tail_s) != cache.key("1", TRACK, FORM, 0.0)


def test_each_form_of_pictures_has_a_key_of_its_own() -> None:
    sliced = SliceForm(container="fmp4", slice_s=Fraction(1))
    forms = [FrameForm(), FrameForm(fit="pad"), FrameForm(codec="i420"), H264Form(), H264Form(bframes=1), sliced]
    forms += [replace(sliced, slice_s=None), replace(sliced, container="webm"), replace(sliced, header="apart")]
    assert len({cache.key("1", TRACK, form, 0.0) for form in [*forms, FileForm()]}) == 10


def test_where_a_file_lies_does_not_matter() -> None:
    assert cache.key("1", TRACK, FORM, 0.0) == cache.key("1", replace(TRACK, path=Path("b.wav")), FORM, 0.0)


def test_a_folder_that_could_not_be_finished_leaves_nothing(tmp_path: Path) -> None:
    def broken(part: Path) -> None:
        write(part)
        raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        cache.fill(tmp_path / "k", broken)
    assert list(tmp_path.iterdir()) == []


def test_the_second_of_two_at_once_uses_what_the_first_has_made(tmp_path: Path) -> None:
    def overtaken(part: Path) -> None:
        write(part, b"second")
        cache.fill(tmp_path / "k", write)

    cache.fill(tmp_path / "k", overtaken)
    assert bytes(ChunkPlan.load(tmp_path / "k").wire(0)) == b"sound"
    assert [path.name for path in tmp_path.iterdir()] == ["k"]


@pytest.mark.parametrize("damage", ["index.i64", "payload.bin"])
def test_a_damaged_folder_is_made_again(tmp_path: Path, damage: str) -> None:
    cache.fill(tmp_path / "k", write)
    assert cache.finished(tmp_path / "k")
    os.truncate(tmp_path / "k" / damage, 3)
    assert not cache.finished(tmp_path / "k")
    cache.fill(tmp_path / "k", write)
    assert cache.finished(tmp_path / "k")


def test_what_others_left_long_ago_is_swept_away_and_what_is_at_work_is_not(tmp_path: Path) -> None:
    for name, age_s in ((".part-old", 200_000), (".part-new", 0)):
        write(tmp_path / name)
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    (tmp_path / ".part-file").touch()
    os.utime(tmp_path / ".part-file", (0, 0))
    cache.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".part-new"]


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"one")
    track = Track("audio", path)
    first = cache.Hashes(tmp_path)
    digest = first.of(track)
    first.save()
    with monkeypatch.context() as patched:
        patched.setattr(cache, "_sha256", lambda _files: pytest.fail("read again"))
        assert cache.Hashes(tmp_path).of(track) == digest
    path.write_bytes(b"two!")
    assert cache.Hashes(tmp_path).of(track) != digest


def test_two_processes_keep_each_others_hashes_and_a_damaged_memory_is_no_harm(tmp_path: Path) -> None:
    tracks = [Track("audio", tmp_path / name) for name in ("a.wav", "b.wav")]
    memories = [cache.Hashes(tmp_path), cache.Hashes(tmp_path)]
    for track, memory in zip(tracks, memories, strict=True):
        track.path.write_bytes(track.path.name.encode())
        memory.of(track)
        memory.save()
    assert (tmp_path / cache.HASHES).read_text().count(".wav") == 2
    (tmp_path / cache.HASHES).write_text('{"torn')
    assert len(cache.Hashes(tmp_path).of(tracks[0])) == 64


def test_a_frame_that_changes_or_is_renamed_changes_the_hash_of_its_folder(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.png").write_bytes(b"picture %d" % number)
    track = Track("video", tmp_path, "%d.png", Fraction(25))
    seen = {cache.Hashes(tmp_path / "none").of(track)}
    (tmp_path / "2.png").rename(tmp_path / "3.png")
    seen.add(cache.Hashes(tmp_path / "none").of(track))
    (tmp_path / "3.png").write_bytes(b"other")
    seen.add(cache.Hashes(tmp_path / "none").of(track))
    assert len(seen) == 3


def test_the_cache_lies_where_the_person_keeps_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_cache() == tmp_path / "loadbench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.default_cache() == tmp_path / "home" / ".cache" / "loadbench"
