"""Label differential privacy via clustering (Esfandiari, Mirrokni, Syed, Vassilvitskii 2022): all of its theorems.

As printed Theorem 1 is wrong by a factor 2 in its first term, so it and Corollary 2 exist twice.  Theorems 2 and 4
leave their constants open: what is here is their shape.

*Source:* ``docs/laws.md``, "Clustering 2022".
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from numbers import Rational
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds.bound import Basis, Bound, Figure, fails, one_of, real, whole

PAPER = "Label differential privacy via clustering, 2022"
LEAST = sys.float_info.min
PROMISE = "precision times recall of learning the labels of a cluster"


def theorem1_printed(sigma: Any, lam: Any, tau: Any) -> Bound:
    """Return epsilon of the centralized mechanism as printed, 1/sigma + ln(1 + (1-lam)/(lam tau)): too small.

    sigma >= 0 (infinity included) is the Laplace scale times the cluster size, lam in [0, 1] the share of labels
    drawn anew, tau in [0, 1/K] the floor of a drawn label's probability.  Raises InputError outside.
    *Source:* Theorem 1.  *Assumes:* a trusted curator.  Its proof counts one of the two counts that a replaced
    label changes; see ``theorem1_corrected``.
    """
    return _theorem1(1.0, sigma, lam, tau, f"{PAPER}, Theorem 1 as printed", "claimed")


def theorem1_corrected(sigma: Any, lam: Any, tau: Any) -> Bound:
    """Return epsilon of the centralized mechanism, 2/sigma + ln(1 + (1-lam)/(lam tau)); arguments as printed's.

    *Source:* Theorem 1 with the L1 sensitivity of a histogram under replacement, which is 2.
    *Assumes:* a trusted curator.
    """
    return _theorem1(2.0, sigma, lam, tau, f"{PAPER}, Theorem 1 corrected", "upper")


def _theorem1(changed: float, sigma: Any, lam: Any, tau: Any, source: str, basis: Basis) -> Bound:
    sigma = real("sigma", sigma, 0.0, infinite=True)
    share = real("lam", lam, 0.0, 1.0)
    kept = 1 - Fraction(
        lam if isinstance(lam, Rational) else share
    )  # a fraction may be 1 as a float, and not be it
    tau = real("tau", tau, 0.0, 0.5)
    if sigma == 0:
        return fails(
            "sigma = 0: the label counts of a cluster are released without noise", source, basis, 0.0
        )
    if share == 0:
        return fails("lam = 0: every label is released as it is", source, basis, 0.0)
    if kept and tau == 0:
        return fails("tau = 0 with lam < 1: a drawn label need not hide a true one", source, basis, 0.0)
    unflipped = _softplus(_log(kept) - math.log(share) - math.log(tau)) if kept else 0.0
    return Bound(changed / sigma + unflipped, 0.0, True, "", source, basis)


def theorem2_shape(
    labels: Any, dimension: Any, gamma: Any, users: Any, phi: Any, cluster_size: Any, sigma: Any, lam: Any,
    beta: Any, tau: Any,
) -> Figure:  # fmt: skip
    """Return the excess risk of the centralized mechanism without its unknown constant: for its shape only.

    labels K >= 2, dimension >= 0, gamma in (0, 1], users and cluster_size >= 1, phi in [0, 2], sigma >= 0,
    lam, beta in [0, 1], tau in [0, 1/K].  Raises InputError outside.
    *Source:* Theorem 2.  *Assumes:* data drawn independently; loss in [0, 1].
    """
    source = f"{PAPER}, Theorem 2"
    k, n, s = whole("labels", labels, 2), whole("users", users, 1), whole("cluster_size", cluster_size, 1)
    dim, gamma, phi = real("dimension", dimension, 0.0), _share("gamma", gamma), real("phi", phi, 0.0, 2.0)
    sigma, tau = real("sigma", sigma, 0.0), real("tau", tau, 0.0, 1 / k)
    lam, beta = real("lam", lam, 0.0, 1.0), real("beta", beta, 0.0, 1.0)
    name = "excess risk over an unknown constant"
    if beta == 1:
        why = "beta = 1: the correction divides by 1 - beta"
        return Figure(math.nan, name, False, why, source, "claimed")
    learned = k / (1 - beta) * math.sqrt(dim * -math.log(gamma) / n)
    bias = k * abs(beta - lam) / (1 - beta) * (phi + k * sigma / s + k * tau)
    return Figure(learned + bias, name, True, "its constant is unknown: a shape", source, "claimed")


def corollary1(epsilon: Any, labels: Any) -> Bound:
    """Return the bound and the parameters of uniform randomized response: tau = 1/K, beta = lam, sigma infinite.

    epsilon > 0 in nats, labels K >= 2.  Raises InputError outside.
    *Source:* Corollary 1; also direct, so proven.  *Assumes:* nobody: each label is randomized on its own.
    """
    epsilon, k, source = real("epsilon", epsilon, 0.0), whole("labels", labels, 2), f"{PAPER}, Corollary 1"
    if epsilon == 0:
        why = "epsilon = 0: lam = 1 and the correction divides by 1 - lam; needs epsilon > 0"
        return fails(why, source, "upper", 0.0)
    lam = math.exp(math.log(k) - epsilon - math.log1p((k - 1) * math.exp(-epsilon)))
    if lam < LEAST:
        why = f"epsilon = {epsilon:g}: lam is below {LEAST:.3g}, the least float of full precision"
        return fails(why, source, "upper", 0.0)
    return Bound(epsilon, 0.0, True, "", source, "upper", _settings(1 / k, lam, lam, math.inf))


def corollary2_printed(epsilon: Any, phi: Any, labels: Any) -> Bound:
    """Return cluster-based randomized response as printed: tau = phi, sigma = 1/epsilon, in total 2 epsilon.

    epsilon > 0 in nats, phi in [0, 2] the heterogeneity (twice the total variation), labels K >= 2.  Raises
    InputError outside.  Condition: 0 < phi <= 1/K.
    *Source:* Corollary 2, its constant by the printed Theorem 1; it is wrong, see ``corollary2_corrected``.
    *Assumes:* a trusted curator; phi public, or its estimate charged for.
    """
    k, phi = whole("labels", labels, 2), real("phi", phi, 0.0, 2.0)
    source = f"{PAPER}, Corollary 2 as printed"
    if phi > 1 / k:
        return fails(
            f"phi = {phi:g} above 1/K = {1 / k:g}: tau = phi must be at most 1/K", source, "claimed", 0.0
        )
    return _corollary2(1.0, real("epsilon", epsilon, 0.0), None, phi, k, source, "claimed")


def corollary2_corrected(epsilon: Any, phi: Any, labels: Any) -> Bound:
    """Return the same mechanism by the corrected Theorem 1: in total 3 epsilon; tau = min(phi, 1/K).

    Arguments and trust as for ``corollary2_printed``; phi above 1/K takes tau = 1/K and the lam that belongs to it.
    *Source:* Corollary 2 with Theorem 1 corrected.
    """
    k, phi = whole("labels", labels, 2), real("phi", phi, 0.0, 2.0)
    source = f"{PAPER}, Corollary 2 corrected"
    return _corollary2(2.0, real("epsilon", epsilon, 0.0), None, phi, k, source, "upper")


def corollary2_split(noise_epsilon: Any, label_epsilon: Any, phi: Any, labels: Any) -> Bound:
    """Return cluster-based randomized response with its budget split: sigma = 2/noise_epsilon, the sum in all.

    noise_epsilon and label_epsilon > 0 in nats; the rest as for ``corollary2_corrected``.
    *Source:* Corollary 2 with Theorem 1 corrected.  *Assumes:* a trusted curator; phi public.
    """
    k, phi = whole("labels", labels, 2), real("phi", phi, 0.0, 2.0)
    noise, label = real("noise_epsilon", noise_epsilon, 0.0), real("label_epsilon", label_epsilon, 0.0)
    return _corollary2(2.0, label, noise, phi, k, f"{PAPER}, Corollary 2 corrected, split", "upper")


def _corollary2(
    changed: float, label: float, noise: float | None, phi: float, k: int, source: str, basis: Basis
) -> Bound:
    tau = min(phi, 1 / k)
    if label == 0 or noise == 0:
        return fails("epsilon = 0: needs epsilon > 0 for the noise and for the labels", source, basis, 0.0)
    if tau == 0:
        return fails("phi = 0: lam = 1, outside [0, 1); needs phi > 0", source, basis, 0.0)
    spread = math.log(tau) + label + math.log1p(-math.exp(-label))  # ln of tau (e^epsilon - 1)
    lam = math.exp(-_softplus(spread))
    if lam < LEAST:
        why = f"epsilon = {label:g}: lam is below {LEAST:.3g}, the least float of full precision"
        return fails(why, source, basis, 0.0)
    sigma = 1 / label if noise is None else 2 / noise
    total = label + (changed * label if noise is None else noise)
    return Bound(total, 0.0, True, "", source, basis, _settings(tau, 0.0, lam, sigma))


def theorem3(cluster_size: Any, theta: Any) -> Bound:
    """Return what the peer-to-peer mechanism promises the learner's view, and the alpha it asks of users.

    cluster_size s >= 1 (the smallest cluster), theta in [0, 1].  Raises InputError outside.  Condition:
    alpha = 4 sqrt(2) ln s / sqrt(theta s) <= 1/2, with s >= 2 and theta > 0.
    *Source:* Theorem 3, the constants of its proof (Eq. 32 misprints its second term: s ln s under the root).
    *Assumes:* users follow the protocol; for the learner alone.
    """
    s, theta = whole("cluster_size", cluster_size, 1), real("theta", theta, 0.0, 1.0)
    source = f"{PAPER}, Theorem 3"
    if s < 2 or theta == 0:
        reason = f"cluster_size = {s}: needs at least 2" if s < 2 else "theta = 0: alpha divides by it"
        return fails(reason, source, "claimed")
    alpha = 4 * math.sqrt(2) * math.log(s) / math.sqrt(theta * s)
    if alpha > 0.5:
        why = f"alpha = 4 sqrt(2) ln s / sqrt(theta s) = {alpha:.6g} at s = {s}, theta = {theta:g}; needs <= 1/2"
        return fails(why, source, "claimed", alpha_asked=alpha)
    second = 3 * theta**1.5 / (math.e * math.sqrt(s) * math.log(s))
    third = 2**0.75 * 3 * theta**0.75 / s**0.25
    return Bound(theta + second + third, float(s) ** -2, True, "", source, "claimed", {"alpha": alpha})


def lemma9(cluster_size: Any, alpha: Any, theta: Any, delta: Any = None, xi: Any = None) -> Bound:
    """Return the learner's (epsilon, delta) of the peer-to-peer mechanism at a given alpha; give delta or xi.

    cluster_size s >= 1, alpha in [0, 1/2], theta in [0, 1], delta >= 0 (at 1 and above epsilon is 0), xi >= 0.
    Raises InputError outside.  Conditions: s >= 2/alpha and xi <= 3 alpha sqrt(theta s (1 - alpha)).
    *Source:* Lemma 9, whose proof treats the number of reports and the noisy fraction as fixed.
    *Assumes:* users follow the protocol; for the learner alone.
    """
    s, source = whole("cluster_size", cluster_size, 1), f"{PAPER}, Lemma 9"
    alpha, theta = real("alpha", alpha, 0.0, 0.5), real("theta", theta, 0.0, 1.0)
    target = 1.0 if one_of(delta=delta, xi=xi) == "xi" else real("delta", delta, 0.0)
    if xi is None and target >= 1:
        return Bound(0.0, target, True, "delta of 1 or more asks for nothing", source, "upper")
    if s * alpha < 2:
        return fails(f"s alpha = {s * alpha:g}: needs s >= 2 / alpha", source, "claimed", target)
    scale = 4 * (alpha + 1 / s) * (1 - alpha) / alpha
    if xi is None:
        xi = math.sqrt(scale * -math.log(target)) if target else math.inf
    else:
        xi = real("xi", xi, 0.0)
        target = math.exp(-(xi**2) / scale)
    limit = 3 * alpha * math.sqrt(theta * s * (1 - alpha))
    if xi > limit:
        why = f"xi = {xi:.6g} above 3 alpha sqrt(theta s (1 - alpha)) = {limit:.6g}"
        return fails(why, source, "claimed", target)
    first = theta * math.log(math.e + 3 / (s * alpha))
    second = math.sqrt(theta) * xi * math.log1p(3 / math.sqrt(s * alpha))
    return Bound(first + second, target, True, "", source, "claimed", {"xi": xi})


def theorem4_shape(dimension: Any, gamma: Any, theta: Any, users: Any, phi: Any, alpha: Any) -> Figure:
    """Return sqrt(dim ln(1/gamma) / (theta n)) + phi + alpha: the excess risk without its unknown constant.

    dimension >= 0, gamma and theta in (0, 1], users n >= 1, phi in [0, 2], alpha in [0, 1].  Raises InputError.
    *Source:* Theorem 4.  *Assumes:* data drawn independently.
    """
    dim, gamma, theta = real("dimension", dimension, 0.0), _share("gamma", gamma), _share("theta", theta)
    n, phi, alpha = whole("users", users, 1), real("phi", phi, 0.0, 2.0), real("alpha", alpha, 0.0, 1.0)
    value = math.sqrt(dim * -math.log(gamma) / (theta * n)) + phi + alpha
    name, why = "excess risk over an unknown constant", "its constant is unknown: a shape"
    return Figure(value, name, True, why, f"{PAPER}, Theorem 4", "claimed")


def theorem5_printed(cluster_size: Any, labels: Any, epsilon: Any) -> Figure:
    """Return the bound on precision times recall of learning which labels a cluster has: s e^epsilon / (K - s).

    cluster_size s >= 1, labels K >= 2, epsilon >= 0 in nats.  Raises InputError outside.  Condition: s < K.
    *Source:* Theorem 5, the bound in its proof.  *Assumes:* a curator with pure epsilon-label-DP; each label
    occurs once in a cluster.
    """
    s, k, epsilon = _association(cluster_size, labels, epsilon)
    source = f"{PAPER}, Theorem 5"
    if s >= k:
        return Figure(math.nan, PROMISE, False, f"s = {s}, K = {k}: needs s < K", source, "claimed")
    power = math.log(s) + epsilon - math.log(k - s)
    value = math.exp(power) if power < 709 else math.inf
    return Figure(value, PROMISE, True, "above 1: says nothing" if value > 1 else "", source, "claimed")


def theorem5_sharper(cluster_size: Any, labels: Any, epsilon: Any) -> Figure:
    """Return the bound on precision alone, averaged over random data: s e^epsilon / (s e^epsilon + K - s).

    Arguments as for ``theorem5_printed``; s up to K.  k-ary randomized response attains it at s = 1.
    *Source:* Theorem 5, sharpened: a label of the cluster is reported at most e^epsilon times as often as another.
    *Assumes:* as for ``theorem5_printed``; the labels of a cluster are a uniform set of s.
    """
    s, k, epsilon = _association(cluster_size, labels, epsilon)
    source, name = f"{PAPER}, Theorem 5 sharpened", "precision of learning the labels of a cluster"
    if s > k:
        return Figure(math.nan, name, False, f"s = {s}, K = {k}: needs s <= K", source, "upper")
    value = 1 / (1 + (k - s) / s * math.exp(-epsilon))
    return Figure(value, name, True, "", source, "upper")


def _association(cluster_size: Any, labels: Any, epsilon: Any) -> tuple[int, int, float]:
    s, k = whole("cluster_size", cluster_size, 1), whole("labels", labels, 2)
    return s, k, real("epsilon", epsilon, 0.0)


def _settings(tau: float, beta: float, lam: float, sigma: float) -> dict[str, float]:
    return {"tau": tau, "beta": beta, "lam": lam, "sigma": sigma}


def _share(name: str, value: Any) -> float:
    share = real(name, value, 0.0, 1.0)
    if share == 0:
        raise InputError(f"{name} = {value!r}: needs a number above 0, up to 1")
    return share


def _log(chance: Fraction) -> float:
    """Return the logarithm of a probability above 0, which may be below the least float."""
    if chance < LEAST:
        return math.log(chance.numerator) - math.log(chance.denominator)
    return math.log1p(-float(1 - chance)) if chance >= 0.5 else math.log(chance)


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
