"""The script that people write: one task a session, send a chunk, sleep for the length of a chunk.

python -m benchmarks.usual URL SESSIONS SECONDS
"""

import asyncio
import sys

from websockets.asyncio.client import connect

CHUNK = bytes(640)


async def session(url: str, chunks: int) -> None:
    """Stream, then wait for the final."""
    async with connect(url, compression=None) as service:

        async def listen() -> None:
            async for message in service:
                if "final" in str(message):
                    return

        listening = asyncio.create_task(listen())
        for _ in range(chunks):
            await service.send(CHUNK)
            await asyncio.sleep(0.02)
        await service.send("eof")
        await listening


async def main() -> None:
    """All sessions at once."""
    url, sessions, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    await asyncio.gather(*(session(url, round(seconds * 50)) for _ in range(sessions)))


if __name__ == "__main__":
    asyncio.run(main())
