"""The Prometheus endpoint of a run.

Plain numbers are added up as events come in, and a collector turns them into an exposition when somebody asks: nothing
of this touches the engine's loop. Every series exists at 0 before the first session, because `rate()` cannot see a
counter that begins at 1; every label set is closed, so that the number of series does not grow with the run.
"""

import contextlib
import errno
import math
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from loadbench.results.outcome import OUTCOMES
from loadbench.results.record import Connection, SessionRecord, Started, Utterance
from loadbench.results.run import RunHeader
from loadbench.results.slo import SloResult, Verdict
from loadbench.results.tick import LATENESS_EDGES_NS, Tick

if TYPE_CHECKING:
    from aiohttp import web

DEFAULT_PORT: Final = 9464  # the port that OpenTelemetry's Prometheus exporters use
PORTS_TRIED: Final = 100
EXEMPLAR_CHARACTERS: Final = 100  # OpenMetrics allows 128 with the label's name, and refuses the scrape above
STATES: Final = ("VALID", "DEGRADED", "INVALID")
MESSAGE_KINDS: Final = (
    *(
        "partial",
        "final",
        "media",
        "empty",
        "unchanged",
        "ready",
        "ack",
        "event",
        "ignored",
        "unmatched",
        "error",
        "done",
    ),
)
LEVELS: Final = {  # metric: reading of a tick, and what it is
    "target_cpu_share": ("target_cpu_share", "Processor time of the process under test; 1 is one core."),
    "target_memory_bytes": ("target_rss_bytes", "Resident memory of the process under test and its children."),
    "target_threads": ("target_threads", "Threads of the process under test and its children."),
    "target_open_files": ("target_files", "Open files of the process under test and its children."),
    "target_processes": ("target_processes", "The process under test and its children."),
    "throttled": ("throttled", "1 where the processor was slowed down by heat or power in the last second."),
    "battery_share": ("battery_share", "Charge of the battery, 0 to 1."),
    "load": ("load_1m", "The machine's load over one minute."),
}
LOW_S: Final = (0.0, 0.01, 0.025, 0.05)
# Where interpretation happens neighbours differ by at most a quarter, so that an interpolated quantile is near.
MIDDLE_S: Final = (0.1, 0.12, 0.15, 0.18, 0.22, 0.27, 0.33, 0.4, 0.5, 0.6, 0.75, 0.9, 1.1, 1.35, 1.65, 2.0, 2.5, 3.0)
HIGH: Final = (1.0, 1.25, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.5, 8.0)
CONNECT_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LATENESS_STEP: Final = 8  # every eighth edge of the engine's: exact counts, each edge 48 % above the one below


class PortTaken(ValueError):  # noqa: N818
    """The user's trouble: the endpoint cannot be opened where it was asked for."""

    def __init__(self, problem: str) -> None:
        self.problems = [problem]
        super().__init__(problem)


class Spread:
    """A histogram's counts. Negative values count under the first edge, 0, and never in the sum."""

    def __init__(self, edges_s: Sequence[float]) -> None:
        self.edges_s = tuple(edges_s)
        self.sum_s = 0.0
        self._names = [*map(floatToGoString, self.edges_s), "+Inf"]
        self._counts = [0] * len(self._names)
        self._exemplars: list[Exemplar | None] = [None] * len(self._names)

    def add(self, seconds: float, exemplar: Exemplar | None = None) -> None:
        """Count one value; the latest exemplar of a bucket is kept."""
        at = bisect_left(self.edges_s, seconds)
        self._counts[at] += 1
        self.sum_s += max(seconds, 0.0)
        self._exemplars[at] = exemplar or self._exemplars[at]

    def add_counts(self, counts: Mapping[int, int], edge_of: Sequence[int], sum_s: float) -> None:
        """Add counts by somebody else's buckets; `edge_of` says into which of ours each of them lies whole."""
        for index, count in counts.items():
            self._counts[edge_of[index]] += count
        self.sum_s += sum_s

    def buckets(self) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
        """Cumulative, as an exposition wants them."""
        found: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        total = 0
        for name, count, exemplar in zip(self._names, self._counts, self._exemplars, strict=True):
            total += count
            found.append((name, total) if exemplar is None else (name, total, exemplar))
        return found


