"""Named figures of standards, guidelines and measurements that others published, each with its source and its kind, and
how a run stands against them. A table is data (`data/presets/viewing.json`); what it does not hold has no limit here.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from loadbench.analysis.population import Responses
from loadbench.analysis.response import medium_of
from loadbench.analysis.viewing import Reader, Setting

LAYOUT: Final = "cfr-16x9"  # unless the plan says otherwise


@cache
def table() -> dict[str, Any]:
    """`layouts` and `presets`, by name."""
    text = resources.files("loadbench").joinpath("data/presets/viewing.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def setting(viewing: Mapping[str, Any]) -> Setting:
    """What a plan's `[viewing]` asks for; a name that is no longer known is read as the default layout."""
    named = str(viewing.get("layout"))
    layout = named if named in table()["layouts"] else LAYOUT
    known = table()["layouts"][layout]
    return Setting(
        layout=layout,
        characters=viewing.get("characters") or known["characters"],
        rows=viewing.get("rows") or known["rows"],
        reader=Reader(viewing.get("characters_per_s"), viewing.get("words_per_s")),
        gap_s=viewing.get("gap_s"),
    )


def standing(measured: Responses, media: Mapping[str, Any], mediums: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each published figure beside that of each channel that it is about. `media` is the summary of playbacks.

    `value` is None without data, `bound` as of percentiles (a mean is over finished ones and "exact"). `within` is
    None where there is no value, where it is only for comparison, and for what cannot be measured here (`figure` None).
    Percentiles and maxima are over all that were started.
    """
    return [
        {"preset": name, "source": preset["source"], **row, "channel": channel, **_against(row, found)}
        for name, preset in sorted(table()["presets"].items())
        for row in preset["rows"]
        for channel in measured.channels
        if (medium_of(mediums, channel) or "text") == row["medium"]
        for found in [_value(row, channel, measured, media)]
    ]


def _value(row: Mapping[str, Any], channel: str, measured: Responses, media: Mapping[str, Any]) -> tuple[Any, str]:
    """The value, and its bound."""
    figure, stat = row["figure"], row["stat"]
    if figure is None:
        return None, "exact"
    if figure == "fps":
        rates = (media.get(channel) or {}).get("fps")
        return (rates[stat] if rates else None), "exact"
    population = measured.of(channel, figure)
    if stat == "mean":
        return population.mean_s, "exact"
    found = population.started((stat,))[stat] if population.applies else population.finished((stat,))[stat]
    return found.value_s, found.bound


def _against(row: Mapping[str, Any], found: tuple[Any, str]) -> dict[str, Any]:
    value, bound = found
    return {"value": value, "bound": bound, "within": _within(row, value, bound)}


def _within(row: Mapping[str, Any], value: float | None, bound: str) -> bool | None:
    if "at_most" in row:
        if value is None:
            return False if bound == "never" else None
        over = value > row["at_most"]
        return None if bound == "at_least" and not over else not over
    if "at_least" in row and value is not None:
        return bool(value >= row["at_least"])
    return None
