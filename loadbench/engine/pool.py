"""Which endpoint of a service a session goes to: a pure plan, told when one is free again."""

from collections import deque
from random import Random


class Pool:
    """Round after round over `size` endpoints, in an order of the seed's.

    With `most` sessions at an endpoint at a time, it is the next one that has room, and there may be none.
    """

    def __init__(self, size: int, most: int | None, seed: int) -> None:
        order = list(range(size))
        Random(f"{seed}:endpoints").shuffle(order)
        self._order, self._most, self._taken = deque(order), most, [0] * size

    def take(self) -> int | None:
        """The endpoint of the next session; None where none has room."""
        for _ in range(len(self._order)):
            endpoint = self._order[0]
            self._order.rotate(-1)
            if self._most is None or self._taken[endpoint] < self._most:
                self._taken[endpoint] += 1
                return endpoint
        return None

    def free(self, endpoint: int) -> None:
        """A session there is over."""
        self._taken[endpoint] -= 1
