"""Laws of label proportions: against brute sums, enumeration, the program's own tables, and audits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.privacy import accountant
from p2p_sim.privacy.laws.noise import DiscreteLaplace, NoiseShares, table
from protocols import LabelProportions, LaplaceLabelProportions, SecureAggregation
from protocols.secure_aggregation import polya_weights


def brute(noise: Any, steps: int, epsilon: float) -> float:
    over, under = np.pad(noise, (0, steps)), np.pad(noise, (steps, 0))
    return float(np.maximum(over - math.exp(epsilon) * under, 0.0).sum())


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "steps"), [(1.0, 1), (1.0, 5), (0.3, 4), (3.0, 2), (20.0, 1), (0.05, 7)])
def test_discrete_laplace_is_the_sum_outcome_by_outcome(epsilon: float, steps: int) -> None:
    rate = epsilon / steps
    noise = np.exp(-rate * np.abs(np.arange(-9000, 9001))) * math.tanh(rate / 2)
    closed, whole = DiscreteLaplace(epsilon, steps), NoiseShares(epsilon, steps, 1.0)
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        found, other = closed.directions(epsilon * share)[0], whole.directions(epsilon * share)[0]
        assert brute(noise, steps, epsilon * share) == pytest.approx(found.value, rel=1e-9, abs=1e-14)
        assert other.lower <= found.upper
        assert found.lower <= other.upper
    assert closed.pure() == whole.pure() == epsilon


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
def test_shares_as_they_are_drawn_add_up_to_the_law(shares: int) -> None:
    """The integer weights of the program, convolved, are the table of the law; all shares are discrete Laplace."""
    scale = Fraction(7, 2)
    weights = polya_weights(scale, shares)
    one = np.array([float(Fraction(w, sum(weights))) for w in weights])
    total = np.ones(1)
    for present in range(1, shares + 2):
        share = np.convolve(one, one[::-1])
        total = np.convolve(total, share)
        law, lost, _ = table(float(1 / scale), present / shares)
        middle, half = len(law) // 2, min(len(law), len(total)) // 2
        assert lost < 1e-39
        assert np.allclose(total[len(total) // 2 :][:half], law[middle:][:half], rtol=1e-10, atol=1e-17)
        if present == shares:
            assert np.allclose(law[middle:][:50], math.tanh(1 / 7) * np.exp(-np.arange(50) / 3.5), rtol=1e-12)


def test_fewer_shares_hide_less_and_more_hide_more() -> None:
    curve = [NoiseShares(1.0, 2, parts).delta(0.4).value for parts in (0.25, 0.5, 0.75, 1.0, 1.25, 2.0)]
    assert all(a > b for a, b in itertools.pairwise(curve))
    short = NoiseShares(1.0, 1, 0.5)
    assert short.pure() > 1
    assert short.directions(short.pure())[0].value < 1e-39  # what the table leaves out
    assert short.epsilon_bracket(1e-6).lower <= short.epsilon(1e-6) <= short.epsilon_bracket(1e-6).upper


VIEWS = [
    "learner",
    "aggregator",
    "user",
    "wire",
    "learner+wire",
    "learner+2*user",
    "aggregator+user",
    "2*user",
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("channels", ["plain", "encrypted"])
@pytest.mark.parametrize("change", [0, 2])
def test_counts_by_enumeration(view: str, channels: str, change: int) -> None:
    people = Population.from_arrays(y=np.array([True, False, True]))
    found = privacy.enumerate_view(LabelProportions(3), people, view=view, change=change, channels=channels)
    profile = privacy.profile(LabelProportions(3), view, cluster_size=3, channels=channels)
    for epsilon in (0.0, 1.0, 5.0):
        assert found.delta(epsilon) == profile.delta(epsilon)
    assert profile.epsilon(1e-6) in (0.0, math.inf)


@pytest.mark.parametrize(
    "protocol", [LaplaceLabelProportions(1.0, 3), SecureAggregation(3), SecureAggregation(3, epsilon=1.0)]
)
def test_too_many_outcomes_are_refused_by_name(protocol: Any) -> None:
    people = Population.from_arrays(y=np.array([True, False, True]))
    with pytest.raises((InputError, RuntimeError), match=r"draw '\w.*audit instead"):
        privacy.enumerate_view(protocol, people)


def figure(protocol: Any, view: str, **options: Any) -> float:
    return privacy.profile(protocol, view, **({"cluster_size": 8} | options)).epsilon(0)


def test_who_sees_what() -> None:
    noisy, laplace = SecureAggregation(8, threshold=8, epsilon=1.0), LaplaceLabelProportions(1.0, 8)
    for view in ("learner", "aggregator", "wire", "aggregator+learner+wire"):
        assert figure(noisy, view) == 1.0
        assert figure(SecureAggregation(8), view) == math.inf
    assert figure(noisy, "7*user") == figure(noisy, "wire", channels="encrypted") == 0.0
    assert figure(noisy, "learner+user") > 1.0
    assert figure(laplace, "learner") == figure(laplace, "learner+3*user") == 1.0
    assert figure(laplace, "aggregator") == figure(laplace, "wire") == math.inf
    assert figure(laplace, "wire", channels="encrypted") == figure(laplace, "3*user") == 0.0
    assert figure(SecureAggregation(8, epsilon=1.0), "learner", cluster_size=3) == 0.0  # refused bags


def test_colluders_who_can_recover_a_key_open_the_value() -> None:
    protocol = SecureAggregation(8, threshold=6, epsilon=1.0)
    need = int(protocol.needed(8, 7))
    few, many = (figure(protocol, f"aggregator+{c}*user") for c in (need - 1, need))
    assert many > few
    assert many == figure(protocol, "aggregator+7*user") == NoiseShares(1.0, 1, 1 / 6).pure()
    assert figure(protocol, f"learner+{need}*user") < many
    sparse = SecureAggregation(50, threshold=40, degree=4, epsilon=1.0)
    assert privacy.profile(sparse, "aggregator+3*user", cluster_size=50).basis == "upper"


def test_noise_too_fine_for_a_table_is_refused_with_its_cure() -> None:
    found = privacy.profile(SecureAggregation(200, threshold=2, epsilon=0.01), "learner", cluster_size=200)
    assert found.basis == "refused"
    assert "smaller grid" in found.why


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": 0.0}, ["epsilon", "0.0", "(0, 700]"]),
        ({"epsilon": math.inf}, ["epsilon", "inf", "(0, 700]"]),
        ({"epsilon": 1.0, "grid": 0}, ["grid = 0", "from 1"]),
        ({"epsilon": 1.0, "bag_size": 0}, ["bag_size = 0", "from 1"]),
        (
            {"epsilon": 0.5, "grid": 20_000},
            ["with grid = 20000", "give a grid of at most 10,000, or an epsilon"],
        ),
        ({"epsilon": 1e-7}, ["epsilon = 1e-07 with grid = 1", "give an epsilon of at least 5e-05"]),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused(wrong: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        LaplaceLabelProportions(**wrong)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    ("kind", "view"), [(LaplaceLabelProportions, "learner"), (SecureAggregation, "learner+user")]
)
def test_calibrated_noise_keeps_its_promise(kind: Any, view: str) -> None:
    found = privacy.calibrate(kind, vary="epsilon", view=view, cluster_size=16, epsilon=0.5, delta=1e-6)
    again = privacy.profile(found.protocol, view, cluster_size=16)
    assert again.epsilon_bracket(1e-6).upper <= 0.5 * (1 + 1e-9)
    assert again.epsilon(1e-6) > 0.499


def test_the_worst_cluster_is_the_one_with_the_smallest_bag() -> None:
    people = Population.from_arrays(y=np.zeros(40, np.bool_), cluster=np.repeat([0, 1, 2], [8, 12, 20]))
    protocol = SecureAggregation(8, threshold=6, epsilon=1.0)
    worst = privacy.profile(protocol, population=people).delta(0.3)
    assert worst == privacy.profile(protocol, cluster_size=8).delta(0.3)
    assert worst > privacy.profile(protocol, cluster_size=12).delta(0.3)  # one bag of 12


CASES: list[tuple[Any, str, dict[str, float]]] = [
    (LabelProportions(4), "learner", {"delta": 0.01}),
    (LaplaceLabelProportions(1.0, 4, 3), "learner", {"delta": 0.01}),
    (LaplaceLabelProportions(1.0, 4, 3), "learner", {"epsilon": 0.3}),
    (LaplaceLabelProportions(1.0, 4), "aggregator", {"delta": 0.01}),
    (SecureAggregation(4, threshold=3, epsilon=1.0, grid=2), "learner", {"epsilon": 0.3}),
    (SecureAggregation(4, threshold=3), "user", {"epsilon": 0.3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "view", "point"), CASES)
def test_audits_do_not_exceed_the_law(protocol: Any, view: str, point: dict[str, float]) -> None:
    trials = 1500 if isinstance(protocol, SecureAggregation) else 20_000
    found = privacy.audit(protocol, view, cluster_size=5, trials=trials, confidence=0.9999, seed=1, **point)
    assert not found.failed
    assert found.law is not None
    assert found.statistic == "exact likelihood ratio"


@pytest.mark.parametrize("claimed", [0.5, 2.0])
def test_another_noise_than_was_said_is_found(claimed: float) -> None:
    """A twin of the test above, with half or twice the noise (a scale turned upside down would be worse)."""
    twin, said = LaplaceLabelProportions(1.0, 4), LaplaceLabelProportions(claimed, 4)
    options = {"cluster_size": 4, "trials": 20_000, "confidence": 0.9999, "seed": 1, "epsilon": 0.2}
    found = privacy.audit(twin, against=said, false_alarm=1e-9, **options)  # type: ignore[arg-type]
    assert found.law is not None
    assert found.law.rejected
    assert (found.verdict == "violated") == (claimed < 1)


def test_promises_say_for_whom_they_hold() -> None:
    def holds(protocol: Any, view: str) -> bool:
        return bool(accountant.of(protocol, view, [8], 1e-6, True)[0]["holds"])

    assert holds(LaplaceLabelProportions(1.0), "learner")
    assert not holds(LaplaceLabelProportions(1.0), "aggregator")
    assert holds(SecureAggregation(8, epsilon=1.0), "aggregator")
    assert not holds(SecureAggregation(8, epsilon=1.0), "learner+user")
    assert not holds(SecureAggregation(8), "learner")
    assert accountant.of(LabelProportions(8), "learner", [8], 1e-6, True) == []


@pytest.mark.parametrize("faults", [["drop=0.1"], ["loss=0.1", "late=0.01"], ["duplicate=0.5"]])
def test_under_faults_only_the_shares_that_must_be_there_count(faults: list[str]) -> None:
    protocol = SecureAggregation(8, threshold=6, epsilon=1.0)

    def under(view: str, **options: Any) -> Any:
        return privacy.profile(protocol, view, cluster_size=8, faults=faults, **options)

    assert under("learner").basis == "upper"
    assert under("learner").epsilon(0) == 1.0  # 6 shares are the whole noise
    assert under("learner").delta(0.5) > privacy.profile(protocol, "learner", cluster_size=8).delta(0.5)
    assert under("learner+user").delta(0.5) == NoiseShares(1.0, 1, 5 / 6).delta(0.5).value
    assert under("user").epsilon(0) == 0.0
    laplace = privacy.profile(LaplaceLabelProportions(1.0, 8), "learner", cluster_size=8, faults=faults)
    assert (laplace.basis, laplace.epsilon(0)) == ("upper", 1.0)
