"""Figures as inline SVG, drawn by hand: no script, no library, colours from the page's style sheet.

Every figure is a function of numbers. Texts and attributes are escaped here, so that what comes out is safe markup.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup

from loadbench.report.visible import visible

WIDE: Final = 1000
HALF: Final = 490
LEFT: Final = 56
RIGHT: Final = 16
TOP: Final = 12
BOTTOM: Final = 24
LANE: Final = 24
NAMES: Final = 120  # for the names of a timeline's rows
STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_STEPS: Final = 240  # of a curve: more than there are pixels to tell them apart
SPREAD: Final = 30.0  # greatest to smallest value, from which an axis is logarithmic


class Curve(NamedTuple):
    """A step curve: sorted values out of a population of `n`, of which the others never came."""

    name: str
    style: str
    values: Sequence[float]
    n: int


class Dot(NamedTuple):
    """A value at a time; `label` is shown when somebody points at it."""

    x: float
    y: float
    style: str
    label: str


class Line(NamedTuple):
    """A straight line across a figure, with its name."""

    at: float
    style: str
    name: str


class Mark(NamedTuple):
    """Something that happened at a time in one row of a session's timeline."""

    at_s: float
    style: str
    label: str = ""


class Row(NamedTuple):
    """One row of a session's timeline."""

    name: str
    marks: Sequence[Mark]


@dataclass(frozen=True)
class Scale:
    """Values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; values outside lie on the rim."""
        share = (self._at(value) - self._at(self.low)) / ((self._at(self.high) - self._at(self.low)) or 1.0)
        return self.begin + (self.end - self.begin) * min(1.0, max(0.0, share))

    def ticks(self, most: int = 7) -> list[float]:
        """Round values along it."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers]
        step = nice((self.high - self.low) / most)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def _at(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value


@dataclass(frozen=True)
class Frame:
    """The axes of a figure: time or seconds to the right, in `width` by `height` units of the drawing."""

    width: int
    height: int
    x: Scale
    y: Scale

    def back(self, unit: str, *, percent: bool = False) -> Iterator[Markup]:
        """Horizontal lines with their values, the last one with its unit, and the axis below."""
        ticks = self.y.ticks(5)
        for value, text in zip(ticks, _texts(ticks, "%" if percent else unit), strict=True):
            yield tag("path", d=f"M{LEFT} {self.y(value):.1f}H{self.x.end:.1f}", class_="grid")
            yield _text(LEFT - 7, self.y(value) + 4, text, "end")
        yield from bottom(self.x, self.height)

    def across(self, line: Line) -> Markup:
        """A level, named at its right end."""
        at = self.y(line.at)
        path = tag("path", d=f"M{LEFT} {at:.1f}H{self.x.end:.1f}", class_=f"rule {line.style}")
        return path + _text(self.x.end, at - 4, line.name, "end")


def nice(value: float) -> float:
    """The next round step at or above `value`."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in STEPS if step * power >= value * (1 - 1e-9))


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """An element; `class_` is class, underscores are hyphens, numbers have one decimal, None is left out."""
    pairs = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _number(value))
        for key, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(child if isinstance(child, Markup) else visible(child) for child in children)
    if not body:
        return Markup("<{}{}/>").format(name, pairs)
    return Markup("<{0}{1}>{2}</{0}>").format(name, pairs, body)


def distribution(curves: Sequence[Curve], lines: Sequence[Line], *, title: str, height: int = 210) -> Markup:
    """How large a share had come within how many seconds. `curves` share their axes."""
    values = [value for curve in curves for value in curve.values]
    if not values:
        return Markup("")
    x = _seconds_axis([*values, *(line.at for line in lines)], HALF)
    frame = Frame(HALF, height, x, Scale(0, 1, height - BOTTOM, TOP))
    drawn = [upright(line, x, TOP, height - BOTTOM, height - BOTTOM - 7) for line in lines]
    drawn += [tag("path", d=_steps(curve, frame), class_=f"curve {curve.style}") for curve in curves if curve.values]
    return _figure(title, HALF, height, frame.back("", percent=True), drawn)


