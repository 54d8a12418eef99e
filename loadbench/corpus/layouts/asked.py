"""What the user asks of a corpus, held against what is there."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from loadbench.corpus.layout import Asked
from loadbench.corpus.manifest import CorpusError


def in_order(splits: Iterable[str]) -> tuple[str, ...]:
    """Training, development, test, then whatever else; each by name."""
    ranks = ("train", "dev", "val", "test", "tst")
    return tuple(
        sorted(splits, key=lambda name: (next((n for n, r in enumerate(ranks) if name.startswith(r)), 9), name))
    )


def chosen(path: Path, there: Sequence[str], asked: Asked) -> tuple[str, ...]:
    """The splits to read: the one that was asked for, else all that are there."""
    if asked.split is None:
        return tuple(there)
    if asked.split in there:
        return (asked.split,)
    known = f"there are {', '.join(there)}" if there else "it has no splits"
    raise CorpusError([f"{path}: no split {asked.split!r}; {known}"])


def languages(
    path: Path, asked: Asked, source: str | None = None, target: str | None = None, *, both: bool = False
) -> tuple[str, str]:
    """What is spoken and what is to come out; what the corpus says (`source`, `target`) counts before what was asked.

    What is to come out is what is spoken, unless it is said, or `both` demands that it be said.
    """
    source = source or asked.source_lang
    target = target or asked.target_lang or (None if both else source)
    if not source or not target:
        needed = {"--source-lang": source, "--target-lang": target or not both}
        missing = " and ".join(option for option, there in needed.items() if not there)
        raise CorpusError([f"{path}: does not say its languages; give {missing}, as in en or zh"])
    return source, target


def references(written: str | None, source: str, target: str) -> tuple[str | None, str | None]:
    """(transcript, text) of what is written in the target language: a transcript where that is what is spoken."""
    return (written, None) if source == target else (None, written)
