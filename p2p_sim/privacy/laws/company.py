"""How many others hide a user's report after a walk: a lower bound, from where all the walks may have ended.

Let p_k(j) be the chance that user k's report is at j after the walk.  For a victim i and another user k let
c_k = min p_k(j) / p_i(j) over the j that the victim's report can reach: then p_k = c_k p_i + (1 - c_k) (another law),
and k's report is placed just as the victim's with probability c_k.  Tell the adversary of which others it is not, with
their reports.  Those left lie at places that are independent and of one law, so all that is left to see is which
labels there are among them: the shuffle of the victim and M others, M a sum of independent coins c_k.  A shuffle of
more users tells no more; so a law of M that is smaller, in every tail, gives an upper bound.

Places that the victim's report hardly ever reaches may be left out of the minimum: there she counts as seen.

*Source:* the privacy blanket's argument (Balle, Bell, Gascon, Nissim 2019), applied to places instead of labels.
*Assumes:* walks are independent and do not depend on labels; the adversary sees where they end, not the ways.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.network.adjacency import matrix
from p2p_sim.network.walks import spectral_gap, stationary

Floats = npt.NDArray[np.float64]

MOST_USERS = 4000
"""Users up to whom the law of every walk is computed; beyond, the spectral gap bounds them all."""

EACH = 300
"""Users up to whom every victim is compared with every other user."""

CUT = 1e-13
"""Probability of places, and of small crowds, at which the victim counts as seen."""

_KINDS = 8  # sets of places, at most, by which victims are told apart beyond
_DENSE = 4.0  # products of sparse matrices do so much less a second than dense ones
_ULP = 2.0**-53


def places(graph: Members, steps: int) -> tuple[Floats, float]:
    """Return the law of every walk's end, shape (users, users), and a bound of its entries' relative errors.

    Entry (j, k) is the chance that k's report is at j.  ``graph``: sparse, not complete.
    """
    degree, users, ones = graph.size.astype(np.float64)[:, None], len(graph.codes), matrix(graph)
    if steps * ones.nnz * _DENSE < 2 * users**2 * steps.bit_length():
        out = np.eye(users)
        for _ in range(steps):
            out = ones @ (out / degree)
        return out, steps * (float(degree.max()) + 3) * _ULP
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):  # sums over several threads are rounded differently
        out = np.linalg.matrix_power(ones.toarray() / degree.T, steps)
    return out, steps * (users + 3.0) * _ULP


def company(graph: Members, steps: int, arrives: float = 1.0) -> tuple[Floats, str]:
    """Return a lower bound of P(M >= m) for every user and m = 0 .. users - 1, and how it was found.

    ``graph``: connected, not complete.  ``arrives``: the chance that a report arrives, wherever it walks.  M of
    any victim is at least as large, but for a chance of ``CUT``.
    """
    users = len(graph.codes)
    if users <= MOST_USERS:
        return _exactly(*places(graph, steps), arrives), "from the law of every walk"
    # |p_k(j) / pi_j - 1| <= lambda^t sqrt((1/pi_k - 1) (1/pi_j - 1)) in a reversible chain
    far = (1 / float(stationary(graph).min()) - 1) * (1 - spectral_gap(graph)) ** steps
    how = f"from the spectral gap, a numerical figure: p(j) is within a share of {far:.3g} of its limit"
    return _alike(users, max(0.0, (1 - far) / (1 + far)) * arrives), how


def _exactly(laws: Floats, error: float, arrives: float) -> Floats:
    tails = np.ones(len(laws))
    for victims in _groups(laws):
        top = laws[:, victims].max(axis=1)
        rare = np.argsort(top)
        often = rare[np.cumsum(top[rare]) > CUT]
        coins = (laws[often] / top[often, None]).min(axis=0) * (max(0.0, 1 - 2 * error - 2 * CUT) * arrives)
        coins[victims[int(coins[victims].argmax())]] = 0.0  # the victim's own is none of the others'
        tails = np.minimum(tails, _tails(coins))
    return tails


def _groups(laws: Floats) -> list[npt.NDArray[np.int64]]:
    """Return groups of victims who are bounded together: each alone, or all who can reach the same places."""
    users = len(laws)
    if users <= EACH:
        return [np.array([i]) for i in range(users)]
    _, kind = np.unique(np.packbits(laws > 0, axis=0), axis=1, return_inverse=True)
    kinds = int(kind.max()) + 1
    return [np.flatnonzero(kind == i) for i in range(kinds)] if kinds <= _KINDS else [np.arange(users)]


def _tails(coins: Floats) -> Floats:
    """Return P(at least m of some independent coins show heads), m = 0 .. their number - 1, rounded down."""
    mass = np.zeros(len(coins) + 1)
    mass[0] = 1.0
    for coin in coins[coins > 0]:
        mass[1:] = mass[1:] * (1 - coin) + mass[:-1] * coin
        mass[0] *= 1 - coin
    below = np.concatenate([[0.0], np.cumsum(mass)])[: len(coins)]
    return np.maximum(0.0, 1 - below * (1 + 8 * (len(coins) + 2) * _ULP))


def _alike(users: int, coin: float) -> Floats:
    """Return the same where all others' coins are alike."""
    from scipy.stats import binom

    return np.asarray(binom.sf(np.arange(users) - 1, users - 1, coin))
