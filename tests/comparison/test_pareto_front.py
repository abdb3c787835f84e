"""Dominance, against every pair; and which row is recommended, on made-up rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p_sim.comparison import pareto_front, promises, recommendation

ASKED = promises.read("epsilon=1", ["user<=2"])
NAMES = [
    "epsilon_upper[learner]",
    "epsilon_upper[user]",
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


def test_a_lower_figure_does_not_put_a_row_on_the_front() -> None:
    """What counts is what is proven: of a row with ε = 0.5 that may be 2, the upper end."""
    vague = made_up(0, **{"epsilon_nats[learner]": 0.5, NAMES[0]: 2.0, "basis[learner]": "lower"})
    sure = made_up(1, **{"epsilon_nats[learner]": 1.0, NAMES[0]: 1.0})
    assert [row["status"] for row in pareto_front.marked([vague, sure], ASKED)] == ["dominated", "front"]


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
    assert not any("two seeds" in doubt for doubt in found.doubts)
    few = chosen([{**row, "seeds": 2} for row in rows], {"p0": [0.9, 0.7], "p1": [0.6, 0.7]})
    assert (few.protocol, any("of two seeds are wide" in doubt for doubt in few.doubts)) == ("p1", True)
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


def test_a_party_of_whom_nothing_is_known_counts_as_the_worst() -> None:
    rows = [made_up(0, worst_party="relay", **{NAMES[2]: None}), made_up(1, parameter="", value=None)]
    found = chosen(rows, {"p0": [0.95, 0.95, 0.951], "p1": [0.90, 0.90, 0.901]})
    assert "what relay learns is not known, and may be everything" in found.doubts
    assert found.alternative.startswith("who does not trust relay takes p1: ")
    tied = chosen([rows[0], {**rows[0], "protocol": "p1"}], {"p0": [0.9, 0.91], "p1": [0.91, 0.9]})
    assert any("none has a worst party whose ε is known" in each for each in tied.reasons)


def test_the_choice_on_the_test_rows_is_a_doubt() -> None:
    said = "it was chosen by the same test rows that measure it"
    both = chosen([made_up(0), made_up(1)], {"p0": [0.8, 0.81], "p1": [0.9, 0.91]})
    assert any(each.startswith(said) for each in both.doubts)
    assert not any(each.startswith(said) for each in chosen([made_up(0)], {"p0": [0.8, 0.81]}).doubts)


def test_that_fits_and_was_not_learned_from_is_not_said_not_to_fit() -> None:
    row = made_up(0, parameter="", value=None, utility=None, bound_by="")
    found = recommendation.recommended(pareto_front.marked([row], ASKED), {}, [], ASKED, [])
    assert found.protocol is None
    assert found.reasons == ("of no protocol that fits is there a run from which anything was learned",)


def test_where_all_failed_it_is_not_said_that_no_protocol_keeps_the_promise() -> None:
    rows = [{"protocol": "p0", "status": "failed", "why": "the largest cluster has 3 users"}]
    assert recommendation.recommended(rows, {}, [], ASKED, []).reasons[0].startswith("every protocol failed")
    rows.append({"protocol": "p1", "status": "does not fit", "why": "it learns 2"})
    assert recommendation.recommended(rows, {}, [], ASKED, []).reasons[0].startswith("nothing fits")


def test_what_learns_no_more_than_guessing_is_not_recommended() -> None:
    row = made_up(0, gain_lower=-0.02, **{"utility[constant]": 0.9, "gain_lower[true]": 0.05})
    found = chosen([row], {"p0": [0.9, 0.9]})
    assert found.protocol is None
    assert found.reasons[0].startswith("nothing that fits learns more than always guessing the same")
    assert chosen([{**row, "gain_lower": 0.01}], {"p0": [0.9, 0.9]}).protocol == "p0"
    one = chosen([{**row, "seeds": 1}], {"p0": [0.9]})
    assert one.reasons[0].endswith(
        "of one seed there is no error bar, so that nothing can be shown: give --seeds 5"
    )


def test_where_true_labels_are_no_better_than_guessing_nothing_is_recommended() -> None:
    """Though a protocol seems to learn something, by chance."""
    true = {"utility[true]": 0.52, "utility[constant]": 0.5, "gain_lower[true]": -0.09}
    rows = [made_up(number, test_rows=60, gain_lower=0.01, **true) for number in range(2)]
    found = chosen(rows, {"p0": [0.7, 0.71], "p1": [0.6, 0.61]})
    assert (found.protocol, found.relax) == (None, ())
    assert found.reasons == (
        "the features tell nothing of the label that 60 test rows can show: a model of the true labels reaches "
        "52.00 %, guessing 50.00 %, and only more than 61.00 % would show more at 95 %",
        "what is known is which protocols keep what was asked, whom they need and what they cost: p0, p1",
    )
    assert "there are only 60 test rows, so that utility is hardly known" in found.doubts
    rows = [{**row, "auc_gain_lower[true]": 0.1} for row in rows]
    ranked = chosen(rows, {"p0": [0.7, 0.71], "p1": [0.6, 0.61]})
    assert ranked.protocol is None
    assert ranked.reasons[0].startswith(
        "60 test rows do not show that a model of the true labels is right more"
    )


def test_few_test_rows_of_a_rare_class_are_a_doubt() -> None:
    row = made_up(0, metric="auc", test_rows=600, rare_test_rows=5)
    said = "of the 600 test rows only 5 are of the rare class, so that utility is hardly known"
    assert said in chosen([row], {"p0": [0.7, 0.71]}).doubts
    assert said not in chosen([{**row, "rare_test_rows": 50}], {"p0": [0.7, 0.71]}).doubts


def test_no_error_bar_of_a_share_is_beyond_100_percent() -> None:
    assert recommendation.shown(0.57, 7.624, "accuracy") == "57.00 ± 100.00 %"
    assert recommendation.shown(0.57, 7.624, "r2") == "0.5700 ± 7.6240"


def test_what_a_run_warned_of_and_all_share_is_said_once_and_utility_is_held_against_others() -> None:
    row = made_up(0, note="odd; a remark", **{"utility[true]": 0.95, "messages[a user]": 1.0})
    found = chosen([row], {"p0": [0.9, 0.9]})
    assert [each for each in found.doubts if "remark" in each or "odd" in each] == ["odd", "a remark"]
    assert "true labels would give 95.00 %, and guessing gives 50.00 %" in found.reasons
    assert any(each.endswith("in 1 message") for each in found.reasons)


def test_other_test_rows_are_a_doubt_only_where_all_seeds_have_the_same() -> None:
    rows = pareto_front.marked(
        [made_up(0, utility=0.8, test_rows=100), made_up(1, utility=0.75, test_rows=100)], ASKED
    )
    by_seed = {"p0": dict.fromkeys(range(3), 0.8), "p1": dict.fromkeys(range(3), 0.75)}
    for same in (True, False):
        found = recommendation.recommended(rows, by_seed, [], ASKED, [], same_users=same)
        assert any("could change places" in each for each in found.doubts) == same


def test_bounds_and_estimates_are_doubts() -> None:
    rows = [made_up(0, **{"basis[learner]": "upper", "basis[user]": "claimed", "attack_basis": "measured"})]
    doubts = chosen(rows, {"p0": [0.9, 0.9]}).doubts
    assert doubts[0].startswith("the ε of learner is an upper bound")
    assert doubts[1] == "the ε of user is claimed, not proven"
    assert doubts[2].startswith("the attack is an estimate (measured")


def test_of_like_ones_that_cost_the_same_the_better_is_taken() -> None:
    found = chosen([made_up(0), made_up(1)], {"p0": [0.7, 0.8, 0.75], "p1": [0.7, 1.0, 0.9]})
    assert (found.protocol, found.seeds) == ("p1", 3)
    assert (
        found.agreeing == 2
    )  # the first seed alone has no better one, and the first of the catalogue is taken
