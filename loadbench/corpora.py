"""The corpus commands: recognise, check, convert, list, prepare. What they have in common is what was asked for."""

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

from loadbench.corpus import layouts, line, read
from loadbench.corpus import report as reports
from loadbench.corpus import sample as manifest_lines
from loadbench.corpus.clip import Clip
from loadbench.corpus.findings import Findings
from loadbench.corpus.layout import Asked
from loadbench.corpus.manifest import CorpusError
from loadbench.corpus.read import Chosen
from loadbench.corpus.report import Report

SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"
EXCERPT: Final = 60  # characters of a reference in a list


@dataclass(frozen=True, slots=True)
class Question:
    """A corpus and what is wanted of it, as a command line or a plan says it. Its values are checked by `parts`."""

    path: Path
    split: str | None = None
    limit: int | None = None
    ids: tuple[str, ...] = ()
    max_duration_s: float | None = None
    layout: str | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    fps: str | None = None

    def parts(self, *, media: bool = True) -> tuple[Path, Asked, Chosen]:
        """What the reader takes; without `media`, lengths are only those declared. Raises CorpusError."""
        problems: list[str] = []
        fps: Fraction | None = None
        if self.fps is not None:
            try:
                fps = manifest_lines.rate(self.fps)
            except ValueError as error:
                problems.append(f"--fps {error}, not {self.fps!r}")
        if self.limit is not None and self.limit < 1:
            problems.append(f"--limit must be 1 or more, not {self.limit}")
        if self.max_duration_s is not None and not 0 < self.max_duration_s < float("inf"):
            problems.append(f"--max-duration must be above 0, not {self.max_duration_s:g}")
        if problems:
            raise CorpusError(problems)
        length_s = read.declared_s
        if media and self.max_duration_s is not None:
            from loadbench.media.length import length_s
        asked = Asked(self.split, self.source_lang, self.target_lang, fps)
        return self.path, asked, Chosen(self.limit, self.ids, self.max_duration_s, self.layout, length_s)


def check(
    question: Question, *, media: bool, activity: bool, whole: bool, seen: Callable[[str], None] | None
) -> Report:
    """Everything that is wrong or odd, counted. Raises CorpusError where the corpus cannot be read as a whole."""
    path, asked, chosen = question.parts(media=media)
    if activity and not media:
        raise CorpusError(["--activity listens to the media: leave --no-media out"])
    if not media:  # PyAV and numpy would take longer to load than a short corpus to read
        with _uncollected():
            return reports.check(path, asked, chosen, whole=whole, seen=seen)
    from loadbench.media.check import check as with_media

    return with_media(path, asked, chosen, activity=activity, whole=whole, seen=seen)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector: a long corpus is millions of objects, none in a circle, a tenth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Converted(NamedTuple):
    """How a conversion ended: `estimated` clips have times of a detector, `problems` were left out."""

    clips: int
    estimated: int
    problems: Findings


def convert(question: Question, out: Path, *, estimate: bool, seen: Callable[[str], None] | None = None) -> Converted:
    """Write the chosen clips to a native manifest, one at a time. Those that cannot be used are told and left out.

    The file is there whole or not at all. Raises CorpusError where the corpus cannot be read, or the file written.
    """
    path, asked, chosen = question.parts()
    folder, problems = out.absolute().parent, Findings()
    count = guessed = 0
    if out.exists() and not out.is_file():
        raise CorpusError([f"{out}: is there already, and no file"])
    if out.exists() and path.exists() and (path / out.name if path.is_dir() else path).resolve() == out.resolve():
        raise CorpusError([f"{out}: is the corpus itself; give the manifest another name"])
    with _written(out) as write:
        for clip in _usable(path, asked, chosen, problems, estimate=estimate):
            write(json.dumps(line.of(clip, folder), ensure_ascii=False, default=str) + "\n")
            count, guessed = count + 1, guessed + clip.activity_estimated
            if seen is not None:
                seen(clip.id)
        if not count:
            raise CorpusError(problems.lines() or [f"{path}: {read.none_left(asked, chosen)}"])
    return Converted(count, guessed, problems)


def _usable(path: Path, asked: Asked, chosen: Chosen, problems: Findings, *, estimate: bool) -> Iterator[Clip]:
    def usable() -> Iterator[Clip]:
        for entry in read.entries(path, asked, chosen):
            for sentence in entry.problems:
                problems.add(entry.where, sentence, None if entry.clip is None else entry.clip.id)
            if entry.clip is not None and not entry.problems:
                yield entry.clip

    if not estimate:
        yield from usable()
        return
    from loadbench.media.activity import all_estimated

    for clip, trouble in all_estimated(usable()):
        for sentence in trouble:
            problems.add(f"{clip.source}:{clip.line}", f"clip {clip.id}: {sentence}", clip.id)
        if not trouble:
            yield clip


@contextmanager
def _written(out: Path) -> Iterator[Callable[[str], object]]:
    """A file that appears under its name when it is whole."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = out.with_name(f".{out.name}.part")
        try:
            with part.open("w", encoding="utf-8", newline="\n") as file:
                yield file.write
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise CorpusError([f"{error.filename or out.absolute()}: {error.strerror or error}"]) from None


def layouts_rows() -> Iterator[dict[str, Any]]:
    """The known layouts, in the order in which they are tried."""
    return ({"name": layout.name, "about": layout.about} for layout in layouts.known())


def told(row: dict[str, Any]) -> str:
    """A row of a list in a line."""
    if "about" in row:
        return f"{row['name']:<16} {row['about']}"
    length = "" if row["seconds"] is None else f"{row['seconds']:.2f} s"
    return f"{row['id']:<24} {length:>9}  {row['direction']:<11}  {row['languages']:<12}  {row['reference']}".rstrip()


def rows(question: Question) -> Iterator[dict[str, Any]]:
    """The chosen clips with what a reader of a list wants to know; those that cannot be used are passed over."""
    path, asked, chosen = question.parts()
    for entry in read.entries(path, asked, chosen):
        clip = entry.clip
        if clip is None or entry.problems:
            continue
        said = clip.text or clip.transcript or " ".join(clip.gloss or ())
        yield {
            "id": clip.id,
            "direction": clip.direction,
            "languages": f"{clip.source_lang} to {clip.target_lang}",
            "seconds": read.declared_s(clip),
            "reference": said if len(said) <= EXCERPT else said[: EXCERPT - 1] + "…",
            "where": entry.where,
        }


def schema() -> str:
    """JSON Schema of a line of the native manifest."""
    return json.dumps({"$schema": SCHEMA} | manifest_lines.Sample.model_json_schema(), indent=2, ensure_ascii=False)
