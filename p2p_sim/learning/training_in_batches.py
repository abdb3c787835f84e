"""Training on what a run released, of users whose features are read in batches; others: ``training_in_memory``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.data.stored_examples import StoredExamples
from p2p_sim.learning.training import (
    cluster_effects,
    evaluation,
    label_assignment,
    models_in_batches,
    noise_correction,
)
from p2p_sim.learning.training.evaluation import Comparison
from p2p_sim.learning.training.losses import Regression, law_of, uninformative
from p2p_sim.learning.training.metrics import Predicted, constant, measure
from p2p_sim.learning.training.models_in_batches import BagsInBatches, Examples, FirstPass, Labelled
from p2p_sim.learning.training.scratch_examples import ScratchExamples
from p2p_sim.learning.training.scratch_labels import ScratchLabels
from p2p_sim.privacy.registered import label_noise
from p2p_sim.privacy.registry import LabelNoise
from p2p_sim.run import Run
from p2p_sim.rundir.outputs_folder import StoredOutputs

Array = npt.NDArray[Any]

_ROWS = 1 << 20  # rows of an output in memory that are taken at a time
NOT_IN_BATCHES = (
    "what was released is no labels of users or clusters, and only these train a model in batches: no model"
)
LONG_NOISE = "noise of this form is corrected only where users are in memory: no model is corrected for it"


def train(
    run: Run,
    examples: Examples,
    x_test: Array,
    y_test: Array,
    model: str,
    progress: Progress | None = None,
) -> Comparison | None:
    """Train on the labels that a run released, and on the true ones, in batches of its users' examples.

    ``x_test`` (m, d), ``y_test`` (m,): rows of people who are in no run.  The result does not depend on how or where
    the run took place.  None if what was released goes with no features.  Raises InputError for a model that does not
    learn in batches.
    """
    models_in_batches.check(model)
    groups = _Groups.of(run)
    released = _Released.of(run, groups, examples.labels)
    if released is None:
        return None
    with tempfile.TemporaryDirectory(prefix="p2p-training-") as name:
        folder = Path(name)
        released_labels = ScratchLabels.of(released.pairs(), examples.users, folder)
        scratch = ScratchExamples(examples, folder, model, progress)
        job = _Job(scratch, released_labels, released, groups, x_test, y_test, model)
        return evaluation.warned(job.compared(run))


def check(
    protocol: Protocol, people: Population, examples: StoredExamples, test: StoredExamples | None, model: str
) -> StoredExamples:
    """Return the test rows; raises InputError unless a model can be trained on the examples of a run's users."""
    if protocol.numbers() is not None:
        raise InputError(
            f"--model with --population trains classifiers, and labels of {type(protocol).__name__} stand for numbers: "
            "leave out --model, or give the rows with --data"
        )
    models_in_batches.check(model)
    if test is None:
        raise InputError(
            "--model trains on features, and nothing tests it: give --test P, a share of the rows that are no "
            "users, or --test-population PLACE, further rows with the same columns; or leave out --model"
        )
    if examples.users != people.users:
        raise InputError(
            f"{examples.place!r} has {examples.users:,} rows, and there are {people.users:,} users: give one row a user"
        )
    return test


_COPY = 100
"""A feature that is the label in so many test rows, and all there are, is taken for a copy of it."""


def read_test(test: StoredExamples, most: int) -> tuple[Array, Array]:
    """Read at most so many test rows: features and labels.

    Raises InputError where a feature is the label once more, and where no row of another table has the positive label.
    """
    x, y = test.spread(most)
    one = None if test.rule is None or test.held_out is not None else test.rule.described["positive"]
    if one is not None and not y.any():
        raise InputError(
            f"none of {len(y):,} test rows {test.described} counts as 1 ({one}): write values there as users' are, in "
            "upper and lower case too, or give other test rows"
        )
    enough = len(y) >= _COPY and len(np.unique(y)) > 1
    for each in np.flatnonzero((x == y[:, None]).all(axis=0)) if enough else ():
        name = test.features[each]
        raise InputError(
            f"column {name!r} holds the labels once more (all of {len(y):,} test rows): leave it out, --drop {name}"
        )
    return x, y


def train_beside(
    run: Run,
    examples: Examples,
    held_out: tuple[Array, Array],
    further: int,
    model: str,
    progress: Progress,
) -> None:
    """Train in batches of users' examples; add accuracies and seconds to the run, as ``training_in_memory`` does.

    ``held_out``: features and labels of those test rows that were read, of ``further`` in all.
    """
    before = time.perf_counter()
    x_test, y_test = held_out
    comparison = train(run, examples, x_test, y_test, model, progress)
    if comparison is not None and len(y_test) < further:
        comparison = comparison.with_notes(f"of {further:,} test rows {len(y_test):,} were read")
    if comparison is None and run.notes.get("released"):
        run.notes["released"]["untrained"] = NOT_IN_BATCHES
    run.notes["data"] |= {"features": examples.width, "test_rows": len(y_test)}
    run.notes["accuracy"] = None if comparison is None else asdict(comparison)
    run.timings["training"] = time.perf_counter() - before


