"""Common Voice as it lies on disk."""

from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_quotation_marks_are_text_and_splits_are_read_once(tmp_path: Path) -> None:
    """validated.tsv repeats the rows; a quote that is never closed does not swallow the next row."""
    path = made.commonvoice(tmp_path)
    clips = [entry.clip for entry in made.read("common-voice", path)]
    assert clips[0] == Clip(
        "common_voice_en_1", "speech2text", (Track("audio", path / "clips" / "common_voice_en_1.mp3"),), "en", "en",
        transcript='He said "stop and left.', speaker="c01", tags=("train",),
        extra={"up_votes": "2", "age": "twenties", "gender": "female"}, source=str(path / "train.tsv"), line=2,
    )  # fmt: skip
    assert [(clip.id, clip.transcript, clip.extra.get("accents"), clip.tags) for clip in clips[1:] if clip] == [
        ("common_voice_en_2", "A second sentence.", "Scottish", ("train",)),
        ("common_voice_en_3", "The third one.", None, ("test",)),
    ]
    assert made.layout("common-voice").splits(path) == ("train", "test")
    alone = made.read("common-voice", path / "validated.tsv")
    assert [entry.clip.tags for entry in alone if entry.clip] == [("validated",)] * 3
    for name in ("train", "test"):
        (path / f"{name}.tsv").unlink()
    assert made.layout("common-voice").splits(path) == ("validated",)


def test_rows_that_do_not_fit_the_header_are_told_with_their_line(tmp_path: Path) -> None:
    path = made.commonvoice(tmp_path)
    made.text(
        path / "test.tsv", "client_id\tpath\tsentence\tage", "c1\ta.mp3\tToo short.", "c2\t\tNo file.\t",
        "c3\tb.mp3\tOne\u2028line.\t", "c4\tc.mp3\t\t",
    )  # fmt: skip
    found = made.read("common-voice", path, split="test")
    assert [(entry.where.rpartition(":")[2], entry.problems) for entry in found if entry.problems] == [
        ("2", ("has 3 columns where the header has 4",)),
        ("3", ("path is missing",)),
    ]
    assert made.brief(found) == [("b", *made.NONE, "One\u2028line.", None), ("c", *made.NONE, "", None)]


def test_the_language_is_that_of_the_row_else_of_the_folder_else_as_asked(tmp_path: Path) -> None:
    made.commonvoice(tmp_path, "zh-TW")
    made.commonvoice(tmp_path, "cy")
    root = tmp_path / "cv-corpus"
    with pytest.raises(CorpusError) as caught:
        made.read("common-voice", root)
    assert caught.value.problems == [f"{root}: holds cy, zh-TW; choose one with --source-lang"]
    found = made.read("common-voice", root, source_lang="cy")
    assert {entry.clip.source_lang for entry in found if entry.clip} == {"cy"}
    old = "client_id\tpath\tsentence\taccent", "c1\ta.mp3\tCroeso.\t"
    made.text(root / "cy" / "test.tsv", *old)
    (entry,) = made.read("common-voice", root / "cy" / "test.tsv", target_lang="en")
    assert entry.clip is not None
    assert (entry.clip.source_lang, entry.clip.target_lang) == ("cy", "en")
    made.text(tmp_path / "Voices" / "test.tsv", *old)
    with pytest.raises(CorpusError, match="give --source-lang, as in en or zh"):
        made.read("common-voice", tmp_path / "Voices")
    (entry,) = made.read("common-voice", tmp_path / "Voices", source_lang="cy")
    assert entry.clip is not None
    assert entry.clip.source_lang == "cy"