class Exporter:
    """Every metric of one run, in a registry of its own. Warm-up sessions count: this is what happens now.

    `metrics` and `channels` are all names that `observe` will be called with, `kinds` those of the media.
    `session_limit_s` is how long an answer can take; buckets go to twice that, for what also had to wait to begin.
    `applies` tells for a metric and a channel whether there can be such a time.
    `wall` dates exemplars (seconds since 1970).
    """

    def __init__(
        self,
        header: RunHeader,
        *,
        metrics: Sequence[str],
        channels: Sequence[str],
        kinds: Sequence[str],
        session_limit_s: float,
        applies: Callable[[str, str], bool] = lambda _metric, _channel: True,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._header = header
        self._wall = wall
        edges = response_edges(session_limit_s, (slo.limit for slo in header.slo if slo.metric in metrics))
        self._responses = {
            (metric, channel): Spread(edges) for metric in metrics for channel in channels if applies(metric, channel)
        }
        self._connects = Spread((*CONNECT_S, *_above(CONNECT_S[-1], _connect_limit_s(header))))
        coarse = LATENESS_EDGES_NS[::LATENESS_STEP]
        self._lateness = Spread([edge / 1e9 for edge in (*coarse, LATENESS_EDGES_NS[-1])])
        self._lateness_edge = [
            bisect_left(coarse, edge) for edge in LATENESS_EDGES_NS
        ] + [len(coarse) + 1]  # above the last edge: +Inf  # fmt: skip
        self._started = 0
        self._ended = dict.fromkeys(OUTCOMES, 0)
        self._chunks = dict.fromkeys(kinds, 0)
        self._messages = dict.fromkeys((*MESSAGE_KINDS, "other"), 0)
        self._premature = dict.fromkeys(channels, 0)
        self._bytes = 0
        self._blocked_s = 0.0
        self._latest: dict[str, Tick] = {}  # by worker
        self._state = ""
        self._met = {slo.name: False for slo in header.slo}
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def take(self, event: object) -> None:
        """Count what the engine tells; what has no metric is passed over."""
        if isinstance(event, Started):
            self._started += 1
        elif isinstance(event, SessionRecord):
            self._end(event)
        elif isinstance(event, Tick):
            self._tick(event)

    def observe(self, metric: str, channel: str, seconds: float, session: str) -> None:
        """Count one response time; `session` goes into an exemplar and never into a label."""
        exemplar = Exemplar({"session": session[:EXEMPLAR_CHARACTERS]}, seconds, self._wall())
        self._responses[metric, channel].add(seconds, exemplar)

    def state(self, verdict: Verdict, slo_results: Iterable[SloResult]) -> None:
        """The verdict on the tester, and what became of the SLO so far."""
        self._state = verdict.state
        for result in slo_results:
            self._met[result.name] = result.met

    def text(self) -> str:
        """The exposition as it stands, in the Prometheus text format."""
        return generate_latest(self.registry).decode()

    @contextlib.asynccontextmanager
    async def serving(self, host: str, port: int | None) -> AsyncIterator[str]:
        """Answer at the address that is yielded. Without a port: 9464, or the next free one; 0: any free one.

        Raises PortTaken where an asked port, or no port at all, can be had.
        """
        from aiohttp import web
        from prometheus_client.aiohttp import make_aiohttp_handler

        app = web.Application()
        app.router.add_get("/metrics", make_aiohttp_handler(self.registry))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            ports = [port] if port is not None else list(range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED))
            yield await _listen(runner, host, ports)
        finally:
            await runner.cleanup()

    def collect(self) -> Iterator[Metric]:
        """All families; called by the registry."""
        yield from self._sessions()
        yield from self._times()
        yield from self._traffic()
        yield from self._readings()
        yield from self._judgement()

    def _end(self, record: SessionRecord) -> None:
        # An outcome that is not on the list can only be our own mistake, and totals must add up all the same.
        self._ended[record.outcome if record.outcome in self._ended else "internal"] += 1
        for link in record.connections:
            span_ns = _connect_ns(link)
            if span_ns is not None:
                self._connects.add(span_ns / 1e9)
        for utterance in record.utterances:
            for name in _premature_channels(utterance):
                self._premature[name] += 1

    def _tick(self, tick: Tick) -> None:
        self._latest[tick.worker] = tick
        self._bytes += tick.media_bytes
        self._blocked_s += tick.blocked_ns / 1e9
        self._lateness.add_counts(tick.lateness, self._lateness_edge, tick.lateness_sum_ns / 1e9)
        for kind, count in tick.chunks.items():
            self._chunks[kind] += count
        for kind, count in tick.messages.items():
            self._messages[kind if kind in self._messages else "other"] += count

    def _sessions(self) -> Iterator[Metric]:
        yield _counter("loadbench_sessions_started", "Sessions that have begun.", self._started)
        ended = CounterMetricFamily(
            "loadbench_sessions_ended", "Sessions that have ended, and who is to blame.", labels=["outcome", "side"]
        )
        for outcome, count in self._ended.items():
            ended.add_metric([outcome, OUTCOMES[outcome][1]], count)
        yield ended
        active = self._started - sum(self._ended.values())
        yield _gauge("loadbench_sessions_active", "Sessions that have begun and not ended.", active)
        target = sum(tick.users_target for tick in self._latest.values())
        yield _gauge("loadbench_users_target", "Users that the plan asks for now.", target)

    def _times(self) -> Iterator[Metric]:
        responses = HistogramMetricFamily(
            "loadbench_response_seconds",
            "Response times of finished utterances; one that came early counts under le=0 and not in the sum.",
            labels=["metric", "channel"],
        )
        for labels, spread in self._responses.items():
            responses.add_metric(labels, spread.buckets(), spread.sum_s)
        yield responses
        connects = self._connects
        yield HistogramMetricFamily(
            "loadbench_connect_seconds",
            "From dialling to an open connection, TLS and handshake included.",
            buckets=connects.buckets(),
            sum_value=connects.sum_s,
        )
        lateness = HistogramMetricFamily(
            "loadbench_chunk_lateness_seconds",
            "How long after its due time a chunk was handed over: the tester's fault.",
            labels=["side"],
        )
        lateness.add_metric(["tester"], self._lateness.buckets(), self._lateness.sum_s)
        yield lateness
        gap_s = max((tick.loop_gap_ns for tick in self._latest.values()), default=0) / 1e9
        yield _gauge("loadbench_loop_delay_seconds", "The engine loop's longest pause in its last second.", gap_s)

    def _traffic(self) -> Iterator[Metric]:
        yield _labelled("loadbench_chunks_sent", "Media messages handed over.", "kind", self._chunks)
        yield _counter("loadbench_media_bytes_sent", "Bytes of media handed over.", self._bytes)
        yield _counter(
            "loadbench_blocked_seconds",
            "Time, over all sessions, in which a socket took no more: the far side pushing back.",
            self._blocked_s,
        )
        yield _labelled(
            "loadbench_messages_received", "Messages by what they turned out to be.", "kind", self._messages
        )
        yield _labelled(
            "loadbench_premature",
            "Utterances answered before there was anything to answer.",
            "channel",
            self._premature,
        )

    def _readings(self) -> Iterator[Metric]:
        """The newest of each; NaN is what the system does not show, or what nobody asked to read."""
        readings: dict[str, float] = {}
        for tick in self._latest.values():
            readings |= tick.readings
        for name, (key, text) in LEVELS.items():
            yield _gauge(f"loadbench_{name}", text, readings.get(key, math.nan))
        heat = [value for key, value in readings.items() if key.startswith("temperature_")]
        yield _gauge("loadbench_temperature_celsius", "The machine's hottest sensor.", max(heat, default=math.nan))
        cores = [value for key, value in readings.items() if key.startswith("core") and key.endswith("_mhz")]
        slowest_hz = min(cores, default=math.nan) * 1e6
        yield _gauge("loadbench_frequency_hertz", "The machine's slowest core.", slowest_hz)

    def _judgement(self) -> Iterator[Metric]:
        met = GaugeMetricFamily("loadbench_slo_met", "1 where the SLO is met so far.", labels=["slo"])
        for name, value in self._met.items():
            met.add_metric([name], value)
        yield met
        verdict = GaugeMetricFamily("loadbench_verdict", "1 for the verdict on the tester itself.", labels=["state"])
        for name in STATES:
            verdict.add_metric([name], name == self._state)
        yield verdict
        facts = _run_facts(self._header)
        info = GaugeMetricFamily("loadbench_run_info", "Which run this is; always 1.", labels=list(facts))
        info.add_metric(list(facts.values()), 1)
        yield info


