"""Traces that were cut, altered or written by another version are refused by name."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.rundir import parquet_columns, run_directory
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.rundir.trace_writer import Folder
from p2p_sim.trace.diff import compare
from protocols import PeerToPeer
from tests.contract.cases import PROTOCOLS, people_of
from tests.told import told_in

PEOPLE = Population.synthetic(users=600, cluster_size=30, seed=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, trace="full", out=tmp_path / "run", seed=0)
    return tmp_path / "run"


def file_of(path: Path, kind: str) -> Path:
    return next((path / "messages" / kind).rglob("*.parquet"))


def rewrite(path: Path, **changes: Any) -> None:
    told = json.loads(path.read_text())
    told.pop("checksum", None)
    path.write_text(json.dumps({**told, **changes}))


@pytest.mark.parametrize("kind", ["ask", "label", "report"])
def test_a_single_altered_byte_is_found_when_the_file_is_read(kind, path):
    file = file_of(path, kind)
    octets = bytearray(file.read_bytes())
    octets[len(octets) // 2] ^= 1
    file.write_bytes(octets)
    found = run_directory.open_trace(path)
    with pytest.raises(InputError, match=rf"damaged: '.*{kind}.*' was altered, its SHA-256"):
        found.rows(kind)
    with pytest.raises(InputError, match="was altered"):
        p2p_sim.load(path).messages(kind)
    intact = "label" if kind == "report" else "report"
    assert found.rows(intact)[1] > 0


def test_a_file_that_was_cut_or_is_missing(path):
    file = file_of(path, "label")
    octets = file.read_bytes()
    file.write_bytes(octets[:-1])
    for opened in (run_directory.open_trace, p2p_sim.load):
        with pytest.raises(
            InputError, match=rf"label.*has {len(octets) - 1:,} bytes instead of {len(octets):,}"
        ):
            opened(path)
    file.unlink()
    with pytest.raises(InputError, match=r"label.*is missing; restore it"):
        run_directory.open_trace(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"format": "x"}', b'{"format": 1}', b'{"format": 1, "files": 3}', b"\xff"],
)
def test_a_damaged_manifest(content, path):
    (path / "messages/manifest.json").write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        run_directory.open_trace(path)


@pytest.mark.parametrize("key", ["complete", "level", "kinds", "counts", "files"])
def test_a_manifest_that_lacks_something(key, path):
    file = path / "messages/manifest.json"
    told = json.loads(file.read_text())
    del told[key]
    file.write_text(json.dumps(told))
    with pytest.raises(InputError, match="damaged"):
        run_directory.open_trace(path)


@pytest.mark.parametrize(
    "change",
    [
        {"file": "../ask.parquet"},
        {"file": "/etc/ask.parquet"},
        {"sender": {"as": ["gone", "sender"]}},
        {"sender": {"as": ["label/round=2/part-00000-00001.parquet", "sender"]}},
    ],
)
def test_a_manifest_that_refers_to_what_is_not_there(change, path):
    file = path / "messages/manifest.json"
    told = told_in(path, "messages/manifest.json")
    told["files"][1] |= change
    file.write_text(json.dumps(told))
    with pytest.raises(InputError, match="its manifest says"):
        run_directory.open_trace(path / "messages")  # where nothing tells its checksum


@pytest.mark.parametrize(
    "change", [{"sender": {"from": 1}}, {"round": 2}, {"ordered": [[99, 0, 0], [99, 0, 1]]}]
)
def test_an_altered_manifest_is_named(change, path):
    file = path / "messages/manifest.json"
    told = told_in(path, "messages/manifest.json")
    told["files"][0] |= change
    file.write_text(json.dumps(told, indent=1) + "\n")
    for opened in (run_directory.open_trace, p2p_sim.load, lambda folder: compare(folder, folder)):
        with pytest.raises(InputError, match=r"messages/manifest.json' is damaged: its SHA-256 is"):
            opened(path)


def test_the_messages_of_another_run_are_refused(path, tmp_path):
    p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, seed=1, trace="full", out=tmp_path / "other")
    shutil.rmtree(path / "messages")
    shutil.copytree(tmp_path / "other/messages", path / "messages")
    with pytest.raises(InputError, match=r"messages/manifest.json' is damaged: its SHA-256 is"):
        run_directory.open_trace(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 2}', "[" * 100_000])
def test_a_damaged_run_json_is_named(content, path):
    (path / "run.json").write_text(content)
    for opened in (run_directory.open_trace, p2p_sim.load, lambda folder: compare(folder, folder)):
        if content == '{"format": 2}' and opened is run_directory.open_trace:
            continue  # enough for a trace
        with pytest.raises(InputError, match=r"run.json' is damaged"):
            opened(path)


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    run = p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, faults=["drop=0.2"], seed=0)
    return run.save(tmp_path / "faulty")


@pytest.mark.parametrize("part", ["outputs", "faults"])
def test_altered_outputs_and_faults_are_named(part, faulty):
    file = next((faulty / part).rglob("*.parquet"))
    columns = parquet_columns.read_all(file.parent)[file.stem]
    before = p2p_sim.load(faulty)
    parquet_columns.write(file, {name: column[::-1] for name, column in columns.items()})
    with pytest.raises(InputError, match=rf"{part}/{file.name}' is damaged: its SHA-256 is"):
        p2p_sim.load(faulty)
    file.unlink()
    with pytest.raises(InputError, match=rf"{part}/{file.name}' is missing; restore it"):
        p2p_sim.load(faulty)
    parquet_columns.write(file, columns)
    assert p2p_sim.load(faulty).digest == before.digest


def test_a_run_that_tells_no_checksums_is_read(faulty):
    """Earlier versions wrote none."""
    told = told_in(faulty)
    assert told.pop("sha256")
    (faulty / "run.json").write_text(json.dumps(told))
    assert p2p_sim.load(faulty).outputs["learner"]


def test_a_population_that_was_cut_is_named(faulty):
    file = faulty / "population.parquet"
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(InputError, match=r"population.parquet' is damaged"):
        p2p_sim.load(faulty)


@pytest.mark.parametrize("checksums", [True, False])
def test_a_population_that_is_gone_was_not_withheld(checksums, faulty):
    """A run saved without its population has none either, and is read; earlier versions wrote no checksums."""
    told = told_in(faulty)
    if not checksums:
        del told["sha256"]
        (faulty / "run.json").write_text(json.dumps(told))
    (faulty / "population.parquet").unlink()
    for ask in (
        p2p_sim.load,
        lambda folder: compare(folder, folder),
        lambda folder: LazyRun(folder).population,
    ):
        with pytest.raises(InputError, match=r"population.parquet' is missing; restore it"):
            ask(faulty)
    (faulty / "run.json").write_text(json.dumps(told | {"sha256": {}, "stored_hash": None}))
    assert p2p_sim.load(faulty).population is None


def test_a_graph_that_is_gone_is_named(tmp_path):
    people = PEOPLE.with_graph(np.array([[0, 1], [1, 2]]))
    path = p2p_sim.run(PeerToPeer(0.1), people, seed=0).save(tmp_path / "graph")
    (path / "graph.parquet").unlink()
    with pytest.raises(InputError, match=r"graph.parquet' is missing; restore it"):
        p2p_sim.load(path)


def test_newer_versions_are_refused_and_named(path):
    rewrite(path / "messages/manifest.json", format=3)
    with pytest.raises(InputError, match=r"manifest.json' has format 3; this version reads up to 2"):
        run_directory.open_trace(path)
    for versions, writer in (({"p2p-sim": "9.1"}, r", '9\.1'"), ({"p2p-sim": 9}, ""), ([], "")):
        rewrite(path / "run.json", format=3, versions=versions)
        said = r"has format 3; this version reads formats 1 and 2: read it with the version that wrote it"
        for opened in (run_directory.open_trace, p2p_sim.load):
            with pytest.raises(InputError, match=said + writer + "$"):
                opened(path)


def test_no_run_at_all(tmp_path):
    with pytest.raises(InputError, match=r"is not a run directory: it has no run.json; name the folder that"):
        run_directory.open_trace(tmp_path)
    p2p_sim.run(PeerToPeer(0.1), PEOPLE, out=tmp_path / "bare", seed=0)
    assert not (tmp_path / "bare/messages").exists()
    p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="counts", out=tmp_path / "counted", seed=0)
    assert [file.name for file in (tmp_path / "counted/messages").iterdir()] == ["manifest.json"]


def test_a_trace_that_is_not_there_any_more(path):
    (path / "messages/manifest.json").unlink()
    with pytest.raises(InputError, match="holds no trace"):
        p2p_sim.load(path)


@pytest.mark.parametrize("level", ["full", "sample=9", "none"])
def test_the_first_format_is_still_read(level, tmp_path):
    """Format 1: run.json, and each kind whole in messages/KIND.parquet."""
    run = p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace=level, seed=0)
    path = run.save(tmp_path / "old")
    told = told_in(path)
    (path / "run.json").write_text(json.dumps({**told, "format": 1}))
    for file in sorted((path / "messages").rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    for kind in run.source.messages() if level != "none" else ():
        parquet_columns.write(path / f"messages/{kind}.parquet", run.messages(kind))
    again = p2p_sim.load(path)
    found = run_directory.open_trace(path)
    assert found.kept == (again.kept() or 0) == (run.kept() or 0)
    for kind in run.source.messages() if level != "none" else ():
        for name, column in run.messages(kind).items():
            np.testing.assert_array_equal(again.messages(kind)[name], column)
            np.testing.assert_array_equal(found.rows(kind)[0][name], column)
    assert p2p_sim.load(again.save(tmp_path / "new")).kept() == run.kept()


def test_a_machine_that_does_not_see_the_folder(path):
    rewrite(path / "messages/manifest.json", token="a1", complete=False)
    Folder(str(path / "messages"), "a1").check()
    for folder in (Folder(str(path / "messages"), "b2"), Folder(str(path / "nowhere"), "a1")):
        with pytest.raises(InputError, match="a shard does not see the folder"):
            folder.check()


def test_traces_without_columns_of_nulls_are_still_read(tmp_path):
    """Format 1 of the manifest: what follows from a row's place was not in the file at all."""
    path, walk = tmp_path / "walk", PROTOCOLS["network shuffle"]
    whole = p2p_sim.run(walk, people_of(walk, "contiguous", 60), trace="full", out=path, seed=0)
    before = {kind: whole.messages(kind) for kind in walk.messages()}
    nulls = 0
    manifest = path / "messages/manifest.json"
    told = told_in(path, "messages/manifest.json") | {"format": 1}
    for entry in told["files"]:
        file = path / "messages" / entry["file"]
        table = parquet.ParquetFile(file).read()
        stored = [name for name in table.column_names if entry.get(name, "stored") == "stored"]
        nulls += len(table.column_names) - len(stored)
        parquet.write_table(table.select(stored), file)
        entry |= {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    manifest.write_text(json.dumps(told))
    assert nulls
    found = run_directory.open_trace(path / "messages")
    for kind, columns in before.items():
        for user in (None, 17):
            rows = found.rows(kind, user=user)[0]
            mine = np.ones(len(columns["round"]), np.bool_)
            if user is not None:
                kinds = walk.messages()[kind]
                ends = [end for end in ("sender", "recipient") if getattr(kinds, end) == "user"]
                mine = np.logical_or.reduce([columns[end] == user for end in ends])
            assert all(np.array_equal(rows[name], column[mine]) for name, column in columns.items())
