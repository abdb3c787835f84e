"""The probability mass function of what the learner sees of a small cluster: q~ and the victim's released label.

*Source:* ``docs/laws.md``, "Cluster response".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms
from protocols import ClusterResponse
from protocols.cluster_response import renormalized

Floats = npt.NDArray[np.float64]
Counts = tuple[int, ...]

MOST_LISTED = 400_000
"""Limit on the probabilities of all outcomes in all compositions."""

_DIGITS = Context(prec=50)


@dataclass(frozen=True, eq=False)
class Views:
    """The values of q~ that a cluster can have, in lowest terms.

    ``weights``: (g, k).  ``of``: which of them each combination of the cut shares q gives, in the order of
    ``numpy.ravel``.  ``noise[h]``: the probabilities of the shares of a label that h users have.
    """

    weights: npt.NDArray[np.int64]
    of: npt.NDArray[np.int64]
    noise: Floats
    lam: Fraction

    def table(self, counts: Counts, label: int) -> Floats:
        """Return P(q~, the victim's label as released), (g, k), of a cluster of ``counts``, hers among them."""
        joint = np.ones(1)
        for count in counts:
            joint = np.multiply.outer(joint, self.noise[count]).ravel()
        chance = np.bincount(self.of, joint, len(self.weights))
        return np.asarray(chance[:, None] * self._released(label))

    def _released(self, label: int) -> Floats:
        """Return P(the released label | q~, her label), (g, k)."""
        shares = self.weights / self.weights.sum(axis=1, keepdims=True)
        rows = float(self.lam) * shares
        rows[:, label] += float(1 - self.lam)
        return np.asarray(rows)


def outcomes(protocol: ClusterResponse, size: int) -> int:
    """Return how many combinations of cut shares and released labels a cluster has, a few more or less."""
    if protocol.settings().sigma is None:
        return protocol.labels
    return int((size * protocol.grid + 2) ** protocol.labels) * protocol.labels


@lru_cache(maxsize=8)
def views(protocol: ClusterResponse, size: int) -> Views:
    """Return the values of q~ of a cluster of ``size`` users, and how likely its shares are; noise must be finite."""
    settings = protocol.settings()
    assert settings.sigma is not None
    k, (whole, floor) = protocol.labels, protocol.steps(size)
    inner = np.arange(floor // k + 1, size * protocol.grid)
    shares = np.concatenate([[floor], inner * k, [whole]])
    q = np.stack([part.ravel() for part in np.meshgrid(*[shares] * k, indexing="ij")], axis=1)
    weights, of = np.unique(renormalized(q, floor, whole), axis=0, return_inverse=True)
    decay = _DIGITS.exp(
        _DIGITS.divide(
            Decimal(-settings.sigma.denominator), Decimal(settings.sigma.numerator * protocol.grid)
        )
    )
    # q is tau while the noisy count is at most floor / k steps, and 1 from size * grid on
    ends = [floor // k, *inner.tolist()]
    noise = np.array([_cut(decay, ends, count * protocol.grid) for count in range(size + 1)])
    return Views(weights, of.ravel(), noise, settings.lam)


def _cut(decay: Decimal, ends: list[int], at: int) -> list[float]:
    """Return P(at + noise <= ends[0]), P(at + noise = e) of the other ends e, and P(at + noise > ends[-1])."""
    whole = _DIGITS.add(1, decay)

    def tail(steps: int) -> Decimal:
        """P(noise >= steps), for steps of at least 1."""
        return _DIGITS.divide(_DIGITS.power(decay, steps), whole)

    def one(steps: int) -> Decimal:
        return _DIGITS.multiply(
            _DIGITS.divide(_DIGITS.subtract(1, decay), whole), _DIGITS.power(decay, abs(steps))
        )

    low, high = ends[0] - at, ends[-1] + 1 - at
    first = tail(-low) if low < 0 else _DIGITS.subtract(1, tail(low + 1))
    last = tail(high) if high > 0 else _DIGITS.subtract(1, tail(1 - high))
    return [float(p) for p in (first, *(one(end - at) for end in ends[1:]), last)]


@dataclass(frozen=True, eq=False)
class Listed(Atoms):
    """All compositions of the others' labels.

    ``ones``: how many of the honest have label 1 in each, if all the rest can have label 0; otherwise None.
    """

    ones: tuple[int | None, ...] = ()

    @property
    def composition(self) -> int | None:
        """The one composition, where it is one."""
        return self.ones[0] if len(self.ones) == 1 else None

    def at_worst(self, epsilon: float | None, previous: Law | None = None) -> Law:
        """Return the composition that is worst at ``epsilon``; with more labels than two it may have no name."""
        if epsilon is None or len(self.p) == 1:
            return self
        scale = math.exp(min(epsilon, 700.0))
        gains = [np.maximum(a - scale * b, 0.0).sum(-1) for a, b in ((self.q, self.p), (self.p, self.q))]
        at = int(np.maximum(*gains).argmax())
        if isinstance(previous, Listed) and previous.ones == self.ones[at : at + 1]:
            return previous
        return Listed(self.p[at : at + 1], self.q[at : at + 1], self.ones[at : at + 1])


def listed(protocol: ClusterResponse, size: int, colluders: int, composition: int | None) -> Listed | None:
    """Return the exact law of the learner's view in a cluster of ``size``; None if there is too much to list.

    ``composition``: how many of the honest others have label 1, the rest label 0; None: the worst of all.  Colluders
    have what labels they like.
    """
    k = protocol.labels
    free = size - 1 if composition is None else colluders
    if outcomes(protocol, size) * math.comb(free + k - 1, k - 1) > MOST_LISTED:
        return None
    found = views(protocol, size)
    others = list(_others(k, size, colluders, composition))
    # labels are treated alike, so the victim's are 0 and 1
    p, q = (np.array([found.table(_with(each, label), label).ravel() for each in others]) for label in (0, 1))
    honest = size - 1 - colluders
    bits = (each[1] if sum(each[:2]) == size - 1 and each[1] <= honest else None for each in others)
    return Listed(p, q, tuple(bits))


def _others(k: int, size: int, colluders: int, composition: int | None) -> Iterator[Counts]:
    """Yield how many others have each label."""
    if composition is None:
        yield from _parts(size - 1, k)
        return
    for extra in _parts(colluders, k):
        zeros = size - 1 - colluders - composition
        yield (zeros + extra[0], composition + extra[1], *extra[2:])


def _parts(total: int, k: int) -> Iterator[Counts]:
    """Yield the ways to write a number as a sum of ``k`` others, in order."""
    for bars in itertools.combinations(range(total + k - 1), k - 1):
        edges = (-1, *bars, total + k - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def _with(others: Counts, label: int) -> Counts:
    """Return the numbers of labels with the victim's among them."""
    return tuple(count + (i == label) for i, count in enumerate(others))
