"""Who reads the shares of secrets: the neighbour for whom they are, and nobody who passes them on."""

from __future__ import annotations

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, privacy
from p2p_sim.backends import Settings
from p2p_sim.privacy.auditing.worlds import Situation, observe
from p2p_sim.views import Coalition
from protocols import SecureAggregation

PEOPLE = Population.synthetic(users=12, cluster_size=6, seed=1)


@pytest.mark.parametrize(
    "view", ["aggregator", "aggregator+user:3", "user:3", "aggregator+user:3+wire", "wire"]
)
@pytest.mark.parametrize("kind", ["share", "routed"])
def test_a_share_is_read_by_its_two_ends_alone(view: str, kind: str) -> None:
    run = p2p_sim.run(SecureAggregation(6), PEOPLE, trace="full")
    columns = run.messages(kind)
    who = Coalition.parse(view, SecureAggregation.roles())
    message = SecureAggregation.messages()[kind]
    seen, readable = who.sees(message, columns, "plain")
    mine = columns["sender" if kind == "share" else "recipient"] == 3
    assert (readable == (mine & bool(who.users))).all()
    assert seen.all() == (who.servers != set() or who.wire)


def test_an_audit_reads_no_more() -> None:
    situation = Situation(
        SecureAggregation(6), Coalition.parse("aggregator+user", SecureAggregation.roles()), 6, 2
    )
    seen = observe(situation, situation.population(4), situation.everybody(4), 5, Settings())
    shares = seen.kinds["share"]
    assert shares.readable is not None
    assert (shares.readable == (shares.sender % 6 == 1)).all()
    assert (shares.fields["seed"][~shares.readable] == 0).all()


def test_a_classifier_finds_nothing_in_what_the_server_routes() -> None:
    """With all noise in her own share the server alone learns little; masks and shares tell nothing beside the sum."""
    found = privacy.audit(
        SecureAggregation(4, threshold=3, epsilon=0.5),
        "aggregator",
        cluster_size=4,
        trials=400,
        epsilon=0.5,
        seed=1,
    )
    assert found.verdict != "violated"
    assert not found.failed
    assert np.isfinite(found.lower)
