"""Figures: numbers where they belong, and markup that no text can break."""

import math
import re
from xml.etree import ElementTree

import pytest

from loadbench.report import charts
from loadbench.report.charts import Curve, Dot, Line, Mark, Row, Scale


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.0, 60.0, [0, 10, 20, 30, 40, 50, 60]),
        (-0.4, 0.6, [-0.4, -0.2, 0.0, 0.2, 0.4, 0.6]),
    ],
)
def test_ticks_are_round_and_inside(low: float, high: float, expected: list[float]) -> None:
    assert Scale(low, high, 0, 100).ticks(6) == pytest.approx(expected)


def test_a_scale_maps_ends_to_ends_and_keeps_what_lies_outside_on_the_rim() -> None:
    scale = Scale(0, 10, 50, 150)
    assert [scale(value) for value in (0, 5, 10, 99, -3)] == [50, 100, 150, 150, 50]
    decades = Scale(0.1, 100, 0, 300, log=True)
    assert [decades(value) for value in (0.1, 1, 10, 100, 0)] == pytest.approx([0, 100, 200, 300, 0])
    assert decades.ticks() == pytest.approx([0.1, 1, 10, 100])


@pytest.mark.parametrize(("value", "expected"), [(0.7, 1.0), (1.0, 1.0), (0.0021, 0.0025), (31, 50), (0, 1.0)])
def test_a_nice_step_is_the_next_round_one(value: float, expected: float) -> None:
    assert charts.nice(value) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 3, 240, 1000, 100_000])
def test_a_distribution_ends_at_the_share_that_came_however_many_there_are(count: int) -> None:
    values = [0.5 + index / count for index in range(count)]
    drawing = charts.distribution([Curve("", "first", values, count * 2)], [], title="t", height=210)
    path = re.search(r'<path d="([^"]+)" class="curve first"', drawing)
    assert path is not None
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path[1])]
    base, top = 210 - charts.BOTTOM, charts.TOP
    assert heights[-1] == pytest.approx((base + top) / 2, abs=0.06), "half of them never came"
    assert heights == sorted(heights, reverse=True)
    assert len(heights) <= charts.MOST_STEPS + 1


def test_values_far_apart_are_drawn_by_decades() -> None:
    drawing = charts.distribution([Curve("", "final", [0.2, 42.0], 2)], [], title="t")
    texts = [element.text for element in ElementTree.fromstring(drawing) if element.tag == "text"]
    assert {"0.1", "1", "10", "100 s"} <= set(texts)


def test_a_value_below_zero_has_its_place() -> None:
    drawing = charts.over_time([Dot(0, -0.4, "dot final", "s1"), Dot(1, 0.5, "dot final", "s2")], [], title="t")
    heights = [float(found) for found in re.findall(r'cy="([\d.]+)"', drawing)]
    assert heights[0] > heights[1]


def test_nothing_to_draw_is_no_figure() -> None:
    assert charts.distribution([Curve("", "x", [], 0)], [], title="t") == ""
    assert charts.over_time([], [], title="t") == ""
    assert charts.levels([("x", [])], [], title="t", unit="") == ""
    assert charts.shares([("finished", 0, "none")], title="t") == ""


@pytest.mark.parametrize("log", [False, True])
def test_levels_of_one_second_and_of_nothing_but_zeros_can_be_drawn(log: bool) -> None:
    for pairs in ([(0.0, 0.0)], [(0.0, 0.0), (1.0, 0.0)], [(0.0, 3.0)]):
        drawing = charts.levels([("late", pairs)], [Line(5.0, "invalid", "INVALID")], title="t", unit="ms", log=log)
        ElementTree.fromstring(drawing)
        assert "nan" not in drawing


def test_parts_of_the_bar_are_as_wide_as_their_share() -> None:
    drawing = charts.shares([("finished", 3, "a"), ("failed", 1, "b"), ("cut", 0, "c")], title="t")
    widths = [float(found) for found in re.findall(r'width="([\d.]+)"', drawing)]
    assert len(widths) == 2
    assert widths[0] / widths[1] == pytest.approx(3, rel=0.02)


def test_no_text_breaks_out_of_a_figure() -> None:
    evil = "</svg><script>\"'&"
    rows = [Row(evil, [Mark(0.5, "dot final", evil), Mark(0.2, "tick")])]
    drawings = [
        charts.over_time([Dot(0, 1, "dot final", evil)], [Dot(0, 0, "cross", evil)], title=evil),
        charts.timeline(rows, [Line(1, "x", evil)], 2, title=evil),
        charts.shares([("finished", 1, evil)], title=evil),
    ]
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert root.get("aria-label") == evil
        assert "script" not in {element.tag for element in root.iter()}


def test_marks_without_words_share_one_path_and_others_can_be_pointed_at() -> None:
    marks = [Mark(index / 10, "tick chunk") for index in range(30)] + [Mark(3.2, "dot final", "3.200 s: word")]
    root = ElementTree.fromstring(charts.timeline([Row("chunks", marks)], [], 3.5, title="t"))
    assert len([path for path in root.iter("path") if path.get("class") == "tick chunk"]) == 1
    assert [title.text for title in root.iter("title")] == ["3.200 s: word"]


def test_no_coordinate_is_ever_not_a_number() -> None:
    drawing = charts.over_time([Dot(0, 0, "dot", "a")], [], title="t")
    assert all(math.isfinite(float(number)) for number in re.findall(r'c[xy]="([^"]+)"', drawing))
