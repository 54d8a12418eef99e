import asyncio
import contextlib

import pytest

from loadbench.simulator.behave import Gate
from loadbench.simulator.mouth import Deed, Mouth
from loadbench.simulator.options import Options

pytestmark = pytest.mark.looptime
SECOND = 1_000_000_000


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


async def played(mouth: Mouth, deeds: list[tuple[float, str]], said: list[tuple[float, str, float]]) -> None:
    def deed(name: str) -> Deed:
        async def do(left_ns: int) -> None:
            said.append((left_ns / SECOND, name, round(now_ns() / SECOND, 6)))

        return do

    for due_s, name in deeds:
        mouth.at(round(due_s * SECOND), deed(name))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(mouth.talk(), 10)


async def test_deeds_are_done_at_their_times_and_equal_ones_in_the_order_of_asking() -> None:
    said: list[tuple[float, str, float]] = []
    await played(Mouth(Gate(Options()), now_ns, None), [(2.0, "c"), (1.0, "a"), (1.0, "b")], said)
    assert said == [(1.0, "a", 1.0), (1.0, "b", 1.0), (2.0, "c", 2.0)]


async def test_what_comes_due_in_between_is_not_forgotten() -> None:
    said: list[float] = []
    mouth = Mouth(Gate(Options()), now_ns, None)

    async def again(left_ns: int) -> None:
        said.append(left_ns / SECOND)
        mouth.at(left_ns + SECOND, again)

    mouth.at(SECOND, again)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(mouth.talk(), 4.5)
    assert said == [1.0, 2.0, 3.0, 4.0]


async def test_from_its_muting_on_nothing_is_said() -> None:
    said: list[tuple[float, str, float]] = []
    await played(Mouth(Gate(Options()), now_ns, 2 * SECOND), [(1.9, "a"), (2.0, "b")], said)
    assert [name for _, name, _ in said] == ["a"]
