"""The endpoint: values, label sets, and what a scraper does with them."""

import itertools
import math
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from loadbench.analysis.response import METRICS, premature
from loadbench.plan import RESPONSE_METRICS
from loadbench.results.outcome import OUTCOMES
from loadbench.results.record import Channel, Connection, SessionRecord, Started, Utterance
from loadbench.results.run import Anchor, RunHeader
from loadbench.results.slo import Slo, SloResult, Verdict
from loadbench.results.tick import LATENESS_EDGES_NS, Tick
from loadbench.session import hearing
from loadbench.watch import exporter as subject
from loadbench.watch.exporter import Exporter, PortTaken, Spread, response_edges

S = 1_000_000_000
SLO = [
    Slo(metric="completed", stat="min_share", limit=0.99),
    Slo(metric="final_from_source_end", stat="p95", limit=1.7),
]


def make(limit_s: float = 60.0, **changes: Any) -> Exporter:
    header = RunHeader(
        run_id="r1",
        anchor=Anchor(monotonic_ns=0, wall_ns=0),
        plan={"target": {"url": "ws://host/?key=hidden"}, "workload": {"model": "closed"}},
        profile={"name": "vosk"},
        versions={"loadbench": "9.9"},
        headline_channel="transcript",
        headline_metric="final_from_source_end",
        slo=SLO,
        seed=7,
    )
    names = {"metrics": RESPONSE_METRICS, "channels": ("transcript", "gloss"), "kinds": ("audio",)} | changes
    return Exporter(header, session_limit_s=limit_s, wall=lambda: 1000.0, **names)


def started(name: str = "s1") -> Started:
    return Started(
        id=name, worker="w1", user=0, stage="main", window="measure", planned_ns=0, begun_ns=0, clips=["clip"]
    )


def ended(name: str = "s1", outcome: str = "ok", **changes: Any) -> SessionRecord:
    known = {"id": name, "worker": "w1", "user": 0, "stage": "main", "window": "measure", "planned_ns": 0}
    known |= {"begun_ns": 0, "ended_ns": S, "outcome": outcome, "side": OUTCOMES.get(outcome, ("", "tester"))[1]}
    return SessionRecord(**(known | changes))  # type: ignore[arg-type]


def tick(**changes: Any) -> Tick:
    known = {"worker": "w1", "seq": 0, "at_ns": S, "span_ns": S, "active": 0, "users_target": 8, "stage": "main"}
    known |= {"window": "measure", "started": 0}
    return Tick(**(known | changes))


def value(exporter: Exporter, name: str, **labels: str) -> float | None:
    return exporter.registry.get_sample_value(name, labels)


def series(text: str) -> set[str]:
    return {line.rsplit(" ", 1)[0] for line in text.splitlines() if line and not line.startswith("#")}


def buckets(exporter: Exporter, metric: str, channel: str) -> list[tuple[float, float]]:
    return [
        (float(sample.labels["le"]), sample.value)
        for family in plain_families(exporter.text())
        for sample in family.samples
        if sample.name == "loadbench_response_seconds_bucket"
        and (sample.labels["metric"], sample.labels["channel"]) == (metric, channel)
    ]


def test_before_the_first_session_every_series_is_there_at_zero() -> None:
    exporter = make()
    for outcome, (_, side) in OUTCOMES.items():
        assert value(exporter, "loadbench_sessions_ended_total", outcome=outcome, side=side) == 0
    for metric in RESPONSE_METRICS:
        for channel in ("transcript", "gloss"):
            assert value(exporter, "loadbench_response_seconds_count", metric=metric, channel=channel) == 0
            assert value(exporter, "loadbench_response_seconds_sum", metric=metric, channel=channel) == 0
    for kind in hearing.MESSAGE_KINDS:
        assert value(exporter, "loadbench_messages_received_total", kind=kind) == 0
    for name in ("loadbench_sessions_started_total", "loadbench_media_bytes_sent_total", "loadbench_sessions_active"):
        assert value(exporter, name) == 0
    assert value(exporter, "loadbench_chunks_sent_total", kind="audio") == 0
    assert value(exporter, "loadbench_premature_total", channel="gloss") == 0
    assert value(exporter, "loadbench_connect_seconds_count") == 0
    assert value(exporter, "loadbench_chunk_lateness_seconds_count", side="tester") == 0
    assert value(exporter, "loadbench_slo_met", slo="final_from_source_end.p95_s") == 0
    assert [value(exporter, "loadbench_verdict", state=state) for state in subject.STATES] == [0, 0, 0]


