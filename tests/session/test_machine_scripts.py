"""What a session does before its connection, and before each utterance; branches; what is owed, counted, clocked."""

import json
from typing import Any

import pytest

from loadbench.results.record import Acks, MediaClock, Prelude
from loadbench.session.profile import Profile
from loadbench.session.wire import Abort, Answer, Ask, Cause, Dial, Limits, Send, Shut, StartMedia
from tests.session.scripted import DIAL_NS, WHOLE, Play, S, done_latency, gone, profile

URL = "wss://api.example/live?token=tok-1"
LIVE = {
    "params": {"api": "https://api.example"},
    "prelude": [
        {
            "request": "POST {param.api}/v2/live?key={secret.key}",
            "headers": {"x-key": "{secret.key}"},
            "json": {"rate": 16000},
            "capture": {"url": "url", "id": "session.number"},
        }
    ],
    "transport": {"kind": "websocket", "url": "{captured.url}"},
    "open": [{"send_text": "{captured.id}"}],
    "receive": {
        "statuses": [{"status": [403], "reason": "expired", "outcome": "auth_expired"}],
        "rules": [
            {"has": "partial", "text": {"model": "unkeyed", "text": "partial"}},
            {"has": "final", "text": {"model": "unkeyed", "text": "final", "final": True}},
        ],
    },
}
FIELDS = {"param.api": "https://api.example", "secret.key": "s3cret"}


def answer(body: Any = None, status: int = 201, **more: Any) -> Answer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(0, status, text, **more)


def asking(*answers: tuple[float, Answer | Cause], limits: Limits | None = None, **parts: Any) -> Play:
    how = profile(**(LIVE | parts))
    return Play(how, fields=FIELDS, answers=answers, limits=limits or Limits(), events=[(2 + at, m) for at, m in WHOLE])


def sends(play: Play) -> list[tuple[float, str]]:
    return [(at, action.payload.decode()) for at, action in play.did if isinstance(action, Send)]


# ---- the prelude


def test_the_prelude_comes_before_the_dial_and_its_time_is_kept_apart() -> None:
    play = asking((2.0, answer({"url": URL, "session": {"number": 7}}))).run()
    asks = [action for _, action in play.did if isinstance(action, Ask)]
    assert asks == [
        Ask(
            "POST",
            "https://api.example/v2/live?key=s3cret",
            (("x-key", "s3cret"), ("Content-Type", "application/json")),
            b'{"rate":16000}',
            10 * S,
        )
    ]
    assert (play.times(Ask), play.times(Dial), play.times(StartMedia)) == ([0.0], [2.0], [2.0])
    assert sends(play)[0] == (2.0, "7")
    assert play.talk.fields["captured.url"] == URL
    record = play.record
    assert record.prelude == [
        Prelude(name="POST https://api.example/v2/live", began_ns=DIAL_NS, ended_ns=DIAL_NS + 2 * S, status=201)
    ]
    assert record.outcome == "ok"
    assert record.connections[0].dialled_ns == DIAL_NS + 2 * S
    assert play.utterance.media_zero_ns == DIAL_NS + 2 * S
    assert play.talk.confidential == ["7", URL]


def test_a_second_request_uses_what_the_first_has_given_and_a_form_is_a_form() -> None:
    first = LIVE["prelude"][0] | {"capture": {"token": "token"}}  # type: ignore[index]
    second = {
        "request": "PUT {param.api}/{captured.token}",
        "form": {"a": "{captured.token}", "b": "x y"},
        "expect": [302],
        "capture": {"url": "url", "id": "id"},
    }
    given = answer({"token": "t/1"}), answer({"url": URL, "id": "i"}, status=302)
    play = asking((0.5, given[0]), (0.25, given[1]), prelude=[first, second]).run()
    ask = [action for _, action in play.did if isinstance(action, Ask)][1]
    assert (ask.method, ask.url, ask.body) == ("PUT", "https://api.example/t/1", b"a=t%2F1&b=x+y")
    assert ask.headers == (("Content-Type", "application/x-www-form-urlencoded"),)
    assert (play.record.outcome, play.times(Dial), len(play.record.prelude)) == ("ok", [0.75], 2)


