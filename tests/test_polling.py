"""An output that is fetched where an answer says: a batch is handed in, and asked for until it is there."""

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.test_main_job import loadbench, sessions, tone

PROFILE = """
schema_version: 1
name: batch
transport:
  kind: requests
  headers: {X-Api-Key: "{secret.key}"}
  requests: {media: POST /recognize}
channels: {transcript: {stage: recognition}}
media: {kind: audio, format: s16le, pace: whole, frame: text, message: {payload: "{media.base64}", class: BATCH}}
end:
  - wait: {has: batch_id, timeout_s: 10, capture: {batch: batch_id}}
  - poll: {request: "GET /recognize/{captured.batch}", every_s: 0.2}
  - done: {on: [message], match: "status == 'DONE'", timeout_s: 30}
receive:
  rules:
    - {match: "status == 'DONE'", text: {model: unkeyed, text: text, final: true}}
    - {has: status, event: ignore}
"""


@pytest.mark.realtime
async def test_a_batch_is_handed_in_and_asked_for_until_it_is_done(tmp_path: Path) -> None:
    tone(tmp_path, 0.4)
    (tmp_path / "batch.yaml").write_text(PROFILE)
    asked: list[tuple[str, str, str]] = []

    async def hand_in(request: web.Request) -> web.Response:
        asked.append((request.method, request.raw_path, (await request.json())["class"]))
        return web.json_response({"batch_id": "b 7/é"}, status=202)

    async def look(request: web.Request) -> web.Response:
        assert request.headers["X-Api-Key"] == "k3y-FAKE"
        assert "Content-Type" not in request.headers
        asked.append((request.method, request.raw_path, await request.text()))
        done = len(asked) == 4
        return web.json_response({"status": "DONE", "text": "the red boat leaves"} if done else {"status": "PENDING"})

    app = web.Application()
    app.add_routes([web.post("/v1/recognize", hand_in), web.get("/v1/recognize/{batch:.*}", look)])
    (tmp_path / "key").write_text("k3y-FAKE")
    async with TestServer(app) as server:
        code, out, errors = await loadbench(
            *("run", "--url", str(server.make_url("/v1")), "--profile", "batch.yaml", "--corpus", ".", "--quiet"),
            *("--out", "bundle", "--set", "metrics.enabled=false", "--set", "target.secrets.key=file:key"),
            *("--set", f"media.cache={tmp_path / 'cache'}"),
            cwd=tmp_path,
        )
    assert code in (0, 3), (out, errors)
    (record,) = sessions(tmp_path / "bundle")
    assert record["outcome"] == "ok", record["cause"]
    assert asked == [("POST", "/v1/recognize", "BATCH"), *[("GET", "/v1/recognize/b%207/%C3%A9", "")] * 3]
    (utterance,) = record["utterances"]
    assert utterance["channels"]["transcript"]["segments"][0]["text"] == "the red boat leaves"
    assert utterance["done_ns"] - utterance["source_end_ns"] >= 0.4e9
