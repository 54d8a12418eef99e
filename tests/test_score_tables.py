"""Score tables and ratings from the command line: read, refused, kept in the bundle."""

import json
from pathlib import Path

import pytest

from loadbench.scoring import tables_file
from tests.independent_stub import Stub
from tests.report.conftest import SIGNED, SIGNED_CLIP, Write, header, session, signed, write
from tests.test_main_job import loadbench, tone
from tests.test_way_in import short_run

__all__ = ["write"]


async def test_entered_tables_and_ratings_are_kept_and_used_by_every_later_report(tmp_path: Path, write: Write) -> None:
    write([signed(number) for number in range(2)], run=header(**SIGNED), clips=[SIGNED_CLIP])
    (tmp_path / "r.csv").write_text("indicator,clip,rater,value\n4,clip-0,anna,80\n4,clip-0,ben,90\n")
    code, out, err = await loadbench("score", "bundle", "--tables", "illustrative", "--ratings", "r.csv", cwd=tmp_path)
    assert (code, err) == (0, "")
    found = json.loads(out)
    made = found["not_the_standard"]["directions"]["sign2spoken"]["composite"]
    assert (made["missing"], made["under"]) == ([], "illustrative, not T/CADHOH 0004-2023")
    assert found["standard"]["directions"]["sign2spoken"]["composite"]["value"] is None
    (tmp_path / "r.csv").unlink()
    code, out, _ = await loadbench("report", "bundle", cwd=tmp_path)
    assert code == 0
    assert f"composite, sign2spoken: {made['value']:.2f}   [illustrative, not T/CADHOH 0004-2023]" in out


async def test_tables_and_ratings_that_are_wrong_are_told_together_and_nothing_is_kept(
    tmp_path: Path, write: Write
) -> None:
    folder = write([session(0)])
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\n[response]\nmetric = "final"\nstat = "p50"\ncounted = "started"\nunit = "s"\n'
    )
    (tmp_path / "r.csv").write_text("indicator,clip,rater,value\n2,a,anna,80\n")
    code, out, err = await loadbench("score", "bundle", "--tables", "mine.toml", "--ratings", "r.csv", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "2 problems" in err
    assert "mine.toml: response.metric: there is no response time 'final'" in err
    assert "r.csv:2: indicator 2: people rate tables 3, 4" in err
    assert not (folder / tables_file.KEPT).exists()


async def test_ratings_without_tables_and_a_file_without_ratings_are_refused(tmp_path: Path, write: Write) -> None:
    write([session(0)])
    (tmp_path / "r.csv").write_text("indicator,clip,rater,value\n4,clip-0,anna,80\n")
    code, _, err = await loadbench("score", "bundle", "--ratings", "r.csv", cwd=tmp_path)
    assert code == 2
    assert "--ratings: the tables that they are for are not in this bundle; give --tables as well" in err
    (tmp_path / "r.csv").write_text("indicator,clip,rater,value\n")
    code, _, err = await loadbench("score", "bundle", "--tables", "illustrative", "--ratings", "r.csv", cwd=tmp_path)
    assert (code, err) == (2, "loadbench: r.csv: holds no ratings\n")


async def test_the_template_is_printed_filled_in_and_checked(tmp_path: Path) -> None:
    code, out, _ = await loadbench("tables", "template", cwd=tmp_path)
    assert code == 0
    (tmp_path / "mine.toml").write_text(
        out.replace("bands = { sign2spoken = [], spoken2sign = [] }", "bands = { sign2spoken = [{ base = 50 }] }", 1)
    )
    code, out, err = await loadbench("tables", "check", "mine.toml", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "Table 2  translation accuracy score: sign2spoken: 1 bands\n" in out
    code, out, _ = await loadbench("tables", "schema", cwd=tmp_path)
    assert (code, json.loads(out)["title"]) == (0, "loadbench score tables")
    code, _, err = await loadbench("tables", "check", cwd=tmp_path)
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.realtime
async def test_the_tables_of_a_plan_are_refused_before_anybody_is_contacted_or_kept_with_the_run(
    tmp_path: Path,
) -> None:
    tone(tmp_path, 0.5)
    (tmp_path / "mine.toml").write_text('name = "T/CADHOH"\n')
    async with Stub(final_s=0.1).serving() as url:
        words = short_run(url, "--sessions", "1")
        code, _, err = await loadbench(*words, "--set", "scoring.tables=mine.toml", cwd=tmp_path)
        assert (code, "looks like the standard" in err, (tmp_path / "bundle").exists()) == (2, True, False)
        code, out, _ = await loadbench(*words, "--set", "scoring.tables=illustrative", cwd=tmp_path)
    assert code == 0
    assert "composite, spoken2sign: none   [illustrative, not T/CADHOH 0004-2023]" in out
    assert json.loads((tmp_path / "bundle" / "tables.json").read_text())["name"] == "illustrative"
