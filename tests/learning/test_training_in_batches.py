"""Models that learn from files in batches: the figures and weights of those that are trained in memory."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier

import p2p_sim
from p2p_sim import InputError, Population, parquet_users
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.errors import StorageError
from p2p_sim.core.synthetic import shares_of
from p2p_sim.learning import data_split, experiment, synthetic_users, training_in_memory
from p2p_sim.learning.data import stored_examples
from p2p_sim.learning.data.synthetic_examples import SyntheticExamples
from p2p_sim.learning.training import cluster_effects, models_in_batches, scratch_labels
from p2p_sim.learning.training.losses import Bags, channel, match
from p2p_sim.learning.training.models_in_batches import BagsInBatches, FirstPass, Moments
from p2p_sim.learning.training.scratch_examples import ScratchExamples
from p2p_sim.learning.training.scratch_labels import ScratchLabels
from p2p_sim.learning.training_in_batches import _Groups, _Released
from p2p_sim.rundir import parquet_columns
from p2p_sim.rundir.growing_columns import write_apart
from p2p_sim.rundir.outputs_folder import StoredOutputs
from protocols import (
    DoubleResponse,
    EncryptedShuffle,
    LabelProportions,
    MultiStage,
    NetworkShuffle,
    PeerToPeer,
    RandomizedResponse,
    UnbiasedResponse,
)

Array = np.ndarray[Any, Any]
LABELS, TIGHT = 3, 1e-9


@dataclass(frozen=True)
class InMemory:
    """Examples in arrays, which count how often they are read."""

    x: Array
    y: Array
    labels: int

    @property
    def users(self) -> int:
        return len(self.y)

    @property
    def width(self) -> int:
        return int(self.x.shape[1])

    def batches(self, edges: list[int]) -> Iterator[tuple[Array, Array]]:
        for low, high in itertools.pairwise(edges):
            yield self.x[low:high], self.y[low:high]


def drawn(users: int, labels: int = LABELS, clusters: int = 30, seed: int = 0) -> tuple[Array, Array, Array]:
    """Features, labels that follow from them, and ascending clusters whose features differ."""
    rng = np.random.default_rng(seed)
    cluster = np.sort(rng.integers(0, clusters, users))
    x = rng.normal(size=(users, 4)) + np.random.default_rng(9).normal(size=(clusters, 4))[cluster]
    scores = x @ np.random.default_rng(8).normal(size=(4, labels)) * 1.5 + rng.gumbel(size=(users, labels))
    return x * [1, 5, 0.2, 1] + [0, 100, 0, -3], scores.argmax(axis=1).astype(np.uint8), cluster


def examples(users: int = 1500, labels: int = LABELS) -> tuple[InMemory, Array]:
    x, y, cluster = drawn(users, labels)
    return InMemory(x, y, labels), cluster


def written(folder: Path, x: Array, y: Array, cluster: Array, cuts: tuple[int, ...] = (700,)) -> Path:
    edges = [0, *cuts, len(y)]
    for number, (low, high) in enumerate(itertools.pairwise(edges)):
        columns = {"y": y[low:high], "site": cluster[low:high]}
        columns |= {f"f{i}": column[low:high] for i, column in enumerate(x.T)}
        parquet_columns.write(folder / f"{number}.parquet", columns)
    return folder


def labelled(given: models_in_batches.Examples, often: Array) -> models_in_batches.Labelled:
    """Passes over rows with ``often`` (n, k) labels of each value."""

    def one() -> Iterator[tuple[Array, Array]]:
        cuts = models_in_batches.edges(given)
        for (x, _), low in zip(given.batches(cuts), cuts, strict=False):
            yield x, often[low : low + len(x)]

    return one


def test_files_hold_the_rows_however_they_are_divided(tmp_path: Path) -> None:
    given, cluster = examples()
    said = []
    for name, cuts in (("one", ()), ("many", (1, 2, 700, 701))):
        place = str(written(tmp_path / name, given.x, given.y, cluster, cuts))
        stored = stored_examples.of_users(place, cluster="site", labels=LABELS)
        assert (stored.users, stored.features) == (1500, ("f0", "f1", "f2", "f3"))
        for edges in ([0, 1500], [0, 1, 3, 699, 1500]):
            for (x, y), (mine, labels) in zip(given.batches(edges), stored.batches(edges), strict=True):
                assert np.array_equal(x, mine)
                assert np.array_equal(y, labels)
        one = labelled(stored, np.eye(LABELS, dtype=np.int64)[given.y])
        trained = models_in_batches.train("logistic-regression", one, FirstPass.over(one, LABELS), LABELS)
        said.append(trained.predicted(given.x).probabilities)
    assert np.array_equal(*said)  # bit by bit
    x, y = stored.spread(100)
    assert np.array_equal(x, given.x[::15])
    assert np.array_equal(y, given.y[::15])


def test_wide_rows_come_in_smaller_batches() -> None:
    wide = InMemory(np.zeros((9000, 500)), np.zeros(9000, np.uint8), 2)
    assert models_in_batches.edges(wide) == [0, 4194, 8388, 9000]  # 16 MiB each


def test_labels_of_users_in_any_order_come_by_user(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(scratch_labels, "_FEW", 7)
    monkeypatch.setattr(scratch_labels, "_MOST", 9)
    monkeypatch.setattr(scratch_labels, "_READ", 5)
    rng = np.random.default_rng(3)
    user, y = rng.integers(0, 200, 500), rng.integers(0, 256, 500)
    sorted_labels = ScratchLabels.of(
        [(user[:90], y[:90]), (user[90:90], y[90:90]), (user[90:], y[90:])], 200, tmp_path
    )
    order = np.argsort(user, kind="stable")  # labels of a user stay in the order in which they came
    edges = [0, 1, 60, 61, 200]
    parts = list(sorted_labels.batches(edges))
    found = np.concatenate([rows + low for (rows, _), low in zip(parts, edges, strict=False)])
    assert np.array_equal(found, user[order])
    assert np.array_equal(np.concatenate([labels for _, labels in parts]), y[order])
    nothing = ScratchLabels.of([], 200, tmp_path)
    assert [len(rows) for rows, _ in nothing.batches(edges)] == [0, 0, 0, 0]


def test_labels_take_five_bytes_each_on_disk_at_any_time(tmp_path: Path, monkeypatch: Any) -> None:
    """As a plan counts them: no label is in two files at once."""
    most, honest = [], scratch_labels._sorted

    def sorted_now(records: Array) -> Array:
        most.append(sum(path.stat().st_size for path in tmp_path.iterdir()) + records.nbytes)
        return honest(records)

    monkeypatch.setattr(scratch_labels, "_sorted", sorted_now)
    for few in (1000, 100):  # in one part, and in ten
        monkeypatch.setattr(scratch_labels, "_FEW", few)
        ScratchLabels.of([(np.arange(1000, dtype=np.int32), np.ones(1000, np.uint8))], 1000, tmp_path)
        (tmp_path / "labels").unlink()
    assert len(most) == 11
    assert max(most) == 5 * 1000


def test_stored_outputs_come_a_part_after_the_other(tmp_path: Path) -> None:
    sender, y = np.arange(7, dtype=np.int32), np.arange(7) % 2 == 0
    for site, (low, high) in enumerate(((0, 3), (3, 3), (3, 7))):
        write_apart(tmp_path / "outputs", "learner", {"sender": sender[low:high], "y": y[low:high]}, site)
    stored = StoredOutputs(tmp_path / "outputs", {"learner": {"sender": 7, "y": 7}})
    assert stored.aligned("learner", ["sender", "y"])
    parts = list(stored.parts("learner", ["sender", "y"]))
    assert np.array_equal(np.concatenate([part["sender"] for part in parts]), sender)
    assert np.array_equal(np.concatenate([part["y"] for part in parts]), y)
    write_apart(tmp_path / "outputs", "other", {"sender": sender, "y": y[:3]}, 0)
    write_apart(tmp_path / "outputs", "vectors", {"sender": sender, "y": np.zeros((7, 2), np.bool_)}, 0)
    assert not StoredOutputs(tmp_path / "outputs", {}).aligned("other", ["sender", "y"])
    assert not StoredOutputs(tmp_path / "outputs", {}).aligned("vectors", ["sender", "y"])


def test_moments_are_those_of_all_rows_at_once() -> None:
    given, _ = examples()
    x, often = given.x.copy(), np.random.default_rng(1).integers(0, 3, 1500)
    x[:, 2] = 0.1  # never changes, though its computed variance may not be 0
    found = Moments()
    for low in range(0, 1500, 40):
        found.add(x[low : low + 40], often[low : low + 40].astype(float))
    repeated = np.repeat(x, often, axis=0)
    assert np.allclose(found.mean, repeated.mean(axis=0), rtol=1e-12)
    assert np.allclose(found.scale[[0, 1, 3]], repeated.std(axis=0)[[0, 1, 3]], rtol=1e-12)
    assert found.scale[2] == 1.0


@pytest.mark.parametrize("labels", [2, LABELS])
def test_the_logistic_regression_is_that_of_scikit_learn(labels: int, monkeypatch: Any) -> None:
    given, _ = examples(labels=labels)
    often = np.eye(labels, dtype=np.int64)[given.y]
    often[::7] = 0  # no label was released
    often[::11, 1] += 2  # several
    rows, values = np.nonzero(often)
    repeated = np.repeat(rows, often[rows, values])
    x, y = given.x[repeated], np.repeat(values, often[rows, values])
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(scaled, y)
    one, found = labelled(given, often), []
    for batch, tolerance in ((1500, 1e-10), (1500, 1e-4), (64, 1e-4)):
        monkeypatch.setattr(models_in_batches, "BATCH", batch)
        trained = models_in_batches.train(
            "logistic-regression", one, FirstPass.over(one, labels), labels, tolerance
        )
        found.append(trained.predicted(given.x).probabilities)
        assert trained.converged
    mine = theirs.predict_proba((given.x - x.mean(axis=0)) / x.std(axis=0))
    assert np.allclose(found[0], mine, rtol=0, atol=1e-6)
    assert np.allclose(found[1], found[2], rtol=0, atol=TIGHT)


def test_a_value_that_was_never_released_has_no_probability() -> None:
    given, _ = examples()
    often = np.eye(LABELS, dtype=np.int64)[given.y]
    often[:, 1] = 0
    one = labelled(given, often)
    said = models_in_batches.train("logistic-regression", one, FirstPass.over(one, LABELS), LABELS).predicted(
        given.x
    )
    assert said.probabilities is not None
    assert not said.probabilities[:, 1].any()
    assert set(said.y) == {0, 2}


def test_other_models_learn_a_batch_after_the_other(monkeypatch: Any) -> None:
    monkeypatch.setattr(models_in_batches, "BATCH", 400)
    given, _ = examples()
    one = labelled(given, np.eye(LABELS, dtype=np.int64)[given.y])
    mine = models_in_batches.train("sgd", one, FirstPass.over(one, LABELS), LABELS).predicted(given.x)
    scaled = (given.x - given.x.mean(axis=0)) / given.x.std(axis=0)
    theirs = SGDClassifier(random_state=0)
    for low in range(0, 1500, 400):
        theirs.partial_fit(scaled[low : low + 400], given.y[low : low + 400], classes=np.arange(LABELS))
    assert np.array_equal(mine.y, theirs.predict(scaled))
    with pytest.raises(InputError, match="'random-forest' needs all rows in memory"):
        models_in_batches.check("random-forest")


@pytest.mark.parametrize("batch", [1500, 200, 25])  # of the last, every cluster is cut
def test_corrected_models_are_those_in_memory(batch: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(models_in_batches, "BATCH", batch)
    given, cluster = examples()
    rng = np.random.default_rng(4)
    given = replace(given, x=np.c_[given.x, rng.normal(size=(1500, 12)), np.full(1500, 0.1)])  # 16 vary
    counts = np.zeros((30, LABELS))
    np.add.at(counts, (cluster, (given.y + rng.integers(0, 2, 1500)) % LABELS), 1.0)
    law, everybody = channel(LABELS, 0.2), Moments()
    everybody.add(given.x)
    starts = np.searchsorted(cluster, np.arange(31))
    bags = BagsInBatches(given, starts, counts, everybody)
    here, there = Bags(cluster, counts), cluster_effects.InMemoryBags(given.x, Bags(cluster, counts))
    weights = rng.uniform(0.2, 1, 30)
    for mine, theirs in (
        (bags.match(law), match(given.x, here, law)),
        (bags.match(law, weights), match(given.x, here, law, weights)),
        (cluster_effects.fit_bags(bags, law).model, cluster_effects.fit_bags(there, law).model),
    ):
        assert np.allclose(mine.weights, theirs.weights, rtol=0, atol=TIGHT)
        assert np.allclose(bags.means(mine), there.means(theirs), rtol=0, atol=TIGHT)
    assert bags.rank() == there.rank()
    often = np.eye(LABELS, dtype=np.int64)[given.y] * (rng.random(1500) < 0.7)[:, None]
    one = labelled(given, often)
    mine = models_in_batches.corrected(one, law, FirstPass.over(one, LABELS), everybody)
    theirs = match(given.x, Bags(np.arange(1500), often.astype(float)), law)
    assert np.allclose(mine.weights, theirs.weights, rtol=0, atol=TIGHT)


@pytest.mark.parametrize("room", [True, False])
def test_examples_are_decoded_once_where_there_is_room(room: bool, tmp_path: Path, monkeypatch: Any) -> None:
    given, _ = examples()
    read: list[list[int]] = []
    original = InMemory.batches
    monkeypatch.setattr(InMemory, "batches", lambda self, edges: read.append(edges) or original(self, edges))
    if not room:
        monkeypatch.setattr("p2p_sim.learning.training.scratch_examples.ROOM", 1e18)
    told: list[tuple[str, int, int]] = []
    scratch = ScratchExamples(given, tmp_path, "sgd", lambda *each: told.append(each))
    for edges in ([0, 700, 1500], [0, 3, 1500]):
        parts = list(scratch.batches(edges))
        assert np.array_equal(np.concatenate([x for x, _ in parts]), given.x)
        assert np.array_equal(np.concatenate([y for _, y in parts]), given.y)
    assert len(read) == (1 if room else 2)
    assert told[0] == ("training sgd, pass 1", 0, 1500)
    assert told[-1] == ("training sgd, pass 2", 3, 1500)


@pytest.mark.parametrize(
    ("protocol", "faults"),
    [
        (PeerToPeer(0.1, 0.6), None),
        (RandomizedResponse(1.5), ["drop=0.2", "duplicate=0.1"]),
        (EncryptedShuffle(2.0), ["loss=0.1"]),
    ],
    ids=repr,
)
def test_the_figures_are_those_of_users_in_memory(protocol: Any, faults: Any, tmp_path: Path) -> None:
    x, y, cluster = drawn(3000, 2)
    test = drawn(800, 2, seed=5)
    place = str(written(tmp_path / "users", x, y, cluster))
    apart = parquet_users.population(place, cluster="site")
    users = stored_examples.of_users(place, cluster="site")
    tests = stored_examples.of_test(str(written(tmp_path / "test", *test, cuts=())), users)
    how: dict[str, Any] = {"seed": 3, "faults": faults}
    there = experiment.among(protocol, apart, place, examples=users, test=tests, **how)
    whole = Population.from_arrays(y=y, x=x, cluster=cluster)
    here = p2p_sim.run(protocol, whole, **how)
    here.notes["released"] = experiment.released(here)
    rows = np.arange(len(y))
    comparison = training_in_memory.train(here, data_split.Examples(whole, test[0], test[1], rows, {}))
    assert there.digest == here.digest
    assert comparison is not None
    found = there.notes["accuracy"]
    assert (found["trained_on"], found["note"]) == (comparison.trained_on, comparison.note)
    assert found["correction"] == comparison.correction
    # scikit-learn ends at the same tolerance, not at the same place
    for key in ("accuracy_private", "accuracy_true", "baseline"):
        assert found[key] == pytest.approx(getattr(comparison, key), abs=2 / 800)
    assert found["accuracy_corrected"] == comparison.accuracy_corrected
    assert found["metrics"]["accuracy_corrected"]["log_loss"] == pytest.approx(
        comparison.metrics["accuracy_corrected"]["log_loss"], abs=TIGHT
    )
    assert there.notes["data"]["test_rows"] == 800


@pytest.mark.parametrize("y", [np.array([0, -1, 1]), np.array([0, 2, 1]), np.array([0.0, 0.5, 1.0])])
def test_labels_that_are_none_are_refused(y: Array) -> None:
    """A negative one would be counted as another user's."""
    outputs = {"learner": {"sender": np.arange(3), "y": y}}
    groups = _Groups(np.array([0, 3]), np.zeros(1, np.int64))
    with pytest.raises(InputError, match="a model needs labels from 0 to 1"):
        list(_Released(outputs, "sender", groups, np.zeros((1, 2), np.int64)).pairs())


