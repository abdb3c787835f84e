"""The page by keys alone, in light and dark, narrow and enlarged."""

from __future__ import annotations

import re

import pytest

from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.web.messages import Look, Place, gather, lanes
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from tests.render.web.conftest import make
from tests.render.web.test_style import contrast

LOOK = "look as learner"

TEXTS = """() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const paper = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
  };
  for (let text; (text = walk.nextNode()); ) {
    const at = text.parentElement, look = getComputedStyle(at);
    if (!text.textContent.trim() || at.closest("script, style, noscript, title, :disabled, [hidden], option")) continue;
    found.push([text.textContent.trim(), at instanceof SVGElement ? look.fill : look.color, paper(at)]);
  }
  return found;
}"""
"""What is written on the page, in which colour, on which paper."""


def plain(colour: str) -> str:
    assert colour.startswith("rgb("), colour
    return "#" + "".join(f"{int(part):02x}" for part in colour[4:-1].split(","))


def ids(name, place, **look):
    run = make(name)
    return [
        one["id"]
        for one in lanes(run, KnownRun.of(run), gather(run, place), Look(**look), VIEW_FUNCTIONS.coalition)[
            "messages"
        ]
    ]


def focus(tab):
    """Return what has the focus, after checking that one can see it."""
    name, outline = tab.page.evaluate(
        "() => { const at = document.activeElement, look = getComputedStyle(at);"
        " return [at.id || at.dataset.lane || at.textContent, look.outlineStyle + ' ' + look.outlineWidth]; }"
    )
    assert outline == "solid 3px", (name, outline)
    return name


def test_everything_is_reached_by_tab_in_the_order_of_the_page(tab, server):
    tab.open(server.url)
    stops = []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        stops.append(focus(tab))
        if stops[-1] == "user:3":
            break
    controls = [
        "Skip to the messages",
        "theme",
        "run",
        "view",
        "kind",
        "round",
        "later",
        "user",
        "Find",
        "cluster",
        "Show",
    ]
    rounds = ["1 ask", "2 label", "3 report"]
    assert stops == [
        *controls,
        *rounds,
        "after",
        "list",
        LOOK,
        "picture",
        "user:0",
        "user:1",
        "user:2",
        "user:3",
    ]
    tab.page.keyboard.press("Enter")
    tab.drawn()
    assert tab.marks() == ids("peers", Place(user=3))


def test_rounds_and_messages_by_arrows(tab, server):
    tab.open(server.url)
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Enter")
    assert focus(tab) == "picture", "the first stop skips to the messages"
    tab.page.keyboard.press("ArrowRight")
    tab.drawn()
    first = ids("peers", Place(), round=1)
    assert tab.marks() == first
    for place in (0, 1, 2):
        tab.page.keyboard.press("ArrowDown")
        assert tab.page.get_attribute(".mark.chosen", "data-id") == first[place]
        assert first[place] in tab.text("#message")
    tab.page.keyboard.press("ArrowUp")
    assert tab.page.get_attribute(".mark.chosen", "data-id") == first[1]
    tab.page.keyboard.press("ArrowLeft")
    tab.drawn()
    assert tab.marks() == ids("peers", Place())
    for _ in range(70):
        tab.page.keyboard.press("ArrowDown")
    frame, chosen = (tab.page.locator(at).bounding_box() for at in ("#picture", ".mark.chosen .shaft"))
    assert frame["y"] < chosen["y"] < frame["y"] + frame["height"], "what is chosen is brought into sight"


def test_a_user_is_found_by_keys(tab, server):
    tab.open(server.url)
    tab.page.locator("#picture").press("/")
    assert focus(tab) == "user"
    tab.page.keyboard.type("41")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Enter")
    tab.drawn()
    assert tab.marks() == ids("peers", Place(user=41))
    tab.page.keyboard.press("Escape")
    assert focus(tab) == "picture"
    tab.page.keyboard.press("ArrowRight")
    tab.drawn()
    assert tab.marks() == ids("peers", Place(user=41), round=1)
    tab.page.keyboard.press("Escape")
    tab.drawn()
    assert tab.marks() == ids("peers", Place(user=41))


def test_no_single_character_acts_outside_the_picture(tab, server):
    """WCAG 2.1.4: a shortcut of one letter or sign acts only while its component has the focus."""
    tab.open(server.url)
    before = tab.page.url
    for place in ("body", "#view", "#theme", "#list", "#rounds button"):
        tab.page.evaluate("document.activeElement.blur()")
        if place != "body":
            tab.page.locator(place).first.focus()
        held = tab.page.evaluate("document.activeElement.outerHTML")
        for sign in ("/", "q", "1", "?"):
            tab.page.keyboard.press(sign)
            assert tab.page.evaluate("document.activeElement.outerHTML") == held, (place, sign)
    assert tab.page.url == before


