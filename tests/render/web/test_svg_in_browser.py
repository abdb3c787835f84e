"""SVG diagrams in a real browser: every word is inside the picture, and none lies over another."""

from __future__ import annotations

from typing import Any

import pytest

from p2p_sim.render.scene import scene
from p2p_sim.render.svg import INK, PAPER, svg
from p2p_sim.trace.slices import Slice
from protocols import PeerToPeer
from tests.render.material import EVIL, PROTOCOLS, evil, many, sight_of, sliced

BOXES = """() => {
  const page = document.querySelector("svg").viewBox.baseVal;
  const words = [...document.querySelectorAll("text")].map((one) => [one.getBBox(), one.textContent]);
  const outside = words.filter(([box]) => box.x < page.x || box.y < page.y
    || box.x + box.width > page.x + page.width || box.y + box.height > page.y + page.height);
  const over = [];
  words.forEach(([a, said], i) => words.slice(i + 1).forEach(([b, other]) => {
    const wide = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
    const high = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
    if (wide > 1 && high > a.height / 4) over.push([said, other]);  // lines may touch: letters are lower than boxes
  }));
  return { count: words.length, outside: outside.map(([, said]) => said), over };
}"""


def pictures() -> dict[str, Any]:
    """Scenes of every protocol, through nobody's and somebody's eyes, of few and of many, with odd names."""
    found = {}
    for name, protocol in PROTOCOLS.items():
        _, part = sliced(protocol)
        found[name] = scene(part, f"{name}, {'with a long title ' * 6}")
        found[f"{name} seen"] = scene(
            part, name, viewpoint="wire", sight=sight_of(protocol, part, "wire"), notes=["a note " * 40]
        )
    _, part = sliced(PeerToPeer(0.1), many())
    found["clusters"] = scene(
        part, "t", clusters=lambda ids: ids // 10 + 5, command="p2p-sim trace diagram r"
    )
    found["roles"] = scene(part, "A title that is wider than lanes are, in all of this picture", command="c")
    found["narrow"] = scene(
        Slice.of({}, {}), "A title that is far wider than all that is drawn below it", requested=[3]
    )
    found["odd names"] = scene(evil(), " ".join(EVIL), notes=["標籤 を 送る " * 30])
    return found


@pytest.mark.parametrize(("name", "drawn"), pictures().items(), ids=pictures().keys())
def test_no_word_is_cut_or_written_over_another(name, drawn, tab):
    tab.page.set_content(f"<!doctype html>{svg(drawn)}")
    found = tab.page.evaluate(BOXES)
    assert found["count"] >= 1 + len(drawn.lanes) + len(drawn.arrows)
    assert (found["outside"], found["over"]) == ([], [])


def test_light_dark_and_on_paper(tab):
    tab.page.set_content(f"<!doctype html>{svg(scene(sliced(PeerToPeer(0.1))[1], 't'))}")

    def colours() -> list[str]:
        fills: list[str] = tab.page.evaluate(
            "() => ['.pd-paper', '.pd-text'].map((one) => getComputedStyle(document.querySelector(one)).fill)"
        )
        return fills

    def plain(colour: str) -> str:
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        return f"rgb({red}, {green}, {blue})"

    for number, media in enumerate(("light", "dark")):
        tab.page.emulate_media(color_scheme=media)
        assert colours() == [plain(PAPER[number]), plain(INK[number])]
    tab.page.emulate_media(color_scheme="dark", media="print")
    assert colours() == [plain(PAPER[0]), plain(INK[0])]


def test_a_wide_picture_is_printed_whole(tab, tmp_path):
    file = tmp_path / "wide.svg"
    file.write_text(svg(pictures()["clusters"]))
    tab.page.goto(file.as_uri())
    width = "() => document.documentElement.getBoundingClientRect().width"
    seen = tab.page.viewport_size["width"]
    assert tab.page.evaluate(width) > 2 * seen  # on a screen, one scrolls
    tab.page.emulate_media(media="print")
    assert tab.page.evaluate(width) <= seen
