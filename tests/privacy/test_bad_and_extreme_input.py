"""Bad input, extreme input, and what must hold for every parameter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.laws.finite import Atoms, Nothing
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
from p2p_sim.privacy.laws.noise import Gaussian, Laplace
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.laws.shuffled_categories import Blanket, every_composition, shuffled_response
from protocols import PeerToPeer, RandomizedResponse

VIEWS = ("learner", "user", "learner+user", "wire", "learner+wire")


def of(
    alpha: float, view: str = "learner", theta: float = 1.0, n: int = 12, **more: object
) -> privacy.PrivacyProfile:
    return privacy.profile(PeerToPeer(alpha, theta), view, cluster_size=n, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Unknown(Protocol):
    say = Message("user", "learner", "says a bit", y=bool)
    copy = Message("learner", "auditor", "passes the bits on", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.say(y=me.y)

    def learner(self, me: Party) -> Rounds:
        said = yield self.say.receive()
        yield self.copy(y=said.y)

    def auditor(self, me: Party) -> Rounds:
        yield self.copy.receive()


@pytest.mark.parametrize("view", VIEWS)
def test_the_ends_of_alpha(view: str) -> None:
    assert of(0.5, view).epsilon(1e-6) == 0
    assert of(0.5, view).delta(0) == 0
    assert of(0.0, view).epsilon(1e-9) == math.inf
    assert of(0.0, view).epsilon(0) == math.inf
    assert of(0.0, view).delta(math.inf) > 0
    assert of(0.1, view).delta(math.inf) == 0


@pytest.mark.parametrize("view", VIEWS)
def test_the_ends_of_delta(view: str) -> None:
    profile = of(0.1, view)
    assert profile.epsilon(1) == profile.epsilon_bracket(1).upper == 0
    pure = profile.epsilon(0)
    assert 0 < pure <= math.log(9) * (1 + 1e-12)
    assert profile.delta(pure) == 0
    assert profile.epsilon(1e-300) <= pure
    assert profile.epsilon(1e-6) <= profile.epsilon(1e-9) <= profile.epsilon(1e-300)
    assert profile.epsilon(0.999) == 0
    assert 0 <= profile.delta(0) <= 1


@pytest.mark.parametrize("bad", [math.nan, -1e-9, "x", None, True])
def test_numbers_that_are_none(bad: object) -> None:
    for call in (of(0.1).delta, of(0.1).epsilon, of(0.1).directions, of(0.1).epsilon_bracket):
        with pytest.raises(InputError, match="must be a number, at least 0"):
            call(bad)  # type: ignore[arg-type]


def test_pure_epsilon_is_the_largest_log_ratio() -> None:
    for n in (2, 5, 11):
        pure = of(0.2, n=n).epsilon(0)
        assert of(0.2, n=n).delta(pure * 0.9999) > 0
        assert of(0.2, n=n).epsilon(1e-25) == pytest.approx(pure, rel=1e-6)


def test_small_clusters() -> None:
    assert of(0.1, n=1).epsilon(0) == pytest.approx(math.log(9))
    assert of(0.1, n=1).delta(0.5) == pytest.approx(LocalResponse.flipping(0.1).delta(0.5).value)
    assert of(0.1, "learner", 0.25, n=1).delta(0) == pytest.approx(0.2)
    assert of(0.1, "wire", 0.25, n=1).delta(0) == pytest.approx(0.2)
    assert of(0.1, "learner+user", n=2).delta(0) == pytest.approx(0.8 * (1 - 1 / 2 * 1 / 2))
    with pytest.raises(InputError, match="0 users beside"):
        of(0.1, "user", n=1)


def test_tiny_theta() -> None:
    profile = of(0.1, "learner", 1e-12, n=50)
    assert 0 < profile.delta(0.1) < 1e-9
    assert profile.epsilon(1e-6) == 0


@pytest.mark.parametrize("epsilon0", [40.0, 800.0])
def test_large_local_budgets(epsilon0: float) -> None:
    profile = privacy.profile(RandomizedResponse(epsilon0))
    assert profile.epsilon(1e-6) == pytest.approx(epsilon0, rel=1e-6)
    assert profile.epsilon(0) == epsilon0
    assert profile.delta(epsilon0 / 2) == pytest.approx(1.0)
    assert profile.delta(epsilon0 + 1) == 0
    assert LocalResponse(epsilon0, 5).delta(1.0).value <= 1
    law = ShuffledBits.of(50, epsilon0)
    assert law.delta(1.0).value == pytest.approx(1.0, abs=1e-6)
    assert Blanket(50, epsilon0, 3).delta(1.0).value <= 1
    assert of(1 / (1 + math.exp(min(epsilon0, 700))), n=30).delta(1.0) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "cluster_size = None"),
        ({"cluster_size": 0}, "cluster_size = 0"),
        ({"cluster_size": 2.5}, "cluster_size = 2.5"),
        ({"cluster_size": 10**12}, "from 1 to 10,000,000,000"),
        ({"cluster_size": 9, "view": ""}, "view = ''"),
        ({"cluster_size": 9, "view": "learner+learner"}, "each party once"),
        ({"cluster_size": 9, "view": "0*user"}, "at least one"),
        ({"cluster_size": 9, "view": "learner+9*user"}, "8 users beside"),
        ({"cluster_size": 9, "composition": 9}, "give 0 to 8"),
        ({"cluster_size": 9, "composition": -1}, "composition = -1"),
        ({"cluster_size": 9, "composition": "best"}, "must be 'worst'"),
        ({"cluster_size": 9, "composition": 8, "view": "learner+user"}, "give 0 to 7"),
        ({"cluster_size": 9, "channels": "open"}, "channels = 'open'"),
        ({"cluster_size": 9, "users": "evil"}, "users = 'evil'"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("*", r"\*")):
        privacy.profile(PeerToPeer(0.1), **arguments)  # type: ignore[arg-type]


def test_a_view_without_a_law_is_refused_with_advice() -> None:
    for profile in (privacy.profile(Unknown(), "auditor"), privacy.profile(Unknown(), "wire+auditor")):
        assert profile.basis == "refused"
        assert "enumerate_view" in profile.why
        for ask in (profile.delta, profile.epsilon, profile.directions, profile.delta_bracket):
            with pytest.raises(privacy.RefusedError, match="audit"):
                ask(0.1)


def test_users_who_deviate_see_the_local_budget() -> None:
    for view in ("user", "learner+user", "learner+3*user"):
        assert of(0.1, view, users="deviating").epsilon(0) == pytest.approx(math.log(9))
        assert of(0.1, view, users="deviating").delta(0.5) > of(0.1, view).delta(0.5)
    assert of(0.1, users="deviating").delta(0.5) == of(0.1).delta(0.5)


def test_randomized_response_views() -> None:
    for labels in (2, 7):
        protocol = RandomizedResponse(1.0, labels)
        full = privacy.profile(protocol).delta(0.3)
        for view in ("learner", "learner+3*user", "wire", "learner+wire"):
            assert privacy.profile(protocol, view).delta(0.3) == full
        assert privacy.profile(protocol, "wire", channels="encrypted").delta(0) == 0
        assert privacy.profile(protocol, "user").epsilon(0) == 0
    assert privacy.profile(RandomizedResponse.flipping(0.25)).epsilon(0) == pytest.approx(
        math.log(3), rel=1e-15
    )
    assert privacy.profile(RandomizedResponse(math.inf)).epsilon(0.5) == math.inf


def test_the_worst_cluster_of_a_population() -> None:
    population = Population.from_arrays(y=np.arange(40) % 2 == 0, cluster=np.repeat([0, 1, 2], [4, 10, 26]))
    protocol = PeerToPeer(0.2, 0.5)
    whole = privacy.profile(protocol, population=population)
    each = [privacy.profile(protocol, cluster_size=n) for n in (4, 10, 26)]
    assert whole.epsilon(1e-4) == max(p.epsilon(1e-4) for p in each)
    assert whole.delta(0.2) == max(p.delta(0.2) for p in each)
    table = privacy.by_cluster(protocol, "learner+5*user", population)
    assert list(table) == ["smallest", "median", "largest"]
    assert table["smallest"].view == "learner+3*user"
    assert table["median"].delta(0.1) == privacy.profile(protocol, "learner+5*user", cluster_size=10).delta(
        0.1
    )
    with pytest.raises(InputError, match="largest cluster has 26"):
        privacy.profile(protocol, "learner+26*user", population=population)
    with pytest.raises(InputError, match="one of the two"):
        privacy.profile(protocol, cluster_size=4, population=population)


def test_finite_atoms() -> None:
    law = Atoms.of([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)])
    local = LocalResponse.flipping(0.25)
    assert law.delta(0.3).value == pytest.approx(local.delta(0.3).value, rel=1e-14)
    assert law.epsilon(1e-6) == pytest.approx(local.epsilon(1e-6), rel=1e-12)
    assert law.pure() == pytest.approx(math.log(3))
    assert Atoms.of([1.0, 0.0], [0.0, 1.0]).epsilon(0.5) == math.inf
    mixed = Mixture(((0.5, law), (0.5, Nothing())))
    assert mixed.delta(0.3).value == pytest.approx(Scaled(0.5, local).delta(0.3).value)
    assert mixed.epsilon(1e-3) == pytest.approx(Scaled(0.5, local).epsilon(1e-3), rel=1e-12)
    lopsided = Mixture(
        (
            (0.5, Atoms.of([0.5, 0.5, 0.0], [0.5, 0.25, 0.25])),
            (0.5, Atoms.of([0.5, 0.25, 0.25], [0.5, 0.5, 0.0])),
        )
    )
    assert lopsided.delta(0.0).value == pytest.approx(0.25)
    assert lopsided.delta(1.0).value == pytest.approx(0.125)  # not 0.25: each direction is summed first
    with pytest.raises(InputError, match="sum to 1"):
        Atoms.of([0.5, 0.4], [0.5, 0.5])


@pytest.mark.parametrize(
    "law", [Laplace(1.0), Laplace(0.01), Gaussian(2.0), Gaussian(0.05), Gaussian(1e3), LocalResponse(2.0, 4)]
)
def test_noise_is_consistent(law: Laplace) -> None:
    for delta in (0.3, 1e-6, 1e-100):
        low, value, high = law.epsilon_bracket(delta)
        assert low <= value <= high
        if value:
            assert law.delta(value).value == pytest.approx(delta, rel=1e-6, abs=1e-12)
    for call in (
        lambda: Laplace(0.0),
        lambda: Gaussian(math.nan),
        lambda: Laplace(1.0, -1.0),
        lambda: LocalResponse(-1.0),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize(
    ("n", "k", "epsilon0"), [(1, 3, 1.0), (4, 3, 2.0), (6, 4, 1.0), (12, 3, 0.5), (8, 2, 1.5)]
)
def test_blanket_is_never_below_the_exact_value(n: int, k: int, epsilon0: float) -> None:
    exact, blanket = every_composition(n, epsilon0, k), Blanket(n, epsilon0, k)
    for epsilon in (0.0, 0.1 * epsilon0, 0.5 * epsilon0, 0.9 * epsilon0):
        assert exact.delta(epsilon).value <= blanket.delta(epsilon).value
    if k == 2:
        bits = ShuffledBits.of(n, epsilon0)
        assert exact.delta(0.3).value == pytest.approx(bits.delta(0.3).value, rel=1e-10)
    assert shuffled_response(500, 1.0, 5).basis == "upper"
