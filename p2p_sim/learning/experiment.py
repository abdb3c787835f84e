"""Experiments in one call: divide a data set among users, run a protocol, train a model on the released labels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends.layout import no_graph
from p2p_sim.backends.settings import check_users
from p2p_sim.core import seeds
from p2p_sim.core.argument_checks import check_range
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.population_in_parts import PopulationInParts
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.synthetic import shares_of
from p2p_sim.learning import data_warnings, label_kinds, number_labels
from p2p_sim.learning import planted_canaries as planting
from p2p_sim.learning.data.reading_options import PLAIN, Reading
from p2p_sim.learning.data.tables import listing
from p2p_sim.learning.training import (
    bag_training,
    evaluation,
    label_assignment,
    models,
    noise_correction,
    number_evaluation,
)
from p2p_sim.learning.training import clusters as clustering
from p2p_sim.network import edges, topologies
from p2p_sim.progress import Asked, reporter_of, showing
from p2p_sim.run import Run
from p2p_sim.run import run as start
from p2p_sim.rundir.outputs_folder import StoredOutputs

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset
    from p2p_sim.learning.data.stored_examples import StoredExamples

Array = npt.NDArray[Any]


def check(protocol: Protocol, source: Any) -> None:
    """Check, before any work, that there is a graph if and only if the protocol uses one; raises InputError.

    ``source``: None, text such as "regular:20", or anything else that ``network.topologies.graph_of`` accepts.
    """
    over = protocol.graph_over()
    if source is None:
        if over is not None:
            raise no_graph(protocol)
        return
    if over is None:
        raise InputError(
            f"{type(protocol).__name__} uses no graph: leave out --graph {source}, in Python graph= (PeerToPeer uses "
            "one with over = neighbours; one of your own says that it does in `def graph_over(self)`)"
        )
    if isinstance(source, str) and not source.endswith(edges.SUFFIXES):
        topologies.parse(source)


def join(
    protocol: Protocol,
    people: Population,
    source: Any,
    seed: int,
    progress: Progress | None = None,
    *,
    rows: Array | None = None,
    total: int = 0,
) -> tuple[Population, dict[str, Any] | None]:
    """Return the users joined by a graph, over all users or in each cluster as the protocol needs, and its figures.

    ``rows``: the row of each user in a data set of ``total`` rows; edges in a file then name rows of the data set, and
    edges of test rows are left out.  Without a source, returns the users unchanged and None.  Raises InputError for an
    impossible graph, an isolated user, or a graph that is not connected.
    """
    if source is None:
        return people, None
    if progress is not None:
        progress(f"joining users: {source}", 0, 0)
    within, given = protocol.graph_over() == "cluster", source
    if rows is not None and isinstance(source, (str, Path)) and str(source).endswith(edges.SUFFIXES):
        given = _of_users(edges.checked(edges.read(source), total), rows, total)
    joined = topologies.join(people, given, seed, within_clusters=within, progress=progress)
    return joined, describe(str(source), joined, within)


def describe(source: str, people: Population, within: bool) -> dict[str, Any]:
    """Return the source of a graph, whether it is over everybody or in clusters, and the numbers of neighbours."""
    graph = people.graph
    assert graph is not None
    sizes = np.diff(graph.starts) if len(graph.starts) == 2 else graph.size  # of one group all are alike
    return {
        "source": source, "over": "cluster" if within and people.clusters is not None else "everybody",
        "complete": graph.complete, "minimum": int(sizes.min()), "median": float(np.median(sizes)),
        "maximum": int(sizes.max()),
    }  # fmt: skip


def _of_users(pairs: Array, rows: Array, total: int) -> Array:
    """Turn pairs of data set rows into pairs of users; pairs with a row that is no user are dropped."""
    user = np.full(total, -1, np.int64)
    user[rows] = np.arange(len(rows))
    ends = user[pairs]
    return ends[(ends >= 0).all(axis=1)]


TEST_SHARE = 0.2
INFERRED = (
    "which classes there are was taken from the labels of {label!r} ({classes}), and every promise takes it as public: "
    "say --classes (classes=) if one label alone could change it"
)
USERS_A_CLUSTER, MAX_CLUSTERS, SYNTHETIC_CLUSTER = 150, 200, 1000
NO_MODEL = "none"


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
    ``test``: see ``gather``; ``model``: see ``model_for``; ``graph``: see ``join``; ``how``: backend,
    shards, trace and so on, see ``p2p_sim.run``.  ``seed``: of the run and graph; None draws one.  ``split_seed``: of
    test rows and k-means, so that they stay as they are while ``seed`` varies the protocol; None: ``seed``.
    ``canaries``: the share of users of whom a coin, drawn by ``seed``, flips the label or not before the run, see
    ``planted_canaries.plant``; what the trained models say of them is kept in ``run.canaries``.  The results also go
    into ``run.notes``, and so into run.json.  Raises InputError for bad input.
    """
    tell = reporter_of(progress)
    model = model_for(protocol, model)
    _check_canaries(protocol, canaries, model != NO_MODEL)
    check(protocol, graph)
    seed = seeds.chosen(seed)
    split = seed if split_seed is None else check_seed(split_seed, "split_seed")
    report = tell or _silent
    begin = time.perf_counter()
    data = read(
        protocol, data, label=label, positive=positive, cluster_column=cluster_column, classes=classes, reading=reading,
        progress=report,
    )  # fmt: skip
    loaded = time.perf_counter() - begin
    if how.get("backend") == "actors":
        check_users(len(data.y) - int(_test_rows(data, test, split)[0].sum()))
    examples = gather(protocol, data, clusters=clusters, test=test, seed=split, progress=tell)
    if split != seed:  # the run's seed is a secret, and is told where that is left out
        examples.about["data"]["split_seed"] = split
    begin, total = time.perf_counter(), data.rows_in_file
    del data  # its features were copied
    people, about = join(protocol, examples.population, graph, seed, tell, rows=examples.rows, total=total)
    people, planted = planting.planted(people, protocol.label_count(), canaries, seed)
    examples = replace(examples, population=people)
    phases = {"load": loaded + examples.timings["load"], "cluster": examples.timings["cluster"]}
    phases |= {} if about is None else {"graph": time.perf_counter() - begin}
    run = start(protocol, people, seed=seed, progress=tell or False, **how)
    run.notes.update(examples.about, graph=about, released=released(run))
    planting.keep(run, planted)
    run.timings = phases | {k: v for k, v in run.timings.items() if k != "total"}
    return Result(run, examples, *_trained(run, examples, model, tell))


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
        (progress or _silent)(f"reading {Path(data).name}", 0, 0)
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
    elif reason := label_kinds.applicable(protocol, label_kinds.label_kind(data)):
        raise InputError(reason)
    if clusters is not None and data.cluster is not None:
        raise InputError(
            "clusters come from a column or from k-means: give one of cluster_column and clusters"
        )
    is_test, how = _test_rows(data, test, seed)
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
    if data.classes_from == "inferred":
        warnings.warn(INFERRED.format(label=data.label, classes=listing(data.classes, 6)), stacklevel=2)
    divided = time.perf_counter()
    cluster, origin = _clusters(protocol, data, rows, clusters, seed, progress or _silent)
    if cluster is not None:
        order = np.argsort(cluster, kind="stable")
        rows, cluster = rows[order], cluster[order]
    people = Population.from_arrays(y=data.y[rows], x=data.x[rows], cluster=cluster)
    about = {"data": facts, "clusters": describe_clusters(protocol, people, origin)}
    timings = {"load": divided - before, "cluster": time.perf_counter() - divided}
    found = Examples(
        people, data.x[is_test], data.y[is_test], data.file_rows(rows), about, timings,
        values=None if values is None else values[rows],
        values_test=None if values is None else values[is_test],
        cautions=data.cautions,
    )  # fmt: skip
    if warned := data_warnings.data_warnings(found, protocol):
        facts["warnings"] = warned
    if (utility := data_warnings.utility(found)) != "accuracy":
        facts["utility"] = utility
    return found


