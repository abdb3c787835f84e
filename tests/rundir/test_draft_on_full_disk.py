"""The draft of a run that finds no room stays, whoever writes into it, so that the run can go on."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim.backends.streamed_outputs import SiteOutputs
from p2p_sim.core.errors import InputError, ProtocolError, StorageError
from p2p_sim.core.population import Population
from p2p_sim.rundir import claim, population_file, under_way
from p2p_sim.rundir.outputs_folder import OutputsFolder
from p2p_sim.rundir.trace_writer import Draft
from protocols import PeerToPeer

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="/dev/full is Linux's")

ASKED = {"format": 1, "options": {}}
COLUMNS = {"y": np.arange(5)}
USERS = Population.synthetic(users=5, seed=0)


def no_room(file: Path) -> None:
    """Have what is written to a file, or to one that is renamed to it, meet a full disk."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(FULL)


def output(draft: Draft) -> None:
    """The output of a role that one site has."""
    target = OutputsFolder.begin(draft)
    no_room(Path(target.path, ".learner.parquet.tmp"))
    SiteOutputs({"learner": [COLUMNS]}).write(target, {"learner": None}, {"learner": {}}, None)


def part_of_output(draft: Draft) -> None:
    """The part of a role's output that one of several shards writes."""
    target = OutputsFolder.begin(draft)
    no_room(Path(target.path, "user", "parts", ".00001.parquet.tmp"))
    SiteOutputs({"user": [COLUMNS]}).write(target, {"user": 1}, {"user": {}}, None)


def column_of_output(draft: Draft) -> None:
    """A column of its own, where columns are of unequal lengths."""
    target = OutputsFolder.begin(draft)
    no_room(Path(target.path, "user", "parts", ".00001-heard.parquet.tmp"))
    block = COLUMNS | {"heard": np.arange(3)}
    SiteOutputs({"user": [block]}).write(target, {"user": 1}, {"user": {}}, None)


def messages(draft: Draft) -> None:
    """Messages of one site."""
    folder = draft.begin(PeerToPeer(0.1), "full", USERS)
    no_room(Path(folder.path, "label", "round=1", ".part-00001-00000.parquet.tmp"))
    writer = folder.open(1)
    everybody = {"sender": range(5), "recipient": np.array([3, 1, 4, 0, 2], np.int32), "seq": 0}
    writer.take("label", 1, everybody, {"y": np.ones(5, np.bool_)})  # type: ignore[arg-type]
    writer.cut()


def begun(path: Path, what: Callable[[Draft], None]) -> None:
    with Draft(path) as draft:
        draft.ask(ASKED)
        what(draft)


def gone_on_with(folder: Path, what: Callable[[Draft], None]) -> None:
    with Draft(folder.with_name("r")) as draft:
        draft.go_on(folder, ASKED)
        what(draft)


@pytest.mark.parametrize("write", [output, part_of_output, column_of_output, messages])
@pytest.mark.filterwarnings("ignore:the run was cut off; it goes on")
def test_what_was_asked_stays_where_there_is_no_room(tmp_path: Path, write: Callable[[Draft], None]) -> None:
    with pytest.raises(StorageError, match=r"cannot be written to .*: .*No space left on device.*make room"):
        begun(tmp_path / "r", write)
    (folder,) = tmp_path.iterdir()
    assert [each.name for each in folder.iterdir()] == [under_way.ASKED]


def full(where: Callable[[Path], bool]) -> Callable[..., int]:
    """Return an ``os.open`` for which the disk is full where a file is to be written."""
    honest = os.open

    def opened(path: Any, flags: int, *given: Any, **more: Any) -> int:
        return honest(
            FULL if where(Path(path)) and flags & os.O_WRONLY else path, flags & ~os.O_EXCL, *given, **more
        )

    return opened


def test_what_is_asked_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch, recwarn) -> None:
    """It stayed half-written, and how to go on was said, though nothing could."""
    monkeypatch.setattr(os, "open", full(lambda path: under_way.ASKED in path.name))
    with pytest.raises(
        StorageError, match=r"what is asked of the run cannot be written .*No space left.*make room"
    ):
        begun(tmp_path / "r", output)
    assert not list(tmp_path.iterdir())
    assert not recwarn.list


def test_a_run_whose_question_cannot_be_put_back_is_not_said_to_go_on(
    tmp_path: Path, monkeypatch, recwarn
) -> None:
    def end(draft: Draft) -> None:
        draft.whole()
        monkeypatch.setattr(os, "open", full(lambda path: under_way.ASKED in path.name))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path / "r", end)
    assert not list(tmp_path.iterdir())
    assert not recwarn.list


