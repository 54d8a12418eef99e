"""The report as one HTML file that needs nothing from anywhere: no script, no font, no picture from outside.

The page's policy allows one style sheet, by its hash, and nothing else; every text is escaped by the template.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

import jinja2
from markupsafe import Markup

from loadbench.analysis.lag import METRICS as METRICS_OF_LAG
from loadbench.analysis.response import METRICS, responses
from loadbench.report import accuracy, charts, gather, viewer
from loadbench.report.charts import Curve, Dot, Line, Mark
from loadbench.report.visible import visible
from loadbench.report.words import Words, words
from loadbench.results.bundle import Bundle
from loadbench.results.media import MediaOutput
from loadbench.results.outcome import OUTCOMES
from loadbench.results.record import Channel, ChunkTimes, SessionRecord, Utterance
from loadbench.results.run import RunHeader
from loadbench.scoring.outputs import Row

STATS: Final = ("p50", "p90", "p95", "p99", "max")
LAG_STATS: Final = ("p50", "p95", "max")
LAG_DEFINITIONS: Final = (*METRICS_OF_LAG, "stream_laal", "long", "words", "slope", "degeneracy")
CANARY_STATS: Final = ("p50", "p95", "p99", "max")
MOST_DOTS: Final = 600
MOST_CHARACTERS: Final = 400
LANE_CHARACTERS: Final = 14
LATENESS_FIGURES: Final = (
    *("lateness_p50_ms", "lateness_p95_ms", "lateness_p99_ms", "chunk_max_ms", "start_lateness_p99_ms"),
    *("loop_gap_p99_ms", "loop_gap_max_ms", "gc_max_ms", "tainted_share", "run_delay_share", "cpu_share", "blocked_s"),
)


def render(
    bundle: Bundle, summary: dict[str, Any], scores: dict[str, Any], rows: Sequence[Row], lang: str = "en"
) -> str:
    """The page, in `lang` (en, zh). The same text for the same bundle."""
    spoken = words(lang)
    style = _file("page.css")
    return _template().render(
        w=spoken,
        style=Markup(style),  # noqa: S704 - our own file
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        summary=summary,
        verdict=summary["verdict"],
        usable=summary["verdict"]["state"] != "INVALID",
        stats=STATS,
        metrics=METRICS,
        outcomes=OUTCOMES,
        lateness_figures=LATENESS_FIGURES,
        canary_stats=CANARY_STATS,
        lag_stats=LAG_STATS,
        lag_definitions=LAG_DEFINITIONS,
        figures=_figures(bundle, summary, spoken),
        channels=_channels(scores, rows),
        assessments=accuracy.assessments(scores),
        basis=accuracy.basis,
        stages=sorted(summary["stages"].items(), key=lambda item: float(item[1]["from_s"])),
        played=list(_media(summary["media"])),
        lagged=[_lag(name, part, spoken) for name, part in summary["lag"].items() if part["n"]],
        viewer=viewer.sections(summary, spoken),
        sessions=list(_sessions(bundle, spoken)),
        facts=_facts(bundle.header, summary["run"]["engine"]),
        plan=_lines(json.dumps(bundle.header.plan, indent=2, ensure_ascii=False, sort_keys=True)),
    )


def _figures(bundle: Bundle, summary: dict[str, Any], w: Words) -> dict[str, Any]:
    zero = gather.zero_ns(bundle)
    points = gather.points(bundle)
    seconds = gather.seconds(bundle, zero)
    shown = points[:: max(1, -(-len(points) // MOST_DOTS))]
    counts = summary["sessions"]
    return {
        "shares": charts.shares(
            [(kind, counts[kind], f"{w[kind]}: {counts[kind]}") for kind in ("finished", "failed", "cut", "in_flight")],
            title=w["sessions"],
        ),
        "first": _distribution(points, "first", gather.first(bundle.header), bundle.header, w),
        "final": _distribution(points, "final", bundle.header.headline_metric, bundle.header, w),
        "over_time": _over_time(shown, zero, w, usable=summary["verdict"]["state"] != "INVALID"),
        "drawn": (len(shown), len(points)),
        "users": charts.levels(
            [
                ("target", [(second.at_s, second.target) for second in seconds]),
                ("active", [(second.at_s, second.active) for second in seconds]),
            ],
            [],
            title=w["users.title"],
            unit="",
            height=130,
        ),
        "lateness": _lateness(seconds, bundle.header, w),
    }


def _distribution(points: Sequence[gather.Point], which: str, metric: str, header: RunHeader, w: Words) -> Markup:
    seen = [(point, getattr(point, which)) for point in points]
    at_risk = [(point, one) for point, one in seen if one.kind != "left_out"]
    exact = [(point, one.span_ns / 1e9) for point, one in at_risk if one.kind == "exact" and one.span_ns is not None]
    finished = sorted(value for point, value in exact if point.finished)
    every = sorted(value for _, value in exact)
    limits = [
        Line(slo.limit, "limit", f"SLO {slo.stat} {slo.limit:g} s")
        for slo in header.slo
        if slo.metric == metric and (slo.channel or header.headline_channel) == header.headline_channel
    ]
    name = w[f"distribution.{which}"].format(metric=metric)
    curves = [Curve("", f"{which} started", every, len(at_risk)), Curve("", which, finished, len(finished))]
    return charts.distribution(curves, limits if exact else [], title=name)


def _over_time(points: Sequence[gather.Point], zero: int, w: Words, *, usable: bool) -> Markup:
    dots, lost = [], []
    for point in points:
        begun_s = (point.begun_ns - zero) / 1e9
        for which, one in (("first", point.first), ("final", point.final)):
            if one.kind == "exact" and one.span_ns is not None:
                label = f"{point.session}: {which}" + (f" {one.span_ns / 1e9:.3f} s" if usable else "")
                dots.append(Dot(begun_s, one.span_ns / 1e9, f"dot {which}", label))
        if not point.finished:
            label = f"{point.session}: {point.outcome}"
            lost.append(Dot(begun_s, 0.0, f"cross {OUTCOMES[point.outcome][0]}", label))
    return charts.over_time(dots, lost, title=w["over_time.title"])


def _lateness(seconds: Sequence[gather.Second], header: RunHeader, w: Words) -> Markup:
    late = [(second.at_s, second.lateness_ms) for second in seconds]
    limits = header.thresholds
    return charts.levels(
        [
            ("gap", [(second.at_s, second.gap_ms) for second in seconds]),
            ("late", [(at, value) for at, value in late if value is not None]),
        ],
        [
            Line(limits.degraded_lateness_p99_ms, "degraded", f"DEGRADED {limits.degraded_lateness_p99_ms:g} ms"),
            Line(limits.invalid_lateness_p99_ms, "invalid", f"INVALID {limits.invalid_lateness_p99_ms:g} ms"),
        ],
        title=w["lateness.title"],
        unit="ms",
        log=True,
    )


def _channels(scores: dict[str, Any], rows: Sequence[Row]) -> list[dict[str, Any]]:
    examples = accuracy.examples(rows)
    found = []
    for name, part in scores["channels"].items():
        clips = [
            {"id": clip, **facts, "pairs": accuracy.aligned(example) if example else [], "example": example}
            for clip, facts in list(part["clips"].items())[: accuracy.MOST_CLIPS]
            for example in [examples.get((part["channel"], clip))]
        ]
        left_out = len(part["clips"]) - len(clips)
        found.append({"name": name, **part, "steps": accuracy.steps(part), "shown": clips, "more": left_out})
    return found


def _lag(name: str, part: dict[str, Any], w: Words) -> dict[str, Any]:
    """The lag of one channel: its numbers by name, and the sentences beside them."""
    rows = [*part["metrics"].items(), *part["long"]["metrics"].items()]
    left = ", ".join(f"{reason} {count}" for reason, count in sorted(part["excluded"].items()))
    units = ", ".join(f"{unit} {count}" for unit, count in sorted(part["units"].items()))
    words, burst, slope = part["words"], part["burst"], part["slope"]
    said = [w["lag.counted"].format(n=part["n"], units=units, left=left or w["lag.none_left"])]
    if part["without_reference"]:
        said.append(w["lag.without_reference"].format(n=part["without_reference"]))
    if words["matched"]:
        said.append(w["lag.matched"].format(**words))
    if part["long"]["recordings"]:
        said.append(w["lag.long"].format(n=part["long"]["recordings"], **part["long"]["empty"]))
    said.append(w["lag.burst"].format(share=_percent(burst["share"]), within=burst["within_s"], n=burst["utterances"]))
    return {
        "name": name,
        "rows": rows,
        "words": [(state, words[state]) for state in ("shown", "stable", "final") if words[state]["n"]],
        "said": said,
        "slope": slope if slope["value"] is not None else None,
        "degenerate": part["degeneracy"] if part["degeneracy"]["suspicious"] else None,
    }


def _media(found: dict[str, Any]) -> Iterator[list[str]]:
    """A row for each channel of sound or pictures that had any."""
    for name, part in sorted(found.items()):
        if part["n"]:
            gaps, rate = part["gaps"], part["fps"]
            yield [
                *(name, str(part["n"]), str(part["bytes"]), _seconds(part["media_s"])),
                "-" if rate is None else f"{rate['p50']:.1f} ({rate['min']:.1f})",
                *(str(gaps["n"]), f"{gaps['utterances']} / {part['opened']}"),
                *(_seconds(gaps["longest_s"]), _seconds(gaps["starved_s"])),
                *(str(part["silent"]), str(part["broken"])),
            ]


def _sessions(bundle: Bundle, w: Words) -> Iterator[dict[str, Any]]:
    records = gather.timelines(bundle)
    chunks = gather.chunk_times(bundle, {record.id for record in records})
    for record in records:
        yield {
            "id": record.id,
            "outcome": record.outcome,
            "side": record.side,
            "cause": record.cause,
            "tainted": record.tainted,
            "utterances": [
                _utterance(bundle.header, record, utterance, chunks.get((record.id, utterance.index)), w)
                for utterance in record.utterances
            ],
        }


def _utterance(
    header: RunHeader, record: SessionRecord, utterance: Utterance, times: ChunkTimes | None, w: Words
) -> dict[str, Any]:
    channel = utterance.channels.get(header.headline_channel)
    seen = {} if channel is None else responses(utterance, record, channel)
    return {
        "clip": utterance.clip,
        "first": _span(seen.get(gather.first(header))),
        "final": _span(seen.get(header.headline_metric)),
        "timeline": _timeline(record, utterance, times, w),
        "said": {name: channel.text for name, channel in utterance.channels.items()},
    }


def _timeline(record: SessionRecord, utterance: Utterance, times: ChunkTimes | None, w: Words) -> Markup:
    zero = utterance.media_zero_ns
    if zero is None:
        return Markup("")
    rows = []
    if times is not None:
        rows.append(charts.Row(w["lane.chunks"], [Mark(at_s, "tick chunk") for at_s in gather.sent_s(times)]))
    rows += [
        charts.Row(name[:LANE_CHARACTERS], list(_updates(channel, zero)))
        for name, channel in sorted(utterance.channels.items())
    ]
    if not rows:
        return Markup("")
    lines = [Line(utterance.media_ns / 1e9, "source", w["source_end"])]
    if utterance.done_ns is not None:
        lines.append(Line((utterance.done_ns - zero) / 1e9, "done", ""))
    last_s = max((record.ended_ns - zero) / 1e9, utterance.media_ns / 1e9)
    return charts.timeline(rows, lines, last_s, title=f"{record.id} {utterance.clip}")


def _updates(channel: Channel, zero: int) -> Iterator[Mark]:
    """Partials as ticks; a final, which settles text, as a dot that says it. Of media, the beginnings of its gaps."""
    if channel.media is not None:
        yield from _played(channel.media, zero)
    shown, settled = "", 0
    for update in channel.updates:
        shown = shown[: update.keep] + update.add
        at_s = (update.at_ns - zero) / 1e9
        if update.settled > settled:
            yield Mark(at_s, "dot final", f"{at_s:.3f} s: {visible(shown[settled : update.settled])[:MOST_CHARACTERS]}")
        else:
            yield Mark(at_s, "tick partial")
        settled = update.settled


def _played(media: MediaOutput, zero: int) -> Iterator[Mark]:
    """What was first heard or seen, and each gap, as a tick; the end of the playback as a dot."""
    for at_ns in (media.first_ns, *(at_ns for at_ns, _ in media.gaps)):
        if at_ns is not None:
            yield Mark((at_ns - zero) / 1e9, "tick partial")
    if media.playback_end_ns is not None:
        at_s = (media.playback_end_ns - zero) / 1e9
        yield Mark(at_s, "dot final", f"{at_s:.3f} s")


def _facts(header: RunHeader, engine: dict[str, Any] | None) -> dict[str, dict[str, str]]:
    """What a reader needs to repeat the run, flat."""
    groups = {
        "effective": header.effective,
        "versions": header.versions,
        "machine": header.machine,
        "engine": engine or {},
    }
    found = {name: dict(_flat(group)) for name, group in groups.items()}
    return found | {"corpus": dict(_flat(header.corpus)), "seed": {"seed": str(header.seed)}}


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, item in sorted(value.items()):
        if isinstance(item, Mapping):
            yield from _flat(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", "-" if item is None else str(item)


def _lines(text: str) -> Markup:
    """Text that keeps its line ends; all other steering characters are shown."""
    return Markup("\n").join(visible(line) for line in text.split("\n"))


def _seconds(value_s: float | None, bound: str = "exact") -> str:
    """Seconds as text, and whether they are at least that."""
    return "n/a" if value_s is None else f"{'≥ ' if bound == 'at_least' else ''}{value_s:.3f}"


def _milliseconds(value_s: float | None, bound: str = "exact") -> str:
    """Seconds as milliseconds."""
    return "n/a" if value_s is None else f"{'≥ ' if bound == 'at_least' else ''}{value_s * 1000:.1f}"


def _span(span_ns: int | None) -> str:
    """What was measured of one utterance, as text; also of one that failed later."""
    return "-" if span_ns is None else f"{span_ns / 1e9:.3f} s"


def _points(value: float | None, places: int = 2) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share * 100:.1f} %"


def _figure(value: float | None, name: str) -> str:
    """A figure with the unit that its name ends in."""
    if value is None:
        return "n/a"
    if name.endswith("_share"):
        return _percent(value)
    return f"{value:.3f} s" if name.endswith("_s") else f"{value:.2f} ms"


def _level(value: float | None, form: str, factor: float = 1.0) -> str:
    """A reading; "" for what the system did not show."""
    return "" if value is None else form % (value * factor)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # No text may steer the page's direction or hide in it, so every text goes through here on its way out.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {
        "seconds": _seconds,
        "milliseconds": _milliseconds,
        "percent": _percent,
        "points": _points,
        "figure": _figure,
        "level": _level,
    }
    return environment.get_template("page.html.j2")


@cache
def _file(name: str) -> str:
    return resources.files("loadbench").joinpath(f"data/report/{name}").read_text("utf-8")
