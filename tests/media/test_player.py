"""The arithmetic of a player that never skips."""

from hypothesis import given
from hypothesis import strategies as st

from loadbench.media.player import GAP_NS, Player

spans = st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**8)), min_size=1, max_size=30)


@given(spans)
def test_it_ends_when_the_worst_piece_and_all_behind_it_have_been_played(steps: list[tuple[int, int]]) -> None:
    player, at, place = Player(), 0, 0
    taken = []
    for wait, length in steps:
        at += wait
        player.take(place, place + length, at)
        taken.append((at, place))
        place += length
    assert player.end_ns == max(at - begin for at, begin in taken) + place
    assert player.end_ns == taken[0][0] + player.starved_ns + place
    assert sum(length for _, length in player.gaps) <= player.starved_ns
    assert all(length >= GAP_NS for _, length in player.gaps)


def test_nothing_has_no_end() -> None:
    assert Player().end_ns is None
