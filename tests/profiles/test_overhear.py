"""What is read from copies of bytes, however they are cut."""

from collections.abc import Iterator

import pytest
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, ServerPerMessageDeflateFactory
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from loadbench.profiles.overhear import Overhearing, Said

POST = b"POST /up?x=1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n"


def cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


class Talk:
    """Two sides over the library's own protocols, every byte of which is overheard in pieces of `size`."""

    def __init__(self, size: int, *, deflate: bool = False) -> None:
        self.said: list[Said] = []
        self._ear = Overhearing(1, self.said.append)
        self._size, self._now_ns = size, 0
        offers = [ClientPerMessageDeflateFactory(client_max_window_bits=True)] if deflate else None
        takes = [ServerPerMessageDeflateFactory(client_max_window_bits=10)] if deflate else None
        self.client = ClientProtocol(parse_uri("ws://h/p?q=1"), extensions=offers)
        self.server = ServerProtocol(extensions=takes)
        self.client.send_request(self.client.connect())
        self.pump()
        request = next(iter(self.server.events_received()))
        self.server.send_response(self.server.accept(request))  # type: ignore[arg-type]
        self.pump()

    def pump(self) -> None:
        for side, other, who in ((self.client, self.server, "client"), (self.server, self.client, "service")):
            for data in side.data_to_send():
                for piece in cut(data, self._size):
                    self._now_ns += 1
                    self._ear.hear(who, piece, self._now_ns)  # type: ignore[arg-type]
                other.receive_data(data)


@pytest.mark.parametrize("deflate", [False, True])
@pytest.mark.parametrize("size", [1, 3, 100_000])
def test_messages_pings_and_closes_are_read_whole_in_their_order(size: int, deflate: bool) -> None:
    talk = Talk(size, deflate=deflate)
    talk.client.send_text("turn lïnks".encode() * 50)
    talk.client.send_binary(b"one", fin=False)
    talk.client.send_continuation(b"two", fin=True)
    talk.client.send_ping(b"p1")
    talk.pump()
    talk.server.send_text(b"turn lefty turn lefty turn lefty")
    talk.server.send_text(b"turn lefty turn lefty turn lefty")
    talk.pump()
    talk.server.send_close(4001, "enough")
    talk.pump()
    talk.pump()
    told = [(each.who, each.kind, each.data) for each in talk.said[2:]]
    assert told[:3] == [
        ("client", "text", "turn lïnks".encode() * 50),
        ("client", "binary", b"onetwo"),
        ("client", "ping", b"p1"),
    ]
    assert told[3:6] == [("service", "pong", b"p1"), *[("service", "text", b"turn lefty turn lefty turn lefty")] * 2]
    closes = [(each.who, each.code, each.reason) for each in talk.said if each.kind == "close"]
    assert closes[:2] == [("service", 4001, "enough"), ("client", 4001, "enough")]
    request, response = talk.said[:2]
    assert (request.kind, request.target, response.status) == ("request", "/p?q=1", 101)
    assert [each.at_ns for each in talk.said] == sorted(each.at_ns for each in talk.said)


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_body_is_told_chunk_by_chunk_and_a_second_request_is_heard_as_well(size: int) -> None:
    said: list[Said] = []
    ear = Overhearing(3, said.append)
    for _ in range(2):
        for piece in cut(POST + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", size):
            ear.hear("client", piece, 1)
        for piece in cut(OK + b"4\r\nturn\r\n0\r\n\r\n", size):
            ear.hear("service", piece, 2)
    once = [
        ("client", "request", b""),
        ("client", "body", b"abc"),
        ("client", "body", b"de"),
        ("client", "end", b""),
        ("service", "response", b""),
        ("service", "body", b"turn"),
        ("service", "end", b""),
    ]
    assert [(each.who, each.kind, each.data) for each in said] == once * 2
    assert (said[0].target, said[0].reason, said[4].status) == ("/up?x=1", "POST", 200)


def test_what_cannot_be_read_is_told_once_and_then_nothing_more() -> None:
    said: list[Said] = []
    ear = Overhearing(1, said.append)
    ear.hear("client", b"\x16\x03\x01 no HTTP at all\r\n\r\n", 1)
    ear.hear("client", b"and more", 2)
    assert [each.kind for each in said] == ["unread"]
