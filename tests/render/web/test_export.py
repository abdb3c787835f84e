"""The exported file: what it holds, and what it must not."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import p2p_sim
from p2p_sim.core.errors import InputError
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.web.messages import Look, Place, gather, lanes
from p2p_sim.render.web.page import export
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.run import load
from protocols import SecureAggregation
from tests.render.web.conftest import MANY, SEED, make

LARGE = 9876543210123456789
"""A seed."""


def exported(run, place, name="a run"):
    page = export(run, name, VIEW_FUNCTIONS, place)
    held = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    return page, held, json.loads(held)


@pytest.mark.parametrize("name", ["peers", "shuffle", "faults"])
@pytest.mark.parametrize("place", [Place(user=5), Place(cluster=5)])
def test_it_holds_what_every_viewpoint_would_be_sent(name, place):
    run = make(name)
    _, _, data = exported(run, place)
    found, told = gather(run, place), KnownRun.of(run)
    whole = lanes(run, told, found, Look(), VIEW_FUNCTIONS.coalition)
    assert data["lanes"]["messages"] == whole["messages"]
    views = [point["view"] for point in data["overview"]["viewpoints"]]
    assert ("user:*" in views) == (place.user is not None)
    assert set(data["sights"]) == {f"{view}|plain" for view in views if view} | {"wire|encrypted"}
    assert set(data["figures"]) == set(data["sights"]) | {"|plain"}
    for key, bits in data["sights"].items():
        view, _, channels = key.partition("|")
        look = Look(view=view.replace("user:*", "user:5"), channels=channels)
        for message, seen, readable in zip(
            lanes(run, told, found, look, VIEW_FUNCTIONS.coalition)["messages"],
            bits["seen"],
            bits["readable"],
            strict=True,
        ):
            assert (message["seen"], message["readable"]) == (seen == "1", readable == "1")
    assert any("0" in bits["readable"] for bits in data["sights"].values())


def test_it_says_what_it_holds():
    _, _, data = exported(make("peers"), Place(user=7))
    run, held = make("peers"), len(data["lanes"]["messages"])
    every = sum(count.messages for count in run.counts.values())
    assert data["holds"].startswith(
        f"This file holds {held} of the run's {every} messages: of user 7 and whom she met."
    )
    _, _, data = exported(run, Place())
    assert "24 of 30 users of cluster 4" in data["holds"]
    for lacking in ("seed", "who dropped out or lied", "viewpoints that are not in the list"):
        assert lacking in data["lacks"]


def test_it_says_how_much_it_cut_and_not_how_to_see_more():
    run = p2p_sim.run(
        SecureAggregation(64, threshold=3, degree=62), MANY.part(np.arange(64)), trace="full", seed=SEED
    )
    _, _, data = exported(run, Place())
    total = lanes(run, KnownRun.of(run), gather(run, Place()), Look(), VIEW_FUNCTIONS.coalition)["total"]
    assert f", the first 2,000 of {total:,} of theirs." in data["holds"]
    assert not any("choose a kind" in note for note in data["lanes"]["notes"])


def test_it_does_not_hold_the_seed_nor_who_lied():
    run = make("faults")
    run.seed = LARGE
    page, _, data = exported(run, Place())
    assert str(LARGE) not in page
    assert data["overview"]["seed"] is None
    assert not any(lane["state"] for lane in data["lanes"]["lanes"])


def test_it_asks_nobody():
    page, _, _ = exported(make("peers"), Place())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", page)
    assert "@import" not in page
    assert [
        link for link in re.findall(r"https?://[^\"'\s)]+", page) if link != "http://www.w3.org/2000/svg"
    ] == []


def test_what_a_run_holds_cannot_end_the_data():
    run = make("peers")
    run.digest = "</script><script>alert(1)</script><!--script-->&amp;\u2028"
    _, held, data = exported(run, Place(user=7), "<!--script--></script>")
    assert not set("<>&\u2028") & set(held)
    assert data["overview"]["digest"] == run.digest


def test_figures_that_are_not_known_are_no_error(tmp_path):
    run = load(make("peers").save(tmp_path / "bare", population=False))
    _, _, data = exported(run, Place())
    assert "saved without its population" in data["figures"]["learner|plain"]["note"]
    with pytest.raises(InputError, match="which cluster is not known"):
        exported(run, Place(cluster=4))
