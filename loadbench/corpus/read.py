"""Any corpus that is known, read through one door: recognised, judged by the same rules, one entry at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from loadbench.corpus import layouts, manifest, rules
from loadbench.corpus.clip import Clip
from loadbench.corpus.findings import Findings
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.manifest import CorpusError


def declared_s(clip: Clip) -> float | None:
    """The length that the corpus declares in seconds; None where it does not."""
    length = rules.segment_s(clip)
    return None if length == float("inf") else length


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which clips of a corpus are wanted. None and () are all.

    `limit` takes the first in the order of the corpus, and reading ends with them: another seed shuffles the same
    clips, it does not choose others. `ids` are looked for in the whole corpus. A clip longer than `max_duration_s`, by
    `length_s`, is left out; one of unknown length is not. `layout` names one instead of the one that is recognised.
    """

    limit: int | None = None
    ids: tuple[str, ...] = ()
    max_duration_s: float | None = None
    layout: str | None = None
    length_s: Callable[[Clip], float | None] = declared_s


class Found(NamedTuple):
    """A recognised layout; `also` names others that the path looks like, less specific ones."""

    layout: Layout
    also: tuple[str, ...] = ()


ALL: Final = Chosen()
NOTHING: Final = Asked()


def found(path: Path, name: str | None = None) -> Found:
    """How the corpus at `path` lies on disk, or as the layout `name` says. Raises CorpusError where nothing fits."""
    known = layouts.known()
    if name is not None:
        for layout in known:
            if layout.name == name:
                return Found(layout)
        raise CorpusError([f"no layout is called {name!r}; known: {', '.join(layout.name for layout in known)}"])
    try:
        if not path.exists():
            raise CorpusError([f"{path.absolute()}: no such file or folder"])
    except (OSError, ValueError) as error:
        raise CorpusError([f"{path.absolute()}: {getattr(error, 'strerror', None) or error}"]) from None
    fitting = [layout for layout in known if layout.marks(path)]
    if fitting:
        return Found(fitting[0], tuple(layout.name for layout in fitting[1:]))
    if manifest.of(path) is not None:
        return Found(manifest.LAYOUT)  # it can say what is wrong with each line
    if path.is_dir():
        raise CorpusError(
            [
                f"{path.absolute()}: no known corpus; known: {', '.join(layout.name for layout in known)} (native:"
                f" {manifest.FILE_NAME} in the folder); `loadbench corpus list` says what each looks like"
            ]
        )
    raise CorpusError([f"{path}: neither a file nor a folder; give a manifest or a folder that holds a corpus"])


def entries(path: Path, asked: Asked = NOTHING, chosen: Chosen = ALL) -> Iterator[Entry]:
    """The chosen entries in the order of the corpus, judged. Raises CorpusError where it cannot be read as a whole.

    Of each clip that passes, about 100 bytes stay in memory, for its id must be the only one.
    """
    layout, seen, taken = found(path, chosen.layout).layout, _Seen(), 0
    _refuse_unknown_split(layout, path, asked.split)
    missing, unreadable = dict.fromkeys(chosen.ids), ""
    for entry in layout.entries(path, asked):
        clip = entry.clip
        again = None if clip is None else seen.first(clip.id, entry.where)
        if chosen.ids:
            if clip is None:
                if entry.problems:
                    unreadable = unreadable or f"{entry.where}: {'; '.join(entry.problems)}"
                continue
            if clip.id not in chosen.ids:
                continue
            missing.pop(clip.id, None)
        if chosen.max_duration_s is not None and clip is not None:
            length_s = chosen.length_s(clip)
            if length_s is not None and length_s > chosen.max_duration_s:
                continue
        yield _judged(entry, again)
        taken += clip is not None or bool(entry.problems)  # what the corpus' own reader leaves out is none of them
        if taken == chosen.limit:
            return
    if missing:
        hint = f" (entries that cannot be read may be it, as {unreadable})" if unreadable else ""
        raise CorpusError([f"{path} has no clip {name}{hint}" for name in missing])


def clips(path: Path, asked: Asked = NOTHING, chosen: Chosen = ALL) -> list[Clip]:
    """The chosen clips, if all can be used. Raises CorpusError with every problem, the repeated ones counted."""
    problems, usable = Findings(), []
    for entry in entries(path, asked, chosen):
        for sentence in entry.problems:
            problems.add(entry.where, sentence, None if entry.clip is None else entry.clip.id)
        if entry.clip is not None:
            usable.append(entry.clip)
    if problems:
        raise CorpusError(problems.lines())
    if not usable:
        raise CorpusError([f"{path}: {none_left(asked, chosen)}"])
    return usable


def none_left(asked: Asked, chosen: Chosen) -> str:
    """Why there may be no clip."""
    said = [f"split {asked.split}"] if asked.split else []
    said += [f"at most {chosen.max_duration_s:g} s"] if chosen.max_duration_s is not None else []
    return f"holds no clips{' of ' + ', '.join(said) if said else ''}"


def _refuse_unknown_split(layout: Layout, path: Path, split: str | None) -> None:
    there = layout.splits(path) if split is not None else ()
    if there and split not in there:
        raise CorpusError([f"{path} has no split {split!r}; it has {', '.join(there)}"])


def _judged(entry: Entry, first: str | None) -> Entry:
    """With what the rules say, and the place of an entry of the same id before it."""
    clip = entry.clip
    if clip is None:
        return entry
    problems, warnings = rules.judged(clip)
    if first is not None:
        problems.append(f"duplicate id {clip.id}, first at {first}")
    if not problems and not warnings:
        return entry
    return replace(
        entry,
        problems=tuple(dict.fromkeys((*entry.problems, *problems))),
        warnings=tuple(dict.fromkeys((*entry.warnings, *warnings))),
    )


class _Seen:
    """Where each id was first, as hashes and numbers: a long corpus stays small.

    Two ids of one hash (64 bits) would be taken for one; among a million clips that is a chance of 1 in 30 million.
    """

    def __init__(self) -> None:
        self._places: dict[int, int] = {}  # by hash: number of the file, and 40 bits of line
        self._files: dict[str, int] = {}
        self._names: list[str] = []

    def first(self, name: str, where: str) -> str | None:
        """Where the id was before, None the first time. "line 3" where that is in the same file."""
        file, _, line = where.rpartition(":")
        if not line.isdecimal():
            file, line = where, "0"
        number = self._files.get(file)
        if number is None:
            number = self._files[file] = len(self._names)
            self._names.append(file)
        key = hash(name)
        before = self._places.get(key)
        if before is None:
            self._places[key] = number << 40 | int(line)
            return None
        at = before & (1 << 40) - 1
        if before >> 40 == number:
            return f"line {at}" if at else "the same place"
        return self._names[before >> 40] + (f":{at}" if at else "")