def test_a_folder_of_outputs_that_finds_no_room(tmp_path: Path, monkeypatch) -> None:
    def mkdir(self: Path, *given: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    draft = Draft(tmp_path / "r")
    draft.make()
    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(
        StorageError, match=r"outputs cannot be written to .*No space left on device; make room"
    ):
        OutputsFolder.begin(draft)
    with pytest.raises(
        StorageError, match=r"the trace cannot be written to .*No space left on device; make room"
    ):
        draft.begin(PeerToPeer(0.1), "full", USERS)


@pytest.mark.parametrize("people", [True, False])
def test_the_end_of_a_run_that_finds_no_room(tmp_path: Path, monkeypatch, people: bool) -> None:
    def write(*_given: Any) -> None:
        raise OSError(28, "No space left on device")

    if people:
        monkeypatch.setattr(population_file, "write", write)
    else:
        monkeypatch.setattr(os, "open", full(lambda path: path.name == "run.json"))
    says = r"the run cannot be written to .*r.partial-\w+': No space left on device; make room, or choose another"
    with pytest.raises(StorageError, match=says):
        p2p_sim.run(PeerToPeer(0.1), USERS, seed=1, out=tmp_path / "r")
    assert not list(tmp_path.iterdir())


def test_the_end_of_a_run_that_is_refused_is_not_a_full_disk(tmp_path: Path, monkeypatch) -> None:
    """Any error of the system was told to make room."""

    def write(*_given: Any) -> None:
        raise PermissionError(13, "Permission denied", "people.parquet")

    monkeypatch.setattr(population_file, "write", write)
    says = r"the run cannot be written to .*: Permission denied \('people.parquet'\); change its permissions, or choose"
    with pytest.raises(StorageError, match=says):
        p2p_sim.run(PeerToPeer(0.1), USERS, seed=1, out=tmp_path / "r")


@pytest.mark.filterwarnings("ignore:the messages of the run that failed")
def test_a_copy_that_finds_no_room(tmp_path: Path, monkeypatch) -> None:
    """Of messages ``copytree`` listed all errors without their numbers, so that nothing was told of room."""
    copy = shutil.copy2

    def to_full(source: str, target: str) -> str:
        return copy(source, FULL if "label" in target else target)

    loaded = p2p_sim.load(p2p_sim.run(PeerToPeer(0.1), USERS, seed=1, trace="full").save(tmp_path / "r"))
    monkeypatch.setattr(shutil, "copy2", to_full)
    says = r"messages cannot be written to '.*/messages/label/round=2': No space left on device; make room"
    with pytest.raises(StorageError, match=says):
        loaded.save(tmp_path / "s")


@pytest.mark.parametrize("before", ["mkdtemp", "claim"])
def test_a_run_that_may_not_write_where_it_is_to_lie(before: str, tmp_path: Path, monkeypatch) -> None:
    """It was the system's own error, without what to do."""

    def refused(*given: Any, **_more: Any) -> None:
        raise PermissionError(13, "Permission denied", str(given[0] if given else tmp_path / "r"))

    monkeypatch.setattr(*((tempfile, "mkdtemp") if before == "mkdtemp" else (claim, "_locked")), refused)
    says = r"the run cannot be written to .*: Permission denied \('.*'\); change its permissions, or choose"
    with pytest.raises(StorageError, match=says):
        p2p_sim.run(PeerToPeer(0.1), USERS, seed=1, out=tmp_path / "new/r")
    assert not (tmp_path / "new").exists()


@pytest.mark.filterwarnings("ignore:the run was cut off; it goes on")
def test_input_that_fits_no_place_ends_a_new_run_and_no_old_one(tmp_path: Path) -> None:
    """`run --resume r --address HOST` where the cluster has too few processors removed the run that was cut off."""

    def refuse(_draft: Draft) -> None:
        raise InputError("shards = 3: the cluster at 10.0.0.5:6379 has 2 CPUs; use at most that many")

    def interrupt(_draft: Draft) -> None:
        raise KeyboardInterrupt

    def lack(_draft: Draft) -> None:
        raise ModuleNotFoundError("No module named 'ray'")

    def blame(_draft: Draft) -> None:
        raise ProtocolError("role 'user' yields nothing")

    with pytest.raises(InputError, match="2 CPUs"):
        begun(tmp_path / "r", refuse)
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        begun(tmp_path / "r", interrupt)
    (folder,) = tmp_path.iterdir()
    before = (folder / under_way.ASKED).read_text()
    with pytest.raises(InputError, match="2 CPUs"):
        gone_on_with(folder, refuse)
    with pytest.raises(ModuleNotFoundError):
        gone_on_with(folder, lack)
    assert [each.name for each in folder.iterdir()] == [under_way.ASKED]
    assert (folder / under_way.ASKED).read_text() == before
    with pytest.raises(ProtocolError):
        gone_on_with(folder, blame)
    assert not folder.exists()
