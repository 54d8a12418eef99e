"""A foreign client and a foreign service with the proxy between them: each sees what it would see without it."""

import asyncio
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from loadbench.profiles.overhear import Said
from loadbench.profiles.proxy import Proxy, readdressed

pytestmark = pytest.mark.realtime


async def test_messages_headers_query_subprotocols_pings_and_close_codes_pass_unchanged() -> None:
    seen: dict[str, object] = {}
    said: list[Said] = []

    async def handle(link: ServerConnection) -> None:
        request = link.request
        assert request is not None
        seen.update(path=request.path, own=request.headers["X-Own"], host=request.headers["Host"])
        async for message in link:
            await link.send(message)
            if message == "last":
                await link.close(4007, "that was it")

    async with serve(handle, "127.0.0.1", 0, subprotocols=[Subprotocol("b")]) as server:
        port = server.sockets[0].getsockname()[1]
        proxy = Proxy(f"ws://127.0.0.1:{port}", said.append, lambda *_: None)
        async with proxy.serving("127.0.0.1", 0) as own:
            url = f"ws://127.0.0.1:{own}/v1?model=x%20y"
            wants = [Subprotocol("a"), Subprotocol("b")]
            async with connect(url, subprotocols=wants, additional_headers={"X-Own": "1"}) as link:
                assert link.subprotocol == "b"
                for message in ("", "turn lïnks", b"\x00\xff" * 40_000, "last"):
                    await link.send(message)
                    assert await link.recv() == message
                    if not message:
                        await (await link.ping(b"are you there"))
                with pytest.raises(ConnectionClosed):
                    await link.recv()
                assert (link.close_code, link.close_reason) == (4007, "that was it")
    assert seen == {"path": "/v1?model=x%20y", "own": "1", "host": f"127.0.0.1:{port}"}
    kinds = [(each.who, each.kind) for each in said]
    assert kinds.count(("client", "text")) == kinds.count(("service", "text")) == 3
    assert kinds.count(("client", "ping")) == kinds.count(("service", "pong")) == 1
    assert max(each.size for each in said) == 80_000


async def test_a_refusal_passes_with_its_status_and_its_body() -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=429, text="later", headers={"Retry-After": "7"})

    app = web.Application()
    app.router.add_get("/", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    said: list[Said] = []
    proxy = Proxy(f"ws://127.0.0.1:{runner.addresses[0][1]}", said.append, lambda *_: None)
    async with proxy.serving("127.0.0.1", 0) as own:
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://127.0.0.1:{own}")
    await runner.cleanup()
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "7"
    assert [each.status for each in said if each.kind == "response"] == [429]


async def test_an_http_upload_passes_chunk_by_chunk_and_the_answer_while_it_still_goes_on() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        async for data, _ in request.content.iter_chunks():
            await response.write(b"got " + data)
        return response

    app = web.Application()
    app.router.add_post("/up", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    said: list[Said] = []
    proxy = Proxy(f"http://127.0.0.1:{runner.addresses[0][1]}", said.append, lambda *_: None)
    answered = asyncio.Event()
    async with proxy.serving("127.0.0.1", 0) as own, aiohttp.ClientSession() as session:

        async def body():  # type: ignore[no-untyped-def]
            yield b"one"
            await asyncio.wait_for(answered.wait(), 5)
            yield b"two"

        async with session.post(f"http://127.0.0.1:{own}/up", data=body()) as response:
            assert await response.content.readany() == b"got one"
            answered.set()
            assert await response.content.read() == b"got two"
    await runner.cleanup()
    assert [each.data for each in said if each.kind == "body" and each.who == "client"] == [b"one", b"two"]


async def test_a_service_that_is_not_there_is_said_and_the_client_is_let_go() -> None:
    ends: list[tuple[int, str]] = []
    proxy = Proxy("ws://127.0.0.1:9", lambda _: None, lambda number, why: ends.append((number, why)))
    async with proxy.serving("127.0.0.1", 0) as own:
        reader, writer = await asyncio.open_connection("127.0.0.1", own)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
    assert ends[0][0] == 1
    assert "cannot be reached" in ends[0][1]


@pytest.mark.parametrize(
    ("asked", "to", "sent"),
    [
        ("/", "ws://h:1", "/"),
        ("/", "ws://h:1/v1?a=b", "/v1?a=b"),  # a client that names no path means the service's
        ("/?c=d", "ws://h:1/v1?a=b", "/v1?c=d"),  # its own query goes before
        ("/own", "ws://h:1/v1?a=b", "/own"),
    ],
)
def test_only_the_host_and_a_bare_target_are_changed(asked: str, to: str, sent: str) -> None:
    head = f"GET {asked} HTTP/1.1\r\nhost:  127.0.0.1:5\r\nX-Host: stays\r\n\r\nrest\r\nhost: stays"
    found = readdressed(head.encode(), urlsplit(to))
    assert found.decode() == f"GET {sent} HTTP/1.1\r\nhost:  h:1\r\nX-Host: stays\r\n\r\nrest\r\nhost: stays"
