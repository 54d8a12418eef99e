"""Whatever a service and a driver do, in whatever order: one outcome and one Ended, no exception, times in order."""

import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadbench.results.outcome import OUTCOMES
from loadbench.results.record import SessionRecord
from loadbench.session.machine import MESSAGE_KINDS, Conversation, compile_profile
from loadbench.session.wire import (
    Abort,
    Cause,
    ClipTask,
    Ended,
    Limits,
    Opened,
    Send,
    Shut,
    StartMedia,
    StopMedia,
)  # fmt: skip
from tests.examples import examples
from tests.session.scripted import S, profile

KEYED = {
    "fire": "all",
    "decode": "array",
    "rules": [
        {"has": "id", "channel": "transcript:{lang}", "text": {"model": "keyed", "key": "id", "text": "text"}},
        {"has": "list", "each": "list[*]", "text": {"model": "keyed", "key": "id", "text": "text", "final": "final"}},
        {"has": "partial", "text": {"model": "unkeyed", "text": "partial"}},
        {"has": "done", "event": "done"},
        {"has": "type", "outcome": "warning"},
    ],
}
PROFILES = [
    profile(),
    profile(end=[]),
    profile(end=[{"done": {"on": ["close"]}}], close={"expect": [1000, 1006], "grace_s": 0.3}),
    profile(
        open=[
            {"send_text": "a"},
            {"wait": {"has": "partial", "timeout_s": 2, "capture": {"x": "partial"}}},
            {"wait": {}},
        ],
        end=[{"quiet": {"for_s": 0.4, "max_s": 2}}, {"send_text": "{captured.x}"}, {"done": {"on": ["first_final"]}}],
        keepalive={"send_text": "k", "every_s": 0.3, "when": "always"},
        never_final={"rule": "promote_on_quiet", "quiet_s": 0.5},
    ),
    profile(
        end=[
            {"send_text": "x"},
            {"done": {"has": "done", "closes": "target", "timeout_s": 3}},
            {"send_text": "bye"},
            {"grace_s": 0.2},
        ],
        keepalive={"send_text": "k", "every_s": 0.2},
        never_final={"rule": "promote_on_done"},
        receive=KEYED,
    ),
    profile(
        transport={"kind": "http"},
        end=[{"end_body": True}, {"done": {"on": ["end_of_response", "message"]}}],
        receive={**KEYED, "framing": "auto"},
    ),
]
COMPILED = [compile_profile(how) for how in PROFILES]

