import json
from typing import Any

import pytest

from loadbench.profiles import draft
from loadbench.profiles.draft import DraftError
from loadbench.profiles.overhear import Said
from loadbench.session import load

KEY = "sk-FAKE-0123456789abcdef"
CHUNKS = [bytes([at, 1]) * 1600 for at in range(5)]
URL = "ws://127.0.0.1:2700"


def conversation(
    *steps: tuple[str, str, Any], target: str = "/", headers: list[tuple[str, str]] | None = None
) -> list[Said]:
    """(who, kind, data) a tenth of a second apart, behind a handshake."""
    said = [
        Said(at_ns=0, connection=1, who="client", kind="request", target=target, headers=headers or [], reason="GET"),
        Said(at_ns=1, connection=1, who="service", kind="response", status=101),
    ]
    for number, (who, kind, data) in enumerate(steps, 1):
        raw = data if isinstance(data, bytes) else (data if isinstance(data, str) else json.dumps(data)).encode()
        more = {"code": data, "data": b""} if kind == "close" else {"data": raw, "size": len(raw)}
        said.append(Said(at_ns=number * 100_000_000, connection=1, who=who, kind=kind, **more))  # type: ignore[arg-type]
    return said


def media(*between: tuple[str, str, Any]) -> list[tuple[str, str, Any]]:
    steps: list[tuple[str, str, Any]] = [("client", "binary", chunk) for chunk in CHUNKS]
    return [*steps[:3], *between, *steps[3:]]


def drafted(said: list[Said], url: str = URL, secrets: dict[str, str] | None = None) -> tuple[str, Any]:
    text = draft.draft(draft.scene(said), "mine", url, secrets or {})
    load.load_text(text, "mine.yaml")
    return text, load.tree(text)


def test_json_becomes_json_and_a_text_that_json_would_not_give_again_stays_exact() -> None:
    steps = [("client", "text", '{"a":1}'), *media(), ("client", "text", '{"eof" : 1}'), ("service", "close", 1000)]
    _, found = drafted(conversation(*steps))
    assert found["open"] == [{"send_json": {"a": 1}}]
    assert found["end"] == [{"send_text": '{"eof" : 1}'}, {"done": {"on": ["close"], "closes": "target"}}]


def test_an_answer_before_the_media_is_waited_for_and_a_last_message_of_its_own_is_done() -> None:
    steps = [
        ("client", "text", '{"type":"start"}'),
        ("service", "text", {"type": "ready", "id": 5}),
        *media(),
        ("service", "text", {"type": "text", "text": "turn left", "final": True}),
        ("client", "text", '{"type":"stop"}'),
        ("service", "text", {"type": "end"}),
        ("client", "close", 1000),
    ]
    _, found = drafted(conversation(*steps))
    assert found["open"][1] == {"wait": {"match": "type == 'ready'", "timeout_s": 10.0}}
    assert found["end"][-1] == {"done": {"on": ["message", "close"], "match": "type == 'end'"}}
    events = [(rule["match"], rule.get("event")) for rule in found["receive"]["rules"]]
    assert events[:2] == [("type == 'ready'", "ready"), ("type == 'end'", "done")]


def test_where_nothing_says_done_the_first_final_does_and_that_is_said_to_be_a_guess() -> None:
    final = {"type": "text", "text": "turn left", "is_final": True}
    text, found = drafted(conversation(*media(), ("service", "text", final), ("client", "close", 1000)))
    assert found["end"] == [{"done": {"on": ["first_final", "close"]}}]
    assert "# done: nothing said so" in text


def test_what_is_said_between_the_media_is_told_and_not_lost() -> None:
    text, found = drafted(conversation(*media(("client", "text", '{"type":"KeepAlive"}')), ("service", "close", 1000)))
    assert "said between the media" in text
    assert "KeepAlive" in text
    assert "keepalive" not in found


def test_secrets_become_fields_and_path_query_headers_and_subprotocols_are_kept() -> None:
    headers = [("Authorization", f"Token {KEY}"), ("X-Own", "1"), ("Sec-WebSocket-Protocol", "a, b"), ("Host", "x")]
    said = conversation(*media(), ("service", "close", 1000), target="/v1/listen?lang=en&x=%7Ba%7D", headers=headers)
    text, found = drafted(said, f"{URL}/?key={KEY}", {KEY: "key"})
    assert KEY not in text
    assert found["transport"] == {
        "kind": "websocket",
        "url": f"{URL}/v1/listen",
        "query": [["lang", "en"], ["x", "{{a}}"]],
        "headers": {"Authorization": "Token {secret.key}", "X-Own": "1"},
        "subprotocols": ["a", "b"],
    }
    headers = [("X-Api-Key", KEY)]  # the whole value: without quotes YAML would read a mapping
    _, found = drafted(conversation(*media(), target=f"/?sig={KEY}", headers=headers), URL, {KEY: "key"})
    assert found["transport"]["headers"] == {"X-Api-Key": "{secret.key}"}
    assert found["transport"]["query"] == [["sig", "{secret.key}"]]
    _, found = drafted(conversation(*media(), ("service", "close", 1000)), f"{URL}/?key={KEY}", {KEY: "key"})
    assert found["transport"]["url"] == f"{URL}/?key={{secret.key}}"


@pytest.mark.parametrize("said", [[], conversation(("client", "text", "hello"))])
def test_without_a_request_or_media_there_is_no_draft(said: list[Said]) -> None:
    with pytest.raises(DraftError, match=r"asked for nothing|no stream of media"):
        draft.draft(draft.scene(said), "mine", URL, {})
