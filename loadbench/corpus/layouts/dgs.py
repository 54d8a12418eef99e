"""The Public DGS Corpus: conversations in German Sign Language, annotated in ELAN files (.eaf), a clip a sentence.

Times are milliseconds through time slots. A sentence is a segment of the translation tier in the target language;
its signs are those of both hands that lie within it. The files are read by expat, and a document type is refused, so
there are no entities to expand and nothing to fetch.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from loadbench.corpus.clip import Clip, Track
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts import choose
from loadbench.corpus.layouts.annotations import GLANCE, composed, head, names
from loadbench.corpus.manifest import CorpusError

SENTENCES: Final = {"de": "Deutsche_Übersetzung", "en": "Translation_into_English"}
SIGNS: Final = "Lexem_Gebärde"
MOUTH: Final = "Mundbild_Mundgestik"
PEOPLE: Final = ("A", "B")  # left and right in the picture; camera 1a1 shows A, 1b1 shows B
SOUGHT: Final = 4 << 20  # bytes of an .eaf that are looked at to know it; tiers follow the time slots
TIME: Final = re.compile(r"\d{1,12}", re.ASCII)
TIER: Final = SIGNS[: SIGNS.index("ä")].encode()


class EafError(ValueError):
    """An ELAN file that cannot be read, with its line."""


@dataclass(slots=True)
class Annotation:
    """What a tier says of a stretch of time; None where ELAN gave it no time."""

    line: int
    value: str = ""
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(slots=True)
class Document:
    """An ELAN file: annotations by tier (names composed), who each tier is about, and references to nothing."""

    tiers: dict[str, list[Annotation]] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    dangling: list[str] = field(default_factory=list)


class _Reader:
    """Collects an ELAN file; times are known when it has been read."""

    def __init__(self) -> None:
        self.document = Document()
        self.slots: dict[str, int | None] = {}
        self.known: dict[str, tuple[Annotation, dict[str, str]]] = {}
        self.dangling: dict[str, None] = {}  # once each, in order
        self.tier: list[Annotation] = []
        self.last: Annotation | None = None
        self.inside = False
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _doctype(self, *_: object) -> None:
        raise EafError("has a document type, which no ELAN file needs: refused, for what its entities might expand to")

    def _start(self, name: str, said: dict[str, str]) -> None:
        if name == "TIME_SLOT":
            value = said.get("TIME_VALUE", "")
            self.slots[said.get("TIME_SLOT_ID", "")] = int(value) if TIME.fullmatch(value) else None
        elif name == "TIER":
            tier = composed(said.get("TIER_ID", ""))
            self.tier = self.document.tiers.setdefault(tier, [])
            self.document.people[tier] = said.get("PARTICIPANT", "")
        elif name in ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION"):
            self.last = Annotation(self.parser.CurrentLineNumber)
            self.tier.append(self.last)
            self.known[said.get("ANNOTATION_ID", "")] = (self.last, said)
        self.inside = name == "ANNOTATION_VALUE"

    def _end(self, _: str) -> None:
        self.inside = False

    def _text(self, text: str) -> None:
        if self.inside and self.last is not None:
            self.last.value += text

    def finished(self) -> Document:
        """The document, its times in place."""
        for name in self.known:
            self._place(name)
        self.document.dangling = list(self.dangling)
        return self.document

    def _place(self, name: str) -> None:
        """An annotation on another one has its times, over any number of steps; a circle or a gap is dangling."""
        annotation, said = self.known[name]
        seen = {name}
        while "ANNOTATION_REF" in said:
            target = said["ANNOTATION_REF"]
            if target in seen or target not in self.known:
                self.dangling[f"{name} refers to {target}"] = None
                return
            seen.add(target)
            name, said = target, self.known[target][1]
        slots = [said.get(f"TIME_SLOT_REF{n}", "") for n in (1, 2)]
        self.dangling |= {f"{name} refers to {slot}": None for slot in slots if slot not in self.slots}
        annotation.start_ms, annotation.end_ms = (self.slots.get(slot) for slot in slots)


def parsed(path: Path) -> Document:
    """An ELAN file. Raises EafError, with the line, for one that is none."""
    reader = _Reader()
    try:
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except expat.ExpatError as error:
        raise EafError(f"{path}:{error.lineno}: not XML: {expat.ErrorString(error.code)}") from None
    except EafError as error:
        raise EafError(f"{path}:{reader.parser.CurrentLineNumber}: {error}") from None
    except OSError as error:
        raise EafError(f"{path}:1: {error.strerror}") from None
    return reader.finished()


def _marks(path: Path) -> bool:
    first = next((name for name in names(path, GLANCE) if name.endswith(".eaf")), None)
    return first is not None and _is_dgs(path / first)


def _is_dgs(file: Path) -> bool:
    found = head(file, SOUGHT)
    return found.lstrip().startswith(b"<") and TIER in found


def _splits(_: Path) -> tuple[str, ...]:
    return ()


def _entries(path: Path, asked: Asked) -> Iterator[Entry]:
    choose.splits(path, asked, ())
    languages = (asked.source_lang or "gsg", choose.target(path, asked, *SENTENCES))
    files = sorted(name for name in names(path) if name.endswith(".eaf"))
    if not files:
        raise CorpusError([f"{path}: holds no .eaf"])
    for name in files:
        try:
            document = parsed(path / name)
        except EafError as error:
            place, _, trouble = str(error).partition(": ")
            yield Entry(place, None, (trouble,))
            continue
        yield from _of_document(path / name, document, languages)


def _of_document(file: Path, document: Document, languages: tuple[str, str]) -> Iterator[Entry]:
    tier = SENTENCES[choose.main(languages[1])]
    if not any(f"{tier}_{person}" in document.tiers for person in PEOPLE):
        yield Entry(f"{file}:1", None, (f"has no tier {tier}_A or {tier}_B",))
    if document.dangling:
        some = "; ".join(document.dangling[:3])
        said = f"{len(document.dangling)} references lead nowhere, and what they time is left out: {some}"
        yield Entry(f"{file}:1", None, warnings=(said,))
    for person in PEOPLE:
        sentences = sorted(document.tiers.get(f"{tier}_{person}", ()), key=lambda found: found.start_ms or 0)
        for number, sentence in enumerate(sentences, 1):
            yield _entry(file, document, person, number, sentence, languages)


def _entry(
    file: Path, document: Document, person: str, number: int, sentence: Annotation, languages: tuple[str, str]
) -> Entry:
    where, start, end = f"{file}:{sentence.line}", sentence.start_ms, sentence.end_ms
    if start is None or end is None or end <= start:
        return Entry(where, None, (f"the sentence {sentence.value.strip()[:40]!r} has no time: {start} to {end} ms",))
    signs, crossing = [], 0
    for hand in ("r", "l"):
        found = document.tiers.get(f"{SIGNS}_{hand}_{person}", [])
        signs += [{"gloss": value, **times, "hand": hand} for value, times in _within(found, start, end)]
        crossing += sum(_crosses(sign, start, end) for sign in found)
    signs.sort(key=lambda sign: (sign["start"], sign["end"]))
    both = {(sign["gloss"], sign["start"], sign["end"]): sign["gloss"] for sign in signs}  # a sign of two hands is one
    mouth = [
        {"value": value, **times} for value, times in _within(document.tiers.get(f"{MOUTH}_{person}", []), start, end)
    ]
    clip = Clip(
        id=f"{file.stem}_{person}_{number:04}",
        direction="sign2spoken",
        tracks=(
            Track(
                "video",
                file.absolute().with_name(f"{file.stem}_1{person.lower()}1.mp4"),
                offset_s=Fraction(start, 1000),
                duration_s=Fraction(end - start, 1000),
            ),
        ),
        source_lang=languages[0],
        target_lang=languages[1],
        gloss=tuple(both.values()) or None,
        gloss_spans=tuple(signs),
        text=composed(sentence.value).strip(),
        speaker=document.people.get(f"{SENTENCES['de']}_{person}") or f"{file.stem}_{person}",
        extra={"mouth": mouth} if mouth else {},
        source=str(file),
        line=sentence.line,
    )
    odd = f"{crossing} signs reach over the ends of the sentence and are left out"
    return Entry(where, clip, warnings=(odd,) if crossing else ())


def _within(found: list[Annotation], start: int, end: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What lies wholly in a stretch, with its times in seconds from the start of it; what says nothing is left out."""
    for item in found:
        if item.start_ms is not None and item.end_ms is not None and start <= item.start_ms <= item.end_ms <= end:
            times = {"start": (item.start_ms - start) / 1000, "end": (item.end_ms - start) / 1000}
            if value := composed(item.value).strip():
                yield value, times


def _crosses(item: Annotation, start: int, end: int) -> bool:
    if item.start_ms is None or item.end_ms is None:
        return False
    return item.start_ms < start < item.end_ms or item.start_ms < end < item.end_ms


LAYOUTS: Final[tuple[Layout, ...]] = (
    Layout(
        "dgs", "Public DGS Corpus: German Sign Language, timed glosses, German or English", _marks, _splits, _entries
    ),
)
