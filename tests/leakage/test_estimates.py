"""What is estimated of P(y | x) is estimated once for the same people; the baseline is the same for all protocols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p_sim.core.population import Population
from p2p_sim.leakage import estimates as module
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.estimates import Estimates
from p2p_sim.learning import experiment
from protocols import PeerToPeer, RandomizedResponse

PEOPLE: dict[str, Any] = {"cluster_size": 60, "features": 2, "trace": "full", "progress": False}


@pytest.mark.parametrize("eta", ["model", "knn"])
def test_whatever_mixes_messages_has_the_baseline_of_what_does_not(eta: str) -> None:
    kept = Estimates()
    others = experiment.simulate(RandomizedResponse(epsilon=1.0), 100, **PEOPLE, seed=9).population
    found = set()
    for protocol in (RandomizedResponse(epsilon=1.0), PeerToPeer(alpha=0.2)):
        run = experiment.simulate(protocol, 240, **PEOPLE, seed=3)
        how: dict[str, Any] = {"eta": eta, "held_out": others, "attackers": ["optimal"], "progress": False}
        (row,) = attack(run, "learner", estimates=kept, bounded=False, **how).rows
        found.add(row.baseline.value)
    assert len(found) == 1


def test_an_estimate_is_made_once_in_whatever_order_people_are(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(80, 2)), draw.integers(0, 2, 80)
    kept, made = Estimates(), []
    honest = module.priors.of_population
    monkeypatch.setattr(module.priors, "of_population", lambda *how: made.append(0) or honest(*how))
    first = kept.of_population("model", Population.from_arrays(y=y, x=x), 2)
    for rows in (np.arange(80)[::-1], draw.permutation(80)):
        again = kept.of_population("model", Population.from_arrays(y=y[rows], x=x[rows]), 2)
        assert np.array_equal(again.rows, first.rows[rows])
        assert again.from_half is not None
        assert first.from_half is not None
        assert np.array_equal(again.from_half, first.from_half[rows])
    assert len(made) == 1
    kept.of_population("model", Population.from_arrays(y=1 - y, x=x), 2)  # other people
    assert len(made) == 2
