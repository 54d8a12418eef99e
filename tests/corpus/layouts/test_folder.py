"""Folders with a table, as Hugging Face reads them."""

from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_a_table_with_quoting_is_read_with_it_and_rows_stand_where_they_begin(tmp_path: Path) -> None:
    path = made.audiofolder(tmp_path)
    found = made.read("audiofolder", path, source_lang="en")
    table = path / "train" / "metadata.csv"
    assert found[0].clip == Clip(
        "train/a", "speech2text", (Track("audio", path / "train" / "a.wav"),), "en", "en",
        transcript='Stop, she said "now".', speaker="s1", tags=("train",), source=str(table), line=2,
    )  # fmt: skip
    assert made.brief(found)[1:] == [
        ("train/more/b", *made.NONE, "one\ntwo", None),
        ("test/a", *made.NONE, "Good evening.", None),
    ]
    made.text(table, "file_name,text,mood", "a.wav,one,calm", "b.wav,two", '"c.wav,three,', "d.wav,four,")
    found = made.read("audiofolder", table, source_lang="en", target_lang="de")
    assert made.brief(found) == [("a", *made.NONE, None, "one")]
    assert found[0].clip is not None
    assert found[0].clip.extra == {"mood": "calm"}
    assert [(entry.where, *entry.problems) for entry in found[1:]] == [
        (f"{table}:3", "has 2 columns where the header has 3"),
        (f"{table}:4", "not CSV: unexpected end of data; the rest of the file is not read"),
    ]


def test_columns_say_what_is_spoken_what_is_a_translation_and_the_languages(tmp_path: Path) -> None:
    path = made.rows(
        tmp_path / "metadata.jsonl",
        {"file_name": "a.wav", "transcription": "hello", "translation": "hallo", "lang": "en", "target_lang": "de"},
        {"file_name": "b.wav", "text": "hello", "language": "en"},
        {"file_name": "c.wav", "sentence": "hello", "text": "hallo", "lang": "en", "target_lang": "de", "id": "third"},
        {"text": "no file", "lang": "en"},
    )  # fmt: skip
    found = made.read("audiofolder", path)
    assert made.brief(found) == [
        ("a", *made.NONE, "hello", "hallo"), ("b", *made.NONE, "hello", None), ("third", *made.NONE, "hello", "hallo"),
    ]  # fmt: skip
    assert (found[3].where, found[3].problems) == (f"{path}:4", ("file_name is missing",))


def test_a_video_is_of_signing_unless_what_is_spoken_is_what_is_to_come_out(tmp_path: Path) -> None:
    path = made.videofolder(tmp_path)
    clips = [entry.clip for entry in made.read("videofolder", path, source_lang="csl", target_lang="zh")]
    assert clips[0] == Clip(
        "a", "sign2spoken", (Track("video", path / "a.mp4"),), "csl", "zh", gloss=("明天", "学校", "休息"),
        text="明天学校放假。", speaker="P03", extra={"take": 2}, source=str(path / "metadata.jsonl"), line=1,
    )  # fmt: skip
    assert [(clip.direction, clip.text, clip.gloss) for clip in clips[1:] if clip] == [
        ("sign2spoken", "今天有雨。", None), ("sign2spoken", "你好。", None),
    ]  # fmt: skip
    spoken = made.read("videofolder", path, source_lang="zh", target_lang="zh")
    assert [(entry.clip.direction, entry.clip.transcript, entry.clip.text) for entry in spoken if entry.clip][1:] == [
        ("speech2text", "今天有雨。", None), ("speech2text", "你好。", None),
    ]  # fmt: skip
    said = {"transcription": "你好。", "gloss": ["你", "好"]}
    made.rows(path / "metadata.jsonl", {"file_name": "a.mp4"} | said, {"file_name": "b.mp4", "gloss": [1]})
    entry, other = made.read("videofolder", path, source_lang="csl", target_lang="zh")
    assert entry.clip is not None
    assert (entry.clip.transcript, entry.clip.text, entry.clip.gloss) == (None, "你好。", ("你", "好"))
    assert other.problems == ("gloss must be a string, not [1]",)


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no metadata\.csv or metadata\.jsonl with file_name"):
        made.read("audiofolder", tmp_path, source_lang="en")
