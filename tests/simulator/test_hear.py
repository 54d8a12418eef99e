import base64
import json
from typing import Any

import pytest

from loadbench.session.load import load_profile
from loadbench.session.profile import Profile
from loadbench.simulator.hear import Ear, Grammar, pattern, strangers

VOSK_CONFIG = b'{"config":{"sample_rate":16000,"words":1}}'


def ear(name: str, **changes: Any) -> Ear:
    profile = load_profile(name)
    return Ear(Grammar(Profile.model_validate({**profile.model_dump(exclude_unset=True), **changes})))


def test_a_vosk_session_is_an_opening_media_and_an_exact_end_mark() -> None:
    listener = ear("vosk")
    assert not listener.opened
    assert listener.hear("text", VOSK_CONFIG).kind == "open"
    assert listener.opened
    media = listener.hear("binary", b"\1\2")
    assert (media.kind, media.payload, media.last, media.violation) == ("media", b"\1\2", False, "")
    end = listener.hear("text", b'{"eof" : 1}')
    assert (end.kind, end.last, end.violation) == ("end", True, "")


def test_a_step_by_which_a_client_would_refuse_is_no_turn_of_anybody() -> None:
    listener = ear("whisperlivekit")
    assert (listener.owed(), listener.owed(), listener.opened) == (0, None, True)
    assert listener.hear("binary", b"\1\2").violation == ""
    steps = [{"refuse": "no", "when": {"field": "param.x", "equals": "1"}}, {"send_text": "hi"}, {"wait": {"has": "b"}}]
    listener = ear("vosk", params={"x": "0"}, open=[{"wait": {"has": "a"}}, *steps])
    assert listener.owed() == 0
    assert listener.hear("text", b"hi").kind == "open"
    assert (listener.owed(), listener.opened) == (3, True)


def test_it_is_known_whether_a_client_waits_for_quiet_before_it_marks_the_end() -> None:
    assert Grammar(load_profile("whisperlive")).quiet_first
    assert not Grammar(load_profile("vosk")).quiet_first


@pytest.mark.parametrize(
    ("media", "gap_ns"),
    [
        ({"kind": "audio", "chunk_ms": 100}, 100_000_000),
        ({"kind": "audio", "chunk_bytes": 100}, 0),
        ({"kind": "frames"}, 0),
        ({"kind": "frames", "codec": "h264", "fps": 5}, 200_000_000),
        ({"kind": "video", "container": "webm", "slice_ms": 2000}, 2_000_000_000),
        ({"kind": "video", "container": "webm", "pace": "whole"}, 0),
    ],
)
def test_it_is_known_how_long_media_pauses_without_an_end(media: dict[str, Any], gap_ns: int) -> None:
    profile = load_profile("vosk").model_dump(exclude_unset=True)
    assert Grammar(Profile.model_validate({**profile, "media": media})).gap_ns == gap_ns


def test_an_end_mark_that_is_not_equal_byte_for_byte_is_none() -> None:
    listener = ear("vosk")
    listener.hear("text", VOSK_CONFIG)
    assert listener.hear("text", b'{"eof": 1}').kind == "unknown"


def test_json_of_100_000_brackets_is_a_message_of_no_meaning() -> None:
    assert ear("sign-frames").hear("text", b"[" * 100_000).kind == "unknown"


def test_an_end_mark_in_a_binary_frame_is_taken_for_media_and_noted() -> None:
    listener = ear("vosk")
    listener.hear("text", VOSK_CONFIG)
    heard = listener.hear("binary", b'{"eof" : 1}')
    assert (heard.kind, heard.payload) == ("media", b'{"eof" : 1}')
    assert heard.violation == "the end mark came as binary and must be text"


def test_media_before_the_opening_is_noted() -> None:
    assert "before the opening was over" in ear("vosk").hear("binary", b"\0\0").violation


def test_a_frame_in_json_gives_its_decoded_image_and_its_media_time() -> None:
    listener = ear("sign-frames")
    start = {"type": "command", "payload": {"action": "start", "session_id": "s-1"}}
    assert listener.hear("text", json.dumps(start).encode()).kind == "open"
    assert listener.owed() == 1
    assert listener.opened
    payload = {"image": base64.b64encode(b"\xff\xd8jpeg").decode(), "timestamp": 40, "session_id": "s-1"}
    heard = listener.hear("text", json.dumps({"type": "frame", "payload": payload}).encode())
    assert (heard.kind, heard.payload, heard.ms, heard.violation) == ("media", b"\xff\xd8jpeg", 40.0, "")
    broken = {"type": "frame", "payload": payload | {"image": "!"}}
    assert "cannot be decoded" in listener.hear("text", json.dumps(broken).encode()).violation
    stop = {"type": "command", "payload": {"action": "stop", "session_id": "s-1"}}
    assert listener.hear("text", json.dumps(stop).encode()).kind == "end"


def test_a_data_url_prefix_is_no_part_of_the_payload() -> None:
    media = {
        "kind": "frames",
        "frame": "text",
        "message": {"image": "{media.base64}"},
        "base64_prefix": "data:image/jpeg;base64,",
    }
    listener = ear("sign-frames", media=media, open=[])
    message = {"image": "data:image/jpeg;base64," + base64.b64encode(b"jpeg").decode()}
    assert listener.hear("text", json.dumps(message).encode()).payload == b"jpeg"


