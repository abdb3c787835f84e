"""Shuffled reports of several labels or any finite randomizer: exact for few users, else an upper bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy import bounds
from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.binomial_tails import binomial
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits, guarantee
from p2p_sim.privacy.profile import PrivacyProfile

Array = npt.NDArray[np.float64]

LARGEST_TABLE = 4_000_000
"""Probabilities up to which all compositions are computed."""

_CUT = 1e-20
_ASSUMES = ("the shuffler hides who sent what, and does not collude",)


def shuffled_response(size: int, epsilon0: float, labels: int = 2) -> PrivacyProfile:
    """Return what the shuffled reports of ``size`` users show of one label, said with local budget ``epsilon0``.

    ``size``: at least 1.  ``epsilon0``: at least 0, nats.  ``labels``: 2 to 256.  Two labels: exact up to 20,000 users,
    beyond a value from a search, with certified ends.  More labels: exact where all compositions fit in a table,
    beyond the privacy blanket, basis "upper".  A budget above 700: the local guarantee, basis "upper".  Raises
    InputError for parameters out of range.

    *Source:* ``docs/laws.md``, "Shuffled labels"; Balle et al. 2019 (blanket).  *Assumes:* an honest shuffler.
    """
    _check(size, epsilon0 if epsilon0 < math.inf else 0.0, labels)
    view = "shuffled reports"
    if (promised := guarantee(epsilon0, labels)) is not None:
        return PrivacyProfile(view, promised[1], "the local guarantee", (), "", promised[0])
    if labels == 2:
        bits = ShuffledBits.of(size, epsilon0)
        basis = "exact" if bits.covered else "lower"
        return PrivacyProfile(view, basis, "exact law of the number of ones", _ASSUMES, "", bits)
    if table_size(size, labels) <= LARGEST_TABLE:
        law = every_composition(size, epsilon0, labels)
        return PrivacyProfile(view, "exact", "exact law of the histogram", _ASSUMES, "", law)
    source = "Balle et al. 2019: privacy blanket"
    return PrivacyProfile(view, "upper", source, _ASSUMES, "", Blanket(size, epsilon0, labels))


def table_size(size: int, labels: int) -> int:
    """Return how many probabilities all compositions take."""
    return math.comb(size - 1 + labels - 1, labels - 1) * int(size ** (labels - 1))


@dataclass(frozen=True, eq=False)
class Histogram(Atoms):
    """Atoms of a shuffled histogram: where all say the victim's label, its ratio is that of the local ``budget``."""

    budget: float = math.inf

    def pure(self) -> float:
        """Return the local budget, which a ratio of rounded probabilities may miss by a unit in the last place."""
        return self.budget


@lru_cache(maxsize=8)
def every_composition(size: int, epsilon0: float, labels: int) -> Atoms:
    """Return the histogram's law under the victim's label 0 and 1, a row a composition of the others.

    Other pairs of labels are these with the names changed.  *Source:* convolution, user by user.
    """
    response = _rows(epsilon0, labels)
    shape = (size,) * (labels - 1)  # counts of all labels but the last among the others
    start = np.zeros(shape)
    start[(0,) * (labels - 1)] = 1.0
    laws = [start]
    left = size - 1

    def spread(law: Array, label: int) -> Array:
        out: Array = law * response[label, -1]
        for axis in range(labels - 1):
            moved = np.roll(law, 1, axis)
            moved[tuple(slice(0, 1) if a == axis else slice(None) for a in range(labels - 1))] = 0.0
            out = out + response[label, axis] * moved
        return out

    found: list[Array] = []

    def grow(law: Array, label: int, rest: int) -> None:
        if label == labels - 1:
            for _ in range(rest):
                law = spread(law, label)
            found.append(law)
            return
        for used in range(rest + 1):
            grow(law, label + 1, rest - used)
            if used < rest:
                law = spread(law, label)

    grow(laws[0], 0, left)
    padded = [np.pad(law, [(0, 1)] * (labels - 1)) for law in found]
    sides = [np.stack([_one_more(law, response[label]).ravel() for law in padded]) for label in (0, 1)]
    return Histogram(sides[0], sides[1], float(epsilon0))


@lru_cache(maxsize=8)
def one_composition(size: int, epsilon0: float, labels: int, ones: int) -> Atoms:
    """Return the same where ``ones`` of the others have label 1 and the rest label 0."""
    response = _rows(epsilon0, labels)
    law = np.zeros((size + 1,) * (labels - 1))
    law[(0,) * (labels - 1)] = 1.0
    for label in [1] * ones + [0] * (size - 1 - ones):
        law = _one_more(law, response[label])
    first, second = (_one_more(law, response[label]).ravel()[None] for label in (0, 1))
    return Histogram(first, second, float(epsilon0))


