"""Label proportions of bags: what a learner got of them, and a model trained on it."""

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
from p2p_sim.network.bags import bag_numbers

Array = npt.NDArray[Any]

MODEL = "proportion-matching logistic regression"

_COLUMNS = {"bag", "size", "total"}


@dataclass(frozen=True)
class Proportions:
    """What a learner knows: ``bag`` (n,), the row of each user in ``share`` and ``size`` (b,), -1 for none.

    ``share``: the released proportion of ones, which noise may carry beyond 0 to 1; ``size``: labels behind it;
    ``refused``: how many bags were refused, and why, in words; "" if none.
    """

    bag: Array
    share: Array
    size: Array
    refused: str = ""

    @property
    def beyond(self) -> int:
        """How many proportions lie beyond 0 to 1."""
        return int(np.count_nonzero((self.share < 0) | (self.share > 1)))

    def summary(self) -> dict[str, Any]:
        """Return how many labels and bags there are, the share of ones among all of them, and what was refused."""
        labels = int(self.size.sum())
        share = float(self.share @ self.size / labels) if labels else None
        return {
            "labels": labels, "positive_share": share, "bags": len(self.share), "refused": self.refused,
        }  # fmt: skip

    def counts(self) -> Bags:
        """Return zeros and ones of each bag, as far as it is known.

        A proportion beyond 0 to 1 is taken for the nearer of the two, which it most likely is: the loss would have no
        minimum otherwise, and a model trained on it is worse: docs/experiments.md.
        """
        ones = np.clip(self.share, 0.0, 1.0) * self.size
        return Bags(self.bag, np.stack([self.size - ones, ones], axis=1))


def of_run(columns: dict[str, Array], protocol: Protocol | None, people: Population) -> Proportions | None:
    """Return the proportions that a learner returned, or None where she returned something else.

    ``protocol``: the run's, None if it is not known.
    ``columns``: bag, size, total (in steps of 1 / grid of a label), refused (left out).  Who is in which bag is public;
    users who dropped out are taken for members all the same.
    """
    sums = None if protocol is None else protocol.bag_sums()
    if not columns.keys() >= _COLUMNS or sums is None:
        return None
    clusters = people.clusters or Members(np.zeros(people.users, np.int32), np.array([0, people.users]), None)
    number = bag_numbers(clusters, np.arange(people.users), sums.size)
    refused = columns.get("refused", np.zeros(len(columns["bag"]), np.bool_))
    kept = (columns["size"] > 0) & ~refused
    bags, size = columns["bag"][kept], columns["size"][kept]
    row = np.full(int(number.max()) + 1, -1)
    row[bags] = np.arange(len(bags))
    share = columns["total"][kept] / (sums.steps * size)
    return Proportions(row[number], share, size, _refusals(columns, sums.least) if refused.any() else "")


def _refusals(columns: dict[str, Array], least: int) -> str:
    """Say how many bags were refused, and why: too few users stayed, or too few of those who share their secrets."""
    refused, stayed, joined = columns["refused"], columns["size"], columns.get("joined")
    told = f"{int(refused.sum()):,} of {len(refused):,} bags were refused"
    if joined is None or not least:  # a protocol of one's own
        return told
    short = refused & (stayed < least)
    if short.any():
        worst = np.flatnonzero(short)[stayed[short].argmin()]
        told += f": {least:,} users must stay, in {int(short.sum()):,} of them fewer did"
        told += f" (in one {stayed[worst]:,} of {joined[worst]:,})"
    if (refused & ~short).any():
        told += f"{',' if short.any() else ':'} in {int((refused & ~short).sum()):,} secrets of somebody were lost"
    return told


def compare(
    people: Population, x_test: Array, y_test: Array, told: Proportions, model: str
) -> evaluation.Comparison:
    """Train on released proportions, and ``model`` on the true labels of all users; measure both on test rows.

    No proportions give a constant classifier, and ``note`` says so, as it says which bags were refused, and left out,
    and which proportions lay beyond 0 to 1.  ``people``: with features and bits for labels.
    """
    assert people.x is not None
    everybody = np.arange(people.users)
    # the true labels as if they had been released: figures of the true model and of the majority
    found = evaluation.compare(people.x, people.y, x_test, y_test, everybody[:0], people.y[:0], model)
    notes = [part for part in found.note.split("; ") if part and "released labels" not in part]
    notes += [f"{model} on the true labels"] if model != "logistic-regression" else []
    if told.refused:
        notes.append(told.refused)
    if told.beyond:
        notes.append(
            f"{told.beyond:,} proportions were noised beyond 0 to 1, and taken for the nearer of the two"
        )
    private = found.accuracy_private
    if len(told.share):
        matching = match(people.x, told.counts())
        private = float(np.mean(matching.predict(x_test) == y_test))
        notes += [] if matching.converged else [f"{MODEL}: did not converge"]
    else:
        notes.append("no proportion was released: a constant classifier, the majority of the true labels")
    return replace(
        found, accuracy_private=private, trained_on=len(told.share), model=MODEL, note="; ".join(notes),
        what="bags' proportions",
    )  # fmt: skip
