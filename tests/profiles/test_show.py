import json
from pathlib import Path

import pytest

from loadbench.profiles import show
from loadbench.session import load
from tests.typed import typed


@pytest.mark.parametrize("name", load.shipped())
def test_a_resolved_profile_is_the_same_profile_again(name: str) -> None:
    text, file = load.source(name)
    again = load.load_text(show.resolved(text, file), file)
    assert again == load.load_text(text, file)


def test_resolving_adds_defaults_and_leaves_out_what_does_not_apply() -> None:
    found = load.tree(show.resolved(*load.source("vosk")))
    assert found["receive"]["fire"] == "first"
    assert found["end"][-1] == {"done": {"on": ["close"], "closes": "target"}}
    assert "quality" not in found["media"], "audio has no JPEG quality"
    assert "method" not in found["transport"], "WebSocket has no HTTP method"
    assert "collapse" not in found["receive"]["rules"][0]["text"], "that is of another text model"


def test_a_list_says_how_each_was_checked_and_what_its_channels_are() -> None:
    rows = {row["name"]: row for row in show.rows()}
    assert rows.keys() == load.shipped().keys()
    assert rows["sign-frames-binary"]["channels"] == {"gloss": "recognition", "text": "translation"}
    assert rows["http-stream"]["transport"] == "http"
    text = show.table(list(rows.values()))
    assert all(row["checked"] in text and row["service"] in text for row in rows.values())


def test_the_schema_knows_every_top_level_key() -> None:
    found = json.loads(show.schema())
    assert {"transport", "receive", "media", "end"} <= found["properties"].keys()
    assert found["additionalProperties"] is False


def test_the_command_line_prints_the_same(tmp_path: Path) -> None:
    code, out, _ = typed("profile", "list", "--json", cwd=tmp_path)
    assert (code, json.loads(out)) == (0, show.rows())
    code, out, _ = typed("profile", "show", "vosk", cwd=tmp_path)
    assert (code, out) == (0, load.shipped()["vosk"].read_text("utf-8"))
