"""The list of messages, and what the page does for those who use keys, a screen reader, or much enlargement."""

from __future__ import annotations

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.web.messages import Look, Place, gather, lanes
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from protocols import NetworkShuffle, PeerToPeer
from tests.render.web.conftest import make, served
from tests.render.web.test_keys import focus
from tests.rundir.test_lazy_run import cut_off


def wanted(name, **look):
    run = make(name)
    return lanes(run, KnownRun.of(run), gather(run, Place()), Look(**look), VIEW_FUNCTIONS.coalition)[
        "messages"
    ]


def cut(tab):
    """What is wider than the place it has."""
    wider = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.outerHTML)"
    return tab.page.eval_on_selector_all("#heads > *, .wide, .bar, #choices", wider)


def listed(tab):
    return tab.page.eval_on_selector_all(
        ".entry", "all => all.map(row => [row.dataset.id, ...[...row.cells].map(cell => cell.textContent)])"
    )


@pytest.mark.parametrize("view", ["", "shuffler2", "learner", "wire"])
def test_the_list_says_what_the_picture_shows(tab, server, view):
    tab.open(server.url)
    tab.page.select_option("#run", "shuffle")
    tab.drawn()
    tab.page.select_option("#view", view)
    tab.drawn()
    tab.page.click("#list")
    kinds, found = KnownRun.of(make("shuffle")).kinds, wanted("shuffle", view=view)
    for row, one in zip(listed(tab), found, strict=True):
        fields = kinds[one["kind"]].fields
        read = one["readable"] and [f"{name} = {value}" for name, value in one["fields"].items()]
        sight = "read" if one["readable"] else "seen, not read" if one["seen"] else "not seen"
        cells = [one["id"], str(one["round"]), one["kind"], one["from"], one["to"], f"{one['nbytes']:,}"]
        assert row == [*cells, *([sight] if view else []), ", ".join(read or fields)]
    assert tab.page.locator(".entry .struck").count() == sum(not one["readable"] for one in found)
    assert tab.page.locator(".mark").count() == 0
    tab.page.click("#list")
    assert tab.marks() == [one["id"] for one in found]


def test_messages_of_the_list_and_of_the_picture_are_chosen_alike(tab, server):
    tab.open(server.url)
    found = [one["id"] for one in wanted("peers")]
    tab.page.click("#list")
    tab.page.locator(".entry button").nth(2).click()
    assert found[2] in tab.text("#message")
    assert tab.text("#which") == f"Message 3 of {len(found)}"
    tab.page.focus("#picture")
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.get_attribute(".entry.chosen", "data-id") == found[3]
    tab.page.click("#list")
    assert tab.page.get_attribute(".mark.chosen", "data-id") == found[3]
    tab.page.click("#next")
    assert found[4] in tab.text("#message")
    for _ in range(4):
        tab.page.click("#previous")
    assert found[0] in tab.text("#message")
    assert tab.page.is_disabled("#previous")


def test_who_goes_by_keys_keeps_her_place(tab, server):
    tab.open(server.url)
    tab.page.focus("#heads button >> nth=3")
    tab.page.keyboard.press("Enter")
    tab.drawn()
    assert focus(tab) == "user:3"
    tab.page.focus("#rounds button >> nth=1")
    tab.page.keyboard.press("Enter")
    tab.drawn()
    assert focus(tab) == "2 label"
    tab.page.focus("#later")
    tab.page.keyboard.press("Enter")
    tab.drawn()
    assert tab.page.is_disabled("#later")
    assert focus(tab) == "picture", "a control that is no longer there hands over to the messages"


def test_arrows_scroll_where_there_are_no_messages(tab, server):
    tab.open(server.url)
    for place in ("#rounds button >> nth=0", "#next", "#theme"):
        tab.page.focus(place)
        tab.page.keyboard.press("ArrowDown")
        tab.page.keyboard.press("ArrowRight")
        tab.page.keyboard.press("/")
        assert tab.page.locator(".mark.chosen").count() == 0
        assert tab.page.input_value("#round") == ""
    tab.page.locator("#rounds button").nth(1).click()
    tab.drawn()
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.locator(".mark.chosen").count() == 1, "after a click the keys belong to the messages"


