"""A transport in the shape of Wyoming: over TCP, each message a line of JSON and then as many bytes as it says."""

import asyncio
import json
from urllib.parse import urlsplit

from loadbench.session.wire import Cause, Opened
from loadbench.transports.contract import NO_OPTIONS, AddressError, takes_nothing


class Encoder:
    """Texts are events of the profile's own; binary messages are samples, and get an event around them."""

    def __init__(self, rate_hz):
        self._format = {"rate": rate_hz, "width": 2, "channels": 1}

    def whole(self, kind, payload, role="media"):
        return self.joined(kind, b"", payload, b"")

    def shared(self, payload):
        return bytes(payload)

    def joined(self, kind, before, shared, after):
        body = b"".join((before, shared, after))
        if kind == "text":
            return body + b"\n"
        event = {"type": "audio-chunk", "data": self._format, "payload_length": len(body)}
        return json.dumps(event).encode() + b"\n" + body


class Link(asyncio.Protocol):
    mouth = (takes_nothing,)  # all goes by way of the loop: simpler, and a bit slower

    def __init__(self, listener, clock):
        self._listener, self._clock = listener, clock
        self._transport = self._cause = None
        self._rest = b""

    # What the engine calls: never waits, never raises, also after the end.

    def write(self, wire):
        return self.rest(wire, 0)

    def rest(self, wire, taken):
        waiting = self.unsent()
        if self._cause is None:
            self._transport.write(memoryview(wire)[taken:])
        return waiting

    def unsent(self):
        return self._transport.get_write_buffer_size()

    def aside(self):
        return b""

    def shut(self, code):
        if self._cause is None:
            self._end(Cause("closed", self._clock(), by="us"))
            self._transport.close()

    def abort(self):
        if self._cause is None:
            self._cause = Cause("aborted", self._clock(), by="us")
            asyncio.get_running_loop().call_soon(self._listener.lost, self._cause)
            self._transport.abort()

    # What the loop calls.

    def connection_made(self, transport):
        self._transport = transport
        transport.pause_reading()  # nothing is told before `opened`

    def opened(self):
        if self._cause is None:
            self._listener.opened(Opened(self._clock()))
            self._transport.resume_reading()

    def data_received(self, data):
        arrival_ns = self._clock()  # stamp first, then read
        self._rest += data
        while self._cause is None and (event := self._next()) is not None:
            self._listener.received(event, arrival_ns)

    def _next(self):
        """The first event that is whole, without its payload: this service says texts."""
        line, end, rest = self._rest.partition(b"\n")
        if not end:
            return None
        size = json.loads(line).get("payload_length") or 0
        if len(rest) < size:
            return None
        self._rest = rest[size:]
        return line.decode()

    def pause_writing(self):
        if self._cause is None:
            self._listener.paused(self._clock())

    def resume_writing(self):
        if self._cause is None:
            self._listener.resumed(self._clock())

    def connection_lost(self, error):
        if error is None:
            self._end(Cause("closed", self._clock()))
        else:
            self._end(Cause("reset", self._clock(), reason=str(error)))

    def _end(self, cause):
        if self._cause is None:
            self._cause = cause
            self._listener.lost(cause)


class Transport:
    name = "wyoming"

    def encoder(self, random, options=NO_OPTIONS):
        return Encoder(int(options.get("rate_hz", "16000")))

    def check(self, address):
        url = urlsplit(address.url)
        if url.scheme != "tcp" or not url.hostname or not url.port:
            raise AddressError(["target.url must be tcp://HOST:PORT"])

    async def dial(self, address, listener, clock):
        url, loop = urlsplit(address.url), asyncio.get_running_loop()
        try:
            _, link = await loop.create_connection(lambda: Link(listener, clock), url.hostname, url.port)
        except OSError as error:
            listener.lost(Cause("refused", clock(), by="network", reason=str(error)))
            return None
        except asyncio.CancelledError:
            listener.lost(Cause("aborted", clock(), by="us"))
            raise
        loop.call_soon(link.opened)  # never before `dial` has returned
        return link


transport = Transport()
