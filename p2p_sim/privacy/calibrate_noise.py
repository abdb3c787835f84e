"""How much noise a promise needs: the least scale of Laplace or Gaussian noise, accounted for again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.bounds._check import real, whole
from p2p_sim.privacy.calibrate import check_target
from p2p_sim.privacy.compose import composed
from p2p_sim.privacy.profile import Bracket, PrivacyProfile

_NEAR = 1e-9
_FAR = 1e12  # sensitivities; no sum is worth anything under more noise


@dataclass(frozen=True)
class NoiseCalibration:
    """The least noise that keeps a promise.

    ``scale``: sigma of Gaussian noise, the scale of Laplace noise, in units of the sum.  ``profile``: of one release.
    ``achieved``: ε at ``delta`` of all ``times`` releases, in nats, with certified ends; ``slack``: how far its upper
    end stays below ``epsilon``.
    """

    scale: float
    times: int
    epsilon: float
    delta: float
    achieved: Bracket
    slack: float
    profile: PrivacyProfile


def calibrate_noise(
    mechanism: Callable[[float, float], PrivacyProfile],
    *,
    epsilon: float,
    delta: float,
    sensitivity: float = 1.0,
    times: int = 1,
) -> NoiseCalibration:
    """Find the least noise with which ``times`` releases of a sum are together (ε, δ)-private.

    ``mechanism``: ``privacy.laplace`` or ``privacy.gaussian``.  ``epsilon`` >= 0 in nats, ``delta`` in [0, 1).
    ``sensitivity`` > 0: how far one label, replaced, moves the sum (in L1 for Laplace, in L2 for Gaussian noise).
    Raises InputError for arguments out of range, and where no noise will do: delta = 0 for a Gaussian, or epsilon = 0.

    *Source:* bisection over the accountant's δ(ε), which falls with the scale; the scale found is accounted for again.
    """
    check_target(epsilon, delta)
    moved, count = real("sensitivity", sensitivity, 0.0), whole("times", times, 1)
    if moved == 0:
        raise InputError("sensitivity = 0: the sum does not depend on the label; no noise is needed")

    def account(scale: float) -> PrivacyProfile:
        found = mechanism(scale * moved, moved)
        return found if count == 1 else composed(found, count)

    def kept(scale: float) -> bool:
        found = account(scale)
        if delta == 0:  # a delta too small for floats is not 0
            return found.epsilon(0.0) <= epsilon
        return found.delta_bracket(epsilon).upper <= delta

    good = 1.0
    while not kept(good):
        good *= 4
        if good > _FAR:
            raise InputError(
                f"no noise keeps epsilon = {epsilon:g} at delta = {delta:g}: allow more"
                + ("; Gaussian noise never has delta = 0" if delta == 0 else "")
            )
    bad = good / 4
    while kept(bad) and bad > 1 / _FAR:
        good, bad = bad, bad / 4
    while good - bad > _NEAR * good:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if kept(middle) else (good, middle)
    reached = account(good).epsilon_bracket(delta)
    achieved = reached._replace(upper=min(reached.upper, epsilon))  # delta was checked at the target
    slack = epsilon - achieved.upper
    profile = mechanism(good * moved, moved)
    return NoiseCalibration(good * moved, count, float(epsilon), float(delta), achieved, slack, profile)
