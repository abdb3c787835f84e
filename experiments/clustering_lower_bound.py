"""Label association: how well a learner finds the labels of small clusters, beside what privacy allows.

*What*: Section 6 of Clustering 2022, Theorem 5.  Each cluster has s users with s different ones of K labels, a uniform
set; the learner says which labels a cluster has.  Precision times recall is at most s e^epsilon / (K - s), for any
mechanism of pure epsilon-label-DP; sharper, precision alone is at most s e^epsilon / (s e^epsilon + K - s).

*How*: the mechanisms run, all with the same epsilon of one replaced label (ClusterRR by the corrected theorem), and
what the learner received is post-processed: "randomized response" and "peer-to-peer" say every label that somebody of
the cluster reported, "ClusterRR" the s labels of the largest noisy share, "all labels" says all of them and reads
nothing.  Peer-to-peer has the alpha of randomized response: what is resampled has the same pure epsilon.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments import _plots
from experiments._common import OWN, Claim, Experiment, Options, Outcome, main
from experiments._rows import Case
from p2p_sim import Population, privacy
from p2p_sim.core.protocol import Protocol
from protocols import ClusterResponse, PeerToPeer, RandomizedResponse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]
Row = dict[str, Any]

WHERE = "Clustering 2022, Theorem 5"
SHARPER = f"{OWN}: {WHERE}, sharper"
RESPONSE, PEERS, CENTRAL, ALL = "randomized response", "peer-to-peer", "ClusterRR", "all labels"
SEED = 0
ERRORS = 4.0
"""Standard errors that a measured precision may be above a bound on its expectation: chance does so once in 3e4."""

papers = privacy.bounds.clustering2022


@dataclass(frozen=True)
class Size:
    """How much is computed: pairs of cluster and label a setting, (K, cluster sizes), epsilons, and Ks at s = 1."""

    pairs: int
    settings: tuple[tuple[int, tuple[int, ...]], ...]
    epsilons: tuple[float, ...]
    alone: tuple[int, ...]


FULL = Size(
    16_000_000, ((10, tuple(range(1, 10))), (100, (1, 2, 5, 10, 20, 35, 50, 65, 80, 90, 95))), (1.0, 4.0),
    (10, 20, 50, 100, 250),
)  # fmt: skip
QUICK = Size(400_000, ((10, (1, 3, 6, 9)), (100, (1, 10, 50, 90))), (1.0, 4.0), (10, 50, 250))


def run(options: Options) -> Outcome:
    """Measure every setting, and hold Theorem 5 to it."""
    size = QUICK if options.quick else FULL
    rows = options.kept("clustering_lower_bound", "settings").take(cases(size))
    return Outcome({"": rows}, list(claims(rows)), {"": functools.partial(figure, rows)})


def cases(size: Size) -> list[Case]:
    """Return all settings and what measures them."""
    return [
        ({"labels": k, "cluster_size": s, "epsilon": epsilon, "pairs": size.pairs, "seed": SEED},
         functools.partial(measured, k, s, epsilon, size.pairs, SEED))
        for k, s, epsilon in settings(size)
    ]  # fmt: skip


def settings(size: Size) -> Iterator[tuple[int, int, float]]:
    """Yield K, s and epsilon of each setting."""
    found = [(k, s, epsilon) for k, sizes in size.settings for s in sizes for epsilon in size.epsilons]
    found += [(k, 1, epsilon) for k in size.alone for epsilon in size.epsilons]
    yield from dict.fromkeys(found)


def measured(k: int, s: int, epsilon: float, pairs: int, seed: int) -> list[Row]:
    """Return a row for each mechanism."""
    print(f"K = {k}, s = {s}, epsilon = {epsilon:g}", file=sys.stderr, flush=True)
    y = label_sets(k, s, pairs // k, seed)
    true = np.zeros((len(y), k), bool)
    np.put_along_axis(true, y.astype(np.int64), values=True, axis=1)
    people = Population.from_arrays(y=y.ravel(), cluster=np.repeat(np.arange(len(y)), s))
    return [_row(name, k, s, epsilon, true, said(people, k, s, epsilon, seed)) for name, said in SAID.items()]


def label_sets(k: int, s: int, clusters: int, seed: int) -> Array:
    """Return the labels of each cluster, (clusters, s): uniform sets of s of K."""
    rng = np.random.default_rng([seed, k, s])
    return rng.random((clusters, k)).argsort(axis=1)[:, :s].astype(np.uint8)


def _reported(protocol: Protocol, people: Population, k: int, s: int, seed: int) -> Array:
    received = p2p_sim.run(protocol, people, seed=seed, digest=False, progress=False).outputs["learner"]
    said = np.zeros((people.users // s, k), bool)
    said[received["sender"] // s, received["y"]] = True
    return said


def _response(people: Population, k: int, s: int, epsilon: float, seed: int) -> Array:
    return _reported(RandomizedResponse(epsilon, labels=k), people, k, s, seed)


def _peers(people: Population, k: int, s: int, epsilon: float, seed: int) -> Array:
    alpha = (k - 1) / (k - 1 + math.exp(epsilon))
    return _reported(PeerToPeer(alpha, labels=k), people, k, s, seed)


def _central(people: Population, k: int, s: int, epsilon: float, seed: int) -> Array:
    """Draw every label from the noisy distribution, on which all is spent: lambda = 1, as Section 6 has it."""
    protocol = ClusterResponse.given(tau=0, sigma=2 / Fraction(epsilon), lam=1, labels=k, grid=4)
    received = p2p_sim.run(protocol, people, seed=seed, digest=False, progress=False).outputs["learner"]
    weights = received["weights"][np.argsort(received["q_cluster"])]
    said = np.zeros(weights.shape, bool)
    np.put_along_axis(said, np.argpartition(-weights, s - 1, axis=1)[:, :s], values=True, axis=1)
    return said


def _all(people: Population, k: int, s: int, epsilon: float, seed: int) -> Array:  # noqa: ARG001
    return np.ones((people.users // s, k), bool)


SAID: dict[str, Callable[[Population, int, int, float, int], Array]] = {
    RESPONSE: _response, PEERS: _peers, CENTRAL: _central, ALL: _all,
}  # fmt: skip


def _row(name: str, k: int, s: int, epsilon: float, true: Array, said: Array) -> Row:
    """Return precision and recall as the paper defines them, ratios of means over clusters, with standard errors."""
    right, all_said = (said & true).sum(axis=1), said.sum(axis=1)
    clusters = len(said)
    precision, recall = float(right.sum() / all_said.sum()), float(right.mean() / s)
    product, sharper = papers.theorem5_printed(s, k, epsilon), papers.theorem5_sharper(s, k, epsilon)
    error = (right - precision * all_said).std(ddof=1) / all_said.mean() / clusters**0.5  # of a ratio
    return {
        "mechanism": name, "labels": k, "cluster_size": s, "epsilon": epsilon, "share": round(s / k, 4),
        "precision": round(precision, 6), "precision_error": round(float(error), 6),
        "recall": round(recall, 6), "recall_error": round(float(right.std(ddof=1) / s / clusters**0.5), 6),
        "product": round(precision * recall, 6), "product_bound": round(product.value, 6),
        "precision_bound": round(sharper.value, 6), "clusters": clusters,
        "data": "made up: uniform sets of labels",
    }  # fmt: skip


def claims(rows: Sequence[Row]) -> Iterator[Claim]:
    """Yield what Theorem 5 and its proof say, and what came out."""
    yield _bounded(
        rows, WHERE, "product", "product_bound", "precision times recall is at most s e^epsilon / (K - s)",
        "any mechanism of pure epsilon; where the bound is above 1 it says nothing",
    )  # fmt: skip
    yield _bounded(
        rows, SHARPER, "precision", "precision_bound",
        "precision alone is at most s e^epsilon / (s e^epsilon + K - s)",
        "not in the paper: a true label is said at most e^epsilon times as often as another",
    )  # fmt: skip
    yield _attained(rows)
    yield _vanishing(rows)


def _bounded(rows: Sequence[Row], where: str, value: str, bound: str, says: str, why: str) -> Claim:
    broken = [row for row in rows if row[value] - ERRORS * _error(row, value) > row[bound]]
    worst = max(rows, key=lambda row: float(row[value] / row[bound]))
    idle = sum(row[bound] > 1 for row in rows)
    at = ", ".join(f"{name} {worst[name]}" for name in ("mechanism", "labels", "cluster_size", "epsilon"))
    found = (
        f"{len(broken)} of {len(rows)} measurements are above by {ERRORS:g} standard errors; nearest "
        f"{worst[value]:.4f} against {worst[bound]:.4f} ({at}); the bound is above 1 at {idle}"
    )
    return Claim(where, says, found, "not reproduced" if broken else "reproduced", why)


def _error(row: Row, value: str) -> float:
    """Return the standard error of precision, or an upper end of that of the product."""
    if value == "precision":
        return float(row["precision_error"])
    return float(row["precision_error"] * row["recall"] + row["precision"] * row["recall_error"])


def _attained(rows: Sequence[Row]) -> Claim:
    here = [row for row in rows if row["mechanism"] == RESPONSE and row["cluster_size"] == 1]
    off = [(row["precision"] - row["precision_bound"]) / row["precision_error"] for row in here]
    first = here[0]
    return Claim(
        SHARPER, "k-ary randomized response attains the bound on precision where s = 1",
        f"{first['precision']:.5f} ({first['precision_error']:.5f}) against {first['precision_bound']:.5f} at "
        f"K = {first['labels']}, epsilon = {first['epsilon']:g}; of {len(here)} settings the furthest is off by "
        f"{max(map(abs, off)):.1f} standard errors",
        "reproduced" if max(map(abs, off)) <= ERRORS else "not reproduced",
        "so no sharper bound on precision holds for all mechanisms at s = 1",
    )  # fmt: skip


def _vanishing(rows: Sequence[Row]) -> Claim:
    """Return Theorem 5 as stated: with s = o(K) and a constant epsilon, one of the two goes to 0."""
    alone = [row for row in rows if row["cluster_size"] == 1]
    few, many = (pick(row["labels"] for row in alone) for pick in (min, max))
    told, falls = [], True
    for row in alone:
        if row["labels"] != many or row["mechanism"] == ALL:
            continue
        key = ("mechanism", "epsilon")
        start = next(
            each for each in alone if each["labels"] == few and all(each[name] == row[name] for name in key)
        )
        told.append(
            f"{row['mechanism']}, epsilon = {row['epsilon']:g}: {start['product']:.4f} to {row['product']:.4f}"
        )
        falls = falls and row["product"] * 2 < start["product"]
    return Claim(
        WHERE, "with s = o(K) and a constant epsilon, precision or recall goes to 0",
        f"their product at s = 1, from K = {few} to {many}: {'; '.join(told)}",
        "reproduced" if falls else "not reproduced",
        "these are our mechanisms; that it is so for all of them is the theorem",
    )  # fmt: skip


def figure(rows: Sequence[Row]) -> Figure:
    """Draw precision and recall over s/K for the most labels with a sweep, at each epsilon, beside the bounds."""
    labels = max(
        {row["labels"] for row in rows if row["cluster_size"] > 1},
    )
    epsilons = sorted({row["epsilon"] for row in rows})
    drawn, grid = _plots.panels(2, len(epsilons), (4.8 * len(epsilons), 7.4))
    for column, epsilon in enumerate(epsilons):
        here = [row for row in rows if (row["labels"], row["epsilon"]) == (labels, epsilon)]
        for axes, value, bound in zip(
            grid[:, column], ("precision", "product"), ("precision_bound", "product_bound"), strict=True
        ):
            for name, colour, marker in zip(SAID, _plots.COLOURS, _plots.MARKERS, strict=False):
                line = [row for row in here if row["mechanism"] == name]
                x = [row["share"] for row in line]
                axes.plot(x, [row[value] for row in line], color=colour, marker=marker, label=name)
                if value == "precision":
                    recalls = [row["recall"] for row in line]
                    axes.plot(x, recalls, color=colour, linestyle=":", label=f"{name}: recall")
            limit = [row for row in here if row["mechanism"] == ALL]
            axes.plot(
                [row["share"] for row in limit], [min(row[bound], 1.0) for row in limit], "--",
                color=_plots.BLACK, label="bound",
            )  # fmt: skip
            axes.set(
                xlabel="s / K",
                ylabel={"product": "precision × recall"}.get(value, "precision, recall (dotted)"),
            )
            axes.set_title(f"K = {labels}, ε = {epsilon:g}")
            axes.grid(True, alpha=0.3)
    handles, names = grid[0][0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, fontsize="x-small")
    return drawn


EXPERIMENT = Experiment(
    "clustering_lower_bound", "Label association beside its lower bound", WHERE, "a minute", run,
    keys=("mechanism", "labels", "cluster_size", "epsilon"),
    values={"precision": "precision_error", "recall": "recall_error", "product_bound": 1e-5}, seeded=False,
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
