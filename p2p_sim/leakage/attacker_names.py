"""Attackers by name: those that are shipped, and one's own, which is a function of ``Knowledge`` like them.

An attacker of one's own is given as a function or as ``module:function``.  It sees what the shipped ones see, none of
which it can write to, and its guesses are held against the same labels, baseline and bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.leakage.advantage import CANARIES
from p2p_sim.leakage.attackers import Attacker, Guesses, Knowledge, optimal, prior, simple_prediction

PRIOR, SIMPLE, OPTIMAL = "prior", "simple-prediction", "optimal"

SHIPPED: dict[str, Attacker] = {PRIOR: prior, SIMPLE: simple_prediction, OPTIMAL: optimal}
"""Attackers by name, the weakest first."""

OwnAttacker = Callable[[Knowledge], Guesses | npt.ArrayLike]
"""An attacker of one's own: from what she has to a guess (n,) for every user, or to ``Guesses``."""


def named(given: str | OwnAttacker) -> tuple[str, Attacker]:
    """Return an attacker with her name: a shipped one's, ``module:function``, or that of a function.

    A ``module:function`` is imported from the current folder or the path.  Raises InputError for another name, for what
    cannot be imported or called, and for a function that is called as a shipped attacker is.
    """
    if isinstance(given, str) and given in SHIPPED:
        return given, SHIPPED[given]
    if isinstance(given, str):
        name, function = given, module_finder.imported(given, "attacker", "FUNCTION")
    else:
        name, function = str(getattr(given, "__name__", type(given).__name__)), given
    if not callable(function):
        raise InputError(
            f"attacker {name!r} is {function!r}; needed is a function of leakage.attackers.Knowledge"
        )
    if name in SHIPPED or name == CANARIES:
        raise InputError(f"attacker {name!r}: a shipped one is called so; give the function another name")
    return name, _Own(name, function)


@dataclass(frozen=True)
class _Own:
    """A function as an attacker: it is shown what it cannot change, and what it returns is checked."""

    name: str
    function: OwnAttacker

    def __call__(self, knowledge: Knowledge) -> Guesses:
        """Return the guesses; raises InputError as the function does, and ProtocolError for its mistakes."""
        try:
            found = self.function(_locked(knowledge))
        except InputError:
            raise
        except Exception as error:  # whatever a stranger's function raises
            raise ProtocolError(
                f"attacker {self.name}: it raises {module_finder.in_one_line(error)}: mend it"
            ) from error
        return self._checked(found, knowledge.people.users, knowledge.eta.shape[1])

    def _checked(self, found: Any, users: int, labels: int) -> Guesses:
        made = found if isinstance(found, Guesses) else Guesses(np.asarray(found), None, "one's own")
        guess = np.asarray(made.guess)
        if guess.shape != (users,) or guess.dtype.kind not in "biu":
            raise ProtocolError(
                f"attacker {self.name}: it returns an array of shape {guess.shape} and type {guess.dtype}; needed: a "
                f"label for each of the {users:,} users, whole numbers of shape ({users},)"
            )
        wrong = (guess < 0) | (guess >= labels)
        if bool(wrong.any()):
            raise ProtocolError(
                f"attacker {self.name}: it guesses {guess[wrong][0]}; needed: labels from 0 to {labels - 1}"
            )
        return Guesses(np.asarray(guess, np.int64), None, made.source)


def _locked(knowledge: Knowledge) -> Knowledge:
    """Return the same, of which no array can be written to that others look at afterwards."""
    people, returned = knowledge.people, knowledge.returned
    return replace(
        knowledge,
        people=replace(people, y=_still(people.y), x=None if people.x is None else _still(people.x)),
        eta=_still(knowledge.eta),
        utility=_still(knowledge.utility),
        returned=None if returned is None else {name: _still(column) for name, column in returned.items()},
    )


def _still(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = column.view()
    view.flags.writeable = False
    return view
