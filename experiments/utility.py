"""What the flipping probability costs: test accuracy of Algorithm 2 on a data set, beside the learner's exact ε.

``python -m experiments.utility --data digits --out utility.csv``; about half a minute for digits.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from pathlib import Path
from typing import Any

from experiments._common import check, write_csv
from experiments._rows import Kept, add_fresh, content, described, keeping, promised, standard_error
from p2p_sim import privacy
from p2p_sim.learning import experiment
from protocols import PeerToPeer

ALPHAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SEEDS = 5
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--out", type=Path, default=Path("utility.csv"))
    add_fresh(parser)
    options = parser.parse_args()
    check(parser, options.out)
    kept = keeping(parser, options.out, "rows", fresh=options.fresh)
    write_csv(options.out, rows(options.data, options.clusters, kept=kept))
