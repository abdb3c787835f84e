"""Figures at several values at once are those at each of them, in the shape that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.laws.finite import Atoms
from protocols import PeerToPeer, RandomizedResponse

pytestmark = pytest.mark.usefixtures("ways_once")

EPSILONS = [0.0, 0.25, 1.0, 3.0, 50.0, math.inf]
DELTAS = [0.0, 1e-9, 1e-3, 0.3, 1.0]
PEERS = privacy.profile(PeerToPeer(0.1, theta=0.5), cluster_size=30)
PROFILES: dict[str, Callable[[], privacy.PrivacyProfile]] = {
    "peer-to-peer": lambda: PEERS,
    "a pair": lambda: privacy.profile(RandomizedResponse(1.5)),
    "composed": lambda: privacy.compose([(PEERS, 3), (privacy.gaussian(4.0), 1)], view="learner"),
    "noise": lambda: privacy.laplace(2.0),
}


@pytest.mark.parametrize("name", PROFILES)
def test_several_figures_are_those_of_each(name: str) -> None:
    profile = PROFILES[name]()
    deltas, epsilons = profile.delta(EPSILONS), profile.epsilon(DELTAS)
    assert deltas.dtype == epsilons.dtype == np.float64
    assert deltas.tolist() == [profile.delta(each) for each in EPSILONS]
    assert epsilons.tolist() == [profile.epsilon(each) for each in DELTAS]
    found = profile.delta_bracket(EPSILONS)
    assert list(zip(*map(list, found), strict=True)) == [profile.delta_bracket(e) for e in EPSILONS]
    found = profile.epsilon_bracket(DELTAS)
    assert list(zip(*map(list, found), strict=True)) == [profile.epsilon_bracket(d) for d in DELTAS]
    there, back = profile.directions(EPSILONS[:3])
    assert list(zip(there, back, strict=True)) == [profile.directions(each) for each in EPSILONS[:3]]


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([], (0,)),
        ((1, 2), (2,)),
        (range(3), (3,)),
        ([[0, 1], [2.5, Fraction(1, 3)]], (2, 2)),
        (np.zeros((2, 0, 3)), (2, 0, 3)),
        (np.array([[0.5], [1.0]], np.float32), (2, 1)),
        (np.array(1.0), ()),
        (np.arange(6).reshape(2, 3).T, (3, 2)),
        (pd.Series([0.5, 1.0], index=[7, 3]), (2,)),
    ],
)
def test_the_shape_comes_back(values: Any, shape: tuple[int, ...]) -> None:
    profile = PROFILES["a pair"]()
    found = profile.delta(values)
    assert isinstance(found, np.ndarray)
    assert found.shape == shape
    flat = [profile.delta(float(each)) for each in np.asarray(values, object).ravel()]
    assert found.ravel().tolist() == flat
    assert [ends.shape for ends in profile.delta_bracket(values)] == [shape] * 3


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1), np.float32(1), np.int64(1)])
def test_one_value_gives_a_plain_float(one: Any) -> None:
    profile = PROFILES["a pair"]()
    assert type(profile.delta(one)) is float
    assert type(profile.epsilon(one)) is float
    assert isinstance(profile.delta_bracket(one), privacy.Bracket)
    assert isinstance(profile.delta_bracket([one]), privacy.Brackets)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.1, -1.0], r"epsilon\[1\] = -1\.0: must be a number"),
        (np.array([[0.1, np.nan]]), r"epsilon\[0, 1\] = nan: must be a number"),
        ([1, True], r"epsilon\[1\] = True: must be a number"),
        ([0.5, "1"], r"epsilon\[1\] = '1': must be a number"),
        ([0.5, [1.0]], r"epsilon\[1\] = \[1\.0\]: must be a number"),
        (np.array([0, 1j]), r"epsilon\[0\] = 0j: must be a number"),
        (np.array([True]), r"epsilon\[0\] = True: must be a number"),
        (pd.Series([1.0, None], dtype="Float64"), r"epsilon\[1\] = nan: must be a number"),
        (np.ma.masked_greater([0.5, 9.0], 1), "epsilon: some values are masked"),
        ("1.0", "epsilon = '1.0': must be a number"),
        (None, "epsilon = None: must be a number"),
        ({1.0}, r"epsilon = \{1\.0\}: must be a number"),
        (np.bool_(True), "must be a number"),
    ],
)
def test_a_value_that_is_refused_is_named_with_its_place(values: Any, said: str) -> None:
    profile = PROFILES["a pair"]()
    for ask in (profile.delta, profile.delta_bracket, profile.directions):
        with pytest.raises(InputError, match=said):
            ask(values)


def test_a_delta_that_is_refused_is_named_with_its_place() -> None:
    with pytest.raises(InputError, match=r"delta\[2\] = 1\.5: must be a probability"):
        PEERS.epsilon(np.array([0.1, 1.0, 1.5]))
    with pytest.raises(InputError, match=r"delta\[0\] = -0\.5: must be a number"):
        PEERS.epsilon_bracket([-0.5])
    refused = privacy.PrivacyProfile.refused("learner", "no law is known")
    with pytest.raises(privacy.RefusedError, match="no law is known"):
        refused.delta([1.0])


@pytest.mark.slow
def test_an_enumerated_view_takes_several() -> None:
    people = Population.from_arrays(y=np.array([False, True, False]))
    found = privacy.enumerate_view(PeerToPeer(0.25, theta=0.5), people)
    assert found.delta(EPSILONS).tolist() == [found.delta(each) for each in EPSILONS]
    assert found.epsilon([DELTAS]).tolist() == [[found.epsilon(each) for each in DELTAS]]
    assert type(found.delta(1)) is type(found.epsilon(0.1)) is float
    with pytest.raises(InputError, match=r"epsilon\[1\] = -2: must be a number"):
        found.delta([1, -2])
    with pytest.raises(
        InputError, match=r"epsilon\[0\] = 2000000\.0: must be at most 1,000,000, or infinite"
    ):
        found.delta([2e6])
    with pytest.raises(InputError, match=r"delta\[1\] = 1\.5"):
        found.epsilon([1, 1.5])


def test_the_epsilon_of_an_enumerated_view_is_the_least() -> None:
    """Against the law of the same outcomes, whose epsilon a root finder finds, and at both ends."""
    people = Population.from_arrays(y=np.array([False, True, False]))
    for view in ("learner", "user:1"):
        found = privacy.enumerate_view(PeerToPeer(0.25, theta=0.5), people, view=view)
        law = Atoms.of(*zip(*found.pairs(), strict=True))
        for delta in (1e-3, 0.01, 0.03, 0.1, 0.2, 0.9):
            assert found.epsilon(delta) == pytest.approx(law.epsilon(delta), rel=1e-9, abs=1e-12)
        assert found.epsilon(0) == pytest.approx(found.pure_epsilon, rel=1e-14)
        assert found.epsilon(1) == 0
    told = privacy.EnumeratedView(
        "all", {("a",): Fraction(1, 4), ("b",): Fraction(3, 4)}, {("b",): Fraction(1)}
    )
    assert told.epsilon(0.25) == 0
    assert told.epsilon(0.2) == told.pure_epsilon == math.inf  # one outcome gives the label away


def test_a_curve_is_a_frame_of_brackets() -> None:
    profile = PROFILES["a pair"]()
    found = profile.curve([0.0, 1.0, 1.5])
    assert list(found) == ["epsilon_nats", "delta_lower", "delta", "delta_upper", "basis", "view"]
    told = found[["delta_lower", "delta", "delta_upper"]].to_numpy().T
    assert told.tolist() == [ends.tolist() for ends in profile.delta_bracket([0.0, 1.0, 1.5])]
    assert (found.basis == "exact").all()
    assert (found.view == "learner").all()
    with pytest.raises(InputError, match=r"epsilon\[1\] = -1"):
        profile.curve([0, -1])
    with pytest.raises(privacy.RefusedError):
        privacy.PrivacyProfile.refused("learner", "no law").curve()


def test_a_curve_at_one_value_names_it_without_a_place() -> None:
    with pytest.raises(InputError, match=r"^epsilon = -1"):
        privacy.profile(RandomizedResponse(1.0)).curve(-1)


def test_a_curve_chooses_its_points() -> None:
    for name in ("a pair", "noise"):
        profile = PROFILES[name]()
        found = profile.curve()
        assert 20 <= len(found) <= 60
        assert found.epsilon_nats.iloc[0] == 0
        assert found.epsilon_nats.is_monotonic_increasing
        assert (found.delta_lower <= found.delta).all()
        assert (found.delta <= found.delta_upper).all()
        assert found.delta.iloc[-1] <= 1e-12
        assert found.delta.tolist() == profile.delta(found.epsilon_nats).tolist()
    nothing = privacy.profile(RandomizedResponse(0.0)).curve()
    assert nothing[["epsilon_nats", "delta"]].to_numpy().tolist() == [[0.0, 0.0]]
