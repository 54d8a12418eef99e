"""Sentences of trouble by the thousand, made readable: the first of each kind, and how many more there are."""

import re
from typing import Final

SHOWN: Final = 20  # of a kind
KINDS: Final = 200  # more kinds than this are told as one
VARIABLE: Final = re.compile(r"\S*[\d/\\'\"._]\S*")  # numbers, paths, names of fields and files, what was quoted


class Findings:
    """What was found, in order. With `whole` every sentence is kept; else memory does not grow with their number."""

    def __init__(self, *, whole: bool = False) -> None:
        self.count = 0
        self._whole = whole
        self._kept: list[str] = []
        self._kinds: dict[str, int] = {}

    def __bool__(self) -> bool:
        return self.count > 0

    def add(self, where: str, sentence: str, clip: str | None = None) -> None:
        """Take a sentence about `where`; `clip` is a word in it that says nothing about its kind."""
        self.count += 1
        if self._whole:
            self._kept.append(f"{where}: {sentence}")
            return
        kind = self._kind(sentence, clip)
        seen = self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if seen <= SHOWN:
            self._kept.append(f"{where}: {sentence}")

    def _kind(self, sentence: str, clip: str | None) -> str:
        """The first words, without what varies from one clip to the next."""
        words = sentence.removeprefix(f"clip {clip}: ").split(maxsplit=4)[:4]
        kind = " ".join("..." if word.strip(",:;") == clip else VARIABLE.sub("...", word) for word in words)
        return kind if kind in self._kinds or len(self._kinds) < KINDS else "other"

    def lines(self) -> list[str]:
        """All that was kept, then how many more there are of each kind that was cut short."""
        more = {kind: count - SHOWN for kind, count in self._kinds.items() if count > SHOWN}
        return [*self._kept, *(f"and {count:,} more like this: {kind}" for kind, count in more.items())]
