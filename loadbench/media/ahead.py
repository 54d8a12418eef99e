"""Work on a long row of things over all cores, results in order, a bounded number of them under way."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
AHEAD: Final = 8  # things that wait, for each core


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[tuple[Item, Result], None, None]:
    """(item, result) of each, in order; FFmpeg and numpy let threads run beside each other.

    Closing it, as Ctrl-C does, drops what has not begun.
    """
    cores = os.cpu_count() or 1
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(work, item)))
                if len(waiting) > AHEAD * cores:
                    first, done = waiting.popleft()
                    yield first, done.result()
            while waiting:
                first, done = waiting.popleft()
                yield first, done.result()
        finally:
            for _, left in waiting:
                left.cancel()