def response_edges(limit_s: float, slo_limits_s: Iterable[float] = ()) -> tuple[float, ...]:
    """Upper edges for response times: 0, the SLO limits, quarter steps, and on beyond twice the limit."""
    return tuple(sorted({*LOW_S, *MIDDLE_S, *_above(MIDDLE_S[-1], 2 * limit_s), *slo_limits_s}))


def _above(last_s: float, top_s: float) -> list[float]:
    """Edges from above `last_s` to the first one that reaches `top_s`."""
    found: list[float] = []
    power = 0
    while not found or found[-1] < top_s:
        steps = [round(step * 10.0**power, 6) for step in HIGH]
        found += [step for step in steps if step > last_s and (not found or found[-1] < top_s)]
        power += 1
    return found


def _connect_limit_s(header: RunHeader) -> float:
    return float((header.effective.get("limits_s") or {}).get("connect_s") or 0.0)


def _connect_ns(link: Connection) -> int | None:
    return None if link.opened_ns is None else link.opened_ns - link.dialled_ns


def _premature_channels(utterance: Utterance) -> list[str]:
    """Channels on which text came before the onset; where that is unknown, before media zero."""
    if utterance.media_zero_ns is None:
        return []
    begin_ns = utterance.media_zero_ns + (utterance.onset_ns or 0)
    return [
        name
        for name, channel in utterance.channels.items()
        if channel.first_ns is not None and channel.first_ns < begin_ns
    ]


