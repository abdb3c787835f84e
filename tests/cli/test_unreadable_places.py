"""Runs in places that cannot be read, named or found: said as it is, never as damage; no traceback, no lost work."""

from __future__ import annotations

import os
import shutil

import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.rundir import run_directory
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.tiny import people

MANY = ("run", "peer-to-peer", "--users", "500", "--cluster-size", "100", "--seed", "0")
PAGE = ("--export", "x.html")
LOOKS = {
    "show": lambda path: ("trace", "show", path), "stats": lambda path: ("trace", "stats", path),
    "export": lambda path: ("trace", "export", path, "--format", "perfetto"),
    "serve": lambda path: ("trace", "serve", path), "page": lambda path: ("trace", "serve", path, *PAGE),
    "replay": lambda path: ("replay", path, "--user", "3"), "diff": lambda path: ("diff", path, path),
    "report": lambda path: ("report", path), "audit": lambda path: ("audit", "--run", path),
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    return p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full").save(tmp_path / "r")


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_links_in_a_circle_are_no_run(cli, look, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    done = cli(*look("loop"))
    assert (done.status, done.out) == (2, "")
    assert "loop' is no" in done.err  # a run directory


@pytest.mark.parametrize("part", ["run.json", "population.parquet"])
def test_what_may_not_be_read_is_not_damaged(run, part, monkeypatch):
    """As root, who reads these tests' files, may read all: so the refusal is a stand-in's."""

    def denying(honest):
        def denied(file, *words, **more):
            if str(file).endswith(part):
                raise PermissionError(13, "Permission denied", str(file))
            return honest(file, *words, **more)

        return denied

    monkeypatch.setattr("os.open", denying(os.open))
    monkeypatch.setattr("io.open", denying(open))
    with pytest.raises(InputError, match=rf"{part}' cannot be read \(permission denied\): ask its owner"):
        p2p_sim.load(run)


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX alone")
def test_names_that_are_no_utf8(cli, run, tmp_path):
    name = os.fsdecode(b"bad\xff")
    for words in ((*MANY, "--trace", "full"), MANY):
        done = cli(*words, "--out", name)
        assert (done.status, "must be UTF-8, and this one is not: choose another name" in done.err) == (
            2,
            True,
        )
    assert set(tmp_path.iterdir()) == {run}  # found before any work
    with pytest.raises(InputError, match="must be UTF-8"):
        p2p_sim.load(run).save(tmp_path / name)
    assert set(tmp_path.iterdir()) == {run}
    shutil.copytree(run, tmp_path / name)
    for read in (p2p_sim.load, lambda path: run_directory.open_trace(path).rows("report")):
        with pytest.raises(InputError, match="must be UTF-8, and this one is not: choose another name"):
            read(tmp_path / name)


def test_a_run_that_may_not_be_replaced_is_found_before_any_work(cli, run, tmp_path, monkeypatch):
    before = below(tmp_path)
    may = os.access
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != "r" and may(path, mode))
    done = cli(*MANY, "--trace", "full", "--out", "r", "--force")
    assert (done.status, "'r' is read-only: it is not replaced" in done.err) == (2, True)
    assert below(tmp_path) == before


@pytest.mark.parametrize(
    ("flag", "why"),
    [(os.ST_RDONLY, "' is on a read-only file system: choose"), (0, "no permission to write in '")],
)
def test_a_folder_that_cannot_be_written_to(cli, monkeypatch, flag, why):
    """Of a file system that is mounted for reading, too, it was said that permissions are missing."""
    given = os.statvfs(".")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr("os.statvfs", lambda path: os.statvfs_result([*given[:8], flag, given[9]]))
    done = cli(*MANY, "--out", "new/r")
    assert (done.status, why in done.err) == (2, True), done.err


def test_a_current_folder_that_is_gone(cli, run, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    done = cli(*MANY, "--out", tmp_path / "s")
    assert (done.status, done.err) == (0, "")
    done = cli("trace", "serve", run, *PAGE)
    assert (done.status, "the current folder was removed; change to one that exists" in done.err) == (2, True)


def test_a_loaded_run_that_was_replaced_by_another_is_not_mixed_up_with_it(run):
    loaded = p2p_sim.load(run)
    reports = loaded.messages("report")["sender"].tolist()
    assert len(reports)
    p2p_sim.run(PeerToPeer(0.1), people(), seed=4, trace="full").save(run, force=True)
    with pytest.raises(InputError, match="was replaced after the run was loaded: load it again"):
        loaded.messages("report")
    with pytest.raises(InputError, match=r"ask.*was altered"):
        loaded.save(run.with_name("copy"))
    assert p2p_sim.load(run).messages("report")["sender"].tolist() == reports


@pytest.mark.parametrize("level", ["full", "counts"])
def test_a_loaded_run_that_is_gone_is_not_saved_by_halves(level, tmp_path):
    at = tmp_path / "r"
    loaded = p2p_sim.load(p2p_sim.run(PeerToPeer(0.1), people(), trace=level, seed=0).save(at))
    shutil.copytree(at, tmp_path / "kept")
    shutil.rmtree(at)
    with pytest.raises(InputError, match=r"is missing; restore it|holds no trace"):
        loaded.save(tmp_path / "copy")
    assert {path.name for path in tmp_path.iterdir()} == {"kept"}
    shutil.copytree(tmp_path / "kept", at)
    assert p2p_sim.load(loaded.save(tmp_path / "copy")).digest == loaded.digest


def test_too_little_memory_is_said_so(cli, run, monkeypatch):
    def full(*_words, **_more):
        raise MemoryError

    monkeypatch.setattr("p2p_sim.rundir.run_directory.LazyRun.__init__", full)
    assert cli("trace", "show", "r").err == "error: not enough memory; use a smaller size or --limit\n"
