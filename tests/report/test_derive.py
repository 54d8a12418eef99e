"""The derived files: whole, the same each time, and honest about a run that was killed."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loadbench.report import derive as derives
from loadbench.report.derive import derive
from loadbench.report.terminal import render
from loadbench.results.bundle import BundleError
from loadbench.results.slo import Slo
from loadbench.scoring import ratings, tables_file
from loadbench.scoring.ratings import Rating
from loadbench.scoring.tables_file import TablesError
from tests.report.conftest import SIGNED, SIGNED_CLIP, Write, header, session, signed

NAMES = ("outputs.jsonl", "scores.json", "summary.json", "report.html", "junit.xml")


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in NAMES}


def test_the_same_bundle_gives_the_same_bytes_each_time(write: Write) -> None:
    folder = write([session(number, "ok" if number != 4 else "no_final") for number in range(12)])
    derive(folder)
    first = contents(folder)
    derive(folder)
    assert contents(folder) == first
    assert not list(folder.glob(".*"))


def test_what_is_returned_is_what_was_written(write: Write) -> None:
    folder = write([session(number) for number in range(6)])
    found = derive(folder)
    assert json.loads((folder / "summary.json").read_text()) == found.summary
    assert json.loads((folder / "scores.json").read_text()) == found.scores
    assert len((folder / "outputs.jsonl").read_text().splitlines()) == 6
    assert found.summary["sessions"]["started"] == 6
    wer = next(item for item in found.summary["slo"] if item["name"] == "wer.max")
    assert wer["value"] is not None, "what scoring found has to reach the SLO"


def test_a_killed_run_is_read_as_far_as_it_goes_and_marked_incomplete(write: Write) -> None:
    folder = write([session(number) for number in range(8)], flying=3, finish=False)
    with (folder / "sessions.jsonl").open("a") as file:
        file.write('{"type":"session","id":"to')
    found = derive(folder)
    counts = found.summary["sessions"]
    assert found.summary["complete"] is False
    assert (counts["started"], counts["finished"], counts["in_flight"]) == (11, 8, 3)
    assert "incomplete" in (folder / "report.html").read_text()
    text = render(found.summary, found.scores)
    assert "INCOMPLETE" in text
    assert "started 11 = finished 8 + failed 0 + cut 0 + in flight 3" in text
    assert "torn" in text


def test_a_run_without_any_session_has_a_report_that_says_no_data(write: Write) -> None:
    folder = write([], clips=[])
    found = derive(folder)
    assert all(not item["met"] for item in found.summary["slo"])
    page = (folder / "report.html").read_text()
    assert "no data" in page
    assert "nothing was scored" in page
    assert "response times: no data" in render(found.summary, found.scores)


@pytest.mark.parametrize("outcome", ["connect_failed", "no_output", "interrupted", "worker_lost"])
def test_a_run_in_which_nobody_finished_has_a_report(write: Write, outcome: str) -> None:
    refused = [session(number, outcome, utterances=[], connections=[]) for number in range(3)]
    folder = write(refused)
    found = derive(folder)
    assert found.summary["sessions"]["ended"][outcome] == 3
    assert outcome in (folder / "report.html").read_text()
    assert f"3 {outcome}" in render(found.summary, found.scores)


def test_a_percentile_without_data_is_not_met_and_neither_zero_nor_a_pass(write: Write) -> None:
    run = header(slo=[Slo(metric="final_from_source_end", stat="p95", limit=2.0)])
    folder = write([session(number, "interrupted", utterances=[]) for number in range(3)], run=run)
    found = derive(folder)
    (result,) = found.summary["slo"]
    assert (result["met"], result["value"]) == (False, None)
    assert "NOT MET  final_from_source_end.p95_s  n/a" in render(found.summary, found.scores)


def test_a_folder_without_a_run_is_the_users_trouble(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"run\.json"):
        derive(tmp_path)


def test_a_language_that_nobody_wrote_is_named(write: Write) -> None:
    with pytest.raises(ValueError, match="en or zh"):
        derive(write([session(0)]), "xx")


@pytest.mark.slow
def test_ten_thousand_sessions_are_derived_in_reasonable_time_and_a_page_that_opens(write: Write) -> None:
    folder = write([session(number, final_ms=300 + number % 700) for number in range(10_000)])
    begun = time.process_time()
    derive(folder)
    assert time.process_time() - begun < 60
    assert (folder / "report.html").stat().st_size < 500_000


def test_derived_files_that_cannot_be_written_are_named_and_the_others_are_there(write: Write) -> None:
    folder = write([session(number) for number in range(3)])
    (folder / "summary.json").mkdir()
    (folder / ".report.html.part").mkdir()
    found = derive(folder)
    assert found.summary["sessions"]["finished"] == 3
    first, second = found.unwritten
    assert "summary.json: is a directory" in first
    assert "report.html: is a directory" in second
    assert "the records are intact" in first
    assert (folder / "junit.xml").is_file()
    assert (folder / "scores.json").is_file()


def test_a_disk_that_is_full_leaves_no_half_written_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write([session(number) for number in range(3)])
    derive(folder)
    before = contents(folder)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("loadbench.results.bundle.Path.replace", full)
    found = derive(folder, "zh")
    assert len(found.unwritten) == len(NAMES)
    assert all("no space left on device" in text for text in found.unwritten)
    assert contents(folder) == before
    assert not list(folder.glob(".*"))


def damaged(folder: Path, damage: Callable[[Path], object]) -> derives.Derived:
    damage(folder / "sessions.jsonl")
    return derive(folder)


DAMAGES = {
    "gone": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:-2])),
    "longer": lambda path: path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(True)[-1]),
    "changed": lambda path: path.write_bytes(path.read_bytes().replace(b'"no_final"', b'"ok"')),
    "a seal's worth of rubbish": lambda path: path.write_bytes(b"\xff" * 50 + path.read_bytes()[50:]),
    "without seals": lambda path: path.with_name("seals.jsonl").unlink(),
    "with fewer seals": lambda path: path.with_name("seals.jsonl").write_bytes(
        b"".join(path.with_name("seals.jsonl").read_bytes().splitlines(True)[:2])
    ),
    "clips gone": lambda path: path.with_name("clips.jsonl").unlink(),
    "a foreign seal": lambda path: (
        path.with_name("seals.jsonl")
        .open("a")
        .write('{"file":"/dev/zero","offset":0,"length":99999999999,"seal":"x"}\n')
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_bundle_says_so_everywhere_and_meets_nothing(write: Write, damage: Callable[[Path], object]) -> None:
    folder = write([session(number, "ok" if number else "no_final") for number in range(200)])
    whole = derive(folder)
    assert whole.summary["damage"] == []
    assert any(item["met"] for item in whole.summary["slo"])
    try:
        found = damaged(folder, damage)
    except ValueError as error:
        assert "two outputs" in str(error)  # noqa: PT017 - a record that is there twice is refused in words
        return
    assert found.summary["damage"]
    assert all(text.startswith("damaged: ") for text in found.summary["damage"])
    assert set(found.summary["damage"]) <= set(found.summary["problems"])
    assert not any(item["met"] for item in found.summary["slo"])
    assert {item["why"] for item in found.summary["slo"]} == {"not judged: the bundle is damaged"}
    assert "DAMAGED" in render(found.summary, found.scores)
    assert "damaged: some files are not as they were written" in (folder / "report.html").read_text()
    assert "the bundle is damaged" in (folder / "junit.xml").read_text()


def test_a_killed_run_with_unsealed_bytes_is_not_damaged_but_one_that_lost_a_file_is(write: Write) -> None:
    folder = write([session(number) for number in range(8)], finish=False)
    with (folder / "ticks.jsonl").open("a") as file:
        file.write('{"type":"ti')
    assert derive(folder).summary["damage"] == []
    (folder / "ticks.jsonl").unlink()
    assert derive(folder).summary["damage"] == ["damaged: ticks.jsonl: the file is missing"]


VALUES = {
    "lateness": ("ticks.jsonl", '"110":', '"-1000000000000000000":', "lateness bucket"),
    "bucket": ("ticks.jsonl", '"110":', '"999":', "lateness bucket 999"),
    "number": ("sessions.jsonl", '"bytes_sent":', f'"bytes_sent":{2**200},"x":', "no clock"),
    "outcome": ("sessions.jsonl", '"outcome":"ok"', '"outcome":"x"', "no outcome 'x'"),
    "depth": ("sessions.jsonl", '"raw":[]', '"raw":[],"x":' + "[" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize(("name", "old", "new", "expected"), VALUES.values(), ids=VALUES)
def test_a_line_with_a_value_that_cannot_be_is_skipped_and_named(
    write: Write, name: str, old: str, new: str, expected: str
) -> None:
    folder = write([session(number) for number in range(4)])
    lines = (folder / name).read_text().splitlines(True)
    at = next(at for at, line in enumerate(lines) if old in line)
    lines[at] = lines[at].replace(old, new, 1)
    (folder / name).write_text("".join(lines))
    found = derive(folder)
    (problem,) = [text for text in found.summary["problems"] if "cannot be read" in text]
    assert problem.startswith(f"{name}: line {at + 1} cannot be read and was skipped: ")
    assert expected in problem
    assert not any(item["met"] for item in found.summary["slo"])


def test_of_many_unreadable_lines_the_first_ten_are_named_and_the_rest_counted(write: Write) -> None:
    folder = write([session(number) for number in range(30)])
    path = folder / "sessions.jsonl"
    path.write_text(path.read_text().replace('"outcome":"ok","side"', '"outcome":"x","side"'))
    problems = derive(folder).summary["problems"]
    assert sum("there is no outcome" in text for text in problems) == 10
    assert "sessions.jsonl: 20 lines more cannot be read" in problems


HEADERS = {
    "no such metric": {"headline_metric": "x"},
    "no such objective": {"slo": [{"metric": "final_from_source_end", "stat": "min_share", "limit": 1}]},
    "a number too long": {"seed": 2**200},
    "deep": {"plan": {"a": json.loads("[" * 400 + "]" * 400)}},
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_a_header_that_cannot_be_is_one_clear_error(write: Write, change: dict[str, object]) -> None:
    folder = write([session(0)])
    found = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(found | change))
    with pytest.raises(BundleError, match=r"run.json cannot be read"):
        derive(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"plan": {"target": 5}},
        {"plan": {"target": {"url": [1]}}},
        {"effective": {"stages": 5}},
        {"profile": {"name": {}}},
    ],
)
def test_a_header_of_odd_shape_is_shown_as_far_as_it_goes(write: Write, change: dict[str, object]) -> None:
    folder = write([session(0)])
    found = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(found | change))
    assert derive(folder).summary["sessions"]["started"] == 1


def test_a_header_of_brackets_alone_is_one_clear_error(write: Write) -> None:
    folder = write([session(0)])
    (folder / "run.json").write_text("[" * 100_000)
    with pytest.raises(BundleError, match="nested too deeply"):
        derive(folder)


def entered(write: Write, **how: object) -> Path:
    """A bundle in which the made-up tables lie, and a rating of the only table that they want one for."""
    folder = write([signed(number) for number in range(4)], run=header(**SIGNED), clips=[SIGNED_CLIP], **how)
    (folder / tables_file.KEPT).write_bytes(tables_file.illustrative().encode())
    made = [Rating(indicator=4, clip="clip-0", rater=name, value=value) for name, value in (("anna", 80), ("ben", 90))]
    (folder / ratings.KEPT).write_bytes(b"".join(ratings.encode(made)))
    return folder


def test_tables_and_ratings_of_a_bundle_give_the_same_composite_each_time(write: Write) -> None:
    folder = entered(write)
    found = derive(folder).scores
    first = contents(folder)
    made = found["not_the_standard"]["directions"]["sign2spoken"]
    points = [step["points"] for step in made["steps"]]
    assert points == pytest.approx([86.6666667, 97.0, 85.0, 93.0])
    assert made["steps"][3]["inputs"]["value_s"] == 0.5
    expected = 0.31 * points[0] + 0.29 * 97 + 0.23 * 85 + 0.17 * 93
    assert made["composite"]["value"] == pytest.approx(expected)
    assert found["standard"]["directions"]["sign2spoken"]["composite"]["value"] is None
    derive(folder)
    assert contents(folder) == first


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"gap_ms": 1500.0}, "Table 5 (translation response score): the tester itself was late or failed"),
        ({"finish": False}, "the run did not come to its end"),
    ],
)
def test_a_run_that_cannot_be_believed_has_no_composite(write: Write, how: dict[str, object], said: str) -> None:
    scores = derive(entered(write, **how)).scores
    assert scores["not_the_standard"]["directions"]["sign2spoken"]["composite"]["missing"] == [said]


def test_a_damaged_bundle_has_no_composite(write: Write) -> None:
    folder = entered(write)
    lines = (folder / "sessions.jsonl").read_text()
    (folder / "sessions.jsonl").write_text(lines.replace('"main"', '"mein"', 1))
    whole = derive(folder).scores["not_the_standard"]["directions"]["sign2spoken"]["composite"]
    assert "the bundle is damaged" in whole["missing"]


@pytest.mark.parametrize(
    ("asked", "value_s", "why"),
    [
        ({"stat": "mean", "counted": "finished"}, 0.5, ""),
        ({"stat": "p95", "counted": "finished", "metric": "first_output_from_media"}, 0.8, ""),
        ({"metric": "first_sound_from_media"}, None, "there is no first_sound_from_media on channel transcript"),
        ({"channel": "speech"}, None, "there is no final_from_source_end on channel speech"),
    ],
)
def test_the_response_time_is_the_one_that_the_tables_ask_for(
    write: Write, asked: dict[str, str], value_s: float | None, why: str
) -> None:
    folder = entered(write)
    plain = json.loads((folder / tables_file.KEPT).read_text())
    plain["response"] |= asked
    (folder / tables_file.KEPT).write_text(json.dumps(plain))
    made = derive(folder).scores["not_the_standard"]["directions"]["sign2spoken"]
    steps = [step["inputs"]["value_s"] for step in made["steps"] if step["table"] == 5]
    assert steps == ([] if value_s is None else [value_s])
    assert [text.removeprefix("Table 5 (translation response score): ") for text in made["composite"]["missing"]] == (
        [why] if why else []
    )


def test_tables_in_a_bundle_that_are_none_are_the_users_trouble(write: Write) -> None:
    folder = entered(write)
    (folder / tables_file.KEPT).write_text("{}")
    with pytest.raises(TablesError, match="name is missing"):
        derive(folder)


def test_an_objective_on_a_figure_of_translation_is_judged_over_all_references(write: Write) -> None:
    limits = {"bleu": 20.0, "chrf": 1.0, "rouge_l": 0.5}
    slo = [Slo(metric=name, stat="min", limit=limit, channel="text") for name, limit in limits.items()]
    folder = write([signed(0), signed(1, "no_final")], run=header(**SIGNED | {"slo": slo}), clips=[SIGNED_CLIP])
    found = {item["name"]: item for item in derive(folder).summary["slo"]}
    assert [found[f"{name}.min"]["met"] for name in limits] == [False, True, False]
    assert found["rouge_l.min"]["value"] == pytest.approx(3 / 7)
    assert found["bleu.min"]["value"] < 20
