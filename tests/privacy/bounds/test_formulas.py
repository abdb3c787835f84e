"""Every closed bound again, written out from the papers' statements with nothing shared: a slip in one shows.

What a bound must be below or above is tested beside each paper's file; here, only that it says what its paper says.
"""

from __future__ import annotations

import math
from math import e, exp, log, sqrt
from typing import get_args

import pytest

from p2p_sim.privacy.bounds import attacks2023, clustering2022, release2023, shuffle, unified2023
from p2p_sim.privacy.bounds.bound import Basis, Bound, Figure, Renyi

ETA = [0.1, 0.45, 0.5, 0.8, 0.99]


def same(value: float, written: float) -> None:
    assert value == pytest.approx(written, rel=1e-12)


@pytest.mark.parametrize(("sigma", "lam", "tau"), [(1.3, 0.4, 0.07), (0.2, 0.99, 0.5), (30.0, 0.01, 0.001)])
def test_clustering_theorem_1(sigma: float, lam: float, tau: float) -> None:
    label = log(1 + (1 - lam) / (lam * tau))
    same(clustering2022.theorem1_printed(sigma, lam, tau).epsilon, 1 / sigma + label)
    same(clustering2022.theorem1_corrected(sigma, lam, tau).epsilon, 2 / sigma + label)


@pytest.mark.parametrize(("s", "theta"), [(20_000, 1.0), (63_000, 0.25), (200_000, 0.1)])
def test_clustering_theorem_3(s: int, theta: float) -> None:
    found = clustering2022.theorem3(s, theta)
    same(found.parameters["alpha"], 4 * sqrt(2) * log(s) / sqrt(theta * s))
    same(found.delta, 1 / s**2)
    third = 2**0.75 * 3 * theta**0.75 / s**0.25
    same(found.epsilon, theta + 3 * theta**1.5 / (e * sqrt(s) * log(s)) + third)


@pytest.mark.parametrize(("s", "alpha", "theta", "xi"), [(20_000, 0.3, 0.6, 5.0), (500, 0.01, 1.0, 0.5)])
def test_clustering_lemma_9(s: int, alpha: float, theta: float, xi: float) -> None:
    found = clustering2022.lemma9(s, alpha, theta, xi=xi)
    assert found.holds
    same(found.epsilon, theta * log(e + 3 / (s * alpha)) + sqrt(theta) * xi * log(1 + 3 / sqrt(s * alpha)))
    same(found.delta, exp(-alpha * xi**2 / (4 * (alpha + 1 / s) * (1 - alpha))))
    limit = 3 * alpha * sqrt(theta * s * (1 - alpha))
    assert clustering2022.lemma9(s, alpha, theta, xi=limit * (1 - 1e-12)).holds
    assert not clustering2022.lemma9(s, alpha, theta, xi=limit * (1 + 1e-12)).holds
    assert not clustering2022.lemma9(math.ceil(2 / alpha) - 1, alpha, theta, xi=0.0).holds


@pytest.mark.parametrize(("epsilon", "k"), [(1.2, 5), (0.1, 2), (6.0, 10)])
def test_clustering_corollaries(epsilon: float, k: int) -> None:
    uniform = clustering2022.corollary1(epsilon, k).parameters
    same(uniform["lam"], k / (k - 1 + exp(epsilon)))
    assert (uniform["beta"], uniform["tau"], uniform["sigma"]) == (uniform["lam"], 1 / k, math.inf)
    for phi in (0.05, 0.3, 1.7):
        found, tau = clustering2022.corollary2_corrected(epsilon, phi, k), min(phi, 1 / k)
        same(found.epsilon, 3 * epsilon)
        same(found.parameters["lam"], 1 / (1 + (exp(epsilon) - 1) * tau))
        assert (found.parameters["beta"], found.parameters["tau"]) == (0.0, tau)
        same(found.parameters["sigma"], 1 / epsilon)
    same(clustering2022.corollary2_printed(epsilon, 0.05, k).epsilon, 2 * epsilon)


def test_clustering_theorem_5() -> None:
    for s, k, epsilon in ((3, 10, 1.0), (1, 100, 3.0)):
        same(clustering2022.theorem5_printed(s, k, epsilon).value, s * exp(epsilon) / (k - s))
        sharper = s * exp(epsilon) / (s * exp(epsilon) + k - s)
        same(clustering2022.theorem5_sharper(s, k, epsilon).value, sharper)


@pytest.mark.parametrize(
    ("n", "local", "delta"), [(1000, 1.0, 1e-6), (100_000, 2.0, 1e-8), (5000, 0.3, 1e-3)]
)
def test_shuffle_closed_forms_and_where_they_end(n: int, local: float, delta: float) -> None:
    a, c = 8 * sqrt(exp(local) * log(4 / delta) / n), 8 * exp(local) / n
    theorem = log(1 + (exp(local) - 1) / (exp(local) + 1) * (a + c))
    code = log(1 + (1 - exp(-local)) * (a + c) / (1 + exp(-local) / (1 + a + c)))
    for form, written, inside in ((shuffle.fmt2021_theorem, theorem, 2), (shuffle.fmt2021_code, code, 4)):
        same(form(n, local, delta).epsilon, written)
        limit = log(n / (16 * log(inside / delta)))
        assert form(n, limit * (1 - 1e-9), delta).holds
        assert not form(n, limit * (1 + 1e-9), delta).holds