def model_for(protocol: Protocol, model: str | None) -> str:
    """Return the model to train, or "none"; None: "logistic-regression", and "ridge" where labels stand for numbers.

    Raises InputError for what is no classifier, or where labels stand for numbers no regressor.
    """
    numeric = protocol.numbers() is not None
    if model is None:
        return models.REGRESSOR if numeric else models.CLASSIFIER
    if model != NO_MODEL:
        (models.make_regressor if numeric else models.make)(model)  # a wrong name shows before the work
    return model


def _check_canaries(protocol: Protocol, share: float | None, trains: bool) -> None:
    planting.check(share, trains)
    if share is not None and protocol.numbers() is not None:
        raise InputError(
            f"canaries = {share!r}: an attack on them asks a model how likely labels are, and one for numbers does not "
            "say: leave canaries out, or take a protocol for classes"
        )


def _trained(
    run: Run, examples: Examples, model: str, progress: Progress | None
) -> tuple[evaluation.Comparison | None, number_evaluation.NumberComparison | None]:
    """Train on what a run released; of classes and of numbers, one is not None, or none."""
    if model == NO_MODEL:
        return None, None
    if examples.values is not None:
        return None, number_labels.train(run, examples, model, progress)
    return train(run, examples, model, progress), None


def train(
    run: Run, examples: Examples, model: str = models.CLASSIFIER, progress: Progress | None = None
) -> evaluation.Comparison | None:
    """Train on the labels that a run released and on the true ones; add accuracies and seconds to the run."""
    before = time.perf_counter()
    (progress or _silent)(f"training {model}", 0, 0)
    columns, people = label_assignment.returned(run), examples.population
    comparison, planted = None, planting.of_columns(run.canaries)
    y, asked = people.y, None
    if planted is not None and people.x is not None:
        y, asked = planted.before(people.y), evaluation.Asked(people.x[planted.users])
    pairs = label_assignment.pairs(columns, people)
    fits = pairs is None or pairs.fits(people)
    if people.x is not None and pairs is not None and fits:
        comparison = evaluation.compare(
            people.x, y, examples.x_test, examples.y_test, pairs.users, pairs.y, model, pairs.x, asked
        )
        comparison = replace(comparison, note=pairs.note).with_notes(comparison.note)
        comparison = noise_correction.beside(comparison, run, people, examples.x_test, examples.y_test, asked)
    elif people.x is not None:
        bags = bag_training.of_run(columns, run.source, people)
        if bags is not None:
            before_coins = replace(people, y=y)
            comparison = bag_training.compare(
                before_coins, examples.x_test, examples.y_test, bags, model, asked
            )
    if comparison is None and people.x is not None and run.notes.get("released"):
        why = label_assignment.NO_FEATURES if fits else label_assignment.OTHER_FEATURES
        run.notes["released"]["untrained"] = why
    comparison = None if comparison is None else evaluation.warned(comparison)
    if planted is not None and asked is not None:
        planting.keep_confidences(run, asked.said, 2 if run.source is None else run.source.label_count())
        comparison = None if comparison is None else comparison.with_notes(planted.note())
    run.notes["accuracy"] = None if comparison is None else asdict(comparison)
    run.timings["training"] = time.perf_counter() - before
    return comparison


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
    progress: Asked = None,
    **how: Any,
) -> Run:
    """Run a protocol among synthetic users, with as many labels as it handles.

    ``cluster_size``: None means 1,000, or no clusters for a protocol without clusters.  ``share``: probability of label
    1 of two; ``shares``: of each label; by default all are alike.  ``features``: how many each user has, see
    ``Population.synthetic``; then ``model`` (or "none") is trained on what was released and tested on further users of
    the same kind, a fifth of all.  ``graph``: see ``join``; ``seed``: of the run, users and graph, None draws a fresh
    one; ``canaries``: see ``learn``; ``how``: backend, shards, trace and so on, see ``p2p_sim.run``.
    ``run.notes["label_law"]`` has the probability
    of each label.  Raises InputError for bad input.
    """
    tell = reporter_of(progress)
    check(protocol, graph)
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
    (tell or _silent)("making users", 0, 0)
    size, drawn_by = drawn(protocol, cluster_size, share, shares, features, seed)
    people = _synthetic(users, size, drawn_by, apart=how.get("backend") != "actors" and graph is None)
    further = Population.synthetic(users=_with_test(users), **drawn_by) if trains else people
    origin = f"of {people.sizes.max():,} users" + (" (default)" if cluster_size is None else "")
    clusters = describe_clusters(protocol, people, origin)
    phases, before = {"load": time.perf_counter() - before}, time.perf_counter()
    people, about = join(protocol, people, graph, seed, tell)
    people, planted = planting.planted(people, protocol.label_count(), canaries, seed)
    phases |= {} if about is None else {"graph": time.perf_counter() - before}
    run = start(protocol, people, seed=seed, progress=tell or False, **how)
    data = _describe_synthetic(labels, share, shares, features)
    run.notes.update(data=data, clusters=clusters, graph=about, released=released(run), accuracy=None)
    planting.keep(run, planted)
    run.notes["label_law"] = [float(each) for each in shares_of(labels, shares, share)]
    run.timings = phases | {k: v for k, v in run.timings.items() if k != "total"}
    if trains:
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
        _trained(run, found, model, tell)
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

    ``examples``: their features and labels, row by row; None: nothing is trained.  Then ``model`` is trained in passes
    over them, see ``streamed_training``, and measured on rows of ``test``: at most 2^20 of them, and 2^23 features,
    evenly spread.  ``graph``: see ``join``; ``how``: see ``learn``.  Raises InputError for examples of other users or
    without test rows.
    """
    tell = reporter_of(progress)
    check(protocol, graph)
    seed = seeds.chosen(seed)
    if examples is not None:
        _check_examples(protocol, people, examples, test, model)
    held_out = None if test is None or examples is None else _read_test(test, tell or _silent)
    people, about = join(protocol, people, graph, seed, tell)
    run = start(protocol, people, seed=seed, progress=tell or False, **how)
    data: dict[str, Any] = {"name": "population", "source": source}
    clusters = describe_clusters(protocol, people, "from a column")
    run.notes.update(data=data, clusters=clusters, graph=about, released=released(run), accuracy=None)
    run.timings.pop("total", None)
    if examples is not None and test is not None and held_out is not None:
        _train_streamed(run, examples, test, held_out, model, tell or _silent)
    return run


MOST_TEST_ROWS, MOST_TEST_NUMBERS = 1 << 20, 1 << 23
"""Of test rows in files so many are read, and so many features in all: 64 MiB."""


def _check_examples(
    protocol: Protocol, people: Population, examples: StoredExamples, test: StoredExamples | None, model: str
) -> None:
    from p2p_sim.learning.training import passes

    if protocol.numbers() is not None:
        raise InputError(
            f"--model with --population trains classifiers, and labels of {type(protocol).__name__} stand for numbers: "
            "leave out --model, or give the rows with --data"
        )
    passes.check(model)
    if test is None:
        raise InputError(
            "--model trains on features, and nothing tests it: give --test-population PLACE, further rows with the "
            "same columns, or leave out --model"
        )
    if examples.users != people.users:
        raise InputError(
            f"{examples.place!r} has {examples.users:,} rows, and there are {people.users:,} users: give one row a user"
        )


_COPY = 100
"""A feature that is the label in so many test rows, and all there are, is taken for a copy of it."""


def _read_test(test: StoredExamples, progress: Progress) -> tuple[Array, Array]:
    """Read test rows; raises InputError where a feature is the label once more."""
    progress("reading test rows", 0, 0)
    x, y = test.spread(min(MOST_TEST_ROWS, max(1, MOST_TEST_NUMBERS // len(test.features))))
    enough = len(y) >= _COPY and len(np.unique(y)) > 1
    for each in np.flatnonzero((x == y[:, None]).all(axis=0)) if enough else ():
        name = test.features[each]
        raise InputError(
            f"column {name!r} holds the labels once more (all of {len(y):,} test rows): leave it out, --drop {name}"
        )
    return x, y


def _train_streamed(
    run: Run,
    examples: StoredExamples,
    test: StoredExamples,
    held_out: tuple[Array, Array],
    model: str,
    progress: Progress,
) -> None:
    """Train in passes over the users' examples; add accuracies and seconds to the run."""
    from p2p_sim.learning import streamed_training

    before = time.perf_counter()
    x_test, y_test = held_out
    comparison = streamed_training.train(run, examples, x_test, y_test, model, progress)
    if comparison is not None and len(y_test) < test.users:
        note = f"of {test.users:,} test rows {len(y_test):,} were read, evenly spread"
        comparison = comparison.with_notes(note)
    if comparison is None and run.notes.get("released"):
        run.notes["released"]["untrained"] = streamed_training.NOT_IN_BATCHES
    run.notes["data"] |= {
        "features": len(examples.features), "test_rows": len(y_test), "test_rows_are": f"in {test.place}",
    }  # fmt: skip
    run.notes["accuracy"] = None if comparison is None else asdict(comparison)
    run.timings["training"] = time.perf_counter() - before


