"""The script that people write: asyncio, `websockets`, one task a session; send a chunk, sleep for its length.

python asyncio_script.py URL SESSIONS CHUNKS BYTES INTERVAL_S STAGGER_S interval|absolute
"""

import asyncio
import resource
import sys

from websockets.asyncio.client import connect


async def session(url: str, chunks: int, payload: bytes, interval_s: float, start_s: float, absolute: bool) -> None:
    """Stream, then wait for the final."""
    await asyncio.sleep(start_s)
    async with connect(url, compression=None) as service:

        async def listen() -> None:
            async for message in service:
                if "final" in str(message):
                    return

        listening = asyncio.create_task(listen())
        now = asyncio.get_running_loop().time
        zero = now()
        for index in range(chunks):
            await service.send(payload)
            await asyncio.sleep(zero + (index + 1) * interval_s - now() if absolute else interval_s)
        await service.send("eof")
        await listening


async def main() -> None:
    """All sessions, each a little after the one before."""
    url, sessions, chunks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    payload, interval_s, stagger_s = bytes(int(sys.argv[4])), float(sys.argv[5]), float(sys.argv[6])
    absolute = sys.argv[7] == "absolute"
    await asyncio.gather(
        *(session(url, chunks, payload, interval_s, stagger_s * i / sessions, absolute) for i in range(sessions))
    )


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main())
