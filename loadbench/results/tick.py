"""One second of a run as the engine saw it: counts since the last tick, levels as they are now."""

from typing import Final

import msgspec

# Upper edges of the lateness buckets, nanoseconds: from 1 us to 100 s, each 5 % above the one below, so that a
# percentile read from them is at most 5 % too high. Bucket 0 holds all up to 1 us, the last one all above.
LATENESS_EDGES_NS: Final = tuple(round(1_000 * 1.05**k) for k in range(379))


class Tick(msgspec.Struct, kw_only=True, tag="tick", tag_field="type"):
    """Counts are since the last tick unless said otherwise; `lateness` maps a bucket's index to its count.

    `loop_gap_ns` is the longest time between two turns of the event loop in this second; `run_delay_ns` the time in
    which the kernel had the process ready and did not run it; `cpu_ns` process time, never sampled from /proc/stat.
    """

    worker: str
    seq: int
    at_ns: int
    span_ns: int
    active: int
    users_target: int
    stage: str
    window: str
    started: int
    ended: dict[str, int] = {}
    chunks: dict[str, int] = {}
    media_bytes: int = 0
    messages: dict[str, int] = {}
    lateness: dict[int, int] = {}
    lateness_sum_ns: int = 0
    blocked_ns: int = 0
    start_lateness: dict[int, int] = {}
    loop_gap_ns: int = 0
    gaps: list[tuple[int, int]] = []
    cpu_ns: int = 0
    run_delay_ns: int | None = None
    gc_ns: int = 0
    gc_max_ns: int = 0
    rss_bytes: int = 0
    fds: int = 0
    readings: dict[str, float] = {}
