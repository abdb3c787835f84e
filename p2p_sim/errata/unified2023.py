"""A unified analysis of label inference attacks, 2023: what is printed, and what a small case of it gives."""

from __future__ import annotations

import math

from p2p_sim.errata.erratum import Erratum, Numbers
from p2p_sim.privacy.bounds import unified2023 as bounds

PAPER = "Unified 2023"
BAG = 1000
"""Labels of a bag, fair ones, where a radius is looked at."""


def _best(eta: float, epsilon: float) -> float:
    """Return how often the best guess of one label is right, from its value with Laplace noise of scale 1/epsilon.

    Below 0 and above 1 the likelihoods have a fixed ratio; between them they cross at most once.
    """
    outside = math.exp(-epsilon)
    ends = sum(max(eta * one, (1 - eta) * zero) / 2 for one, zero in ((1.0, outside), (outside, 1.0)))
    cross = (1 + math.log((1 - eta) / eta) / epsilon) / 2
    middle = min(1.0, max(0.0, cross))
    zero = (1 - eta) * (1 - math.exp(-epsilon * middle)) / 2
    one = eta * (1 - math.exp(-epsilon * (1 - middle))) / 2
    return ends + zero + one


def short_attacker() -> Numbers:
    """Return how often A** is right at k = 1, eta = 0.1, epsilon = 1: as printed, the best guess, and as corrected."""
    eta, epsilon = 0.1, 1.0
    small = eta / (1 - eta) < math.exp(-epsilon)
    return Numbers(eta if small else 1 - eta, _best(eta, epsilon), 1 - eta if small else eta)


def short_attacker_third() -> Numbers:
    """Return how often A**, which knows the label, is right at k = 1, eta = 1/2, epsilon = 1, and the best guess."""
    return Numbers(1.0, _best(0.5, 1.0), 0.5 + bounds.laplace_llp_sharper([0.5], 1).value)


def equation19() -> Numbers:
    """Return the largest odds of label 0 at k = 1, eta = 0.1, epsilon = 1: printed bound, exact, corrected bound."""
    eta, epsilon = 0.1, 1.0
    one = float(bounds.laplace_llp_posterior([eta], -5.0, epsilon)[0])
    odds = eta / (1 - eta)
    return Numbers(math.exp(epsilon) * odds, (1 - one) / one, math.exp(epsilon) / odds)


def theorem6_4() -> Numbers:
    """Return the largest advantage at k = 1, eta = 1/2, epsilon = 1."""
    return Numbers(
        bounds.laplace_llp_printed([0.5], 1).value,
        _best(0.5, 1.0) - 0.5,
        bounds.laplace_llp_sharper([0.5], 1).value,
    )


def _outside(low: float, high: float) -> float:
    """Return the probability that the number of ones of a bag of fair labels is below ``low`` or above ``high``."""
    inside: int = sum(math.comb(BAG, ones) for ones in range(BAG + 1) if low <= ones <= high)
    return 1 - inside / (1 << BAG)


def _printed_radius() -> float:
    """Return sqrt(k) c_k of Lemma A.1 at p = 1/2."""
    log = math.log(8 * BAG)
    return log / 3 + math.sqrt(2 * log + 12 * BAG / 4 * log) / 6


def lemma_a1() -> Numbers:
    """Return the probability that the ones of 1,000 fair labels are farther from 500 than the printed radius."""
    radius = _printed_radius()
    return Numbers(1 / (2 * BAG), _outside(BAG / 2 - radius, BAG / 2 + radius))


def lemma_a2() -> Numbers:
    """Return the probability that the ones of 1,000 fair labels are outside [a, b], b = min(k p + sqrt(k) c_k, 1)."""
    radius = _printed_radius()
    return Numbers(1 / (2 * BAG), _outside(max(BAG / 2 - radius, 0), min(BAG / 2 + radius, 1)))


ERRATA = (
    Erratum(
        "unified-short-attacker", PAPER, "A** after Theorem 6.3", "unequal",
        "A** guesses 1 where η/(1 − η) < e^−ε and 0 where it is above e^ε, much as the best attacker does",
        "the other way round: 0 where the odds are small, 1 where they are large",
        "k = 1, η = 0.1, ε = 1: how often the guess is right",
        short_attacker,
    ),
    Erratum(
        "unified-short-attacker-third", PAPER, "A** after Theorem 6.3", "unequal",
        "between e^−ε and e^ε A** guesses y_i",
        "y_i is the label to be inferred; there the bound decides nothing, and the posterior does",
        "k = 1, η = 1/2, ε = 1: how often the guess is right",
        short_attacker_third,
    ),
    Erratum(
        "unified-eq-19", PAPER, "Eq. 19", "exceeded",
        "the odds of y = 0 are at most e^ε η/(1 − η)",
        "at most e^ε (1 − η)/η",
        "k = 1, η = 0.1, ε = 1, a noisy proportion of −5",
        equation19,
    ),
    Erratum(
        "unified-theorem-6-4", PAPER, "Theorem 6.4", "loose",
        "Adv ≤ 2(1 − e^−ε) E[η(1 − η)]",
        "Adv ≤ (1 − e^(−ε/2)) E min(η, 1 − η), attained at k = 1 by fair labels",
        "k = 1, η = 1/2, ε = 1",
        theorem6_4,
    ),
    Erratum(
        "unified-lemma-a1", PAPER, "Lemma A.1", "exceeded",
        "by Bernstein's inequality the ones of a bag are within √k c_k of kp except with a probability of 1/(2k)",
        "Bernstein's radius for that is L/3 + √(L²/9 + 2kp(1 − p)L), L = ln 4k; the bound counts as claimed",
        "k = 1000, p = 1/2: probability of being farther away than √k c_k",
        lemma_a1,
    ),
    Erratum(
        "unified-lemma-a2", PAPER, "Lemma A.2", "exceeded",
        "with b = min(kp + √k c_k, 1) the ones of a bag are in [a, b] except with a probability of 1/(2k)",
        "b = min(kp + √k c_k, k), for a right radius",
        "k = 1000, p = 1/2: probability of being outside [a, b]",
        lemma_a2,
    ),
)  # fmt: skip
