"""``--out`` of runs, audits and experiments where there is no plain file: runs replace runs alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import p2p_sim
from experiments import _common, _plots, costs
from p2p_sim.core.errors import StorageError
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.cli.special_files import (
    dangling_symlink,
    names_in,
    nonempty_folder,
    null_device,
    symlink_loop,
    unix_socket,
)
from tests.tiny import people

pytestmark = pytest.mark.slow

MANY = ("run", "peer-to-peer", "--users", "500", "--cluster-size", "100")
NAME = "place.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    at = tmp_path_factory.mktemp("made") / "r"
    return p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full").save(at)


def _to_folder(place: Path) -> None:
    nonempty_folder(place.with_name("target"))
    place.symlink_to("target")


def _file(place: Path) -> None:
    place.write_text("precious")


def _others(place: Path) -> None:
    nonempty_folder(place)
    (place / "run.json").write_text('{"scripts": {"run": "make"}}')


RUNS = {
    "device": null_device, "fifo": os.mkfifo, "socket": unix_socket, "loop": symlink_loop,
    "dangling": dangling_symlink, "link": _to_folder, "file": _file, "folder": nonempty_folder,
    "another program's": _others,
}  # fmt: skip


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_a_run_replaces_runs_alone(cli, make, force, tmp_path):
    place = tmp_path / "mine"
    make(place)
    before, there = below(tmp_path), place.lstat()
    done = cli(*MANY, "--out", "mine", *force)
    assert (done.status, done.out) == (2, "")
    assert "output 'mine' is " in done.err
    assert "not replaced; choose another name" in done.err  # and not --force, which would not help
    assert (below(tmp_path), place.lstat().st_ino, place.lstat().st_mode) == (
        before,
        there.st_ino,
        there.st_mode,
    )


def test_a_run_does_not_replace_what_is_mounted(cli, tmp_path, monkeypatch):
    assert cli(*MANY, "--out", "mine").status == 0
    before = below(tmp_path)
    monkeypatch.setattr("p2p_sim.rundir.run_directory.os.path.ismount", lambda path: str(path) == "mine")
    done = cli(*MANY, "--out", "mine", "--force")
    assert (done.status, "'mine' is where a disk is mounted: it is not replaced" in done.err) == (2, True)
    assert below(tmp_path) == before


@pytest.mark.parametrize("make", [dangling_symlink, symlink_loop, os.mkfifo, _file])
def test_runs_that_cannot_be_a_folder_are_found_before_any_work(cli, make, tmp_path, monkeypatch):
    make(tmp_path / "runs")
    monkeypatch.setattr("p2p_sim.learning.experiment.simulate", None)
    done = cli(*MANY)
    assert (done.status, "'runs' cannot be a folder: " in done.err) == (2, True)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_run_that_cannot_be_put_in_place_leaves_the_old_one(error, tmp_path, monkeypatch):
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=3)
    at = run.save(tmp_path / "r")
    before, honest = below(at), Path.rename

    def fails(path, target):
        if ".partial-" in path.name:
            raise error
        return honest(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(StorageError if isinstance(error, OSError) else type(error)):
        run.save(at, force=True)
    monkeypatch.undo()
    assert below(at) == before
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize("make", [symlink_loop, dangling_symlink, nonempty_folder, unix_socket])
def test_experiments_find_out_before_any_work(make, tmp_path, monkeypatch, capsys):
    make(tmp_path / "costs.csv")
    monkeypatch.setattr(costs, "measure", None)
    with pytest.raises(SystemExit) as ended:
        _common.main(costs.EXPERIMENT, ["--out", str(tmp_path)])
    assert ended.value.code == 2
    assert "costs.csv" in capsys.readouterr().err


def test_tables_and_figures_of_experiments_follow_links_and_leave_devices(tmp_path):
    from matplotlib.figure import Figure

    place = null_device(tmp_path / "table.csv")
    _common.write_csv(place, [{"a": 1}])
    assert stat.S_ISCHR(place.stat().st_mode)
    (tmp_path / "figure.png").symlink_to("elsewhere.png")
    _plots.save(Figure, tmp_path / "figure")
    assert (tmp_path / "figure.png").is_symlink()
    assert names_in(tmp_path) == {"table.csv", "figure.png", "elsewhere.png", "figure.svg"}


def test_an_audit_is_not_kept_where_a_link_leads(cli, made, tmp_path):
    """A run may come from anybody: its link would choose which file of mine is replaced."""
    audit = ("audit", "--run", "mine", "--view", "learner", "--trials", "200", "--delta", "0.05")
    p2p_sim.load(made).save(tmp_path / "mine")
    (tmp_path / "kept.json").write_text("mine")
    (tmp_path / "mine/audit.json").symlink_to("../kept.json")
    done = cli(*audit)
    assert (
        done.status,
        "audit.json' is damaged: it is a link, and a run directory has none" in done.err,
    ) == (2, True)
    assert (tmp_path / "kept.json").read_text() == "mine"
    (tmp_path / "mine/audit.json").unlink()
    os.mkfifo(tmp_path / "mine/audit.json")
    done = cli(*audit)
    assert (done.status, "audit.json' is damaged: it is a FIFO, not a regular file" in done.err) == (2, True)
