"""The responder's process: it speaks at once, and stays behind for nobody."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from loadbench.session.load import load_profile, shipped
from loadbench.simulator import responder
from loadbench.simulator.responder import ResponderError, responding
from loadbench.simulator.serve import running

pytestmark = pytest.mark.realtime
KINDS = {name: load_profile(name).transport.kind for name in sorted(shipped())}
SERVED = [name for name, kind in KINDS.items() if kind != "process"]
ONE_EACH = {kind: name for name, kind in KINDS.items() if kind != "process"}

PARENT = """
import asyncio, sys
sys.path.insert(0, {root!r})
from loadbench.simulator.responder import responding

async def main():
    async with responding("vosk") as found:
        print(found.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_for_a_local_program_there_is_none_and_it_says_what_to_do_instead() -> None:
    with pytest.raises(ResponderError, match="local-lines speaks process: a local program is simulated with --stdio"):
        async with responding("local-lines"):
            pass


def alive(pid: int) -> bool:
    """A zombie, whom nobody has buried here, is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def listens(url: str, profile: str) -> None:
    scheme, _, place = url.partition("://")
    assert scheme == ("ws" if KINDS[profile] == "websocket" else "http")
    host, _, port = place.partition(":")
    assert host == "127.0.0.1"
    _, writer = await asyncio.open_connection(host, int(port))
    writer.close()


@pytest.mark.parametrize("profile", SERVED)
async def test_every_shipped_profile_of_a_server_can_be_answered_at_once_on_loopback(profile: str) -> None:
    async with running(responder.at_once(profile)) as url:
        await listens(url, profile)


@pytest.mark.parametrize("profile", ONE_EACH.values())
async def test_it_listens_on_loopback_and_is_gone_after_the_block(profile: str) -> None:
    async with responding(profile) as found:
        await listens(found.url, profile)
        pid = found.pid
        assert alive(pid)
    assert not alive(pid)


async def test_it_is_gone_when_the_block_ends_with_an_error() -> None:
    with pytest.raises(KeyError):
        async with responding("vosk") as found:
            raise KeyError
    assert not alive(found.pid)


async def test_when_its_parent_is_killed_it_ends_by_itself() -> None:
    code = PARENT.format(root=str(Path(__file__).parents[2]))
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 30))
    assert alive(pid)
    parent.kill()
    await parent.wait()
    await until(lambda: not alive(pid))


async def test_an_interrupt_from_the_terminal_is_the_parents_to_decide() -> None:
    async with responding("vosk") as found:
        os.kill(found.pid, signal.SIGINT)
        await asyncio.sleep(0.2)
        assert alive(found.pid)


async def test_a_profile_that_it_cannot_read_is_said_and_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pids = []
    spawn = responder._spawned

    async def noted(profile: str) -> asyncio.subprocess.Process:
        process = await spawn(profile)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(responder, "_spawned", noted)
    with pytest.raises(ResponderError, match="no profile is called vosc"):
        async with responding("vosc"):
            pass
    assert [alive(pid) for pid in pids] == [False]


async def test_one_that_does_not_come_up_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responder, "PATIENCE_S", 0.01)
    with pytest.raises(ResponderError, match=r"did not come up within 0\.01 s"):
        async with responding("vosk"):
            pass
