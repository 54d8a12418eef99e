"""One door: what is recognised, which entries are chosen, and that no id comes twice."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus import layouts, manifest, read
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.manifest import CorpusError
from loadbench.corpus.read import Chosen
from tests.corpus import clips


def written(folder: Path, *rows: dict[str, Any], name: str = "manifest.jsonl") -> Path:
    (folder / "a.wav").touch()
    usual = {"direction": "speech2text", "audio_filepath": "a.wav", "source_lang": "en", "target_lang": "en"}
    text = "".join(json.dumps(usual | {"transcript": "hello"} | row) + "\n" for row in rows)
    (folder / name).write_text(text)
    return folder / name


def ids(path: Path, asked: Asked = read.NOTHING, **chosen: Any) -> list[str]:
    return [clip.id for clip in read.clips(path, asked, Chosen(**chosen))]


def refused(path: Path, asked: Asked = read.NOTHING, **chosen: Any) -> list[str]:
    with pytest.raises(CorpusError) as caught:
        read.clips(path, asked, Chosen(**chosen))
    return [problem.replace(str(path), "PATH") for problem in caught.value.problems]


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """Two layouts beside our own; both take a folder with parts.txt in it, and have the entries that are put in."""
    entries: list[Entry] = []

    def marks(path: Path) -> bool:
        return (path / "parts.txt").is_file()

    def all_of(_: Path, asked: Asked) -> Iterator[Entry]:
        return (entry for entry in entries if asked.split in (None, *(entry.clip.tags if entry.clip else ())))

    others = [Layout(name, name, marks, lambda _: ("train", "dev"), all_of) for name in ("narrow", "wide")]
    monkeypatch.setattr(layouts, "known", lambda: (manifest.LAYOUT, *others))
    return entries


def test_the_more_specific_layout_is_taken_and_the_others_are_named(tmp_path: Path, beside: list[Entry]) -> None:
    (tmp_path / "parts.txt").touch()
    found = read.found(tmp_path)
    assert (found.layout.name, found.also) == ("narrow", ("wide",))
    assert read.found(tmp_path, "wide").layout.name == "wide"
    with pytest.raises(CorpusError, match="no layout is called 'narow'; known: native, narrow, wide"):
        read.found(tmp_path, "narow")


def test_a_line_with_an_id_and_a_direction_makes_it_our_own(tmp_path: Path, beside: list[Entry]) -> None:
    written(tmp_path, {"id": "a"})
    (tmp_path / "parts.txt").touch()
    assert read.found(tmp_path) == (manifest.LAYOUT, ("narrow", "wide"))
    (tmp_path / "manifest.jsonl").write_text('{"audio_filepath": "a.wav", "text": "hello"}\n')
    assert read.found(tmp_path).layout.name == "narrow"


def test_a_file_that_nothing_recognises_is_read_as_ours_to_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a",\n')
    assert refused(tmp_path / "x.jsonl") == [
        "PATH:1: not JSON: EOF while parsing a value; each line must be one whole JSON object"
    ]
    assert refused(tmp_path)[0].startswith("PATH: no known corpus; known: native")


def test_the_first_clips_are_chosen_and_reading_ends_with_them(tmp_path: Path) -> None:
    path = written(tmp_path, *({"id": name} for name in "abc"))
    with path.open("a") as file:
        file.write("what follows is not even looked at\n")
    assert ids(path, limit=3) == ["a", "b", "c"]
    assert refused(path, limit=4)[0].startswith("PATH:4: not JSON")


def test_ids_are_looked_for_in_the_whole_corpus(tmp_path: Path) -> None:
    path = written(tmp_path, *({"id": name} for name in "abcd"))
    assert ids(path, ids=("d", "b")) == ["b", "d"]
    assert ids(path, ids=("d", "b"), limit=1) == ["b"]
    assert refused(path, ids=("x", "a", "y")) == ["PATH has no clip x", "PATH has no clip y"]


def test_a_line_that_cannot_be_read_may_be_the_clip_that_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "a"}, {"id": "b", "fps": "fast"})
    assert ids(path, ids=("a",)) == ["a"]
    (problem,) = refused(path, ids=("b",))
    assert problem.startswith(
        "PATH has no clip b (entries that cannot be read may be it, as PATH:2: fps must be a rate"
    )


def test_clips_that_are_too_long_are_left_out_and_those_of_unknown_length_are_not(tmp_path: Path) -> None:
    path = written(tmp_path, {"id": "a", "duration": 2.5}, {"id": "b", "duration": 2.6}, {"id": "c"})
    assert ids(path, max_duration_s=2.5) == ["a", "c"]
    assert ids(path, max_duration_s=2.5, length_s=lambda clip: 3.0 if clip.id == "c" else None) == ["a", "b"]
    assert refused(path, max_duration_s=1, length_s=lambda _: 2.0) == ["PATH: holds no clips of at most 1 s"]


def test_a_split_is_asked_of_the_layout_or_of_the_tags(tmp_path: Path, beside: list[Entry]) -> None:
    path = written(tmp_path, {"id": "a", "tags": ["dev"]}, {"id": "b", "tags": ["test"]})
    assert ids(path, Asked("test")) == ["b"]
    assert refused(path, Asked("train")) == ["PATH: holds no clips of split train"]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "parts.txt").touch()
    beside.append(Entry("f:1", clips.clip(tmp_path, tags=("dev",))))
    assert ids(tmp_path / "corpus", Asked("dev")) == ["a"]
    assert refused(tmp_path / "corpus", Asked("test")) == ["PATH has no split 'test'; it has train, dev"]


def test_an_id_comes_once_in_all_files_of_a_corpus(tmp_path: Path, beside: list[Entry]) -> None:
    (tmp_path / "parts.txt").touch()
    clip = clips.clip(tmp_path)
    beside += [Entry(where, clip) for where in ("train.tsv:3", "train.tsv:4", "dev.tsv:2", "doc.eaf", "doc.eaf")]
    assert refused(tmp_path) == [
        "train.tsv:4: duplicate id a, first at line 3",
        "dev.tsv:2: duplicate id a, first at train.tsv:3",
        "doc.eaf: duplicate id a, first at train.tsv:3",
        "doc.eaf: duplicate id a, first at train.tsv:3",
    ]


def test_what_the_reader_and_the_rules_say_comes_once(tmp_path: Path, beside: list[Entry]) -> None:
    (tmp_path / "parts.txt").touch()
    clip = clips.clip(tmp_path, transcript=" ")
    beside.append(Entry("f:1", clip, ("transcript must not be empty", "no column text"), ("odd",)))
    (entry,) = read.entries(tmp_path)
    assert entry.problems == ("transcript must not be empty", "no column text")
    assert entry.warnings == ("odd",)


def test_repeated_problems_are_counted_not_repeated(tmp_path: Path) -> None:
    path = written(tmp_path, *({"id": f"c{n}", "audio_filepath": "gone.wav"} for n in range(500)))
    problems = refused(path)
    assert len(problems) == 21
    assert problems[-1] == "and 480 more like this: no such file: ..."
