"""CSL-Daily, CSL of USTC and CE-CSL: what a row means, and what its traps come to."""

import json
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layouts.csl import NO_FPS
from loadbench.media.frames import numbered
from tests.corpus import made
from tests.corpus.layouts.reads import clips, refused, troubles, under
from tests.corpus.made import written

LABELS, SPLIT = "sentence_label/csl2020ct_v2.json", "sentence_label/split_1.txt"
WRONG = (
    f"{SPLIT}:3: warning: S000005_P0004_T00 is listed and not in the corpus; S000007_P0003_T00 is taken for it,"
    " as is usual"
)


def test_a_record_of_csl_daily_is_a_clip_at_30_frames_a_second_and_a_warning_says_that_this_is_assumed(
    tmp_path: Path,
) -> None:
    path = made.csl_daily(tmp_path)
    frames = path / "sentence/frames_512x512"
    found = clips("csl-daily", path)
    assert found[0] == Clip(
        id="S000001_P0001_T00",
        direction="sign2spoken",
        tracks=(Track("video", frames / "S000001_P0001_T00", "%06d.jpg", Fraction(30)),),
        source_lang="csl",
        target_lang="zh",
        gloss=("明天", "船", "来"),
        text="明天船会来。",
        speaker="P0001",
        tags=("train",),
        extra={"label_word": ["明", "天", "船", "会", "来", "。"]},
        source=str(path / LABELS),
        line=2,
    )
    assert [number for number, _ in numbered(found[0].tracks[0], [])] == [0, 1, 2, 3, 4, 5]
    assert [(clip.id, clip.tags, clip.line) for clip in found[1:]] == [
        ("S000007_P0003_T00", ("train",), 27),  # put right: listed under another name
        ("S000002_P0003_T01", ("test",), 47),
    ]
    assert troubles("csl-daily", path) == [WRONG, *(f"{LABELS}:{n}: warning: {NO_FPS}" for n in (2, 27, 47))]
    said = clips("csl-daily", path, fps=Fraction(25))
    assert {clip.tracks[0].fps for clip in said} == {25}
    assert troubles("csl-daily", path, fps=Fraction(25)) == [WRONG]


def test_a_pickle_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    made.csl_daily(tmp_path)
    labels = tmp_path / LABELS
    records = json.loads(labels.read_text())
    before = clips("csl-daily", tmp_path)
    labels.unlink()
    (problem,) = refused("csl-daily", tmp_path)
    said, _, command = problem.partition(" in its folder: ")
    assert said == (
        "sentence_label/csl2020ct_v2.pkl: a pickle runs whatever program was put into it, so it is not read here; "
        "if you trust where it came from, run this"
    )
    labels.with_suffix(".pkl").write_bytes(pickle.dumps({"info": records, "gloss_map": ["船"]}))
    subprocess.run(command.replace("python", sys.executable, 1), shell=True, check=True, cwd=labels.parent)
    assert [(clip.id, clip.text) for clip in clips("csl-daily", tmp_path)] == [(c.id, c.text) for c in before]


@pytest.mark.parametrize(("name", "separator"), [("data.tsv", "\t"), ("data.csv", ",")])
def test_a_table_made_of_the_records_reads_as_they_do(name: str, separator: str, tmp_path: Path) -> None:
    made.csl_daily(tmp_path)
    (tmp_path / LABELS).unlink()
    rows = [
        ["", "name", "label_gloss", "label_char"],
        ["0", "S000001_P0001_T00", "\"['明天', '船']\"", "\"['船', '来', '，']\""],
        ["1", "S000002_P0003_T01", "茶 热", "茶 很 热 。"],
        ["2", "S000007_P0003_T00", "\"[__import__('os')]\"", "灯"],
    ]
    file = f"sentence_label/{name}"
    written(tmp_path / file, "".join(separator.join(row) + "\n" for row in rows))
    assert troubles("csl-daily", tmp_path, fps=Fraction(30)) == [
        WRONG,
        f"{file}:4: S000007_P0003_T00: label_gloss is no list of texts",
    ]
    (first,) = clips("csl-daily", tmp_path, split="test")
    assert (first.gloss, first.text, first.line) == (("茶", "热"), "茶很热。", 3)


def test_records_and_lists_that_do_not_fit_are_told(tmp_path: Path) -> None:
    made.csl_daily(tmp_path)
    records: list[Any] = [
        "text",
        {"name": "S000009_P0001_T00", "label_gloss": ["船"], "label_char": ["船"]},
        {"name": "S000001_P0001_T00", "label_gloss": None, "label_char": [1]},
        {"name": ""},
    ]
    written(tmp_path / LABELS, "\n".join(json.dumps(record) for record in records))
    written(tmp_path / SPLIT, "name|split\nS000001_P0001_T00|train\nS000001\nS000003_P0001_T00|train\n")
    assert troubles("csl-daily", tmp_path, fps=Fraction(30)) == [
        f"{SPLIT}:3: has 1 columns, the header has 2",
        f"{LABELS}:1: has no name",
        f"{LABELS}:2: warning: S000009_P0001_T00 is in no split of split_1.txt: left out",
        f"{LABELS}:3: S000001_P0001_T00: label_gloss is no list of texts",
        f"{LABELS}:3: S000001_P0001_T00: label_char is no list of texts",
        f"{LABELS}:4: has no name",
        f"{SPLIT}:4: S000003_P0001_T00 has no annotation in csl2020ct_v2.json",
    ]


