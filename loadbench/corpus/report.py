"""What a check found: all problems and warnings with their places, and a summary of what the corpus holds."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

from loadbench.corpus.clip import Clip
from loadbench.corpus.findings import Findings
from loadbench.corpus.layout import Asked, Entry
from loadbench.corpus.read import ALL, NOTHING, Chosen, Found, declared_s, entries, found, none_left

MOST: Final = 8  # values of a kind that the summary names


class Measured(NamedTuple):
    """What decoding said of a clip's media. `length_s` is None where some of them cannot be used."""

    length_s: float | None
    fps: tuple[Fraction, ...] = ()
    rates_hz: tuple[int, ...] = ()
    activity_s: tuple[float, float] | None = None


@dataclass
class Report:
    """Filled entry by entry. `problems` forbid a run, `warnings` do not. `clips` counts those that could be read.

    `seconds` is the length of the clips whose length is known; of `unknown` ones it is not. `activity` has id, onset
    and end of the clips of which they were estimated here.
    """

    found: Found
    splits: Sequence[str] = ()
    problems: Findings = field(default_factory=Findings)
    warnings: Findings = field(default_factory=Findings)
    clips: int = 0
    seconds: float = 0.0
    unknown: int = 0
    directions: Counter[str] = field(default_factory=Counter)
    languages: Counter[tuple[str, str]] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    fps: Counter[Fraction] = field(default_factory=Counter)
    rates_hz: Counter[int] = field(default_factory=Counter)
    speakers: set[str] = field(default_factory=set)
    by_split: Counter[str] = field(default_factory=Counter)
    activity: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def hours(self) -> float | None:
        """None where the length of some clip is unknown."""
        return None if self.unknown else self.seconds / 3600

    def take(self, entry: Entry, measured: Measured | None = None) -> None:
        """Count an entry as it was judged; with what decoding says, or with what the corpus declares."""
        clip = entry.clip
        name = None if clip is None else clip.id
        for sentence in entry.problems:
            self.problems.add(entry.where, sentence, name)
        for sentence in entry.warnings:
            self.warnings.add(entry.where, sentence, name)
        if measured is not None and measured.activity_s is not None:
            self.activity.append((str(name), *measured.activity_s))
        if clip is not None and (measured is not None or not entry.problems):
            self._count(clip, _declared(clip) if measured is None else measured)

    def _count(self, clip: Clip, facts: Measured) -> None:
        self.clips += 1
        if facts.length_s is None:
            self.unknown += 1
        else:
            self.seconds += facts.length_s
        self.directions[clip.direction] += 1
        self.languages[clip.source_lang, clip.target_lang] += 1
        for fps in facts.fps:
            self.fps[fps] += 1
        for rate_hz in facts.rates_hz:
            self.rates_hz[rate_hz] += 1
        if clip.text_unit is not None:
            self.units[f"text in {clip.text_unit}s"] += 1
        if clip.gloss_unit is not None:
            self.units[f"gloss in {clip.gloss_unit}s"] += 1
        if clip.speaker is not None:
            self.speakers.add(clip.speaker)
        for tag in clip.tags:
            if tag in self.splits:
                self.by_split[tag] += 1

    def text(self) -> str:
        """For people: problems, warnings, estimates, and a table of what the corpus holds."""
        rows = [
            ("layout", self.found.layout.name + "".join(f", also like {name}" for name in self.found.also)),
            ("clips", f"{self.clips:,}"),
            ("length", self._length()),
            ("directions", _counted(self.directions.items())),
            ("languages", _counted((" to ".join(pair), n) for pair, n in self.languages.items())),
            ("units", _counted(self.units.items()) or "by language"),
            ("frame rates", _counted((f"{float(rate):.6g}/s", n) for rate, n in self.fps.items())),
            ("sample rates", _counted((f"{rate} Hz", n) for rate, n in self.rates_hz.items())),
            ("speakers", f"{len(self.speakers):,}" if self.speakers else ""),
            ("splits", _counted(self.by_split.items()) or ", ".join(self.splits)),
        ]
        warned = [f"warning: {line}" for line in self.warnings.lines()]
        total = [
            f"{self.problems.count:,} {'problem' if self.problems.count == 1 else 'problems'},"
            f" {self.warnings.count:,} {'warning' if self.warnings.count == 1 else 'warnings'}"
        ]
        table = [f"{name:<13} {said}" for name, said in rows if said]
        spoken = [f"{name}: speech from {start:.2f} to {end:.2f} s (estimated)" for name, start, end in self.activity]
        return "\n".join([*self.problems.lines(), *warned, *spoken, *table, *total])

    def _length(self) -> str:
        known = _duration(self.seconds)
        if not self.unknown:
            return known
        return f"at least {known}, unknown of {self.unknown:,} clips" if self.seconds else "unknown"

    def plain(self) -> dict[str, Any]:
        """For programs."""
        return {
            "layout": self.found.layout.name,
            "also_like": list(self.found.also),
            "clips": self.clips,
            "hours": self.hours,
            "clips_of_unknown_length": self.unknown,
            "directions": dict(self.directions),
            "languages": [{"source": a, "target": b, "clips": n} for (a, b), n in sorted(self.languages.items())],
            "units": dict(self.units),
            "fps": {str(rate): n for rate, n in sorted(self.fps.items())},
            "sample_rates_hz": {str(rate): n for rate, n in sorted(self.rates_hz.items())},
            "speakers": len(self.speakers),
            "splits": dict(self.by_split) or list(self.splits),
            "estimated_activity": [{"id": name, "start": start, "end": end} for name, start, end in self.activity],
            "problems": self.problems.lines(),
            "warnings": self.warnings.lines(),
        }


