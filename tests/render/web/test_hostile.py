"""Names and values that are HTML, in the page and in an export, and what either asks for."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

import p2p_sim
from p2p_sim.core import Message, Party, Protocol
from p2p_sim.render.web.messages import Place
from p2p_sim.render.web.page import export
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.run import load
from tests.render.web.conftest import PEOPLE, SEED, make, served
from tests.run_json_files import document_in

HIT = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
NAME = HIT.replace("/", "")
"""A file name holds no slash."""


def hostile():
    """A run of a protocol whose every name is HTML, with HTML in what a run directory keeps as text."""

    def user(self, me: Party):
        yield kind(to=me.draw.member("peer", me.cluster), **{f"field{HIT}": me.y})

        yield tell()

    def server(self, me: Party):
        yield tell.receive()

    kind = Message("user", "user", f"says {HIT}", **{f"field{HIT}": bool})
    tell = Message("user", f"role{HIT}", HIT)
    body = {"user": user, f"role{HIT}": server, f"kind{HIT}": kind, f"tell{HIT}": tell, "__doc__": HIT}
    program = dataclass(frozen=True)(type(f"P{HIT}", (Protocol,), body))()
    run = p2p_sim.run(program, PEOPLE, seed=SEED, trace="full")
    return replace(
        run, parameters={f"parameter{HIT}": HIT}, digest=HIT, backend=HIT, protocol=f"module:{HIT}",
        faults_seen={(HIT, f"kind{HIT}", 1): 3},
    )  # fmt: skip


@pytest.fixture
def root(tmp_path):
    """A folder with one hostile run, by name too."""
    make("labels").save(tmp_path / NAME)
    shutil.copytree(tmp_path / NAME, tmp_path / "plain")
    return tmp_path


def unharmed(tab):
    """Whether no script ran, and no element was made of what was meant as text."""
    assert tab.page.evaluate("window.hit") is None
    assert tab.page.locator("img").count() == 0
    assert tab.page.locator("script").count() == tab.page.locator("script[nonce], #data").count()
    return True


def test_html_in_names_and_values_is_text(tab, root):
    with served(root, load=lambda _: hostile()) as server:
        tab.open(f"{server.url}")
        tab.page.select_option("#run", NAME)
        tab.drawn()
        assert unharmed(tab)
        assert HIT in tab.text("#title")
        assert NAME in tab.text("#title")
        assert f"parameter{HIT} = {HIT}" in tab.text("#setting")
        assert f"1 kind{HIT}" in tab.text("#rounds")
        assert HIT in tab.text("#faults")
        assert tab.page.title() == tab.page.text_content("#title") + " – p2p-sim"
        tab.page.locator("#picture").press("ArrowDown")
        assert f"field{HIT}" in tab.text("#message")
        assert f"says {HIT}" in tab.text("#message")
        assert f"kind{HIT}" in tab.page.text_content(".mark text")
        tab.page.select_option("#kind", f"kind{HIT}")
        tab.drawn()
        assert len(tab.marks()) > 20
        tab.page.fill("#user", HIT)
        tab.page.press("#user", "Enter")
        tab.page.wait_for_selector("#error:not([hidden])")
        assert HIT in tab.text("#error")
        assert unharmed(tab)
        tab.complaints.clear()  # of the refused search


def test_html_in_a_damaged_run_is_text(tab, root):
    place = root / NAME / "run.json"
    told = json.dumps(document_in(root / NAME))
    place.write_text(told.replace('"labels"', f'"labels{NAME}"'))
    with served(root / NAME) as server:
        tab.open(server.url)
        assert f"labels{NAME}" in tab.text("#error")
        assert unharmed(tab)
        assert all("400" in said for said in tab.complaints)
        tab.complaints.clear()


def test_html_in_an_export_is_text(tab, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(export(hostile(), HIT, VIEW_FUNCTIONS, Place()))
    tab.open(file.as_uri())
    assert unharmed(tab)
    assert HIT in tab.text("#title")
    assert len(tab.marks()) > 20
    tab.page.locator("#picture").press("ArrowDown")
    assert f"field{HIT}" in tab.text("#message")
    assert tab.asked == [file.as_uri()], "an export asks for nothing"


def test_text_that_turns_the_direction_of_writing_is_shown_as_marks(tab, tmp_path):
    def user(self, me: Party):
        yield kind(to=me.draw.member("peer", me.cluster), y=me.y)

    kind = Message("user", "user", "a\u202e\u2066b", y=bool)
    program = dataclass(frozen=True)(type("P", (Protocol,), {"user": user, "kind": kind}))()
    name = "run \u202e"
    p2p_sim.run(program, PEOPLE, seed=SEED, trace="full").save(tmp_path / name)
    with served(tmp_path) as server:
        tab.open(server.url)
        tab.page.locator("#picture").press("ArrowDown")
        whole = tab.page.locator("body").inner_text()
        assert "a\ufffd\ufffdb" in whole
        assert name.replace("\u202e", "\ufffd") in tab.text("#title")
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", whole)
        tab.complaints.clear()  # of figures, which nobody knows for a program of one's own


def test_the_test_can_tell(tab, root):
    """A page that takes names for HTML runs the script that this one does not."""
    tab.page.goto("about:blank")
    tab.page.evaluate("html => { document.body.innerHTML = html; }", HIT)
    tab.page.wait_for_function("window.hit === 1")
    tab.complaints.clear()


def test_only_its_server_is_asked(tab, server):
    tab.open(server.url)
    for act in (
        lambda: tab.page.select_option("#view", "wire"),
        lambda: tab.page.select_option("#run", "shuffle"),
        lambda: tab.page.click("#later"),
        lambda: tab.page.click("#theme"),
    ):
        act()
        tab.drawn()
    home = urlsplit(server.url)
    assert len(tab.asked) > 8
    for url in tab.asked:
        at = urlsplit(url)
        assert (at.scheme, at.netloc) == (home.scheme, home.netloc) or at.scheme == "data"
    assert tab.page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]") == ["", 0, 0]


def test_the_policy_stops_what_the_page_would_not_do(tab, server):
    """Scripts without the nonce, eval, and requests elsewhere: each is refused by the browser."""
    tab.open(server.url)
    tab.page.evaluate(
        "() => { const script = document.createElement('script'); script.textContent = 'window.hit = 1';"
        " document.body.append(script); }"
    )
    tab.page.evaluate("() => fetch('http://127.0.0.1:9/').catch(() => {})")
    assert tab.page.evaluate("window.hit") is None
    assert sum("Content Security Policy" in said for said in tab.complaints) >= 2
    tab.complaints.clear()


def test_an_export_works_from_a_file(tab, tmp_path):
    run = make("shuffle")
    file = tmp_path / "a page & more #1.html"
    file.write_text(export(run, "shuffle", VIEW_FUNCTIONS, Place(user=7)))
    tab.open(file.as_uri())
    assert tab.text("#holds").startswith(
        "This file holds 1 of the run's 180 messages: of user 7 and whom she met."
    )
    assert tab.page.is_hidden("#finding")
    assert len(tab.marks()) == 1
    assert tab.page.locator(".mark.unseen").count() == 0
    tab.page.select_option("#view", "learner")
    tab.drawn()
    assert tab.page.locator(".mark.unseen").count() == 1
    assert tab.text("#figures").startswith("Learnt by learner")
    tab.page.select_option("#view", "user:*")
    tab.drawn()
    assert tab.page.locator(".mark.unseen").count() == 0
    assert tab.text("#figures").startswith("Learnt by user:7")
    tab.page.select_option("#view", "wire")
    tab.page.select_option("#channels", "encrypted")
    tab.drawn()
    assert "encrypted channels" in tab.text("#figures")
    tab.page.click("#later")
    tab.page.click("#later")
    tab.drawn()
    assert tab.marks() == []
    assert tab.asked == [file.as_uri()]


def test_a_server_that_is_gone_is_named(tab, runs):
    with served(runs) as server:
        tab.open(server.url)
    tab.page.select_option("#view", "learner")
    tab.drawn()
    assert "is p2p-sim trace serve still running?" in tab.text("#error")
    tab.complaints.clear()


def test_a_run_read_by_the_real_loader_is_the_same(root):
    assert load(root / "plain").digest == load(root / NAME).digest