def _one_more(law: Array, response: Array) -> Array:
    out: Array = law * response[-1]
    for axis in range(law.ndim):
        out = out + response[axis] * np.roll(law, 1, axis)  # the last layer of every axis is empty
    return out


def _rows(epsilon0: float, labels: int) -> Array:
    """Return P(said | label), shape (labels, labels)."""
    lie = math.exp(-epsilon0) / (1 + (labels - 1) * math.exp(-epsilon0))
    rows = np.full((labels, labels), lie)
    np.fill_diagonal(rows, 1 - (labels - 1) * lie)
    return rows


@dataclass(frozen=True)
class Blanket(Law):
    """An upper bound: each other user says a uniform label with a known probability, and is revealed otherwise.

    With probability w = labels / (labels - 1 + e^epsilon0) a user's report does not depend on her label.  Given U
    such others, the histogram of U + 1 reports has likelihood 1 + (e^epsilon0 - 1) h_x / (U + 1) times that of
    uniform labels, up to a constant; delta does not increase with U, whose values are taken at the low end of steps.

    *Source:* Balle, Bell, Gascon, Nissim 2019, section 5.  *Assumes:* an honest shuffler.
    """

    size: int
    epsilon0: float
    labels: int

    def __post_init__(self) -> None:
        _check(self.size, self.epsilon0, self.labels)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the bound twice: the two labels have the same role."""
        upper = _blanket(self, epsilon)
        return (Bracket(0.0, upper, upper),) * 2

    def averaged(self, epsilon: float) -> float:
        """Return the bound of delta."""
        uniform = self.labels / (self.labels - 1 + math.exp(min(self.epsilon0, 700.0)))
        window = binomial(self.size - 1, uniform, 1 - uniform, _CUT)
        count = len(window.mass)
        starts = np.unique(np.linspace(0, count, min(count, 60), endpoint=False).astype(int))
        shares = np.add.reduceat(window.mass, starts)
        gains = [self._given(window.low + int(s), epsilon) for s in starts]
        # Terms cancel far out, which leaves them right to some 1e-12 (a test holds it), far below what is added here.
        return min(1.0, float(shares @ np.array(gains)) * (1 + 1e-9) + 3 * _CUT)

    def _given(self, others: int, epsilon: float) -> float:
        """Return delta given how many other reports are uniform; summed over how many say one of the two labels."""
        total, extra = others + 1, math.expm1(min(self.epsilon0, 700.0))
        scale, price = math.exp(epsilon), math.expm1(epsilon)
        window = binomial(total, 2 / self.labels, 1 - 2 / self.labels, _CUT)
        both = window.low + np.arange(len(window.mass), dtype=np.float64)
        # positive part of extra (ones - e^eps zeros) / total - price, over ones ~ Bin(both, 1/2), zeros = both - ones
        least = np.floor((price * total / extra + scale * both) / (1 + scale)) + 1
        open_ = least <= both
        equal, tail = half_sums(both[open_], least[open_])
        # E[ones; ones >= least] is both / 2 (tail + equal / 2), so that what is nearly equal cancels on paper
        gain = extra * both[open_] * ((1 + scale) / 4 * equal - price / 2 * tail) / total - price * tail
        return float(window.mass[open_] @ np.maximum(gain, 0.0)) * self.labels * self._lie

    @property
    def _lie(self) -> float:
        return math.exp(-self.epsilon0) / (1 + (self.labels - 1) * math.exp(-self.epsilon0))

    def pure(self) -> float:
        """Return the local budget."""
        return self.epsilon0


@lru_cache(maxsize=256)
def _blanket(law: Blanket, epsilon: float) -> float:
    """Return the bound, once for a root and its bracket, and for views that see the same."""
    return law.averaged(epsilon)


def half_sums(n: Array, least: Array) -> tuple[Array, Array]:
    """Return (P(Y = least - 1), P(X >= least)) for X ~ Bin(n, 1/2) and Y ~ Bin(n - 1, 1/2), shape (s,).

    ``n``: consecutive numbers; ``least``: from 1 to n.  Each probability is right to 1e-10, or below 1e-300.

    *Source:* one coin more: neighbours of the first differ by a known factor, those of the second by half the first.
    What is small is summed up from the small end, so nothing is lost.
    """
    from scipy.special import betainc

    rises = np.diff(least)
    if not len(n) or not bool(((rises == 0) | (rises == 1)).all()):  # where least is all rounding
        tail = betainc(least, n - least + 1, 0.5)
        inner = np.where(least <= 1, 1.0, betainc(np.maximum(least - 1, 1), n - least + 1, 0.5))
        return np.maximum(0.0, 2 * (inner - tail)), tail
    factors = np.log(n[:-1] / (2 * np.where(rises == 1, least[:-1], n[:-1] - least[:-1] + 1)))
    top = int(np.append(0.0, np.cumsum(factors)).argmax())
    logs = np.concatenate([-np.cumsum(factors[:top][::-1])[::-1], [0.0], np.cumsum(factors[top:])])
    equal = np.exp(logs) * _half(int(n[top]) - 1, int(least[top]) - 1)
    first, last = betainc(least[[0, -1]], n[[0, -1]] - least[[0, -1]] + 1, 0.5)
    falls = np.where(rises == 1, 0.5, -0.5) * equal[1:]  # from one to the next
    begin = first - np.append(0.0, np.cumsum(falls[:top]))[:top]
    end = last + np.append(np.cumsum(falls[top:][::-1])[::-1], 0.0)
    return equal, np.clip(np.concatenate([begin, end]), 0.0, 1.0)


def _half(n: int, k: int) -> float:
    """Return P(X = k) for X ~ Bin(n, 1/2), to 12 digits.  *Source:* Loader 2000, the saddle point expansion."""
    rest = n - k
    if min(k, rest) < 1:
        return math.exp(-n * math.log(2))
    nats = k * math.log1p((k - rest) / n) + rest * math.log1p((rest - k) / n)
    nats -= _stirling(n) - _stirling(k) - _stirling(rest)
    return math.exp(-nats) * math.sqrt(n / (2 * math.pi * k * rest))


def _stirling(n: int) -> float:
    """Return by how much ln n! exceeds Stirling's formula; n is at least 1."""
    if n < 20:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)
    square = 1.0 / (n * n)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / n


