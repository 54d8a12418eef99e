"""What a viewer got, who was served how, where the time went: tables and bars of a page, lines of a terminal.

A cell is a text, or a percentile as in the summary.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from loadbench.analysis.attribution import PARTS
from loadbench.report import charts
from loadbench.report.shown import percent, value
from loadbench.report.visible import visible
from loadbench.report.words import Words

Cell = str | dict[str, Any]
TOLD: Final = 0.005  # a part below half a percent is in the summary only
PER_MILLION: Final = 1_000_000


def sections(summary: Mapping[str, Any], w: Words) -> dict[str, Any]:
    """All that the page shows of it: `attribution`, `fairness`, `groups`, `viewing`, `spoken` and `presets`."""
    return {
        "attribution": list(_attribution(summary, w)),
        "fairness": summary["fairness"] if summary["fairness"]["sessions"]["p50"]["n"] else None,
        "groups": [_group(summary, name) for name in ("languages", "workers") if len(summary[name]) > 1],
        "viewing": [
            (channel, list(_figures(found, w)))
            for channel, found in sorted(summary["viewing"]["texts"].items())
            if found["n"]
        ],
        "spoken": [item for item in sorted(summary["viewing"]["spoken"].items()) if item[1]["n"]],
        "presets": [_standing(row, w) for row in summary["viewing"]["presets"]],
    }


def lines(summary: Mapping[str, Any], *, usable: bool) -> list[str]:
    """For a terminal: the spread, the parts of the headline, and a line for each channel of texts."""
    return [*_spread(summary["fairness"], usable), *_where(summary, usable), *_seen(summary["viewing"], usable)]


def _attribution(summary: Mapping[str, Any], w: Words) -> Iterator[dict[str, Any]]:
    for channel, metrics in sorted(summary["attribution"].items()):
        for metric, found in metrics.items():
            if not found["n"]:
                continue
            stages = sorted(found["stages"].items())
            yield {
                "channel": channel,
                "metric": metric,
                **{key: found[key] for key in ("from", "to", "n", "early", "unanswered", "p50_s")},
                "bar": _bar(found, w, metric),
                "parts": [(part, found["parts"][part]) for part in PARTS if found["parts"][part]["n"]],
                "stages": [(name, part, _bar(part, w, name)) for name, part in stages if part["n"] and len(stages) > 1],
            }


def _bar(found: Mapping[str, Any], w: Words, title: str) -> Markup:
    pieces = []
    for part in PARTS:
        share = found["parts"][part]["share"]
        if share:
            pieces.append((f"part-{part}", round(share * PER_MILLION), f"{w[f'part.{part}']}: {share * 100:.1f} %"))
    return charts.shares(pieces, title=title)


def _group(summary: Mapping[str, Any], name: str) -> tuple[str, list[tuple[str, int, Any]]]:
    """Each member with how many utterances it had, and the headline over all that were started; None: no data."""
    head = summary["headline"]
    found = [
        (member, part["n"], part["response"].get(head["channel"], {}).get(head["metric"], {}).get("started"))
        for member, part in sorted(summary[name].items())
    ]
    return name, found


def _figures(found: Mapping[str, Any], w: Words) -> Iterator[tuple[str, list[tuple[str, Cell]]]]:
    """Rows of figures; each figure has a name of its own."""
    text, reader, gaps, blank = found["lines"], found["reader"], found["gaps"], found["blank"]
    readable, quick = text["readable"], text["too_fast"]
    yield w["viewing.readable"], [("min", readable["min"]), ("p10", readable["p10"]), ("p50", readable["p50"])]
    yield w["viewing.open"], [("", f"{text['open']} / {text['n']}")]
    yield w["viewing.speed"], [(stat, _number(speed)) for stat, speed in text["characters_per_s"].items()]
    limit = w["viewing.no_limit"] if quick is None else f"{quick['n']} / {quick['of']}"
    yield w["viewing.too_fast"], [("", limit)]
    if reader is not None:
        yield w["viewing.through"], list(reader["through"].items())
        yield w["viewing.unread"], [("", percent(reader["unread_share"]))]
    yield w["viewing.pace"], [("", _number(found["characters_per_media_s"]))]
    yield w["viewing.changes"], [("", _number(found["changes"]["per_media_min"]))]
    yield w["viewing.gap"], list(gaps["longest"].items())
    if gaps["too_long"] is not None:
        yield w["viewing.long_gaps"], [("", f"{gaps['too_long']['n']} ({gaps['too_long']['excess_s']:.3f} s)")]
    yield w["viewing.blank"], [("", percent(blank["share"]))]
    yield w["viewing.active_blank"], [("", percent(blank["active_share"]))]


def _standing(row: Mapping[str, Any], w: Words) -> dict[str, Any]:
    """A published figure, with its limit as text and the words for how a run stands against it."""
    unit = row["unit"]
    limit = next(
        f"{sign}{row[key]:g} {unit}"
        for key, sign in (("at_most", "≤ "), ("at_least", "≥ "), ("compare", ""))
        if key in row
    )
    shown = "" if row["value"] is None else f"{'≥ ' if row['bound'] == 'at_least' else ''}{row['value']:.3f} {unit}"
    if row["figure"] is None:
        word = "unmeasured"
    elif row["within"] is None:
        word = "open" if shown or row["bound"] == "never" else "no_data"
    else:
        word = "within" if row["within"] else "beyond"
    shown = w["never"] if row["bound"] == "never" else shown or "-"
    return {**row, "limit": limit, "shown": shown, "standing": w[f"presets.{word}"]}


def _spread(found: Mapping[str, Any], usable: bool) -> list[str]:
    sessions, worst = found["sessions"], found["worst"]
    if worst is None:
        return []
    low, high = (value(sessions[stat], usable) for stat in ("p10", "p90"))
    ratio = "n/a" if found["ratio"] is None else f"{found['ratio']:.2f}" if usable else f"({found['ratio']:.2f})"
    where = f", most of it {worst['largest_part']}" if worst["largest_part"] and usable else ""
    time = "never answered" if worst["value_s"] is None else f"{_plain(worst['value_s'], usable)} s{where}"
    cause = f": {visible(worst['cause'])}" if worst["cause"] else ""
    return [
        f"spread   sessions' medians p10 {low}, p90 {high}, ratio {ratio};"
        f" worst {visible(worst['id'])}: {time} ({worst['outcome']}{cause})"
    ]


def _where(summary: Mapping[str, Any], usable: bool) -> list[str]:
    head = summary["headline"]
    found = summary["attribution"].get(head["channel"], {}).get(head["metric"])
    if not usable or not found or not found["n"]:
        return []
    shares = sorted(((found["parts"][part]["share"] or 0.0, part) for part in PARTS), key=lambda item: -item[0])
    told = ", ".join(f"{part} {share * 100:.0f} %" for share, part in shares if share >= TOLD)
    return [f"where    {head['metric']}: {told} (of {found['n']} answered)"] if told else []


def _seen(viewing: Mapping[str, Any], usable: bool) -> Iterator[str]:
    for channel, found in sorted(viewing["texts"].items()):
        text, blank = found["lines"], found["blank"]["share"]
        if not found["n"] or not text["n"] or blank is None:
            continue
        quick = text["too_fast"]
        left = f"({text['open']} of {text['n']} still there at the end)"
        limit = "" if quick is None else f", {quick['n']} of {quick['of']} too fast"
        share = f"{blank * 100:.1f} %" if usable else f"({blank * 100:.1f} %)"
        yield (
            f"viewer   {visible(channel)}: lines readable p10 {value(text['readable']['p10'], usable)},"
            f" p50 {value(text['readable']['p50'], usable)} {left}{limit}; longest gap"
            f" p95 {value(found['gaps']['longest']['p95'], usable)}; blank {share}; changes a media minute"
            f" {_number(found['changes']['per_media_min'])}"
        )


def _plain(value: float, usable: bool) -> str:
    return f"{value:.3f}" if usable else f"({value:.3f})"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"