def test_readings_have_their_series_from_the_start_and_what_is_not_shown_is_no_number() -> None:
    exporter = make()
    names = [f"loadbench_{name}" for name in (*subject.LEVELS, "temperature_celsius", "frequency_hertz")]
    assert all(math.isnan(value(exporter, name)) for name in names)
    readings = {"target_rss_bytes": 5e8, "target_cpu_share": 1.5, "throttled": 0.0, "core0_mhz": 1800.0}
    readings |= {"core1_mhz": 600.0, "temperature_cpu_c": 71.5, "temperature_gpu_c": 60.0}
    exporter.take(
        Tick(
            worker="w1", seq=0, at_ns=S, span_ns=S, active=0, users_target=0, stage="main", window="measure",
            started=0, readings=readings,
        )
    )  # fmt: skip
    assert value(exporter, "loadbench_target_memory_bytes") == 5e8
    assert value(exporter, "loadbench_target_cpu_share") == 1.5
    assert value(exporter, "loadbench_temperature_celsius") == 71.5
    assert value(exporter, "loadbench_frequency_hertz") == 600e6
    assert value(exporter, "loadbench_throttled") == 0
    assert math.isnan(value(exporter, "loadbench_battery_share"))


def test_every_response_time_that_analysis_finds_has_a_series() -> None:
    assert set(METRICS) == set(RESPONSE_METRICS)


def test_the_kinds_of_messages_are_those_that_the_session_counts() -> None:
    assert set(subject.MESSAGE_KINDS) == set(hearing.MESSAGE_KINDS)


def test_started_is_always_the_sum_of_what_ended_and_what_is_active() -> None:
    exporter = make()
    for number in range(5):
        exporter.take(started(f"s{number}"))
    for number, outcome in enumerate(("ok", "no_final", "interrupted")):
        exporter.take(ended(f"s{number}", outcome))
    assert value(exporter, "loadbench_sessions_started_total") == 5
    assert value(exporter, "loadbench_sessions_active") == 2
    assert value(exporter, "loadbench_sessions_ended_total", outcome="ok", side="none") == 1
    assert value(exporter, "loadbench_sessions_ended_total", outcome="no_final", side="target") == 1
    assert value(exporter, "loadbench_sessions_ended_total", outcome="interrupted", side="policy") == 1


def test_an_outcome_that_is_on_no_list_is_our_own_mistake_and_counted_as_one() -> None:
    exporter = make()
    exporter.take(ended(outcome="never_heard_of"))
    assert value(exporter, "loadbench_sessions_ended_total", outcome="internal", side="tester") == 1


def test_98_fast_and_2_slow_answers_leave_a_99th_percentile_among_the_slow_ones() -> None:
    exporter = make(limit_s=60.0)
    for number in range(98):
        exporter.observe("final_from_source_end", "transcript", 0.2, f"s{number}")
    for number in range(2):
        exporter.observe("final_from_source_end", "transcript", 42.0, f"t{number}")
    found = buckets(exporter, "final_from_source_end", "transcript")
    edges = [edge for edge, _ in found]
    assert edges[-1] == float("inf")
    assert edges[-2] >= 60
    assert found[-1][1] == found[-2][1] == 100, "a sample in +Inf only"
    labels = {"metric": "final_from_source_end", "channel": "transcript"}
    assert value(exporter, "loadbench_response_seconds_sum", **labels) == pytest.approx(103.6)
    assert value(exporter, "loadbench_response_seconds_count", **labels) == 100
    low, high = _bucket_of(found, 42.0)
    assert low < _quantile(found, 0.99) <= high


def _bucket_of(found: list[tuple[float, float]], seconds: float) -> tuple[float, float]:
    edges = [edge for edge, _ in found]
    return next((low, high) for low, high in itertools.pairwise(edges) if low < seconds <= high)


def _quantile(found: list[tuple[float, float]], share: float) -> float:
    """As Prometheus does it: linear inside the bucket in which the rank falls."""
    wanted, before, low = share * found[-1][1], 0.0, 0.0
    for edge, total in found:
        if total >= wanted:
            return low + (edge - low) * (wanted - before) / (total - before)
        before, low = total, edge
    raise AssertionError


