"""Profiles of known mechanisms by their parameters, for whoever uses one outside a protocol of this package."""

from __future__ import annotations

from dataclasses import replace

from p2p_sim.privacy.bounds._check import real, whole
from p2p_sim.privacy.laws import categories
from p2p_sim.privacy.laws.combine import Nothing
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.profile import PrivacyProfile


def shuffled_response(users: int, epsilon0: float, labels: int = 2, *, colluders: int = 0) -> PrivacyProfile:
    """Return what the shuffled reports of randomized response show of one label.

    ``users``: at least 1.  ``epsilon0``: local budget, at least 0, nats.  ``labels``: 2 to 256.  ``colluders``: users
    who give their reports away, 0 to users - 1: what is left is the shuffle of the others.  Two labels: exact up to
    20,000 users; beyond, a value from a search with certified ends, basis "lower".  More labels: exact over all
    compositions while they fit in a table (21 users of 3 labels do); beyond, the privacy blanket, basis "upper".
    A local budget above 700 is answered by the local guarantee, basis "upper" ("exact" if it is infinite).  Raises
    InputError for parameters out of range.

    *Source:* exact by convolution; Balle, Bell, Gascon, Nissim 2019 (blanket).  *Assumes:* an honest shuffler.
    """
    n, kinds = whole("users", users, 1, 10**10), whole("labels", labels, 2, 256)
    t, local = whole("colluders", colluders, 0, n - 1), real("epsilon0", epsilon0, 0.0, infinite=True)
    if local == 0:
        return PrivacyProfile("shuffled reports", "exact", "no report depends on a label", (), "", Nothing())
    found = categories.shuffled_response(n - t, local, kinds)
    return replace(found, assumes=(*found.assumes, f"{t} of {n} users give their reports away"))


def laplace(scale: float, sensitivity: float = 1.0) -> PrivacyProfile:
    """Return what a sum released with Laplace noise of scale ``scale`` > 0 shows of one label.

    ``sensitivity``: how far one label, replaced, moves the sum (not a mean), at least 0: 1 for a count of one label, 2
    in L1 for a histogram of labels.  Raises InputError for parameters out of range.

    *Source:* Dwork, McSherry, Nissim, Smith 2006; the hockey-stick divergence integrated.  *Assumes:* continuous noise.
    """
    return _noisy(
        Laplace(real("scale", scale, 0.0), real("sensitivity", sensitivity, 0.0)), "Dwork et al. 2006"
    )


def gaussian(sigma: float, sensitivity: float = 1.0) -> PrivacyProfile:
    """Return what a sum released with Gaussian noise of standard deviation ``sigma`` > 0 shows of one label.

    ``sensitivity``: how far one label, replaced, moves the sum (not a mean), at least 0: 1 for a count of one label,
    sqrt(2) in L2 for a histogram of labels.  Raises InputError for parameters out of range.

    *Source:* Balle and Wang 2018, Theorem 8.  *Assumes:* continuous noise.
    """
    law = Gaussian(real("sigma", sigma, 0.0), real("sensitivity", sensitivity, 0.0))
    return _noisy(law, "Balle and Wang 2018, Theorem 8")


def _noisy(law: Laplace | Gaussian, source: str) -> PrivacyProfile:
    return PrivacyProfile("noisy sum", "exact", source, ("continuous noise",), "", law)
