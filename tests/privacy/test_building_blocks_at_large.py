"""Mechanisms by their parameters: what anybody reaches as ``privacy.NAME``."""

from __future__ import annotations

import math

import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.core.errors import InputError
from protocols import RandomizedResponse


def test_shuffled_bits_with_colluders_are_the_shuffle_of_the_others() -> None:
    found = privacy.shuffled_response(100, 1.0, colluders=50)
    assert f"{found.epsilon(1e-6):.8f}" == "0.74882656"  # reference_values.csv
    assert found.basis == "exact"
    assert found.epsilon(1e-6) == privacy.shuffled_response(50, 1.0).epsilon(1e-6)
    assert "50 of 100 users" in found.assumes[-1]
    alone = privacy.shuffled_response(30, 1.0, labels=5, colluders=29)
    assert alone.delta(0.3) == pytest.approx(
        privacy.profile(RandomizedResponse(1.0, 5)).delta(0.3), rel=1e-12
    )


@pytest.mark.parametrize("labels", [3, 4])
def test_several_labels_are_exact_for_few_and_bounded_for_many(labels: int) -> None:
    few, many = (privacy.shuffled_response(n, 1.0, labels) for n in (9, 400))
    assert (few.basis, many.basis) == ("exact", "upper")
    assert many.epsilon(1e-6) < few.epsilon(1e-6)
    assert few.delta(0.4) <= privacy.bounds.shuffle.blanket(9, 1.0, epsilon=0.4, labels=labels).delta
    blanket = privacy.bounds.shuffle.blanket(400, 1.0, epsilon=0.1, labels=labels).delta
    assert many.delta(0.1) == pytest.approx(blanket, rel=0.05)  # the same bound, grouped otherwise


def test_noise_against_its_definition_on_a_grid() -> None:
    """delta is the sum of what one density exceeds e^epsilon times the other by."""
    x, step = np.linspace(-60, 60, 2_400_001, retstep=True)
    for law, density in (
        (privacy.laplace(2.0, 1.5), lambda z: np.exp(-np.abs(z) / 2) / 4),
        (privacy.gaussian(2.0, 1.5), lambda z: np.exp(-z * z / 8) / math.sqrt(8 * math.pi)),
    ):
        for epsilon in (0.0, 0.2, 0.6):
            excess = density(x - 1.5) - math.exp(epsilon) * density(x)
            assert law.delta(epsilon) == pytest.approx(np.maximum(excess, 0).sum() * step, rel=1e-6)
        assert law.basis == "exact"
    assert privacy.laplace(2.0, 1.5).epsilon(0) == 0.75
    assert privacy.gaussian(2.0).epsilon(0) == math.inf
    assert privacy.laplace(2.0, 0).epsilon(0) == privacy.gaussian(2.0, 0).epsilon(0) == 0


def test_noise_composes() -> None:
    four = privacy.composed(privacy.gaussian(4.0), 4)
    assert four.epsilon(1e-6) == pytest.approx(privacy.gaussian(2.0).epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("epsilon0", [40.0, 800.0, math.inf])
@pytest.mark.parametrize(("users", "labels"), [(50, 2), (6, 3), (1000, 3)])
def test_large_local_budgets_never_promise_too_much(epsilon0: float, users: int, labels: int) -> None:
    found = privacy.shuffled_response(users, epsilon0, labels)
    assert found.epsilon(0) == pytest.approx(epsilon0, rel=1e-15)
    assert found.delta(min(0.9 * epsilon0, 30.0)) > 0.9
    assert found.delta(0) <= 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: privacy.shuffled_response(0, 1.0), "users = 0"),
        (lambda: privacy.shuffled_response(10, math.nan), "epsilon0 = nan"),
        (lambda: privacy.shuffled_response(10, -1.0), "epsilon0 = -1"),
        (lambda: privacy.shuffled_response(10, 1.0, 1), "labels = 1"),
        (lambda: privacy.shuffled_response(10, 1.0, 300), "labels = 300"),
        (lambda: privacy.shuffled_response(10, 1.0, colluders=10), "from 0 to 9"),
        (lambda: privacy.laplace(0.0), "scale = 0.0"),
        (lambda: privacy.laplace(math.inf), "scale = inf"),
        (lambda: privacy.gaussian(math.nan), "sigma = nan"),
        (lambda: privacy.gaussian(1.0, -1.0), "sensitivity = -1.0"),
    ],
)
def test_bad_input_is_named(call: object, told: str) -> None:
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]
    assert told in str(caught.value)
