"""The mark of each kind of message: another colour and shape, in the legend and on the arrows alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from protocols import SecureAggregation
from tests.render.web.conftest import served

MARK = """one => { const tail = one.querySelector(".tail"), look = getComputedStyle(tail);
  return [look.stroke, tail.getAttribute("d") + (look.fill === look.stroke ? "" : " open")]; }"""
"""Colour and shape of what has a mark."""


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A run of eight kinds."""
    people = Population.from_arrays(y=np.arange(40) % 3 == 0)
    made = p2p_sim.run(SecureAggregation(bag_size=8, degree=4), people, seed=1, trace="full")
    return made.save(tmp_path_factory.mktemp("many") / "run")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_has_its_own_mark(tab, many, scheme):
    tab.page.emulate_media(color_scheme=scheme)
    with served(many) as server:
        tab.open(server.url)
        names = tab.page.eval_on_selector_all("#kinds dt", "all => all.map(one => one.textContent.trim())")
        told = tab.page.eval_on_selector_all("#kinds dt", f"all => all.map({MARK})")
        assert len(names) == 8 == len(set(map(tuple, told)))
        for before, after in itertools.pairwise(told):
            assert before[0] != after[0], "neighbours differ in colour"
            assert before[1] != after[1], "and in shape, for who sees no colours"
        rounds = tab.page.eval_on_selector_all(
            "#rounds tbody th", f"all => all.map(one => [one.textContent.trim(), ({MARK})(one)])"
        )
        drawn = tab.page.eval_on_selector_all(
            "#picture .mark", f"all => all.map(one => [one.dataset.id.split(':')[0], ({MARK})(one)])"
        )
        marks = dict(zip(names, told, strict=True))
        assert {name for name, _ in drawn} == set(names)
        for name, mark in [(text.split()[1], mark) for text, mark in rounds] + drawn:
            assert mark == marks[name], name


def test_what_a_viewpoint_has_is_counted(tab, server):
    tab.open(server.url)
    tab.page.click("#legend button")
    tab.drawn()
    assert tab.page.input_value("#view") == "learner"
    sights = {look: tab.page.locator(f".mark{look}").count() for look in ("", ".unseen")}
    shut = tab.page.locator(".mark:not(.unseen):has(.struck)").count()
    told = tab.text("#legend")
    assert 0 < sights[".unseen"] < sights[""]
    assert f"learner reads {sights[''] - sights['.unseen'] - shut}, sees but cannot read {shut}" in told
    assert f"does not see {sights['.unseen']} (dotted)" in told
    tab.page.select_option("#run", "shuffle")
    tab.drawn()
    tab.page.select_option("#view", "shuffler")
    tab.drawn()
    shut = tab.page.locator(".mark:not(.unseen):has(.struck)").count()
    assert shut > 0
    assert f"cannot read {shut} (struck out)" in tab.text("#legend")
    assert tab.page.text_content("#said").endswith(tab.page.text_content("#legend")), "it is read out"
