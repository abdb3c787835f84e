"""At one promise to the learner: the α that each method asks for, the accuracy it leaves, and what others then see."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

import p2p_sim
from experiments._common import accuracy
from experiments._rows import ONE_LABEL, Case, content, described, standard_error
from p2p_sim import Population, privacy
from p2p_sim.core.errors import InputError
from p2p_sim.learning import data_split
from p2p_sim.learning.data import datasets
from p2p_sim.learning.data_split import Examples
from protocols import PeerToPeer, RandomizedResponse

SEEDS = 5
LARGE = {"adult": (2, 3), "mnist": (3, 0)}
"""Clusters and k-means seed: of seeds 0 to 9, the first that leaves every cluster the users that Theorem 3 needs.

Clusters come from public features, so choosing among them costs no privacy.  Other data sets: all users together.
"""
SMALL = 200
VIEWS = ("learner", "user", "learner+1*user", "learner+3*user", "wire")
NONE, THIRD, NINTH = "resampling alone", "Theorem 3", "Lemma 9"
EXACT, LOCAL = "exact accountant", "randomized response"
METHODS = (NONE, THIRD, NINTH, EXACT)
"""What each clustering is asked for; randomized response needs no clusters."""

ASKED = tuple((clusters, method) for clusters in ("large", "small") for method in METHODS)
QUICK = (("large", THIRD), ("large", EXACT))

papers = privacy.bounds.clustering2022


@dataclass(frozen=True)
class Ask:
    """The alpha that a method asks for, None where it cannot keep the promise, and why not."""

    method: str
    alpha: float | None
    why: str = ""


def exact_alpha(size: int, theta: float, epsilon: float, delta: float) -> float:
    """Return the least alpha at which the exact accountant finds the learner (ε, δ)-private."""
    return privacy.calibrate(
        PeerToPeer, vary="alpha", cluster_size=size, theta=theta, epsilon=epsilon, delta=delta
    ).value


def lemma9_alpha(size: int, theta: float, epsilon: float, delta: float) -> Ask:
    """Return the least alpha at which Lemma 9 promises ε at δ; its promise improves as alpha grows to 1/2."""

    def kept(alpha: float) -> bool:
        bound = papers.lemma9(size, alpha, theta, delta=delta)
        return bound.holds and bound.epsilon <= epsilon

    best = papers.lemma9(size, 0.5, theta, delta=delta)
    if not kept(0.5):
        answer = best.why or f"promises epsilon = {best.epsilon:.4g} at s = {size}, even at alpha = 1/2"
        return Ask(NINTH, None, answer)
    low, high = 0.0, 0.5
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return Ask(NINTH, high)


def asks(size: int, epsilon: float, delta: float, theta: float = 1.0) -> list[Ask]:
    """Return what each method asks for, if the smallest cluster has ``size`` users."""
    third = papers.theorem3(size, theta)
    ask = Ask(THIRD, third.parameters.get("alpha") if third.holds else None, third.why)
    if third.holds and (third.epsilon > epsilon or third.delta > delta):
        ask = Ask(THIRD, None, f"promises epsilon = {third.epsilon:.4g}, delta = {third.delta:.3g}")
    exact = Ask(EXACT, exact_alpha(size, theta, epsilon, delta))
    return [Ask(NONE, 0.0), ask, lemma9_alpha(size, theta, epsilon, delta), exact]


def cases(name: str, seeds: int, asked: Sequence[tuple[str, str]] = ASKED) -> list[Case]:
    """Return a case for each clustering and method of ``asked``; the promise is Theorem 3's for the large clusters.

    Raises InputError if there is no such data set, and when a row is computed where Theorem 3 does not apply.
    """
    about = {"data": name, "content": content(name), "seeds": seeds}
    return [
        (about | {"clusters": size, "method": method}, partial(_computed, name, seeds, size, method))
        for size, method in [*asked, ("none", LOCAL)]
    ]


def _computed(name: str, seeds: int, clusters: str, method: str) -> list[dict[str, Any]]:
    return [_part(name, seeds).row(clusters, method)]


@cache
def _part(name: str, seeds: int) -> _Part:
    return _Part(name, seeds)


def tell(what: str) -> None:
    """Say on stderr what comes next."""
    print(what, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class _Part:
    """The rows of one data set; what several of them need is computed once, and only if one is to be computed."""

    name: str
    seeds: int

    def row(self, clusters: str, method: str) -> dict[str, Any]:
        found = self._local() if clusters == "none" else self._asked(clusters, method)
        return found | self._fixed

    def _asked(self, clusters: str, method: str) -> dict[str, Any]:
        examples, target = self._large if clusters == "large" else self._small, self._target
        smallest = int(examples.population.sizes.min())
        ask = (self._asks_large if clusters == "large" else self._asks_small)[method]
        tell(f"{self.name}, clusters of {smallest:,} and more: {ask.method}, alpha = {ask.alpha}")
        protocol = None if ask.alpha is None else PeerToPeer(ask.alpha)
        if ask.method == EXACT and ask.alpha is not None:
            check_everywhere(ask.alpha, examples.population, target.epsilon, target.delta)
        return _row(self.name, examples, ask, target, protocol, self.seeds)

    def _local(self) -> dict[str, Any]:
        target = self._target
        lie = 1 / (1 + math.exp(target.epsilon))
        tell(f"{self.name}: {LOCAL}, alpha = {lie}")
        alone = RandomizedResponse(target.epsilon)
        return _row(self.name, None, Ask(LOCAL, lie), target, alone, self.seeds, self._large)

    @cached_property
    def _data(self) -> datasets.Dataset:
        return datasets.load(self.name)

    @cached_property
    def _large(self) -> Examples:
        count, seed = LARGE.get(self.name, (1, 0))
        return data_split.gather(PeerToPeer(0.0), self._data, clusters=count, seed=seed)

    @cached_property
    def _small(self) -> Examples:
        return data_split.gather(PeerToPeer(0.0), self._data, clusters=SMALL, seed=0)

    @cached_property
    def _target(self) -> Any:
        target = papers.theorem3(int(self._large.population.sizes.min()), 1.0)
        if not target.holds:
            raise InputError(f"--data {self.name}: Theorem 3 promises nothing there: {target.why}")
        return target

    @cached_property
    def _asks_large(self) -> dict[str, Ask]:
        return self._asks(self._large)

    @cached_property
    def _asks_small(self) -> dict[str, Ask]:
        return self._asks(self._small)

    def _asks(self, examples: Examples) -> dict[str, Ask]:
        smallest = int(examples.population.sizes.min())
        found = asks(smallest, self._target.epsilon, self._target.delta)
        return {ask.method: ask for ask in found}

    @cached_property
    def _fixed(self) -> dict[str, float]:
        tell(f"{self.name}: training on the true labels")
        large = self._large
        y = large.population.y
        return {"accuracy_true": round(accuracy(large, range(len(y)), y), 4), "majority": _majority(large)}


def _row(
    name: str, clusters: Examples | None, ask: Ask, target: Any, protocol: Any, seeds: int,
    examples: Examples | None = None,
) -> dict[str, Any]:  # fmt: skip
    users = clusters or examples
    assert users is not None
    sizes = users.population.sizes if clusters else None
    found = [] if protocol is None else [private(protocol, users, seed) for seed in range(seeds)]
    seen = views(protocol, users.population, target.delta) if protocol else dict.fromkeys(VIEWS, "")
    return {
        **described(name, users.population.y),
        "test_n": len(users.y_test),
        "clusters": "none" if sizes is None else len(sizes),
        "smallest": "" if sizes is None else int(sizes.min()),
        "largest": "" if sizes is None else int(sizes.max()),
        "method": ask.method,
        "epsilon": f"{target.epsilon:.5g}",
        "delta": f"{target.delta:.5g}",
        "alpha": "" if ask.alpha is None else f"{ask.alpha:.5g}",
        "accuracy": f"{statistics.mean(found):.4f}" if found else "",
        "accuracy_sd": f"{statistics.stdev(found):.4f}" if len(found) > 1 else "",
        "standard_error": standard_error(found),
        "trials": len(found),
        **{f"epsilon_{view}": value for view, value in seen.items()},
        "includes": ONE_LABEL,
        "why": ask.why,
    }


def views(protocol: Any, population: Population, delta: float) -> dict[str, str]:
    """Return the exact ε at δ of each view, the largest of the smallest, median and largest cluster."""
    found = {}
    for view in VIEWS:
        profiles = privacy.by_cluster(protocol, view, population=population).values()
        found[view] = f"{max(profile.epsilon(delta) for profile in profiles):.5g}"
    return found


def check_everywhere(alpha: float, population: Population, epsilon: float, delta: float) -> None:
    """Raise InputError if alpha, found for the smallest cluster, breaks the promise in another."""
    for size in np.unique(population.sizes):
        if privacy.profile(PeerToPeer(alpha), cluster_size=int(size)).delta_bracket(epsilon).upper > delta:
            raise InputError(
                f"alpha = {alpha:.5g} keeps the promise in the smallest cluster, not in one of {size}"
            )


def private(protocol: Any, examples: Examples, seed: int) -> float:
    """Run once and return the test accuracy of a model trained on what the learner received."""
    run = p2p_sim.run(protocol, examples.population, seed=seed, digest=False)
    received = run.output("learner")
    return accuracy(examples, received["sender"], received["y"])


def _majority(examples: Examples) -> float:
    """Return the test accuracy of always giving the more frequent label of the users."""
    ones = examples.population.y.mean() > 0.5
    return round(float((examples.y_test == ones).mean()), 4)
