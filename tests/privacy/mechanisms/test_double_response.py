"""What double randomized response tells: against enumeration of the program, the papers' bounds, and audits."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.check import check
from p2p_sim.core import Party, Rounds
from p2p_sim.privacy.bounds import release2023
from p2p_sim.privacy.mechanisms import double_response as room
from protocols import DoubleResponse
from protocols.dummy_features import uniform_response
from protocols.generators import Prototypes

RATIOS = (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(7, 2))
EPSILONS = (0.0, 0.1, 0.7, 1.3, 2.0, 3.0)

SPACES = [  # lambda, generator, labels, truth
    (0.5, "3*0;1*1|1*0;3*1", 2, "2*0;1*1|1*0;4*1"),
    (0.25, "0|1", 2, "3*0;1*1|1*0;3*1"),
    (0.5, "3*0;1*1|1*0;3*1", 2, "3*0;1*1|1*0;3*1"),
    (0.75, "0,0|0,1|1,1", 3, "0,0;0,1|0,1;2*1,1|0,0;1,1"),
    (0.5, "0|1", 2, "0;5|1"),  # the generator never draws 5
]


def one(label: int, labels: int, x: Any = None) -> Population:
    y = np.array([label], np.uint8)
    return Population.from_arrays(y=y if labels > 2 else y > 0, x=x)


@pytest.mark.slow
@pytest.mark.parametrize(("lam", "generator", "labels", "truth"), SPACES)
def test_the_law_equals_the_enumerated_program(lam: float, generator: str, labels: int, truth: str) -> None:
    """The worst of all pairs of labels, whose features the program draws by the true law."""
    protocol = DoubleResponse(lam, generator, labels, truth)
    pairs = itertools.combinations(range(labels), 2)
    views = [privacy.enumerate_view(protocol, one(a, labels), to=b) for a, b in pairs]
    law = privacy.profile(protocol)
    assert law.basis == "exact"
    for ratio in RATIOS:
        exact = float(max(view.delta_at(ratio) for view in views))
        assert law.delta(math.log(ratio)) == pytest.approx(exact, abs=1e-14)
    pure = max(view.pure_epsilon for view in views)
    assert law.epsilon(0.0) == pytest.approx(pure, rel=1e-12)


@pytest.mark.parametrize("x", [[[0.0]], [[1.0]], [[9.0]]], ids=["of label 0", "of label 1", "of none"])
def test_public_features_tell_nothing_whatever_the_generator(x: Any) -> None:
    """Definition 4.2: the same features in both worlds.  All that is told is the label."""
    protocol = DoubleResponse(0.5, "3*0;1*1|1*0;3*1")
    truth, law = privacy.enumerate_view(protocol, one(0, 2, x)), privacy.profile(protocol)
    assert law.basis == "exact"
    for ratio in RATIOS:
        assert law.delta(math.log(ratio)) == pytest.approx(float(truth.delta_at(ratio)), abs=1e-14)
    assert law.epsilon(0.0) == pytest.approx(math.log(3))
    assert any("public" in text for text in law.assumes)


def space(seed: int, k: int, m: int) -> tuple[Any, Any, Prototypes, Prototypes]:
    """Weights of a true law and of a generator (k, m), and both as generators."""
    rng = np.random.default_rng(seed)
    both = [rng.integers(1, 50, (k, m)) for _ in range(2)]
    tables = [
        Prototypes([[(int(w), [float(i)]) for i, w in enumerate(row)] for row in side]) for side in both
    ]
    true, made = (side / side.sum(axis=1, keepdims=True) for side in both)
    return true, made, tables[0], tables[1]


@pytest.mark.parametrize(("seed", "k", "m"), [(1, 2, 3), (2, 3, 5), (3, 5, 2)])
@pytest.mark.parametrize("lam", [0.05, 0.6])
def test_the_law_is_the_worst_pair_of_the_table_and_below_the_paper_s_bounds(
    seed: int, k: int, m: int, lam: float
) -> None:
    true, made, truth, generator = space(seed, k, m)
    protocol = DoubleResponse(lam, generator, k, truth)
    law, table = privacy.profile(protocol), release2023.mechanism2_law(true, made, lam).reshape(k, -1)
    for epsilon in EPSILONS:
        worst = max(
            np.maximum(table[a] - math.exp(epsilon) * table[b], 0).sum()
            for a, b in itertools.permutations(range(k), 2)
        )
        assert law.delta(epsilon) == pytest.approx(worst, abs=1e-13)
    printed, sharper = room.theorems(protocol, "learner", [], 1e-6)
    assert law.epsilon(1e-6) <= sharper["epsilon"] <= printed["epsilon"] < math.inf
    assert (printed["basis"], sharper["basis"]) == ("claimed", "upper")
    gap = max(release2023.renyi_divergence(p, q, 3.0) for p, q in zip(true, made, strict=True))
    exact = release2023.exact_divergence(table.reshape(k, m, k), 3.0)
    bound = release2023.theorem7_1_sharper(3.0, lam, k, gap)
    assert exact.epsilon <= bound.epsilon
    assert room.divergences(protocol) == pytest.approx(
        [max(map(release2023.renyi_divergence, true, made, [order] * k)) for order in room.ORDERS], rel=1e-9
    )


def test_a_perfect_generator_is_two_responses() -> None:
    """Exactly where features tell the label; otherwise an upper bound."""
    telling, vague = (
        DoubleResponse(0.4, "0|1|2", 3, "0|1|2"),
        DoubleResponse(0.4, "0;1|1;2|2", 3, "0;1|1;2|2"),
    )
    endless = DoubleResponse(0.4, "gaussian:2", 3, "gaussian:2")
    bound = privacy.profile(endless)
    assert bound.basis == "upper"
    for epsilon in EPSILONS:
        assert privacy.profile(telling).delta(epsilon) == pytest.approx(bound.delta(epsilon), abs=1e-14)
        assert privacy.profile(vague).delta(epsilon) <= bound.delta(epsilon) + 1e-14
    assert bound.epsilon(0.0) == pytest.approx(2 * math.log(1 + 0.6 * 3 / 0.4))
    assert privacy.profile(vague).delta(1.0) < bound.delta(1.0) - 0.01


def test_features_that_are_released_can_cost_everything() -> None:
    """Theorem 6.1's point, for features that no generator draws; and with lambda 0 the label is told as it is."""
    rare = DoubleResponse(0.5, "0|0", truth="99*0;1*7|0")
    assert privacy.profile(rare).epsilon(0.0) == math.inf
    assert privacy.profile(rare).delta(50.0) == pytest.approx(0.005)
    assert [promise["epsilon"] for promise in room.theorems(rare, "learner", [], 1e-6)] == [math.inf] * 2
    for truth in ("public", "0;1|1"):
        assert privacy.profile(DoubleResponse(0.0, "0|1", truth=truth)).delta(50.0) == pytest.approx(
            1, abs=0.51
        )
        assert privacy.profile(DoubleResponse(0.0, "0|1", truth=truth)).epsilon(0.1) == math.inf
        assert privacy.profile(DoubleResponse(1.0, "0|1", truth=truth)).delta(0.0) == 0


