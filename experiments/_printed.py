"""Estimators of J(tau) as Pitfalls 2021 and Release 2023 print them, to be held against what is right.

They are wrong (docs/laws.md, "Pitfalls 2021"), so that they are here and not in ``p2p_sim``.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_sim.leakage.estimated_loss import Smoothness
from p2p_sim.leakage.instance_loss import Thresholds, h

Floats = npt.NDArray[np.float64]
CONSTANT = Smoothness()
"""P(y | x) does not change among a person's neighbours."""


def lemma1(tau: float, p_plus: float, flip: float) -> Thresholds:
    """Return t_L and t_H of Pitfalls 2021, Lemma 1; NaN where tau is below h(flip)."""
    over = tau - float(h(flip))
    if over < 0:
        return Thresholds(math.nan, math.nan)
    root = math.exp(0.5)
    kappa = ((root + 1) / (root - 1) * over) ** (2 / 3) + math.log(p_plus / (1 - p_plus))
    return Thresholds(1 / (math.exp(kappa) + 1), 1 / (math.exp(-kappa) + 1))


def theorem2(eta: Floats, at: Thresholds, k: int, delta: float, smoothness: Smoothness = CONSTANT) -> float:
    """Return the "upper bound" on J of Pitfalls 2021, Theorem 2 and Eq. 3, with thresholds ``at``.

    Its c(n) subtracts the bias where it should add it.
    """
    n = len(eta)
    c = math.sqrt(2 * math.log(6 * n / delta) / k) - smoothness.bias(2 * k / n)
    share = float(((eta - 2 * c > at.high) | (eta + 2 * c < at.low)).mean())
    return share + math.sqrt(math.log(6 / delta) / (2 * n)) + delta / 3


def estimator14(eta: Floats, low: float, radius: float) -> float:
    """Return the estimate of Release 2023, Eq. 14: a count, not a share, and twice the same root.

    ``low``: the lower root of H.  ``radius``: C(n, k, delta) of its Lemma D.6.
    """
    c = radius
    return float((eta + c <= low).sum() + (eta - c >= low).sum())


def theorem6_6(share: float, n: int, delta: float) -> float:
    """Return the lower bound of Release 2023, Theorem 6.6, of the share that an estimator found."""
    return share - 2 * math.sqrt(math.log(2 / delta) / (2 * n)) - delta
