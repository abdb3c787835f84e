"""Pictures of notebooks: what is drawn stands for the numbers, and what others named is escaped."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from p2p_sim.result_picture import Bar, bars, curve

SVG = "{http://www.w3.org/2000/svg}"


def tree(picture: str) -> ElementTree.Element:
    """Read a picture, which is XML by itself, and hold it to what may stand in a page."""
    found = ElementTree.fromstring(picture)
    assert {each.tag for each in found.iter()} <= {"svg", "title", "text", "rect", "polyline", "path"}
    names = {name for each in found.iter() for name in each.attrib}
    assert not [name for name in names if name.startswith("on") or name in ("href", "style", "class")]
    return found


def test_bars_are_as_long_as_their_values() -> None:
    found = tree(bars("Sizes", [Bar("one", 10, "10 bytes"), Bar("half", 5, "5 bytes"), Bar("none", 0, "0")]))
    widths = [float(each.attrib["width"]) for each in found.iter("rect")]
    assert widths[0] == 2 * widths[1] > 0 == widths[2]
    assert [each.text for each in found.iter("text")] == ["one", "10 bytes", "half", "5 bytes", "none", "0"]
    assert found.attrib["aria-label"] == "Sizes"


def test_a_bar_without_end_says_so() -> None:
    found = tree(bars("ε", [Bar("exact", math.inf, "inf", marked=True), Bar("measured", 1, "1")]))
    wide, full = [float(each.attrib["width"]) for each in found.iter("rect")]
    assert wide == full > 0
    assert "inf →" in [each.text for each in found.iter("text")]


def test_a_curve_falls_where_its_values_do() -> None:
    found = tree(curve("δ over ε", [(0, 0.1), (1, 1e-3), (2, 1e-5)], "ε", "δ"))
    (line,) = found.iter("polyline")
    points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    (left, top), (middle, halfway), (right, bottom) = points
    assert (left + right) / 2 == pytest.approx(middle)
    assert (top + bottom) / 2 == pytest.approx(halfway)  # a factor of 100 each
    assert {"1e-1", "1e-5", "0", "2", "ε", "δ"} == {each.text for each in found.iter("text")}


@pytest.mark.parametrize("points", [[], [(0, 1)], [(0, 0), (1, 0)], [(0, 1), (0, 1)]])
def test_where_nothing_can_be_drawn_there_is_no_picture(points: list[tuple[float, float]]) -> None:
    assert curve("title", points, "x", "y") == ""
    assert bars("title", []) == ""


def test_what_others_named_is_escaped() -> None:
    hostile = '"><script>alert(1)</script>\x1b'
    for picture in (
        bars(hostile, [Bar(hostile, 1, hostile)]),
        curve(hostile, [(0, 1), (1, 0.1)], hostile, hostile),
    ):
        tree(picture)
        assert "<script" not in picture
        assert "\x1b" not in picture
        assert re.search(r'aria-label="&quot;&gt;&lt;script', picture)
