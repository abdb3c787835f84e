"""The page in a real browser: nothing is fetched, nothing is wider than the screen, dark pages can be read."""

from __future__ import annotations

import copy

import pytest

from p2p_sim.report import cautions, report_content, report_page
from tests.report.conftest import RUNS, page

SCREENS = {
    "wide": {"viewport": {"width": 1200, "height": 900}},
    "small": {"viewport": {"width": 390, "height": 844}},
    "twice as large": {"viewport": {"width": 600, "height": 450}, "device_scale_factor": 2},
    "dark": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "dark"},
}
INK = """all => all.filter(one => one.textContent.trim() && !one.closest('svg')).map(one => {
  let ground = one
  while (getComputedStyle(ground).backgroundColor == 'rgba(0, 0, 0, 0)') ground = ground.parentElement
  return [getComputedStyle(one).color, getComputedStyle(ground).backgroundColor]
})"""


def light(colour):
    """Return the relative luminance of ``rgb(...)``, as WCAG 2 has it."""
    shares = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


@pytest.fixture(scope="module")
def pages(runs, tmp_path_factory):
    """A page of one run, and one of several."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "one.html").write_text(page("html", runs / "peers"))
    (folder / "several.html").write_text(page("html", *(runs / name for name in RUNS)))
    return folder


@pytest.mark.parametrize("name", ["one", "several"])
@pytest.mark.parametrize("screen", SCREENS.values(), ids=SCREENS.keys())
def test_the_page_fits_and_can_be_read(chromium, pages, name, screen):
    window = chromium.new_context(**screen)
    tab, asked, said = window.new_page(), [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.goto((pages / f"{name}.html").as_uri())
    assert (asked, said) == ([(pages / f"{name}.html").as_uri()], [])
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for one, other in set(
        map(tuple, tab.eval_on_selector_all("h1, h2, p, a, td, th, figcaption, li, pre", INK))
    ):
        brighter, darker = sorted((light(one), light(other)), reverse=True)
        assert (brighter + 0.05) / (darker + 0.05) >= 4.5, (one, other)
    shown = tab.eval_on_selector_all(".wide", "all => all.map(one => one.getBoundingClientRect().width)")
    assert all(0 < width <= screen["viewport"]["width"] for width in shown)
    window.close()


def test_nothing_is_cut_off_on_paper(chromium, pages):
    window = chromium.new_context(viewport={"width": 680, "height": 960})  # A4 within its margins
    tab = window.new_page()
    tab.emulate_media(media="print")
    tab.goto((pages / "several.html").as_uri())
    ends = tab.eval_on_selector_all("table, svg", "all => all.map(one => one.getBoundingClientRect().right)")
    assert max(ends) <= 680
    window.close()


@pytest.fixture(scope="module")
def long_names(runs, tmp_path_factory):
    """A page of two runs whose names, views and words are longer than a screen is wide."""
    told = []
    for name in ("peers", "walk"):
        run = copy.deepcopy(report_content.documents([str(runs / name)])["runs"][0])
        views = run["privacy"]["views"]
        views += [
            copy.deepcopy(views[0]) | {"name": f"view{i}", "view": f"view{i}:{'x' * 70}"} for i in range(12)
        ]
        run |= {"run": f"{name}_{'of_a_folder' * 9}", "protocol": f"module:{'Class' * 20}"}
        run["data"] |= {"name": "d" * 150}
        run["privacy"] |= {"hidden": "z" * 200}
        told.append(run)
    place = tmp_path_factory.mktemp("long") / "page.html"
    place.write_text(report_page.page({"runs": told, "cautions": cautions.cautions(told)}, "html"))
    return place


WIDER = """[...document.querySelectorAll('table')].filter(
  (one) => one.scrollWidth > one.closest('.wide').clientWidth).length"""


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_wide_tables_scroll_in_boxes_of_their_own(chromium, long_names, width):
    window = chromium.new_context(viewport={"width": width, "height": 900})
    tab = window.new_page()
    tab.goto(long_names.as_uri())
    assert tab.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert tab.evaluate(WIDER) > 0
    window.close()


def test_long_names_are_broken_on_paper(chromium, long_names):
    window = chromium.new_context(viewport={"width": 680, "height": 960})
    tab = window.new_page()
    tab.emulate_media(media="print")
    tab.goto(long_names.as_uri())
    assert tab.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    window.close()
