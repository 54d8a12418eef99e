"""Lists of audio files: WeNet, FunASR, SimulEval."""

from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_a_wenet_list_names_files_and_segments(tmp_path: Path) -> None:
    path = made.wenet(tmp_path)
    clips = [entry.clip for entry in made.read("wenet", path, source_lang="zh")]
    track = Track("audio", tmp_path / "2.wav", offset_s=Fraction(1, 4), duration_s=Fraction(1, 2))
    assert clips[2] == Clip(
        "u3",
        "speech2text",
        (track,),
        "zh",
        "zh",
        transcript="今天有雨",
        extra={"task": "asr"},
        source=str(path),
        line=3,
    )
    assert [(clip.transcript, clip.text, clip.speaker) for clip in clips[:2] if clip] == [
        ("明天学校休息", None, None), ("我们坐车", None, "p1"),
    ]  # fmt: skip
    translated = made.read("wenet", tmp_path, source_lang="en", target_lang="zh")
    assert made.brief(translated)[0] == ("u1", *made.NONE, None, "明天学校休息")
    made.rows(path, {"key": "u", "wav": "1.wav", "txt": "a", "end": -1}, {"wav": "1.wav", "txt": "a"})
    found = made.read("wenet", path, source_lang="zh")
    assert (made.brief(found), found[1].problems) == ([("u", *made.NONE, "a", None)], ("key is missing",))


def test_a_folder_with_wav_scp_beside_the_list_is_kaldis_and_the_list_is_wenets(tmp_path: Path) -> None:
    home = made.kaldi(tmp_path)
    path = made.rows(home / "data.list", {"key": "u", "wav": "wav/rec1.wav", "txt": "a"})
    for each, name in ((home, "kaldi"), (path, "wenet")):
        assert [layout.name for layout in made.LAYOUTS if layout.marks(each)] == [name]


def test_funasr_rows_keep_their_spaces_and_may_name_their_language(tmp_path: Path) -> None:
    path = made.funasr(tmp_path)
    clips = [entry.clip for entry in made.read("funasr", path, source_lang="zh")]
    assert clips[0] == Clip(
        "ID1", "speech2text", (Track("audio", tmp_path / "1.wav"),), "zh", "zh", transcript="明天学校休息",
        extra={"source_len": 40, "target_len": 6}, source=str(path), line=1,
    )  # fmt: skip
    assert [(clip.transcript, clip.source_lang) for clip in clips[1:] if clip] == [
        ("做 data science 也好", "zh"), ("he tried", "en"),
    ]  # fmt: skip
    made.rows(path, {"key": "ID1", "source": "https://corpus.invalid/1.wav", "target": "a"})
    (entry,) = made.read("funasr", path, source_lang="zh")
    assert entry.problems == (
        "source is a URL (https://corpus.invalid/1.wav); only files are read, so download it first",
    )


def test_funasr_lists_are_joined_by_key_in_any_order(tmp_path: Path) -> None:
    path = made.funasr_scp(tmp_path)
    found = made.read("funasr-scp", path, source_lang="zh")
    assert made.brief(found) == [
        ("ID1", *made.NONE, "明天学校休息", None),
        ("ID2", *made.NONE, "做 data science 也好", None),
        ("ID3", *made.NONE, "今天有雨", None),
    ]
    assert [entry.clip.tags for entry in found if entry.clip] == [("train",), ("train",), ("val",)]
    made.text(tmp_path / "bare" / "wav.scp", "ID1 1.wav", "ID2", "ID3 3.wav")
    made.text(tmp_path / "bare" / "text.txt", "ID1 一", "ID8 八", "ID2 二")
    found = made.read("funasr-scp", tmp_path / "bare", source_lang="zh")
    assert [(Path(entry.where).name, *entry.problems, *entry.warnings) for entry in found] == [
        ("wav.scp:1",),
        ("wav.scp:2", "file is missing"),
        ("wav.scp:3", "ID3 has no line in text.txt"),
        ("text.txt", "lines of no recording, left out: 1 (ID8)"),
    ]
    with pytest.raises(CorpusError, match=r"holds no wav\.scp with text\.txt"):
        made.read("funasr-scp", tmp_path / "bare" / "gone", source_lang="zh")


def test_simuleval_lists_go_line_by_line_without_a_final_line_feed(tmp_path: Path) -> None:
    path = made.simuleval(tmp_path)
    clips = [entry.clip for entry in made.read("simuleval", path, source_lang="en", target_lang="de")]
    assert clips[2] == Clip(
        "3-3", "speech2text", (Track("audio", tmp_path / "wav" / "3.wav"),), "en", "de", text="Wasser für alle.",
        extra={"index": 2}, source=str(path / "source.txt"), line=3,
    )  # fmt: skip
    same = made.read("simuleval", path / "source.txt", source_lang="de", target_lang="de")
    assert made.brief(same)[0] == ("1-1", *made.NONE, "Danke.", None)
    made.text(tmp_path / "tgt_lang.txt", "de", "de", "nl")
    found = made.read("simuleval", path, source_lang="en")
    assert [entry.clip.target_lang for entry in found if entry.clip] == ["de", "de", "nl"]
    made.text(tmp_path / "target.txt", "Danke.", "")
    with pytest.raises(CorpusError, match=r"target\.txt: ends after line 2 and source\.txt goes on"):
        made.read("simuleval", path, source_lang="en")
