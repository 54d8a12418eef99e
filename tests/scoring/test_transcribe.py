"""Kept speech made text by a command, which may do anything."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from loadbench.results.bundle import Bundle, BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.media import MediaOutput, opening
from loadbench.results.record import Channel, ClipFacts, SessionRecord, Utterance
from loadbench.results.run import Anchor, Done, RunHeader
from loadbench.results.slo import Thresholds
from loadbench.scoring import outputs
from loadbench.scoring.transcribe import transcribe
from tests.typed import typed


def bundle(folder: Path, outcomes: tuple[str, ...] = ("ok", "ok", "ok"), **plan: Any) -> Bundle:
    """Sessions that spoke; of the last one nothing was kept."""
    header = RunHeader(
        run_id="r", anchor=Anchor(monotonic_ns=0, wall_ns=0), plan=plan, headline_channel="speech", seed=1, slo=[],
        channel_stages={"speech": "media", "text": "translation"}, channel_media={"speech": "audio"},
        headline_metric="playback_end_from_source_end", thresholds=Thresholds(),
    )  # fmt: skip
    writer = BundleWriter(folder, header, Masks(()))
    writer.append(
        "clips",
        ClipFacts(
            id="a", direction="speech2text", duration_s=1.0, source_lang="en", target_lang="de", text="das rote boot"
        ),
    )
    for number, outcome in enumerate(outcomes):
        media = MediaOutput(medium="audio", format="s16le", bytes=4, first_sound_ns=5)
        part = Utterance(index=0, clip="a", attempt=0, media_ns=1, channels={"speech": Channel(media=media)})
        part.outcome = outcome
        record = SessionRecord(
            id=f"s{number}", worker="w", user=0, stage="main", window="measure", planned_ns=0, begun_ns=0, ended_ns=9,
            utterances=[part], outcome=outcome, side="none",
        )  # fmt: skip
        writer.append("sessions", record)
        if number < len(outcomes) - 1:
            writer.keep(f"s{number}.speech.wav", opening("s16le", 24000, 1) + b"\1\2\3\4")
    writer.flush()
    writer.finish(Done(ended_ns=9, reason="completed"))
    return Bundle(folder)


def command(*lines: str) -> str:
    """A Python program that for each path that it reads does this."""
    body = "\n ".join(lines)
    return f"{sys.executable} -c 'import json, sys, time\nfor path in sys.stdin:\n {body}'"


SAYS = 'print(json.dumps({"text": "das blaue boot" if "s1" in path else "das rote boot"}), flush=True)'


def test_each_kept_file_becomes_a_row_that_is_scored_and_others_have_none(tmp_path: Path) -> None:
    found = transcribe(bundle(tmp_path / "b"), command(SAYS))
    assert [(each.session, each.text) for each in found] == [("s0", "das rote boot"), ("s1", "das blaue boot")]
    rows = [row for row in outputs.rows(Bundle(tmp_path / "b")) if row.channel == "speech"]
    assert [(row.session, row.hypothesis, row.unit, row.counted) for row in rows] == [
        ("s0", "das rote boot", "word", True),
        ("s1", "das blaue boot", "word", True),
    ]
    assert rows[0].references == ["das rote boot"]
    assert rows[0].stage == "media"


def test_without_transcripts_there_is_no_row_of_speech(tmp_path: Path) -> None:
    assert {row.channel for row in outputs.rows(bundle(tmp_path / "b"))} == {"text"}


def test_the_path_is_that_of_a_wav_file(tmp_path: Path) -> None:
    whole = command('print(json.dumps({"text": str(open(path.strip(), "rb").read()[:4])}), flush=True)')
    assert transcribe(bundle(tmp_path / "b"), whole)[0].text == "b'RIFF'"


@pytest.mark.parametrize(
    ("lines", "errors"),
    [
        (['print("text", flush=True)'], ["the command's answer is no JSON: b'text'"] * 2),
        (["print('[' * 100_000, flush=True)"], [f"the command's answer is no JSON: {b'[' * 80!r}"] * 2),
        (["print(json.dumps({'error': 'too quiet'}), flush=True)"], ["too quiet"] * 2),
        (["print(json.dumps([1]), flush=True)"], ["the command's answer has no text: b'[1]'"] * 2),
        (["sys.exit(3)"], ["the command ended"] * 2),
        (["time.sleep(60)"], ["no answer within 0.5 s"] * 2),
    ],
)
def test_what_the_command_cannot_do_is_data_and_such_an_output_is_not_counted(
    tmp_path: Path, lines: list[str], errors: list[str]
) -> None:
    lines = [line.replace("'", '"') for line in lines]
    found = transcribe(bundle(tmp_path / "b"), command(*lines), answer_s=0.5 if "sleep" in lines[0] else 20.0)
    assert [(each.text, each.error) for each in found] == [(None, error) for error in errors]
    rows = [row for row in outputs.rows(Bundle(tmp_path / "b")) if row.channel == "speech"]
    assert [(row.hypothesis, row.counted) for row in rows] == [("", False)] * 2


def test_speech_of_which_only_a_part_was_kept_is_not_made_text(tmp_path: Path) -> None:
    made = bundle(tmp_path / "b")
    (tmp_path / "b" / "media" / "s0.speech.wav").write_bytes(b"\1")
    found = transcribe(made, command(SAYS))
    assert [(each.text is None, each.error) for each in found] == [
        (True, "only a part of it was kept: raise record.media_mib"),
        (False, ""),
    ]


def test_a_session_that_failed_lost_its_reference_whatever_it_had_said(tmp_path: Path) -> None:
    transcribe(bundle(tmp_path / "b", ("lost", "ok", "ok")), command(SAYS))
    row = next(row for row in outputs.rows(Bundle(tmp_path / "b")) if row.channel == "speech")
    assert (row.complete, row.counted, row.hypothesis, row.unfinished) == (False, True, "", "das rote boot")


@pytest.mark.parametrize("wrong", ["no-such-program-here", "'", ""])
def test_a_command_that_is_none_is_the_users_trouble(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(outputs.OutputsError, match="cannot be started"):
        transcribe(bundle(tmp_path / "b"), wrong)


def test_media_is_sealed_as_records_are(tmp_path: Path) -> None:
    made = bundle(tmp_path / "b")
    assert made.verify() == []
    (tmp_path / "b" / "media" / "s0.speech.wav").write_bytes(b"other")
    assert made.damage() == [
        "damaged: media/s0.speech.wav: bytes 0 to 48 do not match their seal; the file was damaged or changed"
    ]


@pytest.mark.realtime
def test_the_command_of_a_plan_runs_only_where_that_is_allowed_and_its_failure_is_told(tmp_path: Path) -> None:
    bundle(tmp_path / "b", scoring={"transcribe": "exec:" + command(SAYS)})
    code, out, err = typed("score", "b", cwd=tmp_path)
    assert (code, "speech" in json.loads(out)["channels"]) == (0, False)
    assert "allow it with --allow-exec" in err
    code, out, err = typed("score", "b", "--allow-exec", cwd=tmp_path)
    assert (code, json.loads(out)["channels"]["speech"]["n"], err) == (0, 2, "")
    code, out, err = typed("score", "b", "--transcribe", "false", cwd=tmp_path)
    assert (code, json.loads(out)["channels"]["speech"]["n"]) == (0, 0)
    assert [line.rpartition(":")[0] for line in err.splitlines()] == [
        f"loadbench: s{number}, channel speech: not made text" for number in range(2)
    ]
    code, _, err = typed("score", "b", "--transcribe", "no-such-program", cwd=tmp_path)
    assert (code, "cannot be started" in err, "Traceback" in err) == (2, True, False)
