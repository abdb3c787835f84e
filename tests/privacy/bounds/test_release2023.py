"""Release 2023: every formula against the exact divergences and the best attack on random finite spaces."""

from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds import release2023 as r

ORDERS = (1.05, 1.5, 2.0, 5.0, 30.0)
LAMS = (0.02, 0.3, 0.7, 1.0)


def spaces(seed: int, count: int):
    random = np.random.default_rng(seed)
    for _ in range(count):
        k, m = int(random.integers(2, 5)), int(random.integers(2, 6))
        concentration = random.choice([0.2, 1.0, 5.0])
        yield random, k, random.dirichlet(np.full(m, concentration), k) + 0.0, random.dirichlet(np.ones(m), k)


def plain(p, q, order):
    """The divergence by its definition, without logs."""
    return math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)


def test_divergence_by_definition():
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.4, 0.2])
    for order in ORDERS:
        assert r.renyi_divergence(p, q, order) == pytest.approx(plain(p, q, order))
    assert r.renyi_divergence([1, 0], [0.5, 0.5], 2) == pytest.approx(math.log(2))
    assert r.renyi_divergence([0.5, 0.5], [1, 0], 2) == math.inf
    assert r.renyi_divergence(p, p, 3) == 0


def test_mechanisms_by_enumeration_of_their_steps():
    for _, k, features, synthetic in spaces(1, 6):
        lam, m = 0.35, features.shape[1]
        model = np.random.default_rng(2).dirichlet(np.ones(k), m)
        one, two = np.zeros((k, m, k)), np.zeros((k, m, k))
        for y, x in product(range(k), range(m)):
            for drawn, new in product((False, True), range(k)):
                label = new if drawn else y
                one[y, x, label] += features[y, x] * (lam * model[x, new] if drawn else (1 - lam) / k)
                chance = features[y, x] * (lam if drawn else 1 - lam) / k
                two[y, x, label] += chance * (1 - lam)
                for other, z in product(range(k), range(m)):
                    two[y, z, label] += chance * lam / k * synthetic[other, z]
        assert r.mechanism1_law(features, model, lam) == pytest.approx(one, abs=1e-14)
        assert r.mechanism2_law(features, synthetic, lam) == pytest.approx(two, abs=1e-14)


@pytest.mark.slow
def test_theorem7_1_sharper_is_above_the_divergence_and_below_the_printed_bound():
    for _, k, features, synthetic in spaces(3, 60):
        for order, lam in product(ORDERS, LAMS):
            gap = max(r.renyi_divergence(p, q, order) for p, q in zip(features, synthetic, strict=True))
            exact = r.exact_divergence(r.mechanism2_law(features, synthetic, lam), order).epsilon
            sharper = r.theorem7_1_sharper(order, lam, k, gap).epsilon
            assert exact <= sharper + 1e-10
            assert sharper <= r.theorem7_1_printed(order, lam, k, gap).epsilon + 1e-10


def test_theorem7_2_is_below_mechanism_3():
    for k, order, lam in product((2, 3, 10), ORDERS, LAMS):
        exact = r.exact_divergence(r.mechanism3_law(k, lam), order).epsilon
        assert r.theorem7_2(order, lam, k).epsilon <= exact + 1e-12
        assert r.label_divergence(order, lam, k).epsilon == pytest.approx(exact, abs=1e-12)
    assert r.theorem7_2(2, 0.1, 2).basis == "lower"


