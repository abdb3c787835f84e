"""Label differential privacy and private training data release, 2023: what is printed, and what a small case gives."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from p2p_sim.errata.erratum import Erratum, Numbers
from p2p_sim.leakage import instance_loss
from p2p_sim.privacy.bounds import release2023 as bounds
from p2p_sim.privacy.bounds.bound import Floats

PAPER = "Release 2023"


def static_features() -> Numbers:
    """Return epsilon of randomized response of two labels at lambda = 0.01: printed in Section 8, and exact."""
    lie = Fraction(1, 100) / 2
    return Numbers(5.19, math.log((1 - lie) / lie), math.log(199))


def equation2() -> Numbers:
    """Return nu(1, 0, x) at pi = 0.01 and eta = p₊ = 0.3: the printed denominator has P(Ỹ = y | 1 - y)."""
    flip = 0.01
    lie, printed = flip, flip  # P(Ỹ = 0 | Y = 1), and P(Ỹ = 1 | Y = 0)
    exact = float(instance_loss.nu([0.3], 0.3, flip, 1, 0)[0])
    return Numbers(math.log(lie / printed), exact, math.log(lie / (1 - lie)))


def lemma_d1() -> Numbers:
    """Return the mean loss at eta = 0.3, p₊ = 0.256, pi = 0.01: by the printed terms, by right ones, and here."""
    eta, prior, flip = 0.3, 0.256, 0.01
    printed = _mean_loss(eta, flip, (1 - prior) / prior)
    return Numbers(
        printed,
        _mean_loss(eta, flip, prior / (1 - prior)),
        float(instance_loss.nu_bar([eta], prior, flip)[0]),
    )


def _mean_loss(eta: float, flip: float, odds: float) -> float:
    """Return the sum over label and report; ``odds``: by which the ratios of label 0 are multiplied."""
    total = 0.0
    for chance, prior in ((1 - eta, odds), (eta, 1 / odds)):
        for reported in (1 - flip, flip):
            total += chance * reported * math.log(chance / (1 - chance) * reported / (1 - reported) * prior)
    return total


def theorem6_2() -> Numbers:
    """Return D_2 of (3/4, 1/4) from (1/4, 3/4) by the proof's (1 - alpha) D = ln E, by the definition, and here."""
    first, second, order = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)), 2
    moment = math.log(sum(p**order / q ** (order - 1) for p, q in zip(first, second, strict=True)))
    here = bounds.renyi_divergence([0.75, 0.25], [0.25, 0.75], order)
    return Numbers(moment / (1 - order), moment / (order - 1), here)


def symmetry() -> Numbers:
    """Return H(0.1) at p₊ = 0.256, pi = 0.01: as H(0.9), to which symmetry around 1/2 makes it equal, and as it is."""
    left, right = instance_loss.nu_bar([0.1, 0.9], 0.256, 0.01)
    return Numbers(float(right), float(left))


def equation14_share() -> Numbers:
    """Return the estimator of J(6) for 1,000 people whose eta is 0.01, p₊ = 1/2, pi = 0.01, without a radius."""
    eta = np.full(1000, 0.01)
    low, _ = instance_loss.thresholds(6.0, 0.5, 0.01)
    share = float((instance_loss.nu_bar(eta, 0.5, 0.01) > 6).mean())
    return Numbers(float((eta <= low).sum()), share, float((eta <= low).mean()))


def equation14_branch() -> Numbers:
    """Return the estimator of J(6) for people whose eta is 1/2, p₊ = 1/2, pi = 0.01, with 1/n and without a radius."""
    eta = np.full(1000, 0.5)
    low, high = instance_loss.thresholds(6.0, 0.5, 0.01)
    share = float((instance_loss.nu_bar(eta, 0.5, 0.01) > 6).mean())
    printed, corrected = (float(((eta <= low) | (eta >= root)).mean()) for root in (low, high))
    return Numbers(printed, share, corrected)


