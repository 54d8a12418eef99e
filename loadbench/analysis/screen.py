"""A text as a viewer sees it: rows of so many characters, of which the last few are on the screen.

The rows of a text are filled one after the other with whole words; a word that is longer than a row, and a script
without spaces, is cut where the row is full. Every character counts one, wide ones as well. What is above the last
`rows` rows has left the screen. A *line* is a row with what stood in it last.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from loadbench.results.record import Update

_SPACES = dict.fromkeys(map(ord, "\t\n\v\f\r\u3000"), " ")  # any white space parts words, and none takes two places


class Line(NamedTuple):
    """A row: where it lies in the text; since when the text has stood unchanged up to its end; and when it left the
    screen (the first time since, should it have come back), None: not by then.
    """

    start: int
    stop: int
    whole_ns: int
    left_ns: int | None = None


class Screen(NamedTuple):
    """What a channel's updates put on a screen that was empty before.

    `text` is all of it in the end, `lines` its rows from the first; `changed_ns` holds when it changed. `taken_back`
    counts the changes that took anything away that had been shown. `blank` has the stretches in which nothing was
    there, as (from, to), the first from None, the last to None where it lasts.
    """

    text: str
    lines: list[Line]
    changed_ns: list[int]
    taken_back: int
    blank: list[tuple[int | None, int | None]]


def screened(updates: Iterable[Update], characters: int, rows: int) -> Screen:
    """The updates of a channel on a screen of `rows` rows of `characters` each."""
    text, longest, taken_back, blank_from = "", 0, 0, None
    blank: list[tuple[int | None, int | None]] = []
    changes, touched = list[Update](), array("q")
    dark, lead = True, 0
    for update in updates:
        if not update.add and update.keep >= len(text):
            continue  # it only became final
        changes.append(update)
        taken = text[update.keep : update.keep + 1]
        taken_back += taken != ""
        touched.append(update.keep - (taken != "" and not taken.isspace()))  # a word that lost its end is another word
        text = text[: update.keep] + update.add
        longest = max(longest, len(text))
        if dark or update.keep <= lead:  # else what was there first is still there
            lead = len(text) - len(text.lstrip())
            if dark != (lead == len(text)):
                dark = not dark
                if dark:
                    blank_from = update.at_ns
                else:
                    blank.append((blank_from, update.at_ns))
    if dark:
        blank.append((blank_from, None))
    text = text.translate(_SPACES)
    found = _whole(text, touched, characters)
    if _may_fill(longest, characters, rows + 1):
        found = _left(found, changes, characters, rows)
    lines = [Line(start, stop, changes[since].at_ns, left) for start, stop, since, left in found]
    return Screen(text, lines, [update.at_ns for update in changes], taken_back, blank)


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


_Found = tuple[int, int, int, int | None]  # start, stop, since which change, left when


def _whole(text: str, touched: Sequence[int], characters: int) -> list[_Found]:
    """The rows of the last text, each with the last change of anything up to its end; changes touch all behind."""
    found: list[_Found] = []
    since = len(touched) - 1
    for start, stop in reversed(list(rows_of(text, 0, characters))):
        while touched[since] >= stop:
            since -= 1
        found.append((start, stop, since, None))
    return found[::-1]


def _left(found: list[_Found], changes: list[Update], characters: int, rows: int) -> list[_Found]:
    """With when each left: as soon as `rows` rows stood below it. None leaves before one above it."""
    text, at = "", 0
    for number, update in enumerate(changes):
        text = text[: update.keep] + update.add.translate(_SPACES)
        while at < len(found) and found[at][2] <= number and _fills(text, found[at][1], characters, rows):
            found[at] = (*found[at][:3], update.at_ns)
            at += 1
    return found


def _fills(text: str, at: int, characters: int, rows: int) -> bool:
    """Whether what comes behind `at` fills so many rows."""
    if not _may_fill(len(text) - at, characters, rows):
        return False
    return sum(1 for _ in islice(rows_of(text, at, characters), rows)) == rows


def _may_fill(length: int, characters: int, rows: int) -> bool:
    """Whether a text of this length can fill so many rows at all: two in a row hold more than `characters`."""
    return 2 * length // characters + 1 >= rows
