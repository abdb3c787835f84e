"""What a row of a sweep says of an attack on its run, and of what the run cost."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER

if TYPE_CHECKING:
    from p2p_sim.core.population import Population
    from p2p_sim.leakage.estimates import Estimates
    from p2p_sim.run import Run

ETA = "model"
"""Where attackers take P(y | x) from, unless a sweep says otherwise: "knn" takes ten times as long on many users."""


CONFIDENCE = 0.95
"""Of an advantage's interval, unless a sweep says otherwise."""


def attack_on(
    run: Run, held_out: Population | None, settings: Mapping[str, Any], estimates: Estimates
) -> dict[str, Any]:
    """Return the figures of every attacker of a view; ``settings``: with ``attack``, the view, and perhaps ``eta`` and
    ``attack_confidence`` and ``attack_utility``.

    Of each attacker: the share of labels guessed right, the same without messages (baseline), and the advantage with
    its interval and basis; missing where the attack was refused, and ``attack_why`` says why none was made.

    *Source:* ``leakage.attack``.
    """
    from p2p_sim.leakage.attack import attack

    view, eta = settings["attack"], settings.get("eta", ETA)
    confidence = settings.get("attack_confidence", CONFIDENCE)
    found: dict[str, Any] = {"attack": view, "eta": eta}
    try:
        done = attack(
            run, view, eta=eta, utility=settings.get("attack_utility", "0/1"), held_out=held_out,
            confidence=confidence, estimates=estimates, bounded=False, progress=False,
        )  # fmt: skip
    except InputError as error:
        return found | {"attack_why": str(error)}
    for row in done.rows:
        name = f"[{row.name}]"
        refused = row.basis == "refused"
        found[f"attack_utility{name}"] = None if refused else row.utility.value
        found[f"attack_baseline{name}"] = None if refused else row.baseline.value
        found[f"advantage{name}"] = None if refused else row.advantage.value
        found[f"advantage_lower{name}"] = None if refused else row.advantage.lower
        found[f"advantage_upper{name}"] = None if refused else row.advantage.upper
        found[f"advantage_basis{name}"] = row.basis
    return found | {"attack_eta_from": done.eta_from, "attack_groups": done.groups, "attack_why": ""}


def costs_of(run: Run) -> dict[str, Any]:
    """Return messages and bytes that a user sends and receives on average, and the simulated seconds of the protocol.

    ``seconds[network]``: over the default links alone, the same for equal runs; ``seconds``: with computing, as
    measured here.

    *Source:* ``Run.costs``.
    """
    users = run.users or 1
    bare = copy.copy(run)
    bare.compute, bare.work = {}, {}
    costs, network = run.costs(), bare.costs()
    of_users = costs.roles[USER]
    return {
        "messages[a user]": (of_users.messages_up + of_users.messages_down) / users,
        "bytes[a user]": (of_users.bytes_up + of_users.bytes_down) / users,
        "seconds[network]": network.seconds,
        "seconds": costs.seconds,
    }
