"""The doctor from the outside: rows, an answer, an exit code, and nobody contacted who was not to be."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from loadbench import plan as plans
from loadbench.doctor import door
from loadbench.doctor.row import Row
from tests.test_main_job import loadbench, tone
from tests.typed import typed

MACHINE = ["file handles", "local ports", "memory", "processors", "frequency governor", "clock"]
MACHINE += ["timers", "event loop", "real-time priority"]
PLAN = """
[target]
url = "ws://127.0.0.1:{port}"
profile = "vosk"
secrets = {{ token = "env:DOCTOR_TOKEN" }}
headers = {{ authorization = "Bearer {{secret.token}}" }}
[corpus]
path = "."
[workload]
{work}
"""


@pytest.mark.realtime
async def test_without_a_plan_the_machine_is_looked_at_and_tried_with_the_embedded_corpus(tmp_path: Path) -> None:
    code, out, err = await loadbench("doctor", "--users", "5", "--json", cwd=tmp_path)
    found = json.loads(out)
    states = {row["name"]: row["state"] for row in found["rows"]}
    assert list(states) == [*MACHINE, "own capacity"], err
    assert code == (1 if "problem" in states.values() else 0)
    assert found["fit"] == (code == 0)
    assert (found["users"], found["trial"]["users"], found["trial"]["error"]) == (5, 5, "")
    assert found["trial"]["sessions"] >= 5
    assert 0 < found["trial"]["cpu_share"] < 1
    assert found["trial"]["verdict"]["figures"]["lateness_p99_ms"] > 0
    assert not os.listdir(tmp_path), "a doctor leaves nothing behind"  # noqa: PTH208


@pytest.mark.realtime
@pytest.mark.parametrize("flags", [[], ["--no-contact"]])
async def test_a_plan_s_target_is_connected_to_and_left_and_not_even_that_where_it_is_not_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    monkeypatch.setenv("DOCTOR_TOKEN", "tok-FAKE-74")
    tone(tmp_path, 1.0)
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    (tmp_path / "plan.toml").write_text(PLAN.format(port=port, work='model = "constant"\nrate = 1.5\nduration_s = 60'))
    code, out, err = await loadbench("doctor", "plan.toml", *flags, cwd=tmp_path)
    server.close()
    assert code in (0, 1), out + err
    assert "fit for 3 users: " in out  # 1.5 a second, each for a second of media and one more
    assert heard == ([] if flags else [b""])
    assert ("not looked at" in out) == bool(flags)
    assert ("contacting 127.0.0.1" in err) == (not flags)
    assert "FAKE" not in out + err


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["nowhere.toml"], "nowhere.toml"),
        (["--users", "0"], "--users must be above 0, not 0"),
        (["--rate", "-1"], "--rate must be above 0, not -1"),
        (["--rate", "nan"], "--rate must be above 0, not nan"),
        (["--rate", "inf"], "--rate must be at most 100000, not inf"),
        (["--users", "200000"], "--users must be at most 100000, not 200000"),  # no more than a plan may have
        (["--profile", "vosk"], "corpus"),
    ],
)
def test_what_is_wrong_with_the_question_is_usage(tmp_path: Path, words: list[str], part: str) -> None:
    code, out, err = typed("doctor", *words, cwd=tmp_path)
    assert code == 2, out + err
    assert part in err
    assert "Traceback" not in err


def test_one_problem_is_enough_to_be_unfit_and_a_warning_is_not() -> None:
    fine, warned, bad = (Row(name="x", state=state, found="y") for state in ("ok", "warning", "problem"))
    assert door.Findings(1, [fine, warned], None).fit
    found = door.Findings(1, [fine, bad], None)
    assert not found.fit
    assert "fit for 1 users: no" in found.text()


def test_each_line_of_an_advice_stands_below_its_row() -> None:
    row = Row(name="memory", state="warning", found="1 MB", needed="2 MB", advice="fewer users\nmore memory")
    lines = door.Findings(1, [row], None).text().splitlines()
    assert lines[0] == "warning  memory               1 MB   (needed: 2 MB)"
    assert [line.strip() for line in lines[1:3]] == ["fewer users", "more memory"]


def test_a_disturbed_second_is_listened_to_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([{"loop_gap_max_ms": 70.0}, {"loop_gap_max_ms": 2.0}, {"loop_gap_max_ms": 3.0}])
    monkeypatch.setattr(door, "_listened", lambda: next(seconds))
    assert door._selftest(50.0) == {"loop_gap_max_ms": 2.0}
    assert door._selftest(50.0) == {"loop_gap_max_ms": 3.0}


def test_the_embedded_corpus_is_what_can_be_heard() -> None:
    plan = door._plan(door.Asked(plan=None))
    assert isinstance(plan, plans.Plan)
    assert plan.target.profile == "vosk"
    assert {name.split("-")[0] for name in plan.corpus.ids} == {"en", "zh"}
