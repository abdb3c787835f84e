"""Does a larger cluster hide better?  From the learner it did in every case tried; from the wire it need not."""

from __future__ import annotations

import itertools

import pytest

from p2p_sim import privacy
from protocols import PeerToPeer


def epsilons(protocol: PeerToPeer, view: str, delta: float, sizes: range) -> list[float]:
    return [privacy.profile(protocol, view, cluster_size=n).epsilon(delta) for n in sizes]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "theta", "delta"), [(0.2, 1.0, 1e-3), (0.4, 1.0, 1e-6), (0.1, 0.3, 1e-4), (0.2, 0.5, 1e-2)]
)
def test_a_larger_cluster_hides_better_from_the_learner(alpha: float, theta: float, delta: float) -> None:
    found = epsilons(PeerToPeer(alpha, theta), "learner", delta, range(1, 41))
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(found))
    assert found[-1] < found[0]


@pytest.mark.parametrize("view", ["user", "learner+user"])
def test_a_larger_cluster_hides_better_from_peers(view: str) -> None:
    deltas = [privacy.profile(PeerToPeer(0.2), view, cluster_size=n).delta(0.5) for n in range(2, 30)]
    assert all(after <= before + 1e-15 for before, after in itertools.pairwise(deltas))


def test_it_fails_for_the_wire_when_few_report() -> None:
    """Alone, a user's bit travels only if she reports; with a peer it is asked for half the time."""
    alone, pair = (privacy.profile(PeerToPeer(0.2, 0.1), "wire", cluster_size=n).delta(0.0) for n in (1, 2))
    assert alone == pytest.approx(0.1 * 0.6)
    assert pair == pytest.approx((1 - 0.5 * 0.95) * 0.6)
    assert pair > alone
