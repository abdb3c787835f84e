"""Algorithm 2 with several labels: what a user says of hers, that two labels are bits, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import p2p_sim
from p2p_sim import InputError, Population
from protocols import PeerToPeer

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(("labels", "alpha"), [(3, 0.3), (5, 0.8), (256, 0.5)])
def test_another_label_is_said_with_probability_alpha_and_each_as_likely(labels: int, alpha: float) -> None:
    y = np.arange(200_000) % labels
    run = p2p_sim.run(PeerToPeer(alpha, labels=labels), Population.from_arrays(y=y), seed=4, trace="full")
    answers = run.messages("label")
    users, first = np.unique(answers["sender"], return_index=True)
    said = answers["y_hat"][first].astype(np.int64)
    assert answers["y_hat"].dtype == run.output("learner")["y"].dtype == np.uint8
    found = np.bincount((said - y[users]) % labels, minlength=labels)
    expected = np.full(labels, len(users) * alpha / (labels - 1))
    expected[0] = len(users) * (1 - alpha)
    assert ((found - expected) ** 2 / expected).sum() < chi2.isf(FALSE_ALARM, labels - 1)


def test_two_labels_are_the_bits_of_the_paper() -> None:
    people = Population.synthetic(users=200, cluster_size=20, seed=2)
    bits, labels = PeerToPeer(0.2, 0.5, 1), PeerToPeer(0.2, 0.5, 1, labels=2)
    assert bits == labels
    run = p2p_sim.run(labels, people, seed=3, trace="full")
    assert run.messages("label")["y_hat"].dtype == run.output("learner")["y"].dtype == np.bool_
    assert run.digest == "ae0b8f5c4e573b4d2ca3722ee150a796"  # as it was before there were more


@pytest.mark.parametrize("retries", [0, 2])
def test_blocks_and_lost_messages_change_no_bits(retries: int) -> None:
    people = Population.synthetic(users=300, cluster_size=30, labels=4, seed=5)
    protocol = PeerToPeer(0.3, 0.7, retries, labels=4)
    runs = [
        p2p_sim.run(protocol, people, seed=6, blocks=blocks, faults=["loss=0.2"], trace="full")
        for blocks in (1, 7)
    ]
    assert runs[0].digest == runs[1].digest
    assert runs[0].replay(17).drawn == runs[1].replay(17).drawn
    if retries:
        plain = p2p_sim.run(PeerToPeer(0.3, 0.7, labels=4), people, seed=6, faults=["loss=0.2"])
        assert len(runs[0].output("learner")["y"]) > len(plain.output("learner")["y"])


def test_reports_are_what_their_senders_heard() -> None:
    people = Population.synthetic(users=300, cluster_size=30, labels=4, seed=5)
    run = p2p_sim.run(PeerToPeer(0.3, labels=4), people, seed=6, trace="full")
    heard = dict(zip(run.messages("label")["recipient"], run.messages("label")["y_hat"], strict=True))
    reports = run.messages("report")
    assert all(heard[who] == y for who, y in zip(reports["sender"], reports["y"], strict=True))


@pytest.mark.parametrize("labels", [2, 3, 10])
def test_alpha_ends_where_all_labels_are_as_likely(labels: int) -> None:
    most = (labels - 1) / labels
    assert PeerToPeer(most, labels=labels).alpha == most
    assert PeerToPeer(Fraction(labels - 1, labels) - Fraction(1, 10**6), labels=labels).labels == labels
    with pytest.raises(InputError, match=r"^alpha = 0\.95: "):
        PeerToPeer(0.95, labels=labels)
    with pytest.raises(InputError, match=r"^alpha = -0\.1: "):
        PeerToPeer(-0.1, labels=labels)


def test_what_is_refused_names_the_most_that_is_not() -> None:
    with pytest.raises(InputError) as told:
        PeerToPeer(0.7, labels=3)
    assert str(told.value) == (
        "alpha = 0.7: of 3 labels at most 0.6666666666666666, where each label is as likely"
    )
    PeerToPeer(0.6666666666666666, labels=3)
    with pytest.raises(InputError, match="labels = 257: must be an integer from 2 to 256"):
        PeerToPeer(0.1, labels=257)


def test_labels_beyond_those_of_the_protocol_are_refused() -> None:
    people = Population.from_arrays(y=np.arange(12) % 4)
    with pytest.raises(
        InputError, match="PeerToPeer handles 3 label values, the population has labels up to"
    ):
        p2p_sim.run(PeerToPeer(0.1, labels=3), people, seed=1)
