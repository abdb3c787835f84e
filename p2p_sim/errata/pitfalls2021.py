"""On the pitfalls of label differential privacy, 2021: what is printed, and what a small case of it gives."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from p2p_sim.errata.erratum import Erratum, Numbers
from p2p_sim.leakage import estimated_loss, instance_loss

PAPER = "Pitfalls 2021"
FLIP = 0.01
KAG14, KDD12 = 0.256, 0.044
"""p₊ of kag14 and kdd12, Table 1."""
MANY, NEAR, ERROR = 10**6, 10**4, 0.01
"""Rows n, neighbours k, and delta of the estimator of J."""


def _logit(z: float) -> float:
    return math.log(z / (1 - z))


def _low_printed(tau: float, prior: float) -> float:
    """Return t_L of Lemma 1, 1/(e^kappa + 1), with its epsilon read as e, as the paper's own numbers have it."""
    root = math.sqrt(math.e)
    power = ((root + 1) / (root - 1) * (tau - float(instance_loss.h(FLIP)))) ** (2 / 3)
    return 1 / (math.exp(power + _logit(prior)) + 1)


def flip() -> Numbers:
    """Return how many labels are kept at pi = 1/100: printed, as epsilon = ln((1 - pi)/pi) asks, and corrected."""
    pi = 0.01
    epsilon = math.log((1 - pi) / pi)
    return Numbers(pi, math.exp(epsilon) / (1 + math.exp(epsilon)), 1 - pi)


def markov() -> Numbers:
    """Return the bound on P(nu_bar >= 6) of 20 people, with eta 0.02, 0.98, and 1/2 for the others, at pi = 0.01."""
    eta, tau = [0.02, 0.98, *[0.5] * 18], 6.0
    jeffreys, h = instance_loss.jeffreys(eta), instance_loss.h
    share = float((instance_loss.nu_bar(eta, 0.5, FLIP) >= tau).mean())
    corrected = instance_loss.markov(tau, instance_loss.mean_loss(eta, FLIP), 0.5, FLIP)
    return Numbers((jeffreys + float(h(0.5)) - float(h(FLIP))) / tau, share, corrected.value)


def negative() -> Numbers:
    """Return nu_bar at p₊ = 0.9, eta = 0.7, pi = 0.4, which Markov's inequality needs to be at least 0."""
    least = float(instance_loss.nu_bar([instance_loss.least_eta(0.9)], 0.9, 0.4)[0])
    return Numbers(0.0, float(instance_loss.nu_bar([0.7], 0.9, 0.4)[0]), least)


def lemma1_inside() -> Numbers:
    """Return the largest loss between the thresholds of Lemma 1 at p₊ = 1/2, pi = 0.01, tau = 10.5."""
    tau = 10.5
    low, exact = _low_printed(tau, 0.5), instance_loss.thresholds(tau, 0.5, FLIP).low
    inside, root = (float(instance_loss.nu_bar([eta], 0.5, FLIP)[0]) for eta in (low, exact))
    return Numbers(root, inside)


def lemma1_outside() -> Numbers:
    """Return the loss of people at t_L, whom Lemma 1 counts as losing tau = 6, at kag14's p₊ and pi = 0.01."""
    low = _low_printed(6.0, KAG14)
    return Numbers(6.0, float(instance_loss.nu_bar([low], KAG14, FLIP)[0]))


def lemma1_threshold() -> Numbers:
    """Return t_L for kag14 at tau = 6, pi = 0.01: printed, by bisection of nu_bar, and as it is computed here."""
    low, high = 1e-9, KAG14
    for _ in range(80):
        middle = (low + high) / 2
        over = (2 * middle - 1) * (_logit(middle) - _logit(KAG14)) + (2 * FLIP - 1) * _logit(FLIP) > 6
        low, high = (middle, high) if over else (low, middle)
    return Numbers(_low_printed(6.0, KAG14), low, instance_loss.thresholds(6.0, KAG14, FLIP).low)


def lemma1_sets() -> Numbers:
    """Return mu(G_tL) + mu(G^tH) where eta = 1/2 for all, with G^a = {eta >= 1 - a} as printed, and with {eta >= a}.

    At p₊ = 1/2, pi = 0.01, tau = 6, where the loss of all is below tau.
    """
    eta, low = 0.5, _low_printed(6.0, 0.5)
    high = 1 - low
    printed, corrected = (float(eta <= low) + float(eta >= end) for end in (1 - high, high))
    return Numbers(printed, float(instance_loss.nu_bar([eta], 0.5, FLIP)[0] > 6), corrected)


