"""Dominance, against every pair; and which row is recommended, on made-up rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p_sim.comparison import pareto_front, promises, recommendation

ASKED = promises.read("epsilon=1", ["user<=2"])
NAMES = [
    "epsilon_nats[learner]",
    "epsilon_nats[user]",
    "epsilon_nats[worst party]",
    "bytes[a user]",
    "seconds[network]",
]


def made_up(number: int, **other: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "protocol": f"p{number}", "status": "fits", "parameter": "epsilon", "value": 1.0, "bound_by": "learner",
        "utility": 0.9, "utility_error": 0.01, "utility[constant]": 0.5, "seeds": 5, "test_rows": 10**6,
        "basis[learner]": "exact", "basis[user]": "exact", "worst_party": "learner", "attack_basis": "exact",
        "advantage_lower": 0.0, "advantage_upper": 0.0, "messages[a user]": 1.0, "note": "",
        "trust": "nobody", "metric": "accuracy",
        **dict.fromkeys(NAMES, 1.0),
    }  # fmt: skip
    return {**row, **other}


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_what_no_other_row_beats(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(40):
        figures = {name: float(draw.integers(1, 4)) for name in NAMES}
        rows.append(made_up(number, **figures, utility=float(draw.integers(1, 4)) / 4))
    found = pareto_front.marked(rows, ASKED)

    def better(one: dict[str, Any], other: dict[str, Any]) -> bool:
        pairs = [(one[name], other[name]) for name in NAMES] + [(-one["utility"], -other["utility"])]
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    by_name = {row["protocol"]: row for row in rows}
    for row in found:
        beaten = [each["protocol"] for each in rows if better(each, by_name[row["protocol"]])]
        assert row["status"] == ("dominated" if beaten else "front")
        assert row["dominated_by"] in (beaten or [""])
    assert {row["status"] for row in found} == {"front", "dominated"}


def test_calibrated_figures_that_differ_in_the_ninth_digit_are_alike() -> None:
    rows = [made_up(0, **{NAMES[0]: 0.9999999991}), made_up(1, **{NAMES[0]: 1.0})]
    assert [row["status"] for row in pareto_front.marked(rows, ASKED)] == ["front", "front"]


def chosen(rows: list[dict[str, Any]], by_seed: dict[str, list[float]]) -> recommendation.Recommendation:
    rows = [{**row, "utility": float(np.mean(by_seed[row["protocol"]]))} for row in rows]
    utilities = {name: dict(enumerate(values)) for name, values in by_seed.items()}
    return recommendation.recommended(pareto_front.marked(rows, ASKED), utilities, [], ASKED, ["a remark"])


def test_a_clear_winner_is_taken_and_stable() -> None:
    found = chosen([made_up(0), made_up(1)], {"p0": [0.80, 0.81, 0.80, 0.81], "p1": [0.90, 0.91, 0.90, 0.91]})
    assert (found.protocol, found.seeds, found.agreeing, found.stable) == ("p1", 4, 4, True)
    assert not any("smaller than the error bars" in doubt for doubt in found.doubts)
    assert "a remark" in found.doubts


def test_of_like_ones_that_is_taken_whose_worst_party_learns_least_and_the_doubt_is_said() -> None:
    rows = [made_up(0, **{NAMES[2]: 2.0}), made_up(1)]
    found = chosen(rows, {"p0": [0.90, 0.92, 0.91, 0.90], "p1": [0.91, 0.90, 0.90, 0.91]})
    assert found.protocol == "p1"
    assert any(
        doubt == "its difference in utility from p0 is smaller than the error bars" for doubt in found.doubts
    )


def test_what_other_seeds_would_not_recommend_is_not_called_stable() -> None:
    rows = [made_up(0), made_up(1), made_up(2)]
    found = chosen(
        rows, {"p0": [0.90, 0.90, 0.90, 0.90], "p1": [0.99, 0.70, 0.70, 0.70], "p2": [0.50, 0.50, 0.50, 0.89]}
    )
    assert found.seeds == 4
    alone = chosen(rows[:1], {"p0": [0.9, 0.9]})
    assert alone.stable
    flipping = chosen([made_up(0), made_up(1)], {"p0": [0.9, 0.8], "p1": [0.7, 0.9]})
    assert flipping.agreeing <= flipping.seeds


def test_a_trusted_party_is_doubted_and_an_alternative_named() -> None:
    rows = [made_up(0, worst_party="curator", **{NAMES[2]: np.inf}), made_up(1)]
    found = chosen(rows, {"p0": [0.95, 0.95, 0.951], "p1": [0.90, 0.90, 0.901]})
    assert found.protocol == "p0"
    assert (
        "curator learns everything: she is trusted with the labels, and no constraint names her"
        in found.doubts
    )
    assert found.alternative.startswith("who does not trust curator takes p1")


def test_what_learns_no_more_than_guessing_is_not_recommended() -> None:
    found = chosen([made_up(0, **{"utility[constant]": 0.9})], {"p0": [0.9, 0.9]})
    assert found.protocol is None
    assert found.reasons[0].startswith("nothing that fits learns more than always guessing the same")


def test_bounds_and_estimates_are_doubts() -> None:
    rows = [made_up(0, **{"basis[learner]": "upper", "basis[user]": "claimed", "attack_basis": "measured"})]
    doubts = chosen(rows, {"p0": [0.9, 0.9]}).doubts
    assert doubts[0].startswith("the ε of learner is an upper bound")
    assert doubts[1] == "the ε of user is claimed, not proven"
    assert doubts[2].startswith("the attack is an estimate (measured")
