"""Names of views, read: who of the learner, the wire and the victim's fellow users looks together."""

from __future__ import annotations

import re
from dataclasses import dataclass

from p2p_sim.core.errors import InputError

_PARTS = re.compile(r"(learner)|(wire)|(?:(\d+)\*)?(user)")


@dataclass(frozen=True)
class View:
    """Who looks: the learner, the wire, and how many other users of the victim's cluster."""

    learner: bool
    wire: bool
    users: int


def read(text: str) -> View | None:
    """Return the view that a text such as ``learner+3*user`` names, or None for other parties.

    Parts are joined by ``+`` in any order.  Raises InputError for an empty or repeated part, or 0 users.
    """
    if not isinstance(text, str) or not text.strip() or "" in [part.strip() for part in text.split("+")]:
        raise InputError(
            f"view = {text!r}: name the parties, such as 'learner', 'user', 'learner+3*user', 'wire'"
        )
    learner = wire = False
    users = 0
    for part in (piece.strip() for piece in text.split("+")):
        match = _PARTS.fullmatch(part)
        if match is None:
            return None
        count = int(match[3] or 1) if match[4] else 0
        repeated = (match[1] and learner) or (match[2] and wire) or (match[4] and users)
        if repeated or (match[4] and not count):
            raise InputError(
                f"view = {text!r}: name each party once, and users as '3*user' with at least one"
            )
        learner, wire, users = learner or bool(match[1]), wire or bool(match[2]), users + count
    return View(learner, wire, users)