def test_two_converted_files_or_none_are_refused_and_frames_may_lie_in_their_other_folder(tmp_path: Path) -> None:
    made.csl_daily(tmp_path)
    (tmp_path / "sentence").rename(tmp_path / "sentence_frames-512x512")
    assert under(tmp_path, clips("csl-daily", tmp_path)[0]).startswith("sentence_frames-512x512/frames_512x512/S000001")
    written(tmp_path / "sentence_label/more.csv", "")
    assert refused("csl-daily", tmp_path) == [
        "sentence_label: holds csl2020ct_v2.json and more.csv; leave one of them there"
    ]
    for file in (tmp_path / "sentence_label").glob("[cm]*"):
        file.unlink()
    assert refused("csl-daily", tmp_path) == ["sentence_label: holds no annotations as .json, .jsonl, .csv or .tsv"]


@pytest.mark.parametrize("code", ["utf-8", "gb18030"])
def test_a_sentence_of_ustc_has_its_videos_in_order_in_either_encoding(code: str, tmp_path: Path) -> None:
    """Words are glosses where they are given; both spellings of the name, repetition 2 before 10."""
    path = made.csl_ustc(tmp_path, code)
    found = clips("csl-ustc", path)
    words = ("他", "的", "船", "是", "新", "的")
    assert [(clip.id, clip.gloss, clip.text, clip.speaker, clip.line, under(path, clip)) for clip in found] == [
        ("P01_s1_00_2", words, "他的船是新的", "P01", 1, "color/000000/P01_s1_00_2._color.avi"),
        ("P01_s1_00_10", words, "他的船是新的", "P01", 1, "color/000000/P01_s1_00_10_color.avi"),
        ("P02_s1_01_0", None, "灯亮了", "P02", 2, "color/000001/P02_s1_01_0_color.avi"),
    ]
    assert {(clip.source_lang, clip.target_lang, clip.tracks[0].fps) for clip in found} == {("csl", "zh", None)}
    odd = ["corpus.txt:1: warning: corpus.txt is not UTF-8 and is read as GB18030: look at the texts"]
    stray = "color/000001: ignored, not named like P01_s1_00_0_color.avi: Thumbs.db"
    assert troubles("csl-ustc", path) == (odd if code == "gb18030" else []) + [f"corpus.txt:2: warning: {stray}"]


def test_sentences_without_a_folder_and_folders_without_a_sentence_are_told(tmp_path: Path) -> None:
    for name in ("000000/P01_s1_07_0_color.avi", "000002/notes.txt", "000005/P01_s1_05_0_color.avi"):
        written(tmp_path / "color" / name, "")
    written(tmp_path / "corpus.txt", "000000 船\n000001 灯\n000002 茶\nnotes\n\u3000\n000000 水\n")
    (tmp_path / "color/notes").mkdir()
    assert troubles("csl-ustc", tmp_path) == [
        "corpus.txt:1: color/000000/P01_s1_07_0_color.avi: its name says sentence 7, its folder another",
        "corpus.txt:2: no such folder, or named twice: color/000001",
        "corpus.txt:3: warning: color/000002: ignored, not named like P01_s1_00_0_color.avi: notes.txt",
        "corpus.txt:3: color/000002: holds no video",
        "corpus.txt:4: begins with 'notes', not with six digits",
        "corpus.txt:5: begins with '', not with six digits",
        "corpus.txt:6: no such folder, or named twice: color/000000",
        "color/000005: corpus.txt has no sentence for it",
    ]
    (tmp_path / "corpus.txt").write_bytes(b"000000 \xff\xff\n")
    assert refused("csl-ustc", tmp_path) == ["corpus.txt: is in none of utf-8, gb18030: convert it to UTF-8"]


@pytest.mark.parametrize("code", ["utf-8", "gb18030"])
def test_a_row_of_ce_csl_is_a_clip_of_its_translator_in_either_encoding(code: str, tmp_path: Path) -> None:
    path = made.ce_csl(tmp_path, code)
    first, second, third = clips("ce-csl", path)
    assert (first.gloss, first.text, first.speaker, first.line, first.tags) == (
        ("船", "来", "快", "走", "。"),
        "船来了,快走。",
        "A",
        2,
        ("train",),
    )
    assert [under(path, clip) for clip in (first, second, third)] == [
        *("video/train/A/train-00001.mp4", "video/train/B/train-00002.mp4"),
        "video/test/A/test-00001.mp4",
    ]
    odd = "csv is not UTF-8 and is read as GB18030: look at the texts"
    places = [("train", 2), ("train", 3), ("test", 2)] if code == "gb18030" else []
    assert troubles("ce-csl", path) == [f"label/{split}.csv:{n}: warning: {split}.{odd}" for split, n in places]


def test_rows_of_ce_csl_that_do_not_fit_are_told_and_videos_may_lie_without_their_folder(tmp_path: Path) -> None:
    made.ce_csl(tmp_path)
    for split in ("train", "test"):
        (tmp_path / "video" / split).rename(tmp_path / split)
    (tmp_path / "video").rmdir()
    assert all(clip.tracks[0].path.is_file() for clip in clips("ce-csl", tmp_path))
    written(tmp_path / "label/test.csv", "Number,Translator,Chinese Sentences,Gloss\nx,A,船\n")
    assert troubles("ce-csl", tmp_path) == ["label/test.csv:2: has 3 columns, the header has 4"]
    assert refused("ce-csl", tmp_path / "label") == [
        ".: holds no label/train.csv that begins with Number,Translator,Chinese Sentences,Gloss"
    ]
