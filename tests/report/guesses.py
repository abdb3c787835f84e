"""Results of attacks made by hand, for tests of what is shown of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2p_sim.leakage.attack_results import AttackRow, Interval, LabelInference, PerUser
from p2p_sim.privacy.bounds.bound import Figure

NONE = Interval(np.nan, np.nan, np.nan)


def exactly(value: float) -> Interval:
    return Interval(value, value, value)


def row(name: str, utility: Interval, baseline: float = 0.76, basis: Any = "measured") -> AttackRow:
    advantage = Interval(*(end - baseline for end in utility))
    return AttackRow(
        name,
        utility,
        exactly(baseline),
        advantage,
        Interval(*(end / baseline if baseline else np.inf for end in utility)),
        basis,
        "A paper",
    )


REFUSED = AttackRow("simple-prediction", NONE, NONE, NONE, NONE, "refused", "", "needs features")


def bound(value: float, basis: Any = "upper", quantity: str = "attack advantage") -> Figure:
    return Figure(value, quantity, True, "", "Attacks 2023, Theorem 2", basis)


def people(users: int = 10) -> PerUser:
    """Users of whom the attacker is 60 % sure before, and after of one more each percent from 91 on."""
    posterior = 0.91 + 0.01 * np.arange(users) % 0.09
    return PerUser(np.arange(users), np.full(users, 0.6), posterior, np.arange(users) % 2 == 0)


def inference(**changes: Any) -> LabelInference:
    made: dict[str, Any] = {
        "view": "learner", "users": 1000, "labels": 2, "eta_from": "class shares alone", "utility": "0/1",
        "confidence": 0.95, "groups": 1000,
        "rows": (row("prior", exactly(0.76)), row("optimal", Interval(0.81, 0.83, 0.85)), REFUSED),
        "bounds": (bound(0.2),), "per_user": people(),
    }  # fmt: skip
    return LabelInference(**(made | changes))
