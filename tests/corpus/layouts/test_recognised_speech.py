"""Each corpus is recognised by its own layout and by no other, quickly, and nothing else is."""

import json
import os
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from loadbench.corpus.layout import Asked
from loadbench.corpus.manifest import CorpusError
from tests.corpus import made_speech as made
from tests.media import making


def recognised(path: Path) -> list[str]:
    return [layout.name for layout in made.LAYOUTS if layout.marks(path)]


@pytest.mark.parametrize("name", made.MADE)
def test_a_made_up_corpus_is_recognised_by_its_own_layout_and_read_whole(tmp_path: Path, name: str) -> None:
    """Under its usual path, under a path that a user may also name, and with a BOM and CRLF in all of its text."""
    build, asked = made.MADE[name]
    path = build(tmp_path)
    others = {
        "librispeech": [path / "dev-clean", path.parent], "common-voice": [path.parent, path / "test.tsv"],
        "must-c": [path / "data", path.parent, path / "data" / "dev" / "txt" / "dev.yaml"], "aishell": [path.parent],
        "nemo": [path.parent], "kaldi": [path.parent, path / "wav.scp"], "wenet": [path.parent],
        "funasr-scp": [path / "train_wav.scp"], "simuleval": [path / "source.txt"],
        "audiofolder": [path / "train" / "metadata.csv"], "videofolder": [path / "metadata.jsonl"],
        "coval": [path.parent],
    }  # fmt: skip
    for each in [path, *others.get(name, [])]:
        assert recognised(each) == [name], each
    layout = made.layout(name)
    found = list(layout.entries(path, asked))
    clips = [entry.clip for entry in found if entry.clip is not None]
    assert (len(clips), [entry.problems for entry in found if entry.problems]) == (3, [])
    assert len({clip.id for clip in clips}) == 3
    assert all(track.path.is_file() and track.path.is_absolute() for clip in clips for track in clip.tracks)
    splits = layout.splits(path)
    assert list(dict.fromkeys(tag for clip in clips for tag in clip.tags)) == list(splits)
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file() and file.suffix not in (".wav", ".flac", ".mp3", ".mp4"):
            file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    assert recognised(path) == [name]
    again = [entry.clip for entry in layout.entries(path, asked) if entry.clip is not None]
    assert again == clips


@pytest.mark.parametrize("name", made.MADE)
def test_a_split_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path, name: str) -> None:
    build, asked = made.MADE[name]
    path = build(tmp_path)
    with pytest.raises(CorpusError) as caught:
        list(made.layout(name).entries(path, replace(asked, split="gone")))
    (said,) = caught.value.problems
    splits = made.layout(name).splits(path)
    assert said.endswith(f"no split 'gone'; there are {', '.join(splits)}" if splits else "; it has no splits")
    for split in splits:
        one = [entry.clip for entry in made.layout(name).entries(path, replace(asked, split=split)) if entry.clip]
        assert Counter(tag for clip in one for tag in clip.tags) == {split: len(one)}


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, said) for name, said in (
        ("wenet", "--source-lang"), ("funasr", "--source-lang"), ("funasr-scp", "--source-lang"),
        ("simuleval", "--source-lang and --target-lang"), ("audiofolder", "--source-lang"),
        ("videofolder", "--source-lang and --target-lang"), ("coval", "--source-lang"),
    )],
)  # fmt: skip
def test_a_corpus_that_does_not_say_its_language_asks_for_it_once(tmp_path: Path, name: str, options: str) -> None:
    path = made.MADE[name][0](tmp_path)
    with pytest.raises(CorpusError) as caught:
        list(made.layout(name).entries(path, Asked()))
    (said,) = caught.value.problems
    assert said.endswith(f": does not say its languages; give {options}, as in en or zh")


def test_what_is_no_corpus_of_speech_is_recognised_by_none(tmp_path: Path) -> None:
    """The native manifest, lists of sentences, pictures, a table without a header, names that cannot be."""
    (tmp_path / "native").mkdir()
    native = making.manifest(tmp_path / "native", [{"id": "a", "audio_filepath": "a.wav"}])
    spread = json.dumps(json.loads(native.read_text()), indent=1).split("\n")
    pretty = made.text(tmp_path / "pretty" / "manifest.jsonl", *spread)
    sentences = made.text(tmp_path / "mt" / "source.txt", "Good morning.")
    made.text(tmp_path / "mt" / "target.txt", "Guten Morgen.")
    pictures = made.text(tmp_path / "pictures" / "metadata.csv", "file_name,text", "a.png,a cat")
    bare = made.text(tmp_path / "bare" / "metadata.csv", "LJ001|Good morning|good morning")
    speechless = made.text(tmp_path / "tts" / "tts-v1.json", '{"items": [{"testcase_id": "1", "transcript": "a"}]}')
    for path in (native, pretty, sentences, pictures, bare, speechless):
        assert recognised(path) == [], path
        assert recognised(path.parent) == [], path
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "gone", tmp_path / ("n" * 5000), Path("/dev/zero"), tmp_path / "pipe", Path("a\0b")):
        assert recognised(odd) == []


def test_a_look_at_a_folder_costs_the_same_however_many_files_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the listing itself: nothing is opened or asked about because it is there. Splits are few folders."""
    stat, asked = Path.stat, Counter[int]()
    for n in (150, 1500):
        folder = tmp_path / str(n)
        folder.mkdir()
        for name in range(n):
            (folder / f"{name}.json").touch()
            (folder / f"{name}-frames").mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(Path, "stat", lambda *args, n=n, **named: asked.update([n]) or stat(*args, **named))
            assert recognised(folder) == []
    assert asked[150] == asked[1500] > 0


def test_a_long_corpus_is_read_without_holding_it(tmp_path: Path) -> None:
    """Eight times the lines need the same memory, in one file or in several that are joined."""
    peaks: dict[str, list[int]] = {}
    for n in (300, 2400):
        home = tmp_path / str(n)
        txt = home / "en-de" / "data" / "dev" / "txt"
        made.text(txt / "dev.yaml", *(f"- {{duration: 1, offset: {at}, wav: a.wav}}" for at in range(n)))
        for language in ("en", "de"):
            made.text(txt / f"dev.{language}", *("Good morning." for _ in range(n)))
        made.text(home / "kaldi" / "wav.scp", *(f"u{at:05} {at}.wav" for at in range(n)))
        made.text(home / "kaldi" / "text", *(f"u{at:05} good morning" for at in range(n)))
        made.rows(home / "manifest.json", *({"audio_filepath": f"{at}.wav", "text": "good"} for at in range(n)))
        made.text(home / "cy" / "test.tsv", "client_id\tpath\tsentence", *(f"c\t{at}.mp3\tCroeso" for at in range(n)))
        for name, path in (("must-c", "en-de"), ("kaldi", "kaldi"), ("nemo", "manifest.json"), ("common-voice", "cy")):
            made.read(name, home / path, source_lang="en")  # Python's table of the names of files has grown by then
            entries = made.layout(name).entries(home / path, Asked(source_lang="en"))
            next(entries)
            tracemalloc.start()
            assert sum(entry.clip is not None for entry in entries) == n - 1
            peaks.setdefault(name, []).append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert {name: long < 2 * short + 50_000 for name, (short, long) in peaks.items()} == dict.fromkeys(peaks, True), (
        peaks
    )
