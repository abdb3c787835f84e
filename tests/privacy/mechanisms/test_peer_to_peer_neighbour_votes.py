"""Votes of a victim's neighbours: bounds against exact laws of all reports on small graphs, and their ingredients."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from p2p_sim import Population, privacy
from p2p_sim.network import topologies
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.mixtures import Scaled
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanisms.peer_to_peer import graph_law, neighbour_votes
from protocols import PeerToPeer
from tests.privacy import walking

RATIOS = (Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(2))
GRAPHS = {
    "path": (4, [(0, 1), (1, 2), (2, 3)]),
    "triangle with a tail": (4, [(0, 1), (1, 2), (0, 2), (2, 3)]),
    "all pairs": (4, list(itertools.combinations(range(4), 2))),
    "star": (5, [(0, 1), (0, 2), (0, 3), (0, 4)]),
    "house": (5, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)]),
}


def people(name: str) -> Population:
    users, edges = GRAPHS[name]
    return Population.from_arrays(y=np.zeros(users, bool)).with_graph(np.array(edges))


def bounds(name: str, flip: float, theta: float) -> list[Law]:
    degrees, unseen = graph_law._worst(people(name))
    assert unseen is not None
    return [neighbour_votes.fresh(flip, theta, degrees, unseen), neighbour_votes.least(flip, theta, degrees)]


@pytest.mark.parametrize("flip", [Fraction(1, 4), Fraction(2, 5)])
@pytest.mark.parametrize("name", GRAPHS)
def test_no_bound_is_below_the_exact_law(name: str, flip: Fraction) -> None:
    users, edges = GRAPHS[name]
    near, found = walking.near(edges, users), [Fraction(0)] * len(RATIOS)
    for victim, rest in itertools.product(range(users), itertools.product((0, 1), repeat=users - 1)):
        pair = [
            walking.reported(near, [*rest[:victim], bit, *rest[victim:]], flip, Fraction(1)) for bit in (0, 1)
        ]
        found = [max(old, walking.delta(*pair, ratio)) for old, ratio in zip(found, RATIOS, strict=True)]
    for law in bounds(name, float(flip), 1.0):
        for truth, ratio in zip(found, RATIOS, strict=True):
            at = math.log(ratio)
            assert truth == 0 if at >= law.pure() else float(truth) <= law.delta(at).upper


def test_votes_of_users_met_before_would_be_seen() -> None:
    """The twin: on a star all neighbours of the middle are met by nobody; taken as strangers they hide too well."""
    users, edges = GRAPHS["star"]
    near, flip = walking.near(edges, users), Fraction(1, 4)
    pair = [walking.reported(near, [bit, 0, 0, 0, 0], flip, Fraction(1)) for bit in (0, 1)]
    truth = float(walking.delta(*pair, RATIOS[2]))
    strangers = neighbour_votes.fresh(0.25, 1.0, np.full(4, 4), np.full(4, 6))
    assert (
        strangers.delta(math.log(RATIOS[2])).upper
        < truth
        <= bounds("star", 0.25, 1.0)[0].delta(math.log(1.5)).upper
    )


@pytest.mark.parametrize("zeros", [False, True])
def test_a_vote_dominates_what_a_neighbour_reports(zeros: bool) -> None:
    """Whatever labels and offsets, from one and from the other direction, by fractions."""
    degree, flip, theta = 4, Fraction(1, 4), Fraction(3, 4)
    vote = neighbour_votes._answer(float(flip), float(theta) / degree, 2)
    for offset, ones in itertools.product(
        (0, 1), (0, 1, 2)
    ):  # of 3 others, 2 are fresh, ``ones`` with label 1
        first, second = {}, {}
        for bits in itertools.product((0, 1), repeat=2):
            weight = math.prod((1 - flip if bit == (i < ones) else flip) for i, bit in enumerate(bits))
            s = offset + sum(bits)
            for law, b in ((first, 0), (second, 1)):
                law[bits, 1] = weight * theta * (s + b) / degree
                law[bits, 0] = weight * theta * (degree - s - b) / degree
                law[bits, -1] = weight * (1 - theta)
        one, other = (second, first) if zeros else (first, second)
        for ratio in RATIOS:
            truth = sum(max(Fraction(0), other[key] - ratio * one[key]) for key in one)
            assert float(truth) <= vote.directions(math.log(ratio))[int(zeros)].upper


def test_a_vote_has_the_loss_of_its_ones() -> None:
    vote = neighbour_votes._answer(0.25, 0.1, 5)
    for epsilon in (0.0, 0.3, 1.0):
        s = np.arange(6)
        expected = 0.1 * (binom.pmf(s, 5, 0.25) * np.maximum(0, 1 - np.expm1(epsilon) * s)).sum()
        assert vote.delta(epsilon).value == pytest.approx(expected, rel=1e-12)


def test_a_tally_is_the_law_of_its_votes() -> None:
    given, m = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 5)], 2
    right = Fraction(m + 1, 2 * m + 1)
    pairs = []
    for way in itertools.product((1, -1, 0), repeat=3):
        p, q = (
            math.prod(g * (r if v == 1 else 1 - r) if v else 1 - g for g, v in zip(given, way, strict=True))
            for r in (right, 1 - right)
        )
        pairs.append((p, q))
    tally = neighbour_votes.VoteSum.of(m, np.array([float(g) for g in given]))
    for ratio in RATIOS:
        truth = float(sum(max(Fraction(0), p - ratio * q) for p, q in pairs))
        low, value, high = tally.delta(math.log(ratio))
        assert low <= truth <= high
        assert value == pytest.approx(truth, rel=1e-12)
    assert tally.pure() == pytest.approx(math.log(max(p / q for p, q in pairs)))
    assert neighbour_votes.VoteSum.of(0, np.ones(2)).pure() == math.inf


def test_a_flip_in_front_of_a_law() -> None:
    p, q, flip = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.3, 0.6]), 0.2
    inner = Atoms(p[None], q[None])
    outer = Atoms(((1 - flip) * p + flip * q)[None], ((1 - flip) * q + flip * p)[None])
    law = neighbour_votes.AfterRandomizedResponse(flip, inner)
    assert law.pure() == pytest.approx(outer.pure())
    for epsilon in (0.0, 0.1, 0.5, 0.9):
        for mine, truth in zip(law.directions(epsilon), outer.directions(epsilon), strict=True):
            assert mine.value == pytest.approx(truth.value, rel=1e-9)
            assert mine.upper >= truth.value
    assert neighbour_votes.AfterRandomizedResponse(
        flip, Atoms(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    ).delta(0.3).value == (pytest.approx(LocalResponse.flipping(flip).delta(0.3).value, rel=1e-9))


@pytest.mark.parametrize("shape", ["regular:4", "scale-free:2", "small-world:4,0.3", "grid"])
def test_the_worst_neighbours_by_hand(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = topologies.join(Population.synthetic(users=36), shape, 2)
    assert graph.graph is not None
    near = [graph.graph.rows_of(i).tolist() for i in range(36)]
    worst: list[tuple[float, float]] = [(math.inf, math.inf)] * max(map(len, near))
    for victim, of in enumerate(near):
        known, rows = {victim}, []
        for j in of:
            rows.append((len(near[j]), len(set(near[j]) - known)))
            known |= set(near[j])
        worst = [
            (min(a, c), min(b, d))
            for (a, b), (c, d) in itertools.zip_longest(
                worst, sorted(rows), fillvalue=worst[0] and (math.inf, math.inf)
            )
        ]
    for part in (graph_law._PART, 50):
        monkeypatch.setattr(graph_law, "_PART", part)
        degrees, unseen = graph_law._worst.__wrapped__(graph)
        assert list(zip(degrees.tolist(), unseen.tolist(), strict=True)) == worst
    monkeypatch.setattr(graph_law, "_MOST_PAIRS", 0)
    assert graph_law._worst.__wrapped__(graph)[1] is None


def test_many_neighbours_amplify() -> None:
    found = {}
    for degree in (4, 20, 60):
        graph = topologies.join(Population.synthetic(users=240), f"regular:{degree}", 1)
        found[degree] = privacy.profile(PeerToPeer(0.3, over="neighbours"), population=graph)
    local = LocalResponse.flipping(0.3)
    told = Scaled(1 - (1 - 1 / 60) ** 60, local)
    assert found[60].delta(0.4) < found[20].delta(0.4) < found[4].delta(0.4) < told.delta(0.4).value
    assert found[60].delta(0.4) < 1e-2 * told.delta(0.4).value
    assert found[60].epsilon(1e-6) < 0.9 * local.epsilon0


def test_colluders_take_their_part() -> None:
    graph = topologies.join(Population.synthetic(users=240), "regular:60", 1)
    alone, two = (
        privacy.profile(PeerToPeer(0.3, over="neighbours"), view, population=graph)
        for view in ("learner", "learner+2*user")
    )
    caught = 1 - (1 - 1 / 60) ** 2
    local = LocalResponse.flipping(0.3).delta(0.2).value
    assert two.delta(0.2) == pytest.approx(caught * local + (1 - caught) * alone.delta(0.2), rel=1e-9)


def test_votes_compose() -> None:
    graph = topologies.join(Population.synthetic(users=100), "regular:30", 1)
    one = privacy.profile(PeerToPeer(0.3, over="neighbours"), population=graph)
    three = privacy.composed(one, 3)
    assert one.epsilon(1e-3) < three.epsilon(1e-3) < 3 * one.epsilon(1e-3 / 3)