def test_theorem6_1_mechanism_1_can_be_arbitrarily_bad():
    law = r.mechanism1_law([[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], 0.9)
    found = r.exact_divergence(law, 2)
    assert found.epsilon == math.inf
    assert "one label alone" in found.why


def test_theorem5_2_printed_then_sharper_then_sharpest_then_the_best_attack():
    for random, k, features, synthetic in spaces(7, 60):
        prior, lam = random.dirichlet(np.ones(k)), float(random.choice([0.2, 0.6, 0.9]))
        law = r.mechanism2_law(features, synthetic, lam).reshape(k, -1)
        accuracy = float((prior[:, None] * law).max(axis=0).sum())
        for order in ORDERS:
            epsilon, most = r.exact_divergence(law, order).epsilon, float(prior.max())
            sharpest = r.theorem5_2_sharpest(order, epsilon, most).value
            sharper = r.theorem5_2_sharper(order, epsilon, most).value
            assert accuracy <= sharpest + 1e-12
            assert sharpest <= sharper + 1e-15
            for delta in (1e-9, 1e-4, 0.01, 0.1, 0.5):
                assert sharper <= r.theorem5_2_printed(order, epsilon, delta, most, k).value + 1e-12


def test_theorem5_2_uses_the_least_loss_and_is_clipped():
    assert r.theorem5_2_sharpest(2, 0, 0.5, 0.4).value == pytest.approx(1 - 0.25 * 0.4)
    assert r.theorem5_2_sharper(2, 0, 0.5).value == pytest.approx(1 - 0.25 * 0.5 * 0.5)
    printed = r.theorem5_2_printed(2, 1, 0.1, 0.5, 3)
    assert printed.value == 1
    assert "says nothing" in printed.why
    assert r.theorem5_2_printed(10, 0.1, 1e-4, 0.5, 2).value == pytest.approx(
        1 - (math.exp(-0.1) * 1e-4 ** (1 / 9) * 0.5 - 1e-4)
    )


def test_edges_of_lam_and_divergence():
    for value in (
        r.theorem7_1_printed(2, 0, 3, 0.1),
        r.theorem7_1_sharper(2, 0, 3, 0.1),
        r.theorem7_2(2, 0, 3),
        r.label_divergence(2, 0, 3),
    ):
        assert (value.epsilon, value.holds) == (math.inf, False)
        assert "lam = 0" in value.why
    assert r.theorem7_1_sharper(2, 1, 3, 0.7).epsilon == 0
    assert r.theorem7_1_printed(2, 1, 3, 0.7).epsilon == 0.7
    assert r.theorem7_1_sharper(2, 0.5, 3, math.inf).epsilon == math.inf
    assert r.theorem7_1_sharper(2, 0.5, 3, 800).epsilon == pytest.approx(
        r.label_divergence(2, 0.5, 3).epsilon + math.log(4) + math.log(0.5) + 800
    )
    assert r.label_divergence(1e6, 1e-300, 2).epsilon < 700


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: r.theorem7_2(1, 0.5, 2), "order = 1"),
        (lambda: r.theorem7_2(math.inf, 0.5, 2), "order = inf"),
        (lambda: r.theorem7_2(2, 1.5, 2), "lam = 1.5"),
        (lambda: r.theorem7_1_sharper(2, 0.5, 2, math.nan), "divergence = nan"),
        (lambda: r.theorem5_2_printed(2, 1, 0, 0.5, 2), "delta = 0"),
        (lambda: r.theorem5_2_printed(2, 1, 0.1, 0.2, 2), "most_common = 0.2"),
        (lambda: r.theorem5_2_sharper(2, 1, 0), "most_common = 0"),
        (lambda: r.mechanism1_law([[1, 0], [0, 1]], [[1, 0]], 0.5), "synthetic_labels of shape"),
        (lambda: r.mechanism2_law([[1, 0], [0, 1]], [[1, 0]], 0.5), "synthetic_features of shape"),
        (lambda: r.renyi_divergence([0.5, 0.6], [0.5, 0.5], 2), "summing to 1"),
    ],
)
def test_bad_input_is_named(call, told):
    with pytest.raises(InputError) as error:
        call()
    assert told in str(error.value)


def in_forty_digits(p, q, order):
    with mpmath.workdps(60):
        p, q, alpha = [mpmath.mpf(v) for v in p], [mpmath.mpf(v) for v in q], mpmath.mpf(order)
        p, q = [v / sum(p) for v in p], [v / sum(q) for v in q]
        total = sum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True) if a > 0)
        return float(mpmath.log(total) / (alpha - 1))


@pytest.mark.parametrize("above", [2.3e-16, 1e-13, 1e-12, 1e-6, 1e-3, 0.5, 29.0, 1e4])
def test_no_digits_are_lost_near_order_one(above):
    """At 1 + 1e-13 the divergence was 0, and its basis exact."""
    order = 1 + above
    rng = np.random.default_rng(7)
    for _ in range(10):
        p, q = rng.dirichlet([0.5] * 5), rng.dirichlet([0.5] * 5)
        assert r.renyi_divergence(p, q, order) == pytest.approx(in_forty_digits(p, q, order), rel=1e-9)
    for k, lam in ((2, 0.5), (3, 0.1), (10, 1e-6), (2, 1 - 1e-9)):
        lie = lam / k
        law = [[1 - (k - 1) * lie, lie, *[lie] * (k - 2)], [lie, 1 - (k - 1) * lie, *[lie] * (k - 2)]]
        if lam < 0.9:
            assert r.label_divergence(order, lam, k).epsilon == pytest.approx(
                in_forty_digits(*law, order), rel=1e-9
            )
        assert r.label_divergence(order, lam, k).epsilon > 0
        assert r.theorem7_1_sharper(order, lam, k, 0.3).epsilon >= r.label_divergence(order, lam, k).epsilon
    limit = r.theorem7_1_sharper(1 + 1e-9, 0.5, 2, 1.0).epsilon
    assert r.theorem7_1_sharper(order, 0.5, 2, 1.0).epsilon >= limit - 1e-6
