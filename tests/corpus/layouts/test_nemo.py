"""NeMo manifests."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_text_is_a_transcript_in_the_same_language_and_a_translation_in_another(tmp_path: Path) -> None:
    path = made.nemo(tmp_path)
    clips = [entry.clip for entry in made.read("nemo", path, source_lang="fr", target_lang="fr")]
    b = tmp_path / "audio" / "b.wav"
    assert clips[1:] == [
        Clip(
            "b-2", "speech2text", (Track("audio", b, offset_s=Fraction(1, 10), duration_s=Fraction(9, 20)),), "en",
            "en", transcript="come in", speaker="31", source=str(path), line=2,
        ),
        Clip(
            "b-3", "speech2text", (Track("audio", b, offset_s=Fraction(3, 5), duration_s=Fraction(2, 5)),), "en", "de",
            text="Wasser", extra={"taskname": "ast", "pnc": "yes"}, source=str(path), line=3,
        ),
    ]  # fmt: skip
    folder = made.read("nemo", tmp_path)
    assert next((entry.clip.id, entry.clip.tags) for entry in folder if entry.clip) == ("train-a-1", ("train",))


@pytest.mark.parametrize("indent", [2, None])
def test_a_manifest_printed_over_several_lines_or_as_a_list_is_recognised_and_refused(
    tmp_path: Path, indent: int | None
) -> None:
    row = {"audio_filepath": "a.wav", "duration": 1, "text": "a"}
    path = made.text(tmp_path / "manifest.json", json.dumps(row if indent else [row, row], indent=indent))
    assert made.layout("nemo").marks(path)
    with pytest.raises(CorpusError) as caught:
        made.read("nemo", path, source_lang="en")
    assert caught.value.problems == [
        f"{path}: is printed over several lines or as one list; write one object on each line"
    ]


def test_rows_that_do_not_fit_are_told_with_all_that_is_wrong_with_them(tmp_path: Path) -> None:
    path = made.text(
        tmp_path / "dev.json",
        '{"audio_filepath": "a.wav", "duration": null, "text": ""}',
        '{"audio_filepath": ["a.wav", "b.wav"], "duration": "long", "offset": true, "text": 1.5}',
        '{"audio_filepath": "https://corpus.invalid/a.wav"}',
        '{"audio_filepath": "a.wav"',
        "[1]",
        "",
        '{"text": "c", "id": 7, "duration": 1}',
        '{"audio_filepath": "c.wav", "id": 7, "duration": 1, "text": "c"}',
    )
    found = made.read("nemo", path, source_lang="en")
    assert made.brief(found) == [("a-1", *made.NONE, "", None), ("7", Fraction(0), Fraction(1), "c", None)]
    said = {entry.where.rpartition(":")[2]: entry.problems for entry in found if entry.problems}
    assert list(said) == ["2", "3", "4", "5", "7"]
    assert said["2"] == (
        "audio_filepath must be a string, not ['a.wav', 'b.wav']",
        "offset must be a number of seconds, not True",
        "duration must be a number of seconds, not 'long'",
        "text must be a string, not 1.5",
    )
    assert (
        said["3"][0]
        == "audio_filepath is a URL (https://corpus.invalid/a.wav); only files are read, so download it first"
    )
    assert said["4"][0].startswith("not JSON: ")
    assert said["4"][0].endswith("; each line must be one whole JSON object")
    assert said["5"] == ("must be a JSON object",)
    assert said["7"] == ("audio_filepath is missing",)


def test_a_row_without_a_language_among_rows_that_have_one_asks_for_it(tmp_path: Path) -> None:
    row = {"audio_filepath": "/tmp/a.wav", "text": "a"}
    path = made.rows(tmp_path / "manifest.json", row | {"lang": "en"}, row)
    with pytest.raises(CorpusError, match="give --source-lang, as in en or zh"):
        made.read("nemo", path)
    pairs = [
        (entry.clip.source_lang, entry.clip.target_lang)
        for entry in made.read("nemo", path, source_lang="de")
        if entry.clip
    ]
    assert pairs == [("en", "en"), ("de", "de")]
