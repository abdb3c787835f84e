"""Weights that make the loss of released examples unbiased, whose labels and features were replaced by chance.

*Source:* Release 2023, Lemma G.1, corrected: docs/laws.md, "Release 2023".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def of_released(said: npt.NDArray[np.intp], lam: float, labels: int) -> Array:
    """Return the weight of the loss of each released example by label, (n, k); ``lam``: below 1."""
    return np.asarray((np.eye(labels)[said] - lam / labels) / (1 - lam) ** 2)


def of_generated(lam: float, chances: Array, shares: Array) -> Array:
    """Return the weights (m, k) of rows of features, for each released example.

    ``chances`` (k, m): how likely the generator draws each row for each label; ``shares`` (k,): of the true labels.
    """
    return np.asarray(-lam / (1 - lam) * np.outer(chances.mean(axis=0), shares))
