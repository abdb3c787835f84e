"""The probability mass function of histograms of reports, of several labels, of a small cluster at every composition.

*Source:* ``docs/laws.md``, "Several labels": M ~ Bin(n, theta), N the noisy labels, K | M, N ~ Multinomial(M, N / n),
summed over N.  All terms are positive, so relative errors add up and nothing cancels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.finite import Atoms, excess
from p2p_sim.privacy.mechanisms.peer_to_peer.colluder_knowledge import distinct_hits

Array = npt.NDArray[np.float64]
Counts = tuple[int, ...]
"""How many users have, or report, each label."""

MOST = 1_000_000
"""Probabilities, up to which a cluster is listed: of a histogram given the noisy labels, and of all outcomes."""

_U = 2.0**-53
_TINY = 600.0  # minus the natural logarithm of the rarest probability that is listed: floats end at 708


@dataclass(frozen=True)
class SmallCluster:
    """A cluster of ``size`` users, ``colluders`` of whom join the learner, none of whom got the victim's label.

    ``alpha``: chance that a label is replaced by one of the ``labels`` - 1 others.  ``theta``: that a user reports.
    """

    alpha: float
    theta: float
    size: int
    labels: int
    colluders: int = 0

    @property
    def honest(self) -> int:
        """The victim and the other honest users."""
        return self.size - self.colluders

    @property
    def known(self) -> int:
        """Most honest labels that colluders can know."""
        return min(self.colluders, self.honest - 1)

    @property
    def error(self) -> float:
        """The relative error of each probability: of noise, powers, factors, and the sum over the noisy labels."""
        urns = math.comb(self.honest + self.labels - 1, self.labels - 1)
        return (40 * self.size + 8 * self.labels + urns + 64) * _U

    @property
    def listable(self) -> bool:
        """Whether the outcomes can be listed, none of them too rare."""
        k, n = self.labels, self.honest
        urns = math.comb(n + k - 1, k - 1)
        seen = urns if self.theta == 1 and not self.colluders else math.comb(n + k, k)
        heard = sum(math.comb(d + k - 1, k - 1) ** 2 for d in range(self.known + 1))
        cases = math.comb(n - 1 + k - 1, k - 1)
        if max(urns * seen, cases * seen * heard) > MOST:
            return False
        return self._rarest < _TINY

    @property
    def _rarest(self) -> float:
        """Minus the logarithm of at most the rarest probability."""
        noise = math.log((self.labels - 1) / self.alpha) if self.alpha else 0.0
        theta = min(self.theta, 1 - self.theta) if self.theta < 1 else 1.0
        return self.size * (noise + 3 * math.log(self.size) - math.log(theta))

    def law(self, ones: int | None = None) -> ListedCategories:
        """Return the law of the worst composition of the other honest users; ``ones`` of label 1, the rest of 0."""
        return _law(self, ones)

    def sides(self, cases: list[Counts]) -> list[Array]:
        """Return the probabilities of all that is seen where the victim has label 0 and 1, a row a composition."""
        if self.colluders:
            return [np.stack([self._outcomes(case, label) for case in cases]) for label in (0, 1)]
        own = [_one(label, self.labels) for label in (0, 1)]
        urns = [np.stack([_histogram_law(self.alpha, _plus(case, more)) for case in cases]) for more in own]
        return [urn @ _reports(self) for urn in urns]

    def _outcomes(self, others: Counts, label: int) -> Array:
        """Return the probabilities of all that is seen, where the victim has a label and the others theirs."""
        reports, found = _reports(self), []
        for d, chance in enumerate(distinct_hits(self.colluders, self.honest - 1, self.size - 1)):
            for heard in vectors(d, self.labels):
                share = _drawn(heard, others)
                left = tuple(max(0, a - b) for a, b in zip(others, heard, strict=True))
                urn = _histogram_law(self.alpha, _plus(left, _one(label, self.labels))) if share else None
                for said, weight in enumerate(_histogram_law(self.alpha, heard) * (chance * share)):
                    if urn is None:
                        found.append(np.zeros(reports.shape[1]))
                    else:
                        found.append(weight * (urn @ reports[_places(self, d, said)]))
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class ListedCategories(Atoms):
    """All outcomes of a small cluster, a row a composition; each probability is right to a share of ``error``."""

    error: float = 0.0

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Sum the positive parts; the worst row of each direction."""
        error = self.error + 2e-15
        return excess(self.q, self.p, epsilon, error), excess(self.p, self.q, epsilon, error)

    def pure_bracket(self) -> Bracket:
        """Return the largest log ratio, rounded outward."""
        value = self.pure()
        return Bracket(max(0.0, value - 3 * self.error), value, value + 3 * self.error)

    def outcomes_error(self) -> float:
        """Return what sums may have rounded away."""
        return self.error

    def alternatives(self) -> tuple[Law, ...]:
        """Return each composition."""
        return (self,) if len(self.p) == 1 else tuple(self._row(i) for i in range(len(self.p)))

    def one_pair(self) -> Law:
        """Return the composition that is worst where the worst of all has a delta of 1e-6."""
        x = math.exp(min(self.epsilon(1e-6), 700.0)) if len(self.p) > 1 else 1.0
        ways = [np.maximum(a - x * b, 0.0).sum(-1) for a, b in ((self.q, self.p), (self.p, self.q))]
        return self._row(int(np.maximum(*ways).argmax()))

    def _row(self, at: int) -> ListedCategories:
        return ListedCategories(self.p[at : at + 1], self.q[at : at + 1], self.error)


