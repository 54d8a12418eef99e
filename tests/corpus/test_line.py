"""A clip that was written and is read again is the same clip."""

import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from loadbench.corpus import line
from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import _entry
from tests.corpus import clips

FOLDER = Path("/out/lists")
WORD = st.sampled_from(["a", "明天", "e\u0301 b", "\u2028.", '"', "A|B"])
NAME = st.sampled_from(["a", "b1", "clip 7.wav"])
SECONDS = st.one_of(
    st.fractions(0, 1000, max_denominator=1001), st.decimals(0, 100, places=3).map(lambda number: Fraction(str(number)))
)
FPS = st.sampled_from([Fraction(25), Fraction(2997, 100), Fraction(30_000, 1001)])
PATHS = st.builds(
    lambda top, *parts: Path(top, *parts), st.sampled_from(["/out/lists", "/out/audio", "/far"]), NAME, NAME
)
VIDEO = st.builds(
    Track,
    st.just("video"),
    PATHS,
    st.just("images%04d.png") | st.none(),
    FPS,
    offset_s=SECONDS,
    duration_s=st.none() | SECONDS.filter(bool),
)
AUDIO = st.builds(
    Track,
    st.just("audio"),
    PATHS,
    offset_s=SECONDS,
    duration_s=st.none() | SECONDS.filter(bool),
    sample_rate=st.sampled_from([None, 8000, 16000]),
    channel=st.sampled_from([None, 0, 1, "mix"]),
    sha256=st.sampled_from([None, "ab" * 32]),
)
TIMES = st.floats(0, 1000)
SPANS = st.fixed_dictionaries(
    {"gloss": WORD, "start": TIMES, "end": TIMES}, optional={"hand": WORD, "marks": st.lists(WORD)}
)
WORDS = st.fixed_dictionaries({"w": WORD, "start": TIMES, "end": TIMES}, optional={"confidence": TIMES})
SENTENCES = st.fixed_dictionaries(
    {"offset": TIMES, "duration": st.floats(0.1, 9)},
    optional={"text": WORD, "gloss": st.lists(WORD, min_size=1), "speaker": WORD},
)
CLIPS = st.builds(
    Clip,
    id=WORD,
    direction=st.sampled_from(["sign2spoken", "spoken2sign", "speech2text"]),
    tracks=st.lists(VIDEO | AUDIO, min_size=1, max_size=3).map(tuple),
    source_lang=WORD,
    target_lang=WORD,
    activity_start_s=st.none() | TIMES,
    activity_end_s=st.none() | TIMES,
    activity_estimated=st.booleans(),
    transcript=st.none() | WORD,
    gloss=st.none() | st.lists(WORD, min_size=1, max_size=3).map(tuple),
    gloss_spans=st.lists(SPANS, max_size=2).map(tuple),
    text=st.none() | WORD,
    words=st.lists(WORDS, max_size=2).map(tuple),
    segments=st.lists(SENTENCES, max_size=2).map(tuple),
    alt_text=st.lists(WORD, max_size=2).map(tuple),
    alt_gloss=st.lists(st.lists(WORD, min_size=1, max_size=2).map(tuple), max_size=2).map(tuple),
    text_unit=st.sampled_from([None, "char", "word"]),
    gloss_unit=st.sampled_from([None, "char", "word"]),
    avatar=st.none() | st.just({"fps": 25}),
    speaker=st.none() | WORD,
    tags=st.lists(WORD, max_size=2).map(tuple),
    extra=st.dictionaries(st.sampled_from(["license", "my_key", "SNR"]), WORD, max_size=2)
    | st.just({"meta": {"take": 2}, "own": [1, None, {"a": 0.5}]}),
)


def again(clip: Clip, folder: Path = FOLDER) -> Clip:
    text = json.dumps(line.of(clip, folder), ensure_ascii=False).encode()
    entry = _entry(text, folder, clip.source, clip.line)
    assert entry.clip is not None, entry.problems
    tracks = (replace(track, path=Path(os.path.normpath(track.path))) for track in entry.clip.tracks)
    return replace(entry.clip, tracks=tuple(tracks))


@settings(max_examples=60, deadline=None)
@given(CLIPS)
def test_written_and_read_again_it_is_the_same_clip(clip: Clip) -> None:
    if len(clip.tracks) == 1 and clip.tracks[0].pattern is not None:
        clip = replace(clip, tracks=(replace(clip.tracks[0], sha256=None),))
    assert again(clip) == clip


def test_a_signer_beside_a_speaker_is_kept(tmp_path: Path) -> None:
    clip = clips.clip(tmp_path, speaker="s", extra={"signer": "t"})
    assert again(clip, tmp_path) == clip
    assert line.of(clips.clip(tmp_path, direction="sign2spoken", speaker="P03"), tmp_path)["signer"] == "P03"


def test_media_near_the_manifest_are_relative_and_others_absolute(tmp_path: Path) -> None:
    clip = clips.clip(tmp_path)
    places: dict[str, Any] = {
        name: line.of(clip, tmp_path / name)["audio_filepath"] for name in (".", "lists", "a/b", "a/b/c")
    }
    assert places == {
        ".": "a.wav",
        "lists": "../a.wav",
        "a/b": "../../a.wav",
        "a/b/c": str(tmp_path / "a.wav"),
    }


def test_a_key_that_is_called_like_a_field_does_not_become_it(tmp_path: Path) -> None:
    row = line.of(clips.clip(tmp_path, extra={"gloss": 3, "age": "20"}), tmp_path)
    assert (row["age"], row["meta"]) == ("20", {"gloss": 3})
    assert "gloss" not in row
