"""The accountant under faults: never below the enumerated law, exact where nothing goes wrong, refused by name."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from p2p_sim import InputError, Population, privacy
from p2p_sim.core.faults import Faults
from p2p_sim.privacy.mechanisms import peer_to_peer
from protocols import PeerToPeer, RandomizedResponse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.5, 2.0)


def enumerated(protocol, users, view, faults):
    """Delta over all labels of the others, by following every draw and every fault both ways.

    The first of the others has label 0: all labels turned give the same two worlds, turned, the one for the other.
    One case follows both, and holds them to be equal.
    """
    worst = dict.fromkeys(EPSILONS, 0.0)
    for others in itertools.product((False,), *[(False, True)] * (users - 2)):
        people = Population.from_arrays(y=[False, *others])
        law = privacy.enumerate_view(protocol, people, view=view, faults=faults)
        worst = {at: max(value, law.delta(at)) for at, value in worst.items()}
    return worst


@pytest.mark.parametrize(
    ("alpha", "theta", "view", "faults"),
    [
        (0.1, 1.0, "learner", ["late=0.3"]),
        (0.1, 1.0, "learner", ["loss=0.8"]),
        (0.2, 0.5, "learner", ["lie=flip:0.3"]),
        (0.2, 1.0, "learner", ["drop=0.3"]),
        (0.2, 1.0, "user", ["loss=0.2"]),
        (0.2, 1.0, "wire", ["loss=0.2"]),
        (0.2, 1.0, "learner+user", ["loss=0.3"]),
        (0.2, 1.0, "learner", ["stop=learner:0"]),
    ],
)
def test_no_figure_is_below_the_enumerated_law(alpha, theta, view, faults):
    protocol = PeerToPeer(alpha, theta)
    profile = privacy.profile(protocol, view, cluster_size=2, faults=faults)
    assert profile.basis == "upper"
    for at, delta in enumerated(protocol, 2, view, faults).items():
        assert delta <= profile.delta_bracket(at).upper * (1 + 1e-9), at


def test_all_labels_turned_show_as_much():
    protocol, faults = PeerToPeer(0.2, 0.5), ["lie=flip:0.3"]
    found = [
        privacy.enumerate_view(protocol, Population.from_arrays(y=[False, other]), faults=faults)
        for other in (False, True)
    ]
    assert [found[0].delta(at) for at in EPSILONS] == [found[1].delta(at) for at in EPSILONS]


def test_the_law_without_faults_would_be_no_bound():
    """Why losses are no mere thinning: asks to oneself are never lost, so a report leans to the reporter's own bit."""
    protocol, faults = PeerToPeer(0.2), ["late=0.3"]
    seen, plain = (
        enumerated(protocol, 2, "learner", faults),
        privacy.profile(protocol, "learner", cluster_size=2),
    )
    assert seen[1.0] > plain.delta(1.0) * 2


def test_retries_are_covered_by_the_local_guarantee():
    protocol = PeerToPeer(0.2, retries=1)
    profile = privacy.profile(protocol, "learner", cluster_size=2, faults=["drop=0.5"])
    assert (profile.basis, profile.delta(0)) == ("upper", pytest.approx(0.6))
    assert profile.epsilon(0) == pytest.approx(math.log(4))
    assert privacy.profile(protocol, "learner", cluster_size=2).basis == "exact"  # nobody asks again


def test_randomized_response_under_faults():
    people = Population.from_arrays(y=[False])
    for faults in (["loss=0.25"], ["drop=0.25"], ["late=0.25"], ["lie=random:0.25"], ["duplicate=0.25"]):
        profile = privacy.profile(RandomizedResponse(1.0), faults=faults)
        law = privacy.enumerate_view(RandomizedResponse.flipping(0.25), people, faults=faults)
        assert profile.basis == "upper"
        assert law.delta(0) <= privacy.profile(RandomizedResponse.flipping(0.25)).delta(0) + 1e-15


