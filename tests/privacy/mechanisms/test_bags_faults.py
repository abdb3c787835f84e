"""Bags under faults: no figure is below the law, and whom an aggregator can tell apart is whom the account says."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.core.faults import Faults
from p2p_sim.privacy.laws.noise import NoiseShares
from p2p_sim.privacy.mechanisms.secure_aggregation import least_together
from p2p_sim.privacy.setting import Setting
from protocols import LabelProportions, LaplaceLabelProportions, SecureAggregation

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

LOST, GONE = ["loss=0.2"], ["drop=0.2"]


@pytest.mark.parametrize("view", ["learner", "aggregator", "user", "wire", "learner+user"])
@pytest.mark.parametrize(
    "faults", [GONE, LOST, ["late=0.2"], ["duplicate=0.5"], ["lie=flip:0.3"], ["stop=aggregator:1"]]
)
def test_counts_by_enumeration(view: str, faults: list[str]) -> None:
    people = Population.from_arrays(y=np.array([True, False]))
    law = privacy.enumerate_view(LabelProportions(2), people, view=view, faults=faults)
    found = privacy.profile(LabelProportions(2), view, cluster_size=2, faults=faults)
    assert found.basis == "upper"
    for epsilon in (0.0, 1.0, 5.0):
        assert law.delta(epsilon) <= found.delta(epsilon) * (1 + 1e-12)
    if view == "learner+user" and faults in (GONE, LOST):
        assert found.delta(1.0) == pytest.approx(0.8 if faults == GONE else 0.64)


def test_noise_on_what_came_by_hand() -> None:
    """All ways for three labels to come or not, and the noise, outcome by outcome."""
    epsilon0, come = 1.0, Fraction(4, 5) ** 2
    noise = {z: math.exp(-epsilon0 * abs(z)) * math.tanh(epsilon0 / 2) for z in range(-80, 81)}
    found = privacy.profile(LaplaceLabelProportions(epsilon0, 3), cluster_size=3, faults=LOST)
    assert (found.basis, found.epsilon(0)) == ("upper", epsilon0)
    for others in itertools.product((0, 1), repeat=2):
        worlds: list[dict[tuple[int, int], float]] = [{}, {}]
        for label, world in enumerate(worlds):
            for here in itertools.product((0, 1), repeat=3):
                weight = float(math.prod(come if h else 1 - come for h in here))
                total = sum(h * y for h, y in zip(here, (label, *others), strict=True))
                for z, chance in noise.items():
                    seen = (sum(here), total + z)
                    world[seen] = world.get(seen, 0.0) + weight * chance
        for epsilon in (0.0, 0.3, 0.9):
            seen_delta = sum(
                max(0.0, p - math.exp(epsilon) * worlds[1].get(k, 0.0)) for k, p in worlds[0].items()
            )
            assert seen_delta <= found.delta(epsilon) + 1e-12


def apart(protocol: Any, joined: int, colluders: int, lossy: bool) -> int:
    """The smallest set of honest stayers whose sum an aggregator can tell, over all that faults can do.

    Everybody is in the set, elsewhere (and stays), a colluder, or gone; between the first two, what can be lost is.
    Without colluders the set and those elsewhere have no mask in common, and their bag is refused.
    """
    degree = min(joined - 1, protocol.degree)
    near = [
        [j for j in range(joined) if j != i and min((i - j) % joined, (j - i) % joined) * 2 <= degree]
        if degree < joined - 1
        else [j for j in range(joined) if j != i]
        for i in range(joined)
    ]
    need, best = int(protocol.needed(joined, degree)), joined
    for parts in itertools.product("SECG", repeat=joined):
        count = {part: parts.count(part) for part in "SEC"}
        if not count["C"] and count["E"]:
            continue
        if count["C"] != colluders or sum(count.values()) < protocol.least or not 0 < count["S"] < best:
            continue
        rows = [(part, "".join(parts[j] for j in near[i])) for i, part in enumerate(parts)]
        if not lossy and any(part == "S" and "E" in others for part, others in rows):
            continue
        held = all(len(o) - o.count("E") >= need for p, o in rows if p == "S")
        held &= all(len(o) - o.count("S") >= need for p, o in rows if p == "E")
        if held and all(o.count("S") + o.count("C") >= need for p, o in rows if p == "S"):
            best = count["S"]
    return best


@pytest.mark.parametrize(
    ("bag", "threshold", "degree"), [(5, 3, 20), (6, 5, 20), (7, 6, 20), (7, 5, 2), (8, 6, 4), (8, 5, 4)]
)
@pytest.mark.parametrize("colluders", [0, 1, 2])
@pytest.mark.parametrize("lossy", [False, True])
def test_nobody_is_summed_up_among_fewer(
    bag: int, threshold: int, degree: int, colluders: int, lossy: bool
) -> None:
    protocol = SecureAggregation(bag, threshold=threshold, degree=degree, epsilon=1.0)
    sizes = range(threshold, bag + 1)
    if colluders >= min(int(protocol.needed(j, min(j - 1, degree))) for j in sizes):
        return  # they recover the key of one alone
    view = Coalition(frozenset({"aggregator"}), frozenset(), colluders, False)
    setting = Setting(view, str(view), bag, None, False, False)
    told = least_together(protocol, setting, bag, Faults(drop=0.1, loss=0.1 * lossy))
    assert told <= min(apart(protocol, joined, colluders, lossy) for joined in sizes)


def test_two_colluders_and_two_who_are_gone_cut_a_ring() -> None:
    """Why the threshold is no bound: of seven who stay, five of them honest, two are summed up apart."""
    protocol = SecureAggregation(9, threshold=7, degree=4, epsilon=1.0)
    assert apart(protocol, 9, 2, False) == 2
    few = privacy.profile(protocol, "aggregator+2*user", cluster_size=9, faults=GONE)
    assert few.epsilon(0) == NoiseShares(1.0, 1, 2 / 7).pure()
    assert privacy.profile(protocol, "learner+2*user", cluster_size=9, faults=GONE).epsilon(0) == (
        NoiseShares(1.0, 1, 5 / 7).pure()
    )
    alone, missing = (
        privacy.profile(protocol, "aggregator", cluster_size=9, faults=faults).epsilon(0)
        for faults in (GONE, LOST)
    )
    assert alone == missing == 1.0 < few.epsilon(0)
    one, lost = (
        privacy.profile(protocol, "aggregator+user", cluster_size=9, faults=faults).epsilon(0)
        for faults in (GONE, LOST)
    )
    assert alone < one < lost
    for fault, figure in (
        ("tamper", missing),
        ("misdirect", missing),
        ("replay", alone),
        ("duplicate", alone),
    ):
        told = privacy.profile(protocol, "aggregator", cluster_size=9, faults=[f"{fault}=0.1"])
        assert told.epsilon(0) == figure


@pytest.mark.parametrize(
    "protocol", [LabelProportions(4), LaplaceLabelProportions(1.0, 4), SecureAggregation(4, epsilon=1.0)]
)
@pytest.mark.parametrize("view", ["learner", "aggregator+user"])
def test_audits_under_faults(protocol: Any, view: str) -> None:
    found = privacy.audit(
        protocol, view, cluster_size=4, delta=0.01, trials=400, faults=["loss=0.05", "drop=0.05"]
    )
    assert found.verdict != "violated"
    assert [claim.basis for claim in found.claims] == ["upper"]