def over_time(dots: Sequence[Dot], lost: Sequence[Dot], *, title: str, height: int = 290) -> Markup:
    """Seconds by the time at which their session began. What never came is a cross on the upper rim."""
    if not dots and not lost:
        return Markup("")
    x = Scale(0, max(1.0, *(dot.x for dot in (*dots, *lost))), LEFT, WIDE - RIGHT)
    reach = [dot.y for dot in dots] or [1.0]
    frame = Frame(WIDE, height, x, Scale(min(0.0, *reach), _roof(max(reach)), height - BOTTOM, TOP + 16))
    drawn = [tag("circle", _title(dot.label), cx=x(dot.x), cy=frame.y(dot.y), r=3.2, class_=dot.style) for dot in dots]
    drawn += [tag("path", _title(dot.label), d=_cross(x(dot.x), TOP), class_=dot.style) for dot in lost]
    return _figure(title, WIDE, height, frame.back("s"), drawn)


def levels(
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    lines: Sequence[Line],
    *,
    title: str,
    unit: str,
    log: bool = False,
    height: int = 170,
) -> Markup:
    """Levels by time; each of `series` is a style and its (seconds, value) pairs in order."""
    points = [point for _, pairs in series for point in pairs]
    if not points:
        return Markup("")
    x = Scale(0, max(1.0, *(at for at, _ in points)), LEFT, WIDE - RIGHT)
    values = [value for _, value in points]
    rim = (height - BOTTOM, TOP)
    y = _decades([*values, *(line.at for line in lines)], *rim) if log else Scale(0, _roof(max(values)), *rim)
    frame = Frame(WIDE, height, x, y)
    drawn = [frame.across(line) for line in lines if y.low <= line.at <= y.high]
    drawn += [tag("path", d=_polyline(pairs, frame), class_=f"curve {style}") for style, pairs in series if pairs]
    return _figure(title, WIDE, height, frame.back(unit), drawn)


def shares(parts: Sequence[tuple[str, int, str]], *, title: str) -> Markup:
    """One bar, cut into parts of (style, count, label)."""
    total = sum(count for _, count, _ in parts)
    if not total:
        return Markup("")
    drawn, at = [], 0.0
    for style, count, label in parts:
        width = WIDE * count / total
        if count:
            drawn.append(tag("rect", _title(label), x=at, y=0, width=max(width - 1.5, 2.0), height=18, class_=style))
        at += width
    return _figure(title, WIDE, 18, [], drawn)


def timeline(rows: Sequence[Row], lines: Sequence[Line], last_s: float, *, title: str) -> Markup:
    """What happened in one session, a row for each kind of thing; seconds from media zero."""
    base = TOP + 8 + LANE * len(rows)
    times = [mark.at_s for row in rows for mark in row.marks]
    x = Scale(min(0.0, *times, 0.0), max(last_s, 0.1, *times), NAMES, WIDE - RIGHT)
    drawn = [upright(line, x, TOP, base, TOP + 2) for line in lines]
    for number, row in enumerate(rows):
        y = TOP + 8 + LANE * number + LANE / 2
        drawn.append(_text(NAMES - 10, y + 4, row.name, "end"))
        drawn.append(tag("path", d=f"M{x.begin:.1f} {y:.0f}H{x.end:.1f}", class_="lane"))
        drawn += _marks(row, x, y)
    return _figure(title, WIDE, base + BOTTOM, bottom(x, base + BOTTOM), drawn)


def bottom(x: Scale, height: int) -> Iterator[Markup]:
    """The lower axis, in seconds."""
    base, ticks = height - BOTTOM, x.ticks()
    yield tag("path", d=f"M{x.begin:.1f} {base}H{x.end:.1f}", class_="axis")
    for value, text in zip(ticks, _texts(ticks, "s"), strict=True):
        yield tag("path", d=f"M{x(value):.1f} {base}v4", class_="axis")
        yield _text(x(value), base + 18, text, "middle" if x(value) < x.end - 8 else "end")