def _synthetic(users: int, cluster_size: int | None, drawn_by: dict[str, Any], apart: bool) -> Population:
    """Return synthetic users; ``apart``: they are made where they are needed, where nobody needs their features."""
    if not apart or drawn_by["features"]:
        return Population.synthetic(users=users, cluster_size=cluster_size, **drawn_by)
    return PopulationInParts.drawn(users=users, cluster_size=cluster_size, **drawn_by)


def drawn(
    protocol: Protocol,
    cluster_size: int | None,
    share: float | None,
    shares: Sequence[float] | None,
    features: int,
    seed: int,
) -> tuple[int | None, dict[str, Any]]:
    """Return the size of a cluster of synthetic users, None for none, and what else ``Population.synthetic`` takes."""
    default = SYNTHETIC_CLUSTER if clusters_matter(protocol) else None
    labels = protocol.label_count()
    how = {"labels": labels, "shares": shares, "positive": share, "features": features, "seed": seed}
    return (default if cluster_size is None else cluster_size), how


def _with_test(users: int) -> int:
    """Return how many rows there are, of which ``users`` train a model and a fifth tests it."""
    return users + max(1, round(users * TEST_SHARE / (1 - TEST_SHARE)))


def _describe_synthetic(
    labels: int, share: float | None, shares: Sequence[float] | None, features: int
) -> dict[str, Any]:
    if labels == 2 and shares is None:
        source = f"drawn by seed, each positive with probability {0.5 if share is None else share:g}"
    else:
        of_each = "equal shares" if shares is None else f"shares {', '.join(f'{each:g}' for each in shares)}"
        source = f"drawn by seed, labels 0 to {labels - 1} with {of_each}"
    about: dict[str, Any] = {"name": "synthetic", "source": source}
    return (
        about
        if not features
        else about | {"source": f"{source}, {features:,} features", "features": features}
    )


