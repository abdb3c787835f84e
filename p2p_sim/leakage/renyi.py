"""Renyi divergences of what an attacker sees under two labels: exact, in closed form, or estimated from below.

D_order(P || Q) in nats, order > 1.  An exact divergence or an upper bound becomes (epsilon, delta); an estimate from
samples is a lower one and promises nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing.confidence_bounds import probability
from p2p_sim.privacy.bounds import release2023
from p2p_sim.privacy.bounds.bound import Bound, Renyi, fails, order, real, whole
from p2p_sim.privacy.law import Law

Floats = npt.NDArray[np.float64]


def finite(first: Any, second: Any, order_: Any) -> Renyi:
    """Return D_order(first || second) of two laws (m,) on one finite space, exactly.

    Infinite where ``second`` excludes what ``first`` allows.  order_ > 1.  Raises InputError.
    *Source:* Release 2023, Definition 3.1, by enumeration.
    """
    value = release2023.renyi_divergence(first, second, order_)
    why = "infinite: an outcome that the second law excludes" if math.isinf(value) else ""
    return Renyi(value, order(order_), True, why, f"{release2023.PAPER}, Definition 3.1", "exact")


def gaussians(mean: Any, covariance: Any, other_mean: Any, other_covariance: Any, order_: Any) -> Renyi:
    """Return D_order(N(mean, covariance) || N(other_mean, other_covariance)), exactly.

    mean (d,) or a number; covariance (d, d), symmetric and positive definite, or a variance.  Infinite where
    order * other_covariance + (1 - order) * covariance is not positive definite.  order_ > 1.  Raises InputError.
    *Source:* Gil, Alajaji and Linder 2013, "Renyi divergence measures for commonly used univariate continuous
    distributions", Table 2, and its multivariate form.
    """
    alpha = order(order_)
    (m0, s0), (m1, s1) = (
        _normal("covariance", mean, covariance),
        _normal("other_covariance", other_mean, other_covariance),
    )
    if len(m0) != len(m1):
        raise InputError(f"means of {len(m0)} and {len(m1)} numbers: needs as many in both")
    source = "Gil, Alajaji and Linder 2013"
    mixed = alpha * s1 + (1 - alpha) * s0
    try:
        between = np.linalg.cholesky(mixed)
    except np.linalg.LinAlgError:
        why = f"infinite: {alpha:g} * other_covariance - {alpha - 1:g} * covariance is not positive definite"
        return Renyi(math.inf, alpha, True, why, source, "exact")
    apart = np.linalg.solve(between, m0 - m1)
    logs = [float(2 * np.log(np.diag(np.linalg.cholesky(each))).sum()) for each in (s0, s1)]
    spread = float(2 * np.log(np.diag(between)).sum()) - (1 - alpha) * logs[0] - alpha * logs[1]
    value = alpha / 2 * float(apart @ apart) - spread / (2 * (alpha - 1))
    return Renyi(max(0.0, value), alpha, True, "", source, "exact")


def _normal(name: str, mean: Any, covariance: Any) -> tuple[Floats, Floats]:
    middle, spread = np.atleast_1d(np.asarray(mean, np.float64)), np.asarray(covariance, np.float64)
    spread = spread.reshape(1, 1) if spread.size == 1 else spread
    good = middle.ndim == 1 and spread.shape == (len(middle), len(middle)) and bool(np.isfinite(middle).all())
    if not good or not np.isfinite(spread).all() or not np.allclose(spread, spread.T, rtol=1e-9, atol=0):
        raise InputError(
            f"{name} of shape {spread.shape} for a mean of {middle.shape}: needs a finite symmetric matrix, (d, d)"
        )
    try:
        np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise InputError(f"{name} is not positive definite: drop features that follow from others") from None
    return middle, spread


CASES = 64
"""Of a view whose law depends on others' labels in more ways, the outcomes are not listed: it would take long."""

Outcomes = tuple[Floats, Floats]
"""Logarithms of the probabilities of all outcomes under label 0 and under label 1."""


def cases_of(law: Law) -> list[Outcomes] | None:
    """Return the outcomes of each case that a view may face; None where they are not listed, or are too many."""
    if law.slow or law.noise() is not None or len(alternatives := law.alternatives()) > CASES:
        return None
    listed = [case.outcomes() for case in alternatives]
    found = [(np.asarray(p, np.float64), np.asarray(q, np.float64)) for p, q in filter(None, listed)]
    return found if len(found) == len(listed) else None


