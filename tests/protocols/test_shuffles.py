"""Encrypted shuffle and peer permutation: what is sent, what arrives, what it costs, what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.core.message import HEADER_BYTES, SEAL_BYTES
from protocols import EncryptedShuffle, PeerPermutation, RandomizedResponse, peer_permutation

CLUSTER = np.array([7, 3, 7, 7, 30, 3, 7, 3, 3, 7, 7, 3])
LABELS = np.arange(12) % 3 == 0
PEOPLE = Population.from_arrays(y=LABELS, cluster=CLUSTER)
SAID = p2p_sim.run(RandomizedResponse(1.0), PEOPLE, seed=4).output("learner")["y"]


def counted(columns: dict[str, Any]) -> list[tuple[int, int]]:
    return sorted(zip(columns["cluster"].tolist(), columns["y"].tolist(), strict=True))


@pytest.mark.parametrize("shufflers", [1, 2, 3])
def test_the_learner_gets_each_cluster_s_noisy_labels_and_nothing_more(shufflers: int) -> None:
    run = p2p_sim.run(EncryptedShuffle(1.0, shufflers=shufflers), PEOPLE, seed=4, trace="full")
    assert counted(run.output("learner")) == sorted(zip(CLUSTER.tolist(), SAID.tolist(), strict=True))
    assert list(run.output("learner")) == ["cluster", "y"]
    whole = p2p_sim.run(EncryptedShuffle(1.0, over="everybody", shufflers=shufflers), PEOPLE, seed=4)
    assert counted(whole.output("learner")) == sorted((-1, int(y)) for y in SAID)
    path = ["report", "report2", "report3"][shufflers - 1 : shufflers] + ["passed3", "passed2"][
        3 - shufflers :
    ]
    sent = {kind: count.messages for kind, count in run.by_kind().items() if count.messages}
    assert sent == dict.fromkeys([*path, "mixed"], 12)
    layers = [run.messages(kind)["nbytes"][0] - HEADER_BYTES - 9 for kind in [*path, "mixed"]]
    assert layers == [SEAL_BYTES * n for n in range(shufflers + 1, 0, -1)]


def test_every_shuffler_permutes_anew() -> None:
    run = p2p_sim.run(
        EncryptedShuffle(math.inf, labels=12, shufflers=3), Population.from_arrays(y=np.arange(12)), seed=0
    )
    run = p2p_sim.run(run.source, run.population, seed=4, trace="full")  # type: ignore[arg-type]
    orders = [tuple(run.messages(kind)["y"]) for kind in ("report3", "passed3", "passed2", "mixed")]
    assert len(set(orders)) == 4
    assert all(sorted(order) == list(range(12)) for order in orders)
    assert tuple(run.output("learner")["y"]) == orders[-1]


def test_several_labels_are_said_as_by_randomized_response() -> None:
    people = Population.from_arrays(y=np.arange(300) % 5)
    said = p2p_sim.run(RandomizedResponse(1.0, 5), people, seed=4).output("learner")["y"]
    mixed = p2p_sim.run(EncryptedShuffle(1.0, 5), people, seed=4).output("learner")["y"]
    assert sorted(mixed) == sorted(said)
    assert mixed.tolist() != said.tolist()


def test_a_permuted_cluster_reports_each_noisy_label_once() -> None:
    run = p2p_sim.run(PeerPermutation(0.3), PEOPLE, seed=4, trace="full")
    labels, reports = run.messages("label"), run.messages("report")
    assert sorted(labels["sender"]) == sorted(labels["recipient"]) == list(range(12))
    assert (CLUSTER[labels["sender"]] == CLUSTER[labels["recipient"]]).all()
    heard = dict(zip(labels["recipient"].tolist(), labels["y_hat"].tolist(), strict=True))
    assert heard == dict(zip(reports["sender"].tolist(), reports["y"].tolist(), strict=True))


def test_the_agreement_costs_the_square_of_a_cluster() -> None:
    run = p2p_sim.run(PeerPermutation(0.3), PEOPLE, seed=4, trace="full")
    sizes = np.unique(CLUSTER, return_counts=True)[1]
    share = run.by_kind()["share"]
    assert share.messages == int((sizes**2).sum())
    assert share.travelled == int((sizes * (sizes - 1)).sum())
    assert share.nbytes == share.travelled * (HEADER_BYTES + 8 + SEAL_BYTES)
    words = run.messages("share")
    assert all(len(np.unique(words["word"][words["sender"] == user])) == 1 for user in range(12))


def test_members_compute_one_permutation_of_the_sum() -> None:
    run = p2p_sim.run(PeerPermutation(0.3), PEOPLE, seed=4, trace="full")
    words, labels = run.messages("share"), run.messages("label")
    for cluster in np.unique(CLUSTER):
        members = np.flatnonzero(cluster == CLUSTER)
        said = {int(s): int(w) for s, w in zip(words["sender"], words["word"], strict=True)}
        seed = sum(said[user] for user in members.tolist()) % 2**62
        order = peer_permutation.agreed_order(seed, len(members))
        to = dict(zip(labels["sender"].tolist(), labels["recipient"].tolist(), strict=True))
        assert [to[user] for user in members.tolist()] == members[order].tolist()


def test_members_who_know_different_seeds_compute_different_permutations() -> None:
    cluster = Population.from_arrays(y=np.zeros(40, bool), cluster=np.arange(40) % 2).clusters
    assert cluster is not None
    seeds = (np.arange(40) // 20).astype(np.uint64)
    to = peer_permutation.successors(cluster, np.arange(40), seeds)
    for user in range(40):
        order = peer_permutation.agreed_order(int(seeds[user]), 20)
        assert to[user] == 2 * order[user // 2] + user % 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: EncryptedShuffle(-1.0), ["epsilon", "-1.0", "[0, inf]"]),
        (lambda: EncryptedShuffle(1.0, labels=1), ["labels", "1", "from 2 to 256"]),
        (lambda: EncryptedShuffle(1.0, over="nobody"), ["over", "'nobody'", "cluster, everybody"]),
        (lambda: EncryptedShuffle(1.0, shufflers=0), ["shufflers", "0", "from 1 to 3"]),
        (lambda: EncryptedShuffle(1.0, shufflers=4), ["shufflers", "4", "from 1 to 3"]),
        (lambda: EncryptedShuffle(1.0, shufflers=True), ["shufflers", "True", "from 1 to 3"]),
        (lambda: EncryptedShuffle(1.0, shufflers=1.5), ["shufflers", "1.5", "from 1 to 3"]),  # type: ignore[arg-type]
        (lambda: PeerPermutation(0.6), ["alpha", "0.6", "[0, 0.5]"]),
        (lambda: PeerPermutation(float("nan")), ["alpha", "nan", "[0, 0.5]"]),
    ],
)
def test_parameters_out_of_range_are_refused(make: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value


def test_clusters_that_are_too_large_to_agree_are_refused_before_memory_runs_out() -> None:
    people = Population.synthetic(users=100_000, seed=1)
    with pytest.raises(
        ProtocolError, match=r"clusters of up to 100,000 users exchange 10,000,000,000 contributions"
    ):
        p2p_sim.run(PeerPermutation(0.1), people, seed=0)
