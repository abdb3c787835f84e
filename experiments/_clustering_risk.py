"""Problems whose best model is known, and the exact excess risk of the model that a mechanism's labels give.

There are d points; a model is any function of them, so d is also its dimension, and the best model says the likelier
label of each.  Points come in clusters of ``points``, of ``each`` users a point.  A label is 1 with probability
1/2 + a + phi/2 at half of the points of a cluster and 1/2 + a - phi/2 at the others: phi is the cluster's heterogeneity
of Clustering 2022, and the smaller the margin a, the harder the problem.  A rate is of the hardest, so each number is
the largest mean excess risk over a fixed family of margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from p2p_sim import Population
from p2p_sim.core.protocol import Protocol

Array = npt.NDArray[Any]

BOOTSTRAP = 400
LEVEL = 0.95


@dataclass(frozen=True)
class Problems:
    """A family: ``clusters`` of each margin, each of ``points`` points (even, or phi = 0) of ``each`` users."""

    margins: tuple[float, ...]
    phi: float
    clusters: int
    points: int
    each: int

    @property
    def cluster_size(self) -> int:
        """Return s."""
        return self.points * self.each

    @property
    def users(self) -> int:
        """Return n, of all margins together."""
        return len(self.margins) * self.clusters * self.cluster_size

    def chances(self) -> Array:
        """Return the probability of label 1, (margins, clusters, points)."""
        half = np.where(np.arange(self.points) < self.points / 2, self.phi / 2, -self.phi / 2)
        found = 0.5 + np.asarray(self.margins)[:, None, None] + half
        return np.broadcast_to(found, (len(self.margins), self.clusters, self.points))


def excess_risk(protocol: Protocol | None, problems: Problems, seed: int) -> Array:
    """Return the excess risk in each cluster, (margins, clusters), of the model fitted to what the learner received.

    Users and their labels are drawn by ``seed``, too; ``protocol`` None: the labels as they are.  The model minimizes
    the number of labels it contradicts, point by point; of UniformRR that minimizes the modified loss, too.  Its risk
    is computed from the chances, not measured.
    """
    chances = problems.chances()
    point = np.repeat(np.arange(chances.size), problems.each)
    rng = np.random.default_rng([seed, problems.users])
    y = (rng.random(len(point)) < chances.ravel()[point]).astype(np.uint8)
    if protocol is None:
        ones, all_of = np.bincount(point, y, chances.size), np.full(chances.size, float(problems.each))
    else:
        people = Population.from_arrays(y=y, cluster=point // problems.points)
        received = p2p_sim.run(protocol, people, seed=seed, digest=False, progress=False).outputs["learner"]
        at = point[received["sender"]]
        ones = np.bincount(at, received["y"], chances.size)
        all_of = np.bincount(at, minlength=chances.size)
    wrong = _wrong((2 * ones - all_of).reshape(chances.shape), 2 * chances - 1)
    return np.asarray(wrong.mean(axis=2))


def _wrong(votes: Array, advantage: Array) -> Array:
    """Return what a point costs: |2 eta - 1| where the majority is wrong, half of it where votes are even."""
    share = np.where(votes == 0, 0.5, (votes > 0) != (advantage > 0))
    return np.asarray(np.abs(advantage) * share)


def hardest(found: Array) -> tuple[float, float, int]:
    """Return the largest mean over margins of (margins, trials), its standard error, and which margin it is."""
    means = found.mean(axis=1)
    worst = int(means.argmax())
    error = float(found[worst].std(ddof=1) / np.sqrt(found.shape[1])) if found.shape[1] > 1 else 0.0
    return float(means[worst]), error, worst


def slope(x: Sequence[float], found: Sequence[Array]) -> tuple[float, float, float]:
    """Return the least-squares slope of log excess risk over log x, and a 95 % interval by bootstrap over clusters.

    ``found``: an array (margins, clusters) for each x.
    """
    rng = np.random.default_rng(0)
    drawn = [_fitted(x, [_again(each, rng) for each in found]) for _ in range(BOOTSTRAP)]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return _fitted(x, [hardest(each)[0] for each in found]), float(low), float(high)


def _again(found: Array, rng: np.random.Generator) -> float:
    """Return the hardest margin's mean among clusters drawn again."""
    chosen = rng.integers(found.shape[1], size=found.shape)
    return float(np.take_along_axis(found, chosen, axis=1).mean(axis=1).max())


def _fitted(x: Sequence[float], excess: Sequence[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(excess), 1)[0])
