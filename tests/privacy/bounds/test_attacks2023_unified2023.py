"""Attacks 2023 and Unified 2023: bounds on what an attack gains, against enumeration and integration."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from scipy import integrate

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds import attacks2023 as a
from p2p_sim.privacy.bounds import unified2023 as u

RANDOM = np.random.default_rng(5)


def best_gain(prior, channel):
    """Bayes accuracy with the output less without; prior (k,), channel (k, outputs)."""
    return float((prior[:, None] * channel).max(axis=0).sum() - prior.max())


def response(k, epsilon):
    weights = np.ones((k, k)) + np.eye(k) * math.expm1(epsilon)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("epsilon", [0, 0.3, 1, 5, 40])
def test_zero_one_bound_and_randomized_response_attains_it_at_one_half(epsilon):
    half = [[0.5, 0.5]]
    bound = a.theorem2_zero_one(epsilon, 0, half).value
    assert best_gain(np.array([0.5, 0.5]), response(2, epsilon)) == pytest.approx(bound, abs=1e-15)
    assert u.rr_advantage([0.5], epsilon).value == pytest.approx(bound, abs=1e-15)
    for k in (2, 3, 5):
        for _ in range(30):
            prior = RANDOM.dirichlet(np.ones(k))
            sharper = a.theorem2_zero_one(epsilon, 0, [prior]).value
            assert best_gain(prior, response(k, epsilon)) <= sharper + 1e-12
            assert sharper <= a.theorem2(epsilon, 0, a.mean_supremum([prior])).value + 1e-15


def test_zero_one_bound_with_delta_against_a_mechanism_that_uses_it():
    prior = np.array([0.6, 0.4])
    for epsilon, delta in ((0.5, 0.2), (1, 0.01), (0, 0.3)):
        told = np.hstack([(1 - delta) * response(2, epsilon), delta * np.eye(2)])
        assert best_gain(prior, told) <= a.theorem2_zero_one(epsilon, delta, [prior]).value + 1e-12
        assert 0.5 * np.abs(told[0] - told[1]).sum() == pytest.approx(a.distance(epsilon, delta))


def test_utilities_and_corollaries():
    rows = np.array([[0.9, 0.1], [0.4, 0.6]])
    assert a.label_independent_utility(rows).value == pytest.approx(0.75)
    weighted = a.weighted_utility([0.97, 0.03])
    assert a.mean_supremum([[0.97, 0.03]], weighted) == pytest.approx(1)
    assert a.label_independent_utility([[0.97, 0.03]], weighted).value == pytest.approx(0.5)
    vacuous = a.corollary1_weighted(1, 0, [0.97, 0.03])
    assert vacuous.value == pytest.approx(math.tanh(0.5) / 0.06)
    assert "says nothing" in vacuous.why
    assert a.corollary1(1, 0).value == pytest.approx(math.tanh(0.5))
    assert a.corollary1(math.inf, 0).value == 1
    assert a.corollary1(800, 1e-6).value == 1
    assert a.corollary1(1, 5).value == 1
    assert a.theorem3(1, 0.1, 0.5).value == pytest.approx((1 - 1.8 / (1 + math.e)) / 2)


def test_rr_advantage_is_the_gain_and_the_attack_is_the_best():
    for eta, epsilon in product((0, 0.1, 0.3, 0.5, 0.8, 1), (0, 0.5, 2, 40)):
        exact = best_gain(np.array([1 - eta, eta]), response(2, epsilon))
        assert u.rr_advantage([eta], epsilon).value == pytest.approx(max(0, exact), abs=1e-15)
        keep = 1 / (1 + math.exp(-epsilon))
        hits = 0.0
        for y, shown in product((0, 1), (0, 1)):
            chance = (eta if y else 1 - eta) * (keep if y == shown else 1 - keep)
            hits += chance * (u.rr_attack([eta], [shown], epsilon)[0] == y)
        assert hits - max(eta, 1 - eta) == pytest.approx(exact, abs=1e-12)
    assert u.rr_advantage([0.5, 0], 2, [1, 3]).value == pytest.approx(u.rr_advantage([0.5], 2).value / 4)


@pytest.mark.parametrize("eta", [[0.3], [0.2, 0.7], [0, 0.5, 1, 0.25], [0.1, 0.9, 0.4, 0.6, 0.5]])
def test_label_proportions_by_enumeration(eta):
    k, law, ones = len(eta), np.zeros(len(eta) + 1), np.zeros((len(eta) + 1, len(eta)))
    for labels in product((0, 1), repeat=k):
        chance = math.prod(p if y else 1 - p for p, y in zip(eta, labels, strict=True))
        law[sum(labels)] += chance
        ones[sum(labels)] += chance * np.array(labels)
    assert u.poisson_binomial(eta) == pytest.approx(law, abs=1e-15)
    for count in range(k + 1):
        if law[count] > 0:
            assert u.llp_posterior(eta, count) == pytest.approx(ones[count] / law[count], abs=1e-12)
        else:
            with pytest.raises(InputError, match="ones ="):
                u.llp_posterior(eta, count)
    missed = np.minimum(ones, law[:, None] - ones).sum() / k
    exact = np.minimum(eta, 1 - np.array(eta)).mean() - missed
    assert u.llp_advantage(eta).value == pytest.approx(exact, abs=1e-14)


def test_the_posterior_of_an_unlikely_count_does_not_underflow():
    posterior = u.llp_posterior([1e-9] * 400, 300)
    assert posterior == pytest.approx(np.full(400, 0.75), abs=1e-9)


def test_no_features_by_enumeration_and_its_bounds():
    for p, k in product((0.0, 0.1, 0.3, 0.5, 0.9, 1.0), (1, 2, 5, 9)):
        missed = sum(math.comb(k, j) * p**j * (1 - p) ** (k - j) * min(j, k - j) / k for j in range(k + 1))
        exact = u.theorem3_4_exact(p, k).value
        assert exact == pytest.approx(min(p, 1 - p) - missed, abs=1e-14)
        assert u.llp_advantage([p] * k).value == pytest.approx(exact, abs=1e-14)
    for p, k in product((0.05, 0.2, 0.4, 0.5, 0.77), (1, 3, 10, 100, 3000)):
        assert u.theorem3_4_exact(p, k).value <= u.theorem3_4(p, k).value + 1e-13
        if k > 1:
            assert u.theorem3_4_exact(p, k).value <= u.lemma_a1(p * (1 - p), p, k).value + 1e-13


def test_lemma_a1_is_not_violated_by_random_features():
    for k in (2, 3, 5, 7):
        for _ in range(5):
            values, shares = RANDOM.beta(0.5, 0.5, 2), RANDOM.dirichlet(np.ones(2))
            exact = sum(
                math.prod(shares[list(bag)]) * u.llp_advantage(values[list(bag)]).value
                for bag in product(range(2), repeat=k)
            )
            variance, p = float(shares @ (values * (1 - values))), float(shares @ values)
            assert exact <= u.lemma_a1(variance, p, k).value
    assert u.lemma_a1(0.1, 0.3, 5).basis == "claimed"


def test_theorem_3_5_with_a_constant_holds_for_every_bag_and_on_average():
    """All labels of small bags are enumerated in ``llp_advantage``'s own test; here every grid of eta up to 6 users."""
    grid = (0.0, 0.03, 0.3, 0.5, 0.8, 1.0)
    for k in (1, 2, 3, 6):
        bags = np.array(list(combinations_with_replacement(grid, k)))
        variance = (bags * (1 - bags)).mean(axis=1)
        gains = u.llp_gains(bags).mean(axis=1)
        bounds = np.array([u.theorem3_5(each, k).value for each in variance])
        assert (gains <= bounds + 1e-13).all()
        assert gains.mean() <= u.theorem3_5(float(variance.mean()), k).value
    for k in (40, 2500):  # of fair labels it is 1.77 times the truth
        assert u.theorem3_5(0.25, k).value / u.theorem3_4_exact(0.5, k).value == pytest.approx(1.77, abs=0.03)
    found = u.theorem3_5(0.1, 4)
    assert (found.basis, "Theorem 3.5" in found.source) == ("upper", True)
    assert "Theorem 3.5" in u.lemma_a1(0.1, 0.3, 5).source
    with pytest.raises(InputError, match=r"variance = 0\.3"):
        u.theorem3_5(0.3, 4)


