"""What a screen reader and keys need of the page: landmarks, headings in order, names, room to press."""

from __future__ import annotations

import itertools

import pytest

OUTSIDE = """() => [...document.body.querySelectorAll("*")].filter(one => one.checkVisibility()
  && [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
  && !one.closest("header, main, aside, section[aria-label], [role=alert], .skip, script, style, noscript"))
  .map(one => one.outerHTML.slice(0, 80))"""

LEVELS = """() => [...document.querySelectorAll("h1, h2, h3, h4")].filter(one => one.checkVisibility())
  .map(one => [Number(one.tagName[1]), one.textContent])"""

NAMELESS = """() => [...document.querySelectorAll("button, select, input, [tabindex='0'], table, [role=img]")]
  .filter(one => one.checkVisibility() && !one.getAttribute("aria-label") && !one.labels?.length
    && !document.getElementById(one.getAttribute("aria-labelledby"))?.textContent
    && !(one.tagName === "BUTTON" && one.textContent.trim())).map(one => one.outerHTML.slice(0, 80))"""

SMALL = """() => [...document.querySelectorAll("button, select, input, summary")].filter(one => one.checkVisibility()
  && !one.closest("table")).map(one => [one.outerHTML.slice(0, 80), one.getBoundingClientRect().height])
  .filter(([, height]) => height < 24)"""

STUCK = """() => [...document.querySelectorAll("*")].filter(one => one.scrollHeight > one.clientHeight + 1
  && /auto|scroll/.test(getComputedStyle(one).overflowY) && one !== document.documentElement
  && one.tabIndex < 0 && !one.querySelector("button")).map(one => one.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("run", ["peers", "faults", "shuffle"])
@pytest.mark.parametrize("as_list", [False, True], ids=["picture", "list"])
def test_the_page_can_be_read_out_and_used_by_keys(tab, server, run, as_list):
    tab.page.set_viewport_size({"width": 700, "height": 450})  # 1,400 by 900 at 200 %
    tab.open(server.url)
    tab.page.select_option("#run", run)
    tab.drawn()
    if as_list:
        tab.page.click("#list")
    tab.page.locator("#picture").press("ArrowDown")
    ask = tab.page.evaluate
    assert ask(OUTSIDE) == []
    assert ask(NAMELESS) == []
    assert ask(SMALL) == []
    assert ask(STUCK) == []
    levels = ask(LEVELS)
    assert [level for level, _ in levels].count(1) == 1
    assert levels[0][0] == 1
    for (before, _), (after, text) in itertools.pairwise(levels):
        assert after <= before + 1, text


def test_the_measures_find_what_is_wrong(tab, server):
    """A page in which each thing is broken: every measure must say so."""
    tab.open(server.url)
    tab.page.evaluate("""() => {
      document.body.append("stray");
      const bad = document.createElement("div");
      bad.innerHTML = "text<button></button><p>a<br>b<br>c</p>";
      document.body.append(bad);
      Object.assign(bad.querySelector("p").style, { height: "9px", overflow: "auto" });
      Object.assign(document.getElementById("later").style, { minHeight: "0", height: "12px" });
    }""")
    for measure in (OUTSIDE, NAMELESS, STUCK, SMALL):
        assert tab.page.evaluate(measure), measure
