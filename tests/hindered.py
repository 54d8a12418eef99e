"""The command line with an engine that hinders itself, to see whether a late tester is found out.

`python tests/hindered.py sleep 50 100 run --url …`: in every 100 ms the engine's loop does nothing for 50; `burn` uses
its processor up meanwhile. The package knows nothing of this: the engine's process is started from here instead of from
its own module.
"""

import asyncio
import sys
import time

from loadbench import cli
from loadbench.engine import child, host


def hinder(how: str, block_s: float, period_s: float) -> None:
    """Block the running loop for `block_s` on each multiple of `period_s`."""
    loop = asyncio.get_running_loop()
    begun = loop.time()

    def block(round_: int) -> None:
        until = time.monotonic() + block_s
        if how == "burn":
            while time.monotonic() < until:
                pass
        else:
            time.sleep(block_s)
        loop.call_at(begun + (round_ + 1) * period_s, block, round_ + 1)

    loop.call_at(begun + period_s, block, 1)


def main() -> None:
    if sys.argv[1] == "engine":
        how, block_ms, period_ms = sys.argv[2:5]
        serve = child.serve

        async def hindered(fd: int) -> None:
            hinder(how, float(block_ms) / 1000, float(period_ms) / 1000)
            await serve(fd)

        child.serve = hindered
        del sys.argv[1:5]
        child.main()
    else:
        host.ENGINE = (sys.executable, __file__, "engine", *sys.argv[1:4])
        del sys.argv[1:4]
        sys.exit(cli.main())


if __name__ == "__main__":
    main()
