import pytest

from loadbench.simulator.behave import Fate, Gate, Line, Slips, pieces, prefixes, share
from loadbench.simulator.options import Options


@pytest.mark.parametrize(
    ("rate", "count", "expected"), [(0.0, 50, 0), (1.0, 50, 50), (0.29, 100, 29), (0.8, 20, 16), (0.1, 9, 0)]
)
def test_a_share_is_exact(rate: float, count: int, expected: int) -> None:
    assert sum(map(share(rate), range(count))) == expected


def test_the_same_seed_gives_the_same_courses_and_another_seed_others() -> None:
    def drawn(seed: int) -> list[int]:
        fate = Fate(Options(first_s="uniform:0,1", seed=seed))
        return [fate.course(number).first_ns for number in range(5)]

    assert drawn(1) == drawn(1) != drawn(2)


def test_the_first_sessions_are_refused_and_then_the_share() -> None:
    fate = Fate(Options(reject_first=2, reject_rate=0.5))
    assert [fate.course(number).refused for number in range(6)] == [True, True, False, True, False, True]


@pytest.mark.parametrize(
    ("at_s", "leaves_s"),
    [(0.0, 0.0), (4.9, 4.9), (5.0, 7.0), (6.9, 7.0), (7.0, 7.0), (8.0, 8.0)],
)
def test_what_is_due_in_a_freeze_leaves_at_its_end(at_s: float, leaves_s: float) -> None:
    gate = Gate(Options(freeze_s=(5.0, 7.0)))
    zero = 1_000_000_000_000
    gate.leaves(zero)  # the first connection sets the zero
    assert gate.leaves(zero + round(at_s * 1e9)) == zero + round(leaves_s * 1e9)


def test_a_line_is_first_come_first_served_and_forgets_who_leaves() -> None:
    line, order = Line(1), []
    callers = [lambda now, name=name: order.append((name, now)) for name in "abcd"]
    for at, caller in enumerate(callers):
        line.enter(caller, at)
    assert line.full
    assert line.forget(callers[2])
    assert not line.forget(callers[0])
    line.leave(10)
    line.leave(11)
    line.leave(12)
    assert order == [("a", 0), ("b", 10), ("d", 11)]
    assert not line.full


def test_without_a_capacity_nobody_waits() -> None:
    line, order = Line(None), []
    for at in range(100):
        line.enter(order.append, at)
    assert order == list(range(100))
    assert not line.full


@pytest.mark.parametrize("text", ["one two three four", "今天下午三点"])
def test_wrong_words_replace_and_never_add(text: str) -> None:
    spoilt = Slips(0.5, 7).spoil(text)
    assert len(prefixes(spoilt)) == len(prefixes(text))
    assert sum(a != b for a, b in zip(_units(spoilt), _units(text), strict=True)) == len(_units(text)) // 2


def _units(text: str) -> list[str]:
    return text.split() if " " in text else list(text)


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("one two three four five", 3, ["one two", "three", "four five"]),
        ("今天下午三点开会", 2, ["今天下午", "三点开会"]),
        ("one", 1, ["one"]),
        ("one", 2, ["", "one"]),  # fewer words than parts
        ("", 2, ["", ""]),
    ],
)
def test_pieces_hold_the_whole_text_in_order(text: str, count: int, expected: list[str]) -> None:
    assert pieces(text, count) == expected
