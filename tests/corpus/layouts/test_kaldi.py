"""Kaldi data directories."""

from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_segments_are_cut_from_their_recordings_and_minus_one_is_the_end(tmp_path: Path) -> None:
    path = made.kaldi(tmp_path)
    found = made.read("kaldi", path)
    track = Track("audio", path / "wav" / "rec1.wav", offset_s=Fraction(1, 10), duration_s=Fraction(7, 20))
    assert found[0].clip == Clip(
        "s1-u1", "speech2text", (track,), "en", "en", transcript="good morning", speaker="s1",
        extra={"gender": "f", "recording": "rec1"}, source=str(path / "segments"), line=1,
    )  # fmt: skip
    assert made.brief(found)[1:] == [
        ("s1-u2", Fraction(1, 2), Fraction(2, 5), "come in", None),
        ("s2-u1", Fraction(1, 4), None, None, None),  # its text is empty, as Kaldi allows
    ]
    assert [entry.warnings for entry in found] == [(), (), ("its text is empty",)]


def test_without_segments_each_recording_is_an_utterance_whatever_the_order_of_the_files(tmp_path: Path) -> None:
    path = made.kaldi(tmp_path)
    for name in ("segments", "utt2lang"):
        (path / name).unlink()
    made.text(path / "wav.scp", "rec1\twav/my take 1.wav", f"rec2 {path}/wav/rec2.wav")
    made.text(path / "text", "rec9 nobody", "rec2  two   words ", "rec1\tone")
    (path / "reco2dur").write_text("rec1 1.00\nrec2 soon\n")
    found = made.read("kaldi", path, source_lang="en")
    assert made.brief(found) == [("rec1", Fraction(0), Fraction(1), "one", None)]
    assert found[0].clip is not None
    assert found[0].clip.tracks[0].path == path / "wav" / "my take 1.wav"
    assert [(entry.where, *entry.problems, *entry.warnings) for entry in found[1:]] == [
        (f"{path / 'wav.scp'}:2", "reco2dur must be a number of seconds, not 'soon'"),
        (str(path / "text"), "lines of no utterance, left out: 2 (rec9, rec2)"),
    ]
    with pytest.raises(CorpusError, match="give --source-lang"):
        made.read("kaldi", path)


def test_each_command_in_wav_scp_is_refused_and_none_is_run(tmp_path: Path) -> None:
    path = made.kaldi(tmp_path)
    run = f"touch {tmp_path}/ran && cat wav/rec2.wav"
    made.text(path / "wav.scp", "rec1 wav/rec1.wav", f"rec2 {run} | ", f"rec3 {run} |")
    (path / "segments").unlink()
    found = made.read("kaldi", path, source_lang="en")
    said = "is the output of a command, and a corpus runs no commands; name audio files instead"
    assert [(Path(entry.where).name, *entry.problems) for entry in found if entry.problems] == [
        ("wav.scp:2", f"rec2 {said}"),
        ("wav.scp:3", f"rec3 {said}"),
    ]
    assert not (tmp_path / "ran").exists()


def test_segments_that_do_not_fit_are_told(tmp_path: Path) -> None:
    path = made.kaldi(tmp_path)
    made.text(path / "wav.scp", "rec1 wav/rec1.wav", "rec3 /data/raw.ark:1042", "rec4")
    made.text(
        path / "segments", "s1-u1 rec1 0.1", "s1-u2 rec9 0 1", "s2-u1 rec1 zero 1", "s3-u1 rec1 0 0.5 left",
        "s3-u2 rec1 0 0.5 1",
    )  # fmt: skip
    found = made.read("kaldi", path, source_lang="en")
    assert [(Path(entry.where).name, *entry.problems) for entry in found if entry.problems] == [
        ("wav.scp:2", "rec3 lies in an archive (/data/raw.ark:1042); only audio files are read"),
        ("wav.scp:3", "rec4 has no file"),
        ("segments:1", "must be an utterance, a recording, a start and an end, not 's1-u1 rec1 0.1'"),
        ("segments:2", "s1-u2 is cut from rec9, of which wav.scp has no file"),
        ("segments:3", "start must be a number of seconds, not 'zero'"),
        ("segments:4", "must be an utterance, a recording, a start and an end, not 's3-u1 rec1 0 0.5 left'"),
    ]
    (clip,) = [entry.clip for entry in found if entry.clip]
    assert (clip.id, clip.tracks[0].channel, clip.speaker, clip.transcript) == ("s3-u2", 1, None, None)


def test_a_folder_of_data_directories_has_them_as_splits(tmp_path: Path) -> None:
    made.kaldi(tmp_path)
    train = made.kaldi(tmp_path / "more")
    train.rename(tmp_path / "data" / "train")
    assert made.layout("kaldi").splits(tmp_path / "data") == ("train", "test")
    found = made.read("kaldi", tmp_path / "data", split="train")
    assert [entry.clip.tags for entry in found if entry.clip] == [("train",)] * 3
