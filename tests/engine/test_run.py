import asyncio
from array import array
from collections import Counter
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from loadbench.engine.pipe import Begin, Finished, Ready, Stage, Stop, Workload
from loadbench.engine.run import Engine
from loadbench.results.record import ChunkTimes, Message, Started
from loadbench.results.tick import Tick
from loadbench.session.load import load_profile
from loadbench.session.profile import Profile
from loadbench.transports import memory
from tests.engine import stage
from tests.engine.stage import EOF, MS, Heard, S, answering, final_ns, media_of, now_ns, play, workload

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(("users", "media_ms"), [(1, 10_000), (50, 10_000), (3, 10_010)])
async def test_real_time_is_kept_to_the_slot_and_the_end_mark_comes_at_the_end_of_the_media(
    tmp_path: Path, users: int, media_ms: float
) -> None:
    work = workload(model="closed", users=users, sessions=users)
    heard, served = await play(tmp_path, answering(0.0), work, media_ms=media_ms, chunk_ms=20)
    zeros = sorted(record.utterances[0].media_zero_ns or 0 for record in heard.records.values())
    assert len(served.peers) == users
    for peer, zero in zip(sorted(served.peers, key=lambda peer: media_of(peer)[0][0]), zeros, strict=True):
        media = media_of(peer)
        dues = [min(20 * (number + 1), media_ms) for number in range(len(media))]
        assert [at - zero for at, _ in media] == [round(due * MS) for due in dues]
        assert [data for _, data in media] == [b"%05d" % number for number in range(len(dues))]
        assert [at - zero for at, message in peer.arrivals if message == EOF] == [media_ms * MS]
    for record in heard.records.values():
        utterance = record.utterances[0]
        assert utterance.eos_ns == utterance.source_end_ns
        assert final_ns(record) - (utterance.source_end_ns or 0) < 1 * MS
        assert record.lateness.max_ns == 0