def test_what_changes_is_said(tab, server):
    tab.open(server.url)
    assert tab.page.get_attribute("#said", "role") == "status"
    tab.page.click("#later")
    tab.drawn()
    assert tab.page.text_content("#said") == tab.text("#what")
    assert "round 1" in tab.text("#what")
    assert tab.page.locator("#rounds tr[aria-current=true]").count() == 1


def test_numbers_are_read_as_the_page_writes_them(tab, server):
    tab.open(server.url)
    for text, user in {"user:41": "41", " 7 ": "7", "1,041": "1041"}.items():
        tab.page.fill("#user", text)
        with tab.page.expect_response(lambda answer: "api/lanes" in answer.url) as asked:
            tab.page.press("#user", "Enter")
        tab.drawn()
        assert f"user={user}&" in asked.value.url
    tab.complaints.clear()  # there is no user 1041


def test_an_error_is_in_sight_wherever_one_is(tab, server):
    tab.page.set_viewport_size({"width": 700, "height": 450})
    tab.open(server.url)
    tab.page.locator("#roles button, #kinds").first.scroll_into_view_if_needed()
    tab.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    tab.page.evaluate("show({ user: '99' })")
    tab.page.wait_for_selector("#error:not([hidden])")
    box = tab.page.locator("#error").bounding_box()
    assert 0 <= box["y"] < 450
    tab.complaints.clear()


def test_a_viewpoint_that_is_refused_can_be_mended(tab, server):
    tab.open(server.url)
    tab.page.select_option("#view", "?")
    tab.page.fill("#who", "learner+3*usr")
    tab.page.press("#who", "Enter")
    tab.page.wait_for_selector("#error:not([hidden])")
    assert tab.page.input_value("#who") == "learner+3*usr"
    tab.page.fill("#who", "learner+3*user")
    tab.page.press("#who", "Enter")
    tab.drawn()
    assert tab.page.is_hidden("#error")
    assert tab.text("#figures").startswith("Learnt by learner+3*user")
    tab.complaints.clear()


def test_a_run_that_was_cut_off_says_so_first(tab, tmp_path):
    cut_off(make("peers"), tmp_path / "cut", without="report")
    with served(tmp_path / "cut") as server:
        tab.open(server.url)
        assert "the run was cut off" in tab.text("#cut").lower()
        assert "seed not known" in tab.text("#setting")
        assert "The run was cut off" in tab.text("#figures")
    make("peers").save(tmp_path / "run")
    with served(tmp_path / "run") as server:
        tab.open(server.url)
        assert tab.page.is_hidden("#cut")


def test_names_that_begin_alike_are_told_by_their_ends(tab, server):
    tab.open(server.url)
    shown = "users => short([{ user: '', title: 'learner' }, ...users.map(user => ({ user }))])"
    for users, names in {
        ("7777700", "7777723"): ["…00", "…23"],
        ("1200", "1323"): ["1200", "1323"],
        ("99999", "100000"): ["99999", "100000"],
        ("7777700",): ["7777700"],
        ("12340", "12340"): ["…0", "…0"],
        (): [],
    }.items():
        assert tab.page.evaluate(shown, list(users)) == ["learner", *names]


