import asyncio
import errno
import os
import resource
import socket
import ssl
import time

import pytest

from loadbench.plugins import NoPluginError
from loadbench.transports import NAMES, load
from loadbench.transports import dial as dialling
from loadbench.transports.contract import Address, AddressError, Tls
from loadbench.transports.dial import place
from loadbench.transports.http import HttpLink

realtime = pytest.mark.realtime
WAYS = [("websocket", "ws"), ("http", "http")]


def closed_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


# What the user wrote.


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "name"),
    [
        ("ws://example.test", "example.test", 80, "/", "example.test"),
        ("wss://example.test", "example.test", 443, "/", "example.test"),
        ("wss://example.test:443/a", "example.test", 443, "/a", "example.test"),
        ("ws://Example.test:2700/a/b?c=d", "example.test", 2700, "/a/b?c=d", "example.test:2700"),
        ("ws://[::1]:2700/", "::1", 2700, "/", "[::1]:2700"),
        ("ws://bücher.test/ü?q=ü&r=%20", "xn--bcher-kva.test", 80, "/%C3%BC?q=%C3%BC&r=%20", "xn--bcher-kva.test"),
        ("ws://example.test?x=1#fragment", "example.test", 80, "/?x=1", "example.test"),
    ],
)
def test_a_url_is_taken_apart(url, host, port, target, name):
    found = place(Address(url), "ws", "wss")
    assert (found.host, found.port, found.target, dict(found.headers)["Host"]) == (host, port, target, name)
    assert (found.context is not None) == url.startswith("wss")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (Address("http://h"), ["ws:// or wss://"]),
        (Address("localhost:2700"), ["ws:// or wss://", "no host"]),
        (Address("ws://"), ["no host"]),
        (Address("ws://h:99999"), ["port"]),
        (Address("ws://h:x"), ["port"]),
        (Address(f"ws://{'a' * 64}.test"), ["host"]),
        (Address("ws://h", headers=(("a b", "1"), ("x", "1\r\ny: 2"))), ["'a b'", "the value of x"]),
        (Address("wss://h", tls=Tls(ca_file="/no/such/file.pem")), ["No such file"]),
        (Address("ftp://", headers=(("", "1"),)), ["''", "ws:// or wss://", "no host"]),
    ],
)
async def test_everything_wrong_in_an_address_is_said_at_once_and_nobody_is_contacted(address, words):
    with pytest.raises(AddressError) as error:
        load("websocket").check(address)
    assert len(error.value.problems) == len(words)
    assert all(word in problem for word, problem in zip(words, error.value.problems, strict=True))
    with pytest.raises(AddressError):
        await load("websocket").dial(address, None, time.monotonic_ns)


def test_problems_never_show_a_secret():
    with pytest.raises(AddressError) as error:
        place(Address("wx://user:pw-FAKE@h?key=tok-FAKE", headers=(("x", "sec-FAKE\n"),)), "ws", "wss")
    assert "FAKE" not in str(error.value)


def test_transports_go_by_their_names_and_one_that_is_not_there_is_told_with_those_that_are():
    assert {name: load(name).name for name in NAMES} == {name: name for name in NAMES}
    with pytest.raises(NoPluginError, match="'os'; built in: websocket, http, requests, process"):
        load("os")
    with pytest.raises(NoPluginError, match=r"'websockets'; did you mean websocket\?; built in"):
        load("websockets")


# Causes.


@realtime
@pytest.mark.parametrize(("name", "scheme"), WAYS)
async def test_nobody_listening_is_a_refused_connection(dial, name, scheme):
    one = await dial(name, f"{scheme}://127.0.0.1:{closed_port()}")
    cause = await one.end()
    assert (cause.kind, cause.by) == ("refused", "network")
    assert "127.0.0.1" in cause.reason


