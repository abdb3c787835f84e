"""ClusterRR beside UniformRR on MNIST (Clustering 2022, Figure 1): accuracy at the same total epsilon.

``python -m experiments.cluster_response --out cluster_response.csv``; twenty minutes of processor time, and it goes on
where it was ended.  Multinomial logistic regression, 100 k-means clusters, 5 trials of the mechanism; the total is by
Theorem 1 as corrected.  Images are averaged over 2 by 2 pixels: half a point of accuracy on true labels, for a quarter
of the time.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import p2p_sim
from experiments._common import check, write_csv
from experiments._rows import Case, Kept, add_fresh, content, keeping
from p2p_sim import InputError, Population
from p2p_sim.learning import experiment
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training.weighted_regression import WeightedLossRegression
from p2p_sim.privacy.mechanisms.cluster_response import modified_loss
from protocols import ClusterResponse

Array = npt.NDArray[Any]

EPSILONS = (0.3, 0.5, 1.0)
SEEDS = 5
CLUSTERS = 100
SIDE = 28
STEPS = 40
"""Steps of L-BFGS at most: labels this noisy are fitted long before, and more steps fit the noise."""

PENALTIES = (1.0, 1e-3)
"""C of scikit-learn's logistic regression: its default, as in the paper, and much more of a penalty, for noise."""


@dataclass(frozen=True)
class Mechanism:
    """A row's mechanism: ``preset`` and settings of ``ClusterResponse``; ``corrected``: whether beta is lambda."""

    preset: str
    corrected: bool = False
    phi: float = 0.02
    noise_share: float = 2 / 3

    def protocol(self, epsilon: float, labels: int) -> ClusterResponse:
        """Return the protocol that spends ``epsilon`` in all."""
        return ClusterResponse(epsilon, labels, self.preset, self.phi, self.noise_share)


MECHANISMS = {
    "UniformRR": Mechanism("uniform", corrected=True),  # Corollary 1: beta = lambda
    "UniformRR, beta = 0": Mechanism("uniform"),
    "ClusterRR": Mechanism("cluster"),  # Corollary 2: beta = 0, two thirds of the budget for noise
    "ClusterRR, noise share 0.2": Mechanism("cluster", noise_share=0.2),
}


@functools.lru_cache(maxsize=1)
def examples(data: str, clusters: int) -> experiment.Examples:
    """Return the data set divided and clustered, once for all rows."""
    found = datasets.load(data, multiclass=True)
    return experiment.gather(ClusterResponse(1.0, len(found.classes)), found, clusters=clusters, seed=0)


@functools.lru_cache(maxsize=1)
def features(data: str, clusters: int) -> tuple[Array, Array]:
    """Return training and test features between -1 and 1, of images their pixels averaged."""
    found = examples(data, clusters)
    assert found.population.x is not None
    most = float(np.abs(found.population.x).max())
    x, x_test = (pooled((each / most).astype(np.float32)) for each in (found.population.x, found.x_test))
    return x, x_test


def pooled(x: Array) -> Array:
    """Return images of 28 by 28 pixels as 14 by 14; other rows as they are."""
    if x.shape[1] != SIDE**2:
        return x
    return np.asarray(x.reshape(len(x), SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4)).reshape(len(x), -1))


