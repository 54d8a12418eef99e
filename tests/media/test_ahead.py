"""Work over all cores, in order, never too far ahead."""

import os
import threading
from collections.abc import Iterator

import pytest

from loadbench.media import ahead


def test_results_come_in_order_however_long_each_takes() -> None:
    second = threading.Event()

    def work(n: int) -> int:
        if n == 0 and (os.cpu_count() or 1) > 1:
            assert second.wait(20)  # the first waits for the second, and still comes first
        second.set()
        return n * n

    assert list(ahead.in_order(work, range(200))) == [(n, n * n) for n in range(200)]


def test_no_more_is_taken_than_waits_for_the_cores() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for n in range(100_000):
            taken.append(n)
            yield n

    results = ahead.in_order(lambda n: n, items())
    assert next(results) == (0, 0)
    assert len(taken) == ahead.AHEAD * (os.cpu_count() or 1) + 1
    results.close()


def test_trouble_in_the_work_comes_out_where_its_result_would() -> None:
    def work(n: int) -> int:
        if n == 3:
            raise ValueError("three")
        return n

    results = ahead.in_order(work, range(10))
    assert [next(results)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
