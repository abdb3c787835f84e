"""The page in a real browser: rounds, kinds, users, viewpoints, messages, figures."""

from __future__ import annotations

import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.web.messages import Look, Place, gather, lanes
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from protocols import SecureAggregation
from tests.render.web.conftest import make, served


def wanted(name, place=None, **look):
    run = make(name)
    return lanes(
        run, KnownRun.of(run), gather(run, place or Place()), Look(**look), VIEW_FUNCTIONS.coalition
    )["messages"]


def ids(messages):
    return [message["id"] for message in messages]


def test_the_first_view(tab, server):
    tab.open(server.url)
    assert tab.marks() == ids(wanted("peers"))
    assert tab.text("#title") == "PeerToPeer: peers"
    assert "theta = 0.7" in tab.text("#setting")
    every = sum(count.messages for count in make("peers").counts.values())
    shown = f"{len(tab.marks())} of the run's {every} messages"
    assert tab.text("#what") == f"{shown} · users 0 to 23, 24 of 30 · cluster 4"
    assert tab.lanes() == [*(f"user:{user}" for user in range(24)), "others", "learner"]
    rounds = make("peers").counts
    for row, ((kind, round), count) in zip(
        tab.page.locator("#rounds tbody tr").all(),
        sorted(rounds.items(), key=lambda item: item[0][1]),
        strict=True,
    ):
        assert row.inner_text().split("\t")[:2] == [f"{round} {kind}", f"{count.messages}"]
    assert "to learner" in tab.text("#roles")
    assert tab.text("#figures").startswith("Learnt by learner")
    said = tab.text("#figures")
    assert said.index("exact: ε = ") < said.index("odds of at most ") < said.index("exact: what it learns in")


def test_rounds_one_after_the_other(tab, server):
    tab.open(server.url)
    assert tab.page.is_disabled("#earlier")
    for round in (1, 2, 3):
        tab.page.click("#later")
        tab.drawn()
        assert tab.marks() == ids(wanted("peers", round=round))
        assert tab.page.input_value("#round") == str(round)
        assert f"round {round}" in tab.text("#what")
    assert tab.page.is_disabled("#later")
    tab.page.click("#earlier")
    tab.drawn()
    assert tab.marks() == ids(wanted("peers", round=2))
    tab.page.select_option("#kind", "ask")
    tab.drawn()
    assert tab.marks() == []
    assert "no such messages" in tab.text("#notes")
    tab.page.click("text=3 report")
    tab.drawn()
    assert tab.marks() == ids(wanted("peers", round=3, kind="report"))


def test_a_user_is_found_and_left(tab, server):
    tab.open(server.url)
    tab.page.fill("#user", " 41 ")
    tab.page.click("#finding button")
    tab.drawn()
    assert tab.marks() == ids(wanted("peers", Place(user=41)))
    assert tab.page.get_attribute("#heads .focus", "aria-label") == "user:41"
    assert tab.page.inner_text("#heads .focus") == "41"
    tab.page.click("#whole")
    tab.drawn()
    assert tab.marks() == ids(wanted("peers", Place(cluster=5)))
    tab.page.click("#heads button[aria-label='user:33']")
    tab.drawn()
    assert tab.marks() == ids(wanted("peers", Place(user=33)))
    tab.page.fill("#cluster", "4")
    tab.page.press("#cluster", "Enter")
    tab.drawn()
    tab.page.click("#after")
    tab.drawn()
    assert tab.marks() == ids(wanted("peers", Place(cluster=4, offset=24)))
    assert tab.page.is_disabled("#after")
    tab.page.fill("#user", "60")
    tab.page.press("#user", "Enter")
    tab.page.wait_for_selector("#error:not([hidden])")
    assert tab.text("#error") == "user 60: not in this run; its users are 0 to 59"
    assert tab.marks() == ids(wanted("peers", Place(cluster=4, offset=24))), "an error changes nothing"
    assert tab.page.input_value("#user") == "60", "what was refused can be mended"
    assert tab.page.get_attribute("#user", "aria-invalid") == "true"
    tab.page.click("#later")
    tab.drawn()
    assert tab.marks() == ids(wanted("peers", Place(cluster=4, offset=24), round=1))
    assert tab.page.input_value("#user") == ""
    tab.complaints.remove(
        "error: Failed to load resource: the server responded with a status of 400 (Bad Request)"
    )


