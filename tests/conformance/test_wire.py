"""What the wire can do to a session, byte for byte on real sockets: each ends in time, with an outcome and a side.

Two partials are heard before the fault. The service holds the connection after it, unless it hangs up or resets.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from loadbench.engine.run import Engine
from loadbench.results.outcome import side
from loadbench.results.record import SessionRecord
from tests.conformance import play
from tests.conformance.services import HEAD, reset
from tests.transports.conftest import BINARY, CLOSE, CONTINUATION, PING, TEXT, Far

pytestmark = pytest.mark.realtime
PATIENCE_S = 30
LIMITS = {"silence_s": 3.0, "final_s": 5.0, "close_s": 0.3, "message_bytes": 700_000}
READY, RED, FINAL, DONE = b'{"ready": true}', b'{"partial": "red"}', '{"final": "红船"}'.encode(), b'{"done": true}'
GOOD = (FINAL, DONE)
LONG = b'{"partial": "red boat", "words": "' + b"x" * 600_000 + b'"}'
Then = Literal["hold", "fin", "rst"]


@dataclass(frozen=True)
class Fault:
    """What the service says in the media, and after the end mark, each byte string in a packet of its own.

    `text` is what the channel shows in the end; `head` is the beginning of an HTTP answer.
    """

    why: str
    outcome: str
    media: Sequence[bytes] = ()
    end: Sequence[bytes] = ()
    then: Then = "hold"
    text: str = "red"
    head: bytes = HEAD
    cause: str = ""


def frame(opcode: int, payload: bytes, *, fin: bool = True, rsv: int = 0, masked: bool = False) -> bytes:
    """A frame of a service's, also as none may be."""
    whole = Far.frame(opcode, payload, fin=fin)
    if masked:
        return bytes([whole[0], whole[1] | 0x80]) + bytes(4) + whole[2:]
    return bytes([whole[0] | rsv]) + whole[1:]


def split(data: bytes, size: int = 1) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def texts(*messages: bytes) -> bytes:
    return b"".join(frame(TEXT, message) for message in messages)


WHOLE = texts(*GOOD)
IN_THREE = frame(TEXT, FINAL[:13], fin=False) + frame(CONTINUATION, b"", fin=False) + frame(CONTINUATION, FINAL[13:])
BETWEEN = frame(TEXT, FINAL[:13], fin=False) + frame(PING, b"?") + frame(CONTINUATION, FINAL[13:])
BROKEN = "the service broke the protocol"
WEBSOCKET = [
    Fault("one byte at a time", "ok", end=split(WHOLE), text="红船"),
    Fault("all messages in one packet", "ok", end=[WHOLE], text="红船"),
    Fault("B14: three fragments, one empty, cut in a character", "ok", end=[IN_THREE, texts(DONE)], text="红船"),
    Fault("fragments with a ping between them", "ok", end=[BETWEEN, texts(DONE)], text="红船"),
    Fault("JSON in a binary message", "ok", end=[frame(BINARY, FINAL), texts(DONE)], text="红船"),
    Fault("an empty message", "ok", end=[frame(TEXT, b""), WHOLE], text="红船"),
    Fault("B04: a message of 600 000 bytes", "ok", end=[texts(LONG), WHOLE], text="红船"),
    Fault("text that is not UTF-8", "target_error", media=[frame(TEXT, b'{"partial": "\xff"}')], cause=BROKEN),
    Fault("text that ends within a character", "target_error", media=[frame(TEXT, FINAL[:13])], cause=BROKEN),
    Fault("binary that is not UTF-8", "parse_error", media=[frame(BINARY, b'{"partial": "\xff"}')]),
    Fault("a masked frame", "target_error", media=[frame(TEXT, RED, masked=True)], cause=BROKEN),
    Fault("a reserved bit", "target_error", media=[frame(TEXT, RED, rsv=0x40)], cause=BROKEN),
    Fault("an opcode that does not exist", "target_error", media=[frame(3, RED)], cause=BROKEN),
    Fault("a continuation of nothing", "target_error", media=[frame(CONTINUATION, RED)], cause=BROKEN),
    Fault("a message within another", "target_error", media=[frame(TEXT, b"{", fin=False) + texts(RED)], cause=BROKEN),
    Fault("a ping in fragments", "target_error", media=[frame(PING, b"?", fin=False)], cause=BROKEN),
    Fault("a ping that is too long", "target_error", media=[frame(PING, bytes(126))], cause=BROKEN),
    Fault("half a close code", "target_error", media=[frame(CLOSE, b"\x03")], cause=BROKEN),
    Fault("a close code that may not be sent", "target_error", media=[Far.close(1005)], cause=BROKEN),
    Fault("a close code that does not exist", "target_error", media=[Far.close(999)], cause=BROKEN),
    Fault("a close reason that is not UTF-8", "target_error", media=[frame(CLOSE, b"\x03\xe8\xff")], cause=BROKEN),
    Fault("a length of more than 63 bits", "target_error", media=[b"\x81\x7f" + b"\xff" * 8], cause=BROKEN),
    Fault("a length over our limit, and never so much", "our_limit", media=[b"\x81\x7f" + struct.pack("!Q", 1 << 40)]),
    Fault("fragments that are over our limit together", "our_limit",
          media=[frame(TEXT, bytes(400_000), fin=False), frame(CONTINUATION, bytes(400_000))]),
    Fault("B07: a close without a code", "closed_early", media=[frame(CLOSE, b"")], cause="without final"),
    Fault("a close without a code, after the final", "ok", end=[texts(FINAL), frame(CLOSE, b"")], text="红船"),
    Fault("B07: hung up within a frame", "lost", media=[frame(TEXT, RED)[:5]], then="fin"),
    Fault("reset within a frame", "lost", media=[frame(TEXT, RED)[:5]], then="rst"),
    Fault("hung up after the final, before done", "lost", end=[texts(FINAL)], then="fin", text="红船"),
    Fault("half a frame, and then nothing", "silent", media=[frame(TEXT, RED)[:5]]),
    Fault("half open: a service that is gone and does not say so", "silent"),
    Fault("pings and nothing else", "silent", media=[frame(PING, b"?")] * 3),
]  # fmt: skip


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def lines(*messages: bytes) -> bytes:
    return b"".join(message + b"\n" for message in messages)