@pytest.mark.parametrize(
    ("came", "outcome", "said"),
    [
        (answer("busy", 429, retry_after_s=3.0), "rejected", 'answered with HTTP status 429, retry after 3 s: "busy"'),
        (answer(b"", 401), "rejected", "answered with HTTP status 401"),
        (answer(b"no", 404), "target_error", "answered with HTTP status 404: no"),
        (answer(b"expired", 403), "auth_expired", "answered with HTTP status 403: expired"),
        (answer(b"", 307, location="https://b/"), "target_error", "status 307, a redirect to https://b/, which is not"),
        (answer(b"<html>"), "parse_error", "the answer is no JSON"),
        (answer({"url": URL}), "profile_error", "{captured.id} found nothing in the answer"),
        (answer({"url": "", "id": "a"}), "profile_error", "found an empty text in the answer"),
        (gone("refused", reason="nobody"), "connect_failed", "nobody answers at the address: nobody"),
        (gone("dns"), "dns", "the name of the service has no address"),
        (gone("tls", reason="self-signed"), "tls", "the TLS handshake failed: self-signed"),
        (gone("eof"), "connect_failed", "the connection was cut before there was an answer"),
        (gone("too_big", reason="an answer of more than 1 MiB"), "our_limit", "an answer of more than 1 MiB"),
        (gone("resource"), "no_resource", "this machine has run out"),
    ],
)
def test_a_prelude_that_comes_to_nothing_is_an_outcome(came: Answer | Cause, outcome: str, said: str) -> None:
    play = asking((1.0, came)).run()
    record = play.record
    assert (record.outcome, record.ended_ns, record.connections) == (outcome, DIAL_NS + S, [])
    assert said in record.cause
    assert record.cause.startswith("request 1 of the prelude: ")
    assert said in record.prelude[0].cause
    assert record.prelude[0].status == came.status
    assert play.times(Dial) == []


def test_a_prelude_without_an_answer_is_given_up_in_its_own_time() -> None:
    play = asking().run()
    assert (play.record.outcome, play.ended_s) == ("silent", 10.0)
    assert play.record.cause == "request 1 of the prelude: no answer within 10 s"
    assert play.times(Abort) == [10.0]
    assert play.times(Shut) == []


def test_the_session_limit_counts_from_the_prelude() -> None:
    play = asking((6.0, answer({"url": URL, "session": {"number": 7}})), limits=Limits(session_s=7.0)).run()
    assert (play.record.outcome, play.ended_s) == ("our_limit", 7.0)
    play = asking(limits=Limits(session_s=7.0)).run()
    assert (play.record.outcome, play.ended_s, play.times(Abort)) == ("our_limit", 7.0, [7.0])


def test_a_session_that_is_cut_while_it_asks_leaves_an_open_end() -> None:
    play = asking()
    play.events = [(3.0, lambda play, at: play.talk.stop("time_up", at))]
    play.run()
    assert (play.record.outcome, play.ended_s, play.times(Abort)) == ("time_up", 3.0, [3.0])
    assert play.record.prelude[0].ended_ns is None


# ---- branches

BRANCH = [
    {"wait": {"has": "config", "capture": {"worklet": "config.worklet"}}},
    {"send_text": "raw", "when": {"field": "captured.worklet", "equals": "true"}},
    {"send_text": "container", "when": {"field": "captured.worklet", "differs": "true"}},
    {"refuse": "{captured.worklet} is no answer", "when": {"field": "captured.worklet", "equals": "maybe"}},
]


@pytest.mark.parametrize(
    ("worklet", "said"), [(True, ["raw"]), (False, ["container"]), ("true", ["raw"]), (1, ["container"])]
)
def test_a_step_is_taken_by_what_was_captured_compared_as_text(worklet: Any, said: list[str]) -> None:
    play = Play(profile(open=BRANCH), events=[(0.1, {"config": {"worklet": worklet}})], horizon_s=1).run()
    assert [text for _, text in sends(play)] == said
    assert play.times(StartMedia) == [0.1]


def test_a_step_that_refuses_ends_the_session_with_its_sentence() -> None:
    play = Play(profile(open=BRANCH), events=[(0.1, {"config": {"worklet": "maybe"}})]).run()
    assert (play.record.outcome, play.record.side) == ("profile_error", "policy")
    assert play.record.cause == "maybe is no answer"
    assert play.times(Shut) == [0.1]


END = [
    {"send_text": "commit", "when": {"field": "clip.vad", "differs": "server"}},
    {"send_text": "stop"},
    {"send_text": "flush", "when": {"field": "clip.vad", "equals": "client"}},
    {"done": {"on": ["message"], "has": "done"}, "when": {"field": "clip.vad", "equals": "client"}},
    {"done": {"on": ["close"]}, "when": {"field": "clip.vad", "differs": "client"}},
]


