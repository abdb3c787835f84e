"""How well features alone tell labels that are Gaussian around unit vectors: by one integral, exactly."""

from __future__ import annotations

import math
from typing import Any

from p2p_sim.core.argument_checks import check_whole
from p2p_sim.privacy.bounds.bound import Figure, real

SOURCE = "Attacks 2023, section 5.1, by quadrature"


def label_independent_utility(labels: Any, deviation: Any) -> Figure:
    """Return L-EAU where x given y = c is N(e_c, deviation^2 I), e_c the unit vectors, and labels are equally likely.

    ``labels``: k, at least 2; ``deviation`` above 0, of each feature.  Utility 0/1.  The best guess is the largest
    feature, so this is the chance that the true label's one is it: the integral of phi(u) Phi(u + 1/deviation)^(k-1).
    Features beyond the first k tell nothing.  Raises InputError.

    *Source:* Bayes; section 4 of the paper for L-EAU.  *Assumes:* the attacker knows the law of features.
    """
    from scipy.integrate import quad
    from scipy.special import log_ndtr

    check_whole("labels", labels, 2)
    away = 1 / real("deviation", deviation, 1e-6, 1e6)

    def density(u: float) -> float:
        return math.exp(-u * u / 2 + (labels - 1) * float(log_ndtr(u + away))) / math.sqrt(2 * math.pi)

    middle = math.sqrt(2 * math.log(labels))
    value = quad(density, -10, 10, epsabs=1e-12, epsrel=1e-10, limit=200, points=(0.0, middle))[0]
    return Figure(float(value), "expected attack utility without output", True, "", SOURCE, "exact")
