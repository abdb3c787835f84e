"""The DP-SGD that other mechanisms are held to: for each data set and epsilon in the best settings of a public grid.

The choice goes by rows of the training part alone, some of which are held out; ``_dp_sgd_grid`` makes it.  What it
costs is not in epsilon, which favours DP-SGD.  ``dp_sgd_grid.csv`` has the accuracy of every setting there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from p2p_sim.learning.training import dp_sgd_accounting as accounting
from p2p_sim.learning.training.dp_sgd import LIPSCHITZ, PASSES, DPSGDClassifier

SHARE = 0.5
"""The share of the rows that epsilon by iteration is of."""


@dataclass(frozen=True)
class Poisson:
    """Batches that rows join with probability ``rate``; accounted for by the PLD accountant."""

    rate: float
    steps: int
    learning_rate: float

    def __str__(self) -> str:
        return f"{self.steps} batches of {self.rate:.0%}, rate {self.learning_rate:g}"

    def model(self, epsilon: float, rows: int, bound: float) -> DPSGDClassifier:
        """Return the model for a replaced one of ``rows`` at delta = 1 / rows; longer ones than ``bound`` are cut."""
        return DPSGDClassifier(
            _poisson_noise(epsilon, rows, self.rate, self.steps), clip=1.0, bound=bound, rate=self.rate,
            steps=self.steps, learning_rate=self.learning_rate,
        )  # fmt: skip


@dataclass(frozen=True)
class InPasses:
    """``passes`` through ``batches`` in a public order; accounted for by iteration.

    Steps are the longest that the theorem allows: shorter ones need as many more, and their noise grows as much.
    """

    batches: int
    passes: int

    def __str__(self) -> str:
        return f"{self.passes} passes, {self.batches} batches"

    def model(self, epsilon: float, rows: int, bound: float) -> DPSGDClassifier:
        """Return the model for a replaced one of the first half of ``rows``, at delta = 1 / rows."""
        noise = accounting.calibrate_by_iteration(epsilon, 1 / rows, self.batches, self.passes, SHARE)
        size = rows / self.batches
        return DPSGDClassifier(
            noise, clip=LIPSCHITZ, bound=bound, rate=1 / self.batches, steps=self.batches * self.passes, average=0.0,
            learning_rate=2 * size / math.ceil(size) * (1 - 1e-12), batches=PASSES,
        )  # fmt: skip


Settings = Poisson | InPasses

GRIDS: dict[str, tuple[Settings, ...]] = {
    "in passes": (
        InPasses(50, 1), InPasses(50, 2), InPasses(100, 1), InPasses(100, 2), InPasses(100, 4), InPasses(100, 8),
        InPasses(100, 20), InPasses(100, 40), InPasses(100, 80),
    ),
    "poisson": (
        Poisson(0.05, 30, 8.0), Poisson(0.05, 100, 4.0), Poisson(0.05, 100, 8.0), Poisson(0.05, 100, 16.0),
        Poisson(0.05, 300, 8.0), Poisson(0.05, 300, 16.0), Poisson(0.05, 300, 32.0), Poisson(0.02, 1000, 16.0),
        Poisson(0.02, 1000, 32.0), Poisson(0.02, 1000, 64.0),
    ),
}  # fmt: skip
"""What is chosen from, the same for all data and every epsilon."""


@functools.lru_cache(maxsize=64)
def _poisson_noise(epsilon: float, rows: int, rate: float, steps: int) -> float:
    return accounting.calibrate_poisson(epsilon, 1 / rows, rate, steps, accounting.REPLACE_ONE)


PIXELS = "mnist, pixels"
"""What baselines are chosen on: pixels of as few rows as they have; the rows after these are held out."""
ROWS = {"mnist": 60_000, "fashion-mnist": 60_000, "cifar10": 50_000, PIXELS: 10_000}
"""Of which epsilon in the table is; the choice has a sixth less of components."""

CHOSEN: Mapping[str, Mapping[str, Mapping[float, Settings]]] = {
    "mnist": {
        "in passes": {
            0.1: InPasses(50, 2), 0.25: InPasses(100, 4), 0.5: InPasses(100, 8), 1.0: InPasses(100, 20),
            2.0: InPasses(100, 20), 4.0: InPasses(100, 80),
        },
        "poisson": {
            0.1: Poisson(0.05, 100, 8.0), 0.25: Poisson(0.05, 300, 8.0), 0.5: Poisson(0.05, 300, 16.0),
            1.0: Poisson(0.05, 300, 32.0), 2.0: Poisson(0.02, 1000, 32.0), 4.0: Poisson(0.02, 1000, 64.0),
        },
    },
    "fashion-mnist": {
        "in passes": {
            0.1: InPasses(50, 2), 0.25: InPasses(100, 4), 0.5: InPasses(100, 20), 1.0: InPasses(100, 20),
            2.0: InPasses(100, 40), 4.0: InPasses(100, 80),
        },
        "poisson": {
            0.1: Poisson(0.05, 100, 16.0), 0.25: Poisson(0.05, 300, 16.0), 0.5: Poisson(0.05, 300, 32.0),
            1.0: Poisson(0.05, 300, 32.0), 2.0: Poisson(0.02, 1000, 32.0), 4.0: Poisson(0.02, 1000, 32.0),
        },
    },
    "cifar10": {
        "in passes": {
            0.1: InPasses(50, 2), 0.25: InPasses(50, 2), 0.5: InPasses(100, 8), 1.0: InPasses(100, 8),
            2.0: InPasses(100, 8), 4.0: InPasses(100, 20),
        },
        "poisson": {
            0.1: Poisson(0.05, 100, 4.0), 0.25: Poisson(0.05, 100, 8.0), 0.5: Poisson(0.05, 300, 8.0),
            1.0: Poisson(0.05, 300, 16.0), 2.0: Poisson(0.02, 1000, 16.0), 4.0: Poisson(0.05, 300, 32.0),
        },
    },
    PIXELS: {
        "in passes": {
            0.3: InPasses(50, 2), 0.5: InPasses(50, 2), 1.0: InPasses(100, 2),
        },
        "poisson": {
            0.3: Poisson(0.05, 100, 4.0), 0.5: Poisson(0.05, 100, 8.0), 1.0: Poisson(0.05, 100, 16.0),
        },
    },
}  # fmt: skip
"""By data set, grid and epsilon; ``python -m experiments._dp_sgd_grid`` finds it, and a test holds it to its rows."""


def chosen(data: str, grid: str, epsilon: float, rows: int) -> Settings:
    """Return the settings chosen on a data set for the nearest epsilon.

    With fewer ``rows`` it is that at which they have as much noise beside them: noise goes by epsilon times rows.
    """
    table = CHOSEN[data][grid]
    like = epsilon * rows / ROWS[data]
    return table[min(table, key=lambda one: abs(math.log(one / like)))]


def accuracy(model: DPSGDClassifier, rows: Any, seed: int) -> float:
    """Return the test accuracy of a model on ``rows``: x, y, x_test, y_test, and how many classes there are."""
    x, y, x_test, y_test, classes = rows
    model.set_params(seed=seed, classes=list(range(classes)))
    return float(model.fit(x, y).score(x_test, y_test))