def test_a_message_tells_its_fields(tab, server):
    tab.open(server.url)
    message = next(one for one in wanted("peers") if one["kind"] == "report")
    tab.page.locator(f".mark[data-id='{message['id']}'] .grip").click(force=True)
    told = dict(
        zip(*(tab.page.locator(f"#message {part}").all_inner_texts() for part in ("dt", "dd")), strict=True)
    )
    assert told["id"] == message["id"]
    assert (told["from"], told["to"]) == (message["from"], "learner")
    assert told["y"] == message["fields"]["y"]
    assert "hands the learner a resampled label" in told["meaning"]
    assert tab.page.locator(".mark.chosen").get_attribute("data-id") == message["id"]
    tab.page.click("#message button")
    tab.drawn()
    assert tab.page.input_value("#user") == message["from"][5:]


@pytest.mark.parametrize(
    ("run", "view"), [("peers", "learner"), ("shuffle", "shuffler"), ("shuffle", "wire")]
)
def test_a_viewpoint_strikes_out_what_it_cannot_read(tab, server, run, view):
    answers = []
    tab.page.on("response", hear := lambda answer: answers.append(answer))
    tab.open(server.url)
    if run != "peers":
        tab.page.select_option("#run", run)
        tab.drawn()
    answers.clear()
    tab.page.select_option("#view", view)
    tab.drawn()
    tab.page.remove_listener("response", hear)
    told = wanted(run, view=view)
    kinds = KnownRun.of(make(run)).kinds
    drawn = tab.page.eval_on_selector_all(
        ".mark", "all => all.map(one => [one.classList.contains('unseen'), one.querySelector('text').textContent, "
        "[...one.querySelectorAll('.struck')].map(part => part.textContent)])",
    )  # fmt: skip
    for message, (unseen, text, struck) in zip(told, drawn, strict=True):
        assert unseen == (not message["seen"])
        fields = kinds[message["kind"]].fields
        values = ", ".join(message["fields"].values() if message["readable"] else fields)
        assert text == f"{message['kind']} {values}".strip()
        assert struck == ([] if message["readable"] or not values else [values])
    sent = next(answer for answer in answers if "/lanes" in answer.url).json()["messages"]
    assert all(one["fields"] is None for one in sent if not one["readable"])
    assert tab.text("#figures").startswith(f"Learnt by {view}")
    hidden = next(place for place, one in enumerate(told) if not one["readable"] and one["kind"] != "ask")
    tab.page.locator(".mark").nth(hidden).locator(".grip").click(force=True)
    assert tab.page.locator("#message dd.struck").last.inner_text() == "cannot be read from here"


def test_the_user_in_focus_and_others_that_are_typed(tab, server):
    tab.open(server.url)
    assert tab.page.locator("#view option[value='user:*']").get_attribute("disabled") is not None
    tab.page.fill("#user", "7")
    tab.page.press("#user", "Enter")
    tab.drawn()
    tab.page.select_option("#view", "learner+user:*")
    tab.drawn()
    seen = wanted("peers", Place(user=7), view="learner+user:7")
    assert tab.page.locator(".mark.unseen").count() == sum(not one["seen"] for one in seen)
    assert tab.text("#figures").startswith("Learnt by learner+user:7")
    tab.page.select_option("#view", "?")
    tab.page.fill("#who", "wire+2*user")
    tab.page.press("#who", "Enter")
    tab.drawn()
    assert tab.page.is_visible("#channels")
    assert "wire+2*user looks: here, user:0+user:1+wire" in tab.text("#notes")
    assert tab.page.locator(".mark.unseen").count() == 0
    tab.page.select_option("#channels", "encrypted")
    tab.drawn()
    reads = wanted("peers", Place(user=7), view="wire+2*user", channels="encrypted")
    assert tab.page.locator(".mark .struck").count() == sum(
        not m["readable"] and m["kind"] != "ask" for m in reads
    )
    assert "encrypted channels" in tab.text("#figures")


def test_runs_side_by_side(tab, server):
    tab.open(server.url)
    tab.page.select_option("#run", "faults")
    tab.drawn()
    assert tab.marks() == ids(wanted("faults"))
    assert "lost" in tab.text("#faults")
    tab.page.select_option("#run", "labels")
    tab.drawn()
    assert tab.page.is_hidden("#faults")
    assert "recomputed from the seed, by running 24 users again: the trace (none)" in tab.text("#notes")
    assert {one["fields"]["y"] for one in wanted("labels")} == {"0", "1", "2", "3"}


def test_two_thousand_marks_and_no_more(tab, tmp_path):
    people = Population.synthetic(users=64, seed=1)
    p2p_sim.run(SecureAggregation(64, threshold=3, degree=62), people, trace="full", seed=0).save(
        tmp_path / "run"
    )
    with served(tmp_path / "run") as server:
        tab.open(server.url)
        assert len(tab.marks()) == 2000
        assert "only 2,000 of " in tab.text("#notes")
        assert tab.text("#what").startswith("the first 2,000 of ")
        tab.page.select_option("#kind", "advertise")
        tab.drawn()
        assert len(tab.marks()) == 24
