"""Says things at their due times, in order. The only task of a session beside its reader."""

import asyncio
import heapq
import itertools
from collections.abc import Awaitable, Callable

from loadbench.simulator.behave import Gate

Deed = Callable[[int], Awaitable[None]]


class Mouth:
    """Deeds in the order of their due times, no earlier, and only when the service's gate lets them out.

    A deed is called with the moment at which the gate let it out. `mute_ns`: from then on nothing is said any more.
    """

    def __init__(self, gate: Gate, clock: Callable[[], int], mute_ns: int | None) -> None:
        self._gate = gate
        self._clock = clock
        self._mute_ns = mute_ns
        self._deeds: list[tuple[int, int, Deed]] = []
        self._count = itertools.count()
        self._news = asyncio.Event()

    def at(self, due_ns: int, deed: Deed) -> None:
        """Do this at `due_ns`."""
        leaves_ns = self._gate.leaves(due_ns)
        if leaves_ns is None or (self._mute_ns is not None and leaves_ns >= self._mute_ns):
            return
        heapq.heappush(self._deeds, (leaves_ns, next(self._count), deed))
        self._news.set()

    async def talk(self) -> None:
        """Do all deeds as they come due, until cancelled or until the other side is gone."""
        loop = asyncio.get_running_loop()
        while True:
            while self._deeds and self._clock() >= self._deeds[0][0]:
                leaves_ns, _, deed = heapq.heappop(self._deeds)
                await deed(leaves_ns)
            self._news.clear()
            timer = None
            if self._deeds:
                timer = loop.call_later(max(0, self._deeds[0][0] - self._clock()) / 1e9, self._news.set)
            await self._news.wait()
            if timer is not None:
                timer.cancel()
