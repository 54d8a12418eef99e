import pytest

from loadbench.transports import load

encoder = load("upload").encoder(bytes)
realtime = pytest.mark.realtime

BODY = bytes(range(256)) * 4000  # a megabyte: more than a socket takes at once


def test_a_message_is_the_body_and_its_end_is_nothing():
    assert encoder.whole("binary", b"abc") == encoder.joined("binary", b"a", encoder.shared(memoryview(b"b")), b"c")
    assert encoder.whole("binary", b"abc") == b"abc"
    assert encoder.whole("end", b"", "end") == b""


@realtime
@pytest.mark.parametrize("size", [1, 1_000_000])
async def test_nothing_is_said_until_there_is_a_body_and_then_its_length_is_told(dial, far, size):
    got = []

    async def handler(reader, writer):
        head = await far.head(reader)
        got.append((head, await reader.readexactly(size)))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n" + b'{"text":"hi"}'
        )
        await reader.read()

    async with far.server(handler) as port:
        one = await dial("upload", f"http://127.0.0.1:{port}/v1/audio", content_type="multipart/form-data; boundary=x")
        await one.until(lambda r: r.facts)
        assert not got
        one.link.write(encoder.whole("binary", BODY[:size]))
        one.link.write(encoder.whole("end", b"", "end"))
        cause = await one.end()
    ((head, body),) = got
    lines = head.split("\r\n")
    assert lines[0] == "POST /v1/audio HTTP/1.1"
    assert {f"Content-Length: {size}", "Content-Type: multipart/form-data; boundary=x", "Connection: close"} < {*lines}
    assert "transfer-encoding" not in head.lower()
    assert body == BODY[:size]
    assert (cause.kind, cause.by, b"".join(one.data)) == ("closed", "target", b'{"text":"hi"}')
    assert [(status, kind) for status, _, kind in one.answers] == [(200, "application/json")]


@realtime
async def test_a_service_that_does_not_wait_for_the_upload_has_cut_nothing_off(dial, far):
    async def handler(reader, writer):
        writer.close()

    async with far.server(handler) as port:
        one = await dial("upload", f"http://127.0.0.1:{port}")
        cause = await one.end()
    assert (cause.kind, cause.by) == ("closed", "target")
    assert "did not wait" in cause.reason


@realtime
async def test_a_connection_cut_within_the_answer_is_a_cut(dial, far):
    async def handler(reader, writer):
        await far.head(reader)
        await reader.readexactly(3)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nred")

    async with far.server(handler) as port:
        one = await dial("upload", f"http://127.0.0.1:{port}")
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("binary", b"abc"))
        cause = await one.end()
    assert cause.kind == "eof"