@pytest.mark.parametrize(
    ("generator", "truth", "words"),
    [
        ("0|1", "unknown", ["truth = 'unknown'", "nothing is promised", "public"]),
        ("gaussian:2", "gaussian:2,", []),
        ("0|1", "gaussian:1", ["too many values", "the same for both"]),
    ],
)
def test_what_is_not_known_is_refused(generator: str, truth: str, words: list[str]) -> None:
    if not words:
        with pytest.raises(InputError, match="whole number"):
            DoubleResponse(0.5, generator, truth=truth)
        return
    protocol = DoubleResponse(0.5, generator, truth=truth)
    found = privacy.profile(protocol)
    assert found.basis == "refused"
    assert all(word in found.why for word in words), found.why
    assert privacy.profile(protocol, "user").delta(0.0) == 0
    assert privacy.profile(protocol, "wire", channels="encrypted").delta(0.0) == 0
    assert room.local_epsilon(protocol) is None
    assert not any(promise["holds"] for promise in room.theorems(protocol, "learner", [], 1e-6))
    assert privacy.profile(DoubleResponse(1.0, generator, truth=truth)).delta(0.0) == 0


@pytest.mark.slow
def test_tables_that_are_too_large_are_refused() -> None:
    rows = [[(1, [float(label)]), (1, [float(label + 256)])] for label in range(256)]
    found = privacy.profile(DoubleResponse(0.5, Prototypes(rows), 256, Prototypes(rows)))
    assert found.basis == "refused"
    assert "50,135,040 outcomes" in found.why


def test_a_lower_bound_of_a_divergence_is_no_promise() -> None:
    lower = release2023.theorem7_2(3.0, 0.4, 4)
    with pytest.raises(InputError, match="promises nothing"):
        release2023.approximate(lower, 1e-6)
    upper = release2023.label_divergence(3.0, 0.4, 4)
    assert release2023.approximate(upper, 1e-6).epsilon == pytest.approx(upper.epsilon + math.log(1e6) / 2)
    assert not release2023.approximate(upper, 0.0).holds
    assert not release2023.approximate(release2023.label_divergence(3.0, 0.0, 4), 1e-6).holds


@dataclass(frozen=True)
class OfHerOwn(DoubleResponse):
    """Replaces features by generated ones of the user's own label, as a realistic generator seems to ask for."""

    def user(self, me: Party) -> Rounds:
        own = self._own(me)
        said = uniform_response(me, self.lam, self.labels)
        other = self.model().drawn(me.draw, "features", me.y.view(np.uint8))
        shown = np.where(me.draw.bernoulli("new features", self.lam)[:, None], other, own)
        yield self.report(x=shown, y=said)


GENERATOR, TRUTH = "5*0;1*1|1*0;5*1|1*0;1*1", "4*0;1*1|1*0;4*1|1*0;2*1"


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = DoubleResponse(0.6, GENERATOR, 3, TRUTH)
    audit = privacy.audit(protocol, delta=1e-3, trials=20_000, seed=1)
    assert audit.verdict == "consistent"
    assert audit.exact is not None
    assert audit.exact - 0.25 < audit.lower < audit.exact
    broken = privacy.audit(
        OfHerOwn(0.6, GENERATOR, 3, TRUTH), delta=1e-3, trials=20_000, seed=1, against=protocol
    )
    assert broken.verdict == "violated"


@dataclass(frozen=True)
class Marked(DoubleResponse):
    """Features that are the user's own are marked with her label."""

    def _own(self, me: Party) -> Any:
        return super()._own(me) + me.y.view(np.uint8)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("width", [2, 5])
def test_public_features_are_made_up_for_small_worlds(width: int) -> None:
    """``check`` and audits had no features, so that they refused the default truth."""
    protocol = DoubleResponse(0.4, f"gaussian:{width}")
    checked = check(protocol)
    assert checked.passed
    assert checked.columns == ("me.x",)
    options: dict[str, Any] = {"epsilon": 1.0, "trials": 2_000, "seed": 1}
    audit = privacy.audit(protocol, **options)
    assert audit.verdict == "consistent"
    assert any("made-up features of all users of a world are known" in text for text in audit.assumes)
    broken = privacy.audit(Marked(0.4, f"gaussian:{width}"), against=protocol, **options)
    assert broken.verdict == "violated"
