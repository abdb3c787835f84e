"""The page's address: what it says is shown again after a reload, by the back button, and in an exported file."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from p2p_sim.render.web.messages import Place
from p2p_sim.render.web.page import export
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from tests.render.web.conftest import make, served
from tests.render.web.test_keys import ids

CHOICES = ("run", "view", "channels", "kind", "round", "user", "cluster")


def told(tab):
    """What the address says."""
    return {name: value for name, (value,) in parse_qs(urlsplit(tab.page.url).fragment).items()}


def looks(tab):
    """All that one sees and has chosen."""
    return (
        [tab.page.input_value("#" + name) for name in CHOICES], tab.marks(), tab.lanes(), tab.text("#what"),
        tab.text("#message"), tab.text("#figures"), tab.page.get_attribute("#list", "aria-pressed"),
        tab.page.evaluate("document.documentElement.dataset.theme"),
    )  # fmt: skip


def chosen(tab, *steps):
    """Take steps, each a selector and a value; return how the page looks after each."""
    seen = []
    for selector, value in steps:
        tab.page.select_option(selector, value)
        tab.drawn()
        seen.append(looks(tab))
    return seen


def test_a_reload_shows_the_same(tab, server):
    tab.open(server.url)
    chosen(tab, ("#run", "shuffle"))
    tab.page.fill("#cluster", "5")
    tab.page.press("#cluster", "Enter")
    tab.drawn()
    tab.page.click("#after")
    tab.drawn()
    chosen(tab, ("#view", "wire"), ("#channels", "encrypted"), ("#round", "1"))
    tab.page.locator("#picture").press("ArrowDown")
    tab.page.locator("#picture").press("ArrowDown")
    tab.page.click("#theme")
    before = looks(tab)
    assert told(tab) == {
        "run": "shuffle", "cluster": "5", "offset": "24", "view": "wire", "channels": "encrypted", "round": "1",
        "message": before[1][1], "theme": "dark",
    }  # fmt: skip
    tab.page.reload()
    tab.drawn()
    assert looks(tab) == before
    assert tab.page.get_attribute(".mark.chosen", "data-id") == before[1][1]


def test_back_and_forward_lead_through_what_was_chosen(tab, server):
    tab.open(server.url)
    start = looks(tab)
    seen = [start, *chosen(tab, ("#kind", "ask"), ("#view", "learner"), ("#run", "faults"), ("#round", "2"))]
    tab.page.locator("#picture").press("ArrowDown")  # no step of its own
    seen[-1] = looks(tab)
    for way, places in ((tab.page.go_back, (3, 2, 1, 0)), (tab.page.go_forward, (1, 2, 3, 4))):
        for place in places:
            way()
            tab.page.wait_for_function(
                "wanted => document.querySelector('#what').textContent === wanted", arg=seen[place][3]
            )
            tab.drawn()
            assert looks(tab) == seen[place], (way, place)


def test_what_is_not_chosen_is_not_in_the_address(tab, server):
    tab.open(server.url)
    chosen(tab, ("#kind", "ask"), ("#kind", ""))
    assert told(tab) == {"run": "peers"}
    tab.page.keyboard.press("Tab")
    before = tab.page.url
    tab.page.focus(".skip")
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "picture"
    assert tab.page.url == before, "the way to the messages is no state"


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        ("user=60", "user 60: not in this run"),
        ("user=%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E", "must be a whole number"),
        ("kind=gossip", "kind 'gossip'"),
        ("view=moon&round=1", "unknown part 'moon'"),
        ("run=elsewhere&kind=ask", "run elsewhere: not among those that are served"),
    ],
)
def test_an_address_of_what_there_is_not_shows_the_run_and_says_so(tab, server, fragment, said):
    tab.open(f"{server.url}#{fragment}")
    assert said in tab.text("#error")
    assert tab.marks() == ids("peers", Place())
    assert told(tab) == {"run": "peers"}
    assert tab.page.evaluate("window.hit") is None
    tab.complaints.clear()  # of what was refused


def test_names_that_are_none_are_left_alone(tab, server):
    tab.open(f"{server.url}#shape=round&kind=ask&__proto__=x&theme=loud&message=none")
    assert tab.marks() == ids("peers", Place(), kind="ask")
    assert tab.page.is_hidden("#error")


def test_an_exported_file_keeps_its_address_too(tab, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(export(make("peers"), "peers", VIEW_FUNCTIONS, Place(user=7)))
    tab.open(file.as_uri())
    chosen(tab, ("#view", "user:*"), ("#round", "2"))
    tab.page.locator("#picture").press("ArrowDown")
    before = looks(tab)
    tab.page.reload()
    tab.drawn()
    assert looks(tab) == before
    assert tab.page.is_hidden("#slash"), "there is nobody to be found by a key"
    whole = ids("peers", Place(user=7))
    for fragment, said in (("user=8", "user 8: not in this file"), ("view=user:3", "view user:3: not in")):
        tab.page.goto("about:blank")
        tab.open(f"{file.as_uri()}#{fragment}")
        assert said in tab.text("#error")
        assert tab.marks() == whole
    assert all(url.startswith(file.as_uri()) or url == "about:blank" for url in tab.asked)


def test_a_run_that_cannot_be_read_can_be_left(tab, tmp_path):
    make("peers").save(tmp_path / "good")
    make("peers").save(tmp_path / "bad")
    broken = tmp_path / "bad" / "run.json"
    broken.write_text(re.sub(r'"format": \d+', '"format": 99', broken.read_text()))
    with served(tmp_path) as server:
        tab.open(f"{server.url}#run=bad")
        assert "has format 99" in tab.text("#error")
        assert tab.page.is_hidden("#view")
        tab.page.keyboard.press("ArrowRight")
        chosen(tab, ("#run", "good"))
        assert tab.page.is_hidden("#error")
        assert tab.marks() == ids("peers", Place())
    tab.complaints.clear()  # of what was refused
