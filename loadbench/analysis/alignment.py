"""Which item of a hypothesis stands for which item of a reference: the best global alignment, by dynamic programming.

The alignment with the highest sum is found: of the likeness of paired items, and of `gap` for each item left alone.
Of equals, seen from the end, a pair is preferred to a reference item left alone, and that to a hypothesis item left
alone. Rows are kept at every k-th item and made again on the way back, so that an hour of speech fits into memory.
"""

import math
import unicodedata
from collections.abc import Callable, Sequence
from operator import ne
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Likeness = Callable[[int], Floats]  # of a reference item to each item of the hypothesis
# Never paired with anything but each other (SoftSegmenter: ASCII, Chinese and Japanese marks).
MARKS: Final = frozenset(".!?,;:-()。！？，；：—（）ー")

FEW: Final = 5000  # pairs, up to which lists are faster than arrays
DIAGONAL: Final = 2  # two lists of one length with so few differences: no other alignment has fewer errors


class Place(NamedTuple):
    """Where a hypothesis item stands: behind the first `behind` reference items; `paired`: with the last of these."""

    behind: int
    paired: bool


def levenshtein(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Place]:
    """The place of each hypothesis item with the fewest substitutions, insertions and deletions.

    A substitution counts as paired.
    """
    head = _common(reference, hypothesis)
    tail = _common(reference[head:][::-1], hypothesis[head:][::-1])
    left, right = reference[head : len(reference) - tail], hypothesis[head : len(hypothesis) - tail]
    if len(left) == len(right) and sum(map(ne, left, right)) <= DIAGONAL:
        middle = [Place(at + 1, True) for at in range(len(left))]
    else:
        middle = _few(left, right) if len(left) * len(right) <= FEW else _many(left, right)
    return [
        *(Place(at + 1, True) for at in range(head)),
        *(Place(head + place.behind, place.paired) for place in middle),
        *(Place(len(reference) - tail + at + 1, True) for at in range(tail)),
    ]


def _many(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Place]:
    numbers = {text: number for number, text in enumerate(dict.fromkeys(hypothesis))}
    heard = np.array([numbers[text] for text in hypothesis])

    def likeness(at: int) -> Floats:
        return np.where(heard == numbers.get(reference[at], -1), 0.0, -1.0)

    return align(likeness, len(reference), len(hypothesis), -1.0)


def _few(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Place]:
    """As `_many`; for a sentence the arrays cost more than they save."""
    rows = [list(range(len(hypothesis) + 1))]  # fewest errors
    for at, wanted in enumerate(reference):
        above, left = rows[-1], at + 1
        row = [left]
        for column, text in enumerate(hypothesis):
            left += 1
            if (lone := above[column + 1] + 1) < left:
                left = lone
            if (pair := above[column] + (text != wanted)) < left:
                left = pair
            row.append(left)
        rows.append(row)
    places, at, column = list[Place](), len(reference), len(hypothesis)
    while column:
        here = rows[at][column]
        if at and here == rows[at - 1][column - 1] + (reference[at - 1] != hypothesis[column - 1]):
            places.append(Place(at, True))
            at, column = at - 1, column - 1
        elif at and here == rows[at - 1][column] + 1:
            at -= 1
        else:
            places.append(Place(at, False))
            column -= 1
    return places[::-1]


def segments_by_error(reference: Sequence[Sequence[str]], hypothesis: Sequence[str]) -> list[int]:
    """Which segment each hypothesis item belongs to, so that the word errors of all segments are fewest.

    That is what mWERSegmenter does. What could stand at the end of one segment or at the start of the next is the
    earlier one's. Case does not count.
    """
    owners = _owners(reference)
    places = levenshtein([text.lower() for part in reference for text in part], [text.lower() for text in hypothesis])
    return [owners[max(place.behind - 1, 0)] for place in places] if owners else []


