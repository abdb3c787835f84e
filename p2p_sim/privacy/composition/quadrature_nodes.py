"""Losses of Laplace runs on quadrature nodes, so many that they stand for the density itself."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.composition.laplace_runs import LaplaceRuns
from p2p_sim.privacy.composition.privacy_loss import Points, tidy

Array = npt.NDArray[np.float64]

_U = 2.0**-53

SLACK = 1e-60
"""Most that nodes change a delta by."""


def degree(width: float, ratio: float) -> int:
    """Return to which degree, beyond that of its polynomials, nodes must be exact for an error below ``SLACK``.

    ``width``: of a Laplace run; ``ratio``: of the Gaussian, sensitivity / sigma.  On a cell the nodes are wrong by at
    most twice the distance, times the polynomial's integral, of the rest from polynomials.  The rest, e^(width (t - 1))
    times the Gaussian's delta, is entire; with Phi the normal distribution |Phi(x + iv)| <= e^(v^2 / 2) Phi(x), so that
    |delta(x + iv)| <= 2 e^(v^2 / (2 ratio^2)).
    *Source:* distance from polynomials on a Bernstein ellipse: Trefethen 2013, Theorem 8.2.
    """
    grow = 1 + np.geomspace(1e-4, 1e4, 400)  # sums of the half axes of ellipses around the cell
    real, imaginary = (grow + 1 / grow) / 2, width * (grow - 1 / grow) / 2
    most = math.log(2) + (imaginary / ratio) ** 2 / 2 + width * (real - 1) / 2
    most += math.log(4) - np.log(grow - 1) + width  # the polynomials' integrals together are at most e^width
    return math.ceil(float(((most - math.log(SLACK)) / np.log(grow)).min()))


def nodes(laplace: LaplaceRuns, count: int) -> Points:
    """Return the losses of Laplace runs on ``count`` nodes a cell, in either direction.

    *Source:* Fejer's first rule: exact for degrees below ``count``, with positive weights.  *Assumes:* scipy's gammaln,
    and sines, cosines and exponentials, are right to four units in the last place.
    """
    k, width = laplace.runs, laplace.width
    t, rest, weights = fejer(count)
    whole = laplace.cells[:, : (k + 1) // 2]
    along = weights * np.exp(-width * rest)
    masses = along[:, None] * (bernstein(t, rest, k - 1) @ whole)
    places = np.add.outer(2 * t, k - 2.0 - 2 * np.arange(whole.shape[1])) * width
    mirrored = slice(0, k // 2)  # except for the cell in the middle
    back, other = masses[:, mirrored], places[:, mirrored]
    losses = np.r_[places.ravel(), -other.ravel(), width * (k - 2.0 * np.arange(k + 1))]
    found = np.r_[masses.ravel(), (back * np.exp(-other)).ravel(), laplace.atoms]
    return tidy(Points(losses, found, 0.0, laplace.shift, laplace.error + rounding(laplace, count), 0.0))


def rounding(laplace: LaplaceRuns, count: int) -> float:
    """Return the relative error that weights, exponentials and Bernstein polynomials add to a mass on a node."""
    return (8 * count + 12 * math.lgamma(laplace.runs) + 8 * laplace.runs * (1 + laplace.width) + 6000) * _U


def fejer(count: int) -> tuple[Array, Array, Array]:
    """Return nodes t in (0, 1), 1 - t and weights; both t and 1 - t with a small relative error."""
    turn = 2 * np.arange(count) + 1
    t, rest = (np.square(f(turn * (math.pi / (4 * count)))) for f in (np.sin, np.cos))
    m = np.arange(1, count // 2 + 1)
    waves = np.cos(np.multiply.outer(turn, m) % (2 * count) * (math.pi / count))
    return t, rest, (1 - 2 * (waves / (4.0 * m**2 - 1)).sum(axis=1)) / count


def bernstein(t: Array, rest: Array, degree: int) -> Array:
    """Return the Bernstein polynomials at each t, shape (t, degree + 1)."""
    from scipy.special import gammaln

    m = np.arange(degree + 1)
    ways = gammaln(degree + 1.0) - gammaln(m + 1.0) - gammaln(degree - m + 1.0)
    logs = ways + np.multiply.outer(np.log(t), m) + np.multiply.outer(np.log(rest), degree - m)
    return np.asarray(np.exp(logs), np.float64)
