"""A run from a prepared start to its bundle: the two wings wired together, once, for every door.

`perform` never raises for what a service does. What it leaves is a bundle with its derived files, and a result with the
exit code.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from loadbench import plan as plans
from loadbench.analysis.broken import broken
from loadbench.analysis.judge import Judge
from loadbench.analysis.response import applicable, responses
from loadbench.engine import host, pipe
from loadbench.media.container import Reels
from loadbench.prepared import Prepared, public_params
from loadbench.readings.target import Target
from loadbench.readings.watching import Watching
from loadbench.report.derive import derive
from loadbench.results.bundle import BundleError, BundleWriter, why, write_whole
from loadbench.results.media import MediaPiece
from loadbench.results.outcome import ending
from loadbench.results.record import SessionRecord, Started
from loadbench.results.run import Done
from loadbench.results.tick import Tick
from loadbench.scoring import tables_file
from loadbench.session.ending import judged_again
from loadbench.session.message import media_kinds
from loadbench.session.profile import Profile
from loadbench.simulator import responder
from loadbench.simulator.options import SERVED
from loadbench.watch.exporter import Exporter
from loadbench.watch.terminal import View
from loadbench.watch.writer import Writer

FIRST_DRAIN_S: Final = 3.0  # what the first Ctrl-C leaves to sessions that are nearly done


@dataclass
class Result:
    """What a run came to. `exit_code` follows the precedence 2 (something could not be written), 130, 4, 3, 1, 0."""

    folder: Path
    exit_code: int
    summary: dict[str, Any]
    scores: dict[str, Any]
    unwritten: list[str] = field(default_factory=list)

    @property
    def causes(self) -> list[str]:
        """What went wrong, most frequent first, as people read it: "connect_failed (5): …"."""
        found = sorted(self.summary["causes"].items(), key=lambda item: -item[1]["n"])
        return [f"{outcome} ({part['n']}): {'; '.join(part['examples'])}" for outcome, part in found]


async def perform(prepared: Prepared, folder: Path, view: View) -> Result:
    """Run, watch, write the bundle and derive from it. Raises BundleError or PortTaken before anything is contacted."""
    header, metrics = prepared.header, prepared.plan.metrics
    judge = Judge(header)
    exporter = Exporter(
        header,
        metrics=plans.RESPONSE_METRICS,
        channels=tuple(prepared.profile.channels),
        kinds=media_kinds(prepared.profile.media),
        session_limit_s=_longest_s(prepared),
        applies=lambda metric, channel: metric in applicable(header.channel_media.get(channel)),
    )
    async with contextlib.AsyncExitStack() as stack:
        engine = host.EngineProcess()
        stack.push_async_callback(engine.close)
        await engine.spawn()  # comes up beside the responder
        start = await _with_canary(prepared, stack, view)
        bundle = BundleWriter(folder, header, prepared.masks)
        if prepared.tables is not None:
            _keep(folder / tables_file.KEPT, prepared.tables.encode())
        writer = Writer(bundle)
        for note in header.corpus["notes"]:
            view.note(f"media    {note}")
        if metrics.enabled:
            address = await stack.enter_async_context(exporter.serving(metrics.host, metrics.port))
            view.note(f"metrics  {address}")
        await engine.start(start)
        interrupts = stack.enter_context(_interrupts(engine, writer, view))
        watching = stack.enter_context(_watching(prepared, engine)) if prepared.plan.readings.enabled else None
        done = await _watch(prepared, engine, judge, exporter, writer, view, watching)
        if interrupts():
            done.reason, done.why = "interrupted", ""
        exporter.state(judge.verdict(), judge.slo())
        writer.snapshot(exporter.text())
        done.ended_ns = time.monotonic_ns()
        writer.close(done)
        derived = derive(folder)
        view.close()
        code = 2 if derived.unwritten else _exit_code(derived.summary, done.reason)
        result = Result(folder, code, derived.summary, derived.scores, derived.unwritten)
        if metrics.enabled and metrics.linger_s and done.reason != "interrupted":
            await asyncio.sleep(metrics.linger_s)
    return result


def _keep(path: Path, data: bytes) -> None:
    try:
        write_whole(path, [data])
    except OSError as error:
        raise BundleError([f"cannot write {path}: {why(error)}; choose another --out"]) from None


async def _with_canary(prepared: Prepared, stack: contextlib.AsyncExitStack, view: View) -> pipe.Start:
    """The start with a canary, whose responder lives as long as `stack`; without one where there can be none.

    What came of it goes into the header, which is written after this.
    """
    asked, told = prepared.plan, prepared.header.effective
    told["canary"] = {"users": asked.canary.users}
    if not asked.canary.users:
        return prepared.start
    kind = prepared.profile.transport.kind
    if kind not in SERVED:
        told["canary"] = {"users": 0, "why": f"there is no responder for the transport {kind}"}
        return prepared.start
    try:
        found = await stack.enter_async_context(responder.responding(asked.target.profile))
    except responder.ResponderError as error:
        why = prepared.masks.mask(str(error))
        told["canary"] = {"users": 0, "why": why}
        view.note(f"canary   none, so the tester's own share is not known: {why}")
        return prepared.start
    canary = pipe.Canary(url=found.url, users=asked.canary.users, params=public_params(prepared.start))
    return msgspec.structs.replace(prepared.start, canary=canary)


async def _watch(
    prepared: Prepared,
    engine: host.EngineProcess,
    judge: Judge,
    exporter: Exporter,
    writer: Writer,
    view: View,
    watching: Watching | None,
) -> Done:
    """All events to all who want them; how it ended."""
    done, hopeless = Done(ended_ns=time.monotonic_ns(), reason="engine lost"), ""
    reels = Reels()
    async for event in engine.events():
        if isinstance(event, Tick) and watching is not None:
            event.readings |= watching.latest()
        await _open(event, reels, prepared.profile)
        writer.take(event)
        exporter.take(event)
        if isinstance(event, Started | SessionRecord | Tick):
            judge.add(event)
        if isinstance(event, Started):
            for clip in event.clips:
                writer.clip(prepared.facts[clip])
        elif isinstance(event, SessionRecord):
            _observe(event, exporter)
        elif isinstance(event, Tick):
            exporter.state(judge.verdict(), judge.slo())
            view.take(event, judge.figures())
            if prepared.plan.workload.stop_when_broken and not hopeless:
                hopeless = await _stopped(prepared, engine, judge, view)
        elif isinstance(event, pipe.Ready | pipe.Finished):
            _note(event, done, prepared, view)
        if writer.error is not None:
            await engine.send(pipe.Stop(drain_s=0.0))
            raise writer.error
    if hopeless and done.reason == "time_up":
        done.reason, done.why = "broken", hopeless
    return done


def _watching(prepared: Prepared, engine: host.EngineProcess) -> Watching:
    """Readings of the machine and of whom we test: a process that the plan names, or the programs that we start.

    In this process, on a thread of its own, so that a slow sensor holds up neither the engine nor our own loop.
    """
    pid = prepared.plan.readings.pid
    if pid is not None:
        return Watching(Target(pid))
    started = prepared.profile.transport.kind == "process" and engine.pid is not None
    return Watching(Target(engine.pid, itself=False) if started and engine.pid else None)


async def _open(event: pipe.Outbound, reels: Reels, profile: Profile) -> None:
    """Complete a sampled session's record by what is in its media, before anybody reads it."""
    if isinstance(event, MediaPiece):
        reels.keep(event)
    elif isinstance(event, SessionRecord) and reels.holds(event.id):
        await asyncio.to_thread(reels.open, event)
        judged_again(event, profile.headline, profile.media_channels.get(profile.headline))


