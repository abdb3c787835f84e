"""Runs of one seed: their law against enumeration of the word and against real runs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import p2p_sim
from p2p_sim import privacy
from p2p_sim.core import InputError, Population
from p2p_sim.privacy.composition.compose import one_word
from protocols import PeerToPeer, RandomizedResponse


def answers(label: int, lies: list[Fraction], k: int) -> dict[tuple[int, ...], Fraction]:
    """The law of one user's answers, the word followed over all cells between the probabilities, and every lie."""
    cuts = sorted({Fraction(0), *lies, Fraction(1)})
    law: Counter[tuple[int, ...]] = Counter()
    for low, high in itertools.pairwise(cuts):
        for other in range(1, k):
            said = tuple((label + other) % k if low < lie else label for lie in lies)
            law[said] += (high - low) / (k - 1)
    return law


def excess(p: dict, q: dict, x: float) -> float:
    return float(
        sum(max(Fraction(0), p.get(o, Fraction(0)) - Fraction(x) * q.get(o, Fraction(0))) for o in p)
    )


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("lies", [(1, 3), (3, 1), (2, 2), (0, 4), (1, 2, 4), (5, 5, 1)])
def test_the_law_is_that_of_the_word_followed(k, lies):
    fractions = [Fraction(lie, 10) for lie in lies]
    budgets = [math.log((k - 1) * (1 - a) / a) if a else math.inf for a in map(float, fractions)]
    law = one_word([max(0.0, budget) for budget in budgets], k)
    p, q = answers(0, fractions, k), answers(1, fractions, k)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0):
        for found, (one, two) in zip(law.directions(epsilon), ((q, p), (p, q)), strict=True):
            assert found.value == pytest.approx(excess(one, two, math.exp(epsilon)), abs=1e-12)


def test_a_label_is_given_away_by_answers_that_differ():
    first, second = (privacy.profile(RandomizedResponse.flipping(alpha)) for alpha in (0.1, 0.3))
    joint = privacy.compose([first, second], coins="shared")
    assert joint.basis == "exact"
    assert joint.delta(0.0) == pytest.approx(0.8, abs=1e-12)  # 1 - 0.3 + 0.2 - 0.1
    for epsilon in (3.0, 50.0, math.inf):
        assert joint.delta(epsilon) == pytest.approx(0.2, abs=1e-12)
    independent = privacy.compose([first, second])
    assert independent.delta(4.0) == 0  # ln 9 + ln(7 / 3) = 3.04: no bound for runs that share their coins
    assert any("same random word" in note for note in joint.assumes)


def test_real_runs_of_one_seed_follow_it():
    people = Population.synthetic(users=40_000, cluster_size=None, positive=0.5, seed=3)
    seen = [
        p2p_sim.run(RandomizedResponse.flipping(alpha), people, seed=5).outputs["learner"]["y"]
        for alpha in (0.1, 0.3)
    ]
    truth = people.y.astype(np.uint8)
    lied = [y != truth for y in seen]
    assert not (lied[0] & ~lied[1]).any()
    frequency = float((seen[0] != seen[1]).mean())
    assert abs(frequency - 0.2) < 5.5 * math.sqrt(0.2 * 0.8 / 40_000)  # false alarm below 4e-8
    assert np.array_equal(seen[0][seen[0] != seen[1]], truth[seen[0] != seen[1]])


def test_the_times_of_a_part_are_one_run():
    reports = privacy.profile(PeerToPeer(0.1), cluster_size=50)
    joint = privacy.composed(reports, 4, coins="shared")
    assert joint.epsilon(1e-6) == reports.epsilon(1e-6)
    assert joint.basis == reports.basis


def test_parts_that_look_alike_may_be_of_different_programs():
    """One sends y + r, the other r: each shows nothing, both together show y."""
    blind = privacy.profile(RandomizedResponse(1.0), "wire", channels="encrypted")
    assert blind.delta(0.0) == 0
    assert privacy.compose([blind, blind], coins="shared").basis == "refused"


@pytest.mark.parametrize(
    "others",
    [
        [privacy.profile(PeerToPeer(0.2), cluster_size=50)],
        [privacy.profile(RandomizedResponse(1.0, labels=3))],
        [privacy.profile(PeerToPeer(0.1), "wire", cluster_size=50)],
        [privacy.laplace(scale=2.0)],
    ],
)
def test_what_is_not_known_is_refused(others):
    joint = privacy.compose([privacy.profile(RandomizedResponse(1.0)), *others], view="x", coins="shared")
    assert joint.basis == "refused"
    assert "different seeds" in joint.why


def test_no_runs_show_nothing_and_bad_words_are_named():
    assert privacy.composed(privacy.laplace(scale=1.0), 0, coins="shared").epsilon(0.0) == 0
    with pytest.raises(InputError, match="coins = 'same': must be 'independent' or 'shared'"):
        privacy.composed(privacy.laplace(scale=1.0), 2, coins="same")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "basic"])
def test_no_lower_end_is_below_that_of_a_part(method):
    """In the clear the end is infinite; it was 0."""
    clear = privacy.profile(PeerToPeer(alpha=0.0), cluster_size=100)
    noisy = privacy.shuffled_response(100, 1.0)
    for one, other in [(clear, clear), (noisy, privacy.laplace(scale=2.0)), (noisy, noisy)]:
        joint = privacy.compose([one, other], view="both", method=method)
        for delta in (1e-6,):
            least = max(part.epsilon_bracket(delta).lower for part in (one, other))
            found = joint.epsilon_bracket(delta)
            assert least * (1 - 1e-12) <= found.lower <= found.value <= found.upper
