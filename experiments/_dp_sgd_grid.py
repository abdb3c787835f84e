"""Choose settings of DP-SGD on training rows alone: ``python -m experiments._dp_sgd_grid FILE.csv [--workers N]``.

Writes the accuracy of each setting of the grids on rows that are held out, and exits 1 if ``_dp_sgd.CHOSEN`` is not what
these choose.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _clustering_images as learning
from experiments import _dp_sgd, baselines
from experiments._processors import Processors
from experiments._rows import Case, Kept, Row, content

TRIALS = 2
HELD_OUT = 6
"""Of components a sixth of the training rows is held out."""
COMPONENTS, PIXELS = "100 components", "pixels of 10000 rows"


@dataclass(frozen=True)
class Data:
    """Rows that settings are chosen on."""

    name: str
    features: str
    epsilons: tuple[float, ...]


IMAGES = tuple(
    Data(name, COMPONENTS, (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)) for name in ("mnist", "fashion-mnist", "cifar10")
)
SETS = (*IMAGES, Data("fashion-mnist", PIXELS, (0.3, 0.5, 1.0)))


def cases(sets: tuple[Data, ...] = SETS) -> Iterator[Case]:
    """Yield each trial of each setting of the grids."""
    for seed, data in itertools.product(range(TRIALS), sets):
        for epsilon, (grid, settings) in itertools.product(data.epsilons, _dp_sgd.GRIDS.items()):
            for number, setting in enumerate(settings):
                about = {
                    "data": data.name, "content": content(data.name, multiclass=True), "features": data.features,
                    "epsilon": epsilon, "grid": grid, "setting": str(setting), "number": number, "seed": seed,
                }  # fmt: skip
                yield about, functools.partial(_trial, data.name, data.features, epsilon, setting, about)


def _trial(
    name: str, features: str, epsilon: float, setting: _dp_sgd.Settings, about: dict[str, Any]
) -> list[Row]:
    rows, bound = _rows(name, features)
    right = _dp_sgd.accuracy(setting.model(epsilon, len(rows[0]), bound), rows, about["seed"])
    return [{**about, "accuracy": right}]


@functools.lru_cache(maxsize=1)
def _rows(name: str, features: str) -> tuple[Any, float]:
    """Return training rows without those held out, these in place of test rows, and the bound of their lengths."""
    if features == PIXELS:
        x, y, *_, classes = baselines._examples(name, 20_000)
        return (x[:10_000], y[:10_000], x[10_000:], y[10_000:], classes), baselines.BOUNDS[name]
    found = learning.images(name, None, 100)
    order = np.random.default_rng(0).permutation(len(found.y))  # the rows of CIFAR-10 come class by class
    few = len(order) // HELD_OUT
    out, kept = order[:few], order[few:]
    return (found.x[kept], found.y[kept], found.x[out], found.y[out], found.classes), learning.BOUND


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments._dp_sgd_grid")
    parser.add_argument("file", type=Path)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args(arguments)
    kept = Kept(given.file, "trials", Processors.asked(given.workers, None, quick=False))
    kept.take(list(cases()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
