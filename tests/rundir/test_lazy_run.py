"""Runs on disk: what is large is read when it is needed; what was cut off is shown as far as it goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.trace import query
from p2p_sim.trace.causality import cone
from p2p_sim.trace.diff import compare
from p2p_sim.trace.stats import stats
from protocols import PeerToPeer
from tests import run_json_files
from tests.tiny import people


@pytest.fixture
def run() -> Any:
    return p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace="full")


def cut_off(run: Any, path: Path, *, without: str) -> Path:
    """Leave what a run leaves that is cut off before some messages are written."""
    run.save(path)
    for file in path.iterdir():
        if file.is_file():
            file.unlink()
    for file in (path / "messages" / without).rglob("*.parquet"):
        file.unlink()
    run_json_files.cut_off(path / "messages")
    return path


def ids(part: Any) -> list[str]:
    return [event.id for event in part.events()]


def test_messages_need_no_population(run: Any, tmp_path: Path) -> None:
    path = run.save(tmp_path / "r")
    (path / "population.parquet").write_bytes(b"no longer readable")
    assert ids(query.messages(path, user=4)) == ids(query.messages(run, user=4))
    assert vars(stats(path)) == vars(stats(run))
    with pytest.raises(InputError, match="user 12: not in this run; its users are 0 to 11"):
        query.messages(path, user=12)
    looked = LazyRun(path)
    assert looked.digest == run.digest
    assert looked.outputs["learner"]["y"].tolist() == run.outputs["learner"]["y"].tolist()
    for ask in (lambda: looked.population, lambda: cone(path, "report:3:4:0:0"), lambda: compare(path, run)):
        with pytest.raises(InputError, match="is damaged"):
            ask()
    with pytest.raises(AttributeError):
        looked.nothing  # noqa: B018


def test_what_is_read_is_kept(run: Any, tmp_path: Path) -> None:
    looked = LazyRun(run.save(tmp_path / "r"))
    assert looked.has_population
    assert looked.population is looked.population
    assert looked.population.hash == run.population.hash
    assert not LazyRun(run.save(tmp_path / "bare", population=False)).has_population


def test_a_run_that_was_cut_off(run: Any, tmp_path: Path) -> None:
    path = cut_off(run, tmp_path / "r", without="report")
    for place in (path, path / "messages"):
        part = query.messages(place)
        assert ids(part) == [name for name in ids(query.messages(run)) if not name.startswith("report")]
        assert part.notes[0].startswith(
            "the run was cut off, and its trace (full) is incomplete: it holds ask: 12"
        )
        found = stats(place)
        assert found.counts == {key: run.counts[key] for key in (("ask", 1), ("label", 2))}
        assert found.notes == part.notes
        assert {degree.kind for degree in found.degrees} == {"ask", "label", None}
        assert cone(place, "label:2:{}:{}:0".format(*run_ends(run))).notes == part.notes
        assert "was cut off" in compare(place, run).notes[-1]
        assert not compare(place, run).equal
    with pytest.raises(InputError, match=r"it has no run\.json; its trace can be opened"):
        p2p_sim.load(path)


def run_ends(run: Any) -> tuple[int, int]:
    labels = run.messages("label")
    return int(labels["sender"][0]), int(labels["recipient"][0])


def test_a_newer_version(run: Any, tmp_path: Path) -> None:
    path = run.save(tmp_path / "r")
    about = run_json_files.document_in(path)
    (path / "run.json").write_text(json.dumps(about | {"format": 99}))
    for ask in (
        query.messages,
        stats,
        lambda run: cone(run, "report:3:4:0:0"),
        lambda run: compare(run, run),
    ):
        with pytest.raises(InputError, match="has format 99"):
            ask(path)


def test_an_altered_file_is_named(run: Any, tmp_path: Path) -> None:
    path = run.save(tmp_path / "r")
    file = next((path / "messages" / "ask").rglob("*.parquet"))
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 1
    file.write_bytes(whole)
    for ask in (query.messages, stats, lambda run: compare(run, run)):
        with pytest.raises(InputError, match=file.name):
            ask(path)


def test_part_of_a_population(run: Any, tmp_path: Path) -> None:
    users = np.flatnonzero(people().clusters.codes == people().clusters.codes[4])
    part = p2p_sim.run(PeerToPeer(0.1), people().part(users), seed=2**63 + 3, trace="full")
    found = {(d.way, d.kind): d.spread.users for d in stats(part).degrees}
    assert set(found.values()) == {len(users)}
    bare = part.save(tmp_path / "part", population=False)
    assert "go beyond" in stats(bare).notes[-1]
