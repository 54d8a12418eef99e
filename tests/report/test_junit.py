"""JUnit: what a build server makes of a run."""

from pathlib import Path
from xml.etree import ElementTree

from loadbench.report.derive import derive
from loadbench.results.slo import Slo
from loadbench.scoring import tables_file
from tests.report.conftest import SIGNED, SIGNED_CLIP, Write, header, session, signed


def cases(folder: Path) -> dict[str, list[str]]:
    derive(folder)
    suite = ElementTree.fromstring((folder / "junit.xml").read_bytes())
    found = {case.get("name", ""): [child.tag for child in case] for case in suite.findall("testcase")}
    kinds = [kind for tags in found.values() for kind in tags]
    assert suite.get("tests") == str(len(found))
    assert suite.get("failures") == str(kinds.count("failure"))
    assert suite.get("errors") == str(kinds.count("error"))
    assert suite.get("skipped") == str(kinds.count("skipped"))
    return found


def test_a_good_run_has_a_case_for_the_verdict_and_each_slo_and_none_fails(write: Write) -> None:
    assert cases(write([session(number) for number in range(4)])) == {
        "verdict VALID": [],
        "completed.min_share": [],
        "final_from_source_end.p95_s": [],
        "wer.max": [],
    }


def test_a_missed_slo_is_a_failure_also_where_there_is_no_data(write: Write) -> None:
    run = header(slo=[Slo(metric="completed", stat="min_share", limit=0.99), Slo(metric="wer", stat="max", limit=0.1)])
    folder = write([session(0), session(1, "no_final")], run=run, clips=[])
    assert cases(folder) == {"verdict VALID": [], "completed.min_share": ["failure"], "wer.max": ["failure"]}
    assert "no data" in (folder / "junit.xml").read_text()


def test_a_late_tester_is_an_error_and_latency_is_not_judged(write: Write) -> None:
    found = cases(write([session(number) for number in range(4)], gap_ms=1500.0))
    assert found["verdict INVALID"] == ["error"]
    assert found["final_from_source_end.p95_s"] == ["skipped"]
    assert found["completed.min_share"] == []


def test_an_incomplete_run_is_an_error(write: Write) -> None:
    assert cases(write([session(0)], finish=False))["run is complete"] == ["error"]


def test_characters_that_xml_cannot_hold_are_replaced(write: Write) -> None:
    run = header(slo=[Slo(metric="wer", stat="max", limit=0.1, stage="\x00\x1b<&\ufffe")])
    folder = write([session(0)], run=run)
    assert "wer.max@\ufffd\ufffd<&\ufffd" in cases(folder)


def test_a_composite_by_made_up_tables_says_so_in_its_name_and_in_its_value(write: Write) -> None:
    folder = write([signed(0)], run=header(**SIGNED), clips=[SIGNED_CLIP])
    rated = tables_file.illustrative().model_dump(by_alias=True)
    rated["tables"]["12"]["weights"] = {"sign2spoken": {"1": 1}}
    (folder / tables_file.KEPT).write_bytes(tables_file.Tables.model_validate(rated).encode())
    derive(folder)
    suite = ElementTree.fromstring((folder / "junit.xml").read_bytes())
    found = {item.get("name"): item.get("value") for item in suite.iter("property")}
    assert found["composite.sign2spoken (T/CADHOH 0004-2023)"] == "none"
    words = "illustrative, not T/CADHOH 0004-2023"
    assert found[f"composite.sign2spoken ({words})"] == f"86.67 ({words})"
