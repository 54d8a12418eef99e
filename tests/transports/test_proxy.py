"""Through a proxy that is asked for, and how it says no. The proxy is a few lines of our own."""

import asyncio
import base64
import time
from contextlib import suppress

import pytest

from loadbench.session.wire import Answer, Ask
from loadbench.transports import load, load_asker
from loadbench.transports.contract import Address, AddressError, Tls
from tests.transports.test_dial import closed_port, greeting, server_context

realtime = pytest.mark.realtime
OK = b"HTTP/1.1 200 Connection established\r\n\r\n"


def proxy(far, heads, said=OK):
    """Notes what it is asked, says `said`, and where that is yes, carries bytes to and fro."""

    async def carry(reader, writer):
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
        writer.close()

    async def handler(reader, writer):
        head = await far.head(reader)
        heads.append(head)
        if said != OK:
            writer.write(said)
            return
        host, _, port = head.split(" ")[1].rpartition(":")
        there = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(said)
        await asyncio.gather(carry(reader, there[1]), carry(there[0], writer))

    return far.server(handler)


@realtime
@pytest.mark.parametrize("secure", [False, True])
async def test_a_websocket_goes_through_the_proxy_and_tells_it_who_asks(dial, far, certificates, secure):
    async def plain(reader, writer):
        await far.shake_hands(reader, writer)
        writer.write(far.text("hello") + far.close(1000))
        await reader.read()

    heads = []
    async with greeting(far, certificates) if secure else far.server(plain) as port, proxy(far, heads) as way:
        one = await dial(
            "websocket",
            f"{'wss' if secure else 'ws'}://localhost:{port}",
            tls=Tls(ca_file=certificates.ca_pem),
            proxy=f"http://us%40r:p%3Aw-FAKE@127.0.0.1:{way}",
        )
        cause = await one.end()
    assert (cause.kind, cause.code, one.data) == ("closed", 1000, ["hello"])
    (head,) = heads
    assert head.startswith(f"CONNECT localhost:{port} HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'us@r:p:w-FAKE').decode()}" in head.split("\r\n")
    assert one.facts[0].remote == f"127.0.0.1:{way}"


@realtime
@pytest.mark.parametrize("secure", [False, True])
async def test_http_goes_through_the_proxy_too(dial, far, certificates, secure):
    async def handler(reader, writer):
        head = await far.head(reader)
        assert "proxy-authorization" not in head.lower()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nred")
        await reader.read()

    heads, tls = [], {"ssl": server_context(certificates)} if secure else {}
    async with far.server(handler, **tls) as port, proxy(far, heads) as way:
        url = f"{'https' if secure else 'http'}://localhost:{port}"
        one = await dial("http", url, tls=Tls(ca_file=certificates.ca_pem), proxy=f"http://u:pw-FAKE@127.0.0.1:{way}")
        cause = await one.end()
    assert (cause.kind, one.data, len(heads)) == ("closed", [b"red"], 1)


@realtime
@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno", "it answered 407 Proxy Auth"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "it answered 502 Bad Gateway"),
        (b"", "without an answer"),
        (b"220 smtp ready\r\n", "no answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "went on talking"),
    ],
)
async def test_a_proxy_that_does_not_let_us_through_is_named_as_the_cause(dial, far, said, words):
    async with proxy(far, [], said) as way:
        before = far.sockets()
        one = await dial("websocket", "ws://service.invalid:1", proxy=f"http://u:pw-FAKE@127.0.0.1:{way}")
        cause = await one.end()
    assert (cause.kind, cause.by, one.facts) == ("proxy", "network", [])
    assert words in cause.reason
    assert "FAKE" not in cause.reason
    assert far.sockets() <= before + 1  # the proxy's own end may linger


@realtime
@pytest.mark.parametrize(
    ("said", "expected"), [(OK, "answer"), (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", "407")]
)
async def test_what_is_asked_before_the_connection_goes_through_the_proxy_too(far, said, expected):
    async def handler(reader, writer):
        await far.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntoken")
        await reader.read()

    heads = []
    async with far.server(handler) as port, proxy(far, heads, said) as way:
        request = Ask("GET", f"http://127.0.0.1:{port}/", (), None, 10**10, proxy=f"http://u:pw-FAKE@127.0.0.1:{way}")
        came = await asyncio.wait_for(load_asker().ask(request, Tls(), time.monotonic_ns), 10)
    assert heads[0].startswith(f"CONNECT 127.0.0.1:{port} ")
    if expected == "answer":
        assert isinstance(came, Answer)
        assert came.body == b"token"
    else:
        assert (came.kind, came.by, came.reason) == ("proxy", "network", "it answered 407 No")


@realtime
async def test_a_proxy_that_is_not_there_is_no_fault_of_the_service(dial):
    one = await dial("http", "http://service.invalid", proxy=f"http://127.0.0.1:{closed_port()}")
    cause = await one.end()
    assert (cause.kind, cause.by) == ("proxy", "network")
    assert "127.0.0.1" in cause.reason


@realtime
async def test_waiting_for_a_proxy_can_be_cancelled_and_leaves_no_socket(recorders, dial, far):
    async def silent(reader, writer):
        await reader.read()

    async with far.server(silent) as way:
        before = far.sockets()
        task = asyncio.create_task(dial("websocket", "ws://service.invalid", proxy=f"http://127.0.0.1:{way}"))
        await asyncio.sleep(0.05)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        assert far.sockets() == before
    (one,) = recorders
    assert [cause.kind for cause in one.causes] == ["aborted"]


@pytest.mark.parametrize("url", ["https://h:1", "socks5://h", "http://", "h:1", "http://h:0", "http://h:x"])
def test_a_proxy_that_cannot_be_one_is_said_before_anybody_is_contacted_and_without_its_secrets(url):
    secret = url.replace("://", "://user:pw-FAKE@")
    with pytest.raises(AddressError, match=r"target\.proxy") as error:
        load("http").check(Address("http://h", proxy=secret))
    assert "FAKE" not in str(error.value)