def test_what_is_not_covered_is_refused_by_name():
    found = privacy.profile(PeerToPeer(0.1), cluster_size=9, composition=3, faults=["lie=flip:0.1"])
    assert found.basis == "refused"
    assert "composition 'worst'" in found.why
    with pytest.raises(InputError, match="no server here"):
        privacy.profile(PeerToPeer(0.1), cluster_size=9, faults=["stop=shuffler:1"])


def test_figures_move_gently():
    """Small faults change little, and the bound of many users is close to the law without faults."""
    for size in (30, 300):
        plain = privacy.profile(PeerToPeer(0.1, 0.7), cluster_size=size).epsilon(1e-4)
        for faults in (["loss=0.001"], ["drop=0.001"], ["late=0.001"]):
            found = privacy.profile(PeerToPeer(0.1, 0.7), cluster_size=size, faults=faults).epsilon(1e-4)
            assert plain * 0.99 < found < plain * 1.05, (size, faults)


def test_certain_faults_leave_nothing_or_the_own_bit():
    for faults in (["loss=1"], ["drop=1"]):
        assert privacy.profile(PeerToPeer(0.1), cluster_size=9, faults=faults).delta(0) == 0.0
    late = privacy.profile(PeerToPeer(0.1), cluster_size=9, faults=["late=1"])
    assert late.delta(0) == pytest.approx(0.8 / 9)  # only who asked herself has something to report


def test_clusters_of_a_population_are_the_worst_of_each():
    people = Population.from_arrays(y=np.arange(14) % 2 == 0, cluster=[0] * 4 + [1] * 10)
    found = privacy.profile(PeerToPeer(0.1), population=people, faults=["loss=0.05"])
    parts = [
        privacy.profile(PeerToPeer(0.1), cluster_size=n, faults=["loss=0.05"]).delta(1.0) for n in (4, 10)
    ]
    assert (found.basis, found.delta(1.0)) == ("upper", max(parts))


@pytest.mark.parametrize(("urn", "askers", "rate"), [(900, 905, 0.9 / 910), (100, 101, 0.5 / 110)])
def test_more_askers_are_dominated(urn, askers, rate):
    hit = peer_to_peer.faults._dominating(urn, askers, rate, 0)
    numbers = np.arange(askers + 1)
    gap = binom.sf(numbers, askers, urn * rate) - binom.sf(numbers, urn, hit)
    assert urn * rate < hit < 1
    assert gap.max() <= 1.1 * peer_to_peer.faults.CUT


def test_groups_hold_everything():
    for others, chance in ((0, 0.5), (1, 0.9), (200, 0.95), (5000, 0.9025)):
        parts = list(peer_to_peer.faults._groups(others, chance, 0.8 / (others + 1), 0))
        assert sum(weight for weight, _, _ in parts) == pytest.approx(1, abs=1e-12)


def test_thinning_adds_up():
    """A report of one's own bit is as likely as it is: never lost on the way there, lost on the way out."""
    faults = Faults(drop=0.1, loss=0.2, late=0.05)
    left = peer_to_peer.faults.Thinning.of(faults, 0.7, 20)
    own = left.clear + (1 - left.clear) * left.rate
    assert own == pytest.approx(0.7 * 0.8 * 0.9 / 20)
    other = (1 - left.clear) * left.rate
    assert other == pytest.approx(0.7 * 0.8 * 0.9 * (0.8 * 0.95) ** 2 / 20)


def test_audits_under_faults():
    for protocol, size in ((PeerToPeer(0.1), 3), (RandomizedResponse(1.0), None)):
        found = privacy.audit(
            protocol, cluster_size=size, delta=0.01, trials=3000, faults=["loss=0.2", "drop=0.1"]
        )
        assert found.verdict != "violated"
        assert "classifier" in found.statistic
        assert [claim.basis for claim in found.claims] == ["upper"]
    lied = privacy.audit(
        RandomizedResponse(2.0), delta=0.01, trials=3000, faults=["lie=random:1"], claims={"none": 0.0}
    )
    assert lied.lower == 0.0
