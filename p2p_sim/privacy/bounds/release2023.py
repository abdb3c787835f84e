"""Label differential privacy and private training data release (Busa-Fekete et al. 2023): conditional features.

Features are neither public nor secret but drawn given the label; the divergences compare the outputs for two labels.
Mechanism 1 randomizes the label by a model, 2 the label and the features, 3 the label with dummy features.

*Source:* ``docs/laws.md``, "Release 2023".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds.bound import (
    Basis,
    Bound,
    Figure,
    Floats,
    Renyi,
    fails,
    laws,
    order,
    real,
    whole,
)

PAPER = "Label differential privacy and private training data release, 2023"
UTILITY = "attack utility (1 - expected loss)"


def theorem5_2_printed(
    order_: Any, epsilon: Any, delta: Any, most_common: Any, labels: Any, least_loss: Any = 1.0
) -> Figure:
    """Return 1 - (e^-epsilon delta^(1/(order-1)) (1-p*) - (k-1) delta) l*, clipped to [0, 1].

    order_ > 1, epsilon >= 0 (nats) the Renyi divergence, delta in (0, 1) free to choose, most_common p* in
    [1/k, 1], labels k >= 2, least_loss l* in [0, 1] when the guess is wrong.  Raises InputError outside.
    *Source:* Theorem 5.2.  *Assumes:* independent users; features drawn given the label; loss in [0, 1].
    """
    alpha, epsilon, delta = order(order_), real("epsilon", epsilon, 0.0), real("delta", delta, 0.0, 1.0)
    k, loss = whole("labels", labels, 2), real("least_loss", least_loss, 0.0, 1.0)
    p = real("most_common", most_common, 1 / k, 1.0)
    if delta in (0.0, 1.0):
        raise InputError(f"delta = {delta!r}: needs a number above 0 and below 1")
    share = math.exp(-epsilon + math.log(delta) / (alpha - 1)) * (1 - p) - (k - 1) * delta
    return _utility(1 - share * loss, "Theorem 5.2", "claimed")


def theorem5_2_sharper(order_: Any, epsilon: Any, most_common: Any, least_loss: Any = 1.0) -> Figure:
    """Return 1 - e^-epsilon ((1-p*)/order)^(1/(order-1)) (1-p*) (1-1/order) l*: no delta, no k; clipped to [0, 1].

    Arguments and trust as for ``theorem5_2_printed``.
    *Source:* Theorem 5.2, its delta chosen best and paid once instead of k - 1 times.
    """
    alpha, epsilon, p, loss = _attack(order_, epsilon, most_common, least_loss)
    base = ((1 - p) / alpha) ** (1 / (alpha - 1))
    value = 1 - math.exp(-epsilon) * base * (1 - p) * (1 - 1 / alpha) * loss
    return _utility(value, "Theorem 5.2 sharpened", "upper")


def theorem5_2_sharpest(order_: Any, epsilon: Any, most_common: Any, least_loss: Any = 1.0) -> Figure:
    """Return 1 - e^-epsilon (1-p*)^(order/(order-1)) l*: never above ``theorem5_2_sharper``; clipped to [0, 1].

    Arguments and trust as for ``theorem5_2_printed``.
    *Source:* Theorem 5.2 by Q(S) >= e^-epsilon P(S)^(order/(order-1)) (Renyi probability preservation) for the
    event S of a wrong guess, and the convexity of that power in P(S).
    """
    alpha, epsilon, p, loss = _attack(order_, epsilon, most_common, least_loss)
    value = 1 - math.exp(-epsilon) * (1 - p) ** (alpha / (alpha - 1)) * loss
    return _utility(value, "Theorem 5.2 by probability preservation", "upper")


def _attack(
    order_: Any, epsilon: Any, most_common: Any, least_loss: Any
) -> tuple[float, float, float, float]:
    p, loss = real("most_common", most_common, 0.0, 1.0), real("least_loss", least_loss, 0.0, 1.0)
    if p == 0:
        raise InputError("most_common = 0: needs a number above 0, the share of the most common label")
    return order(order_), real("epsilon", epsilon, 0.0), p, loss


def _utility(value: float, theorem: str, basis: Basis) -> Figure:
    why = "1: says nothing" if value >= 1 else ""
    return Figure(min(1.0, max(0.0, value)), UTILITY, True, why, f"{PAPER}, {theorem}", basis)


def theorem7_1_printed(order_: Any, lam: Any, labels: Any, divergence: Any) -> Renyi:
    """Return 2 ln(1 + (1-lam)k/lam) + divergence for Mechanism 2: true, though its proof is not.

    order_ > 1, lam in [0, 1] the share drawn anew, labels k >= 2, divergence >= 0 the largest D_order(P_{X|y} ||
    synthetic P_{X|y}), infinity included.  Raises InputError outside.  Condition: lam > 0.
    *Source:* Theorem 7.1.  *Assumes:* features drawn given the label; synthetic features made without the label.
    """
    alpha, lam, k, gap = _double(order_, lam, labels, divergence)
    source = f"{PAPER}, Theorem 7.1"
    if lam == 0:
        return _nothing_hidden(alpha, source, "claimed")
    return Renyi(2 * _log_ratio(lam, k) + gap, alpha, True, "", source, "claimed")


def theorem7_1_sharper(order_: Any, lam: Any, labels: Any, divergence: Any) -> Renyi:
    """Return R + ln(1+c) + ln(lam + (1-lam) e^((order-1) divergence))/(order-1) for Mechanism 2, c = (1-lam)k/lam.

    R is the divergence of its label (``label_divergence``).  Arguments and trust as for ``theorem7_1_printed``.
    *Source:* Theorem 7.1, proved by the subadditivity of (x, z) -> x^order z^(1-order).
    """
    alpha, lam, k, gap = _double(order_, lam, labels, divergence)
    source = f"{PAPER}, Theorem 7.1 sharpened"
    if lam == 0:
        return _nothing_hidden(alpha, source, "upper")
    value = label_divergence(alpha, lam, k).epsilon + _log_ratio(lam, k) + _mixed(lam, gap, alpha - 1)
    return Renyi(max(0.0, value), alpha, True, "", source, "upper")


def theorem7_2(order_: Any, lam: Any, labels: Any) -> Renyi:
    """Return what Mechanism 3 costs at least: order/(order-1) ln(1 + (1-lam)k/lam) - ln(k/lam)/(order-1), from 0 up.

    order_ > 1, lam in [0, 1], labels k >= 2.  Raises InputError outside.  Condition: lam > 0.
    *Source:* Theorem 7.2; ``label_divergence`` is the exact value.  *Assumes:* nobody: a local mechanism.
    """
    alpha, lam, k = order(order_), real("lam", lam, 0.0, 1.0), whole("labels", labels, 2)
    source = f"{PAPER}, Theorem 7.2"
    if lam == 0:
        return _nothing_hidden(alpha, source, "lower")
    value = (alpha * _log_ratio(lam, k) - math.log(k) + math.log(lam)) / (alpha - 1)
    return Renyi(max(0.0, value), alpha, True, "" if value > 0 else "0: says nothing", source, "lower")


def label_divergence(order_: Any, lam: Any, labels: Any) -> Renyi:
    """Return the exact divergence of uniform randomized response on k labels, which is that of Mechanism 3.

    order_ > 1, lam in [0, 1] the share of uniform labels, labels k >= 2.  Raises InputError outside.
    *Source:* ln{(lam/k) [(1+c)^order + (1+c)^(1-order) + k - 2]}/(order-1), c = (1-lam)k/lam.
    *Assumes:* nobody: a local mechanism.
    """
    alpha, lam, k = order(order_), real("lam", lam, 0.0, 1.0), whole("labels", labels, 2)
    source = f"{PAPER}, Mechanism 3, exact"
    if lam == 0:
        return _nothing_hidden(alpha, source, "exact")
    ratio = _log_ratio(lam, k)
    lie = lam / k
    masses = np.array([1 - (k - 1) * lie, lie, (k - 2) * lie])
    value = _mean_power(masses, np.array([ratio, -ratio, 0.0]), alpha - 1)
    return Renyi(value, alpha, True, "", source, "exact")


def approximate(divergence: Renyi, delta: Any) -> Bound:
    """Return (epsilon, delta)-privacy from a bound of a divergence: epsilon + ln(1/delta)/(order - 1).

    divergence of basis "exact", "upper" or "claimed", in both directions; delta in (0, 1].  Raises InputError outside.
    *Source:* Mironov 2017, Proposition 3, as quoted after Definition 4.1.
    """
    if divergence.basis == "lower":
        raise InputError(
            f"divergence of {divergence.source}: a lower bound of a divergence promises nothing; give an upper one"
        )
    chance = real("delta", delta, 0.0, 1.0)
    source = f"{divergence.source}, order {divergence.order:.4g}"
    if not divergence.holds or math.isinf(divergence.epsilon):
        return fails(divergence.why or "the divergence is infinite", source, divergence.basis, chance)
    if chance == 0:
        return fails(
            "delta = 0: a divergence of finite order needs a delta above 0", source, divergence.basis, 0.0
        )
    value = divergence.epsilon - math.log(chance) / (divergence.order - 1)
    return Bound(value, chance, True, "", source, divergence.basis)


def _double(order_: Any, lam: Any, labels: Any, divergence: Any) -> tuple[float, float, int, float]:
    gap = real("divergence", divergence, 0.0, infinite=True)
    return order(order_), real("lam", lam, 0.0, 1.0), whole("labels", labels, 2), gap


def _mixed(lam: float, gap: float, beta: float) -> float:
    """Return ln(lam + (1 - lam) e^(beta gap)) / beta, lam > 0, without overflow or cancellation."""
    if lam == 1:
        return 0.0
    if beta * gap < 1:
        return math.log1p((1 - lam) * math.expm1(beta * gap)) / beta
    return float(np.logaddexp(math.log(lam), math.log1p(-lam) + beta * gap)) / beta


def _log_ratio(lam: float, k: int) -> float:
    """Return ln(1 + (1-lam)k/lam), lam > 0, without overflow."""
    if lam == 1:
        return 0.0
    return float(np.logaddexp(0.0, math.log1p(-lam) + math.log(k) - math.log(lam)))


def _nothing_hidden(alpha: float, source: str, basis: Basis) -> Renyi:
    return Renyi(math.inf, alpha, False, "lam = 0: every label is released as it is", source, basis)


def renyi_divergence(first: Any, second: Any, order_: Any) -> float:
    """Return D_order(first || second) in nats of two laws on one finite space; infinite off the second's support.

    first, second (m,), each summing to 1; order_ > 1.  Raises InputError outside.
    *Source:* Definition 3.1.
    """
    alpha, (p, q) = order(order_), laws("first, second", [np.ravel(first), np.ravel(second)])
    support = p > 0
    if bool((q[support] == 0).any()):
        return math.inf
    losses = np.log(p[support]) - np.log(q[support])
    return _mean_power(p[support], losses, alpha - 1, float(q.sum() - p.sum()))


def _mean_power(p: Floats, losses: Floats, beta: float, missing: float = 0.0) -> float:
    """Return ln(sum p e^(beta losses)) / beta, beta > 0, at least 0; ``p`` and q = p e^-losses sum to 1.

    Near beta = 0 the sum is 1 and a little: its terms are then added as p (e^(beta L) - 1) + beta (q - p), none of
    which is below 0, so that no digits are lost.  ``missing``: of the sum of q - p, what rounding leaves.
    """
    if beta * float(np.abs(losses).max()) > 1:
        return max(0.0, float(logsumexp(beta * losses, b=p)) / beta)
    q = p * np.exp(-losses)
    small = max(1.0, beta) * np.abs(losses) < 1e-4  # there the two cancel to second order
    series = beta * losses**2 * ((1 + beta) / 2 + losses * ((beta**2 - 1) / 6 + losses * (beta**3 + 1) / 24))
    gains = np.where(small, p * series, p * np.expm1(beta * losses) + beta * (q - p))
    off_support = beta * max(0.0, 1 + missing - float(q.sum()))
    return math.log1p(max(0.0, float(gains.sum()) + off_support)) / beta


def mechanism1_law(features: Any, synthetic_labels: Any, lam: Any) -> Floats:
    """Return the law (k, m, k) of Mechanism 1's (features, label) for each true label.

    features (k, m), rows P_{X|y}; synthetic_labels (m, k), rows of the model's label given x; lam in [0, 1].
    Raises InputError outside.
    *Source:* Mechanism 1.
    """
    rows, model, lam = laws("features", features), laws("synthetic_labels", synthetic_labels), _lam(lam)
    if model.shape != rows.shape[::-1]:
        raise InputError(
            f"synthetic_labels of shape {model.shape}: needs {rows.shape[::-1]}, features turned"
        )
    response = (1 - lam) * np.eye(len(rows))[:, None, :] + lam * model[None, :, :]
    return np.asarray(rows[:, :, None] * response, np.float64)


def mechanism2_law(features: Any, synthetic_features: Any, lam: Any) -> Floats:
    """Return the law (k, m, k) of Mechanism 2's (features, label) for each true label.

    features and synthetic_features (k, m), rows P_{X|y} and what is drawn instead; lam in [0, 1].
    Raises InputError outside.
    *Source:* Mechanism 2.
    """
    rows, model, lam = laws("features", features), laws("synthetic_features", synthetic_features), _lam(lam)
    if model.shape != rows.shape:
        raise InputError(f"synthetic_features of shape {model.shape}: needs {rows.shape}, as features")
    shown = (1 - lam) * rows + lam * model.mean(axis=0)
    return np.asarray(shown[:, :, None] * _uniform_response(len(rows), lam)[:, None, :], np.float64)


def mechanism3_law(labels: Any, lam: Any) -> Floats:
    """Return the law (k, 1, k) of Mechanism 3's (dummy, label) for each true label.

    labels k >= 2, lam in [0, 1].  Raises InputError outside.
    *Source:* Mechanism 3.
    """
    return _uniform_response(whole("labels", labels, 2), _lam(lam))[:, None, :]


def exact_divergence(law: npt.ArrayLike, order_: Any) -> Renyi:
    """Return the largest divergence between the outputs for two labels, of a law (k, ...) by true label.

    law as ``mechanism1_law``, ``mechanism2_law`` and ``mechanism3_law`` return it; order_ > 1.  Raises InputError.
    *Source:* Definition 4.3, by enumeration.  *Assumes:* features drawn given the label.
    """
    tables = np.asarray(law, np.float64)
    rows = laws("law", tables.reshape(len(tables), -1) if tables.ndim else tables)
    alpha, pairs = order(order_), [(p, q) for p in rows for q in rows if p is not q]
    value = max((renyi_divergence(p, q, alpha) for p, q in pairs), default=0.0)
    why = "infinite: an output that one label alone can have" if math.isinf(value) else ""
    return Renyi(value, alpha, True, why, f"{PAPER}, Definition 4.3, exact", "exact")


def _uniform_response(k: int, lam: float) -> Floats:
    return (1 - lam) * np.eye(k) + lam / k


def _lam(lam: Any) -> float:
    return real("lam", lam, 0.0, 1.0)
