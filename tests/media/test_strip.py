"""One decoding serves many segments, and each gets what a decoding of its own would have given it."""

import io
import itertools
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from loadbench.corpus.clip import Track
from loadbench.media import audio, decode, strip, video
from loadbench.media.decode import MediaError
from loadbench.media.form import AudioForm, FrameForm
from loadbench.media.made import Made
from tests.media import making

CUTS = st.lists(st.tuples(st.integers(0, 1200), st.integers(1, 600)), min_size=1, max_size=6)  # start, length in ms


class Reader:
    """As much of a job as `passes` looks at."""

    def __init__(self, *tracks: Track) -> None:
        self.tracks = tracks
        self.files = tuple(track.path for track in tracks)


def reader(start_ms: int, length_ms: int | None, path: Path = Path("a.wav")) -> Reader:
    length_s = None if length_ms is None else Fraction(length_ms, 1000)
    return Reader(Track("audio", path, offset_s=Fraction(start_ms, 1000), duration_s=length_s))


Chunks = Callable[[Track, Made], Any]


def heard(track: Track, made: Made) -> Any:
    return audio.chunks(track, AudioForm("s16le", 16_000, 700), 0.0, made)


def seen(track: Track, made: Made) -> Any:
    return video.chunks(track, FrameForm(), made)


def told(chunks: Chunks, track: Track, made: Made) -> tuple[Any, Made]:
    """What comes of a segment, or the problems with it."""
    try:
        return list(chunks(track, made)), made
    except MediaError as error:
        return error.problems, made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("long")
    sound = np.random.default_rng(1).integers(-9000, 9000, 16_000).astype("<i2")
    torn = making.encoded(folder / "torn.flac", sound, "flac")
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size * 2 // 3])
    return {
        "wav": making.wav(folder / "a.wav", sound.tobytes() + b"\1"),
        "mp3": making.encoded(folder / "a.mp3", making.tone(1.0, 44_100), "libmp3lame", 44_100),
        "ogg": making.encoded(folder / "a.ogg", making.tone(1.0, 48_000), "libopus", 48_000),
        "torn": torn,
        "mp4": making.video(folder / "a.mp4", [*range(0, 600, 40), *range(700, 1000, 60)], options={"bf": "2"}),
        "h264": making.video(folder / "a.h264", range(0, 1000, 40), container="h264"),
    }


@pytest.mark.parametrize("name", ["wav", "mp3", "ogg", "torn", "mp4", "h264"])
@settings(max_examples=12, deadline=None)
@given(cuts=CUTS)
def test_a_segment_of_a_shared_decoding_is_the_same_as_alone_with_its_notes_and_its_troubles(
    files: dict[str, Path], name: str, cuts: list[tuple[int, int]]
) -> None:
    film = name in ("mp4", "h264")
    path, chunks, shared = files[name], seen if film else heard, strip.pictures if film else strip.sound
    for group in strip.passes([reader(start, length, path) for start, length in cuts]):
        common = shared(group[0].tracks[0])
        starts = [each.tracks[0].offset_s for each in group]
        for each, after in zip(group, [*starts[1:], None], strict=True):
            common.hold_from(after)
            found = told(chunks, each.tracks[0], Made(shared=common))
            assert found == told(chunks, each.tracks[0], Made())


