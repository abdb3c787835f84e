"""Reports of several labels of a large cluster: an upper bound by a shuffle of the users whose labels are shown.

Reports are drawn from the noisy labels, so they show those of S users, a uniform set whatever the labels are.  Tell S's
size s: what is seen is computed from the shuffled labels of s users out of n, and a set drawn at random protects more
than one that is given (Balle, Barthe, Gaboardi 2018).

*Source:* ``docs/laws.md``, "Several labels".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import guarantee
from p2p_sim.privacy.laws.shuffled_categories import Blanket, every_composition, table_size
from p2p_sim.privacy.mechanisms.peer_to_peer.colluder_knowledge import Colluders

Array = npt.NDArray[np.float64]

COUNTED = 3000
"""Cluster size up to which the law of how many users are shown is computed; beyond, its tail is bounded."""

TABLE = 100_000
"""Probabilities of all histograms up to which a shuffle is computed, beyond which it is bounded."""

FEW_COLLUDERS = 2000
"""Colluders up to which the law of how many labels they know is computed; beyond, each knows one of her own."""

_TAILS = (1e-4, 1e-20)
"""Chances that more users are shown than at the ends of groups of such numbers."""

_FEW = 40  # users of whom it is cheap to look at all, too

_ROUNDED = 1e-10  # more than sums over the numbers of users round away, as a share


@dataclass(frozen=True)
class ShownUsers(Law):
    """A bound for the reports of a cluster of ``size`` users, ``colluders`` of whom join the learner.

    None of them got the victim's label.  ``alpha``: chance that a label is replaced by one of the ``labels`` - 1
    others.  ``theta``: that a user reports.

    *Source:* ``docs/laws.md``, "Several labels"; Balle et al. 2019 (blanket).  *Assumes:* users follow the protocol.
    """

    alpha: float
    theta: float
    size: int
    labels: int
    colluders: int = 0
    closed = False
    symmetric = True

    @property
    def local(self) -> LocalResponse:
        """What one noisy label shows."""
        return LocalResponse.replacing(self.alpha, self.labels)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the bound twice, with nothing below it."""
        upper = _bound(self, epsilon)
        return (Bracket(0.0, upper, upper),) * 2

    def pure(self) -> float:
        """Return the local budget."""
        return self.local.epsilon0

    def pure_bracket(self) -> Bracket:
        """Return the local budget, rounded outward."""
        return self.local.pure_bracket()

    def bound(self, epsilon: float) -> float:
        """Return an upper bound of delta."""
        if_asks_known = self._asked() * self.local.delta(epsilon).upper  # if it were told who asked whom
        cases = ((chance, self._unknown(epsilon, known, if_asks_known)) for chance, known in self._known())
        return min(if_asks_known, math.fsum(chance * found for chance, found in cases) * (1 + _ROUNDED))

    def _known(self) -> list[tuple[float, int]]:
        """Return (chance, number) of the honest others' labels that colluders know at most."""
        colluders = Colluders(self.alpha, self.size, self.colluders)
        if self.size < self.colluders**2 and self.colluders <= FEW_COLLUDERS:  # so many that two ask the same
            return colluders.at_most()
        return [(1.0, colluders.known)]

    def _asked(self) -> float:
        """Return an upper bound of the chance that an honest user who reports asked the victim."""
        if self.size == 1:
            return self.theta
        honest = self.size - self.colluders
        return -math.expm1(honest * math.log1p(-self.theta / self.size)) * (1 + _ROUNDED)

    def _unknown(self, epsilon: float, known: int, if_asks_known: float) -> float:
        """Return the bound where colluders know so many of the honest others' labels."""
        users = self.size - self.colluders - known
        whole = self._shown(epsilon, users, users, if_asks_known) if users <= _FEW else if_asks_known
        above, total = 1.0, 0.0  # of each group of numbers, what the largest shows
        for shown, rest in _groups(self.theta / self.size, self.size - self.colluders, users):
            total += max(0.0, above - rest) * min(whole, self._shown(epsilon, shown, users, if_asks_known))
            above = rest
        return min(whole, total + above * if_asks_known)

    def _shown(self, epsilon: float, shown: int, users: int, if_asks_known: float) -> float:
        """Return the bound where so many of ``users`` are shown: a random set of them, shuffled."""
        if not shown:
            return 0.0
        share = min(1.0, shown / users)
        inner = math.log1p(math.expm1(epsilon) / share) if epsilon < 700 else epsilon - math.log(share)
        if inner >= self.local.epsilon0 * (1 + 1e-12):
            return 0.0
        crowd = _shuffled(shown, self.local.epsilon0, self.labels)
        return min(
            if_asks_known,
            share * min(crowd.delta(inner).upper, self.local.delta(inner).upper) * (1 + _ROUNDED),
        )


@lru_cache(maxsize=512)
def _bound(law: ShownUsers, epsilon: float) -> float:
    """Return the bound, once for a root and its bracket."""
    return law.bound(epsilon)


@lru_cache(maxsize=64)
def _shuffled(users: int, epsilon0: float, labels: int) -> Law:
    """Return the law of the shuffled labels of so many users, or a bound of it."""
    if (far := guarantee(epsilon0, labels)) is not None:
        return far[0]
    if table_size(users, labels) <= TABLE:
        return every_composition(users, epsilon0, labels)
    return Blanket(users, epsilon0, labels)


@lru_cache(maxsize=64)
def _groups(chance: float, askers: int, users: int) -> tuple[tuple[int, float], ...]:
    """Return (number of users, at least the chance that more are shown), from groups of numbers, ascending.

    ``chance``: that one asker asks a certain one of the ``users`` and reports.
    """
    if askers <= COUNTED:
        tails = _tails(chance, askers, users)
        ends = [int(np.argmax(tails <= wanted)) for wanted in _TAILS]
        return tuple((end, float(tails[end])) for end in sorted(set(ends)))
    shown = -math.expm1(askers * math.log1p(-chance))
    return tuple(_far(shown, users))


def _tails(chance: float, askers: int, users: int) -> Array:
    """Return the chances that more than 0, 1, .. users are shown; the last is 0."""
    law = np.zeros(min(askers, users) + 1)
    law[0] = 1.0
    fresh = chance * (
        users - np.arange(len(law), dtype=np.float64)
    )  # that one more asker shows one more user
    for _ in range(askers):
        moved = law * fresh
        law = law - moved
        law[1:] += moved[:-1]
    tails = np.append(np.cumsum(law[::-1])[::-1][1:], 0.0) * (1 + _ROUNDED)
    return np.minimum(1.0, tails)


def _far(shown: float, users: int) -> Iterator[tuple[int, float]]:
    """Yield a number of users, each shown with chance ``shown``, that is hardly ever exceeded, and the chance of more.

    Which are shown is negatively associated (who asks one does not ask another), so Chernoff's bound for independent
    ones holds (Dubhashi and Ranjan 1998).
    """
    target = -math.log(_TAILS[-1]) / users
    low, high = shown, 1.0  # of the share, where the relative entropy is at most, at least the target
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy(middle, shown) < target else (low, middle)
    most = math.ceil(high * users)
    if most < users:
        yield most, _TAILS[-1]
    else:
        yield users, 0.0


def _entropy(share: float, chance: float) -> float:
    """Return the relative entropy of one coin to another, in nats."""
    if share >= 1:
        return -math.log(chance)
    return share * math.log(share / chance) + (1 - share) * (math.log1p(-share) - math.log1p(-chance))
