"""The published schemas: every file that a writer makes fits its schema."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadbench.results.bundle import BundleWriter
from loadbench.results.masks import Masks
from loadbench.results.record import (
    Aside,
    CanaryRecord,
    Channel,
    ChunkTimes,
    ClipFacts,
    Connection,
    Message,
    Segment,
    SessionRecord,
    Started,
    Update,
    Utterance,
)
from loadbench.results.run import Anchor, Done, RunHeader
from loadbench.results.schema import all_schemas
from loadbench.results.slo import Slo
from loadbench.results.tick import Tick

TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """Where `value` does not fit; as much of JSON Schema as these schemas use."""
    if "$ref" in schema:
        return faults(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, at)
    if "anyOf" in schema:
        tries = [faults(value, option, root, at) for option in schema["anyOf"]]
        return [] if [] in tries else min(tries, key=len)
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: {value!r} is none of {schema['enum']}")
    kind = schema.get("type")
    if kind == "number" and not (isinstance(value, int | float) and not isinstance(value, bool)):
        return [f"{at}: {value!r} is no number"]
    if kind in TYPES and (not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        return [f"{at}: {value!r} is no {kind}"]
    if isinstance(value, dict):
        found += [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            found += faults(item, inner, root, f"{at}.{name}") if isinstance(inner, dict) else []
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        for number, item in enumerate(value):
            inner = first[number] if number < len(first) else schema.get("items", {})
            found += faults(item, inner, root, f"{at}[{number}]") if isinstance(inner, dict) else []
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    head = RunHeader(
        run_id="r1",
        anchor=Anchor(monotonic_ns=5, wall_ns=6),
        plan={"a": [1, "b"]},
        headline_channel="transcript",
        headline_metric="final_from_source_end",
        slo=[Slo(metric="completed", stat="min_share", limit=0.99)],
        seed=7,
    )
    writer = BundleWriter(tmp_path / "bundle", head, Masks([]))
    names = {
        "id": "s1",
        "worker": "w1",
        "user": 0,
        "stage": "main",
        "window": "measure",
        "planned_ns": 1,
        "begun_ns": 2,
    }
    channel = Channel(
        first_ns=3, segments=[Segment(key="0", text="red", first_ns=3, changed_ns=4)], updates=[Update(3, 0, "red", 0)]
    )
    utterance = Utterance(index=0, clip="a", attempt=0, media_ns=5, channels={"transcript": channel}, outcome="ok")
    writer.append("sessions", Started(**names, clips=["a"]))
    writer.append(
        "sessions",
        SessionRecord(
            **names,
            ended_ns=9,
            outcome="ok",
            side="none",
            connections=[Connection(dialled_ns=2)],
            utterances=[utterance],
        ),
    )
    writer.append(
        "ticks",
        Tick(
            worker="w1",
            seq=1,
            at_ns=2,
            span_ns=3,
            active=1,
            users_target=1,
            stage="main",
            window="measure",
            started=1,
            lateness={3: 2},
            gaps=[(1, 2)],
        ),
    )
    writer.append("chunks", ChunkTimes(session="s1", utterance=0, media_zero_ns=3, due=b"", sent=b"", unsent=b""))
    writer.append("messages", Message(session="s1", at_ns=4, data="x"))
    writer.append(
        "clips", ClipFacts(id="a", direction="speech2text", duration_s=1.0, source_lang="en", target_lang="en")
    )
    writer.append(
        "canary",
        CanaryRecord(id="canary-0", worker="w1", clip="a", window="measure", begun_ns=2, outcome="ok", side="none"),
    )
    writer.append("stderr", Aside(session="s1", text="loading"))
    writer.finish(Done(ended_ns=10, reason="finished"))
    return tmp_path / "bundle"


@pytest.mark.parametrize("name", all_schemas())
def test_what_the_writer_makes_fits_its_schema(folder: Path, name: str) -> None:
    schema, text = all_schemas()[name], (folder / name).read_text()
    values = [json.loads(text)] if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    assert values
    for value in values:
        assert faults(value, schema, schema) == []


@pytest.mark.parametrize("name", all_schemas())
def test_what_lacks_its_fields_does_not_fit(name: str) -> None:
    schema = all_schemas()[name]
    assert faults({}, schema, schema)
    assert faults([], schema, schema)


def test_every_file_of_a_finished_bundle_has_a_schema(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == set(all_schemas())


def test_schemas_are_json_and_carry_the_version() -> None:
    for schema in all_schemas().values():
        assert "schema version 1" in json.loads(json.dumps(schema))["title"]
