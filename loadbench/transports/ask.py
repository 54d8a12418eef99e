"""One HTTP request and its answer, whole: what a profile asks before the connection.

Each has a connection of its own, which is closed behind it. Nothing is retried, followed, cached or kept as a cookie,
and no proxy is used but the one that was asked for: over TLS it is asked to CONNECT, else to pass the request on. The
caller's patience is the caller's: cancelling leaves no socket behind.
"""

import errno
import socket
from typing import Final

import aiohttp

from loadbench import __version__
from loadbench.session.wire import Answer, Ask, Cause
from loadbench.transports.contract import Address, AddressError, Clock, Tls
from loadbench.transports.dial import place, tls_context
from loadbench.transports.rejection import redirected, retry_after_s

BODY_BYTES: Final = 1024 * 1024
PROXY_ASKS: Final = 407  # RFC 9110, 15.5.8: only a proxy says that
_OUR_SHORTAGE: Final = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}


def check(request: Ask, tls: Tls) -> None:
    """Raise `AddressError` with all that is wrong in a request; contacts nobody."""
    try:
        place(Address(request.url, request.headers, tls=tls, proxy=request.proxy), "http", "https")
    except AddressError as error:
        told = [problem.replace("target.", "prelude: ").replace("url", "the address") for problem in error.problems]
        raise AddressError(told) from None


async def ask(request: Ask, tls: Tls, clock: Clock) -> Answer | Cause:
    """The answer, or why there was none. Raises `AddressError` for an address that cannot be read."""
    check(request, tls)
    headers = {"User-Agent": f"loadbench/{__version__}"} | dict(request.headers)
    connector = aiohttp.TCPConnector(
        ssl=tls_context(tls) if request.url.startswith("https:") else True, force_close=True, use_dns_cache=False
    )
    client = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        trust_env=False,
    )
    try:
        async with (
            client,
            client.request(
                request.method,
                request.url,
                headers=headers,
                data=request.body,
                allow_redirects=False,
                proxy=request.proxy or None,
            ) as response,
        ):
            return await _whole(response, clock, proxied=bool(request.proxy))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return _no_answer(error, clock())


async def _whole(response: aiohttp.ClientResponse, clock: Clock, *, proxied: bool) -> Answer | Cause:
    if proxied and response.status == PROXY_ASKS:
        return Cause("proxy", clock(), by="network", reason=f"it answered {response.status} {response.reason or ''}")
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > BODY_BYTES:
            return Cause("too_big", clock(), by="us", status=response.status, reason="an answer of more than 1 MiB")
    return Answer(
        at_ns=clock(),
        status=response.status,
        body=bytes(body),
        retry_after_s=retry_after_s(response.raw_headers),
        location=redirected(response.headers.get("Location", "")) if 300 <= response.status < 400 else "",
    )


def _no_answer(error: Exception, at_ns: int) -> Cause:
    match error:
        case aiohttp.ClientHttpProxyError():
            return Cause("proxy", at_ns, by="network", reason=f"it answered {error.status} {error.message}".rstrip())
        case aiohttp.ClientProxyConnectionError():
            return Cause("proxy", at_ns, by="network", reason=_said(error))
        case aiohttp.ClientConnectorDNSError() | socket.gaierror():
            return Cause("dns", at_ns, by="network", reason=_said(error))
        case aiohttp.ClientConnectorCertificateError() as refused:
            return Cause("tls", at_ns, by="network", reason=f"the certificate was not accepted: {_why(refused)}")
        case aiohttp.ClientSSLError():
            return Cause("tls", at_ns, by="network", reason=_said(error))
        case aiohttp.ClientConnectorError():
            if error.errno in _OUR_SHORTAGE:
                return Cause("resource", at_ns, by="us", reason=_said(error))
            return Cause("refused", at_ns, by="network", reason=_said(error))
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return Cause("eof", at_ns)
        case aiohttp.ClientOSError() | ConnectionError():
            return Cause("reset", at_ns, reason=_said(error))
    return Cause("protocol", at_ns, reason=type(error).__name__)


def _said(error: Exception) -> str:
    """What the system says, without the address, which may hold secrets."""
    inner = getattr(error, "os_error", error)
    return str(getattr(inner, "strerror", None) or type(inner).__name__)


def _why(error: aiohttp.ClientConnectorCertificateError) -> str:
    return str(getattr(error.certificate_error, "verify_message", "") or type(error.certificate_error).__name__)