async def test_sessions_that_start_together_spread_their_chunks_over_the_interval(tmp_path: Path) -> None:
    work = workload(model="closed", users=20, sessions=20)
    _, served = await play(tmp_path, answering(0.1), work, chunk_ms=20)
    load = Counter(at // MS % 20 for peer in served.peers for at, _ in media_of(peer))
    assert len(load) >= 15, "of 20 slots"
    assert max(load.values()) <= 2 * 50
    work = workload(model="closed", users=20, sessions=20, phase="aligned")
    _, served = await play(tmp_path, answering(0.1), work, chunk_ms=20)
    assert len({at // MS % 20 for peer in served.peers for at, _ in media_of(peer)}) == 1


async def test_a_service_that_stands_still_is_seen_by_every_session_that_was_planned_meanwhile(tmp_path: Path) -> None:
    begin_s = 0.05  # the lead of the first session

    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            frozen = 5.0 + begin_s <= asyncio.get_running_loop().time() < 7.0 + begin_s
            if frozen:
                await asyncio.sleep(7.0 + begin_s - asyncio.get_running_loop().time())
            if message == EOF:
                await asyncio.sleep(0 if frozen else 0.01)
                peer.send('{"text": "red boat"}')
                peer.close(1000)

    work = workload(model="constant", rate=10.0, sessions=200)
    heard, _ = await play(tmp_path, script, work, media_ms=200, chunk_ms=200, media_start="on_plan")
    assert heard.outcomes == {"ok": 200}
    assert max(record.lateness.start_ns for record in heard.records.values()) < 50 * MS
    waits = sorted((final_ns(record) - record.planned_ns) / S - 0.2 for record in heard.records.values())
    nearest_rank = {share: waits[-(-200 * share // 100) - 1] for share in (50, 90, 95, 100)}
    assert nearest_rank == pytest.approx({50: 0.01, 90: 0.1, 95: 1.0, 100: 2.0}, abs=0.11)


@pytest.mark.parametrize(
    ("drain_s", "outcomes", "reason"),
    [(0.0, {"ok": 7, "time_up": 3}, "time_up"), (10.0, {"ok": 10}, "completed"), (None, {"ok": 10}, "completed")],
)
async def test_when_time_is_up_unfinished_sessions_are_cut_and_counted_or_waited_for(
    tmp_path: Path, drain_s: float | None, outcomes: dict[str, int], reason: str
) -> None:
    number = count()

    async def script(peer: memory.Peer) -> None:
        await answering(8.0 if next(number) in (2, 5, 8) else 0.2)(peer)

    work = workload(model="closed", users=10, duration_s=5.0, drain_s=drain_s, think_s=60.0)
    heard, _ = await play(tmp_path, script, work)
    assert heard.outcomes == outcomes
    assert heard.of(Finished)[0].reason == reason
    for record in heard.records.values():
        if record.outcome == "time_up":
            assert record.ended_ns - (record.utterances[0].source_end_ns or 0) >= 3.7 * S
            assert record.ended_ns - record.planned_ns == 5 * S


async def test_a_bad_message_costs_its_own_session_and_every_started_one_is_in_the_books(tmp_path: Path) -> None:
    number = count()

    async def script(peer: memory.Peer) -> None:
        mine = next(number)
        if mine % 10 == 3:
            peer.send('{"partial": nul')
        elif mine % 17 == 5:
            peer.send('{"alternatives": []}')
        await answering(0.2)(peer)

    heard, _ = await play(tmp_path, script, workload(model="closed", users=50, sessions=50))
    assert heard.outcomes == {"ok": 42, "parse_error": 5, "profile_error": 3}
    assert len(heard.of(Started)) == 50
    for record in heard.records.values():
        if record.outcome == "ok":
            assert final_ns(record) - (record.utterances[0].source_end_ns or 0) == pytest.approx(0.2 * S, abs=MS)
        else:
            assert record.raw
            assert record.cause


class Faulty(memory.MemoryTransport):
    """A transport with a fault of its own at every third dial."""

    def __init__(self) -> None:
        self.dials = count()

    async def dial(self, *to: Any) -> Any:
        if next(self.dials) % 3 == 1:
            raise RuntimeError("out of cheese")
        return await super().dial(*to)


async def test_a_fault_of_our_own_ends_its_session_as_internal_and_no_other(tmp_path: Path) -> None:
    work = workload(model="closed", users=3, sessions=9)
    heard, _ = await play(tmp_path, answering(0.2), work, transport=Faulty())
    assert heard.outcomes == {"internal": 3, "ok": 6}
    assert {record.cause for record in heard.records.values()} == {"", "RuntimeError: out of cheese"}
    assert heard.of(Finished)[0].error == ""


async def test_there_is_one_tick_a_second_and_their_sums_are_the_totals(tmp_path: Path) -> None:
    async def script(peer: memory.Peer) -> None:
        async for message in peer:
            if isinstance(message, bytes):
                peer.send('{"partial": "red"}')
            elif message == EOF:
                peer.send('{"text": "red boat"}')
                peer.close(1000)

    work = workload(model="closed", users=4, sessions=10, warmup_s=0.5, ramp_s=0.4)
    heard, _ = await play(tmp_path, script, work)
    ticks, records = heard.of(Tick), heard.records.values()
    assert [tick.seq for tick in ticks] == list(range(len(ticks)))
    begin = heard.of(Ready)[0].begin_ns
    assert [tick.at_ns - begin for tick in ticks[:-1]] == [S * (tick.seq + 1) for tick in ticks[:-1]]
    assert sum(tick.span_ns for tick in ticks) == ticks[-1].at_ns - begin
    assert heard.ticked("started") == len(heard.of(Started)) == 10
    assert sum((Counter(tick.ended) for tick in ticks), Counter()) == {"ok": 10}
    assert sum((Counter(tick.chunks) for tick in ticks), Counter()) == {"audio": 50}
    assert sum((Counter(tick.lateness) for tick in ticks), Counter()) == {0: 50}
    assert heard.ticked("media_bytes") == sum(record.utterances[0].media_bytes for record in records) == 50 * 5
    told = sum((Counter(tick.messages) for tick in ticks), Counter())
    assert told == sum((Counter(record.messages) for record in records), Counter())
    assert told["final"] == 10
    assert max(tick.active for tick in ticks) == 4
    assert ticks[-1].active == 0
    assert {record.window for record in records} == {"warmup", "measure"}


async def test_a_closed_user_speaks_again_when_the_last_session_is_over(tmp_path: Path) -> None:
    work = workload(model="closed", users=1, sessions=3, think_s=0.5)
    heard, _ = await play(tmp_path, answering(0.2), work)
    records = list(heard.records.values())
    assert [record.id for record in records] == ["w-s0", "w-s1", "w-s2"]
    for before, after in pairwise(records):
        assert after.planned_ns - before.ended_ns == pytest.approx(0.5 * S, abs=MS)
        assert after.begun_ns == pytest.approx(after.planned_ns, abs=MS)
    assert [record.utterances[0].attempt for record in records] == [0, 1, 2]


async def test_the_next_turn_of_a_dialogue_waits_for_the_final_and_a_thought(tmp_path: Path) -> None:
    end = [{"send_text": EOF}, {"done": {"on": ["first_final"]}}]
    profile = Profile.model_validate(load_profile("vosk").model_dump(mode="json", exclude_unset=True) | {"end": end})
    work = workload(model="dialogue", users=2, sessions=6, think_s=0.5)
    heard, _ = await play(tmp_path, answering(0.2), work, profile=profile)
    assert heard.outcomes == {"ok": 6}
    for user in (0, 1):
        turns = [record for record in heard.records.values() if record.user == user]
        assert len(turns) == 3
        for before, after in pairwise(sorted(turns, key=lambda record: record.planned_ns)):
            assert after.planned_ns - final_ns(before) == pytest.approx(0.5 * S, abs=2 * MS)


async def test_stages_follow_each_other_and_each_session_bears_the_name_of_its_own(tmp_path: Path) -> None:
    stages = [Stage(name="low", level=1, seconds=4), Stage(name="high", level=3, seconds=4, ramp_s=1)]
    heard, _ = await play(tmp_path, answering(0.2), Workload(model="closed", stages=stages))
    records = heard.records.values()
    assert {record.stage for record in records if record.planned_ns < records_begin(heard) + 4 * S} == {"low"}
    assert {record.stage for record in records if record.planned_ns >= records_begin(heard) + 4 * S} == {"high"}
    assert max(tick.active for tick in heard.of(Tick) if tick.stage == "low") == 1
    assert max(tick.active for tick in heard.of(Tick)) == 3


def records_begin(heard: Heard) -> int:
    return heard.of(Ready)[0].begin_ns


async def test_media_on_plan_begins_at_the_planned_start_and_what_is_overdue_is_not_called_late(tmp_path: Path) -> None:
    work = workload(model="constant", rate=2.0, sessions=3)
    heard, served = await play(tmp_path, answering(0.2), work, media_start="on_plan", connect_s=0.7)
    for record, peer in zip(heard.records.values(), served.peers, strict=True):
        assert record.utterances[0].media_zero_ns == record.planned_ns
        offsets = [round((at - record.planned_ns) / MS) for at, _ in media_of(peer)]
        assert offsets == [700, 700, 700, 800, 1000]
        assert record.lateness.max_ns < MS
        times = next(times for times in heard.of(ChunkTimes) if times.session == record.id)
        assert times.begun_ns == record.planned_ns + 700 * MS
        due, sent = (array("q", part) for part in (times.due, times.sent))
        from_ns = times.begun_ns - times.media_zero_ns
        late = [at - max(due_ns, from_ns) for due_ns, at in zip(due, sent, strict=True)]
        assert (sum(late), max(late)) == (record.lateness.sum_ns, record.lateness.max_ns)


async def test_stop_lets_sessions_drain_then_cuts_them_and_starts_no_more(tmp_path: Path) -> None:
    async def during(engine: Engine) -> None:
        await asyncio.sleep(2.0)
        engine.take(Stop(drain_s=0.5))

    work = workload(model="closed", users=4, ramp_s=4.0, duration_s=100.0)
    heard, _ = await play(tmp_path, answering(0.6), work, during=during)
    assert heard.outcomes == {"interrupted": 2, "ok": 1}
    assert heard.of(Finished)[0].reason == "interrupted"
    assert heard.of(Finished)[0].ended_ns == pytest.approx(2.5 * S, abs=10 * MS)


async def test_the_door_may_place_the_starts_itself(tmp_path: Path) -> None:
    async def during(engine: Engine) -> None:
        engine.take(Begin(session="mine-1", planned_ns=now_ns() + S))
        await asyncio.sleep(3)
        engine.take(Begin(session="mine-2", planned_ns=now_ns()))
        await asyncio.sleep(3)
        engine.take(Stop(drain_s=0))

    heard, served = await play(tmp_path, answering(0.2), workload(model="external"), during=during)
    assert list(heard.records) == ["mine-1", "mine-2"]
    assert [dict(peer.address.headers)["x-loadbench-session"] for peer in served.peers] == ["mine-1", "mine-2"]


async def test_no_session_starts_whose_media_would_go_over_the_budget(tmp_path: Path) -> None:
    work = workload(model="closed", users=2, duration_s=100.0)
    heard, _ = await play(tmp_path, answering(0.2), work, budget_media_s=5.5)
    assert heard.outcomes == {"ok": 5}
    assert heard.of(Finished)[0].reason == "budget"


async def test_chunk_times_and_raw_messages_are_kept_of_a_sample(tmp_path: Path) -> None:
    work = workload(model="closed", users=6, sessions=6)
    heard, _ = await play(tmp_path, answering(0.2), work, sample_chunks=3, sample_messages=2)
    assert sorted(times.session for times in heard.of(ChunkTimes)) == ["w-s0", "w-s2", "w-s4"]
    times = heard.of(ChunkTimes)[0]
    due = memoryview(times.due).cast("q").tolist()
    assert due == memoryview(times.sent).cast("q").tolist() == [200 * MS * (number + 1) for number in range(5)]
    assert times.media_zero_ns == heard.records[times.session].utterances[0].media_zero_ns
    assert {message.session for message in heard.of(Message)} == {"w-s0", "w-s3"}
    assert heard.of(Message)[0].data == '{"text": "red boat"}'


async def test_a_loop_that_a_hook_blocks_makes_the_chunks_late_and_taints_the_sessions(tmp_path: Path) -> None:
    """Virtual time cannot be blocked, so the clock of this run jumps: 60 ms on each whole 100 ms, as a hook would."""
    heard = Heard()

    def clock() -> int:
        now = now_ns()
        return max(now, now // (100 * MS) * 100 * MS + 60 * MS)

    profile = stage.load_profile("vosk")
    entry = stage.clip(tmp_path, profile, media_ms=3000, chunk_ms=200)
    start = stage.plan([entry], profile, workload(model="closed", users=5, sessions=5))
    with memory.serve("asr", answering(0.1)):
        await Engine(
            start,
            heard.events.append,
            clock=clock,
            make_alarm=lambda ring: stage.LoopAlarm(ring, clock, quantum_ns=1000),
            transport=memory.transport,
        ).run()
    assert heard.outcomes == {"ok": 5}
    assert all(record.tainted for record in heard.records.values())
    assert all(record.lateness.gap_max_ns >= 55 * MS for record in heard.records.values())
    assert sum(len(tick.gaps) for tick in heard.of(Tick)) >= 20
    assert max(record.lateness.max_ns for record in heard.records.values()) >= 40 * MS


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"url": "ws://127.0.0.1"}, "memory://"),
        ({"url": "memory://asr/{captured.x}"}, "{captured.x}"),
        ({"clips": []}, "no clip"),
    ],
)
async def test_what_cannot_be_carried_out_is_said_before_anything_is_contacted(
    tmp_path: Path, more: dict[str, Any], expected: str
) -> None:
    profile = stage.load_profile("vosk")
    start = stage.plan([stage.clip(tmp_path, profile, media_ms=100, chunk_ms=20)], profile, workload(model="closed"))
    for name, value in more.items():
        setattr(start, name, value)
    with pytest.raises(ValueError, match=expected.replace("{", r"\{")):
        stage.engine(start, Heard())
