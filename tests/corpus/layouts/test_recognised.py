"""Each corpus is recognised by its own layout and by no other, from names and first lines alone."""

import os
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus.clip import Clip
from loadbench.media.decode import measure
from loadbench.media.frames import numbered
from tests.corpus import made
from tests.corpus.layouts.reads import ALL, clips, refused
from tests.corpus.made import written


def recognised(path: Path) -> list[str]:
    return [name for name, layout in ALL.items() if layout.marks(path)]


@pytest.mark.parametrize("name", made.SIGNED)
def test_a_made_up_corpus_is_recognised_by_exactly_its_own_layout_and_every_medium_decodes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read by a relative path, the paths of media are absolute; ids are unique, every clip has a reference."""
    path = made.SIGNED[name](tmp_path / "corpus")
    assert recognised(path) == [name]
    assert recognised(tmp_path) == []
    monkeypatch.chdir(tmp_path)
    found: list[Clip] = clips(name, Path("corpus"))
    assert 3 <= len(found) == len({clip.id for clip in found})
    for clip in found:
        (track,) = clip.tracks
        assert track.path.is_absolute()
        if track.pattern:
            assert len(numbered(track, [])) >= 5
        else:
            assert measure(track.path, "video", None, []).duration_s >= track.offset_s + (track.duration_s or 0)
        assert clip.text or clip.gloss
        assert Path(clip.source).is_file()
        assert clip.line > 0


def test_folders_of_others_are_not_claimed(tmp_path: Path) -> None:
    others = {
        "csv/annotations/manual/train.corpus.csv": "path,text\na.mp4,hello\n",
        "tables/train.csv": "id|text\n1|a\n",
        "label/label/train.csv": "Number,Name\n1,a\n",
        "split/sentence_label/split_1.txt": "a.mp4 train\n",
        "text/corpus.txt": "000000 a sentence\n",
        "words/corpus.txt": "hello world\n",
        "json/WLASL_notes.json": '{"gloss": []}',
        "other/words.json": '[{"gloss": "boat", "instances": []}]',
        "elan/one.eaf": made.eaf({"GlossL S1": [(0, 10, "BOAT")]}),
        "elan2/one.eaf": "Lexem_Gebärde in a text that is no XML",
        "sign/how2sign_realigned_train.csv": "not a header\n",
    }
    for name, text in others.items():
        written(tmp_path / name, text)
    (tmp_path / "words" / "color" / "000000").mkdir(parents=True)
    assert {name.split("/")[0]: recognised(tmp_path / name.split("/")[0]) for name in others} == {
        name.split("/")[0]: [] for name in others
    }


def test_what_cannot_be_looked_at_is_no_corpus_and_no_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "corpus.txt")
    (tmp_path / "color").mkdir()
    (tmp_path / "WLASL_v0.3.json").mkdir()
    (tmp_path / "a.eaf").symlink_to(tmp_path / "a.eaf")
    file = written(tmp_path / "b.csv", "\ufffd")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "corpus.txt").write_bytes(b"\xff\xfe\x00")
    hostile = [tmp_path, tmp_path / "raw", file, tmp_path / "gone", Path("nul\0"), Path("x" * 300), Path()]
    assert [recognised(path) for path in hostile] == [[]] * len(hostile)


def test_no_layout_looks_into_the_folders_of_a_large_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(50):
        (tmp_path / f"{n:06}" / "deep").mkdir(parents=True)
        written(tmp_path / f"{n}.mp4", "")
    listed: list[str] = []
    scan = os.scandir

    def noted(path: Any = ".") -> Any:
        listed.append(os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", noted)
    assert recognised(tmp_path) == []
    assert set(listed) <= {str(tmp_path / name) for name in ("", "color", "start_kit")}


@pytest.mark.parametrize("name", made.SIGNED)
def test_a_split_chooses_and_an_unknown_one_is_refused_with_those_that_are_there(name: str, tmp_path: Path) -> None:
    path, layout = made.SIGNED[name](tmp_path), ALL[name]
    splits, every = layout.splits(path), clips(name, path)
    known = f"there are {', '.join(splits)}" if splits else "this corpus has none: leave it out"
    assert refused(name, path, split="tset") == [f".: no split 'tset'; {known}"]
    by_split = {split: [clip.id for clip in clips(name, path, split=split)] for split in splits}
    assert all(by_split.values())
    assert {clip.id: clip.tags for clip in every} == (
        {found: (split,) for split, ids in by_split.items() for found in ids} or {clip.id: () for clip in every}
    )


@pytest.mark.parametrize("name", made.SIGNED)
def test_the_language_of_the_translations_may_name_a_region_and_not_another_language(name: str, tmp_path: Path) -> None:
    path = made.SIGNED[name](tmp_path)
    own = {"phoenix-2014-t": "de", "phoenix-2014": "de", "how2sign": "en", "wlasl": "en", "dgs": "de"}.get(name, "zh")
    only = {"dgs": "de, en"}.get(name, own)
    assert {clip.target_lang for clip in clips(name, path)} == {own}
    regional = clips(name, path, target_lang=f"{own}-XX", source_lang="xki")
    assert {(clip.source_lang, clip.target_lang) for clip in regional} == {("xki", f"{own}-XX")}
    assert refused(name, path, target_lang="fr") == [f".: has no translations into fr, only into {only}"]
