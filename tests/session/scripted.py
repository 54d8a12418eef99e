"""Plays a conversation against a scripted service in virtual time; the driver is as plain as can be.

Times are seconds from the beginning, which is at `DIAL_NS` on the run clock, and without a prelude is the dial. The
driver opens at once, starts media as soon as it is asked to, hands every message over in the instant, and answers a
Shut as a service would, unless it is `mute`. `answers` are what the prelude's requests get, with the time each takes.
"""

import heapq
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from loadbench.results.record import SessionRecord, Utterance
from loadbench.session.machine import Compiled, Conversation
from loadbench.session.profile import Profile
from loadbench.session.wire import (
    Abort,
    Action,
    Answer,
    Ask,
    Cause,
    ClipTask,
    Dial,
    Ended,
    Limits,
    Opened,
    Progress,
    Send,
    Shut,
    StartMedia,
)

DIAL_NS = 100_000_000_000
S = 1_000_000_000

Say = dict[str, Any] | list[Any] | str | bytes
Event = tuple[float, Say | Cause | Callable[["Play", int], None]]


def closed(code: int | None = 1000, reason: str = "") -> Cause:
    return Cause("closed", 0, code=code, reason=reason)


def gone(kind: Any, **facts: Any) -> Cause:
    return Cause(kind, 0, **facts)


def profile(**parts: Any) -> Profile:
    """A small service: partials, finals, a done message, an end mark; parts replace what is given."""
    whole: dict[str, Any] = {
        "name": "small",
        "transport": {"kind": "websocket"},
        "media": {"kind": "audio", "chunk_ms": 20},
        "end": [{"send_json": {"eos": True}}, {"done": {"on": ["close", "message"], "has": "done"}}],
        "receive": {
            "rules": [
                {"has": "partial", "text": {"model": "unkeyed", "text": "partial"}},
                {"has": "final", "text": {"model": "unkeyed", "text": "final", "final": True}},
                {"match": "type == 'ready'", "event": "ready"},
                {"match": "type == 'busy'", "outcome": "rejected", "detail": "why"},
                {"match": "type == 'expired'", "outcome": "auth_expired"},
                {"match": "type == 'too fast'", "outcome": "pace_refused", "detail": "why"},
                {"match": "type == 'fatal'", "outcome": "fatal", "detail": "why"},
                {"match": "type == 'hiccup'", "outcome": "recoverable", "detail": "why"},
                {"has": "done", "event": "done"},
            ]
        },
    }
    return Profile.model_validate(whole | parts)


