"""The form in which people enter score tables from their own copy of the standard, and how it is read.

A file is TOML or JSON. It may be incomplete: what is not there stays missing and is named by whoever needs it. What is
there must be whole: bands meet without gap or overlap, points stay within 0 to 100, weights add up to 1.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from loadbench.scoring import tables
from loadbench.scoring.rouge import BETAS, Beta
from loadbench.scoring.tables import STANDARD, Direction, Table, exact

ILLUSTRATIVE: Final = "illustrative"
RATED: Final = (3, 4, 6, 7, 8, 9, 10, 11)  # by people
WEIGHTS: Final = 12
LONGEST: Final = 1024 * 1024
KEPT: Final = "tables.json"  # in a bundle, so that its scores can be made again from it alone
SHIPPED: Final = "data/scoring"


Part = TypeVar("Part", bound="BaseModel")


class TablesError(ValueError):
    """A tables file that cannot be used: every problem, each a sentence."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


class BandEntry(_Strict):
    """Points of the values from `from` up to `below`: `base + (limit - value) * slope`; without slope, `base`."""

    at_least: float | None = Field(None, alias="from", description="lowest value; left out: there is no lowest")
    below: float | None = Field(None, description="where the next band begins; left out: there is no highest")
    base: float = Field(ge=0, le=100)
    limit: float | None = None
    slope: float = 0.0


class TableEntry(_Strict):
    """A table of the standard. Tables 1 to 11 have bands, by direction; Table 12 weights, by direction and table."""

    title: str = ""
    clause: str = Field("", description="the clause in which it stands, as it is cited with every score")
    bands: dict[Direction, list[BandEntry]] = {}
    includes: Literal["from", "below"] = Field("from", description="which end of a band belongs to it")
    given: Literal["value", "points"] = Field(
        "value", description="rated tables: raters give a value for the bands, or the points themselves"
    )
    weights: dict[Direction, dict[str, float]] = {}


class Recognition(_Strict):
    """How Table 1 is used: on the pooled rate, on the mean of the sentences' rates, or as the mean of their points."""

    aggregation: Literal["pooled", "of_mean_rate", "mean_of_points"] = "pooled"


