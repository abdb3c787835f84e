"""Bounds on what the reports of a victim's neighbours reveal of her noisy bit when all others are known.

A neighbour j of degree d, among whose other neighbours s have a noisy 1, reports (with probability theta) a 1 with
probability (s + b)/d, b the victim's bit.  From b = 1 to 0 the hockey-stick divergence is theta/d (1 - (x - 1) s)+ at
x = e^epsilon, from 0 to 1 it is the same for the zeros, d - 1 - s.  So with m the fewer of both, the report tells no
more than a *vote*: with probability theta (2m + 1)/d an answer to b that is right with odds (m + 1) : m, else none.

Two bounds follow; each holds for all labels, since s is least, in every tail, where all of them are 0.

Fresh: take the neighbours one after the other.  Of j's other neighbours, f were not met before: their bits are as yet
unseen, and of these at least Bin(f, alpha) are ones (or zeros), whatever the rest: the vote is with m = Bin(f, alpha),
which is revealed.  Votes are independent mechanisms, each of which may depend on what came before: they compose.

Least: all votes are at most as good as with the least m of all neighbours, of which P(m < x) is at most the sum of
those of each.

*Source:* ``docs/laws.md``, "Peers among neighbours"; adaptive composition of dominating pairs (Dong, Roth, Su 2019;
Zhu, Dong, Wang 2022).
*Assumes:* users draw their peers independently of labels and of each other, and nobody herself.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.composition.composed_law import together
from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.mixtures import Mixture

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST = 1000
"""Neighbours up to which the first bound is computed."""

CUT = 1e-15
"""Probability of a least m that counts as 0."""

_KINDS = 4  # of votes that are composed
_LEVELS = 24  # of the least m
_ULP = 2.0**-53


@dataclass(frozen=True, eq=False)
class VoteSum(Law):
    """Some votes with the same m, right with odds (m + 1) : m: ``chances`` of right minus wrong, -n .. n of them."""

    m: int
    chances: Floats

    @classmethod
    def of(cls, m: int, given: Floats) -> VoteSum:
        """Return the tally of votes that are given with some probabilities, shape (n,)."""
        law = np.ones(1)
        for chance in given:
            law = np.convolve(law, [chance * m / (2 * m + 1), 1 - chance, chance * (m + 1) / (2 * m + 1)])
        return cls(m, law)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Sum the positive parts: the same in both directions."""
        over, under = self.chances, self.chances[::-1]
        paid = np.exp(np.minimum(epsilon, 700.0)) * under
        mask = over > paid
        error = (len(over) + 16) * 8 * _ULP * float((over[mask] + paid[mask]).sum())
        found = Bracket.around(float((over[mask] - paid[mask]).sum()), error)
        return found, found

    def pure(self) -> float:
        """Return the loss if all votes are given, and agree."""
        answers = len(self.chances) // 2
        return math.inf if not self.m and answers else answers * math.log1p(1 / max(1, self.m))


@dataclass(frozen=True)
class AfterRandomizedResponse(Law):
    """What a law of a noisy bit shows of the bit itself, which was flipped with probability ``alpha`` in (0, 1/2).

    *Source:* for Q = (1 - alpha) P + alpha P', E_x(Q, Q') = (1 - alpha - x alpha) E_y(P, P') with
    y = (x (1 - alpha) - alpha) / (1 - alpha - x alpha).
    """

    alpha: float
    law: Law
    closed = False

    @property
    def local(self) -> float:
        """The local budget, nats."""
        return math.log1p(-self.alpha) - math.log(self.alpha)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return those of the noisy bit, further out and less."""
        if epsilon >= self.local:
            return (Bracket(0.0, 0.0, 0.0),) * 2
        keep = -(1 - self.alpha) * math.expm1(epsilon - self.local)
        at = (
            epsilon
            + math.log1p(-math.exp(-epsilon - self.local))
            - math.log(-math.expm1(epsilon - self.local))
        )
        at = max(0.0, at * (1 - 1e-12) - 1e-15)
        if at >= self.law.pure():
            return (Bracket(0.0, 0.0, 0.0),) * 2
        first, second = self.law.directions(at)
        return _times(keep, first), _times(keep, second)

    def pure(self) -> float:
        """Return the local budget, or what the largest loss of the noisy bit comes to."""
        inner = self.law.pure()
        if inner > 700:
            return self.local
        x = math.exp(inner)
        return min(
            self.local, math.log(((1 - self.alpha) * x + self.alpha) / (self.alpha * x + 1 - self.alpha))
        )


@dataclass(frozen=True)
class Least(Law):
    """The least of several upper bounds."""

    laws: tuple[Law, ...]
    closed = False

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the least of each direction."""
        zero = Bracket(0.0, 0.0, 0.0)
        pairs = [law.directions(epsilon) if epsilon < law.pure() else (zero, zero) for law in self.laws]
        first, second = (min((pair[side] for pair in pairs), key=lambda one: one.upper) for side in range(2))
        return first, second

    def pure(self) -> float:
        """Return the least."""
        return min(law.pure() for law in self.laws)

    def start(self, delta: float) -> float:
        """Begin where the least epsilon of a closed form is."""
        return min((law.epsilon(delta) for law in self.laws if law.closed), default=0.1)


