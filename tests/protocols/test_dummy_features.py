"""Mechanism 3: how often labels are replaced, what the learner gets, and which parameters are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from protocols import DummyFeatures


@pytest.mark.parametrize(("lam", "labels"), [(0.3, 2), (0.6, 3), (1.0, 4)])
def test_labels_are_kept_or_uniform(lam: float, labels: int) -> None:
    y = np.arange(60_000, dtype=np.uint8) % labels
    people = Population.from_arrays(y=y if labels > 2 else y > 0)
    said = p2p_sim.run(DummyFeatures(lam, labels), people, seed=4).output("learner")["y"]
    limit = math.sqrt(math.log(2 * labels**2 / 1e-6) / (2 * len(y) / labels))  # Hoeffding, false alarm 1e-6
    for label in range(labels):
        found = np.bincount(said[y == label], minlength=labels) / (y == label).sum()
        assert np.abs(found - (1 - lam) * np.eye(labels)[label] - lam / labels).max() < limit


def test_without_noise_labels_are_told_and_nothing_says_whose() -> None:
    people = Population.from_arrays(y=np.arange(200) % 7)
    found = p2p_sim.run(DummyFeatures(0.0, 7), people, seed=1).output("learner")
    assert found.keys() == {"y"}
    assert (found["y"] == people.y).all()


def test_blocks_do_not_matter() -> None:
    people = Population.from_arrays(y=np.arange(500, dtype=np.uint8) % 4)
    runs = [p2p_sim.run(DummyFeatures(0.4, 4), people, seed=3, blocks=blocks) for blocks in (1, 2, 7)]
    assert len({run.digest for run in runs}) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-0.1,), ["lam = -0.1", "[0, 1]"]),
        ((1.5,), ["lam = 1.5", "[0, 1]"]),
        ((math.nan,), ["lam = nan"]),
        (("0.5",), ["lam = '0.5'"]),
        ((0.5, 1), ["labels = 1", "from 2 to 256"]),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        DummyFeatures(*arguments)
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_chance_that_is_never_drawn_is_refused_where_it_would_be_drawn() -> None:
    with pytest.raises(ProtocolError, match=r"lam = 1e-21: .*never drawn; give 0"):
        p2p_sim.run(DummyFeatures(1e-21), Population.from_arrays(y=[True, False]), seed=1)
