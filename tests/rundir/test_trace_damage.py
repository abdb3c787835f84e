"""Traces that were cut, altered or written by another version are refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.rundir import parquet_columns, run_directory
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.rundir.trace_writer import Folder
from p2p_sim.trace.diff import compare
from protocols import PeerToPeer
from tests.run_json_files import document_in

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
    octets[12] ^= 1  # of a page; columns and rows, at the end, are looked at on opening
    file.write_bytes(octets)
    found = run_directory.open_trace(path)
    with pytest.raises(InputError, match=rf"damaged: '.*{kind}.*' was altered, its SHA-256"):
        found.rows(kind)
    with pytest.raises(InputError, match="was altered"):
        p2p_sim.load(path).messages(kind)
    intact = "label" if kind == "report" else "report"
    assert found.rows(intact)[1] > 0


def test_an_altered_footer_is_found_on_opening(path):
    file = file_of(path, "report")
    octets = bytearray(file.read_bytes())
    octets[-20] ^= 1
    file.write_bytes(octets)
    with pytest.raises(InputError, match=r"damaged: '.*report.*' (was altered, its SHA-256|is damaged)"):
        run_directory.open_trace(path).rows("report")


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
    [b"", b"[]", b"{}", b'{"format": "x"}', b'{"format": 2}', b'{"format": 2, "files": 3}', b"\xff"],
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
    told = document_in(path, "messages/manifest.json")
    told["files"][1] |= change
    file.write_text(json.dumps(told))
    with pytest.raises(InputError, match=r"its manifest says|must be the path of a file below the folder"):
        run_directory.open_trace(path / "messages")  # where nothing tells its checksum


@pytest.mark.parametrize(
    "change", [{"sender": {"from": 1}}, {"round": 2}, {"ordered": [[99, 0, 0], [99, 0, 1]]}]
)
def test_an_altered_manifest_is_named(change, path):
    file = path / "messages/manifest.json"
    told = document_in(path, "messages/manifest.json")
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


def test_a_run_that_tells_no_checksums_is_damaged(faulty):
    told = document_in(faulty)
    assert told.pop("sha256")
    (faulty / "run.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match=r"run.json' is damaged: it lacks 'sha256'"):
        p2p_sim.load(faulty)


def test_a_population_that_was_cut_is_named(faulty):
    file = faulty / "population.parquet"
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(InputError, match=r"population.parquet' is damaged"):
        p2p_sim.load(faulty)


@pytest.mark.parametrize("checksums", [True, False])
def test_a_population_that_is_gone_was_not_withheld(checksums, faulty):
    """A run saved without its population has none either, and is read."""
    told = document_in(faulty)
    if not checksums:
        told["sha256"] = {}
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


@pytest.mark.parametrize("number", [1, 3])
def test_other_formats_are_refused_and_named(number, path):
    rewrite(path / "messages/manifest.json", format=number)
    said = rf"has format {number}; this version reads format 2: run the protocol again, or read it with the version "
    with pytest.raises(InputError, match=rf"manifest.json' {said}that wrote it$"):
        run_directory.open_trace(path)
    for versions, writer in (({"p2p-sim": "9.1"}, r", '9\.1'"), ({"p2p-sim": 9}, ""), ([], "")):
        rewrite(path / "run.json", format=number, versions=versions)
        for opened in (run_directory.open_trace, p2p_sim.load):
            with pytest.raises(InputError, match=rf"run.json' {said}that wrote it{writer}$"):
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


def test_a_machine_that_does_not_see_the_folder(path):
    rewrite(path / "messages/manifest.json", token="a1", complete=False)
    Folder(str(path / "messages"), "a1").check()
    for folder in (Folder(str(path / "messages"), "b2"), Folder(str(path / "nowhere"), "a1")):
        with pytest.raises(InputError, match="a shard does not see the folder"):
            folder.check()
