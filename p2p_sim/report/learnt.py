"""What one view of a run learns, in a few lines: exact, promised, or why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.report import quick
from p2p_sim.report.figures import bracket_text, number_text
from p2p_sim.trace.web.known import Viewers
from p2p_sim.view import coalition_of

ONE_USER = re.compile(r"user:[0-9]+")


def learnt(run: Any, view: str, channels: str = "plain") -> dict[str, Any]:
    """Return rows of basis, text and source for a view such as "learner+user:17", within two seconds or so.

    What users learn does not depend on which ones they are.  Raises InputError for an unknown view, for a run without
    its population, and for a protocol that is not a shipped one.
    """
    if run.population is None:
        raise InputError(
            "this run was saved without its population: what a view learns depends on the clusters"
        )
    if run.source is None:
        raise InputError(f"{run.protocol} is not a shipped protocol: what its views learn is not known here")
    table = quick.table_of(run.source, run.population, run.faults, (_unnamed(view),), channels)
    row = table["views"][0]
    found = [_promised(theorem) for theorem in row["theorems"]]
    if row["refused"]:
        late = row["refused"].partition("not computed here: ")[2]
        found.insert(0, _row("not computed here", late) if late else _row("refused", row["refused"]))
    if row["exact"] is not None:
        exact = row["exact"]
        told = f"ε = {bracket_text(exact)} at δ = {table['delta']:.2g}"
        found.insert(0, _row(exact["basis"], told, "; ".join([exact["source"], *exact["assumes"]])))
    wire = f", {channels} channels" if "wire" in view else ""
    return {"view": view, "rows": found, "note": f"One label, replaced; ε in nats{wire}."}


def _unnamed(view: str) -> str:
    """Return a view with its users counted, not named."""
    parts = view.split("+")
    named = [part for part in parts if ONE_USER.fullmatch(part)]
    if len(named) < 2:
        return ONE_USER.sub("user", view)
    return "+".join([part for part in parts if part not in named] + [f"{len(named)}*user"])


def _promised(theorem: Mapping[str, Any]) -> dict[str, str]:
    if not theorem["holds"]:
        why = theorem["why"] or "epsilon is infinite"
        return _row("does not apply", f"{theorem['name']}: {why}", theorem["source"])
    return _row(
        theorem["basis"], f"ε = {number_text(theorem['epsilon'])} ({theorem['name']})", theorem["source"]
    )


def _row(basis: str, text: str, source: str = "") -> dict[str, str]:
    return {"basis": basis, "text": text, "source": source}


VIEWERS = Viewers(coalition_of, learnt)
"""What the page is told of viewpoints."""
