"""What people rated, from a file of theirs: several raters, each item, how far they agree, and who rated what not.

A file is CSV with a head line, or JSON lines. A rating belongs to a table of the standard (`indicator`, its number), to
a clip or to the whole system (`clip` is "system"), and to a rater; `direction` where it is of one direction alone.
"""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import msgspec

from loadbench.scoring.tables import AS_DIRECTION, exact, mean
from loadbench.scoring.tables_file import RATED, TablesError

SYSTEM: Final = "system"
KEPT: Final = "ratings.jsonl"  # in a bundle
LONGEST: Final = 64 * 1024 * 1024
Items = Mapping[str, Mapping[str, Fraction]]  # item -> rater -> value


class Rating(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One value that one rater gave. `indicator` is the number of a table; `clip` an id, or "system"."""

    indicator: int
    clip: str
    rater: str
    value: float
    direction: str | None = None


def load(path: Path) -> list[Rating]:
    """Ratings from a file. Raises TablesError with every line that is none."""
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        raise TablesError([f"{path}: {getattr(error, 'strerror', None) or error}"]) from None
    if len(data) > LONGEST:
        raise TablesError([f"{path}: more than {LONGEST} bytes are no ratings"])
    found = read(data, str(path))
    if not found:
        raise TablesError([f"{path}: holds no ratings"])
    return found


def read(data: bytes, source: str) -> list[Rating]:
    """Ratings from the bytes of a file, CSV where its name ends so. Raises TablesError with every line that is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TablesError([f"{source}: not UTF-8: {error}"]) from None
    found: list[Rating] = []
    problems: list[str] = []
    seen: dict[tuple[int, str, str], set[str | None]] = defaultdict(set)
    try:
        for number, line in _csv(text) if source.endswith(".csv") else _lines(text):
            try:
                rating = _rating(line)
            except msgspec.DecodeError as error:  # a ValidationError is one as well
                problems.append(f"{source}:{number}: no rating: {error}")
                continue
            problems += [f"{source}:{number}: {text}" for text in _problems(rating, seen)]
            found.append(rating)
    except csv.Error as error:
        problems.append(f"{source}: no CSV: {error}")
    problems += [f"{source}: {text}" for text in _mixed(found)]
    if problems:
        raise TablesError(problems)
    return found


def encode(found: Iterable[Rating]) -> Iterator[bytes]:
    """JSON lines that `read` takes: the same bytes for the same ratings."""
    return (msgspec.json.encode(each) + b"\n" for each in found)


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a line of ratings, and of the columns of a CSV file."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "loadbench rating"}
    return head | msgspec.json.schema(Rating)


def items(found: Iterable[Rating], indicator: int, direction: str) -> Items:
    """The values of an indicator in a direction, by item and rater."""
    values: dict[str, dict[str, Fraction]] = defaultdict(dict)
    for each in found:
        if each.indicator == indicator and each.direction in (None, direction):
            values[each.clip][each.rater] = exact(each.value)
    return values


def summarise(rated: Items) -> dict[str, Any]:
    """Of all values: how many, by whom, their spread, and the agreement; `value` is the mean of the items' means.

    `unrated` has a sentence for each rater who left items out. `alpha` is None where it is not defined.
    """
    raters = sorted({rater for by_rater in rated.values() for rater in by_rater})
    every = [float(value) for by_rater in rated.values() for value in by_rater.values()]
    middle = math.fsum(every) / len(every)
    left_out = {rater: [item for item, by_rater in sorted(rated.items()) if rater not in by_rater] for rater in raters}
    return {
        "ratings": len(every),
        "raters": len(raters),
        "items": len(rated),
        "value": float(overall(rated) or 0),
        "min": min(every),
        "max": max(every),
        "sd": math.sqrt(math.fsum((value - middle) ** 2 for value in every) / (len(every) - 1)) if every[1:] else None,
        "alpha": alpha([[float(value) for value in by_rater.values()] for by_rater in rated.values()]),
        "unrated": [f"{rater} did not rate {', '.join(names)}" for rater, names in left_out.items() if names],
    }


def outline(found: Sequence[Rating]) -> list[str]:
    """A line for each rated indicator: how many ratings of how many items, by whom, and how far they agree."""
    lines = []
    for indicator, direction in sorted({(each.indicator, each.direction or "") for each in found}):
        made = summarise(items(found, indicator, direction))
        agreement = "" if made["alpha"] is None else f", alpha {made['alpha']:.3f}"
        where = f" ({direction})" if direction else ""
        lines.append(
            f"indicator {indicator}{where}: {made['ratings']} ratings of {made['items']} items by {made['raters']}"
            f" raters, mean {made['value']:g}, from {made['min']:g} to {made['max']:g}{agreement}"
        )
        lines += [f"  {text}" for text in made["unrated"]]
    return lines or ["no ratings"]


def overall(rated: Items) -> Fraction | None:
    """The mean over items of the mean over raters, exact, so that who rated more does not count more."""
    return mean([each for by_rater in rated.values() if (each := mean(list(by_rater.values()))) is not None])


def missing(rated: Items, clips: Collection[str]) -> list[str]:
    """The clips without any rating; none where the whole system was rated. All of `clips` where nothing was."""
    return [] if SYSTEM in rated else sorted(set(clips) - set(rated))


def alpha(units: Sequence[Sequence[float]]) -> float | None:
    """Krippendorff's alpha for interval values: 1 is perfect agreement, 0 is that of chance.

    A unit holds the values that its raters gave; one with a single value tells nothing of agreement. None where there
    is nothing to compare, or where all values are the same.
    """
    paired = [unit for unit in units if len(unit) > 1]
    values = [value for unit in paired for value in unit]
    expected = _squares(values) / (len(values) - 1) if values else 0.0
    if not expected:
        return None
    return 1 - math.fsum(_squares(unit) / (len(unit) - 1) for unit in paired) / expected


def _squares(values: Sequence[float]) -> float:
    """The sum of squared differences over all ordered pairs: 2 n times the sum of squares about the mean."""
    middle = math.fsum(values) / len(values)
    return 2 * len(values) * math.fsum((value - middle) ** 2 for value in values)


def _csv(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    rows = csv.DictReader(io.StringIO(text), restkey="more than its columns", strict=True)
    for row in rows:
        yield rows.line_num, {name: value for name, value in row.items() if value not in ("", None)}


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _rating(line: str | dict[str, Any]) -> Rating:
    if isinstance(line, str):
        return msgspec.json.decode(line, type=Rating)
    return msgspec.convert(line, Rating, strict=False)  # all cells of a CSV file are texts


def _problems(rating: Rating, seen: dict[tuple[int, str, str], set[str | None]]) -> Iterator[str]:
    if rating.indicator not in RATED:
        yield f"indicator {rating.indicator}: people rate tables {', '.join(map(str, RATED))}"
    if not rating.clip or not rating.rater:
        yield "a rating needs a clip (or system) and a rater"
    if not math.isfinite(rating.value):
        yield f"value {rating.value} is no number"
    if rating.direction not in (None, *AS_DIRECTION.values()):
        yield f"direction {rating.direction!r}: there are {' and '.join(sorted(set(AS_DIRECTION.values())))}"
    directions = seen[rating.indicator, rating.clip, rating.rater]
    if directions & {None, rating.direction} or (directions and rating.direction is None):
        yield f"{rating.rater} rated indicator {rating.indicator} of {rating.clip} before"
    directions.add(rating.direction)


def _mixed(found: Iterable[Rating]) -> Iterator[str]:
    kinds: dict[int, set[bool]] = defaultdict(set)
    for each in found:
        kinds[each.indicator].add(each.clip == SYSTEM)
    for indicator, both in sorted(kinds.items()):
        if len(both) > 1:
            yield f"indicator {indicator} is rated for the system and for clips: choose one"
