"""Outputs of a local run that are written block by block: files, columns and digest are as if they were returned."""

from __future__ import annotations

import shutil
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.backends import streamed_outputs
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.errors import StorageError
from p2p_sim.learning import experiment, number_labels
from p2p_sim.rundir import growing_columns, integrity, run_directory
from p2p_sim.rundir.outputs_folder import StoredOutputs
from p2p_sim.rundir.trace_writer import Draft
from p2p_sim.testing import equal
from tests.backends.test_users_apart import Keeping
from tests.contract.cases import IN_TURN, PROTOCOLS, people_of

PEOPLE = Population.synthetic(users=300, cluster_size=20, seed=5)


def outputs_in(folder: Path) -> dict[str, bytes]:
    outputs = folder / "outputs"
    found = (file for file in outputs.rglob("*") if file.is_file())
    return {str(file.relative_to(outputs)): file.read_bytes() for file in found}


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if few rows were many."""
    monkeypatch.setattr(streamed_outputs, "_LONG", 40)
    monkeypatch.setattr(growing_columns, "_ROWS", 16)


def check_released(
    protocol: Any, people: Population, folder: Path, population: bool = True, **how: Any
) -> None:
    """Compare a run that keeps its outputs and is saved at its end with runs that let go of them."""
    how = {"seed": (1 << 62) + 7} | how
    kept = p2p_sim.run(protocol, people, **how)
    kept.save(folder / "kept", population=population)
    assert not isinstance(kept.outputs, StoredOutputs)
    for threads in (1, 3):
        name = f"released-{threads}"
        run = p2p_sim.run(protocol, people, **how, threads=threads, out=folder / name)
        assert isinstance(run.outputs, StoredOutputs)
        if not population:
            run.save(folder / f"{name}-without", population=False)
            name = f"{name}-without"
        assert run.digest == kept.digest
        assert list(run.outputs) == list(kept.outputs)
        for found in (run, p2p_sim.load(folder / name)):
            for role, columns in kept.outputs.items():
                assert list(found.output(role)) == list(columns)
                assert equal(found.output(role), columns)
        if people.users < growing_columns._ROWS or not isinstance(protocol, Keeping):
            assert outputs_in(folder / name) == outputs_in(folder / "kept")
        assert dict(run.summary()[1])["outputs"] == dict(kept.summary()[1])["outputs"]
    assert outputs_in(folder / "kept")


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("name", list({type(PROTOCOLS[name]): name for name in PROTOCOLS}.values()))
def test_every_protocol(name: str, tmp_path: Path) -> None:
    protocol = PROTOCOLS[name]
    check_released(protocol, people_of(protocol, dict(IN_TURN)[name], 61), tmp_path, blocks=5, costs=True)


@dataclass(frozen=True)
class Answering(Protocol):
    """Users return what each heard, as columns of one length, and nobody else returns anything."""

    ask = Message("user", "user", "asks a peer")
    label = Message("user", "user", "answers", y=bool)

    def user(self, me: Party) -> Rounds:
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))
        labels = yield self.label.reply(asks, y=me.y)
        return {"heard": labels.y.sum(), "u": me.draw.uniform("u"), "both": np.stack([me.y, ~me.y], axis=1)}


WRONG = ["drop=0.1", "loss=0.1", "duplicate=0.2", "lie=random:0.2"]


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("protocol", [Keeping(), Answering()], ids=repr)
@pytest.mark.parametrize(
    "how",
    [{}, {"faults": WRONG}, {"faults": ["loss=0.2"]}, {"trace": "full", "costs": True}, {"digest": False}],
    ids=repr,
)
def test_what_users_return(protocol: Any, how: dict[str, Any], tmp_path: Path) -> None:
    """In blocks, of which those that end are written while others are computed; with users who drop out at the end."""
    check_released(protocol, PEOPLE, tmp_path, blocks=7, **how)


def test_columns_of_one_length_in_the_end_alone(tmp_path: Path) -> None:
    """Everybody tells one: as many are heard as there are users, but not in each block."""
    check_released(Keeping(), PEOPLE, tmp_path, blocks=7)
    assert sorted(outputs_in(tmp_path / "kept")) == ["learner.parquet", "user.parquet"]


@pytest.mark.usefixtures("small_groups")
def test_without_the_population(tmp_path: Path) -> None:
    check_released(Answering(), PEOPLE, tmp_path, population=False, blocks=7)


def test_a_server_that_stops_returns_nothing(tmp_path: Path) -> None:
    people, how = PEOPLE, {"seed": 1, "faults": ["stop=learner:0"]}
    run = p2p_sim.run(PROTOCOLS["peer-to-peer"], people, **how, out=tmp_path / "run")
    assert dict(run.outputs) == {"user": {}, "learner": {}}
    assert not (tmp_path / "run" / "outputs").exists()
    assert run.digest == p2p_sim.run(PROTOCOLS["peer-to-peer"], people, **how).digest


@dataclass(frozen=True)
class Weighed(Protocol):
    """Notes, when a block of users ends, how many columns that users returned are still there."""

    alive: list[Any]
    most: list[int]

    def parameters(self) -> dict[str, Any]:
        """None that are kept."""
        return {}

    tell = Message("user", "learner", "says nothing")

    def user(self, me: Party) -> Rounds:
        yield self.tell(when=me.y & ~me.y)
        column = me.draw.uniform("u")
        self.most.append(sum(each() is not None for each in self.alive))
        self.alive.append(weakref.ref(column))
        return {"u": column}

    def learner(self, me: Party) -> Rounds:
        yield self.tell.receive()


def most_alive(folder: Path | None) -> int:
    protocol = Weighed([], [])
    p2p_sim.run(protocol, PEOPLE, seed=1, blocks=100, threads=1, out=folder)
    assert len(protocol.most) == 100
    return max(protocol.most)


@pytest.mark.usefixtures("small_groups")
def test_no_more_blocks_are_held_than_a_row_group_has(tmp_path: Path) -> None:
    """Each of 100 blocks has 3 users, a row group 16; and the twin: a run in memory holds all."""
    assert most_alive(tmp_path / "run") <= 16 // 3 + 1
    assert most_alive(None) == 99


@dataclass(frozen=True)
class Failing(Protocol):
    """The users from 200 on do something else; ``fail``: what, with what they return so far."""

    fail: Any

    tell = Message("user", "learner", "says nothing")

    def user(self, me: Party) -> Rounds:
        yield self.tell(when=me.y & ~me.y)
        column = me.draw.uniform("u")
        return {"u": column if me.rows.start < 200 else self.fail(column)}

    def learner(self, me: Party) -> Rounds:
        yield self.tell.receive()

    def parameters(self) -> dict[str, Any]:
        """None that are kept."""
        return {}


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize(
    ("error", "threads"), [(KeyboardInterrupt, 1), (MemoryError, 1), (MemoryError, 2), (ValueError, 2)]
)
def test_nothing_half_written_is_left(tmp_path: Path, error: type[BaseException], threads: int) -> None:
    seen: list[list[str]] = []

    def fail(_column: Any) -> None:
        if not seen:
            (outputs,) = tmp_path.glob("run.partial-*/outputs")
            seen.append(sorted(file.name for file in outputs.iterdir()))
        raise error

    with pytest.raises(ProtocolError if error is ValueError else error):
        p2p_sim.run(Failing(fail), PEOPLE, seed=1, blocks=30, threads=threads, out=tmp_path / "run")
    # what a killed process leaves has no name of a whole file; two threads may both have looked
    assert seen[0] == [".token", ".user.parquet.tmp"]
    assert list(tmp_path.iterdir()) == []


def test_blocks_that_differ_are_refused_in_the_same_words(tmp_path: Path) -> None:
    protocol, words = Failing(lambda column: column > 0), []
    for out in (None, tmp_path / "run"):
        with pytest.raises(ProtocolError, match=r"output 'u' is float64 .* in one block, bool") as error:
            p2p_sim.run(protocol, PEOPLE, seed=1, blocks=30, out=out)
        words.append(str(error.value))
    assert words[0] == words[1]


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("writes", [1, 3])
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    from pyarrow import parquet

    left, honest = [writes], parquet.ParquetWriter.write_table

    def write(self: Any, *given: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        honest(self, *given)

    monkeypatch.setattr(parquet.ParquetWriter, "write_table", write)
    says = r"outputs cannot be written to '.*run\.partial-\w+/outputs': No space left on device; make room, or choose"
    with pytest.raises(StorageError, match=says):
        p2p_sim.run(Answering(), PEOPLE, seed=1, blocks=30, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_save_that_fails_can_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else takes the name just before the run gets it: the command line tries the next one."""
    taken, honest = [InputError("taken")], run_directory._put_in_place

    def put(*given: Any) -> None:
        if taken:
            raise taken.pop()
        honest(*given)

    monkeypatch.setattr(run_directory, "_put_in_place", put)
    with Draft(tmp_path / "one") as draft:
        run = p2p_sim.run(Answering(), PEOPLE, seed=1, out=draft)
        with pytest.raises(InputError, match="taken"):
            run.save(tmp_path / "one")
        run.save(tmp_path / "two")
    kept = p2p_sim.run(Answering(), PEOPLE, seed=1)
    for found in (run, p2p_sim.load(tmp_path / "two")):
        assert equal(found.output("user"), kept.output("user"))


