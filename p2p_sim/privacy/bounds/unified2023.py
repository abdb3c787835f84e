"""A unified analysis of label inference attacks (2023): randomized response, label proportions, Laplace proportions.

The advantage is the accuracy of the best attack that sees the output, less that of the best guess from features alone.
eta is always the column of P(y = 1 | x).

*Source:* ``docs/laws.md``, "Unified 2023".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds._binomial import log_pmf
from p2p_sim.privacy.bounds.bound import Basis, Figure, Floats, chances, mean, real, whole
from p2p_sim.privacy.laws import poisson_binomial as poisson_binomial_laws

PAPER = "A unified analysis of label inference attacks, 2023"


def rr_advantage(eta: Any, epsilon: Any, weights: Any = None) -> Figure:
    """Return the exact advantage against binary randomized response, E[(min(eta, 1-eta) - pi)_+].

    eta (n,) in [0, 1] and its weights (default: equal); epsilon >= 0 in nats; pi = 1/(1 + e^epsilon).
    Raises InputError outside.
    *Source:* Theorem 3.7.  *Assumes:* the attacker knows eta.
    """
    column, flip = chances("eta", eta), float(expit(-real("epsilon", epsilon, 0.0)))
    value = mean(np.maximum(np.minimum(column, 1 - column) - flip, 0.0), weights)
    return _advantage(value, "Theorem 3.7", "exact")


def rr_attack(eta: Any, reported: Any, epsilon: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the best guess: 1 if eta > 1 - pi, 0 if eta < pi, otherwise the reported label; shape (n,).

    eta (n,) in [0, 1], reported (n,) of 0 and 1, epsilon >= 0 in nats.  Raises InputError outside.
    *Source:* Theorem 3.7.
    """
    column, flip = chances("eta", eta), float(expit(-real("epsilon", epsilon, 0.0)))
    bits = np.asarray(reported)
    if bits.shape != column.shape or not bool(((bits == 0) | (bits == 1)).all()):
        raise InputError(f"reported = {reported!r}: needs {len(column)} labels, each 0 or 1")
    return np.where(column > 1 - flip, True, np.where(column < flip, False, bits == 1))


def poisson_binomial(eta: Any) -> Floats:
    """Return Pr[Z = 0..k] for Z the number of ones among k independent labels, shape (k+1,).

    eta (k,) in [0, 1].  Raises InputError outside.
    *Source:* Section 3.1.
    """
    return np.asarray(poisson_binomial_laws.pmf(chances("eta", eta)[None])[0])


def llp_posterior(eta: Any, ones: Any) -> Floats:
    """Return P(y_i = 1 | x, the bag has ``ones`` ones) for each label of a bag, shape (k,).

    eta (k,) in [0, 1]; ones from the labels that are surely 1 to those that can be.  Raises InputError outside.
    *Source:* proof of Lemma A.1: eta_i Pr[Z without i = ones - 1] / Pr[Z = ones].
    """
    column, count = chances("eta", eta), whole("ones", ones, 0)
    sure, open_ = int((column == 1).sum()), (column > 0) & (column < 1)
    if not sure <= count <= sure + int(open_.sum()):
        needed = f"a number from {sure} to {sure + int(open_.sum())}"
        raise InputError(f"ones = {count}: needs {needed}, the others have probability 0")
    seen = np.where(np.arange(len(column) + 1) == count, 0.0, -np.inf)
    return _posterior(column, seen)