@lru_cache(maxsize=8)
def _law(cluster: SmallCluster, ones: int | None) -> ListedCategories:
    """Return the law, once for several views and for a search."""
    others, cases = cluster.honest - 1, [*_cases(cluster.honest - 1, cluster.labels)]
    if ones is not None:
        cases = [_padded((others - ones, ones), cluster.labels)]
    first, second = cluster.sides(cases)
    return ListedCategories(first, second, cluster.error)


@lru_cache(maxsize=256)
def vectors(total: int, labels: int) -> tuple[Counts, ...]:
    """Return all ways to spread ``total`` over labels."""
    if labels == 1:
        return ((total,),)
    return tuple((first, *rest) for first in range(total + 1) for rest in vectors(total - first, labels - 1))


@lru_cache(maxsize=256)
def _at(total: int, labels: int) -> dict[Counts, int]:
    return {vector: place for place, vector in enumerate(vectors(total, labels))}


@lru_cache(maxsize=64)
def _one_more(total: int, labels: int) -> npt.NDArray[np.intp]:
    """Return where each histogram of ``total`` is with one more of each label, shape (histograms, labels)."""
    places = _at(total + 1, labels)
    return np.array(
        [[places[_plus(v, _one(j, labels))] for j in range(labels)] for v in vectors(total, labels)]
    )


@lru_cache(maxsize=4096)
def _histogram_law(alpha: float, users: Counts) -> Array:
    """Return the law of the histogram that users of these labels say, in the order of ``vectors``."""
    labels, count = len(users), sum(users)
    if not count:
        return np.ones(1)
    own = next(label for label, many in enumerate(users) if many)
    before = _histogram_law(alpha, tuple(many - (label == own) for label, many in enumerate(users)))
    law = np.zeros(math.comb(count + labels - 1, labels - 1))
    places = _one_more(count - 1, labels)
    for label in range(labels):
        law[places[:, label]] += before * (1 - alpha if label == own else alpha / (labels - 1))
    return law


@lru_cache(maxsize=256)
def _places(cluster: SmallCluster, known: int, said: int) -> npt.NDArray[np.intp]:
    """Return where each histogram of those whose labels nobody knows is in that of all honest users."""
    places, more = _at(cluster.honest, cluster.labels), vectors(known, cluster.labels)[said]
    unknown = vectors(cluster.honest - known, cluster.labels)
    return np.array([places[_plus(vector, more)] for vector in unknown])


@lru_cache(maxsize=4)
def _reports(cluster: SmallCluster) -> Array:
    """Return P(histogram of the reports | that of the noisy labels), shape (noisy labels, reports)."""
    honest, labels = cluster.honest, cluster.labels
    urns = np.array(vectors(honest, labels))
    chance = cluster.theta * honest / cluster.size  # to report, and to have asked an honest user
    silent = ((1 - cluster.theta) * honest + cluster.colluders) / cluster.size
    power = (np.arange(honest + 1)[:, None] / honest) ** np.arange(honest + 1)
    parts = []
    for m in [honest] if not silent else range(honest + 1):
        seen = vectors(m, labels)
        table = np.repeat([[float(_ways(each)) for each in seen]], len(urns), axis=0)
        table *= math.comb(honest, m) * chance**m * silent ** (honest - m)
        columns = np.array(seen)
        for label in range(labels):
            table *= power[urns[:, label][:, None], columns[:, label][None, :]]
        parts.append(table)
    return np.concatenate(parts, axis=1)


def _cases(others: int, labels: int) -> Iterator[Counts]:
    """Yield the compositions of the others; labels that the victim cannot have are alike, so in falling order."""
    for case in vectors(others, labels):
        if all(one >= two for one, two in itertools.pairwise(case[2:])):
            yield case


def _drawn(heard: Counts, others: Counts) -> float:
    """Return with which chance so many of each label are among as many of the others."""
    ways = math.prod(math.comb(all_, some) for all_, some in zip(others, heard, strict=True))
    return ways / math.comb(sum(others), sum(heard))


def _ways(vector: Counts) -> int:
    """Return the multinomial coefficient."""
    return math.factorial(sum(vector)) // math.prod(map(math.factorial, vector))


def _padded(vector: Counts, labels: int) -> Counts:
    return (*vector, *[0] * (labels - len(vector)))


def _plus(one: Counts, other: Counts) -> Counts:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _one(label: int, labels: int) -> Counts:
    return tuple(int(j == label) for j in range(labels))
