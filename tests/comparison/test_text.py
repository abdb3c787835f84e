"""What a table says of attacks that gain nothing, of what dominates, and of what only guesses."""

from __future__ import annotations

from typing import Any

from p2p_sim.comparison import text
from p2p_sim.comparison.table import DOMINATED, FRONT

ATTACKED: dict[str, Any] = {
    "protocol": "p0", "status": FRONT, "utility": 0.9, "gain_lower": 0.1, "advantage": -0.0258,
    "advantage_lower": -0.037, "advantage_upper": -0.013, "advantage_of": "users and coins", "attack_seeds": 5,
    "attack_baseline": 0.97, "attack_basis": "measured", "attacker": "optimal",
}  # fmt: skip


def test_an_attack_has_an_interval_and_a_basis() -> None:
    assert text.attack(ATTACKED) == "-2.6 [-3.7, -1.3]"
    assert text.attack({**ATTACKED, "advantage_lower": -0.0258, "advantage_upper": -0.0258}) == "-2.6"
    assert text.attacker(ATTACKED) == "optimal (measured)"
    assert text.attack({}) == text.attacker({}) == "-"


def test_an_optimal_attack_that_is_no_better_than_none_is_named() -> None:
    good = {**ATTACKED, "protocol": "p1", "advantage": 0.02, "attacker": "simple-prediction"}
    told = text._of_attacks([ATTACKED, good], "learner")
    assert "no better with messages than without: the attack on p0" in told
    assert any(each.startswith("optimal: ") for each in told)
    assert not any(
        each.startswith(("optimal: ", "no better")) for each in text._of_attacks([good], "learner")
    )


def test_marks_say_who_only_guesses_and_who_dominates() -> None:
    guessing = {**ATTACKED, "gain_lower": -0.01}
    beaten = {**ATTACKED, "protocol": "p2", "status": DOMINATED, "dominated_by": "p0"}
    assert [text.mark(row, informative=True) for row in (ATTACKED, guessing, beaten)] == ["*", "o", ""]
    assert text.mark(ATTACKED, informative=False) == "o"
    assert text._of_dominated([ATTACKED, beaten]) == ["dominated, so without *: p2 by p0"]
