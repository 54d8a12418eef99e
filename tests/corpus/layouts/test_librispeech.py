"""LibriSpeech as it lies on disk."""

from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_clips_are_in_english_upper_case_with_their_speaker_in_the_order_of_numbers(tmp_path: Path) -> None:
    path = made.librispeech(tmp_path)
    made.text(path / "dev-clean" / "9" / "1" / "9-1.trans.txt", "9-1-0000 COME IN")
    made.sound(path / "dev-clean" / "9" / "1" / "9-1-0000.wav")
    clips = [entry.clip for entry in made.read("librispeech", path)]
    assert [(clip.id, clip.transcript, clip.speaker, clip.tags) for clip in clips if clip] == [
        ("9-1-0000", "COME IN", "9", ("dev-clean",)),
        ("12-34-0000", "GOOD MORNING", "12", ("dev-clean",)),
        ("12-34-0001", "IT IS MRS BROWN'S TURN", "12", ("dev-clean",)),
        ("112-5-0000", "THE RIVER ROSE", "112", ("test-other",)),
    ]
    home = path / "test-other" / "112" / "5"
    assert clips[3] == Clip(
        "112-5-0000", "speech2text", (Track("audio", home / "112-5-0000.flac"),), "en", "en",
        transcript="THE RIVER ROSE", speaker="112", tags=("test-other",), source=str(home / "112-5.trans.txt"), line=1,
    )  # fmt: skip
    assert next(clip.tracks[0].path.name for clip in clips if clip) == "9-1-0000.wav"  # a copy in another form
    (german,) = made.read("librispeech", path, split="test-other", source_lang="fr", target_lang="de")
    assert german.clip is not None
    assert (german.clip.source_lang, german.clip.target_lang) == ("en", "de")


def test_recordings_without_a_transcript_and_lines_without_text_are_told(tmp_path: Path) -> None:
    path = made.librispeech(tmp_path)
    home = path / "dev-clean" / "12" / "34"
    for n in (7, 8):
        made.sound(home / f"12-34-000{n}.flac")
    made.text(home / "12-34.trans.txt", "12-34-0000 GOOD MORNING", "", "12-34-0001", "12-34-0002 GONE")
    found = made.read("librispeech", path, split="dev-clean")
    assert [entry.clip.id for entry in found if entry.clip] == [
        "12-34-0000",
        "12-34-0002",
    ]  # its file is looked for later
    assert (found[1].where, found[1].problems) == (
        f"{home / '12-34.trans.txt'}:3", ("must be an id and a transcript, not '12-34-0001'",),
    )  # fmt: skip
    assert (found[3].where, found[3].warnings) == (
        str(path / "dev-clean"),
        ("recordings without a transcript, left out: 2 (12-34-0007, 12-34-0008)",),
    )


def test_text_that_is_not_utf_8_and_a_folder_that_is_no_librispeech_are_refused(tmp_path: Path) -> None:
    path = made.librispeech(tmp_path)
    listing = path / "dev-clean" / "12" / "34" / "12-34.trans.txt"
    listing.write_bytes("12-34-0000 GOOD\n12-34-0001 CAFÉ\n".encode("latin-1"))
    with pytest.raises(CorpusError) as caught:
        made.read("librispeech", path)
    assert caught.value.problems == [f"{listing}:2: not UTF-8 (byte 0xc9); convert the file to UTF-8"]
    (tmp_path / "empty").mkdir()
    for other, said in (("empty", "holds no SPLIT/SPEAKER"), ("gone", "No such file or directory")):
        with pytest.raises(CorpusError, match=said):
            made.read("librispeech", tmp_path / other)


def test_a_link_to_itself_beside_the_recordings_is_neither_file_nor_folder(tmp_path: Path) -> None:
    path = made.librispeech(tmp_path)
    before = [entry.clip.id for entry in made.read("librispeech", path) if entry.clip]
    for folder in (path, next(path.rglob("*.trans.txt")).parent):
        (folder / "self").symlink_to("self")
    assert [entry.clip.id for entry in made.read("librispeech", path) if entry.clip] == before != []
