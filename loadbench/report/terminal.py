"""The end of a run in a terminal: the verdict first, then where everybody went, then the numbers."""

from collections.abc import Sequence
from typing import Any, Final

from loadbench.analysis.response import METRICS
from loadbench.report import accuracy, viewer
from loadbench.report.shown import percent, value
from loadbench.report.visible import visible

SHOWN: Final = ("p50", "p95", "p99", "max")
TESTER: Final = (
    *(("lateness p95", "lateness_p95_ms"), ("p99", "lateness_p99_ms")),
    *(("loop gap p99", "loop_gap_p99_ms"), ("max", "loop_gap_max_ms")),
)
MOST_CAUSES: Final = 6
NOT_SHOWN: Final = "not shown by this system"


def render(summary: dict[str, Any], scores: dict[str, Any]) -> str:
    """A compact text without colours. Latency that the tester cannot vouch for stands in brackets, with the reason."""
    blocks = (
        _verdict(summary),
        _sessions(summary),
        _response(summary),
        _media(summary),
        _lag(summary),
        viewer.lines(summary, usable=summary["verdict"]["state"] != "INVALID"),
        _stages(summary),
        _objectives(summary),
        _accuracy(scores),
        _composites(scores),
        _readings(summary.get("readings")),
        [f"warning  {visible(text)}" for text in _warnings(summary)],
    )
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _verdict(summary: dict[str, Any]) -> list[str]:
    verdict = summary["verdict"]
    figures = ", ".join(f"{name} {_ms(verdict['figures'].get(key))}" for name, key in TESTER)
    lines = [f"tester   {verdict['state']}   {figures}"]
    lines += [f"         {reason}" for reason in verdict["reasons"]]
    lines += _canary(summary.get("canary"))
    lines += _target(summary["run"].get("effective") or {})
    if summary["damage"]:
        lines.append("bundle   DAMAGED: some files are not as they were written; the numbers may miss sessions")
        lines += [f"         {visible(text)}" for text in summary["damage"]]
    if summary["run"].get("why"):
        lines.append(f"ended    {visible(summary['run']['reason'])}: {visible(summary['run']['why'])}")
    if not summary["complete"]:
        lines.append("bundle   INCOMPLETE: the run did not come to its end; this is what was written until then")
    return lines


def _target(effective: dict[str, Any]) -> list[str]:
    """What lies between us and the service that a reader must know of."""
    lines = []
    if effective.get("tls_verify") is False:
        lines.append(
            "target   NOT VERIFIED: certificates were not checked, so it may have been anybody (target.tls.verify)"
        )
    if effective.get("proxy", "off") != "off":
        lines.append(f"target   through the proxy {visible(str(effective['proxy']))}, whose time is in every number")
    return lines


def _canary(found: dict[str, Any] | None) -> list[str]:
    """What the tester itself can have added to a response time; its own share, so it stands also beside INVALID."""
    if found is None:
        return []
    if not found["n"]:
        return ["         own share not known: no canary session came to its end"]
    failed = f", {found['failed']} failed" if found["failed"] else ""
    parts = ", ".join(f"{name} p95 {_at_most(found[name]['p95'])}" for name in ("first", "final"))
    return [f"         own share at most: {parts} (n = {found['n']} canary sessions{failed})"]


def _at_most(found: dict[str, Any]) -> str:
    if found["value_s"] is None:
        return "no bound" if found["bound"] == "never" else "n/a"
    return f"{found['value_s'] * 1000:.1f} ms{'' if found['reliable'] else '~'}"


def _sessions(summary: dict[str, Any]) -> list[str]:
    counts = summary["sessions"]
    parts = [f"{name} {counts[name]}" for name in ("finished", "failed", "cut")]
    if counts["in_flight"]:
        parts.append(f"in flight {counts['in_flight']}")
    share = counts["completed_share"]
    lines = [f"started {counts['started']} = {' + '.join(parts)}   completed {percent(share)}"]
    others = {name: part["started"] for name, part in summary["windows"].items() if name != "measure"}
    if any(others.values()):
        measured = counts["started"] - sum(others.values())
        rest = ", ".join(f"{count} in {name}" for name, count in others.items())
        lines.append(f"  measured {measured}: causes, times and SLO are of these; not measured {rest}")
    for outcome, cause in sorted(summary["causes"].items(), key=lambda item: -item[1]["n"])[:MOST_CAUSES]:
        example = f"   {visible(cause['examples'][0])}" if cause["examples"] else ""
        lines.append(f"  {cause['n']:>5} {outcome} ({cause['side']}){example}")
    return lines


