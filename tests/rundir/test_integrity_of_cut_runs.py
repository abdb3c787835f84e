"""A run that was cut off is checked, too: by what it noted of every file that it ended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.rundir import integrity, run_directory
from protocols import NetworkShuffle, PeerToPeer
from tests.contract.cases import people_of

PEOPLE = Population.synthetic(users=90, cluster_size=30, seed=2)


class Cut(BaseException):
    """What ends a run before its end."""


def cut_off(monkeypatch: Any, tmp_path: Path, protocol: Any, people: Population, before: str) -> Path:
    """Cut a run off before its manifest says that it is whole; return what is left of the messages."""

    def stop(*_: Any) -> None:
        raise Cut

    monkeypatch.setattr(f"p2p_sim.rundir.trace_writer.{before}", stop)
    with pytest.raises(Cut), pytest.warns(UserWarning, match="messages so far"):
        p2p_sim.run(protocol, people, trace="full", out=tmp_path / "run", seed=0)
    monkeypatch.undo()
    (left,) = tmp_path.iterdir()
    return left / "messages"


@pytest.fixture
def left(monkeypatch, tmp_path):
    return cut_off(monkeypatch, tmp_path, PeerToPeer(0.1, 0.5), PEOPLE, "alike")


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    found = run_directory.open_trace(folder)
    assert not found.complete
    return {kind: found.rows(kind)[0] for kind in found.kinds}


def test_a_run_that_ends_leaves_no_notes(tmp_path):
    p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", out=tmp_path / "streamed", seed=0)
    p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", seed=0).save(tmp_path / "saved")
    assert not list(tmp_path.rglob(".*"))


def test_an_altered_byte_is_found(left):
    """Of every file, wherever it is: values, statistics, what the file says of itself."""
    whole = rows_of(left)
    for file in sorted(left.rglob("*.parquet")):
        octets = file.read_bytes()
        for place in range(0, len(octets), 7):
            file.write_bytes(octets[:place] + bytes([octets[place] ^ 4]) + octets[place + 1 :])
            with pytest.raises(InputError, match=file.name):
                rows_of(left)
        file.write_bytes(octets)
    assert all(np.array_equal(rows_of(left)[kind]["recipient"], whole[kind]["recipient"]) for kind in whole)


@pytest.mark.parametrize("kind", ["ask", "report"])
def test_a_file_that_was_cut_or_is_missing(kind, left):
    (file,) = (left / kind).rglob("*.parquet")
    octets = file.read_bytes()
    file.write_bytes(octets[:-1])
    with pytest.raises(InputError, match=rf"{file.name}' has {len(octets) - 1:,} bytes instead of"):
        rows_of(left)
    file.unlink()
    with pytest.raises(InputError, match=rf"{file.name}' is missing"):
        rows_of(left)


def test_altered_notes_are_named(left):
    (file,) = left.glob(".site-*")
    octets = file.read_bytes()
    for place in range(0, len(octets) - 1, 5):
        file.write_bytes(octets[:place] + bytes([octets[place] ^ 4]) + octets[place + 1 :])
        with pytest.raises(InputError, match=rf"{file.name}' was altered"):
            rows_of(left)


def test_a_file_of_which_nothing_was_noted_is_told(left):
    (file,) = left.glob(".site-*")
    file.write_bytes(file.read_bytes()[:-9])  # the end of the last line, that of the reports
    found = run_directory.open_trace(left)
    assert "1 unfinished file(s) cannot be read" in str(found.missing)
    assert [found.rows(kind)[1] for kind in found.kinds] == [90, 90, 0]


def test_files_that_are_written_again_at_the_end(monkeypatch, tmp_path):
    """Columns of nulls are added then: whatever of it was done, files are what was noted."""
    walk = NetworkShuffle(1.0, steps=4)
    people = people_of(walk, "contiguous", 60)
    whole = p2p_sim.run(walk, people, trace="full", seed=0)
    left = cut_off(monkeypatch, tmp_path, walk, people, "manifest.ended")
    twice = {name: found for name, found in (integrity.read(left) or {}).items() if len(found) == 2}
    assert twice
    for kind, columns in rows_of(left).items():
        assert all(np.array_equal(columns[name], column) for name, column in whole.messages(kind).items())


def test_an_altered_manifest_is_named(left):
    file = left / "manifest.json"
    text = file.read_text()
    for old, new in (('"full"', '"none"'), ('"bool"', '"int8"'), ('"nbytes": 1', '"nbytes": 2')):
        assert old in text
        file.write_text(text.replace(old, new))
        with pytest.raises(InputError, match=r"manifest.json' is damaged or was altered"):
            rows_of(left)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The trace of a run that ended; whoever alters its manifest writes it again."""
    run = tmp_path_factory.mktemp("ended") / "run"
    p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, trace="full", out=run, seed=0)
    return run / "messages"


def _set(told: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        told = told[step]
    told[path[-1]] = value


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, -1, 10**30, 0.5, "<x>", [], [1], {}, {"from": True}])
@pytest.mark.parametrize(
    "path",
    [
        ("complete",), ("kinds",), ("kinds", "ask"), ("kinds", "ask", "sender"), ("kinds", "ask", "nbytes"),
        ("kinds", "report", "fields"), ("kinds", "report", "fields", "y"),
        ("kinds", "label", "fields", "y_hat", "dtype"), ("counts",), ("counts", 0), ("counts", 0, "messages"),
        ("counts", 0, "kind"), ("files",), ("files", 0), ("files", 0, "kind"),
        ("files", 0, "rows"), ("files", 0, "round"), ("files", 0, "sender"),
    ],
)  # fmt: skip
def test_a_manifest_that_tells_no_checksum_and_is_none_is_named(path, value, ended, tmp_path):
    """Whoever means to alter a manifest takes its checksum out: what cannot be is told."""
    shutil.copytree(ended, tmp_path / "messages")
    file = tmp_path / "messages/manifest.json"
    told = json.loads(file.read_text())
    del told["checksum"]
    file.write_text(json.dumps(told))
    run_directory.open_trace(file.parent)
    if path[-1] in ("counts", "files", "sender", "fields") and value in ([], {}, "<x>"):
        value = 7.5  # those could be
    _set(told, path, value)
    file.write_text(json.dumps(told))
    with pytest.raises(InputError, match="damaged"):
        run_directory.open_trace(file.parent)


def test_without_notes_the_files_of_a_run_that_was_cut_off_are_not_read(left):
    files = len(list(left.rglob("*.parquet")))
    integrity.forget(left)
    assert files
    found = run_directory.open_trace(left)
    assert (found.kept, f"{files} unfinished file(s) cannot be read" in found.missing) == (0, True)