def describe_clusters(protocol: Protocol, people: Population, origin: str) -> dict[str, Any] | None:
    """Return the number, origin and sizes of the clusters; None without clusters.

    Warns (UserWarning) of clusters of one user, if clusters matter.
    """
    if not people.divided:
        return None
    sizes = people.sizes
    alone = int((sizes == 1).sum())
    if alone and clusters_matter(protocol):
        what = "1 cluster has" if alone == 1 else f"{alone:,} clusters have"
        alone_in = (
            "who always picks herself: no peer hides her"
            if protocol.users_talk()
            else "so what is known of the cluster is known of her"
        )
        warnings.warn(f"{what} a single user, {alone_in}", stacklevel=3)
    return {
        "count": len(sizes), "origin": origin, "minimum": int(sizes.min()), "median": float(np.median(sizes)),
        "maximum": int(sizes.max()), "of_one_user": alone,
    }  # fmt: skip


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


def clusters_matter(protocol: Protocol) -> bool:
    """Return whether clusters matter to a run: users send messages within them or read them, or a server uses them."""
    return bool(
        protocol.graph_over() != "everybody" and protocol.in_clusters() and not protocol.mixes_everybody()
    )


def default_clusters(users: int) -> int:
    """Return the default number of clusters for k-means."""
    return min(MAX_CLUSTERS, max(1, users // USERS_A_CLUSTER))


def _clusters(
    protocol: Protocol, data: Dataset, rows: Array, clusters: int | None, seed: int, progress: Progress
) -> tuple[Array | None, str]:
    if data.cluster is not None:
        return data.cluster[rows], "from a column"
    if clusters is None and not clusters_matter(protocol):
        return None, "none"
    if clusters is not None and not 1 <= clusters <= len(rows):
        raise InputError(f"clusters = {clusters!r}: must be an integer from 1 to the {len(rows):,} users")
    count = clusters or default_clusters(len(rows))
    progress(f"k-means, {count} clusters", 0, 0)
    default = f" (default: one for {USERS_A_CLUSTER} users, at most {MAX_CLUSTERS})"
    return clustering.kmeans(data.x[rows], count, seed), "by k-means" + (default if clusters is None else "")


def _test_rows(data: Dataset, test: float | None, seed: int) -> tuple[npt.NDArray[np.bool_], str]:
    if test is None and data.test is not None:
        return data.test, "the data set's own test part"
    share = TEST_SHARE if test is None else test
    return evaluation.split(len(data.y), seed, share), f"{100 * share:g} % of the rows, drawn by seed"


def _silent(label: str, done: int, total: int) -> None:
    """Show nothing."""