@pytest.mark.parametrize(
    ("vad", "said", "rule"),
    [("client", ["commit", "stop", "flush"], "message"), ("server", ["stop"], "close"), (None, ["commit", "stop"], "")],
)
def test_the_end_mark_is_the_last_message_that_this_session_sends(vad: str | None, said: list[str], rule: str) -> None:
    fields = {} if vad is None else {"clip.vad": vad}
    events: list[Any] = [(3.1, {"final": "red boat"}), (3.2, {"done": True}), (3.3, Cause("closed", 0, code=1000))]
    play = Play(profile(end=END), events=events, fields=fields).run()
    assert [text for _, text in sends(play)] == said
    assert play.utterance.eos_ns == DIAL_NS + 3 * S
    assert play.utterance.done_rule == (rule or "close")
    assert play.record.outcome == "ok"


# ---- what each utterance begins with

TASKS = {
    "open": [{"wait": {"has": "hello"}}],
    "begin": [
        {"send_json": {"run": "{utterance.uuid}", "n": "{utterance.index}"}},
        {"wait": {"has": "started", "timeout_s": 2}},
    ],
    "end": [{"send_json": {"finish": "{utterance.uuid}"}}, {"done": {"on": ["message"], "has": "done"}}],
}


def test_each_utterance_begins_with_a_task_of_its_own() -> None:
    events: list[Any] = [(0.1, {"hello": 1}), (0.4, {"started": 1}), (1.5, {"final": "a"}), (1.6, {"done": 1})]
    events += [(2.0, {"started": 1}), (3.2, {"final": "b"}), (3.3, {"done": 1})]
    play = Play(profile(**TASKS), events=events, media_s=(1.0, 1.0)).run()
    told = [(at, json.loads(text)) for at, text in sends(play)]
    assert [(at, *one) for at, one in told] == [(0.1, "run", "n"), (1.4, "finish"), (1.6, "run", "n"), (3.0, "finish")]
    assert [one["n"] for _, one in told if "n" in one] == [0, 1]
    assert told[0][1]["run"] == told[1][1]["finish"] != told[2][1]["run"] == told[3][1]["finish"]
    assert play.times(StartMedia) == [0.4, 2.0]
    assert play.record.ready_ns == DIAL_NS + round(0.4 * S)
    assert [(each.outcome, each.channels["transcript"].text) for each in play.record.utterances] == [
        ("ok", "a"),
        ("ok", "b"),
    ]


def test_a_task_that_is_not_started_says_which_step_it_was() -> None:
    events: list[Any] = [(0.1, {"hello": 1}), (0.4, {"started": 1}), (1.5, {"final": "a"}), (1.6, {"done": 1})]
    play = Play(profile(**TASKS), events=events, media_s=(1.0, 1.0)).run()
    assert (play.record.outcome, play.ended_s) == ("target_error", 3.6)
    assert "within 2 s, at step 2 of what an utterance begins with" in play.record.cause
    assert [each.outcome for each in play.record.utterances] == ["ok", "target_error"]


def test_a_service_that_is_never_ready_for_the_next_utterance_is_given_up() -> None:
    begin = [TASKS["begin"][0], {"wait": {"has": "started"}}]
    events: list[Any] = [(0.1, {"hello": 1}), (0.4, {"started": 1}), (1.5, {"final": "a"}), (1.6, {"done": 1})]
    play = Play(profile(**TASKS | {"begin": begin}), events=events, media_s=(1.0, 1.0), limits=Limits(ready_s=5)).run()
    assert play.ended_s == 6.6
    assert "not ready within 5 s of the end of the utterance before" in play.record.cause


# ---- what is owed

OWED = {
    "end": [{"send_text": "commit"}, {"done": {"on": ["settled"]}}],
    "receive": {
        "rules": [
            {"has": "committed", "event": "pending", "key": "committed"},
            {
                "has": "completed",
                "event": "settled",
                "key": "completed",
                "text": {"model": "keyed", "key": "completed", "text": "text", "final": True},
            },
            {"has": "failed", "event": "settled", "key": "failed"},
        ]
    },
}


def owed(*events: Any) -> Play:
    return Play(profile(**OWED), events=events).run()


def test_done_is_when_the_last_item_is_settled_after_the_end_mark() -> None:
    play = owed(
        (1.0, {"committed": "i1"}), (2.0, {"completed": "i1", "text": "red"}), (2.5, {"committed": "i2"}),
        (3.1, {"committed": 3}), (3.4, {"completed": 3, "text": "leaves"}), (3.9, {"completed": "i2", "text": "boat"}),
    )  # fmt: skip
    assert (play.utterance.done_rule, done_latency(play)) == ("settled", 0.9)
    assert (play.record.outcome, play.text) == ("ok", "red leaves boat")
    assert play.record.messages == {"final": 3, "event": 3}


