"""What the flipping probability costs: test accuracy of Algorithm 2 on a data set, beside the learner's exact ε.

Digits (is it 5 or more?), nine clusters by k-means, logistic regression on what the learner received; five seeds of the
protocol, with one test part and the same clusters.
"""

from __future__ import annotations

import functools
import math
import statistics
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from experiments import _plots
from experiments._common import Claim, Experiment, Options, Outcome, main
from experiments._rows import Kept, content, described, promised, standard_error
from p2p_sim import privacy
from p2p_sim.learning import experiment
from protocols import PeerToPeer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SEEDS = 5
QUICK_ALPHAS, QUICK_SEEDS = (0.0, 0.2, 0.5), 2
CLUSTERS = 9
DELTA = 1e-6


def rows(
    data: str,
    clusters: int = CLUSTERS,
    alphas: tuple[float, ...] = ALPHAS,
    seeds: int = SEEDS,
    kept: Kept | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each alpha: accuracies (mean and standard deviation over seeds) and ε of the worst cluster."""
    about = {"data": data, "content": content(data), "clusters": clusters, "seeds": seeds}
    return (kept or Kept()).take(
        [
            (about | {"alpha": alpha}, functools.partial(_row, data, clusters, alpha, seeds))
            for alpha in alphas
        ]
    )


def _row(data: str, clusters: int, alpha: float, seeds: int) -> list[dict[str, Any]]:
    print(f"{data}: alpha = {alpha}", file=sys.stderr)
    results = [
        experiment.learn(PeerToPeer(alpha), data, clusters=clusters, seed=seed) for seed in range(seeds)
    ]
    released = [result.comparison.accuracy_private for result in results if result.comparison]
    true = [result.comparison.accuracy_true for result in results if result.comparison]
    first = results[0].examples  # test part and clusters are those of each seed; epsilon of the first
    worst = privacy.profile(PeerToPeer(alpha), population=first.population)
    return [
        {
            **described(data, first.population.y),
            "test_n": len(first.y_test),
            "clusters": clusters,
            "alpha": alpha,
            "accuracy_released": round(statistics.mean(released), 4),
            "accuracy_released_sd": round(statistics.stdev(released), 4) if seeds > 1 else 0.0,
            "standard_error": standard_error(released),
            "trials": seeds,
            "accuracy_true": round(statistics.mean(true), 4),
            "learner_epsilon": round(worst.epsilon(DELTA), 4),
            "basis": worst.basis,
            **promised(
                PeerToPeer(alpha), first.population, DELTA, ("learner", "user", "learner+3*user", "wire")
            ),
        }
    ]


def run(options: Options) -> Outcome:
    """Return the table of digits, and how accuracy falls."""
    alphas, seeds = (QUICK_ALPHAS, QUICK_SEEDS) if options.quick else (ALPHAS, SEEDS)
    kept = options.kept("utility")
    found = rows("digits", alphas=alphas, seeds=options.seeds or seeds, kept=kept)
    return Outcome({"": found}, [_claim(found)], {"": lambda: _plot(found)})


def _claim(found: Sequence[dict[str, Any]]) -> Claim:
    first, last = found[0], found[-1]
    falls = _gap(first, last) > 3 and all(_gap(*steps) > -3 for steps in pairwise(found))
    accuracies = ", ".join(f"{row['accuracy_released']:.3f} at {row['alpha']:g}" for row in found)
    return Claim(
        "Clustering 2022, Theorem 4",
        "the excess risk of the peer-to-peer mechanism grows with φ + α",
        f"accuracy by α: {accuracies}; true labels {first['accuracy_true']:.3f}; what is lost at α = 0 is φ's part",
        "reproduced in shape" if falls else "not comparable",
        "the theorem's constant is unknown, so only the order can be held against it; digits and logistic regression "
        "are our choice; falling: by three joint standard errors in all, and rising nowhere by as much",
    )


def _gap(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return by how many joint standard errors the accuracy of one is above the other's."""
    errors = [float(row["standard_error"] or 0) for row in (one, other)]
    return float(one["accuracy_released"] - other["accuracy_released"]) / max(math.hypot(*errors), 1e-9)


def _plot(found: Sequence[dict[str, Any]]) -> Figure:
    figure, grid = _plots.panels(1, 1)
    axes = grid[0, 0]
    errors = [float(row["standard_error"] or 0) for row in found]
    alphas, accuracies = ([row[name] for row in found] for name in ("alpha", "accuracy_released"))
    axes.errorbar(
        alphas, accuracies, errors, color=_plots.BLUE, marker="o", capsize=3, label="released labels"
    )
    axes.axhline(found[0]["accuracy_true"], color=_plots.BLACK, linestyle="--", label="true labels")
    axes.set(xlabel="α, probability that a user flips her label", ylabel="test accuracy")
    axes.legend(fontsize="small")
    return figure


EXPERIMENT = Experiment(
    "utility", "What the flipping probability costs", "Clustering 2022, Theorem 4", "half a minute", run,
    keys=("data", "clusters", "alpha", "trials"),
    values={"accuracy_released": "standard_error", "accuracy_true": 0.01, "learner_epsilon": 1e-3},
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT))
