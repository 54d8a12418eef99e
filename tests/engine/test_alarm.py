import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from loadbench.engine.alarm import MS, Agenda, LoopAlarm, Reminder, TimerFd, kernel_alarm
from tests.engine.test_pacer import Hand


@pytest.mark.realtime
@pytest.mark.parametrize(
    "make", [TimerFd, lambda ring: LoopAlarm(ring, time.monotonic_ns), kernel_alarm], ids=["timerfd", "loop", "kernel"]
)
@pytest.mark.parametrize("ahead_ms", [-5.0, 0.0, 0.3, 20.7])
async def test_an_alarm_rings_once_and_soon_after_the_moment(make: Callable[[Any], Any], ahead_ms: float) -> None:
    rung: list[int] = []
    alarm = make(lambda: rung.append(time.monotonic_ns()))
    asked = time.monotonic_ns() + round(ahead_ms * MS)
    alarm.at(asked + 3600 * 1000 * MS)
    alarm.at(asked)
    await asyncio.sleep(0.2)
    alarm.close()
    assert len(rung) == 1
    assert -1 * MS <= rung[0] - asked < 150 * MS
    alarm.close()


async def test_a_closed_alarm_does_not_ring() -> None:
    rung: list[int] = []
    for make in (TimerFd, lambda ring: LoopAlarm(ring, time.monotonic_ns)):
        alarm = make(lambda: rung.append(1))
        alarm.at(time.monotonic_ns() + 5 * MS)
        alarm.close()
    await asyncio.sleep(0.05)
    assert rung == []


def test_appointments_are_kept_in_order_of_time_and_none_is_early() -> None:
    hand, kept = Hand(), []
    agenda = Agenda(hand.clock, hand.make)
    for at_ms in (1_030, 1_010, 1_020, 1_010):
        agenda.at(at_ms * MS, lambda at_ms=at_ms: kept.append((at_ms, hand.now_ns // MS)))
    hand.run()
    assert kept == [(1_010, 1_010), (1_010, 1_010), (1_020, 1_020), (1_030, 1_030)]


def test_an_early_ring_keeps_no_appointment() -> None:
    hand, kept = Hand(), []
    agenda = Agenda(hand.clock, hand.make)
    agenda.at(1_010 * MS, lambda: kept.append(1))
    hand.ring()
    assert kept == []
    assert hand.asked_ns == 1_010 * MS


def test_what_takes_longer_than_the_budget_lets_the_loop_read_in_between() -> None:
    hand, kept = Hand(), []

    def slow() -> None:
        hand.now_ns += MS
        kept.append(hand.now_ns)

    agenda = Agenda(hand.clock, hand.make)
    for _ in range(5):
        agenda.at(1_000 * MS, slow)
    hand.ring()
    assert len(kept) == 2
    assert hand.asked_ns == 1_000 * MS
    hand.run()
    assert len(kept) == 5


def test_a_call_that_raises_does_not_stop_the_agenda() -> None:
    hand, kept = Hand(), []
    agenda = Agenda(hand.clock, hand.make)
    agenda.at(1_000 * MS, [].pop)
    agenda.at(1_001 * MS, lambda: kept.append(1))
    with pytest.raises(IndexError):
        hand.ring()
    hand.run()
    assert kept == [1]


def test_a_reminder_follows_a_deadline_that_moves() -> None:
    hand, kept = Hand(), []
    agenda = Agenda(hand.clock, hand.make)
    reminder = Reminder(agenda, lambda: kept.append(hand.now_ns // MS))
    reminder.by(None)
    reminder.by(1_050 * MS)
    reminder.by(1_080 * MS)  # later: the earlier appointment stays, and whoever is called asks again
    reminder.by(1_020 * MS)
    hand.run()
    assert kept == [1_020]
    reminder.by(1_100 * MS)
    reminder.close()
    hand.run()
    assert kept == [1_020]
