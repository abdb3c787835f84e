"""The law of the optimal unbiased randomizer, against the matrix of its reports."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import Party, Rounds, exp
from p2p_sim.privacy.mechanisms import unbiased_response
from protocols import UnbiasedResponse

EPSILONS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0)


def worst(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], epsilon: float) -> float:
    return max(
        float(np.maximum(rows[a] - math.exp(epsilon) * rows[b], 0).sum())
        for a, b in itertools.permutations(range(len(rows)), 2)
    )


@pytest.mark.parametrize("epsilon0", [0.05, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("prior", ["uniform", "0.9,0.04,0.03,0.02,0.01"])
def test_the_law_is_that_of_the_worst_pair_of_labels(prior: str, epsilon0: float) -> None:
    protocol = UnbiasedResponse(epsilon0, 5, prior=prior)
    law = privacy.profile(protocol)
    assert law.basis == "exact"
    for epsilon in EPSILONS:
        assert law.delta(epsilon) == pytest.approx(
            worst(unbiased_response.matrix(protocol), epsilon), abs=1e-14
        )
    assert law.epsilon(0.0) == pytest.approx(epsilon0, abs=2e-6)
    rows = zip(*protocol.randomizer().chances, strict=True)  # exact: the float may be a rounding above
    assert max(Fraction(max(counts), min(counts)) for counts in rows) <= exp(epsilon0)
    assert privacy.profile(protocol, "user").delta(0.0) == 0


@pytest.mark.parametrize("labels", [22, 30])
def test_labels_between_nodes_show_no_more(labels: int) -> None:
    """Of many labels the law is that of all pairs where one pair is the worst, and otherwise above it."""
    protocol = UnbiasedResponse(1.0, labels)
    law = privacy.profile(protocol)
    several = len(unbiased_response.worst_pairs(protocol.randomizer())) > 1
    assert law.basis == ("upper" if several else "exact")
    for epsilon in EPSILONS:
        most = worst(unbiased_response.matrix(protocol), epsilon)
        assert most - 1e-14 <= law.delta(epsilon) <= 1.1 * most + 1e-14


def test_the_law_of_several_runs_holds_for_every_pair_of_labels() -> None:
    """Two runs, listed outcome by outcome, for all pairs: of many labels also those between nodes."""
    for labels in (5, 22):
        protocol = UnbiasedResponse(1.0, labels)
        rows = unbiased_response.matrix(protocol)
        twice = np.stack([np.outer(row, row).ravel() for row in rows])
        law = privacy.compose([(privacy.profile(protocol), 2)])
        for epsilon in (0.0, 0.7, 1.5):
            assert worst(twice, epsilon) <= law.delta_bracket(epsilon).upper + 1e-14


def test_only_pairs_that_another_one_dominates_are_left_out() -> None:
    rows = UnbiasedResponse(2.0, 7, prior="0.4,0.1,0.1,0.1,0.1,0.1,0.1").randomizer()
    kept = unbiased_response.worst_pairs(rows)
    assert 1 <= len(kept) < 21
    for a, b in itertools.combinations(rows.chances, 2):
        for x in np.geomspace(0.1, 10, 41).tolist():
            ways = [
                [
                    sum(max(p - x * q, 0) for p, q in zip(*way, strict=True))
                    for way in ((one, two), (two, one))
                ]
                for one, two in ((a, b), *kept)
            ]
            assert max(ways[0]) <= max(max(way) for way in ways[1:]) * (1 + 1e-12)


def test_a_pair_is_left_out_only_if_dominated_in_its_own_order() -> None:
    """What dominates the reverse does not dominate the pair, in runs with other pairs: here 0 and 1 were left out."""
    prior = "0.13903732638789734,0.5762490757954963,0.0015549088212179333,0.2831586889953885"
    made = UnbiasedResponse(5.54670258251413, 4, prior=prior).randomizer()
    kept = unbiased_response.worst_pairs(made)
    assert len(kept) < 6
    for pair in itertools.combinations(made.chances, 2):
        assert any(unbiased_response.dominates(other, pair) for other in kept)


@pytest.mark.parametrize(("labels", "epsilon0", "nodes"), [(22, 12.0, 22), (41, 9.0, 21)])
def test_the_law_of_randomized_response_is_that_of_the_worst_pair(
    labels: int, epsilon0: float, nodes: int
) -> None:
    """Of all labels, and of every second: then others are mixtures."""
    protocol = UnbiasedResponse(epsilon0, labels)
    assert protocol.randomizer().alike
    assert len(protocol.randomizer().nodes) == nodes
    law = privacy.profile(protocol)
    assert law.basis == "exact"
    for epsilon in (0.0, 1.0, 6.0, 8.0):
        most = worst(unbiased_response.matrix(protocol), epsilon)
        assert law.delta(epsilon) == pytest.approx(most, abs=1e-14)
    assert epsilon0 - 1e-9 < unbiased_response.local_epsilon(protocol) <= epsilon0


def test_enumeration_finds_the_same_figures() -> None:
    protocol = UnbiasedResponse(1.0, 3)
    law = privacy.profile(protocol)
    for epsilon in (0.0, 0.3, 0.9):
        found = max(
            privacy.enumerate_view(protocol, Population.from_arrays(y=np.array([a], np.uint8)), to=b).delta(
                epsilon
            )
            for a, b in itertools.combinations(range(3), 2)
        )
        assert law.delta(epsilon) == pytest.approx(found, abs=1e-14)


@dataclass(frozen=True)
class OfAnotherBudget(UnbiasedResponse):
    """Draws as one with a larger budget would."""

    def user(self, me: Party) -> Rounds:
        yield from UnbiasedResponse(self.epsilon + 0.7, self.labels).user(me)


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = UnbiasedResponse(2.0, 3)
    audit = privacy.audit(protocol, delta=1e-3, trials=20_000, seed=1)
    assert audit.verdict == "consistent"
    assert audit.lower > 1.6  # the true value is 2.0
    broken = privacy.audit(OfAnotherBudget(2.0, 3), delta=1e-3, trials=20_000, seed=1, against=protocol)
    assert broken.verdict == "violated"