@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.01), (0.0, 0.2), (4.0, 1e-9)])
def test_attacks(epsilon: float, delta: float) -> None:
    distance = 1 - 2 * (1 - delta) / (1 + exp(epsilon))
    assert attacks2023.distance(epsilon, delta) == pytest.approx(distance, abs=1e-15)
    same(attacks2023.theorem2(epsilon, delta, 0.8).value, 0.8 * distance)
    same(attacks2023.theorem3(epsilon, delta, 0.8).value, 0.8 * distance)
    same(attacks2023.corollary1(epsilon, delta, 3.0).value, 3.0 * distance)
    same(attacks2023.corollary1_weighted(epsilon, delta, [0.9, 0.1]).value, distance / (2 * 0.1))
    sharper = (1 - 0.9 + 1 - 0.6) / 2 * distance
    same(attacks2023.theorem2_zero_one(epsilon, delta, [[0.9, 0.1], [0.4, 0.6]]).value, sharper)


@pytest.mark.parametrize("epsilon", [0.7, 2.0])
def test_unified(epsilon: float) -> None:
    flip = 1 / (1 + exp(epsilon))
    gains = [min(x, 1 - x) - flip if flip <= x <= 1 - flip else 0.0 for x in ETA]
    same(unified2023.rr_advantage(ETA, epsilon).value, sum(gains) / len(ETA))
    spread = sum(x * (1 - x) for x in ETA) / len(ETA)
    same(unified2023.laplace_llp_printed(ETA, epsilon).value, 2 * (1 - exp(-epsilon)) * spread)
    least = sum(min(x, 1 - x) for x in ETA) / len(ETA)
    same(unified2023.laplace_llp_sharper(ETA, epsilon).value, (1 - exp(-epsilon / 2)) * least)


@pytest.mark.parametrize(
    ("order", "lam", "k", "gap"), [(3.0, 0.3, 4, 0.5), (1.5, 0.9, 2, 0.0), (8.0, 0.05, 10, 2.0)]
)
def test_release(order: float, lam: float, k: int, gap: float) -> None:
    c = (1 - lam) * k / lam
    label = log(lam / k * ((1 + c) ** order + (1 + c) ** (1 - order) + k - 2)) / (order - 1)
    same(release2023.label_divergence(order, lam, k).epsilon, label)
    same(release2023.theorem7_1_printed(order, lam, k, gap).epsilon, 2 * log(1 + c) + gap)
    mixed = log(lam + (1 - lam) * exp((order - 1) * gap)) / (order - 1)
    same(release2023.theorem7_1_sharper(order, lam, k, gap).epsilon, label + log(1 + c) + mixed)
    least = order / (order - 1) * log(1 + c) - log(k / lam) / (order - 1)
    same(release2023.theorem7_2(order, lam, k).epsilon, max(0.0, least))
    p, loss, epsilon, delta = 0.6, 0.9, 0.5, 1e-4
    kept = exp(-epsilon) * delta ** (1 / (order - 1)) * (1 - p) - (k - 1) * delta
    same(release2023.theorem5_2_printed(order, epsilon, delta, p, k, loss).value, min(1.0, 1 - kept * loss))
    power = ((1 - p) / order) ** (1 / (order - 1)) * (1 - p) * (1 - 1 / order)
    same(release2023.theorem5_2_sharper(order, epsilon, p, loss).value, 1 - exp(-epsilon) * power * loss)


CALLS = {
    "clustering 1 printed": clustering2022.theorem1_printed(1, 0.5, 0.1),
    "clustering 1 corrected": clustering2022.theorem1_corrected(1, 0, 0.1),
    "clustering 2": clustering2022.theorem2_shape(3, 10, 0.05, 1000, 0.1, 100, 2, 0.5, 1, 0.1),
    "clustering 3": clustering2022.theorem3(100, 1),
    "clustering 9": clustering2022.lemma9(100, 0.01, 1, delta=1e-6),
    "clustering corollary 1": clustering2022.corollary1(0, 3),
    "clustering corollary 2": clustering2022.corollary2_printed(1, 0.5, 10),
    "clustering 5": clustering2022.theorem5_printed(10, 10, 1),
    "closed form": shuffle.fmt2021_theorem(10, 3, 1e-6),
    "clone": shuffle.clone(10, 3, 1e-6),
    "stronger clone": shuffle.clone_stronger(10, 3, 1e-6),
    "blanket": shuffle.blanket(10, 3, 1e-6, labels=3),
    "attacks 2": attacks2023.theorem2(1, 0, 1),
    "unified": unified2023.rr_advantage([0.5], 1),
    "release 5.2": release2023.theorem5_2_printed(2, 1, 0.1, 0.5, 3),
    "release 7.1": release2023.theorem7_1_printed(2, 0, 3, 0.1),
    "release 7.2": release2023.theorem7_2(2, 0.5, 3),
    "release exact": release2023.exact_divergence(release2023.mechanism3_law(3, 0.5), 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_says_value_whether_it_holds_why_not_and_source(name: str) -> None:
    found = CALLS[name]
    assert isinstance(found, (Bound, Figure, Renyi))
    assert found.basis in get_args(Basis)
    assert ", " in found.source or "numerical" in found.source
    value = found.value if isinstance(found, Figure) else found.epsilon
    if found.holds:
        assert value >= 0
    else:
        assert found.why
        assert math.isnan(value) or value == math.inf
    if isinstance(found, Bound):
        assert 0 <= found.delta <= 1
