"""The derived files of a bundle: pure functions of its raw files, the same bytes each time.

`outputs.jsonl` is what scorers get, `scores.json` what they found, `summary.json` every number, `report.html` and
`junit.xml` the same for people and for build servers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadbench.analysis import summary as summaries
from loadbench.report import html, junit
from loadbench.results.bundle import Bundle, why, write_whole
from loadbench.scoring import composite, outputs, ratings, score, tables_file
from loadbench.scoring.composite import Evidence, Timed
from loadbench.scoring.tables_file import Response, Tables


@dataclass(frozen=True)
class Derived:
    """What was found, as plain data, also where it could not be written; `unwritten` then says why, file by file."""

    summary: dict[str, Any]
    scores: dict[str, Any]
    unwritten: list[str]


def derive(folder: Path, lang: str = "en") -> Derived:
    """Write all derived files of the bundle in `folder`, over earlier ones; `lang` is that of the report (en, zh).

    Raises BundleError where there is no bundle, TablesError where the tables or ratings in it cannot be read. A bundle
    without an end is read as far as it goes and marked incomplete. A file that cannot be written is named in
    `unwritten`, and the others are written all the same.
    """
    bundle = Bundle(folder)
    rows = list(outputs.rows(bundle))
    scores = score.score(rows, score.beta_of(bundle))
    summary = summaries.summarise(bundle, score.quality(scores))
    scores |= _assessed(bundle, summary, scores)
    page = html.render(bundle, summary, scores, rows, lang)
    unwritten = []
    for name, parts in (
        ("outputs.jsonl", outputs.encode(rows)),
        ("scores.json", [score.encode(scores)]),
        ("summary.json", [summaries.encode(summary)]),
        ("report.html", [page.encode()]),
        ("junit.xml", [junit.render(summary, scores)]),
    ):
        unwritten += _written(folder / name, parts)
    return Derived(summary, scores, unwritten)


def _assessed(bundle: Bundle, summary: dict[str, Any], scores: dict[str, Any]) -> dict[str, Any]:
    """The standard's points and composite, by the tables and ratings that lie in the bundle."""
    entered, rated = bundle.folder / tables_file.KEPT, bundle.folder / ratings.KEPT
    sheet = tables_file.load(str(entered)) if entered.is_file() else None
    unfit = [] if summary["complete"] else ["the run did not come to its end"]
    unfit += ["the bundle is damaged"] if summary["damage"] else []
    found = Evidence(
        scores=scores,
        ratings=ratings.load(rated) if rated.is_file() else (),
        timed=_timed(bundle, summary, sheet),
        unfit=unfit,
    )
    return composite.assess(sheet, found)


def _timed(bundle: Bundle, summary: dict[str, Any], sheet: Tables | None) -> Timed | None:
    """The response time that the tables ask for; a late tester knows none."""
    asked = None if sheet is None else sheet.response
    if asked is None:
        return None
    if summary["verdict"]["state"] == "INVALID":
        return Timed(None, why="the tester itself was late or failed")
    channel = asked.channel or bundle.header.headline_channel
    found = summary["response"].get(channel, {}).get(asked.metric)
    if found is None:
        return Timed(None, why=f"there is no {asked.metric} on channel {channel}")
    return _statistic(asked, found)


def _statistic(asked: Response, found: dict[str, Any]) -> Timed:
    if asked.stat == "mean":
        return Timed(found["mean_s"], n=found["n"], why="" if found["n"] else "no data")
    one = found[asked.counted][asked.stat]
    return Timed(one["value_s"], one["bound"], one["n"], "" if one["n"] else "no data")


def _written(path: Path, parts: Iterable[bytes]) -> list[str]:
    """Whole or not at all: somebody may be reading the earlier one. What went wrong, if anything."""
    try:
        write_whole(path, parts)
    except OSError as error:
        return [
            f"cannot write {path}: {why(error)}; the records are intact: make room, or copy the bundle to where it can"
            f" be written, and run loadbench report on it"
        ]
    return []
