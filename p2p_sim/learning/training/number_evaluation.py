"""Train a regressor on the numbers that a learner received, and compare with the same one on the true numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.learning.training import models

Array = npt.NDArray[Any]

RELEASED, TRUE, CONSTANT = "released", "true", "constant"


@dataclass(frozen=True)
class Errors:
    """Of predictions of the test rows' true numbers, in the label's unit: root mean square and mean absolute error.

    ``r2``: the share of the test numbers' variance that is explained, 1 at best, below 0 for what is worse than their
    mean; None where they are all alike.
    """

    rmse: float
    mae: float
    r2: float | None


@dataclass(frozen=True)
class NumberComparison:
    """Test errors of a regressor that learnt "released" numbers, of one that learnt "true" ones, of a "constant"."""

    model: str
    trained_on: int  # numbers released
    of: int  # training users
    test_rows: int
    errors: dict[str, Errors]
    note: str = ""  # what to know before reading the figures


def compare(
    x_train: Array,
    values: Array,
    x_test: Array,
    values_test: Array,
    sender: Array,
    released: Array,
    model: str = models.REGRESSOR,
) -> NumberComparison:
    """Train ``model`` on the released numbers, and on the true numbers of all users; measure both on test rows.

    ``x_*`` (n, d), ``values*`` (n,): features and true numbers of both parts.  ``sender`` (m,): rows of x_train;
    ``released`` (m,): what was received from them.  Without any the model is the mean of the true numbers, and ``note``
    says so.  Raises InputError for a model that cannot be trained.
    """
    mean = np.full(len(values_test), values.mean())
    notes = list[str]()
    found = {RELEASED: mean, TRUE: _fit_predict(model, x_train, values, x_test, TRUE, notes), CONSTANT: mean}
    if len(released):
        found[RELEASED] = _fit_predict(model, x_train[sender], released, x_test, RELEASED, notes)
    else:
        notes.append("no number was released: the mean of the true ones is predicted")
    errors = {name: measure(values_test, predicted) for name, predicted in found.items()}
    worse = [name for name in (RELEASED, TRUE) if errors[name].rmse > errors[CONSTANT].rmse]
    if worse:
        notes.append(
            f"the true numbers' mean has a smaller error than what the model learnt of the {' and the '.join(worse)} "
            "numbers"
        )
    return NumberComparison(model, len(released), len(values), len(values_test), errors, "; ".join(notes))


def measure(true: Array, predicted: Array) -> Errors:
    """Return the errors of predictions (m,) of numbers (m,), m at least 1."""
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    varies = len(true) > 1 and bool((true != true[0]).any())
    return Errors(
        float(root_mean_squared_error(true, predicted)),
        float(mean_absolute_error(true, predicted)),
        float(r2_score(true, predicted)) if varies else None,
    )


def _fit_predict(model: str, x: Array, y: Array, x_test: Array, which: str, notes: list[str]) -> Array:
    """Train, and predict the test rows; a failure to converge becomes a note, other warnings go to the caller."""
    regressor = models.make_regressor(model)
    with models.fitting(model, f"the {which} numbers", notes):
        return np.asarray(regressor.fit(x, y).predict(x_test), np.float64).reshape(-1)
