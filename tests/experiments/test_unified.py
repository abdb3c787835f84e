"""Utility against advantage, Unified 2023: verdicts, and advantages by independent formulas."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from experiments import _proportions, unified_figure1, unified_figure2
from experiments._common import read_csv
from tests.experiments import quick

SCRIPTS = (unified_figure1, unified_figure2)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return quick.results(SCRIPTS, tmp_path_factory.mktemp("results"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_claim_has_a_verdict_and_a_reason(told, script):
    claims = quick.claims(told, script)
    assert len(claims) >= 4
    bounds = [
        claim["verdict"] for claim in claims if "exceeds" in claim["says"] or "formulas" in claim["says"]
    ]
    assert bounds == ["reproduced"] * 2


def eta() -> np.ndarray:
    return _proportions.examples("census-income", 2048, 3000).eta


def test_randomized_response_has_the_advantage_of_theorem_3_7(told):
    rows = [row for row in read_csv(told["out"] / "unified_figure1.csv") if row["mechanism"] == "RR"]
    assert len(rows) == 3
    for row in rows:
        flip = 1 / (1 + math.exp(float(row["parameter"])))
        gain = np.where((eta() >= flip) & (eta() <= 1 - flip), np.minimum(eta(), 1 - eta()) - flip, 0).mean()
        assert float(row["advantage"]) == pytest.approx(gain, abs=1e-12)
        assert float(row["log_odds"]) == pytest.approx(float(row["parameter"]))


def test_pairs_have_the_advantage_of_enumeration(told):
    row = next(
        row
        for row in read_csv(told["out"] / "unified_figure1_runs.csv")
        if (row["mechanism"], row["crowd"], row["seed"]) == ("LLP", "2", "0")
    )
    stream = _proportions.random_words.stream("experiments", "bags", 0)
    order = _proportions.random_words.order(_proportions.random_words.words(0, stream, 0, 2048))
    gains = []
    for pair in eta()[order].reshape(-1, 2):
        right = dict.fromkeys(((i, total) for i in (0, 1) for total in range(3)), (0.0, 0.0))
        for labels in itertools.product((0, 1), repeat=2):
            chance = math.prod(p if label else 1 - p for p, label in zip(pair, labels, strict=True))
            for i in (0, 1):
                zero, one = right[i, sum(labels)]
                right[i, sum(labels)] = (zero + chance * (1 - labels[i]), one + chance * labels[i])
        won = sum(max(each) for each in right.values()) / 2
        gains.append(won - np.maximum(pair, 1 - pair).mean())
    assert float(row["advantage"]) == pytest.approx(np.mean(gains), abs=1e-9)


def test_bounds_and_gaps(told):
    for name in ("unified_figure1", "unified_figure2"):
        for row in read_csv(told["out"] / f"{name}.csv"):
            assert (
                float(row["advantage"]) <= float(row["upper_bound"]) + 6 * float(row["advantage_se"]) + 1e-12
            )
    rows = [
        {key: value if key in ("data", "mechanism", "edge") else float(value) for key, value in row.items()}
        for row in read_csv(told["out"] / "unified_figure2.csv")
    ]
    gaps = unified_figure2.gaps(rows)
    assert list(gaps) == [1, 4, 16]
    assert gaps[1][0] > 0.1  # noise of ε = 0.5 on single labels hides most


def test_a_curve_is_read_between_its_points():
    rr = [
        {
            "data": "d",
            "mechanism": "RR",
            "advantage": a,
            "auc": u,
            "auc_se": 0.0,
            "log_loss": 1 - u,
            "log_loss_se": 0.0,
        }
        for a, u in ((0.0, 0.5), (0.02, 0.7))
    ]
    point = rr[0] | {"mechanism": "LLP", "advantage": 0.01, "auc": 0.65, "auc_se": 0.01, "log_loss": 0.3}
    beyond = point | {"advantage": 0.03}
    assert unified_figure1.ahead([*rr, point, beyond], "d", "LLP", "auc") == [
        (0.01, pytest.approx(0.05), 0.01)
    ]
    ((_, gain, _),) = unified_figure1.ahead([*rr, point], "d", "LLP", "log_loss")
    assert gain == pytest.approx(0.1)  # lower is better


def row(
    mechanism: str, advantage: float, auc: float, log_odds: float, parameter: float = 1.0
) -> dict[str, Any]:
    return {
        "data": "census-income", "mechanism": mechanism, "parameter": parameter, "crowd": 4, "certain": 0.1,
        "ratio": 1.0, "advantage": advantage, "auc": auc, "auc_se": 0.01, "log_odds": log_odds,
        "trials": 10, "constant": 0, "edge": "",
    }  # fmt: skip


NOISY = [row("RR", 0.001, 0.6, 1.0), row("RR", 0.3, 0.9, 4.0, 4.0)]


@pytest.mark.parametrize(
    ("gains", "verdict", "why"),
    [((0.1, 0.1), "reproduced in shape", "asked for"), ((0.1, 0.0, 0.0), "not comparable", "debiases gradients"),
     ((0.0, 0.0), "not comparable", "stand-in"), ((0.1, -0.1), "not comparable", "asked for")],
)  # fmt: skip
def test_one_bag_size_of_many_decides_nothing(gains, verdict, why):
    bags = [row("LLP", 0.1, 0.6 + 0.3 * 0.099 / 0.299 + gain, math.inf) for gain in gains]
    (claim,) = unified_figure1._higher([*NOISY, *bags], "census-income", "auc")
    assert claim.verdict == verdict
    assert why in claim.why


def test_a_private_mechanism_without_a_finite_factor_counts():
    rows = [*NOISY, row("LLP", 0.1, 0.7, math.inf), row("shuffle", 0.1, 0.7, 2.0)]
    assert unified_figure1._odds(rows, "census-income").verdict == "reproduced"
    rows[-1]["log_odds"] = math.inf
    assert unified_figure1._odds(rows, "census-income").verdict == "not reproduced"


def test_where_nothing_is_learnt_an_advantage_far_below_says_nothing():
    claim = unified_figure1._far_below(NOISY, "census-income")
    assert claim.verdict == "reproduced in shape"
    idle = [each | {"auc": 0.53} for each in NOISY]
    assert unified_figure1._far_below(idle, "census-income").verdict == "not comparable"
    near = [each | {"advantage": 0.2} for each in NOISY]
    assert unified_figure1._far_below(near, "census-income").verdict == "not comparable"


@pytest.mark.parametrize(
    ("better", "worse", "verdict"),
    [(0, 2, "reproduced"), (0, 0, "not comparable"), (1, 3, "reproduced in shape"), (2, 2, "not reproduced")],
)
def test_whether_nothing_is_better_than_randomized_response(better, worse, verdict):
    assert unified_figure1._none_better(better, worse) == verdict


def test_a_gap_that_does_not_shrink_on_stand_in_data_is_not_comparable():
    rows = [
        {"mechanism": "Laplace LLP", "parameter": parameter, "crowd": size, "auc": auc, "auc_se": 0.01}
        for size in (1, 16)
        for parameter, auc in ((0.5, 0.6), (8.0, 0.8))
    ]
    assert unified_figure2._shrinks(rows).verdict == "not comparable"
    rows[2]["auc"] = 0.79
    assert unified_figure2._shrinks(rows).verdict == "reproduced in shape"


def trial(
    seed: int, auc: tuple[float, ...], log_loss: tuple[float, ...], constant: int = -1
) -> dict[str, Any]:
    """A trial; ``constant``: the place of the penalty whose model is constant."""
    made = dict(zip(_proportions.KEYS, ("d", 10, "RR", 1.0, 1), strict=True)) | {"seed": seed, "exact": True}
    for each, (penalty, area, loss) in enumerate(zip(_proportions.PENALTIES, auc, log_loss, strict=True)):
        made |= {f"auc_{penalty:g}": area, f"log_loss_{penalty:g}": loss}
        made[f"constant_{penalty:g}"] = each == constant
    return made | {
        "advantage": 0.1, "upper_bound": 0.2, "by_posterior_se": 0.01, "violations": 0, "claims_exceeded": 1,
        "guessed": 0.1, "guessed_lower": 0.05, "guessed_upper": 0.15, "ratio": 1.0, "certain": 0.0, "log_odds": 1.0,
    }  # fmt: skip


def test_each_utility_has_the_penalty_of_its_best_mean_and_ends_and_constants_are_told():
    runs = [
        trial(0, (0.6, 0.7, 0.8, 0.7, 0.6), (0.5, 0.4, 0.3, 0.2, 0.1), constant=2),
        trial(1, (0.9, 0.7, 0.8, 0.7, 0.6), (0.5, 0.4, 0.3, 0.2, 0.1)) | {"advantage": 0.3},
    ]
    (row,) = _proportions.summary(runs)
    assert (row["penalty"], row["auc"], row["constant"]) == (1e3, pytest.approx(0.8), 1)
    assert (row["penalty_log_loss"], row["log_loss"], row["edge"]) == (1e5, pytest.approx(0.1), "log_loss")
    assert (row["violations"], row["claims_exceeded"], row["above"], row["guesses_agree"]) == (0, 2, 1, 1)
    assert unified_figure1.fits([row], "d", "auc") == (
        "1 of 2 models of the best AUC are constant; the best penalty for AUC is an end of those tried at no point"
    )
    assert "an end of those tried at RR 1" in unified_figure1.fits([row], "d", "log_loss")
    assert unified_figure1.bounds([row], "there").verdict == "not reproduced"
    assert unified_figure1.agrees([row], "there").where == "this project: formulas beside there"


def test_randomized_response_of_a_small_epsilon_is_learnt_from():
    """Its fits ended at their start, constant, where a debiased share was below 0."""
    of = _proportions.examples("census-income", 2048, 3000)
    tried = [_proportions._utility(_proportions.response(0.25), of, seed) for seed in range(3)]
    assert not any(each[f"constant_{penalty:g}"] for each in tried for penalty in (10.0, 100.0))
