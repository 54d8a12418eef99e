"""The arithmetic of arrival times, by hand, and the sink that takes them."""

import asyncio
import shutil

import numpy as np
import pytest
from websockets.asyncio.client import connect

from benchmarks import arrivals
from benchmarks.search import most
from benchmarks.sink import sinking

MS = 1_000_000


def at_ms(*times: float) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array([round(time * MS) for time in times], dtype=np.int64)


def test_an_error_is_how_late_a_message_is_by_the_earliest_one_of_its_session():
    found = arrivals.errors_ns(at_ms(1003, 1020, 1045, 1061), 20 * MS)
    # against 1000, 1020, 1040, 1060, through the second message, which was the earliest
    assert (found / MS).tolist() == [3, 0, 5, 1]


def test_drift_is_how_far_the_last_message_is_behind_the_first_in_the_middle_session():
    sessions = [at_ms(0, 20, 40), at_ms(5, 26, 47), at_ms(0, 25, 50)]
    assert arrivals.drift_ms(sessions, 20 * MS) == 2  # 0, 2 and 10 ms


def test_a_sender_that_takes_21_ms_for_20_is_at_95_percent_of_real_time():
    assert arrivals.real_time([np.arange(500) * 21 * MS], 20 * MS) == pytest.approx(20 / 21)


def test_the_window_opens_half_a_second_after_the_last_start_and_closes_with_the_first_end():
    early, late = np.arange(200) * 20 * MS, 1000 * MS + np.arange(200) * 20 * MS
    found = arrivals.pace([early, late], 20 * MS, 2)
    assert (found.from_ns, found.to_ns) == (1500 * MS, 3980 * MS)
    assert found.rate == pytest.approx(1)
    assert (found.p50_ms, found.p99_ms) == (0, 0)
    assert found.held(5)


def test_sessions_that_never_came_count_in_the_rate():
    assert arrivals.pace([np.arange(200) * 20 * MS], 20 * MS, 2).rate == pytest.approx(0.5, abs=0.01)


def test_sessions_that_never_stream_together_hold_no_pace():
    found = arrivals.pace([np.arange(50) * 20 * MS, 5000 * MS + np.arange(50) * 20 * MS], 20 * MS, 2)
    assert found.rate == 0
    assert not found.held(1000)


@pytest.mark.parametrize(
    ("truth", "found"),
    [
        (9, 0),  # not even the least
        (75, 75),  # 200 no, 50 yes, then between 50 and 200: 100 no, 75 yes, 87 no
        (200, 200),
        (730, 700),  # 200, 400, 800 no, 600, 700, 750 no
        (9000, 4000),  # the top
    ],
)
def test_a_search_ends_below_what_is_held(truth: int, found: int):
    def trial(sessions: int) -> arrivals.Pace:
        return arrivals.Pace(1.0 if sessions <= truth else 0.5, 1, 1, 0, 0)

    assert most(trial, [5], start=200, top=4000, steps=3) == [found]


@pytest.mark.realtime
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_sink_counts_what_two_sessions_send_and_answers_every_fifth_message():
    async def session(url: str, payload: bytes) -> list[str]:
        heard = []
        async with connect(url, compression=None) as service:
            await (await service.ping(b"still there?"))
            for _ in range(25):
                await service.send(payload)
                await asyncio.sleep(0.02)
            await service.send("eof")
            async for message in service:
                heard.append(str(message).partition(',"at":')[0])
        assert service.close_code == 1000
        return heard

    async def both(url: str) -> list[list[str]]:
        return await asyncio.gather(session(url, bytes(640)), session(url, bytes(70_000)))

    with sinking(every=5, core=None) as seen:
        heard = asyncio.run(both(seen.url))
    assert heard == [['{"partial":"red"'] * 5 + ['{"final":"red boat"']] * 2
    assert sorted(seen.payload_bytes) == [25 * 640, 25 * 70_000]
    assert [len(at) for at in seen.arrivals] == [25, 25]
    assert seen.refused == 0
    assert all((np.diff(at) >= 0).all() for at in seen.arrivals)
