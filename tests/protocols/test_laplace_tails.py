"""Noise of a run reaches as far as its law says: one label moves a draw by 24 nats at most."""

from __future__ import annotations

import re

import numpy as np
import pytest

from p2p_sim import Population, run
from p2p_sim.core import InputError, Protocol, ProtocolError
from protocols import Alibi, ClusterResponse, LaplaceLabelProportions

PEOPLE = Population.from_arrays(y=np.arange(60) % 2)


@pytest.mark.parametrize(
    ("protocol", "most"),
    [
        (Alibi(49.0, 2, grid=1), 48),
        (Alibi(700.0, 2, grid=256), 48),
        (LaplaceLabelProportions(24.5), 24),
        (ClusterResponse.given(tau=0.1, sigma=0.04, lam=0.5), None),
    ],
)
def test_noise_whose_tail_is_never_drawn_is_refused(protocol: Protocol, most: int | None) -> None:
    with pytest.raises(ProtocolError, match=r"one label would move the noise by .* nats") as refused:
        run(protocol, PEOPLE, seed=1)
    advised = re.search(r"an epsilon of at most ([\d.]+)", str(refused.value))
    assert advised is not None
    if most is not None:
        assert float(advised[1]) == most


@pytest.mark.parametrize("protocol", [Alibi(48.0, 2, grid=1), LaplaceLabelProportions(24.0)])
def test_what_is_advised_runs(protocol: Protocol) -> None:
    assert run(protocol, PEOPLE, seed=1).outputs["learner"]


def test_an_estimate_of_phi_costs_24_nats_at_most() -> None:
    with pytest.raises(InputError, match="may cost 24 nats at most"):
        ClusterResponse(40.0, 3, phi_share=0.99)
    assert ClusterResponse(40.0, 3, phi_share=0.5).phi_cost() == 20


def test_phi_is_not_estimated_where_its_statistic_would_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocols.cluster_response.MOST_ALIKE", 59)
    with pytest.raises(ProtocolError, match="phi is estimated in clusters of at most 59; make smaller ones"):
        run(ClusterResponse(4.0, phi_share=0.5), PEOPLE, seed=1)