def _beta(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


class Translation(_Strict):
    """How BLEU and ROUGE-L become the value that Table 2 scores. Nothing has a default: no visible text fixes it."""

    bleu_order: Literal[1, 2, 3, 4]
    bleu_smoothing: Literal["none", "exp", "floor", "add-k"]
    rouge_beta: Annotated[Beta, BeforeValidator(_beta), WithJsonSchema({"enum": [1, 1.2, *BETAS]})]
    combine: Literal["mean", "geometric_mean", "harmonic_mean", "min", "max"]
    bleu_weight: float | None = Field(None, ge=0, le=1, description="with combine = mean; ROUGE-L has the rest")
    scale: Literal[1, 100] = Field(description="whether the combined value goes from 0 to 1 or from 0 to 100")


class Response(_Strict):
    """Which response time of the timed run Table 5 scores, and which of its statistics."""

    metric: str
    stat: Literal["p50", "p90", "p95", "p99", "max", "mean"]
    counted: Literal["finished", "started"] = Field(description="of started ones, those that failed are infinite")
    channel: str = Field("", description="left out: the headline channel of the run")
    unit: Literal["s", "ms"]


class Tables(_Strict):
    """A tables file. `name` is the standard's own where the values are; any other name stands beside every score."""

    name: str = Field(min_length=1, max_length=80)
    source: str = Field("", max_length=400, description="where the values are from; shown with the scores")
    recognition: Recognition = Recognition()
    translation: Translation | None = None
    response: Response | None = None
    tables: dict[str, TableEntry] = {}

    @property
    def standard(self) -> bool:
        """Whether it holds the standard's values."""
        return self.name == STANDARD

    @property
    def label(self) -> str:
        """What stands beside every score: the standard's name, or that it is not the standard."""
        return self.name if self.standard else f"{self.name}, not {STANDARD}"

    @property
    def digest(self) -> str:
        """SHA-256 of what it says."""
        return hashlib.sha256(self.encode()).hexdigest()

    def table(self, number: int) -> Table:
        """A table of 1 to 11, perhaps without bands; Table 1 is the standard's, which loadbench has."""
        if number == 1:
            return replace(tables.table(1), clause=f"{self.label}, Table 1")
        known = tables.standard()["tables"][str(number)]
        entered = self.tables[str(number)].model_dump(by_alias=True) if str(number) in self.tables else {}
        cited = {key: entered.get(key) or known[key] for key in ("title", "clause")}
        return tables.made(number, entered | cited, self.label)

    def given(self, number: int) -> str:
        """What raters give for a rated table."""
        return self.tables[str(number)].given if str(number) in self.tables else "value"

    def weights(self, direction: Direction) -> dict[int, float]:
        """The weight of each table that counts in a direction; empty where none were entered."""
        entry = self.tables.get(str(WEIGHTS))
        found = entry.weights.get(direction, {}) if entry else {}
        return {int(number): weight for number, weight in sorted(found.items(), key=lambda item: int(item[0]))}

    def outline(self) -> list[str]:
        """A line for what it is, and one for each table: what it holds in each direction."""
        lines = [f"{self.label}" + (f" ({self.source})" if self.source else "")]
        for number in range(1, WEIGHTS):
            table = self.table(number)
            held = [f"{name}: {len(bands)} bands" for name, bands in sorted(table.bands.items())]
            given = ["points by raters"] if number in RATED and self.given(number) == "points" else []
            lines.append(f"Table {number:<3}{table.title}: {', '.join(given or held) or 'missing'}")
        weights = [f"{name}: {len(found)} weights" for name in get_args(Direction) if (found := self.weights(name))]
        lines.append(f"Table {WEIGHTS:<3}weights of single indicators: {', '.join(weights) or 'missing'}")
        return lines

    def encode(self) -> bytes:
        """As JSON that `read` takes: the same bytes for the same tables."""
        return json.dumps(self.model_dump(by_alias=True), ensure_ascii=False, sort_keys=True).encode()


NONE: Final = Tables(name=STANDARD)  # nothing entered: what loadbench itself holds


def load(name: str, metrics: Sequence[str] = ()) -> Tables:
    """Tables from a file, or the made-up ones by the name `illustrative`. Raises TablesError with all problems."""
    if name == ILLUSTRATIVE:
        return illustrative()
    try:
        with Path(name).open("rb") as file:
            data = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        raise TablesError([f"{name}: {getattr(error, 'strerror', None) or error}"]) from None
    if len(data) > LONGEST:
        raise TablesError([f"{name}: more than {LONGEST} bytes are no score tables"])
    return read(data, name, metrics)


def read(data: bytes, source: str, metrics: Sequence[str] = ()) -> Tables:
    """Tables from the bytes of a file, TOML where its name ends so, else JSON. Raises TablesError with all problems.

    `metrics` are the response times that there are; without them any name is taken.
    """
    try:
        text = data.decode()
        plain = tomllib.loads(text) if source.endswith(".toml") else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TablesError([f"{source}: neither TOML (*.toml) nor JSON: {error}"]) from None
    try:
        found = Tables.model_validate(plain)
        problems = []
    except ValidationError as error:
        found, problems = NONE, [_sentence(item) for item in error.errors()]
    problems += _problems(plain if isinstance(plain, dict) else {}, metrics)
    if problems:
        raise TablesError([f"{source}: {text}" for text in problems])
    return found


@cache
def illustrative() -> Tables:
    """The made-up tables, which show the machinery and say so."""
    return read(_shipped("illustrative.toml"), "illustrative.toml")


def template(name: str = "template.toml") -> str:
    """An empty file to fill in: titles, what is known of clauses, no values; or the made-up one, illustrative.toml."""
    return _shipped(name).decode()


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a tables file."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | Tables.model_json_schema() | {"title": "loadbench score tables"}


def _shipped(name: str) -> bytes:
    return resources.files("loadbench").joinpath(SHIPPED).joinpath(name).read_bytes()


def _sentence(item: Any) -> str:
    place = ".".join(str(part) for part in item["loc"] if part != "[key]") or "the file"
    if item["type"] == "extra_forbidden":
        return f"{place}: there is no such entry"
    if item["type"] == "missing":
        return f"{place} is missing"
    if place.rpartition(".")[0].endswith((".bands", ".weights")) and item["type"] == "literal_error":
        return f"{place}: a direction is {' or '.join(get_args(Direction))}"
    return f"{place}: {item['msg'][0].lower()}{item['msg'][1:]}, not {item['input']!r}"


def _problems(plain: dict[str, Any], metrics: Sequence[str]) -> Iterator[str]:
    """What is wrong with the parts that have the right form, whether or not the others have."""
    entries = plain.get("tables")
    whole = {name: _whole(TableEntry, part) for name, part in (entries if isinstance(entries, dict) else {}).items()}
    known = {name: entry for name, entry in whole.items() if entry is not None}
    yield from _name_problems(str(plain.get("name", "")), known)
    yield from _rule_problems(
        _whole(Translation, plain.get("translation")), _whole(Response, plain.get("response")), metrics
    )
    for number, entry in known.items():
        yield from (f"tables.{number}{text}" for text in _table_problems(number, entry))


def _whole(kind: type[Part], plain: Any) -> Part | None:
    try:
        return kind.model_validate(plain)
    except ValidationError:
        return None


def _name_problems(name: str, entries: Mapping[str, TableEntry]) -> Iterator[str]:
    folded = name.casefold()
    if name != STANDARD and ("cadhoh" in folded or "0004" in folded):
        yield f"name: {name!r} looks like the standard: it must be {STANDARD!r}, or unlike it"
    if name == STANDARD:
        for number, made_up in illustrative().tables.items():
            copied = entries.get(number)
            values = made_up.bands, made_up.weights
            if copied and any(values) and (copied.bands, copied.weights) == values:
                yield f"tables.{number}: these are the made-up values of the illustrative tables, not the standard's"


def _rule_problems(rule: Translation | None, asked: Response | None, metrics: Sequence[str]) -> Iterator[str]:
    if rule and (rule.combine == "mean") != (rule.bleu_weight is not None):
        yield "translation.bleu_weight goes with combine = mean, and has to be there"
    if asked and asked.stat == "mean" and asked.counted == "started":
        yield "response: the mean of started ones is infinite as soon as one failed; take counted = finished"
    if asked and metrics and asked.metric not in metrics:
        yield f"response.metric: there is no response time {asked.metric!r}; there are {', '.join(metrics)}"


def _table_problems(number: str, entry: TableEntry) -> Iterator[str]:
    names = list(tables.standard()["tables"])
    if number not in names:
        yield f": there is no such table; the standard has {names[0]} to {names[-1]}"
        return
    if number == str(WEIGHTS) and entry.bands:
        yield ": holds weights, and no bands"
    if number != str(WEIGHTS) and entry.weights:
        yield f": weights stand in Table {WEIGHTS}"
    if entry.given == "points" and (int(number) not in RATED or any(entry.bands.values())):
        yield ": given = points is for tables that people rate, and then there are no bands"
    if (
        number == "1"
        and any(entry.bands.values())
        and tables.made(1, entry.model_dump(by_alias=True), STANDARD).bands != (tables.table(1).bands)
    ):
        yield ": differs from the standard's, which is part of loadbench: leave it out"
    for direction, bands in entry.bands.items():
        yield from (f".{direction}: {text}" for text in _band_problems(bands))
    for direction, weights in entry.weights.items():
        yield from (f".{direction}: {text}" for text in _weight_problems(weights))


def _band_problems(bands: Sequence[BandEntry]) -> Iterator[str]:
    for place, band in enumerate(bands, 1):
        ends = (band.at_least, band.below)
        if band.slope and (band.limit is None or None in ends):
            yield f"band {place} has a slope, so it needs limit, from and below"
        elif band.slope:
            for edge in ends:
                reached = _points(band, edge)
                if not 0 <= reached <= 100:
                    yield f"band {place} gives {float(reached):g} points at {edge:g}: points go from 0 to 100"
        if band.at_least is not None and band.below is not None and band.at_least >= band.below:
            yield f"band {place} goes from {band.at_least:g} to {band.below:g}, which holds no value"
    for place, (band, after) in enumerate(pairwise(bands), 1):
        if band.below is None or after.at_least is None:
            yield f"bands {place} and {place + 1}: only the first may lack from, only the last may lack below"
        elif band.below != after.at_least:
            kind = "a gap" if band.below < after.at_least else "an overlap"
            yield f"bands {place} and {place + 1}: {kind} between {band.below:g} and {after.at_least:g}"


def _points(band: BandEntry, value: float | None) -> Any:
    return exact(band.base) + (exact(band.limit or 0) - exact(value or 0)) * exact(band.slope)


def _weight_problems(weights: dict[str, float]) -> Iterator[str]:
    scored = list(tables.standard()["tables"])[:-1]
    for number, weight in weights.items():
        if number not in scored:
            yield f"weight of {number!r}: a weight belongs to a table, {scored[0]} to {scored[-1]}"
        if not 0 < weight <= 1:
            yield f"weight of {number}: above 0 and at most 1, not {weight:g}"
    total = sum(map(exact, weights.values()))
    if weights and total != 1:
        yield f"the weights add up to {float(total):g}, not to 1"
