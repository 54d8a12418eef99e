"""One HTTP request and its answer, against small servers that answer on order."""

import asyncio
import ssl
import time

import pytest

from loadbench.session.wire import Answer, Ask, Cause
from loadbench.transports import load_asker
from loadbench.transports.contract import AddressError, Tls

pytestmark = pytest.mark.realtime
asker = load_asker()


def request(url, method="POST", headers=(), body=b'{"a":1}'):
    return Ask(method, url, headers, body, 10_000_000_000)


async def asked(url, tls=None, **more):
    return await asyncio.wait_for(asker.ask(request(url, **more), tls or Tls(), time.monotonic_ns), 10)


def saying(far, answer, seen=None, **options):
    """A service that takes one request with a body of seven bytes, and answers so."""

    async def handler(reader, writer):
        head = await far.head(reader)
        body = await reader.readexactly(7) if "Content-Length: 7" in head else b""
        if seen is not None:
            seen.append((head, body))
        writer.write(answer)
        await writer.drain()

    return far.server(handler, **options)


def http(status, body=b"", **headers):
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


async def test_the_answer_is_given_whole_with_its_status_and_time(far):
    seen = []
    before_ns = time.monotonic_ns()
    async with saying(far, http(201, b'{"url": "x"}'), seen) as port:
        got = await asked(f"http://127.0.0.1:{port}/v2/live?k=a%2Fb", headers=(("X-Key", "k-1"),))
    assert isinstance(got, Answer)
    assert (got.status, got.body, got.retry_after_s, got.location) == (201, b'{"url": "x"}', None, "")
    assert before_ns < got.at_ns <= time.monotonic_ns()
    head, body = seen[0]
    assert head.startswith("POST /v2/live?k=a%2Fb HTTP/1.1\r\n")
    assert "X-Key: k-1\r\n" in head
    assert "User-Agent: loadbench/" in head
    assert body == b'{"a":1}'


async def test_a_refusal_is_an_answer_too_and_is_not_tried_again(far):
    seen = []
    async with saying(far, http(429, b"full", Retry_After=3), seen) as port:
        got = await asked(f"http://127.0.0.1:{port}/", method="GET", body=None)
    assert (got.status, got.body, got.retry_after_s) == (429, b"full", 3.0)
    assert len(seen) == 1


async def test_a_redirect_is_told_and_not_followed(far):
    seen = []
    async with saying(far, http(307, Location="https://u:p@b.example/there?token=t#x"), seen) as port:
        got = await asked(f"http://127.0.0.1:{port}/")
    assert (got.status, got.location) == (307, "https://b.example/there")
    assert len(seen) == 1


async def test_an_answer_of_more_than_a_mebibyte_is_refused(far):
    async with saying(far, http(200, b"x" * 1024 * 1024)) as port:
        got = await asked(f"http://127.0.0.1:{port}/")
        assert len(got.body) == 1024 * 1024
    async with saying(far, http(200, b"x" * (1024 * 1024 + 1))) as port:
        got = await asked(f"http://127.0.0.1:{port}/")
    assert isinstance(got, Cause)
    assert (got.kind, got.by, got.status, got.reason) == ("too_big", "us", 200, "an answer of more than 1 MiB")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(b"", "eof"), (b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nabc", "eof"), (b"SSH-2.0\r\n\r\n", "protocol")],
)
async def test_what_is_no_answer_is_a_cause(far, answer, kind):
    seen = []
    async with saying(far, answer, seen) as port:
        got = await asked(f"http://127.0.0.1:{port}/", method="GET", body=None)
    assert isinstance(got, Cause)
    assert got.kind == kind
    assert len(seen) == 1


async def test_nobody_at_the_address_and_no_address_at_all(far):
    async with far.server(far.head) as port:
        pass
    got = await asked(f"http://127.0.0.1:{port}/")
    assert (got.kind, got.by, got.reason) == ("refused", "network", "127.0.0.1: connection refused")
    got = await asked("http://no-such-name.invalid/")
    assert (got.kind, got.by) == ("dns", "network")


async def test_no_proxy_is_used(far, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1/")
    async with saying(far, http(200, b"direct")) as port:
        assert (await asked(f"http://127.0.0.1:{port}/")).body == b"direct"


def context(certificates, asks_client=False):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificates.localhost_pem, certificates.localhost_key)
    if asks_client:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(certificates.ca_pem)
    return made


@pytest.mark.parametrize("asks_client", [False, True])
async def test_trust_is_that_of_the_session(far, certificates, asks_client):
    ours = Tls(True, certificates.ca_pem, certificates.client_pem, certificates.client_key)
    for tls in (ours, Tls(False, None, certificates.client_pem, certificates.client_key)):
        async with saying(far, http(200, b"safe"), ssl=context(certificates, asks_client)) as port:
            assert (await asked(f"https://localhost:{port}/", tls)).body == b"safe"


async def test_an_authority_that_nobody_knows_is_not_trusted(far, certificates):
    async with saying(far, http(200), ssl=context(certificates)) as port:
        got = await asked(f"https://localhost:{port}/")
    assert (got.kind, got.by) == ("tls", "network")
    assert "the certificate was not accepted: " in got.reason


async def test_cancelling_leaves_no_socket(far):
    said = asyncio.Event()

    async def handler(reader, writer):
        await far.head(reader)
        said.set()
        await reader.read()

    async with far.server(handler) as port:
        before = far.sockets()
        task = asyncio.ensure_future(asked(f"http://127.0.0.1:{port}/"))
        await said.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(100):
            if far.sockets() <= before:
                break
            await asyncio.sleep(0.02)
        assert far.sockets() <= before


@pytest.mark.parametrize(
    ("url", "headers", "told"),
    [
        ("ws://h/", (), "prelude: the address must begin with http:// or https://"),
        ("http:///x", (), "prelude: the address names no host"),
        ("http://h:x/", (), "prelude: the address: the host or the port cannot be read"),
        ("http://h/", (("a b", "c"),), "prelude: headers: 'a b' is no header name"),
    ],
)
async def test_what_is_wrong_in_an_address_is_told_before_anybody_is_contacted(url, headers, told):
    with pytest.raises(AddressError) as caught:
        asker.check(request(url, headers=headers), Tls())
    assert caught.value.problems == [told]