def test_what_was_settled_before_the_end_mark_ends_nothing() -> None:
    play = owed((1.0, {"committed": "a"}), (2.0, {"completed": "a", "text": "red"}))
    assert (play.record.outcome, play.utterance.done_ns) == ("no_final", None)
    assert play.ended_s == 33.0


def test_an_item_that_failed_or_overtook_its_commit_is_settled_too() -> None:
    play = owed((3.1, {"completed": "a", "text": "red"}))
    assert done_latency(play) == 0.1
    early = [(2.9, {"completed": "b", "text": "red"}), (2.9, {"committed": "b"}), (3.1, {"committed": "c"})]
    play = owed(*early, (3.5, {"failed": "c"}))
    assert (done_latency(play), play.record.outcome) == (0.5, "ok")


def test_a_key_that_is_none_is_the_profiles_fault() -> None:
    play = owed((1.0, {"committed": {"id": 1}}))
    assert play.record.outcome == "profile_error"
    assert 'key of event pending gave {"id": 1}, not a key' in play.record.cause


# ---- the service's media clock


def test_the_services_media_clock_is_recorded_at_each_change() -> None:
    receive = profile().receive.model_dump(exclude_unset=True)
    receive["clock"] = {"processed": "at.heard", "final": "at.final", "unit": "hms"}
    events: list[Any] = [
        (0.5, {"partial": "a", "at": {"heard": "0:00:00.40"}}),
        (0.6, {"partial": "a", "at": {"heard": "0:00:00.40"}}),
        (0.7, {"partial": "b", "at": {"heard": "soon"}}),
        (1.0, {"partial": "c", "at": {"heard": "0:00:00.90", "final": "0:00:00.30"}}),
        (1.2, {"partial": "d"}),
        (3.2, {"final": "red", "at": {"heard": "1:02:03.5", "final": "0:00:00.30"}}),
        (3.3, {"done": 1}),
    ]
    play = Play(profile(receive=receive), events=events).run()
    assert play.utterance.clock == [
        MediaClock(DIAL_NS + round(0.5 * S), 400, None),
        MediaClock(DIAL_NS + round(1.0 * S), 900, 300),
        MediaClock(DIAL_NS + round(3.2 * S), 3_723_500, 300),
    ]


def test_how_far_a_service_says_that_it_is_behind_is_a_row_of_its_clock() -> None:
    receive = profile().receive.model_dump(exclude_unset=True) | {"clock": {"lag": "remaining", "unit": "s"}}
    behind = [(0.5, 0.4), (0.6, 0.4), (0.9, 1.25)]
    events: list[Any] = [(at, {"partial": "red", "remaining": lag}) for at, lag in behind]
    play = Play(profile(receive=receive), events=[*events, (3.2, {"final": "red"}), (3.3, {"done": 1})]).run()
    assert play.utterance.clock == [
        MediaClock(DIAL_NS + round(0.5 * S), None, None, 400),
        MediaClock(DIAL_NS + round(0.9 * S), None, None, 1250),
    ]


# ---- captured values


@pytest.mark.parametrize(
    ("may_be_empty", "said", "outcome", "cause"),
    [
        ([], {"id": ""}, "profile_error", "{captured.id} found an empty text in the message"),
        ([], {"other": 1}, "profile_error", "{captured.id} found nothing in the message"),
        (["id"], {"other": 1}, "profile_error", "{captured.id} found nothing in the message"),
        (["id"], {"id": ""}, "ok", ""),
        ([], {"id": " "}, "ok", ""),
        ([], {"id": 0}, "ok", ""),
    ],
)
def test_a_captured_text_is_not_empty_unless_the_profile_says_that_it_may_be(
    may_be_empty: list[str], said: dict[str, Any], outcome: str, cause: str
) -> None:
    wait = {"capture": {"id": "id"}, "may_be_empty": may_be_empty}
    how = profile(open=[{"wait": wait}, {"send_json": {"session": "{captured.id}"}}])
    record = Play(how, events=[(0.2, said), *((at + 0.5, event) for at, event in WHOLE)]).run().record
    assert record.outcome == outcome
    assert record.cause.startswith(cause)


def test_no_clock_no_rows() -> None:
    assert Play(profile(), events=WHOLE).run().utterance.clock == []


# ---- counters


