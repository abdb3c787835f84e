"""Which kinds of labels a protocol takes: two, several, or numbers."""

from __future__ import annotations

from p2p_sim import catalogue
from p2p_sim.core.columns_read import reads
from p2p_sim.core.label_kinds import BINARY, CLASSES, NUMERIC
from p2p_sim.core.message import USER
from p2p_sim.core.protocol import Protocol
from p2p_sim.privacy.registered import accounting


def taken_by(kind: type[Protocol]) -> tuple[str, ...]:
    """Return the kinds of labels that a protocol class takes, of "binary", "k" and "numeric".

    They are those that are registered of it.  Of a class of which nothing is said they follow from the class: it takes
    two labels; several, if it says how many; and numbers, if they are in a secret column that its users read, or if it
    says which numbers its labels stand for.
    """
    registered = accounting(kind)
    if registered is not None and registered.labels is not None:
        return registered.labels
    secret = reads(kind, USER, "secret")
    numeric = (NUMERIC,) if secret or kind.numbers is not Protocol.numbers else ()
    if secret and not reads(kind, USER, "y"):
        return numeric
    several = () if kind.label_count is Protocol.label_count else (CLASSES,)
    return (BINARY, *several, *numeric)


def protocols_for(kind: str) -> str:
    """Return the names of the known protocols that take labels of a kind, "binary", "k" or "numeric"."""
    names = [each.command_name() for each in catalogue.everything() if kind in taken_by(each)]
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
