"""What a run counts, without sockets: sessions are asked for their bytes a few at a time."""

from types import SimpleNamespace
from typing import Any

from loadbench.engine.books import Books


class Sender:
    """A session that has sent something since it was asked last."""

    def __init__(self, name: str) -> None:
        self.role, self.sent, self.asked, self.also_chunks = SimpleNamespace(id=name), 0, 0, 0

    def fresh_bytes(self) -> int:
        self.asked += 1
        fresh, self.sent = self.sent, 0
        return fresh


def books(*senders: Sender) -> Any:
    made = Books(*[SimpleNamespace(thresholds=None)] * 4, clock=lambda: 0)  # type: ignore[arg-type]
    for sender in senders:
        made.began(sender, 0)  # type: ignore[arg-type]
    return made


def test_every_session_is_asked_once_a_round_and_never_all_at_once() -> None:
    senders = [Sender(f"s{n}") for n in range(100)]
    own = books(*senders)
    own.look_round(0.05)  # of nothing: the first round begins with the next look
    for look in range(1, 18):
        before = sum(sender.asked for sender in senders)
        own.look_round(0.05)
        assert sum(sender.asked for sender in senders) - before == min(6, 100 - before), look
    assert {sender.asked for sender in senders} == {1}


def test_bytes_are_told_once_also_of_a_session_that_ends_within_the_round() -> None:
    first, second = Sender("a"), Sender("b")
    own = books(first, second)
    first.sent, second.sent = 640, 320
    own.look_round(0.0)
    own.look_round(0.0)
    assert own._media_bytes == 640
    second.sent += 320
    own.ended(second, "ok")
    second.sent = 77  # nothing that is asked of it after its end counts
    own.look_round(0.0)
    assert own._media_bytes == 640 + 640
