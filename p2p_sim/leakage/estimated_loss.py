"""Instance-based losses of the people in a table, with confidence: the largest loss, and how many are above tau.

eta(x) = P(y = 1 | x) of each person is estimated by her nearest neighbours, and lies within an interval around that;
each interval of eta becomes one of her expected loss, whose convexity makes that exact.  Counts of intervals above tau
bound the count of losses above tau, and a Clopper-Pearson interval of that count bounds J(tau) in the population.

*Source:* Pitfalls 2021, Theorems 1 and 2, and Release 2023, Theorem 6.6, corrected and sharpened: ``docs/laws.md``,
"Losses of people".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.leakage import instance_loss
from p2p_sim.leakage.attack_results import Interval
from p2p_sim.leakage.instance_loss import flip_for_loss, flip_of, gain, h
from p2p_sim.leakage.nearest_neighbours import label_shares
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.bounds.bound import Figure, real, whole
from p2p_sim.progress import Asked, reporter_of, showing

Floats = npt.NDArray[np.float64]

PARTS = 4
"""Shares of the error: labels of neighbours, measures of balls, the prior, and the final count."""


@dataclass(frozen=True)
class Smoothness:
    """How fast eta may change: |eta(x) - eta(x')| <= constant * mu(B)^exponent, B the open ball around x up to x'.

    mu(B) is the share of people in the ball.  ``exponent`` in (0, 1], ``constant`` >= 0; 0 says that eta does not
    change among a person's neighbours.  No data can confirm it: every interval that uses it is conditional on it.
    Raises InputError.  *Source:* Release 2023, Assumption 6.5.
    """

    exponent: float = 1.0
    constant: float = 0.0

    def __post_init__(self) -> None:
        if real("smoothness exponent", self.exponent, 0.0, 1.0) == 0:
            raise InputError("smoothness exponent = 0: needs a number above 0, at most 1")
        real("smoothness constant", self.constant, 0.0)

    def bias(self, measure: float) -> float:
        """Return how far eta may be off within a ball of that measure."""
        return float(self.constant * measure**self.exponent)


def radius(n: int, k: int, delta: float, smoothness: Smoothness) -> float:
    """Return C(n, k, delta) = sqrt(ln(16 n/delta)/(2k)) + constant (2k/n)^exponent: eta of all n rows lies that near.

    It holds with probability 1 - delta/2 for k >= 4 ln(4 n/delta); for smaller k it is infinite.  Raises InputError.
    *Source:* Release 2023, Lemma D.6.  Its condition k >= 4 ln(4/delta) leaves out the union over rows; Pitfalls 2021
    subtracts the second term.
    """
    rows, near, error = _sizes(n, k, delta)
    if near < 4 * math.log(4 * rows / error):
        return math.inf
    return math.sqrt(math.log(16 * rows / error) / (2 * near)) + smoothness.bias(min(1.0, 2 * near / rows))


def theorem1(n: int, k: int, delta: float, smoothness: Smoothness) -> Figure:
    """Return the radius sqrt(ln(4 n/delta)/(2k)) + 2 constant (2k/n)^exponent around the largest and smallest estimate.

    Condition: k >= 8 ln(2/delta).  Raises InputError.  *Source:* Pitfalls 2021, Theorem 1.
    """
    rows, near, error = _sizes(n, k, delta)
    quantity, source = (
        "distance of sup eta and inf eta from their estimates",
        f"{instance_loss.PAPER}, Theorem 1",
    )
    if near < 8 * math.log(2 / error):
        why = f"k = {near} is below 8 ln(2/delta) = {8 * math.log(2 / error):.4g}"
        return Figure(math.nan, quantity, False, why, source, "claimed")
    value = math.sqrt(math.log(4 * rows / error) / (2 * near)) + 2 * smoothness.bias(
        min(1.0, 2 * near / rows)
    )
    return Figure(value, quantity, True, "1 or more: says nothing" if value >= 1 else "", source, "claimed")


@dataclass(frozen=True, eq=False)
class EstimatedLoss:
    """Expected losses of n people, less h(flip), by which any flip moves them all alike; see ``of_rows``.

    ``shares`` (n,): eta by neighbours.  ``eta_low``, ``eta_high`` (n,): where eta lies, for all people at once with
    ``confidence``.  ``low``, ``value``, ``high`` (n,), each sorted: gains, which are losses less h(flip).
    ``smallest``, ``largest``: intervals of inf eta and sup eta.  ``prior``: of P(y = 1).
    ``alike``: people all of whose neighbours have one label, so that the estimated loss is infinite.
    """

    n: int
    k: int
    confidence: float
    smoothness: Smoothness
    shares: Floats
    eta_low: Floats
    eta_high: Floats
    low: Floats
    value: Floats
    high: Floats
    smallest: Interval
    largest: Interval
    prior: Interval
    alike: int

    def nu_max(self, flip: float) -> Interval:
        """Return the largest loss in nats, infinite where eta may be 0 or 1.  Raises InputError."""
        low, high = instance_loss.nu_max_between(
            (self.smallest.lower, self.smallest.upper), (self.largest.lower, self.largest.upper),
            (self.prior.lower, self.prior.upper), flip,
        )  # fmt: skip
        value = instance_loss.nu_max(self.smallest.value, self.largest.value, self.prior.value, flip)
        return Interval(low, value, high)

    def nu_max_within(self, radius: float, flip: float) -> tuple[float, float]:
        """Return between which losses in nats the largest lies if sup eta and inf eta are so near their estimates.

        radius from 0 to 1, as ``theorem1`` returns it; the prior is taken as it is estimated, as there.  Raises
        InputError.  *Source:* Pitfalls 2021, Theorem 1 put into ``nu_max``.
        """
        near = real("radius", radius, 0.0, 1.0)
        least, most = (
            (max(0.0, end.value - near), min(1.0, end.value + near)) for end in (self.smallest, self.largest)
        )
        return instance_loss.nu_max_between(least, most, (self.prior.value, self.prior.value), flip)

    def above(self, tau: float, flip: float) -> Interval:
        """Return J(tau), the share of the population with an expected loss above ``tau`` nats.  Raises InputError.

        The interval holds at each tau with the confidence; all taus share its first three parts.
        """
        over = real("tau", tau, -math.inf) - float(h(flip_of(flip)))
        counts = [
            self.n - int(np.searchsorted(each, over, "right")) for each in (self.low, self.value, self.high)
        ]
        error = _error(self.confidence) / 2  # a bound on each side
        return Interval(
            float(confidence_bounds.lower(counts[0], self.n, error)),
            counts[1] / self.n,
            float(confidence_bounds.upper(counts[2], self.n, error)),
        )

    def flip_for(self, share: float, tau: float) -> Flip:
        """Return the least flip with which at most ``share`` of the population loses more than ``tau`` nats.

        share in (0, 1).  It holds with the confidence, although the flip is chosen on the same people: bounds on J
        fall with tau.  Raises InputError.  *Source:* h(flip) is the same for everybody.
        """
        allowed, over = real("share", share, 0.0, 1.0), real("tau", tau, -math.inf)
        if allowed in (0.0, 1.0):
            raise InputError(f"share = {allowed:g}: needs a number above 0 and below 1")
        safe = _most_hits(self.n, allowed, _error(self.confidence) / 2)
        if safe is None:
            why = f"{self.n:,} rows are too few to show anything of {100 * allowed:.4g} % of a population"
            return Flip(None, _flip_at(self.value, int(allowed * self.n), over), why)
        found, likely = _flip_at(self.high, safe, over), _flip_at(self.value, int(allowed * self.n), over)
        if found is not None:
            return Flip(found, likely, "")
        beyond = float(self.high[-1 - safe]) if safe < self.n else -math.inf
        what = "may be without limit" if math.isinf(beyond) else f"may be {beyond:.4g} nats"
        why = (
            f"For more than {100 * allowed:.4g} % of people, the part of features in their loss {what}, and no flip "
            "takes that away"
        )
        return Flip(None, likely, why)


@dataclass(frozen=True)
class Flip:
    """A flip for a promise: ``upper`` keeps it with confidence, ``estimate`` by the estimated losses alone.

    None where no flip does; ``why`` says what stands against ``upper``.
    """

    upper: float | None
    estimate: float | None
    why: str


@showing
def of_rows(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    k: int,
    *,
    smoothness: Smoothness = Smoothness(),  # it never changes
    confidence: float = 0.99,
    progress: Asked = None,
) -> EstimatedLoss:
    """Estimate the losses of people with features ``x`` (n, d) and labels ``y`` (n,), 0 or 1, by ``k`` neighbours.

    confidence in (0, 1), of each figure.  Nobody is her own neighbour.  Raises InputError for k > n - 1, other labels,
    or one label alone.
    *Source:* Pitfalls 2021, Sections 3 and 4; Release 2023, Theorem 6.6.
    *Assumes:* people are drawn independently, and eta is as smooth as ``smoothness`` says.
    """
    labels = np.asarray(y)
    if labels.dtype.kind not in "biu" or not bool(np.isin(labels, (0, 1)).all()):
        raise InputError("y holds labels other than 0 and 1: the loss is of two labels, say which count as 1")
    shares = label_shares(x, labels, k, labels=2, progress=reporter_of(progress) or False)[:, 1]
    return of_shares(shares, int(labels.sum()), k, smoothness=smoothness, confidence=confidence)


def of_shares(
    shares: Any,
    positives: int,
    k: int,
    *,
    smoothness: Smoothness = Smoothness(),  # it never changes
    confidence: float = 0.99,
) -> EstimatedLoss:
    """Estimate losses from the share (n,) of each person's ``k`` nearest neighbours with label 1.

    positives: how many of the n people have label 1.  For the rest see ``of_rows``.  Raises InputError.
    """
    eta = instance_loss.eta_of(shares)
    n, error = len(eta), _error(confidence)
    near, ones = whole("k", k, 1, n - 1), whole("positives", positives, 0, n)
    if ones in (0, n):
        raise InputError(f"all {n:,} people have the label {int(ones > 0)}: there is nothing to guess")
    prior = Interval(
        float(confidence_bounds.lower(ones, n, error / 2)),
        ones / n,
        float(confidence_bounds.upper(ones, n, error / 2)),
    )
    low, high = around(eta, near, error / n)
    bias = smoothness.bias(
        ball(n, near, error / (n + 2))
    )  # of every row, and where eta is greatest and least
    eta_low, eta_high = np.maximum(low - bias, 0.0), np.minimum(high + bias, 1.0)
    least, most = _gains(eta_low, eta_high, prior)
    return EstimatedLoss(
        n, near, confidence, smoothness, eta, eta_low, eta_high,
        np.sort(least), np.sort(gain(eta, prior.value)), np.sort(most),
        # Where eta is least, neighbours average at least that: no bias on that side.
        Interval(max(0.0, float(low.min()) - 2 * bias), float(eta.min()), float(high.min())),
        Interval(float(low.max()), float(eta.max()), min(1.0, float(high.max()) + 2 * bias)),
        prior, int(((eta == 0) | (eta == 1)).sum()),
    )  # fmt: skip


def around(shares: Floats, k: int, error: float) -> tuple[Floats, Floats]:
    """Return between which two numbers (n,) the mean of eta over k neighbours lies, given the shares of their labels.

    Each interval is wrong with probability at most ``error``.  Raises InputError for an error outside (0, 1).
    *Source:* k KL(share || mean) <= ln(2/error), Chernoff's bound for labels of different chances (Hoeffding 1963,
    Theorem 1), and for neighbours at the same distance that count in part; never wider than sqrt(ln(2/error)/(2k)).
    """
    limit = math.log(2 / confidence_bounds.probability("error", error)) / k
    values, where = np.unique(shares, return_inverse=True)
    low, high = _beyond(1 - values, limit), _beyond(values, limit)
    return (1 - low)[where], high[where]


def ball(n: int, k: int, error: float) -> float:
    """Return the measure that a person's open ball up to her k-th of n - 1 neighbours exceeds with at most ``error``.

    *Source:* it has no more than the k-th smallest of n - 1 uniform numbers, Beta(k, n - k).
    """
    from scipy.special import betainccinv

    return float(betainccinv(k, n - k, error))


def _beyond(shares: Floats, limit: float) -> Floats:
    """Return the largest q >= share with KL(share || q) <= limit, by bisection, rounded up."""
    from scipy.special import rel_entr

    inside, outside = shares.copy(), np.ones_like(shares)
    for _ in range(60):
        middle = (inside + outside) / 2
        near = rel_entr(shares, middle) + rel_entr(1 - shares, 1 - middle) <= limit
        inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
    return outside


def _gains(low: Floats, high: Floats, prior: Interval) -> tuple[Floats, Floats]:
    """Return the least and the largest gain (n,) where eta lies between low and high, and the prior in its interval.

    Gains are convex in eta and linear in the log odds of the prior.
    """
    least, most = np.full(len(low), math.inf), np.full(len(low), -math.inf)
    for end in (prior.lower, prior.upper):
        bottom = np.clip(instance_loss.least_eta(end), low, high)
        least = np.minimum(least, gain(bottom, end))
        most = np.maximum(most, np.maximum(gain(low, end), gain(high, end)))
    return least, most


def _most_hits(n: int, share: float, error: float) -> int | None:
    """Return the most hits of n whose upper confidence bound is at most ``share``; None where even 0 is too many."""
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        fits = float(confidence_bounds.upper(middle, n, error)) <= share
        low, high = (middle, high) if fits else (low, middle)
    return None if low < 0 else low


def _flip_at(gains: Floats, allowed: int, tau: float) -> float | None:
    """Return the least flip with which at most ``allowed`` of the sorted gains exceed tau - h(flip), or None."""
    if allowed >= len(gains):
        return None
    edge = float(gains[-1 - allowed])
    if not 1e-12 < tau - edge < 700:  # what h(flip) may be
        return None
    flip = flip_for_loss(tau - edge)
    while tau - float(h(flip)) < edge:  # by rounding
        flip *= 1 + 1e-15
    return flip


def _sizes(n: Any, k: Any, delta: Any) -> tuple[int, int, float]:
    rows = whole("n", n, 2)
    return rows, whole("k", k, 1, rows), confidence_bounds.probability("delta", delta)


def _error(confidence: Any) -> float:
    return (1 - confidence_bounds.probability("confidence", confidence)) / PARTS


def ends(found: EstimatedLoss, flip: float) -> tuple[float, float]:
    """Return between which losses in nats the estimated J(tau) falls, without one in a thousand and infinite ones."""
    finite = found.value[np.isfinite(found.value)]
    most = float(np.quantile(finite, 0.999)) if len(finite) else -math.inf
    shift = float(h(flip_of(flip)))
    return float(found.low[0]) + shift, max(most, float(found.low[-1])) + shift