def test_arrows_belong_to_the_picture_again_after_a_choice_by_mouse(tab, server):
    tab.open(server.url)
    tab.page.locator("#view").focus()
    tab.page.keyboard.press("ArrowDown")
    tab.drawn()
    assert tab.page.input_value("#view") == "learner"
    assert focus(tab) == "view", "who chooses by keys goes on choosing"
    tab.page.keyboard.press("Escape")
    assert focus(tab) == "picture"
    tab.page.locator("#view").focus()
    tab.page.dispatch_event("#view", "pointerdown")
    tab.page.select_option("#view", "wire")
    tab.drawn()
    assert tab.page.evaluate("document.activeElement.id") == "picture"
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.locator(".mark.chosen").count() == 1
    assert tab.page.input_value("#view") == "wire"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("chosen", [False, True], ids=["by the machine", "by the button"])
def test_all_text_stands_out(tab, server, scheme, chosen):
    other = {"light": "dark", "dark": "light"}
    tab.page.emulate_media(color_scheme=other[scheme] if chosen else scheme)
    tab.open(server.url)
    if chosen:
        tab.page.click("#theme")
    tab.page.select_option("#run", "shuffle")
    tab.drawn()
    tab.page.select_option("#view", "learner")
    tab.drawn()
    tab.page.locator("#picture").press("ArrowDown")
    tab.page.fill("#user", "x")
    tab.page.press("#user", "Enter")
    tab.page.wait_for_selector("#error:not([hidden])")
    texts = tab.page.evaluate(TEXTS)
    papers = {plain(paper) for _, _, paper in texts}
    assert ("#ffffff" in papers) == (scheme == "light")
    assert len(texts) > 150
    for text, ink, paper in texts:
        assert contrast(plain(ink), plain(paper)) >= 4.5, (text, ink, paper)
    tab.complaints.clear()  # of the refused search


IN_SIGHT = """() => {
  const picture = document.querySelector('#picture'), frame = picture.getBoundingClientRect()
  const boxes = [...document.querySelectorAll('#heads > *')].map((one) => one.getBoundingClientRect())
  const within = (box) => box.left >= frame.left - 1 && box.right <= frame.left + picture.clientWidth + 1
  return [boxes.length, boxes.filter(within).length]
}"""


@pytest.mark.parametrize(("width", "fits"), [(1400, True), (1650, True), (1000, False)])
def test_all_lanes_are_in_sight_or_it_is_said_how_many_are_not(chromium, server, width, fits):
    from playwright.sync_api import expect  # where chromium is missing, so may this be

    window = chromium.new_context(viewport={"width": width, "height": 900})
    page = window.new_page()
    page.goto(server.url)
    page.wait_for_selector("main[aria-busy='false']")
    lanes, seen = page.evaluate(IN_SIGHT)
    assert lanes == 26
    said = page.locator("#beyond")
    assert said.is_visible() == (not fits)
    assert (seen == lanes) == fits
    if not fits:
        assert said.inner_text().startswith(f"{lanes - seen} of 26 lanes are out of sight: scroll")
        page.evaluate("document.querySelector('#picture').scrollLeft = 1e6")
        lanes, seen = page.evaluate(IN_SIGHT)
        expect(said).to_have_text(re.compile(f"^{lanes - seen} of"))
        page.set_viewport_size({"width": 1500, "height": 900})
        expect(said).to_be_hidden()
    window.close()


@pytest.mark.parametrize(("width", "height", "scale"), [(700, 900, 1), (700, 450, 2), (375, 700, 1)])
def test_nothing_is_wider_than_a_narrow_or_enlarged_page(chromium, server, width, height, scale):
    """A window of 1,400 pixels at 200 % shows as many as one of 700."""
    window = chromium.new_context(viewport={"width": width, "height": height}, device_scale_factor=scale)
    page = window.new_page()
    page.goto(server.url)
    page.wait_for_selector("main[aria-busy='false']")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for part in ("#title", "#view", "#user", "#rounds", "#picture", "#message", "#figures"):
        box = page.locator(part).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.locator("#picture").press("ArrowDown")
    picture = page.locator("#picture").bounding_box()
    chosen = page.locator(".mark.chosen text").bounding_box()
    assert picture["x"] <= chosen["x"] < picture["x"] + picture["width"]
    window.close()


@pytest.mark.parametrize("as_list", [False, True], ids=["picture", "list"])
def test_paper_has_all_that_is_shown_and_nothing_to_press(tab, server, as_list):
    tab.open(server.url)
    if as_list:
        tab.page.click("#list")
    grown = "one => one.scrollHeight > one.clientHeight + 1"
    assert tab.page.eval_on_selector("#picture", grown), "on a screen it scrolls"
    tab.page.emulate_media(media="print")
    assert not tab.page.eval_on_selector("#picture", grown)
    for part in ("#choices", "#theme", "#keys", "#list", "#next"):
        assert tab.page.is_hidden(part), part
    assert tab.page.is_visible("#figures")
