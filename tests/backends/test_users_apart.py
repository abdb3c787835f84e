"""Users who are made or read by the shards, and outputs that they write: the bits of users in one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import p2p_sim
from p2p_sim import InputError, Population, parquet_users
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.errors import StorageError
from p2p_sim.core.population_in_parts import PopulationInParts, SyntheticUsers
from p2p_sim.learning.data.stored_table import StoredTable
from p2p_sim.learning.training import evaluation
from p2p_sim.rundir import parquet_columns
from p2p_sim.rundir.outputs_folder import StoredOutputs
from protocols import EncryptedShuffle, PeerToPeer
from tests.contract.test_battery import equal


@dataclass(frozen=True)
class Keeping(Protocol):
    """Users keep what they heard, in columns of unequal lengths, and the learner what she was told."""

    tell = Message("user", "user", "tells her label", y=bool)
    report = Message("user", "learner", "reports", y=bool)

    def user(self, me: Party) -> Rounds:
        told = yield self.tell(to=me.draw.member("peer", me.cluster), y=me.y)
        yield self.report(y=me.y)
        return {"heard": told.y.sum(), "those": told.y}

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


def in_memory(people: Population) -> bool:
    return "_whole" in vars(people)


@pytest.mark.parametrize(
    ("users", "cluster"), [(1000, None), (1000, 7), (1000, 10), (1000, 1000), (1000, 2000)]
)
def test_synthetic_users_are_those_of_one_process(users: int, cluster: int | None) -> None:
    whole = Population.synthetic(users=users, cluster_size=cluster, seed=5)
    apart = PopulationInParts(SyntheticUsers(users, cluster, seed=5))
    assert (apart.hash, apart.users, apart.labels) == (whole.hash, users, 2)
    assert apart.sizes.tolist() == whole.sizes.tolist()
    for low, high in ((0, 0), (0, 1), (13, 700), (999, 1000)):
        mine, theirs = apart.piece(low, high), whole.piece(low, high)
        assert np.array_equal(mine.y, theirs.y)
        if cluster is not None:
            assert mine.clusters is not None
            assert theirs.clusters is not None
            assert np.array_equal(mine.clusters.codes, theirs.clusters.codes)
            assert np.array_equal(mine.clusters.starts, theirs.clusters.starts)
    assert not in_memory(apart)
    assert np.array_equal(apart.y, whole.y)


def written(folder: Path, cluster: np.ndarray[Any, Any], label: str = "label") -> tuple[Path, Population]:
    """Users in two files, and the same in one process."""
    y = np.random.default_rng(0).random(len(cluster)) < 0.3
    for low, high, name in ((0, 400, "a"), (400, len(y), "b")):
        parquet_columns.write(folder / f"{name}.parquet", {label: y[low:high], "group": cluster[low:high]})
    return folder, Population.from_arrays(y=y, cluster=cluster)


CLUSTERS = np.sort(np.random.default_rng(1).integers(0, 40, 1000)) * 3


def test_users_in_files_are_those_of_one_process(tmp_path: Path) -> None:
    folder, whole = written(tmp_path, CLUSTERS)
    for place in (str(folder), f"file://{folder}"):
        apart = parquet_users.population(place, label="label", cluster="group")
        assert apart.hash == whole.hash
        assert not in_memory(apart)
        here = p2p_sim.run(PeerToPeer(0.1), whole, seed=1)
        assert p2p_sim.run(PeerToPeer(0.1), apart, seed=1).digest == here.digest


def test_files_that_hold_no_users_are_refused(tmp_path: Path) -> None:
    folder, _ = written(tmp_path / "mixed", CLUSTERS[::-1].copy())
    mixed = parquet_users.population(folder, label="label", cluster="group")
    with pytest.raises(InputError, match="not sorted by 'group'"):
        mixed.hash  # noqa: B018
    with pytest.raises(InputError, match="has no column 'y'; it has label, group"):
        parquet_users.population(folder)
    with pytest.raises(InputError, match=r"cannot be read .*there is nothing at"):
        parquet_users.population(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no such kind of place"):
        parquet_users.population("moon://bucket/users.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"folder without \.parquet files"):
        parquet_users.population(tmp_path / "empty")
    with pytest.raises(InputError, match="population = ''"):
        parquet_users.population("")  # an unset variable of a shell, not the folder that one stands in
    parquet_file = tmp_path / "holes.parquet"
    parquet.write_table(pyarrow.table({"y": pyarrow.array([None, True, False])}), parquet_file)
    with pytest.raises(InputError, match=r"column 'y' .* has missing values .*: fill them in, or leave"):
        parquet_users.population(parquet_file).hash  # noqa: B018
    (tmp_path / "text.parquet").write_text("no Parquet file")
    with pytest.raises(InputError, match="is no Parquet file"):
        parquet_users.population(tmp_path / "text.parquet")


ray = pytest.mark.usefixtures("ray_session")


@pytest.mark.ray
@ray
@pytest.mark.parametrize("protocol", [PeerToPeer(0.1, 0.5), Keeping(), EncryptedShuffle(0.2)], ids=repr)
def test_shards_make_their_users_and_write_their_outputs(protocol: Any, tmp_path: Path) -> None:
    apart = PopulationInParts(SyntheticUsers(701, 50, seed=5))
    whole = Population.synthetic(users=701, cluster_size=50, seed=5)
    here = p2p_sim.run(protocol, whole, seed=3)
    released = p2p_sim.run(protocol, whole, seed=3, out=tmp_path / "here")
    how: dict[str, Any] = {"backend": "shards", "shards": 3, "seed": 3, "trace": "full", "costs": True}
    there = p2p_sim.run(protocol, apart, **how, out=tmp_path / "run")
    assert there.digest == released.digest == here.digest
    assert isinstance(there.outputs, StoredOutputs)
    assert isinstance(released.outputs, StoredOutputs)
    assert not in_memory(apart)
    loaded = p2p_sim.load(tmp_path / "run")
    assert loaded.population is not None
    assert loaded.population.hash == here.population.hash  # type: ignore[union-attr]
    for role, columns in here.outputs.items():
        for found in (there, loaded, released):
            assert list(found.output(role)) == list(columns)
            assert equal(found.output(role), columns)
    for kind in protocol.messages():
        assert equal(loaded.messages(kind), there.messages(kind))


@pytest.mark.ray
@ray
def test_nobody_but_the_shards_reads_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, whole = written(tmp_path / "users", CLUSTERS)
    apart = parquet_users.population(folder, label="label", cluster="group")
    here = p2p_sim.run(PeerToPeer(0.1), whole, seed=1)
    monkeypatch.setattr(parquet_users.ParquetUsers, "_rows", None)  # in this process alone
    there = p2p_sim.run(PeerToPeer(0.1), apart, seed=1, backend="shards", shards=2)
    assert there.digest == here.digest


@pytest.mark.ray
@ray
def test_shards_give_meaning_to_labels_and_take_test_rows_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else reads a row; the users are those of --data, which reads all."""
    y = np.random.default_rng(0).random(len(CLUSTERS)) < 0.3
    text = pyarrow.array(np.where(y, "yes", "no")).dictionary_encode()
    parquet.write_table(
        pyarrow.table({"y": text, "group": CLUSTERS}), tmp_path / "raw.parquet", row_group_size=90
    )
    is_test = evaluation.split(len(y), 4, 0.2)
    here = p2p_sim.run(
        PeerToPeer(0.1), Population.from_arrays(y=y[~is_test], cluster=CLUSTERS[~is_test]), seed=1
    )
    table = StoredTable(str(tmp_path), cluster="group", classes=["no", "yes"], test=0.2, seed=4)
    monkeypatch.setattr(parquet_users.ParquetUsers, "_rows", None)  # in this process alone
    for shards in (1, 2, 3):
        there = p2p_sim.run(PeerToPeer(0.1), table.population(), seed=1, backend="shards", shards=shards)
        assert there.digest == here.digest


@pytest.mark.ray
@ray
def test_a_path_that_shards_do_not_see(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, CLUSTERS)
    apart = parquet_users.population(folder, label="label", cluster="group")
    apart.look(lambda origin: [origin.look(0, origin.users)])
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(StorageError, match=r"cannot be read now .* machines of the cluster share"):
        p2p_sim.run(PeerToPeer(0.1), apart, seed=1, backend="shards", shards=2)
