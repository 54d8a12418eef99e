import asyncio
import errno
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from loadbench.session.wire import Cause
from loadbench.transports import load
from loadbench.transports.contract import Address, AddressError
from loadbench.transports.keeper import keeper
from loadbench.transports.process import ASIDE_BYTES, HIGH_WATER, READ_BYTES, command

transport = load("process")
realtime = pytest.mark.realtime


def shell(script):
    return f"exec:sh -c {shlex.quote(script)}"


def runs(pid):
    """A zombie does not run, but nobody of ours may be one for long either."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def vanished(pid):
    async with asyncio.timeout(5):
        while runs(pid):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def nobody_is_kept():
    async with asyncio.timeout(5):
        while keeper()._alive:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


# Messages on a pipe.


@pytest.mark.parametrize(
    ("stdin", "kind", "wire"),
    [
        ("raw", "binary", b"abc"),  # samples need no bounds
        ("length", "binary", b"\0\0\0\3abc"),
        ("lines", "text", b"abc\n"),
    ],
)
def test_a_message_is_framed_as_the_profile_says(stdin, kind, wire):
    encoder = transport.encoder(bytes, {"stdin": stdin})
    assert encoder.whole(kind, b"abc") == wire
    assert encoder.joined(kind, b"a", encoder.shared(memoryview(b"b")), b"c") == wire


def test_the_end_is_no_bytes_and_closes_the_input_all_the_same():
    assert transport.encoder(bytes, {"stdin": "length"}).whole("end", b"") == b""


# Commands.


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("exec:recognise --live", ["recognise", "--live"]),
        ("exec:'my program' 'two words'", ["my program", "two words"]),
        ("exec:echo $HOME *.wav; rm x", ["echo", "$HOME", "*.wav;", "rm", "x"]),  # no shell ever sees it
    ],
)
def test_a_command_is_cut_into_words_and_nothing_is_expanded(url, words):
    assert command(url) == words


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        (Address("exec:"), ["exec: needs a command"]),
        (Address("exec:'open"), ["the command cannot be read: no closing quotation"]),
        (Address("ws://127.0.0.1:1"), ["must begin with exec:"]),
        (Address("exec:no-such-program-here --x"), ["there is no program no-such-program-here here"]),
        (Address("exec:cat", env=(("PATH", "/nowhere"),)), ["there is no program cat here"]),
        (Address("exec:nope-nope", env=(("1=", "x"),)), ["'1=' is no name", "there is no program nope-nope"]),
    ],
)
def test_what_cannot_be_started_is_said_before_anything_starts(address, wanted):
    with pytest.raises(AddressError) as caught:
        transport.check(address)
    assert len(caught.value.problems) == len(wanted)
    for part, problem in zip(wanted, caught.value.problems, strict=True):
        assert part in problem


# Programs.


@realtime
async def test_a_program_hears_what_is_written_and_its_end_is_a_regular_close(dial):
    one = await (await dial("process", "exec:cat")).until(lambda one: one.facts)
    encoder = transport.encoder(bytes)
    one.link.write(encoder.whole("binary", b"red boat\n"))
    await one.until(lambda one: one.data)
    one.link.write(encoder.whole("end", b""))
    cause = await one.end()
    assert one.data == [b"red boat\n"]
    assert (cause.kind, cause.by, cause.code) == ("closed", "target", None)
    assert one.facts[0].remote.startswith("process ")


@realtime
async def test_a_status_is_the_code_of_the_close_and_the_last_words_are_told(dial):
    one = await dial("process", shell("echo first; echo loading >&2; echo 'no model file' >&2; exit 3"))
    cause = await one.end()
    assert one.data == [b"first\n"]
    assert (cause.kind, cause.by, cause.code) == ("closed", "target", 3)
    assert cause.reason == "the program ended with status 3: no model file"
    assert one.link.aside() == b"loading\nno model file\n"


@realtime
async def test_a_signal_is_a_reset_that_names_it(dial):
    cause = await (await dial("process", shell("kill -SEGV $$"))).end()
    assert (cause.kind, cause.code) == ("reset", None)
    assert "ended by SIGSEGV" in cause.reason


@realtime
async def test_what_was_said_before_the_end_is_all_heard(dial):
    one = await dial("process", f"exec:{sys.executable} -c \"print('x' * 300000)\"")
    await one.end()
    assert sum(map(len, one.data)) == 300_001


@realtime
async def test_a_program_that_does_not_read_is_paused_on_and_loses_nothing(dial, tmp_path):
    go = tmp_path / "go"
    os.mkfifo(go)
    one = await (await dial("process", shell(f"cat {go}; exec wc -c"))).until(lambda one: one.facts)
    for _ in range(8):
        one.link.write(b"\0" * HIGH_WATER)
    assert one.pauses == ["paused"]
    assert one.link.unsent() > HIGH_WATER
    await asyncio.to_thread(go.write_bytes, b"")
    await one.until(lambda one: "resumed" in one.pauses)
    one.link.write(transport.encoder(bytes).whole("end", b""))
    cause = await one.end()
    assert one.link.unsent() == 0
    assert int(b"".join(one.data)) == 8 * HIGH_WATER
    assert (cause.kind, cause.code) == ("closed", None)


@realtime
async def test_one_that_closes_its_input_is_still_listened_to(dial):
    one = await (await dial("process", shell("exec 0<&-; echo deaf; sleep 0.2; echo done"))).until(lambda one: one.data)
    one.link.write(b"x" * 10)
    one.link.write(b"x" * 10)
    assert (await one.end()).kind == "closed"
    assert b"".join(one.data) == b"deaf\ndone\n"


@realtime
async def test_a_flood_is_heard_piece_by_piece_and_can_be_cut(dial):
    one = await (await dial("process", "exec:yes")).until(lambda one: len(one.data) > 20)
    assert max(map(len, one.data)) <= READ_BYTES
    one.link.abort()
    assert (await one.end()).kind == "aborted"
    await nobody_is_kept()


@realtime
async def test_a_polite_end_closes_the_input_and_waits_for_the_program(dial):
    one = await (await dial("process", shell("cat; echo bye; exit 4"))).until(lambda one: one.facts)
    one.link.shut(1000)
    cause = await one.end()
    assert one.data == [b"bye\n"]
    assert (cause.kind, cause.by, cause.code) == ("closed", "us", 4)


@realtime
async def test_only_the_end_of_a_long_complaint_is_kept(dial):
    one = await dial("process", shell("yes complaint | head -c 200000 >&2; echo over >&2"))
    await one.end()
    assert len(one.link.aside()) == ASIDE_BYTES
    assert one.link.aside().endswith(b"over\n")


@realtime
async def test_the_environment_of_a_program_is_ours_and_what_the_address_adds(dial, monkeypatch):
    monkeypatch.setenv("OURS", "a")
    one = await dial("process", shell('echo "$OURS $THEIRS"'), env=(("THEIRS", "b c"),))
    await one.end()
    assert one.data == [b"a b c\n"]


@realtime
async def test_a_program_that_is_gone_when_it_is_to_start_is_a_refusal(dial, tmp_path):
    one = await dial("process", f"exec:{tmp_path}/gone")
    assert one.causes[0].kind == "refused"
    assert "could not be started: no such file" in one.causes[0].reason


# Nothing is left behind.


@realtime
async def test_the_whole_group_is_ended(dial):
    one = await (await dial("process", shell("sleep 60 & echo $!; sleep 60 & wait"))).until(lambda one: one.data)
    grandchild = int(one.data[0])
    assert runs(grandchild)
    one.link.abort()
    await vanished(grandchild)
    await nobody_is_kept()


@realtime
async def test_one_that_will_not_be_told_is_killed(dial):
    stubborn = shell('trap "" TERM; echo $$; while :; do sleep 0.05; done')
    one = await (await dial("process", stubborn)).until(lambda one: one.data)
    one.link.abort()
    await vanished(int(one.data[0]))
    await nobody_is_kept()


@realtime
async def test_somebody_who_holds_the_output_open_delays_the_end_and_is_ended_as_well(dial):
    one = await dial("process", shell("sleep 60 & echo $!"))
    cause = await one.end()
    assert cause.kind == "closed"
    await vanished(int(one.data[0]))


@realtime
async def test_output_that_is_closed_by_a_program_that_runs_on_is_the_end(dial):
    one = await dial("process", shell("echo $$; exec 1>&-; sleep 60"))
    assert (await one.end()).kind == "eof"
    await vanished(int(one.data[0]))


@realtime
async def test_a_start_that_is_given_up_leaves_no_program(recorder):
    task = asyncio.ensure_future(transport.dial(Address("exec:sleep 60"), recorder, lambda: 0))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorder.causes == [Cause("aborted", 0, by="us")]
    await nobody_is_kept()


KILLED = """
import asyncio, sys, time
from loadbench.transports import load
from loadbench.transports.contract import Address
class Ear:
    def opened(self, facts): print(facts.remote.split()[1], flush=True)
    def received(self, data, at): pass
    def lost(self, cause): pass
async def main():
    link = await load("process").dial(Address("exec:sleep 60"), Ear(), time.monotonic_ns)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@realtime
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_a_tester_that_is_killed_takes_its_programs_with_it(number):
    tester = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=Path(__file__).parents[2]
    )
    program = int(await asyncio.wait_for(tester.stdout.readline(), 20))
    assert runs(program)
    tester.send_signal(number)
    await tester.wait()
    await vanished(program)


@realtime
async def test_a_program_for_which_no_file_handle_is_left_is_our_shortage_and_does_not_stay(dial, monkeypatch):
    def none_left(pid):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", none_left)
    one = await dial("process", "exec:sleep 60")
    assert (one.causes[0].kind, one.causes[0].by) == ("resource", "us")
    await nobody_is_kept()