def theorem7_1_proof() -> Numbers:
    """Return ln E[(1_A + r 1_notA)^(alpha - 1)], and its printed bound ln E[(r 1_notA)^(alpha - 1)], at alpha = 2.

    P = (1/5, 4/5), P^_0 = (7/10, 3/10), P^_1 = (4/5, 1/5), lambda = 1/2.  A, where P is below the sum of both P^, is
    the first value.
    """
    own, drawn, other = ((Fraction(a, 10), Fraction(10 - a, 10)) for a in (2, 7, 8))
    seen = [p / 2 + (q + r) / 4 for p, q, r in zip(own, drawn, other, strict=True)]
    ratio = own[1] / drawn[1]
    return Numbers(math.log(seen[1] * ratio), math.log(seen[0] + seen[1] * ratio))


def theorem7_1() -> Numbers:
    """Return the divergence of order 2 of Mechanism 2 at lambda = 1/2: printed, enumerated, sharper."""
    features, drawn = [[0.8, 0.2], [0.3, 0.7]], [[0.75, 0.25], [0.35, 0.65]]
    gap = max(bounds.renyi_divergence(p, q, 2) for p, q in zip(features, drawn, strict=True))
    law = np.einsum("yx,yxaz->yaz", np.array(features), _mechanism2(drawn, 0.5))
    return Numbers(
        bounds.theorem7_1_printed(2, 0.5, 2, gap).epsilon,
        bounds.exact_divergence(law, 2).epsilon,
        bounds.theorem7_1_sharper(2, 0.5, 2, gap).epsilon,
    )


def _mechanism2(drawn: list[list[float]], lam: float) -> Floats:
    """Return the law of (features, label) that Mechanism 2 releases, for each true label and features (k, m, m, k)."""
    k, m = len(drawn), len(drawn[0])
    released = (1 - lam) * np.eye(k) + lam / k
    shown = (1 - lam) * np.eye(m) + lam * np.mean(drawn, axis=0)
    return np.asarray(np.einsum("xa,yz->yxaz", shown, released))


def theorem5_2() -> Numbers:
    """Return how often a label of ten is guessed right at order 2: printed at the best delta, exact, sharper.

    Of uniform labels in randomized response at lambda = 9/10, whose divergence is the epsilon.
    """
    order, k, lam = 2, 10, Fraction(9, 10)
    epsilon = bounds.label_divergence(order, float(lam), k).epsilon
    printed = min(
        bounds.theorem5_2_printed(order, epsilon, step / 1000, 1 / k, k).value for step in range(1, 1000)
    )
    return Numbers(printed, float(1 - lam + lam / k), bounds.theorem5_2_sharper(order, epsilon, 1 / k).value)


def lemma_g1() -> Numbers:
    """Return the risk of one feature vector, k = 2, lambda = 1/2, shares 0.3 and 0.7, losses 1 and 1/2.

    By what Mechanism 2 releases, as printed and as corrected; and by definition.
    """
    lam, k, shares, losses = (
        Fraction(1, 2),
        2,
        (Fraction(3, 10), Fraction(7, 10)),
        (Fraction(1), Fraction(1, 2)),
    )
    released = [(1 - lam) * share + lam / k for share in shares]
    risk = sum(share * loss for share, loss in zip(shares, losses, strict=True))
    seen = sum(share * loss for share, loss in zip(released, losses, strict=True))
    first = (seen - lam / k * sum(losses)) / (1 - lam) ** 2
    return Numbers(
        float(first + lam / (1 - lam) * k * risk),
        float(risk),
        float(first - lam / ((1 - lam) * k) * k * risk),
    )


