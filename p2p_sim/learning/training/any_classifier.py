"""Label noise corrected for classifiers that take labels and weights of rows alone, such as boosted trees.

Two ways that need no loss of one's own: correct the probabilities after training, or train on a copy of each row for
each label, weighted by how likely it is that the label is the true one (EM), which ends at the forward correction.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.losses import LEAST, likelihoods_and_shares
from p2p_sim.learning.training.models import one_thread
from p2p_sim.privacy.label_matrices import Evidence, inverse

Array = npt.NDArray[Any]


def after_training(probabilities: Array, matrix: Array) -> Array:
    """Return probabilities (m, k) of true labels from those of reported labels, of a model that was trained on these.

    ``matrix`` (k, k): P(reported | true), a row for each true label; its inverse is applied, and the result projected
    on the probability simplex, for it may lie outside.  Raises InputError for a matrix without a usable inverse, and
    for probabilities of another shape.

    *Source:* Zhang, Lee, Agarwal 2021, "Learning from noisy labels with no change to the training process": what
    Attacks 2023, Appendix B, calls post-training noise correction of LP-1ST.
    """
    if probabilities.ndim != 2 or probabilities.shape[1] != len(matrix):
        raise InputError(
            f"probabilities have shape {probabilities.shape}; give (m, {len(matrix)}), a column for each label of "
            "the matrix: those that were never reported have 0"
        )
    return _on_simplex(probabilities @ inverse(matrix))


def _on_simplex(rows: Array) -> Array:
    """Return the nearest probabilities to each row (m, k), in Euclidean distance.

    *Source:* Held, Wolfe, Crowder 1974.
    """
    k = rows.shape[1]
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, k + 1)
    used = (falling > excess).sum(axis=1)
    return np.asarray(np.maximum(rows - excess[np.arange(len(rows)), used - 1][:, None], 0))


def weighted_copies(x: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return a copy of each row for each label that has a weight: rows (c, d), labels (c,) and weights (c,).

    ``weights`` (n, k): at least 0; copies of weight 0 are left out.  Raises InputError for weights below 0: trees
    divide by sums of weights, which may then be 0 or less, and clipping them would bias the loss towards the majority.
    """
    if weights.shape[:1] != x.shape[:1] or weights.ndim != 2:
        raise InputError(f"weights have shape {weights.shape}; give ({len(x)}, k), one row for each row of x")
    if not (weights >= 0).all():
        raise InputError(
            f"weights go down to {float(weights.min()):.6g}: trees take none below 0; use ForwardClassifier, whose "
            "weights are probabilities, or correct the probabilities after training (after_training)"
        )
    row, label = np.nonzero(weights)
    return x[row], label, weights[row, label]


class ForwardClassifier:
    """Any scikit-learn classifier with sample weights and probabilities, trained on reports by EM.

    ``classifier``: untrained; cloned for every round.  ``rounds``: at least 1.  In each round every report's label has
    the posterior probability of being true that the model of the last round gives, and the next is trained on copies
    weighted by it.  The first model are label shares alone.  For a classifier that maximizes a likelihood, a round does
    not lower the likelihood of the reports, which is the forward correction; for others, such as trees that stop
    early, nothing is promised.
    """

    def __init__(self, classifier: Any, rounds: int = 5):
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise InputError(f"rounds = {rounds!r}: must be an integer of at least 1")
        self.classifier, self.rounds = classifier, rounds

    def fit(self, x: Array, evidence: Evidence) -> Self:
        """Fit to reports of users with features x (n, d); raises InputError if there is none, or none says anything."""
        from sklearn.base import clone

        rows = evidence.rows(x)
        likelihood, shares = likelihoods_and_shares(evidence)
        self.labels = len(shares)
        chance = np.tile(shares, (len(rows), 1))
        for _ in range(self.rounds):
            joint = np.maximum(chance * likelihood, LEAST * likelihood)
            copies = weighted_copies(rows, joint / joint.sum(axis=1, keepdims=True))
            with one_thread():
                self.model = clone(self.classifier).fit(copies[0], copies[1], sample_weight=copies[2])
            chance = self.predict_proba(rows)
        return self

    def predict_proba(self, x: Array) -> Array:
        """Return the probability of each label, (m, k); 0 for one without weight in training."""
        found = np.zeros((len(x), self.labels))
        with one_thread():
            found[:, self.model.classes_] = self.model.predict_proba(x)
        return found

    def predict(self, x: Array) -> Array:
        """Return the likeliest label of each row; ties go to the first."""
        return np.asarray(self.predict_proba(x).argmax(axis=1))
