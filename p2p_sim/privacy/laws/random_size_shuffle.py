"""Shuffles of a random number of reports: an upper bound of delta from lower bounds on that number.

*Source:* ``docs/laws.md``, "Network shuffle".
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.network.adjacency import matrix
from p2p_sim.network.walks import gap_is_below, spectral_gap, stationary
from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.mixtures import Mixture
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import FULL, ShuffledBits, guarantee
from p2p_sim.privacy.laws.shuffled_categories import shuffled_response

Floats = npt.NDArray[np.float64]

MOST_USERS = 4000
"""Users up to whom the law of every walk is computed; beyond, the spectral gap bounds them all."""

EACH = 300
"""Users up to whom every victim is compared with every other user."""

CUT = 1e-13
"""Probability of places, and of small crowds, at which the victim counts as seen."""

_KINDS = 8  # beyond, victims are grouped by at most so many sets of places
_DENSE = 4.0  # products of sparse matrices are slower than dense ones by this factor
_ULP = 2.0**-53


class Tails(Protocol):
    """P(M >= m) for m = 0 .. their number - 1, not increasing: an array, or what computes those that are looked at."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, m: int, /) -> float:
        """Return P(M >= m)."""


@dataclass(frozen=True)
class CoinTails:
    """The same if each of ``coins`` users is in the crowd with a chance of ``heads``, less ``known`` of them.

    Whoever is known hides nobody: M = 0 if no more than these are in the crowd.  Only a few dozen of millions of tails
    are read, so there is no table of them.
    """

    coins: int
    heads: float
    known: int = 0

    def __len__(self) -> int:
        return self.coins - self.known + 1

    def __getitem__(self, m: int) -> float:
        from scipy.stats import binom

        if not 0 <= m < len(self):  # which ends a loop over it, too
            raise IndexError(f"tail {m} of {len(self):,}")
        return float(binom.sf(m + self.known - 1, self.coins, self.heads)) if m else 1.0


def certain(others: int) -> Tails:
    """Return the tails of a crowd of all ``others``: 1 each."""
    tails: Tails = np.broadcast_to(1.0, others + 1)
    return tails


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


def crowd_size_tails(graph: Members, steps: int, arrives: float = 1.0) -> tuple[Tails, str]:
    """Return a lower bound of P(M >= m) for every user and m = 0 .. users - 1, and how it was found.

    ``graph``: connected, not complete.  ``arrives``: the chance that a report arrives, wherever it walks.  M of any
    victim is at least as large, except with a chance of ``CUT``.
    """
    users = len(graph.codes)
    if users <= MOST_USERS:
        return _exactly(*places(graph, steps), arrives), "from the law of every walk"
    # |p_k(j) / pi_j - 1| <= lambda^t sqrt((1/pi_k - 1) (1/pi_j - 1)) in a reversible chain
    excess = 1 / float(stationary(graph).min()) - 1
    wanted = 1 - excess ** (-1 / steps)  # below it ``far`` is above 1, and no coin is left to count
    if gap_is_below(graph, wanted):
        return np.eye(1, users)[
            0
        ], f"from the spectral gap, which is below the {wanted:.3g} that it would take"
    far = excess * (1 - spectral_gap(graph)) ** steps
    how = f"from the spectral gap, a numerical figure: p(j) is within a share of {far:.3g} of its limit"
    return CoinTails(users - 1, max(0.0, (1 - far) / (1 + far)) * arrives), how


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


LEVELS = (1e-10, 1e-7, 1e-5, 1e-3, 0.05, 0.3, 0.7)
"""Where crowds are cut into groups: each counts as its smallest."""

CUTS = 12
"""Users up to whom every size of a crowd is a group of its own."""

_GROWTH = 1.06  # a group begins where crowds are larger by this factor at least


@dataclass(frozen=True)
class Ceiling(Law):
    """A certified upper bound of a law whose worst composition is only searched for."""

    law: Law
    closed = False

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the bound twice, with nothing below it."""
        most = self.law.ceiling(epsilon)
        return (Bracket(0.0, most, most),) * 2

    def pure(self) -> float:
        """Return that of the law."""
        return self.law.pure()

    def start(self, delta: float) -> float:
        """Begin where the law begins."""
        return self.law.start(delta)


def crowded(tails: Tails, epsilon0: float, labels: int = 2) -> Law:
    """Return an upper bound of what shuffled randomized response shows of one of 1 + M users.

    ``tails``: a lower bound of P(M >= m) for m = 0, 1, ..., not increasing; M may be less with a further chance of
    ``CUT``.  ``epsilon0``: local budget, above 0, nats.
    """
    local = LocalResponse(epsilon0, labels)
    if len(tails) == 1 or tails[1] == 0 or guarantee(epsilon0, labels) is not None:
        return local
    cuts = _cuts(tails)
    first, *below = (1 - float(tails[m]) for m in cuts)  # P(M < m), at most
    ends = [*below, 1.0]
    cases: list[tuple[float, Law]] = [(CUT + first, local)]
    start = 0.0
    for size, end in zip(cuts, ends, strict=True):
        cases.append((end - start, _shuffle(size + 1, epsilon0, labels)))
        start = end
    return Mixture(tuple(cases))


def _cuts(tails: Tails) -> list[int]:
    """Return at which m the groups begin, ascending."""
    if len(tails) <= CUTS:
        return [m for m in range(len(tails)) if tails[m] > 0]
    cuts = [likely(tails, CUT)]
    for level in LEVELS if cuts[0] <= FULL else ():
        size = likely(tails, level)
        cuts += [size] if size >= max(1, _GROWTH * cuts[-1]) else []
    return cuts


def likely(tails: Tails, level: float) -> int:
    """Return the largest m such that M is at least m except with probability ``level``."""
    return bisect_right(range(len(tails)), level, key=lambda m: 1 - tails[m]) - 1


def _shuffle(users: int, epsilon0: float, labels: int) -> Law:
    if labels > 2:
        found = shuffled_response(users, epsilon0, labels).law
        assert found is not None
        return found
    law = ShuffledBits.of(users, epsilon0)
    return law if law.covered else Ceiling(law)
