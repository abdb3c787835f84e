"""Epsilon of DP-SGD: with Poisson batches by the accountant of dp-accounting, with passes in order by iteration.

``noise_multiplier`` is everywhere the standard deviation of the noise on a batch's sum of clipped gradients, divided by
the clipping norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.learning.training.missing_package import needed

ADD_OR_REMOVE, REPLACE_ONE = "add-or-remove", "replace-one"
NEIGHBOURS = {ADD_OR_REMOVE: "ADD_OR_REMOVE_ONE", REPLACE_ONE: "REPLACE_ONE"}
"""How neighbouring data sets differ, and what dp-accounting calls it: by one row more, or in what one row holds."""

MAX_EPSILON = 100.0
"""The largest epsilon that noise is calibrated to."""

FARTHEST = 5.0
"""How far a row may move a sum, over the standard deviation of its noise.  Beyond it drawn noise, which ends at 8.29
standard deviations, shows too often what the sum was for the law of Gaussian noise to say anything."""

_MOVED = {ADD_OR_REMOVE: 1.0, REPLACE_ONE: 2.0}
"""How far a row moves a clipped sum, in clipping norms."""

_PRECISION = 1e-4
"""Noise is calibrated to this, relative, and never below what the accountant asks for."""

_STRIDE = 1.5

_GRID = 1e-3
"""The coarsest grid of privacy losses that the accountant computes on."""


def epsilon_poisson(
    noise_multiplier: float, rate: float, steps: int, delta: float, neighbours: str = ADD_OR_REMOVE
) -> float:
    """Return epsilon, in nats, of the iterates of ``steps`` steps on Poisson-sampled batches, all of them released.

    ``noise_multiplier``: above 0.  ``rate``: the probability, in (0, 1], that a row is in a batch.  ``delta``: in
    (0, 1).  ``neighbours``: "add-or-remove": a row more or less, which changes a clipped sum by at most the clipping
    norm; "replace-one": a row, or only its label, is another, which changes it by at most twice that.  So with rate 1
    the same epsilon needs exactly twice the noise multiplier; with a smaller rate at most that.  An upper bound, except
    for rounding of floating-point numbers in the accountant.  Infinite where a row moves the sum by more than
    5 standard deviations of the noise, whose cut tails count there.  Raises InputError for arguments out of range, and
    MissingPackageError without dp-accounting.

    *Source:* the PLD accountant of dp-accounting (Doroshenko et al. 2022), on the pairs of a subsampled Gaussian:
    N(0, s^2) and (1 - q) N(0, s^2) + q N(1, s^2), either way around; for replace-one
    (1 - q) N(0, s^2) + q N(-1, s^2) and (1 - q) N(0, s^2) + q N(1, s^2).
    *Assumes:* the noise is exactly Gaussian and independent, rows are sampled independently, batches are secret.
    """
    _check_poisson(rate, steps, neighbours)
    check_range("noise_multiplier", noise_multiplier, 0, math.inf, open_low=True)
    _check_delta(delta)
    noise_multiplier, rate, steps = (
        float(noise_multiplier),
        float(rate),
        int(steps),
    )  # numpy's small ones overflow
    with needed(
        "the epsilon of Poisson batches is computed by dp-accounting",
        "pip install 'dp-accounting>=0.5'",
    ):
        import dp_accounting as dp
        from dp_accounting import pld
    if FARTHEST * noise_multiplier < _MOVED[neighbours]:
        return math.inf
    accountant = pld.PLDAccountant(
        getattr(dp.NeighboringRelation, NEIGHBOURS[neighbours]),
        value_discretization_interval=_grid(noise_multiplier, rate, steps),
    )
    step = dp.GaussianDpEvent(noise_multiplier)
    if rate < 1:  # the Gaussian event composes in closed form
        step = dp.PoissonSampledDpEvent(rate, step)
    accountant.compose(step, steps)
    return float(accountant.get_epsilon(float(delta)))


def calibrate_poisson(
    epsilon: float, delta: float, rate: float, steps: int, neighbours: str = ADD_OR_REMOVE
) -> float:
    """Return the least noise multiplier, to 1e-4 of itself, with which ``epsilon_poisson`` is at most ``epsilon``.

    ``epsilon``: in (0, 100], in nats; the rest as there.
    """
    _check_poisson(rate, steps, neighbours)
    _check_delta(delta)
    check_range("epsilon", epsilon, 0, MAX_EPSILON, open_low=True)
    rate, steps, epsilon = float(rate), int(steps), float(epsilon)
    start = 2 + 10 * rate * math.sqrt(steps) / min(epsilon, 1.0)
    floor = _MOVED[neighbours] / FARTHEST
    return _least(lambda noise: epsilon_poisson(noise, rate, steps, delta, neighbours), epsilon, start, floor)


def epsilon_by_iteration(
    noise_multiplier: float, batches: int, passes: int, delta: float, share: float = 1.0
) -> float:
    """Return epsilon, in nats, of the last iterate alone, for the first ``share`` of the rows in the order of batches.

    The rows are in ``batches`` disjoint batches, gone through in the same public order ``passes`` times.  ``share``: in
    (0, 1]; 1: of every row, those of the last batch included, whose last gradient only one noise covers.  Neighbours
    differ in what one row holds (replace-one).  A row of batch t (from 1) of m has Renyi divergence
    a c of order a, for every a > 1, with c = 2 / s^2 ((passes - 1) / m + 1 / (m - t + 1)), s the noise multiplier.
    Infinite for a noise multiplier below 0.4, with which a row moves a sum by more than 5 standard deviations.
    Raises InputError for arguments out of range.

    *Source:* Feldman, Mironov, Talwar and Thakurta 2018, Theorem 34, with the batches of the tutorial
    ``mnist_lr_tutorial.py`` of TensorFlow Privacy, which Clustering 2022 names for its DP-SGD (it does not say for what
    share of the rows); to (epsilon, delta) by Canonne, Kamath and Steinke 2020, Proposition 12.
    *Assumes:* the loss of each row is convex, smooth, and Lipschitz with the clipping norm, so that no gradient is
    clipped; steps are no longer than 2 / smoothness; nobody sees an iterate but the last.
    """
    check_range("noise_multiplier", noise_multiplier, 0, math.inf, open_low=True)
    at_one = _by_iteration(batches, passes, share)
    _check_delta(delta)
    noise_multiplier = float(noise_multiplier)
    if FARTHEST * noise_multiplier < _MOVED[REPLACE_ONE]:
        return math.inf
    return _from_renyi(at_one / noise_multiplier**2, delta)


def calibrate_by_iteration(
    epsilon: float, delta: float, batches: int, passes: int, share: float = 1.0
) -> float:
    """Return the least noise multiplier, to 1e-4 of itself, with which ``epsilon_by_iteration`` is at most ``epsilon``.

    ``epsilon``: in (0, 100], in nats; the rest as there.
    """
    check_range("epsilon", epsilon, 0, MAX_EPSILON, open_low=True)
    _check_delta(delta)
    at_one = _by_iteration(batches, passes, share)
    epsilon, floor = float(epsilon), _MOVED[REPLACE_ONE] / FARTHEST
    start = max(math.sqrt(at_one) / epsilon, floor)
    return _least(lambda noise: _from_renyi(at_one / noise**2, delta), epsilon, start, floor)


def _grid(noise_multiplier: float, rate: float, steps: int) -> float:
    """Return the step of the accountant's grid: about 3e-3 of the losses' standard deviation where that is small."""
    return max(min(_GRID, 3e-3 * rate * math.sqrt(steps) / noise_multiplier), 1e-6)


def _by_iteration(batches: int, passes: int, share: float) -> float:
    """Return the coefficient of the order in the Renyi divergence, at noise multiplier 1."""
    check_whole("batches", batches)
    check_whole("passes", passes)
    check_range("share", share, 0, 1, open_low=True)
    batches, passes = int(batches), int(passes)
    last = math.ceil(batches * float(share))
    return 2 * ((passes - 1) / batches + 1 / (batches - last + 1))


def _from_renyi(coefficient: float, delta: float) -> float:
    """Return epsilon from a Renyi divergence of ``coefficient`` times the order, for every order above 1."""
    from scipy.optimize import minimize_scalar

    _check_delta(delta)
    delta = float(delta)

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # any order gives a valid bound, so the search need not be exact
        order = 1 + excess
        return coefficient * order + math.log(excess / order) - (math.log(delta) + math.log(order)) / excess

    middle = 0.5 * math.log(-math.log(delta) / coefficient)
    found = minimize_scalar(bound, bounds=(middle - 10, middle + 10), method="bounded")
    return max(float(found.fun), 0.0)


def _least(epsilon_of: Callable[[float], float], epsilon: float, start: float, floor: float) -> float:
    """Return the least noise from ``floor`` on that keeps ``epsilon``, to ``_PRECISION``.

    It is bracketed from above, in small steps: the accountant takes long where there is little noise.
    """
    from scipy.optimize import brentq

    high = start
    while epsilon_of(high) > epsilon:
        high *= _STRIDE
    low = max(high / _STRIDE, floor)
    while epsilon_of(low) <= epsilon:
        if low == floor:
            return floor
        high, low = low, max(low / _STRIDE, floor)
    fine = _PRECISION / 2 * low
    found = float(brentq(lambda noise: epsilon_of(noise) - epsilon, low, high, xtol=fine))
    while epsilon_of(found) > epsilon:
        found += fine
    return found


def _check_poisson(rate: float, steps: int, neighbours: str) -> None:
    check_range("rate", rate, 0, 1, open_low=True)
    check_whole("steps", steps)
    if neighbours not in NEIGHBOURS:
        raise InputError(
            f"neighbours = {neighbours!r}: must be one of {', '.join(map(repr, NEIGHBOURS))}"
            f"{near(str(neighbours), NEIGHBOURS)}"
        )


def _check_delta(delta: float) -> None:
    check_range("delta", delta, 0, 1, open_low=True)
    if delta == 1:
        raise InputError(f"delta = {delta!r}: must be below 1; give one such as 1e-6, or 1 / rows")
