"""Laws of numbers of ones, and what a count says of each bit: by listing all, by 40 digits, and by halving."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest

from p2p_sim.privacy.laws import category_counts, poisson_binomial

Floats = np.ndarray[Any, np.dtype[np.float64]]


def by_listing(chances: Floats, weight: Any) -> Floats:
    """Return E[w | draw i = a], (n, k), over all outcomes of draws with ``chances`` (n, k)."""
    n, k = chances.shape
    found = np.zeros((n, k))
    for said in itertools.product(range(k), repeat=n):
        each = chances[np.arange(n), said]
        for i in range(n):
            found[i, said[i]] += np.delete(each, i).prod() * weight(np.bincount(said, minlength=k))
    return found


def shares(logs: Floats) -> Floats:
    """Return rows that sum to 1: what a constant of each row does not change."""
    with np.errstate(invalid="ignore"):
        return normed(np.exp(logs - logs.max(axis=1, keepdims=True)))


def normed(likelihood: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # where nothing allows what was seen
        return np.asarray(likelihood / likelihood.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_bits_are_as_likely_as_listing_says(k: int) -> None:
    random = np.random.default_rng(k)
    ones = random.random((3, k))
    ones[0, 0], ones[1, -1] = 1.0, 0.0
    weights = np.exp(3 * random.standard_normal((3, k + 1)))
    weights[2] = np.arange(k + 1) == random.integers(k + 1)
    found = poisson_binomial.bit_likelihoods(ones.ravel(), np.full(3, k), np.log(weights + 1e-300).ravel())
    for row in range(3):
        chances = np.stack([1 - ones[row], ones[row]], axis=1)
        expected = by_listing(chances, lambda counts, row=row: weights[row, counts[1]])
        np.testing.assert_allclose(shares(found.reshape(3, k, 2)[row]), normed(expected), rtol=0, atol=1e-12)


def test_groups_of_all_sizes_go_together() -> None:
    random = np.random.default_rng(1)
    sizes = np.array([7, 1, 300, 2, 8, 299, 1])
    ones, weights = random.random(sizes.sum()), random.standard_normal(sizes.sum() + len(sizes))
    together = poisson_binomial.bit_likelihoods(ones, sizes, weights)
    ends, ends_of_weights = np.cumsum(sizes), np.cumsum(sizes + 1)
    for size, end, last in zip(sizes, ends, ends_of_weights, strict=True):
        alone = poisson_binomial.bit_likelihoods(
            ones[end - size : end], np.array([size]), weights[last - size - 1 : last]
        )
        np.testing.assert_allclose(shares(together[end - size : end]), shares(alone), atol=1e-13)


@pytest.mark.parametrize("seen", [0, 3, 150, 200])
def test_rare_counts_lose_no_digits(seen: int) -> None:
    """Where floats would underflow: 40 digits say the same."""
    ones = np.random.default_rng(seen).uniform(1e-6, 0.02, 200)
    at = np.where(np.arange(201) == seen, 0.0, -np.inf)
    found = poisson_binomial.bit_likelihoods(ones, np.array([200]), at)
    with mpmath.workdps(40):
        for i in (0, 199):
            law = [mpmath.mpf(1)]
            for p in np.delete(ones, i).tolist():
                q = mpmath.mpf(p)
                law = [a * (1 - q) + b * q for a, b in zip([*law, 0], [0, *law], strict=True)]
            law = [mpmath.mpf(0), *law, mpmath.mpf(0)]
            if seen not in (0, 200):
                expected = float(mpmath.log(law[seen] / law[seen + 1]))
                assert found[i, 1] - found[i, 0] == pytest.approx(expected, rel=1e-12)
    impossible = {0: 1, 200: 0}.get(seen)
    assert impossible is None or (found[:, impossible] == -np.inf).all()


@pytest.mark.parametrize("seen", [900, 1500, 2990])
def test_halving_agrees_with_partial_sums(seen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ones = np.random.default_rng(seen).uniform(0.05, 0.9, 3000)
    at = np.where(np.arange(3001) == seen, 0.0, -np.inf)
    halved = poisson_binomial.bit_likelihoods(ones, np.array([3000]), at)
    monkeypatch.setattr(poisson_binomial, "DIRECT", 3000)
    listed = poisson_binomial.bit_likelihoods(ones, np.array([3000]), at)
    np.testing.assert_allclose(halved[:, 1] - halved[:, 0], listed[:, 1] - listed[:, 0], atol=1e-11)


def test_leave_one_out_laws_are_those_of_the_others() -> None:
    ones = np.random.default_rng(3).random((4, 9))
    found = poisson_binomial.leave_one_out(ones)
    for i in range(9):
        others = poisson_binomial.pmf(np.delete(ones, i, axis=1))
        np.testing.assert_allclose(found[:, i], others, atol=1e-15)
    assert poisson_binomial.pmf(np.array([[0.5, 1.0]])) == pytest.approx(np.array([[0, 0.5, 0.5]]))


@pytest.mark.parametrize(("n", "k"), [(1, 3), (4, 3), (5, 4)])
def test_categories_are_as_likely_as_listing_says(n: int, k: int) -> None:
    random = np.random.default_rng(n)
    chances, weights = random.dirichlet(np.ones(k), n), random.random((n + 1,) * (k - 1))
    found = category_counts.category_likelihoods(chances, np.log(weights))
    expected = by_listing(chances, lambda counts: weights[tuple(counts[1:])])
    np.testing.assert_allclose(shares(found), normed(expected), atol=1e-13)


def test_categories_of_two_are_bits() -> None:
    random = np.random.default_rng(8)
    ones, weights = random.random(40), random.standard_normal(41)
    bits = poisson_binomial.bit_likelihoods(ones, np.array([40]), weights)
    both = category_counts.category_likelihoods(np.stack([1 - ones, ones], axis=1), weights)
    np.testing.assert_allclose(shares(both), shares(bits), atol=1e-13)
