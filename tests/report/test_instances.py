"""What other tools are given to score."""

import json
from pathlib import Path

import pytest

from loadbench.cli import app
from loadbench.report.instances import omnisteval, simuleval
from loadbench.results.bundle import Bundle, BundleError
from loadbench.results.record import Channel, Sentence, Update
from tests.report.conftest import MS, Write, clip, session


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def bundle(write: Write) -> Bundle:
    """Two English outputs, one Chinese, one of a clip without a reference, one that failed and one of the warm-up."""
    records = [session(0), session(1), session(2), session(3, clip="bare"), session(4, "lost")]
    records.append(session(5, window="warmup"))
    clips = [clip(number) for number in range(3)]
    clips.append(clip(0, id="bare", transcript=None))
    clips[1].transcript = None
    clips[1].segments = [
        Sentence(offset=0.0, duration=1.0, transcript="a red boat"),
        Sentence(offset=1.25, duration=1.5, transcript="leaves the harbour at noon"),
    ]
    return Bundle(write(records, clips=clips))


def test_simuleval_gets_a_line_for_each_output_with_a_time_for_each_unit(write: Write, tmp_path: Path) -> None:
    told = simuleval(bundle(write), tmp_path / "out")
    assert told[-1] == "in none of them: failed 1, no_reference 1, not_measured 1"
    assert [line.rpartition(": ")[2] for line in told[:-1]] == ["1 outputs", "2 outputs"]
    first, second = lines(tmp_path / "out" / "transcript-word" / "instances.log")
    assert first == {
        "index": 0, "prediction": "the cat sit on mat", "prediction_length": 5,
        "reference": "the cat sat on the mat", "source": ["w1-0-0-clip-0"], "source_length": 3000.0,
        "delays": [800.0, 3000.0, 3000.0, 3000.0, 3000.0], "elapsed": [800.0, 3500.0, 3500.0, 3500.0, 3500.0],
    }  # fmt: skip
    assert (second["index"], second["reference"]) == (1, "a red boat leaves the harbour at noon")
    (chinese,) = lines(tmp_path / "out" / "transcript-char" / "instances.log")
    assert len(str(chinese["prediction"])) == len(chinese["delays"]) == chinese["prediction_length"]  # type: ignore[arg-type]


def test_omnisteval_gets_recordings_with_their_sentences_apart(write: Write, tmp_path: Path) -> None:
    omnisteval(bundle(write), tmp_path)
    short, long = tmp_path / "transcript-word", tmp_path / "transcript-word-long"
    assert [line["source"] for line in lines(short / "hypotheses.jsonl")] == ["w1-0-0-clip-0"]
    assert (short / "references.txt").read_text() == "the cat sat on the mat\n"
    (recording,) = lines(long / "hypotheses.jsonl")
    assert json.loads((long / "segments.json").read_text()) == [
        {"wav": recording["source"], "offset": 0.0, "duration": 1.0},
        {"wav": recording["source"], "offset": 1.25, "duration": 1.5},
    ]
    assert (long / "references.txt").read_text() == "a red boat\nleaves the harbour at noon\n"


def test_names_of_clips_and_channels_stay_within_the_folder(write: Write, tmp_path: Path) -> None:
    record = session(0, clip="../../x y")
    record.utterances[0].channels["transcript"] = Channel(
        updates=[Update((record.utterances[0].media_zero_ns or 0) + 500 * MS, 0, "red boat", 8)]
    )
    simuleval(Bundle(write([record], clips=[clip(0, id="../../x y")])), tmp_path / "out")
    (found,) = lines(tmp_path / "out" / "transcript-word" / "instances.log")
    assert found["source"] == ["w1-0-0-______x_y"]


def test_a_folder_that_is_a_file_is_refused_in_a_sentence(write: Write, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(BundleError, match=r"cannot write .*taken.*name another folder"):
        simuleval(bundle(write), tmp_path / "taken")


def test_the_command_writes_both_and_says_where(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(bundle(write).folder)
    app(["report", folder, "--simuleval", str(tmp_path / "se"), "--omnisteval", str(tmp_path / "oe")],
        standalone_mode=False)  # fmt: skip
    told = capsys.readouterr().err
    assert f"{tmp_path / 'se' / 'transcript-word' / 'instances.log'}: 2 outputs" in told
    assert f"{tmp_path / 'oe' / 'transcript-word-long' / 'hypotheses.jsonl'}: 1 outputs" in told