@realtime
@pytest.mark.parametrize(
    ("code", "kind", "by"),
    [
        (socket.EAI_NONAME, "dns", "network"),
        (socket.EAI_AGAIN, "dns", "network"),
        (socket.EAI_SYSTEM, "resource", "us"),  # the resolver found no free file handle
    ],
)
async def test_a_name_without_an_address_is_a_dns_failure(dial, monkeypatch, code, kind, by):
    async def resolve(where):
        raise socket.gaierror(code, "no such name")

    monkeypatch.setattr(dialling, "_resolve", resolve)
    cause = await (await dial("websocket", "ws://nowhere.test")).end()
    assert (cause.kind, cause.by) == (kind, by)
    assert "no such name" in cause.reason


@realtime
@pytest.mark.parametrize(
    ("code", "kind", "by"),
    [
        (errno.EADDRNOTAVAIL, "resource", "us"),  # no local port is left
        (errno.EMFILE, "resource", "us"),
        (errno.ENFILE, "resource", "us"),
        (errno.EHOSTUNREACH, "refused", "network"),
        (errno.ENETUNREACH, "refused", "network"),
        (errno.ETIMEDOUT, "refused", "network"),
    ],
)
async def test_whose_fault_a_failed_connect_is(dial, monkeypatch, code, kind, by):
    async def attempt(*_):
        raise OSError(code, "as the system says")

    monkeypatch.setattr(dialling, "_attempt", attempt)
    cause = await (await dial("websocket", "ws://127.0.0.1:1")).end()
    assert (cause.kind, cause.by) == (kind, by)


@realtime
async def test_running_out_of_file_handles_is_our_fault(dial, far):
    async with far.server(far.shake_hands) as port:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            one = await dial("websocket", f"ws://127.0.0.1:{port}")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    cause = await one.end()
    assert (cause.kind, cause.by) == ("resource", "us")


# Addresses.


def resolving_to(monkeypatch, *found):
    async def resolve(where):
        return [(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, port)) for host, port in found]

    monkeypatch.setattr(dialling, "_resolve", resolve)


@realtime
async def test_a_name_that_resolves_to_a_dead_address_first_uses_the_next_and_says_which(dial, far, monkeypatch):
    async with far.server(far.shake_hands) as port:
        resolving_to(monkeypatch, ("::1", closed_port()), ("127.0.0.1", port))
        one = await dial("websocket", "ws://service.test")
        await one.until(lambda r: r.facts)
    assert one.facts[0].remote == f"127.0.0.1:{port}"


@realtime
async def test_an_address_that_does_not_answer_holds_the_next_one_up_only_so_long(dial, far, monkeypatch):
    real, tried = dialling._attempt, []

    async def attempt(family, address, patience_s):
        tried.append(patience_s)
        if len(tried) == 1:
            async with asyncio.timeout(patience_s):
                await asyncio.sleep(60)
        return await real(family, address, patience_s)

    monkeypatch.setattr(dialling, "_attempt", attempt)
    monkeypatch.setattr(dialling, "NEXT_ADDRESS_S", 0.05)
    async with far.server(far.shake_hands) as port:
        resolving_to(monkeypatch, ("127.0.0.2", port), ("127.0.0.1", port))
        one = await dial("websocket", "ws://service.test")
        await one.until(lambda r: r.facts)
    assert tried == [0.05, None]


@realtime
async def test_every_address_that_failed_is_named(dial, monkeypatch):
    resolving_to(monkeypatch, ("127.0.0.1", closed_port()), ("127.0.0.2", closed_port()))
    cause = await (await dial("http", "http://service.test")).end()
    assert cause.kind == "refused"
    assert "127.0.0.1" in cause.reason
    assert "127.0.0.2" in cause.reason


@realtime
async def test_a_name_is_resolved_for_each_dial(dial, far):
    async with far.server(far.shake_hands) as port:
        one = await dial("websocket", f"ws://localhost:{port}")
        await one.until(lambda r: r.facts)
    assert one.facts[0].remote == f"127.0.0.1:{port}"


