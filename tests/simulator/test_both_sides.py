"""Profiles made for it, spoken from both sides at once: the simulator to a session of ours, over loopback."""

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from loadbench.engine.pipe import ClipEntry, Start, Workload
from loadbench.engine.prepare import wire_plans
from loadbench.engine.run import Engine
from loadbench.media.plan import ChunkPlan
from loadbench.results.record import SessionRecord
from loadbench.session.load import load_profile
from loadbench.simulator import log
from loadbench.simulator.options import Options
from loadbench.simulator.serve import running
from loadbench.transports import load as load_transport

pytestmark = pytest.mark.realtime
MS = 1_000_000

TASKS = """
transport: {kind: websocket}
open: [{wait: {match: "event == 'hello'"}}]
begin:
  - send_json: {action: run, task: "{utterance.uuid}"}
  - wait: {match: "event == 'started'", timeout_s: 3}
end: [{send_json: {action: finish, task: "{utterance.uuid}"}}, {done: {on: [message]}}]
receive:
  rules:
    - {match: "event == 'finished'", event: done}
    - {match: "event == 'result'", text: {model: unkeyed, text: out.text, final: "out.end"}}
"""

ITEMS = """
transport: {kind: websocket}
end: [{send_json: {type: commit}}, {done: {on: [settled], timeout_s: 3}}]
receive:
  rules:
    - {match: "type == 'committed'", event: pending, key: item_id}
    - {match: "type == 'delta'", text: {model: delta, key: item_id, text: delta}}
    - match: "type == 'completed'"
      event: settled
      key: item_id
      text: {model: delta, key: item_id, replace: transcript, final: true}
    - {match: "type == 'failed'", event: settled, key: item_id}
"""

BRANCHES = """
params: {vad: "off"}
transport: {kind: websocket}
open:
  - wait: {match: "type == 'config'", capture: {raw: raw, mode: mode}}
  - refuse: "this service wants a container, not raw samples"
    when: {field: captured.raw, differs: "true"}
  - {send_text: "full, please", when: {field: captured.mode, equals: simulated}}
  - {send_text: "diff, please", when: {field: captured.mode, differs: simulated}}
  - {send_text: "with vad", when: {field: param.vad, equals: "on"}}
end:
  - {send_text: commit, when: {field: param.vad, equals: "off"}}
  - {send_text: stop}
  - {done: {on: [close]}}
receive:
  rules: [{has: text, text: {model: unkeyed, text: text, final: final}}]
"""

LIVE = """
params: {api: "https://api.example"}
signed: {mac: {hmac: sha256, key: "{secret.key}", message: "{time.iso} {random.hex}"}}
prelude:
  - request: "POST {param.api}/v2/live?mac={signed.mac}"
    headers: {x-key: "{secret.key}"}
    json: {language: "{clip.source_lang}"}
    expect: [201]
    capture: {init: next.url}
  - {request: "GET {captured.init}", capture: {url: url, token: "tokens[0].value"}}
transport: {kind: websocket, url: "{captured.url}?token={captured.token}"}
end: [{send_text: stop}, {done: {on: [close]}}]
receive:
  rules: [{has: text, text: {model: unkeyed, text: text, final: final}}]
"""
CASES = {"tasks": TASKS, "items": ITEMS, "branches": BRANCHES, "live": LIVE}
RULES = {"tasks": "message", "items": "settled", "branches": "close", "live": "close"}


def entry(folder: Path, profile: Any) -> ClipEntry:
    """0.4 s of something, in chunks of 100 ms."""
    ChunkPlan.write(folder / "raw", [(n * 100 * MS, 0, b"%0320d" % n) for n in range(1, 5)], 400 * MS)
    transport = load_transport(profile.transport.kind)
    place, joined = wire_plans(profile, {"a": folder / "raw"}, transport, folder / "wire", lambda n: b"\5" * n)["a"]
    return ClipEntry(id="a", wire=str(place), joined=joined, fields={"id": "a", "source_lang": "en"})


async def run(folder: Path, name: str, utterances: int = 1, **params: str) -> tuple[list[SessionRecord], Any]:
    path = folder / f"{name}.yaml"
    head = f"schema_version: 1\nname: {name}\nmedia: {{kind: audio, chunk_ms: 100}}\n"
    path.write_text(head + CASES[name])
    profile = load_profile(str(path))
    said: list[Any] = []
    options = Options(profile=str(path), first_s=0.1, final_s=0.1, text="red boat", log=folder / "log.jsonl")
    async with running(options) as url:
        start = Start(
            run_id="r",
            worker="w",
            seed=7,
            profile=profile.model_dump(mode="json", exclude_unset=True),
            url="" if profile.prelude else url,
            params=params | ({"api": "http" + url.removeprefix("ws")} if profile.prelude else {}),
            secrets={"key": "s3cret-key"},
            clips=[entry(folder, profile)],
            workload=Workload(model="closed", sessions=2, utterances=utterances),
        )
        await asyncio.wait_for(Engine(start, said.append, clock=time.monotonic_ns).run(), 20)
    records = [event for event in said if isinstance(event, SessionRecord)]
    assert "s3cret-key" not in repr(records)
    return records, log.read(folder / "log.jsonl")


@pytest.mark.parametrize(
    ("name", "utterances", "params"),
    [
        ("tasks", 2, {}),
        ("items", 2, {}),
        ("branches", 1, {"vad": "off"}),
        ("branches", 1, {"vad": "on"}),
        ("live", 1, {}),
    ],
)
async def test_both_sides_of_the_language_understand_each_other(
    tmp_path: Path, name: str, utterances: int, params: dict[str, str]
) -> None:
    records, served = await run(tmp_path, name, utterances, **params)
    assert len(records) == 2
    for record, utterance in itertools.product(records, range(utterances)):
        assert record.outcome == "ok", record.cause
        assert record.utterances[utterance].channels["transcript"].text == "red boat"
        assert record.utterances[utterance].done_rule == RULES[name]
        assert record.warnings == []
    assert [entry.violations for entry in served] == [[]] * 2 * utterances
    assert {entry.outcome for entry in served} == {"ok"}
    assert [len(entry.chunks_ns) for entry in served] == [4] * 2 * utterances


async def test_a_prelude_is_recorded_with_both_of_its_requests_and_nothing_of_its_tokens(tmp_path: Path) -> None:
    records, _ = await run(tmp_path, "live")
    for record in records:
        assert [(asked.status, asked.cause) for asked in record.prelude] == [(201, ""), (200, "")]
        assert record.prelude[0].name.endswith("/v2/live")
        assert record.prelude[1].name == "GET ***"
        first, second = record.prelude
        assert first.ended_ns is not None
        assert second.ended_ns is not None
        assert record.begun_ns <= first.began_ns <= first.ended_ns <= second.began_ns <= second.ended_ns
        assert second.ended_ns <= record.connections[0].dialled_ns
