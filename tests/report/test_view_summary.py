"""What a page says that a view of a run learns: the figures of the account, each with its basis."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, privacy
from p2p_sim.core.errors import InputError
from p2p_sim.network import topologies
from p2p_sim.report.figure_text import bracket_text, figure
from p2p_sim.report.view_summary import MEANINGS, _odds, view_privacy
from protocols import NetworkShuffle, PeerToPeer

PEOPLE = Population.synthetic(users=200, cluster_size=50, seed=1)


@pytest.fixture
def run():
    return p2p_sim.run(PeerToPeer(0.1, theta=0.5), PEOPLE, seed=2**63 + 3)


def rows(found):
    return {row["basis"]: row["text"] for row in reversed(found["rows"])}


@pytest.mark.parametrize(
    ("view", "name"),
    [
        ("learner", "learner"),
        ("user:17", "user"),
        ("learner+user:7", "learner+user"),
        ("wire", "wire"),
        ("user:3+user:9", "2*user"),
        ("user:3+learner+user:9+wire", "learner+2*user+wire"),
    ],
)
def test_a_view_has_the_figure_of_its_account(run, view, name):
    profile = privacy.profile(run.source, name, population=PEOPLE)
    found = view_privacy(run, view)
    assert found["view"] == view
    assert rows(found)[profile.basis] == f"ε = {bracket_text(figure(profile, 1e-6))} at δ = 1e-06"


def test_the_wire_reads_nothing_through_encrypted_channels():
    people = Population.synthetic(users=50, seed=1)
    run = p2p_sim.run(PeerToPeer(0.1), people, seed=3)
    plain, closed = (view_privacy(run, "wire", channels) for channels in ("plain", "encrypted"))
    assert rows(closed)["exact"].startswith("ε = 0 ")
    assert rows(plain)["exact"] != rows(closed)["exact"]
    assert closed["note"].endswith("encrypted channels.")


def test_every_basis_is_explained_where_it_stands(run):
    for view in ("learner", "user:17", "learner+3*user"):
        found = view_privacy(run, view)
        for basis in {row["basis"] for row in found["rows"]} & set(MEANINGS):
            assert found["bases"][basis] == MEANINGS[basis]
        assert set(found["bases"]) <= {row["basis"] for row in found["rows"]}
    assert set(MEANINGS) == {"exact", "upper", "lower", "claimed", "measured", "refused"}, "as design.md has"


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25, 0.5, 1e-12])
def test_odds_are_those_of_the_randomizer(alpha):
    """A peer sees a label flipped with probability alpha: the odds of the two labels are (1 - alpha) / alpha."""
    people = Population.synthetic(users=40, seed=1)
    first = view_privacy(p2p_sim.run(PeerToPeer(alpha), people, seed=3), "user:1")["rows"][0]
    told = re.search(r"odds of at most ([0-9,.]+) to 1", first["odds"])
    if alpha in (0.5, 1e-12):  # nothing is learnt, or all
        assert told is None
        return
    odds = Fraction(1) / Fraction(str(alpha)) - 1
    assert Fraction(told[1]) == odds


def test_odds_are_rounded_up():
    assert "at most 2.72 to 1" in _odds({"basis": "exact", "epsilon": 1.0})
    assert "at most 404 to 1" in _odds({"basis": "upper", "epsilon": 6.0})
    assert _odds({"basis": "lower", "epsilon": 1.0}) == _odds({"basis": "exact", "epsilon": math.inf}) == ""


def test_what_takes_long_and_what_is_refused_say_so(run):
    late = rows(view_privacy(run, "learner+3*user"))["not computed here"]
    assert late == "see p2p-sim account --view 'learner+3*user'"
    graph = Population.synthetic(users=4, seed=1).with_graph([(0, 1), (1, 2), (2, 3)])
    walk = p2p_sim.run(NetworkShuffle(1.0, steps=2), graph, seed=1)
    assert {row["basis"] for row in view_privacy(walk, "learner")["rows"]} <= {
        "refused",
        "upper",
        "exact",
        "not computed here",
    }


def test_what_is_no_exact_figure_is_told_by_its_sign(run):
    graph = topologies.join(Population.synthetic(users=300, seed=1), "regular:20", seed=1)
    walk = p2p_sim.run(NetworkShuffle(1.0, steps=2), graph, seed=1)
    assert rows(view_privacy(walk, "learner+user:3"))["upper"].startswith("ε ≤ 1 at δ = ")
    sizes = Population.from_arrays(y=np.zeros(210, bool), cluster=np.repeat(np.arange(20), np.arange(1, 21)))
    some = p2p_sim.run(PeerToPeer(0.1), sizes, seed=1)
    assert rows(view_privacy(some, "learner+user:3"))["lower"].startswith("ε ≥ ")


def test_what_cannot_be_said_is_named(run, tmp_path):
    bare = p2p_sim.load(run.save(tmp_path / "bare", population=False))
    with pytest.raises(InputError, match="saved without its population"):
        view_privacy(bare, "learner")
    run.source = None
    with pytest.raises(InputError, match="is not a shipped protocol"):
        view_privacy(run, "learner")
