"""Privacy amplification by shuffling: the closed form, the two clone bounds and the privacy blanket.

Every function takes ``users`` n >= 1, the ``local_epsilon`` >= 0 (nats) of each user's randomizer, and ``colluders``
0 <= t < n whose messages the analyst knows: n - t users remain.  All assume an honest shuffler.

*Source:* ``docs/laws.md``, "Shuffle bounds as published".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds._binomial import (
    Floats,
    log_pmf,
    log_sum,
    log_upper_half,
    meets,
    nodes,
)
from p2p_sim.privacy.bounds._blanket import log_blanket, log_hoeffding
from p2p_sim.privacy.bounds.bound import Bound, fails, one_of, real, whole

MOST_USERS = 10**10
EXACT, COARSE = 1 << 14, 1 << 12
"""Up to EXACT clone counts are summed one by one; more are summed in COARSE groups, each taken at its least."""
SLACK = 1e-9
"""Numbers are rounded up by this share of delta, above the error of the sums (tested against fractions)."""
TAIL = 40.0
"""Clone counts rarer than e^-40 of the delta asked for are bounded, not summed."""
FMT = "Hiding among the clones (Feldman, McMillan, Talwar 2021)"
BALLE = "The privacy blanket of the shuffle model (Balle, Bell, Gascon, Nissim 2019)"


def fmt2021_theorem(users: Any, local_epsilon: Any, delta: Any, colluders: Any = 0) -> Bound:
    """Return ln(1 + (e^e0 - 1)/(e^e0 + 1) (A + C)), A = 8 sqrt(e^e0 ln(4/delta)/n), C = 8 e^e0 / n.

    delta >= 0.  Raises InputError outside.  Conditions: e0 <= ln(n / (16 ln(2/delta))), delta > 0.
    *Source:* FMT 2021, the closed form of its theorem.  *Assumes:* any pure local randomizer.
    """
    n, local = _crowd(users, local_epsilon, colluders)
    return _closed_form(n, local, real("delta", delta, 0.0), 2.0, f"{FMT}, closed form")


def fmt2021_code(users: Any, local_epsilon: Any, delta: Any, colluders: Any = 0) -> Bound:
    """Return the looser form that the authors' code computes, (1 - e^-e0)(A + C)/(1 + e^-e0/(1 + A + C)) in ln(1 + .).

    Arguments and trust as for ``fmt2021_theorem``.  Conditions: e0 <= ln(n / (16 ln(4/delta))), delta > 0.
    *Source:* FMT 2021, the published code.
    """
    n, local = _crowd(users, local_epsilon, colluders)
    return _closed_form(n, local, real("delta", delta, 0.0), 4.0, f"{FMT}, closed form of the authors' code")


def _closed_form(n: int, local: float, delta: float, inside: float, source: str) -> Bound:
    if delta >= 1 or local == 0:
        return _free(delta, source)
    if delta == 0:
        return fails("delta = 0: the closed form needs delta > 0", source, "claimed", 0.0)
    limit = math.log(n / 16) - math.log(math.log(inside) - math.log(delta))
    if local > limit:
        why = f"local epsilon = {local:g} above ln(n / (16 ln({inside:g}/delta))) = {limit:.6g}, n = {n}"
        return fails(why, source, "claimed", delta)
    exp_epsilon = math.exp(local)
    both = 8 * math.sqrt(exp_epsilon * (math.log(4) - math.log(delta)) / n) + 8 * exp_epsilon / n
    if inside == 2:
        return Bound(math.log1p(math.tanh(local / 2) * both), delta, True, "", source, "claimed")
    value = -math.expm1(-local) * both / (1 + math.exp(-local) / (1 + both))
    return Bound(math.log1p(value), delta, True, "", source, "claimed")


def clone(
    users: Any, local_epsilon: Any, delta: Any = None, epsilon: Any = None, colluders: Any = 0
) -> Bound:
    """Return the bound by e^-e0 clones, summed exactly; give delta and get epsilon, or the other way round.

    delta >= 0, epsilon >= 0 in nats; users to 10^10 (above about 1e6 counts of clones are grouped, rounding up).
    Raises InputError outside.  Always applies.
    *Source:* FMT 2021, the numerical form of its theorem.  *Assumes:* any pure local randomizer.
    """
    n, local = _crowd(users, local_epsilon, colluders)
    return _clones(n, local, math.exp(-local), delta, epsilon, f"{FMT}, numerical, e^-e0 clones")


def clone_stronger(
    users: Any, local_epsilon: Any, delta: Any = None, epsilon: Any = None, colluders: Any = 0
) -> Bound:
    """Return the bound by 2/(e^e0 + 1) clones; arguments as for ``clone``.

    *Source:* Feldman, McMillan, Talwar 2023, Stronger privacy amplification by shuffling; Wang et al. 2023,
    Privacy amplification via shuffling: unified, simplified, and tightened.
    *Assumes:* binary randomized response (proved: what non-clones show is given away); for any other pure local
    randomizer the papers claim it (k-ary ones are checked by enumeration).
    """
    n, local = _crowd(users, local_epsilon, colluders)
    chance = 2 * math.exp(-local) / (1 + math.exp(-local))
    return _clones(n, local, chance, delta, epsilon, "FMT 2023; Wang et al. 2023, 2/(e^e0+1) clones")


def _clones(n: int, local: float, chance: float, delta: Any, epsilon: Any, source: str) -> Bound:
    def curve(tail: float) -> Callable[[float], float]:
        counts, weights, left = nodes(n - 1, chance, tail, EXACT, COARSE)
        return lambda x: float(np.logaddexp(log_sum(weights + _log_delta_of(counts, local, x)), left))

    return _solve(curve, local, delta, epsilon, source)


def _log_delta_of(c: Floats, local: float, epsilon: float) -> Floats:
    """Return ln delta(epsilon) with c clones that each show 0 or 1 with equal chance, c a column.

    Of m = c + 1 bits a are 1; the likelihood ratio grows with a, so delta is a difference of two binomial tails.
    """
    if epsilon >= local:
        return np.full(c.shape, -np.inf)
    m = c + 1
    share = -math.expm1(-epsilon - local) / (-math.expm1(-local) * (1 + math.exp(-epsilon)))
    least = np.minimum(np.floor(share * m) + 1, m)
    gain = -math.log1p(math.exp(-local)) + math.log(-math.expm1(epsilon - local)) + log_pmf(least - 1, c, 0.5)
    if epsilon == 0:
        return gain
    loss = epsilon + math.log(-math.expm1(-epsilon)) + log_upper_half(least, c)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(loss >= gain, -np.inf, gain + np.log1p(-np.exp(np.minimum(loss - gain, 0.0))))


def blanket(
    users: Any,
    local_epsilon: Any,
    delta: Any = None,
    epsilon: Any = None,
    labels: Any = 2,
    colluders: Any = 0,
) -> Bound:
    """Return the privacy blanket bound of k-ary randomized response, its expectation summed.

    labels k >= 2; the rest as for ``clone``.  For k = 2 it is the stronger clone bound.  For k > 2 users to 1e6
    (above about 500 blanket sizes are grouped, rounding up), and a local epsilon
    above 100 or a delta in (0, 1e-250) is answered by the local epsilon itself.
    Raises InputError outside.
    *Source:* Balle et al. 2019, the bound before concentration.  *Assumes:* k-ary randomized response.
    """
    n, local = _crowd(users, local_epsilon, colluders)
    k, source = whole("labels", labels, 2), f"{BALLE}, k-ary randomized response"
    if k == 2:
        chance = 2 * math.exp(-local) / (1 + math.exp(-local))
        return _clones(n, local, chance, delta, epsilon, source)
    if n > 1_000_000:
        raise InputError(f"users = {n}: needs at most 1000000 for labels = {k}; blanket_hoeffding takes more")
    asked = one_of(delta=delta, epsilon=epsilon)
    if local > 100 or (asked == "delta" and 0 < real("delta", delta, 0.0) < 1e-250):
        return _pure(local, delta, epsilon, source)
    return _solve(lambda tail: log_blanket(n, local, k, tail), local, delta, epsilon, source)


def blanket_hoeffding(
    users: Any,
    local_epsilon: Any,
    delta: Any = None,
    epsilon: Any = None,
    labels: Any = 2,
    colluders: Any = 0,
) -> Bound:
    """Return the privacy blanket bound of k-ary randomized response with Hoeffding's inequality: closed, looser.

    Arguments and trust as for ``blanket``, any number of users to 10^10; never above the local epsilon.
    *Source:* Balle et al. 2019, by Hoeffding.
    """
    n, local = _crowd(users, local_epsilon, colluders)
    k, source = whole("labels", labels, 2), f"{BALLE}, by Hoeffding"
    return _solve(lambda _: log_hoeffding(n, local, k), local, delta, epsilon, source)


def _solve(
    curve: Callable[[float], Callable[[float], float]], local: float, delta: Any, epsilon: Any, source: str
) -> Bound:
    """Return the pair: the other of delta and epsilon, from a falling ln delta(epsilon) that depends on a tail."""
    if one_of(delta=delta, epsilon=epsilon) == "epsilon":
        epsilon = real("epsilon", epsilon, 0.0)
        if epsilon >= local:
            return Bound(epsilon, 0.0, True, "", source, "upper")
        value = math.exp(curve(745.0)(epsilon)) * (1 + SLACK)
        return Bound(epsilon, min(1.0, value), True, "", source, "upper")
    delta = real("delta", delta, 0.0)
    if delta >= 1 or local == 0:
        return _free(delta, source)
    if delta == 0:
        return Bound(local, 0.0, True, "delta = 0: the local epsilon itself", source, "upper")
    level = math.log(delta)
    return Bound(meets(curve(TAIL - level), level - SLACK, local), delta, True, "", source, "upper")


def _pure(local: float, delta: Any, epsilon: Any, source: str) -> Bound:
    why = "beyond the range of the sum: the local guarantee"
    if delta is not None:
        return Bound(local, real("delta", delta, 0.0), True, why, source, "upper")
    epsilon = real("epsilon", epsilon, 0.0)
    spread = -math.expm1(epsilon - local) if epsilon < local else 0.0
    return Bound(epsilon, spread, True, why, source, "upper")


def _free(delta: float, source: str) -> Bound:
    why = "delta of 1 or more asks for nothing" if delta >= 1 else "local epsilon = 0: no label is used"
    return Bound(0.0, delta, True, why, source, "upper")


def _crowd(users: Any, local_epsilon: Any, colluders: Any) -> tuple[int, float]:
    n = whole("users", users, 1, MOST_USERS)
    t = whole("colluders", colluders, 0, n - 1)
    return n - t, real("local_epsilon", local_epsilon, 0.0)
