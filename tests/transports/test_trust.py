"""Who is trusted, the same on every transport: an authority of one's own, a client's certificate, and the switch."""

import asyncio
import os
import socket
import ssl
import struct
import subprocess
import time
from pathlib import Path

import pytest

from loadbench.transports import load
from loadbench.transports.contract import Address, AddressError, Requests, Tls
from tests.transports.test_dial import server_context

realtime = pytest.mark.realtime
WAYS = ("websocket", "http", "upload", "requests")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nred"


def dialling(dial, name, host, port, tls):
    scheme = "wss" if name == "websocket" else "https"
    return dial(name, f"{scheme}://{host}:{port}", tls=tls, requests=Requests(media=("PUT", "/input")))


def service(far, name, context):
    """A service that says "red" to whoever asks; what it is asked does not matter."""

    async def handler(reader, writer):
        if name == "websocket":
            await far.shake_hands(reader, writer)
            writer.write(far.text("red") + far.close(1000))
        else:
            await far.head(reader)
            writer.write(ANSWER)
        await reader.read()

    return far.server(handler, ssl=context)


async def said(one, name):
    """What the service says, after we have asked where the transport leaves that to us."""
    await one.until(lambda r: r.facts or r.causes)
    if one.facts and name in ("upload", "requests"):
        one.link.write(load(name).encoder(bytes).whole("binary", b"media"))
    await one.until(lambda r: r.messages or r.causes)
    return one.data


@realtime
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    ("host", "tls"),
    [
        ("localhost", lambda c: Tls(ca_file=c.ca_pem)),
        ("127.0.0.1", lambda c: Tls(verify=False)),  # another name, and an authority that nobody knows
    ],
)
async def test_a_service_that_is_trusted_is_heard(dial, far, certificates, name, host, tls):
    async with service(far, name, server_context(certificates)) as port:
        one = await dialling(dial, name, host, port, tls(certificates))
        assert await said(one, name) in (["red"], [b"red"])
        assert one.facts[0].tls_ns is not None


@realtime
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    ("host", "tls", "expired", "word"),
    [
        ("localhost", lambda c: Tls(), False, "unable to get local issuer"),
        ("127.0.0.1", lambda c: Tls(ca_file=c.ca_pem), False, "not valid for '127.0.0.1'"),
        ("localhost", lambda c: Tls(ca_file=c.ca_pem), True, "expired"),
    ],
)
async def test_a_service_that_is_not_is_told_why_and_hears_nothing(
    dial, far, certificates, tmp_path, name, host, tls, expired, word
):
    context = expired_context(certificates, tmp_path) if expired else server_context(certificates)
    async with service(far, name, context) as port:
        one = await dialling(dial, name, host, port, tls(certificates))
        cause = await one.end()
    assert (cause.kind, cause.by) == ("tls", "network")
    assert word in cause.reason
    assert not one.facts


@realtime
@pytest.mark.parametrize("name", WAYS)
async def test_a_client_s_certificate_that_is_asked_for_is_shown(dial, far, certificates, name):
    tls = Tls(True, certificates.ca_pem, certificates.client_pem, certificates.client_key)
    async with service(far, name, server_context(certificates, asks_client=True)) as port:
        one = await dialling(dial, name, "localhost", port, tls)
        assert await said(one, name) in (["red"], [b"red"])


@realtime
@pytest.mark.parametrize("name", WAYS)
async def test_a_client_s_certificate_that_is_missing_is_a_failure_of_tls(dial, certificates, name):
    """The alert comes after our side of the handshake is done; this service is a thread, which does send it."""
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
        one = await dialling(dial, name, "localhost", server.getsockname()[1], Tls(ca_file=certificates.ca_pem))
        cause = await one.end()
        await accepted
    assert (cause.kind, cause.by) == ("tls", "network")
    assert "CERTIFICATE_REQUIRED" in cause.reason


@realtime
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("tickets", [True, False])
async def test_a_reset_is_one_of_tls_only_until_the_service_has_confirmed_the_handshake(
    dial, certificates, name, tickets
):
    """A service that misses our certificate may hang up so fast that its alert is lost; it sends no ticket then."""
    context = server_context(certificates, asks_client=not tickets)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            sock, _ = server.accept()
            with sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the end is a reset
                said, answer = ssl.MemoryBIO(), ssl.MemoryBIO()
                far = context.wrap_bio(said, answer, server_side=True)
                while True:
                    said.write(sock.recv(100_000))
                    try:
                        far.do_handshake()
                    except ssl.SSLWantReadError:
                        sock.sendall(answer.read())
                    except ssl.SSLError:
                        return  # the alert stays where it is
                    else:
                        sock.sendall(answer.read())
                        time.sleep(0.1)  # for the tickets to be read
                        return

        accepted = asyncio.create_task(asyncio.to_thread(accept))
        one = await dialling(dial, name, "localhost", server.getsockname()[1], Tls(ca_file=certificates.ca_pem))
        if one.link is not None and name in ("upload", "requests"):
            await one.until(lambda r: r.facts or r.causes)
            one.link.write(load(name).encoder(bytes).whole("binary", b"media"))
        cause = await one.end()
        await accepted
    assert (cause.kind, cause.by) == (("reset", "target") if tickets else ("tls", "network"))
    assert ("client's certificate" in cause.reason) is not tickets


# Files.


@pytest.mark.parametrize(
    ("tls", "problems"),
    [
        (
            {"ca_file": "/no/ca", "cert_file": "/no/cert", "key_file": "/no/key"},
            [f"target.tls.{name}_file: /no/{name}: No such file or directory" for name in ("ca", "cert", "key")],
        ),
        (
            {"key_file": "client_key"},
            ["target.tls.key_file: a key needs the certificate that it belongs to, cert_file"],
        ),
        ({"ca_file": "client_key"}, ["target.tls.ca_file: {client_key}: holds no certificates: "]),
        (
            {"cert_file": "client_pem", "key_file": "ca_key"},
            ["target.tls.cert_file: {client_pem} with {ca_key}: KEY_VAL"],
        ),
        ({"cert_file": "client_pem"}, ["target.tls.cert_file: {client_pem}: "]),
        (
            {"cert_file": "client_pem", "key_file": "locked"},
            ["target.tls.cert_file: {client_pem} with {locked}: the key asks for a password: give one without"],
        ),
    ],
)
def test_files_that_cannot_be_used_are_named_before_anybody_is_contacted(certificates, tmp_path, tls, problems):
    locked = tmp_path / "locked"
    words = ("openssl", "ec", "-in", certificates.client_key, "-aes128", "-passout", "pass:x", "-out", str(locked))
    subprocess.run(words, check=True, capture_output=True)
    names = {name: getattr(certificates, name) for name in ("client_key", "client_pem", "ca_key")} | {
        "locked": str(locked)
    }
    given = {key: names.get(value, value) for key, value in tls.items()}
    with pytest.raises(AddressError) as error:
        load("http").check(Address("https://h", tls=Tls(**given)))
    assert len(error.value.problems) == len(problems)
    for found, wanted in zip(error.value.problems, problems, strict=True):
        assert found.startswith(wanted.format(**names))


def expired_context(certificates, folder: Path) -> ssl.SSLContext:
    """A service whose certificate was good until yesterday."""
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    words = ("openssl", "x509", "-req", "-in", certificates.localhost_csr, "-CA", certificates.ca_pem)
    more = ("-CAkey", certificates.ca_key, "-set_serial", "7", "-days", "-1", "-extfile", str(folder / "names"))
    subprocess.run([*words, *more, "-out", str(folder / "old.pem")], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "old.pem", certificates.localhost_key)
    return context
