"""How fast logistic regression with weighted losses is, beside scikit-learn's own on the same problem in the same call.

``python -m benchmarks.losses --rows 60000 --cases mnist,memory --json``: ``mnist`` are the first N of the 60,000
training images, 784 features scaled to [0, 1], ten classes (P2P_SIM_DATA names the folder with mnist), both by L-BFGS
in one thread, for the same number of steps.  ``ratio_cpu_losses`` is of weights on the same rows that correct for
randomized response.
A ratio is the time of scikit-learn over that here, the median over interleaved pairs: above 1 it is faster here.
``memory``: the peak in bytes of a fresh process that fits 1e6 rows of 50 features and ten classes.
``python -m benchmarks.losses beside ROWS``: that peak.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import measure
from benchmarks.command_line import command_line
from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import datasets
from p2p_sim.learning.training.models import one_thread
from p2p_sim.privacy import ResamplingMatrices

Array = npt.NDArray[Any]
Progress = Callable[[str, int, int], None]

ROWS, SEED, STEPS = 60_000, 7, 50
LARGE, FEATURES, LABELS = 1_000_000, 50, 10
LIE = 0.4
CASES = ("mnist", "memory")
TARGETS: dict[str, dict[str, float]] = {"mnist": {"ratio_cpu": 0.5}, "memory": {"bytes": 3 * 2**30}}


def main(rows: int, cases: tuple[str, ...], repeat: int, progress: Progress) -> dict[str, Any]:
    """Measure the cases."""
    for case in cases:
        if case not in CASES:
            raise InputError(f"no case {case!r}; there are {', '.join(CASES)}")
    made = {"mnist": lambda: _mnist(rows, repeat, progress), "memory": _memory}
    return {"machine": measure.machine(), "rows": [made[case]() for case in cases]}


def _mnist(rows: int, repeat: int, progress: Progress) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression

    data = datasets.load("mnist", multiclass=True)
    train = np.flatnonzero(~data.test if data.test is not None else np.ones(len(data.y), np.bool_))[:rows]
    x, y = np.ascontiguousarray(data.x[train], np.float64) / 255, data.y[train]
    del data
    weights = corrected(y)
    models = [
        lambda: LogisticRegression(max_iter=STEPS).fit(x, y),
        lambda: regression().fit(x, y),
        lambda: regression().fit_losses(x, weights),
    ]
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fixed number of steps, so that all do the same work
        done = iter(range(1, repeat + 1))
        floors, ours, losses = measure.interleaved(
            [measure.timed(model) for model in models], repeat, lambda: progress("mnist", next(done), repeat)
        )
        steps = [int(np.max(model().n_iter_)) for model in models]
    ratio = round(measure.ratio(floors, ours, "cpu"), 4)
    return {
        "case": "mnist", "rows": len(y), "features": x.shape[1], "steps": steps, "ratio_cpu": ratio,
        "ratio_cpu_losses": round(measure.ratio(floors, losses, "cpu"), 4),
        "target": TARGETS["mnist"], "reached": ratio >= TARGETS["mnist"]["ratio_cpu"],
    }  # fmt: skip


def regression() -> Any:
    """Return the model with as many steps as scikit-learn's."""
    from p2p_sim.learning.training.weighted_regression import WeightedLossRegression

    return WeightedLossRegression(max_iter=STEPS)


def corrected(y: Array) -> Array:
    """Return the weights of labels as randomized response would release them."""
    rng = np.random.default_rng(SEED)
    lies = rng.random(len(y)) < LIE
    said = np.where(lies, (y + rng.integers(1, LABELS, len(y))) % LABELS, y).astype(np.int64)
    return ResamplingMatrices.uniform(LABELS, LIE).weights(np.arange(len(y)), said)


def _memory() -> dict[str, Any]:
    size = measure.in_fresh_process("benchmarks.losses", "beside", LARGE)
    bound = TARGETS["memory"]["bytes"]
    return {
        "case": "memory", "rows": LARGE, "features": FEATURES, "bytes": size, "target": TARGETS["memory"],
        "reached": size < bound,
    }  # fmt: skip


def beside(rows: int) -> int:
    """Return the peak of this process, which makes rows and fits to weights of their losses."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(rows, FEATURES))
    y = (x[:, :LABELS] + rng.gumbel(size=(rows, LABELS))).argmax(axis=1)
    found = regression().fit_losses(x, corrected(y))
    assert found.coef_.shape == (LABELS, FEATURES)
    return measure.peak_memory()


if __name__ == "__main__":
    if sys.argv[1:2] == ["beside"]:
        with measure.json_only() as write:
            write(f"{beside(int(sys.argv[2]))}\n")
    else:
        command_line(sys.modules[__name__], ROWS, "rows")