def test_ends_of_names_are_not_cut(tab, tmp_path):
    people = Population.from_arrays(y=np.arange(1100) % 2 == 0, cluster=np.arange(1100) // 10)
    p2p_sim.run(PeerToPeer(0.1), people, trace="full", seed=0).save(tmp_path / "run")
    with served(tmp_path / "run") as server:
        tab.open(f"{server.url}#cluster=108")
        assert tab.page.locator("#heads button").all_inner_texts() == [f"…{one}" for one in range(10)]
        assert tab.page.locator("#heads button").first.get_attribute("aria-label") == "user:1080"
        tab.page.set_viewport_size({"width": 390, "height": 800})
        tab.page.reload()
        tab.drawn()
        assert cut(tab) == []


def test_a_run_without_messages_says_so(tab, tmp_path):
    run = p2p_sim.run(
        PeerToPeer(0.1), Population.synthetic(users=9, seed=1), trace="full", faults=["drop=1"], seed=0
    )
    run.save(tmp_path / "run")
    with served(tmp_path / "run") as server:
        tab.open(server.url)
        assert tab.text("#notes") == "they sent and received no messages"
        assert tab.text("#message") == "There is none to choose."
        assert tab.page.is_disabled("#next")
        tab.page.keyboard.press("ArrowDown")
        tab.page.keyboard.press("ArrowRight")
        tab.page.click("#list")
        assert listed(tab) == []
        tab.page.fill("#user", "3")
        tab.page.press("#user", "Enter")
        tab.drawn()
        assert tab.text("#notes") == "user 3 sent and received no messages"
        assert tab.text("#what").startswith("0 messages · user 3 (dropped)")


def test_what_a_screen_reader_is_told(tab, server):
    """Every table has headers, every control a name that holds what one sees of it."""
    tab.open(f"{server.url}#view=learner&as=list")
    said = tab.page.locator("body").aria_snapshot()
    for line in (
        'table "The run, by round"', 'rowheader "1 ask"', 'columnheader "messages"', 'button "earlier round"',
        'combobox "Viewpoint"', 'textbox "User"', 'button "List" [pressed]', 'region "The chosen message"',
        'columnheader "from here"', 'button "The next message"',
    ):  # fmt: skip
        assert line in said, line
    assert 'button ""' not in said
    assert said.count("heading") == said.count("[level=1]") + said.count("[level=2]")


def test_many_rounds_are_cut_and_said_to_be(tab, tmp_path):
    ring = Population.from_arrays(y=np.arange(6) % 2 == 0).with_graph([(i, (i + 1) % 6) for i in range(6)])
    run = p2p_sim.run(NetworkShuffle(1.0, steps=320), ring, trace="full", seed=0)
    run.save(tmp_path / "run")
    with served(tmp_path / "run") as server:
        tab.open(server.url)
        assert tab.page.locator("#rounds tbody tr").count() == 301
        assert "… 21 more: choose a round above" in tab.text("#rounds")
        assert tab.text("#rounds tfoot").split("\t")[1] == f"{321 * 6:,}"
        assert tab.page.locator("#overview").bounding_box()["height"] < 1500
        tab.page.select_option("#round", "321")
        tab.drawn()
        assert tab.page.locator("#rounds [aria-current]").count() == 0
        tab.page.select_option("#round", "300")
        tab.drawn()
        assert tab.text("#rounds [aria-current]").startswith("300 hop")


def test_theorems_that_do_not_apply_are_counted_and_can_be_read(tab, server):
    run = make("peers")
    idle = [
        row
        for row in VIEW_FUNCTIONS.privacy(run, "learner", "plain")["rows"]
        if row["basis"] == "does not apply"
    ]
    assert len(idle) == 2
    tab.open(server.url)
    assert "2 theorems do not apply here" in tab.text("#figures")
    assert idle[0]["text"] not in tab.text("#figures")
    tab.page.focus("#figures summary")
    tab.page.keyboard.press("Enter")
    for row in idle:
        assert row["text"] in tab.text("#figures")


@pytest.mark.parametrize("width", [1280, 640, 390])
def test_no_name_or_number_is_cut(tab, server, width):
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.open(server.url)
    for run in ("shuffle", "peers", "faults"):
        tab.page.select_option("#run", run)
        tab.drawn()
        assert cut(tab) == []


def test_what_is_chosen_stands_out_in_forced_colours(chromium, server):
    window = chromium.new_context(forced_colors="active", reduced_motion="reduce")
    page = window.new_page()
    page.goto(server.url + "#view=learner&message=ask%3A1%3A0%3A0%3A0")
    page.wait_for_selector("main[aria-busy='false']")
    page.locator("#picture").press("ArrowDown")
    look = "one => getComputedStyle(one).stroke"
    chosen, other = (
        page.eval_on_selector(at, look) for at in (".mark.chosen .shaft", ".mark:not(.chosen) .shaft")
    )
    assert chosen != other
    moving = "all => all.filter(one => getComputedStyle(one).transitionDuration !== '0s').length"
    assert page.eval_on_selector_all("*", moving) == 0
    window.close()
