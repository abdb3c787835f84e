"""What is known of every protocol: labels, whom one trusts, which views have a law, whether an audit has a statistic.

All of it is read off the class: its docstring, its program, and what is registered of its privacy.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

from p2p_sim import catalogue
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol
from p2p_sim.network import topologies
from p2p_sim.privacy import accountant
from p2p_sim.privacy.accepted_labels import taken_by
from p2p_sim.privacy.registered import accounting
from p2p_sim.privacy.table_rows import TableRow, rows
from p2p_sim.report import terminal

USERS = 12
"""Users of the cluster in which laws are looked for; whether there is one does not depend on how many there are."""

_PART = r"\*{name}:\*\s+(.*?)(?=\s*\n\s*\*[A-Z]\w*:\*|\n\s*\n|\Z)"
_BASES = ("exact", "upper", "lower", "refused")


def described(kind: type[Protocol], protocol: Protocol | None, why: str = "") -> dict[str, Any]:
    """Return what is known of a protocol class, as a document.

    ``protocol``: one of the class, whose views are asked for; None if none can be made, and then ``why`` says so.
    """
    registered = accounting(kind)
    return {
        "name": kind.command_name(),
        "class": catalogue.class_name(kind),
        "shipped": catalogue.shipped(kind),
        "labels": list(taken_by(kind)),
        "trust": docstring_part(kind, "Assumes"),
        "parameters": None if protocol is None else protocol.parameters(),
        "views": None if protocol is None else [_view(protocol, row) for row in rows(protocol)],
        "why": why,
        "statistic": registered is not None and registered.statistic is not None,
        "source": docstring_part(kind, "Source"),
    }


def docstring_part(kind: type[Protocol], name: str) -> str:
    """Return what the docstring of a class says after a word such as *Assumes:*, in one line; empty if nothing."""
    found = re.search(_PART.format(name=name), inspect.cleandoc(kind.__doc__ or ""), re.DOTALL)
    return "" if found is None else " ".join(found[1].split()).rstrip(".")


def _view(protocol: Protocol, row: TableRow) -> dict[str, Any]:
    """Return on what basis a view's law stands, and why not if there is none."""
    options: dict[str, Any] = {"cluster_size": USERS}
    over = protocol.graph_over()
    try:
        if over is not None:
            people = Population.synthetic(users=USERS, cluster_size=USERS, labels=protocol.label_count())
            options = {"population": topologies.join(people, "ring:2", 0, within_clusters=over == "cluster")}
        found = accountant.profile(protocol, row.name, users=row.users, **options)
    except (InputError, ProtocolError) as error:  # a program that does not run in so small a world
        return {"view": row.key, "basis": "refused", "why": str(error)}
    return {"view": row.key, "basis": found.basis, "why": found.why}


def as_text(documents: Sequence[dict[str, Any]]) -> str:
    """Return the documents in words, a paragraph a protocol."""
    return "\n".join(_paragraph(document) for document in documents)


def _paragraph(document: dict[str, Any]) -> str:
    said_nothing = "its docstring does not say"
    lines = [
        ("labels", ", ".join(document["labels"])),
        ("trust", document["trust"] or said_nothing),
        *_of_views(document),
        ("audits", "a statistic of its own" if document["statistic"] else "a classifier is learned"),
        ("source", document["source"] or said_nothing),
    ]
    head = document["name"] if document["shipped"] else f"{document['name']} ({document['class']})"
    return f"{head}\n" + "".join(f"  {name:<8}{terminal.visible(text)}\n" for name, text in lines)


def _of_views(document: dict[str, Any]) -> list[tuple[str, str]]:
    if document["views"] is None:
        return [("views", f"not known: {document['why']}")]
    found = {
        basis: ", ".join(view["view"] for view in document["views"] if view["basis"] == basis)
        for basis in _BASES
    }
    return [(basis, names) for basis, names in found.items() if names]
