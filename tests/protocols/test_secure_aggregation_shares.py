"""Who reads the shares of secrets: the neighbour for whom they are, and nobody who passes them on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.backends import Settings
from p2p_sim.coalition import Coalition
from p2p_sim.crypto import pairs
from p2p_sim.privacy.auditing.worlds import Situation, observe
from protocols import EncryptedShuffle, SecureAggregation

FALSE_ALARM = 1e-9
PEOPLE = Population.synthetic(users=12, cluster_size=6, seed=1)


@pytest.mark.parametrize(
    "view", ["aggregator", "aggregator+user:3", "user:3", "aggregator+user:3+wire", "wire"]
)
@pytest.mark.parametrize("kind", ["share", "routed"])
def test_a_share_is_read_by_its_two_ends_alone(view: str, kind: str) -> None:
    run = p2p_sim.run(SecureAggregation(6), PEOPLE, trace="full", seed=0)
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


@pytest.mark.slow
@pytest.mark.parametrize("crypto", ["modelled", "real"])
@pytest.mark.parametrize("masked", [True, False])
def test_a_classifier_finds_masked_values_empty(
    crypto: str, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all that the server handles, keys, shares and masked values, nothing tells more than the sum; the twin has no
    masks, and so only a third of the noise.
    """
    if not masked:
        for mode in (pairs.Modelled, pairs.Real):
            monkeypatch.setattr(mode, "masks", lambda self, keys: np.zeros(len(keys), np.uint64))
    options: dict[
        str, Any
    ] = {  # at half the mechanism's epsilon 600 trials find the twin, by every seed tried
        "cluster_size": 4,
        "trials": 600,
        "epsilon": 0.5,
        "seed": 1,
        "composition": 0,
    }
    protocol = SecureAggregation(4, threshold=3, epsilon=1.0)
    found = privacy.audit(
        protocol, "aggregator", statistic="classifier", confidence=1 - FALSE_ALARM, crypto=crypto, **options
    )
    assert (found.verdict == "violated") is not masked


@pytest.mark.slow
def test_an_audit_of_ciphertexts_finds_what_a_modelled_one_does() -> None:
    options: dict[str, Any] = {"cluster_size": 3, "trials": 300, "delta": 0.0}
    found = [
        privacy.audit(EncryptedShuffle(1.0), crypto=crypto, **options) for crypto in ("modelled", "real")
    ]
    assert found[0] == found[1]
    with pytest.raises(InputError, match="crypto = 'none': must be one of modelled, real"):
        privacy.audit(EncryptedShuffle(1.0), crypto="none", **options)
