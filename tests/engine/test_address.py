import re
from typing import Any

import pytest

from loadbench.engine.address import Addresses, MissingFieldError
from loadbench.engine.pipe import Start, Workload
from loadbench.session.load import load_profile


def addresses(transport: dict[str, Any] | None = None, **more: Any) -> Addresses:
    profile = load_profile("vosk")
    data = profile.model_dump(exclude_unset=True)
    data["transport"] = {"kind": "websocket"} | (transport or {})
    given = {"url": "ws://asr.example:2700/v1"} | more
    start = Start(run_id="r", worker="w", seed=7, profile={}, clips=[], workload=Workload(model="closed"), **given)
    return Addresses(start, type(profile).model_validate(data), wall_ns=lambda: 1_700_000_000_123_456_789)


def test_fields_name_the_session_its_clip_the_settings_and_the_calendar() -> None:
    fields = addresses(params={"model": "small"}, secrets={"token": "t0k"}).fields(
        "w-s1", {"id": "c", "source_lang": "en"}
    )
    uuid, random = fields.pop("session.uuid"), fields.pop("random.hex")
    assert fields == {
        "session.id": "w-s1", "clip.id": "c", "clip.source_lang": "en", "param.rate": "16000", "param.model": "small",
        "secret.token": "t0k", "time.unix": "1700000000", "time.unix_ms": "1700000000123", "host": "asr.example",
        "port": "2700", "time.rfc1123": "Tue, 14 Nov 2023 22:13:20 GMT", "time.iso": "2023-11-14T22:13:20.123Z",
    }  # fmt: skip
    assert uuid[14] == "4"
    assert re.fullmatch("[0-9a-f]{16}", random)


def test_the_uuid_comes_from_the_seed_the_run_and_the_session() -> None:
    def uuid(session: str, **more: Any) -> str:
        made = addresses(**more)
        return made.fields(session, {})["session.uuid"]

    assert uuid("a") == uuid("a") != uuid("b")


@pytest.mark.parametrize(
    ("url", "query", "expected"),
    [
        ("ws://h/x", [], "ws://h/x"),
        ("ws://h/x", [("lang", "{param.rate}"), ("a", "b c&d")], "ws://h/x?lang=16000&a=b%20c%26d"),
        ("ws://h/x?k=1", [("lang", "en")], "ws://h/x?k=1&lang=en"),
        ("ws://h/x?", [("lang", "en")], "ws://h/x?lang=en"),
        ("ws://h/{param.rate}/{session.id}", [], "ws://h/16000/s"),
    ],
)
def test_the_profiles_query_is_appended_to_the_plans_url(url: str, query: list[Any], expected: str) -> None:
    made = addresses({"query": query}, url=url)
    assert made.of(made.fields("s", {})).url == expected


def test_the_plans_headers_go_before_the_profiles_of_the_same_name_and_the_session_says_who_it_is() -> None:
    profiles, plans = {"Authorization": "none", "x-a": "1"}, [("authorization", "Bearer {secret.t}")]
    made = addresses({"headers": profiles}, headers=plans, secrets={"t": "t0k"})
    assert made.of(made.fields("s", {})).headers == (
        ("x-a", "1"), ("authorization", "Bearer t0k"), ("x-loadbench-session", "s"),
    )  # fmt: skip
    made = addresses(identify=False)
    assert made.of(made.fields("s", {})).headers == ()


def test_the_profiles_url_is_the_default_and_the_usual_port_is_known() -> None:
    made = addresses({"url": "wss://speech.example/listen"}, url="")
    fields = made.fields("s", {})
    assert (fields["host"], fields["port"]) == ("speech.example", "443")
    assert made.of(fields).url == "wss://speech.example/listen"


def test_a_field_that_is_not_there_is_named() -> None:
    made = addresses({"headers": {"x": "{clip.speaker}"}})
    with pytest.raises(MissingFieldError, match=r"\{clip\.speaker\}"):
        made.of(made.fields("s", {}))
