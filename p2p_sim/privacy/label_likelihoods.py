"""``LabelLikelihoods``: what the messages of a view say of each user's label, to an attacker who guesses labels.

It is what the entry ``attack`` of a mechanism's room returns (see ``privacy.Accounting``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelLikelihoods:
    """log P(all that the view saw | a user's label is c), of some users, for every label c.

    ``users`` (m,): ids, ascending, of those of whom the messages may say something; of all others they say nothing.
    ``log`` (m, k): natural logarithms, each row up to a constant; -infinity where the view cannot be, but not in a
    whole row.  ``basis``: "exact" where no attacker with this view and this prior can know more; "lower" where part of
    what the view shows is left out, so that a better attack may exist.  ``source``: where the formula stands.

    Raises InputError for other shapes and for rows without a finite entry.
    """

    users: npt.NDArray[np.int64]
    log: Floats
    basis: Literal["exact", "lower"]
    source: str

    def __post_init__(self) -> None:
        if self.log.ndim != 2 or self.log.shape[0] != len(self.users) or self.log.shape[1] < 2:
            raise InputError(
                f"log: has shape {self.log.shape}; needs one row for each of the {len(self.users):,} users, "
                "and one column for each label, 2 at least"
            )
        if bool((np.diff(self.users) <= 0).any()):
            raise InputError("users: must be ids in ascending order, each once")
        impossible = np.isnan(self.log).any(axis=1) | ~(self.log.max(axis=1, initial=-np.inf) > -np.inf)
        if bool(impossible.any()):
            user = int(self.users[np.flatnonzero(impossible)[0]])
            raise InputError(
                f"log: what the view saw is impossible whatever label user {user} has, or is no number; the prior "
                "rules out what happened, or the law is of another protocol"
            )

    @classmethod
    def silent(cls, labels: int, source: str) -> LabelLikelihoods:
        """Return that the view says nothing of anybody."""
        return cls(np.zeros(0, np.int64), np.zeros((0, labels)), "exact", source)