ERRATA = (
    Erratum(
        "release-static-features", PAPER, "Section 8.1", "unequal",
        "at λ = 0.01 the label alone has ε ~ 5.19",
        "ε = ln(1 + (1 − λ)k/λ) = ln 199",
        "k = 2, λ = 0.01",
        static_features,
    ),
    Erratum(
        "release-eq-2", PAPER, "Eq. 2", "unequal",
        "e^ν has P(Ỹ = ỹ | Y = y)/P(Ỹ = y | Y = 1 − y)",
        "the denominator is of Ỹ = ỹ",
        "ν(y = 1, ỹ = 0) at π = 0.01 where η = p₊",
        equation2,
    ),
    Erratum(
        "release-lemma-d1", PAPER, "Lemma D.1, proof", "unequal",
        "the four terms of E ν have p₊ for label 1 in the numerator",
        "p₊ and 1 − p₊ are swapped in all four; the result is right",
        "η = 0.3, p₊ = 0.256, π = 0.01",
        lemma_d1,
    ),
    Erratum(
        "release-theorem-6-2", PAPER, "Theorem 6.2, proof", "unequal",
        "(1 − α) D_α = ln E (P/Q)^α",
        "(α − 1) D_α; the theorem is right",
        "D_2 of (3/4, 1/4) from (1/4, 3/4)",
        theorem6_2,
    ),
    Erratum(
        "release-symmetry", PAPER, "Appendix D", "unequal",
        "H is symmetric around 1/2",
        "only for p₊ = 1/2; it is convex, with its least value between 1/2 and p₊, and has two branches",
        "H(0.1) at p₊ = 0.256, π = 0.01; printed: H(0.9)",
        symmetry,
    ),
    Erratum(
        "release-eq-14-share", PAPER, "Eq. 14", "unequal",
        "the estimate of J(τ) is a sum over people",
        "their mean",
        "1,000 people with η = 0.01, p₊ = 1/2, π = 0.01, τ = 6, radius 0",
        equation14_share,
    ),
    Erratum(
        "release-eq-14-branch", PAPER, "Eq. 14", "undercut",
        "J(τ) is at least the share with η ≤ H₀⁻¹(τ) or η ≥ H₀⁻¹(τ)",
        "η ≤ H₀⁻¹(τ) or η ≥ H₁⁻¹(τ)",
        "everybody has η = 1/2, p₊ = 1/2, π = 0.01, τ = 6, radius 0, with 1/n",
        equation14_branch,
    ),
    Erratum(
        "release-theorem-7-1-proof", PAPER, "Eq. 17", "exceeded",
        "ln E[(1_A + r 1_¬A)^(α−1)] ≤ ln E[(r 1_¬A)^(α−1)], as a logarithm of a sum is a sum",
        "it is not; the theorem holds by another proof",
        "α = 2, λ = 1/2, P = (1/5, 4/5), P̂ = (7/10, 3/10) and (4/5, 1/5)",
        theorem7_1_proof,
    ),
    Erratum(
        "release-theorem-7-1", PAPER, "Theorem 7.1", "loose",
        "Mechanism 2 has ε = 2 ln(1 + c) + Δ, c = (1 − λ)k/λ",
        "ε = R_α + ln(1 + c) + ln(λ + (1 − λ)e^((α−1)Δ))/(α − 1)",
        "α = 2, λ = 1/2, P = (0.8, 0.2) and (0.3, 0.7), P̂ = (0.75, 0.25) and (0.35, 0.65); exact: enumerated",
        theorem7_1,
    ),
    Erratum(
        "release-theorem-5-2", PAPER, "Theorem 5.2", "loose",
        "attack utility is at most 1 − (e^−ε δ^(1/(α−1))(1 − p*) − (k − 1)δ)ℓ*, for every δ",
        "at most 1 − e^−ε ((1 − p*)/α)^(1/(α−1))(1 − p*)(1 − 1/α)ℓ*",
        "α = 2, ten uniform labels, randomized response at λ = 9/10; printed: at the best of 999 δ",
        theorem5_2,
    ),
    Erratum(
        "release-lemma-g1", PAPER, "Lemma G.1", "unequal",
        "the last term of the unbiased risk is + λ/(1 − λ) Σ_j E ℓ",
        "− λ/((1 − λ)k) Σ_j E ℓ",
        "one feature vector, k = 2, λ = 1/2, label shares 0.3 and 0.7, losses 1 and 1/2",
        lemma_g1,
    ),
)  # fmt: skip
