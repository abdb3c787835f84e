"""Algorithm 2 with retries where messages are lost: by hand and by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core.faults import Faults
from p2p_sim.network import topologies
from p2p_sim.privacy.enumeration.enumerate import EnumeratedView
from p2p_sim.privacy.mechanisms.peer_to_peer.retried import RetriedReports
from protocols import PeerToPeer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.2)


def report(
    user: int, bits: tuple[int, ...], turns: int, theta: Fraction, loss: Fraction, late: Fraction
) -> dict[int | None, Fraction]:
    """What of a user's report arrives, by every peer that she may ask in turn, and every message on its way."""
    found: dict[int | None, Fraction] = {}
    asking = Fraction(1)
    for _ in range(turns):
        each, asking = asking / len(bits), Fraction(0)
        for peer, bit in enumerate(bits):
            there = Fraction(1) if peer == user else ((1 - loss) * (1 - late)) ** 2
            found[bit] = found.get(bit, Fraction(0)) + each * there * theta * (1 - loss)
            asking += each * (1 - there)
    return {**found, None: 1 - sum(found.values())}


def by_hand(
    users: int, ones: int, alpha: Fraction, turns: int, theta: Fraction, **wrong: Fraction
) -> EnumeratedView:
    worlds: list[dict[Any, Fraction]] = [{}, {}]
    for label, world in enumerate(worlds):
        truth = [label] + [int(i < ones) for i in range(users - 1)]
        for flips in itertools.product((0, 1), repeat=users):
            noise = math.prod((alpha if f else 1 - alpha for f in flips), start=Fraction(1))
            bits = tuple(y ^ f for y, f in zip(truth, flips, strict=True))
            laws = [report(u, bits, turns, theta, **wrong) for u in range(users)]
            for seen in itertools.product((None, 0, 1), repeat=users):
                chance = math.prod(
                    (law.get(s, Fraction(0)) for law, s in zip(laws, seen, strict=True)), start=noise
                )
                world[seen] = world.get(seen, Fraction(0)) + chance
    return EnumeratedView("learner", *worlds)


def figures(profile: Any) -> list[float]:
    return [profile.delta_bracket(at).upper * (1 + 1e-9) for at in EPSILONS]


@pytest.mark.parametrize("turns", [1, 2, 4])
@pytest.mark.parametrize(("loss", "late"), [("1/4", "0"), ("0", "1/2"), ("1/10", "1/10")])
@pytest.mark.parametrize("users", [1, 2, 4])
def test_the_learner_s_figure_is_not_below_the_law(users: int, loss: str, late: str, turns: int) -> None:
    protocol = PeerToPeer(0.125, 0.75, retries=turns - 1)
    faults = [f"loss={float(Fraction(loss))}", f"late={float(Fraction(late))}"]
    found = privacy.profile(protocol, cluster_size=users, faults=faults)
    assert found.basis == "upper"
    truths = [
        by_hand(users, ones, Fraction(1, 8), turns, Fraction(3, 4), loss=Fraction(loss), late=Fraction(late))
        for ones in range(users)
    ]
    for at, upper in zip(EPSILONS, figures(found), strict=True):
        assert max(truth.delta(at) for truth in truths) <= upper
    assert users == 1 or found.delta(0.0) < 0.75  # what one noisy label tells


def test_the_hand_is_the_program() -> None:
    people = Population.from_arrays(y=np.array([False, True]))
    law = privacy.enumerate_view(PeerToPeer(0.0, retries=1), people, faults=["late=0.5"])
    hand = by_hand(2, 1, Fraction(0), 2, Fraction(1), loss=Fraction(0), late=Fraction(1, 2))
    assert [law.delta(at) for at in EPSILONS] == pytest.approx([hand.delta(at) for at in EPSILONS], rel=1e-12)


def test_reports_without_retries_would_be_no_bound() -> None:
    """Power: who asks again reports more."""
    once, again = (
        privacy.profile(PeerToPeer(0.125, retries=r), cluster_size=4, faults=["loss=0.5"]) for r in (0, 3)
    )
    truth = by_hand(4, 3, Fraction(1, 8), 4, Fraction(1), loss=Fraction(1, 2), late=Fraction(0))
    assert once.delta(0.0) < truth.delta(0.0) <= again.delta(0.0)


def test_peers_see_more_who_ask_more_often() -> None:
    people = Population.from_arrays(y=np.array([False, True]))
    law = privacy.enumerate_view(PeerToPeer(0.0, retries=1), people, view="user", faults=["late=0.5"])
    found = privacy.profile(PeerToPeer(0.0, retries=1), "user", cluster_size=2, faults=["late=0.5"])
    assert law.delta(1.0) <= found.delta(1.0)
    for n, turns in ((10, 3), (50, 2)):  # nobody of c users, each of whom asks so often, asks one of n
        for c in (1, 4):
            found = privacy.profile(
                PeerToPeer(0.0, retries=turns - 1), f"{c}*user", cluster_size=n, faults=["loss=0.1"]
            )
            assert found.delta(0.0) == pytest.approx(1 - (1 - 1 / n) ** (c * turns))