def _run_facts(header: RunHeader) -> dict[str, str]:
    """Few and short: a label is no place for addresses or what people typed."""
    return {
        "run_id": header.run_id,
        "version": header.versions.get("loadbench", ""),
        "profile": str(header.profile.get("name", "")),
        "workload": str((header.plan.get("workload") or {}).get("model", "")),
        "headline_metric": header.headline_metric,
        "headline_channel": header.headline_channel,
    }


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


async def _listen(runner: "web.AppRunner", host: str, ports: Sequence[int]) -> str:
    from aiohttp import web

    for port in ports:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port != ports[-1]:
                continue
            raise PortTaken(_refusal(host, ports, error)) from None
        return f"http://{_shown(host)}:{runner.addresses[0][1]}/metrics"
    raise AssertionError("no port to try")


def _refusal(host: str, ports: Sequence[int], error: OSError) -> str:
    if error.errno != errno.EADDRINUSE:
        return f"metrics: cannot listen on {host}:{ports[-1]}: {(error.strerror or str(error)).lower()}"
    if len(ports) == 1:
        return (
            f"metrics.port {ports[0]} is in use on {host}; free it, choose another --port, or leave it out to take the"
            " next free one"
        )
    return f"metrics: ports {ports[0]} to {ports[-1]} are all in use on {host}; choose one with --port"


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