# Giving up.


@realtime
@pytest.mark.parametrize(("name", "scheme"), [*WAYS, ("websocket", "wss")])
async def test_a_dial_that_is_cancelled_leaves_no_socket_and_is_told_of_once(recorders, dial, far, name, scheme):
    """Cancelled after 0, 1, 2 ... turns of the loop, so that every step of connecting is hit."""

    async def handler(reader, writer):
        await reader.read()

    async with far.server(handler, backlog=256) as port:
        before = far.sockets()
        for turns in range(12):
            task = asyncio.ensure_future(dial(name, f"{scheme}://localhost:{port}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            if isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError):
                if turns == 0:
                    continue  # never ran at all
                assert [cause.kind for cause in recorders[-1].causes] == ["aborted"]
            else:
                recorders[-1].link.abort()
        await recorders[-1].wait_for(lambda _: far.sockets() <= before)


@realtime
async def test_a_tls_handshake_that_hangs_can_be_cancelled(recorders, dial, far):
    async def handler(reader, writer):
        await reader.read(10)
        said.set()
        await reader.read()

    said = asyncio.Event()
    async with far.server(handler) as port:
        before = far.sockets()
        task = asyncio.ensure_future(dial("websocket", f"wss://127.0.0.1:{port}"))
        await said.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [cause.kind for cause in recorders[-1].causes] == ["aborted"]
        await recorders[-1].wait_for(lambda _: far.sockets() <= before)


# TLS.


def server_context(certificates, *, asks_client=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.localhost_pem, certificates.localhost_key)
    if asks_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.ca_pem)
    return context


def greeting(far, certificates, **options):
    async def handler(reader, writer):
        await far.shake_hands(reader, writer)
        writer.write(far.text("hello") + far.close(1000))
        await reader.read()

    return far.server(handler, ssl=server_context(certificates, **options))


@realtime
@pytest.mark.parametrize(
    ("host", "tls"),
    [
        ("localhost", lambda c: Tls(ca_file=c.ca_pem)),
        ("127.0.0.1", lambda c: Tls(verify=False)),  # neither the name nor the authority is looked at
    ],
)
async def test_a_trusted_service_is_talked_to_and_tls_has_a_stamp_of_its_own(dial, far, certificates, host, tls):
    async with greeting(far, certificates) as port:
        one = await dial("websocket", f"wss://{host}:{port}", tls=tls(certificates))
        cause = await one.end()
    assert one.data == ["hello"]
    assert (cause.kind, cause.code) == ("closed", 1000)
    (facts,) = one.facts
    assert facts.tcp_ns <= facts.tls_ns <= facts.at_ns


@realtime
@pytest.mark.parametrize(
    ("host", "tls", "word"),
    [
        ("localhost", lambda c: Tls(), "certificate"),  # an authority that nobody knows
        ("127.0.0.1", lambda c: Tls(ca_file=c.ca_pem), "127.0.0.1"),  # a certificate for another name
    ],
)
async def test_a_service_that_cannot_be_trusted_is_not_talked_to(dial, far, certificates, host, tls, word):
    async with greeting(far, certificates) as port:
        one = await dial("websocket", f"wss://{host}:{port}", tls=tls(certificates))
        cause = await one.end()
    assert (cause.kind, cause.by) == ("tls", "network")
    assert word in cause.reason
    assert not one.facts


@realtime
async def test_the_asked_for_name_goes_into_the_tls_hello(dial, far, certificates):
    names = []
    context = server_context(certificates)
    context.sni_callback = lambda sock, name, ctx: names.append(name)
    async with far.server(far.shake_hands, ssl=context) as port:
        one = await dial("websocket", f"wss://localhost:{port}", tls=Tls(ca_file=certificates.ca_pem))
        await one.until(lambda r: r.facts)
    assert names == ["localhost"]


@realtime
async def test_a_service_that_asks_for_our_certificate_gets_it(dial, far, certificates):
    tls = Tls(True, certificates.ca_pem, certificates.client_pem, certificates.client_key)
    async with greeting(far, certificates, asks_client=True) as port:
        one = await dial("websocket", f"wss://localhost:{port}", tls=tls)
        cause = await one.end()
    assert (cause.kind, one.data) == ("closed", ["hello"])


@realtime
async def test_a_certificate_that_we_do_not_have_is_a_tls_failure(dial, certificates):
    """The service's alert comes after our side of the handshake is done; this one is a thread, which does send it."""
    context = server_context(certificates, asks_client=True)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            sock, _ = server.accept()
            with context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False) as wrapped:
                with pytest.raises(ssl.SSLError):
                    wrapped.do_handshake()
                while os.read(wrapped.fileno(), 1000):
                    pass  # to hang up with our request unread would be a reset

        accepted = asyncio.create_task(asyncio.to_thread(accept))
        url = f"wss://localhost:{server.getsockname()[1]}"
        one = await dial("websocket", url, tls=Tls(ca_file=certificates.ca_pem))
        cause = await one.end()
        await accepted
    assert (cause.kind, cause.by) == ("tls", "network")
    assert "CERTIFICATE_REQUIRED" in cause.reason