def head(*headers: bytes, status: bytes = b"200 OK", version: bytes = b"1.1") -> bytes:
    return b"\r\n".join([b"HTTP/%s %s" % (version, status), *headers, b"", b""])


LAST = b"0\r\n\r\n"
TOLD = lines(READY, RED)  # what every service has said before the fault
HTTP = [
    Fault("one byte at a time", "ok", end=split(chunk(lines(*GOOD)) + LAST), text="红船"),
    Fault("B14: chunks that cut a character", "ok", end=[*map(chunk, split(lines(*GOOD), 13)), LAST], text="红船"),
    Fault("two lines in one chunk, with what is behind them", "ok", end=[chunk(lines(*GOOD)) + LAST], text="红船"),
    Fault("chunk extensions", "ok", end=[chunk(lines(*GOOD), b';a=b;c="d"'), b"0;last\r\n\r\n"], text="红船"),
    Fault("trailers", "ok", end=[chunk(lines(*GOOD)), b"0\r\nX-Took: 7\r\n\r\n"], text="红船"),
    Fault("1xx before the answer", "ok", end=[chunk(lines(*GOOD)), LAST], text="红船",
          head=head(status=b"100 Continue") + head(b"Link: </a>", status=b"103 Early Hints") + HEAD),
    Fault("no length, and hung up: the end of an old response", "ok", end=[lines(*GOOD)], then="fin", text="红船",
          head=head(b"Content-Type: application/x-ndjson", version=b"1.0")),
    Fault("a last line without its end", "ok", end=[chunk(FINAL), LAST], text="红船"),
    Fault("B04: a line of 600 000 bytes", "ok", end=[chunk(LONG + b"\n"), chunk(lines(*GOOD)), LAST], text="红船"),
    Fault("a length that is too small", "parse_error", end=[lines(*GOOD)],
          head=head(b"Content-Length: %d" % (len(TOLD) + len(FINAL) - 3))),
    Fault("B07: a length that is too great, and hung up", "lost", end=[lines(FINAL)], then="fin", text="红船",
          head=head(b"Content-Length: %d" % (len(TOLD) + 900))),
    Fault("a length that is too great, and then nothing", "silent", end=[lines(FINAL)], text="红船",
          head=head(b"Content-Length: %d" % (len(TOLD) + 900))),
    Fault("two lengths that differ", "target_error", text="",
          head=head(b"Content-Length: 900", b"Content-Length: 901")),
    Fault("a length that is none", "target_error", head=head(b"Content-Length: -5"), text=""),
    Fault("a chunk size that is none", "target_error", media=[b"red\r\n"], cause=BROKEN),
    Fault("a chunk without its end", "target_error", media=[b"3\r\nredred\r\n"], cause=BROKEN),
    Fault("a chunk size without end", "target_error", media=[b"f" * 40 + b"\r\n"], cause=BROKEN),
    Fault("a body that is not UTF-8", "parse_error", media=[chunk(b'{"partial": "\xff"}\n')]),
    Fault("a body that is coded although we asked for none", "target_error", text="",
          head=HEAD[:-2] + b"Content-Encoding: gzip\r\n\r\n"),
    Fault("a head without end", "target_error", head=b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, text=""),
    Fault("another protocol", "target_error", head=b"SSH-2.0-OpenSSH_9.6\r\n", text="", cause=BROKEN),
    Fault("an upgrade that nobody asked for", "target_error", text="",
          head=head(b"Upgrade: h2c", b"Connection: Upgrade", status=b"101 Switching Protocols")),
    Fault("B22: refused while we upload", "rejected", text="", cause="HTTP status 413",
          head=head(b"Content-Length: 8", status=b"413 Too Large") + b"too much"),
    Fault("refused in the middle of the media, and reset", "rejected", text="", then="rst", cause="HTTP status 503",
          head=head(b"Content-Length: 4", status=b"503 Busy") + b"full"),
    Fault("a whole answer while we upload", "closed_early", media=[chunk(lines(FINAL)), LAST], text="红船"),
    Fault("an answer without a body while we upload", "closed_early", head=head(status=b"204 No Content"), text=""),
    Fault("a line over our limit", "our_limit", media=[chunk(b"x" * 400_000), chunk(b"x" * 400_000)]),
    Fault("hung up within a chunk", "lost", media=[b"ff\r\nred"], then="fin"),
    Fault("reset within a chunk", "lost", media=[b"ff\r\nred"], then="rst"),
    Fault("hung up between two chunks", "lost", media=[chunk(lines(RED))], then="fin"),
    Fault("half a chunk, and then nothing", "silent", media=[b"ff\r\nred"]),
    Fault("half open: a service that is gone and does not say so", "silent"),
]  # fmt: skip
CASES = [("websocket", fault) for fault in WEBSOCKET] + [("http", fault) for fault in HTTP]