def theorem2() -> Numbers:
    """Return J(6.2) where eta is 0.1 or 0.9, half each, and its "upper bound" by exact thresholds and shares."""
    tau, eta = 6.2, np.array([0.1, 0.9])
    low, high = instance_loss.thresholds(tau, 0.5, FLIP)
    twice = 2 * math.sqrt(2 * math.log(6 * MANY / ERROR) / NEAR)  # with no bias at all
    beyond = float(((eta - twice > high) | (eta + twice < low)).mean())
    within = float(((eta + twice > high) | (eta - twice < low)).mean())
    slack = math.sqrt(math.log(6 / ERROR) / (2 * MANY)) + ERROR / 3
    exact = float((instance_loss.nu_bar(eta, 0.5, FLIP) > tau).mean())
    return Numbers(beyond + slack, exact, min(1.0, within + slack))


def bias() -> Numbers:
    """Return how far an estimate of eta may be off: eta(x) = x on a line of 10,000 people, 1,000 neighbours."""
    n, k = 10**4, 10**3
    printed = math.sqrt(2 * math.log(6 * n / ERROR) / k) - 2 * k / n
    mean_of_neighbours = Fraction(
        sum(range(k)), k * n
    )  # of the first, whose own eta is 0; labels would add chance
    corrected = estimated_loss.radius(n, k, ERROR, estimated_loss.Smoothness(1.0, 1.0))
    return Numbers(printed, float(mean_of_neighbours), corrected)


def clipped() -> Numbers:
    """Return kdd12's largest loss at pi = 0.01, whose smallest estimate is 0: by the printed 27.63, and as it is."""
    noise = math.log((1 - FLIP) / FLIP)
    return Numbers(noise + 27.63 + _logit(KDD12), instance_loss.nu_max(0.0, 0.67, KDD12, FLIP))


def header() -> Numbers:
    """Return kag14's column of m: the most that its header allows, the printed cell, the most of the right header.

    m_L = 0.01 and m_H = 0.02 are rounded to two digits, so they lie within 0.005 of that.
    """
    low, high = (0.005, 0.015), (0.015, 0.025)
    return Numbers(math.log((1 - low[0]) / high[0]), 5.28, math.log((1 - high[0]) / low[0]))


def mixed_ends() -> Numbers:
    """Return kag14's column of M, a "lower bound" of log odds, and the log odds at the lower end of its interval."""
    lower, upper = 0.96, 0.98
    return Numbers(math.log(upper / (1 - lower)), _logit(lower), _logit(lower))


def nu_max() -> Numbers:
    """Return kag14's largest loss at pi = 0.01 from the columns of its row, and the most that its intervals allow."""
    noise, prior = math.log((1 - FLIP) / FLIP), _logit(KAG14)
    _, most = instance_loss.nu_max_between((0.01, 0.02), (0.96, 0.98), (KAG14, KAG14), FLIP)
    return Numbers(noise + max(3.20 - prior, 5.28 + prior), most)


