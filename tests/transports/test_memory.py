import asyncio

import pytest

from loadbench.session.wire import Cause
from loadbench.transports import load, memory
from loadbench.transports.contract import Address, AddressError
from loadbench.transports.memory import END

pytestmark = pytest.mark.looptime(start=0)
encoder = load("memory").encoder(bytes)


def clock():
    return round(asyncio.get_running_loop().time() * 1e9)


@pytest.fixture
def dial(recorders):
    """The same listener as with real sockets, on the loop's own virtual clock."""

    async def dialling(url, recorder):
        recorders.append(recorder)
        recorder.link = await load("memory").dial(Address(url), recorder, clock)
        recorder.returned = True
        return recorder

    return dialling


@pytest.mark.parametrize(
    ("kind", "payload", "message"),
    [("text", "红船".encode(), "红船"), ("binary", b"\x00", b"\x00"), ("end", b"", END)],
)
def test_what_is_encoded_can_be_read_back(kind, payload, message):
    assert memory.decoded(encoder.whole(kind, payload)) == message
    assert memory.decoded(memoryview(encoder.joined(kind, b"", encoder.shared(payload), b""))) == message


async def test_a_script_answers_after_exactly_the_delay_it_sleeps(dial, recorder):
    async def service(peer):
        async for message in peer:
            await asyncio.sleep(0.3)
            peer.send(f"heard {message}")
            peer.close(1011, "tired")

    with memory.serve("asr", service, connect_s=0.2) as served:
        one = await dial("memory://asr", recorder)
        await one.until(lambda r: r.facts)
        await asyncio.sleep(1.0)
        one.link.write(encoder.whole("text", b"red boat"))
        cause = await one.end()
    assert one.facts[0].at_ns == 200_000_000
    assert one.messages == [("heard red boat", 1_500_000_000)]
    assert cause == Cause("closed", 1_500_000_000, code=1011, reason="tired")
    assert served.peers[0].arrivals == [(1_200_000_000, "red boat")]


async def test_http_heads_and_ends_can_be_played(dial, recorder):
    async def service(peer):
        async for message in peer:
            if message is END:
                peer.answer(200, "text/event-stream")
                peer.send(b"data: red\n\n")
                peer.close(None)

    with memory.serve("stream", service):
        one = await dial("memory://stream", recorder)
        await one.until(lambda r: r.facts)
        one.link.write(encoder.whole("end", b""))
        cause = await one.end()
    assert [(status, kind) for status, _, kind in one.answers] == [(200, "text/event-stream")]
    assert (cause.kind, cause.code, one.data) == ("closed", None, [b"data: red\n\n"])


@pytest.mark.parametrize("kind", ["reset", "eof"])
async def test_a_script_can_go_without_a_close(dial, recorder, kind):
    async def service(peer):
        peer.send("red")
        peer.drop(kind)
        peer.send("never heard")

    with memory.serve("asr", service):
        one = await dial("memory://asr", recorder)
        assert (await one.end()).kind == kind
    assert one.data == ["red"]


async def test_a_script_that_returns_leaves_a_silent_connection(dial, recorder):
    async def service(peer):
        peer.send("hello")

    with memory.serve("asr", service):
        one = await dial("memory://asr", recorder)
        await asyncio.sleep(3600)
        assert (one.data, one.causes) == (["hello"], [])
        one.link.shut(1000)
        cause = await one.end()
    assert (cause.by, cause.code, cause.at_ns) == ("us", 1000, 3_600_000_000_000)


async def test_an_abort_is_told_once_and_ends_the_scripts_loop(dial, recorder):
    ended = []

    async def service(peer):
        async for _ in peer:
            pass
        ended.append(True)

    with memory.serve("asr", service):
        one = await dial("memory://asr", recorder)
        await one.until(lambda r: r.facts)
        one.link.abort()
        one.link.write(encoder.whole("text", b"never sent"))
        assert not one.causes
        assert (await one.end()).kind == "aborted"
        await asyncio.sleep(0)
    assert ended == [True]


async def test_back_pressure_shows_as_pause_unsent_bytes_and_resume(dial, recorder):
    async def service(peer):
        peer.stop_reading()
        await asyncio.sleep(2)
        peer.read_again()

    with memory.serve("asr", service) as served:
        one = await dial("memory://asr", recorder)
        await one.until(lambda r: r.facts)
        await asyncio.sleep(1)
        for _ in range(3):
            one.link.write(encoder.whole("binary", bytes(30_000)))
        await one.until(lambda r: r.pauses == ["paused"])
        assert one.link.unsent() == 3 * 30_001
        await one.until(lambda r: r.pauses == ["paused", "resumed"])
        assert one.link.unsent() == 0
    assert [at_ns for at_ns, _ in served.peers[0].arrivals] == [2_000_000_000] * 3


async def test_a_service_may_refuse(dial, recorder):
    async def service(peer):
        raise AssertionError("never started")

    with memory.serve("asr", service, refuse=lambda: Cause("rejected", clock(), status=503, retry_after_s=1.0)):
        one = await dial("memory://asr", recorder)
    assert one.link is None
    assert one.causes[0].status == 503


async def test_a_name_that_nobody_serves_is_refused(dial, recorder):
    one = await dial("memory://nobody", recorder)
    assert one.link is None
    assert one.causes[0].kind == "refused"


async def test_a_cancelled_dial_is_an_abort(recorder, recorders, dial):
    async def service(peer):
        raise AssertionError("never started")

    with memory.serve("asr", service, connect_s=5):
        task = asyncio.ensure_future(dial("memory://asr", recorder))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert recorder.causes[0].kind == "aborted"


async def test_what_a_script_raises_is_not_lost(dial, recorder):
    async def service(peer):
        raise RuntimeError("a slip in the script")

    with pytest.raises(ExceptionGroup, match="asr"), memory.serve("asr", service):  # noqa: PT012
        one = await dial("memory://asr", recorder)
        assert (await one.end()).kind == "reset"
        await asyncio.sleep(0)


async def test_a_name_can_be_served_once_at_a_time():
    with memory.serve("asr", None), pytest.raises(ValueError, match="served already"), memory.serve("asr", None):
        pass
    with memory.serve("asr", None):
        pass


def test_another_scheme_is_the_users_slip():
    with pytest.raises(AddressError):
        load("memory").check(Address("ws://asr"))