def test_a_run_follows_its_last_folder(tmp_path: Path) -> None:
    run = p2p_sim.run(Answering(), PEOPLE, seed=1, out=tmp_path / "one")
    before = run.output("user")
    run.save(tmp_path / "two")
    assert outputs_in(tmp_path / "two") == outputs_in(tmp_path / "one")
    shutil.rmtree(tmp_path / "one")
    assert equal(run.output("user"), before)
    shutil.rmtree(tmp_path / "two")
    assert "user: heard, u, both (300 rows)" in dict(run.summary()[1])["outputs"]
    for ask in (lambda: run.output("user"), lambda: run.save(tmp_path / "three")):
        with pytest.raises(
            InputError, match=r"two/outputs' no longer holds what 'user' returned; restore it"
        ):
            ask()
    assert not (tmp_path / "three").exists()


def test_outputs_that_were_replaced_are_not_read(tmp_path: Path) -> None:
    """Another run takes the folder's name; the files of the first, put back by somebody, are read again."""
    protocol, ours, held = PROTOCOLS["peer-to-peer"], tmp_path / "run", tmp_path / "held"
    run = p2p_sim.run(protocol, PEOPLE, seed=1, out=ours)
    before = run.output("learner")
    shutil.copytree(ours, held)
    p2p_sim.run(protocol, PEOPLE, seed=2).save(ours, force=True)
    for ask in (
        lambda: run.output("learner"),
        lambda: list(run.outputs.parts("learner", ["y"])),
        lambda: run.outputs.counted("learner", "y"),
        lambda: run.save(tmp_path / "two"),
    ):
        with pytest.raises(
            InputError, match=r"learner.parquet' was replaced or altered .* SHA-256 is \w+, not"
        ):
            ask()
    assert not (tmp_path / "two").exists()
    shutil.rmtree(ours)
    held.rename(ours)
    assert equal(run.output("learner"), before)
    run.save(tmp_path / "two")
    run.save(ours, force=True)
    assert equal(run.output("learner"), before)
    assert equal(p2p_sim.load(tmp_path / "two").output("learner"), before)


