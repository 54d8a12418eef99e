"""A text as a viewer sees it: rows of so many characters, of which the last few are on the screen.

The rows of a text are filled one after the other with whole words; a word that is longer than a row, and a script
without spaces, is cut where the row is full. Every character counts one, wide ones as well. What is above the last
`rows` rows has left the screen. A *line* is a row with what stood in it last.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from loadbench.results.record import Update

_SPACES = dict.fromkeys(map(ord, "\t\n\v\f\r\u3000"), " ")  # any white space parts words, and none takes two places


class Line(NamedTuple):
    """A row: where it lies in the text; since when it has stood there whole, and all before it, unchanged; and when it
    left the screen (the first time, should it come back), None: not by then.
    """

    start: int
    stop: int
    whole_ns: int
    left_ns: int | None = None


class Screen:
    """Text on a screen of `rows` rows of `characters` each, from empty.

    `text` is all of it, `lines` its rows from the first; `changed_ns` holds when it changed. `taken_back` counts the
    changes that took anything away that had been shown; `blank` has the stretches in which nothing was there, as
    [from, to], the first from None, the last to None while it lasts.
    """

    def __init__(self, characters: int, rows: int) -> None:
        self.text = ""
        self.lines: list[Line] = []
        self.changed_ns: list[int] = []
        self.taken_back = 0
        self.blank: list[tuple[int | None, int | None]] = [(None, None)]
        self._characters, self._rows = characters, rows

    def show(self, updates: Iterable[Update]) -> "Screen":
        """Take all of these in, in their order; itself."""
        for update in updates:
            if update.add or update.keep < len(self.text):
                self._change(update.at_ns, min(update.keep, len(self.text)), update.add)
        return self

    def _change(self, at_ns: int, keep: int, add: str) -> None:
        before, self.text = self.text, self.text[:keep] + add.translate(_SPACES)
        self.taken_back += keep < len(before)
        self.changed_ns.append(at_ns)
        self._note_blank(at_ns, before)
        # Where a row ends was decided by the character behind its place, so rows whose place ends before `keep` stay.
        stays = bisect_left(self.lines, keep - self._characters, key=lambda line: line.start)
        old = self.lines[stays:]
        del self.lines[stays:]
        at = self.lines[-1].stop if self.lines else 0
        for number, (start, stop) in enumerate(rows_of(self.text, at, self._characters)):
            line = old[number] if number < len(old) else None
            same = line is not None and (line.start, line.stop) == (start, stop) and stop <= keep
            self.lines.append(line if line is not None and same else Line(start, stop, at_ns))
        for number in range(len(self.lines) - self._rows - 1, -1, -1):
            if self.lines[number].left_ns is not None:
                break
            self.lines[number] = self.lines[number]._replace(left_ns=at_ns)

    def _note_blank(self, at_ns: int, before: str) -> None:
        was, now = not before.strip(), not self.text.strip()
        if was and not now:
            self.blank[-1] = (self.blank[-1][0], at_ns)
        elif now and not was:
            self.blank.append((at_ns, None))


def rows_of(text: str, at: int, characters: int) -> Iterator[tuple[int, int]]:
    """The rows of `text` from `at` on, as (start, stop) without the spaces around them."""
    while True:
        while at < len(text) and text[at] == " ":
            at += 1
        if at == len(text):
            return
        stop = min(at + characters, len(text))
        if stop < len(text) and text[stop] != " ":
            space = text.rfind(" ", at, stop)
            stop = space if space > at else stop
        end = stop
        while text[end - 1] == " ":
            end -= 1
        yield at, end
        at = stop
