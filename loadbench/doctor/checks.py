"""What the machine offers against what a run needs: each check a function from two numbers to a row."""

import math
from dataclasses import dataclass
from typing import Any, Final

from loadbench.doctor.row import Row, State
from loadbench.prepared import SPARE_FILES
from loadbench.readings.machine import COARSE_MS
from loadbench.results.slo import Thresholds

TIME_WAIT_S: Final = 60  # for which Linux keeps a closed connection's port (TCP_TIMEWAIT_LEN)
SESSION_BYTES: Final = 20_000  # of the engine's memory for each session that is open
PROCESSES_BYTES: Final = 250_000_000  # of the engine, the door and the responder with nothing to do
QUIET_GAP_MS: Final = 10.0
GOOD_CLOCKS: Final = frozenset(("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen"))
SLOW_GOVERNORS: Final = frozenset(("powersave", "conservative"))


@dataclass(frozen=True, slots=True)
class Need:
    """What a run asks of a machine: sessions at once, starts a second, and bytes of media mapped for all of them."""

    users: int
    starts_per_s: float
    mapped_bytes: int


def file_handles(need: Need, soft: int, hard: int | None) -> Row:
    """`hard` None: without limit. The engine raises its own soft limit to the hard one."""
    wanted = need.users + SPARE_FILES
    short = hard is not None and wanted > hard
    return Row(
        name="file handles",
        state="problem" if short else "ok",
        found=f"{soft:,} (soft), {'no limit' if hard is None else f'{hard:,}'} (hard; the engine raises its own to it)",
        needed=f"{wanted:,}",
        advice=f"raise the hard limit: ulimit -Hn {wanted}, or LimitNOFILE, or nofile in limits.conf" if short else "",
    )


def ports(need: Need, found: int | None) -> Row:
    """Local ports towards one address: one for each open session, and one for each that closed in the last minute."""
    waiting = math.ceil(need.starts_per_s * TIME_WAIT_S)
    row = {
        "name": "local ports",
        "needed": f"{need.users:,} open, and at most {waiting:,} in TIME_WAIT ({TIME_WAIT_S} s)",
    }
    if found is None:
        return Row(**row, state="unknown", found="this system does not say")
    state: State = "problem" if need.users > found else "warning" if need.users + waiting > found else "ok"
    advice = "widen net.ipv4.ip_local_port_range; ports in TIME_WAIT are on whichever side closed first"
    return Row(**row, state=state, found=f"{found:,}", advice="" if state == "ok" else advice)


def memory(need: Need, available: int) -> Row:
    """Sessions and media against what can be had without swapping."""
    wanted = need.users * SESSION_BYTES + need.mapped_bytes + PROCESSES_BYTES
    state: State = "problem" if wanted > available else "warning" if wanted > available / 2 else "ok"
    advice = "fewer users, a shorter corpus (corpus.limit), or more memory: a tester that swaps is late"
    return Row(
        name="memory",
        state=state,
        found=f"{available / 1e6:,.0f} MB available",
        needed=f"{wanted / 1e6:,.0f} MB, of which {need.mapped_bytes / 1e6:,.0f} MB are media",
        advice="" if state == "ok" else advice,
    )


def processors(usable: int | None, cores: int | None, quota: float | None) -> Row:
    """The engine's loop wants a core to itself; the door and its endpoint share another."""
    here = usable if usable is not None else cores
    if here is None:
        return Row(name="processors", state="unknown", found="this system does not say", needed="2")
    granted = here if quota is None else min(float(here), quota)
    state: State = "problem" if granted < 1 else "warning" if granted < 2 else "ok"
    limit = "" if quota is None else f", and a control group grants {quota:g}"
    return Row(
        name="processors",
        state=state,
        found=f"{here} usable of {cores}{limit}",
        needed="2: one for the engine's loop, one for all else",
        advice="" if state == "ok" else "grant two whole processors; a quota stops a process in the middle of a turn",
    )


def governor(found: str | None) -> Row:
    """A processor that sleeps deeply or runs slowly wakes late."""
    if found is None:
        return Row(name="frequency governor", state="unknown", found="this system does not say")
    slow = found in SLOW_GOVERNORS
    advice = "for a run: cpupower frequency-set -g performance" if slow else ""
    return Row(name="frequency governor", state="warning" if slow else "ok", found=found, advice=advice)


def clock(source: str | None, resolution_s: float) -> Row:
    """A clock that must be asked for in the kernel, or in a device, costs microseconds each time."""
    found = f"{source or 'unnamed'}, resolution {resolution_s * 1e9:g} ns"
    if resolution_s > 1e-4:
        return Row(
            name="clock", state="problem", found=found, needed="0.1 ms", advice="times here are too coarse to measure"
        )
    if source is None:
        return Row(name="clock", state="unknown", found=found)
    slow = source not in GOOD_CLOCKS
    advice = "each look at the clock is a call into the kernel; see dmesg for why tsc was given up" if slow else ""
    return Row(name="clock", state="warning" if slow else "ok", found=found, advice=advice)


def timers(measured: dict[str, Any], limits: Thresholds) -> Row:
    """How late an engine with nothing to do is woken."""
    middle, tail = measured["timer_p50_ms"], measured["timer_p99_ms"]
    needed = f"p99 up to {limits.degraded_lateness_p99_ms:g} ms"
    if middle is None or tail is None:
        advice = "something keeps this process from running; look for other work on this machine"
        return Row(name="timers", state="problem", found="no timer rang within a second", needed=needed, advice=advice)
    found = f"late p50 {middle:.2f} ms, p99 {tail:.2f} ms, most {measured['timer_max_ms']:.2f} ms ({measured['alarm']})"
    if middle >= COARSE_MS:
        advice = (
            f"coarse timers: each chunk would leave some {middle:.0f} ms late; use a kernel with high resolution timers"
        )
        return Row(name="timers", state="problem", found=found, needed=needed, advice=advice)
    state: State = "ok" if tail <= limits.degraded_lateness_p99_ms else "warning"
    if tail > limits.invalid_lateness_p99_ms:
        state = "problem"
    advice = "other work on this machine holds the engine up while it idles" if state != "ok" else ""
    return Row(name="timers", state=state, found=found, needed=needed, advice=advice)


def loop(measured: dict[str, Any], limits: Thresholds) -> Row:
    """The longest pause of an event loop with nothing to do."""
    gap = measured["loop_gap_max_ms"]
    state: State = "ok" if gap < QUIET_GAP_MS else "warning" if gap <= limits.taint_gap_ms else "problem"
    return Row(
        name="event loop",
        state=state,
        found=f"longest pause {gap:.1f} ms in a second of idling ({measured['loop']})",
        needed=f"below {QUIET_GAP_MS:g} ms; over {limits.taint_gap_ms:g} ms taints a session",
        advice="" if state == "ok" else "end other work on this machine, or give the tester a machine of its own",
    )


def realtime(answer: str) -> Row:
    """Whether the engine could run before all ordinary processes; nothing needs it."""
    permitted = answer.startswith("SCHED_FIFO")
    return Row(
        name="real-time priority",
        state="ok",
        found="SCHED_FIFO is permitted" if permitted else answer,
        needed="nothing: it only helps where other work cannot be kept away",
    )