def test_a_file_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = p2p_sim.run(Answering(), PEOPLE, seed=1, out=tmp_path / "one")
    hashed, honest = list[Path](), integrity.sha256
    monkeypatch.setattr(integrity, "sha256", lambda file: hashed.append(file) or honest(file))
    run.output("user")
    assert hashed == []  # it is the file that the run wrote
    run.save(tmp_path / "two")
    hashed.clear()
    for _ in range(3):
        run.output("user")
    assert hashed == [tmp_path / "two" / "outputs" / "user.parquet"]


@pytest.mark.parametrize("wide", [True, False])
def test_labels_are_counted_as_in_memory(tmp_path: Path, wide: bool) -> None:
    """Of a learner who returns several in a row, the cells were counted."""
    y = np.ones((5, 2) if wide else 5, np.uint8)
    memory = {"learner": {"y": y, "value": y * 0.5}}
    growing_columns.write_apart(tmp_path / "outputs", "learner", memory["learner"])
    stored = StoredOutputs(tmp_path / "outputs", {"learner": {"y": 5, "value": 5}})
    for count in (experiment._counted, number_labels.released):
        assert count(stored) == count(memory)
        assert (count(stored) is None) == wide


def test_a_run_finds_its_folder_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    protocol = PROTOCOLS["peer-to-peer"]
    run = p2p_sim.run(protocol, PEOPLE, seed=1, trace="full", out="run")
    loaded = p2p_sim.load("run")
    monkeypatch.chdir("elsewhere")
    kept = p2p_sim.run(protocol, PEOPLE, seed=1, trace="full")
    for found in (run, loaded):
        assert equal(found.messages("label"), kept.messages("label"))
        assert equal(found.output("learner"), kept.output("learner"))


def test_a_copy_is_whole(tmp_path: Path) -> None:
    run = p2p_sim.run(Keeping(), PEOPLE, seed=1, out=tmp_path / "one")
    (tmp_path / "one" / "outputs" / "learner.parquet").unlink()
    with pytest.raises(InputError, match="no longer holds what 'learner' returned"):
        run.save(tmp_path / "two")
    assert not (tmp_path / "two").exists()
