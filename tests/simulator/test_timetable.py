import asyncio

import pytest

pytestmark = pytest.mark.looptime


async def test_the_first_partial_counts_from_the_first_chunk_and_the_final_from_the_end_mark(service) -> None:
    client = await service(first_s=0.3, final_s=0.5, text="the red boat").vosk(chunks=5)
    assert client.said("partial") == [(0.3, "the"), (0.8, "the red"), (1.3, "the red boat")]
    assert client.said("text") == [(1.5, "the red boat")]
    assert client.closed == (1.5, None)


async def test_characters_and_not_words_are_added_where_words_are_not_set_apart(service) -> None:
    client = await service(first_s=0.1, partial_every_s=0.1, text="今天下午").vosk(chunks=2)
    assert [text for _, text in client.said("partial")][:5] == ["今", "今天", "今天下", "今天下午", "今天下午"]


async def test_two_slots_serve_four_sessions_in_the_order_of_their_first_chunks(service) -> None:
    house = service(first_s=0.3, final_s=0.5, capacity=2)
    begun = []
    for _ in range(4):
        begun.append(asyncio.create_task(house.vosk(chunks=5)))
        await asyncio.sleep(0.01)
    one, two, three, four = await asyncio.gather(*begun)
    assert [client.said("text")[0][0] for client in (one, two)] == [1.5, 1.5]
    assert [client.said("partial")[0][0] for client in (three, four)] == [1.5 - 0.02 + 0.3, 1.5 - 0.02 + 0.3]
    assert [client.said("text")[0][0] for client in (three, four)] == [1.48 + 0.5, 1.48 + 0.5]
    assert [entry.waited_ns for entry in house.entries.values()] == [0, 0, 1_480_000_000, 1_480_000_000]


async def test_a_slot_is_held_for_the_service_time_even_when_the_client_has_gone(service) -> None:
    house = service(first_s=0.1, final_s=0.2, service_s=1.0, capacity=1)
    first = asyncio.create_task(house.vosk(chunks=1))
    await asyncio.sleep(0.1)
    second = await house.vosk(chunks=1)
    assert (await first).said("text")[0][0] == 0.4
    assert second.said("text")[0][0] == pytest.approx(0.2 + 1.0 - 0.1 + 0.2)


async def test_a_session_that_leaves_the_line_gives_its_place_to_the_next(service) -> None:
    house = service(first_s=0.1, final_s=5.0, capacity=1)
    holder = asyncio.create_task(house.vosk(chunks=1))
    await asyncio.sleep(0.01)
    leaver = asyncio.create_task(house.vosk(chunks=1, wait_s=0.5))
    await asyncio.sleep(0.01)
    last = await house.vosk(chunks=1)
    assert (await leaver).heard == []
    assert (await holder).said("text")[0][0] == 5.2
    assert last.said("text")[0][0] == pytest.approx(5.2 - 0.02 + 5.0)


async def test_with_overflow_reject_the_session_without_a_slot_is_turned_away(service) -> None:
    house = service(capacity=1, overflow="reject")
    first = asyncio.create_task(house.vosk(chunks=3))
    await asyncio.sleep(0.01)
    second = await house.vosk(chunks=3)
    assert second.closed == (0.0, 1013)
    assert (await first).closed is not None
    assert [entry.outcome for entry in house.entries.values()] == ["rejected", "ok"]


async def test_a_frozen_service_says_nothing_and_then_everything_at_once(service) -> None:
    client = await service(first_s=0.3, final_s=0.1, freeze_s=(0.5, 2.0), text="a b c d e f").vosk(chunks=5)
    assert client.said("partial") == [(0.3, "a"), (2.0, "a b")]
    assert client.said("text") == [(2.0, "a b c d e f")]


async def test_a_service_that_freezes_for_ever_never_answers(service) -> None:
    client = await service(first_s=0.3, freeze_s=(0.5, None)).vosk(chunks=5)
    assert [text for _, text in client.heard] == [{"partial": "the"}]
    assert client.closed is None


async def test_a_service_that_falls_silent_keeps_the_connection_and_says_no_more(service) -> None:
    client = await service(first_s=0.3, silent_after_s=0.9).vosk(chunks=5)
    assert [at for at, _ in client.heard] == [0.3, 0.8]
    assert client.closed is None


