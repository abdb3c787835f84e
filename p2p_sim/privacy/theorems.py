"""A promise that a theorem makes of a view, as tables show it, and those that several mechanisms share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypedDict

from p2p_sim.privacy.bounds.bound import Bound


class Promise(TypedDict):
    """A view is (``epsilon``, ``delta``)-private if the theorem ``holds`` here; if not, ``why`` says so.

    ``epsilon``: in nats, infinite where it does not hold.  ``basis``: "exact" or "upper".  ``source``: the paper.
    """

    name: str
    epsilon: float
    delta: float
    holds: bool
    why: str
    basis: str
    source: str


def promise(name: str, bound: Bound) -> Promise:
    """Return the promise of a bound as it is."""
    return Promise(
        name=name, epsilon=bound.epsilon, delta=bound.delta, holds=bound.holds, why=bound.why, basis=bound.basis,
        source=bound.source,
    )  # fmt: skip


def nothing(name: str, why: str, delta: float = 0.0, source: str = "") -> Promise:
    """Return that a theorem promises nothing here, and why."""
    return Promise(
        name=name, epsilon=math.inf, delta=delta, holds=False, why=why, basis="upper", source=source
    )


LOCAL = "Warner 1965: the label is randomized before anybody sees it"


def local(epsilon: float, source: str = LOCAL) -> Promise:
    """Return the guarantee of the local randomizer, which no view takes away; ``source``: of its epsilon."""
    finite = math.isfinite(epsilon)
    why = "" if finite else "nobody lies"
    return Promise(
        name="local", epsilon=epsilon, delta=0.0, holds=finite, why=why, basis="exact", source=source
    )


def noise_on_the_count(epsilon: float, why: str, source: str) -> Promise:
    """Return the guarantee of noise on a count; ``why``: it does not hold, "" if it does."""
    value = math.inf if why else epsilon
    return Promise(
        name="noise on the count",
        epsilon=value,
        delta=0.0,
        holds=not why,
        why=why,
        basis="upper",
        source=source,
    )


def shuffled(users: int, colluders: int, epsilon: float, delta: float) -> list[Promise]:
    """Return what shuffling the labels of a crowd promises, some of whom tell theirs.

    ``users``: fewer hide worse; more than ``colluders``.  ``epsilon``: of the local randomizer.
    """
    from p2p_sim.privacy.bounds import shuffle

    bounds: dict[str, Callable[..., Bound]] = {
        "FMT 2021": shuffle.fmt2021_theorem, "clone": shuffle.clone, "stronger clone": shuffle.clone_stronger,
    }  # fmt: skip
    if not math.isfinite(epsilon):
        return [nothing(name, "epsilon = inf: nobody lies", delta) for name in bounds]
    return [
        promise(name, bound(users, epsilon, delta, colluders=colluders)) for name, bound in bounds.items()
    ]