def test_what_is_not_proven_has_the_local_guarantee() -> None:
    again = PeerToPeer(0.2, retries=1)
    joined = topologies.join(Population.from_arrays(y=np.zeros(50, bool)), "regular:6", 1)
    near = PeerToPeer(0.2, retries=1, over="neighbours")
    for found in (
        privacy.profile(again, "learner+user", cluster_size=50, users="deviating", faults=["loss=0.1"]),
        privacy.profile(near, population=joined, faults=["loss=0.1"]),
    ):
        assert (found.delta(0), found.epsilon(0)) == (pytest.approx(0.6), pytest.approx(math.log(4)))
        assert "the local guarantee" in found.source


def reports_of(
    leaves: tuple[int, ...], bits: tuple[int, ...], turns: int, theta: float, loss: float, late: float
) -> Any:
    """The law of all users' reports (0, 1, none), given before which step each drops out."""
    relayed, out = ((1 - loss) * (1 - late)) ** 2, np.ones(())
    for user, left in enumerate(leaves):
        law, asking = np.zeros(3), float(left == 2 * turns + 1)
        for turn in range(turns):
            each, asking = asking / len(bits), 0.0
            for peer, bit in enumerate(bits):
                there = (1.0 if peer == user else relayed) if leaves[peer] > 2 * turn + 1 else 0.0
                law[bit] += each * there * theta * (1 - loss)
                asking += each * (1 - there)
        law[2] = 1 - law.sum()
        out = np.multiply.outer(out, law)
    return out


def dropping(users: int, ones: int, alpha: float, turns: int, drop: float, **rest: float) -> list[Any]:
    """Both laws of the learner's view, by every time of dropping out and all noise."""
    steps = 2 * turns + 1
    chances = [drop * (1 - drop) ** step for step in range(steps)] + [(1 - drop) ** steps]
    worlds = []
    for label in (0, 1):
        truth = [label] + [int(i < ones) for i in range(users - 1)]
        world = np.zeros((3,) * users)
        for leaves in itertools.product(range(steps + 1), repeat=users):
            for flips in itertools.product((0, 1), repeat=users):
                weight = math.prod(chances[step] for step in leaves)
                weight *= math.prod(alpha if f else 1 - alpha for f in flips)
                bits = tuple(y ^ f for y, f in zip(truth, flips, strict=True))
                world += weight * reports_of(leaves, bits, turns, **rest)
        worlds.append(world.ravel())
    return worlds


@pytest.mark.parametrize(
    ("users", "turns", "drop", "loss", "late"),
    [
        (2, 2, 0.1, 0.0, 0.0),
        (2, 2, 0.3, 0.2, 0.0),
        (2, 3, 0.1, 0.0, 0.3),
        (3, 2, 0.05, 0.0, 0.0),
        (3, 2, 0.2, 0.1, 0.1),
    ],
)
@pytest.mark.parametrize(("alpha", "theta"), [(0.25, 1.0), (0.05, 0.5)])
def test_users_who_drop_out_and_ask_again(
    users: int, turns: int, drop: float, loss: float, late: float, alpha: float, theta: float
) -> None:
    """The bound, which larger clusters get, in clusters small enough for every way to be looked at."""
    faults = Faults(drop=drop, loss=loss, late=late)
    found = RetriedReports(alpha, theta, users, 0, turns, faults).law()
    for ones in range(users):
        one, other = dropping(users, ones, alpha, turns, drop, theta=theta, loss=loss, late=late)
        for at in EPSILONS:
            ends = [np.maximum(0, p - math.exp(at) * q).sum() for p, q in ((one, other), (other, one))]
            assert max(ends) <= found.delta(at).upper * (1 + 1e-9)


def test_a_crowd_that_drops_out_hides_nearly_as_well() -> None:
    """Close to what a shuffle shows, and far below the local guarantee; colluders are known to hear some."""
    again = PeerToPeer(0.1, retries=1)
    shuffle = privacy.shuffled_response(500, math.log(9)).epsilon(1e-6)
    found = privacy.profile(again, cluster_size=500, faults=["drop=0.02", "loss=0.01"])
    assert shuffle < found.epsilon(1e-6) < 1.6 * shuffle
    joined = privacy.profile(again, "learner+user", cluster_size=500, faults=["loss=0.01"])
    assert 0.8 * 2 / 500 < joined.delta(0.0) - privacy.shuffled_response(500, math.log(9)).delta(0.0) < 0.02


def test_figures_move_gently() -> None:
    plain = privacy.profile(PeerToPeer(0.1, 0.5), cluster_size=300).epsilon(1e-4)
    found = privacy.profile(PeerToPeer(0.1, 0.5, retries=2), cluster_size=300, faults=["loss=0.001"])
    assert plain * 0.99 < found.epsilon(1e-4) < plain * 1.05


@pytest.mark.parametrize("view", ["learner", "wire", "learner+wire"])
@pytest.mark.parametrize("retries", [1, 2])
def test_a_user_alone_in_her_cluster_asks_herself(view: str, retries: int) -> None:
    alone = PeerToPeer(0.25, 0.5, retries=retries)
    people = Population.from_arrays(y=np.array([False]))
    law = privacy.enumerate_view(alone, people, view=view, faults=["loss=0.5"])
    found = privacy.profile(alone, view, cluster_size=1, faults=["loss=0.5"])
    assert all(law.delta(at) <= found.delta(at) * (1 + 1e-12) for at in EPSILONS)
    assert found.delta(0.0) <= 0.5  # what one noisy label tells