def as_declared(entries: Iterator[Entry]) -> Iterator[tuple[Entry, Measured | None]]:
    """Entries without a look at their media."""
    return ((entry, None) for entry in entries)


def check(
    path: Path,
    asked: Asked = NOTHING,
    chosen: Chosen = ALL,
    *,
    look: Callable[[Iterator[Entry]], Iterator[tuple[Entry, Measured | None]]] = as_declared,
    whole: bool = False,
    seen: Callable[[str], None] | None = None,
) -> Report:
    """Everything that is wrong or odd in a corpus, its lengths as declared; `look` adds what the media say.

    `whole` keeps every sentence; `seen` is told the id of each clip that is done, or the place of what is none.
    Raises CorpusError where the corpus cannot be read as a whole.
    """
    known = found(path, chosen.layout)
    report = Report(known, known.layout.splits(path), Findings(whole=whole), Findings(whole=whole))
    for entry, measured in look(entries(path, asked, chosen)):
        report.take(entry, measured)
        if seen is not None:
            seen(entry.where if entry.clip is None else entry.clip.id)
    if not report.clips and not report.problems:
        report.problems.add(str(path), none_left(asked, chosen))
    return report


def _declared(clip: Clip) -> Measured:
    if len(clip.tracks) == 1:  # as most have
        (track,) = clip.tracks
        fps, rate_hz = track.fps, track.sample_rate
        return Measured(declared_s(clip), () if fps is None else (fps,), () if rate_hz is None else (rate_hz,))
    return Measured(
        declared_s(clip),
        tuple([track.fps for track in clip.tracks if track.fps is not None]),
        tuple([track.sample_rate for track in clip.tracks if track.sample_rate is not None]),
    )


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:,.1f} h"


def _counted(items: Iterable[tuple[str, int]]) -> str:
    """The most frequent first."""
    ranked = sorted(items, key=lambda item: (-item[1], item[0]))
    said = [f"{name}: {n:,}" for name, n in ranked[:MOST]]
    return ", ".join([*said, f"{len(ranked) - MOST} more"] if len(ranked) > MOST else said)
