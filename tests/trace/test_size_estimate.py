"""What is predicted of a trace against what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.cli import run_folders
from p2p_sim.core.faults import Faults
from p2p_sim.trace import size_estimate
from p2p_sim.trace.size_estimate import FACTOR, predict
from protocols import LabelProportions, PeerToPeer
from tests.contract.cases import IN_TURN, POPULATIONS, PROTOCOLS, people_of

LEAST, MOST = 0.85, 1.2
"""Of the bytes written what is predicted of peer-to-peer runs, as docs/trace.md says."""


def written(protocol: Any, people: Population, level: str, out: Path, **how: Any) -> tuple[int, int]:
    """Messages kept, and bytes of the folder that holds them."""
    run = p2p_sim.run(protocol, people, seed=0, trace=level, out=out, **how)
    files = [file for file in (out / "messages").rglob("*") if file.is_file()]
    return run.kept() or 0, sum(file.stat().st_size for file in files)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("users", [40, 1500])
def test_a_full_trace_is_predicted_within_the_stated_factor(name, users, tmp_path):
    for people in POPULATIONS if users < 100 else (dict(IN_TURN)[name],):
        population = people_of(PROTOCOLS[name], people, 400 if name == "peer permutation" else users)
        (found,) = predict(PROTOCOLS[name], population, "full")
        messages, nbytes = written(PROTOCOLS[name], population, "full", tmp_path / people)
        assert 1 / FACTOR < found.nbytes / nbytes < FACTOR, (people, found, nbytes)
        assert 1 / FACTOR < found.messages / messages < FACTOR, (people, found, messages)


def test_the_factor_can_be_missed(tmp_path):
    """The twin: what is said of a tenth of the users is not true of all of them."""
    few, many = (POPULATIONS["scattered"](users) for users in (4_000, 40_000))
    (found,) = predict(PeerToPeer(0.2), few, "full")
    assert written(PeerToPeer(0.2), many, "full", tmp_path / "run")[1] > FACTOR * found.nbytes


@pytest.mark.parametrize("lie", ["together", "scattered"])
@pytest.mark.parametrize("name", ["label proportions", "peer permutation"])
def test_many_users_where_ids_lie_as_they_lie(name, lie, tmp_path):
    """Whether ids of a cluster lie together decides which columns are stored; both were missed by more than that."""
    size, users = (50, 20_000) if name == "peer permutation" else (1000, 40_000)
    cluster = np.arange(users) // size
    if lie == "scattered":
        cluster = np.random.default_rng(3).permutation(cluster)
    people = Population.from_arrays(y=np.arange(users) % 3 == 0, cluster=cluster)
    protocol = LabelProportions(20) if name == "label proportions" else PROTOCOLS[name]
    (found,) = predict(protocol, people, "full")
    messages, nbytes = written(protocol, people, "full", tmp_path / "run")
    assert 1 / FACTOR < found.nbytes / nbytes < FACTOR
    assert found.messages == pytest.approx(messages, rel=0.05)


@pytest.mark.parametrize("name", ["encrypted shuffle by three", "secure aggregation", "randomized response"])
@pytest.mark.parametrize("level", ["counts", "sample=1000000"])
def test_what_is_known_beforehand_is_predicted_to_a_few_bytes(name, level, tmp_path):
    """A manifest without files, and a run of all users that there are, kept whole."""
    people = POPULATIONS["contiguous"](704)
    (found,) = predict(PROTOCOLS[name], people, level)
    messages, nbytes = written(PROTOCOLS[name], people, level, tmp_path / "run")
    assert found.messages == messages
    assert found.nbytes == pytest.approx(nbytes, rel=0.05)


def lying(how: str, users: int) -> Population:
    """Users in clusters of 20,000 whose ids lie together or anywhere, or in none."""
    draw = np.random.default_rng(3)
    cluster = {
        "together": np.arange(users) // 20_000,
        "scattered": draw.permutation(users) % (users // 20_000),
    }
    return Population.from_arrays(y=draw.random(users) < 0.3, cluster=cluster.get(how))


@pytest.mark.parametrize("how", ["together", "scattered", "anywhere"])
def test_random_ids_take_the_bytes_of_large_ones(how, tmp_path, monkeypatch):
    """What is random takes whole bytes, and ids of a million users have more than those of the few that are weighed.

    The twin weighs these by their own ids.
    """
    people = lying(how, 1_000_000)
    nbytes = written(PeerToPeer(0.1, 0.1), people, "full", tmp_path / "run")[1]
    (found,) = predict(PeerToPeer(0.1, 0.1), people, "full")
    assert LEAST < found.nbytes / nbytes < MOST
    few = size_estimate.few
    monkeypatch.setattr(size_estimate, "few", lambda *given: (few(*given)[0], None))
    (small,) = predict(PeerToPeer(0.1, 0.1), people, "full")
    assert small.nbytes / nbytes < LEAST


def test_messages_that_grow_with_the_cluster_are_extrapolated(tmp_path):
    protocol, people = PROTOCOLS["peer permutation"], Population.synthetic(users=1200, cluster_size=1200)
    (found,) = predict(protocol, people, "full")
    messages, _ = written(protocol, people, "full", tmp_path / "run")
    assert found.messages == pytest.approx(messages, rel=0.02)  # a cluster of n sends n^2 and some


def test_levels(tmp_path):
    people = Population.synthetic(users=5000, cluster_size=50)
    full, sample, counts, none = predict(PeerToPeer(0.1), people, "full", "sample=500", "counts", "none")
    assert (full.messages, none.messages, counts.messages) == (15_000, 0, 0)
    assert (none.nbytes, none.seconds, counts.seconds) == (0, 0.0, 0.0)
    assert 0 < full.seconds < 60
    messages, nbytes = written(PeerToPeer(0.1), people, "sample=500", tmp_path / "run")
    assert 1 / FACTOR < sample.messages / messages < FACTOR
    assert 1 / FACTOR < sample.nbytes / nbytes < FACTOR
    assert counts.nbytes > 0


def test_faults_change_the_form(tmp_path):
    people = Population.synthetic(users=20_000, cluster_size=50)
    faults = Faults(loss=0.3)
    (plain,), (lossy,) = (predict(PeerToPeer(0.1), people, "full", faults=f) for f in (None, faults))
    assert lossy.nbytes > 1.3 * plain.nbytes
    nbytes = written(PeerToPeer(0.1), people, "full", tmp_path / "run", faults=faults)[1]
    assert 1 / FACTOR < lossy.nbytes / nbytes < FACTOR


def test_odd_populations(tmp_path):
    alone = Population.from_arrays(y=[True], x=np.zeros((1, 2)), public={"a": np.ones(1)})
    assert predict(PeerToPeer(0.1), alone, "full")[0].messages == 3
    lone = Population.from_arrays(y=np.ones(90, np.bool_), cluster=np.minimum(np.arange(90), 50))
    assert predict(PeerToPeer(0.1), lone, "full")[0].messages == 270
    with pytest.raises(InputError, match="trace = 'all'"):
        predict(PeerToPeer(0.1), alone, "all")


def test_a_line_says_it(tmp_path):
    people = Population.synthetic(users=5000, cluster_size=50)
    told = run_folders.size_line(PeerToPeer(0.1), people, "full")
    assert told.startswith("trace full: about 15,000 messages, ")
    assert "; sample=1000: about " in told
    assert "counts: no messages, 1.28 kB; none: no messages" in told
    sampled = run_folders.size_line(PeerToPeer(0.1), people, "sample=10")
    assert [part.partition(":")[0] for part in sampled.split("; ")] == [
        "trace sample=10", "full", "counts", "none",
    ]  # fmt: skip
    many = Population.from_arrays(y=np.arange(40) % 5)
    refused = run_folders.size_line(PeerToPeer(0.1), many, "full")
    assert refused.startswith(
        "trace full: what it takes is not known beforehand (PeerToPeer handles 2 label values"
    )
