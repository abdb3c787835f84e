"""The best attacker of several: her interval holds although she was chosen, in simulations whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import binom

from p2p_sim.comparison import best_attacker
from p2p_sim.comparison.best_attacker import Attacked, best
from p2p_sim.leakage import advantage, intervals
from p2p_sim.leakage.advantage import Baseline

ALARM = 1e-9
TRIALS, USERS = 300, 100
LEAST = int(binom.ppf(ALARM, TRIALS, 0.95))


def run_of(y: np.ndarray, guess: np.ndarray, attackers: int) -> Attacked:
    """Hold guesses against labels as an attack does."""
    baseline = Baseline(np.zeros(len(y), np.int64))
    confidence = best_attacker.strict(attackers)
    row = advantage.measured(
        "one", guess, baseline, y, np.eye(2), confidence=confidence, source="", groups=None, basis="measured"
    )
    return Attacked(
        row.advantage.value, row.advantage.lower, row.advantage.upper, row.baseline.value, "measured", len(y)
    )


def covered(attackers: int, seeds: int, *, same_users: bool) -> int:
    """Return in how many trials the interval of the best attacker holds nothing, which is what each of them gains.

    They toss coins, on labels that are coins, and are held against always guessing 0.
    """
    draw, hits = np.random.default_rng(3), 0
    for _ in range(TRIALS):
        y = np.repeat(draw.integers(0, 2, (1, USERS)), seeds, axis=0)
        y = y if same_users else draw.integers(0, 2, (seeds, USERS))
        guesses = draw.integers(0, 2, (attackers, seeds, USERS))
        if same_users:
            runs = {
                str(a): [run_of(*both, attackers) for both in zip(y, guesses[a], strict=True)]
                for a in range(attackers)
            }
        else:  # ends of runs do not matter
            gains = (guesses == y).mean(axis=2) - (y == 0).mean(axis=1)
            runs = {
                str(a): [Attacked(gain, -1.0, 1.0, 0.5, "measured", USERS) for gain in gains[a]]
                for a in range(attackers)
            }
        found = best(runs, same_users=same_users)
        assert found is not None
        hits += found.lower <= 0 <= found.upper
    return hits


@pytest.mark.parametrize(("attackers", "seeds", "same_users"), [(24, 20, False), (3, 3, True), (3, 1, True)])
def test_the_best_of_worthless_attackers_is_said_to_gain_nothing(
    attackers: int, seeds: int, same_users: bool
) -> None:
    assert covered(attackers, seeds, same_users=same_users) >= LEAST


def test_without_the_correction_it_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: each interval at 95 %, as if nobody had chosen."""
    monkeypatch.setattr(best_attacker, "strict", lambda *_: 0.95)
    assert covered(24, 20, same_users=False) < LEAST


def test_of_the_same_users_the_coins_alone_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: an attacker who always guesses 1 gains by the luck of these users, in every seed alike."""
    draw = np.random.default_rng(5)
    hits = {True: 0, False: 0}
    for _ in range(TRIALS):
        y = draw.integers(0, 2, USERS)
        runs = [run_of(y, np.ones(USERS, np.int64), 1)] * 3
        for knows in hits:
            found = best({"ones": runs}, same_users=knows)
            assert found is not None
            hits[knows] += found.lower <= 0 <= found.upper
    assert hits[True] >= LEAST > hits[False]


def runs(*values: float, groups: int = 100, basis: str = "measured", half: float = 0.1) -> list[Attacked]:
    return [Attacked(value, value - half, value + half, 0.5, basis, groups) for value in values]


def told(attackers: dict[str, Sequence[Attacked]], *, same_users: bool) -> tuple[str, float, str]:
    found = best(attackers, same_users=same_users)
    assert found is not None
    return found.name, round((found.upper - found.lower) / 2, 6), found.of


def test_what_an_interval_knows_of() -> None:
    from p2p_sim.sweep.summary import interval

    values = (0.01, 0.02, 0.04)
    half = round(interval(values, best_attacker.strict(1))[1], 6)
    few = intervals.FEW_GROUPS - 1
    assert told({"a": runs(*values)}, same_users=False) == ("a", half, "users and coins")
    assert told({"a": runs(*values)}, same_users=True) == (
        "a",
        0.1,
        "users and coins",
    )  # no narrower than a run's
    assert told({"a": runs(*values, groups=few)}, same_users=True) == ("a", half, "coins")
    assert told({"a": runs(*values[:2])}, same_users=False) == (
        "a",
        0.1,
        "users and coins",
    )  # of two, no spread
    assert told({"a": runs(*values), "b": runs(0, 0, 0)}, same_users=False)[1] > half  # one of two was chosen


def test_the_best_attack_by_law_is_not_chosen_and_the_prior_no_attacker() -> None:
    law = advantage.by_law_of("optimal")
    found = best({"optimal": runs(0.3), law: runs(0.2, basis="exact", half=0.0)}, same_users=False)
    assert found is not None
    assert (found.name, found.advantage, found.basis) == (law, 0.2, "exact")
    assert best({"prior": runs(0.0)}, same_users=False) is None
    assert best({"simple-prediction": []}, same_users=False) is None
