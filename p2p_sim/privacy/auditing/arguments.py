"""Checks of an audit's arguments, before the first world runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from p2p_sim.coalition import CHANNELS, Coalition
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.population import MAX_USERS, check_seed, named_columns
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.auditing.classifier import THRESHOLDS
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registered import known

MOST_TRIALS = 10**12
"""Largest number of worlds: a machine that runs a million a second has done these in eleven days."""

STATISTICS = ("auto", "exact", "classifier")


def given_point(epsilon: float | None, delta: float | None) -> tuple[str, float]:
    """Return which figure is given, and its value; raises InputError unless exactly one is."""
    if (epsilon is None) == (delta is None):
        raise InputError(
            f"epsilon = {epsilon!r} and delta = {delta!r}: give one of the two; the other is measured"
        )
    name, value = ("delta", delta) if epsilon is None else ("epsilon", epsilon)
    number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    if not number or not 0 <= float(value) < (1 if name == "delta" else math.inf):  # type: ignore[arg-type]
        raise InputError(
            f"{name} = {value!r}: must be a number, at least 0" + (" and below 1" if name == "delta" else "")
        )
    return name, float(value)  # type: ignore[arg-type]


def check(trials: Any, confidence: Any, seed: Any, statistic: Any, channels: str) -> None:
    """Check the numbers and names of an audit; raises InputError."""
    check_seed(seed)
    counted = isinstance(trials, (int, np.integer)) and not isinstance(trials, bool)
    if not counted or not 1 <= trials <= MOST_TRIALS:
        raise InputError(
            f"trials = {trials!r}: must be a whole number of worlds, at least 1 and at most {MOST_TRIALS:,}"
        )
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence!r}: must be a number above 0 and below 1, such as 0.95")
    if not callable(statistic) and statistic not in STATISTICS:
        raise InputError(
            f"statistic = {statistic!r}: must be one of {', '.join(STATISTICS)}"
            f"{near(str(statistic), STATISTICS)}, or an attack of your own, a function "
            "from privacy.Seen to a number for each world (--statistic MODULE:FUNCTION)"
        )
    if channels not in CHANNELS:
        raise InputError(
            f"channels = {channels!r}: must be one of {', '.join(CHANNELS)}{near(str(channels), CHANNELS)}"
        )


def given_composition(composition: Any, honest: int) -> str | int:
    """Return "worst", or how many others have label 1; raises InputError for what cannot be."""
    if isinstance(composition, str) and composition == "worst":
        return composition
    whole = isinstance(composition, (int, np.integer)) and not isinstance(composition, bool)
    if not whole or not 0 <= composition <= honest:
        raise InputError(
            f"composition = {composition!r}: must be 'worst' or how many of the {honest} other honest users have "
            "label 1"
        )
    return int(composition)


def check_enough(trials: int, confidence: float, *, learning: bool) -> None:
    """Check that so many worlds can show anything at all; raises InputError that says how many can.

    ``learning``: whether half of them are learned from, to choose events of which the others count all.
    """
    thresholds = THRESHOLDS if learning else 1
    count = int(trials) // 2 if learning else int(trials)
    if count < 1 or confidence_bounds.cap_epsilon(count, 0.0, thresholds, confidence) == 0:
        least = confidence_bounds.trials_for_epsilon(0.0, 0.0, thresholds, confidence) or 1
        raise InputError(
            f"trials = {trials}: too few to say anything at confidence {confidence:g}; "
            f"give at least {2 * least if learning else least}"
        )


def check_models(protocol: Protocol, against: Any) -> None:
    """Check that what runs, and what describes it, are what they should be; raises InputError."""
    if not isinstance(protocol, Protocol):
        raise InputError(
            f"protocol = {protocol!r}: must be a protocol with its parameters, PeerToPeer(alpha=0.1)"
        )
    if protocol.mixes_everybody():
        raise InputError(
            "over = 'everybody': the worlds of an audit would be mixed with each other; audit over = 'cluster' with as "
            "many users a world, whose law is the same"
        )
    if against is not None and not isinstance(against, (Protocol, PrivacyProfile)):
        raise InputError(
            f"against = {against!r}: must be a protocol with its parameters, or a privacy profile"
        )


def alike(protocol: Protocol, known: Protocol) -> bool:
    """Whether two protocols send the same kinds of messages, so that a law of one can read the other's."""
    first, second = (
        {
            kind: (m.sender, m.recipient, m.sealed_for, m.layers, m.fields)
            for kind, m in each.messages().items()
        }
        for each in (protocol, known)
    )
    return first == second


def world_size(cluster_size: Any) -> int:
    """Return the users of a world; raises InputError for what cannot be one."""
    if cluster_size is None:
        return 1
    if isinstance(cluster_size, bool) or not isinstance(cluster_size, (int, np.integer)) or cluster_size < 1:
        raise InputError(f"cluster_size = {cluster_size!r}: must be a whole number of users, at least 1")
    if cluster_size > MAX_USERS // 2:
        raise InputError(f"cluster_size = {cluster_size:,}: two worlds have more than {MAX_USERS:,} users")
    return int(cluster_size)


def given_public(public: Any, size: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return the public columns of the users of a world, by name; raises InputError for what cannot be such."""
    columns = named_columns("public", public)
    for name, column in columns.items():
        if len(column) != size:
            raise InputError(
                f"public column {name!r} has {len(column):,} rows, a world has {size:,} users: give one row a user, "
                "the victim's first, then those of the colluders"
            )
    return columns


def why_unaudited(protocol: Protocol, coalition: Coalition, channels: str) -> str:
    """Return why worlds do not show what a view sees; empty where they do, or nobody has said that they do not."""
    of_kind = known(protocol).unaudited
    return "" if of_kind is None else of_kind(protocol, coalition, channels)


def coalition_of(view: str, protocol: Protocol, size: int) -> Coalition:
    """Return who looks; raises InputError for parts that a world does not have."""
    coalition = Coalition.parse(view, protocol.roles())
    if coalition.user_count >= size:
        raise InputError(
            f"view = {view!r}: {coalition.user_count} users look, and a world of {size} has {size - 1} beside the "
            "victim; give a larger cluster_size"
        )
    outside = [user for user in coalition.users if not 1 <= user < size]
    if outside:
        raise InputError(
            f"view = {view!r}: user {min(outside)} is not in a world of {size}, whose users are 0 (the victim) to "
            f"{size - 1}; name others, or just how many: '{coalition.user_count}*user'"
        )
    return coalition