class Service:
    """Says the bytes of a fault at their moments."""

    def __init__(self, way: str, fault: Fault) -> None:
        self._way, self._fault = way, fault

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._way == "websocket":
            await Far.shake_hands(reader, writer)
            writer.write(texts(READY, RED))
        else:
            await Far.head(reader)
            writer.write(self._fault.head)
            writer.write(TOLD if b"chunked" not in self._fault.head else chunk(TOLD))
        await reader.readexactly(700)  # two chunks
        await self._say(writer, self._fault.media)
        if self._fault.end:
            await self._end_mark(reader)
            await self._say(writer, self._fault.end)
        if self._fault.then == "rst":
            reset(writer.transport)
        elif self._fault.then == "fin":
            writer.close()
        else:
            await reader.read(-1)

    async def _say(self, writer: asyncio.StreamWriter, parts: Sequence[bytes]) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.003)

    async def _end_mark(self, reader: asyncio.StreamReader) -> None:
        """Masked or not, it is the last that comes; all chunks go before it."""
        if self._way == "http":
            await reader.readuntil(LAST)
        else:
            await reader.readexactly(play.CHUNKS * 320 - 700 + 60)


@contextlib.asynccontextmanager
async def serving(way: str, fault: Fault) -> AsyncIterator[str]:
    async with Far.server(Service(way, fault).talk) as port:
        yield f"{'ws' if way == 'websocket' else 'http'}://127.0.0.1:{port}"


def run(folder: Path) -> dict[tuple[str, str], SessionRecord]:
    """All faults side by side, by way and name; each within its patience."""
    found: dict[tuple[str, str], SessionRecord] = {}
    gate = asyncio.Semaphore(play.AT_ONCE)

    async def one(number: int, way: str, fault: Fault) -> None:
        place, records = folder / str(number), list[SessionRecord]()
        place.mkdir()
        expect = {"outcome": fault.outcome}
        talk = play.Talk.model_validate({"name": fault.why, "service": [], "expect": expect, "limits": LIMITS})
        async with gate, serving(way, fault) as url:
            engine = Engine(play.start(place, talk, way, url), play.keeping(records))
            await asyncio.wait_for(engine.run(), PATIENCE_S)
        (found[way, fault.why],) = records

    async def everything() -> None:
        await asyncio.gather(*(one(number, *case) for number, case in enumerate(CASES)))

    asyncio.run(everything())
    return found


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], SessionRecord]:
    return run(tmp_path_factory.mktemp("wire"))


@pytest.mark.parametrize(("way", "fault"), CASES, ids=[f"{way}: {fault.why}" for way, fault in CASES])
def test_a_fault_of_the_wire_has_an_outcome_and_a_side_and_ends_in_time(way: str, fault: Fault, met: Any) -> None:
    record: SessionRecord = met[way, fault.why]
    assert (record.outcome, record.side) == (fault.outcome, side(fault.outcome)), record.cause
    assert record.side != "tester"
    assert fault.cause in record.cause
    assert bool(record.cause) == (fault.outcome != "ok")
    (utterance,) = record.utterances
    shown = utterance.channels["transcript"].text if "transcript" in utterance.channels else ""
    assert shown == fault.text
    assert play.misplaced(record) == []