@dataclass(frozen=True)
class _Groups:
    """Clusters of users that follow one another: where each begins, (b + 1,), and what it is called, ascending."""

    starts: Array
    names: Array

    @classmethod
    def of(cls, run: Run) -> _Groups:
        """Return the clusters of a run's users, or one of all; raises InputError unless rows are sorted by them."""
        people = run.population
        assert people is not None  # who ran just now
        if not people.divided:
            return cls(np.array([0, people.users]), np.zeros(1, np.int64))
        members = people.piece(0, 1).clusters  # of all users
        assert members is not None
        if members.order is not None:
            raise InputError("users are not sorted by cluster: sort them first, to train in batches")
        names = np.arange(len(members.starts) - 1) if members.labels is None else members.labels
        return cls(members.starts, names)

    def codes(self, cluster: Array) -> Array:
        """Return the number of each cluster from its name; raises InputError for one that there is not."""
        code = np.minimum(np.searchsorted(self.names, cluster), len(self.names) - 1)
        if not np.array_equal(self.names[code], cluster):
            raise InputError(
                "the learner returned clusters that are none of the users': return those of users, cluster=, or leave "
                "out --model"
            )
        return np.asarray(code)


@dataclass(frozen=True)
class _Released:
    """What the learner returned: labels, and whose they are.

    ``counts`` (b, k): labels of each cluster, which ``pairs`` counts.
    """

    outputs: Mapping[str, Mapping[str, Array]]
    whose: str
    groups: _Groups
    counts: Array

    @classmethod
    def of(cls, run: Run, groups: _Groups, labels: int) -> _Released | None:
        """Return the labels of a run's learner; None if they are no labels of users or clusters."""
        names = _names_of(run.outputs)
        kinds = [] if run.source is None else run.source.messages().values()
        from_users = any((kind.sender, kind.recipient) == (USER, "learner") for kind in kinds)
        whose = "sender" if "sender" in names and from_users else "cluster"
        if "y" not in names or whose not in names or "x" in names or not _are_aligned(run.outputs, whose):
            return None
        return cls(run.outputs, whose, groups, np.zeros((len(groups.names), labels), np.int64))

    @property
    def note(self) -> str:
        """How labels were given to users."""
        return "" if self.whose == "sender" else label_assignment.NOTE

    def pairs(self) -> Iterator[tuple[Array, Array]]:
        """Return the users (m,) and the labels (m,) of one part of the output after the other, and count them."""
        given = np.zeros(len(self.groups.names), np.int64)
        users, labels = int(self.groups.starts[-1]), self.counts.shape[1]
        for columns in _parts_of(self.outputs, self.whose):
            whose, y = columns[self.whose], columns["y"]
            if y.dtype.kind not in "bui" or (len(y) and not 0 <= int(y.min()) <= int(y.max()) < labels):
                ends = f", from {y.min()} to {y.max()}" if len(y) and y.dtype.kind in "buif" else ""
                raise InputError(
                    f"the learner returned y of type {y.dtype}{ends}: a model needs labels from 0 to {labels - 1}; "
                    "leave out --model"
                )
            if self.whose == "cluster":
                code = self.groups.codes(whose)
                np.add.at(self.counts, (code, y.astype(np.int64)), 1)
                yield self._dealt(code, y, given)
                continue
            if len(whose) and (whose.dtype.kind not in "iu" or whose.min() < 0 or whose.max() >= users):
                raise InputError(
                    f"the learner returned sender from {whose.min()} to {whose.max()}: a model needs ids from 0 to "
                    f"{users - 1}; leave out --model"
                )
            code = np.searchsorted(self.groups.starts, whose, side="right") - 1
            np.add.at(self.counts, (code, y.astype(np.int64)), 1)
            yield whose, y

    def _dealt(self, code: Array, y: Array, given: Array) -> tuple[Array, Array]:
        """Deal labels to the users of their clusters, as ``label_assignment.assign`` does; ``given``: so far."""
        order = np.argsort(code, kind="stable")
        ordered, starts = code[order], self.groups.starts
        place = given[ordered] + np.arange(len(order)) - np.searchsorted(ordered, ordered)
        np.add.at(given, code, 1)
        kept = place < (starts[ordered + 1] - starts[ordered])
        return (starts[ordered] + place)[kept], y[order][kept]


def _names_of(outputs: Mapping[str, Mapping[str, Array]]) -> list[str]:
    if isinstance(outputs, StoredOutputs):
        return list(outputs.names.get("learner", ()))
    return list(outputs.get("learner", {}))


