"""Shuffled binary randomized response: the number of reported ones, with colluders or without."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.branch_and_bound import Maximum, climb, search
from p2p_sim.privacy.law import ZERO, Bracket, Law, root
from p2p_sim.privacy.laws.binomial_tails import halves, noisy_ones, reach
from p2p_sim.privacy.laws.bit_count_pmf import (
    bit_count_pmf,
    bits_error,
    compositions,
    listed_pair,
    no_underflow,
)
from p2p_sim.privacy.laws.randomized_response import LocalResponse, local_epsilon

CUTS = (1e-20, 1e-60, 1e-290)
FULL = 20_000
"""Users up to which every composition is covered; beyond, some are, and one bound holds for the rest."""
WIDE = 100_000
"""Variance of the ones beyond which few bounds hold for all compositions and few are tried: 508,000 users at 1 nat."""
FAR = 700.0
"""Local budgets beyond are too close to none for e^-epsilon0 to be promised from 0."""

LISTED = 40
"""Users up to which the outcomes of each composition are listed, where none is rarer than floats can tell."""

_LONG = 4_000  # outcomes from which a law is not written out
_PARTS = 16  # blocks of compositions in a wide crowd
_FEW = 300  # users up to which every composition is computed however small delta is
_FAINT = 1e-281  # deltas below are not promised from what the last cut leaves out
_ROUND = 1e-15  # relative error of a product of a few floats


def guarantee(epsilon0: float, labels: int = 2) -> tuple[LocalResponse, str] | None:
    """Return what a local budget beyond ``FAR`` promises without any shuffle, and its basis; None for others.

    It is what the shuffle shows where all others say the same label, except for n e^-epsilon0; at an infinite budget
    the reports tell all.
    """
    if epsilon0 <= FAR:
        return None
    return LocalResponse(epsilon0, labels), "upper" if epsilon0 < math.inf else "exact"


@dataclass(frozen=True)
class ShuffledBits(Law):
    """What a shuffler's output shows of one of ``size`` users who flip their bits with probability ``alpha``.

    ``colluders``: users who give away their bits, 0 to size - 1: delta is that of size - colluders users.
    ``composition``: ones among the other honest users; None for the worst.  ``side``: only the direction from 0 to 1.
    ``epsilon0``: the local budget if that is what is given, of which ``alpha`` is rounded; None: ``alpha`` is given.
    Budgets beyond ``FAR`` are answered by the local guarantee.  Raises InputError for parameters out of range.

    *Source:* ``docs/laws.md``, "Shuffled bits": K = Bin(n1, 1 - a) + Bin(n - n1, a), exact by tails.
    *Assumes:* the shuffler hides who sent what, and does not collude.
    """

    alpha: float
    size: int
    colluders: int = 0
    composition: int | None = None
    side: bool = False
    epsilon0: float | None = None

    def __post_init__(self) -> None:
        local_epsilon(self.alpha)
        whole = "must be an integer"
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise InputError(f"size = {self.size!r}: {whole}, at least 1")
        if not isinstance(self.colluders, int) or not 0 <= self.colluders < self.size:
            raise InputError(f"colluders = {self.colluders!r}: {whole} from 0 to size - 1 = {self.size - 1}")
        ones = self.composition
        if ones is not None and (not isinstance(ones, int) or not 0 <= ones <= self.others):
            raise InputError(
                f"composition = {ones!r}: {whole} from 0 to {self.others}, or None for the worst"
            )
        if self.epsilon0 is not None and self.alpha != _alpha(self.epsilon0):
            raise InputError(f"flip = {self.alpha!r}: contradicts epsilon0 = {self.epsilon0!r}; use of()")

    @classmethod
    def of(
        cls, size: int, epsilon0: float, *, colluders: int = 0, composition: int | None = None
    ) -> ShuffledBits:
        """Return the law for a local budget ``epsilon0`` >= 0, in nats, which may be infinite."""
        return cls(_alpha(epsilon0), size, colluders, composition, epsilon0=epsilon0)

    @property
    def local(self) -> float:
        """The local budget, nats."""
        return local_epsilon(self.alpha) if self.epsilon0 is None else self.epsilon0

    @property
    def others(self) -> int:
        """Honest users beside the victim."""
        return self.size - self.colluders - 1

    @property
    def covered(self) -> bool:
        """Whether every composition is computed or lies in a block whose bound is inside the bracket."""
        return self.composition is not None or self.size <= FULL

    @property
    def slow(self) -> bool:
        """Whether not all compositions are covered, which takes long to search."""
        return not self.covered

    @property
    def wide(self) -> bool:
        """Whether the crowd is too large to search its compositions."""
        variance = self.others * self.alpha * (1 - self.alpha)
        return self.composition is None and self.local <= FAR and variance > WIDE

    @property
    def symmetric(self) -> bool:
        """Whether the composition is the worst: over all, both directions are as bad."""
        return self.composition is None

    @property
    def listed(self) -> bool:
        """Whether the outcomes of each composition are listed."""
        few = self.others < LISTED and self.alpha > 0 and self.local <= FAR
        return few and no_underflow(self.alpha, self.others + 1)

    def alternatives(self) -> tuple[Law, ...]:
        """Return each composition, one of each two mirror images; this law alone where they are too many to list."""
        if self.composition is not None or not self.listed:
            return (self,)
        return tuple(replace(self, composition=ones) for ones in compositions(self.others))

    def outcomes(self) -> tuple[list[float], list[float]] | None:
        """Return each number of reported ones, at a composition."""
        ones = self.composition
        if ones is None or self.side or not self.listed:
            return None
        return listed_pair(
            lambda all_ones: bit_count_pmf(self.alpha, all_ones, self.others + 1 - all_ones), ones
        )

    def outcomes_error(self) -> float:
        """Return what a convolution bit by bit may round away, and the flip if it was computed from a budget."""
        return bits_error(self.others + 1)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return delta in both directions, maximised over the composition where it is None."""
        if (promised := guarantee(self.local)) is not None:
            most = promised[0].delta(epsilon)
            return (most if promised[1] == "exact" else most._replace(lower=0.0),) * 2
        if self.composition is None:
            found = self._search(epsilon, self._first())
            one = self._gain(found.at, self.others - found.at, epsilon)
            return (one._replace(upper=max(one.upper, found.upper)),) * 2
        one = self._gain(self.composition, self.others - self.composition, epsilon)
        return one, one if self.side else self._gain(
            self.others - self.composition, self.composition, epsilon
        )

    def pure(self) -> float:
        """Return the local budget: if all reports are ones, the victim's is."""
        return self.local

    def start(self, delta: float) -> float:
        """Guess epsilon from a normal approximation."""
        spread = math.sqrt(self.size * self.alpha * (1 - self.alpha) + 1e-9)
        return max(1e-9, (0.5 - self.alpha) / spread * math.sqrt(-2 * math.log(delta)) * 1.5)

    def at_worst(self, epsilon: float | None, previous: Law | None = None) -> Law:
        """Return the law at the composition that is worst at ``epsilon``."""
        if self.composition is not None:
            return self
        old = previous if isinstance(previous, ShuffledBits) else self._first()
        if epsilon is None or self.local > FAR:
            return old
        found = self._search(epsilon, old, certified=False)
        return old if found.at == old.composition else replace(old, composition=found.at)

    def one_pair(self) -> Law:
        """Return the law at one composition, about the worst, in both directions."""
        if self.composition is not None:
            return self
        return replace(self, composition=self.worst(1e-6)[0].composition)

    def ceiling(self, epsilon: float) -> float:
        """Return an upper bound of delta over the compositions."""
        return self._wide_bound(epsilon) if self.wide else self.delta(epsilon).upper

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return ``epsilon`` with certified ends."""
        if not self.wide:
            return super().epsilon_bracket(delta)
        law, value = self.worst(delta)
        low = law.epsilon_bracket(delta).lower
        high = root(self.ceiling, delta, value, self.pure(), 1.01) * (1 + 1e-12)
        return Bracket(low, value, max(value, min(self.pure(), high)))

    def _first(self) -> ShuffledBits:
        return replace(self, composition=max(0, self.others - 2), side=True)

    def _search(self, epsilon: float, old: ShuffledBits, *, certified: bool = True) -> Maximum:
        """Return the worst composition, never -1, and a bound of all, at the largest ``keep`` that may be true.

        ``certified``: whether a wide crowd's bound is needed.
        """
        ones = self.others if old.composition is None else old.composition
        keep = self._margin(epsilon)[2]
        floor, cut = self._settled(ones, self.others - ones, epsilon, keep)
        top = floor.upper

        def single(ones: int) -> float:
            nonlocal top
            found = self._event(ones, self.others - ones, epsilon, keep, cut)[0]
            top = max(top, found.upper)
            return found.value

        def bound(low: int, high: int) -> float:
            return self._bound(low, high, epsilon, cut)

        best, at = floor.value, ones
        if self.wide:
            few = {0, 1, 2, 5, self.others // 2} | {self.others - i for i in (0, 1, 2, 5)}
            best, at = max((best, at), *((single(i), i) for i in sorted(few - {ones})))
            return Maximum(best, at, max(top, self._wide_bound(epsilon)) if certified else 1.0)
        if not self.covered:
            best, near = climb(self.others, single, best)
            at = near if near >= 0 else at
        if self.size > _FEW and 0 < floor.value < _FAINT:
            return Maximum(best, at, max(top, bound(0, self.others)))
        budget = None if self.covered else 200
        growth = min(0.5, 1 / math.sqrt(self.size)) if self.covered else 0.5
        found = search(self.others + 1, single, bound, growth=growth, floor=best, budget=budget)
        return Maximum(found.value, found.at if found.at >= 0 else at, max(top, found.upper))

    def _wide_bound(self, epsilon: float) -> float:
        """Return an upper bound for all compositions: that of one block, or of few whose own users are given away."""
        for cut in CUTS:
            found = self._bound(0, self.others, epsilon, cut)
            if found > cut * 1e9:
                break
        keep, width = self._margin(epsilon)[2], self.others // _PARTS + 1
        starts = range(0, self.others + 1, width)
        rest = [(low, max(0, self.others - low - width + 1)) for low in starts]
        return min(found, max(self._event(*known, epsilon, keep, cut)[0].upper for known in rest))

    def _bound(self, low: int, high: int, epsilon: float, cut: float) -> float:
        """Return an upper bound for every composition of a block.

        A user whose label depends on the composition tosses a fair coin with probability 2 alpha and tells the truth
        otherwise; the truth of the latter is revealed and can be subtracted.
        """
        sure = 2 * self.alpha * (high - low) * (1 - _ROUND)
        coins = max(0, math.floor(sure - reach(sure * (1 - 2 * self.alpha), cut))) if high > low else 0
        keep = self._margin(epsilon)[2]
        return self._event(low, self.others - high, epsilon, keep, cut, coins)[0].upper + cut

    def _margin(self, epsilon: float) -> tuple[float, float, float]:
        """Return (1 - alpha) - alpha e^epsilon between two ends, for the budget or the alpha that is given."""
        if self.epsilon0 is not None:
            keep = -math.expm1(min(0.0, epsilon - self.epsilon0)) / (1 + math.exp(-self.epsilon0))
            error = _ROUND * keep
        else:
            gap, paid = (0.5 - self.alpha) * 2, 1e300
            if epsilon < 2 * FAR:  # in two factors, none of which overflows
                paid = self.alpha * math.exp(epsilon / 2) * (2 * math.sinh(epsilon / 2))
            keep, error = gap - paid, _ROUND * (gap + paid)
        return (keep - error, keep, keep + error) if keep + error > 0 else (0.0, 0.0, 0.0)

    def _gain(self, ones: int, zeros: int, epsilon: float) -> Bracket:
        """Return delta from label 0 to 1: it rises with ``keep``, whose ends give its ends."""
        low, keep, high = self._margin(epsilon)
        found, cut = self._settled(ones, zeros, epsilon, keep)
        ends = [self._event(ones, zeros, epsilon, at, cut)[0] for at in (low, high)]
        return Bracket(min(found.value, ends[0].lower), found.value, max(found.value, ends[1].upper))

    def _settled(self, ones: int, zeros: int, epsilon: float, keep: float) -> tuple[Bracket, float]:
        """Return delta, and the first cut that matters little to it."""
        for cut in CUTS:
            found, lost = self._event(ones, zeros, epsilon, keep, cut)
            if found.value > lost * 1e9 and found.value > cut * 1e9:
                break
        return found, cut

    def _event(
        self, ones: int, zeros: int, epsilon: float, keep: float, cut: float, coins: int = 0
    ) -> tuple[Bracket, float]:
        """Return the largest over k of keep P(R = k - 1) - (e^eps - 1) P(R >= k), and what cut tails change in it.

        R: the ones among the others.
        """
        if keep <= 0:
            return ZERO, 0.0
        price, variance = math.expm1(epsilon), self.alpha * (1 - self.alpha) * (ones + zeros)
        if not coins and reach(variance, cut) > min(_LONG, ones + zeros) / 2 >= _LONG / 2:
            parts = halves(self.alpha, ones, zeros, cut)
            at = parts.turn(keep / (keep + price), cut)
            more, less = keep * parts.mass(at), price * parts.tail(at + 1)
            length, lost, value = len(parts.first.mass) + len(parts.second.mass), parts.lost, more - less
            error = top = 4 * _ROUND * (length + 8) * (more + less)  # also if rounding leads to the k beside
            top += value
        else:
            window = noisy_ones(self.alpha, ones, zeros, coins, cut)
            above = np.append(np.cumsum(window.mass[::-1])[::-1], 0.0)
            had, paid = keep * window.mass, price * above[1:]
            gains, slack = had - paid, _ROUND * (len(window.mass) + 8) * (had + paid)
            best, lost = int(gains.argmax()), window.lost
            value, error, top = float(gains[best]), float(slack[best]), float((gains + slack).max())
        lost *= keep + price
        value, top = max(0.0, value), max(0.0, top)
        return Bracket(max(0.0, value - error - lost), value, max(value, top) + lost), lost


def _alpha(epsilon0: float) -> float:
    if not epsilon0 >= 0:
        raise InputError(f"epsilon0 = {epsilon0!r}: must be a number, at least 0")
    return math.exp(-epsilon0) / (1 + math.exp(-epsilon0))
