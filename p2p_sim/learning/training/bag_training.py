"""Learning from label proportions: the proportions of bags that a learner received, and a model trained on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.training import evaluation
from p2p_sim.learning.training.losses import Bags, match
from p2p_sim.learning.training.metrics import measure
from p2p_sim.network.bags import bag_numbers

Array = npt.NDArray[Any]

MODEL = "proportion-matching logistic regression"

_COLUMNS = {"bag", "size", "total"}


@dataclass(frozen=True)
class Proportions:
    """Label proportions of bags.  ``bag`` (n,): the row of each user in ``share`` and ``size`` (b,), -1 for none.

    ``share``: the released proportion of ones; noise may carry it outside [0, 1].  ``size``: the number of labels in
    the bag.  ``refused``: how many bags were refused, and why, in words; "" if none.
    """

    bag: Array
    share: Array
    size: Array
    refused: str = ""

    @property
    def beyond(self) -> int:
        """How many proportions lie outside [0, 1]."""
        return int(np.count_nonzero((self.share < 0) | (self.share > 1)))

    def summary(self) -> dict[str, Any]:
        """Return how many labels and bags there are, the share of ones among all of them, and what was refused."""
        labels = int(self.size.sum())
        share = float(self.share @ self.size / labels) if labels else None
        return {
            "labels": labels, "positive_share": share, "bags": len(self.share), "refused": self.refused,
        }  # fmt: skip

    def counts(self) -> Bags:
        """Return the estimated numbers of zeros and ones in each bag.

        Proportions are clipped to [0, 1]: otherwise the loss would have no minimum, and models are worse; see
        experiments/expected/corrections.csv.
        """
        ones = np.clip(self.share, 0.0, 1.0) * self.size
        return Bags(self.bag, np.stack([self.size - ones, ones], axis=1))


def of_run(columns: dict[str, Array], protocol: Protocol | None, people: Population) -> Proportions | None:
    """Return the proportions that a learner returned; None if it returned something else.

    ``columns``: bag, size, total (in steps of 1 / grid of a label), refused (these bags are left out).  ``protocol``:
    the run's, None if unknown.  Who is in which bag is public; users who dropped out still count as members.
    """
    sums = None if protocol is None else protocol.bag_sums()
    if not columns.keys() >= _COLUMNS or sums is None:
        return None
    clusters = people.clusters or Members(np.zeros(people.users, np.int32), np.array([0, people.users]), None)
    ids = np.arange(people.users) if people.ids is None else people.ids
    number = bag_numbers(clusters, ids, sums.size)
    refused = columns.get("refused", np.zeros(len(columns["bag"]), np.bool_))
    kept = (columns["size"] > 0) & ~refused
    bags, size = columns["bag"][kept], columns["size"][kept]
    row = np.full(int(number.max()) + 1, -1)
    row[bags] = np.arange(len(bags))
    share = columns["total"][kept] / (sums.steps * size)
    return Proportions(row[number], share, size, _refusals(columns, sums.least) if refused.any() else "")


def _refusals(columns: dict[str, Array], least: int) -> str:
    """Return how many bags were refused, and why: too few users stayed, or secrets of users were lost."""
    refused, stayed, joined = columns["refused"], columns["size"], columns.get("joined")
    text = f"{int(refused.sum()):,} of {len(refused):,} bags were refused"
    if joined is None or not least:  # a protocol of one's own
        return text
    short = refused & (stayed < least)
    if short.any():
        worst = np.flatnonzero(short)[stayed[short].argmin()]
        text += f": {least:,} users must stay, in {int(short.sum()):,} of them fewer did"
        text += f" (in one {stayed[worst]:,} of {joined[worst]:,})"
    if (refused & ~short).any():
        text += f"{',' if short.any() else ':'} in {int((refused & ~short).sum()):,} secrets of somebody were lost"
    return text


def compare(
    people: Population,
    x_test: Array,
    y_test: Array,
    proportions: Proportions,
    model: str,
    queries: evaluation.QueryRows | None = None,
) -> evaluation.Comparison:
    """Train on released proportions, and ``model`` on the true labels of all users; measure both on test rows.

    ``people``: needs features and binary labels.  ``queries``: what else the model of proportions predicts.  Without
    proportions the classifier is constant.  ``note`` says so, and how many bags were refused and how many proportions
    were outside [0, 1].
    """
    assert people.x is not None
    everybody = np.arange(people.users)
    # the true labels as if they had been released: figures of the true model and of the majority
    found = evaluation.compare(people.x, people.y, x_test, y_test, everybody[:0], people.y[:0], model)
    notes = [part for part in found.note.split("; ") if part and "released labels" not in part]
    notes += [f"{model} on the true labels"] if model != "logistic-regression" else []
    if proportions.refused:
        notes.append(proportions.refused)
    if proportions.beyond:
        notes.append(
            f"{proportions.beyond:,} proportions were noised beyond 0 to 1, and taken for the nearer of the two"
        )
    private, metrics = found.accuracy_private, found.metrics
    if len(proportions.share):
        matching = match(people.x, proportions.counts())
        predicted = matching.predicted(x_test)
        if queries is not None:
            queries.predicted["accuracy_private"] = matching.predicted(queries.x)
        private = evaluation.accuracy(y_test, predicted)
        metrics = metrics | {"accuracy_private": measure(y_test, predicted)}
        notes += [] if matching.converged else [f"{MODEL}: did not converge"]
        notes += [f"{MODEL}: constant, for the proportions tell nothing of features"] if matching.flat else []
    else:
        notes.append("no proportion was released: a constant classifier, the majority of the true labels")
    return replace(
        found, accuracy_private=private, trained_on=len(proportions.share), model=MODEL, note="; ".join(notes),
        what="bags' proportions", metrics=metrics,
    )  # fmt: skip
