"""The target's addresses, in the order in which sessions try them."""

import asyncio
import socket
from typing import Any

import pytest

from loadbench.doctor import contact
from loadbench.doctor.contact import Tried

REFUSED = Tried("[2001:db8::7]:443", None, "network is unreachable")
SLOW = Tried("192.0.2.7:443", 0.25)
QUICK = Tried("192.0.2.8:443", 0.012)


@pytest.mark.parametrize(
    ("tried", "state", "part"),
    [
        ([QUICK], "ok", "192.0.2.8:443 12 ms"),
        ([QUICK, REFUSED], "ok", "then [2001:db8::7]:443 network is unreachable"),
        ([REFUSED, QUICK], "warning", "write 192.0.2.8:443 into target.url"),
        ([SLOW, QUICK], "warning", "connecting alone takes that long"),
        ([REFUSED], "problem", "nobody can be reached"),
    ],
)
def test_the_first_address_decides_what_every_session_waits_for(tried: list[Tried], state: str, part: str) -> None:
    row = contact.judged(tried)
    assert row.state == state
    assert part in row.found + row.advice


@pytest.mark.realtime
async def test_a_listener_is_connected_to_and_left_without_a_byte() -> None:
    heard: list[bytes] = []
    over = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()
        over.set()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    rows = await contact.contact("127.0.0.1", port)
    await asyncio.wait_for(over.wait(), 5)
    server.close()
    assert [row.state for row in rows] == ["ok", "ok"]
    assert f"127.0.0.1:{port}" in rows[1].found
    assert heard == [b""]


@pytest.mark.realtime
async def test_each_address_is_tried_in_the_order_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        async def resolve(*_: Any, **__: Any) -> list[Any]:
            kind = socket.SOCK_STREAM
            return [(socket.AF_INET, kind, 6, "", (host, at)) for host, at in (("127.0.0.1", 1), ("127.0.0.1", port))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        name, addresses = await contact.contact("two.example", port)
    assert "2 addresses" in name.found
    assert addresses.state == "warning"
    assert addresses.found.startswith("127.0.0.1:1 connection refused, then 127.0.0.1:")


async def test_a_name_without_an_address_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    rows = await contact.contact("nobody.example", 443)
    assert [row.state for row in rows] == ["problem"]
    assert "nobody.example: Name or service not known" in rows[0].found