def upright(line: Line, x: Scale, top: float, base: float, name_y: float) -> Markup:
    """A moment, with its name on the side that has room."""
    at = x(line.at)
    left = at > (x.begin + x.end) / 2
    name = _text(at + (-5 if left else 5), name_y, line.name, "end" if left else "start")
    return tag("path", d=f"M{at:.1f} {top}V{base}", class_=f"rule {line.style}") + name


def _marks(row: Row, x: Scale, y: float) -> Iterator[Markup]:
    """Marks that have nothing to say share one path; the others can be pointed at."""
    mute: dict[str, list[str]] = {}
    for mark in row.marks:
        at = x(mark.at_s)
        if mark.label:
            yield tag("circle", _title(mark.label), cx=at, cy=y, r=4.5, class_=mark.style)
        else:
            mute.setdefault(mark.style, []).append(f"M{at:.1f} {y - 5:.0f}v10")
    for style, pieces in mute.items():
        yield tag("path", d="".join(pieces), class_=style)


def _seconds_axis(values: Sequence[float], width: int) -> Scale:
    low, high = min(values), max(values)
    if low > 0 and high / low > SPREAD:
        return _decades(values, LEFT, width - RIGHT)
    return Scale(min(0.0, low), _roof(high), LEFT, width - RIGHT)


def _decades(values: Sequence[float], begin: float, end: float) -> Scale:
    """A logarithmic axis around the values above 0."""
    positive = [value for value in values if value > 0] or [1.0]
    low = 10.0 ** math.floor(math.log10(min(positive)))
    return Scale(low, max(10.0 ** math.ceil(math.log10(max(positive))), low * 10), begin, end, True)


def _roof(high: float) -> float:
    """A round value above the greatest one."""
    if high <= 0:
        return 1.0
    step = nice(high / 6)
    return math.ceil(high / step + 1e-9) * step


def _steps(curve: Curve, frame: Frame) -> str:
    """Up by one share at each value; a long one is thinned to as many steps as can be seen."""
    x, y, count = frame.x, frame.y, len(curve.values)
    stride = max(1, math.ceil(count / MOST_STEPS))
    kept = [*range(stride - 1, count - 1, stride), count - 1]
    begin = f"M{x(curve.values[0]):.1f} {y(0):.1f}"
    rises = "".join(f"H{x(curve.values[index]):.1f}V{y((index + 1) / curve.n):.1f}" for index in kept)
    return f"{begin}{rises}H{x.end:.1f}"


def _polyline(pairs: Sequence[tuple[float, float]], frame: Frame) -> str:
    """A single second is a dash, or it would not be seen."""
    points = [f"{frame.x(at):.1f} {frame.y(value):.1f}" for at, value in pairs]
    return "M" + "L".join(points) + ("h6" if len(points) == 1 else "")


def _cross(x: float, y: float) -> str:
    return f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"


def _texts(values: Sequence[float], unit: str) -> list[str]:
    """Labels of ticks with no more digits than they need, the last one with its unit; each of them where it is %."""
    if unit == "%":
        return [f"{value * 100:.0f} %" for value in values]
    gaps = [after - before for before, after in pairwise(values)]
    if not gaps or max(gaps) > 1.5 * min(gaps):  # one value, or a logarithmic axis
        texts = [f"{value:g}" for value in values]
    else:
        digits = next(digits for digits in range(12) if abs(round(gaps[0], digits) - gaps[0]) < gaps[0] * 1e-6)
        texts = [f"{value + 0.0:.{digits}f}" for value in values]
    return [*texts[:-1], f"{texts[-1]} {unit}".strip()] if texts else []


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return tag("text", text, x=x, y=y, text_anchor=None if anchor == "start" else anchor) if text else Markup("")


def _title(text: str) -> Markup:
    return tag("title", text) if text else Markup("")


def _figure(title: str, width: int, height: int, back: Iterable[Markup], front: Iterable[Markup]) -> Markup:
    return tag("svg", *back, *front, viewBox=f"0 0 {width} {height}", role="img", aria_label=title)


def _number(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else visible(str(value))