ERRATA = (
    Erratum(
        "pitfalls-flip", PAPER, "Section 2", "unequal",
        "Ỹ = ZY + (1 − Z)(1 − Y) with Z ~ Bernoulli(π) flips a label with probability π",
        "as printed it keeps a label with probability π; labels flip with π throughout",
        "π = 0.01: share of labels kept; exact: as the stated ε = ln((1 − π)/π) asks",
        flip,
    ),
    Erratum(
        "pitfalls-markov", PAPER, "Section 4", "exceeded",
        "P(ν̄ ≥ τ) ≤ (I + h(p₊) − h(π))/τ by Markov's inequality",
        "by Eq. 2 the signs are the other way round, and P(ν̄ ≥ τ) ≤ (E ν̄ − min H)/(τ − min H) for τ > min H",
        "20 people, one with η = 0.02, one with 0.98, the others with 1/2, π = 0.01, τ = 6",
        markov,
    ),
    Erratum(
        "pitfalls-markov-negative", PAPER, "Section 4", "undercut",
        "Markov's inequality applies to ν̄, so ν̄ ≥ 0",
        "ν̄ can be negative; corrected: min H over η",
        "p₊ = 0.9, η = 0.7, π = 0.4",
        negative,
    ),
    Erratum(
        "pitfalls-lemma-1-inside", PAPER, "Lemma 1", "exceeded",
        "people with t_L < η < t_H lose at most τ",
        "the exact thresholds are roots, found numerically",
        "p₊ = 1/2, π = 0.01, τ = 10.5: loss at η just above t_L",
        lemma1_inside,
    ),
    Erratum(
        "pitfalls-lemma-1-outside", PAPER, "Lemma 1, Figure 1", "undercut",
        "those with η ≤ t_L are the people on that side who lose more than τ",
        "the thresholds bound J in neither direction",
        "kag14 (p₊ = 0.256), π = 0.01, τ = 6: loss at t_L",
        lemma1_outside,
    ),
    Erratum(
        "pitfalls-lemma-1-threshold", PAPER, "Lemma 1, Figure 1", "unequal",
        "t_L = 1/(e^κ + 1), κ = ((√ε + 1)/(√ε − 1)·(τ − h(π)))^(2/3) + logit p₊",
        "the root of H(η) = τ on the lower branch",
        "kag14 (p₊ = 0.256), π = 0.01, τ = 6, √ε read as √e, which gives the paper's own 0.1",
        lemma1_threshold,
    ),
    Erratum(
        "pitfalls-lemma-1-sets", PAPER, "Lemma 1", "loose",
        "J(τ) ≤ μ(η ≤ t_L) + μ(η ≥ 1 − t_H)",
        "1 − t_H is t_L, so that is 1 or more whatever the data; η ≥ t_H is meant, as Eq. 3 has it",
        "everybody has η = 1/2, p₊ = 1/2, π = 0.01, τ = 6",
        lemma1_sets,
    ),
    Erratum(
        "pitfalls-theorem-2", PAPER, "Theorem 2 with Eq. 3", "exceeded",
        "J(τ) is at most the share of people beyond the thresholds by 2c, and a little more",
        "an upper bound counts those within the radius, too; those beyond it are a lower one",
        "η ∈ {0.1, 0.9}, half each, π = 0.01, τ = 6.2, n = 1e6, k = 1e4, δ = 0.01, no bias",
        theorem2,
    ),
    Erratum(
        "pitfalls-bias", PAPER, "Eq. 3", "exceeded",
        "c(n) = √(2 ln(6n/δ)/k) − C_λ(2k/n)^λ bounds how far an estimate of η is off",
        "the bias is added",
        "η(x) = x on a line, n = 10,000, k = 1000, δ = 0.01: mean error at the left end",
        bias,
    ),
    Erratum(
        "pitfalls-table-2-kdd12", PAPER, "Table 2", "exceeded",
        "kdd12 loses at most 29.1, as the log odds of its smallest η are 27.63",
        "27.63 is ln 10¹², an estimate of 0 clipped at 1e-12: infinite, or an interval",
        "π = 0.01, p₊ = 0.044, smallest η estimated as 0, largest as 0.67 at most",
        clipped,
    ),
    Erratum(
        "pitfalls-table-2-header", PAPER, "Table 2", "exceeded",
        "kag14's third column is ln((1 − m_L)/m_H)",
        "its 5.28 is ln((1 − m_H)/m_L), up to rounding",
        "m_L = 0.01, m_H = 0.02, each up to 0.005 off: the most that the header gives; exact: the cell",
        header,
    ),
    Erratum(
        "pitfalls-table-2-ends", PAPER, "Table 2", "undercut",
        "kag14's ln(M_H/(1 − M_L)) is a lower bound of log odds",
        "it mixes the ends of the interval of M; a lower bound is ln(M_L/(1 − M_L))",
        "M ∈ [0.96, 0.98]: exact is the log odds at 0.96",
        mixed_ends,
    ),
    Erratum(
        "pitfalls-table-2-nu-max", PAPER, "Table 2", "exceeded",
        "kag14's worst-case loss is the one that follows from its two columns",
        "a number between the ends of an interval that the row itself gives",
        "π = 0.01, m ∈ [0.01, 0.02], M ∈ [0.96, 0.98], p₊ = 0.256",
        nu_max,
    ),
)  # fmt: skip
