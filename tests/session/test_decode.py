"""Where packets end means nothing; what is not readable is said, and never guessed."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.session.decode import DecodeError, Framer, Framing, Timed, decode_message
from loadbench.session.profile import Receive


def receive(**settings: Any) -> Receive:
    return Receive.model_validate({"rules": [{"has": "x", "event": "ignore"}], **settings})


def framed(framing: Framing, pieces: list[bytes], max_bytes: int = 1000, kind: str = "") -> tuple[list[Any], str]:
    """The messages, and the trouble that ended them."""
    framer, messages = Framer(framing, max_bytes), list[Timed]()
    framer.set_content_type(kind)
    try:
        for at_ns, piece in enumerate(pieces):
            messages += framer.feed(piece, at_ns)
        messages += framer.flush(len(pieces))
    except DecodeError as error:
        return [message for message, _ in messages], str(error)
    return [message for message, _ in messages], ""


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[low:high] for low, high in pairwise(edges)]


STREAM = st.lists(
    st.sampled_from(
        [b"data: x", b"data:", b"data", b"data:  y", b": note", b"event: e", b"id", b"\n", b"\r", b"\r\n", b"\n\n",
         b"\r\r", b"{}", b"\xef\xbb\xbf", b"\xef", b"\xff", b" ", "今天".encode(), "a\u2028b\x85c".encode(),
         b"long" * 5]
    ),
    max_size=25,
).map(b"".join)  # fmt: skip


@given(
    STREAM, st.lists(st.integers(0, 500), max_size=12), st.sampled_from(["lines", "sse"]), st.sampled_from([12, 1000])
)
def test_any_split_of_the_bytes_gives_the_same_messages(
    data: bytes, cuts: list[int], framing: Framing, max_bytes: int
) -> None:
    whole = framed(framing, [data] if data else [], max_bytes)
    assert framed(framing, pieces_of(data, cuts), max_bytes) == whole
    assert framed(framing, [data[i : i + 1] for i in range(len(data))], max_bytes) == whole


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        (b'{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']),
        (b'{"a":1}\r\n\r\n\n{"b":2}', ['{"a":1}', '{"b":2}']),  # CRLF, blank lines, a last line without its end
        ('{"t":"a\u2028b\x85c\x0b"}\n'.encode(), ['{"t":"a\u2028b\x85c\x0b"}']),  # none of these ends a line
        (b"a\rb\n", ["a\rb"]),
        (b"\xef\xbb\xbf{}\n", ["{}"]),
        (b"\xff\n{}\n", [b"\xff", "{}"]),
        (b"", []),
    ],
)
def test_lines_end_at_a_line_feed_only(data: bytes, messages: list[Any]) -> None:
    assert framed("lines", [data]) == (messages, "")


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        (b"data: a\n\n", ["a"]),
        (b"data:a\r\rdata:b\r\n\r\n", ["a", "b"]),  # CR, LF and CRLF all end a line
        (b"data: {\ndata: }\n\n", ["{\n}"]),
        ("data: a\u2028b\r\ndata: c\r\n\r\n".encode(), ["a\u2028b\nc"]),
        (b"data:  two spaces\n\n", [" two spaces"]),
        (b": ping\n\nevent: x\nid: 3\nretry: 1\n\n", []),  # no data, no message
        (b"data\n\n", [""]),
        (b"data: a", []),  # cut off before its blank line
        (b"data: a\n", []),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: a\n: note\ndata: b\n\n", ["a\nb"]),
        (b"datas: a\n\ndata: b\n\n", ["b"]),
    ],
)
def test_events_are_cut_as_the_whatwg_says(data: bytes, messages: list[str]) -> None:
    assert framed("sse", [data]) == (messages, "")


def test_a_message_bears_the_arrival_of_the_bytes_that_completed_it() -> None:
    framer = Framer("lines")
    line = '{"final":"今天下午三点开会"}\n'.encode()
    assert framer.feed(b'{"partial":"x"}\n' + line[:12], 100) == [('{"partial":"x"}', 100)]  # cut inside a character
    assert framer.feed(line[12:20], 200) == []
    assert framer.feed(line[20:] + line, 900) == [('{"final":"今天下午三点开会"}', 900)] * 2
    assert framer.flush(950) == []
    assert Framer("message").feed("whole\n", 7) == [("whole\n", 7)]


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        ("text/event-stream", ["x"]),
        ("Text/Event-Stream; charset=utf-8", ["x"]),
        ("application/x-ndjson", ["data: x"]),
        ("", ["data: x"]),
    ],
)
def test_auto_follows_the_content_type_of_the_response(kind: str, messages: list[str]) -> None:
    assert framed("auto", [b"data: x\n\n"], kind=kind) == (messages, "")


@pytest.mark.parametrize(
    ("framing", "data", "messages", "fits"),
    [
        ("lines", b"ok\n12345678\r\n", ["ok", "12345678"], True),
        ("lines", b"ok\n123456789\nlate\n", ["ok"], False),
        ("lines", b"ok\n123456789", ["ok"], False),  # nobody waits for its end
        ("sse", b"data:ok\n\ndata:1\ndata:3\n\n", ["ok", "1\n3"], True),
        ("sse", b"data:ok\n\ndata:12\ndata:45\ndata:78\ndata:0\n\n", ["ok"], False),  # short lines, a long message
        ("sse", b"data:ok\n\n: 3456789\n\n", ["ok"], False),
    ],
)
def test_a_message_over_the_limit_is_trouble_after_those_before_it(
    framing: Framing, data: bytes, messages: list[str], fits: bool
) -> None:
    read, trouble = framed(framing, [data], max_bytes=8)
    assert read == messages
    assert trouble == ("" if fits else "too big: a message of more than 8 bytes")


def test_a_whole_message_over_the_limit_is_trouble_too() -> None:
    with pytest.raises(DecodeError, match="too big"):
        Framer("message", 8).feed("123456789", 0)


@pytest.mark.parametrize(
    ("settings", "raw", "messages"),
    [
        ({}, '{"partial": ""}', [{"partial": ""}]),
        ({}, b'{"a": "\xe4\xbb\x8a"}', [{"a": "今"}]),
        ({}, '"OUT_OF_QUOTA"', ["OUT_OF_QUOTA"]),
        ({}, "", []),  # the last reply of one server is empty, and no JSON
        ({}, '{"conf": NaN}', [{"conf": None}]),
        ({}, '{"t": "\\ud83d"}', [{"t": "\ufffd"}]),  # half a pair, as JavaScript cuts it
        ({}, '{"t": "\\ud83d\\ude00"}', [{"t": "😀"}]),
        ({}, '{"n": 123456789012345678901234567890}', [{"n": 123456789012345678901234567890}]),
        ({"decode": "text"}, "hello {", ["hello {"]),
        ({"decode": "text"}, b"\xe4\xbb\x8a", ["今"]),
        ({"decode": "array"}, '[{"a":1},{"a":2}]', [{"a": 1}, {"a": 2}]),
        ({"decode": "array"}, '{"a":1}', [{"a": 1}]),
        ({"sentinels": ["[DONE]", "Done!"]}, "[DONE]", [{"sentinel": "[DONE]"}]),
        ({"sentinels": ["Done!"]}, b"Done!", [{"sentinel": "Done!"}]),
        ({"sentinels": ["[DONE]"]}, '{"x":"[DONE]"}', [{"x": "[DONE]"}]),
        (
            {"decode": "nested", "nested": "data"},
            '{"action":"r","data":"{\\"a\\":1}"}',
            [{"action": "r", "data": {"a": 1}}],
        ),
        ({"decode": "nested", "nested": "data"}, '{"action":"started","data":""}', [{"action": "started", "data": ""}]),
        ({"decode": "nested", "nested": "a.b"}, '{"a":{"b":"[1]"}}', [{"a": {"b": [1]}}]),
        ({"decode": "nested", "nested": "a.b"}, '{"a":3}', [{"a": 3}]),
    ],
)
def test_a_message_is_decoded_as_the_profile_says(
    settings: dict[str, Any], raw: str | bytes, messages: list[Any]
) -> None:
    decoded = decode_message(receive(**settings), raw)
    assert json.dumps(decoded).replace("NaN", "null") == json.dumps(messages)


@pytest.mark.parametrize(
    ("settings", "raw", "says"),
    [
        ({}, b"{\xff}", "not UTF-8 at byte 1"),
        ({}, "{", "not JSON"),
        ({}, "Done!", "not JSON"),
        ({}, '{"n":' + "9" * 5000 + "}", "a number of too many digits in JSON: "),
        ({}, "[" * 100_000, "nested too deeply"),
        ({"decode": "text"}, b"\xc3", "not UTF-8"),
        ({"decode": "nested", "nested": "data"}, '{"data":"{"}', "not JSON"),
    ],
)
def test_what_cannot_be_read_is_said(settings: dict[str, Any], raw: str | bytes, says: str) -> None:
    with pytest.raises(DecodeError, match=says):
        decode_message(receive(**settings), raw)


# The whole body as one message.


@given(st.binary(max_size=60), st.lists(st.integers(0, 100), max_size=5))
def test_a_body_is_one_message_however_it_comes_and_only_when_it_has_ended(data: bytes, cuts: list[int]) -> None:
    pieces = pieces_of(data, cuts)
    told, trouble = framed("body", pieces)
    without_mark = data.removeprefix(b"\xef\xbb\xbf")
    assert trouble == ""
    assert [one if isinstance(one, bytes) else one.encode() for one in told] == (
        [without_mark] if without_mark.strip() else []
    )
    framer = Framer("body")
    assert [message for piece in pieces for message in framer.feed(piece, 0)] == []


def test_a_body_bears_the_time_of_its_end() -> None:
    framer = Framer("body")
    framer.feed(b'{"text": "re', 1)
    framer.feed(b'd"}', 2)
    assert framer.flush(3) == [('{"text": "red"}', 3)]


def test_a_body_over_the_limit_is_too_big_before_its_end() -> None:
    assert framed("body", [b"x" * 600, b"x" * 600]) == ([], "too big: a message of more than 1000 bytes")


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        ("text/event-stream", ["1"]),
        ("", ["1"]),  # a service that does not say what it sends, sends what it was asked for
        ("application/json; charset=utf-8", ["data: 1\n\n"]),  # one that was asked for events and does not send any
    ],
)
def test_an_answer_in_json_to_a_wish_for_events_is_one_message(kind: str, messages: list[str]) -> None:
    assert framed("sse", [b"data: 1\n\n"], kind=kind) == (messages, "")