def _response(summary: dict[str, Any]) -> list[str]:
    usable = summary["verdict"]["state"] != "INVALID"
    rows: list[Sequence[str]] = []
    for channel, metrics in summary["response"].items():
        rows.append((channel, "n", "answered", *SHOWN))
        for metric in METRICS:
            found = metrics.get(metric)
            if found and found["started"]["p50"]["n"]:
                rows += _populations(metric, found, usable)
    if not any(row[0].startswith(" ") for row in rows):
        return ["response times: no data"]
    headline = summary["headline"]
    head = f"response times, seconds   headline {headline['metric']}: {headline['from']} to {headline['to']}"
    lines = [head] if usable else [head, "in brackets: NOT USABLE, the tester itself was late or failed"]
    lines += _table(rows)
    return (
        [*lines, "~ too few samples for a sure value"]
        if any("~" in cell for row in rows for cell in row[1:])
        else lines
    )


def _media(summary: dict[str, Any]) -> list[str]:
    """A line a channel of sound or pictures: how much, how fast, how smooth."""
    lines = []
    for name, part in summary["media"].items():
        if not part["n"]:
            continue
        length = "length n/a" if part["media_s"] is None else f"{part['media_s']:.1f} s of media"
        rate = (
            ""
            if part["fps"] is None
            else f", {part['fps']['p50']:.1f} pictures/s (p50; least {part['fps']['min']:.1f})"
        )
        lines.append(f"media    {visible(name)}: {part['n']} utterances, {length}, {part['bytes']} bytes{rate}")
        gaps = part["gaps"]
        longest = "" if gaps["longest_s"] is None else f", the longest {gaps['longest_s']:.3f} s"
        lines.append(
            f"         gaps in {gaps['utterances']} of {part['opened']}: {gaps['n']}{longest}; nothing to hear or"
            f" see in {part['silent']}; broken pieces {part['broken']}"
        )
    return lines


def _lag(summary: dict[str, Any]) -> list[str]:
    """A line a channel whose text came bit by bit: how far behind its source it was."""
    usable, lines = summary["verdict"]["state"] != "INVALID", []
    for name, part in summary["lag"].items():
        if not part["n"] or part["burst"]["share"] == 1:
            continue
        parts = [f"LAAL {_mid(part['metrics']['laal']['ca'], usable)}"]
        if part["words"]["matched"]:
            parts.append(f"words stable after {_mid(part['words']['stable'], usable)}")
        if part["long"]["metrics"]:
            parts.append(f"StreamLAAL {_mid(part['long']['metrics']['stream_laal']['ca'], usable)}")
        if part["slope"]["falling_behind"] and usable:
            slope = part["slope"]
            parts.append(
                f"FALLING BEHIND by {slope['value']:.3f} s a second ({slope['low']:.3f} to {slope['high']:.3f})"
            )
        left = sum(part["excluded"].values())
        lines.append(
            f"lag      {visible(name)}: {', '.join(parts)}; {percent(part['burst']['share'])} of units came at the end"
            f" (n = {part['n']}{f', not counted {left}' if left else ''})"
        )
    return lines


def _mid(found: dict[str, Any], usable: bool) -> str:
    return f"{value(found['p50'], usable)} s (p50; p95 {value(found['p95'], usable)})"


def _stages(summary: dict[str, Any]) -> list[str]:
    """A line a stage, where there are several: its level, its time, and the headline of all that were started."""
    headline, usable = summary["headline"], summary["verdict"]["state"] != "INVALID"
    rows: list[Sequence[str]] = [("stage", "level", "from s", "to s", "started", "completed", "p50", "p95")]
    for name, part in sorted(summary["stages"].items(), key=lambda item: float(item[1]["from_s"])):
        found = part["response"].get(headline["channel"], {}).get(headline["metric"])
        times = ["n/a", "n/a"] if found is None else [value(found["started"][stat], usable) for stat in ("p50", "p95")]
        counts, plan = part["sessions"], part["plan"] or {}
        level = "-" if plan.get("level") is None else f"{plan['level']:g}"
        span = f"{part['from_s']:.1f}", f"{part['to_s']:.1f}"
        rows.append((name, level, *span, str(counts["started"]), percent(counts["completed_share"]), *times))
    return _table(rows) if len(rows) > 2 else []  # one stage is the run itself


def _populations(metric: str, found: dict[str, Any], usable: bool) -> list[Sequence[str]]:
    at_risk = found["started"]["p50"]["n"]
    share = percent(found["n"] / at_risk)
    name = f"  {metric}" + (" (estimated)" if found.get("estimated") else "")
    rows = [(name, str(found["n"]), share, *(value(found["finished"][name], usable) for name in SHOWN))]
    if found["n"] != at_risk:
        rows.append(
            ("    of all started", str(at_risk), "", *(value(found["started"][name], usable) for name in SHOWN))
        )
    return list(rows)


def _objectives(summary: dict[str, Any]) -> list[str]:
    usable = summary["verdict"]["state"] != "INVALID"
    lines = []
    for result in summary["slo"]:
        judged = usable or result["name"].split(".")[0] not in METRICS
        mark = ("met    " if result["met"] else "NOT MET") if judged else "unknown"
        why = (result["why"] if judged else "the tester itself was late or failed").removeprefix("not met: ")
        value = _asked(result) if judged else "n/a"
        lines.append(
            f"SLO      {mark}  {result['name']}  {value}  (limit {result['limit']:g})" + (f"  {why}" if why else "")
        )
    return lines


