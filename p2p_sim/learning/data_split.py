"""A data set divided: users, who have a training row each, and test rows."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning import applicability, data_warnings, number_labels, user_clusters
from p2p_sim.learning.data.reading_options import PLAIN, Reading
from p2p_sim.learning.data.tables import listing
from p2p_sim.learning.training import evaluation
from p2p_sim.progress import silent

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

Array = npt.NDArray[Any]

TEST_SHARE = 0.2
"""Of the rows, unless a share is said or the data set has test rows of its own."""

INFERRED = (
    "which classes there are was taken from the labels of {label!r} ({classes}), and every promise takes it as public: "
    "say --classes (classes=) if one label alone could change it"
)


@dataclass(frozen=True, repr=False)
class Examples:
    """A data set divided into users (one training row each, sorted by cluster) and test rows.

    ``rows`` (n,): the data set's row of each user, of a file counted with the rows that were left out.  ``about``: data
    and clusters as JSON values, for the run's notes.
    """

    population: Population
    x_test: Array
    y_test: Array
    rows: npt.NDArray[np.int64]
    about: dict[str, Any]
    timings: dict[str, float] = field(default_factory=dict)
    values: npt.NDArray[np.float64] | None = None  # (n,), the users' numbers, where labels stand for numbers
    values_test: npt.NDArray[np.float64] | None = None  # (m,), those of the test rows
    cautions: tuple[str, ...] = ()  # of the data's features

    def held_out(self) -> Population | None:
        """Return the people of the test rows, who are in no run; None without any."""
        return Population.from_arrays(y=self.y_test, x=self.x_test) if len(self.y_test) else None


def read(
    protocol: Protocol,
    data: str | Path | Dataset,
    *,
    label: str | None = None,
    positive: list[str] | None = None,
    cluster_column: str | None = None,
    classes: list[str] | None = None,
    reading: Reading = PLAIN,
    progress: Progress | None = None,
) -> Dataset:
    """Return the data set that ``learn`` reads for a protocol: with as many classes as it handles, or numbers.

    Raises InputError for bad input, and for words on how a file is read beside a ``Dataset``.
    """
    from p2p_sim.learning.data import datasets  # synthetic users need none

    if not isinstance(data, datasets.Dataset):
        (progress or silent)(f"reading {Path(data).name}", 0, 0)
        return datasets.load(
            str(data), label=label, positive=positive, cluster=cluster_column, multiclass=protocol.label_count() > 2,
            numbers=protocol.numbers() is not None, classes=classes, reading=reading,
        )  # fmt: skip
    if label or positive or cluster_column or classes or reading != PLAIN:
        raise InputError(
            "label, positive, classes, cluster_column and reading say how a file is read: a Dataset has them already"
        )
    return data


def gather(
    protocol: Protocol,
    data: Dataset,
    *,
    clusters: int | None = None,
    test: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Examples:
    """Divide a data set into users and test rows, and group the users into clusters.

    ``test``: share of the rows in (0, 1), drawn by ``seed``; None: the set's own test part if it has one, else 0.2.
    ``clusters``: how many k-means makes of the users' features; None: the data's cluster column if it has one, else one
    cluster for 150 users, at most 200, and none for a protocol without clusters.  Raises InputError for bad input.
    """
    before = time.perf_counter()
    many, values, clipped = protocol.label_count(), None, 0
    if protocol.numbers() is not None:
        data, values, clipped = number_labels.on_the_grid(protocol, data)
    elif reason := applicability.applicable(protocol, applicability.label_kind(data)):
        raise InputError(reason)
    if clusters is not None and data.cluster is not None:
        raise InputError(
            "clusters come from a column or from k-means: give one of cluster_column and clusters"
        )
    is_test, how = test_rows(data, test, seed)
    rows = np.flatnonzero(~is_test)
    facts = {
        "name": data.name, "source": data.source, "rows": len(data.y), "features": len(data.features),
        "label": data.label, "classes": list(data.classes), "positive": data.positive if many == 2 else None,
        "test_rows": int(is_test.sum()), "test_rows_are": how,
    }  # fmt: skip
    if data.classes_from in ("declared", "inferred"):
        facts["classes_from"] = data.classes_from
    if values is not None:
        facts |= {"range": [float(each) for each in (data.classes[0], data.classes[-1])], "clipped": clipped}
    if data.kept is not None:
        facts["left_out"] = data.rows_in_file - len(data.y)
    if data.ids:
        facts["ids"] = list(data.ids)
    known = data.classes_from in ("declared", "pinned")  # otherwise there may be more than occur
    if known and (more := applicability.more_labels(protocol, applicability.label_kind(data))):
        warnings.warn(more, stacklevel=2)
    if data.classes_from == "inferred":
        warnings.warn(INFERRED.format(label=data.label, classes=listing(data.classes, 6)), stacklevel=2)
    divided = time.perf_counter()
    cluster, origin = user_clusters.of_rows(protocol, data, rows, clusters, seed, progress or silent)
    if cluster is not None:
        order = np.argsort(cluster, kind="stable")
        rows, cluster = rows[order], cluster[order]
    people = Population.from_arrays(y=data.y[rows], x=data.x[rows], cluster=cluster)
    about = {"data": facts, "clusters": user_clusters.describe(protocol, people, origin)}
    timings = {"load": divided - before, "cluster": time.perf_counter() - divided}
    found = Examples(
        people, data.x[is_test], data.y[is_test], data.file_rows(rows), about, timings,
        values=None if values is None else values[rows],
        values_test=None if values is None else values[is_test],
        cautions=data.cautions,
    )  # fmt: skip
    if warned := data_warnings.data_warnings(found, protocol):
        facts["warnings"] = warned
    if (utility := data_warnings.utility_metric(found)) != "accuracy":
        facts["utility"] = utility
    return found


def test_rows(data: Dataset, test: float | None, seed: int) -> tuple[npt.NDArray[np.bool_], str]:
    """Return a mask of the test rows, and in words which they are; see ``gather``."""
    if test is None and data.test is not None:
        return data.test, "the data set's own test part"
    share = TEST_SHARE if test is None else test
    return evaluation.split(len(data.y), seed, share), f"{100 * share:g} % of the rows, drawn by seed"