async def test_ticks_move_every_output_to_the_next_whole_multiple(service) -> None:
    client = await service(first_s=0.3, final_s=0.1, tick_s=0.25, text="a b").vosk(chunks=5)
    assert [at for at, _ in client.heard] == [0.5, 1.0, 1.25]


async def test_segments_come_at_their_own_times_after_the_end_mark_and_done_after_the_last(service) -> None:
    client = await service(finals_s=(0.0, 1.0, 2.5), text="one two three four five", done_s=0.5).vosk(chunks=5)
    assert client.said("text") == [(1.0, "one two"), (2.0, "three"), (3.5, "four five")]
    assert client.closed == (4.0, None)


async def test_a_final_that_never_comes_leaves_the_connection_open(service) -> None:
    house = service(never_final_rate=0.5)
    outcomes = [(await house.vosk(chunks=2, wait_s=3)).closed is not None for _ in range(4)]
    assert outcomes == [True, False, True, False]
    assert [entry.outcome for entry in house.entries.values()] == ["ok", "no_final", "ok", "no_final"]


async def test_premature_text_comes_before_its_sound_and_only_the_close_at_the_end_mark(service) -> None:
    client = await service(premature_s=0.0, done_s=0.1).vosk(chunks=5)
    assert client.said("text") == [(0.0, "the red boat leaves at nine")]
    assert client.closed == (1.1, None)


@pytest.mark.parametrize("how", ["fin", "rst", 1011])
async def test_a_drop_cuts_the_connection_at_its_moment(service, how: str | int) -> None:
    house = service(drop=how, drop_s=0.45)
    client = await house.vosk(chunks=5)
    assert client.closed == (0.45, how)
    assert house.entries["s0"].outcome == "dropped"
    assert len(house.entries["s0"].chunks_ns) == 3


async def test_sixteen_of_twenty_sessions_are_dropped_when_the_share_is_four_fifths(service) -> None:
    house = service(drop_s=0.1, drop_rate=0.8)
    await asyncio.gather(*(house.vosk(chunks=2) for _ in range(20)))
    outcomes = [entry.outcome for entry in house.entries.values()]
    assert (outcomes.count("dropped"), outcomes.count("ok")) == (16, 4)


async def test_media_that_was_heard_before_is_answered_at_once(service) -> None:
    house = service(first_s=0.3, final_s=0.5, cache=True)
    fresh, again = await house.vosk(chunks=3), await house.vosk(chunks=3)
    assert [fresh.said("partial")[0][0], fresh.said("text")[0][0]] == [0.3, 1.1]
    assert [again.said("partial")[0][0], again.said("text")[0][0]] == [0.0, 0.6]


async def test_a_greeting_and_empty_partials_come_before_the_first_text_and_are_not_logged_as_it(service) -> None:
    house = service(first_s=0.3, empty_partials=2, greeting='{"type":"ready"}', trailer='{"type":"usage"}')
    client = await house.vosk(chunks=2)
    assert client.heard[:4] == [
        (0.0, {"type": "ready"}),
        (0.1, {"partial": ""}),
        (0.2, {"partial": "  "}),
        (0.3, {"partial": "the"}),
    ]
    assert client.heard[-1][1] == {"type": "usage"}
    assert house.entries["s0"].first_sent_ns == client.zero_ns + 300_000_000


async def test_each_chunk_is_answered_with_the_partial_as_it_stands_where_the_profile_wants_a_reply(service) -> None:
    client = await service(acks=True, first_s=0.3, partial_every_s=0, text="a b").vosk(chunks=3)
    assert [(at, message) for at, message in client.heard if at < 0.6] == [
        (0.0, {"partial": ""}),
        (0.2, {"partial": ""}),
        (0.3, {"partial": "a"}),
        (0.4, {"partial": "a"}),
    ]


async def test_wrong_words_are_exactly_the_asked_share_and_the_log_says_what_was_said(service) -> None:
    house = service(wrong_rate=0.1, text="one two three four five")
    texts = [(await house.vosk(chunks=1)).said("text")[0][1] for _ in range(10)]
    right = ["one", "two", "three", "four", "five"]
    wrong = sum(said != word for text in texts for said, word in zip(text.split(), right, strict=True))
    assert wrong == 5
    assert [entry.text["transcript"] for entry in house.entries.values()] == texts
