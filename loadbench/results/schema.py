"""The shapes of a bundle's raw files as JSON Schema, generated from the types that read and write them."""

from typing import Any, Final

import msgspec

from loadbench.results.bundle import Seal
from loadbench.results.record import Aside, CanaryRecord, ChunkTimes, ClipFacts, Message, SessionRecord, Started
from loadbench.results.run import SCHEMA_VERSION, Done, RunHeader
from loadbench.results.tick import Tick

FILES: Final[dict[str, Any]] = {
    "run.json": RunHeader,
    "sessions.jsonl": Started | SessionRecord,
    "ticks.jsonl": Tick,
    "chunks.jsonl": ChunkTimes,
    "messages.jsonl": Message,
    "clips.jsonl": ClipFacts,
    "canary.jsonl": CanaryRecord,
    "stderr.jsonl": Aside,
    "seals.jsonl": Seal,
    "done.json": Done,
}


def all_schemas() -> dict[str, dict[str, Any]]:
    """A JSON Schema (2020-12) for each raw file: of the whole for `.json`, of one line for `.jsonl`."""
    return {name: _schema(name, kind) for name, kind in FILES.items()}


def _schema(name: str, kind: Any) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"loadbench bundle, {name}, schema version {SCHEMA_VERSION}",
        **msgspec.json.schema(kind),
    }