def _posterior(eta: Floats, log_weights: Floats) -> Floats:
    """Return P(y_i = 1 | what was seen of the bag), (k,); ``log_weights`` (k+1,): of that, given the number of ones."""
    logs = poisson_binomial_laws.bit_likelihoods(eta, np.array([len(eta)]), log_weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(eta) - np.log1p(-eta) + (logs[:, 1] - logs[:, 0])
    return np.where((eta == 0) | (eta == 1), eta, expit(odds))


def llp_advantage(eta: Any) -> Figure:
    """Return the exact advantage against the label proportion of one bag with these features.

    eta (k,) in [0, 1].  Raises InputError outside.  The expectation over bags is Theorem 3.3's.
    *Source:* Theorem 3.3.  *Assumes:* the attacker knows eta.
    """
    value = float(llp_gains(chances("eta", eta)[None]).mean())
    return _advantage(max(0.0, value), "Theorem 3.3, one bag", "exact")


def llp_gains(eta: Floats) -> Floats:
    """Return the same for each label of many bags of one size: eta (bags, k) in [0, 1], unchecked; result (bags, k).

    The best guess errs by the smaller of the two joint probabilities at every count.
    *Source:* Theorem 3.3.  *Assumes:* the attacker knows eta.
    """
    others = poisson_binomial_laws.leave_one_out(eta)
    with_one = eta[:, :, None] * np.pad(others, ((0, 0), (0, 0), (1, 0)))
    with_none = (1 - eta)[:, :, None] * np.pad(others, ((0, 0), (0, 0), (0, 1)))
    errors = np.minimum(with_one, with_none).sum(axis=2)
    return np.asarray(np.minimum(eta, 1 - eta) - errors, np.float64)


def theorem3_4_exact(positive: Any, bag_size: Any) -> Figure:
    """Return the exact advantage against label proportions when features say nothing.

    positive p in [0, 1], bag_size k >= 1.  Raises InputError outside.
    *Source:* Theorem 3.4: min(p, 1-p) - E min(mean, 1 - mean), k mean ~ Bin(k, p).
    """
    p, k = real("positive", positive, 0.0, 1.0), whole("bag_size", bag_size, 1, 10**7)
    if p in (0.0, 1.0):
        return _advantage(0.0, "Theorem 3.4, exact", "exact")
    ones = np.arange(k + 1, dtype=np.float64)
    errors = float(np.exp(log_pmf(ones, float(k), p)) @ np.minimum(ones, k - ones)) / k
    return _advantage(max(0.0, min(p, 1 - p) - errors), "Theorem 3.4, exact", "exact")


def theorem3_4(positive: Any, bag_size: Any) -> Figure:
    """Return the smaller of sqrt(p(1-p)/k) and Bernstein's e^(-k g^2/(2p(1-p) + 2g/3)), g = |p - 1/2|.

    Arguments as for ``theorem3_4_exact``, any k.
    *Source:* Theorem 3.4, the second constant from its proof.  *Assumes:* labels independent of features.
    """
    p, k = real("positive", positive, 0.0, 1.0), whole("bag_size", bag_size, 1)
    spread, gap = p * (1 - p), abs(p - 0.5)
    far = math.exp(-k * gap**2 / (2 * spread + 2 * gap / 3))
    return _advantage(min(math.sqrt(spread / k), far), "Theorem 3.4", "upper")


def theorem3_5(variance: Any, bag_size: Any) -> Figure:
    """Return sqrt(2 variance/k), a bound of the shape of Theorem 3.5 on the advantage against label proportions.

    variance E[eta(1-eta)] in [0, 1/4], bag_size k >= 1, of several sizes their mean.  Raises InputError outside.
    *Source:* Theorem 3.5 hides its constants; this one is proven in docs/laws.md, "Unified 2023".
    *Assumes:* labels independent of each other given features.
    """
    e, k = real("variance", variance, 0.0, 0.25), real("bag_size", bag_size, 1.0)
    return _advantage(math.sqrt(2 * e / k), "Theorem 3.5 with a constant", "upper")


def lemma_a1(variance: Any, positive: Any, bag_size: Any) -> Figure:
    """Return the bound of Lemma A.1 on the advantage against label proportions, with features.

    variance E[eta(1-eta)] in [0, 1/4], positive p = E eta in [0, 1], bag_size k + 1 >= 2.  Raises InputError.
    *Source:* Lemma A.1; its c_k is not the radius that Bernstein's inequality gives, so the proof has a gap.
    *Assumes:* examples drawn independently.
    """
    e, p = real("variance", variance, 0.0, 0.25), real("positive", positive, 0.0, 1.0)
    k = whole("bag_size", bag_size, 2) - 1
    log = math.log(8 * k)
    c = (log / 3 + math.sqrt(2 * log + 12 * k * p * (1 - p) * log) / 6) / math.sqrt(k)
    inside = (math.exp(-1.5) + math.pi / 4 + math.pi / math.e) * math.sqrt(e) / k**1.5
    return _advantage(k**0.25 * math.sqrt(2 * c * inside) + e / k, "Theorem 3.5 by Lemma A.1", "claimed")


def laplace_llp_printed(eta: Any, epsilon: Any, weights: Any = None) -> Figure:
    """Return 2(1 - e^-epsilon) E[eta(1-eta)], for Laplace(1/(k epsilon)) noise on a bag's proportion.

    eta (n,) in [0, 1] and its weights (default: equal), epsilon >= 0 in nats; any k.  Raises InputError outside.
    *Source:* Theorem 6.4, its first bound.  *Assumes:* examples drawn independently; the attacker knows eta.
    """
    column, epsilon = chances("eta", eta), real("epsilon", epsilon, 0.0)
    value = -2 * math.expm1(-epsilon) * mean(column * (1 - column), weights)
    return _advantage(value, "Theorem 6.4", "claimed")


def laplace_llp_sharper(eta: Any, epsilon: Any, weights: Any = None) -> Figure:
    """Return (1 - e^(-epsilon/2)) E min(eta, 1-eta): never above the printed bound; attained at k = 1, eta = 1/2.

    Arguments and trust as for ``laplace_llp_printed``.
    *Source:* Theorem 6.4, with the total variation of the noise under a shift by one label.
    """
    column, epsilon = chances("eta", eta), real("epsilon", epsilon, 0.0)
    value = -math.expm1(-epsilon / 2) * mean(np.minimum(column, 1 - column), weights)
    return _advantage(value, "Theorem 6.4 sharpened", "upper")


def laplace_llp_posterior(eta: Any, noisy_proportion: Any, epsilon: Any) -> Floats:
    """Return P(y_i = 1 | x, noisy proportion) for each label of a bag, shape (k,); the best attack guesses >= 1/2.

    eta (k,) in [0, 1], noisy_proportion any finite number, epsilon >= 0 in nats.  Raises InputError outside.
    *Source:* Theorem 6.3: leave-one-out laws weighted by e^(-k epsilon |proportion - b/k|).
    """
    column, epsilon = chances("eta", eta), real("epsilon", epsilon, 0.0)
    noisy, k = real("noisy_proportion", noisy_proportion, -math.inf), len(column)
    return _posterior(column, -epsilon * np.abs(k * noisy - np.arange(k + 1)))


def _advantage(value: float, theorem: str, basis: Basis) -> Figure:
    return Figure(value, "attack advantage", True, "", f"{PAPER}, {theorem}", basis)