def test_what_goes_with_no_batch_is_said(tmp_path: Path) -> None:
    x, y, cluster = drawn(400, 2, clusters=1)
    place = str(written(tmp_path / "users", x, y, cluster, ()))
    users = stored_examples.of_users(place, cluster="site")
    tests = stored_examples.of_test(str(written(tmp_path / "test", x[:50], y[:50], cluster[:50], ())), users)
    run = experiment.among(
        NetworkShuffle(1.0, 3),
        parquet_users.population(place),
        place,
        examples=users,
        test=tests,
        graph="regular:6",
        seed=1,
    )
    assert "corrected only where users are in memory" in run.notes["accuracy"]["note"]
    run = experiment.among(
        LabelProportions(20), parquet_users.population(place), place, examples=users, test=tests, seed=1
    )
    assert run.notes["accuracy"] is None
    assert "no labels of users or clusters" in run.notes["released"]["untrained"]


def test_files_without_fitting_features_are_refused(tmp_path: Path) -> None:
    x, y, cluster = drawn(400, 2)
    place = written(tmp_path / "users", x, y, cluster, (200,))

    def part(number: int, **columns: Any) -> None:
        """Write a part again, with other columns; None: without one."""
        rows = slice(200 * number, 200 * number + 200)
        all_of_them: dict[str, Any] = {
            "y": y[rows],
            "site": cluster[rows],
            "f0": x[rows, 0],
            "f1": x[rows, 1],
        }
        kept = {name: column for name, column in (all_of_them | columns).items() if column is not None}
        parquet_columns.write(place / f"{number}.parquet", kept)

    def refused(match: str, **how: Any) -> None:
        with pytest.raises(InputError, match=match):
            list(stored_examples.of_users(str(place), cluster="site", **how).batches([0, 400]))

    part(0)
    part(1, f1=None)
    refused(r"1\.parquet' has no column 'f1'; it has y, site, f0")
    part(1, f1=x[:200, 1].astype(np.float32))
    refused(r"column 'f1' of .*1\.parquet' has the type float, and elsewhere double: write all files with")
    part(1, f1=np.array(["a"] * 200))
    refused(r"column 'f1' of .* has the type string: features are numbers; encode it first, or leave it out")
    part(1, y=x[:200, 1])
    refused(r"column 'y' of .*1\.parquet' has the type double: needed are bool or integers")
    part(1, y=np.full(200, 7))
    refused(r"holds labels from 7 to 7: those of the protocol are integers from 0 to 1")
    part(1, f1=np.where(np.arange(200) == 5, np.nan, 1.0))
    refused(r"column 'f1' of .* is nan in row 205 of all")
    part(0, f1=np.arange(200) + 2**60)
    part(1, f1=np.arange(200))
    refused("whole numbers beyond 2\\^53")
    part(0)
    part(1)
    refused("--drop f9: .* has no such column; it has y, site, f0, f1", drop=["f9"])
    refused("--drop y: it is the column of labels", drop=["y"])
    refused("has no column of features beside 'y'", drop=["f0", "f1"])
    users = stored_examples.of_users(str(place), cluster="site")
    with pytest.raises(InputError, match="are the users themselves"):
        stored_examples.of_test(f"{place}", users)
    other = tmp_path / "other.parquet"
    parquet_columns.write(other, {"y": y[:10], "f0": x[:10, 0]})
    with pytest.raises(InputError, match=r"other\.parquet' has no column 'f1'"):
        stored_examples.of_test(str(other), users)