@realtime
async def test_hanging_up_ends_a_response_without_a_length_over_tls_too(dial, far, certificates):
    async def handler(reader, writer):
        await far.head(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nred boat")

    async with far.server(handler, ssl=server_context(certificates)) as port:
        one = await dial("http", f"https://localhost:{port}", tls=Tls(ca_file=certificates.ca_pem))
        cause = await one.end()
    assert (cause.kind, b"".join(one.data)) == ("closed", b"red boat")


@realtime
async def test_a_service_without_tls_is_a_tls_failure(dial, far):
    async def handler(reader, writer):
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with far.server(handler) as port:
        cause = await (await dial("http", f"https://127.0.0.1:{port}")).end()
    assert (cause.kind, cause.by) == ("tls", "network")
    assert cause.reason


@realtime
async def test_http_runs_over_tls_too(dial, far, certificates):
    async def handler(reader, writer):
        await far.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nred")
        await reader.read()

    async with far.server(handler, ssl=server_context(certificates)) as port:
        one = await dial("http", f"https://localhost:{port}", tls=Tls(ca_file=certificates.ca_pem))
        assert (await one.end()).kind == "closed"
    assert one.data == [b"red"]


@realtime
async def test_a_loop_that_reports_no_end_of_stream_before_the_loss_changes_nothing(recorder, recorders):
    """Some do so over TLS; a response without a length has ended regularly all the same."""

    class Silent(asyncio.Transport):
        def set_write_buffer_limits(self, high=None, low=None):
            assert high == dialling.HIGH_WATER

        def write(self, data):
            assert data

        def is_closing(self):
            return True

    recorders.append(recorder)
    address = Address("http://h")
    link = HttpLink(place(address, "http", "https"), address, recorder, time.monotonic_ns)
    recorder.returned = True
    link.connection_made(Silent())
    link.begin()
    await asyncio.sleep(0)
    link.data_received(b"HTTP/1.0 200 OK\r\n\r\nred boat")
    link.connection_lost(None)
    assert (recorder.causes[0].kind, recorder.data) == ("closed", [b"red boat"])


# The socket.


@realtime
async def test_small_packets_leave_at_once(dial, far, monkeypatch):
    made = []
    real = dialling._attempt

    async def attempt(*words):
        made.append(await real(*words))
        return made[-1]

    monkeypatch.setattr(dialling, "_attempt", attempt)
    async with far.server(far.shake_hands) as port:
        one = await dial("websocket", f"ws://127.0.0.1:{port}")
        await one.until(lambda r: r.facts)
        assert made[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