def test_no_count_of_ones_is_likelier_than_the_proof_of_theorem_3_5_says():
    """Baillon, Cominetti and Vaisman 2016: max P(Z = s) <= 0.46883 / sigma, nearly reached by many small chances."""
    nearest = 0.0
    for eta in [
        *RANDOM.random((300, 7)),
        *np.power(RANDOM.random((300, 40)), 3),
        np.full(4000, 0.79 / 2 / 4000),
    ]:
        likeliest, deviation = u.poisson_binomial(eta).max(), math.sqrt((eta * (1 - eta)).sum())
        assert likeliest * deviation <= 0.46883
        nearest = max(nearest, float(likeliest * deviation))
        assert (np.diff(np.sign(np.diff(u.poisson_binomial(eta)))) <= 0).all() or len(eta) > 1000  # one peak
    assert nearest > 0.42


def test_lemma_3_6_by_enumeration_of_several_users():
    """Of k users whose reports are drawn one by one, the mean advantage is that of one user, whatever k."""
    for labels, epsilon in ((2, 1.0), (3, 0.7)):
        channel = response(labels, epsilon)
        for k in (1, 2, 3):
            eta = RANDOM.dirichlet(np.ones(labels), k)
            gained = 0.0
            for seen in product(range(labels), repeat=k):
                joint = {
                    y: math.prod(eta[i, y[i]] * channel[y[i], seen[i]] for i in range(k))
                    for y in product(range(labels), repeat=k)
                }
                gained += sum(
                    max(sum(p for y, p in joint.items() if y[i] == guess) for guess in range(labels))
                    for i in range(k)
                )
            gained = gained / k - eta.max(axis=1).mean()
            alone = np.mean([best_gain(row, channel) for row in eta])
            assert gained == pytest.approx(alone, abs=1e-13)


