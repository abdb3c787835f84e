"""Clustering 2022: reference values, the counterexamples to Theorem 1, and what attains Theorem 5."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds import clustering2022 as c


def laplace_tail(x, centre, scale):
    """Pr[centre + Laplace(scale) >= x]."""
    z = (np.asarray(x, float) - centre) / scale
    return np.where(z > 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))


def laplace_density(x, centre, scale):
    return np.exp(-np.abs(x - centre) / scale) / (2 * scale)


def two_label_event(p0: float, p1: float, scale: float, tau: float = 0.1, level: float = 0.7) -> float:
    """Pr[q~(1) >= 0.7] of Algorithm 1 for K = 2, integrated over the noise of q(0)."""

    def least(q0):  # the least q(1) for which the renormalized q~(1) reaches the level
        above = tau + (level - tau) / (1 - level - tau) * (q0 - tau)  # when q0 + q1 > 1
        below = 1 - (1 - level) / level * (1 - q0)
        return np.where(q0 + below <= 1, below, above)

    def reaches(q0):
        t = least(q0)
        return np.where(t <= tau, 1.0, np.where(t <= 1, laplace_tail(np.minimum(t, 1), p1, scale), 0.0))

    grid = np.linspace(tau, 1, 200_001)
    middle = (grid[1:] + grid[:-1]) / 2
    inner = float((laplace_density(middle, p0, scale) * reaches(middle)).sum() * (grid[1] - grid[0]))
    floor = float(1 - laplace_tail(tau, p0, scale)) * float(reaches(np.array(tau)))
    return inner + floor + float(laplace_tail(1.0, p0, scale)) * float(reaches(np.array(1.0)))


def test_theorem1_printed_is_violated_and_the_corrected_one_is_met_exactly():
    ratio = math.log(two_label_event(0.5, 0.5, 1 / 4) / two_label_event(0.75, 0.25, 1 / 4))
    printed, corrected = c.theorem1_printed(1, 1, 0.1), c.theorem1_corrected(1, 1, 0.1)
    assert printed.epsilon == 1
    assert corrected.epsilon == 2
    assert (printed.basis, corrected.basis) == ("claimed", "upper")
    assert ratio == pytest.approx(2, abs=1e-4)


def three_label_event(p_a: float, p_b: float, p_c: float, same: bool) -> float:
    """Pr[q~_a = tau, tau < q~_b < tau + .02, label b] for K = 3, tau = .3, sigma = 1, lam = .5, n = 10."""
    tau, scale, cells = 0.3, 0.1, 1500
    a_low = 1 - float(laplace_tail(tau, p_a, scale))

    def over_b(q_c):
        low, high = np.maximum(tau, 0.7 - q_c), tau + 0.25 * (q_c - tau)  # q_b + q_c > .7 and q~_b < .32
        width = np.maximum(high - low, 0) / cells
        b = low[:, None] + width[:, None] * (np.arange(cells) + 0.5)[None, :]
        q = tau + 0.1 * (b - tau) / (b + q_c[:, None] - 2 * tau)
        label = 0.5 * same + 0.5 * q
        return (laplace_density(b, p_b, scale) * label).sum(axis=1) * width

    grid = np.linspace(tau, 1, 2001)
    middle = (grid[1:] + grid[:-1]) / 2
    inner = float((laplace_density(middle, p_c, scale) * over_b(middle)).sum() * (grid[1] - grid[0]))
    top = float(laplace_tail(1.0, p_c, scale)) * float(over_b(np.array([1.0]))[0])
    return a_low * (inner + top)


def test_theorem1_printed_is_violated_inside_the_range_of_the_algorithm():
    ratio = math.log(three_label_event(0.3, 0.3, 0.4, True) / three_label_event(0.4, 0.2, 0.4, False))
    printed, corrected = c.theorem1_printed(1, 0.5, 0.3).epsilon, c.theorem1_corrected(1, 0.5, 0.3).epsilon
    assert (printed, corrected) == (pytest.approx(2.466, abs=5e-4), pytest.approx(3.466, abs=5e-4))
    assert ratio == pytest.approx(3.4435, abs=3 * 0.0037)
    assert printed < ratio < corrected


def test_theorem1_where_nothing_is_hidden():
    for arguments, told in (((0, 0.5, 0.1), "sigma = 0"), ((1, 0, 0.1), "lam = 0"), ((1, 0.5, 0), "tau = 0")):
        for theorem in (c.theorem1_printed, c.theorem1_corrected):
            bound = theorem(*arguments)
            assert (bound.epsilon, bound.holds) == (math.inf, False)
            assert told in bound.why
    assert c.theorem1_corrected(math.inf, 0.5, 0.5).epsilon == pytest.approx(math.log(3))
    assert c.theorem1_corrected(1, 1, 0).epsilon == 2
    assert c.theorem1_corrected(1, 1e-300, 1e-300).epsilon == pytest.approx(2 + 600 * math.log(10))


def test_theorem3_reference_and_the_clusters_it_starts_at():
    bound = c.theorem3(20_000, 1)
    assert f"{bound.parameters['alpha']:.5f}" == "0.39614"
    assert f"{bound.epsilon:.5f}" == "1.42505"
    assert bound.delta == 2.5e-9
    assert bound.basis == "claimed"
    for theta, least in ((1, 11_108), (0.25, 62_423), (0.1, 188_930)):
        assert c.theorem3(least, theta).holds
        refused = c.theorem3(least - 1, theta)
        assert (refused.epsilon, refused.delta, refused.holds) == (math.inf, 1.0, False)
        assert "needs <= 1/2" in refused.why
    assert "at least 2" in c.theorem3(1, 1).why
    assert "theta = 0" in c.theorem3(10**6, 0).why


def test_lemma9_reference_conditions_and_inverse():
    bound = c.lemma9(20_000, 0.39614, 1, delta=2.5e-9)
    assert f"{bound.epsilon:.5f}" == "1.22944"
    again = c.lemma9(20_000, 0.39614, 1, xi=bound.parameters["xi"])
    assert again.delta == pytest.approx(2.5e-9)
    assert again.epsilon == pytest.approx(bound.epsilon)
    assert "s >= 2 / alpha" in c.lemma9(3, 0.5, 1, delta=0.1).why
    assert c.lemma9(20_000, 0.00013, 1, delta=1e-6).why.startswith("xi = ")
    assert c.lemma9(20_000, 0.4, 1, delta=0).epsilon == math.inf
    assert c.lemma9(20_000, 0, 1, delta=0.5).epsilon == math.inf
    assert c.lemma9(20_000, 0.4, 1, delta=1).epsilon == 0
    values = [c.lemma9(20_000, 0.4, 1, delta=d).epsilon for d in (1e-300, 1e-12, 1e-6, 0.5, 1)]
    assert values == sorted(values, reverse=True)


def test_lemma9_gives_theorem3_its_constants():
    for s, theta in ((20_000, 1), (10**6, 0.3)):
        three = c.theorem3(s, theta)
        nine = c.lemma9(s, three.parameters["alpha"], theta, xi=4 * math.sqrt(math.log(s)))
        assert nine.holds
        assert nine.epsilon <= three.epsilon
        assert nine.delta <= three.delta


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 40.0])
def test_corollary1_is_randomized_response(k, epsilon):
    bound = c.corollary1(epsilon, k)
    lam, tau = bound.parameters["lam"], bound.parameters["tau"]
    assert bound.epsilon == epsilon
    assert c.theorem1_corrected(math.inf, lam, tau).epsilon == pytest.approx(epsilon, rel=1e-9)
    assert lam == pytest.approx(k / (k - 1 + math.exp(epsilon)))


def test_corollary2_totals():
    printed, corrected = c.corollary2_printed(0.7, 0.05, 10), c.corollary2_corrected(0.7, 0.05, 10)
    assert printed.epsilon == pytest.approx(1.4)
    assert corrected.epsilon == pytest.approx(2.1)
    p = corrected.parameters
    assert c.theorem1_corrected(p["sigma"], p["lam"], p["tau"]).epsilon == pytest.approx(2.1)
    assert c.theorem1_printed(p["sigma"], p["lam"], p["tau"]).epsilon == pytest.approx(1.4)
    split = c.corollary2_split(0.2, 0.5, 0.3, 10)
    assert split.epsilon == pytest.approx(0.7)
    p = split.parameters
    assert p["tau"] == 0.1
    assert c.theorem1_corrected(p["sigma"], p["lam"], p["tau"]).epsilon == pytest.approx(0.7)


def test_corollaries_say_why_not():
    for bound, told in (
        (c.corollary1(0, 3), "epsilon > 0"),
        (c.corollary1(800, 3), "the least float"),
        (c.corollary2_printed(1, 0.3, 10), "phi = 0.3 above 1/K"),
        (c.corollary2_corrected(1, 0, 10), "phi > 0"),
        (c.corollary2_corrected(0, 0.1, 10), "epsilon = 0"),
        (c.corollary2_corrected(800, 0.1, 10), "the least float"),
    ):
        assert (bound.epsilon, bound.holds) == (math.inf, False)
        assert told in bound.why


def test_k_ary_randomized_response_attains_theorem5_sharpened():
    sharper, keep = c.theorem5_sharper(1, 10, 1), math.e / (math.e + 9)
    assert sharper.value == pytest.approx(keep, rel=1e-14)
    assert f"{sharper.value:.5f}" == "0.23197"
    assert keep * keep <= c.theorem5_printed(1, 10, 1).value  # its recall is its precision
    for s in range(1, 10):
        assert c.theorem5_sharper(s, 10, 1).value <= min(1, c.theorem5_printed(s, 10, 1).value)
    assert c.theorem5_printed(5, 10, 800).value == math.inf
    assert c.theorem5_sharper(5, 10, 800).value == 1
    assert not c.theorem5_printed(10, 10, 1).holds
    assert math.isnan(c.theorem5_sharper(11, 10, 1).value)


def test_shapes_say_that_they_are_shapes():
    four = c.theorem4_shape(10, 0.05, 0.5, 10_000, 0.1, 0.2)
    assert four.value == pytest.approx(math.sqrt(10 * math.log(20) / 5000) + 0.3)
    two = c.theorem2_shape(3, 10, 0.05, 10_000, 0.1, 100, 2, 0.5, 0.2, 0.1)
    first = 3 / 0.8 * math.sqrt(10 * math.log(20) / 10_000)
    assert two.value == pytest.approx(first + 3 * 0.3 / 0.8 * (0.1 + 3 * 2 / 100 + 0.3))
    assert "shape" in four.why
    assert "shape" in two.why
    assert math.isnan(c.theorem2_shape(3, 10, 0.05, 10_000, 0.1, 100, 2, 0.5, 1, 0.1).value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: c.theorem1_printed(-1, 0.5, 0.1), "sigma = -1"),
        (lambda: c.theorem1_printed(1, 1.5, 0.1), "lam = 1.5"),
        (lambda: c.theorem1_printed(1, 0.5, 0.7), "tau = 0.7"),
        (lambda: c.theorem3(0, 1), "cluster_size = 0"),
        (lambda: c.theorem3(10, 1.2), "theta = 1.2"),
        (lambda: c.theorem3(10, math.nan), "theta = nan"),
        (lambda: c.lemma9(100, 0.6, 1, delta=0.1), "alpha = 0.6"),
        (lambda: c.lemma9(100, 0.4, 1), "none given"),
        (lambda: c.lemma9(100, 0.4, 1, delta=0.1, xi=1), "delta and xi"),
        (lambda: c.corollary1(1, 1), "labels = 1"),
        (lambda: c.corollary2_corrected(1, 3, 2), "phi = 3"),
        (lambda: c.theorem5_sharper(1, 10, math.nan), "epsilon = nan"),
        (lambda: c.theorem4_shape(1, 0, 1, 10, 0, 0), "gamma = 0"),
    ],
)
def test_bad_input_is_named(call, told):
    with pytest.raises(InputError) as error:
        call()
    assert told in str(error.value)
