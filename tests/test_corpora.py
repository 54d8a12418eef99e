"""The corpus commands as a user meets them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadbench import cli, corpora
from loadbench.corpora import Question
from loadbench.corpus import read
from loadbench.corpus.manifest import CorpusError
from tests.media import making

DEMO = Path(corpora.__file__).parent / "data" / "demo"


def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: Any) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `loadbench corpus ...`."""
    monkeypatch.setattr("sys.argv", ["loadbench", "corpus", *map(str, words)])
    code = cli.main()
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def spoken(tmp_path: Path) -> Path:
    """Two clips of a second and a half, with half a second of silence before and behind; the second's file is gone."""
    quiet = np.zeros(8000, np.int16)
    making.wav(tmp_path / "a.wav", np.concatenate([quiet, making.tone(0.5), quiet]).tobytes())
    rows = [{"id": "a", "audio_filepath": "a.wav", "mine": "kept"}, {"id": "b", "audio_filepath": "b.wav"}]
    return making.manifest(tmp_path, rows)


def test_check_says_all_and_ends_with_2_where_there_are_problems(
    spoken: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = told(capsys, monkeypatch, "check", spoken)
    assert code == 2
    assert out.splitlines()[0] == f"{spoken}:2: no such file: {spoken.parent / 'b.wav'}"
    assert "length        1.5 s" in out
    assert told(capsys, monkeypatch, "check", spoken, "--ids", "a")[0] == 0
    code, out, _ = told(capsys, monkeypatch, "check", spoken, "--limit", 1, "--no-media", "--json")
    found = json.loads(out)
    assert (code, found["clips"], found["hours"], found["problems"]) == (0, 1, None, [])


def test_what_is_asked_wrongly_is_told_at_once(
    spoken: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--fps", "fast", "--limit", "0", "--max-duration", "-1")
    code, out, err = told(capsys, monkeypatch, "check", spoken, *flags)
    assert (code, out) == (2, "")
    assert [line.strip() for line in err.splitlines()] == [
        "loadbench: 3 problems:",
        "--fps must be a rate as in 25, 29.97 or \"30000/1001\", not 'fast'",
        "--limit must be 1 or more, not 0",
        "--max-duration must be above 0, not -1",
    ]
    code, _, err = told(capsys, monkeypatch, "check", spoken, "--no-media", "--activity")
    assert code == 2
    assert "leave --no-media out" in err


def test_convert_writes_what_can_be_used_tells_the_rest_and_may_estimate_activity(
    spoken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "lists" / "new.jsonl"
    code, said, err = told(capsys, monkeypatch, "convert", spoken, out, "--estimate-activity")
    assert (code, said) == (2, f"1 clips in {out}, 1 of them with estimated activity\n")
    assert f"{spoken}:2: no such file" in err
    row = json.loads(out.read_text())
    assert row["audio_filepath"] == "../a.wav"
    assert (row["activity_start"], row["activity_end"], row["activity_estimated"]) == (0.48, 1.02, True)
    assert row["mine"] == "kept"
    (clip,) = read.clips(out)
    assert clip.activity_estimated
    assert sorted(path.name for path in out.parent.iterdir()) == ["new.jsonl"]


def test_the_demo_corpus_converted_is_the_same_corpus(tmp_path: Path) -> None:
    out = tmp_path / "new.jsonl"
    done = corpora.convert(Question(DEMO), out, estimate=False)
    assert (done.clips, done.estimated, done.problems.count) == (12, 0, 0)
    again = corpora.convert(Question(out), tmp_path / "again.jsonl", estimate=False)
    assert again.clips == 12
    assert out.read_text() == (tmp_path / "again.jsonl").read_text()


def test_a_conversion_that_fails_leaves_no_file_and_never_writes_over_its_corpus(spoken: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="is the corpus itself"):
        corpora.convert(Question(tmp_path), tmp_path / "manifest.jsonl", estimate=False)
    with pytest.raises(CorpusError, match="has no clip x"):
        corpora.convert(Question(spoken, ids=("x",)), tmp_path / "new.jsonl", estimate=False)
    with pytest.raises(CorpusError, match="File exists"):
        corpora.convert(Question(spoken), tmp_path / "a.wav" / "new.jsonl", estimate=False)
    with pytest.raises(CorpusError, match="no such file: "):
        corpora.convert(Question(spoken, ids=("b",)), tmp_path / "new.jsonl", estimate=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.wav", "manifest.jsonl"]


def test_list_names_the_layouts_the_clips_of_one_corpus_or_the_schema(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(capsys, monkeypatch, "list")[1].startswith("native           loadbench's own manifest")
    _, out, _ = told(capsys, monkeypatch, "list", DEMO, "--limit", 2, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["id"], row["languages"], row["reference"][:12]) for row in rows] == [
        ("en-01", "en to en", "Good morning"),
        ("en-02", "en to en", "The next tra"),
    ]
    schema = json.loads(told(capsys, monkeypatch, "list", "--schema")[1])
    assert schema["required"] == ["id", "direction", "source_lang", "target_lang"]
    assert "activity_estimated" in schema["properties"]
    assert told(capsys, monkeypatch, "list", DEMO, "--schema")[0] == 2


def test_prepare_takes_the_same_filters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--profile", "vosk", "--cache", tmp_path, "--ids", "en-01,en-03", "--max-duration", "3")
    code, out, _ = told(capsys, monkeypatch, "prepare", DEMO, *flags)
    assert (code, out) == (0, f"1 clips are ready for vosk in {tmp_path}\n")
