"""Commands whose users are made or read by shards: the results are those of one process, which holds none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import p2p_sim
from p2p_sim.core.population_in_parts import PopulationInParts
from p2p_sim.learning import synthetic_users
from p2p_sim.rundir.outputs_folder import StoredOutputs
from protocols import PeerToPeer
from tests.backends.test_users_apart import CLUSTERS, written
from tests.contract.test_battery import equal
from tests.learning.test_training_in_batches import drawn
from tests.learning.test_training_in_batches import written as rows_written

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def test_the_calling_process_holds_no_users_and_no_outputs(
    cli: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """The whole command, from users to the finished folder: nobody there asks for a column of everybody."""
    words = ["run", "peer-to-peer", "--users", 700, "--cluster-size", 50, "--seed", 3, "--json"]
    here = cli(*words, "--out", "here").json
    asked: list[str] = []
    read = StoredOutputs.__getitem__
    monkeypatch.setattr(PopulationInParts, "_whole", property(lambda _: asked.append("users")))
    monkeypatch.setattr(
        StoredOutputs, "__getitem__", lambda self, role: asked.append(role) or read(self, role)
    )
    there = cli(*words, "--out", "there", "--backend", "shards", "--shards", 3).json
    assert asked == []
    for same in ("digest", "released", "clusters", "privacy", "users"):
        assert there[same] == here[same], same
    loaded = [p2p_sim.load(tmp_path / name) for name in ("here", "there")]
    assert equal(loaded[0].output("learner"), loaded[1].output("learner"))
    assert (
        cli("replay", "there", "--user", 17).out.replace("there", "here", 1)
        == cli("replay", "here", "--user", 17).out
    )


def test_a_population_from_the_command_line(cli: Any, tmp_path: Path) -> None:
    folder, whole = written(tmp_path / "users", CLUSTERS)
    words = ["run", "peer-to-peer", "--population", folder, "--label", "label", "--cluster-column", "group"]
    done = cli(*words, "--seed", 1, "--backend", "shards", "--shards", 2, "--json").json
    assert done["digest"] == p2p_sim.run(PeerToPeer(0.1), whole, seed=1).digest
    assert (done["users"], done["clusters"]["origin"]) == (1000, "from a column")
    assert cli(*words, "--plan", "--json").json["users"] == 1000
    refused = cli(*words, "--users", 7)
    assert (refused.status, "--users and --population are both given" in refused.err) == (2, True)


def test_a_model_of_a_population_does_not_depend_on_where_it_ran(cli: Any, tmp_path: Path) -> None:
    users, test = (
        rows_written(tmp_path / name, *drawn(2000, 2, seed=seed), cuts)
        for name, seed, cuts in (("users", 0, (800,)), ("test", 1, ()))
    )
    words = ["run", "encrypted-shuffle", "--epsilon", 2, "--population", users, "--cluster-column", "site"]
    words += [
        "--model",
        "logistic-regression",
        "--test-population",
        test,
        "--drop",
        "f3",
        "--seed",
        3,
        "--json",
    ]
    here = cli(*words, "--out", "here").json
    there = cli(*words, "--out", "there", "--backend", "shards", "--shards", 3).json
    assert here["accuracy"] is not None
    for same in ("digest", "released", "accuracy", "data", "privacy"):
        assert there[same] == here[same], same
    assert (there["data"]["features"], there["data"]["test_rows"]) == (3, 2000)
    shown = cli("report", "there", "--format", "md")
    assert (shown.status, "corrected for lies" in shown.out) == (0, True)


def test_many_features_are_drawn_by_shards(cli: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(synthetic_users, "MOST_NUMBERS", 500)
    words = [
        "run",
        "randomized-response",
        "--epsilon",
        2,
        "--users",
        900,
        "--features",
        3,
        "--seed",
        3,
        "--json",
    ]
    here = cli(*words, "--out", "here").json
    monkeypatch.setattr(PopulationInParts, "_whole", None)
    there = cli(*words, "--out", "there", "--backend", "shards", "--shards", 3).json
    assert here["accuracy"]["accuracy_corrected"] > 0.9
    for same in ("digest", "released", "accuracy", "data", "privacy"):
        assert there[same] == here[same], same
    assert there["data"]["test_rows"] == 166  # 500 / 3, and a note says so
    assert "of 225 test rows 166 were read" in there["accuracy"]["note"]
