"""Proportion matching: a logistic regression learned from the label proportions of bags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.learning import training
from p2p_sim.learning.threads import one_thread
from p2p_sim.network.bags import bag_numbers

Array = npt.NDArray[Any]

MODEL = "proportion-matching logistic regression"
PENALTY = 1.0
"""Of half the squared weights, as in scikit-learn's logistic regression with C = 1."""

_LEAST = 1e-9  # means of predictions are kept this far from 0 and 1
_COLUMNS = {"bag", "size", "total"}


@dataclass(frozen=True)
class Proportions:
    """What a learner knows: ``bag`` (n,), the row of each user in ``share`` and ``size`` (b,), -1 for none.

    ``share``: the released proportion of ones, which noise may carry beyond 0 to 1; ``size``: labels behind it.
    """

    bag: Array
    share: Array
    size: Array


def of_run(columns: dict[str, Array], parameters: dict[str, Any], people: Population) -> Proportions | None:
    """Return the proportions that a learner returned, or None where she returned something else.

    ``columns``: bag, size, total (in steps of 1 / grid of a label), refused (left out).  Who is in which bag is public;
    users who dropped out are taken for members all the same.
    """
    if not columns.keys() >= _COLUMNS or "bag_size" not in parameters:
        return None
    clusters = people.clusters or Members(np.zeros(people.users, np.int32), np.array([0, people.users]), None)
    number = bag_numbers(clusters, np.arange(people.users), int(parameters["bag_size"]))
    kept = columns["size"] > 0
    if "refused" in columns:
        kept &= ~columns["refused"]
    bags, size = columns["bag"][kept], columns["size"][kept]
    row = np.full(int(number.max()) + 1, -1)
    row[bags] = np.arange(len(bags))
    return Proportions(row[number], columns["total"][kept] / (int(parameters.get("grid", 1)) * size), size)


class ProportionMatching:
    """A logistic regression whose mean prediction over each bag is matched to the bag's proportion.

    Minimizes the cross-entropy between the two, summed over the labels, and half the squared weights, from the
    all-zero weights, by L-BFGS; features are standardized.  *Source:* Unified 2023, section 2 (PROPMATCH) and Theorem
    6.1 (noisy proportions give the same gradient on average).  *Assumes:* bags drawn at random.
    """

    def __init__(self, penalty: float = PENALTY, most: int = 500):
        self.penalty, self.most = penalty, most
        self.converged = True

    def fit(self, x: Array, told: Proportions) -> ProportionMatching:
        """Learn from features (n, d) and proportions; raises InputError where there are none."""
        from scipy.optimize import minimize

        if not len(told.share):
            raise InputError("no proportion was released: there is nothing to learn from")
        self._mean = x.mean(axis=0)
        spread = x.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        inside = told.bag >= 0
        features, bag = self._features(x[inside]), told.bag[inside]
        start = np.zeros(features.shape[1])
        middle = float(np.clip(np.average(told.share, weights=told.size), 0.01, 0.99))
        start[-1] = np.log(middle / (1 - middle))
        with one_thread():
            found = minimize(
                lambda weights: self._loss(weights, features, bag, told),
                start,
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": self.most},
            )
        self.weights, self.converged = found.x, bool(found.success)
        return self

    def predict(self, x: Array) -> npt.NDArray[np.bool_]:
        """Return for each row whether the label is more likely 1 than 0."""
        return np.asarray(self._features(x) @ self.weights > 0)

    def _features(self, x: Array) -> Array:
        return np.concatenate([(x - self._mean) / self._scale, np.ones((len(x), 1))], axis=1)

    def _loss(self, weights: Array, features: Array, bag: Array, told: Proportions) -> tuple[float, Array]:
        """Return loss and gradient."""
        from scipy.special import expit

        single = expit(features @ weights)
        members = np.bincount(bag, minlength=len(told.share))
        q = np.bincount(bag, weights=single, minlength=len(told.share)) / np.maximum(members, 1)
        q = np.clip(q, _LEAST, 1 - _LEAST)
        loss = -float(told.size @ (told.share * np.log(q) + (1 - told.share) * np.log1p(-q)))
        slope = told.size * (q - told.share) / (q * (1 - q)) / np.maximum(members, 1)
        gradient = features.T @ (slope[bag] * single * (1 - single))
        free = np.append(weights[:-1], 0.0)  # the constant is not penalized
        loss += self.penalty / 2 * float(free @ free)
        return loss, gradient + self.penalty * free


def compare(
    people: Population, x_test: Array, y_test: Array, told: Proportions, model: str
) -> training.Comparison:
    """Train on released proportions, and ``model`` on the true labels of all users; measure both on test rows.

    No proportions give a constant classifier, and ``note`` says so.  ``people``: with features and bits for labels.
    """
    assert people.x is not None
    everybody = np.arange(people.users)
    # the true labels as if they had been released: figures of the true model and of the majority
    found = training.compare(people.x, people.y, x_test, y_test, everybody[:0], people.y[:0], model)
    notes = [part for part in found.note.split("; ") if part and "released labels" not in part]
    notes += [f"{model} on the true labels"] if model != "logistic-regression" else []
    private = found.accuracy_private
    if len(told.share):
        matching = ProportionMatching().fit(people.x, told)
        private = float(np.mean(matching.predict(x_test) == y_test))
        notes += [] if matching.converged else [f"{MODEL}: did not converge"]
    else:
        notes.append("no proportion was released: a constant classifier, the majority of the true labels")
    return replace(
        found, accuracy_private=private, trained_on=len(told.share), model=MODEL, note="; ".join(notes),
        what="bags' proportions",
    )  # fmt: skip