@dataclass
class Play:
    """One conversation and all that it did: `did` holds (seconds from the beginning, action)."""

    how: Profile
    events: Iterable[Event] = ()
    media_s: tuple[float, ...] = (3.0,)
    limits: Limits = field(default_factory=Limits)
    fields: Mapping[str, str] = field(default_factory=dict)
    compiled: Compiled | None = None
    mute: bool = False
    opens: bool = True
    horizon_s: float = 1_000.0
    answers: Sequence[tuple[float, Answer | Cause]] = ()
    did: list[tuple[float, Action]] = field(default_factory=list)

    def run(self) -> "Play":
        tasks = [ClipTask(f"clip-{n}", round(span * S), round(span * 50)) for n, span in enumerate(self.media_s)]
        self.talk = Conversation(
            self.how,
            tasks,
            self.limits,
            self.fields,
            session="s1",
            planned_ns=DIAL_NS,
            compiled=self.compiled,
            progress=self._handed_over,
        )
        self._answers = iter(self.answers)
        self._order = itertools.count()
        self._queue: list[tuple[int, int, Callable[[int], None]]] = []
        for at_s, event in self.events:
            self.at(DIAL_NS + round(at_s * S), self._event(event))
        self._told(self.talk.begin, DIAL_NS)
        while not self.talk.ended and (next_ns := self._next_ns()) is not None:
            if next_ns - DIAL_NS > self.horizon_s * S:
                break
            if self._queue and self._queue[0][0] <= next_ns:
                _, _, tell = heapq.heappop(self._queue)
                self._told(tell, next_ns)
            else:
                self._told(self.talk.wake, next_ns)
        return self

    def at(self, at_ns: int, tell: Callable[[int], None]) -> None:
        heapq.heappush(self._queue, (at_ns, next(self._order), tell))

    def _next_ns(self) -> int | None:
        times = [self._queue[0][0]] if self._queue else []
        return min([*times, *([] if self.talk.deadline_ns is None else [self.talk.deadline_ns])], default=None)

    def _event(self, event: Say | Cause | Callable[["Play", int], None]) -> Callable[[int], None]:
        if isinstance(event, Cause):
            facts = {name: getattr(event, name) for name in Cause.__slots__ if name != "at_ns"}
            return lambda at: self.talk.lost(Cause(at_ns=at, **facts))
        if isinstance(event, dict | list):
            return lambda at: self.talk.received(json.dumps(event, ensure_ascii=False), at)
        if isinstance(event, str | bytes):
            return lambda at: self.talk.received(event, at)
        return lambda at: event(self, at)

    def _told(self, tell: Callable[[int], None], at_ns: int) -> None:
        tell(at_ns)
        for action in self.talk.take():
            self.did.append(((at_ns - DIAL_NS) / S, action))
            self._do(action, at_ns)

    def _do(self, action: Action, at_ns: int) -> None:
        if isinstance(action, Ask):
            if (given := next(self._answers, None)) is not None:
                came_ns = at_ns + round(given[0] * S)
                self.at(came_ns, lambda at: self.talk.asked(replace(given[1], at_ns=at)))
        elif isinstance(action, Dial):
            self._told(self.talk.dialled, at_ns)
            if self.opens:
                self._told(lambda at: self.talk.opened(Opened(at)), at_ns)
        elif isinstance(action, StartMedia):
            index = action.index
            self._zero_ns = at_ns
            self._told(lambda at: self.talk.media_started(index, at, at), at_ns)
            end_ns = at_ns + round(self.media_s[index] * S)
            self.at(end_ns, lambda at: self.talk.media_ended(index, round(self.media_s[index] * 50), at))
        elif isinstance(action, Send):
            self._told(lambda at: self.talk.sent(action, at), at_ns)
        elif isinstance(action, Shut) and not self.mute:
            self.at(at_ns, self._event(Cause("closed", 0, by="us", code=action.code)))
        elif isinstance(action, Abort):
            self.at(at_ns, self._event(Cause("aborted", 0, by="us")))

    def _handed_over(self) -> Progress:
        """50 chunks a second of 640 bytes, as they come due."""
        chunks = round((self.talk._now_ns - self._zero_ns) / S * 50)
        return Progress(chunks, chunks * 20_000_000, chunks * 640)

    # ---- what came of it

    @property
    def record(self) -> SessionRecord:
        return self.talk.record(worker="w", user=1, stage="main", window="measure", begun_ns=DIAL_NS)

    @property
    def utterance(self) -> Utterance:
        return self.record.utterances[0]

    @property
    def text(self) -> str:
        return self.utterance.channels["transcript"].text

    def times(self, kind: type[Any], **facts: Any) -> list[float]:
        """When actions of a kind were asked for, seconds from the dial."""
        wanted = [(at, action) for at, action in self.did if isinstance(action, kind)]
        return [at for at, action in wanted if all(getattr(action, name) == value for name, value in facts.items())]

    @property
    def ended_s(self) -> float:
        return self.times(Ended)[0]


def since(start_ns: int | None, at_ns: int | None) -> float | None:
    """Seconds from one point to another; None where one is unknown."""
    return None if start_ns is None or at_ns is None else (at_ns - start_ns) / S


def first_output(play: Play) -> float | None:
    return since(play.utterance.media_zero_ns, play.utterance.channels["transcript"].first_ns)


def final_latency(play: Play) -> float | None:
    return since(play.utterance.source_end_ns, play.utterance.channels["transcript"].last_final_ns)


def done_latency(play: Play) -> float | None:
    return since(play.utterance.source_end_ns, play.utterance.done_ns)


WORDS = [(0.3, {"partial": "red"}), (0.7, {"partial": "red boat"}), (1.1, {"partial": "red boat leaves"})]
WHOLE = [*WORDS, (3.2, {"final": "red boat leaves"}), (3.2, {"done": True})]


def http(framing: str) -> dict[str, object]:
    return {
        "transport": {"kind": "http"},
        "end": [{"end_body": True}, {"done": {"on": ["end_of_response"]}}],
        "receive": {
            "framing": framing,
            "rules": [
                {"has": "partial", "text": {"model": "unkeyed", "text": "partial"}},
                {"has": "final", "text": {"model": "unkeyed", "text": "final", "final": True}},
            ],
        },
    }