def _check(size: int, epsilon0: float, labels: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(f"size = {size!r}: must be an integer, at least 1")
    if not 0 <= epsilon0 < math.inf:
        raise InputError(f"epsilon0 = {epsilon0!r}: must be a finite number, at least 0")
    if isinstance(labels, bool) or not isinstance(labels, int) or not 2 <= labels <= 256:
        raise InputError(f"labels = {labels!r}: must be an integer from 2 to 256")


def histograms(rows: Array, users: int) -> tuple[Array, Array]:
    """Return the laws of the histogram of all reports under the first and the second label of each case.

    A case is a pair of labels of the victim and one number of the others with each label.  ``rows``: shape (labels,
    outputs), P(output | label).  Shapes (cases, histograms).  *Source:* convolution, user by user.
    """
    first, second = [], []
    for others in _compositions(users - 1, len(rows)):
        law = np.zeros((users + 1,) * (rows.shape[1] - 1))
        law[(0,) * law.ndim] = 1.0
        for label, count in enumerate(others):
            for _ in range(count):
                law = _one_more_report(law, rows[label])
        ends = [_one_more_report(law, row).ravel() for row in rows]
        for one, two in itertools.combinations(ends, 2):
            first.append(one)
            second.append(two)
    return np.stack(first), np.stack(second)


def matrix_table_size(labels: int, outputs: int, users: int) -> int:
    """Return how many numbers ``histograms`` computes."""
    cases = math.comb(users - 1 + labels - 1, labels - 1) * math.comb(labels, 2)
    return cases * int((users + 1) ** (outputs - 1))


def _compositions(total: int, labels: int) -> Iterator[tuple[int, ...]]:
    """Yield how many users have each label, in every way."""
    if labels == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, labels - 1):
            yield (first, *rest)


def _one_more_report(law: Array, row: Array) -> Array:
    """Return the law with one more report; the last output is counted by what is missing from the others."""
    out: Array = law * row[-1]
    for axis in range(law.ndim):
        out = out + row[axis] * np.roll(law, 1, axis)  # the last layer of every axis is empty
    return out


@dataclass(frozen=True)
class Clones(Law):
    """An upper bound for the shuffled reports of ``users`` users whose randomizer has pure epsilon ``epsilon0``, nats.

    *Source:* Feldman, McMillan, Talwar 2021: e^-epsilon0 clones, summed exactly.  *Assumes:* an honest shuffler.
    """

    users: int
    epsilon0: float
    closed = False

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the bound twice, with nothing below it."""
        most = bounds.shuffle.clone(self.users, self.epsilon0, epsilon=epsilon).delta
        return (Bracket(0.0, most, most),) * 2

    def pure(self) -> float:
        """Return the local budget."""
        return self.epsilon0
