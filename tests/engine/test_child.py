import asyncio
import socket
import time

import pytest

from loadbench.engine.child import Pipe
from loadbench.engine.frames import Unframer
from loadbench.engine.pipe import Outbound
from loadbench.results.record import Message

pytestmark = pytest.mark.realtime


async def test_a_parent_that_is_slow_to_read_never_blocks_the_engine_and_loses_nothing() -> None:
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    _, pipe = await loop.create_unix_connection(Pipe, sock=theirs)
    sent = [Message(session="s", at_ns=number, data="x" * 50_000) for number in range(200)]
    begun = time.monotonic()
    for message in sent:
        pipe.emit(message)
    await asyncio.sleep(0.1)
    assert time.monotonic() - begun < 2
    assert pipe.levels()["pipe_backlog_max_bytes"] > 5_000_000
    assert not pipe.gone.done()
    pipe.close()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    unframer: Unframer[Outbound] = Unframer(Outbound)
    found: list[Outbound] = []
    while data := await reader.read(1 << 20):
        found += unframer.feed(data)
    assert found == sent
    await asyncio.wait_for(pipe.gone, 5)
    writer.close()
