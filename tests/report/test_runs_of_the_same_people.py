"""Runs on the same people: whether they share coins, and what they show together."""

from __future__ import annotations

import math

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, privacy
from p2p_sim.report import report_content, report_page
from p2p_sim.report.several_runs import together
from protocols import PeerToPeer, RandomizedResponse

PEOPLE = Population.synthetic(users=120, cluster_size=30, positive=0.4, seed=1)
OTHERS = Population.synthetic(users=120, cluster_size=30, positive=0.4, seed=2)
AT = 1e-6


def ran(*pairs, people=PEOPLE):
    return [p2p_sim.run(protocol, people, seed=seed) for protocol, seed in pairs]


def figures(found):
    return {row["view"]: row["exact"] and row["exact"]["epsilon"] for row in found["views"]}


def test_coins_of_their_own_add_up():
    found = together(ran((RandomizedResponse(1.0), 1), (RandomizedResponse(2.0), 2)), AT)
    assert found["coins"] == "independent"
    whole = privacy.compose([privacy.profile(RandomizedResponse(e)) for e in (1.0, 2.0)]).epsilon(AT)
    assert figures(found) == {"learner": whole, "wire": whole}
    assert 2.9 < whole < 3


def test_runs_of_one_protocol_share_their_worst_labels():
    """Labels and clusters are the same in both runs, so the worst labels of the others are, too."""
    people, one = Population.synthetic(users=20, cluster_size=10, seed=1), PeerToPeer(0.1)
    found = together(ran((one, 1), (one, 2), people=people), AT)
    profile = privacy.profile(one, population=people)
    same, free = (privacy.composed(profile, 2, same_case=case) for case in (True, False))
    assert figures(found)["learner"] == same.epsilon(AT) < free.epsilon(AT)


def test_answers_of_one_seed_that_differ_give_a_label_away():
    """epsilon = 1 and 2 lie with 0.269 and 0.119: 15 % are told apart."""
    runs = ran((RandomizedResponse(1.0), 4), (RandomizedResponse(2.0), 4))
    found = together(runs, AT)
    assert found["coins"] == "shared"
    assert figures(found) == {"learner": math.inf, "wire": math.inf}
    assert (runs[0].outputs["learner"]["y"] != runs[1].outputs["learner"]["y"]).any()
    one_run = privacy.profile(RandomizedResponse(1.0)).epsilon(AT)
    assert figures(together(ran((RandomizedResponse(1.0), 4), (RandomizedResponse(1.0), 4)), AT)) == {
        "learner": one_run,
        "wire": one_run,
    }


def test_a_seed_that_some_share_is_composed_with_the_others():
    one, two = RandomizedResponse(1.0), RandomizedResponse(0.5)
    found = together(ran((one, 1), (one, 1), (two, 2)), AT)
    assert found["coins"] == "some shared"
    whole = privacy.compose([privacy.profile(one), privacy.profile(two)]).epsilon(AT)
    assert figures(found)["learner"] == pytest.approx(whole, rel=1e-12)


def test_shared_coins_without_a_law_are_refused():
    found = together(ran((PeerToPeer(0.1), 1), (PeerToPeer(0.3), 1)), AT)
    row = next(row for row in found["views"] if row["view"] == "learner")
    assert row["exact"] is None
    assert "different seeds" in row["refused"]


def test_other_people_have_nothing_together():
    runs = [*ran((RandomizedResponse(1.0), 1)), *ran((RandomizedResponse(1.0), 2), people=OTHERS)]
    assert together(runs, AT) is None
    assert together(runs[:1], AT) is None


@pytest.mark.slow
@pytest.mark.parametrize("form", ["html", "md"])
def test_the_page_says_it(tmp_path, form):
    paths = []
    for name, seed in (("a", 7), ("b", 7)):
        run = p2p_sim.run(RandomizedResponse(1.0 + (name == "b")), PEOPLE, seed=seed)
        paths.append(str(run.save(tmp_path / name)))
    page = report_page.page(report_content.documents(paths), form)
    assert "All runs together" in page
    assert "of one seed" in page


def test_a_run_without_its_people_leaves_it_open(tmp_path):
    secret = int(np.int64(2) ** 62 + 5)
    paths = [
        str(
            p2p_sim.run(RandomizedResponse(1.0), PEOPLE, seed=secret + i).save(
                tmp_path / f"{i}", population=i > 0
            )
        )
        for i in range(2)
    ]
    found = report_content.documents(paths)["together"]
    assert (found["coins"], found["views"]) == ("unknown", [])
    assert "not known whether" in found["note"]
