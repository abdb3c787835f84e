"""Mechanism 2: what is released of labels and features, and which parameters and users are refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.privacy.bounds import release2023
from p2p_sim.trace.recompute import history
from protocols import DoubleResponse

TABLE, TRUTH = "3*0;1*1|1*0;3*1|2*2", "1*0;1*1|1*1;3*2|1*0;4*2"
CHANCES = np.array([[0.75, 0.25, 0], [0.25, 0.75, 0], [0, 0, 1]])
TRUE = np.array([[0.5, 0.5, 0], [0, 0.25, 0.75], [0.2, 0, 0.8]])


@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0])
def test_what_is_released_has_the_law_of_mechanism_2(lam: float) -> None:
    y = np.arange(90_000, dtype=np.uint8) % 3
    found = p2p_sim.run(DoubleResponse(lam, TABLE, 3, TRUTH), Population.from_arrays(y=y), seed=5).output(
        "learner"
    )
    law = release2023.mechanism2_law(TRUE, CHANCES, lam)
    limit = math.sqrt(math.log(2 * 27 * 3 / 1e-6) / (2 * 30_000))  # Hoeffding, false alarm 1e-6
    for label in range(3):
        mine = y == label
        seen = np.zeros((3, 3))
        np.add.at(seen, (found["x"][mine, 0].astype(int), found["y"][mine]), 1 / mine.sum())
        assert np.abs(seen - law[label]).max() < limit


def test_features_and_label_are_replaced_independently() -> None:
    """Whether one is kept says nothing of the other: with features and labels that tell when they are."""
    people = Population.from_arrays(y=np.zeros(90_000, np.uint8))
    found = p2p_sim.run(DoubleResponse(0.5, "1|1|1", 3, "0|0|0"), people, seed=2).output("learner")
    kept, said = found["x"][:, 0] == 0, found["y"] == 0
    assert abs((kept & said).mean() - kept.mean() * said.mean()) < 4.9 * 0.25 / math.sqrt(90_000)  # 1e-6


def test_users_own_features_are_kept_or_replaced() -> None:
    people = Population.synthetic(users=20_000, features=3, seed=4)
    assert people.x is not None
    x = p2p_sim.run(DoubleResponse(0.25, "gaussian:3"), people, seed=1).output("learner")["x"]
    assert abs((x == people.x).all(axis=1).mean() - 0.75) < 0.02
    assert (
        p2p_sim.run(DoubleResponse(0.0, "gaussian:3"), people, seed=1).output("learner")["x"] == people.x
    ).all()


def test_features_travel_as_multiples() -> None:
    people = Population.from_arrays(y=[True, False], x=[[1 / 3], [-2.00001]])
    x = p2p_sim.run(DoubleResponse(0.0, "0|1"), people, seed=1).output("learner")["x"]
    assert (x * 2**16).ravel().tolist() == [21845, -131073]


def test_blocks_do_not_matter() -> None:
    people = Population.synthetic(users=500, labels=3, features=2, seed=1)
    for protocol in (DoubleResponse(0.4, "gaussian:2", 3), DoubleResponse(0.4, TABLE, 3, TRUTH)):
        runs = [p2p_sim.run(protocol, people, seed=3, blocks=blocks) for blocks in (1, 2, 7)]
        assert len({run.digest for run in runs}) == 1


def test_a_saved_run_is_read_and_replayed(tmp_path: Path) -> None:
    protocol = DoubleResponse(0.4, TABLE, 3, TRUTH)
    run = p2p_sim.run(protocol, Population.synthetic(users=50, labels=3, seed=1), seed=3, trace="full")
    run.save(tmp_path / "run")
    again = p2p_sim.load(tmp_path / "run")
    assert again.replay(17).drawn == run.replay(17).drawn


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lam": 1.5}, ["lam = 1.5", "[0, 1]"]),
        ({"lam": -1e-9}, ["lam = -1e-09", "[0, 1]"]),
        ({"labels": 1}, ["labels = 1", "from 2 to 256"]),
        ({"truth": "0,1|1,0"}, ["truth", "2 features", "generator 1"]),
        ({"truth": "0"}, ["truth = '0'", "at least two"]),
        ({"truth": None}, ["truth = None", "Generator, or text"]),
        ({"truth": "0|1|2"}, ["truth", "3 labels", "labels = 2"]),
    ],
)
def test_parameters_that_do_not_fit_are_refused(given: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        DoubleResponse(**{"lam": 0.5, "generator": "0|1", **given})
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("x", "lam", "words"),
    [
        (None, 0.5, ["truth = 'public'", "no features of their own", "as truth"]),
        ([[1, 2], [3, 4]], 0.5, ["draws 1 features, users have 2"]),
        ([[1], [1e6]], 0.5, ["feature 0 of row 1", "1000000.0", "scale"]),
        ([[1], [2]], 1e-21, ["lam = 1e-21", "never drawn"]),
    ],
)
def test_users_who_do_not_fit_are_named(x: Any, lam: float, words: list[str]) -> None:
    people = Population.from_arrays(y=[True, False], x=x)
    with pytest.raises(ProtocolError) as caught:
        p2p_sim.run(DoubleResponse(lam, "0|1"), people, seed=1)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("cluster", [None, np.arange(60) % 4])
@pytest.mark.parametrize("kind", [np.float32, np.int16])
def test_a_saved_run_whose_features_are_the_users_is_replayed(
    tmp_path: Path, cluster: Any, kind: Any
) -> None:
    """A run directory keeps the features of a protocol that reads them."""
    x = (np.arange(120).reshape(60, 2) * 0.7).astype(kind)
    people = Population.from_arrays(y=np.arange(60) % 2 == 0, x=x, cluster=cluster)
    run = p2p_sim.run(DoubleResponse(0.4, "gaussian:2"), people, seed=3)
    run.save(tmp_path / "run")
    _, some, life = history(tmp_path / "run", 17)
    assert str(life.drawn) == str(run.replay(17).drawn)
    assert life.sent["report"]["x"].tolist() == run.replay(17).sent["report"]["x"].tolist()
    assert life.world == 1
    assert some.x is not None
    assert some.x.dtype == kind
    again = p2p_sim.load(tmp_path / "run")
    assert (
        again.view("learner").messages["report"]["x"].tolist()
        == run.view("learner").messages["report"]["x"].tolist()
    )
    again.save(tmp_path / "copy")
    assert history(tmp_path / "copy", 17)[2].sent["report"]["y"].tolist() == life.sent["report"]["y"].tolist()


def test_features_that_no_program_reads_are_not_kept(tmp_path: Path) -> None:
    people = Population.synthetic(users=20, features=2, seed=1)
    p2p_sim.run(DoubleResponse(0.4, TABLE.rpartition("|")[0], truth="1|2"), people, seed=3).save(
        tmp_path / "run"
    )
    found = p2p_sim.load(tmp_path / "run").population
    assert found is not None
    assert found.x is None


def test_a_run_directory_without_the_features_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier version wrote it."""
    monkeypatch.setattr(DoubleResponse, "feature_count", lambda self: None)
    people = Population.synthetic(users=20, features=2, seed=1)
    p2p_sim.run(DoubleResponse(0.4, "gaussian:2"), people, seed=3).save(tmp_path / "run")
    monkeypatch.undo()
    with pytest.raises(
        InputError, match=r"its program reads me\.x, and a run directory keeps .* run it again"
    ):
        history(tmp_path / "run", 3)
