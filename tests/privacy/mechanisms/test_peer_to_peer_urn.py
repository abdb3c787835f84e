"""Tails summed from beta densities against tails one by one, and the best event against all events."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betainc

from p2p_sim.privacy.mechanisms.peer_to_peer import urn
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import Urn, UrnDraws


def every_event(draws: UrnDraws, m: int, epsilon: float, flip: float) -> float:
    """The largest of (1 - a - a e^eps) P_B - ((1 - a) e^eps - a) P_A over all {K >= k}, each tail by itself."""
    share = draws.counts / draws.urn.size
    keep, best = 1 - flip - flip * math.exp(epsilon), 0.0
    for k in range(1, m + 1):
        tail = betainc(k, m - k + 1, share)
        more = float(draws.ones.mass @ (tail[1:] - tail[:-1]))
        best = max(best, keep * more - math.expm1(epsilon) * float(draws.ones.mass @ tail[:-1]))
    return best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flip", "ones", "m"), [(0.4, 300, 2000), (0.4, 1999, 700), (0.2, 900, 150), (0.3, 1000, 1100)]
)
def test_the_best_event_is_the_best_of_all(flip: float, ones: int, m: int) -> None:
    draws, smooth = Urn(flip, ones, 1999 - ones).draws(1e-20), 0
    for epsilon in (0.0, 0.001, 0.01, 0.04):
        value, error = draws.gain(m, epsilon)
        truth = every_event(draws, m, epsilon, flip)
        assert abs(value - truth) <= error
        assert value == pytest.approx(truth, rel=1e-10, abs=1e-17)
        level = math.log1p(math.expm1(epsilon) / (1 - flip - flip * math.exp(epsilon)))
        found = draws._smooth(m, level)
        if found is not None:
            smooth += 1
            k = draws.best(m, level)
            assert found.before == pytest.approx(draws.ratio(m, k - 1), abs=1e-9)
            assert found.before <= level < found.here
            assert found.here == pytest.approx(draws.ratio(m, k), abs=1e-9)
    assert smooth > 0


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_sums_of_tails(parts: int) -> None:
    """The rows of weights are the transpose of integrating, then averaging."""
    rng = np.random.default_rng(parts)
    mass, low, size, m, k = rng.random(300) / 150, 900.0, 3000, 1000, 330
    found = urn.Tables(mass, low, size, parts).sums(m, k)
    assert found is not None
    one_by_one = betainc(k, m - k + 1, (low + np.arange(301)) / size)
    assert found.rest == pytest.approx(float(mass @ one_by_one[:-1]), rel=1e-11)
    assert found.more == pytest.approx(float(mass @ np.diff(one_by_one)), rel=1e-10)
    np.testing.assert_allclose(urn.tails(m, k, size, low, 301, parts), one_by_one, rtol=2e-12)


def test_where_densities_are_not_smooth_there_are_no_tables() -> None:
    assert urn.steps(1000, 300, 3000, 800.0, 1000.0) == 1
    assert urn.steps(1000, 10, 3000, 800.0, 1000.0) == 0  # too few ones for the series of a factorial
    assert urn.steps(1000, 300, 3000, 2.0, 1000.0) == 0
    assert urn.steps(1000, 900, 3000, 800.0, 1000.0) == 0 or urn.steps(1000, 900, 3000, 800.0, 1000.0) > 1
    assert urn.tables(np.ones(200_000), 1e6, 10**7, 1) is None


def test_large_epsilon_is_no_overflow() -> None:
    """Beyond 700 nats e^epsilon is no float, but a flip of 1e-310 still hides nothing at 712."""
    draws = Urn(1e-310, 0, 0).draws(1e-20)
    assert draws.gain(1, 712.0)[0] == pytest.approx(1 - 1e-310 * math.exp(12.0) * math.exp(700.0), rel=1e-9)
    assert draws.gain(1, 720.0)[0] == 0
