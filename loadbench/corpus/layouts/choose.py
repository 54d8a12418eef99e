"""What was asked of a corpus, held against what is there."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from loadbench.corpus.layout import Asked
from loadbench.corpus.manifest import CorpusError

USUAL: Final = ("train", "dev", "val", "test")


def in_order(found: Iterable[str]) -> tuple[str, ...]:
    """Splits without doubles: train, dev, val, test, then others by name."""
    return tuple(sorted(set(found), key=lambda split: (USUAL.index(split) if split in USUAL else len(USUAL), split)))


def splits(path: Path, asked: Asked, there: Sequence[str]) -> Sequence[str]:
    """The splits to read. Raises CorpusError for one that is not there."""
    if asked.split is None:
        return there
    if asked.split not in there:
        known = f"there are {', '.join(there)}" if there else "this corpus has none: leave it out"
        raise CorpusError([f"{path}: no split {asked.split!r}; {known}"])
    return (asked.split,)


def target(path: Path, asked: Asked, *own: str) -> str:
    """The language of the translations: what was asked (as zh-CN for zh), else the first of the corpus' `own`.

    Raises CorpusError for one in which the corpus has none.
    """
    if asked.target_lang is None:
        return own[0]
    if main(asked.target_lang) not in own:
        raise CorpusError([f"{path}: has no translations into {asked.target_lang}, only into {', '.join(own)}"])
    return asked.target_lang


def main(language: str) -> str:
    """The language of a tag, without its region: zh for zh-CN."""
    return language.lower().replace("_", "-").split("-")[0]
