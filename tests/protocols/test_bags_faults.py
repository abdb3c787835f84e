"""Bags under the engine's faults: counts are of who came, duplicates count once, sums are exact or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.network.bags import bag_numbers
from protocols import LabelProportions, LaplaceLabelProportions, SecureAggregation

PEOPLE = Population.synthetic(users=800, cluster_size=50, positive=0.4, seed=4)
BAG = bag_numbers(PEOPLE.clusters, np.arange(800), 10)  # type: ignore[arg-type]


def ran(protocol: Any, *faults: str, seed: int = 1, **how: Any) -> Any:
    return p2p_sim.run(protocol, PEOPLE, seed=seed, faults=list(faults), trace="full", **how)


@pytest.mark.parametrize(
    "faults", [("drop=0.1",), ("loss=0.1",), ("duplicate=0.3",), ("late=0.1",), ("loss=0.1", "duplicate=0.5")]
)
def test_counts_are_of_the_labels_that_came(faults: tuple[str, ...]) -> None:
    run = ran(LabelProportions(10), *faults)
    came, told = np.unique(run.messages("report")["sender"]), run.messages("proportion")
    late = run.faults_seen.get(("late", "report", 1), 0)  # delivered, but not read in time
    assert (late > 0) == ("late=0.1" in faults)
    size = np.bincount(BAG[came], minlength=80)[told["bag"]]
    ones = np.bincount(BAG[came], weights=PEOPLE.y[came], minlength=80)[told["bag"]]
    missing, missed = size - told["size"], ones - told["total"]
    assert missing.sum() == late
    assert ((missed >= 0) & (missed <= missing)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "crypto"),
    [
        (("drop=0.05",), "modelled"),
        (("loss=0.01",), "modelled"),
        (("duplicate=0.2",), "modelled"),
        (("late=0.02",), "modelled"),
        (("drop=0.03", "loss=0.005", "duplicate=0.2", "late=0.005"), "modelled"),
        (("drop=0.05",), "real"),
        (("loss=0.01", "duplicate=0.2", "late=0.02"), "real"),
    ],
)
def test_secure_sums_are_exact_or_refused(faults: tuple[str, ...], crypto: str) -> None:
    """Labels are all 1, so that the sum must be the number of who stayed."""
    users = 200 if crypto == "real" else 800  # real keys are slow
    people = Population.from_arrays(y=np.ones(users, np.bool_), cluster=np.arange(users) // 50)
    protocol = SecureAggregation(10, threshold=5)
    run = p2p_sim.run(protocol, people, seed=2, faults=list(faults), crypto=crypto)
    seen = {"unsent": "drop", "lost": "loss"}  # what a fault is called where it is seen
    found = {seen.get(name, name) for name, _, _ in run.faults_seen}
    assert found == {fault.partition("=")[0] for fault in faults}
    out = run.output("learner")
    fine = ~out["refused"]
    assert fine.mean() > 0.5
    assert (out["total"][fine] == out["size"][fine]).all()
    assert (out["size"] <= out["joined"]).all()
    again = p2p_sim.run(protocol, people, seed=2, faults=list(faults), crypto=crypto, blocks=9)
    assert again.digest == run.digest


def test_noise_is_of_who_stayed() -> None:
    run = ran(SecureAggregation(10, threshold=6, epsilon=1.0), "drop=0.05")
    out = run.output("learner")
    assert (out["size"][~out["refused"]] >= 6).all()
    assert ran(LaplaceLabelProportions(1.0, 10), "drop=0.05").output("learner")["total"].size == 80
