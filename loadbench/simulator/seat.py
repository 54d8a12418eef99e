"""A session that is many HTTP requests: one connection, whose requests are heard, and polls that are told what is new.

What is said waits here until it is asked for. Where the profile has no poll, each answer brings what waits.
"""

import asyncio
import contextlib
import socket
import struct
from collections import deque
from typing import Any, Final, Literal

from aiohttp import web

from loadbench.simulator.log import Entry
from loadbench.simulator.sitting import House, Sitting

LOOK_S: Final = 0.05  # aiohttp tells nobody when a connection ends between two requests


class Seat:
    """One connection. `answer` is given its requests in turn; `occupied` lasts until it is gone, and logs it."""

    def __init__(self, house: House, request: web.Request, entry: Entry, course: Any) -> None:
        self._house = house
        self._request = request
        self._waiting: deque[str | bytes] = deque()
        self._news = asyncio.Event()
        self._closed = False
        self._ended: Literal["service"] | None = None
        self._status = 200
        self._entry = entry
        requests = house.profile.transport.requests
        self._poll = None if requests is None or requests.poll is None else requests.poll.request.split(" ")
        self._owes = any(message is not None for message in house.speaker.waits.values())
        self._sitting = Sitting(house, self, course, entry)
        self._talking = asyncio.create_task(talk_on(self._sitting))
        self._sitting.opened()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """A poll, or a message and what follows from it."""
        body = await request.read()
        if self._poll and request.method == self._poll[0] and request.path.endswith(self._poll[1]):
            return self._told(self._waiting.popleft() if self._waiting else self._idle())
        opening = not self._sitting.ready
        self._sitting.heard("body", body, self._house.clock())
        if (opening and self._owes) or self._poll is None:
            await self._something()
            return self._told(self._waiting.popleft() if self._waiting else "")
        return self._told("")

    async def occupied(self) -> None:
        """Until the connection is gone, or the service ends."""
        try:
            while (transport := self._request.transport) is not None and not transport.is_closing():  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
        except asyncio.CancelledError:
            self._ended = "service"
            raise
        finally:
            self._sitting.gone(self._house.clock(), self._ended or "client", None)
            await silenced(self._talking)

    # ---- what the sitting says (sitting.Wire)

    async def say(self, message: str | bytes) -> None:
        """One message more that waits to be asked for."""
        self._waiting.append(message)
        self._news.set()

    async def close(self, code: int | None) -> None:
        """Nothing more will come; a refusal is told as a status."""
        self._closed = True
        self._ended = "service"
        if code is not None:
            self._status = self._house.speaker.refusal_status or 503
        self._news.set()

    async def drop(self, how: str | int) -> None:
        """Cut the connection."""
        self._ended = "service"
        cut(self._request, reset=how == "rst")

    # ---- inside

    async def _something(self) -> None:
        """Until there is a message to give, or there will be none."""
        while not self._waiting and not self._closed:
            self._news.clear()
            await self._news.wait()

    def _idle(self) -> str:
        idle = self._house.speaker.idle
        return "" if idle is None else self._house.speaker.wire(idle)

    def _told(self, message: str | bytes) -> web.Response:
        body = message.encode() if isinstance(message, str) else message
        response = web.Response(body=body, status=self._status, content_type="application/json")
        if self._closed and not self._waiting:
            response.force_close()
        return response


async def talk_on(sitting: Sitting) -> None:
    """Let a sitting say what it has to say, until it is silenced."""
    with contextlib.suppress(ConnectionError):  # the client has gone, which the reader sees and logs
        await sitting.mouth.talk()


async def silenced(talking: "asyncio.Task[None]") -> None:
    """Stop a mouth; what it stumbled over is an error of ours, and is raised."""
    talking.cancel()
    await asyncio.wait([talking])
    if not talking.cancelled():
        talking.result()


def cut(request: web.Request, *, reset: bool) -> None:
    """Take the connection away without a word."""
    transport = request.transport
    if transport is None:
        return
    if reset:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()
