"""The derived files: whole, the same each time, and honest about a run that was killed."""

import json
import time
from pathlib import Path

import pytest

from loadbench.report.derive import derive
from loadbench.report.terminal import render
from loadbench.results.bundle import BundleError
from loadbench.results.slo import Slo
from tests.report.conftest import Write, header, session

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
    begun = time.monotonic()
    derive(folder)
    assert time.monotonic() - begun < 60
    assert (folder / "report.html").stat().st_size < 500_000
