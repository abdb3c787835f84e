"""The command that a run's report tells gives the same bits, in another folder, and leaves the run as it is."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.cli.conftest import below

pytestmark = pytest.mark.slow

FAST = ("--model", "none")
SMALL = ("--users", "60", "--cluster-size", "12")
OWN = """
from dataclasses import dataclass

from p2p_sim.core import Message, Party, Protocol, Rounds


@dataclass(frozen=True)
class Shifted(Protocol):
    flip: float
    shift: int = 0
    told: bool = True

    report = Message("user", "learner", "a report", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y ^ me.draw.bernoulli("flip", self.flip + 0.1 * (self.shift < 0)))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()
"""
COMMANDS = {
    "defaults": ("peer-to-peer", *SMALL),
    "seed and place": ("peer-to-peer", *SMALL, "--seed=77", "--out", "here", "--trace", "full", "--json"),
    "parameters": ("peer-to-peer", "--alpha=0.3333333333333333", "--theta", "0.1", "--users", "1e3", "--share", ".25"),
    "digits": ("peer-to-peer", "--data", "digits", "--clusters", "7", "--positive", "1,3,5", *FAST),
    "a test part": ("randomized-response", "--data", "digits", "--test", "0.5", "--format", "json", *FAST),
    "all labels": ("randomized-response", "--labels", "10", "--epsilon", "2", "--data", "digits", *FAST),
    "a file": ("peer-to-peer", "--data", "-mine.csv", "--label", "out", "--cluster-column", "where is it", *FAST),
    "a graph": ("network-shuffle", "--users", "60", "--graph", "regular:4", "--steps", "6", "--epsilon", "3"),
    "edges": ("network-shuffle", "--users", "4", "--graph", "edges.csv", "--steps", "3"),
    "faults": ("peer-to-peer", *SMALL, "--fault", "drop=0.1", "--retries", "2", "--fault", "lie=flip:0.2"),
    "sealed": ("encrypted-shuffle", *SMALL, "--crypto", "real", "--shufflers", "2"),
    "aggregated": ("secure-aggregation", *SMALL, "--threshold", "5"),
    "links": ("label-proportions", *SMALL, "--channel", "10ms,1Mbit", "--server-channel=5ms,1Gbit"),
    "blocks": ("peer-permutation", *SMALL, "--blocks", "4"),
    "own": ("shifted:Shifted", *SMALL, "--flip", "1e-1", "--shift=-3", "--told", "no"),
    "no privacy": ("randomized-response", *SMALL, "--epsilon", "inf"),
}  # fmt: skip


@pytest.fixture
def again(cli, tmp_path, monkeypatch):
    """Run words, then what the report of that run tells; return the two run.json and the command."""
    (tmp_path / "shifted.py").write_text(OWN)
    rows = [f"{i % 7 - 3.5},{i % 5},{i % 3},{i % 2}" for i in range(60)]
    (tmp_path / "-mine.csv").write_text("\n".join(["a,b,where is it,out", *rows]))
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n2,3\n0,2\n")
    monkeypatch.syspath_prepend(tmp_path)

    def twice(*words):
        first = cli("run", *words)
        assert first.status == 0, first.err
        (place,) = (file.parent for file in tmp_path.rglob("run.json"))
        before = below(place)
        told = json.loads(cli("report", place, "--format", "json").out)["runs"][0]["command"]
        second = cli(*shlex.split(told)[1:])
        assert second.status == 0, second.err
        assert below(place) == before
        (other,) = (
            file.parent
            for file in tmp_path.rglob("run.json")
            if file.parent not in (place, tmp_path / "runs/latest")
        )
        return (
            json.loads((place / "run.json").read_text()),
            json.loads((other / "run.json").read_text()),
            told,
        )

    return twice


def check(one, other):
    assert one["digest"] == other["digest"] is not None
    for name in (
        "protocol",
        "parameters",
        "seed",
        "stored_hash",
        "costs",
        "faults",
        "crypto",
        "trace",
        "backend",
    ):
        assert one[name] == other[name]
    assert {**one["notes"], "defaults": None, "costs": None} == {
        **other["notes"],
        "defaults": None,
        "costs": None,
    }


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_run_again(again, words):
    one, other, told = again(*words)
    check(one, other)
    assert f"--seed {one['seed']}" in told
    assert not {"--out", "--force", "--json", "--format"} & set(shlex.split(told))
    assert all(f"--{name.replace('_', '-')}" in told for name in one["notes"]["defaults"])


@pytest.mark.parametrize("backend", ["shards", "actors"])
def test_a_run_again_on_ray(again, ray_session, backend):
    more = ("--shards", "2") if backend == "shards" else ()
    one, other, told = again(
        "peer-to-peer", "--users", "6", "--cluster-size", "3", "--backend", backend, *more
    )
    check(one, other)
    assert " ".join(["--backend", backend, *more]) in told


def test_another_seed_or_parameter_is_another_run(again, cli):
    _, other, told = again("peer-to-peer", *SMALL, "--seed", "0")
    for old, new in (("--seed 0", "--seed 1"), ("--alpha 0.1", "--alpha 0.2")):
        assert old in told
        changed = cli(*shlex.split(told.replace(old, new))[1:], "--json").json
        assert changed["digest"] != other["digest"]


def test_without_population_the_command_is_told_without_the_seed(cli, tmp_path):
    for name, seed in (("one", ("--seed", "9182730000000000000")), ("two", ())):
        assert cli("run", "peer-to-peer", *SMALL, *seed, "--no-population", "--out", name).status == 0
        kept = (tmp_path / name / "run.json").read_text()
        assert "918273" not in kept
        told = cli("report", name, "--json").json["runs"][0]["command"]
        assert told.endswith("--users 60 --cluster-size 12 --no-population --seed ...")