def segments_by_likeness(reference: Sequence[Sequence[str]], hypothesis: Sequence[str]) -> list[int]:
    """Which segment each hypothesis item belongs to by SoftSegmenter.

    An item left alone goes with the reference item before it, until one is more like the item after it: from there on
    they go with that one.
    """
    left, right = [[_folded(text) for text in part] for part in reference], [_folded(text) for text in hypothesis]
    flat, owners = [text for part in left for text in part], _owners(reference)
    table, rows, columns = _alike(flat, right)
    places = align(lambda at: table[rows[at], columns], len(flat), len(right), 0.0)
    found, ahead = [], -1  # `ahead`: the gap whose items go with what comes after it
    for at, place in enumerate(places if owners else []):
        before, after = place.behind - 1, place.behind
        if not place.paired and after < len(flat) and ahead != after:
            like = table[rows[after], columns[at]]
            ahead = after if before < 0 or like > table[rows[before], columns[at]] else -1
        found.append(owners[after if not place.paired and ahead == after else before])
    return found


def align(likeness: Likeness, n: int, m: int, gap: float) -> list[Place]:
    """The place of each of `m` hypothesis items among `n` reference items, of the best alignment."""
    if not n or not m:
        return [Place(0, False)] * m
    slope: Floats = gap * np.arange(m + 1, dtype=np.float64)
    stride = math.isqrt(n) + 1
    kept, row = {0: slope}, slope
    for at in range(1, n + 1):
        row = _next(row, likeness(at - 1), gap, slope)
        if at % stride == 0:
            kept[at] = row
    places: list[Place] = []
    at, column = n, m
    while column and at:
        first = (at - 1) // stride * stride
        rows = [kept[first]]
        for below in range(first, at):
            rows.append(_next(rows[-1], likeness(below), gap, slope))
        at, column = _back(rows, likeness, gap, (first, at, column), places)
    return [Place(0, False)] * column + places[::-1]


def _next(above: Floats, like: Floats, gap: float, slope: Floats) -> Floats:
    """The row below: pair, or leave the reference item alone; then leave hypothesis items alone, from the left."""
    row = np.empty_like(above)
    row[0] = above[0] + gap
    np.maximum(above[1:] + gap, above[:-1] + like, out=row[1:])
    return np.maximum.accumulate(row - slope) + slope if gap else np.maximum.accumulate(row)


def _back(
    rows: Sequence[Floats], likeness: Likeness, gap: float, corner: tuple[int, int, int], places: list[Place]
) -> tuple[int, int]:
    """From the corner (first row, row, column) back to the first row, or to the left edge; where it ended."""
    first, at, column = corner
    while column and at > first:
        above, row, like = rows[at - first - 1], rows[at - first], likeness(at - 1)
        while column:
            pair, lone, spare = above[column - 1] + like[column - 1], above[column] + gap, row[column - 1] + gap
            paired = pair >= lone and pair >= spare
            if paired or lone < spare:
                places.append(Place(at, bool(paired)))
                column -= 1
            if paired or lone >= spare:
                break
        at -= 1
    return at, column


def _alike(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """How alike the different items are (shared characters over all characters), and the number of each item."""
    kinds = [list(dict.fromkeys(items)) for items in (reference, hypothesis)]
    letters = {letter: at for at, letter in enumerate(dict.fromkeys("".join(map("".join, kinds))))}
    has = [np.zeros((len(kind), len(letters))) for kind in kinds]
    for kind, table in zip(kinds, has, strict=True):
        for at, text in enumerate(kind):
            table[at, [letters[letter] for letter in set(text)]] = 1.0
    shared = has[0] @ has[1].T
    every = has[0].sum(axis=1)[:, None] + has[1].sum(axis=1)[None, :] - shared
    marks = [np.array([text in MARKS for text in kind], dtype=bool) for kind in kinds]
    alike = np.where(marks[0][:, None] ^ marks[1][None, :], -np.inf, shared / np.maximum(every, 1.0))
    numbers = [{text: at for at, text in enumerate(kind)} for kind in kinds]
    rows, columns = (
        np.array([number[text] for text in items], dtype=np.intp)
        for number, items in zip(numbers, (reference, hypothesis), strict=True)
    )
    return alike, rows, columns


def _owners(reference: Sequence[Sequence[str]]) -> list[int]:
    return [number for number, part in enumerate(reference) for _ in part]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
