"""What the recipient of a message cannot see of its origin: written out by hand, and counted one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import Message, Party, Protocol
from p2p_sim.report.message_text import sentence
from p2p_sim.trace.causality import Hidden, SameFields, cone
from protocols import (
    EncryptedShuffle,
    LabelProportions,
    NetworkShuffle,
    PeerPermutation,
    PeerToPeer,
    RandomizedResponse,
)
from tests.test_observed_view import RUN as SEALING
from tests.tiny import CLUSTERS, people


def run_of(protocol: Any, population: Any = None) -> Any:
    return p2p_sim.run(protocol, people() if population is None else population, seed=2**63 + 3, trace="full")


def test_a_resampled_report_hides_in_the_cluster() -> None:
    run = run_of(PeerToPeer(0.1))
    for user in range(12):
        found = cone(run, f"report:3:{user}:0:0").hidden
        size = CLUSTERS.count(CLUSTERS[user])
        assert found == Hidden(f"user:{user}", "learner", {"label": 1}, size, CLUSTERS[user], (), 1)
        assert sentence(found) == (
            f"The protocol hides its origin: learner does not see the 1 label message that had reached user:{user}; it "
            f"may carry what any of the {size} user{'s' if size > 1 else ''} of cluster {CLUSTERS[user]} handed on."
        )


def test_an_answer_and_a_randomized_label_hide_nothing() -> None:
    run = run_of(PeerToPeer(0.1))
    labels = run.messages("label")
    for row in range(12):
        sender, recipient = int(labels["sender"][row]), int(labels["recipient"][row])
        found = cone(run, f"label:2:{sender}:{recipient}:0").hidden
        assert found.unseen == {}
        if sender == recipient:
            assert sentence(found) == f"Nothing is hidden: user:{sender} sent it to herself."
    found = cone(run_of(RandomizedResponse(1.0)), "report:1:4:0:0").hidden
    assert found == Hidden("user:4", "learner")
    assert "it can only come from what user:4 held and drew" in sentence(found)


def test_a_shuffled_report_hides_among_all_that_was_handed_in() -> None:
    for shufflers in (1, 2, 3):
        run = run_of(EncryptedShuffle(1.0, shufflers=shufflers))
        mixed = run.messages("mixed")
        kind = "report" if shufflers == 1 else "passed2"
        for row in range(12):
            cluster, y, seq = (int(mixed[name][row]) for name in ("cluster", "y", "seq"))
            found = cone(run, f"mixed:{shufflers + 1}:0:0:{seq}").hidden
            alike = [mixed["cluster"] == cluster, (mixed["cluster"] == cluster) & (mixed["y"] == y)]
            assert found == Hidden(
                "shuffler", "learner", {kind: 12}, 12, None,
                (
                    SameFields(kind, ("cluster",), int(alike[0].sum())),
                    SameFields(kind, ("cluster", "y"), int(alike[1].sum())),
                ),
                12,
            )  # fmt: skip
        assert f"12 {kind} messages that had reached shuffler, from 12 users; which of them" in sentence(
            found
        )


def test_a_shuffler_cannot_compare_what_she_cannot_read() -> None:
    run = run_of(EncryptedShuffle(1.0, shufflers=2))
    found = cone(run, "passed2:2:0:0:3").hidden
    assert found == Hidden("shuffler2", "shuffler", {"report2": 12}, 12, None, (), 12)


def test_a_bag_says_how_many_reports_it_may_be_made_from() -> None:
    run = run_of(LabelProportions(2), Population.synthetic(users=12, cluster_size=6, seed=1))
    found = cone(run, "proportion:2:0:0:1").hidden
    assert found.alike == (SameFields("report", ("bag",), 2), SameFields("report", ("bag", "cluster"), 2))
    assert (found.unseen, found.users) == ({"report": 12}, 12)


def test_a_seed_agreed_by_the_cluster() -> None:
    run = run_of(PeerPermutation(0.1))
    labels = run.messages("label")
    row = int(np.flatnonzero(labels["sender"] != labels["recipient"])[0])
    sender, recipient, seq = (int(labels[name][row]) for name in ("sender", "recipient", "seq"))
    found = cone(run, f"label:2:{sender}:{recipient}:{seq}").hidden
    size = CLUSTERS.count(CLUSTERS[sender])
    assert found == Hidden(  # she knows her own share
        f"user:{sender}", f"user:{recipient}", {"share": size - 1}, size, CLUSTERS[sender], (), size - 1
    )


def test_on_a_graph_as_far_as_steps_go() -> None:
    ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    run = run_of(
        NetworkShuffle(1.0, steps=2), Population.from_arrays(y=np.arange(12) % 2 == 0).with_graph(ring)
    )
    reports = run.messages("report")
    held = int(reports["sender"][0])
    found = cone(run, f"report:{int(reports['round'][0])}:{held}:0:0").hidden
    assert found.users == 5  # she, and two on either side
    assert found.cluster is None
    assert f"any of the 5 users who can reach user:{held} handed on" in sentence(found)


def test_vectors_are_alike_as_a_whole() -> None:
    mixed = SEALING.messages("mixed")
    found = cone(SEALING, "mixed:3:0:0:4").hidden
    row = int(np.flatnonzero(mixed["seq"] == 4)[0])
    same = int((mixed["v"] == mixed["v"][row]).all(axis=1).sum())
    assert found.alike == (
        SameFields("sealed", ("v",), same),
        SameFields("sealed", ("v", "tag"), same),
    )  # tags are the same
    # what user 4 sent herself is known to her
    thanks = cone(SEALING, "thanks:4:0:4:4").hidden
    assert (thanks.unseen, thanks.users) == ({"mixed": 12}, 11)


@dataclass(frozen=True)
class Twice(Protocol):
    """The learner tells what she heard, while a second report is on its way."""

    report = Message("user", "learner", "reports", y=bool)
    second = Message("user", "learner", "reports again", y=bool)
    total = Message("learner", "user", "tells", n=np.uint8)

    def user(self, me: Party) -> Any:
        yield self.report(y=me.y)
        yield self.second(y=me.y)
        yield self.total.receive()

    def learner(self, me: Party) -> Any:
        got = yield self.report.receive()
        yield self.total(to=me.each(np.arange(12)), n=me.each(np.full(12, got.y.data.sum())))
        yield self.second.receive()


def test_what_comes_to_a_server_as_she_sends_is_not_what_she_sent() -> None:
    run = run_of(Twice())
    assert set(run.messages("second")["round"]) == set(run.messages("total")["round"]) == {2}
    found = cone(run, "total:2:0:4:4", protocol=Twice()).hidden
    assert found == Hidden("learner", "user:4", {"report": 11}, 11, None, (), 11)


def test_without_the_population(tmp_path: Any) -> None:
    run = run_of(PeerToPeer(0.1))
    bare = p2p_sim.load(run.save(tmp_path / "r", population=False))
    found = cone(bare, "report:3:4:0:0").hidden
    assert (found.unseen, found.users) == ({"label": 1}, None)
    assert "is not known without protocol and population" in sentence(found)
