"""The server: WebSocket or HTTP, as the profile says, on this machine only unless asked otherwise."""

import asyncio
import contextlib
import itertools
import os
import re
import struct
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Literal

from aiohttp import BodyPartReader, WSMsgType, web

from loadbench.session.load import load_profile
from loadbench.session.profile import Profile
from loadbench.simulator.answers import Answers
from loadbench.simulator.hear import Grammar, strangers
from loadbench.simulator.log import Entry, Log
from loadbench.simulator.options import SERVED, Options, OptionsError
from loadbench.simulator.seat import Seat, cut, silenced, talk_on
from loadbench.simulator.sitting import House, Mind, Sitting
from loadbench.simulator.speak import Speaker
from loadbench.simulator.timetable import Timetable

MESSAGE_BYTES = 64 * 1024 * 1024
BACKLOG = 4096
CUT = 1006
_ADVICE = (
    "a local program is simulated with --stdio, and started by the tester (--url 'exec:loadbench simulate --stdio')"
)
NO_CODE = (1005, CUT, 1015)  # RFC 6455, 7.4.1: never sent in a close frame


async def serve(options: Options, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve until cancelled; `ready` is called with the address once it listens.

    Raises OptionsError, ProfileError, SpeakerError and CorpusError (each with `problems`) before it listens.
    """
    async with running(options) as url:
        if ready is not None:
            ready(url)
        await asyncio.Event().wait()


def run(options: Options, *, ready: Callable[[str], None] | None = None) -> None:
    """`serve` on a loop of its own, uvloop's where there is one; until interrupted."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(options, ready=ready))
    else:
        uvloop.run(serve(options, ready=ready))


@contextlib.asynccontextmanager
async def running(options: Options) -> AsyncIterator[str]:
    """A service that listens; gives its address, and ends all sessions on leaving. Raises as `serve` does."""
    profile = load_profile(options.profile)
    if profile.transport.kind not in SERVED:
        raise OptionsError([f"profile {profile.name} speaks {profile.transport.kind}: {_ADVICE}"])
    if options.nice:
        os.nice(options.nice)  # here, on the main thread: those that it starts inherit it
    with contextlib.ExitStack() as stack:
        house = await asyncio.to_thread(house_of, options, profile, stack)
        server = _Server(house)
        app = web.Application(client_max_size=MESSAGE_BYTES)
        app.router.add_route("*", "/{tail:.*}", server.answer)
        http = profile.transport.kind != "websocket"
        runner = web.AppRunner(app, access_log=None, handler_cancellation=http, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await _listening(runner, options)
            port = runner.addresses[0][1]
            yield f"{'http' if http else 'ws'}://{options.host}:{port}"
        finally:
            await server.end()
            await runner.cleanup()


def house_of(options: Options, profile: Profile, stack: contextlib.ExitStack) -> House:
    """The service that sessions share; what it holds open is closed with `stack`. Raises as `serve` does."""
    mind: Callable[[Sitting, Any], Mind] = Timetable
    if options.engine == "moonshine":
        from loadbench.simulator.recogniser import Moonshine

        mind = stack.enter_context(Moonshine(profile, options)).mind
    return House(
        options=options,
        profile=profile,
        speaker=Speaker(profile),
        grammar=Grammar(profile),
        answers=Answers.of(profile, options.text, options.corpus),
        log=stack.enter_context(contextlib.closing(_log(options.log))),
        clock=time.monotonic_ns,
        mind=mind,
    )


def _log(path: Path | None) -> Log:
    try:
        return Log(path)
    except OSError as error:
        raise OptionsError([f"the log {path} cannot be written: {error.strerror or error}"]) from error


async def _listening(runner: web.AppRunner, options: Options) -> None:
    try:
        await web.TCPSite(runner, options.host, options.port, backlog=BACKLOG).start()
    except OSError as error:
        raise OptionsError([f"cannot listen on {options.host}:{options.port}: {error.strerror or error}"]) from error


class _Server:
    """Takes connections and reads them; what they mean is the sitting's."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._numbers = itertools.count()
        self._tokens: dict[str, int] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._seats: dict[asyncio.BaseProtocol, Seat] = {}

    async def end(self) -> None:
        """End all sessions, and see that each is logged."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One connection, from its head to its end; or one request of many on it, the first of which takes a seat."""
        if (seat := self._seats.get(request.protocol)) is not None:
            return await seat.answer(request)
        house, opened_ns = self._house, self._house.clock()
        desk = house.speaker.reception.desk(request.method, request.path_qs) if house.speaker.reception else None
        if desk is not None and "Upgrade" not in request.headers:
            return web.json_response(desk.answer(request.host), status=desk.status)
        number = next(self._numbers)
        entry = _entry(house, request, number, opened_ns)
        leaves_ns = house.gate.leaves(opened_ns)
        await asyncio.sleep(max(0, leaves_ns - opened_ns) / 1e9 if leaves_ns is not None else 1e9)
        course = house.fate.course(number)
        status = self._refusal(request, opened_ns, refused=course.refused)
        if status is not None:
            entry.outcome, entry.close_by, entry.closed_ns = "rejected", "service", house.clock()
            house.log.write(entry)
            later = house.options.retry_after_s
            return web.Response(status=status, headers={} if later is None else {"Retry-After": f"{later:g}"})
        talk = {"websocket": self._websocket, "http": self._http}.get(house.profile.transport.kind, self._first_of_many)
        task = asyncio.ensure_future(talk(request, entry, course))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)  # when it is over itself, not when its client has gone
        return await task

    def _refusal(self, request: web.Request, now_ns: int, *, refused: bool) -> int | None:
        """The HTTP status with which this request is turned away; None: it is not, or in the profile's words."""
        house = self._house
        token, valid_s = request.headers.get("Authorization", ""), house.options.token_valid_s
        if valid_s is not None and now_ns - self._tokens.setdefault(token, now_ns) > valid_s * 1e9:
            return 401
        if not refused:
            return None
        messages, code = house.speaker.rejection("")
        if house.options.reject_status is not None or not (messages or code):
            return house.options.reject_status or house.speaker.refusal_status or 503
        return None

    async def _websocket(self, request: web.Request, entry: Entry, course: Any) -> web.StreamResponse:
        house = self._house
        part = house.profile.transport
        socket_ = web.WebSocketResponse(
            autoping=house.options.pong,
            compress=part.compression,
            max_msg_size=MESSAGE_BYTES,
            protocols=re.findall(r"[^\s,]+", request.headers.get("Sec-WebSocket-Protocol", "")),
            timeout=1.0,
        )
        await socket_.prepare(request)
        entry.opened_ns = house.clock()
        wire = _WebSocketWire(house, request, socket_)
        sitting = Sitting(house, wire, course, entry)
        talking = asyncio.create_task(talk_on(sitting))
        try:
            sitting.opened()
            await self._read_websocket(socket_, sitting, wire)
        except asyncio.CancelledError:
            wire.ended = "service"  # which is about to end as a whole
            raise
        finally:
            code = socket_.close_code
            cut = code is None or code == CUT
            sitting.gone(
                house.clock(), wire.ended or ("network" if cut else "client"), code
            )  # before anything is awaited: nobody goes unlogged
            await silenced(talking)
        return socket_

    async def _read_websocket(self, socket_: web.WebSocketResponse, sitting: Sitting, wire: "_WebSocketWire") -> None:
        clock, pause_s = self._house.clock, self._house.options.read_pause_s
        while True:
            message = await socket_.receive()
            now_ns = clock()
            if message.type is WSMsgType.BINARY:
                sitting.heard("binary", message.data, now_ns)
            elif message.type is WSMsgType.TEXT:
                sitting.heard("text", message.data.encode(), now_ns)
            elif message.type not in (WSMsgType.PING, WSMsgType.PONG):
                break
            if pause_s:
                await asyncio.sleep(pause_s)
        if wire.ended:
            await wire.over.wait()

    async def _http(self, request: web.Request, entry: Entry, course: Any) -> web.StreamResponse:
        house = self._house
        wire = _HttpWire(house, request)
        sitting = Sitting(house, wire, course, entry)
        talking = asyncio.create_task(talk_on(sitting))
        by: Literal["client", "service", "network"] = "client"
        try:
            sitting.opened()
            await (self._read_body if house.profile.transport.form is None else self._read_form)(request, sitting)
            await wire.over.wait()
            by = "service"
        except (ConnectionError, asyncio.CancelledError):
            by = wire.ended or "client"
            raise
        finally:
            sitting.gone(house.clock(), by, None)  # before anything is awaited: nobody goes unlogged
            await silenced(talking)
        return await wire.begun()

    async def _read_body(self, request: web.Request, sitting: Sitting) -> None:
        """Hear the body piece by piece: a chunk of the client's is one, stamped with its last byte."""
        clock, pause_s = self._house.clock, self._house.options.read_pause_s
        chunked = "chunked" in request.headers.get("Transfer-Encoding", "").lower()
        piece = b""
        async for data, ends in request.content.iter_chunks():
            now_ns = clock()
            piece += data
            if piece and (ends or not chunked):
                sitting.heard("body", piece, now_ns)
                piece = b""
                if pause_s:
                    await asyncio.sleep(pause_s)
        now_ns = clock()
        if piece:
            sitting.heard("body", piece, now_ns)
        sitting.ended(now_ns)

    async def _read_form(self, request: web.Request, sitting: Sitting) -> None:
        """Hear the file of a multipart upload, and hold its other fields against the profile's."""
        form, clock = self._house.profile.transport.form, self._house.clock
        strange = sitting.entry.violations
        if form is None or not request.content_type.startswith("multipart/"):
            strange.append(f"an upload as {request.content_type}, not multipart/form-data")
            sitting.ended(clock())
            return
        missing = {*form.fields, form.file}
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or part.name not in {*form.fields, form.file}:
                strange.append(f"unknown form field {part.name if isinstance(part, BodyPartReader) else None}")
                continue
            data = await part.read()
            missing.discard(part.name)
            if part.name == form.file:
                sitting.heard("body", _sound(bytes(data), strange), clock())
        strange += [f"the form has no field {name}" for name in sorted(missing)]
        sitting.ended(clock())

    async def _first_of_many(self, request: web.Request, entry: Entry, course: Any) -> web.StreamResponse:
        """The first request of a connection: from now on it has a seat, until the connection is gone."""
        seat = Seat(self._house, request, entry, course)
        self._seats[request.protocol] = seat
        task = asyncio.ensure_future(self._occupied(seat, request.protocol))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await seat.answer(request)

    async def _occupied(self, seat: Seat, protocol: asyncio.BaseProtocol) -> None:
        try:
            await seat.occupied()
        finally:
            del self._seats[protocol]


def _sound(data: bytes, strange: list[str]) -> bytes:
    """What is in a WAV file's `data`."""
    at = data.find(b"data", 12)
    if data[:4] != b"RIFF" or at < 0:
        strange.append("the file is no WAV")
        return data
    (size,) = struct.unpack_from("<I", data, at + 4)
    return data[at + 8 : at + 8 + size]


class _WebSocketWire:
    """Says things on a WebSocket. `ended`: it was this side that ended it; `over`: and it has."""

    def __init__(self, house: House, request: web.Request, socket_: web.WebSocketResponse) -> None:
        self._house = house
        self._request = request
        self._socket = socket_
        self.ended: Literal["service"] | None = None
        self.over = asyncio.Event()

    async def say(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            await self._socket.send_bytes(message)
        else:
            await self._socket.send_str(message)

    async def close(self, code: int | None) -> None:
        usual = next((code for code in self._house.profile.close.expect if code not in NO_CODE), None)
        if code is None and usual is None and CUT in self._house.profile.close.expect:
            await self.drop("fin")
            return
        self.ended = "service"
        try:
            await self._socket.close(code=code or usual or 1000)
        finally:
            self.over.set()

    async def drop(self, how: str | int) -> None:
        self.ended = "service"
        try:
            if how in ("fin", "rst"):
                cut(self._request, reset=how == "rst")
            else:
                await self._socket.close(code=int(how))
        finally:
            self.over.set()


class _HttpWire:
    """Says things in the body of one response, whose head goes out with the first of them."""

    def __init__(self, house: House, request: web.Request) -> None:
        self._house = house
        self._request = request
        self._response: web.StreamResponse | None = None
        self.ended: Literal["service"] | None = None
        self.over = asyncio.Event()

    async def begun(self) -> web.StreamResponse:
        """The response, its head sent."""
        if self._response is None:
            framing = self._house.profile.receive.framing
            sse = framing == "sse" or (framing == "auto" and self._house.options.sse)
            lines = "application/json" if framing == "body" else "application/x-ndjson"
            kind = "text/event-stream" if sse else lines
            self._response = web.StreamResponse(headers={"Content-Type": kind, "Cache-Control": "no-cache"})
            await self._response.prepare(self._request)
        return self._response

    async def say(self, message: str | bytes) -> None:
        response, data = await self.begun(), message if isinstance(message, bytes) else message.encode()
        size = self._house.options.cut_bytes or len(data)
        for at in range(0, len(data), size):
            await response.write(data[at : at + size])
            if at + size < len(data):
                await asyncio.sleep(0.002)  # so that the pieces leave apart

    async def close(self, code: int | None) -> None:
        self.ended = "service"
        if code is not None and self._response is None:
            self._response = web.StreamResponse(status=self._house.speaker.refusal_status or 503)
            await self._response.prepare(self._request)
        await (await self.begun()).write_eof()
        self.over.set()

    async def drop(self, how: str | int) -> None:
        self.ended = "service"
        cut(self._request, reset=how == "rst")
        self.over.set()


def _entry(house: House, request: web.Request, number: int, now_ns: int) -> Entry:
    return Entry(
        session=request.headers.get("x-loadbench-session") or f"peer-{number}",
        clip=request.headers.get("x-loadbench-clip"),
        peer=request.remote or "",
        opened_ns=now_ns,
        violations=strangers(house.profile, request.query),
    )
