"""Does label differential privacy prevent label inference attacks? (Wu, Zhou, Weinberger, Guo 2023): advantage.

An advantage is the utility of an attack that sees the output, less that of the best guess from features alone.

*Source:* ``docs/laws.md``, "Attacks 2023".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds.bound import Figure, Floats, laws, real

PAPER = "Does label differential privacy prevent label inference attacks, 2023"
VACUOUS = "no smaller than the largest advantage there can be: says nothing"


def distance(epsilon: Any, delta: Any = 0.0) -> float:
    """Return 1 - 2(1-delta)/(1+e^epsilon): the largest total variation that (epsilon, delta) allows, in [0, 1].

    epsilon >= 0 in nats, infinity included; delta >= 0.  Raises InputError outside.
    *Source:* Kairouz, Oh, Viswanath 2015, Remark A.1.
    """
    epsilon, delta = real("epsilon", epsilon, 0.0, infinite=True), real("delta", delta, 0.0)
    return float(min(1.0, math.tanh(epsilon / 2) + 2 * delta * expit(-epsilon)))


def theorem2(epsilon: Any, delta: Any, mean_supremum: Any) -> Figure:
    """Return the largest advantage that (epsilon, delta)-label-DP allows when features are public.

    epsilon >= 0 in nats, delta >= 0, mean_supremum the mean over users of E[sup_y u(y, y_i) | x_i], >= 0.
    Raises InputError outside.
    *Source:* Theorem 2.  *Assumes:* each label independent of the others and of other users' features.
    """
    return _advantage(epsilon, delta, real("mean_supremum", mean_supremum, 0.0), "Theorem 2", math.inf)


def corollary1(epsilon: Any, delta: Any, largest_utility: Any = 1.0) -> Figure:
    """Return the bound free of the data: distance times B, the largest utility (> 0).

    epsilon >= 0 in nats, delta >= 0.  Raises InputError outside.
    *Source:* Corollary 1.  *Assumes:* as for ``theorem2``.
    """
    most = real("largest_utility", largest_utility, 0.0)
    return _advantage(epsilon, delta, most, "Corollary 1", most)


def corollary1_weighted(epsilon: Any, delta: Any, priors: Any) -> Figure:
    """Return Corollary 1 for u = 1{guess = y}/(2 p_y), whose B = 1/(2 min p): true, and from (K-1)/2 it says nothing.

    priors (k,), all above 0, summing to 1.  Raises InputError outside.
    *Source:* Corollary 1 with Equation 8.  *Assumes:* as for ``theorem2``.
    """
    shares = laws("priors", [priors])[0]
    if not bool((shares > 0).all()):
        raise InputError(f"priors = {priors!r}: needs numbers above 0, the utility divides by them")
    return _advantage(
        epsilon, delta, 1 / (2 * float(shares.min())), "Corollary 1, weighted", (len(shares) - 1) / 2
    )


def theorem2_zero_one(epsilon: Any, delta: Any, conditionals: Any) -> Figure:
    """Return the sharper bound for u = 1{guess = y}: distance times mean_i (1 - max_y p(y|x_i)).

    conditionals (n, k), rows p(.|x_i).  Raises InputError outside.  Binary randomized response attains it at 1/2.
    *Source:* Theorem 2, sharpened: only what the best guess leaves open can be gained.  *Assumes:* as theorem2.
    """
    left = float((1 - laws("conditionals", conditionals).max(axis=1)).mean())
    value = distance(epsilon, delta) * left
    return Figure(
        value, "attack advantage", True, "", f"{PAPER}, Theorem 2 sharpened for 0/1 utility", "upper"
    )


def theorem3(epsilon: Any, delta: Any, mean_supremum: Any) -> Figure:
    """Return the largest advantage over guessing from the marginal, under full (epsilon, delta)-DP.

    mean_supremum the mean over users of E[sup_y u(y, y_i)], >= 0; the rest as for ``theorem2``.
    *Source:* Theorem 3.  *Assumes:* independent users; features unknown to the attacker, and protected too.
    """
    return _advantage(epsilon, delta, real("mean_supremum", mean_supremum, 0.0), "Theorem 3", math.inf)


def label_independent_utility(conditionals: Any, utility: Any = None) -> Figure:
    """Return mean_i max_y E[u(y, y_i) | x_i]: the best utility without any output.

    conditionals (n, k), rows p(.|x_i); utility (guess, truth), k by k, none negative; the default is 0/1.
    Raises InputError outside.
    *Source:* Section 4, L-EAU.  *Assumes:* the attacker knows p(y|x).
    """
    rows = laws("conditionals", conditionals)
    gains = rows @ checked_utility(utility, rows.shape[1]).T
    name = "expected attack utility without output"
    return Figure(float(gains.max(axis=1).mean()), name, True, "", f"{PAPER}, Section 4", "exact")


def mean_supremum(conditionals: Any, utility: Any = None) -> float:
    """Return mean_i E[sup_y u(y, y_i) | x_i], the factor of Theorem 2; arguments as label_independent_utility's."""
    rows = laws("conditionals", conditionals)
    return float((rows @ checked_utility(utility, rows.shape[1]).max(axis=0)).mean())


def weighted_utility(priors: Any) -> Floats:
    """Return u = 1{guess = y}/(2 p_y) as a matrix (k, k); priors (k,) above 0, sum 1.  *Source:* Equation 8."""
    shares = laws("priors", [priors])[0]
    if not bool((shares > 0).all()):
        raise InputError(f"priors = {priors!r}: needs numbers above 0, the utility divides by them")
    return np.diag(1 / (2 * shares))


def checked_utility(utility: Any, labels: int) -> Floats:
    """Return a matrix u(guess, truth) (labels, labels); None: 0/1.

    Raises InputError for what is no such matrix, and for entries below 0 or infinite.
    """
    if utility is None:
        return np.eye(labels)
    wanted = f"needs {labels} by {labels} numbers from 0 up: guess, truth"
    try:
        table = np.asarray(utility, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"utility of type {type(utility).__name__}: {wanted}") from None
    if table.shape != (labels, labels):
        raise InputError(f"utility has shape {table.shape}; {wanted}")
    wrong = ~(np.isfinite(table) & (table >= 0))
    if bool(wrong.any()):
        raise InputError(f"utility = {table[wrong][0]} for some guess; {wanted}, all finite")
    return table


def _advantage(epsilon: Any, delta: Any, factor: float, theorem: str, most: float) -> Figure:
    value = distance(epsilon, delta) * factor
    why = VACUOUS if value >= most else ""
    return Figure(value, "attack advantage", True, why, f"{PAPER}, {theorem}", "claimed")
