"""MuST-C as it lies on disk."""

from fractions import Fraction
from pathlib import Path

import pytest

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layouts import mustc
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made


def test_segments_go_line_by_line_with_both_texts(tmp_path: Path) -> None:
    path = made.mustc(tmp_path)
    clips = [entry.clip for entry in made.read("must-c", path)]
    dev = path / "data" / "dev"
    track = Track("audio", dev / "wav" / "ted_7.wav", offset_s=Fraction(1, 2), duration_s=Fraction(2, 5))
    assert clips[1] == Clip(
        "ted_7-2", "speech2text", (track,), "en", "de", transcript="We begin here.", text="Wir fangen hier an.",
        speaker="spk.7", tags=("dev",), extra={"rW": 3, "uW": 1}, source=str(dev / "txt" / "dev.yaml"), line=2,
    )  # fmt: skip
    assert [(clip.id, clip.text, clip.tags) for clip in clips if clip] == [
        ("ted_7-1", "Danke.", ("dev",)),
        ("ted_7-2", "Wir fangen hier an.", ("dev",)),
        ("ted_8-1", "Wasser.", ("tst-COMMON",)),
    ]


def test_files_of_different_length_are_refused_where_the_first_ends(tmp_path: Path) -> None:
    txt = made.mustc(tmp_path) / "data" / "dev" / "txt"
    made.text(txt / "dev.de", "Danke.")
    with pytest.raises(CorpusError) as caught:
        made.read("must-c", tmp_path / "en-de", split="dev")
    said = "ends after line 1 and dev.yaml goes on; both need a line for each clip"
    assert caught.value.problems == [f"{txt / 'dev.de'}: {said}"]
    made.text(txt / "dev.de", "Danke.", "Hier.", "Zu viel.")
    with pytest.raises(CorpusError, match=r"dev\.yaml: ends after line 2 and dev\.de goes on"):
        made.read("must-c", tmp_path / "en-de", split="dev")
    (txt / "dev.de").unlink()
    with pytest.raises(CorpusError, match=r"dev\.de: No such file"):
        made.read("must-c", tmp_path / "en-de")


@pytest.mark.parametrize(
    "lines",
    [
        ["- duration: 1.5", "  offset: 0.25", "  wav: a b.wav", "- {duration: 2, offset: 1e-3,", "  wav: c.wav}"],
        ["[{duration: 1.5, offset: 0.25, wav: a b.wav},", " {duration: 2, offset: 1e-3, wav: c.wav}]"],
        ["- {offset: 0.25, duration: 1.5, wav: a b.wav}", "- {wav: c.wav, offset: 0.001, duration: 2.000}"],
    ],
)  # fmt: skip
def test_segments_in_any_form_of_yaml_are_the_same(tmp_path: Path, lines: list[str]) -> None:
    txt = made.mustc(tmp_path) / "data" / "dev" / "txt"
    made.text(txt / "dev.yaml", *lines)
    found = made.read("must-c", tmp_path / "en-de", split="dev")
    assert made.brief(found) == [
        ("a b-1", Fraction(1, 4), Fraction(3, 2), "Thank you.", "Danke."),
        ("c-1", Fraction(1, 1000), Fraction(2), "We begin here.", "Wir fangen hier an."),
    ]
    places = [int(entry.where.rpartition(":")[2]) for entry in found]
    assert places == [next(n for n, line in enumerate(lines, 1) if mark in line) for mark in ("1.5", "duration: 2")]


def test_segments_that_are_none_are_told_and_keep_the_others_in_step(tmp_path: Path) -> None:
    txt = made.mustc(tmp_path) / "data" / "dev" / "txt"
    made.text(
        txt / "dev.yaml",
        "- {duration: long, wav: a.wav}",
        "- just text",
        "- {duration: [",
        "- {duration: 1, offset: 0, wav: a.wav}",
    )
    for language in ("en", "de"):
        made.text(txt / f"dev.{language}", "1", "2", "3", "4")
    found = made.read("must-c", tmp_path / "en-de", split="dev")
    assert [entry.problems for entry in found] == [
        ("offset is missing", "duration must be a number of seconds, not 'long'"),
        ("must be a segment with wav, offset and duration, not '- just text'",),
        ("not YAML: - {duration: [",),
        (),
    ]
    assert made.brief(found) == [("a-2", Fraction(0), Fraction(1), "4", "4")]
    made.text(txt / "dev.yaml", "duration: 1")
    with pytest.raises(CorpusError, match="must be a list of segments"):
        list(mustc.segments(txt / "dev.yaml"))


def test_the_languages_are_those_of_the_folder_else_as_asked(tmp_path: Path) -> None:
    made.mustc(tmp_path)
    made.mustc(tmp_path, "zh")
    with pytest.raises(CorpusError, match=r"holds en-de, en-zh; choose one with --target-lang"):
        made.read("must-c", tmp_path)
    found = made.read("must-c", tmp_path, target_lang="zh")
    assert {(entry.clip.source_lang, entry.clip.target_lang) for entry in found if entry.clip} == {("en", "zh")}
    (tmp_path / "en-de").rename(tmp_path / "talks")
    with pytest.raises(CorpusError, match="give --source-lang and --target-lang"):
        made.read("must-c", tmp_path / "talks")
    assert len(made.read("must-c", tmp_path / "talks", source_lang="en", target_lang="de")) == 3
