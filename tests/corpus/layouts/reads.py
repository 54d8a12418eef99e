"""How the tests of readers ask: a layout by its name, its entries, what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from loadbench.corpus.clip import Clip
from loadbench.corpus.layout import Asked, Entry, Layout
from loadbench.corpus.layouts import csl, dgs, how2sign, phoenix, wlasl
from loadbench.corpus.manifest import CorpusError

ALL: dict[str, Layout] = {
    layout.name: layout for module in (phoenix, csl, how2sign, dgs, wlasl) for layout in module.LAYOUTS
}


def entries(name: str, path: Path, **asked: Any) -> list[Entry]:
    return list(ALL[name].entries(path, Asked(**asked)))


def clips(name: str, path: Path, **asked: Any) -> list[Clip]:
    """The clips of a corpus in which nothing is wrong."""
    found = entries(name, path, **asked)
    assert [entry.problems for entry in found if entry.problems] == []
    return [entry.clip for entry in found if entry.clip is not None]


def troubles(name: str, path: Path, **asked: Any) -> list[str]:
    """Problems and warnings with their place in the corpus, in order; an entry with a problem has no clip."""
    found = entries(name, path, **asked)
    assert all(entry.clip is None for entry in found if entry.problems)
    said = [
        f"{entry.where}: {word}{text}"
        for entry in found
        for word, texts in (("", entry.problems), ("warning: ", entry.warnings))
        for text in texts
    ]
    return [text.replace(f"{path}/", "") for text in said]


def refused(name: str, path: Path, **asked: Any) -> list[str]:
    """Why the corpus as a whole cannot be read."""
    with pytest.raises(CorpusError) as caught:
        entries(name, path, **asked)
    return [problem.replace(f"{path}/", "").replace(str(path), ".") for problem in caught.value.problems]


def under(path: Path, clip: Clip) -> str:
    """The first medium of a clip, relative to the corpus."""
    return clip.tracks[0].path.relative_to(path).as_posix()
