"""ClusterRR beside UniformRR and DP-SGD on MNIST (Clustering 2022, Figure 1): accuracy at the same total epsilon.

``python -m experiments.cluster_response --out cluster_response.csv``; a quarter of an hour of processor time, and it
goes on where it was ended.  Multinomial logistic regression, 100 k-means clusters, 5 trials of the mechanism; the total
is by Theorem 1 as corrected; DP-SGD on the same rows, at delta = 1/n.  Images are averaged over 2 by 2 pixels: half a
point of accuracy on true labels, for a quarter of the time.
"""

from __future__ import annotations

import argparse
import functools
import math
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
from experiments._rows import Case, Kept, Row, add_fresh, content, described, keeping, standard_error
from experiments.baselines import BATCHES, POISSON, SHARE, THROUGH
from p2p_sim import InputError, Population, privacy
from p2p_sim.learning import experiment
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training import dp_sgd_accounting as accounting
from p2p_sim.learning.training.dp_sgd import LIPSCHITZ, PASSES, DPSGDClassifier
from p2p_sim.learning.training.models import one_thread
from p2p_sim.learning.training.weighted_regression import WeightedLossRegression
from p2p_sim.privacy.mechanisms.cluster_response import evidence
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


POOLED = "images of 28 by 28 averaged over 2 by 2 pixels"
BOUND = 4.0
"""A public bound on the length of a row of averaged pixels up to 1: a share of what the format allows, 14."""

POISSON_DPSGD, BY_ITERATION = "DP-SGD", "DP-SGD, by iteration"
DPSGD = (POISSON_DPSGD, BY_ITERATION)
"""With Poisson batches, all iterates released; and by iteration, as the paper accounts: see ``experiments.baselines``.
Settings are those chosen there for 10,000 rows of Fashion-MNIST."""


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


def is_image(people: Population) -> bool:
    """Whether rows are images, whose pixels are averaged."""
    return people.x is not None and people.x.shape[1] == SIDE**2


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
) -> list[Row]:
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


@functools.cache
def dp_sgd(name: str, epsilon: float, users: int, classes: int) -> DPSGDClassifier:
    """Return a classifier by DP-SGD that spends ``epsilon`` at delta = 1/n."""
    names: dict[str, Any] = {"bound": BOUND, "classes": list(range(classes))}
    if name == POISSON_DPSGD:
        rate, steps = POISSON["rate"], POISSON["steps"]
        noise = accounting.calibrate_poisson(epsilon, 1 / users, rate, steps, accounting.REPLACE_ONE)
        return DPSGDClassifier(noise, **POISSON, **names)
    size = users / BATCHES
    noise = accounting.calibrate_by_iteration(epsilon, 1 / users, BATCHES, THROUGH, SHARE)
    return DPSGDClassifier(
        noise, clip=LIPSCHITZ, rate=1 / BATCHES, steps=BATCHES * THROUGH, average=0.0, batches=PASSES,
        learning_rate=2 * size / math.ceil(size) * (1 - 1e-12), **names,
    )  # fmt: skip


def descent(data: str, clusters: int, name: str, epsilon: float, seed: int) -> list[Row]:
    """Return the row of one training by DP-SGD, with what it spends of its rows."""
    print(f"{data}: {name}, epsilon = {epsilon}, trial {seed}", file=sys.stderr, flush=True)
    found, (x, x_test) = examples(data, clusters), features(data, clusters)
    people = found.population
    model = dp_sgd(name, epsilon, people.users, people.labels)
    with one_thread():
        right = model.set_params(seed=seed).fit(x, people.y).score(x_test, found.y_test)
    delta = 1 / people.users
    if name == POISSON_DPSGD:
        spent = model.epsilon(delta, accounting.REPLACE_ONE)
        includes = "one row replaced, features and label; all iterates released"
    else:
        spent, worst = model.epsilon_by_iteration(delta, SHARE), model.epsilon_by_iteration(delta)
        includes = (
            "one row of the first half replaced, features and label; last iterate alone; a row of the last batch has "
            f"{worst:.4g}"
        )
    return [
        {
            "mechanism": name, "epsilon": epsilon, "C": "", "accuracy": float(right),
            "spent": spent, "delta": delta, "includes": includes,
        }
    ]  # fmt: skip


def loss_weights(
    protocol: ClusterResponse, columns: dict[str, Array], people: Population, *, corrected: bool
) -> Array:
    """Return weights (n, k) of the modified loss, by user, with beta = lambda if ``corrected``; else with beta = 0."""
    order = np.argsort(columns["sender"])
    if not corrected:
        return np.asarray(np.eye(protocol.labels)[columns["y"][order]])
    return evidence(protocol, columns, people).unbiased()[order]


def truth(data: str, clusters: int, penalties: Sequence[float] = PENALTIES) -> list[Row]:
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
            for name in DPSGD:
                settings = about | {"mechanism": name, "epsilon": epsilon, "seed": seed}
                yield settings, functools.partial(descent, data, clusters, name, epsilon, seed)


def rows(
    data: str,
    clusters: int = CLUSTERS,
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = SEEDS,
    penalties: Sequence[float] = PENALTIES,
    kept: Kept | None = None,
) -> list[Row]:
    """Return a row for each mechanism, epsilon and penalty: what it promises, accuracy, and its standard error."""
    found = (kept or Kept()).take(list(cases(data, clusters, epsilons, seeds, penalties)))
    whole = {row["C"]: row["accuracy"] for row in found if row["mechanism"] == "true labels"}
    keys = list(dict.fromkeys((row["mechanism"], row["epsilon"], row["C"]) for row in found))
    people = examples(data, clusters).population
    about = described(
        data, people.y, multiclass=True, classes=people.labels, how=POOLED if is_image(people) else ""
    )
    about |= {"test_n": len(examples(data, clusters).y_test), "clusters": clusters}
    return [_row(about, key, found, whole) for key in sorted(keys, key=lambda key: str(key[1]))]


def promised(one: Row, classes: int) -> Row:
    """Return what the mechanism of a trial promises to each view, and of what."""
    name = one["mechanism"]
    if name == "true labels":
        return {"epsilon_learner": "inf", "epsilon_trusted": "inf", "delta": "0", "includes": "nothing"}
    if name in DPSGD:
        spent, delta, includes = one["spent"], one["delta"], one["includes"]
    else:
        protocol = MECHANISMS[name].protocol(one["epsilon"], classes)
        spent, delta = privacy.profile(protocol, view="learner").epsilon(0.0), 0.0
        includes = "one label replaced; q~ and labels released; phi, clusters and features are public"
    return {
        "epsilon_learner": f"{spent:.5g}", "epsilon_trusted": "inf", "delta": f"{delta:.4g}",
        "includes": f"{includes}; tuning is not included",
    }  # fmt: skip


def _row(about: Row, key: tuple[str, Any, float], found: list[Row], whole: dict[float, float]) -> Row:
    mechanism, epsilon, penalty = key
    trials = [row for row in found if (row["mechanism"], row["epsilon"], row["C"]) == key]
    got = [row["accuracy"] for row in trials]
    mean = statistics.mean(got)
    return {
        **about,
        "epsilon": epsilon,
        "mechanism": mechanism,
        "C": penalty,
        **promised(trials[0], len(about["class_shares"].split())),
        "trials": len(got),
        "accuracy": round(mean, 4),
        "standard_error": standard_error(got),
        "of_true_labels": round(mean / whole.get(penalty, max(whole.values())), 4),
    }


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
