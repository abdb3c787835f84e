"""Canaries: users whose label a coin may flip before a run, to count what the run's model reveals about the coins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.random_words import order, stream, words
from p2p_sim.learning.training.losses import softmax
from p2p_sim.learning.training.metrics import Predicted
from p2p_sim.rundir.run_record import RunRecord

if TYPE_CHECKING:
    from p2p_sim.run import Run

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

ROLE = "planted canaries"
"""The name of all draws about them; it cannot be the name of a protocol's role."""

FEWEST = 2

MODELS = {"released": "accuracy_private", "corrected": "accuracy_corrected"}
"""The models whose confidences are kept, by column, as ``evaluation.Comparison`` calls them: trained on what was
released, and corrected for its noise."""


@dataclass(frozen=True, eq=False)
class Canaries:
    """``users`` (m,): rows of the population, ascending; ``label``: before the coin; ``other``: what it is flipped to.

    ``flipped`` (m,): how the coin fell.  ``confidences``: P(label | features) of each canary by the models of
    ``MODELS`` that were trained, (m, k).
    """

    users: Ints
    label: Ints
    other: Ints
    flipped: npt.NDArray[np.bool_]
    confidences: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)

    def subset(self, mask: npt.NDArray[np.bool_]) -> Canaries:
        """Return those canaries that a mask (m,) keeps."""
        found = {name: rows[mask] for name, rows in self.confidences.items()}
        return Canaries(self.users[mask], self.label[mask], self.other[mask], self.flipped[mask], found)

    def original_labels(self, y: Array) -> Array:
        """Return labels ``y`` (n,) of all users as they were before the coins."""
        return self._with(y, self.label)

    def planted_labels(self, y: Array) -> Array:
        """Return labels ``y`` (n,) of all users as they take part in the run."""
        return self._with(y, np.where(self.flipped, self.other, self.label))

    def _with(self, y: Array, own: Ints) -> Array:
        found = y.copy()
        found[self.users] = own.astype(y.dtype)
        return found

    def counts(self) -> dict[str, int]:
        """Return how many there are and how many were flipped, for a run's notes."""
        return {"users": len(self.users), "flipped": int(self.flipped.sum())}

    def note(self) -> str:
        """Return in words how the data differ from those that were given."""
        return (
            f"{len(self.users):,} of the users are canaries: a coin flipped the labels of "
            f"{int(self.flipped.sum()):,} of them before the run"
        )

    def columns(self) -> dict[str, Array]:
        """Return all of it as the columns that a run keeps."""
        own = {"user": self.users, "label": self.label, "other": self.other, "flipped": self.flipped}
        return own | dict(self.confidences)


def of_columns(columns: Mapping[str, Array]) -> Canaries | None:
    """Return the canaries that a run keeps; None of a run without."""
    if not columns:
        return None
    kept = {name: columns[name] for name in MODELS if name in columns}
    return Canaries(columns["user"], columns["label"], columns["other"], columns["flipped"], kept)


def as_given(run: RunRecord) -> Population | None:
    """Return the users of a run with their labels before the coins; None if they were not kept."""
    people, planted = run.population, of_columns(run.canaries)
    return (
        people if people is None or planted is None else replace(people, y=planted.original_labels(people.y))
    )


def check(share: float | None, trains: bool) -> None:
    """Check, before any work, that canaries can be planted and a model asked; raises InputError.

    ``share``: of the users, None for no canaries; ``trains``: whether a model will be trained.
    """
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise InputError(f"canaries = {share!r}: must be a share of the users, above 0 and at most 1")
    if not trains:
        raise InputError(
            f"canaries = {share!r}: an attack on them asks the model that the run trains, and this one trains none: "
            "give data or features, and a model, or leave canaries out"
        )


def count_of(share: float, users: int) -> int:
    """Return how many of so many users are canaries; raises InputError for fewer than 2."""
    count = round(share * users)
    if count < FEWEST:
        raise InputError(
            f"canaries = {share!r} of {users:,} users: that is {count}, and at least {FEWEST} canaries are "
            "needed; give a larger share"
        )
    return count


def planted(
    people: Population, labels: int, share: float | None, seed: int
) -> tuple[Population, Canaries | None]:
    """Return the users with canaries among them, as ``plant`` does, and none for None."""
    return (people, None) if share is None else plant(people, labels, share, seed)


def plant(people: Population, labels: int, share: float, seed: int) -> tuple[Population, Canaries]:
    """Return the users after a fair coin flipped each canary's label or not, and the canaries.

    ``share`` in (0, 1] of the users are canaries, drawn by ``seed``; a flipped label is uniform among the others of
    ``labels``.  Raises InputError for fewer than 2 canaries.

    *Source:* Esmaeili et al. 2021, section 5.
    """
    count = count_of(share, people.users)
    who = np.sort(order(words(seed, stream(ROLE, "user", 0), 0, people.users))[:count])
    flipped = (words(seed, stream(ROLE, "coin", 0), 0, count) >> np.uint64(63)).astype(np.bool_)
    further = (words(seed, stream(ROLE, "other", 0), 0, count) % np.uint64(labels - 1)).astype(np.int64)
    label = np.asarray(people.y, np.int64)[who]
    found = Canaries(who, label, (label + 1 + further) % labels, flipped)
    return replace(people, y=found.planted_labels(people.y)), found


def confidences(predicted: Predicted, labels: int) -> npt.NDArray[np.float64]:
    """Return what a model says of m rows as probabilities (m, labels).

    Those of a model that only ranks are its scores' softmax, so that differences of scores are logarithms of odds;
    those of a model that only decides are 1 and 0.
    """
    if predicted.probabilities is not None:
        found = np.asarray(predicted.probabilities, np.float64)
    elif predicted.scores is not None:
        found = softmax(predicted.scores)
    else:
        return np.eye(labels)[np.asarray(predicted.y, np.int64)]
    return np.pad(found, ((0, 0), (0, labels - found.shape[1])))


def keep(run: Run, planted: Canaries | None) -> None:
    """Keep the canaries of a run with it."""
    if planted is not None:
        run.canaries = planted.columns()
        run.notes["canaries"] = planted.counts()


def keep_confidences(run: Run, predicted: Mapping[str, Predicted], labels: int) -> None:
    """Keep with a run what its trained models predict of its canaries; ``predicted``: by the keys of ``MODELS``."""
    for name, key in MODELS.items():
        if key in predicted:
            run.canaries[name] = confidences(predicted[key], labels)