@pytest.mark.parametrize("limit_s", [0.5, 3.0, 5.0, 60.0, 630.0, 7200.0])
def test_edges_begin_at_0_go_in_quarters_where_it_matters_and_end_beyond_the_limit(limit_s: float) -> None:
    edges = response_edges(limit_s, (1.7, 0.4, 2.0))
    assert edges[0] == 0
    assert list(edges) == sorted(set(edges))
    assert {1.7, 0.4, 2.0} <= set(edges)
    assert edges[-1] >= 2 * limit_s
    assert len(edges) < 70
    inner = [edge for edge in edges if 0.1 <= edge <= 3.0]
    assert inner[0] == 0.1
    assert inner[-1] == 3.0
    assert all(high / low <= 1.25 + 1e-9 for low, high in itertools.pairwise(inner))


def test_a_premature_answer_counts_under_0_and_never_in_the_sum() -> None:
    exporter = make()
    exporter.observe("first_output_from_onset", "transcript", -0.4, "s1")
    exporter.observe("first_output_from_onset", "transcript", 0.3, "s2")
    labels = {"metric": "first_output_from_onset", "channel": "transcript"}
    assert value(exporter, "loadbench_response_seconds_bucket", le="0.0", **labels) == 1
    assert value(exporter, "loadbench_response_seconds_count", **labels) == 2
    assert value(exporter, "loadbench_response_seconds_sum", **labels) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("onset_ns", "first_ns", "expected"),
    [
        (2 * S, 12 * S - 1, 1),  # before the first sound
        (2 * S, 12 * S, 0),
        (None, 10 * S - 1, 1),  # onset unknown: before media zero
        (None, 10 * S, 0),
        (2 * S, None, 0),  # nothing was said
    ],
)
def test_output_before_there_was_anything_to_interpret_is_premature(
    onset_ns: int | None, first_ns: int | None, expected: int
) -> None:
    exporter = make()
    utterance = Utterance(index=0, clip="c", attempt=0, media_ns=5 * S, media_zero_ns=10 * S, onset_ns=onset_ns)
    utterance.channels = {"transcript": Channel(first_ns=first_ns)}
    exporter.take(ended(utterances=[utterance]))
    assert value(exporter, "loadbench_premature_total", channel="transcript") == expected
    assert premature(utterance, utterance.channels["transcript"]) == bool(expected), "the report counts otherwise"
    assert value(exporter, "loadbench_premature_total", channel="gloss") == 0


def test_connecting_counts_only_connections_that_came_to_be() -> None:
    exporter = make()
    links = [Connection(dialled_ns=0, opened_ns=40_000_000), Connection(dialled_ns=0)]
    exporter.take(ended(connections=links))
    assert value(exporter, "loadbench_connect_seconds_count") == 1
    assert value(exporter, "loadbench_connect_seconds_sum") == pytest.approx(0.04)
    assert value(exporter, "loadbench_connect_seconds_bucket", le="0.025") == 0
    assert value(exporter, "loadbench_connect_seconds_bucket", le="0.05") == 1