def _note(event: pipe.Ready | pipe.Finished, done: Done, prepared: Prepared, view: View) -> None:
    """What the engine says of itself, first and last."""
    if isinstance(event, pipe.Ready):
        prepared.close()  # the engine has mapped the wire files: nameless, they go when it goes, however it goes
        done.engine = event.facts
        if "realtime" in event.facts:
            view.note(f"realtime {event.facts['realtime']}")
    else:
        done.reason, done.why = event.reason, event.error
        if event.error:
            view.note(f"engine   {event.error}")


async def _stopped(prepared: Prepared, engine: host.EngineProcess, judge: Judge, view: View) -> str:
    """Cut the run where an objective is beyond hope; the sentence that says which, or ""."""
    sentence = broken(judge, prepared.header.slo, prepared.header.headline_channel)
    if sentence is None:
        return ""
    view.note(f"stopping {sentence}")
    await engine.send(pipe.Stop(drain_s=0.0, outcome="time_up"))
    return sentence


def _observe(record: SessionRecord, exporter: Exporter) -> None:
    """The histograms hold the finished utterances of the measured window, as the report's rows of that name do."""
    finished = [part for part in record.utterances if ending(part.outcome or record.outcome) == "finished"]
    for utterance in finished if record.window == "measure" else []:
        for name, channel in utterance.channels.items():
            for metric, span_ns in responses(utterance, record, channel).items():
                if span_ns is not None:
                    exporter.observe(metric, name, span_ns / 1e9, record.id)


@contextlib.contextmanager
def _interrupts(engine: host.EngineProcess, writer: Writer, view: View) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C drains for a moment and writes everything; the second leaves at once.

    So does SIGTERM. SIGHUP, the terminal's end, drains as well, but comes twice from many a shell, and so never leaves
    at once; under `nohup` it stays unheard.
    """
    pressed = 0
    loop = asyncio.get_running_loop()
    pending: set[asyncio.Task[None]] = set()

    def press() -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            engine.kill()
            writer.flush()
            os._exit(130)
        view.note(f"draining for at most {FIRST_DRAIN_S:g} s, then everything is written; Ctrl-C again leaves at once")
        pending.add(asyncio.ensure_future(engine.send(pipe.Stop(drain_s=FIRST_DRAIN_S))))

    def hang_up() -> None:
        if not pressed:
            press()

    handlers = {signal.SIGINT: press, signal.SIGTERM: press}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = hang_up
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield lambda: pressed > 0
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def _exit_code(summary: Mapping[str, Any], reason: str) -> int:
    if reason == "interrupted":
        return 130
    if not reached(summary):
        return 4
    if summary["verdict"]["state"] == "INVALID":
        return 3
    if reason == "broken":
        return 1
    return 0 if all(item["met"] for item in summary["slo"]) else 1


def reached(summary: Mapping[str, Any]) -> bool:
    """False where sessions were started and none got an answer. One that was lost with its engine may have got one."""
    counts = summary["sessions"]
    return not counts["started"] or counts["reached"] > 0 or counts["ended"]["worker_lost"] > 0


def _longest_s(prepared: Prepared) -> float:
    limits = prepared.start.limits
    final, session = limits["final_s"], limits["session_s"]
    longest = max(prepared.media_ns.values()) / 1e9
    return session or longest + (final or 600.0)
