"""Does label differential privacy prevent label inference attacks, 2023: what is printed, and what is so."""

from __future__ import annotations

import math
from statistics import NormalDist

from p2p_sim.errata.erratum import Erratum, Numbers
from p2p_sim.privacy.bounds import attacks2023 as bounds

PAPER = "Attacks 2023"
PRIORS = (0.03, 0.97)
"""The positive labels of the paper's click data are 3 in 100."""


def _gain(epsilon: float, priors: tuple[float, float], worth: tuple[float, float]) -> float:
    """Return the best attacker's gain from binary randomized response; a right guess of y is worth worth[y]."""
    lie = 1 / (1 + math.exp(epsilon))
    seen = sum(max(priors[y] * (1 - lie if y == z else lie) * worth[y] for y in (0, 1)) for z in (0, 1))
    return seen - max(p * w for p, w in zip(priors, worth, strict=True))


def corollary1_weighted() -> Numbers:
    """Return the largest advantage for the weighted utility at epsilon = 0.1; exact: of randomized response."""
    worth = (1 / (2 * PRIORS[0]), 1 / (2 * PRIORS[1]))
    factor = bounds.mean_supremum([PRIORS], bounds.weighted_utility(PRIORS))
    return Numbers(
        bounds.corollary1_weighted(0.1, 0, PRIORS).value,
        _gain(0.1, PRIORS, worth),
        bounds.theorem2(0.1, 0, factor).value,
    )


def theorem2_zero_one() -> Numbers:
    """Return the largest advantage for 0/1 utility at epsilon = 1 and fair labels."""
    even = (0.5, 0.5)
    return Numbers(
        bounds.theorem2(1, 0, bounds.mean_supremum([even])).value,
        _gain(1, even, (1, 1)),
        bounds.theorem2_zero_one(1, 0, [even]).value,
    )


def covariance() -> Numbers:
    """Return the utility without labels for two Gaussian classes at sigma = 10: with covariance sigma^2 I, and sigma I.

    The means are sqrt(2) apart, so the better guess is right with probability Phi(sqrt(2)/(2 sd)).
    """
    by_text, by_code = (NormalDist().cdf(math.sqrt(2) / (2 * deviation)) for deviation in (10, math.sqrt(10)))
    return Numbers(by_text, by_code)


ERRATA = (
    Erratum(
        "attacks-corollary-1", PAPER, "Corollary 1 with Eq. 8", "loose",
        "Adv ≤ (1 − 2(1 − δ)/(1 + e^ε)) B, with B = 1/(2 min p) for the weighted utility",
        "true, but above 1/2, the most there can be; Theorem 2's mean of suprema takes the place of B",
        "priors 0.03 and 0.97, ε = 0.1, δ = 0; exact: binary randomized response",
        corollary1_weighted,
    ),
    Erratum(
        "attacks-theorem-2", PAPER, "Theorem 2", "loose",
        "for 0/1 utility Adv ≤ 1 − 2(1 − δ)/(1 + e^ε)",
        "times mean_i (1 − max_y p(y|x_i)), which randomized response attains for fair labels",
        "ε = 1, δ = 0, fair labels",
        theorem2_zero_one,
    ),
    Erratum(
        "attacks-covariance", PAPER, "Figure 1", "code",
        "classes have covariance σ²I",
        "the authors' code has σI; both are offered here",
        "two means at distance √2, σ = 10: utility without labels; printed: by the text, exact: by the code",
        covariance,
    ),
)  # fmt: skip