def test_a_label_among_the_features_is_refused(tmp_path: Path) -> None:
    x, y, cluster = drawn(400, 2)
    x[:, 1] = y
    place = str(written(tmp_path / "users", x, y, cluster, ()))
    users = stored_examples.of_users(place, cluster="site")
    tests = stored_examples.of_test(
        str(written(tmp_path / "test", x[:200], y[:200], cluster[:200], ())), users
    )
    apart = parquet_users.population(place, cluster="site")
    with pytest.raises(
        InputError, match=r"column 'f1' holds the labels once more .*: leave it out, --drop f1"
    ):
        experiment.among(PeerToPeer(0.1), apart, place, examples=users, test=tests, seed=1)


def test_a_part_that_vanishes_while_training(tmp_path: Path) -> None:
    given, cluster = examples()
    place = written(tmp_path, given.x, given.y, cluster)
    stored = stored_examples.of_users(str(place), cluster="site", labels=LABELS)
    found = stored.batches([0, 10, 1500])
    next(found)
    (place / "1.parquet").unlink()
    with pytest.raises(StorageError, match=r"cannot be read while a model is trained .*: files must stay"):
        next(found)
    parquet_columns.write(
        place / "1.parquet", {"y": given.y[:5], **{f"f{i}": given.x[:5, i] for i in range(4)}}
    )
    with pytest.raises(
        InputError, match=r"was changed while the run was under way: it has 5 rows, and had 800"
    ):
        list(stored.batches([0, 1500]))


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    given, _ = examples()
    full = tmp_path / "full"
    full.mkdir()
    for name in ("0", "features"):
        (full / name).symlink_to("/dev/full")
    with pytest.raises(
        StorageError,
        match=r"features, 33 bytes a row, cannot be written to .*: No space left on device; make room, or",
    ):
        list(ScratchExamples(given, full, "sgd").batches([0, 1500]))
    with pytest.raises(
        StorageError,
        match=r"released labels, 5 bytes each, cannot be .*: No space left on device; make room",
    ):
        ScratchLabels.of([(np.arange(1500), given.y)], 1500, full)


