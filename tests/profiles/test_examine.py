import json
from pathlib import Path

import pytest

from loadbench.profiles import examine
from loadbench.session import load
from tests.profiles.sketch import text, written
from tests.typed import typed

DEAD = text("{event: ignore}", "{has: partial, text: {model: unkeyed, text: partial}}")


@pytest.mark.parametrize("name", load.shipped())
def test_shipped_profiles_have_nothing_worse_than_facts(name: str) -> None:
    found = examine.examine(name, None)
    assert (found.errors, found.warnings) == (0, 0), found.text()


@pytest.mark.parametrize(
    ("flags", "code"),
    [([], 0), (["--strict"], 1)],  # a warning fails only where it is to
)
def test_warnings_count_where_they_are_to(tmp_path: Path, flags: list[str], code: int) -> None:
    found, out, err = typed("profile", "check", written(tmp_path, DEAD), *flags, cwd=tmp_path)
    assert found == code, err
    assert "sketch.yaml:9: warning: rule 2 can never fire" in out
    assert "sketch: 0 errors, 1 warnings; speaks websocket" in out


def test_errors_count_always_and_all_are_in_the_json(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text(json.dumps({"at_ms": 0, "data": "<html>"}) + "\n")
    words = ("profile", "check", written(tmp_path, DEAD), "--messages", "m.jsonl", "--json")
    code, out, _ = typed(*words, cwd=tmp_path)
    found = json.loads(out)
    assert code == 2
    assert (found["errors"], found["warnings"], found["messages"]) == (1, 1, 1)
    assert [each["weight"] for each in found["findings"]][:2] == ["error", "warning"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["check", "sketch.yaml", "--messages", "nowhere"], "nowhere: cannot be read"),
        (["check", "bad.yaml"], "bad.yaml:"),
        (["show"], "takes the name of a profile"),
        (["show", "vosk", "--schema"], "takes the name of a profile"),
        (["try", "ws://192.0.2.1:1", "--secret", "novalue"], "--secret must be NAME=..."),
        (["record", "--to", "x", "--out", "o", "--listen", "0.0.0.0:0"], "is not of this machine alone"),
        (["record", "--to", "ftp://x", "--out", "sketch.yaml"], "sketch.yaml: is there already"),
    ],
)
def test_what_is_wrong_with_the_question_is_usage(tmp_path: Path, words: list[str], part: str) -> None:
    written(tmp_path, DEAD)
    (tmp_path / "bad.yaml").write_text("name: bad\n")
    code, out, err = typed("profile", *words, cwd=tmp_path)
    assert code == 2, out + err
    assert part in err
    assert "Traceback" not in err
