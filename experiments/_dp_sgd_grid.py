"""Choose settings of DP-SGD on training rows alone: ``python -m experiments._dp_sgd_grid FILE.csv [--workers N]``.

Writes the accuracy of each setting of the grids on rows that are held out, as in ``dp_sgd_grid.csv``, and prints what
is best.  Exits 1 if that is not what ``_dp_sgd.CHOSEN`` has.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _clustering_images as learning
from experiments import _dp_sgd as dp_sgd
from experiments import baselines
from experiments._common import write_csv
from experiments._processors import Processors
from experiments._rows import Case, Kept, Row, content

TRIALS = 1
COMPONENTS, HELD_OUT = 100, 6
"""A sixth of the training rows is held out, of images as Figure 1 of Clustering 2022 uses them."""

FIGURE = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
EPSILONS = {"mnist": FIGURE, "fashion-mnist": FIGURE, "cifar10": FIGURE, dp_sgd.PIXELS: baselines.EPSILONS}


def cases() -> Iterator[Case]:
    """Yield each trial of each setting of the grids."""
    for seed, data in itertools.product(range(TRIALS), EPSILONS):
        for epsilon, (grid, settings) in itertools.product(EPSILONS[data], dp_sgd.GRIDS.items()):
            for setting in settings:
                about = {
                    "data": data, "content": content(data.partition(",")[0], multiclass=True), "epsilon": epsilon,
                    "grid": grid, "setting": str(setting), "seed": seed,
                }  # fmt: skip
                yield about, functools.partial(trial, about, setting)


def trial(about: Mapping[str, Any], setting: dp_sgd.Settings) -> list[Row]:
    """Return the accuracy on held-out rows of one run."""
    rows, bound = _rows(about["data"])
    right = dp_sgd.accuracy(setting.model(about["epsilon"], len(rows[0]), bound), rows, about["seed"])
    return [{**about, "accuracy": right}]


@functools.lru_cache(maxsize=1)
def _rows(data: str) -> tuple[Any, float]:
    """Return training rows without those held out, these in place of test rows, and the bound of their lengths."""
    if data == dp_sgd.PIXELS:
        name, count = data.partition(",")[0], dp_sgd.ROWS[data]
        x, y, *_, classes = baselines._examples(name, 2 * count)
        return (x[:count], y[:count], x[count:], y[count:], classes), baselines.BOUNDS[name]
    found = learning.images(data, None, COMPONENTS)
    order = np.random.default_rng(0).permutation(len(found.y))  # the rows of CIFAR-10 come class by class
    out, kept = np.split(order, [len(order) // HELD_OUT])
    return (found.x[kept], found.y[kept], found.x[out], found.y[out], found.classes), learning.BOUND


def best(found: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, float], str]:
    """Return the setting with the highest mean for each data set, grid and epsilon; of equals the first."""
    means: dict[tuple[str, str, float], dict[str, list[float]]] = {}
    for row in found:
        where = (row["data"], row["grid"], float(row["epsilon"]))
        means.setdefault(where, {}).setdefault(row["setting"], []).append(float(row["accuracy"]))
    return {where: max(each, key=lambda name: statistics.mean(each[name])) for where, each in means.items()}


def there() -> dict[tuple[str, str, float], str]:
    """Return what ``_dp_sgd.CHOSEN`` has."""
    return {
        (data, grid, epsilon): str(setting)
        for data, grids in dp_sgd.CHOSEN.items()
        for grid, table in grids.items()
        for epsilon, setting in table.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is not kept from an earlier run, and hold the table to it."""
    parser = argparse.ArgumentParser("python -m experiments._dp_sgd_grid")
    parser.add_argument("file", type=Path)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args(arguments)
    kept = Kept(given.file, "trials", Processors.asked(given.workers, None, quick=False))
    found = kept.take(list(cases()))
    write_csv(given.file, found)
    for (data, grid, epsilon), setting in best(found).items():
        print(f"{data}, {grid}, {epsilon:g}: {setting}")
    return int(best(found) != there())


if __name__ == "__main__":
    from experiments import _dp_sgd_grid  # by its name, under which workers find its functions

    sys.exit(_dp_sgd_grid.main())
