"""Traces of fixed-point numbers: integers in the files, numbers for every reader, the resolution in the manifest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import FixedPoint, Message, Party, Protocol, Rounds, Vector
from p2p_sim.report import message_text
from p2p_sim.rundir import integrity, manifest
from p2p_sim.trace import query
from p2p_sim.trace.diff import compare

GRID = FixedPoint(2**-4, -8, 8)


@dataclass(frozen=True)
class Tells(Protocol):
    """Everybody tells a peer two numbers, and the learner one, sealed."""

    scale: float = 20.0

    tell = Message("user", "user", "tells", row=Vector(GRID, 2))
    report = Message("user", "learner", "reports", sealed_for="learner", score=GRID, n=np.int8)

    def user(self, me: Party) -> Rounds:
        score = me.y + me.draw.laplace("noise", self.scale) * GRID.resolution
        score = np.clip(score, GRID.low, GRID.high)
        yield self.tell(to=me.draw.member("peer", me.cluster), row=np.stack([score, -score], axis=1))
        yield self.report(score=score, n=1)

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


PEOPLE = Population.from_arrays(y=np.arange(60) % 3 == 0, cluster=np.arange(60) % 4)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[p2p_sim.Run, Path, Path]:
    """The same run in memory, saved, and written while it went on."""
    folder = tmp_path_factory.mktemp("runs")
    run = p2p_sim.run(Tells(), PEOPLE, seed=3, trace="full")
    p2p_sim.run(Tells(), PEOPLE, seed=3, trace="full", out=folder / "streamed")
    return run, run.save(folder / "saved"), folder / "streamed"


def test_every_reader_has_the_numbers(runs: Any) -> None:
    run, *folders = runs
    score = run.messages("report")["score"]
    assert score.dtype == np.float64
    assert np.array_equal(score * 16, np.rint(score * 16))
    assert len(np.unique(score)) > 10
    assert np.array_equal(score, run.output("learner")["score"])
    for folder in folders:
        again = p2p_sim.load(folder)
        for kind in ("tell", "report"):
            for name, column in run.messages(kind).items():
                assert np.array_equal(again.messages(kind)[name], column)
                assert again.messages(kind)[name].dtype == column.dtype


def test_files_hold_integers_and_the_manifest_the_resolution(runs: Any) -> None:
    run, *folders = runs
    for folder in folders:
        told = json.loads((folder / "messages" / "manifest.json").read_text())["kinds"]["report"]["fields"]
        about = {"resolution": 2**-4, "low": -8.0, "high": 8.0}
        assert told["score"] == {"dtype": "int16", "length": None, "fixed_point": about}
        assert told["n"] == {"dtype": "int8", "length": None}
        stored = pandas.read_parquet(folder / "messages" / "report")["score"]
        assert stored.dtype == np.int16
        assert sorted(stored * about["resolution"]) == sorted(run.messages("report")["score"])


def test_replay_views_and_differences(runs: Any) -> None:
    run, saved, streamed = runs
    assert np.array_equal(run.replay(17).sent["report"]["score"], run.messages("report")["score"][17:18])
    assert compare(saved, streamed, protocol=Tells()).equal
    other = p2p_sim.run(Tells(), PEOPLE, seed=4, trace="full")
    difference = compare(run, other).messages
    assert difference is not None
    kinds = {one.kind: one.least for one in difference}
    assert isinstance(kinds["report"]["first"]["score"], float)
    seen = run.view("wire").messages["report"]
    assert not seen["readable"].any()
    assert not seen["score"].any()
    assert np.array_equal(run.view("learner").messages["report"]["score"], run.messages("report")["score"])


def test_tables_and_exports_show_the_numbers(runs: Any, tmp_path: Path) -> None:
    run, saved, _ = runs
    part = query.messages(saved, kind="report", user=17, protocol=Tells())
    (table,) = message_text.tables(part)
    value = run.messages("report")["score"][17].item()
    assert table["rows"][0]["fields"] == {"score": value, "n": 1}
    file = tmp_path / "messages.parquet"
    file.write_bytes(message_text.parquet(part))
    assert pandas.read_parquet(file)["score"].tolist() == [value]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"resolution": 0.0}, "resolution = 0.0: must be greater than 0"),
        ({"resolution": "fine"}, "resolution = 'fine'"),
        ({"high": 8.01}, "must be a multiple of the resolution"),
        ({"low": 9.0}, "low must be below high"),
        ({"high": 4000.0}, r"dtype = int16: must be int32 for its range"),
    ],
)  # fmt: skip
def test_a_manifest_that_contradicts_itself_is_refused(runs: Any, change: Any, text: str) -> None:
    path = runs[1] / "messages" / "manifest.json"
    before = path.read_text()
    try:
        content = json.loads(before)
        content["kinds"]["report"]["fields"]["score"]["fixed_point"].update(change)
        path.write_text(json.dumps(integrity.with_checksum(integrity.bare(content))))
        with pytest.raises(InputError, match=text):
            manifest.read(path.parent)
    finally:
        path.write_text(before)