@pytest.mark.parametrize("name", ["features", "true"])
@pytest.mark.parametrize("batch", [100, 1500])
def test_a_disk_that_few_bytes_fill_is_named(name: str, batch: int, tmp_path: Path) -> None:
    """Bytes that a buffer still had were written once more as the file was closed, with an error without a name."""
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(
        StorageError, match=r"features, 33 bytes a row, .*: No space left on device; make room"
    ):
        list(ScratchExamples(examples()[0], tmp_path, "sgd").batches([0, batch, 1500]))


def peak_of_training(users: int, folder: Path) -> int:
    """The most bytes of arrays that training holds, but for a few numbers a cluster."""
    x, y, cluster = drawn(users, 2)
    (folder / "scratch").mkdir(parents=True)
    written(folder, x, y, cluster, ())
    del x
    tracemalloc.start()
    stored = stored_examples.of_users(str(folder), cluster="site")
    pairs = ((np.arange(low, low + 1000), y[low : low + 1000]) for low in range(0, users, 1000))
    sorted_labels = ScratchLabels.of(pairs, users, folder / "scratch")
    scratch = ScratchExamples(stored, folder / "scratch", "sgd")

    def released() -> Iterator[tuple[Array, Array]]:
        cuts = models_in_batches.edges(scratch)
        for (x, _), (rows, labels) in zip(scratch.batches(cuts), sorted_labels.batches(cuts), strict=True):
            yield x, np.eye(2, dtype=np.int64)[labels][np.argsort(rows)]

    first_pass = FirstPass.over(released, 2)
    models_in_batches.train("logistic-regression", released, first_pass, 2)
    models_in_batches.corrected(released, channel(2, 0.1), first_pass, first_pass.moments)
    counts = np.stack([np.bincount(cluster[y == each], minlength=30) for each in (0, 1)], axis=1)
    starts = np.searchsorted(cluster, np.arange(31))
    cluster_effects.fit_bags(
        BagsInBatches(scratch, starts, counts * 1.0, first_pass.moments), channel(2, 0.1)
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_is_bounded_by_the_batch(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(models_in_batches, "BATCH", 1000)
    monkeypatch.setattr(stored_examples, "READ", 1000)
    monkeypatch.setattr(scratch_labels, "_READ", 1000)
    monkeypatch.setattr(scratch_labels, "_FEW", 1000)
    peak_of_training(2000, tmp_path / "first")  # what is imported on the way is no matter
    assert peak_of_training(30_000, tmp_path / "many") < 30_000 * 4 * 8  # what the features alone would take


def test_examples_of_other_users_are_refused(tmp_path: Path) -> None:
    x, y, cluster = drawn(400, 2)
    place = str(written(tmp_path / "users", x, y, cluster, ()))
    users = stored_examples.of_users(place, cluster="site")
    few = replace(users, files=((users.files[0][0], 300),))
    apart = parquet_users.population(place, cluster="site")
    with pytest.raises(InputError, match="has 300 rows, and there are 400 users"):
        experiment.among(PeerToPeer(0.1), apart, place, examples=few, test=few, seed=1)
    with pytest.raises(
        InputError, match="trains classifiers, and labels of UnbiasedResponse stand for numbers"
    ):
        experiment.among(UnbiasedResponse(2.0), apart, place, examples=users, test=few, seed=1)
    with pytest.raises(InputError, match=r"nothing tests it: give --test P, .* --test-population PLACE"):
        experiment.among(PeerToPeer(0.1), apart, place, examples=users, seed=1)


@dataclass(frozen=True)
class Reading(Protocol):
    """Users report whether the sum of their features is above 0."""

    report = Message("user", "learner", "reports", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.x.sum(axis=1) > 0)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


@pytest.mark.parametrize(
    "protocol", [PeerToPeer(0.1), RandomizedResponse(1.0, labels=4), Reading()], ids=repr
)
def test_synthetic_users_are_drawn_in_batches(protocol: Any, monkeypatch: Any) -> None:
    how: dict[str, Any] = {"users": 3010, "features": 3, "cluster_size": 40, "seed": 2, "blocks": 3}
    here = experiment.simulate(protocol, **how)
    monkeypatch.setattr(synthetic_users, "MOST_NUMBERS", 3000)
    kept = experiment.simulate(protocol, **how, keep_features=True)
    there = experiment.simulate(protocol, **how)
    assert kept.population is not None
    assert there.population is not None
    assert (kept.population.x is None, there.population.x is None) == (False, True)
    assert here.digest == kept.digest == there.digest
    assert here.notes["accuracy"] == kept.notes["accuracy"]
    mine, theirs = there.notes["accuracy"], here.notes["accuracy"]
    test_rows = 1000  # 3000 features; in memory all 750 rows, and these are as many
    assert there.notes["data"] == here.notes["data"]
    assert mine["test_rows"] == theirs["test_rows"] < test_rows
    assert mine["trained_on"] == theirs["trained_on"]
    # scikit-learn ends at the same tolerance, not at the same place; labels of digits next to each other are close
    for key in ("accuracy_private", "accuracy_true", "baseline"):
        assert mine[key] == pytest.approx(theirs[key], abs=0.01)
    assert mine["accuracy_corrected"] == theirs["accuracy_corrected"]


def test_synthetic_examples_are_the_users(monkeypatch: Any) -> None:
    whole = Population.synthetic(users=500, labels=5, features=3, shares=[0.4, 0.3, 0.1, 0.1, 0.1], seed=7)
    law = tuple(shares_of(5, [0.4, 0.3, 0.1, 0.1, 0.1], None))
    x, y = SyntheticExamples(500, 3, law, 7).rows(123, 400)
    assert whole.x is not None
    assert np.array_equal(x, whole.x[123:400])
    assert np.array_equal(y, whole.y[123:400])


@pytest.mark.parametrize(
    ("changed", "batches"),
    [
        ({}, True),
        ({"users": 1000}, False),
        ({"model": "none"}, True),
        ({"model": "random-forest"}, False),
        ({"graph": "regular:4"}, False),
        ({"canaries": 0.1}, False),
        ({"backend": "actors"}, False),
        ({"keep_features": True}, False),
        ({"protocol": DoubleResponse(0.4, "3*0;1*1|1*0;3*1")}, False),
        ({"protocol": DoubleResponse(0.4, "3*0;1*1|1*0;3*1", truth="4*0;1*1|1*0;4*1")}, False),
        ({"protocol": LabelProportions(20)}, False),
        ({"protocol": MultiStage(1.0)}, False),
        ({"protocol": UnbiasedResponse(2.0, 16, 20.0, 50.0), "model": "ridge"}, False),
    ],
    ids=str,
)
def test_features_are_kept_where_something_needs_them_together(changed: Any, batches: bool) -> None:
    given = {
        "protocol": PeerToPeer(0.1),
        "users": 10**8,
        "features": 8,
        "model": "logistic-regression",
    } | changed
    assert synthetic_users.in_batches(**given) is batches