def test_ticks_of_two_workers_add_up() -> None:
    exporter = make()
    exporter.take(tick(chunks={"audio": 40}, media_bytes=1000, messages={"partial": 3, "surprise": 1}))
    exporter.take(tick(worker="w2", users_target=4, chunks={"audio": 2}, media_bytes=24, loop_gap_ns=7_000_000))
    exporter.take(tick(worker="w2", users_target=5, blocked_ns=S // 2, loop_gap_ns=3_000_000))
    assert value(exporter, "loadbench_chunks_sent_total", kind="audio") == 42
    assert value(exporter, "loadbench_media_bytes_sent_total") == 1024
    assert value(exporter, "loadbench_messages_received_total", kind="partial") == 3
    assert value(exporter, "loadbench_messages_received_total", kind="other") == 1
    assert value(exporter, "loadbench_users_target") == 13
    assert value(exporter, "loadbench_loop_delay_seconds") == pytest.approx(0.003)
    assert value(exporter, "loadbench_blocked_seconds_total") == pytest.approx(0.5)


def test_lateness_is_counted_in_the_bucket_that_holds_its_whole_own_bucket() -> None:
    exporter = make()
    last = len(LATENESS_EDGES_NS)
    for index in range(last + 1):
        exporter.take(tick(lateness={index: 1}, lateness_sum_ns=1_000_000))
    counts = {
        float(sample.labels["le"]): sample.value
        for family in plain_families(exporter.text())
        for sample in family.samples
        if sample.name == "loadbench_chunk_lateness_seconds_bucket"
    }
    for edge_s, total in counts.items():
        assert total == (sum(edge <= edge_s * 1e9 + 0.5 for edge in LATENESS_EDGES_NS) if edge_s < 1e9 else last + 1)
    assert value(exporter, "loadbench_chunk_lateness_seconds_sum", side="tester") == pytest.approx(0.001 * (last + 1))


def test_the_verdict_and_each_slo_are_told_as_the_judge_sees_them() -> None:
    exporter = make()
    late = SloResult(name="final_from_source_end.p95_s", met=True, limit=1.7, value=0.5)
    exporter.state(Verdict(state="DEGRADED", reasons=[]), [late])
    assert [value(exporter, "loadbench_verdict", state=state) for state in subject.STATES] == [0, 1, 0]
    assert value(exporter, "loadbench_slo_met", slo=late.name) == 1
    assert value(exporter, "loadbench_slo_met", slo="completed.min_share") == 0


def test_500_sessions_have_the_series_of_5_and_no_label_holds_an_id_an_address_or_a_text() -> None:
    found = []
    for count in (5, 500):
        exporter = make()
        for number in range(count):
            exporter.take(started(f"session-{number}"))
            exporter.observe("final_from_source_end", "transcript", 0.1 * number, f"session-{number}")
            utterance = Utterance(index=0, clip=f"clip-{number}", attempt=0, media_ns=S)
            exporter.take(ended(f"session-{number}", cause="a sentence", utterances=[utterance]))
        found.append(series(exporter.text()))
    assert found[0] == found[1]
    everything = " ".join(found[1])
    for text in ("session-", "clip-", "hidden", "a sentence", "ws://"):
        assert text not in everything


def test_exemplars_name_the_session_and_openmetrics_readers_accept_them() -> None:
    exporter = make()
    exporter.observe("final_from_source_end", "transcript", 0.55, "s7")
    text = openmetrics.generate_latest(exporter.registry).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    marked = [s.exemplar for s in families["loadbench_response_seconds"].samples if s.exemplar]
    assert [(item.labels, item.value, float(item.timestamp or 0)) for item in marked] == [
        ({"session": "s7"}, 0.55, 1000.0)
    ]
    assert "s7" not in exporter.text()


def test_a_session_with_a_very_long_name_does_not_break_the_scrape() -> None:
    exporter = make()
    exporter.observe("final_from_source_end", "transcript", 0.55, "s" * 500)
    assert openmetrics.generate_latest(exporter.registry).endswith(b"# EOF\n")


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")
def test_promtool_finds_nothing_wrong_with_the_exposition() -> None:
    exporter = make()
    exporter.observe("final_from_source_end", "transcript", 0.55, "s7")
    exporter.take(tick(lateness={3: 4}))
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=exporter.text(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_spread_counts_a_value_on_an_edge_below_it() -> None:
    spread = Spread((0.0, 1.0, 2.0))
    for seconds in (-1.0, 0.0, 1.0, 1.5, 2.0, 9.0):
        spread.add(seconds)
    assert [tuple(item) for item in spread.buckets()] == [("0.0", 2), ("1.0", 3), ("2.0", 5), ("+Inf", 6)]
    assert spread.sum_s == 13.5


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


@pytest.mark.realtime
async def test_a_scrape_while_the_run_goes_on_sees_the_numbers_of_now() -> None:
    exporter = make()
    async with exporter.serving("127.0.0.1", 0) as address, aiohttp.ClientSession() as client:
        exporter.take(started())
        async with client.get(address) as answer:
            assert "loadbench_sessions_active 1.0" in await answer.text()
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        async with client.get(address, headers=accept) as answer:
            assert answer.headers["content-type"].startswith("application/openmetrics-text")
            assert (await answer.text()).endswith("# EOF\n")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/metrics", address)


@pytest.mark.realtime
async def test_an_asked_port_that_is_taken_is_an_error_that_names_it(taken: int) -> None:
    with pytest.raises(PortTaken, match=str(taken)) as caught:
        async with make().serving("127.0.0.1", taken):
            pass
    assert len(caught.value.problems) == 1


@pytest.mark.realtime
async def test_without_a_port_the_next_free_one_is_taken_and_told(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "DEFAULT_PORT", taken)
    async with make().serving("127.0.0.1", None) as address:
        assert taken < int(address.split(":")[2].split("/")[0]) < taken + subject.PORTS_TRIED


@pytest.mark.realtime
async def test_an_address_that_is_not_ours_is_an_error_without_a_traceback() -> None:
    with pytest.raises(PortTaken, match=r"cannot listen on 192\.0\.2\.1"):
        async with make().serving("192.0.2.1", 0):
            pass


def test_the_last_snapshot_is_what_a_scrape_would_have_seen(tmp_path: Path) -> None:
    exporter = make()
    exporter.take(started())
    assert "loadbench_sessions_started_total 1.0\n" in exporter.text()