def counting(**parts: Any) -> Profile:
    counts = {name: f"{{count.{name}}}" for name in ("chunks_sent", "acked", "media_ms", "bytes_sent")}
    media = {"kind": "audio", "chunk_ms": 20, "ack": {"has": "ack"}}
    end = [{"send_json": counts}, {"done": {"on": ["close", "message"], "has": "done"}}]
    return profile(end=end, media=media, keepalive={"every_s": 1.0, "when": "always", "send_json": counts}, **parts)


def test_counters_tell_what_has_been_handed_over_until_then_as_numbers() -> None:
    events: list[Any] = [(0.5, {"ack": 1}), (1.5, {"ack": 1}), *WHOLE[3:]]
    play = Play(counting(), events=events).run()
    told = [(at, *json.loads(text).values()) for at, text in sends(play)]
    assert told == [(1.0, 50, 1, 1000, 32000), (2.0, 100, 2, 2000, 64000), (3.0, 150, 2, 3000, 96000)]


def test_acknowledgements_are_counted_and_those_that_echo_a_chunk_tell_its_round_trip() -> None:
    media = {"kind": "audio", "chunk_ms": 20, "ack": {"has": "ack", "echo": "ack"}}
    events: list[Any] = [(0.5, {"ack": 400}), (1.5, {"ack": "1200"}), (1.6, {"ack": None}), (1.7, {"x": 1}), *WHOLE[3:]]
    acks = Play(profile(media=media), events=events).run().utterance.acks
    assert acks == Acks(count=3, echoed=2, trip_sum_ns=400_000_000, trip_max_ns=300_000_000)
    assert Play(profile(), events=WHOLE).run().utterance.acks is None


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([(0.2, Cause("closed", 0, code=1000))], "rejected"),
        ([(0.1, {"type": "ready"}), (0.2, Cause("closed", 0, code=1000))], "rejected"),
        ([(0.1, {"partial": "red"}), (0.2, Cause("closed", 0, code=1000))], "closed_early"),
        ([*WHOLE[3:4], (3.3, Cause("closed", 0, code=1000))], "ok"),
    ],
)
def test_a_plain_close_before_any_text_may_be_a_refusal(events: list[Any], outcome: str) -> None:
    receive = profile().receive.model_dump(exclude_unset=True)
    receive["statuses"] = [{"close_code": [1000], "before_output": True, "outcome": "rejected"}]
    assert Play(profile(receive=receive), events=events).run().record.outcome == outcome


# ---- polling for the output


POLLED = {
    "transport": {"kind": "requests", "requests": {"media": "POST /jobs"}},
    "end": [
        {"wait": {"has": "id", "timeout_s": 5, "capture": {"id": "id"}}},
        {"poll": {"request": "GET /jobs/{captured.id}?x={param.x}", "every_s": 1.0}},
        {"done": {"on": ["message"], "has": "done", "timeout_s": 20}},
    ],
}


def polling(*events: Any) -> Play:
    return Play(profile(**POLLED), events=events, fields={"param.x": "1"}).run()


def test_an_output_is_asked_for_each_second_from_when_it_is_known_where_it_is_and_never_twice_at_a_time() -> None:
    """Media ends at 3.0. The third answer takes 1.5 s, so that the fourth request follows it at once."""
    pending = {"status": "pending"}
    answers = [(3.4, {"id": "b7"}), (3.5, pending), (4.5, pending), (6.9, pending), (7.0, {"final": "red", "done": 1})]
    play = polling(*answers)
    assert sends(play) == [(at, "GET /jobs/b7?x=1") for at in (3.4, 4.4, 5.4, 6.9)]
    assert {action.role for _, action in play.did if isinstance(action, Send)} == {"poll"}
    assert play.record.outcome == "ok"
    assert play.utterance.done_ns == DIAL_NS + 7 * S


@pytest.mark.parametrize(
    ("events", "outcome", "cause"),
    [
        ([], "no_final", "no message that fits within 5 s, at step 1 of the end; no message ever came"),
        ([(3.2, {"id": ""})], "profile_error", "{captured.id} found an empty text in the message"),
        ([(3.2, {"id": 4}), (3.3, {"status": "pending"})], "no_final", "no end of output within 20 s of the end mark"),
        ([(3.2, {"id": 4}), (3.3, {"type": "fatal", "why": "no"})], "target_error", "the service reported an error"),
    ],
)
def test_an_output_that_never_comes_ends_the_session_and_the_asking(
    events: list[Any], outcome: str, cause: str
) -> None:
    play = polling(*events)
    assert (play.record.outcome, play.record.cause.startswith(cause)) == (outcome, True), play.record.cause
    assert len(sends(play)) <= 2
