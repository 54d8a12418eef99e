import asyncio
import json
import time
from dataclasses import replace

import pytest

from loadbench.transports import load
from loadbench.transports.contract import Address, AddressError, Requests

encoder = load("requests").encoder(bytes)
realtime = pytest.mark.realtime

AGENT = Requests(open=("POST", "/reset"), media=("PUT", "/input"), end=("PUT", "/end"))
POLLED = replace(AGENT, poll=("GET", "/output?since=0"), poll_every_s=0.02)
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def answer(body, head=b"200 OK", more=b""):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (head, more, len(body), body)


async def request(reader):
    """(first line, headers, body) of the next request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    return head[0].removesuffix(" HTTP/1.1"), headers, await reader.readexactly(int(headers.get("content-length", 0)))


def serving(far, asked, reply):
    """A service that notes each request and answers what `reply(line, body)` gives, as long as it gives something."""

    async def handler(reader, writer):
        while True:
            line, headers, body = await request(reader)
            asked.append((line, headers, body))
            said = reply(line, body)
            if asyncio.iscoroutine(said):
                said = await said
            if said is None:
                return
            writer.write(said)

    return far.server(handler)


def dialling(dial, port, requests=AGENT, path="", **more):
    more.setdefault("content_type", "application/json")
    return dial("requests", f"http://127.0.0.1:{port}{path}", requests=requests, **more)


# Encoding.


def test_a_message_bears_the_mark_of_the_request_that_carries_it():
    roles = ("open", "media", "end", "keepalive")
    assert [encoder.whole("text", b"x", role)[:1] for role in roles] == [b"o", b"m", b"e", b"m"]
    assert encoder.joined("text", b"a", encoder.shared(memoryview(b"b")), b"c") == encoder.whole("text", b"abc")


def test_without_requests_there_is_nothing_to_dial():
    with pytest.raises(AddressError, match="requests is missing"):
        load("requests").check(Address("http://h"))


# The conversation.


@realtime
async def test_each_message_is_a_request_of_its_own_on_one_connection(dial, far):
    asked = []
    async with serving(far, asked, lambda line, body: answer(b'{"heard": %d}' % len(body))) as port:
        one = await dialling(dial, port, path="/v2?key=1")
        await one.until(lambda r: r.facts)
        for role, payload in (("open", b""), ("media", b"[1,2]"), ("end", b"{}")):
            one.link.write(encoder.whole("text", payload, role))
        await one.until(lambda r: len(r.messages) == 3)
        one.link.shut(1000)
        cause = await one.end()
    assert (cause.kind, cause.by) == ("closed", "us")
    assert [line for line, _, _ in asked] == ["POST /v2/reset?key=1", "PUT /v2/input?key=1", "PUT /v2/end?key=1"]
    assert [body for _, _, body in asked] == [b"", b"[1,2]", b"{}"]
    assert [headers.get("content-type") for _, headers, _ in asked] == [None, *["application/json"] * 2]
    assert [json.loads(message)["heard"] for message in one.data] == [0, 5, 2]
    assert len(one.answers) == 3


@realtime
async def test_an_answer_without_a_body_is_the_message_null(dial, far):
    no_content = b"HTTP/1.1 204 No Content\r\n\r\n"
    replies = iter((EMPTY, no_content))
    async with serving(far, [], lambda line, body: next(replies)) as port:
        one = await dialling(dial, port)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        one.link.write(encoder.whole("text", b"2"))
        await one.until(lambda r: len(r.messages) == 2)
    assert one.data == [b"null", b"null"]


@realtime
async def test_an_answer_bears_the_arrival_of_the_bytes_that_complete_it(dial, far):
    sent = []

    async def slowly(reader, writer):
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntr")
        await asyncio.sleep(0.05)
        sent.append(time.monotonic_ns())
        writer.write(b"ue")
        await reader.read()

    async with far.server(slowly) as port:
        one = await dialling(dial, port)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        await one.until(lambda r: r.messages)
    ((data, at_ns),) = one.messages
    assert data == b"true"
    assert at_ns >= sent[0]


@realtime
async def test_what_waits_for_the_answer_before_it_is_unsent_and_goes_in_order(dial, far):
    """The service is slow with the first: later messages are handed over all the same, and none is sent before."""
    asked, go = [], asyncio.Event()

    async def reply(line, body):
        await go.wait()
        return EMPTY

    async with serving(far, asked, reply) as port:
        one = await dialling(dial, port)
        await one.until(lambda r: r.facts)
        waiting = [one.link.write(encoder.whole("text", bytes([n]) * 40_000)) for n in range(4)]
        await one.until(lambda r: r.pauses)
        assert waiting[0] == 0
        assert waiting[3] >= 2 * 40_001
        assert one.link.unsent() >= 3 * 40_001
        await one.wait_for(lambda r: asked)
        await asyncio.sleep(0.02)
        assert len(asked) == 1
        go.set()
        await one.until(lambda r: len(r.messages) == 4)
        assert one.link.unsent() == 0
    assert [body[0] for _, _, body in asked] == [0, 1, 2, 3]
    assert one.pauses == ["paused", "resumed"]


@realtime
async def test_output_is_asked_for_from_the_first_media_on_and_one_poll_at_a_time(dial, far):
    asked, under_way = [], []

    async def reply(line, body):
        under_way.append(line)
        assert len(under_way) == 1
        await asyncio.sleep(0.01)
        under_way.clear()
        return answer(b'{"text": "red"}') if line.startswith("GET") else EMPTY

    async with serving(far, asked, reply) as port:
        one = await dialling(dial, port, POLLED)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"", "open"))
        await one.until(lambda r: len(r.messages) == 1)
        await asyncio.sleep(0.06)
        assert [line for line, _, _ in asked] == ["POST /reset"]  # nobody asks before there was media
        one.link.write(encoder.whole("text", b"1"))
        await one.until(lambda r: r.data.count(b'{"text": "red"}') == 2)
        one.link.write(encoder.whole("text", b"2"))
        await one.until(lambda r: r.data.count(b'{"text": "red"}') == 4)
    lines = [line for line, _, _ in asked]
    assert lines.count("PUT /input") == 2
    polls = [headers for line, headers, _ in asked if line == "GET /output?since=0"]
    assert len(polls) >= 4
    assert all("content-type" not in headers and "content-length" not in headers for headers in polls)


@realtime
async def test_after_the_end_nothing_is_asked_any_more(dial, far):
    asked = []
    async with serving(far, asked, lambda line, body: EMPTY) as port:
        one = await dialling(dial, port, POLLED)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        await one.until(lambda r: len(r.messages) >= 2)
        one.link.shut(1000)
        await one.end()
        count = len(asked)
        assert one.link.write(encoder.whole("text", b"2")) == 0
        await asyncio.sleep(0.06)
    assert len(asked) == count


# Endings.


@realtime
async def test_a_refusal_ends_the_connection_with_its_status_and_what_it_says(dial, far):
    async with serving(far, [], lambda *_: answer(b"model busy", b"503 Busy", b"Retry-After: 2\r\n")) as port:
        one = await dialling(dial, port)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        cause = await one.end()
    assert (cause.kind, cause.status, cause.retry_after_s, cause.body) == ("rejected", 503, 2.0, b"model busy")
    assert not one.messages


@realtime
@pytest.mark.parametrize(
    ("said", "kind", "heard"),
    [
        (answer(b"1", more=b"Connection: close\r\n"), "closed", [b"1"]),  # it keeps no connection
        (None, "eof", []),  # cut before its answer
        (b"SMTP ready\r\n\r\n", "protocol", []),
        (answer(b"1") + answer(b"2"), "protocol", [b"1"]),  # an answer that nobody asked for
    ],
)
async def test_how_a_service_ends_it(dial, far, said, kind, heard):
    replies = iter((said,))
    async with serving(far, [], lambda *_: next(replies, None)) as port:
        one = await dialling(dial, port)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        cause = await one.end()
    assert (cause.kind, one.data) == (kind, heard)


@realtime
async def test_a_cut_within_an_answer_is_a_cut(dial, far):
    async def handler(reader, writer):
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nred")

    async with far.server(handler) as port:
        one = await dialling(dial, port)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        cause = await one.end()
    assert (cause.kind, one.data) == ("eof", [])


@realtime
async def test_hanging_up_between_two_requests_cuts_nothing_off(dial, far):
    async def handler(reader, writer):
        await request(reader)
        writer.write(EMPTY)

    async with far.server(handler) as port:
        one = await dialling(dial, port)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        cause = await one.end()
    assert (cause.kind, cause.by, one.data) == ("closed", "target", [b"null"])


@realtime
async def test_an_answer_over_our_limit_is_too_big(dial, far):
    async with serving(far, [], lambda *_: answer(b"x" * 3000)) as port:
        one = await dialling(dial, port, message_bytes=1000)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("text", b"1"))
        cause = await one.end()
    assert (cause.kind, one.messages) == ("too_big", [])
