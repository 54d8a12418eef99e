"""AISHELL-1 as it lies on disk."""

from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_the_spaces_between_words_go_and_recordings_without_a_transcript_are_left_out(tmp_path: Path) -> None:
    path = made.aishell(tmp_path)
    *clips, last = made.read("aishell", path)
    listing = path / "transcript" / "aishell_transcript_v0.8.txt"
    track = Track("audio", path / "wav" / "test" / "S0764" / "BAC009S0764W0121.wav")
    assert clips[2].clip == Clip(
        "BAC009S0764W0121", "speech2text", (track,), "zh", "zh", transcript="今天有雨", speaker="S0764", tags=("test",),
        source=str(listing), line=3,
    )  # fmt: skip
    assert [(entry.clip.transcript, entry.clip.tags) for entry in clips if entry.clip] == [
        ("明天学校休息", ("train",)), ("我们坐车", ("train",)), ("今天有雨", ("test",)),
    ]  # fmt: skip
    assert (last.where, last.clip, last.problems, last.warnings) == (
        str(path / "wav"), None, (), ("recordings without a transcript, left out: 1 (BAC009S0002W0199)",),
    )  # fmt: skip


def test_speakers_of_other_splits_are_no_trouble_and_lines_without_words_are(tmp_path: Path) -> None:
    """The one file of transcripts is read for a split that is alone on disk; a speaker may come back later."""
    path = made.aishell(tmp_path)
    listing = made.text(
        path / "transcript" / "aishell_transcript_v0.8.txt", "BAC009S0901W0001 没 有", "BAC009S0002W0123 坐",
        "BAC009S0002W0124", "BAC009S0764W0121 雨", "BAC009S0002W0199 学 校", "BAC009S0002W0122 明 天", "noise 词",
    )  # fmt: skip
    found = made.read("aishell", path)
    assert [entry.clip.id[-5:] for entry in found if entry.clip] == ["W0123", "W0121", "W0199", "W0122"]
    assert [(entry.where, entry.problems) for entry in found if entry.clip is None] == [
        (f"{listing}:3", ("must be an id with a speaker and words, not 'BAC009S0002W0124'",)),
        (f"{listing}:7", ("must be an id with a speaker and words, not 'noise 词'",)),
    ]


def test_archives_that_are_not_unpacked_and_a_missing_transcript_are_told(tmp_path: Path) -> None:
    made.text(tmp_path / "wav" / "S0002.tar.gz", "x")
    with pytest.raises(CorpusError, match=r"holds no transcript/aishell_transcript_v0\.8\.txt"):
        made.read("aishell", tmp_path)
    made.text(tmp_path / "transcript" / "aishell_transcript_v0.8.txt", "BAC009S0002W0122 明天")
    with pytest.raises(CorpusError, match="holds no train, dev or test folder; unpack the archives"):
        made.read("aishell", tmp_path)