def _are_aligned(outputs: Mapping[str, Mapping[str, Array]], whose: str) -> bool:
    """Whether the learner's ``y`` and ``whose`` have one number a row, and as many rows."""
    if isinstance(outputs, StoredOutputs):
        return outputs.aligned("learner", (whose, "y"))
    whose_column, y = (outputs["learner"][name] for name in (whose, "y"))
    return whose_column.ndim == y.ndim == 1 and len(whose_column) == len(y)


def _parts_of(outputs: Mapping[str, Mapping[str, Array]], whose: str) -> Iterator[Mapping[str, Array]]:
    if isinstance(outputs, StoredOutputs):
        yield from outputs.parts("learner", (whose, "y"))
        return
    columns = outputs["learner"]
    for low in range(0, len(columns["y"]), _ROWS):
        yield {name: columns[name][low : low + _ROWS] for name in (whose, "y")}


@dataclass(frozen=True)
class _Job:
    """Examples, released labels and test rows of one comparison."""

    examples: Examples
    released_labels: ScratchLabels
    released: _Released
    groups: _Groups
    x_test: Array
    y_test: Array
    model: str

    def compared(self, run: Run) -> Comparison:
        """Train all models and measure them."""
        labels, notes = self.examples.labels, list[str]()
        released, true = FirstPass.over(self._released, labels), FirstPass.over(self._true, labels)
        seen = [*true.present, *released.present, int(self.y_test.max(initial=0))]
        classes = 1 + max(1, *map(int, seen))
        majority = constant(
            int(true.counts.argmax()), true.counts[:classes] / self.examples.users, len(self.y_test)
        )
        predicted = {
            "accuracy_private": self._plain(self._released, released, classes, majority, "released", notes),
            "accuracy_true": self._plain(self._true, true, classes, majority, "true", notes),
            "baseline": majority,
        }
        found = Comparison(
            accuracy_private=evaluation.accuracy(self.y_test, predicted["accuracy_private"]),
            accuracy_true=evaluation.accuracy(self.y_test, predicted["accuracy_true"]),
            baseline=evaluation.accuracy(self.y_test, majority),
            trained_on=self.released_labels.count,
            of=self.examples.users,
            test_rows=len(self.y_test),
            model=self.model,
            note="; ".join(filter(None, [self.released.note, *notes])),
            metrics={name: measure(self.y_test, each) for name, each in predicted.items()},
        )
        noise = None if run.source is None else label_noise(run.source)
        if noise is None or (noise.whose == "sender" and not noise.randomizes):
            return found
        regression, more = self._corrected(noise, released, true)
        return noise_correction.with_corrected(
            found, noise, regression, self.x_test, self.y_test, more, len(run.faulty.get("lied", ()))
        )

    def _plain(
        self,
        labelled: Labelled,
        first_pass: FirstPass,
        classes: int,
        majority: Predicted,
        which: str,
        notes: list[str],
    ) -> Predicted:
        """Train and predict the test rows; labels of one value, or none, give a constant."""
        if len(first_pass.present) < 2:
            note, predicted = evaluation.of_one_class(first_pass.counts[:classes], majority, which)
            notes.append(note)
            return predicted
        trained = models_in_batches.train(self.model, labelled, first_pass, classes)
        if not trained.converged:
            notes.append(f"{self.model} on the {which} labels: did not converge")
        return trained.predicted(self.x_test)

    def _corrected(
        self, noise: LabelNoise, released: FirstPass, true: FirstPass
    ) -> tuple[Regression | None, list[str]]:
        """Return the model that knows how labels came about, None for none, and notes."""
        if noise.reports is not None or noise.whose in ("neighbours", "walk"):
            return None, [LONG_NOISE]
        if noise.whose == "everybody":
            return None, [noise_correction.OWNERS_UNKNOWN]
        law = law_of(noise)
        if noise.lie * noise.labels >= noise.labels - 1 or uninformative(law):
            return None, [noise_correction.UNINFORMATIVE]
        if not self.released_labels.count:
            return None, []
        if noise.whose == "sender":
            regression = models_in_batches.corrected(self._released, law, released, true.moments)
            return regression, cluster_effects.Fitted(regression).notes(noise)
        counts = self.released.counts.astype(np.float64)
        bags = BagsInBatches(self.examples, self.groups.starts, counts, true.moments)
        fitted = cluster_effects.fit_bags(bags, law)
        return fitted.model, fitted.notes(noise)

    def _true(self) -> Iterator[tuple[Array, Array]]:
        values = np.arange(self.examples.labels)
        for x, y in self.examples.batches(models_in_batches.edges(self.examples)):
            yield x, (y[:, None] == values).astype(np.int64)

    def _released(self) -> Iterator[tuple[Array, Array]]:
        cuts, labels = models_in_batches.edges(self.examples), self.examples.labels
        for (x, _), (rows, y) in zip(
            self.examples.batches(cuts), self.released_labels.batches(cuts), strict=True
        ):
            counted = np.bincount(rows * labels + y, minlength=len(x) * labels)
            yield x, counted.reshape(len(x), labels)