def test_a_file_is_decoded_once_for_all_segments_that_follow_each_other(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = []
    monkeypatch.setattr(decode, "opened", lambda *what, opened=decode.opened: decoded.append(what) or opened(*what))
    group = strip.passes([reader(at, 100, files["wav"]) for at in range(900, -1, -100)])
    assert [[each.tracks[0].offset_s for each in one] for one in group] == [[Fraction(at, 10) for at in range(10)]]
    common, sound = strip.sound(group[0][0].tracks[0]), b""
    for each, after in zip(group[0], [*group[0][1:], None], strict=True):
        common.hold_from(None if after is None else after.tracks[0].offset_s)
        sound += b"".join(data for _, _, data in heard(each.tracks[0], Made(shared=common)))
    assert len(decoded) == 1
    assert sound == files["wav"].read_bytes()[44:-1]


def test_what_the_next_segment_needs_is_all_that_is_held() -> None:
    pieces = ((number, (number + 1) * 1_000_000_000) for number in range(100))
    common: strip.Strip[int] = strip.Strip(pieces, [])
    common.hold_from(Fraction(50))
    assert list(common.read(Fraction(10), [])) == list(range(10, 100))
    assert len(common._kept) == 50
    common.hold_from(None)
    assert list(common.read(Fraction(98), [])) == [98, 99]
    assert list(common.read(Fraction(200), [])) == [99]  # the last of the file: it tells where the file ends


def test_segments_that_lie_upon_each_other_go_in_as_many_passes_as_there_are_layers() -> None:
    whole, first, second = reader(0, None), reader(0, 5000), reader(4500, 1000)
    inner, other = reader(1000, 1000), reader(0, None, Path("b.wav"))
    assert strip.passes([second, other, whole, first, inner]) == [[other], [whole], [first, second], [inner]]


def test_two_media_share_a_pass_only_where_both_go_forwards() -> None:
    def both(sound_ms: int, film_ms: int) -> Reader:
        tracks = (*reader(sound_ms, 500).tracks, *reader(film_ms, 500, Path("a.mp4")).tracks)
        return Reader(*tracks)

    one, two, back = both(0, 3000), both(1000, 4000), both(2000, 0)
    assert strip.passes([one, two, back]) == [[one, two], [back]]


@settings(max_examples=30, deadline=None)
@given(
    rate=st.sampled_from([8000, 11_025, 16_000, 44_100, 48_000]),
    length=st.integers(1, 9000),
    size=st.integers(1, 5000),
    cuts=st.lists(st.integers(0, 9000), max_size=6),
)
def test_segments_in_a_row_have_every_sample_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, rate: int, length: int, size: int, cuts: list[int]
) -> None:
    sound = np.arange(length, dtype="<i2")
    path = making.wav(tmp_path_factory.mktemp("rows") / "a.wav", sound.tobytes(), rate=rate)
    edges = sorted({0, length, *(cut for cut in cuts if cut < length)})
    got = []
    for start, stop in itertools.pairwise(edges):
        track = Track("audio", path, offset_s=Fraction(start, rate), duration_s=Fraction(stop - start, rate))
        rows = list(audio.chunks(track, AudioForm("s16le", rate, size), 0.0, Made()))
        assert [len(data) // 2 for _, _, data in rows[:-1]] == [size] * (len(rows) - 1)
        got.append(b"".join(data for _, _, data in rows))
    assert b"".join(got) == sound.tobytes()


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(st.integers(10, 400), min_size=1, max_size=12),
    bframes=st.sampled_from(["0", "2"]),
    cut=st.integers(1, 3000),
)
def test_every_picture_leaves_once_at_its_own_time_whatever_the_times_and_the_cut(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], bframes: str, cut: int
) -> None:
    times = [0, *np.cumsum(steps).tolist()]
    path = making.video(tmp_path_factory.mktemp("vfr") / "a.mkv", times, options={"bf": bframes})
    at = Fraction(cut, 1000)
    whole = [due_ns // 1_000_000 for due_ns, _, _ in seen(Track("video", path), Made())]
    assert whole == times
    before = told(seen, Track("video", path, duration_s=at), Made())[0]
    after = told(seen, Track("video", path, offset_s=at), Made())[0]
    halves = [due_ns // 1_000_000 for due_ns, _, _ in before]
    halves += [cut + due_ns // 1_000_000 for due_ns, _, _ in after] if cut <= times[-1] else []
    assert halves == times
    assert all(Image.open(io.BytesIO(data)).size == (64, 48) for _, _, data in before)