def of_cases(law: Law, cases: list[Outcomes] | None, order_: Any) -> Renyi | None:
    """Return the largest D_order of what a view sees under two labels, in both directions, of its law.

    ``cases``: as ``cases_of`` returns them.  Exact by the outcomes, or in closed form for Gaussian and Laplace noise;
    otherwise the law's pure epsilon bounds it.  None where that is infinite, and nothing is known.  order_ > 1.  Raises
    InputError.
    *Source:* Release 2023, Definition 3.1; ``gaussians``, ``laplace``; Bun and Steinke 2016, proof of Proposition 3.3:
    no view of a pure epsilon has a larger divergence than binary randomized response.
    """
    alpha, noise = order(order_), law.noise()
    if noise is not None:
        return (
            laplace(noise.ratio, alpha)
            if noise.kind == "laplace"
            else gaussians(noise.ratio, 1.0, 0.0, 1.0, alpha)
        )
    if cases is not None:
        value = max(_of_logs(*sides, alpha) for p, q in cases for sides in ((p, q), (q, p)))
        why = "infinite: what the view sees may rule a label out" if math.isinf(value) else ""
        return Renyi(value, alpha, True, why, f"{release2023.PAPER}, Definition 3.1", "exact")
    pure = law.pure_bracket().upper
    if math.isinf(pure):
        return None
    lie = float(np.exp(-np.logaddexp(0.0, pure)))
    value = release2023.label_divergence(alpha, 2 * lie, 2).epsilon
    source = "at most that of binary randomized response of the view's pure epsilon, Bun and Steinke 2016"
    return Renyi(value, alpha, True, "", source, "upper")


def _of_logs(first: Floats, second: Floats, alpha: float) -> float:
    """Return D_alpha of two laws by the logarithms of their probabilities, which may be far below what floats hold."""
    from scipy.special import logsumexp

    support = np.isfinite(first)
    if not bool(np.isfinite(second[support]).all()):
        return math.inf
    total = float(logsumexp(alpha * first[support] - (alpha - 1) * second[support]))
    return max(0.0, total / (alpha - 1))


def laplace(ratio: Any, order_: Any) -> Renyi:
    """Return D_order of Laplace noise and the same moved by ``ratio`` >= 0 of its scales, exactly.

    order_ > 1.  Raises InputError.  *Source:* Mironov 2017, Proposition 6.
    """
    alpha, far = order(order_), real("ratio", ratio, 0.0)
    near = math.log(alpha / (2 * alpha - 1)) + (alpha - 1) * far
    value = float(np.logaddexp(near, math.log((alpha - 1) / (2 * alpha - 1)) - alpha * far)) / (alpha - 1)
    return Renyi(max(0.0, value), alpha, True, "", "Mironov 2017, Proposition 6", "exact")


def variational(
    first: npt.ArrayLike, second: npt.ArrayLike, order_: Any, *, seed: int = 0, confidence: float = 0.95
) -> Renyi:
    """Estimate D_order(first || second) from below by samples (n, d) and (m, d), at least 20 rows each.

    A logistic regression on the features, their squares and products learns on half of each sample to tell them
    apart; its log odds g are then put into order/(order-1) ln E e^((order-1) g) - ln E e^(order g), on the other half:
    at most the divergence for any g.  ``epsilon`` is a lower confidence bound of that, at least 0, with
    ``confidence`` in (0, 1); ``parameters["estimate"]`` is what the samples say without one.  Basis "lower": never a
    guarantee.  order_ > 1; seed >= 0 decides which rows train.  Raises InputError.
    *Source:* Birrell, Dupuis, Katsoulakis, Rey-Bellet and Wang 2021, Theorem 3.1; Release 2023, Section 8.
    *Assumes:* rows of each sample are independent.
    """
    alpha, miss = order(order_), 1 - probability("confidence", confidence)
    samples = [_sample("first", first), _sample("second", second)]
    if samples[0].shape[1] != samples[1].shape[1]:
        raise InputError(
            f"rows of {samples[0].shape[1]} and {samples[1].shape[1]} features: needs as many in both"
        )
    stream = np.random.default_rng(whole("seed", seed, 0))
    halves = [np.array_split(each[stream.permutation(len(each))], 2) for each in samples]
    scores, width = _log_ratios([half[0] for half in halves], [half[1] for half in halves])
    p, q = (np.clip(each, -width, width) for each in scores)
    estimate = _variational(float(np.mean(np.exp((alpha - 1) * p))), float(np.mean(np.exp(alpha * q))), alpha)
    low = _mean_bound(np.exp((alpha - 1) * p), _ends((alpha - 1) * width), miss / 2, "lower")
    high = _mean_bound(np.exp(alpha * q), _ends(alpha * width), miss / 2, "upper")
    value = max(0.0, _variational(low, high, alpha))
    why = "lower estimate of a discriminator: the divergence may be larger by any amount"
    source = "Birrell et al. 2021, Theorem 3.1"
    parameters = {"estimate": max(0.0, estimate), "confidence": 1 - miss}
    return Renyi(value, alpha, True, why, source, "lower", parameters)


def _sample(name: str, rows: npt.ArrayLike) -> Floats:
    table = np.asarray(rows, np.float64)
    if table.ndim != 2 or len(table) < 20 or not table.shape[1] or not bool(np.isfinite(table).all()):
        raise InputError(
            f"{name} of shape {table.shape}: needs at least 20 rows of finite numbers, (rows, features)"
        )
    return table


