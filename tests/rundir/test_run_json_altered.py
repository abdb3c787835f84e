"""A run.json that was altered, cut, or is of another run is refused by name, and what to do is said."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import Message, Protocol
from p2p_sim.rundir.run_directory import LazyRun
from protocols import PeerToPeer
from tests.run_json_files import document_in

PEOPLE = Population.synthetic(users=60, cluster_size=30, seed=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    p2p_sim.run(
        PeerToPeer(0.1, 0.5), PEOPLE, trace="full", faults=["drop=0.1"], out=tmp_path / "run", seed=2**63 + 0
    )
    return tmp_path / "run"


def change(path: Path, **fields: Any) -> None:
    told = document_in(path)
    (path / "run.json").write_text(json.dumps({**told, **fields}))


def refused(path: Path, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        p2p_sim.load(path)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"7", b"\xff\x00", b"[" * 100_000, b'{"format": true}', b"{}"]
)
def test_what_is_no_run_json_is_named(content, path):
    (path / "run.json").write_bytes(content)
    refused(path, f"'{path}/run.json' is damaged: ", "restore it, or run the protocol again")
    with pytest.raises(InputError, match=r"run\.json' is damaged"):
        LazyRun(path)


def test_a_file_that_was_cut_anywhere_is_named(path):
    whole = (path / "run.json").read_bytes()
    for size in range(0, len(whole) - 2, 97):
        (path / "run.json").write_bytes(whole[:size])
        refused(path, "run.json", "damaged", "run the protocol again")


WRONG = {
    "protocol": [None, 7, [], {}],
    "parameters": [None, 7, "x", [], {}, {"alpha": 2.0}, {"alpha": 0.1, "none": 1}, {"alpha": "x"}],
    "seed": [True, -1, 10**30, "7", 1.5, []],
    "backend": [None, 7, "x", []],
    "trace": [None, 7, "x", [], "sample=0"],
    "digest": [7, "x", "0" * 31, "G" * 32, []],
    "users": [-1, "x", True, 1.5, []],
    "population_hash": [7, []],
    "stored_hash": [7, []],
    "costs": [None, 7, {}, [7], [{}], [{"kind": "ask"}]],
    "compute": [None, 7, {}, [7], [{}]],
    "work": [None, 7, {}, [{}]],
    "most": [7, {}, [{}]],
    "faults": [None, 7, {}, ["x"], ["drop=2"]],
    "faults_seen": [None, 7, {}, [{}]],
    "crypto": [None, 7, "x", []],
    "timings": [None, 7, []],
    "notes": [None, 7, []],
    "outputs": [None, 7, [], {"learner": 7}],
    "versions": [None, 7, []],
    "sha256": [None, 7, []],
}


@pytest.mark.parametrize("name", WRONG)
def test_values_that_a_field_cannot_have_are_named(name, path):
    for value in WRONG[name]:
        change(path, **{name: value})
        refused(path, "run.json", name, "restore it, or run the protocol again")


CONTRADICTIONS = {
    "users": (59, "messages/manifest.json"),
    "protocol": ("protocols.peer_to_peer:Another", "messages/manifest.json"),
    "trace": ("counts", "messages/manifest.json"),
    "costs": ([], "messages/manifest.json"),
    "outputs": ({}, "outputs"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_fields_that_contradict_a_file_are_named_with_it(name, path):
    value, file = CONTRADICTIONS[name]
    change(path, **{name: value})
    refused(path, "run.json' says", name, f"'{path}/{file}' says", "one of them was altered")


def test_users_of_an_untraced_run_are_those_of_its_population(tmp_path):
    path = p2p_sim.run(PeerToPeer(0.1), PEOPLE, seed=2**63 + 0).save(tmp_path / "run")
    change(path, users=61)
    refused(path, "population.parquet' is damaged: it has 60 rows, and run.json says 61")


@pytest.mark.parametrize("name", ["id", "cluster", "y"])
def test_a_changed_column_of_the_population_is_named(name, path):
    file = path / "population.parquet"
    table = parquet.read_table(file)
    column = table[name].to_numpy().copy()
    column[7] = not column[7] if name == "y" else column[7] + 1
    parquet.write_table(
        table.set_column(table.column_names.index(name), name, pa.array(np.asarray(column))), file
    )
    refused(path, f"'{file}' is ")


def test_a_run_as_it_was_written_is_read(path, tmp_path):
    run = p2p_sim.load(path)
    p2p_sim.load(run.save(tmp_path / "again"))
    p2p_sim.load(run.save(tmp_path / "bare", population=False))
    change(path, sha256={})  # whoever means to alter files takes their checksums out
    assert p2p_sim.load(path).digest == run.digest


@pytest.mark.parametrize("change", [{"seed": 4}, {"parameters": {"alpha": 0.2}}, {"notes": {"x": 1}}])
def test_whatever_was_altered_is_noticed_by_the_checksum(change, path):
    text = (path / "run.json").read_text()
    told = json.loads(text)
    for name, value in change.items():
        told[name] = {**told[name], **value} if isinstance(value, dict) else value
    (path / "run.json").write_text(json.dumps(told))
    refused(path, "run.json' was altered since it was written", "restore it, or run the protocol again")
    order = dict(reversed(json.loads(text).items()))
    (path / "run.json").write_text(json.dumps(order))  # another order and no spaces: the same values
    assert p2p_sim.load(path).seed == document_in(path)["seed"]


@dataclass(frozen=True)
class Strong(Protocol):
    strength: Any
    answer = Message("user", "learner", "says a label", y=bool)

    def user(self, me):
        yield self.answer(y=me.y)

    def learner(self, me):
        return (yield self.answer.receive()).columns()


@pytest.mark.parametrize("value", [Fraction(1, 3**50), 1 << 70, "\udcff", math.nan, (1, 1 << 70)])
def test_what_could_not_be_read_again_is_refused_before_the_run(value, tmp_path):
    """It was written, and then called damaged."""
    with pytest.raises(InputError, match=r"strength = .*: a run directory keeps integers of 64 bits"):
        p2p_sim.run(Strong(value), PEOPLE, seed=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
