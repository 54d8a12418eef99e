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
from loadbench.results.bundle import Bundle
from loadbench.scoring import outputs, score


@dataclass(frozen=True)
class Derived:
    """What was written as `summary.json` and `scores.json`, as plain data."""

    summary: dict[str, Any]
    scores: dict[str, Any]


def derive(folder: Path, lang: str = "en") -> Derived:
    """Write all derived files of the bundle in `folder`, over earlier ones; `lang` is that of the report (en, zh).

    Raises BundleError where there is no bundle. One without an end is read as far as it goes and marked incomplete.
    """
    bundle = Bundle(folder)
    rows = list(outputs.rows(bundle))
    scores = score.score(rows)
    summary = summaries.summarise(bundle, score.quality(scores))
    page = html.render(bundle, summary, scores, rows, lang)
    for name, parts in (
        ("outputs.jsonl", outputs.encode(rows)),
        ("scores.json", [score.encode(scores)]),
        ("summary.json", [summaries.encode(summary)]),
        ("report.html", [page.encode()]),
        ("junit.xml", [junit.render(summary)]),
    ):
        _write(folder / name, parts)
    return Derived(summary, scores)


def _write(path: Path, parts: Iterable[bytes]) -> None:
    """Whole or not at all: somebody may be reading the earlier one."""
    partial = path.with_name(f".{path.name}.part")
    with partial.open("wb") as file:
        file.writelines(parts)
    partial.replace(path)
