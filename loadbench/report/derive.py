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
from loadbench.scoring import outputs, score


@dataclass(frozen=True)
class Derived:
    """What was found, as plain data, also where it could not be written; `unwritten` then says why, file by file."""

    summary: dict[str, Any]
    scores: dict[str, Any]
    unwritten: list[str]


def derive(folder: Path, lang: str = "en") -> Derived:
    """Write all derived files of the bundle in `folder`, over earlier ones; `lang` is that of the report (en, zh).

    Raises BundleError where there is no bundle. One without an end is read as far as it goes and marked incomplete. A
    file that cannot be written is named in `unwritten`, and the others are written all the same.
    """
    bundle = Bundle(folder)
    rows = list(outputs.rows(bundle))
    scores = score.score(rows)
    summary = summaries.summarise(bundle, score.quality(scores))
    page = html.render(bundle, summary, scores, rows, lang)
    unwritten = []
    for name, parts in (
        ("outputs.jsonl", outputs.encode(rows)),
        ("scores.json", [score.encode(scores)]),
        ("summary.json", [summaries.encode(summary)]),
        ("report.html", [page.encode()]),
        ("junit.xml", [junit.render(summary)]),
    ):
        unwritten += _written(folder / name, parts)
    return Derived(summary, scores, unwritten)


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