def accuracy(data: str, clusters: int, weights: Array, penalty: float) -> float:
    """Return the test accuracy of the model with ``weights`` (n, k) of the losses of each training row."""
    x, x_test = features(data, clusters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stops on purpose
        model = WeightedLossRegression(penalty, max_iter=STEPS).fit_losses(x, weights)
    return float((model.predict(x_test) == examples(data, clusters).y_test).mean())


def trial(
    data: str, clusters: int, name: str, epsilon: float, seed: int, penalties: Sequence[float] = PENALTIES
) -> list[dict[str, Any]]:
    """Return a row for each penalty: the accuracy after one run of a mechanism."""
    print(f"{data}: {name}, epsilon = {epsilon}, trial {seed}", file=sys.stderr, flush=True)
    people = examples(data, clusters).population
    protocol = MECHANISMS[name].protocol(epsilon, len(np.unique(people.y)))
    columns = p2p_sim.run(protocol, people, seed=seed, digest=False, progress=False).outputs["learner"]
    weights = loss_weights(protocol, columns, people, corrected=MECHANISMS[name].corrected)
    return [
        {
            "mechanism": name,
            "epsilon": epsilon,
            "C": each,
            "accuracy": accuracy(data, clusters, weights, each),
        }
        for each in penalties
    ]


def loss_weights(
    protocol: ClusterResponse, columns: dict[str, Array], people: Population, *, corrected: bool
) -> Array:
    """Return weights (n, k) of the modified loss, by user, with beta = lambda if ``corrected``; else with beta = 0."""
    order = np.argsort(columns["sender"])
    if not corrected:
        return np.asarray(np.eye(protocol.labels)[columns["y"][order]])
    return modified_loss.evidence(protocol, columns, people).unbiased()[order]


def truth(data: str, clusters: int, penalties: Sequence[float] = PENALTIES) -> list[dict[str, Any]]:
    """Return a row for each penalty: the accuracy of the model on true labels."""
    y = examples(data, clusters).population.y.astype(np.int64)
    weights = np.eye(int(y.max()) + 1)[y]
    return [
        {"mechanism": "true labels", "epsilon": "inf", "C": each, "accuracy": accuracy(data, clusters, weights, each)}
        for each in penalties
    ]  # fmt: skip


def cases(
    data: str, clusters: int, epsilons: Sequence[float], seeds: int, penalties: Sequence[float] = PENALTIES
) -> Iterator[Case]:
    """Yield the settings of each trial, and what computes its rows; those of one trial of all come first."""
    about = {
        "data": data,
        "content": content(data, multiclass=True),
        "clusters": clusters,
        "C": list(penalties),
    }
    yield about, functools.partial(truth, data, clusters, penalties)
    for seed in range(seeds):
        for epsilon in epsilons:
            for name in MECHANISMS:
                settings = about | {"mechanism": name, "epsilon": epsilon, "seed": seed}
                yield settings, functools.partial(trial, data, clusters, name, epsilon, seed, penalties)


def rows(
    data: str,
    clusters: int = CLUSTERS,
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = SEEDS,
    penalties: Sequence[float] = PENALTIES,
    kept: Kept | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each mechanism, epsilon and penalty: mean accuracy, its standard error, and the relative one."""
    found = (kept or Kept()).take(list(cases(data, clusters, epsilons, seeds, penalties)))
    whole = {row["C"]: row["accuracy"] for row in found if row["mechanism"] == "true labels"}
    keys = list(dict.fromkeys((row["mechanism"], row["epsilon"], row["C"]) for row in found))
    return [
        _row(data, clusters, key, found, whole[key[2]]) for key in sorted(keys, key=lambda key: str(key[1]))
    ]


def _row(
    data: str, clusters: int, key: tuple[str, Any, float], found: list[dict[str, Any]], whole: float
) -> dict[str, Any]:
    mechanism, epsilon, penalty = key
    got = [row["accuracy"] for row in found if (row["mechanism"], row["epsilon"], row["C"]) == key]
    error = statistics.stdev(got) / len(got) ** 0.5 if len(got) > 1 else 0.0
    mean = statistics.mean(got)
    return {
        "data": data, "clusters": clusters, "epsilon": epsilon, "mechanism": mechanism, "C": penalty,
        "trials": len(got), "accuracy": round(mean, 4), "standard_error": round(error, 4),
        "of_true_labels": round(mean / whole, 4),
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="mnist", help="data set of ten classes; default: mnist")
    parser.add_argument("--clusters", type=int, default=CLUSTERS, help=f"of k-means; default: {CLUSTERS}")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help=f"trials of each mechanism; default: {SEEDS}"
    )
    parser.add_argument("--out", type=Path, default=Path("cluster_response.csv"), help="file of the table")
    add_fresh(parser)
    options = parser.parse_args()
    check(parser, options.out)
    kept = keeping(parser, options.out, "trials", fresh=options.fresh)
    try:
        table = rows(options.data, options.clusters, seeds=options.seeds, kept=kept)
    except InputError as error:
        parser.error(str(error))
    write_csv(options.out, table)
    for row in table:
        print(
            " ".join(f"{row[name]!s:>12}" for name in ("epsilon", "C", "accuracy", "standard_error")),
            row["mechanism"],
        )
