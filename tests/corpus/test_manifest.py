"""A manifest is read line by line; all that is wrong with it is said at once, with its place."""

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus import read, report
from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.manifest import CorpusError

USUAL = {"direction": "speech2text", "source_lang": "en", "target_lang": "en", "transcript": "good morning"}


def line(name: str, **fields: Any) -> str:
    row = USUAL | {"id": name, "audio_filepath": f"{name}.wav"} | fields
    return json.dumps({key: value for key, value in row.items() if value is not None}, ensure_ascii=False)


def written(folder: Path, text: str | bytes, *media: str) -> Path:
    for name in media:
        (folder / name).write_bytes(b"sound")
    path = folder / "manifest.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(CorpusError) as caught:
        read.clips(path)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


def test_byte_order_mark_crlf_blank_lines_and_a_line_separator_in_a_text_are_no_traps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file begins with a BOM, has CRLF ends and a blank line; the tool starts elsewhere; six lines, three good."""
    texts = ['"hello there (one quote)', "good\u2028morning", "bye"]
    lines = [
        line(f"u{n}", audio_filepath=f"{name}.wav", transcript=text)
        for n, name, text in zip((1, 2, 3), "abc", texts, strict=True)
    ]
    good = "\ufeff" + "\r\n".join(lines) + "\r\n"
    bad = [
        line("u2", audio_filepath="d.wav", transcript="again"),
        line("u4", audio_filepath="gone.wav"),
        line("u5", audio_filepath="e.wav") + '\t"more"',
    ]
    media = [f"{name}.wav" for name in "abcde"]
    monkeypatch.chdir(tmp_path.parent)
    path = Path(os.path.relpath(written(tmp_path, good + "\r\n".join(bad) + "\r\n\r\n", *media)))
    assert problems(path) == [
        "4: duplicate id u2, first at line 2",
        f"5: no such file: {tmp_path / 'gone.wav'}",
        "6: not JSON: trailing characters; each line must be one whole JSON object",
    ]
    written(tmp_path, good)
    clips = read.clips(path)
    assert [clip.transcript for clip in clips] == texts
    assert [clip.tracks[0].path for clip in clips] == [tmp_path / name for name in media[:3]]
    assert [clip.line for clip in clips] == [1, 2, 3]


def test_blank_lines_count_as_lines_and_the_last_needs_no_end(tmp_path: Path) -> None:
    path = written(tmp_path, f"\n  \n{line('a')}\n\n{line('b')}", "a.wav", "b.wav")
    assert [(clip.id, clip.line, clip.source) for clip in read.clips(path)] == [
        ("a", 3, str(path)),
        ("b", 5, str(path)),
    ]


def test_a_folder_stands_for_the_manifest_in_it(tmp_path: Path) -> None:
    written(tmp_path, line("a"), "a.wav")
    assert [clip.id for clip in read.clips(tmp_path)] == ["a"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "no known corpus; known: native"), ("gone.jsonl", "no such file or folder")],
)
def test_a_missing_manifest_is_named_in_full(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(CorpusError) as caught:
        read.clips(tmp_path / name)
    assert caught.value.problems[0].startswith(str(tmp_path / name))
    assert said in caught.value.problems[0]


def test_an_empty_manifest_is_no_corpus(tmp_path: Path) -> None:
    assert problems(written(tmp_path, "\n\n")) == [" holds no clips"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "a",', "1: not JSON: EOF while parsing"),
        ("[1, 2]", "1: must be a JSON object"),
        (b'{"id": "\xff"}', "1: not JSON: invalid unicode code point"),
        (line("a").encode("utf-16"), "1: not JSON"),
        ("[" * 100_000, "1: not JSON: recursion limit exceeded"),
    ],
)
def test_lines_that_are_no_json_object_are_named(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert problems(written(tmp_path, text))[0].startswith(said)


def test_every_problem_of_every_line_comes_at_once_and_good_lines_do_not_hide_it(tmp_path: Path) -> None:
    rows = [
        line("a", source_lang=None, duration="long", fps="fast"),
        line("b"),
        line("c", offset=-1, duration=0, transcript=" ", activity_start=3, activity_end=2),
        line("c", offset=-1, duration=-0.5),
    ]
    path = written(tmp_path, "\n".join(rows), "a.wav", "b.wav", "c.wav")
    assert problems(path) == [
        "1: fps must be a rate as in 25, 29.97 or \"30000/1001\", not 'fast'",
        "1: duration must be a number of seconds, not 'long'",
        "1: source_lang is missing",
        "3: transcript must not be empty",
        "4: offset must be 0 or more, not -1.0",
        "4: duration must be above 0, not -0.5",
    ]


def test_a_check_counts_what_is_declared_and_keeps_warnings_apart(tmp_path: Path) -> None:
    rows = [line("a", duration=90), line("b", duration=90.0, target_lang="zh", transcipt="x"), line("a")]
    found = report.check(written(tmp_path, "\n".join(rows), "a.wav", "b.wav"))
    assert (found.clips, found.hours) == (2, 0.05)
    assert found.languages == {("en", "en"): 1, ("en", "zh"): 1}
    place = tmp_path / "manifest.jsonl"
    assert found.problems.lines() == [f"{place}:3: duplicate id a, first at line 1"]
    assert found.warnings.lines() == [
        f"{place}:2: transcipt is no field of the manifest and is only passed through; meant transcript?"
    ]
    assert found.text().splitlines() == [
        *found.problems.lines(),
        f"warning: {found.warnings.lines()[0]}",
        "layout        native",
        "clips         2",
        "length        3.0 min",
        "directions    speech2text: 2",
        "languages     en to en: 1, en to zh: 1",
        "units         by language",
        "1 problem, 1 warning",
    ]
    unknown = report.check(written(tmp_path, line("a") + "\n" + line("b", duration=1)))
    assert unknown.hours is None
    assert "at least 1.0 s, unknown of 1 clips" in unknown.text()


def test_every_field_arrives_where_it_belongs(tmp_path: Path) -> None:
    spans = [{"gloss": "明天", "start": 0.32, "end": 0.96, "hand": "r", "marks": []}]
    row = {
        "id": "s2t-0001", "direction": "sign2spoken", "frames_dir": "f", "frames_pattern": "images%04d.png",
        "fps": "30000/1001", "offset": 0.1, "duration": 3.2, "source_lang": "csl", "target_lang": "zh",
        "activity_start": 0.32, "activity_end": 2.88, "gloss": ["明天", "休息"], "gloss_spans": spans,
        "text": "明天放假。", "alt_text": ["明天休息。"], "alt_gloss": [["明天", "放假"]], "text_unit": "char",
        "gloss_unit": "word", "avatar": {"fps": 25}, "signer": "P03", "tags": ["dev"], "license": "CC0-1.0",
        "meta": {"take": 2}, "my_key": [1],
        "words": [{"w": "明天", "start": 0.3, "end": 0.9, "confidence": 0.5}],
    }  # fmt: skip
    (tmp_path / "f").mkdir()
    (clip,) = read.clips(written(tmp_path, json.dumps(row)))
    track = Track("video", tmp_path / "f", "images%04d.png", Fraction(30_000, 1001), Fraction(1, 10), Fraction(16, 5))
    assert clip == Clip(
        id="s2t-0001",
        direction="sign2spoken",
        tracks=(track,),
        source_lang="csl",
        target_lang="zh",
        activity_start_s=0.32,
        activity_end_s=2.88,
        gloss=("明天", "休息"),
        gloss_spans=tuple(spans),
        text="明天放假。",
        words=({"w": "明天", "start": 0.3, "end": 0.9, "confidence": 0.5},),
        alt_text=("明天休息。",),
        alt_gloss=(("明天", "放假"),),
        text_unit="char",
        gloss_unit="word",
        avatar={"fps": 25},
        speaker="P03",
        tags=("dev",),
        extra={"license": "CC0-1.0", "meta": {"take": 2}, "my_key": [1]},
        source=str(tmp_path / "manifest.jsonl"),
        line=1,
    )


def test_a_clip_may_have_several_media(tmp_path: Path) -> None:
    tracks = [
        {"kind": "video", "filepath": "a.mp4", "offset": 0.5},
        {"kind": "audio", "filepath": "a.wav", "channel": "mix", "sample_rate": 48_000, "sha256": "AB" * 32},
    ]
    (clip,) = read.clips(written(tmp_path, line("a", audio_filepath=None, tracks=tracks), "a.wav", "a.mp4"))
    assert clip.tracks == (
        Track("video", tmp_path / "a.mp4", offset_s=Fraction(1, 2)),
        Track("audio", tmp_path / "a.wav", sample_rate=48_000, channel="mix", sha256="ab" * 32),
    )


def test_a_long_manifest_is_read_in_the_time_that_a_person_waits(tmp_path: Path) -> None:
    rows = "\n".join(line(f"c{n}", audio_filepath="a.wav") for n in range(20_000))
    assert len(read.clips(written(tmp_path, rows, "a.wav"))) == 20_000


def test_signing_without_a_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"x")
    line = {"id": "a", "direction": "sign2spoken", "audio_filepath": "a.wav", "source_lang": "csl", "target_lang": "zh"}
    (tmp_path / "manifest.jsonl").write_text(json.dumps(line | {"text": "你好"}))
    found = report.check(tmp_path)
    (problem,) = found.problems.lines()
    assert "sign2spoken needs a video" in problem


@pytest.mark.parametrize(
    ("name", "said"), [("/dev/zero", "/dev/zero: neither a file nor a folder"), ("a" * 5000, "File name too long")]
)
def test_what_is_neither_a_file_nor_a_folder_is_no_corpus(name: str, said: str) -> None:
    with pytest.raises(CorpusError, match=said):
        read.clips(Path(name))


def test_a_folder_where_a_video_file_should_be_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    row = line("a", audio_filepath=None, video_filepath="frames")
    (problem,) = problems(written(tmp_path, row))
    assert problem.endswith(
        "frames is a folder, not a file; a folder of pictures is named by frames_dir, frames_pattern and fps"
    )