SAID: list[Any] = [
    {"partial": "red"}, {"partial": ""}, {"partial": "red boat"}, {"final": "red boat"}, {"final": ""}, {"final": 7},
    {"done": True}, {"type": "ready"}, {"type": "hiccup"}, {"type": "busy", "why": [1]}, {"id": 1, "text": "a"},
    {"id": 2, "text": "b", "lang": "it"}, {"list": [{"id": 1, "text": "c", "final": True}, 3]}, {"list": {}},
    {"list": []},    [{"partial": "x"}, {"done": 1}], [], "text", 3, None, True, {"partial": None}, {},
]  # fmt: skip
said = st.one_of(
    st.sampled_from([json.dumps(each) for each in SAID]),
    st.sampled_from([(json.dumps(each) + "\n").encode() for each in SAID]),
    st.sampled_from(
        ["", "not json", '{"partial": nul', b"\xff\xfe", b"data: {}\n\n", b'data: {"done": 1}\r\n\r', b"\x00"]
    ),
    st.text(max_size=8),
    st.binary(max_size=8),
)
causes = st.builds(
    Cause,
    st.sampled_from(["closed", "closed", "closed", "eof", "reset", "refused", "dns", "tls", "rejected", "protocol"]),
    st.just(0),
    code=st.sampled_from([None, 1000, 1001, 1005, 1006, 1011, 4000]),
    reason=st.sampled_from(["", "full"]),
    status=st.sampled_from([None, 200, 429, 503]),
    body=st.binary(max_size=4),
)
calls = st.one_of(
    st.tuples(st.just("received"), said),
    st.tuples(st.just("received"), said),
    st.tuples(st.just("received"), st.sampled_from([json.dumps(each) for each in SAID[:11]])),
    st.tuples(st.just("lost"), causes),
    st.tuples(st.just("wake"), st.none()),
    st.tuples(st.just("media_ended"), st.integers(0, 2)),
    st.tuples(st.just("answered"), st.sampled_from(["text/event-stream", "application/json", ""])),
    st.tuples(st.just("stop"), st.sampled_from(["interrupted", "time_up"])),
    st.tuples(st.just("fail"), st.sampled_from(["no_resource", "internal"])),
)
gaps = st.sampled_from([0, 0, 1, S // 100, S // 10, S // 3, S, 4 * S])
spans = st.sampled_from([None, 0.5, 2.0, 6.0])


class Driver:
    """Does what it is asked, and checks at each step what a driver relies on."""

    def __init__(self, talk: Conversation, media_ns: int, late_ns: int, mute: bool) -> None:
        self.talk, self.media_ns, self.late_ns, self.mute = talk, media_ns, late_ns, mute
        self.now_ns = 50
        self.plans: list[tuple[int, Any]] = []
        self.zero_ns: int | None = None
        self.kinds: list[type[Any]] = []
        self.lost = False

    def tell(self, method: str, *args: Any) -> None:
        if method == "lost":
            self.lost = True
        getattr(self.talk, method)(*args)
        for action in self.talk.take():
            assert not self.kinds or self.kinds[-1] is not Ended, "something came after Ended"
            self.kinds.append(type(action))
            self.do(action)

    def do(self, action: Any) -> None:
        if isinstance(action, StartMedia):
            index, self.zero_ns = action.index, self.now_ns + self.late_ns
            self.plans.append((self.now_ns, ("media_started", index, self.zero_ns)))
            self.plans.append((max(self.zero_ns, self.now_ns) + self.media_ns, ("media_ended", index, 5)))
        elif isinstance(action, Send):
            assert not (action.role == "end" and self.now_ns < (self.zero_ns or 0) + self.media_ns), "an early end mark"
            self.talk.sent(action, self.now_ns)
        elif isinstance(action, Shut | Abort) and not self.mute and not self.lost:
            self.plans.append((self.now_ns, ("lost", Cause("closed", self.now_ns, by="us", code=1000))))

    def until(self, until_ns: int) -> None:
        """Let time pass: plans and deadlines as they come."""
        while True:
            due = min((at for at, _ in self.plans), default=None)
            alarm = self.talk.deadline_ns
            at = min((each for each in (due, alarm) if each is not None), default=None)
            if at is None or at > until_ns:
                break
            self.now_ns = max(self.now_ns, at)
            if due is not None and due <= at:
                plan = next(plan for plan in self.plans if plan[0] == due)
                self.plans.remove(plan)
                name, *args = plan[1]
                self.tell(name, *args, *([] if name == "lost" else [self.now_ns]))
            else:
                self.wake()
        self.now_ns = max(self.now_ns, until_ns)

    def wake(self) -> None:
        self.tell("wake", self.now_ns)
        assert self.talk.deadline_ns is None or self.talk.deadline_ns > self.now_ns


def check(record: SessionRecord, kinds: list[type[Any]]) -> None:
    assert kinds.count(Ended) == 1
    assert kinds.count(Shut) <= 1
    assert kinds.count(StopMedia) <= 1
    assert record.outcome in OUTCOMES
    assert record.side == OUTCOMES[record.outcome][1]
    assert (record.outcome == "ok") == (not record.cause)
    assert record.outcome != "internal" or record.cause == "told to", record.cause
    assert record.messages.keys() <= set(MESSAGE_KINDS)
    (line,) = record.connections
    steps = [line.dialled_ns, line.opened_ns, record.ready_ns, line.ended_ns, record.ended_ns]
    known = [at for at in steps if at is not None]
    assert known == sorted(known)
    for utterance in record.utterances:
        if record.outcome == "ok":
            assert utterance.outcome == "ok"
        for channel in utterance.channels.values():
            times = [update.at_ns for update in channel.updates]
            assert times == sorted(times)
            assert all(segment.first_ns <= segment.changed_ns <= record.ended_ns for segment in channel.segments)
    assert msgspec.json.decode(msgspec.json.encode(record), type=SessionRecord) == record


@settings(max_examples=examples(600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    number=st.integers(0, len(PROFILES) - 1),
    script=st.lists(st.tuples(gaps, calls), max_size=14),
    limits=st.builds(
        Limits,
        connect_s=spans,
        ready_s=spans,
        silence_s=spans,
        final_s=spans,
        session_s=spans,
        message_bytes=st.just(40),
    ),
    tasks=st.integers(1, 2),
    late_ns=st.sampled_from([-S, 0, S // 5]),
    opens=st.sampled_from([True, True, True, False]),
    mute=st.booleans(),
)
def test_a_conversation_ends_once_whatever_happens(number, script, limits, tasks, late_ns, opens, mute) -> None:
    media_ns = S
    clips = [ClipTask(f"c{n}", media_ns, 5) for n in range(tasks)]
    talk = Conversation(PROFILES[number], clips, limits, {}, session="s", planned_ns=0, compiled=COMPILED[number])
    driver = Driver(talk, media_ns, late_ns, mute)
    driver.tell("dialled", driver.now_ns)
    if opens:
        driver.tell("opened", Opened(driver.now_ns))
    for gap_ns, (name, what) in script:
        driver.until(driver.now_ns + gap_ns)
        now_ns = driver.now_ns
        if name == "lost":
            driver.tell("lost", Cause(**{slot: getattr(what, slot) for slot in Cause.__slots__} | {"at_ns": now_ns}))
        elif name == "wake":
            driver.wake()
        elif name == "received":
            driver.tell("received", what, now_ns)
        elif name == "answered":
            driver.tell("answered", 200, now_ns, what)
        elif name == "media_ended":
            driver.tell("media_ended", what, 5, now_ns)
        else:
            driver.tell(name, what, *(["told to"] if name == "fail" else []), now_ns)
    driver.until(driver.now_ns + 60 * S)
    if not talk.ended:
        driver.tell("stop", "time_up", driver.now_ns)
    record = talk.record(worker="w", user=0, stage="", window="measure", begun_ns=50)
    check(record, driver.kinds)
    assert talk.deadline_ns is None