def fresh(alpha: float, theta: float, degrees: Ints, unseen: Ints) -> Law:
    """Return the first bound: of neighbours' degrees, and of how many of each one's other neighbours are unseen."""
    kinds = Counter(zip(degrees.tolist(), _grouped(degrees, unseen).tolist(), strict=True))
    answers: list[tuple[Law, int]] = [
        (_answer(alpha, theta / d, f), times) for (d, f), times in kinds.items()
    ]
    return AfterRandomizedResponse(alpha, together(answers)[0])


def least(alpha: float, theta: float, degrees: Ints) -> Law:
    """Return the second bound."""
    from scipy.stats import binom

    m = np.arange(int(degrees.min()))
    kinds, times = np.unique(degrees, return_counts=True)
    below = 2 * (times[:, None] * binom.cdf(m, kinds[:, None] - 1, alpha)).sum(axis=0) * (1 + 1e-12)
    first = int(np.searchsorted(below, CUT, "right"))  # the least m is less with probability ``CUT`` at most
    last = min(int(np.searchsorted(below, 1.0)), len(m) - 1)
    levels = np.unique(np.linspace(min(first, last), last, _LEVELS).astype(np.int64))
    # of the least m, only that it is below the next level is known: so it counts as this one
    upto = [*np.minimum(1.0, below[levels[1:] - 1]).tolist(), 1.0]
    cases: list[tuple[float, Law]] = [(CUT, _tally(0, theta, degrees))] if levels[0] else []
    before = 0.0
    for level, reached in zip(levels.tolist(), upto, strict=True):
        cases.append((reached - before, _tally(level, theta, degrees)))
        before = reached
    return AfterRandomizedResponse(alpha, Mixture(tuple(cases)))


def _tally(m: int, theta: float, degrees: Ints) -> VoteSum:
    return VoteSum.of(m, np.minimum(1.0, theta * (2 * m + 1) / degrees))


def _answer(alpha: float, share: float, unseen: int) -> Atoms:
    """Return one vote; ``share``: theta over the neighbour's degree."""
    from scipy.stats import binom

    m = np.arange(unseen + 1)
    weight = share * binom.pmf(m, unseen, alpha)
    right, wrong = weight * (m + 1), weight * m
    none = max(0.0, 1 - float(right.sum() + wrong.sum()))
    first, second = np.concatenate([wrong, right, [none]]), np.concatenate([right, wrong, [none]])
    some = first + second > 0
    return Atoms(first[None, some], second[None, some])


def _grouped(degrees: Ints, unseen: Ints) -> Ints:
    """Return numbers of unseen users, made smaller so that there are few for each degree."""
    out = unseen.copy()
    for degree in np.unique(degrees):
        at = np.flatnonzero(degrees == degree)
        for part in np.array_split(at[np.argsort(unseen[at])], _KINDS):
            if len(part):
                out[part] = unseen[part].min()
    return out


def _times(factor: float, bracket: Bracket) -> Bracket:
    low, value, high = bracket
    return Bracket(factor * low * (1 - 1e-14), factor * value, min(1.0, factor * high * (1 + 1e-14)))