def _log_ratios(train: Sequence[Floats], test: Sequence[Floats]) -> tuple[list[Floats], float]:
    """Return the log odds of the first law on test rows of both, and how far they go on the rows that trained."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    square = PolynomialFeatures(2, include_bias=False) if train[0].shape[1] <= SQUARED else "passthrough"
    model = make_pipeline(StandardScaler(), square, StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(np.vstack(train), np.repeat([1, 0], [len(each) for each in train]))
    prior = math.log(
        len(train[0]) / len(train[1])
    )  # log odds of the sample's sizes, which are no part of the laws
    width = float(np.abs(model.decision_function(np.vstack(train)) - prior).max())
    return [model.decision_function(each) - prior for each in test], max(width, 1e-9)


def _ends(width: float) -> tuple[float, float]:
    return math.exp(-width), math.exp(width)


def _variational(first: float, second: float, alpha: float) -> float:
    return -math.inf if first <= 0 else alpha / (alpha - 1) * math.log(first) - math.log(second)


def _mean_bound(
    values: Floats, ends: tuple[float, float], error: float, side: Literal["lower", "upper"]
) -> float:
    """Return a confidence bound of the mean of numbers between two ends.

    *Source:* Maurer and Pontil 2009, Theorem 4 (empirical Bernstein).
    """
    n, room = len(values), ends[1] - ends[0]
    log = math.log(2 / error)
    width = math.sqrt(2 * float(values.var(ddof=1)) * log / n) + 7 * room * log / (3 * (n - 1))
    middle = float(values.mean())
    return max(ends[0], middle - width) if side == "lower" else min(ends[1], middle + width)


SAMPLE = 20_000
"""People of each label who are enough for the discriminator of ``of_features``."""

SQUARED = 60
"""Columns up to which a discriminator looks at squares and products, too."""

_NUMBERS = 8_000_000  # that it looks at of each label, at most


def of_features(
    x: npt.ArrayLike, y: npt.ArrayLike, order_: Any, *, seed: int = 0, confidence: float = 0.95
) -> Renyi:
    """Estimate from below by how much features tell two labels apart: the larger D_order of the two directions.

    ``x`` (n, d), ``y`` (n,) of 0 and 1, at least 20 rows of each, of which ``SAMPLE``, of wide tables fewer, are drawn
    by ``seed`` if there are more.  Otherwise as ``variational``, whose errors are shared by the directions.
    *Source:* Release 2023, Section 8.  *Assumes:* people are drawn independently.
    """
    table, labels = np.asarray(x), np.asarray(y)
    stream, columns = np.random.default_rng(whole("seed", seed, 0)), table.shape[1]
    looked_at = columns * (columns + 3) // 2 if columns <= SQUARED else columns
    most = min(SAMPLE, max(20, _NUMBERS // looked_at))
    sides = []
    for label in (1, 0):
        rows = np.flatnonzero(labels == label)
        sides.append(table[stream.choice(rows, most, replace=False) if len(rows) > most else rows])
    each = 1 - (1 - probability("confidence", confidence)) / 2
    ones, zeros = sides
    both = [variational(p, q, order_, seed=seed, confidence=each) for p, q in ((ones, zeros), (zeros, ones))]
    return max(both, key=lambda found: found.epsilon)


def to_epsilon(divergences: Renyi | Sequence[Renyi], delta: Any) -> Bound:
    """Return (epsilon, delta) from divergences of one or several orders: the least epsilon that one of them gives.

    D + ln(1 - 1/order) - (ln delta + ln order)/(order - 1), at least 0.  Both directions must be bounded: give the
    larger of the two divergences.  delta in (0, 1).  A basis of "lower" is refused.  Raises InputError.
    *Source:* Canonne, Kamath and Steinke 2020, Proposition 12; Bretagnolle and Huber 1979 where e^-D > 1 - delta^2.
    """
    given = [divergences] if isinstance(divergences, Renyi) else list(divergences)
    chance = probability("delta", delta)
    if not given:
        raise InputError("divergences is empty: needs the divergence of at least one order")
    for each in given:
        if each.basis == "lower":
            raise InputError(
                f"divergence of {each.source}: a lower bound of a divergence promises nothing; give an upper one"
            )
    bounds = [_to_epsilon(each, chance) for each in given if each.holds and math.isfinite(each.epsilon)]
    if not bounds:
        return fails(given[0].why or "the divergence is infinite", given[0].source, given[0].basis, chance)
    return min(bounds, key=lambda bound: bound.epsilon)


def _to_epsilon(divergence: Renyi, delta: float) -> Bound:
    alpha, value = order(divergence.order), real("divergence", divergence.epsilon, 0.0)
    source = f"{divergence.source}, order {alpha:.4g}, by Canonne, Kamath and Steinke 2020"
    epsilon = value + math.log1p(-1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)
    if -math.expm1(-value) < delta**2:  # then even the total variation is below delta
        epsilon = 0.0
    return Bound(
        max(0.0, epsilon), delta, True, "", source, "claimed" if divergence.basis == "claimed" else "upper"
    )
