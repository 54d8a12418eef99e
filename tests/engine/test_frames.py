from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadbench.engine.frames import Unframer, framed
from loadbench.engine.pipe import Finished, Outbound, Ready
from loadbench.results.record import Channel, ChunkTimes, Segment, SessionRecord, Update, Utterance
from loadbench.results.tick import Tick

EVENTS: list[Outbound] = [
    Ready(begin_ns=7, pid=1, facts={"loop": "uvloop", "files": None}),
    Tick(
        worker="w", seq=0, at_ns=1, span_ns=1, active=0, users_target=0, stage="main", window="measure", started=0,
        ended={"ok": 1}, lateness={0: 3, 377: 1}, gaps=[(1, 2)],
    ),
    SessionRecord(
        id="s", worker="w", user=0, stage="main", window="measure", planned_ns=-1, begun_ns=2, ended_ns=3, outcome="ok",
        side="none", messages=Counter(final=1),
        utterances=[
            Utterance(
                index=0, clip="c", attempt=0, media_ns=1,
                channels={
                    "t": Channel(segments=[Segment(key="0", text="红船", first_ns=1, changed_ns=2)],
                                 updates=[Update(1, 0, "红", 0)])
                },
            )
        ],
    ),
    ChunkTimes(session="s", utterance=0, media_zero_ns=2**62, due=b"\x00" * 8, sent=b"\xff" * 8, unsent=b""),
    Finished(ended_ns=1, started=1, reason="completed"),
]  # fmt: skip


@given(st.lists(st.integers(1, 400), max_size=60))
def test_messages_come_out_as_they_went_in_whatever_the_pieces(sizes: list[int]) -> None:
    data = b"".join(map(framed, EVENTS))
    unframer: Unframer[Outbound] = Unframer(Outbound)
    found: list[Outbound] = []
    for size in sizes:
        found += unframer.feed(data[:size])
        data = data[size:]
    found += unframer.feed(data)
    assert found == EVENTS


def test_bytes_that_are_no_message_are_refused() -> None:
    unframer: Unframer[Outbound] = Unframer(Outbound)
    with pytest.raises(msgspec.ValidationError):
        list(unframer.feed(b"\x00\x00\x00\x0b\x81\xa4type\xa4nine"))
