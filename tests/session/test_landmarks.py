"""Landmarks inside a message: frames and members as JSON, the same for all sessions."""

import json
from typing import Any

import pytest

from loadbench.session.landmarks import gathered, members
from loadbench.session.message import MediaMessage
from loadbench.session.profile import MediaPart
from loadbench.session.template import TemplateError

FRAME = b'{"pose":[{"x":0.25}],"hand":null}'
BATCH = b'[{"pose":[1],"hand":null},{"pose":[2],"hand":[3]}]'


def message(template: Any, **part: Any) -> MediaMessage:
    return MediaMessage(MediaPart.model_validate({"kind": "landmarks", "frame": "text", "message": template, **part}))


@pytest.mark.parametrize(
    ("template", "wire"),
    [
        ("{media.landmarks}", FRAME),
        ({"t": "{media.ms}", "data": "{media.landmarks}"}, b'{"t":40,"data":%b}' % FRAME),
        ({"pose": "{media.landmarks.pose}"}, b'{"pose":[{"x":0.25}]}'),
        (
            {
                "n": "{media.index}",
                "all": [{"a": "{media.landmarks.hand}", "b": 1}, "{media.landmarks.pose}"],
                "c": "d",
            },
            b'{"n":2,"all":[{"a":null,"b":1},[{"x":0.25}]],"c":"d"}',
        ),
        ({"a": "{media.landmarks.pose}", "b": "{media.landmarks}"}, b'{"a":[{"x":0.25}],"b":%b}' % FRAME),
        ({"face": "{media.landmarks.face}"}, b'{"face":null}'),
    ],
)
def test_a_frame_and_its_members_stand_in_the_message_as_json(template: Any, wire: bytes) -> None:
    made = message(template)
    assert made.independent
    assert made.whole(FRAME, 2, 5, 40_900_000) == wire


def test_in_a_batch_each_field_is_a_list() -> None:
    assert message({"f": "{media.landmarks}"}, batch=2).whole(BATCH, 0, 1, 0) == b'{"f":%b}' % BATCH
    template = {"p": "{media.landmarks.pose}", "h": "{media.landmarks.hand}"}
    assert message(template, batch=2).whole(BATCH, 0, 1, 0) == b'{"p":[[1],[2]],"h":[null,[3]]}'


def test_what_is_the_sessions_own_stands_around_what_all_share() -> None:
    template = {
        "s": "{session.id}",
        "p": "{media.landmarks.pose}",
        "h": "{media.landmarks.hand}",
        "u": "{session.uuid}",
    }
    made = message(template)
    assert made.names == {"session.id", "session.uuid"}
    assert made.shared(FRAME) == b'[{"x":0.25}],"h":null'
    before, after = made.around({"session.id": "s-1", "session.uuid": "u-1"}, 0, 1, 0)
    assert json.loads(before + made.shared(FRAME) + after) == {
        "s": "s-1", "p": [{"x": 0.25}], "h": None, "u": "u-1"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (
            {"p": "x {media.landmarks.pose}"},
            r"message: \{media.landmarks.pose\} is JSON and must be a value of its own",
        ),
        (
            {"p": "{media.landmarks.pose}", "t": "{media.ms}", "h": "{media.landmarks.hand}"},
            r"message: \{media.ms\} stands between fields of landmarks, which are one part: put it before or behind",
        ),
        ({"p": "{media.landmarks}", "b": "{media.base64}"}, "exactly once, not 2 times"),
    ],
)
def test_a_message_that_cannot_be_shared_is_refused(template: Any, problem: str) -> None:
    with pytest.raises(TemplateError, match=problem):
        message(template)


def test_the_members_that_a_message_asks_for_are_all_that_is_encoded() -> None:
    assert members({"a": "{media.landmarks.pose}", "b": ["{media.landmarks.hand}", "{media.landmarks.pose}"]}) == (
        "pose", "hand"
    )  # fmt: skip
    assert members({"a": "{media.landmarks.pose}", "b": "{media.landmarks}"}) == ()


def test_a_service_that_heard_the_message_has_the_payload_again() -> None:
    assert gathered({"pose": [{"x": 0.25}], "hand": None}, batched=False) == FRAME
    assert gathered({"": json.loads(FRAME)}, batched=False) == FRAME
    assert gathered({"pose": [[1], [2]], "hand": [None, [3]]}, batched=True) == BATCH
    for lists in ({"pose": [1], "hand": []}, {"pose": 1}):
        with pytest.raises(ValueError, match=r"shorter|no list"):
            gathered(lists, batched=True)
