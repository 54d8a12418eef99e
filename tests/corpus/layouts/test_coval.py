"""Coval's manifests."""

import hashlib
import json
from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_the_end_of_speech_is_where_activity_ends_and_unknown_where_it_is_null(tmp_path: Path) -> None:
    path = made.coval(tmp_path)
    clips = [entry.clip for entry in made.read("coval", path, source_lang="en")]
    sound = tmp_path / "audio" / "0001.wav"
    track = Track("audio", sound, duration_s=Fraction(2, 5), sha256=hashlib.sha256(sound.read_bytes()).hexdigest())
    assert clips[0] == Clip(
        "audio/0001", "speech2text", (track,), "en", "en", activity_end_s=0.3505, activity_estimated=True,
        transcript="sentence 1", speaker="spk0", source=str(path), line=8,
    )  # fmt: skip
    assert [(clip.activity_end_s, clip.extra, clip.line) for clip in clips[1:] if clip] == [
        (None, {}, 16), (None, {"chapter_id": "5"}, 24),
    ]  # fmt: skip
    folder = made.read("coval", tmp_path, source_lang="en")
    assert next((entry.clip.id, entry.clip.tags) for entry in folder if entry.clip) == (
        "made-v1/audio/0001", ("made-v1",),
    )  # fmt: skip


def test_items_that_do_not_fit_are_told_with_their_line_and_broken_json_ends_it(tmp_path: Path) -> None:
    path = made.coval(tmp_path)
    good = {"path": "a.wav", "sha256": None, "transcript": "a", "duration_sec": 1}
    items = [good | {"path": None}, good | {"speech_end_offset_ms": "late", "duration_sec": "x"}, 3, good]
    body = ",\n".join(json.dumps(item) for item in items)
    path.write_text('{"items": [\n' + body + "\n]}")
    found = made.read("coval", path, source_lang="en")
    assert [(entry.where.rpartition(":")[2], *entry.problems) for entry in found] == [
        ("2", "path is missing"),
        ("3", "duration_sec must be a number of seconds, not 'x'",
         "speech_end_offset_ms must be a number of seconds, not 'late'"),
        ("4", "must be an object, not 3"),
        ("5",),
    ]  # fmt: skip
    path.write_text('{"items": [\n' + body + ",\n{broken")
    with pytest.raises(CorpusError, match=r"made-v1\.json:6: not JSON: "):
        made.read("coval", path, source_lang="en")
    path.write_text('{"clips": []}')
    with pytest.raises(CorpusError, match="has no list of items"):
        made.read("coval", path, source_lang="en")
