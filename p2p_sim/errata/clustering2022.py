"""Label differential privacy via clustering, 2022: what is printed, and what a small case of it gives."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

from p2p_sim import catalogue
from p2p_sim.errata.erratum import Erratum, Numbers
from p2p_sim.privacy import accountant
from p2p_sim.privacy.bounds import clustering2022 as bounds

PAPER = "Clustering 2022"
LARGE = 20_000
"""Users of a cluster to which Theorem 3 applies."""


def _peer_to_peer(alpha: float) -> Any:
    return catalogue.named("peer-to-peer")(alpha=alpha)  # type: ignore[call-arg]


def _tail(distance: float, scale: float) -> float:
    """Return the probability that Laplace noise exceeds a distance of at least 0."""
    return math.exp(-distance / scale) / 2


def _log_ratio(sigma: float, lam: float, tau: float) -> float:
    """Return the log ratio of one event of Algorithm 1 between one and two ones among four labels; tau >= 1/3.

    The event: q~(1) = 1 - tau, and the victim's label comes out as 1.  The first happens if the noisy share of ones is
    at least 1 - tau and that of zeros at most tau; both shares lie on the near side of that in both worlds.
    """
    scale, seen = sigma / 4, []
    for ones, victim in ((Fraction(1, 4), 0), (Fraction(1, 2), 1)):
        up, down = _tail(1 - tau - float(ones), scale), _tail(1 - float(ones) - tau, scale)
        seen.append(up * down * ((1 - lam) * victim + lam * (1 - tau)))
    return math.log(seen[1] / seen[0])


def theorem1() -> Numbers:
    """Return epsilon at sigma = 1, lambda = 1/2, tau = 0.4, and the log ratio of an event."""
    printed, corrected = (form(1, 0.5, 0.4) for form in (bounds.theorem1_printed, bounds.theorem1_corrected))
    return Numbers(printed.epsilon, _log_ratio(1, 0.5, 0.4), corrected.epsilon)


def corollary2() -> Numbers:
    """Return the total at epsilon = 1 and phi = 0.4, and the log ratio of an event at the parameters it names."""
    printed, corrected = (
        form(1, 0.4, 2) for form in (bounds.corollary2_printed, bounds.corollary2_corrected)
    )
    asked = printed.parameters
    return Numbers(printed.epsilon, _log_ratio(asked["sigma"], asked["lam"], asked["tau"]), corrected.epsilon)


def renormalization() -> Numbers:
    """Return q~ of one of nine labels whose shares are all cut to tau = 1/9: by lines 9 to 18, and exactly."""
    labels = 9
    shares = [1 / labels] * labels
    gap = 1 - sum(shares)
    spare = [share - 1 / labels if gap < 0 else 1 - share for share in shares]
    moved = spare[0] / sum(spare) * gap if sum(spare) else math.nan
    return Numbers(shares[0] + moved, float(Fraction(1, labels)))


def threshold() -> Numbers:
    """Return what the shares of two labels sum to at tau = phi = 0.6, at least: 1, as shares do, and K tau."""
    return Numbers(1.0, float(2 * Fraction(6, 10)))


def heterogeneity() -> Numbers:
    """Return phi of an example whose label is sure in a cluster of the other label, and that total variation."""
    one, other = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    phi = sum(abs(p - q) for p, q in zip(one, other, strict=True))
    largest = max(
        sum(one[y] - other[y] for y in event)
        for size in range(3)
        for event in itertools.combinations((0, 1), size)
    )
    return Numbers(float(phi), float(largest), float(phi / 2))


def theorem3() -> Numbers:
    """Return epsilon at s = 20,000 and theta = 1, and the exact one at the alpha that it asks for."""
    bound, lemma = bounds.theorem3(LARGE, 1.0), bounds.lemma9
    alpha = bound.parameters["alpha"]
    exact = accountant.profile(_peer_to_peer(alpha), "learner", cluster_size=LARGE).epsilon(bound.delta)
    return Numbers(bound.epsilon, exact, lemma(LARGE, alpha, 1.0, delta=bound.delta).epsilon)


def equation32() -> Numbers:
    """Return 3/(s alpha) at s = 20,000, theta = 1 as Eq. 32 has it, by its own alpha, and by the corrected form."""
    alpha, log, root = bounds.theorem3(LARGE, 1.0).parameters["alpha"], math.log(LARGE), math.sqrt(LARGE)
    return Numbers(
        math.sqrt(72) / math.sqrt(LARGE * log), 3 / (LARGE * alpha), 3 / (4 * math.sqrt(2) * root * log)
    )


def equation32_bound() -> Numbers:
    """Return epsilon at s = 20,000, theta = 1 by the end of Eq. 32, by what it starts from, and by Theorem 3."""
    theorem, log = bounds.theorem3(LARGE, 1.0), math.log(LARGE)
    last = 2**0.75 * 3 / LARGE**0.25
    printed = 1 + 3 / (math.e * math.sqrt(LARGE * log)) + last
    start = bounds.lemma9(LARGE, theorem.parameters["alpha"], 1.0, xi=4 * math.sqrt(log))
    return Numbers(printed, start.epsilon, theorem.epsilon)


def lemma9_share() -> Numbers:
    """Return the probability that the share of noisy ones of two labels 0 lies in [alpha, 1 - alpha], alpha = 1/10."""
    alpha = Fraction(1, 10)
    inside = Fraction(0)
    for flips in itertools.product((0, 1), repeat=2):
        if alpha <= Fraction(sum(flips), 2) <= 1 - alpha:
            inside += math.prod((alpha if flip else 1 - alpha) for flip in flips)
    return Numbers(1.0, float(inside))


def lemma9_reports() -> Numbers:
    """Return the probability that exactly theta n of n = 10 users report, at theta = 1/2."""
    return Numbers(1.0, float(Fraction(math.comb(10, 5), 2**10)))


def binomial() -> Numbers:
    """Return the probability of two positive reports of two users, one with label 1, at alpha = 1/4, theta = 1."""
    alpha, labels, both = Fraction(1, 4), (1, 0), Fraction(0)
    for flips in itertools.product((0, 1), repeat=2):
        noisy = [label ^ flip for label, flip in zip(labels, flips, strict=True)]
        chance = math.prod((alpha if flip else 1 - alpha) for flip in flips)
        both += chance * Fraction(sum(noisy[i] * noisy[j] for i in (0, 1) for j in (0, 1)), 4)
    equal, apart = (1 - alpha) * alpha, alpha**2 + (1 - alpha) ** 2  # N = 2 (or 0), and N = 1
    return Numbers(float(Fraction(1, 2) ** 2), float(both), float(equal + apart / 4))


def one_peer() -> Numbers:
    """Return delta at epsilon = 0 of one curious peer among 10 users, alpha = 1/5: 1/s, exact, and delta_RR/s."""
    exact = accountant.profile(_peer_to_peer(0.2), "user", cluster_size=10).delta(0.0)
    return Numbers(float(Fraction(1, 10)), exact, (1 - 2 * 0.2) / 10)


def theorem5() -> Numbers:
    """Return the bounds at s = 1, K = 10, epsilon = 1, and the precision of randomized response over ten labels."""
    truth = math.exp(1) / (math.exp(1) + 9)
    return Numbers(bounds.theorem5_printed(1, 10, 1).value, truth, bounds.theorem5_sharper(1, 10, 1).value)


ERRATA = (
    Erratum(
        "clustering-theorem-1", PAPER, "Theorem 1", "exceeded",
        "Algorithm 1 is ε-label-private with ε = 1/σ + ln(1 + (1 − λ)/(λτ))",
        "ε = 2/σ + ln(1 + (1 − λ)/(λτ)): a replaced label changes two counts of its cluster",
        "one cluster of 4, two labels, σ = 1, λ = 1/2, τ = 0.4: log ratio of the event q̃(1) = 0.6, ỹ = 1",
        theorem1,
    ),
    Erratum(
        "clustering-corollary-2", PAPER, "Corollary 2", "exceeded",
        "ClusterRR at ε spends 2ε in all, by Theorem 1 as printed",
        "3ε, by the corrected theorem; to spend ε, split it between noise and labels",
        "the same event at ε = 1, φ = τ = 0.4, σ = 1, λ = 1/(1 + (e − 1)φ)",
        corollary2,
    ),
    Erratum(
        "clustering-corollary-2-tau", PAPER, "Corollary 2", "exceeded",
        "τ = φ",
        "τ ≤ 1/K, as shares of at least τ sum to 1; for larger φ, τ = 1/K and the λ that belongs to it",
        "K = 2, φ = 0.6: what two shares of at least τ sum to; printed: what shares sum to",
        threshold,
    ),
    Erratum(
        "clustering-renormalization", PAPER, "Algorithm 1, lines 9 to 18", "unequal",
        "q̃(y|c) = q(y|c) + ξ_y/Σξ · Δ at every τ up to 1/K",
        "at τ = 1/K rounding can leave Δ < 0 with all ξ = 0: 0/0; the shares stay as they are then",
        "nine labels, all shares cut to τ = 1/9, in floats of 64 bits",
        renormalization,
    ),
    Erratum(
        "clustering-heterogeneity", PAPER, "Definition 1", "unequal",
        "φ = E Σ_y |p(y|x) − p(y|c)| is an average total variation",
        "it is twice the total variation, so τ = φ ≤ 1/K asks for half as much",
        "p(·|x) = (1, 0), p(·|c) = (0, 1)",
        heterogeneity,
    ),
    Erratum(
        "clustering-theorem-3", PAPER, "Theorem 3", "loose",
        "α = 4√2 ln s/√(θs) gives the learner ε ≤ θ + 3θ^(3/2)/(e√s ln s) + 2^(3/4)·3θ^(3/4)/s^(1/4)",
        "true as far as is known, and far above the exact ε; corrected: Lemma 9 at the same α",
        "s = 20,000, θ = 1, δ = 1/s², at the α that it asks for",
        theorem3,
    ),
    Erratum(
        "clustering-eq-32", PAPER, "Eq. 32", "unequal",
        "3/(sα) = √(72θ)/√(s ln s)",
        "3/(sα) = 3√θ/(4√2 √s ln s)",
        "s = 20,000, θ = 1, α = 4√2 ln s/√(θs)",
        equation32,
    ),
    Erratum(
        "clustering-eq-32-bound", PAPER, "Eq. 32, last line", "loose",
        "the second term of ε is 3θ^(3/2)/(e√(s ln s))",
        "3θ^(3/2)/(e√s ln s), as Theorem 3 says",
        "s = 20,000, θ = 1: ε; exact: Lemma 9 at the proof's ξ, from which it starts",
        equation32_bound,
    ),
    Erratum(
        "clustering-lemma-9-share", PAPER, "Lemma 9, proof", "unequal",
        "the share p of noisy ones lies in [α, 1 − α]",
        "only its mean does; no counterexample to the bound is known, so it counts as claimed",
        "two users with label 0, α = 1/10: probability that p is in the interval",
        lemma9_share,
    ),
    Erratum(
        "clustering-lemma-9-reports", PAPER, "Lemma 9, proof", "unequal",
        "t = θn users of a cluster report",
        "the number of reports is binomial, and part of what the learner sees",
        "n = 10, θ = 1/2: probability that 5 report",
        lemma9_reports,
    ),
    Erratum(
        "clustering-binomial", PAPER, "Lemma 9, proof", "unequal",
        "the number of positive reports is binomial, with the share of positive labels",
        "it is binomial given the number of noisy ones, and a mixture of binomials without",
        "two users, one with label 1, α = 1/4, θ = 1: probability of two positive reports",
        binomial,
    ),
    Erratum(
        "clustering-one-peer", PAPER, "Section 5.1", "loose",
        "each user's view is (0, 1/s)-label-private",
        "δ(ε) = δ_RR(ε)/s, as the bit that she sees is noisy",
        "s = 10, α = 1/5, δ at ε = 0",
        one_peer,
    ),
    Erratum(
        "clustering-theorem-5", PAPER, "Theorem 5", "loose",
        "precision times recall is at most s e^ε/(K − s)",
        "precision alone is at most s e^ε/(s e^ε + K − s), which randomized response attains at s = 1",
        "s = 1, K = 10, ε = 1",
        theorem5,
    ),
)  # fmt: skip
