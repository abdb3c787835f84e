"""The page in a real browser: nothing is fetched, nothing is wider than the screen, dark pages can be read."""

from __future__ import annotations

import pytest

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
