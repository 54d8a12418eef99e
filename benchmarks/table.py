"""Tables in Markdown, which read as well in a terminal. A figure is the median of its repeats, with the range."""

import math
import statistics
from collections.abc import Sequence


def figure(values: Sequence[float | None], digits: int = 1) -> str:
    """`median (least-most)`, without the range where there is none to speak of; n/a where nothing was measured."""
    known = [value for value in values if value is not None and not math.isnan(value)]
    if not known:
        return "n/a"
    middle, low, high = (_number(value, digits) for value in (statistics.median(known), min(known), max(known)))
    return middle if low == high else f"{middle} ({low}-{high})"


def _number(value: float, digits: int) -> str:
    if math.isinf(value):
        return "never"
    return f"{value:,.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column is words, the others are figures."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = [
        _line(head, widths),
        "|".join(["", ":" + "-" * (widths[0] + 1), *("-" * (w + 1) + ":" for w in widths[1:]), ""]),
    ]
    return "\n".join([*lines, *(_line(row, widths) for row in rows)]) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return " | ".join(["| " + first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"
