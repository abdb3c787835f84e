"""Instance-based privacy loss: what features and a flipped label together say of the label of one person.

eta(x) = P(Y = 1 | x), p_plus = P(Y = 1), and the label is flipped with probability ``flip``.  Losses are in nats:
the log odds of the label once x and the report are known, less those of the prior.  They hold for one person whose
features are drawn with her label, so a loss may exceed the epsilon of the report, which takes features as given.

*Source:* Pitfalls 2021 and Release 2023, corrected as ``docs/laws.md``, "Pitfalls 2021" says.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds.bound import Figure, mean, real

Floats = npt.NDArray[np.float64]
PAPER = "Pitfalls of label differential privacy, 2021"


def prior_of(p_plus: Any) -> float:
    """Return p_plus as a number in (0, 1); raises InputError otherwise."""
    prior = real("p_plus", p_plus, 0.0, 1.0)
    if prior in (0.0, 1.0):
        raise InputError(
            f"p_plus = {prior:g}: needs a number above 0 and below 1; everybody has the same label"
        )
    return prior


def flip_of(flip: Any) -> float:
    """Return a flip probability in (0, 1/2); raises InputError otherwise."""
    number = isinstance(flip, Real) and not isinstance(flip, (bool, np.bool_))
    if not number or not 0 < float(flip) < 0.5:
        shown = f"{flip:g}" if number else repr(flip)
        raise InputError(
            f"flip = {shown}: needs a number above 0 and below 1/2; 0 would hide nothing, 1/2 would tell nothing"
        )
    return float(flip)


def eta_of(eta: Any) -> Floats:
    """Return P(y = 1 | x) as an array of numbers in [0, 1]; raises InputError otherwise."""
    values = np.asarray(eta, np.float64)
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any() or not values.size:
        found = f"{values[wrong].flat[0]!r} among {values.size:,}" if values.size else "empty"
        raise InputError(f"eta is {found}: needs probabilities from 0 to 1")
    return values


def h(z: Any) -> Any:
    """Return (2z - 1) ln(z / (1 - z)) for z in [0, 1]: at least 0, infinite at 0 and 1.

    *Source:* Pitfalls 2021, Section 4; at z = flip it is the expected loss of a report without features.
    """
    from scipy.special import logit

    values = eta_of(z)
    return (2 * values - 1) * logit(values)


def nu(eta: Any, p_plus: float, flip: float, label: int, reported: int) -> Floats:
    """Return the loss (n,) for people with P(y = 1 | x) ``eta`` (n,), of the true label, when ``reported`` is seen.

    label, reported: 0 or 1.  Infinite where x alone gives the label away, minus infinite where it excludes it.
    Raises InputError.  *Source:* Pitfalls 2021, Eq. 1, with labels that flip with ``flip``.
    """
    from scipy.special import logit

    for name, value in (("label", label), ("reported", reported)):
        if value not in (0, 1):
            raise InputError(f"{name} = {value!r}: needs 0 or 1")
    noise, features = _epsilon(flip), logit(eta_of(eta)) - logit(prior_of(p_plus))
    return np.asarray(
        (noise if label == reported else -noise) + (features if label else -features), np.float64
    )


def nu_bar(eta: Any, p_plus: float, flip: float) -> Floats:
    """Return H(eta) (n,): the loss expected over label and report of people with P(y = 1 | x) ``eta`` (n,).

    (2 eta - 1)(logit eta - logit p_plus) + h(flip), convex in eta; infinite at 0 and 1; it may be negative.
    Raises InputError.  *Source:* Pitfalls 2021, after Definition 3; Release 2023, Lemma D.1.
    """
    return gain(eta, p_plus) + float(h(flip_of(flip)))


def gain(eta: Any, p_plus: float) -> Floats:
    """Return what features alone add to the expected loss: ``nu_bar`` less h(flip), whatever the flip."""
    from scipy.special import logit

    values = eta_of(eta)
    return np.asarray((2 * values - 1) * (logit(values) - logit(prior_of(p_plus))), np.float64)


def least_eta(p_plus: float) -> float:
    """Return the eta at which ``nu_bar`` is least: between 1/2 and p_plus.  Raises InputError."""
    from scipy.optimize import brentq

    level = _log_odds(prior_of(p_plus))
    if level == 0:
        return 0.5

    def slope(u: float) -> float:  # of tanh(u/2)(u - level), times 2 cosh(u/2)^2
        return u - level + math.sinh(u)

    return _expit(float(brentq(slope, min(0.0, level), max(0.0, level), xtol=1e-15)))


_FAR = 4000.0
"""A loss in nats beyond which both thresholds round to 0 and 1, whatever the prior."""


class Thresholds(NamedTuple):
    """``nu_bar`` exceeds tau where eta < ``low`` or eta > ``high``, and nowhere else."""

    low: float
    high: float


def thresholds(tau: float, p_plus: float, flip: float) -> Thresholds:
    """Return the eta at which ``nu_bar`` is ``tau`` nats, on both of its branches.

    Below its least value everybody is above tau: then low is 1 and high is 0.  Raises InputError.
    *Source:* both roots found numerically; Lemma 1 of Pitfalls 2021 has closed forms that bound in neither
    direction, and Release 2023 takes H for symmetric, which it is for p_plus = 1/2 alone.
    """
    level, over = _log_odds(prior_of(p_plus)), real("tau", tau, -math.inf) - float(h(flip_of(flip)))
    middle = _log_odds(least_eta(p_plus))
    if over < _gain_at(middle, level):
        return Thresholds(1.0, 0.0)
    over = min(over, _FAR)
    low, high = _root(over, level, middle, -1.0), _root(over, level, middle, 1.0)
    # At 0 and 1 the loss is infinite, so they count whatever a float can hold.
    return Thresholds(max(_expit(low), math.ulp(0.0)), min(_expit(high), math.nextafter(1.0, 0.0)))


def _gain_at(log_odds: float, level: float) -> float:
    return math.tanh(log_odds / 2) * (log_odds - level)  # 2 eta - 1 = tanh(logit(eta)/2)


def _root(over: float, level: float, middle: float, side: float) -> float:
    """Return the log odds at which the gain is ``over``, on one side of its least value."""
    from scipy.optimize import brentq

    far = middle + side
    while _gain_at(far, level) <= over:
        far = middle + 2 * (far - middle)
    if _gain_at(middle, level) >= over:
        return middle
    return float(brentq(lambda u: _gain_at(u, level) - over, middle, far, xtol=1e-14, rtol=1e-15))


def _expit(u: float) -> float:
    from scipy.special import expit

    return float(expit(u))


def jeffreys(eta: Any, weights: Any = None) -> float:
    """Return E[(2 eta - 1) logit eta] in nats over people (n,), perhaps weighted; infinite where eta is 0 or 1.

    It is Jeffreys' divergence up to the prior: the mean loss is this + h(flip) - h(p_plus), if p_plus = E eta.
    Raises InputError.  *Source:* Pitfalls 2021, Eq. 2.
    """
    values = eta_of(eta)
    shares = None if weights is None else np.asarray(weights, np.float64)
    counted = values if shares is None else values[shares != 0]  # nobody there: no infinity times 0
    return mean(np.asarray(h(counted), np.float64), None if shares is None else shares[shares != 0])


def mean_loss(eta: Any, flip: float, weights: Any = None) -> float:
    """Return the mean of ``nu_bar`` in nats over people with eta (n,), whose own mean is the prior."""
    prior = prior_of(mean(eta_of(eta), weights))
    return jeffreys(eta, weights) + float(h(flip_of(flip))) - float(h(prior))


def markov(tau: float, expected: float, p_plus: float, flip: float) -> Figure:
    """Return the bound (E nu_bar - least)/(tau - least) on P(nu_bar >= tau), for tau above the least value.

    expected: E nu_bar in nats, infinity included.  Raises InputError.
    *Source:* Markov's inequality for nu_bar less its least value; Pitfalls 2021 applies it to nu_bar itself, which can
    be negative, with two signs swapped.
    """
    least = float(nu_bar(least_eta(p_plus), p_plus, flip))
    over, most = real("tau", tau, -math.inf), real("expected", expected, -math.inf, infinite=True)
    quantity, source = (
        f"share of people with an expected loss of {over:g} nats or more",
        f"{PAPER}, corrected",
    )
    if most < least:
        raise InputError(
            f"expected = {most:g}: no mean of losses that are at least {least:.6g}; give E nu_bar"
        )
    if over <= least:
        why = f"tau = {over:g} is not above the least loss, {least:.6g}: everybody may reach it"
        return Figure(math.nan, quantity, False, why, source, "upper")
    value = min(1.0, (most - least) / (over - least))
    return Figure(value, quantity, True, "1: says nothing" if value == 1 else "", source, "upper")


def nu_max(smallest: Any, largest: Any, p_plus: float, flip: float) -> float:
    """Return the largest loss in nats where eta lies between ``smallest`` and ``largest``; infinite at 0 and 1.

    ln((1 - flip)/flip) + max(logit largest - logit p_plus, logit p_plus - logit smallest).  Raises InputError.
    *Source:* Pitfalls 2021, Section 3.  An estimate of 0 from a sample is no measurement: see ``nu_max_between``.
    """
    low, high = (float(each) for each in eta_of([smallest, largest]))
    if low > high:
        raise InputError(f"smallest = {low:g} is above largest = {high:g}: give the ends of eta's range")
    level = _log_odds(prior_of(p_plus))
    return _epsilon(flip) + max(_log_odds(high) - level, level - _log_odds(low))


def nu_max_between(
    smallest: tuple[float, float], largest: tuple[float, float], p_plus: tuple[float, float], flip: float
) -> tuple[float, float]:
    """Return what ``nu_max`` lies between, where inf eta, sup eta and the prior lie between two ends each.

    Raises InputError.  *Source:* it grows with sup eta, falls with inf eta, and is convex in the log odds of the prior.
    """
    low, high = (prior_of(end) for end in p_plus)
    most = max(nu_max(smallest[0], largest[1], prior, flip) for prior in (low, high))
    odds_low, odds_high = _log_odds(smallest[1]), _log_odds(largest[0])
    alike = min(max((odds_low + odds_high) / 2, _log_odds(low)), _log_odds(high))  # both labels lose alike
    return _epsilon(flip) + max(0.0, odds_high - alike, alike - odds_low), most


def _log_odds(z: float) -> float:
    from scipy.special import logit

    return float(logit(z))


def flip_for_loss(loss: float) -> float:
    """Return the least flip in (0, 1/2) with h(flip) at most ``loss`` > 0 nats.  Raises InputError."""
    from scipy.optimize import brentq

    if not 0 < loss < math.inf:
        raise InputError(f"loss = {loss!r}: needs a number of nats above 0")
    root = brentq(lambda u: math.tanh(u / 2) * u - loss, 0.0, loss + 3, xtol=1e-14)
    chance = _expit(-float(root))
    if chance in (0.0, 0.5):
        raise InputError(f"loss = {loss!r}: no float is the flip for it; needs about 1e-15 to 700 nats")
    while h(chance) > loss and chance < 0.5:
        chance = math.nextafter(chance, 0.5)
    return chance


def _epsilon(flip: float) -> float:
    chance = flip_of(flip)
    return math.log1p(-chance) - math.log(chance)