def laplace_gain(eta, epsilon):
    """The advantage against a bag's Laplace proportion, by integrating the best attack."""
    k, total = len(eta), 0.0
    for i, p in enumerate(eta):
        law = u.poisson_binomial([*eta[:i], *eta[i + 1 :]]) if k > 1 else np.ones(1)

        def density(z, shift, law=law):
            return sum(w * epsilon / 2 * math.exp(-epsilon * abs(z - b - shift)) for b, w in enumerate(law))

        def best(z, p=p, density=density):
            return max(p * density(z, 1), (1 - p) * density(z, 0))

        edges = [-40 / epsilon, *range(k + 1), k + 40 / epsilon]
        hits = sum(integrate.quad(best, x, y, epsabs=1e-9, limit=200)[0] for x, y in pairwise(edges))
        total += hits - max(p, 1 - p)
    return total / k


def test_laplace_proportions():
    for epsilon in (0.5, 1, 4):
        sharper = u.laplace_llp_sharper([0.5], epsilon).value
        assert laplace_gain([0.5], epsilon) == pytest.approx(sharper, abs=1e-7)  # attained
        assert sharper <= u.laplace_llp_printed([0.5], epsilon).value
    for eta in ([0.3], [0.2, 0.7], [0.5, 0.5, 0.4]):
        gain = laplace_gain(eta, 1.0)
        assert -1e-7 <= gain <= u.laplace_llp_sharper(eta, 1.0).value + 1e-7
        assert u.laplace_llp_sharper(eta, 1.0).value <= u.laplace_llp_printed(eta, 1.0).value
        assert gain <= u.llp_advantage(eta).value + 1e-7


def test_laplace_posterior_decides_as_the_corrected_short_attacker():
    eta, epsilon = np.array([0.05, 0.4, 0.6, 0.97]), 0.5
    odds = eta / (1 - eta)
    for told in (-3.0, 0.0, 0.3, 1.0, 7.5):
        posterior = u.laplace_llp_posterior(eta, told, epsilon)
        assert (posterior[odds < math.exp(-epsilon)] < 0.5).all()
        assert (posterior[odds > math.exp(epsilon)] > 0.5).all()
    assert u.laplace_llp_posterior([0.3, 0.8], 0.5, 0) == pytest.approx([0.3, 0.8])
    assert u.laplace_llp_posterior([0.3, 0.8], 0.5, 700) == pytest.approx(u.llp_posterior([0.3, 0.8], 1))
    assert u.laplace_llp_posterior([0.0, 1.0], 0.1, 2) == pytest.approx([0, 1])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: a.distance(math.nan), "epsilon = nan"),
        (lambda: a.theorem2(1, -1, 1), "delta = -1"),
        (lambda: a.theorem2_zero_one(1, 0, [[0.5, 0.6]]), "each row summing to 1"),
        (
            lambda: a.theorem2_zero_one(1, 0, [[0.5, 0.5], [0.7, 0.6]]),
            r"conditionals: row 1 is [0.7, 0.6] and sums to 1.3",
        ),
        (lambda: a.theorem2_zero_one(1, 0, [[1.5, -0.5]]), "row 0 is [1.5, -0.5]"),
        (lambda: a.corollary1_weighted(1, 0, [1, 0]), "above 0"),
        (lambda: a.label_independent_utility([[1, 0]], [[1]]), "2 by 2"),
        (lambda: u.rr_advantage([0.5, 1.2], 1), "from 0 to 1"),
        (lambda: u.rr_advantage([math.nan], 1), "eta = "),
        (lambda: u.rr_advantage([], 1), "eta = "),
        (lambda: u.rr_advantage([0.5], 1, [0]), "weights = "),
        (lambda: u.rr_attack([0.5], [2], 1), "reported = "),
        (lambda: u.theorem3_4(0.5, 0), "bag_size = 0"),
        (lambda: u.lemma_a1(0.3, 0.5, 4), "variance = 0.3"),
        (lambda: u.laplace_llp_posterior([0.5], math.nan, 1), "noisy_proportion = nan"),
    ],
)
def test_bad_input_is_named(call, told):
    with pytest.raises(InputError) as error:
        call()
    assert told in str(error.value)
