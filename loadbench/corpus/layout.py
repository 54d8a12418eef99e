"""What a reader of a corpus offers, so that all corpora look alike from outside.

A layout is how a corpus lies on disk: which files, which columns, where the media are. It is recognised by names and
first lines, never by reading it through; its entries come one at a time, so a corpus may be long.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from loadbench.corpus.clip import Clip


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user says about a corpus that its files do not. None is not said.

    `split` chooses one of the corpus' own parts (None: all that are there). The languages are for corpora that name
    none; `fps` is the rate of folders of frames in corpora that do not store it.
    """

    split: str | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    fps: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as found. `where` is FILE:LINE; `clip` is None where `problems` make it unusable."""

    where: str
    clip: Clip | None
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How one kind of corpus lies on disk.

    `marks` says whether a path looks like it, and never raises. `splits` are the parts that are there, in the corpus'
    own order. `entries` yields what it holds, in the order of its files; it raises CorpusError with all problems where
    the corpus as a whole cannot be read, and tells trouble with one entry in that entry.
    """

    name: str
    about: str
    marks: Callable[[Path], bool]
    splits: Callable[[Path], tuple[str, ...]]
    entries: Callable[[Path, Asked], Iterator[Entry]]