def _asked(result: dict[str, Any]) -> str:
    if result["value"] is None:
        return "never" if result["bound"] == "never" else "n/a"
    return f"{'at least ' if result['bound'] == 'at_least' else ''}{result['value']:.4g}"


def _accuracy(scores: dict[str, Any]) -> list[str]:
    lines = []
    for name, part in scores["channels"].items():
        errors, completed = part["wer"]["errors"], part["wer"]["completed"]
        lines.append(f"{name}   {part['signature']}")
        lines.append(
            f"  S {errors['s']}  D {errors['d']}  I {errors['i']}  of N {errors['n']};  completed {part['complete']} of"
            f" {part['n']}, over these {percent(completed['value'])}"
        )
        lines += [f"  {line}" for line in _overlaps(part)]
        points = part["points"]
        if points and points["value"] is not None:
            lines.append(
                f"  {points['value']:.2f} points by {points['clause']}, {points['column']}, {points['aggregation']}"
            )
    return lines


def _overlaps(part: dict[str, Any]) -> list[str]:
    """A line for each figure of a translation, with its signature and its value over the completed ones."""
    lines = []
    for name, form in (("bleu", ".2f"), ("chrf", ".2f"), ("rouge_l", ".3f")):
        found = part[name]
        if found:
            over = "n/a" if found["completed"]["value"] is None else f"{found['completed']['value']:{form}}"
            lines.append(f"{found['signature']};  over completed {over}")
    if part["bleu"]:
        by_order = part["bleu"]["by_order"].items()
        lines.insert(
            1, "bleu by order  " + ", ".join(f"{n}: {value:.2f}" for n, value in by_order if value is not None)
        )
    return lines


def _composites(scores: dict[str, Any]) -> list[str]:
    """Steps and composite by entered tables; each line with a score says under whose name."""
    lines = []
    for part, direction, made in accuracy.assessments(scores):
        under, whole = visible(part["under"]), made["composite"]
        value = "none" if whole["value"] is None else f"{whole['value']:.2f}"
        lines.append(f"composite, {direction}: {value}   [{under}]")
        for step in made["steps"]:
            share = "" if step["weight"] is None else f" × {step['weight']:g}"
            told = visible(f"Table {step['table']} {step['title']}: {step['rule']}; {accuracy.basis(step)}")
            lines.append(f"  {step['points']:.2f}{share}   {told}   [{under}]")
        lines += [f"  missing: {visible(text)}" for text in whole["missing"]]
        if part["unused_ratings"]:
            lines.append(f"  ratings of clips that were not run: {visible(', '.join(part['unused_ratings']))}")
    return lines


def _readings(found: dict[str, Any] | None) -> list[str]:
    """What the process under test took, and how the machine fared."""
    if found is None:
        return []
    target, machine, lines = found["target"], found["machine"], []
    if target is not None:
        lines.append(
            f"target   memory at most {_shown(target['rss_max_bytes'], 1e-6, 'MB')}, CPU (1 is one core)"
            f" mean {_shown(target['cpu_mean_share'], 1, form='.2f')},"
            f" most {_shown(target['cpu_max_share'], 1, form='.2f')},"
            f" threads {_shown(target['threads_max'], 1)}, open files {_shown(target['files_max'], 1)}"
        )
    hottest, battery = machine["hottest"], machine["battery"]
    warmth = NOT_SHOWN if hottest is None else f"{hottest['c']:.1f} °C ({visible(hottest['sensor'])})"
    charge = NOT_SHOWN if battery is None else f"{percent(battery['from_share'])} to {percent(battery['to_share'])}"
    lines.append(
        f"machine  hottest {warmth}, lowest frequency {_shown(machine['lowest_mhz'], 1, 'MHz')}, throttled"
        f" {_shown(machine['throttled_s'], 1, 's', '.1f')}, battery {charge}"
    )
    return lines


def _shown(value: float | None, factor: float, unit: str = "", form: str = ".0f") -> str:
    return NOT_SHOWN if value is None else f"{value * factor:{form}} {unit}".rstrip()


def _warnings(summary: dict[str, Any]) -> list[str]:
    # The survivors' warning tells percentiles, which a late tester does not know.
    survivors = summary["survivor_warning"] if summary["verdict"]["state"] != "INVALID" else None
    found: list[str] = [survivors] if survivors else []
    found += [f"{text} ({count})" for text, count in summary["warnings"].items()]
    found += [
        f"{count} premature on {name}: output before its source"
        for name, count in summary["premature"].items()
        if count
    ]
    return [*found, *(text for text in summary["problems"] if text not in summary["damage"])]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1f} ms"