def test_the_end_mark_may_ride_in_the_last_media_message() -> None:
    media = {
        "kind": "audio",
        "frame": "text",
        "message": {"status": 1, "audio": "{media.base64}"},
        "first": {"status": 0, "audio": "{media.base64}"},
        "last": {"status": 2, "audio": "{media.base64}"},
    }
    listener = ear("vosk", media=media, open=[], end=[{"done": {"on": ["close"]}}])
    audio = base64.b64encode(b"\0\1").decode()
    heard = [listener.hear("text", json.dumps({"status": status, "audio": audio}).encode()) for status in (0, 1, 2)]
    assert [(one.kind, one.last, one.payload) for one in heard] == [
        ("media", False, b"\0\1"),
        ("media", False, b"\0\1"),
        ("media", True, b"\0\1"),
    ]


@pytest.mark.parametrize("binary", ["media", "also", None])
def test_two_media_are_told_apart_by_their_frames_or_by_their_messages(binary: str | None) -> None:
    sound = {"kind": "audio", "chunk_ms": 20} | (
        {} if binary == "media" else {"frame": "text", "message": {"sound": "{media.base64}"}}
    )
    picture = {"kind": "frames"} | (
        {}
        if binary == "also"
        else {"frame": "text", "message": {"picture": "{media.base64}"}, "base64_prefix": "jpeg:"}
    )
    listener = ear("vosk", open=[], media=sound | {"also": picture})
    coded = base64.b64encode(b"\1\2").decode()
    said = {
        "media": ("binary", b"\1\2") if binary == "media" else ("text", json.dumps({"sound": coded}).encode()),
        "also": ("binary", b"\1\2")
        if binary == "also"
        else ("text", json.dumps({"picture": f"jpeg:{coded}"}).encode()),
    }
    for kind, (frame, data) in said.items():
        heard = listener.hear(frame, data)
        assert (heard.kind, heard.payload, heard.violation) == (kind, b"\1\2", "")


def test_of_two_end_marks_only_the_second_is_the_last() -> None:
    listener = ear(
        "vosk", open=[], end=[{"send_json": {"type": "flush"}}, {"send_text": ""}, {"done": {"on": ["close"]}}]
    )
    assert listener.hear("text", b'{"type":"flush"}').last is False
    assert listener.hear("text", b"").last is True
    listener.again()
    assert listener.hear("text", b'{"type":"flush"}').last is False


def test_a_body_has_no_frame_types() -> None:
    assert ear("http-stream").hear("body", b"\0\0").kind == "media"


@pytest.mark.parametrize(
    ("template", "message", "fits"),
    [
        ({"a": 1, "b": "{session.id}"}, {"a": 1, "b": "x"}, True),
        ({"a": 1, "b": "{session.id}"}, {"b": "x", "a": 1}, True),  # the order of keys means nothing
        ({"a": 1, "b": "{session.id}"}, {"a": 2, "b": "x"}, False),  # another constant
        ({"a": 1}, {"a": 1, "c": 2}, False),  # a key that the profile does not send
        ({"a": "id-{session.id}"}, {"a": "no-5"}, False),
        ({"a": ["{media.ms}", "x"]}, {"a": [40, "x"]}, True),
        ({"a": {"b": True}}, {"a": {"b": True}}, True),
        ({"a": {"b": True}}, {"a": "b"}, False),
    ],
)
def test_constants_must_be_equal_and_templated_leaves_may_be_anything(template: Any, message: Any, fits: bool) -> None:
    assert pattern(template)(message) is fits


def test_query_keys_that_the_profile_does_not_know_are_named() -> None:
    profile = load_profile("vosk").model_dump(exclude_unset=True)
    part = {"kind": "websocket", "url": "ws://h/?rate=16000", "query": [["lang", "en"]]}
    known = Profile.model_validate({**profile, "transport": part})
    assert strangers(known, ["rate", "lang", "sample_rate", "sample_rate"]) == ["unknown query key sample_rate"]


def test_landmarks_are_heard_as_the_payload_that_was_sent() -> None:
    message = {"p": "{media.landmarks.pose}", "h": "{media.landmarks.hand}", "t": "{media.ms}"}
    media = {"kind": "landmarks", "frame": "text", "message": message}
    said = json.dumps({"p": [{"x": 0.25}], "h": None, "t": 80}).encode()
    heard = ear("sign-frames", media=media, open=[]).hear("text", said)
    assert (heard.kind, heard.payload, heard.ms) == ("media", b'{"pose":[{"x":0.25}],"hand":null}', 80.0)
    said = json.dumps({"p": [[1], [2]], "h": [None, [3]], "t": 80}).encode()
    listener = ear("sign-frames", media=media | {"batch": 2}, open=[])
    assert listener.hear("text", said).payload == b'[{"pose":[1],"hand":null},{"pose":[2],"hand":[3]}]'
    assert "cannot be decoded" in listener.hear("text", said.replace(b", [3]", b"")).violation


def test_the_first_slice_of_a_recording_must_have_the_head_and_no_other_need() -> None:
    media = {"kind": "audio", "container": "webm", "chunk_ms": 100}
    listener = ear("vosk", media=media, open=[])
    assert listener.hear("binary", b"\x1aE\xdf\xa3...").violation == ""
    assert listener.hear("binary", b"\x1fC\xb6u...").violation == ""
    listener.again()
    heard = listener.hear("binary", b"\x1fC\xb6u...")
    assert (heard.kind, heard.violation) == ("media", "media that does not begin as webm does")
