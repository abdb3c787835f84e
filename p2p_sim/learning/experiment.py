"""Experiments in one call: divide a data set among users, run a protocol, train a model on the released labels."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends.settings import check_users
from p2p_sim.core import seeds
from p2p_sim.core.argument_checks import check_range
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.population_in_parts import PopulationInParts
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.synthetic import shares_of
from p2p_sim.learning import data_split, number_labels, synthetic_users, user_clusters, user_graph
from p2p_sim.learning import planted_canaries as planting
from p2p_sim.learning.data.reading_options import PLAIN, Reading
from p2p_sim.learning.data.synthetic_examples import SyntheticExamples
from p2p_sim.learning.data_split import Examples
from p2p_sim.learning.training import bag_training, evaluation, models, number_evaluation
from p2p_sim.learning.training.models import NO_MODEL, model_for
from p2p_sim.learning.training_in_memory import train_either
from p2p_sim.parquet_users import ParquetUsers
from p2p_sim.progress import Asked, reporter_of, showing, silent
from p2p_sim.run import Run
from p2p_sim.run import run as start
from p2p_sim.rundir.outputs_folder import StoredOutputs

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset
    from p2p_sim.learning.data.stored_examples import StoredExamples

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Result:
    """The result of ``learn``.  ``comparison``: None if the learner returns neither labels nor bags.

    ``numbers``: what takes its place where labels stand for numbers.
    """

    run: Run
    examples: Examples
    comparison: evaluation.Comparison | None
    numbers: number_evaluation.NumberComparison | None = None


@showing
def learn(
    protocol: Protocol,
    data: str | Path | Dataset,
    *,
    label: str | None = None,
    positive: list[str] | None = None,
    cluster_column: str | None = None,
    clusters: int | None = None,
    test: float | None = None,
    model: str | None = None,
    graph: Any = None,
    seed: int | None = None,
    split_seed: int | None = None,
    classes: list[str] | None = None,
    reading: Reading = PLAIN,
    canaries: float | None = None,
    progress: Asked = None,
    **how: Any,
) -> Result:
    """Load and divide data, cluster it, run the protocol among the training rows, train on what it released.

    ``label``, ``positive``, ``classes``, ``reading``: see ``datasets.load``; ``cluster_column``, ``clusters``,
    ``test``: see ``data_split.gather``; ``model``: see ``models.model_for``; ``graph``: see ``user_graph.join``;
    ``how``: backend, shards, trace and so on, see ``p2p_sim.run``.  ``seed``: of the run and graph; None draws one.
    ``split_seed``: of test rows and k-means, so that they stay as they are while ``seed`` varies the protocol; None:
    ``seed``.
    ``canaries``: the share of users whose label a coin, drawn by ``seed``, may flip before the run, see
    ``planted_canaries.plant``; what the trained models say of them is kept in ``run.canaries``.  The results also go
    into ``run.notes``, and so into run.json.  Raises InputError for bad input.
    """
    tell = reporter_of(progress)
    model = model_for(protocol, model)
    _check_canaries(protocol, canaries, model != NO_MODEL)
    user_graph.check(protocol, graph)
    seed = seeds.chosen(seed)
    split = seed if split_seed is None else check_seed(split_seed, "split_seed")
    report = tell or silent
    begin = time.perf_counter()
    data = data_split.read(
        protocol, data, label=label, positive=positive, cluster_column=cluster_column, classes=classes, reading=reading,
        progress=report,
    )  # fmt: skip
    loaded = time.perf_counter() - begin
    if how.get("backend") == "actors":
        check_users(len(data.y) - int(data_split.test_rows(data, test, split)[0].sum()))
    examples = data_split.gather(protocol, data, clusters=clusters, test=test, seed=split, progress=tell)
    if split != seed:  # the run's seed is a secret: these notes are kept where it is left out
        examples.about["data"]["split_seed"] = split
    begin, total = time.perf_counter(), data.rows_in_file
    del data  # its features were copied
    people, about = user_graph.join(
        protocol, examples.population, graph, seed, tell, rows=examples.rows, total=total
    )
    people, planted = planting.planted(people, protocol.label_count(), canaries, seed)
    examples = replace(examples, population=people)
    phases = {"load": loaded + examples.timings["load"], "cluster": examples.timings["cluster"]}
    phases |= {} if about is None else {"graph": time.perf_counter() - begin}
    run = start(protocol, people, seed=seed, progress=tell or False, **how)
    run.notes.update(examples.about, graph=about, released=released(run))
    planting.keep(run, planted)
    run.timings = phases | {k: v for k, v in run.timings.items() if k != "total"}
    return Result(run, examples, *train_either(run, examples, model, tell))


def _check_canaries(protocol: Protocol, share: float | None, trains: bool) -> None:
    planting.check(share, trains)
    if share is not None and protocol.numbers() is not None:
        raise InputError(
            f"canaries = {share!r}: an attack on them asks a model how likely labels are, and one for numbers does not "
            "say: leave canaries out, or take a protocol for classes"
        )


@showing
def simulate(
    protocol: Protocol,
    users: int,
    *,
    cluster_size: int | None = None,
    share: float | None = None,
    shares: Sequence[float] | None = None,
    features: int = 0,
    model: str | None = None,
    graph: Any = None,
    seed: int | None = None,
    canaries: float | None = None,
    keep_features: bool = False,
    progress: Asked = None,
    **how: Any,
) -> Run:
    """Run a protocol among synthetic users, with as many labels as it handles.

    ``cluster_size``: None means 1,000, or no clusters for a protocol without clusters.  ``share``: probability of label
    1 of two; ``shares``: of each label; by default all are alike.  ``features``: how many each user has, see
    ``Population.synthetic``; then ``model`` (or "none") is trained on what was released and tested on further users of
    the same kind, a fifth of all.  ``graph``: see ``user_graph.join``; ``seed``: of the run, users and graph, None
    draws a fresh one; ``canaries``: see ``learn``; ``how``: backend, shards, trace and so on, see ``p2p_sim.run``.
    More than 2^23 features in all are drawn where they are needed, and ``model`` is trained in batches
    (``training_in_batches``), if nothing else needs them together (``synthetic_users.in_batches``); ``keep_features``:
    they stay in memory all the same.  ``run.notes["label_law"]`` has the probability of each label.  Raises InputError
    for bad input.
    """
    tell = reporter_of(progress)
    user_graph.check(protocol, graph)
    model = model_for(protocol, model)
    labels, trains = protocol.label_count(), features != 0 and model != NO_MODEL
    _check_canaries(protocol, canaries, trains)
    if share is not None and labels != 2:
        raise InputError(
            f"share = {share!r}: the share of label 1 of two, and the protocol handles {labels} labels: give that "
            f"of each, shares= (--shares), {labels} numbers that sum to 1"
        )
    if share is not None:
        check_range("share", share, 0, 1)
    seed = seeds.chosen(seed)
    before = time.perf_counter()
    (tell or silent)("making users", 0, 0)
    size, drawn_by = synthetic_users.drawn(protocol, cluster_size, share, shares, features, seed)
    apart = how.get("backend") != "actors" and graph is None
    in_batches = synthetic_users.in_batches(
        protocol, users, features, model, graph=graph, canaries=canaries, backend=how.get("backend"),
        keep_features=keep_features,
    )  # fmt: skip
    people = synthetic_users.population(users, size, drawn_by, apart and (in_batches or not features))
    total = synthetic_users.with_test_rows(users)
    further = Population.synthetic(users=total, **drawn_by) if trains and not in_batches else people
    origin = f"of {people.sizes.max():,} users" + (" (default)" if cluster_size is None else "")
    clusters = user_clusters.describe(protocol, people, origin)
    phases, before = {"load": time.perf_counter() - before}, time.perf_counter()
    people, about = user_graph.join(protocol, people, graph, seed, tell)
    people, planted = planting.planted(people, protocol.label_count(), canaries, seed)
    phases |= {} if about is None else {"graph": time.perf_counter() - before}
    run = start(protocol, people, seed=seed, progress=tell or False, **how)
    data = synthetic_users.described(labels, share, shares, features)
    run.notes.update(data=data, clusters=clusters, graph=about, released=released(run), accuracy=None)
    planting.keep(run, planted)
    run.notes["label_law"] = [float(each) for each in shares_of(labels, shares, share)]
    run.timings = phases | {k: v for k, v in run.timings.items() if k != "total"}
    if trains and in_batches:
        from p2p_sim.learning import training_in_batches

        law = tuple(shares_of(labels, shares, share))
        examples, everybody = (SyntheticExamples(count, features, law, seed) for count in (users, total))
        held_out = everybody.rows(
            users, min(everybody.users, users + synthetic_users.most_test_rows(features))
        )
        data["test_rows_are"] = "synthetic users of the same kind"
        training_in_batches.train_beside(
            run, examples, held_out, everybody.users - users, model, tell or silent
        )
    elif trains:
        assert further.x is not None
        data |= {"test_rows": further.users - users, "test_rows_are": "synthetic users of the same kind"}
        x_test, y_test = further.x[users:], further.y[users:]
        found = Examples(people, x_test, y_test, np.arange(users), {"data": data})
        grid = protocol.numbers()
        if grid is not None:
            data["range"] = [float(grid[0]), float(grid[-1])]
            found = replace(
                found, values=grid[people.y.view(np.uint8)], values_test=grid[y_test.view(np.uint8)]
            )
        train_either(run, found, model, tell)
    return run


@showing
def among(
    protocol: Protocol,
    people: Population,
    source: str,
    *,
    examples: StoredExamples | None = None,
    test: StoredExamples | None = None,
    model: str = models.CLASSIFIER,
    graph: Any = None,
    seed: int | None = None,
    progress: Asked = None,
    **how: Any,
) -> Run:
    """Run a protocol among users who are there; ``source``: where they come from.

    ``examples``: their features and labels, row by row; None: nothing is trained.  Then ``model`` is trained in batches
    of them, see ``training_in_batches``, and measured on rows of ``test``: at most 2^20 of them, and 2^23 features,
    evenly spread.  Of a raw table all three come from ``stored_table.StoredTable``.  ``graph``: see
    ``user_graph.join``; ``how``: see ``learn``.  Raises InputError for examples of other users or without test rows.
    """
    tell = reporter_of(progress)
    user_graph.check(protocol, graph)
    seed = seeds.chosen(seed)
    held_out = None
    if examples is not None:
        from p2p_sim.learning import training_in_batches

        (tell or silent)("reading test rows", 0, 0)
        checked = training_in_batches.check(protocol, people, examples, test, model)
        held_out = training_in_batches.read_test(checked, synthetic_users.most_test_rows(examples.width))
    data: dict[str, Any] = {"name": "population", "source": source}
    rows: dict[str, Any] = {}
    if isinstance(people, PopulationInParts) and isinstance(people.origin, ParquetUsers):
        data |= people.origin.described
        apart = people.origin.held_out
        if (
            apart is not None and apart.seed != seed
        ):  # the run's seed is a secret, and is told where that is left out
            data["split_seed"] = apart.seed
        if apart is not None and graph is not None:
            rows = {"rows": apart.user_rows(), "total": apart.rows}
    people, about = user_graph.join(protocol, people, graph, seed, tell, **rows)
    run = start(protocol, people, seed=seed, progress=tell or False, **how)
    clusters = user_clusters.describe(protocol, people, "from a column")
    run.notes.update(data=data, clusters=clusters, graph=about, released=released(run), accuracy=None)
    run.timings.pop("total", None)
    if examples is not None and test is not None and held_out is not None:
        from p2p_sim.learning import training_in_batches

        data["test_rows_are"] = test.described
        training_in_batches.train_beside(run, examples, held_out, test.users, model, tell or silent)
    return run


def released(run: Run) -> dict[str, Any] | None:
    """Return how many labels the learner has, and the share that is not 0; None if it returns no labels.

    ``label_values``: how many there can be, if more than two.

    For bags see ``bag_training.Proportions.summary``.
    """
    bags = run.source is None or run.source.bag_sums() is not None
    if run.source is not None and run.source.numbers() is not None:
        return number_labels.released(run.outputs)
    if run.population is not None and bags:
        proportions = bag_training.of_run(run.outputs.get("learner", {}), run.source, run.population)
        if proportions is not None:
            return proportions.summary()
    counted = _counted(run.outputs)
    if counted is None:
        return None
    labels, positive = counted
    found = {"labels": labels, "positive_share": float(positive / labels) if labels else None}
    many = 2 if run.source is None else run.source.label_count()
    return found if many == 2 else found | {"label_values": many}


def _counted(outputs: Mapping[str, Mapping[str, Array]]) -> tuple[int, int] | None:
    """Return how many labels the learner has, and how many are not 0; None if it returns none."""
    if isinstance(outputs, StoredOutputs):
        return outputs.counted("learner", "y") if "y" in outputs.names.get("learner", ()) else None
    y = outputs.get("learner", {}).get("y")
    return None if y is None or y.ndim != 1 else (len(y), int(np.count_nonzero(y)))
